"""The builtin ops that graphs from elsewhere bring: numbers of the host, operands that are not given, tokens, ops that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coset.ir.dims import evaluate
from coset.ir.op import Array, Attribute, Attributes, Op, register
from coset.ir.term import STATED, Term, make, stated
from coset.ir.types import AbsentType, TokenType, TupleType, Type


def _mean_dims(term: Term, _: Sequence[Array], binding: Mapping[str, int]) -> Array:
    numbers = [(evaluate(dim, binding) + (1 << 63)) % (1 << 64) - (1 << 63) for dim in term.attribute("dims")]  # as integers wrap around
    return np.array(numbers, np.int64).astype(term.tensor.dtype.numpy).reshape(term.tensor.static)


def _result_of_absent(_: Sequence[Type], __: Attributes) -> Type:
    return AbsentType()


def _result_of_token(_: Sequence[Type], __: Attributes) -> Type:
    return TokenType()


# Numbers of the host: integers that are dim expressions, as a tensor of static shape (what `Shape` arithmetic becomes).
DIMS = register(Op("builtin.dims", stated, _mean_dims, (Attribute("dims", "dims"), STATED), traits=frozenset({"leaf"})))
ABSENT = register(Op("builtin.absent", _result_of_absent, traits=frozenset({"leaf"})))
TOKEN = register(Op("builtin.token", _result_of_token, traits=frozenset({"leaf"})))
# An op that we do not know: `domain` and `name` say which, `payload` is its foreign form (kept exactly), `results` the types the
# importer gave. One result is the term's type; several are a tuple. With `effect` the first operand and the last result are tokens.
OPAQUE = register(Op("builtin.opaque", lambda _, a: a["results"][0] if len(a["results"]) == 1 else TupleType(a["results"]), None,
                     (Attribute("domain", "string"), Attribute("name", "string"), Attribute("payload", "any"), Attribute("results", "any"),
                      Attribute("effect", "bool", False, required=False)),
                     ("inputs",), variadic=True, traits=frozenset({"foreign"})))  # fmt: skip


def absent() -> Term:
    """The operand that is not given."""
    return make(ABSENT)
