"""Drawn nodes of the ONNX ops that move, choose, read and write elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from benchmarks.definitions.elementwise import draws, number
from benchmarks.definitions.instance import Draw, Instance, Slot, constant, fixed
from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.ir.types import DTYPES, DType


def ints(values: Any) -> Slot:
    """A known vector of 64-bit integers."""
    return constant(np.array(values, np.int64))


@draws("Transpose", "Flatten")
def _turned(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(0, 5)
    if op == "Flatten":
        low = -len(shape) if opset >= 11 else 0
        attributes: dict[str, Any] = {"axis": r.randint(low, len(shape))} if r.maybe(0.8) or not shape else {}
    else:
        attributes = {"perm": r.sample(range(len(shape)), len(shape))} if r.maybe(0.8) and shape else {}
    return Instance(op, (Slot(r.dtype(op, opset), shape),), attributes, opset)


@draws("Squeeze")
def _squeeze(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = tuple(1 if r.maybe() else r.dim() for _ in range(r.randint(0, 4)))
    ones = [axis for axis, dim in enumerate(shape) if dim == 1]
    axes = [axis - len(shape) if r.maybe(0.3) and opset >= 11 else axis for axis in r.sample(ones, r.randint(0, len(ones)))]
    slots = [Slot(r.dtype(op, opset), shape)]
    attributes: dict[str, Any] = {}
    if axes or (r.maybe(0.3) and opset >= 13):
        slots, attributes = ([*slots, ints(axes)], {}) if opset >= 13 else (slots, {"axes": axes})
    return Instance(op, tuple(slots), attributes, opset)


@draws("Unsqueeze")
def _unsqueeze(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape, more = r.shape(0, 3), r.randint(1, 2)
    rank = len(shape) + more
    axes = [axis - rank if r.maybe(0.3) and opset >= 11 else axis for axis in r.sample(range(rank), more)]
    slot = Slot(r.dtype(op, opset), shape)
    return Instance(op, (slot, ints(axes)), {}, opset) if opset >= 13 else Instance(op, (slot,), {"axes": axes}, opset)


@draws("Expand")
def _expand(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape, to = r.shapes(2)
    return Instance(op, (Slot(r.dtype(op, opset), shape), ints(to)), {}, opset)


@draws("Concat")
def _concat(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(1, 4)
    axis = r.axis(len(shape)) if opset >= 11 else r.randrange(len(shape))
    place, dtype = axis % len(shape), r.dtype(op, opset)
    slots = tuple(Slot(dtype, (*shape[:place], r.dim(), *shape[place + 1 :])) for _ in range(r.randint(1, 4)))
    return Instance(op, slots, {"axis": axis}, opset)


@draws("Pad")
def _pad(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=2)
    mode = r.choice(["constant", "constant", "constant", "reflect", "edge", *(["wrap"] if opset >= 19 else [])])
    shape = r.shape(1, 4, least=0 if mode == "constant" else 2)
    most = 3 if mode == "constant" else 1
    axes = r.axes(len(shape), empty=False) if opset >= 18 and r.maybe() else None
    chosen = range(len(shape)) if axes is None else [axis % len(shape) for axis in axes]
    pairs = [[r.randint(-min(1, shape[axis]), most), r.randint(0, most)] for axis in chosen]
    pads = [pair[0] for pair in pairs] + [pair[1] for pair in pairs]
    dtype = r.dtype(op, opset)
    if opset < 11:
        return Instance(op, (Slot(dtype, shape),), {"mode": mode, "pads": pads, "value": number(r)}, opset)
    slots: list[Slot | None] = [Slot(dtype, shape), ints(pads), Slot(dtype, ()) if r.maybe() and mode == "constant" else None]
    if axes is not None:
        slots.append(ints(axes))
    return Instance(op, tuple(slots), {"mode": mode}, opset)


@draws("Reshape")
def _reshape(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(0, 4)
    to: list[int] = r.sample(shape, len(shape))
    if len(to) >= 2 and r.maybe():
        to[:2] = [to[0] * to[1]]
    allow = 0 in to
    if to and r.maybe() and 0 not in shape:
        to[r.randrange(len(to))] = -1
    elif not allow:
        to = [0 if r.maybe(0.5) and i < len(shape) and shape[i] == dim else dim for i, dim in enumerate(to)]
    if allow and opset < 14:
        return _reshape(r, op)
    return Instance(op, (Slot(r.dtype(op, opset), shape), ints(to)), {"allowzero": 1} if allow else {}, opset)


@draws("Split")
def _split(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    parts = [r.dim() for _ in range(r.randint(1, 3))]
    equal = r.maybe(0.4)
    shape = r.shape(1, 3)
    axis = r.axis(len(shape)) if opset >= 11 else r.randrange(len(shape))
    place = axis % len(shape)
    size = len(parts) * r.randint(1, 3) if equal else sum(parts)
    if equal and opset >= 18 and r.maybe() and size >= 2 and len(parts) > 1 and -(-(size - 1) // len(parts)) * (len(parts) - 1) < size - 1:
        size -= 1
    slots: list[Slot | None] = [Slot(r.dtype(op, opset), (*shape[:place], size, *shape[place + 1 :]))]
    attributes: dict[str, Any] = {"axis": axis}
    if not equal:
        slots, attributes = ([*slots, ints(parts)], attributes) if opset >= 13 else (slots, {**attributes, "split": parts})
    elif opset >= 18:
        attributes["num_outputs"] = len(parts)
    return Instance(op, tuple(slots), attributes, opset, outputs=len(parts))


@draws("Tile")
def _tile(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(0, 4)
    return Instance(op, (Slot(r.dtype(op, opset), shape), ints([r.randint(0, 3) for _ in shape])), {}, opset)


@draws("DepthToSpace", "SpaceToDepth")
def _blocks(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    block = r.randint(1, 3)
    b, c, h, w = (r.dim() for _ in range(4))
    shape = (b, c * block * block, h, w) if op == "DepthToSpace" else (b, c, h * block, w * block)
    attributes: dict[str, Any] = {"blocksize": block}
    if r.maybe(0.7) and ((op == "DepthToSpace" and opset >= 11) or opset >= 28):
        attributes["mode"] = r.choice(["DCR", "CRD"])
    return Instance(op, (Slot(r.dtype(op, opset), shape),), attributes, opset)


# ---------------------------------------------------------------- indices


def places(r: Draw, shape: tuple[int, ...], extent: int, *, negative: bool = True, dtype: str = "") -> Slot:
    """Indices into a dim of `extent`, known to the model or not."""
    low = -extent if negative else 0
    values = np.array([r.randrange(low, extent) for _ in range(prod(shape))], DTYPES[dtype or r.choice(["i64", "i32"])].numpy)
    array = values.reshape(shape)
    return constant(array) if r.maybe(0.3) else fixed(array)


def _extent(r: Draw, low: int = 1, high: int = 4) -> tuple[tuple[int, ...], int]:
    """A shape without empty dims, and one of its axes."""
    shape = r.shape(low, high, least=1)
    return shape, r.axis(len(shape))


@draws("Gather")
def _gather(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape, axis = _extent(r)
    index = places(r, r.shape(0, 2), shape[axis], negative=opset >= 11)
    return Instance(op, (Slot(r.dtype(op, opset), shape), index), {"axis": axis}, opset)


@draws("GatherElements", "ScatterElements")
def _elements(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape, axis = _extent(r)
    place = axis % len(shape)
    inner = tuple(r.randint(0, 4) if i == place else r.randint(1, dim) if r.maybe(0.4) else dim for i, dim in enumerate(shape))
    slot = Slot(r.dtype(op, opset), shape)
    if op == "GatherElements":
        return Instance(op, (slot, places(r, inner, shape[place])), {"axis": axis}, opset)
    reduction = (
        r.choice(["none", "add", "mul", "max", "min"][: 5 if opset >= 18 else 3]) if opset >= 16 and slot.dtype.kind != "bool" else ""
    )
    index = places(r, inner, shape[place])
    if reduction in ("", "none"):
        index = _once(r, inner, place, shape[place])
        inner = index.shape
    attributes = {"axis": axis, **({"reduction": reduction} if reduction else {})}
    return Instance(op, (slot, index, Slot(slot.dtype, inner)), attributes, opset)


def _once(r: Draw, inner: tuple[int, ...], place: int, extent: int) -> Slot:
    """Indices that write no element twice: each line along the axis has different ones."""
    count = min(inner[place], extent)
    shape = (*inner[:place], count, *inner[place + 1 :])
    lines = prod(shape) // count if count else 0
    rows = np.array([r.sample(range(extent), count) for _ in range(lines)], np.int64).reshape(*inner[:place], *inner[place + 1 :], count)
    array = np.moveaxis(rows, -1, place) if rows.size else np.zeros(shape, np.int64)
    return fixed(np.where(np.array([r.maybe(0.3) for _ in range(array.size)], bool).reshape(array.shape), array - extent, array))


@draws("GatherND", "ScatterND")
def _slices(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(1, 4, least=1)
    batch = r.randint(0, len(shape) - 1) if op == "GatherND" and opset >= 12 and r.maybe() else 0
    depth = r.randint(1, len(shape) - batch)
    outer = shape[:batch] + r.shape(0, 2)
    vectors = [[r.randrange(-shape[batch + i], shape[batch + i]) for i in range(depth)] for _ in range(prod(outer))]
    slot = Slot(r.dtype(op, opset), shape)
    if op == "GatherND":
        index = fixed(np.array(vectors, np.int64).reshape(*outer, depth))
        return Instance(op, (slot, index), {"batch_dims": batch} if batch else {}, opset)
    reduction = (
        r.choice(["none", "add", "mul", "max", "min"][: 5 if opset >= 18 else 3]) if opset >= 16 and slot.dtype.kind != "bool" else ""
    )
    if reduction in ("", "none"):
        unique = list({tuple(i % shape[k] for k, i in enumerate(vector)): vector for vector in vectors}.values())
        vectors, outer = unique, (len(unique),)
    updates = Slot(slot.dtype, (*outer, *shape[depth:]))
    index = fixed(np.array(vectors, np.int64).reshape(*outer, depth))
    return Instance(op, (slot, index, updates), {"reduction": reduction} if reduction else {}, opset)


@draws("ReverseSequence")
def _reverse(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=10)
    time = r.randint(0, 1)
    shape = r.shape(2, 4, least=1)
    lengths = fixed(np.array([r.randint(1, shape[time]) for _ in range(shape[1 - time])], np.int64))
    return Instance(op, (Slot(r.dtype(op, opset), shape), lengths), {"time_axis": time, "batch_axis": 1 - time}, opset)


@draws("TensorScatter")
def _cache(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=24)
    shape = r.shape(3, 4, least=1)
    axis = r.randrange(1, len(shape))
    mode = r.choice(["linear", "circular"])
    size = r.randint(1, shape[axis])
    starts = [r.randint(0, shape[axis] - size if mode == "linear" else shape[axis] - 1) for _ in range(shape[0])]
    slot = Slot(r.dtype(op, opset), shape)
    update = Slot(slot.dtype, (*shape[:axis], size, *shape[axis + 1 :]))
    given = fixed(np.array(starts, np.int64)) if r.maybe(0.7) else None
    return Instance(op, (slot, update, given), {"axis": axis - (len(shape) if r.maybe() else 0), "mode": mode}, opset)


# ---------------------------------------------------------------- choosing


@draws("Trilu")
def _triangle(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(2, 4)
    slots: list[Slot | None] = [Slot(r.dtype(op, opset), shape)]
    if r.maybe(0.7):
        slots.append(constant(np.array(r.choice([0, 1, -1, 2, -3, 7, -7]), np.int64)))
    return Instance(op, tuple(slots), {"upper": r.randint(0, 1)} if r.maybe(0.8) else {}, opset)


@draws("EyeLike")
def _eye(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=9)
    attributes = {"k": r.choice([0, 1, -1, 2, -3, 7])} if r.maybe() else {}
    if r.maybe():
        attributes["dtype"] = CODE_OF_DTYPE[DTYPES[r.choice(["f32", "f64", "i32", "i64", "u8", "f16", "bool"])]]
    return Instance(op, (Slot(r.dtype(op, opset), r.shape(2, 2)),), attributes, opset)


@draws("OneHot")
def _one_hot(r: Draw, op: str) -> Instance:
    """Indices beyond the ends give a row without a one."""
    opset = r.version(op, least=9)
    dtype = r.dtype(op, opset, 0)
    shape, depth = r.shape(0, 3), r.randint(1, 5)
    low = -depth - 2 if dtype.kind != "uint" else 0
    index = np.array([r.randint(low, depth + 2) for _ in range(prod(shape))], np.float64).astype(dtype.numpy).reshape(shape)
    values: DType = r.dtype(op, opset, 2)
    count = constant(np.array(depth if r.maybe() else [depth], r.choice([np.int64, np.int32])))
    return Instance(op, (fixed(index), count, Slot(values, (2,))), {"axis": r.randint(-len(shape) - 1, len(shape))}, opset)


@draws("TopK")
def _top(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=10)
    shape = r.shape(1, 4, least=1)
    axis = r.axis(len(shape)) if opset >= 11 else r.randrange(len(shape))
    attributes = {"axis": axis, **({"largest": r.randint(0, 1), "sorted": 1} if opset >= 11 and r.maybe(0.8) else {})}
    return Instance(op, (Slot(r.dtype(op, opset), shape), ints([r.randint(0, shape[axis])])), attributes, opset, outputs=2)
