"""ATen's ops that move, make and join elements, as hub terms. Views are their values: whoever runs a term sees no aliasing."""

from __future__ import annotations

from typing import Any

import numpy as np

from coset.dialects.aten.node import AtenNode, Built, NoTerm, aten, axis_of, convert, given_as
from coset.dialects.hub import stablehlo, stablehlo_data
from coset.dialects.hub.terms import broadcast, literal, numpy_broadcast, reshape, splat, transpose
from coset.dialects.onnx.arithmetic import (
    add,
    both,
    compare,
    concatenate,
    counted,
    counted_all,
    iota,
    multiply,
    padded,
    picked,
    select,
    take,
)
from coset.dialects.onnx.bounds import least, maximum, minimum
from coset.dialects.onnx.node import constant_elements
from coset.ir import dims
from coset.ir.dims import Dim, Poly, Shape
from coset.ir.term import Term, make
from coset.ir.types import F64, I64

PRIMITIVES = (stablehlo, stablehlo_data)  # their ops are made here

# ---------------------------------------------------------------- the same elements


@aten("view.default", "unsqueeze.default", "squeeze.dims")
def _view(node: AtenNode) -> Built:
    """In the shape that torch says; where it is not seen that the count of elements is the same, a run sees it."""
    x = node.term("self")
    if dims.product(x.tensor.dims) == dims.product(node.shape) or not any(isinstance(dim, Poly) for dim in (*x.tensor.dims, *node.shape)):
        return reshape(x, node.shape)
    return make("stablehlo.dynamic_reshape", (x, counted_all(node.shape, I64)), {"shape": node.shape})


@aten("clone.default", "alias.default", "lift_fresh_copy.default")
def _same(node: AtenNode) -> Built:
    return node.term("self")


@aten("permute.default")
def _permute(node: AtenNode) -> Built:
    x = node.term("self")
    return transpose(x, tuple(axis_of(axis, x.tensor.rank) for axis in node.ints("dims")))


@aten("expand.default")
def _expand(node: AtenNode) -> Built:
    return numpy_broadcast(node.term("self"), node.shape)


@aten("repeat.default")
def _repeat(node: AtenNode) -> Built:
    """Each dim so many times; dims that the repeats have more than the tensor stand before it."""
    x, repeats = node.term("self"), node.dims("repeats")
    shape = ((1,) * (len(repeats) - x.tensor.rank), x.tensor.dims)
    own = (*shape[0], *shape[1])
    spread: Shape = tuple(dim for pair in zip(repeats, own, strict=True) for dim in pair)
    return reshape(broadcast(reshape(x, own), spread, tuple(range(1, 2 * len(own), 2))), node.shape)


@aten("flip.default")
def _flip(node: AtenNode) -> Built:
    x = node.term("self")
    axes = tuple(sorted(axis_of(axis, x.tensor.rank) for axis in node.ints("dims")))
    return make("stablehlo.reverse", (x,), {"dimensions": axes}) if axes and x.tensor.rank else x


# ---------------------------------------------------------------- parts


def position(value: Dim | None, extent: Dim, missing: Dim) -> Dim:
    """A position as Python gives it, from 0 to `extent`.

    Raises:
        NoTerm: whether it counts from the end is not known.
    """
    if value is None:
        return missing
    low = least(value)
    if low is None or low < 0:
        if not isinstance(value, int):
            raise NoTerm(f"whether the position {value} counts from the end is not known before a run")
        return maximum(0, dims.add(extent, value))
    return minimum(value, extent)


def _places(node: AtenNode, extent: Dim, count: Dim) -> tuple[Dim, int]:
    """Where a slice of `count` elements starts on a dim of size `extent`, and its step."""
    step = int(node.number("step"))
    return 0 if count == extent and step == 1 else position(node["start"], extent, 0), step


def sliced(x: Term, axis: int, start: Dim, count: Dim, step: int = 1) -> Term:
    """`count` elements of `x` from `start` along `axis`."""
    if (start, count, step) == (0, x.tensor.dims[axis], 1):
        return x
    limit = dims.add(start, dims.subtract(dims.multiply(count, step), step - 1) if count != 0 else 0)
    return take(x, axis, start, limit, step)


