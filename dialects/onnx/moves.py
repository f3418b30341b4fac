"""ONNX's movement ops, constants and generators as terms: by `moves.rules`, and here what looks at values or at bounds of symbols."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coset.dialects.hub.terms import literal, reshape, splat
from coset.dialects.onnx.arithmetic import take
from coset.dialects.onnx.bounds import Most, at_most, least, maximum, minimum
from coset.dialects.onnx.node import Builder, Built, Node, axes_of, axis_of, constant_elements, definition
from coset.dialects.onnx.sugar import sugar, sugar_builders, sugar_with
from coset.ir import dims
from coset.ir.dims import Dim, Poly
from coset.ir.op import Array
from coset.ir.term import Term, make
from coset.ir.types import DTYPES

_FAR = 1 << 31  # positions at or beyond it mean "to the end" (no dim is that long)
_RANGE_ELEMENTS = 1 << 20
MOST_PLACES = 1 << 20  # of a Gather, that are looked at


def _identity(node: Node) -> Built:
    """The operand, even one that is no tensor."""
    return node.operands[0]


def _dropout(node: Node) -> Built:
    """Inference: nothing. Before 7 an attribute says so, since 12 the third operand, if given, must be the constant false."""
    if node.results > 1 or (node.since < 7 and not node.attributes.get("is_test", 0)):
        return None
    training = node.operand(2)
    if training is not None:
        known = constant_elements(training, 1)
        if known is None or known.any():
            return None
    return node.operands[0]


def _constant(node: Node) -> Built:
    for name, dtype in (("value_float", "f32"), ("value_floats", "f32"), ("value_int", "i64"), ("value_ints", "i64")):
        if name in node.attributes:
            return literal(np.array(node.attributes[name], DTYPES[dtype].numpy))
    given = node.attributes.get("value", node.attributes.get("sparse_value"))
    return None if given is None else literal(given)


def _constant_of_shape(node: Node) -> Built:
    shape = node.dims(0)
    if shape is None or any((least(dim) or 0) < 0 for dim in shape):
        return None
    value = node.attributes["value"].array().reshape(-1)[0] if "value" in node.attributes else np.float32(0)
    dtype = node.attributes["value"].type.dtype if "value" in node.attributes else DTYPES["f32"]
    return splat(value, dtype, tuple(shape))


# ---------------------------------------------------------------- slices


def _position(value: Dim, dim: Dim, most: Most) -> Dim | None:
    """A start or end of ONNX's Slice with a positive step as a number from 0 to `dim`; None where its sign is not known."""
    if isinstance(value, int):
        if value >= _FAR:
            return dim
        if value == 0 or value <= -_FAR:
            return 0  # also where the dim's text may be below 0: no tensor has such a dim
        return maximum(0, dims.add(dim, value), most) if value < 0 else minimum(value, dim, most)
    lowest = least(value)
    if lowest is not None and lowest >= 0:
        return minimum(value, dim, most)
    highest = least(dims.multiply(-1, value))
    return maximum(0, dims.add(dim, value), most) if highest is not None and highest > 0 else None


def _forward(x: Term, axis: int, start: Dim, end: Dim, step: int, most: Most) -> Term | None:
    dim = x.tensor.dims[axis]
    first, last = _position(start, dim, most), _position(end, dim, most)
    if first is None or last is None:
        return None
    if first != 0 and not at_most(first, last, most):
        last = maximum(first, last, most)
    return take(x, axis, first, last, step)


def _backward(x: Term, axis: int, start: Dim, end: Dim, step: int) -> Term | None:
    """A negative step: the elements forward, then reversed. A whole dim may be symbolic, a part of it not."""
    dim = x.tensor.dims[axis]
    whole = (start == -1 or (isinstance(start, int) and start >= _FAR)) and isinstance(end, int) and end <= -_FAR
    if not (whole and step == -1):
        if not isinstance(dim, int) or not isinstance(start, int) or not isinstance(end, int):
            return None
        picked = range(dim)[max(start, -dim) : None if end < -dim else end : step]  # a start below the first element is moved to it
        if not picked:
            return take(x, axis, 0, 0)
        x = take(x, axis, picked[-1], picked[0] + 1, -step)
    return make("stablehlo.reverse", (x,), {"dimensions": (axis,)})


def _slice(node: Node) -> Built:
    x = node.operands[0]
    if node.since < 10:
        starts, ends, axes, steps = node.attributes.get("starts"), node.attributes.get("ends"), node.attributes.get("axes"), None
    else:
        starts, ends, axes, steps = node.dims(1), node.dims(2), node.ints(3), node.ints(4)
        if (axes is None and node.given(3)) or (steps is None and node.given(4)):
            return None
    if starts is None or ends is None:
        return None
    axes = list(range(len(starts))) if axes is None else axes
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        position = axis_of(axis, x.tensor.rank)
        if position is None or step == 0:
            return None
        result = _forward(x, position, start, end, step, node.most) if step > 0 else _backward(x, position, start, end, step)
        if result is None:
            return None
        x = result
    return x


