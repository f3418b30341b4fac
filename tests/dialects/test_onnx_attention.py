"""Attention and rotary embeddings against `onnx.reference` and ONNX Runtime over drawn shapes, types, masks, caches and attributes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.dialects.onnx_runs import assert_close, by_reference, by_runtime, model_of, ours, symbolic

NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
LOOSE = {"f16": {"rtol": 2e-2, "atol": 5e-3}, "bf16": {"rtol": 6e-2, "atol": 3e-2}}


def drawn(seed: int) -> tuple[list[Any], dict[str, Any], str]:
    """Inputs and attributes of an Attention node."""
    rng = np.random.default_rng(seed)
    name = ["f32", "f32", "f64", "f16", "bf16"][seed % 5]
    dtype = NUMPY[name]
    batch, length, keys, size, wide = (int(n) for n in rng.integers(1, 6, 5))
    shared = int(rng.integers(1, 4))
    heads = shared * int(rng.integers(1, 4))
    past = int(rng.integers(1, 4)) if rng.random() < 0.4 else 0
    four = rng.random() < 0.5
    shapes = [(batch, heads, length, size), (batch, shared, keys, size), (batch, shared, keys, wide)]
    attributes: dict[str, Any] = {"is_causal": int(rng.random() < 0.4), "qk_matmul_output_mode": int(rng.integers(4))}
    if not four:
        shapes = [(b, n, h * s) for b, h, n, s in shapes]
        attributes.update(q_num_heads=heads, kv_num_heads=shared)
    inputs: list[Any] = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    for key, chance, value in (("scale", 0.4, 0.3), ("softcap", 0.4, 1.5), ("softmax_precision", 0.2, 1)):
        if rng.random() < chance:
            attributes[key] = value
    total = past + keys
    lengths = None
    if not past and rng.random() < 0.4:
        lengths = rng.integers(0, keys + 1, batch).astype(np.int64)
    mask = None
    if rng.random() < 0.6:
        reach = total if rng.random() < 0.7 else int(rng.integers(1, total + 1))
        if lengths is not None:
            reach = total
        rank = int(rng.integers(2, 5))
        lead = tuple(n if rng.random() < 0.6 else 1 for n in (batch, heads))
        shape = (*lead[4 - rank :], length, reach)
        mask = rng.random(shape) < 0.7 if rng.random() < 0.5 else rng.standard_normal(shape).astype(dtype)
    pasts = [rng.standard_normal((batch, shared, past, n)).astype(dtype) for n in (size, wide)] if past else [None, None]
    for side in ("left_window_size", "right_window_size"):
        if rng.random() < 0.2:
            attributes[side] = int(rng.integers(0, 4))
    return [*inputs, mask, *pasts, lengths], attributes, name


@pytest.mark.parametrize("seed", range(120))
def test_attention(seed: int) -> None:
    inputs, attributes, name = drawn(seed)
    model = model_of("Attention", inputs, attributes, outputs=4)
    found, expected = ours(model, inputs), by_reference(model, inputs)
    if attributes["qk_matmul_output_mode"] == 0 and attributes.get("softcap"):
        found, expected = found[:3], expected[:3]  # the reference gives the capped scores where the standard says the raw ones
    assert_close(found, expected, **LOOSE.get(name, {"rtol": 1e-4, "atol": 1e-5}))


def runs_in_onnx_runtime(seed: int) -> bool:
    """ONNX Runtime has the causal frontier of an older text, pads no mask, and attends everywhere in rows that may attend nothing."""
    inputs, attributes, _ = drawn(seed)
    total = inputs[1].shape[-2] + (inputs[4].shape[2] if inputs[4] is not None else 0)
    mask = inputs[3]
    masked = mask is not None and (mask.shape[-1] != total or not np.any(mask, axis=-1).all())
    return not (attributes["is_causal"] or inputs[6] is not None or masked)


@pytest.mark.parametrize("seed", [seed for seed in range(100) if runs_in_onnx_runtime(seed)])
def test_attention_like_onnx_runtime(seed: int) -> None:
    inputs, attributes, _ = drawn(seed)
    inputs = [None if x is None else x if x.dtype.kind == "b" else x.astype(np.float32) for x in inputs[:6]]
    attributes = {key: value for key, value in attributes.items() if key in ("scale", "q_num_heads", "kv_num_heads")}
    model = model_of("Attention", inputs, attributes, outputs=3 if inputs[4] is not None else 1, opset=23)
    assert_close(ours(model, inputs), by_runtime(model, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_attention_on_symbolic_shapes(seed: int) -> None:
    """The batch and the lengths may be symbols; a mask must be seen to be as wide as there are keys."""
    inputs, attributes, name = drawn(seed)
    four = inputs[0].ndim == 4
    axis = 2 if four else 1
    names: dict[int, dict[int, str]] = {0: {0: "b", axis: "l"}, 1: {0: "b"}, 2: {0: "b"}, 4: {0: "b"}, 5: {0: "b"}, 6: {0: "b"}}
    if inputs[3] is None:
        names[1][axis] = names[2][axis] = "s"
        names[4][2] = names[5][2] = "p"
    else:
        rank = inputs[3].ndim
        names[3] = {rank - 2: "l", **({0: "b"} if rank == 4 and inputs[3].shape[0] > 1 else {})}
    found = symbolic("Attention", inputs, attributes, names, outputs=4)
    model = model_of("Attention", inputs, attributes, outputs=4)
    assert_close(found, ours(model, inputs), rtol=1e-5, atol=1e-5, ulps=4 if name in LOOSE else 0)


def test_the_raw_scores_are_raw() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 1, 3, 2)).astype(np.float32) for _ in range(3))
    model = model_of("Attention", [q, k, v], {"softcap": 0.5, "scale": 1.0, "qk_matmul_output_mode": 0}, outputs=4)
    np.testing.assert_allclose(ours(model, [q, k, v])[3], q @ np.swapaxes(k, 2, 3), rtol=1e-5)


def test_a_scale_below_zero_has_no_root() -> None:
    """As in ONNX's evaluator; ONNX Runtime does not load such a node."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 1, 3, 2)).astype(np.float32) for _ in range(3))
    assert np.isnan(ours(model_of("Attention", [q, k, v], {"scale": -1.0}), [q, k, v])[0]).all()


