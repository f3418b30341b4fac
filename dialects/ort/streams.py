"""com.microsoft nodes over streams (hyper-connections), gates and linear attention: their forms as the definitions have them."""

from __future__ import annotations

from dataclasses import replace

from coset.dialects.hub.terms import broadcast, convert, numpy_broadcast, reshape, splat, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.node import Built, Node, define
from coset.dialects.ort.nodes import accept, applied, contrib, parts
from coset.ir import dims
from coset.ir.errors import require
from coset.ir.term import Term
from coset.ir.types import F32

# ---------------------------------------------------------------- streams: computed in f32


def _grouped(x: Term, branches: int) -> Term:
    """[.., branches * size] as [.., branches, size] where a number of branches is given, in f32."""
    if not branches:
        return convert(x, F32)
    *lead, wide = x.tensor.dims
    return convert(reshape(x, (*lead, branches, dims.floordiv(wide, branches))), F32)


def _gates(gates: Term, streams: Term) -> Term:
    """Gates of branches [.., C] or [.., C, 1], or of all elements [.., C, H] or [.., C * H], for each element of the streams."""
    shape = streams.tensor.dims
    wide = convert(gates, F32)
    if gates.tensor.dims == shape[:-1]:
        return broadcast(wide, shape, tuple(range(len(shape) - 1)))
    if gates.tensor.rank == len(shape) - 1:
        return reshape(wide, shape)
    return numpy_broadcast(wide, shape)


@contrib("BranchwiseRMSNorm")
def _branchwise(node: Node) -> Built:
    """Of grouped or flat branches; a scale for each element, or one for all branches."""
    x, scale = node.operands[0], node.operand(1)
    branches = _grouped(x, node.attributes.get("num_branches", 0))
    shape = branches.tensor.dims[-2:]
    flat = scale is not None and scale.tensor.rank == 1 and scale.tensor.dims != shape[1:]
    weights = splat(1, F32, shape) if scale is None else convert(reshape(scale, shape) if flat else numpy_broadcast(scale, shape), F32)
    attributes = {key: value for key, value in node.attributes.items() if key == "epsilon"}
    normal = applied("BranchwiseRMSNorm", (branches, weights), attributes)
    return convert(reshape(normal, x.tensor.dims), x.tensor.dtype)


@contrib("HyperConnectionPreMix")
def _reduced(node: Node) -> Built:
    x = node.operands[0]
    streams = _grouped(x, node.attributes.get("num_branches", 0))
    attributes = {key: value for key, value in node.attributes.items() if key == "reduction_scale"}
    return convert(applied("HyperConnectionPreMix", (streams, _gates(node.operands[1], streams)), attributes), x.tensor.dtype)


@contrib("HyperConnectionPostMix")
def _mixed(node: Node) -> Built:
    x, output, gates = node.operands[:3]
    streams, mix = _grouped(x, node.attributes.get("num_branches", 0)), node.operand(3)
    operands = (streams, convert(output, F32), _gates(gates, streams), None if mix is None else convert(mix, F32))
    return convert(reshape(applied("HyperConnectionPostMix", operands, {}), x.tensor.dims), x.tensor.dtype)


# ---------------------------------------------------------------- gates


@contrib("LinearAttentionGate")
def _decay_gate(node: Node) -> Built:
    """In f32; without b there is no second result."""
    x, bias, scale = node.operands[:3]
    second = node.operand(3)
    wide = convert(x, F32)
    decay, beta = parts(applied("LinearAttentionGate", (wide, bias, scale, wide if second is None else convert(second, F32)), {}))
    results = (decay,) if second is None else (decay, beta)
    return tuple(convert(result, x.tensor.dtype) for result in results)


@contrib("EngramGate")
def _engram_gate(node: Node) -> Built:
    """In f32; without a scale for it there is no second result."""
    dtype = node.operands[0].tensor.dtype
    scale = node.operand(5)
    wide = [convert(x, F32) for x in (*node.operands[:5], node.operands[3] if scale is None else scale)]
    gated, normal = parts(applied("EngramGate", wide, node.attributes))
    return tuple(convert(result, dtype) for result in ((gated,) if scale is None else (gated, normal)))


# ---------------------------------------------------------------- linear attention


@contrib("LinearAttention")
def _linear_attention(node: Node) -> Built:
    """The standard op; heads of queries or keys may also be shared by several heads of values."""
    accept(node, state_window=0)
    queries, values = node.attributes["q_num_heads"], node.attributes["kv_num_heads"]
    query, key = node.operands[:2]
    require(query.tensor.rank == 3 and queries > 0 and values > 0, f"{node.name} takes packed heads")
    size = dims.floordiv(query.tensor.dims[2], queries)
    keys = dims.divide_exactly(key.tensor.dims[2], size)
    require(isinstance(keys, int) and keys > 0 and values % keys == 0, f"heads of {size} do not fit keys {key.type}")
    assert isinstance(keys, int)
    if queries < values:
        require(values % queries == 0, f"{values} heads do not share {queries} heads of queries evenly")
        query, queries = _repeated(query, queries, values // queries), values
    operands = (query, _repeated(key, keys, values // keys), *node.operands[2:])
    attributes = {key: value for key, value in node.attributes.items() if key in ("update_rule", "scale")}
    given = {**attributes, "q_num_heads": queries, "kv_num_heads": values}
    return define(replace(node, name="LinearAttention", operands=operands, attributes=given, since=26))


def _repeated(x: Term, heads: int, times: int) -> Term:
    """[batch, length, heads * size] with each head `times` times."""
    batch, length, wide = x.tensor.dims
    shape = (batch, length, heads, dims.floordiv(wide, heads))
    spread = broadcast(reshape(x, shape), (*shape[:3], times, shape[3]), (0, 1, 2, 4))
    return reshape(spread, (batch, length, dims.multiply(wide, times)))


@contrib("CausalConvWithState")
def _causal_convolution(node: Node) -> Built:
    """The standard op over one spatial dim; a dilation is zeros between the weights, channels may be the last dims."""
    accept(node, state_window=0, ndim=1)
    x, weight = node.operands[:2]
    gap, last = node.attributes.get("dilation", 1) - 1, bool(node.attributes.get("channels_last", 0))
    spread = a.padded(weight, (0, 0, 0), (0, 0, 0), 0, (0, 0, gap)) if gap else weight
    past = node.operand(3)
    operands = [_channels_second(x) if last else x, spread, *node.operands[2:]]
    if past is not None and last:
        operands[3] = _channels_second(past)
    attributes = {key: value for key, value in node.attributes.items() if key == "activation"}
    found = define(replace(node, name="CausalConvWithState", operands=tuple(operands), attributes=attributes, since=26))
    if not last or found is None:
        return found
    return tuple(reshape(transpose(y, (0, 2, 1)), (y.tensor.dims[0], y.tensor.dims[2], *x.tensor.dims[2:])) for y in found)


def _channels_second(x: Term) -> Term:
    """[batch, length, channels..] as [batch, channels, length]."""
    batch, length, *channels = x.tensor.dims
    return transpose(reshape(x, (batch, length, dims.product(channels))), (0, 2, 1))
