"""Work done for what is thrown away: pick, pool or sum first."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.graphs import Writer
from benchmarks.workload import matrix, workload


@workload
def last_token_head() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Logits of all 64 tokens over a vocabulary of 8192, of which the last token's are taken."""
    naive, best = Writer(), Writer()
    width, last, axis = 256, [-1], 1
    for w in (naive, best):
        w.input("x", 1, 64, width)
    weight = matrix(0, width, 8192)
    normal = naive.layer_norm("x", width)
    late = naive.op("Gather", naive.matmul(normal, naive.constant(weight)), naive.constant(last), axis=axis)
    picked = best.layer_norm(best.op("Gather", "x", best.constant(last), axis=axis), width)
    return naive.model(late), {"pick first": best.model(best.matmul(picked, best.constant(weight)))}


@workload
def pooled_head() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """A linear layer with bias, 768 to 768, on 128 tokens, then their mean."""
    naive, best = Writer(), Writer()
    weight, bias = matrix(0, 768, 768), matrix(1, 768, 1)[:, 0]
    for w in (naive, best):
        w.input("x", 1, 128, 768)
    full = naive.op("Add", naive.matmul("x", naive.constant(weight)), naive.constant(bias))
    late = naive.op("ReduceMean", full, naive.constant([1]), keepdims=0)
    mean = best.op("ReduceMean", "x", best.constant([1]), keepdims=0)
    return naive.model(late), {"pool first": best.model(best.op("Add", best.matmul(mean, best.constant(weight)), best.constant(bias)))}


@workload
def trace_of_product() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """The trace of A B, 384 x 384, written as the sum of the product masked by the identity."""
    naive, best = Writer(), Writer()
    for w in (naive, best):
        w.input("a", 384, 384)
        w.input("b", 384, 384)
    masked = naive.op("Mul", naive.matmul("a", "b"), naive.constant(np.eye(384)))
    trace = naive.op("ReduceSum", masked, naive.constant([0, 1]), keepdims=0)
    paired = best.op("Mul", "a", best.transpose("b", 1, 0))
    return naive.model(trace), {"sum of products": best.model(best.op("ReduceSum", paired, best.constant([0, 1]), keepdims=0))}


@workload
def common_factor() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Four products of one matrix with four inputs, summed: (a + b + c + d) W needs one; width 512, 128 rows."""
    naive, best = Writer(), Writer()
    weight = matrix(0, 512, 512)
    for w in (naive, best):
        for name in "abcd":
            w.input(name, 128, 512)
    shared = naive.constant(weight)
    total = naive.op("Sum", *(naive.matmul(name, shared) for name in "abcd"))
    return naive.model(total), {"sum first": best.model(best.matmul(best.op("Sum", *"abcd"), best.constant(weight)))}


@workload
def repeated_keys() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Grouped-query attention for one new token, its 2 key and value heads copied to 16 before use: 1024 past tokens, width 64."""
    return _grouped(copied=True), {"group the queries": _grouped(copied=False)}


def _grouped(*, copied: bool, heads: int = 16, groups: int = 2, length: int = 1024, width: int = 64) -> onnx.ModelProto:
    w = Writer()
    q, k, v = w.input("q", 1, heads, 1, width), w.input("k", 1, groups, length, width), w.input("v", 1, groups, length, width)
    if copied:
        k, v = (_repeat(w, value, heads // groups, groups, length, width) for value in (k, v))
    else:
        q = w.op("Reshape", q, w.constant([1, groups, heads // groups, width]))
    scores = w.op("Mul", w.matmul(q, w.transpose(k, 0, 1, 3, 2)), w.constant(width**-0.5))
    out = w.matmul(w.op("Softmax", scores, axis=-1), v)
    return w.model(out if copied else w.op("Reshape", out, w.constant([1, heads, 1, width])))


def _repeat(w: Writer, value: str, times: int, groups: int, length: int, width: int) -> str:
    wide = w.op("Expand", w.op("Unsqueeze", value, w.constant([2])), w.constant([1, groups, times, length, width]))
    return w.op("Reshape", wide, w.constant([1, groups * times, length, width]))


@workload
def training_step() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """A step of gradient descent on a two-layer regression, the parameters inputs: batch 128, 256 -> 512 -> 64."""
    return _training_step(joined=False), {"update inside the product": _training_step(joined=True)}


def _training_step(*, joined: bool, batch: int = 128, rate: float = 0.01) -> onnx.ModelProto:
    w = Writer()
    x, y, u, v = w.input("x", batch, 256), w.input("y", batch, 64), w.input("u", 256, 512), w.input("v", 512, 64)
    hidden = w.op("Relu", w.matmul(x, u))
    error = w.op("Mul", w.op("Sub", w.matmul(hidden, v), y), w.constant(2.0 / (64 * batch)))
    behind = w.op("Mul", w.matmul(error, w.transpose(v, 1, 0)), w.op("Cast", w.op("Greater", hidden, w.constant(0.0)), to=1))
    new = []
    for parameter, left, right in ((u, x, behind), (v, hidden, error)):
        if joined:
            new.append(w.op("Gemm", left, right, parameter, alpha=-rate, beta=1.0, transA=1))
        else:
            gradient = w.matmul(w.transpose(left, 1, 0), right)
            new.append(w.op("Sub", parameter, w.op("Mul", gradient, w.constant(rate))))
    return w.model(*new)
