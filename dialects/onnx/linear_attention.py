"""What ONNX's LinearAttention and CausalConvWithState mean: attention as a recurrence over a matrix, and the convolution before it.

The text: https://onnx.ai/onnx/operators/onnx__LinearAttention.html, onnx__CausalConvWithState.html.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from coset.dialects.hub.terms import broadcast, convert, dot, reshape, splat, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.loops import scan
from coset.dialects.onnx.node import Built, Node, definition
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import F32

_RULES = ("linear", "gated", "delta", "gated_delta")


def _unpacked(x: Term, heads: int) -> Term:
    """[batch, length, heads * size] as [length, batch, heads, size] in f32."""
    require(dims.floordiv(x.tensor.dims[2], heads) != 0, f"{x.type} does not split into {heads} heads")
    size = dims.floordiv(x.tensor.dims[2], heads)  # of a symbol: the reshape asserts that nothing is left
    return transpose(reshape(convert(x, F32), (*x.tensor.dims[:2], heads, size)), (1, 0, 2, 3))


@definition("LinearAttention")
def _linear_attention(node: Node) -> Built:
    """For each token: S fades by exp(decay), takes in key x (beta times what it does not hold of the value yet), and answers the query;
    in f32. Key heads are shared by groups of query heads."""
    rule = node.attributes.get("update_rule", "gated_delta")
    heads, shared = node.attributes["q_num_heads"], node.attributes["kv_num_heads"]
    require(rule in _RULES and heads > 0 and shared > 0 and heads % shared == 0, f"LinearAttention has no rule `{rule}` for these heads")
    fades, corrects = "gated" in rule, "delta" in rule
    require(fades == node.given(4) and corrects == node.given(5), f"the rule `{rule}` takes other operands")
    query, key, value = (_unpacked(x, n) for x, n in zip(node.operands[:3], (heads, shared, shared), strict=True))
    length, batch, _, size = query.tensor.dims
    width = value.tensor.dims[3]
    key_size, key = key.tensor.dims[3], a.sized(key, 3, size)
    query = reshape(query, (length, batch, shared, heads // shared, size))
    consumed = [query, key, value]
    if fades:
        fade = _unpacked(node.operands[4], shared)  # for each element of a key, or for each head
        consumed.append(a.sized(fade, 3, size) if fade.tensor.dims[3] == key_size else fade)
    if corrects:
        beta = node.operands[5]
        consumed.append(_unpacked(beta, 1) if beta.tensor.dims[2] == 1 else a.sized(_unpacked(beta, shared), 3, 1))
    past = node.operand(3)
    state = splat(0, F32, (batch, shared, size, width)) if past is None else convert(past, F32)
    for axis, dim in enumerate((shared, size, width), start=1):
        state = a.sized(state, axis, dim)

    def step(_: Term, carried: Sequence[Term], elements: Sequence[Term], __: Sequence[Term]) -> tuple[list[Term], list[Term]]:
        (matrix,), (q, k, v, *rest) = carried, elements
        if fades:
            matrix = a.multiply(matrix, a.unsqueeze(a.exp(rest[0]), 3))
        if corrects:
            held = dot(matrix, k, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(2,), rhs_contract=(2,))
            v = a.multiply(rest[-1], a.subtract(v, held))
        matrix = a.add(matrix, a.multiply(a.unsqueeze(k, 3), a.unsqueeze(v, 2)))
        return [matrix], [dot(q, matrix, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(2,))]

    (last,), (answers,) = scan(step, [state], consumed, [], length)
    scaled = a.multiply(answers, _scale(node.attributes.get("scale", 0.0), size))
    packed = reshape(transpose(scaled, (1, 0, 2, 3, 4)), (batch, length, dims.multiply(heads, width)))
    dtype = node.operands[0].tensor.dtype
    return convert(packed, dtype), convert(last, dtype if past is None else past.tensor.dtype)


def _scale(given: float, size: Dim) -> Term:
    if given:
        return splat(given, F32, ())
    return splat(1 / math.sqrt(size), F32, ()) if isinstance(size, int) else make("stablehlo.rsqrt", (a.counted(size, F32),))


@definition("CausalConvWithState")
def _causal_convolution(node: Node) -> Built:
    """Each channel's own convolution over the past state (or zeros) and the input; the state after it are the last elements."""
    x, weight = node.operands[:2]
    require(x.tensor.rank == 3 and weight.tensor.rank == 3, f"{node.name} takes an input and weights of rank 3")
    channels, width = weight.tensor.dims[0], weight.tensor.dims[2]
    require(isinstance(channels, int) and isinstance(width, int), "CausalConvWithState needs a known number of channels and weights")
    assert isinstance(channels, int) and isinstance(width, int)
    past = node.operand(3)
    x = a.sized(x, 1, channels)
    past = None if past is None else a.sized(a.sized(past, 1, channels), 2, width - 1)
    padded = a.pad(x, 2, width - 1, 0, 0) if past is None else a.concatenate([past, x], 2)
    result = make("stablehlo.convolution", (padded, weight),
                  {"strides": (1,), "padding": ((0, 0),), "lhs_dilation": (1,), "rhs_dilation": (1,), "feature_group_count": channels,
                   "batch_group_count": 1})  # fmt: skip
    bias = node.operand(2)
    if bias is not None:
        result = a.add(result, broadcast(a.sized(bias, 0, channels), result.tensor.dims, (1,)))
    activation = node.attributes.get("activation", "none")
    require(activation in ("none", "silu", "swish"), f"CausalConvWithState has no activation `{activation}`")
    if activation != "none":
        wide = convert(result, F32)
        result = convert(a.multiply(wide, a.logistic(wide)), x.tensor.dtype)
    return result, a.take(padded, 2, x.tensor.dims[2], padded.tensor.dims[2])
