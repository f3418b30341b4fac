"""Fourier transforms, mel weights, n-gram counts and optimizers against NumPy, ONNX Runtime and `onnx.reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coset.frontends.onnx.model import import_model
from tests.dialects.onnx_runs import assert_close, by_reference, by_runtime, model_of, ours, symbolic

TRAINING = "ai.onnx.preview.training"


def parts(x: np.ndarray) -> np.ndarray:
    return np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x[..., None]


def transformed(x: np.ndarray, size: int, axis: int, inverse: bool, onesided: bool) -> np.ndarray:
    """The transform by NumPy in f64; a onesided one of a complex signal is cut."""
    signal = x[..., 0].astype(np.float64) if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1].astype(np.float64)
    if inverse:
        return np.fft.irfft(signal, size, axis) if onesided else np.fft.ifft(signal, size, axis)
    result = np.fft.fft(signal, size, axis)
    return np.take(result, range(size // 2 + 1), axis) if onesided else result


@pytest.mark.parametrize("seed", range(40))
def test_transforms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(2, 9, 1 + seed % 3))
    inverse, onesided = bool(seed // 2 % 2), bool(seed // 4 % 2)
    dtype = [np.float32, np.float64, np.float16][seed % 3]
    x = rng.standard_normal((*shape, 2 if inverse or rng.random() < 0.5 else 1)).astype(dtype)
    axis = int(rng.integers(len(shape)))
    size = int(rng.integers(1, 12)) if rng.random() < 0.5 else None
    inputs: list[Any] = [x, None if size is None else np.int64(size), np.int64(axis - x.ndim if rng.random() < 0.5 else axis)]
    attributes = {"inverse": int(inverse), "onesided": int(onesided)}
    length = size or (2 * (shape[axis] - 1) if inverse and onesided else shape[axis])
    expected = parts(transformed(x, length, axis, inverse, onesided)).astype(dtype)
    found = ours(model_of("DFT", inputs, attributes, opset=20), inputs)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype is not np.float16 else {"rtol": 4e-3, "atol": 4e-3}
    assert_close(found, [expected], **close)
    old = [x, inputs[1]]
    model = model_of("DFT", old, {**attributes, "axis": axis}, opset=17)
    assert_close(ours(model, old), [expected], **close)
    open_dims = {0: {other: f"d{other}" for other in range(len(shape)) if other != axis or size is None}}
    assert_close(symbolic("DFT", inputs, attributes, open_dims, known=(1, 2)), found)


@pytest.mark.parametrize("seed", range(20))
def test_short_time_transforms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, step = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    length = size + int(rng.integers(0, 12))
    complex_ = seed % 3 == 0
    x = rng.standard_normal((2, length, 2 if complex_ else 1)).astype([np.float32, np.float64][seed % 2])
    window = rng.random(size).astype(x.dtype) if seed % 4 else None
    inputs: list[Any] = [x, np.int64(step), window, np.int64(size) if window is None or seed % 2 else None]
    attributes = {"onesided": 0 if complex_ else seed // 2 % 2}
    starts = range(0, length - size + 1, step)
    frames = np.stack([x[:, s : s + size] * (1 if window is None else window[:, None]) for s in starts], 1)
    expected = parts(transformed(frames, size, 2, False, bool(attributes["onesided"]))).astype(x.dtype)
    found = ours(model_of("STFT", inputs, attributes, opset=17), inputs)
    assert_close(found, [expected], rtol=1e-4, atol=1e-5)
    assert_close(symbolic("STFT", inputs, attributes, {0: {0: "b", 1: "n"}}, known=(1, 3)), found)


@pytest.mark.parametrize(
    ("bands", "size", "rate", "low", "high"), [(8, 16, 8192, 0, 4096), (10, 64, 16000, 40, 7600), (3, 31, 8000, 5, 900)]
)
def test_mel_weights(bands: int, size: int, rate: int, low: float, high: float) -> None:
    inputs = [np.int64(bands), np.int64(size), np.int64(rate), np.float32(low), np.float32(high)]
    model = model_of("MelWeightMatrix", inputs, {"output_datatype": 11}, opset=17)
    assert_close(ours(model, inputs), by_reference(model, inputs))


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("seed", range(8))
def test_counts_of_n_grams(mode: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    grams = [rng.integers(0, 4, (int(rng.integers(1, 5)), length)) for length in (1, 2, 3)]
    grams = [np.unique(gram, axis=0) for gram in grams]
    count = sum(map(len, grams))
    attributes: dict[str, Any] = {
        "mode": mode, "min_gram_length": 1 + seed % 2, "max_gram_length": 2 + seed // 2 % 2, "max_skip_count": seed % 4,
        "pool_int64s": np.concatenate([gram.reshape(-1) for gram in grams]).tolist(), "ngram_indexes": rng.permutation(count).tolist(),
        "ngram_counts": [0, len(grams[0]), len(grams[0]) + 2 * len(grams[1])],
    }  # fmt: skip
    if mode != "TF":
        attributes["weights"] = [float(v) for v in rng.random(count).astype(np.float32)]
    x = rng.integers(0, 4, (3, 7) if seed % 3 else (9,)).astype([np.int64, np.int32][seed % 2])
    model = model_of("TfIdfVectorizer", [x], attributes, opset=9)
    found = ours(model, [x])
    assert_close(found, by_runtime(model, [x]))
    assert_close(symbolic("TfIdfVectorizer", [x], attributes, {0: {0: "n"}} if x.ndim == 2 else {}), found)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("time", [0, 4])
@pytest.mark.parametrize(("op", "kinds"), [("Momentum", 3), ("Adagrad", 3), ("Adam", 4)])
def test_optimizers(op: str, kinds: int, time: int, count: int) -> None:
    rng = np.random.default_rng(time)
    shapes = [(2, 3), (4,), ()][:count]
    tensors = [np.abs(rng.standard_normal(shape)).astype(np.float32) for _ in range(kinds) for shape in shapes]
    inputs = [np.float32(0.1), np.int64(time), *tensors]
    attributes: dict[str, Any] = {"norm_coefficient": 0.01}
    if op == "Momentum":
        attributes.update(alpha=0.9, beta=0.7, mode=["standard", "nesterov"][count % 2])
    elif op == "Adam":
        attributes.update(norm_coefficient_post=0.05)
    else:
        attributes.update(decay_factor=0.2)
    outputs = (kinds - 1) * count
    model = model_of(op, inputs, attributes, outputs=outputs, domain=TRAINING)
    assert_close(ours(model, inputs), [np.asarray(y, np.float32) for y in by_reference(model, inputs)])  # it widens scalars


def test_an_op_of_another_domain_keeps_its_name_and_takes_no_default_definition() -> None:
    """`ai.onnx.ml` has no Relu: a node that says so is no Relu of the default domain."""
    x = np.array([-1.0, 2.0], np.float32)
    model = model_of("Relu", [x], domain="ai.onnx.ml")

    program = import_model(model)
    assert [term.op.name for term in program.terms() if term.op.has("foreign")] == ["builtin.opaque"]
