"""Drawn nodes of ONNX's products, convolutions, pools, normalizations, losses and optimizers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from benchmarks.definitions.elementwise import FUNCTION_ULPS, draws, number
from benchmarks.definitions.instance import Draw, Instance, Shape, Slot, constant, fixed
from coset.ir.types import DTYPES, DType

SUM_ULPS = 4.0
FLOATS = ("float",)

# ---------------------------------------------------------------- products


@draws("MatMul")
def _product(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    m, k, n = (r.dim() for _ in range(3))
    first, second = r.shapes(2) if r.maybe(0.4) else ((), ())
    one, other = (*first[-2:], m, k), (*second[-2:], k, n)
    if r.maybe(0.2):
        one = (k,)
    elif r.maybe(0.2):
        other = (k,)
    dtype = r.dtype(op, opset)
    return Instance(op, (Slot(dtype, one), Slot(dtype, other)), {}, opset, most_ulps=SUM_ULPS)


@draws("Gemm")
def _gemm(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    m, k, n = (r.dim() for _ in range(3))
    a, b = r.randint(0, 1), r.randint(0, 1)
    dtype = r.dtype(op, opset)
    attributes: dict[str, Any] = {"transA": a, "transB": b}
    if dtype.kind == "float":
        attributes |= {name: number(r) for name in ("alpha", "beta") if r.maybe()}
    shapes: list[Shape] = [(k, m) if a else (m, k), (n, k) if b else (k, n)]
    if opset < 11 or r.maybe(0.7):
        shapes.append(r.choice([(m, n), (n,), (m, 1), (1, n), (1,), ()]))
    return Instance(op, tuple(Slot(dtype, shape) for shape in shapes), attributes, opset, most_ulps=SUM_ULPS)


# ---------------------------------------------------------------- windows


def _window(r: Draw, spatial: int, *, dilated: bool = True, padded: bool = True) -> dict[str, Any]:
    """Strides, dilations and padding of windows over so many dims."""
    found: dict[str, Any] = {}
    if r.maybe(0.7):
        found["strides"] = [r.randint(1, 3) for _ in range(spatial)]
    if dilated and r.maybe():
        found["dilations"] = [r.randint(1, 2) for _ in range(spatial)]
    if padded and r.maybe(0.6):
        found["pads"] = [r.randint(0, 1) for _ in range(2 * spatial)]
    elif padded and r.maybe(0.5) and not any(each > 1 for each in found.get("dilations", ())):
        found["auto_pad"] = r.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    return found


def _sizes(r: Draw, kernel: list[int], given: dict[str, Any]) -> tuple[int, ...]:
    """Sizes of an image that hold a window."""
    dilations = given.get("dilations", [1] * len(kernel))
    return tuple((size - 1) * step + 1 + r.randint(0, 4) for size, step in zip(kernel, dilations, strict=True))


@draws("Conv")
def _convolution(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    spatial = r.choice([1, 2, 2, 3])
    kernel = [r.randint(1, 3) for _ in range(spatial)]
    given = _window(r, spatial)
    group = r.choice([1, 1, 2])
    inner, outer = r.randint(1, 2), group * r.randint(1, 2)
    dtype = r.dtype(op, opset)
    slots = [Slot(dtype, (r.randint(1, 2), group * inner, *_sizes(r, kernel, given))), Slot(dtype, (outer, inner, *kernel))]
    slots += [Slot(dtype, (outer,))] if r.maybe() else []
    attributes = {**given, "group": group, **({"kernel_shape": kernel} if r.maybe() else {})}
    return Instance(op, tuple(slots), attributes, opset, most_ulps=SUM_ULPS)


@draws("ConvTranspose")
def _transposed(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    spatial = r.choice([1, 2, 2])
    kernel = [r.randint(1, 3) for _ in range(spatial)]
    given = _window(r, spatial)
    strides = given.get("strides", [1] * spatial)
    if r.maybe(0.3) and "auto_pad" not in given:
        given["output_padding"] = [r.randint(0, stride - 1) for stride in strides]
    group, inner, outer = r.choice([1, 1, 2]), r.randint(1, 2), r.randint(1, 2)
    dtype = r.dtype(op, opset)
    sizes = tuple(r.randint(2, 4) for _ in range(spatial))
    slots = [Slot(dtype, (r.randint(1, 2), group * inner, *sizes)), Slot(dtype, (group * inner, outer, *kernel))]
    slots += [Slot(dtype, (group * outer,))] if r.maybe() else []
    return Instance(op, tuple(slots), {**given, "group": group}, opset, most_ulps=SUM_ULPS)


@draws("MaxPool", "AveragePool", "LpPool")
def _pool(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=8)
    spatial = r.choice([1, 2, 2, 3])
    kernel = [r.randint(1, 3) for _ in range(spatial)]
    dilated = opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    given = _window(r, spatial, dilated=dilated)
    if "pads" in given:
        given["pads"] = [min(pad, size - 1) for pad, size in zip(given["pads"], kernel * 2, strict=True)]
    if opset >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op] and r.maybe(0.4) and "auto_pad" not in given:
        given["ceil_mode"] = 1
    if op == "AveragePool" and r.maybe():
        given["count_include_pad"] = r.randint(0, 1)
    if op == "LpPool":
        given["p"] = r.randint(1, 4)
    dtype = r.dtype(op, opset)
    shape = (r.randint(1, 2), r.randint(1, 2), *_sizes(r, kernel, given))
    outputs = 1
    if op == "MaxPool" and r.maybe(0.3):
        outputs = 2
        given |= {"storage_order": r.randint(0, 1)} if r.maybe(0.3) else {}
    ulps = FUNCTION_ULPS if op == "LpPool" else SUM_ULPS
    return Instance(op, (Slot(dtype, shape),), {**given, "kernel_shape": kernel}, opset, outputs=outputs, most_ulps=ulps)


@draws("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=1 if op != "GlobalLpPool" else 2)
    attributes = {"p": r.randint(1, 4)} if op == "GlobalLpPool" and r.maybe(0.8) else {}
    shape = r.shape(3, 5, least=1)
    return Instance(op, (Slot(r.dtype(op, opset), shape),), attributes, opset, most_ulps=FUNCTION_ULPS)


@draws("Col2Im")
def _columns(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=18)
    spatial = r.choice([1, 2, 2])
    block = [r.randint(1, 3) for _ in range(spatial)]
    given = _window(r, spatial)
    given.pop("auto_pad", None)
    image = _sizes(r, block, given)
    strides, dilations = (given.get(name, [1] * spatial) for name in ("strides", "dilations"))
    pads = given.get("pads", [0] * 2 * spatial)
    counts = [(image[i] + pads[i] + pads[i + spatial] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(spatial)]
    shape = (r.randint(1, 2), r.randint(1, 2) * prod(block), prod(counts))
    slots = (Slot(r.dtype(op, opset), shape), constant(np.array(image, np.int64)), constant(np.array(block, np.int64)))
    return Instance(op, slots, given, opset, most_ulps=SUM_ULPS)


# ---------------------------------------------------------------- normalizations


def _variances(x: Any) -> Any:
    """Numbers that are no variances made some: magnitudes."""
    return np.abs(np.nan_to_num(x.astype(np.float64), nan=0.5, posinf=4.0, neginf=4.0))


def _epsilon(r: Draw) -> dict[str, Any]:
    return {"epsilon": float(np.float32(r.choice([1e-5, 1e-3, 1e-12, 0.5])))} if r.maybe() else {}


@draws("BatchNormalization")
def _batches(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    training = opset >= 14 and r.maybe(0.4)
    shape = r.shape(2, 4, least=1)
    dtype = r.dtype(op, opset, kinds=FLOATS)
    vector = (shape[1],)
    slots = (Slot(dtype, shape), *[Slot(dtype, vector)] * 3, Slot(dtype, vector, _variances))
    attributes = _epsilon(r)
    if training:
        attributes |= {"training_mode": 1, **({"momentum": 0.25} if r.maybe() else {})}
    return Instance(op, slots, attributes, opset, outputs=3 if training else 1, most_ulps=FUNCTION_ULPS)


@draws("InstanceNormalization", "GroupNormalization")
def _channels(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=6 if op[0] == "I" else 18)
    groups = r.randint(1, 3) if op[0] == "G" else 1
    shape = (r.randint(1, 2), groups * r.randint(1, 2), *r.shape(1, 3, least=1))
    dtype = r.dtype(op, opset)
    vector = (groups if op[0] == "G" and opset < 21 else shape[1],)
    attributes = {**_epsilon(r), **({"num_groups": groups} if op[0] == "G" else {})}
    return Instance(op, (Slot(dtype, shape), Slot(dtype, vector), Slot(dtype, vector)), attributes, opset, most_ulps=FUNCTION_ULPS)


@draws("LayerNormalization", "RMSNormalization")
def _layers(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=17 if op[0] == "L" else 23)
    shape = r.shape(1, 4, least=1)
    axis = r.axis(len(shape))
    dtype = r.dtype(op, opset)
    inner = shape[axis % len(shape) :]
    slots = [Slot(dtype, shape), Slot(dtype, inner)] + ([Slot(dtype, inner)] if op[0] == "L" and r.maybe() else [])
    return Instance(op, tuple(slots), {"axis": axis, **_epsilon(r)}, opset, most_ulps=FUNCTION_ULPS)


@draws("LRN")
def _response(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=1)
    given = {name: float(np.float32(value)) for name, value in (("alpha", 0.5), ("beta", 0.75), ("bias", 2.0)) if r.maybe()}
    shape = r.shape(4, 4, least=1) if r.maybe(0.8) else r.shape(3, 3, least=1)
    return Instance(op, (Slot(r.dtype(op, opset), shape),), {**given, "size": r.choice([1, 2, 3, 5])}, opset, most_ulps=FUNCTION_ULPS)


# ---------------------------------------------------------------- losses


@draws("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def _loss(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=12)
    shape = (r.randint(1, 3), r.randint(1, 4), *r.shape(0, 2, least=1))
    dtype = r.dtype(op, opset, kinds=FLOATS)
    others = (shape[0], *shape[2:])
    ignored = r.choice([None, None, 0, 1, -1, 255])
    classes = [*range(shape[1]), *([ignored] if ignored is not None else [])]
    target = np.array([r.choice(classes) for _ in range(prod(others))], r.choice([np.int64, np.int32])).reshape(others)
    slots: list[Slot | None] = [Slot(dtype, shape), fixed(target)]
    if r.maybe():
        slots.append(Slot(dtype, (shape[1],), lambda w: np.abs(np.nan_to_num(w.astype(np.float64), nan=1, posinf=2, neginf=2)) + 0.5))
    attributes: dict[str, Any] = {"reduction": r.choice(["none", "sum", "mean"])} if r.maybe(0.8) else {}
    attributes |= {} if ignored is None else {"ignore_index": ignored}
    return Instance(op, tuple(slots), attributes, opset, most_ulps=FUNCTION_ULPS)


# ---------------------------------------------------------------- optimizers

TRAINING = "ai.onnx.preview.training"


@draws("Momentum", "Adagrad", "Adam")
def _optimizer(r: Draw, op: str) -> Instance:
    dtype: DType = DTYPES[r.choice(["f32", "f64"])]
    states = {"Momentum": 1, "Adagrad": 1, "Adam": 2}[op]
    count = r.randint(1, 2)
    shapes = [r.shape(0, 3) for _ in range(count)]
    rate = fixed(np.asarray(r.choice([0.1, 1.0, 0.001])).astype(dtype.numpy))
    step = fixed(np.array(r.choice([0, 1, 2, 10]), np.int64))
    groups = [[Slot(dtype, shape) for shape in shapes] for _ in range(2 + states - (op == "Adam"))]
    if op == "Adam":
        groups.append([Slot(dtype, shape, _variances) for shape in shapes])
    elif op == "Adagrad":
        groups[-1] = [Slot(dtype, shape, _variances) for shape in shapes]
    slots = (rate, step, *(slot for group in groups for slot in group))
    attributes: dict[str, Any] = {"norm_coefficient": float(np.float32(r.choice([0.0, 0.25])))}
    if op == "Momentum":
        attributes |= {"alpha": 0.75, "beta": 0.5, "mode": r.choice(["standard", "nesterov"])}
    elif op == "Adagrad":
        attributes |= {"decay_factor": 0.25, "epsilon": 0.5} if r.maybe() else {}
    else:
        attributes |= {"alpha": 0.75, "beta": 0.5, "norm_coefficient_post": 0.25} if r.maybe() else {}
    return Instance(op, slots, attributes, 12, outputs=count * (1 + states), domain=TRAINING, most_ulps=FUNCTION_ULPS)
