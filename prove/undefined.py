"""Integer operations that a dialect leaves undefined (docs/numerics.md, F): no right side rests on one where the left side does not.

Looked at on drawn inputs of elementwise sides: the evaluator has a value for `x / 0`, a runtime may end there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from coset.dialects.expansion import expanded
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import Term, topological
from coset.ir.types import DType, TensorType
from coset.rules.definition import evaluate_defined

_DIVIDES = frozenset({"stablehlo.divide", "stablehlo.remainder"})
_SHIFTS = frozenset({"stablehlo.shift_left", "stablehlo.shift_right_arithmetic", "stablehlo.shift_right_logical"})
_SETTLES = {"stablehlo.and": False, "stablehlo.or": True}  # of truths: this operand alone says what the result is
_MOVES = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape"})

Place = tuple[tuple[int, ...], str]


@lru_cache(maxsize=256)
def may_be_undefined(sides: tuple[Term, Term]) -> bool:
    """Whether some operation of the sides has cases that its dialect leaves undefined."""
    return any(_leaves_open(term) for term in topological(expanded(sides, keep=lambda _: False)))


def newly_undefined(sides: tuple[Term, Term], inputs: Mapping[str, Array]) -> Place | None:
    """The first element that rests on an undefined operation on the right side and on none on the left side; None where there is none, or
    where an operation that is not elementwise reads such a value."""
    opened = expanded(sides, keep=lambda _: False)
    terms = list(topological(opened))
    with np.errstate(all="ignore"):
        values = dict(zip(terms, evaluate(terms, inputs, fallback=evaluate_defined), strict=True))
    open_: dict[Term, Array] = {}
    for term in terms:
        found = _open(term, values, open_)
        if found is None:
            return None
        open_[term] = found
    left, right = (open_[side] for side in opened)
    if left.shape != right.shape or not (right & ~left).any():
        return None
    places = np.argwhere(right & ~left)
    return tuple(map(int, places[0])), "the right side rests on an integer operation that is undefined there, the left side does not"


def _leaves_open(term: Term) -> bool:
    whole = isinstance(term.type, TensorType) and term.type.dtype.kind in ("int", "uint")
    return whole and (term.op.name in _DIVIDES or term.op.name in _SHIFTS)


def _open(term: Term, values: Mapping[Term, Any], open_: Mapping[Term, Array]) -> Array | None:
    """Where the value of a term rests on an undefined operation; None where that is not known."""
    value = np.asarray(values[term])
    given = [open_[operand] for operand in term.operands]
    if not any(each.any() for each in given) and not _leaves_open(term):
        return np.zeros(value.shape, bool)
    if term.op.name in _MOVES:
        return _moved(term, given[0], value.shape)
    if not term.op.has("elementwise"):
        return None
    if term.op.name == "stablehlo.select":
        chosen = np.where(np.asarray(values[term.operands[0]]), given[1], given[2])
        return np.asarray(np.broadcast_to(given[0] | chosen, value.shape))
    found = np.zeros(value.shape, bool)
    for each in given:
        found = found | each
    if term.op.name in _SETTLES and value.dtype.kind == "b":
        for operand, each in zip(term.operands, given, strict=True):
            found = found & ~((np.asarray(values[operand]) == _SETTLES[term.op.name]) & ~each)
    if _leaves_open(term):
        one, other = (np.asarray(values[operand]) for operand in term.operands)
        found = found | _undefined(term.op.name, term.tensor.dtype, one, other)
    return np.asarray(found)


def _moved(term: Term, given: Array, shape: tuple[int, ...]) -> Array | None:
    if given.ndim == 0:
        return np.asarray(np.broadcast_to(given, shape))
    return given.reshape(shape) if term.op.name == "stablehlo.reshape" else None


def _undefined(name: str, dtype: DType, one: Array, other: Array) -> Array:
    """Where a division or a shift is undefined."""
    if name in _SHIFTS:
        return np.asarray((other < 0) | (other >= dtype.bits))
    least = (one == -(1 << (dtype.bits - 1))) & (other == -1) if dtype.kind == "int" else np.zeros(one.shape, bool)
    return np.asarray((other == 0) | least)
