"""Drawn nodes of ONNX's quantized ops and of those that resample images."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.definitions.elementwise import draws
from benchmarks.definitions.instance import Draw, Instance, Slot, constant, fixed, types_of
from benchmarks.definitions.windows import _sizes, _window
from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.ir.types import DTYPES, DType

F32, EIGHT_BITS = DTYPES["f32"], (DTYPES["u8"], DTYPES["i8"])
SCALES = (0.5, 0.25, 0.02, 1.0, 3.0, 0.1)


def scale(r: Draw, shape: tuple[int, ...] = (), dtype: DType = F32) -> Slot:
    """Positive steps."""
    count = int(np.prod(shape, dtype=np.int64))
    return fixed(np.array([r.choice(SCALES) for _ in range(count)]).astype(dtype.numpy).reshape(shape))


def zero(r: Draw, dtype: DType, shape: tuple[int, ...] = ()) -> Slot:
    """Zero points; of floats 0."""
    if dtype.kind == "float":
        return fixed(np.zeros(shape, dtype.numpy))
    low, high = (0, 255) if dtype.kind == "uint" else (-128, 127)
    least, most = (
        (max(low, 0), min(high, (1 << dtype.bits) - 1)) if dtype.kind == "uint" else (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1)
    )
    values = [r.randint(max(low, least), min(high, most)) for _ in range(int(np.prod(shape, dtype=np.int64)))]
    return fixed(np.array(values).astype(dtype.numpy).reshape(shape))


def _spread(r: Draw, opset: int) -> tuple[tuple[int, ...], dict[str, Any], tuple[int, ...]]:
    """The shape of a tensor, the attributes that say how its scales lie, and their shape."""
    shape = r.shape(1, 3, least=1)
    if opset >= 21 and r.maybe(0.3):
        axis = r.randrange(len(shape))
        block = r.randint(1, 2)
        blocks = -(-shape[axis] // block)
        return shape, {"axis": axis, "block_size": block}, (*shape[:axis], blocks, *shape[axis + 1 :])
    if opset >= 13 and r.maybe(0.5):
        axis = r.axis(len(shape))
        return shape, {"axis": axis}, (shape[axis],)
    return shape, {}, ()


@draws("QuantizeLinear")
def _quantize(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=10)
    shape, attributes, spread = _spread(r, opset)
    source = r.dtype(op, opset)
    source = source if source.kind == "float" else F32
    targets = [t for t in types_of(op, opset, 2) if t.name not in ("f4e2m1fn",)]
    target = r.choice(targets)
    step = scale(r, spread, source if opset >= 19 else F32)
    if opset >= 21 and r.maybe(0.3):
        return Instance(op, (Slot(source, shape), step), {**attributes, "output_dtype": CODE_OF_DTYPE[target]}, opset)
    point = zero(r, target, spread) if r.maybe(0.7) or target.name != "u8" else None
    return Instance(op, (Slot(source, shape), step, point), attributes, opset)


@draws("DequantizeLinear")
def _dequantize(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=10)
    shape, attributes, spread = _spread(r, opset)
    source = r.dtype(op, opset)
    result = r.choice([t for t in types_of(op, opset, 1) if t.kind == "float" and t.bits > 8])  # of 8 bits it is none for the result
    point = zero(r, source, spread) if source.name != "i32" and r.maybe(0.7) else None
    return Instance(op, (Slot(source, shape), scale(r, spread, result), point), attributes, opset)


@draws("DynamicQuantizeLinear")
def _dynamic(r: Draw, op: str) -> Instance:
    shape = r.shape(1, 3, least=1)
    return Instance(op, (Slot(F32, shape, lambda x: np.clip(np.nan_to_num(x, nan=1), -1e6, 1e6)),), {}, 11, outputs=3)


@draws("MatMulInteger", "QLinearMatMul")
def _products(r: Draw, op: str) -> Instance:
    """Factors of 7 bits: sums of pairs of products in 16 bits, which some processors make, do not overflow."""
    opset = 10 if op == "MatMulInteger" else r.version(op, least=10)
    one, other = r.choice(EIGHT_BITS), r.choice(EIGHT_BITS)
    m, k, n = (r.randint(1, 4) for _ in range(3))
    batch = r.choice([(), (), (2,)])
    a, b = Slot(one, (*batch, m, k)), Slot(other, (k, n), lambda y: y // 2)
    if op == "MatMulInteger":
        points = [zero(r, one, r.choice([(), (1,)])) if r.maybe() else None, zero(r, other, r.choice([(), (n,)])) if r.maybe() else None]
        return Instance(op, (a, b, *points), {}, opset)
    columns = r.choice([(), (n,)])
    result = one
    return Instance(op, (a, scale(r), zero(r, one), b, scale(r, columns), zero(r, other, columns), scale(r), zero(r, result)), {}, opset)


@draws("ConvInteger", "QLinearConv")
def _convolutions(r: Draw, op: str) -> Instance:
    spatial = 2
    kernel = [r.randint(1, 3) for _ in range(spatial)]
    given = _window(r, spatial)
    group, inner = r.choice([1, 1, 2]), r.randint(1, 2)
    outer = group * r.randint(1, 2)
    one, other = DTYPES["u8"], r.choice(EIGHT_BITS)
    x = Slot(one, (r.randint(1, 2), group * inner, *_sizes(r, kernel, given)))
    w = Slot(other, (outer, inner, *kernel), lambda y: y // 2)
    attributes = {**given, "group": group}
    if op == "ConvInteger":
        return Instance(op, (x, w, zero(r, one) if r.maybe() else None, zero(r, other) if r.maybe() else None), attributes, 10)
    columns = r.choice([(), (outer,)])
    bias = Slot(DTYPES["i32"], (outer,), lambda b: b % 1000) if r.maybe() else None
    slots = (x, scale(r), zero(r, one), w, scale(r, columns), fixed(np.zeros(columns, other.numpy)), scale(r), zero(r, one), bias)
    return Instance(op, slots, attributes, 10)


# ---------------------------------------------------------------- images


@draws("Resize")
def _resize(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=11)
    mode = r.choice(["nearest", "linear", "cubic"])
    spatial = 2 if mode == "cubic" else r.choice([1, 2])
    shape = (1, r.randint(1, 2), *(r.randint(2, 5) for _ in range(spatial)))
    places = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] + (["half_pixel_symmetric"] if opset >= 19 else [])
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": r.choice(places)}
    if mode == "nearest":
        attributes["nearest_mode"] = r.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes |= {"cubic_coeff_a": r.choice([-0.5, -0.75]), "exclude_outside": r.randint(0, 1)}
    if opset >= 18 and mode != "nearest" and r.maybe(0.4):
        attributes["antialias"] = 1
    sizes = [r.randint(1, 8) for _ in range(spatial)]
    if r.maybe():
        scales = [1.0, 1.0, *(r.choice([0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 0.6]) for _ in range(spatial))]
        last: list[Slot | None] = [constant(np.array(scales, np.float32))]
    else:
        last = [None if opset >= 13 else constant(np.zeros(0, np.float32)), constant(np.array([*shape[:2], *sizes], np.int64))]
    slots = (
        Slot(DTYPES[r.choice(["f32", "f32", "u8"]) if mode == "nearest" else "f32"], shape),
        None if opset >= 13 else constant(np.zeros(0, np.float32)),
        *last,
    )
    return Instance(op, slots, attributes, opset, most_ulps=64.0)


@draws("GridSample")
def _grid(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=16)
    modes = ["linear", "nearest", "cubic"] if opset >= 20 else ["bilinear", "nearest", "bicubic"]
    shape = (r.randint(1, 2), r.randint(1, 2), r.randint(2, 4), r.randint(2, 4))
    points = (shape[0], r.randint(1, 3), r.randint(1, 3), 2)
    attributes = {"mode": r.choice(modes), "padding_mode": r.choice(["zeros", "border", "reflection"]), "align_corners": r.randint(0, 1)}
    near = Slot(F32, points, lambda x: np.clip(np.nan_to_num(x.astype(np.float64), nan=0.25), -3, 3))
    return Instance(op, (Slot(F32, shape), near), attributes, opset, most_ulps=64.0)


@draws("RoiAlign")
def _regions(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=10)
    count = r.randint(1, 3)
    shape = (2, r.randint(1, 2), r.randint(3, 5), r.randint(3, 5))
    corners = np.array(
        [[x, y, x + r.uniform(0.3, 4), y + r.uniform(0.3, 4)] for x, y in ((r.uniform(-1, 3), r.uniform(-1, 3)) for _ in range(count))]
    )
    images = np.array([r.randint(0, 1) for _ in range(count)], np.int64)
    attributes: dict[str, Any] = {
        "mode": r.choice(["avg", "max"]), "output_height": r.randint(1, 3), "output_width": r.randint(1, 3),
        "sampling_ratio": r.randint(0, 2), "spatial_scale": r.choice([1.0, 0.5]),
    }  # fmt: skip
    if opset >= 16:
        attributes["coordinate_transformation_mode"] = r.choice(["half_pixel", "output_half_pixel"])
    return Instance(op, (Slot(F32, shape), fixed(corners.astype(np.float32)), fixed(images)), attributes, opset, most_ulps=64.0)
