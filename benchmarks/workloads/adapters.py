"""Low-rank factors: adapters left unmerged, products in the wrong order."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.graphs import Writer
from benchmarks.workload import matrix, workload


@workload
def lora_mlp() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """An MLP with LoRA adapters left unmerged: x W + s (x A) B, six layers of width 512, rank 16, 64 tokens."""
    return _lora_mlp(merged=False), {"merged": _lora_mlp(merged=True)}


def _lora_mlp(*, merged: bool, width: int = 512, rank: int = 16, layers: int = 6) -> onnx.ModelProto:
    w = Writer()
    x = w.input("x", 64, width)
    for layer in range(layers):
        x = w.op("Relu", _lora(w, x, 3 * layer, width, width, rank, merged=merged))
    return w.model(x)


def _lora(w: Writer, x: str, seed: int, rows: int, columns: int, rank: int, *, merged: bool) -> str:
    weight, down, up, scale = matrix(seed, rows, columns), matrix(seed + 1, rows, rank), matrix(seed + 2, rank, columns), 0.5
    if merged:
        return w.matmul(x, w.constant(weight + scale * down @ up))
    adapted = w.op("Mul", w.matmul(x, w.constant(down), w.constant(up)), w.constant(scale))
    return w.op("Add", w.matmul(x, w.constant(weight)), adapted)


@workload
def lora_transformer() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Two transformer blocks with unmerged LoRA on q, v and both MLP layers: width 256, 8 heads, 64 tokens, rank 8."""
    return _lora_transformer(merged=False), {"merged": _lora_transformer(merged=True)}


def _lora_transformer(*, merged: bool, width: int = 256, heads: int = 8, length: int = 64) -> onnx.ModelProto:
    w = Writer()
    x = w.input("x", 1, length, width)
    for layer in range(2):
        seed, y = 100 * layer, w.layer_norm(x, width)
        q = w.heads(_lora(w, y, seed, width, width, 8, merged=merged), length, heads, width // heads)
        k = w.heads(w.matmul(y, w.constant(matrix(seed + 3, width, width))), length, heads, width // heads)
        v = w.heads(_lora(w, y, seed + 4, width, width, 8, merged=merged), length, heads, width // heads)
        scores = w.op("Mul", w.matmul(q, w.transpose(k, 0, 1, 3, 2)), w.constant((width // heads) ** -0.5))
        attended = w.transpose(w.matmul(w.op("Softmax", scores, axis=-1), v), 0, 2, 1, 3)
        joined = w.op("Reshape", attended, w.constant([1, length, width]))
        x = w.op("Add", x, w.matmul(joined, w.constant(matrix(seed + 7, width, width))))
        hidden = w.op("Gelu", _lora(w, w.layer_norm(x, width), seed + 8, width, 4 * width, 8, merged=merged))
        x = w.op("Add", x, _lora(w, hidden, seed + 11, 4 * width, width, 8, merged=merged))
    return w.model(x)


@workload
def low_rank_product() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """A compressed layer written x (U V), rank 32 of 1024: folding U V, as constant folding does, makes it slow again."""
    return _low_rank("product"), {"factors in turn": _low_rank("turn")}


@workload
def low_rank_merge() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Factors of no low rank, (x U) V with U: [256, 1024] and V: [1024, 256], which should be one matrix."""
    return _low_rank("turn", 256, 1024), {"one matrix": _low_rank("merged", 256, 1024)}


def _low_rank(form: str, width: int = 1024, rank: int = 32) -> onnx.ModelProto:
    w = Writer()
    x = w.input("x", 64, width)
    for layer in range(4):
        u, v = matrix(2 * layer, width, rank), matrix(2 * layer + 1, rank, width) * np.sqrt(rank / width)
        if form == "turn":
            x = w.op("Tanh", w.matmul(x, w.constant(u), w.constant(v)))
        else:
            product = w.matmul(w.constant(u), w.constant(v)) if form == "product" else w.constant(u @ v)
            x = w.op("Tanh", w.matmul(x, product))
    return w.model(x)
