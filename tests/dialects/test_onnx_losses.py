"""ONNX's losses and plain normalizations against `onnx.reference` and ONNX Runtime over drawn shapes, types and attributes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.dialects.onnx_runs import assert_close, by_reference, by_runtime, model_of, ours, symbolic

FLOATS = (np.float32, np.float64, np.float16)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses(op: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = FLOATS[seed % 3]
    shape = (int(rng.integers(1, 5)), int(rng.integers(2, 6)), *(int(n) for n in rng.integers(1, 4, seed % 4)))
    x = rng.standard_normal(shape).astype(dtype)
    target = rng.integers(0, shape[1], (shape[0], *shape[2:])).astype([np.int64, np.int32][seed % 2])
    attributes: dict[str, object] = {"reduction": ["none", "sum", "mean"][int(rng.integers(3))]}
    if rng.random() < 0.6:
        attributes["ignore_index"] = ignored = int(rng.choice([-1, -100, 0, shape[1] - 1, shape[1] + 4]))
        target = np.where(rng.random(target.shape) < 0.3, target.dtype.type(ignored), target)
        if (target == ignored).all():
            target.reshape(-1)[0] = (ignored + 1) % shape[1]
    inputs = [x, target, *([rng.random(shape[1]).astype(dtype) + dtype(0.1)] if rng.random() < 0.5 else [])]
    outputs = 2 if op.startswith("Softmax") else 1
    model = model_of(op, inputs, attributes, outputs=outputs)
    tolerance = {"rtol": 4e-3, "atol": 4e-3} if dtype is np.float16 else {}
    found = ours(model, inputs)
    assert_close(found, by_reference(model, inputs), **tolerance)
    names = {0: {0: "n"}, 1: {0: "n"}}
    assert_close(symbolic(op, inputs, attributes, names, outputs=outputs), found, rtol=1e-6 if dtype is not np.float16 else 2e-3)


def test_a_target_that_is_ignored_does_not_spread_nan() -> None:
    x = np.array([[1.0, np.nan], [2.0, 3.0]], np.float32)
    model = model_of("NegativeLogLikelihoodLoss", [x, np.array([1, 0])], {"ignore_index": 1})
    assert_close(ours(model, [x, np.array([1, 0])]), [np.float32(-2.0)])


@pytest.mark.parametrize("seed", range(16))
def test_lp_normalization(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(tuple(int(n) for n in rng.integers(1, 5, 1 + seed % 4))).astype(FLOATS[seed % 2])
    x[rng.random(x.shape) < 0.3] = 0
    attributes = {"axis": int(rng.integers(-x.ndim, x.ndim)), "p": 1 + seed // 2 % 2}
    model = model_of("LpNormalization", [x], attributes, opset=22)
    assert_close(ours(model, [x]), by_runtime(model, [x]))
    assert_close(symbolic("LpNormalization", [x], attributes, {0: {0: "n"}}), ours(model, [x]))


def response_normalized(x: np.ndarray, size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    """The formula of the standard, channel by channel (`onnx.reference` loops over the batch instead)."""
    squares = np.zeros_like(x)
    for c in range(x.shape[1]):
        first, last = max(0, c - (size - 1) // 2), min(x.shape[1] - 1, c + size // 2)
        squares[:, c] = (x[:, first : last + 1] ** 2).sum(axis=1)
    return x / (bias + alpha / size * squares) ** beta


@pytest.mark.parametrize("seed", range(12))
def test_local_response_normalization(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, int(rng.integers(1, 8)), 3, 2)).astype(np.float32)
    attributes = {"size": 1 + seed % 5, "alpha": 0.3 + seed / 10, "beta": 0.5 + seed % 3 / 4, "bias": 1.5}
    model = model_of("LRN", [x], attributes)
    found = ours(model, [x])
    assert_close(found, [response_normalized(x, **attributes).astype(np.float32)])
    if attributes["size"] % 2:  # ONNX Runtime takes odd sizes only
        assert_close(found, by_runtime(model, [x]))
    assert_close(symbolic("LRN", [x], attributes, {0: {0: "n", 2: "h"}}), found)


@pytest.mark.parametrize("axes", [None, (0,), (1, 2), (0, 2, 3), (-1,)])
def test_mean_variance_normalization(axes: tuple[int, ...] | None) -> None:
    x = np.random.default_rng(1).standard_normal((3, 2, 4, 3)).astype(np.float32)
    attributes = {} if axes is None else {"axes": axes}
    model = model_of("MeanVarianceNormalization", [x], attributes)
    assert_close(ours(model, [x]), by_reference(model, [x]), rtol=1e-4)
    assert_close(symbolic("MeanVarianceNormalization", [x], attributes, {0: {0: "n"}}), ours(model, [x]))
