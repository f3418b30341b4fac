"""Means, variances and norms of 16-bit floats whose sums, squares or counts are more than their dtype holds, but whose results are not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from coset.comparing.reference import values_of
from coset.frontends.onnx.model import import_model

SHAPE = (2, 8, 96, 96)
WIDE = tuple(range(2, 4))
F16, BF16 = TensorProto.FLOAT16, TensorProto.BFLOAT16


def standardized(x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def grouped(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return standardized(x.reshape(2, 2, -1), (2,)).reshape(x.shape)


def neighbours(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Sums over three channels."""
    wide = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    return np.asarray(wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:])


CASES: dict[str, tuple[tuple[int, ...], dict[str, Any], Any]] = {
    "LayerNormalization": ((96,), {"axis": -1}, lambda x: standardized(x, (3,))),
    "RMSNormalization": ((96,), {"axis": -1}, lambda x: x / np.sqrt((x * x).mean(3, keepdims=True) + 1e-5)),
    "InstanceNormalization": ((8,), {}, lambda x: standardized(x, WIDE)),
    "GroupNormalization": ((8,), {"num_groups": 2}, grouped),
    "ReduceMean": ((), {}, lambda x: x.mean(WIDE, keepdims=True)),
    "GlobalAveragePool": ((), {}, lambda x: x.mean(WIDE, keepdims=True)),
    "MeanVarianceNormalization": ((), {"axes": [2, 3]}, lambda x: standardized(x, WIDE)),
    "LpNormalization": ((), {"axis": -1, "p": 2}, lambda x: x / np.sqrt((x * x).sum(3, keepdims=True))),
    "LpPool": ((), {"kernel_shape": [96, 96], "p": 2}, lambda x: np.sqrt((x * x).sum(WIDE, keepdims=True))),
    "GlobalLpPool": ((), {"p": 3}, lambda x: ((x**3).sum(WIDE, keepdims=True)) ** (1 / 3)),
    "LRN": ((), {"size": 3, "alpha": 1.0, "beta": 0.5}, lambda x: x / np.sqrt(1 + neighbours(x * x) / 3)),
    "ReduceL2": ((), {}, lambda x: np.sqrt((x * x).sum(WIDE, keepdims=True))),
    "ReduceLogSum": ((), {}, lambda x: np.log(x.sum(WIDE, keepdims=True))),
}
"""The sizes of scale and bias, the attributes, and what the node is of numbers that do not round."""


@pytest.mark.parametrize("code", [F16, BF16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_statistics_of_narrow_floats_do_not_overflow(name: str, code: int) -> None:
    """Rows of 9,216 and groups of 36,864 numbers between 200 and 400: a square or a sum is more than f16 holds."""
    sides, attributes, expected = CASES[name]
    dtype = np.dtype(np.float16 if code == F16 else ml_dtypes.bfloat16)
    factor = 0.5 if name == "ReduceL2" else 1.0
    x = (np.random.default_rng(3).uniform(200, 400, SHAPE) * factor).astype(dtype)
    wanted = expected(x.astype(np.float64))
    inputs = [helper.make_tensor_value_info("x", code, SHAPE)]
    feed = {"x": x}
    values = {"scale": 1.0, "bias": 0.0} if sides else {}
    for side, value in list(values.items())[: 1 if name == "RMSNormalization" else 2]:
        inputs.append(helper.make_tensor_value_info(side, code, sides))
        feed[side] = np.full(sides, value, dtype)
    names = [one.name for one in inputs]
    constants = []
    if name.startswith("Reduce"):
        constants, names = [helper.make_tensor("axes", TensorProto.INT64, [2], WIDE)], [*names, "axes"]
    node, result = helper.make_node(name, names, ["y"], **attributes), helper.make_tensor_value_info("y", code, wanted.shape)
    graph = helper.make_graph([node], "g", inputs, [result], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(model)
    (found,) = values_of(import_model(model), feed).values()
    assert found.dtype == dtype
    assert np.allclose(found.astype(np.float64), wanted, rtol=2e-3 if code == F16 else 1.6e-2, atol=2e-3 if code == F16 else 1.6e-2)


@pytest.mark.parametrize("code", [F16, BF16], ids=["f16", "bf16"])
def test_a_batch_in_training_is_normalized_in_f32(code: int) -> None:
    """A variance of 120,000, of which f16 holds neither the squares nor the mean, but a tenth."""
    dtype = np.dtype(np.float16 if code == F16 else ml_dtypes.bfloat16)
    x = np.random.default_rng(4).uniform(-600, 600, SHAPE).astype(dtype)
    names = ("x", "scale", "bias", "mean", "var")
    feed = {"x": x, **{name: np.full(8, value, dtype) for name, value in zip(names[1:], (1.0, 0.0, 0.0, 1.0), strict=True)}}
    node = helper.make_node("BatchNormalization", names, ["y", "m", "v"], training_mode=1, momentum=0.9)
    inputs = [helper.make_tensor_value_info(name, code, value.shape) for name, value in feed.items()]
    results = [helper.make_tensor_value_info(name, code, shape) for name, shape in (("y", SHAPE), ("m", (8,)), ("v", (8,)))]
    model = helper.make_model(helper.make_graph([node], "g", inputs, results), opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    y, m, v = (value.astype(np.float64) for value in values_of(import_model(model), feed).values())
    wide = x.astype(np.float64)
    mean, variance = wide.mean((0, 2, 3)), wide.var((0, 2, 3))
    each = (slice(None), *(None,) * 2)
    close = 2e-3 if code == F16 else 1.6e-2
    assert np.allclose(y, (wide - mean[each]) / np.sqrt(variance[each] + 1e-5), rtol=close, atol=close)
    assert np.allclose(m, 0.1 * mean, rtol=close, atol=close) and np.allclose(v, 0.9 + 0.1 * variance, rtol=close)
