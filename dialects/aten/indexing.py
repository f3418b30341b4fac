"""ATen's ops that read or write where indices say, as hub terms.

Indices out of range are an error of torch; here, as in the hub, reads are clamped into the tensor and writes outside are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coset.dialects.aten.node import AtenNode, Built, NoTerm, aten, by_onnx, convert, wide
from coset.dialects.hub import stablehlo_data
from coset.dialects.hub.terms import broadcast, is_splat, numpy_broadcast, numpy_shape, reshape, splat, transpose
from coset.dialects.onnx import indexing as onnx_indexing
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.arithmetic import compare, concatenate, divide, fold, iota, maximum, multiply, select, subtract, unsqueeze
from coset.dialects.onnx.indexing import cropped, from_front
from coset.ir import dims
from coset.ir.dims import Dim, Shape
from coset.ir.term import Term, make
from coset.ir.types import BOOL, I64

PRIMITIVES = (onnx_indexing, onnx_ops, stablehlo_data)  # their ops are made here
_COMBINERS = {"sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum", "add": "add", "multiply": "multiply"}
_OF_ONNX = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min", "second": "none"}


@aten("embedding.default")
def _embedding(node: AtenNode) -> Built:
    """The rows of a table."""
    return make("onnx.Gather", (node.term("weight"), node.term("indices")), {"axis": 0})


# ---------------------------------------------------------------- bags of rows


@aten("_embedding_bag.default", "_embedding_bag_forward_only.default")
def _embedding_bag(node: AtenNode) -> Built:
    """The sums or means of rows of a table, a bag for each offset. The other results are notes of torch for its gradient; what they hold
    depends on the device, and no term says them."""
    mode = int(node.number("mode"))
    if mode not in (0, 1):
        raise NoTerm("the maximum of a bag keeps a NaN only where it comes first")
    table, indices, offsets = node.term("weight"), node.term("indices"), node.term("offsets")
    rows = make("onnx.Gather", (table, indices), {"axis": 0})
    rows = convert(rows, wide(rows.tensor.dtype))
    given = node.arguments.get("per_sample_weights")
    if given is not None:
        rows = multiply(rows, unsqueeze(convert(given, rows.tensor.dtype), 1))
    left_out = int(node.number("padding_idx"))
    counted_in = compare(indices, "NE", left_out) if left_out >= 0 else splat(True, BOOL, indices.tensor.dims)
    rows = select(unsqueeze(counted_in, 1), rows, 0.0) if left_out >= 0 else rows
    size = _regular(offsets, indices.tensor.dims[0]) if not node["include_last_offset"] else None
    bags = node.shape[0]
    place = None if size is not None else _bag_of_each(offsets, indices.tensor.dims[0])

    def summed(x: Term) -> Term:
        if place is None:
            assert size is not None
            return fold(reshape(x, (bags, size, *x.tensor.dims[1:])), (1,), keep=False)
        return _segment_sums(x, place, bags)

    total = summed(rows)
    if mode == 1:
        total = divide(total, unsqueeze(maximum(summed(convert(counted_in, rows.tensor.dtype)), 1.0), 1))
    return convert(total, node.dtype), None, None, None


def _regular(offsets: Term, count: Dim) -> int | None:
    """The size of the bags where all of `count` elements lie in bags of one size, as rows of a matrix of indices do."""
    core, step = offsets, 1
    if core.op.name == "stablehlo.multiply":
        core, other = core.operands
        number = is_splat(other)
        step = int(number.array()[()]) if number is not None else 0
    return step if core.op.name == "stablehlo.iota" and dims.multiply(offsets.tensor.dims[0], step) == count else None


def _bag_of_each(offsets: Term, count: Dim) -> Term:
    """The number of the bag that each of `count` elements lies in: so many offsets are at most its place, less one."""
    if isinstance(count, int) and count > 0:
        marks = _segment_sums(splat(1, I64, offsets.tensor.dims), convert(offsets, I64), count)
        return subtract(make("onnx.CumSum", (marks,), {"axis": 0, "exclusive": 0, "backward": 0}), 1)
    places = iota((count, offsets.tensor.dims[0]), 0)
    begun = compare(places, "GE", unsqueeze(convert(offsets, I64), 0))
    return subtract(fold(convert(begun, I64), (1,), keep=False), 1)


def _segment_sums(x: Term, places: Term, count: Dim) -> Term:
    """The sums of the rows of `x` whose places are equal, which ascend."""
    attributes = {
        "update_window_dims": tuple(range(1, x.tensor.rank)), "inserted_window_dims": (0,), "input_batching_dims": (),
        "scatter_indices_batching_dims": (), "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1, "indices_are_sorted": True,
        "combiner": "add",
    }  # fmt: skip
    return make("stablehlo.scatter", (splat(0, x.tensor.dtype, (count, *x.tensor.dims[1:])), places, x), attributes)


# ---------------------------------------------------------------- elements


@aten("gather.default")
def _gather(node: AtenNode) -> Built:
    x, index = node.term("self"), node.term("index")
    if x.tensor.rank == 0:
        return broadcast(x, node.shape, ())  # the one element, wherever it is asked for
    axis = node.axis(x)
    (found,) = by_onnx("GatherElements", (x, index), {"axis": axis})
    return found


def _scattered(node: AtenNode, updates: Term, combiner: str) -> Term:
    x, index = node.term("self"), node.term("index")
    axis = node.axis(x)
    if x.tensor.rank == 0:
        x, index, updates = (reshape(each, (each.tensor.elements,)) for each in (x, index, updates))
    working = wide(x.tensor.dtype) if combiner in ("add", "multiply") else x.tensor.dtype
    operands = (convert(x, working), index, convert(cropped(updates, index.tensor.dims), working))
    (found,) = by_onnx("ScatterElements", operands, {"axis": axis, "reduction": _OF_ONNX[combiner]})
    return reshape(convert(found, node.dtype), node.shape)


@aten("scatter.src", "scatter.value")
def _scatter(node: AtenNode) -> Built:
    """Where two updates meet, any of them stays."""
    return _scattered(node, _updates(node), "second")


def _updates(node: AtenNode) -> Term:
    if "src" in node.arguments:
        return node.term("src")
    return splat(node.number("value"), node.dtype, node.term("index").tensor.dims)


@aten("scatter_add.default")
def _scatter_add(node: AtenNode) -> Built:
    return _scattered(node, node.term("src"), "add")


@aten("scatter_reduce.two", "scatter.reduce", "scatter.value_reduce")
def _scatter_reduce(node: AtenNode) -> Built:
    combiner = _COMBINERS.get(str(node["reduce"]))
    if combiner is None or not node.arguments.get("include_self", True):
        raise NoTerm(f"scatter_reduce as `{node['reduce']}`, with include_self={node.arguments.get('include_self')}, has no term")
    return _scattered(node, _updates(node), combiner)


# ---------------------------------------------------------------- a list of indices


def _indexed(node: AtenNode, x: Term) -> tuple[list[int], list[Term], Shape, bool]:
    """The indexed axes, their indices broadcast to one shape, that shape, and whether its dims stand in the place of the axes.

    Raises:
        NoTerm: an index is a mask.
    """
    given = list(node["indices"])
    axes = [axis for axis, index in enumerate(given) if index is not None]
    if any(given[axis].tensor.dtype is BOOL for axis in axes):
        raise NoTerm("how many elements a mask picks only a run tells")
    shape = numpy_shape(*(given[axis].tensor.dims for axis in axes))
    indices = [numpy_broadcast(convert(given[axis], I64), shape) for axis in axes]
    return axes, indices, shape, axes == list(range(axes[0], axes[-1] + 1))


def _vectors(x: Term, axes: list[int], indices: list[Term], shape: Shape) -> Term:
    """Index vectors [shape.., axes], counted from the front."""
    columns = concatenate([reshape(index, (*shape, 1)) for index in indices], len(shape))
    return from_front(columns, tuple(x.tensor.dims[axis] for axis in axes))


@aten("index.Tensor")
def _index(node: AtenNode) -> Built:
    x = node.term("self")
    if 0 in node.shape:  # nothing is read, also of a tensor that has no elements
        return splat(np.zeros((), node.dtype.numpy), node.dtype, node.shape)
    axes, indices, shape, adjacent = _indexed(node, x)
    if len(axes) == 1:
        return make("onnx.Gather", (x, indices[0]), {"axis": axes[0]})
    rest = [axis for axis in range(x.tensor.rank) if axis not in axes]
    moved = transpose(x, (*axes, *rest))
    found = make("onnx.GatherND", (moved, _vectors(x, axes, indices, shape)), {"batch_dims": 0})
    if not adjacent or axes[0] == 0:
        return found
    before = axes[0]  # so many of the other dims stand before the indices' ones
    count = len(shape)
    order = (*range(count, count + before), *range(count), *range(count + before, found.tensor.rank))
    return transpose(found, order)


@aten("index_put.default")
def _index_put(node: AtenNode) -> Built:
    x, values = node.term("self"), node.term("values")
    given = list(node["indices"])
    if given and given[0] is not None and given[0].tensor.dtype is BOOL:
        return _masked(node, x, given, values)
    axes, indices, shape, adjacent = _indexed(node, x)
    rest = [axis for axis in range(x.tensor.rank) if axis not in axes]
    order = (*axes, *rest)
    others = tuple(x.tensor.dims[axis] for axis in rest)
    before = axes[0] if adjacent else 0
    whole = numpy_broadcast(values, (*others[:before], *shape, *others[before:]))
    count = len(shape)
    updates = transpose(whole, (*range(before, before + count), *range(before), *range(before + count, whole.tensor.rank)))
    working = wide(x.tensor.dtype) if node["accumulate"] else x.tensor.dtype
    combiner = ("or" if x.tensor.dtype is BOOL else "add") if node["accumulate"] else "second"
    operands = (transpose(convert(x, working), order), _vectors(x, axes, indices, shape), convert(updates, working))
    written = make("onnx.ScatterND", operands, {"combiner": combiner})
    back = tuple(order.index(axis) for axis in range(x.tensor.rank))
    return convert(transpose(written, back), node.dtype)


def _masked(node: AtenNode, x: Term, given: list[Any], values: Term) -> Term:
    """One mask and one value for all that it picks."""
    (mask, *others) = given
    if any(index is not None for index in others) or values.tensor.elements != 1:
        raise NoTerm("how many elements a mask picks only a run tells")
    if node["accumulate"]:
        raise NoTerm("index_put with a mask that accumulates has no term")
    spread = reshape(mask, (*mask.tensor.dims, *(1,) * (x.tensor.rank - mask.tensor.rank)))
    return select(numpy_broadcast(spread, x.tensor.dims), reshape(values, ()), x)
