"""Drawn nodes of ONNX Runtime's own ops (com.microsoft) that are defined in the rule language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.definitions.elementwise import FUNCTION_ULPS, draws, number
from benchmarks.definitions.instance import Draw, Instance, Shape, Slot, constant, fixed
from benchmarks.definitions.quantized import scale, zero
from benchmarks.definitions.windows import _sizes, _window
from coset.ir.types import BOOL, DTYPES

DOMAIN, OPSET = "com.microsoft", 17
F32 = DTYPES["f32"]
ULPS = 2 * FUNCTION_ULPS


def node(
    op: str, slots: Sequence[Slot | None], attributes: dict[str, Any] | None = None, *, outputs: int = 1, ulps: float = ULPS
) -> Instance:
    """A node of the domain."""
    return Instance(op, tuple(slots), attributes or {}, OPSET, outputs, DOMAIN, most_ulps=ulps)


def f32(*shape: int) -> Slot:
    return Slot(F32, shape)


@draws("ms.Gelu", "ms.QuickGelu", "ms.FastGelu", "ms.BiasGelu", "ms.ScaledSiLU", "ms.GatedAdd")
def _activation(r: Draw, op: str) -> Instance:
    name = op.removeprefix("ms.")
    shape = r.shape(1, 3) if r.maybe() else (r.randint(1, 2), 300)
    slots, attributes = [f32(*shape)], {}
    if name in ("QuickGelu", "ScaledSiLU") and r.maybe():
        attributes = {"alpha": number(r)}
    if name == "BiasGelu" or (name == "FastGelu" and r.maybe()):
        slots.append(f32(shape[-1]))
    if name == "ScaledSiLU" and r.maybe():
        slots, attributes = [*slots, f32()], {}
    if name == "GatedAdd":
        slots += [f32(*shape), f32(*shape[:-1], 1)]
    return node(name, slots, attributes)


def _matrices(r: Draw, a: bool, b: bool) -> tuple[Shape, Shape]:
    m, k, n = (r.randint(1, 4) for _ in range(3))
    return ((k, m) if a else (m, k)), ((n, k) if b else (k, n))


@draws("ms.FusedMatMul", "ms.TransposeMatMul")
def _product(r: Draw, op: str) -> Instance:
    name = op.removeprefix("ms.")
    a, b = r.maybe(), r.maybe()
    one, other = _matrices(r, a, b)
    first, second = r.choice([((), ()), ((2,), ()), ((2,), (2,)), ((2, 1), (3,)), ((), (2,))])
    attributes: dict[str, Any] = {"transA": int(a), "transB": int(b), **({"alpha": number(r)} if r.maybe() else {})}
    left, right = (*first, *one), (*second, *other)
    if name == "FusedMatMul" and first == second == (2,) and r.maybe():
        if r.maybe():
            attributes["transBatchA"], left = 1, (left[1], left[0], left[2])
        else:
            attributes["transBatchB"], right = 1, (right[1], right[0], right[2])
    return node(name, [f32(*left), f32(*right)], attributes)


ACTIVATIONS = {"Relu": 0, "Tanh": 0, "Sigmoid": 0, "LeakyRelu": 1, "Clip": 2, "HardSigmoid": 2}


@draws("ms.FusedConv")
def _convolution(r: Draw, op: str) -> Instance:
    activation = r.choice(list(ACTIVATIONS))
    parameters = sorted(float(np.float32(r.choice([-0.5, 0.25, 0.75, 1.5]))) for _ in range(ACTIVATIONS[activation]))
    kernel = [r.randint(1, 3), r.randint(1, 3)]
    given = _window(r, 2)
    given.pop("auto_pad", None)
    inner, outer, group = r.randint(1, 2), r.randint(1, 2), r.choice([1, 2])
    slots = [f32(1, group * inner, *_sizes(r, kernel, given)), f32(group * outer, inner, *kernel)]
    slots += [f32(group * outer)] if r.maybe() else []
    return node(
        "FusedConv", slots, {**given, "group": group, "activation": activation, **({"activation_params": parameters} if parameters else {})}
    )


@draws("ms.FusedGemm")
def _gemm(r: Draw, op: str) -> Instance:
    a, b = r.maybe(), r.maybe()
    one, other = _matrices(r, a, b)
    rows, columns = one[1 if a else 0], other[0 if b else 1]
    activation = r.choice(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softplus", "Softsign"])
    attributes: dict[str, Any] = {"transA": int(a), "transB": int(b), "activation": activation}
    attributes |= {name: number(r) for name in ("alpha", "beta") if r.maybe()}
    attributes |= {"activation_alpha": 0.25, "activation_beta": 0.5} if activation in ("LeakyRelu", "HardSigmoid", "Elu") else {}
    return node("FusedGemm", [f32(*one), f32(*other), f32(*r.choice([(columns,), (rows, columns), (1,)]))], attributes)


@draws("ms.MatMulNBits")
def _few_bits(r: Draw, op: str) -> Instance:
    bits, block = r.choice([4, 4, 8]), r.choice([16, 32])
    columns, inner = r.randint(1, 5), r.choice([16, 32, 40])
    blocks = -(-inner // block)
    random = np.random.default_rng(r.randrange(1 << 30))
    b = random.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
    points = random.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
    scales = np.abs(random.normal(size=(columns, blocks))).astype(np.float32)
    slots = [f32(*r.choice([(3,), (1,), (2, 2)]), inner), constant(b), constant(scales)] + ([constant(points)] if r.maybe() else [])
    return node("MatMulNBits", slots, {"K": inner, "N": columns, "bits": bits, "block_size": block}, ulps=64)


@draws("ms.MatMulInteger16", "ms.CDist")
def _pairs(r: Draw, op: str) -> Instance:
    if op == "ms.CDist":
        k = r.randint(1, 5)
        metric = r.choice(["sqeuclidean", "euclidean"])
        return node("CDist", [f32(r.randint(1, 4), k), f32(r.randint(1, 4), k)], {"metric": metric}, ulps=64)
    one, other = _matrices(r, False, False)
    i16 = DTYPES["i16"]
    return node("MatMulInteger16", [Slot(i16, one), Slot(i16, other)])


# ---------------------------------------------------------------- normalizations


@draws("ms.SkipLayerNormalization", "ms.SkipSimplifiedLayerNormalization", "ms.GatedRMSNorm")
def _normalized(r: Draw, op: str) -> Instance:
    name = op.removeprefix("ms.")
    shape = (r.randint(1, 2), r.randint(1, 3), 4 * r.randint(1, 2))
    epsilon = {"epsilon": float(np.float32(r.choice([1e-5, 1e-12, 0.5])))} if r.maybe() else {}
    if name == "GatedRMSNorm":
        groups = r.choice([4, shape[-1]])
        return node(name, [f32(*shape), f32(groups), f32(*shape)], {**epsilon, "activation": r.choice(["silu", "sigmoid"])})
    skip = r.choice([shape, (1, *shape[1:]), shape[1:]])
    slots = [f32(*shape), f32(*skip), f32(shape[-1])]
    if r.maybe():
        slots += [f32(shape[-1])] * r.randint(1, 2 if name == "SkipLayerNormalization" else 1)
    return node(name, slots, epsilon)


@draws("ms.EmbedLayerNormalization")
def _embedded(r: Draw, op: str) -> Instance:
    batch, length, size = r.randint(1, 2), r.randint(1, 4), 4
    random = np.random.default_rng(r.randrange(1 << 30))
    ids = [fixed(random.integers(0, most, (batch, length)).astype(np.int32)) for most in (6, 2)]
    kinds = r.maybe()
    mask = fixed(random.integers(0, 2, (batch, length)).astype(np.int32)) if r.maybe() else None
    tables = [f32(6, size), f32(length + 1, size)]
    slots = [ids[0], ids[1] if kinds else None, *tables, f32(2, size) if kinds else None, f32(size), f32(size), mask]
    return node("EmbedLayerNormalization", slots, {"epsilon": 1e-5}, outputs=2)


# ---------------------------------------------------------------- attention


@draws("ms.RotaryEmbedding")
def _rotary(r: Draw, op: str) -> Instance:
    batch, length, heads, half = r.randint(1, 2), r.randint(1, 3), r.randint(1, 2), r.choice([2, 4])
    random = np.random.default_rng(r.randrange(1 << 30))
    positions = random.integers(0, 8, (batch, length)) if r.maybe() else np.array([r.randint(0, 4)])
    partial = r.maybe(0.4)
    attributes = {"interleaved": r.randint(0, 1), "num_heads": heads, **({"rotary_embedding_dim": 2 * half} if partial else {})}
    size = 2 * half + (4 if partial else 0)
    return node(
        "RotaryEmbedding", [f32(batch, length, heads * size), fixed(positions.astype(np.int64)), f32(10, half), f32(10, half)], attributes
    )


def _mask(r: Draw, batch: int, length: int) -> Slot | None:
    values = [[1] + [r.randint(0, 1) for _ in range(length - 1)] for _ in range(batch)]
    return fixed(np.array(values, np.int32)) if r.maybe() else None


@draws("ms.Attention")
def _attention(r: Draw, op: str) -> Instance:
    batch, length, heads, size = r.randint(1, 2), r.randint(1, 4), r.randint(1, 2), r.choice([2, 4])
    width = 6
    extra = f32(r.choice([1, batch]), r.choice([1, heads]), length, length) if r.maybe(0.3) else None
    attributes: dict[str, Any] = {"num_heads": heads, "unidirectional": r.randint(0, 1), **({"scale": 0.5} if r.maybe() else {})}
    attributes |= {"mask_filter_value": -50.0} if r.maybe(0.3) else {}
    slots = [f32(batch, length, width), f32(width, 3 * heads * size), f32(3 * heads * size), _mask(r, batch, length), None, extra]
    return node("Attention", slots, attributes, ulps=128)


@draws("ms.MultiHeadAttention")
def _heads(r: Draw, op: str) -> Instance:
    batch, length, keys, heads, size, values = r.randint(1, 2), r.randint(1, 3), r.randint(1, 4), r.randint(1, 2), r.choice([2, 4]), 2
    extra = f32(r.choice([1, batch]), r.choice([1, heads]), length, keys) if r.maybe(0.3) else None
    bias = f32(heads * (2 * size + values)) if r.maybe() else None
    attributes: dict[str, Any] = {"num_heads": heads, **({"scale": 0.5} if r.maybe() else {})}
    slots = [
        f32(batch, length, heads * size),
        f32(batch, keys, heads * size),
        f32(batch, keys, heads * values),
        bias,
        _mask(r, batch, keys),
        extra,
    ]
    return node("MultiHeadAttention", slots, attributes, ulps=128)


# ---------------------------------------------------------------- quantized


@draws("ms.QLinearAdd", "ms.QLinearMul", "ms.QLinearSigmoid", "ms.QLinearLeakyRelu", "ms.QLinearGlobalAveragePool", "ms.QLinearWhere")
def _quantized(r: Draw, op: str) -> Instance:
    name = op.removeprefix("ms.")
    kind = DTYPES[r.choice(["u8", "i8"])]
    end = [scale(r), zero(r, kind)]
    if name in ("QLinearAdd", "QLinearMul", "QLinearWhere"):
        one, other = r.shapes(2)
        pairs = [[Slot(kind, shape), scale(r), zero(r, kind)] for shape in (one, other)]
        head = [Slot(BOOL, one)] if name == "QLinearWhere" else []
        return node(name, [*head, *pairs[0], *pairs[1], *end])
    if name == "QLinearGlobalAveragePool":
        last = r.randint(0, 1)
        return node(
            name,
            [Slot(DTYPES["u8"], (r.randint(1, 2), 3, 4, 2)), scale(r), zero(r, DTYPES["u8"]), scale(r), zero(r, DTYPES["u8"])],
            {"channels_last": last},
        )
    attributes = {"alpha": number(r)} if name == "QLinearLeakyRelu" else {}
    return node(name, [Slot(kind, r.wide()), scale(r), zero(r, kind), *end], attributes)


@draws("ms.MatMulIntegerToFloat", "ms.QGemm")
def _integer_product(r: Draw, op: str) -> Instance:
    """Factors of 7 bits, as those of MatMulInteger."""
    other = DTYPES[r.choice(["u8", "i8"])]
    turned = r.maybe() and op == "ms.QGemm"
    one, second = _matrices(r, False, turned)
    columns = second[0 if turned else 1]
    a, b = Slot(DTYPES["u8"], one), Slot(other, second, lambda y: y // 2)
    zero_a, zero_b = zero(r, DTYPES["u8"]), zero(r, other)
    if op == "ms.QGemm":
        bias = Slot(DTYPES["i32"], (columns,), lambda c: c % 1000) if r.maybe() else None
        end = [scale(r), zero(r, DTYPES["u8"])] if r.maybe() else []
        alpha = {"alpha": number(r)} if r.maybe() else {}
        return node("QGemm", [a, scale(r), zero_a, b, scale(r), zero_b, bias, *end], {"transB": int(turned), **alpha})
    spread = r.choice([(), (columns,)])
    points = [zero_a, zero(r, other, spread)] if r.maybe() else []
    more = [f32(columns)] if r.maybe() and points else []
    return node("MatMulIntegerToFloat", [a, b, scale(r), scale(r, spread), *points, *more], ulps=64)


# ---------------------------------------------------------------- streams


@draws("ms.BranchwiseRMSNorm", "ms.HyperConnectionPreMix", "ms.HyperConnectionPostMix", "ms.LinearAttentionGate", "ms.EngramGate")
def _streams(r: Draw, op: str) -> Instance:
    name = op.removeprefix("ms.")
    batch, length, branches, size = (r.randint(1, 3) for _ in range(4))
    whole = (batch, length, branches, size)
    epsilon = {"epsilon": float(np.float32(r.choice([1e-5, 0.1])))} if r.maybe() else {}
    if name == "BranchwiseRMSNorm":
        return node(name, [f32(*whole)] + ([f32(branches, size)] if r.maybe() else []), epsilon)
    if name == "HyperConnectionPreMix":
        return node(
            name, [f32(*whole), f32(*r.choice([whole[:3], (*whole[:3], 1), whole]))], {"reduction_scale": number(r)} if r.maybe() else {}
        )
    if name == "HyperConnectionPostMix":
        gates, mix = f32(*r.choice([whole[:3], (*whole[:3], 1), whole])), f32(*whole[:3], branches) if r.maybe() else None
        return node(name, [f32(*whole), f32(batch, length, size), gates, mix])
    if name == "LinearAttentionGate":
        row = (batch, length, size)
        return node(name, [f32(*row), f32(size), f32(size), f32(*row)], outputs=2)
    return node(
        name,
        [f32(*whole), f32(*whole), f32(batch, length, size), f32(branches, size), f32(branches, size), f32(branches, size)],
        epsilon,
        outputs=2,
    )
