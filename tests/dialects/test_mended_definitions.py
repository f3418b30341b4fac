"""What drawing definitions beside the runtimes found wrong (`python -m benchmarks.definition_attack`), with the right values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_runs import by_runtime, model_of, ours

from coset.ir.evaluate import evaluate
from coset.ir.term import input_term, make
from coset.ir.types import F64, TensorType


def both(
    op: str, inputs: list[Any], attributes: dict[str, Any] | None = None, *, opset: int = 22, domain: str = "", outputs: int = 1
) -> Any:
    """Our results, which are ONNX Runtime's."""
    model = model_of(op, inputs, attributes, opset=opset, domain=domain, outputs=outputs)
    found, wanted = ours(model, inputs), by_runtime(model, inputs)
    for mine, other in zip(found, wanted, strict=True):
        assert mine.dtype == other.dtype and mine.shape == other.shape
        np.testing.assert_allclose(mine.astype(np.float64), other.astype(np.float64), rtol=2e-3, atol=1e-40)
    return found[0]


def test_the_length_of_large_integers_does_not_wrap_around() -> None:
    assert both("ReduceL2", [np.int32([927089923])], {"keepdims": 0}, opset=13) == 927089923
    assert both("ReduceL2", [np.int32([[60000, 80000]])], {"keepdims": 0}, opset=13) == 100000


def test_the_logarithm_of_a_large_sum_of_integers_does_not_wrap_around() -> None:
    assert both("ReduceLogSum", [np.int32([1 << 30] * 3)], {"keepdims": 0}, opset=13) == 21  # log(3 * 2^30) = 21.89


@pytest.mark.parametrize("include", [0, 1])
def test_the_mean_of_a_window_of_halves_does_not_overflow(include: int) -> None:
    x = np.full((1, 1, 3, 3), 10000, np.float16)
    found = both("AveragePool", [x], {"kernel_shape": [3, 3], "count_include_pad": include})
    np.testing.assert_array_equal(found, np.float16([[[[10000]]]]))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_loss_of_many_halves_does_not_overflow(weighted: bool) -> None:
    x, target = np.full((100, 2), -900, np.float16), np.zeros(100, np.int64)
    weights = [np.float16([800, 1])] if weighted else []
    assert both("NegativeLogLikelihoodLoss", [x, target, *weights], {"reduction": "mean"}) == np.float16(900)


def test_integers_beyond_halves_are_dequantized_in_f32() -> None:
    x, scale = np.int32([170025, -4097, 3]), np.float16(0.02)
    found = both("DequantizeLinear", [x, scale], opset=21)
    np.testing.assert_allclose(found.astype(np.float64), np.float32(scale) * x, rtol=1e-3)
    assert np.isfinite(found).all()


def test_blocks_of_a_vector_have_their_own_scales() -> None:
    x, scale = np.int8([1, 2, 3, 4, 5]), np.float32([1, 10, 100])
    given = {"axis": 0, "block_size": 2}
    np.testing.assert_array_equal(both("DequantizeLinear", [x, scale], given, opset=21), np.float32([1, 2, 30, 40, 500]))


def test_the_softplus_of_a_gate_does_not_overflow() -> None:
    a, bias, scale = np.float32([[[100.0, -100.0]]]), np.float32([20.0, 0.0]), np.float32([-1.0, 2.0])
    found = both("LinearAttentionGate", [a, bias, scale, a], opset=17, domain="com.microsoft", outputs=2)
    assert found[0, 0, 0] == -120.0


@pytest.mark.parametrize("kind", [np.uint8, np.uint64])
def test_magnitude_and_sign_of_unsigned_integers(kind: Any) -> None:
    x = np.array([0, 1, 200], kind)
    np.testing.assert_array_equal(both("Abs", [x]), x)
    np.testing.assert_array_equal(both("Sign", [x]), np.array([0, 1, 1], kind))


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("size", [2, 4, 6, 10])
def test_the_largest_number_of_a_window_of_integers_is_one(op: str, size: int) -> None:
    model = model_of(op, [np.array(size)], {"output_datatype": 6}, opset=17)
    found = ours(model, [np.array(size)])[0]
    assert found[size // 2] == 1 and found.sum() == 1  # all others are less than 1, and truncated


@pytest.mark.parametrize("order, x, wanted", [  # by mpmath 1.3.0: psi(order, x)
    (1, -9.640864, 11.987450235266246), (2, -11.627895, -31.113902474271814), (3, -11.6, 283.6011749640522),
    (1, -30.3, 15.04694902139554), (2, -30.3, 68.83648985150253), (2, -1.25, 123.72136678366236),
])  # fmt: skip
def test_derivatives_of_digamma_far_below_zero(order: int, x: float, wanted: float) -> None:
    term = make("chlo.polygamma", [input_term(name, TensorType(F64, ())) for name in ("n", "x")])
    (found,) = evaluate([term], {"n": np.array(float(order)), "x": np.array(x)})
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_the_last_states_of_a_sequence_without_steps_are_zeros(op: str, gates: int, direction: str) -> None:
    rng, count = np.random.default_rng(1), 2 if direction == "bidirectional" else 1
    x, w, r = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3, 3), (count, gates * 2, 3), (count, gates * 2, 2)))
    state = np.full((count, 3, 2), 0.5, np.float32)
    inputs = [x, w, r, None, np.int32([0, 2, 4]), state, *([state] if op == "LSTM" else [])]
    model = model_of(op, inputs, {"hidden_size": 2, "direction": direction}, opset=14, outputs=3 if op == "LSTM" else 2)
    for mine, other in zip(ours(model, inputs), by_runtime(model, inputs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
    assert not by_runtime(model, inputs)[1][:, 0].any()


def test_squeeze_at_an_empty_list_of_axes_takes_all() -> None:
    assert both("Squeeze", [np.ones((1, 3, 1), np.float32), np.zeros(0, np.int64)], opset=13).shape == (3,)


def test_nan_is_one_of_the_different_numbers() -> None:
    assert len(both("Unique", [np.float32([np.nan, np.nan])], opset=11)) == 1
    model = model_of("Unique", [np.float32([3, np.nan, 1, -np.nan, 2, 3])], {}, opset=11, outputs=4)
    found = ours(model, [np.float32([3, np.nan, 1, -np.nan, 2, 3])])
    for mine, wanted in zip(found, ([1, 2, 3, np.nan], [2, 4, 0, 1], [2, 3, 0, 3, 1, 2], [1, 1, 2, 2]), strict=True):
        np.testing.assert_array_equal(mine, wanted)
