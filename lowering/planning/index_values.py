"""Integers that are indices, folded while a kernel is written: sums of them are indices, comparisons of them are bounds, choices by bounds
are choices of what is read. So a causal mask costs a comparison of two indices, and no tensor of it is made."""

from __future__ import annotations

from collections.abc import Sequence

from coset.ir.dims import Dim, add, subtract
from coset.ir.op import Op
from coset.ir.term import AttributeItems
from coset.ir.types import BOOL, DType
from coset.lowering.kernels.index_arithmetic import Extents, range_of
from coset.lowering.kernels.kernel import Choose, InBounds, IndexValue, Scalar, ScalarConstant

INT32 = 1 << 31


def folded(op: Op, values: Sequence[Scalar], dtype: DType, attributes: AttributeItems, extents: Extents) -> Scalar | None:
    """What the op is of indices, or None where it computes."""
    if op.name == "stablehlo.select":
        return _chosen(values, dtype)
    indices = [_index(value, extents) for value in values]
    if len(indices) != 2 or None in indices:
        return None
    left, right = indices
    assert left is not None and right is not None
    if op.name in ("stablehlo.add", "stablehlo.subtract") and dtype.name == "i64":
        total = add(left, right) if op.name == "stablehlo.add" else subtract(left, right)
        return IndexValue(total, dtype)
    return _compared(dict(attributes)["direction"], left, right, extents) if op.name == "stablehlo.compare" else None


def _index(value: Scalar, extents: Extents) -> Dim | None:
    """A value as an index: one that its type holds, so that it is what it counts."""
    if (
        isinstance(value, ScalarConstant)
        and value.dtype.name in ("i32", "i64")
        and isinstance(value.value, int)
        and abs(value.value) < INT32
    ):
        return value.value
    if not isinstance(value, IndexValue) or value.dtype.name not in ("i32", "i64"):
        return None
    if value.dtype.name == "i64":
        return value.index
    found = range_of(value.index, extents)
    if found is None or not all(isinstance(end, int) and abs(end) < INT32 for end in found):
        return None
    return value.index


def _compared(direction: str, left: Dim, right: Dim, extents: Extents) -> Scalar | None:
    low, other = range_of(left, extents), range_of(right, extents)
    if low is None or other is None:
        return None
    bounds = {
        "LT": InBounds(left, low[0], right),
        "LE": InBounds(left, low[0], add(right, 1)),
        "GT": InBounds(right, other[0], left),
        "GE": InBounds(right, other[0], add(left, 1)),
        "EQ": InBounds(left, right, add(right, 1)),
        "NE": InBounds(left, right, add(right, 1)),
    }
    yes, no = ScalarConstant(True, BOOL), ScalarConstant(False, BOOL)
    return Choose((bounds[direction],), *((no, yes) if direction == "NE" else (yes, no)), BOOL)


def _chosen(values: Sequence[Scalar], dtype: DType) -> Scalar | None:
    """A choice by a condition that is bounds."""
    condition, *sides = values
    if (
        not isinstance(condition, Choose)
        or not isinstance(condition.inside, ScalarConstant)
        or not isinstance(condition.outside, ScalarConstant)
    ):
        return None
    first, second = (sides[0] if side.value else sides[1] for side in (condition.inside, condition.outside))
    return Choose(condition.bounds, first, second, dtype)
