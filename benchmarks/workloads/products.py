"""Chains of products in the worse order."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.graphs import Writer
from benchmarks.workload import matrix, workload


@workload
def graph_convolution() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Two dense graph convolutions, 512 -> 16 -> 512 on 1024 nodes, the adjacency an input, multiplied in the worse order."""
    return _graph_convolution(worse=True), {"cheaper order": _graph_convolution(worse=False)}


@workload
def graph_convolution_fixed() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """The same with the normalised adjacency of one fixed graph as a constant."""
    return _graph_convolution(worse=True, fixed=True), {"cheaper order": _graph_convolution(worse=False, fixed=True)}


def _graph_convolution(*, worse: bool, fixed: bool = False, nodes: int = 1024, wide: int = 512, narrow: int = 16) -> onnx.ModelProto:
    w = Writer()
    x = w.input("x", nodes, wide)
    adjacency = w.constant(_normalized_adjacency(nodes)) if fixed else w.input("adjacency", nodes, nodes)
    down, up = w.constant(matrix(0, wide, narrow)), w.constant(matrix(1, narrow, wide))
    hidden = w.matmul(w.matmul(adjacency, x), down) if worse else w.matmul(adjacency, w.matmul(x, down))
    hidden = w.op("Relu", hidden)
    return w.model(w.matmul(adjacency, w.matmul(hidden, up)) if worse else w.matmul(w.matmul(adjacency, hidden), up))


def _normalized_adjacency(nodes: int) -> np.ndarray:
    """Return D^-1/2 (A + I) D^-1/2 of a seeded random graph (Kipf and Welling, 2017, equation 2)."""
    links = np.random.default_rng(2).random((nodes, nodes)) < 0.02
    linked = (links | links.T | np.eye(nodes, dtype=bool)).astype(np.float64)
    root = 1 / np.sqrt(linked.sum(axis=1))
    return np.asarray(linked * root[:, None] * root[None, :])


@workload
def linear_attention() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Linear attention written quadratic, (phi(Q) phi(K)^T) V over its row sums: 1024 tokens, 4 heads of 32."""
    return _linear_attention(quadratic=True), {"keys with values first": _linear_attention(quadratic=False)}


def _linear_attention(*, quadratic: bool, length: int = 1024, width: int = 32) -> onnx.ModelProto:
    w = Writer()
    q, k, v = (w.input(name, 1, 4, length, width) for name in "qkv")
    one = w.constant(1.0)
    q, k = (w.op("Add", w.op("Elu", value), one) for value in (q, k))  # phi of Katharopoulos et al., 2020
    turned = w.transpose(k, 0, 1, 3, 2)
    if quadratic:
        scores = w.matmul(q, turned)
        return w.model(w.op("Div", w.matmul(scores, v), w.op("ReduceSum", scores, w.constant([-1]), keepdims=1)))
    total = w.op("ReduceSum", turned, w.constant([-1]), keepdims=1)
    return w.model(w.op("Div", w.matmul(q, w.matmul(turned, v)), w.matmul(q, total)))


@workload
def matmul_chain() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Five matrices 512x16, 16x512, 512x16, 16x512, 512x8 multiplied from left to right."""
    sizes = [512, 16, 512, 16, 512, 8]
    naive, best = Writer(), Writer()
    for w in (naive, best):
        for position in range(5):
            w.input(f"m{position}", sizes[position], sizes[position + 1])
    product = naive.matmul(*(f"m{position}" for position in range(5)))
    right = "m4"
    for position in (3, 2, 1, 0):
        right = best.matmul(f"m{position}", right)
    return naive.model(product), {"right to left": best.model(right)}


@workload
def einsum_three() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """One Einsum of three operands, ab,bc,cd->ad, 512, 512, 512, 8: a runtime contracts from the left."""
    return _einsum(["ab", "bc", "cd"], {"a": 512, "b": 512, "c": 512, "d": 8}, "ad", [])


@workload
def einsum_bilinear() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """A bilinear form for each row, bi,ijk,bj->bk: batch 64, 64 x 64 x 64."""
    w = _einsum_inputs(["bi", "ijk", "bj"], {"b": 64, "i": 64, "j": 64, "k": 64})
    part = w.op("Reshape", w.op("MatMul", "t0", w.op("Reshape", "t1", w.constant([64, 4096]))), w.constant([64, 64, 64]))
    row = w.op("Unsqueeze", "t2", w.constant([1]))
    best = w.model(w.op("Squeeze", w.op("MatMul", row, part), w.constant([1])))
    sizes = {"b": 64, "i": 64, "j": 64, "k": 64}
    naive = _einsum_inputs(["bi", "ijk", "bj"], sizes)
    return naive.model(naive.op("Einsum", "t0", "t1", "t2", equation="bi,ijk,bj->bk")), {"as products": best}


@workload
def einsum_six() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """A chain of six contractions, each an Einsum, written from the wide end: 512, 64, 512, 64, 512, 64, 4."""
    return _einsum(["ab", "bc", "cd", "de", "ef", "fg"], dict(zip("abcdefg", [512, 64, 512, 64, 512, 64, 4], strict=True)), "ag", ["pairs"])


def _einsum_inputs(terms: list[str], sizes: dict[str, int]) -> Writer:
    w = Writer()
    for position, term in enumerate(terms):
        w.input(f"t{position}", *(sizes[index] for index in term))
    return w


def _einsum(terms: list[str], sizes: dict[str, int], out: str, pairs: list[str]) -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Return a chain of matrices as Einsum (one node, or a node for each pair) and as products from the right."""
    naive, best = _einsum_inputs(terms, sizes), _einsum_inputs(terms, sizes)
    if pairs:
        value, left = "t0", terms[0]
        for position, term in enumerate(terms[1:], 1):
            value = naive.op("Einsum", value, f"t{position}", equation=f"{left},{term}->{left[0]}{term[1]}")
            left = left[0] + term[1]
    else:
        value = naive.op("Einsum", *(f"t{position}" for position in range(len(terms))), equation=f"{','.join(terms)}->{out}")
    right = f"t{len(terms) - 1}"
    for position in range(len(terms) - 2, -1, -1):
        right = best.matmul(f"t{position}", right)
    return naive.model(value), {"products from the right": best.model(right)}
