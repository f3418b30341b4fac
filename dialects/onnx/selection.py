"""ONNX's ops that select: triangles, one-hot rows, the largest elements, and what depends on the data (NonZero, Compress, Unique).

How many elements a data-dependent op gives is a symbol of its own, which the evaluator finds in the value. All of them are
made of one step: sort what is wanted to the front, stably, and cut it off (`front`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coset.dialects.hub.terms import convert, literal, reshape, splat, transpose
from coset.dialects.onnx import indexing as onnx_indexing
from coset.dialects.onnx import reductions as onnx_reductions
from coset.dialects.onnx.arithmetic import add, both, compare, divide, either, iota, maximum, pointwise, select
from coset.dialects.onnx.node import Built, Node, axis_of, constant_elements, definition
from coset.dialects.onnx.sugar import sugar, sugar_builders, sugar_with
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Term, get, make
from coset.ir.types import BOOL, I64

PRIMITIVES = (onnx_indexing, onnx_reductions)  # the definitions mention their ops

# ---------------------------------------------------------------- what definitions are made of


def take(x: Term, indices: Term, axis: int) -> Term:
    """The slices of `x` along `axis` at the positions in the vector `indices`."""
    others = tuple(i for i in range(x.tensor.rank) if i != axis)
    sizes = tuple(1 if i == axis else dim for i, dim in enumerate(x.tensor.dims))
    attributes = {
        "offset_dims": others, "collapsed_slice_dims": (axis,), "operand_batching_dims": (), "start_indices_batching_dims": (),
        "start_index_map": (axis,), "index_vector_dim": 1, "slice_sizes": sizes,
    }  # fmt: skip
    return make("stablehlo.gather", (x, indices), attributes)


def ordered(keys: Sequence[Term], direction: str = "LT", *, axis: int = 0) -> tuple[Term, ...]:
    """The operands sorted together along `axis` by the first one, equal ones as they were."""
    found = make("stablehlo.sort", keys, {"dimension": axis, "is_stable": True, "direction": direction})
    return tuple(get(found, i) for i in range(len(keys))) if len(keys) > 1 else (found,)


def _count(mask: Term) -> Term:
    """How many elements of a mask are true, as a vector of one i64."""
    total = make("stablehlo.reduce", (convert(mask, I64),), {"dimensions": tuple(range(mask.tensor.rank)), "combiner": "add"})
    return reshape(total, (1,))


def front(x: Term, count: Term, symbol: Dim) -> Term:
    """The first `count` elements of a vector; their number is `symbol`."""
    zero, one = literal(np.zeros(1, np.int64)), literal(np.ones(1, np.int64))
    return make("stablehlo.real_dynamic_slice", (x, zero, count, one), {"shape": (symbol,)})


def positions(mask: Term, symbol: Dim) -> Term:
    """The positions of the true elements of the vector `mask`, ascending; their number is `symbol`."""
    last = make("stablehlo.not", (mask,))
    _, order = ordered([convert(last, I64), iota(mask.tensor.dims, 0)])
    return front(order, _count(mask), symbol)


# ---------------------------------------------------------------- triangles and one-hot


RULES = sugar_builders(Path(__file__).with_name("selection.rules"))
definition("Trilu", "TopK")(sugar)


@definition("EyeLike")
def _eye_like(node: Node) -> Built:
    """The definition, told that the element type is the operand's where the node says none."""
    return sugar_with(node, {} if "dtype" in node.attributes else {"dtype": node.operands[0].tensor.dtype})


@definition("OneHot")
def _one_hot(node: Node) -> Built:
    """The definition; the depth may be a float."""
    depth = constant_elements(node.operands[1], 1)
    return None if depth is None else sugar_with(node, {"depth": int(depth.reshape(-1)[0])})


# ---------------------------------------------------------------- results whose size depends on the data


@definition("NonZero")
def _non_zero(node: Node) -> Built:
    """The indices of the elements that are not 0, a column each, in row-major order."""
    x = node.operands[0]
    flat = reshape(x, (x.tensor.elements,))
    mask = compare(flat, "NE", 0)
    symbol = dims.symbol("count")
    place = positions(mask, symbol)
    rows = []
    for axis in range(x.tensor.rank):
        index = divide(place, dims.product(x.tensor.dims[axis + 1 :]))
        rows.append(reshape(pointwise("remainder", index, x.tensor.dims[axis]), (1, symbol)))
    if not rows:  # of a scalar NumPy's and ONNX's answer is one row less
        return None
    return make("stablehlo.concatenate", rows, {"dimension": 0})


