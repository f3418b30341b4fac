"""The builtin ops that graphs from elsewhere bring: numbers of the host, operands that are not given, tokens, ops that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coset.ir.dims import evaluate
from coset.ir.errors import require
from coset.ir.op import Array, Attribute, Attributes, Op, get_op, register
from coset.ir.term import STATED, Term, make, stated
from coset.ir.types import AbsentType, TensorType, TokenType, TupleType, Type


def _mean_dims(term: Term, _: Sequence[Array], binding: Mapping[str, int]) -> Array:
    numbers = [(evaluate(dim, binding) + (1 << 63)) % (1 << 64) - (1 << 63) for dim in term.attribute("dims")]  # as integers wrap around
    return np.array(numbers, np.int64).astype(term.tensor.dtype.numpy).reshape(term.tensor.static)


def _result_of_absent(_: Sequence[Type], __: Attributes) -> Type:
    return AbsentType()


def _result_of_token(_: Sequence[Type], __: Attributes) -> Type:
    return TokenType()


def _result_of_hinted(operands: Sequence[Type], attributes: Attributes) -> Type:
    op = get_op(attributes["op"])
    given = dict(attributes["given"])
    require(bool(attributes["hints"]) and op.signatures is None, f"`{op.name}` cannot have these hints")
    require(op.complete(given) == given, f"`{op.name}` has other attributes")
    return op.infer(operands, given)


def _flops_of_hinted(result: Type, operands: Sequence[Type], attributes: Attributes) -> Any:
    flops = get_op(attributes["op"]).flops
    assert isinstance(result, TensorType)
    return result.elements if flops is None else flops(result, operands, dict(attributes["given"]))


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

# An op whose program says how precisely it is to be computed: `op` with the attributes `given` (pairs of a name and a value, sorted), under
# `hints` (pairs of a name and a text in the words of its format, sorted). It is another op than `op`, so that no rule, no proof and no
# evaluation at build time takes one for the other.
HINTED = register(Op("builtin.hinted", _result_of_hinted, None,
                     (Attribute("op", "string"), Attribute("given", "any"), Attribute("hints", "any")),
                     ("operands",), variadic=True, traits=frozenset({"hinted"}), flops=_flops_of_hinted))  # fmt: skip


def absent() -> Term:
    """The operand that is not given."""
    return make(ABSENT)
