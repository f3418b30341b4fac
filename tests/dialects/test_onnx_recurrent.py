"""Recurrent layers, linear attention and causal convolutions against ONNX Runtime and `onnx.reference` over drawn shapes and attributes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.dialects.onnx_runs import assert_close, by_reference, by_runtime, model_of, ours, symbolic

GATES = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}  # gates, activation functions of a direction
FUNCTIONS = (
    "Relu",
    "Tanh",
    "Sigmoid",
    "Affine",
    "LeakyRelu",
    "ThresholdedRelu",
    "ScaledTanh",
    "HardSigmoid",
    "Elu",
    "Softsign",
    "Softplus",
)
ALPHA, BETA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}, {"Affine", "ScaledTanh", "HardSigmoid"}


def drawn(op: str, seed: int) -> tuple[list[Any], dict[str, Any]]:
    """Inputs and attributes of a recurrent layer."""
    rng = np.random.default_rng(seed)
    gates, functions = GATES[op]
    length, batch, width, hidden = (int(n) for n in rng.integers(1, 5, 4))
    direction = ["forward", "reverse", "bidirectional"][seed % 3]
    count = 2 if direction == "bidirectional" else 1

    def tensor(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    states = 2 if op == "LSTM" else 1
    inputs: list[Any] = [tensor(length, batch, width), tensor(count, gates * hidden, width), tensor(count, gates * hidden, hidden)]
    inputs.append(tensor(count, 2 * gates * hidden) if rng.random() < 0.7 else None)
    inputs.append(rng.integers(1, length, batch, endpoint=True).astype(np.int32) if rng.random() < 0.4 else None)
    inputs += [tensor(count, batch, hidden) if rng.random() < 0.5 else None for _ in range(states)]
    if op == "LSTM":
        inputs.append(tensor(count, 3 * hidden) if rng.random() < 0.5 else None)
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if rng.random() < 0.5:
        names = [FUNCTIONS[int(i)] for i in rng.integers(0, len(FUNCTIONS), functions * count)]
        attributes["activations"] = names
        for key, those in (("activation_alpha", ALPHA), ("activation_beta", BETA)):
            if any(name in those for name in names):
                attributes[key] = [float(np.float32(v)) for v in rng.random(sum(name in those for name in names)) + 0.2]
    if op == "GRU" and rng.random() < 0.5:
        attributes["linear_before_reset"] = 1
    return inputs, attributes


def in_batches(inputs: list[Any], found: list[Any]) -> tuple[list[Any], list[Any]]:
    """The inputs and results with layout 0 as they are with layout 1."""
    moved = [None if x is None else np.swapaxes(x, 0, 1).copy() if i in (0, 5, 6) else x for i, x in enumerate(inputs)]
    return moved, [found[0].transpose(2, 0, 1, 3), *(np.swapaxes(y, 0, 1) for y in found[1:])]


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("op", GATES)
def test_recurrent_layers(op: str, seed: int) -> None:
    inputs, attributes = drawn(op, seed)
    outputs = 3 if op == "LSTM" else 2
    model = model_of(op, inputs, attributes, outputs=outputs, opset=14)
    found, wanted = ours(model, inputs), by_runtime(model, inputs)
    if any(name == "Softplus" for name in attributes.get("activations", ())):  # in these kernels it overflows, the op's own does not
        wanted = [np.where(np.isfinite(theirs), theirs, value) for value, theirs in zip(found, wanted, strict=True)]
    assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    names = {0: {0: "s", 1: "b"}, 4: {0: "b"}, 5: {1: "b"}, **({6: {1: "b"}} if op == "LSTM" else {})}
    assert_close(symbolic(op, inputs, attributes, names, outputs=outputs), found)
    if seed % 4 == 0:
        moved, expected = in_batches(inputs, found)
        model = model_of(op, moved, {**attributes, "layout": 1}, outputs=outputs, opset=14)
        assert_close(ours(model, moved), expected)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("op", GATES)
def test_clipped_activations(op: str, seed: int) -> None:
    inputs, attributes = drawn(op, 3 * seed)
    attributes["clip"] = 0.4
    if op == "LSTM":
        attributes["input_forget"] = seed % 2
        if seed % 2:
            inputs[7] = None  # ONNX Runtime adds the forget gate's peephole though the gate is not computed
    model = model_of(op, inputs, attributes, outputs=2, opset=14)
    assert_close(ours(model, inputs), by_runtime(model, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("op", GATES)
def test_other_floats(op: str, dtype: Any) -> None:
    inputs, attributes = drawn(op, 12)
    attributes = {key: value for key, value in attributes.items() if not key.startswith("activation")}  # bounded ones
    wide = ours(model_of(op, inputs, attributes, outputs=2, opset=22), inputs)
    inputs = [x if x is None or x.dtype.kind == "i" else x.astype(dtype) for x in inputs]
    found = ours(model_of(op, inputs, attributes, outputs=2, opset=22), inputs)
    assert_close(found, [np.asarray(x).astype(dtype) for x in wide], ulps=16, atol=0.05 if dtype != np.float64 else 1e-5)


def test_an_empty_sequence_ends_with_zeros() -> None:
    """As ONNX Runtime has it for an RNN, and for all three where `sequence_lens` says so (`test_mended_definitions.py`)."""
    h = np.full((1, 2, 3), 7, np.float32)
    inputs = [np.zeros((0, 2, 4), np.float32), np.ones((1, 3, 4), np.float32), np.ones((1, 3, 3), np.float32), None, None, h]
    y, last = ours(model_of("RNN", inputs, {"hidden_size": 3}, outputs=2, opset=14), inputs)
    assert y.shape == (0, 1, 2, 3)
    np.testing.assert_array_equal(last, np.zeros_like(h))


@pytest.mark.parametrize("seed", range(32))
def test_linear_attention(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = [np.float32, np.float16, ml_dtypes.bfloat16][seed % 3 if seed % 2 else 0]
    rule = ["linear", "gated", "delta", "gated_delta"][seed % 4]
    batch, length, shared, size, width = (int(n) for n in rng.integers(1, 5, 5))
    heads = shared * int(rng.integers(1, 4))

    def tensor(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / 2).astype(dtype)

    past = (rng.standard_normal((batch, shared, size, width))).astype([dtype, np.float32][seed // 4 % 2]) if rng.random() < 0.5 else None
    decay = -np.abs(tensor(batch, length, shared * (size if rng.random() < 0.5 else 1))) if "gated" in rule else None
    beta = tensor(batch, length, shared if rng.random() < 0.5 else 1) if "delta" in rule else None
    inputs = [
        tensor(batch, length, heads * size),
        tensor(batch, length, shared * size),
        tensor(batch, length, shared * width),
        past,
        decay,
        beta,
    ]
    attributes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": shared, "update_rule": rule}
    if rng.random() < 0.5:
        attributes["scale"] = 0.3
    model = model_of("LinearAttention", inputs, attributes, outputs=2, opset=27)
    found = ours(model, inputs)
    assert_close(found, by_reference(model, inputs), ulps=2 if dtype is not np.float32 else 0, rtol=1e-4, atol=1e-5)
    names = {i: {0: "b", **({1: "t"} if i != 3 else {})} for i in range(6)}
    assert_close(symbolic("LinearAttention", inputs, attributes, names, outputs=2), found)


@pytest.mark.parametrize("seed", range(24))
def test_causal_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = [np.float32, np.float16, ml_dtypes.bfloat16][seed % 3]
    batch, channels, length, width = (int(n) for n in rng.integers(1, 6, 4))
    inputs: list[Any] = [
        rng.standard_normal((batch, channels, length)).astype(dtype),
        rng.standard_normal((channels, 1, width)).astype(dtype),
    ]
    inputs.append(rng.standard_normal(channels).astype(dtype) if rng.random() < 0.5 else None)
    inputs.append(rng.standard_normal((batch, channels, width - 1)).astype(dtype) if rng.random() < 0.5 else None)
    attributes = {"activation": ["none", "silu", "swish"][int(rng.integers(3))]}
    model = model_of("CausalConvWithState", inputs, attributes, outputs=2, opset=27)
    found = ours(model, inputs)
    assert_close(found, by_reference(model, inputs), ulps=8 if dtype is not np.float32 else 0)
    assert_close(symbolic("CausalConvWithState", inputs, attributes, {0: {0: "b", 2: "t"}, 3: {0: "b"}}, outputs=2), found)
