"""Quantized ops against ONNX Runtime and `onnx.reference` over drawn types, shapes, granularities and attributes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from tests.dialects.onnx_runs import assert_close, by_reference, by_runtime, factors, model_of, ours, symbolic

INTEGERS = (np.uint8, np.int8, np.uint16, np.int16, ml_dtypes.uint4, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.int2)
FLOATS = (
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float4_e2m1fn,
)  # fmt: skip
OPEN = {0: {0: "n"}}


def bounds(dtype: Any) -> tuple[int, int]:
    limits = ml_dtypes.iinfo(dtype)
    return int(limits.min), int(limits.max)


def granularity(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[tuple[int, ...], dict[str, int]]:
    """The shape of the scales: for the tensor, an axis, or blocks."""
    axis = int(rng.integers(len(shape)))
    chosen = rng.integers(3)
    if chosen == 0:
        return (), {}
    given = {"axis": axis - len(shape) if rng.random() < 0.5 else axis}
    if chosen == 1:
        return (shape[axis],), given
    block = int(rng.integers(1, 4))
    return (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :]), {**given, "block_size": block}


def drawn(seed: int, dtype: Any) -> tuple[np.random.Generator, tuple[int, ...], np.ndarray, np.ndarray, dict[str, int]]:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(2, 7, 2 + seed % 2))
    parts, attributes = granularity(rng, shape)
    scale = (0.05 + rng.random(parts)).astype(np.float32)
    low, high = bounds(dtype) if dtype in INTEGERS else (0, 0)
    zero = rng.integers(low, high, parts, endpoint=True).astype(np.int32).astype(dtype)
    return rng, shape, scale, zero, attributes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: np.dtype(d).name)
def test_quantize_and_dequantize_integers(dtype: Any, seed: int) -> None:
    rng, shape, scale, zero, attributes = drawn(seed, dtype)
    reach = min(400.0, 2.0 * bounds(dtype)[1])
    x = (rng.standard_normal(shape) * reach).astype(np.float32)
    code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs: list[Any] = [x, scale, zero] if seed % 3 else [x, scale]
    if not seed % 3:
        attributes = {**attributes, "output_dtype": code}
    model = model_of("QuantizeLinear", inputs, attributes, opset=25)
    found = ours(model, inputs)
    assert_close(found, by_reference(model, inputs))
    assert_close(symbolic("QuantizeLinear", inputs, attributes, OPEN if scale.ndim < 2 else {}), found)
    back: list[Any] = [found[0], scale, *([zero] if seed % 3 else [])]
    attributes.pop("output_dtype", None)
    model = model_of("DequantizeLinear", back, attributes, opset=25)
    assert_close(ours(model, back), by_reference(model, back))
    assert_close(symbolic("DequantizeLinear", back, attributes, OPEN if scale.ndim < 2 else {}), ours(model, back))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16], ids=lambda d: np.dtype(d).name)
def test_quantization_like_onnx_runtime(dtype: Any, seed: int) -> None:
    rng, shape, scale, zero, attributes = drawn(seed + 100, dtype)
    x = np.concatenate([(rng.standard_normal(shape) * 100).astype(np.float32).reshape(-1), [0.5, 1.5, 2.5, -0.5, 1e30, -1e30]])
    x = np.resize(x.astype(np.float32), shape)
    model = model_of("QuantizeLinear", [x, scale, zero], attributes, opset=21)
    found = ours(model, [x, scale, zero])
    assert_close(found, by_runtime(model, [x, scale, zero]))
    model = model_of("DequantizeLinear", [found[0], scale, zero], attributes, opset=21)
    assert_close(ours(model, [found[0], scale, zero]), by_runtime(model, [found[0], scale, zero]), rtol=1e-6)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_quantize_floats(dtype: Any, saturate: int) -> None:
    rng = np.random.default_rng(7)
    special = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-3, 1e6] if np.dtype(dtype).name != "float4_e2m1fn" else [0.0, 1e6, -1e6]
    x = np.resize(np.concatenate([rng.standard_normal(40) * 300, special]).astype(np.float32), (8, 6))
    inputs: list[Any] = [x, np.float32(1.0), np.zeros((), dtype)]
    model = model_of("QuantizeLinear", inputs, {"saturate": saturate}, opset=25)
    found = ours(model, inputs)
    assert_close(found, by_reference(model, inputs))
    back: list[Any] = [found[0], np.float32(0.25)]
    model = model_of("DequantizeLinear", back, {}, opset=25)
    assert_close(ours(model, back), by_reference(model, back))


@pytest.mark.parametrize("scale_type", [np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("x_type", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32], ids=lambda d: np.dtype(d).name)
def test_the_scale_says_how_precise_the_division_is(x_type: Any, scale_type: Any) -> None:
    x = np.array([-7, 3, 1, 2, 100, 9], x_type)
    scale, zero = np.array(2, scale_type), np.array(3, np.uint8)
    model = model_of("QuantizeLinear", [x, scale, zero], {}, opset=25)
    assert_close(ours(model, [x, scale, zero]), [np.array([0, 5, 3, 4, 53, 7], np.uint8)])  # -3.5 -> -4 + 3; 0.5 -> 0; 4.5 -> 4
    model = model_of("QuantizeLinear", [x, scale, zero], {"precision": 16}, opset=25)
    assert_close(ours(model, [x, scale, zero]), [np.array([0, 5, 3, 4, 53, 7], np.uint8)])


def test_precision_decides_the_rounding() -> None:
    """257 / 1 is 256 in bf16 (8 bits) and 257 in f32."""
    x, scale, zero = np.array([257.0], np.float32), np.float32(1), np.uint16(0)
    for precision, expected in ((16, 256), (1, 257)):
        model = model_of("QuantizeLinear", [x, scale, zero], {"precision": precision}, opset=25)
        assert ours(model, [x, scale, zero])[0][0] == expected


@pytest.mark.parametrize("output", [1, 10, 16])
def test_dequantize_to_a_stated_type(output: int) -> None:
    x, scale = np.arange(-8, 8).astype(ml_dtypes.int4).reshape(4, 4), np.array([0.5, 1, 2, 4], np.float32)
    attributes = {"axis": 1, "output_dtype": output}
    model = model_of("DequantizeLinear", [x, scale], attributes, opset=25)
    assert_close(ours(model, [x, scale]), by_reference(model, [x, scale]))


@pytest.mark.parametrize("seed", range(10))
def test_dynamic_quantization(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((3, 4)) * 3 + [0, 5, -5, 0, 0][seed % 5]).astype(np.float32)
    x = np.zeros_like(x) if seed == 9 else x
    model = model_of("DynamicQuantizeLinear", [x], {}, outputs=3)
    assert_close(ours(model, [x]), by_runtime(model, [x]), rtol=1e-6)


@pytest.mark.parametrize("seed", range(16))
def test_quantized_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = [np.uint8, np.int8][seed % 2], [np.uint8, np.int8][seed // 2 % 2]
    if left == np.int8:
        right = np.int8  # ONNX Runtime has no other pair
    m, k, n = (int(v) for v in rng.integers(1, 6, 3))
    lead = [(), (2,), (2, 3)][seed % 3]
    first = rng.integers(*bounds(left), (*lead, m, k)).astype(left)
    second = rng.integers(*bounds(right), (*lead, k, n) if seed % 2 else (k, n)).astype(right)
    zeros = [rng.integers(*bounds(t), ()).astype(t) for t in (left, right)]
    columns = rng.integers(*bounds(right), n).astype(right) if seed % 4 == 1 and not lead else zeros[1]
    inputs: list[Any] = [first, second, zeros[0], columns][: 2 + seed % 3 if seed % 3 else 4]
    model = model_of("MatMulInteger", inputs, {})
    assert_close(ours(model, inputs), by_runtime(model, inputs))
    scales = [np.float32(v) for v in (0.05 + rng.random(3))]
    inputs = [
        first,
        scales[0],
        zeros[0],
        second,
        scales[1],
        zeros[1],
        scales[2] * np.float32(200),
        rng.integers(*bounds(left), ()).astype(left),
    ]
    model = model_of("QLinearMatMul", inputs, {}, opset=21)
    assert_close(ours(model, inputs), by_runtime(model, inputs))
    if not seed % 2:
        assert_close(symbolic("QLinearMatMul", inputs, {}, {0: {len(lead): "m"}}), ours(model, inputs))


def test_quantized_products_with_scales_for_rows_and_columns() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 255, (3, 4)).astype(np.uint8), rng.integers(-128, 127, (4, 2)).astype(np.int8)
    sa, sb, sy = (rng.random(n).astype(np.float32) + np.float32(0.1) for n in (3, 2, ()))
    za, zb, zy = rng.integers(0, 255, 3).astype(np.uint8), rng.integers(-9, 9, 2).astype(np.int8), np.uint8(100)
    model = model_of("QLinearMatMul", [a, sa, za, b, sb, zb, sy * np.float32(100), zy], {}, opset=21)
    product = (a.astype(np.int32) - za[:, None]) @ (b.astype(np.int32) - zb)
    scaled = np.rint(product.astype(np.float32) * (sa[:, None] * sb / (sy * np.float32(100)))) + 100
    assert_close(ours(model, [a, sa, za, b, sb, zb, sy * np.float32(100), zy]), [np.clip(scaled, 0, 255).astype(np.uint8)])


@pytest.mark.parametrize("seed", range(12))
def test_quantized_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = 1 + seed % 2
    channels, outputs = group * int(rng.integers(1, 4)), group * int(rng.integers(1, 4))
    x_type, w_type = (np.uint8, np.uint8) if seed % 3 == 0 else (np.uint8, np.int8) if seed % 3 == 1 else (np.int8, np.int8)
    x = rng.integers(*bounds(x_type), (2, channels, 5, 6)).astype(x_type)
    w = rng.integers(*factors(w_type), (outputs, channels // group, 3, 2)).astype(w_type)
    each = seed % 2 and w_type is np.int8
    scale = (0.01 + rng.random(outputs if each else ())).astype(np.float32)
    w_zero = np.zeros(outputs if each else (), w_type) if w_type is np.int8 else w_type(3)
    inputs: list[Any] = [x, np.float32(0.1), x_type(7), w, scale, w_zero, np.float32(2.5), x_type(5)]
    if seed % 4 > 1:
        inputs.append(rng.integers(-500, 500, outputs).astype(np.int32))
    attributes: dict[str, Any] = {"group": group, "strides": [1 + seed % 2, 1], "dilations": [1, 1 + seed // 2 % 2]}
    attributes.update({"pads": [1, 0, 2, 1]} if seed % 3 else {"auto_pad": "SAME_LOWER", "dilations": [1, 1]})
    model = model_of("QLinearConv", inputs, attributes)
    assert_close(ours(model, inputs), by_runtime(model, inputs))
    names = {} if "auto_pad" in attributes else {0: {0: "n", 2: "h"}}
    assert_close(symbolic("QLinearConv", inputs, attributes, names), ours(model, inputs))


@pytest.mark.parametrize(("left", "right"), [((3,), (3, 2)), ((2, 3), (3,)), ((3,), (3,))], ids=str)
def test_quantized_products_of_vectors(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """NumPy's products of vectors, with numbers written with a dim of 1."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 255, left).astype(np.uint8), rng.integers(0, 255, right).astype(np.uint8)
    one, zero = np.ones(1, np.float32), np.array(7, np.uint8)
    product = (a.astype(np.int32) - 7) @ (b.astype(np.int32) - 7)
    inputs: list[Any] = [a, one, zero, b, one, zero, np.float32([1000]), zero]
    expected = np.clip(np.rint(product.astype(np.float32) * (np.float32(1) / np.float32(1000))) + 7, 0, 255).astype(np.uint8)
    assert_close(ours(model_of("QLinearMatMul", inputs, {}, opset=21), inputs), [expected])
