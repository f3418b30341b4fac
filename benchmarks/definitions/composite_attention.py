"""Drawn terms of definitions of com.microsoft that no node becomes as it stands, with references in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.definitions.composite import ULPS, OwnInstance, drawn_float, own, softmax
from benchmarks.definitions.hub import hub
from benchmarks.definitions.instance import Draw, Slot
from coset.ir.types import DTYPES

F32, I32 = DTYPES["f32"], DTYPES["i32"]


@hub("ort.SimplifiedLayerNormalization")
def _normalized(r: Draw, op: str) -> OwnInstance:
    dtype, shape = drawn_float(r), r.shape(1, 3, least=1)
    axis = r.axis(len(shape))
    epsilon = float(np.float32(r.choice([1e-5, 0.25])))
    axes = tuple(range(axis % len(shape), len(shape)))

    def reference(v: Sequence[Any]) -> list[Any]:
        inverse = 1 / np.sqrt(np.mean(v[0] * v[0], axis=axes, keepdims=True) + epsilon)
        return [v[0] * inverse * v[1], inverse]

    slots = [Slot(dtype, shape), Slot(dtype, shape[axis % len(shape) :])]
    return own(op, slots, {"axis": axis, "epsilon": epsilon}, reference)


@hub("ort.Attention", "ort.MultiHeadAttention")
def _attention(r: Draw, op: str) -> OwnInstance:
    """Masked keys have a number added to their scores; what comes later has the least number for its score."""
    batch, length, heads, size = r.randint(1, 2), r.randint(1, 3), r.randint(1, 2), r.randint(1, 3)
    own_keys = op == "ort.Attention"
    keys, values = (length, size) if own_keys else (r.randint(1, 4), r.randint(1, 3))
    scale, below, causal = r.choice([0.0, 0.5]), r.choice([-10000.0, -8.0]), r.randint(0, 1)
    count = r.randint(0, 3)  # optional operands that are given, the first ones
    mask = np.array([[1, *(r.randint(0, 1) for _ in range(keys - 1))] for _ in range(batch)], np.int32)
    extra = Slot(F32, (r.choice([1, batch]), r.choice([1, heads]), length, keys))
    width = heads * size

    def attended(q: Any, k: Any, v: Any, more: Sequence[Any]) -> Any:
        split = [x.reshape(batch, -1, heads, x.shape[-1] // heads).transpose(0, 2, 1, 3) for x in (q, k, v)]
        s = (scale or 1 / np.sqrt(size)) * (split[0] @ split[1].swapaxes(-1, -2))
        if more:
            s = s + np.where(more[0] > 0, 0.0, below)[:, None, None, :]
        if causal:
            later = np.arange(keys)[None, :] > np.arange(length)[:, None] + keys - length
            s = np.where(later, float(np.finfo(np.float32).min), s)
        s = s + more[1] if len(more) > 1 else s
        return (softmax(s) @ split[2]).transpose(0, 2, 1, 3).reshape(batch, length, -1)

    given = {"num_heads": heads, "scale": scale, "mask_filter_value": below, "unidirectional": causal}
    optional = [Slot(I32, mask.shape, value=mask), extra]
    if own_keys:

        def projected(v: Sequence[Any]) -> list[Any]:
            p = v[0] @ v[1] + (v[2] if len(v) > 2 else 0.0)
            return [attended(p[..., :width], p[..., width : 2 * width], p[..., 2 * width :], v[3:])]

        slots = [Slot(F32, (batch, length, 3)), Slot(F32, (3, 3 * width)), Slot(F32, (3 * width,)), *optional]
        return own(op, slots[: 2 + count], given, projected, ulps=4 * ULPS)

    def shifted(v: Sequence[Any]) -> list[Any]:
        bias = v[3] if len(v) > 3 else np.zeros(2 * width + heads * values)
        return [attended(v[0] + bias[:width], v[1] + bias[width : 2 * width], v[2] + bias[2 * width :], v[4:])]

    slots = [Slot(F32, (batch, length, width)), Slot(F32, (batch, keys, width)), Slot(F32, (batch, keys, heads * values))]
    slots += [Slot(F32, (2 * width + heads * values,)), *optional]
    return own(op, slots[: 3 + count], given, shifted, ulps=4 * ULPS)