@pytest.mark.parametrize("seed", range(24))
def test_rotary_embedding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = [np.float32, np.float16, ml_dtypes.bfloat16][seed % 3]
    batch, heads, length, half = (int(n) for n in rng.integers(1, 5, 4))
    rest = int(rng.integers(0, 3)) * 2
    size = 2 * half + rest
    attributes: dict[str, Any] = {"interleaved": int(rng.random() < 0.5), "rotary_embedding_dim": 2 * half if rest or seed % 2 else 0}
    four = bool(seed % 2)
    x = rng.standard_normal((batch, heads, length, size) if four else (batch, length, heads * size)).astype(dtype)
    if not four:
        attributes["num_heads"] = heads
    positions = rng.integers(0, 9, (batch, length)) if rng.random() < 0.5 else None
    shape = (9, half) if positions is not None else (batch, length, half)
    inputs = [x, rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape).astype(dtype), positions]
    model = model_of("RotaryEmbedding", inputs, attributes)
    found = ours(model, inputs)
    assert_close(found, by_reference(model, inputs), ulps=0 if dtype is np.float32 else 4)
    caches = {0: "b", 1: "l"} if positions is None else {0: "m"}
    names = {0: {0: "b", 2 if four else 1: "l"}, 1: caches, 2: caches, 3: {0: "b", 1: "l"}}
    assert_close(symbolic("RotaryEmbedding", inputs, attributes, names), found)
