"""ONNX's ops that read or write where indices say: their attributes in numbers, for the definitions in `indexing.rules`.

Indices out of range are an error of ONNX; here reads are clamped into the tensor and writes outside are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from coset.dialects.hub import chlo, stablehlo, stablehlo_data, stablehlo_regions
from coset.dialects.hub.terms import reshape, splat
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.arithmetic import add, compare, counted_all, iota, padded, select
from coset.dialects.onnx.node import Built, Node, axis_of, definition
from coset.ir import dims
from coset.ir.dims import Dim, Shape
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import BOOL, I64
from coset.rules.defining import defer_definitions

PRIMITIVES = (chlo, stablehlo, stablehlo_data, stablehlo_regions, onnx_ops)  # the definitions mention their ops
RULES = defer_definitions(Path(__file__).with_name("indexing.rules"))
MOST_RUNS = 16  # even steps that places which are written down are in
_COMBINERS = {"none": "second", "add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def from_front(indices: Term, extents: Shape) -> Term:
    """Index vectors (along the last dim of `indices`), the negative ones counted from the end of dims of these extents."""
    ends = counted_all(extents, indices.tensor.dtype)
    return select(compare(indices, "LT", 0), add(indices, ends), indices)


def cropped(x: Term, shape: Shape) -> Term:
    """The first elements of `x` along each dim."""
    if x.tensor.dims == shape:
        return x
    rank = len(shape)
    return make("stablehlo.slice", (x,), {"start": (0,) * rank, "limit": shape, "strides": (1,) * rank})


def _nothing(x: Term, shape: Shape) -> Term | None:
    """A result that is known to have no element: then x may have none to read either."""
    return splat(np.zeros((), x.tensor.dtype.numpy), x.tensor.dtype, shape) if 0 in shape else None


def _but(shape: Shape, axis: int, dim: Dim) -> Shape:
    return (*shape[:axis], dim, *shape[axis + 1 :])


# ---------------------------------------------------------------- reading


@definition("Gather")
def gather(node: Node) -> Built:
    """The slices at the indices along one axis."""
    x, indices = node.operands
    axis = axis_of(node.attributes.get("axis", 0), x.tensor.rank)
    if axis is None:
        return None
    shape = (*x.tensor.dims[:axis], *indices.tensor.dims, *x.tensor.dims[axis + 1 :])
    return _nothing(x, shape) or _written_down(x, _numbers(node), axis, shape) or make("onnx.Gather", (x, indices), {"axis": axis})


def _numbers(node: Node) -> list[int] | None:
    """The indices of a node in a row, where they are numbers that are known."""
    found = node.host[1]
    return None if found is None or not all(isinstance(each, int) for each in found.flat) else list(found.flat)


def _written_down(x: Term, chosen: Sequence[int] | None, axis: int, shape: Shape) -> Term | None:
    """The elements at places that are written down, which stand in a few even steps, or are all places several times: what moves them
    there. None for others, and where one lies outside."""
    extent = x.tensor.dims[axis]
    if not chosen or not isinstance(extent, int) or not all(-extent <= place < extent for place in chosen):
        return None
    places = [place + extent if place < 0 else place for place in chosen]
    times, rest = divmod(len(places), extent)
    if times > 1 and not rest and extent > 1:
        for behind, repeated in ((1, [place // times for place in range(len(places))]), (0, [*range(extent)] * times)):
            if places == repeated:
                inner = list(x.tensor.dims)
                inner.insert(axis + behind, times)
                kept = tuple(each for each in range(len(inner)) if each != axis + behind)
                return reshape(make("stablehlo.broadcast_in_dim", (x,), {"shape": tuple(inner), "broadcast_dimensions": kept}), shape)
    runs = _runs(places)
    if len(runs) > MOST_RUNS:
        return None
    parts = [_stepped(x, axis, run) for run in runs]
    return reshape(make("stablehlo.concatenate", parts, {"dimension": axis}) if len(parts) > 1 else parts[0], shape)


def _runs(places: Sequence[int]) -> list[Sequence[int]]:
    """The places cut into neighbours that go up or down, each part as long as it can be; whole where all are in even steps."""
    steps = [later - earlier for earlier, later in pairwise(places)]
    if steps and steps[0] and len(set(steps)) == 1:
        return [places]
    runs: list[Sequence[int]] = []
    start = 0
    while start < len(places):
        end = start + 1
        while end < len(places) and abs(steps[start]) == 1 and steps[end - 1] == steps[start]:
            end += 1
        runs.append(places[start:end])
        start = end
    return runs


def _stepped(x: Term, axis: int, run: Sequence[int]) -> Term:
    """The elements of `x` at places in even steps along an axis."""
    rank = x.tensor.rank
    start, limit, strides = [0] * rank, list(x.tensor.dims), [1] * rank
    start[axis], limit[axis] = min(run), max(run) + 1
    strides[axis] = abs(run[1] - run[0]) if len(run) > 1 else 1
    found = make("stablehlo.slice", (x,), {"start": tuple(start), "limit": tuple(limit), "strides": tuple(strides)})
    return make("stablehlo.reverse", (found,), {"dimensions": (axis,)}) if run[0] > run[-1] else found


@definition("GatherElements")
def gather_elements(node: Node) -> Built:
    """Dims of the indices may be smaller than those of x: what lies behind is not read."""
    x, indices = node.operands
    axis = axis_of(node.attributes.get("axis", 0), x.tensor.rank)
    if axis is None or indices.tensor.rank != x.tensor.rank:
        return None
    shape = indices.tensor.dims
    part = cropped(x, _but(shape, axis, x.tensor.dims[axis]))
    return _nothing(x, shape) or make("onnx.GatherElements", (part, indices), {"axis": axis})


@definition("GatherND")
def gather_nd(node: Node) -> Built:
    """The length of the index vectors must be known."""
    x, indices = node.operands
    batch = node.attributes.get("batch_dims", 0)
    length = indices.tensor.dims[-1] if indices.tensor.rank else 0
    if not isinstance(length, int) or not 1 <= length <= x.tensor.rank - batch:
        return None
    shape = (*indices.tensor.dims[:-1], *x.tensor.dims[batch + length :])
    found = _nothing(x, shape)
    if found is None and length == 1 and not batch:
        found = _written_down(x, _numbers(node), 0, shape)
    if found is not None:
        return found
    return make("onnx.GatherND", (x, from_front(indices, x.tensor.dims[batch : batch + length])), {"batch_dims": batch})


@definition("ReverseSequence")
def reverse_sequence(node: Node) -> Built:
    """The beginning of each sequence turned round."""
    x = node.operands[0]
    axes = {"batch_axis": node.attributes.get("batch_axis", 1), "time_axis": node.attributes.get("time_axis", 0)}
    return _nothing(x, x.tensor.dims) or make("onnx.ReverseSequence", node.operands, axes)


# ---------------------------------------------------------------- writing


def _combiner(node: Node) -> str:
    """The word of the hub for `reduction`; of booleans the larger is `or`."""
    name = node.attributes.get("reduction", "none")
    require(name in _COMBINERS, f"`{node.name}` has no reduction {name!r}")
    combiner = _COMBINERS[name]
    if node.operands[0].tensor.dtype is BOOL:
        return {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}.get(combiner, combiner)
    return combiner


@definition("ScatterElements", "Scatter")
def scatter_elements(node: Node) -> Built:
    """Updates for all of x but along the axis are batches; fewer of them need whole index vectors."""
    x, indices, updates = node.operands
    axis = axis_of(node.attributes.get("axis", 0), x.tensor.rank)
    if axis is None or indices.tensor.rank != x.tensor.rank:
        return None
    shape, dtype = indices.tensor.dims, indices.tensor.dtype
    if _but(shape, axis, 0) == _but(x.tensor.dims, axis, 0):
        return make("onnx.ScatterElements", (x, indices, updates), {"axis": axis, "combiner": _combiner(node)})
    columns = []
    for position in range(len(shape)):
        counts = iota(shape, position, dtype)
        columns.append(reshape(indices if position == axis else counts, (*shape, 1)))
    vectors = make("stablehlo.concatenate", columns, {"dimension": len(shape)}) if len(columns) > 1 else columns[0]
    return make("onnx.ScatterND", (x, from_front(vectors, x.tensor.dims), updates), {"combiner": _combiner(node)})


@definition("ScatterND")
def scatter_nd(node: Node) -> Built:
    """The length of the index vectors must be known."""
    x, indices, updates = node.operands
    length = indices.tensor.dims[-1] if indices.tensor.rank else 0
    if not isinstance(length, int) or not 1 <= length <= x.tensor.rank:
        return None
    return make("onnx.ScatterND", (x, from_front(indices, x.tensor.dims[:length]), updates), {"combiner": _combiner(node)})


@definition("TensorScatter")
def tensor_scatter(node: Node) -> Built:
    """Where no start is given it is 0."""
    x, updates = node.operands[:2]
    axis = axis_of(node.attributes.get("axis", -2), x.tensor.rank)
    if not axis:
        return None
    start = node.operand(2) or splat(0, I64, x.tensor.dims[:1])
    return make("onnx.TensorScatter", (x, updates, start), {"axis": axis, "mode": node.attributes.get("mode", "linear")})


# ---------------------------------------------------------------- blocks, crops


@definition("DepthToSpace", "SpaceToDepth")
def blocks(node: Node) -> Built:
    """Channels and blocks of space changed into one another."""
    return make(f"onnx.{node.name}", node.operands, {"blocksize": node.attributes["blocksize"], "mode": node.attributes.get("mode", "DCR")})


@definition("CenterCropPad")
def center_crop_pad(node: Node) -> Built:
    """Zeros around each axis, or elements cut off: half of them, rounded down, at the beginning."""
    x, shape = node.operands[0], node.dims(1)
    rank = x.tensor.rank
    axes = [axis_of(axis, rank) for axis in node.attributes.get("axes", range(rank))]
    if shape is None or len(shape) != len(axes):
        return None
    low: list[Dim] = [0] * rank
    high: list[Dim] = [0] * rank
    for axis, wanted in zip(axes, shape, strict=True):
        if axis is None:
            return None
        more = dims.subtract(wanted, x.tensor.dims[axis])
        added, cut = dims.maximum(more, 0), dims.maximum(dims.multiply(-1, more), 0)
        low[axis] = dims.subtract(dims.floordiv(added, 2), dims.floordiv(cut, 2))
        high[axis] = dims.subtract(more, low[axis])
    return padded(x, low, high, 0)
