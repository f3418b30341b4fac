"""com.microsoft's mixtures of experts: each token goes through the k experts that its router prefers; weights may be quantized.

The definition has a row for each token and each of its experts: `kernel.grouped_product` multiplies it with the weights of that one.
"""

from __future__ import annotations

from coset.dialects.composite import kernel
from coset.dialects.hub.terms import broadcast, convert, reshape, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.node import Built, Node
from coset.dialects.onnx.selection import ordered
from coset.dialects.ort.nodes import accept, applied, contrib
from coset.dialects.ort.quantized import unpacked
from coset.ir import dims
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import F32

PRIMITIVES = (kernel, onnx_ops)  # their ops are made here


@contrib("MoE")
def _mixture(node: Node) -> Built:
    """Weights [experts, out, in], with biases."""
    first, second, third = (_linear(node.operand(i), node.operand(i + 1)) for i in (2, 4, 6))
    return _mixed(node, first, second, third, None)


@contrib("QMoE")
def _quantized_mixture(node: Node) -> Built:
    """Weights of few bits, low ones first, less a zero point, times the scale of a row or of each block of it."""
    accept(node, quant_type="int")
    require(not any(node.given(i) for i in range(15, len(node.operands))), f"{node.name} is defined for integer weights")
    given = node.attributes
    made = []
    for position in range(3):
        weight, scale, bias = (node.operand(2 + 3 * position + i) for i in range(3))
        bits = given.get(f"fc{position + 1}_expert_weight_bits", given.get("expert_weight_bits", 4))
        made.append(None if weight is None or scale is None else (_weight(weight, scale, node.operand(11 + position), bits), bias))
    return _mixed(node, made[0], made[1], made[2], node.operand(14))


def _weight(weight: Term, scale: Term, zero: Term | None, bits: int) -> Term:
    """[experts, out, in / (8 / bits)] as floats."""
    numbers = convert(unpacked(weight, bits), F32)
    require(numbers.tensor.rank == 3, f"weights of experts have rank 3, not {weight.type}")
    experts, rows, columns = numbers.tensor.dims
    blocks = scale.tensor.dims[2] if scale.tensor.rank == 3 else 1
    size = dims.divide_exactly(columns, blocks)
    require(size is not None, f"blocks {scale.type} do not fit weights {weight.type}")
    assert size is not None
    shape = (experts, rows, blocks, size)
    middle: Term | float = float(1 << (bits - 1))
    if zero is not None:
        points = unpacked(zero, bits)
        wanted = (rows,) if zero.tensor.rank == 2 else (rows, blocks)
        for axis, dim in enumerate(wanted, start=1):
            points = a.take(points, axis, 0, dim)
        middle = broadcast(reshape(convert(points, F32), (experts, rows, blocks)), shape, (0, 1, 2))
    steps = broadcast(reshape(convert(scale, F32), (experts, rows, blocks)), shape, (0, 1, 2))
    return reshape(a.multiply(a.subtract(reshape(numbers, shape), middle), steps), (experts, rows, columns))


_Linear = tuple[Term, Term | None]


def _linear(weight: Term | None, bias: Term | None) -> _Linear | None:
    return None if weight is None else (convert(weight, F32), bias)


def _mixed(node: Node, first: _Linear | None, second: _Linear | None, third: _Linear | None, weights: Term | None) -> Built:
    """The sum over the experts of what each gives, times its share."""
    accept(node, use_sparse_mixer=0)
    require(first is not None and second is not None, f"{node.name} needs weights and scales")
    assert first is not None and second is not None
    x = node.operands[0]
    require(x.tensor.rank > 0 and first[0].tensor.rank == 3, f"{node.name} takes rows of numbers, not {x.type}, and weights of rank 3")
    tokens = convert(reshape(x, (dims.product(x.tensor.dims[:-1]), x.tensor.dims[-1])), F32)
    count, width = tokens.tensor.dims
    chosen, shares = _chosen(node, weights)
    each = chosen.tensor.dims[1]
    rows = reshape(broadcast(tokens, (count, each, width), (0, 2)), (dims.multiply(count, each), width))
    group = reshape(chosen, rows.tensor.dims[:1])
    hidden = _through(rows, group, first)
    inner = _activated(node, hidden, None if third is None else _through(rows, group, third))
    results = _through(inner, group, second)
    results = reshape(results, (count, each, results.tensor.dims[1]))
    total = a.fold(a.multiply(results, a.unsqueeze(shares, 2)), (1,), keep=False)
    return convert(reshape(total, x.tensor.dims), x.tensor.dtype)


def _through(x: Term, group: Term, linear: _Linear) -> Term:
    """[rows, in] as [rows, out], each by the expert of its group."""
    weight, bias = linear
    y = make("kernel.grouped_product", (x, transpose(weight, (0, 2, 1)), group), {"ascending": False})
    return y if bias is None else a.add(y, convert(make("onnx.Gather", (bias, group), {"axis": 0}), F32))


def _chosen(node: Node, weights: Term | None) -> tuple[Term, Term]:
    """The k most probable experts of each token, the last of equal ones first, and how much each counts: its probability (or its own
    weight). Normalized to a sum of 1 where the node says so; QMoE's kernels do that to probabilities always."""
    router = convert(node.operands[1], F32)
    probabilities = make("onnx.Softmax", (router,), {"axis": 1})
    count = router.tensor.dims[1]
    first = dims.subtract(count, node.attributes.get("k", 1))
    shares, chosen = (a.take(each, 1, first, count) for each in ordered((probabilities, a.iota(router.tensor.dims, 1)), axis=1))
    if weights is not None:
        shares = make("onnx.GatherElements", (convert(weights, F32), chosen), {"axis": 1})
    whole = node.attributes.get("normalize_routing_weights", 0) or (node.name.endswith("QMoE") and weights is None)
    return chosen, a.divide(shares, a.fold(shares, (1,))) if whole else shares


def _activated(node: Node, x: Term, gate: Term | None) -> Term:
    """The activation; SwiGLU takes two halves, which lie side by side, apart, or come from weights of their own."""
    given = node.attributes
    kind = given.get("activation_type", "relu")
    require(kind == "swiglu" or gate is None, f"{node.name} has a third matrix with SwiGLU only")
    if kind == "swiglu":
        g, linear = (x, gate) if gate is not None else _halves(x, given.get("swiglu_fusion", 0))
        assert linear is not None
        limit = given.get("swiglu_limit")
        if limit is not None:
            g, linear = a.minimum(g, limit), a.clamp(linear, -limit, limit)
        swish = a.multiply(g, a.logistic(a.multiply(g, given.get("activation_alpha", 1.0))))
        return a.multiply(swish, a.add(linear, given.get("activation_beta", 0.0)))
    if kind == "relu":
        return a.maximum(x, 0.0)
    if kind == "gelu":
        return applied("FastGelu", (x,), {})
    require(kind in ("silu", "identity"), f"{node.name} has no activation `{kind}`")
    return a.multiply(x, a.logistic(x)) if kind == "silu" else x


def _halves(x: Term, fusion: int) -> tuple[Term, Term]:
    """The gates and the linear parts: every second element, or the first half."""
    require(fusion in (1, 2), "SwiGLU with one matrix needs `swiglu_fusion`")
    wide = x.tensor.dims[1]
    if fusion == 1:
        return a.take(x, 1, 0, wide, 2), a.take(x, 1, 1, wide, 2)
    half = dims.floordiv(wide, 2)
    return a.take(x, 1, 0, half), a.take(x, 1, half, wide)