def _split(node: Node) -> Built:
    """The definition, told how many parts there are."""
    return sugar_with(node, {"num_outputs": node.outputs}) if node.since >= 2 else None


def _gather(node: Node) -> Built:
    """Elements at numbers that are written down and stand in even steps (one number is in steps of any length), or that count from 0 to
    what is seen to be in range: a slice. Others are data: what lies outside fails."""
    x, indices = node.operands
    axis = axis_of(node.attributes.get("axis", 0), x.tensor.rank)
    if axis is None or x.tensor.dtype.kind == "string":
        return None
    extent, count = x.tensor.dims[axis], _counted(indices)
    shape = (*x.tensor.dims[:axis], *indices.tensor.dims, *x.tensor.dims[axis + 1 :])
    if count is not None and at_most(count, extent, node.most):
        return reshape(take(x, axis, 0, count), shape)
    chosen = _written(node)
    if not isinstance(extent, int) or chosen is None or not chosen.size:
        return None
    places = np.where(chosen < 0, chosen + extent, chosen)
    first, last = int(places[0]), int(places[-1])
    step = int(places[1]) - first if len(places) > 1 else 1
    if step < 1 or not 0 <= first <= last < extent or not np.array_equal(places, np.arange(first, last + 1, step)):
        return None
    return reshape(take(x, axis, first, last + 1, step), shape)


def _written(node: Node) -> Array | None:
    """The numbers of the second operand in a row: dims that are known, or a constant of any length."""
    chosen, indices = node.ints(1), node.operands[1]
    if indices.tensor.rank > 1:  # a slice and a reshape are two nodes
        return None
    if chosen is not None:
        return np.array(chosen, np.int64)
    found = constant_elements(indices, MOST_PLACES)
    return None if found is None else found.astype(np.int64).reshape(-1)


def bound_of_gather(x: Term, indices: Term, axis: int) -> tuple[str, int] | None:
    """The symbol that the indices count to, and how many elements there are: a run with more of them fails."""
    position, count = axis_of(axis, x.tensor.rank), _counted(indices)
    name, extent = (None, 0) if position is None or count is None else (dims.alone(count), x.tensor.dims[position])
    return (name, extent) if name is not None and isinstance(extent, int) else None


def _counted(indices: Term) -> Dim | None:
    """How many numbers from 0 on `indices` has, in this order, whatever its shape; None where it has others."""
    core = indices.operands[0] if indices.op.name == "stablehlo.reshape" else indices
    return core.tensor.dims[0] if core.op.name == "stablehlo.iota" and core.tensor.rank == 1 else None


@definition("Split")
def _parts(node: Node) -> Built:
    """The parts of a dim that is a symbol: as long as said, or as `num_outputs` says it, of which the last one takes what is left."""
    x = node.operands[0]
    axis = axis_of(node.attributes.get("axis", 0), x.tensor.rank)
    given = node.dims(1) if node.since >= 13 else node.attributes.get("split")
    if axis is None or isinstance(x.tensor.dims[axis], int) or (given is None and node.given(1)):
        return None
    part = dims.ceildiv(x.tensor.dims[axis], node.outputs)
    bounds = [dims.product((part, i)) for i in range(node.outputs)] if given is None else [sum(given[:i]) for i in range(node.outputs)]
    ends = [*bounds[1:], x.tensor.dims[axis]]
    return tuple(take(x, axis, start, end) for start, end in zip(bounds, ends, strict=True))


def _pad(node: Node) -> Built:
    return sugar(node) if node.since >= 2 else None


def axes_of_pad(node: Node, rank: int) -> list[int] | None:
    """The axes that Pad's numbers are for, in their order; None where they are not known."""
    if not node.given(3):
        return list(range(rank))
    axes = node.ints(3)
    if axes is None or axes_of(axes, rank) is None:
        return None
    return [axis % rank for axis in axes]


def _range(node: Node) -> Built:
    """Integers: a constant where all is known, and 0, 1, .. up to a dim."""
    dtype = node.operands[0].tensor.dtype
    numbers = [node.dims(index) for index in range(3)]
    if dtype.kind != "int" or any(found is None or len(found) != 1 for found in numbers):
        return None
    start, limit, delta = (found[0] for found in numbers if found is not None)
    if not isinstance(start, Poly) and not isinstance(limit, Poly) and not isinstance(delta, Poly):
        count = len(range(start, limit, delta)) if delta else 0
        return literal(np.arange(start, limit, delta).astype(dtype.numpy)) if delta and count <= _RANGE_ELEMENTS else None
    lowest = least(limit)
    if start != 0 or delta != 1 or lowest is None or lowest < 0:
        return None
    return make("stablehlo.iota", (), {"shape": (limit,), "dtype": dtype, "dimension": 0})


BUILDERS: dict[str, Builder] = {
    **sugar_builders(Path(__file__).with_name("moves.rules")),
    "Identity": _identity, "Dropout": _dropout, "Constant": _constant, "ConstantOfShape": _constant_of_shape,
    "Slice": _slice, "Gather": _gather, "Split": _split, "Pad": _pad, "Range": _range,
}  # fmt: skip
