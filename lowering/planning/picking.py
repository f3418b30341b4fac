"""Reads at computed places: gather, dynamic_slice and dynamic_update_slice as index arithmetic with one symbol for each start.

A start is an element of an index tensor, clamped as the ops say; where it is known that only 0 is left there is no symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coset.ir.dims import Dim, add, subtract
from coset.ir.op import get_op
from coset.ir.term import Term
from coset.ir.types import DTYPES, DType
from coset.lowering.kernels.index_arithmetic import Extents, is_outside, is_within
from coset.lowering.kernels.indexing import Index, Source
from coset.lowering.kernels.kernel import InBounds, IndexValue, Scalar, ScalarConstant, ScalarOp

PICKED = frozenset({"stablehlo.gather", "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"})


@dataclass(frozen=True)
class Start:
    """Where a slice begins in one dim of the operand: the element `index` of operand number `operand`, as a number below `count`."""

    operand: int
    index: Index
    axis: int
    count: Dim


def starts(term: Term, index: Index) -> tuple[Start, ...]:
    """The starts that the element `index` of a term of `PICKED` needs."""
    shape = term.operands[0].tensor.dims
    if term.op.name == "stablehlo.gather":
        sizes, vector, axes = (term.attribute(key) for key in ("slice_sizes", "index_vector_dim", "start_index_map"))
        batch, rank = _batch(term, index), term.operands[1].tensor.rank
        places = [(*batch[:vector], number, *batch[vector:])[:rank] for number in range(len(axes))]
        found = [Start(1, place, axis, _count(shape[axis], sizes[axis])) for place, axis in zip(places, axes, strict=True)]
    else:
        first = 1 if term.op.name == "stablehlo.dynamic_slice" else 2
        sizes = term.attribute("slice_sizes") if first == 1 else term.operands[1].tensor.dims
        found = [Start(first + axis, (), axis, _count(dim, size)) for axis, (dim, size) in enumerate(zip(shape, sizes, strict=True))]
    return tuple(start for start in found if start.count != 1)


def _count(dim: Dim, size: Dim) -> Dim:
    return add(subtract(dim, size), 1)


def _batch(term: Term, index: Index) -> Index:
    """The part of a gather's index that says which index vector it is."""
    offsets = term.attribute("offset_dims")
    return tuple(place for axis, place in enumerate(index) if axis not in offsets)


def picked_sources(term: Term, index: Index, begins: Sequence[tuple[Start, Dim]], extents: Extents) -> tuple[Source, ...]:
    """Where the element `index` comes from, with a dim for each of its `starts`; as `indexing.sources` says."""
    begin: list[Dim] = [0] * term.operands[0].tensor.rank
    for start, place in begins:
        begin[start.axis] = place
    if term.op.name == "stablehlo.dynamic_slice":
        return (Source(0, tuple(add(a, b) for a, b in zip(begin, index, strict=True))),)
    if term.op.name == "stablehlo.gather":
        return (Source(0, _gathered(term, index, begin)),)
    sizes = term.operands[1].tensor.dims
    bounds = [InBounds(i, first, add(first, size)) for i, first, size in zip(index, begin, sizes, strict=True)]
    left = tuple(bound for bound in bounds if not is_within(bound.index, bound.low, bound.high, extents))
    outside = Source(0, index)
    if 0 in sizes or any(is_outside(bound.index, bound.low, bound.high, extents) for bound in left):
        return (outside,)
    inside = Source(1, tuple(subtract(i, first) for i, first in zip(index, begin, strict=True)), left)
    return (inside, outside) if left else (inside,)


def _gathered(term: Term, index: Index, begin: list[Dim]) -> Index:
    gone = (*term.attribute("collapsed_slice_dims"), *term.attribute("operand_batching_dims"))
    kept = [axis for axis in range(len(begin)) if axis not in gone]
    result = list(begin)
    for axis, place in zip(kept, term.attribute("offset_dims"), strict=True):
        result[axis] = add(result[axis], index[place])
    vector, batch = term.attribute("index_vector_dim"), _batch(term, index)
    for axis, other in zip(term.attribute("operand_batching_dims"), term.attribute("start_indices_batching_dims"), strict=True):
        result[axis] = add(result[axis], batch[other - (vector < other)])
    return tuple(result)


def clamped(value: Scalar, count: Dim) -> Scalar:
    """An integer as a number from 0 to count - 1, nearest to it, in 32 bits at least (64 where `count` is no number)."""
    dtype = value.dtype
    if dtype.bits < 32 or (dtype.bits == 32 and not isinstance(count, int)):
        wider = DTYPES["i64" if not isinstance(count, int) else "i32"]
        value, dtype = ScalarOp(get_op("stablehlo.convert"), (value,), wider, (("dtype", wider),)), wider
    last = subtract(count, 1)
    if not isinstance(last, int) or last <= _largest(dtype):
        high = ScalarConstant(last, dtype) if isinstance(last, int) else IndexValue(last, dtype)
        value = ScalarOp(get_op("stablehlo.minimum"), (value, high), dtype)
    return ScalarOp(get_op("stablehlo.maximum"), (value, ScalarConstant(0, dtype)), dtype) if dtype.kind == "int" else value


def known_place(value: Scalar, count: Dim) -> int | None:
    """The place that `clamped` gives, where it is known."""
    if not isinstance(value, ScalarConstant) or not isinstance(value.value, int):
        return None
    if value.value <= 0:
        return 0
    return min(value.value, count - 1) if isinstance(count, int) else None


def _largest(dtype: DType) -> int:
    return int((1 << (dtype.bits - (dtype.kind == "int"))) - 1)