@aten("slice.Tensor")
def _slice(node: AtenNode) -> Built:
    x = node.term("self")
    axis = node.axis(x)
    count = node.shape[axis]
    start, step = _places(node, x.tensor.dims[axis], count)
    return sliced(x, axis, start if count != 0 else 0, count, step)


@aten("select.int")
def _select(node: AtenNode) -> Built:
    x = node.term("self")
    axis = node.axis(x)
    at = position(node["index"], x.tensor.dims[axis], 0)
    if isinstance(at, int):
        return picked(x, axis, at)
    return reshape(sliced(x, axis, at, 1), node.shape)


@aten("split_with_sizes.default")
def _split(node: AtenNode) -> Built:
    x = node.term("self")
    axis = node.axis(x)
    parts: list[Term] = []
    start: Dim = 0
    for size in node.dims("split_sizes"):
        parts.append(sliced(x, axis, start, size))
        start = dims.add(start, size)
    return tuple(parts)


def _between(x: Term, axis: int, start: Dim, count: Dim, step: int) -> Term:
    """True where a slice of `x` lies."""
    at = iota(x.tensor.dims, axis)
    end = dims.add(start, dims.multiply(count, step))
    inside = both(compare(at, "GE", start), compare(at, "LT", end))
    if step == 1:
        return inside
    whole = make("stablehlo.remainder", (add(at, dims.multiply(-1, start)), splat(step, I64, x.tensor.dims)))
    return both(inside, compare(whole, "EQ", 0))


@aten("slice_scatter.default")
def _slice_scatter(node: AtenNode) -> Built:
    x, src = node.term("self"), node.term("src")
    axis = node.axis(x)
    count, extent = src.tensor.dims[axis], x.tensor.dims[axis]
    start, step = _places(node, extent, count)
    src = convert(src, x.tensor.dtype)
    if step == 1:
        end = dims.add(start, count)
        parts = [(0, start), (None, None), (end, dims.subtract(extent, end))]
        pieces = [src if at is None or size is None else sliced(x, axis, at, size) for at, size in parts]
        return concatenate([piece for piece in pieces if piece.tensor.dims[axis] != 0] or [x], axis)
    rest = dims.subtract(extent, dims.add(dims.multiply(dims.subtract(count, 1), step), dims.add(start, 1)))
    gaps = tuple(step - 1 if i == axis else 0 for i in range(x.tensor.rank))
    low, high = ([size if i == axis else 0 for i in range(x.tensor.rank)] for size in (start, rest))
    spread = padded(src, low, high, 0, gaps)
    return select(_between(x, axis, start, count, step), spread, x)


@aten("diagonal.default")
def _diagonal(node: AtenNode) -> Built:
    """Of the two dims the elements whose positions differ by `offset`, along a new last dim."""
    x = node.term("self")
    rank, offset = x.tensor.rank, int(node.number("offset"))
    first, second = (axis_of(int(node.number(key)), rank) for key in ("dim1", "dim2"))
    rest = tuple(axis for axis in range(rank) if axis not in (first, second))
    moved = transpose(x, (*rest, first, second))
    low = (max(-offset, 0), max(offset, 0))
    count = node.shape[-1]
    for axis, start in zip((rank - 2, rank - 1), low, strict=True):
        moved = sliced(moved, axis, start if count != 0 else 0, count)
    shape = moved.tensor.dims
    on = compare(iota(shape, rank - 2), "EQ", iota(shape, rank - 1))
    # one element of each column is not 0, so their sum is this element: a NaN elsewhere is not added
    kept = select(on, moved, np.zeros((), moved.tensor.dtype.numpy).item())
    combiner = "or" if moved.tensor.dtype.kind == "bool" else "add"
    return make("stablehlo.reduce", (kept,), {"dimensions": (rank - 2,), "combiner": combiner})