@definition("Compress")
def _compress(node: Node) -> Built:
    """The slices along `axis` (elements in row-major order without it) whose condition is true; a short condition ends with false."""
    x, condition = node.operands
    if "axis" in node.attributes:
        axis = axis_of(node.attributes["axis"], x.tensor.rank)
    else:
        x, axis = reshape(x, (x.tensor.elements,)), 0
    if axis is None:
        return None
    return take(x, positions(condition, dims.symbol("count")), axis)


@definition("Unique")
def _unique(node: Node) -> Built:
    """The different slices along `axis` (elements without it), ascending or as they come first; with the place of the first one of
    each, the number of each slice's class, and how many there are of each. A NaN is no other than the next one, and larger than all."""
    x = node.operands[0]
    if "axis" in node.attributes:
        axis = axis_of(node.attributes["axis"], x.tensor.rank)
    else:
        x, axis = reshape(x, (x.tensor.elements,)), 0
    size = None if axis is None else x.tensor.dims[axis]
    if axis is None or size is None:
        return None
    lines = transpose(x, (axis, *(i for i in range(x.tensor.rank) if i != axis)))
    width = dims.product(lines.tensor.dims[1:])
    if not isinstance(width, int):
        return None
    table = reshape(lines, (size, width))
    if x.tensor.dtype.kind == "float":  # NaN of either sign are one, behind the numbers
        table = select(compare(table, "NE", table), float("nan"), table)
    order = iota((size,), 0)
    for column in reversed(range(width)):  # stable, from the last column to the first: the order of whole lines
        key = take(reshape(_column(table, column), (size,)), order, 0)
        order = ordered([key, order])[1]
    first = _first_of_runs(take(table, order, 0))
    number = add(make("onnx.CumSum", (convert(first, I64),), {"axis": 0}), -1)  # of the class of each sorted line
    classes = dims.symbol("count")
    starts = positions(first, classes)
    place = take(order, starts, 0)  # stable: the first line of each class
    counts = front(_scattered(splat(0, I64, (size,)), number, splat(1, I64, (size,)), "add"), _count(first), classes)
    inverse = _scattered(splat(0, I64, (size,)), order, number, "second")
    if not node.attributes.get("sorted", 1):
        place, rank = ordered([place, iota((classes,), 0)])
        counts = take(counts, rank, 0)
        moved = _scattered(splat(0, I64, (classes,)), rank, iota((classes,), 0), "second")
        inverse = take(moved, inverse, 0)
    return take(x, place, axis), place, inverse, counts


def _column(table: Term, column: int) -> Term:
    rows = table.tensor.dims[0]
    return make("stablehlo.slice", (table,), {"start": (0, column), "limit": (rows, column + 1), "strides": (1, 1)})


def _first_of_runs(table: Term) -> Term:
    """True for each row that differs from the one before it, and for the first one."""
    rows = table.tensor.dims[0]
    if rows == 0:
        return splat(True, BOOL, (0,))
    before = make("onnx.Gather", (table, maximum(add(iota((rows,), 0), -1), 0)), {"axis": 0})
    others = compare(table, "NE", before)
    if table.tensor.dtype.kind == "float":
        others = both(others, either(compare(table, "EQ", table), compare(before, "EQ", before)))
    differs = make("stablehlo.reduce", (others,), {"dimensions": (1,), "combiner": "or"})
    return either(differs, compare(iota((rows,), 0), "EQ", 0))


def _scattered(x: Term, indices: Term, updates: Term, combiner: str) -> Term:
    """The vector `x` with `updates` combined in at `indices`."""
    attributes = {
        "update_window_dims": (), "inserted_window_dims": (0,), "input_batching_dims": (), "scatter_indices_batching_dims": (),
        "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1, "combiner": combiner,
    }  # fmt: skip
    return make("stablehlo.scatter", (x, indices, updates), attributes)
