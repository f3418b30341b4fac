"""What is computed from constants: the value, which is the evaluator's, with running error bounds of each element.

Ops that are defined by others are opened by their meaning, as the evaluator does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.ir.term import CONSTANT, GET, TUPLE, Term, constant, intern, topological
from coset.ir.types import TensorType
from coset.prove.bound import NONE, NOTHING, Bound
from coset.prove.bounds import STABLE, bound

SHOWN = 1 << 12  # elements of an operand up to which a kept node's meaning sees them


@dataclass(frozen=True)
class KnownValue:
    """The value of a term; the bound of two evaluations; whether every correct evaluation has these bits. Of a tuple those of its
    `parts`."""

    value: Any
    error: Bound = NOTHING
    stable: bool = True
    parts: tuple[KnownValue, ...] | None = None


class Uncomputed(Exception):
    """A term has no value here."""


@dataclass
class Evaluation:
    """Values with bounds. `recorded`: bounds of constants that earlier steps have rounded; `meaning`: the term that an op's definition
    gives; `fallback`: values of defined ops inside functions; `spend` is told of each op before it is computed."""

    recorded: Mapping[Term, Bound]
    meaning: Callable[[Term], Term | None]
    fallback: Callable[[Term, Sequence[Any]], Any]
    spend: Callable[[Term, Sequence[Any]], None]

    def known(self, root: Term, given: Mapping[Term, KnownValue] | None = None) -> KnownValue:
        """What is known of `root`, whose leaves are constants or `given`.

        Raises:
            Uncomputed: an op has no value.
        """
        table = dict(given or {})
        with np.errstate(all="ignore"):
            for term in topological([root], known=table):
                table[term] = self._leaf(term) if not term.operands else self._of(term, [table[operand] for operand in term.operands])
        return table[root]

    def _leaf(self, term: Term) -> KnownValue:
        if term.op is CONSTANT:
            return KnownValue(term.attribute("value").array(), self.recorded.get(term, NOTHING))
        if term.op.name == "builtin.absent":
            return KnownValue(None)
        if term.op.meaning is None:
            raise Uncomputed(term.op.name)
        self.spend(term, ())
        return KnownValue(term.op.meaning(term, (), {}))

    def _of(self, term: Term, operands: list[KnownValue]) -> KnownValue:
        if term.op is TUPLE:
            return KnownValue(None, parts=tuple(operands))
        if term.op is GET and operands[0].parts is not None:
            index: int = term.attribute("index")
            return operands[0].parts[index]
        if term.op.meaning is None or term.op.has("foreign"):
            return self._opened(term, operands)
        arrays = [operand.value for operand in operands]
        self.spend(term, arrays)
        value = term.op.meaning(term, arrays, {}, self.fallback) if term.regions else term.op.meaning(term, arrays, {})
        if isinstance(value, tuple):
            return KnownValue(None, parts=tuple(_unknown(part, operands) for part in value))
        value = np.asarray(value)
        if not isinstance(term.type, TensorType):
            return KnownValue(value) if all(operand.error.exact for operand in operands) else KnownValue(value, NONE, False)
        error = bound(term, arrays, [operand.error for operand in operands], value)
        kept = term.op.name in STABLE or term.op.has("movement")
        return KnownValue(value, error, error.exact or (kept and all(operand.stable for operand in operands)))

    def _opened(self, term: Term, operands: list[KnownValue]) -> KnownValue:
        """What a defined op means over the same operands; a kept node sees the numbers of small ones."""
        given = dict(zip(term.operands, operands, strict=True))
        if term.op.has("foreign"):
            leaves = [_as_leaf(operand, known) for operand, known in given.items()]
            given = dict(zip(leaves, given.values(), strict=True))
            of = dict(zip(term.operands, leaves, strict=True))
            term = intern(term.op, tuple(of[operand] for operand in term.operands), term.attributes, term.regions, term.type)
        found = self.meaning(term)
        if found is None:
            raise Uncomputed(term.op.name)
        return self.known(found, given)


def _as_leaf(operand: Term, known: KnownValue) -> Term:
    if known.value is None or np.size(known.value) > SHOWN or not isinstance(operand.type, TensorType):
        return operand
    return constant(known.value, operand.tensor.dtype)


def _unknown(value: Any, operands: Sequence[KnownValue]) -> KnownValue:
    """A result of an op with several: exact where the operands are and it computes no float."""
    sure = all(operand.error.exact for operand in operands) and np.asarray(value).dtype.kind in "biu"
    return KnownValue(value) if sure else KnownValue(value, NONE, False)
