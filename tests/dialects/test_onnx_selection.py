"""ONNX's selecting ops and normalizations against ONNX Runtime, over drawn shapes, types and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_oracle import same

RNG = np.random.default_rng(7)


def array(dtype: Any, *shape: int) -> Any:
    """Small numbers with many equal ones."""
    return RNG.integers(0 if np.dtype(dtype).kind in "bu" else -3, 4, size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3), (0, 3), (2, 3, 0), (1, 1)], ids=str)
@pytest.mark.parametrize("k", [None, -2, 0, 1, 9])
@pytest.mark.parametrize("upper", [0, 1])
def test_trilu(dtype: Any, shape: tuple[int, ...], k: int | None, upper: int) -> None:
    inputs = [array(dtype, *shape)] if k is None else [array(dtype, *shape), np.array(k)]
    same("Trilu", inputs, {"upper": upper}, opset=14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("shape", "axis", "k"), [((7,), 0, 3), ((3, 5), -1, 5), ((4, 6, 2), 1, 2), ((2, 3), 0, 0), ((2, 3, 4), -3, 1)])
def test_top_k(dtype: Any, largest: int, shape: tuple[int, ...], axis: int, k: int) -> None:
    same("TopK", [array(dtype, *shape), np.array([k])], {"axis": axis, "largest": largest}, outputs=2, opset=11)


@pytest.mark.parametrize("index", [np.int64, np.int32, np.float32])
@pytest.mark.parametrize(("shape", "axis"), [((3,), -1), ((2, 3), 0), ((2, 3), 1), ((), -1), ((2, 0), -2)])
def test_one_hot(index: Any, shape: tuple[int, ...], axis: int) -> None:
    indices = RNG.integers(-4, 4, size=shape).astype(index)
    depth = np.array(4, np.int64 if index is np.int64 else index)
    values = np.array([-2, 5], np.float32)
    same("OneHot", [indices, depth, values], {"axis": axis}, opset=11)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(6,), (3, 4), (2, 3, 2), (0,), (2, 0)], ids=str)
def test_non_zero(dtype: Any, shape: tuple[int, ...]) -> None:
    same("NonZero", [array(dtype, *shape)], {}, opset=13)


@pytest.mark.parametrize(("shape", "axis", "length"), [((5,), 0, 5), ((3, 4), 1, 4), ((3, 4), -2, 2), ((2, 3), None, 6), ((2, 3), None, 3)])
def test_compress(shape: tuple[int, ...], axis: int | None, length: int) -> None:
    attributes = {} if axis is None else {"axis": axis}
    same("Compress", [array(np.float32, *shape), array(np.bool_, length)], attributes, opset=11)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8])
@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [((9,), None), ((3, 4), None), ((6, 2), 0), ((2, 5, 2), 1), ((2, 3, 4), -1), ((1,), 0)])
def test_unique(dtype: Any, ordered: int, shape: tuple[int, ...], axis: int | None) -> None:
    attributes = {"sorted": ordered, **({} if axis is None else {"axis": axis})}
    same("Unique", [array(dtype, *shape)], attributes, outputs=4, opset=11)


@pytest.mark.parametrize("dtype", [1, 7, 6, 11])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_eye_like(dtype: int, k: int) -> None:
    same("EyeLike", [array(np.int32, 3, 4)], {"dtype": dtype, "k": k}, opset=9)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_determinant(size: int) -> None:
    same("Det", [RNG.normal(size=(2, size, size)).astype(np.float32)], {}, opset=11, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("bias", [False, True])
def test_layer_normalization(dtype: Any, axis: int, bias: bool) -> None:
    shape = (2, 3, 4)
    x, scale, shift = (RNG.normal(size=s).astype(dtype) for s in (shape, shape[axis % 3 :], shape[axis % 3 :]))
    inputs = [x, scale, shift] if bias else [x, scale]
    same("LayerNormalization", inputs, {"axis": axis, "epsilon": 0.01}, outputs=3, opset=17, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize(("channels", "groups"), [(4, 2), (4, 4), (6, 1)])
def test_group_normalization(opset: int, channels: int, groups: int) -> None:
    weights = groups if opset == 18 else channels
    inputs = [RNG.normal(size=(2, channels, 3, 2)).astype(np.float32), *(RNG.normal(size=weights).astype(np.float32) for _ in range(2))]
    same("GroupNormalization", inputs, {"num_groups": groups}, opset=opset, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 2, 3, 5), (2, 1, 2, 2, 2)], ids=str)
def test_instance_normalization(shape: tuple[int, ...]) -> None:
    inputs = [RNG.normal(size=shape).astype(np.float32), *(RNG.normal(size=shape[1]).astype(np.float32) for _ in range(2))]
    same("InstanceNormalization", inputs, {"epsilon": 0.1}, opset=6, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("scale", [(), (4,), (3, 4)])
def test_rms_normalization(axis: int, scale: tuple[int, ...]) -> None:
    scale = scale[-(3 - axis % 3) :] if scale else ()
    inputs = [RNG.normal(size=(2, 3, 4)).astype(np.float32), RNG.normal(size=scale).astype(np.float32)]
    same("RMSNormalization", inputs, {"axis": axis}, opset=23, rtol=1e-4, atol=1e-5)