@aten("unfold.default")
def _unfold(node: AtenNode) -> Built:
    """Windows along a dim, whose elements are a new last dim."""
    x = node.term("self")
    if not x.tensor.rank:  # a scalar counts as a vector of one element
        x = reshape(x, (1,))
    axis = node.axis(x, "dimension")
    size, step = int(node.number("size")), int(node.number("step"))
    count = node.shape[axis]
    columns = [sliced(x, axis, at, count, step) for at in range(size)]
    return reshape(concatenate([reshape(column, (*column.tensor.dims, 1)) for column in columns], x.tensor.rank), node.shape)


# ---------------------------------------------------------------- joined, padded


@aten("cat.default")
def _cat(node: AtenNode) -> Built:
    """Empty vectors fit everything, as torch has it."""
    given: list[Term] = list(node["tensors"])
    parts = [part for part in given if part.tensor.dims != (0,)] or given[:1]
    axis = node.axis(parts[0])
    return concatenate([convert(part, node.dtype) for part in parts], axis)


@aten("constant_pad_nd.default")
def _constant_pad(node: AtenNode) -> Built:
    """Pairs of widths, those of the last dim first; negative ones crop."""
    x, pads = node.term("self"), node.dims("pad")
    low: list[Dim] = [0] * x.tensor.rank
    high: list[Dim] = [0] * x.tensor.rank
    for place in range(len(pads) // 2):
        low[-1 - place], high[-1 - place] = pads[2 * place], pads[2 * place + 1]
    value = node["value"]
    return padded(x, low, high, given_as(x.tensor.dtype, value))


# ---------------------------------------------------------------- made


@aten("full.default")
def _full(node: AtenNode) -> Built:
    return filled(node["fill_value"], node)


@aten("full_like.default")
def _full_like(node: AtenNode) -> Built:
    return filled(node["fill_value"], node)


@aten("scalar_tensor.default")
def _scalar(node: AtenNode) -> Built:
    return filled(node["s"], node)


def filled(value: Any, node: AtenNode) -> Term:
    """The result of `node` with `value` in every element."""
    if isinstance(value, Poly):
        value = counted(value, node.dtype)
    if isinstance(value, Term):
        return broadcast(convert(value, node.dtype), node.shape, ())
    return splat(value, node.dtype, node.shape)


@aten("empty.memory_format", "empty_strided.default", "empty_permuted.default")  # fmt: skip
def _nothing(node: AtenNode) -> Built:
    """Memory of which torch promises nothing is zeros here."""
    return splat(np.zeros((), node.dtype.numpy), node.dtype, node.shape)


@aten("copy.default")
def _copy(node: AtenNode) -> Built:
    return numpy_broadcast(node.converted("src" if "src" in node.arguments else "value"), node.shape)


@aten("arange.start_step")
def _arange(node: AtenNode) -> Built:
    """start + i * step; of floats computed in f64, as torch does on a CPU."""
    (count,) = node.shape
    start, step, dtype = node["start"], node["step"], node.dtype
    if isinstance(count, int) and isinstance(start, int) and isinstance(step, int) and count == 0:
        return literal(np.zeros(0, dtype.numpy), dtype)
    working = dtype if dtype.kind in ("int", "uint") else F64
    whole = iota((count,), 0, working)
    scaled = whole if step == 1 else multiply(whole, given_as(working, step))
    return convert(scaled if start == 0 else add(scaled, given_as(working, start)), dtype)


@aten("tril_indices.default", "triu_indices.default")
def _triangle(node: AtenNode) -> Built:
    """The positions in a triangle of a matrix, row by row."""
    shape = (int(node.number("row")), int(node.number("col")))
    find = np.tril_indices if node.name.startswith("tril") else np.triu_indices
    found = np.stack(find(shape[0], int(node.number("offset")), shape[1]))
    return literal(found.astype(node.dtype.numpy), node.dtype)


@aten("index_select.default")
def _index_select(node: AtenNode) -> Built:
    x, index = node.term("self"), node.term("index")
    if x.tensor.rank == 0:
        return x
    axis = node.axis(x)
    known = constant_elements(index, 1)
    if known is not None and isinstance(x.tensor.dims[axis], int) and known.size == 1:
        return sliced(x, axis, int(known.reshape(-1)[0]), 1)
    return make("onnx.Gather", (x, reshape(index, (index.tensor.elements,))), {"axis": axis})
