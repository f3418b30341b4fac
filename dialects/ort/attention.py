"""com.microsoft's attention nodes: caches, masks in all their forms, packed operands and groups of heads, before the attention itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from coset.dialects.hub.terms import broadcast, convert, numpy_broadcast, reshape, splat, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx import linear as onnx_linear
from coset.dialects.onnx.attention import grouped
from coset.dialects.onnx.node import Built, Node
from coset.dialects.ort.nodes import accept, applied, contrib, number, rotated, scalar
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import F32, I32, I64

PRIMITIVES = (onnx_linear,)
FILTER = -10000.0


def heads(x: Term, count: int) -> Term:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    if x.tensor.rank == 4:
        return x
    require(x.tensor.rank == 3, f"attention takes rank 3 or 4, not {x.type}")
    batch, length, wide = x.tensor.dims
    return transpose(reshape(x, (batch, length, count, dims.floordiv(wide, count))), (0, 2, 1, 3))


def _attend(node: Node, q: Term, k: Term, v: Term, mask: Term | None, bias: Term | None) -> Term:
    """Scaled dot-product attention of heads under a mask of any form, plus a bias: [batch, length, heads * size]."""
    given = node.attributes
    low = given.get("mask_filter_value", FILTER)
    keep, added = _mask(mask, q, k, low)
    both = bias if added is None else added if bias is None else a.add(bias, added)
    attributes = {"scale": given.get("scale", 0.0), "filter": low, "unidirectional": given.get("unidirectional", 0)}
    return applied("Heads", (q, k, v, keep, both), attributes)


def _mask(mask: Term | None, q: Term, k: Term, low: float) -> tuple[Term | None, Term | None]:
    """A mask as truths [batch, keys], or as numbers to add [batch, 1, queries, keys].

    It may be given as such, [batch, queries, keys], as the number of keys of each row, or as their ends and then their beginnings.
    """
    batch, _, length, _ = q.tensor.dims
    total = k.tensor.dims[2]
    if mask is None:
        return None, None
    if mask.tensor.rank == 3:
        return None, reshape(a.select(a.compare(mask, "GT", 0), 0.0, low, dtype=q.tensor.dtype), (batch, 1, length, total))
    if mask.tensor.rank == 2:
        return mask, None
    require(mask.tensor.rank == 1, f"attention is not defined for a mask {mask.type}")
    count = mask.tensor.dims[0]
    places = a.iota((batch, total), 1, mask.tensor.dtype)
    ends = a.unsqueeze(a.take(mask, 0, 0, batch), 1)
    kept = a.compare(places, "LT", ends)
    if count != batch:
        require(count == dims.multiply(2, batch), f"attention is not defined for a mask {mask.type}")
        kept = a.both(kept, a.compare(places, "GE", a.unsqueeze(a.take(mask, 0, batch, count), 1)))
    return convert(kept, I32), None


def _stacked(past: Term | None, k: Term, v: Term) -> tuple[Term, Term, Term]:
    """Keys and values behind those of the past [2, batch, heads, length, size], and all of them in that form."""
    if past is not None:
        k, v = (a.concatenate((a.picked(past, 0, i), new), 2) for i, new in enumerate((k, v)))
    return k, v, a.concatenate((a.unsqueeze(k, 0), a.unsqueeze(v, 0)), 0)


def _self_attention(node: Node, projected: Term, mask: Term | None, past: Term | None, bias: Term | None) -> Built:
    """Attention of what is projected to queries, keys and values one after the other, and the new cache (where its halves are equal)."""
    accept(node, do_rotary=0, past_present_share_buffer=0)
    count, wide = node.attributes["num_heads"], projected.tensor.dims[-1]
    sizes = tuple(node.attributes.get("qkv_hidden_sizes", ())) or (dims.floordiv(wide, 3),) * 3
    ends = (0, sizes[0], dims.add(sizes[0], sizes[1]), wide)
    q, k, v = (heads(a.take(projected, 2, low, high), count) for low, high in pairwise(ends))
    if sizes[1] != sizes[2]:
        require(past is None, f"{node.name} has no cache for keys and values of different sizes")
        return _attend(node, q, k, v, mask, bias)
    k, v, present = _stacked(past, k, v)
    return _attend(node, q, k, v, mask, bias), present


@contrib("Attention")
def _attention(node: Node) -> Built:
    """x attends to itself: queries, keys and values are parts of x weights + bias."""
    x, weights = node.operands[:2]
    require(not node.given(6), f"{node.name} is not defined for a shared cache")
    projected = make("onnx.MatMul", (x, weights))
    bias = node.operand(2)
    if bias is not None:
        projected = a.add(projected, bias)
    return _self_attention(node, projected, node.operand(3), node.operand(4), node.operand(5))


@contrib("QAttention")
def _quantized_attention(node: Node) -> Built:
    """The same of quantized x and weights."""
    x, weights, bias, x_scale, scale = node.operands[:5]
    operands = (x, weights, number(x_scale), number(scale), scalar(node, 6), scalar(node, 7), bias)
    projected = applied("MatMulIntegerToFloat", operands, {})
    return _self_attention(node, projected, node.operand(5), node.operand(8), None)


@contrib("MultiHeadAttention")
def _multi_head(node: Node) -> Built:
    """Queries, keys and values are given, the latter maybe as a cache [batch, heads, length, size]; results: y, keys, values."""
    require(not node.given(8) and not node.given(9), f"{node.name} is not defined for a shared cache")
    return _between(node, node.operand(3), node.operand(4), node.operand(5), (node.operand(6), node.operand(7)))


@contrib("DecoderMaskedMultiHeadAttention")
def _decoder(node: Node) -> Built:
    """One query for each row of the batch; beams that share a cache are not spoken of."""
    accept(node, output_qk=0)
    require(not any(node.given(i) for i in (8, 9)), f"{node.name} is not defined for beams")
    bias, mask, shift, past = node.operand(4), node.operand(3), node.operand(10), (node.operand(5), node.operand(6))
    if past[0] is None or past[1] is None or not node.attributes.get("past_present_share_buffer", 0):
        return _between(node, shift, mask, bias, past)
    filled = node.ints(7)
    if not filled:
        return None
    caches = [a.take(x, 2, 0, filled[0]) for x in past if x is not None]
    y, keys, values = _between(node, shift, mask, bias, caches)
    behind = [a.take(x, 2, filled[0] + 1, x.tensor.dims[2]) for x in past if x is not None]
    return y, *(a.concatenate((new, rest), 2) for new, rest in zip((keys, values), behind, strict=True))


def _between(node: Node, shift: Term | None, mask: Term | None, bias: Term | None, past: Sequence[Term | None]) -> tuple[Term, Term, Term]:
    """Attention of heads, to keys and values behind the past ones; `shift` is added to queries, keys and values."""
    count = node.attributes["num_heads"]
    query, key, value = (node.operand(i) for i in range(3))
    assert query is not None
    require(key is not None and value is not None and query.tensor.rank == 3, f"{node.name} is not defined for packed operands")
    assert key is not None and value is not None
    if shift is not None:
        require(key.tensor.rank == 3, f"{node.name} has no bias for a cache as keys")
        wide = query.tensor.dims[2]
        ends = (0, wide, dims.multiply(2, wide), shift.tensor.dims[0])
        query, key, value = (
            a.add(x, a.take(shift, 0, low, high)) for x, low, high in zip((query, key, value), ends, ends[1:], strict=False)
        )
    q, k, v = (heads(x, count) for x in (query, key, value))
    if past[0] is not None and past[1] is not None:
        k, v = a.concatenate((past[0], k), 2), a.concatenate((past[1], v), 2)
    return _attend(node, q, k, v, mask, bias), k, v


# ---------------------------------------------------------------- groups of heads over a cache


@contrib("GroupQueryAttention")
def _group_query(node: Node) -> Built:
    """Groups of query heads share heads of keys and values, which are put into a cache behind what it holds of each row of the batch."""
    accept(node, sliding_window_cache=0, k_quant_type="NONE", v_quant_type="NONE", qk_output=0, kv_cache_bit_width=0)
    require(not any(node.given(i) for i in range(12, 16)), f"{node.name} is not defined for a quantized cache or normalized heads")
    total, given = node.ints(6), node.attributes
    if total is None:
        return None
    lengths = a.add(reshape(node.operands[5], (node.operands[0].tensor.dims[0],)), 1)
    q, k, v = _packed(node)
    offset, (q, k, v) = _placed(node, (q, k, v), lengths, node.operand(7), node.operand(8), node.operand(9))
    keys, values = (_cached(node.operand(i), new, offset, total[0]) for i, new in ((3, k), (4, v)))
    ahead = _ahead(q, keys, offset)
    causal = given.get("causal", 1)
    allowed = a.compare(ahead, "LE", 0) if causal else a.compare(a.iota((1, 1, 1, keys.tensor.dims[2]), 3), "LT", _column(lengths, 4))
    window = given.get("local_window_size", -1)
    if window > 0:
        allowed = a.both(allowed, a.compare(ahead, "GT", -window))
    sink = node.operand(11)
    if sink is None and given.get("smooth_softmax", -1) > 0:
        sink = splat(0, F32, (given["num_heads"],))
    return _weighed(node, q, keys, values, allowed, sink, node.operand(10)), keys, values


@contrib("SparseAttention")
def _sparse(node: Node) -> Built:
    """The same where a mask of blocks, written as rows of column numbers, says which keys each query sees."""
    total = node.ints(7)
    if total is None:
        return None
    lengths = reshape(node.operands[8], (node.operands[0].tensor.dims[0],))
    q, k, v = _packed(node)
    offset, (q, k, v) = _placed(node, (q, k, v), lengths, node.operand(9), node.operand(10), None)
    keys, values = (_cached(node.operand(i), new, offset, total[0], shared=True) for i, new in ((3, k), (4, v)))
    allowed = a.both(a.compare(_ahead(q, keys, offset), "LE", 0), _blocks(node, q, keys, offset))
    return _weighed(node, q, keys, values, allowed, None, None), keys, values


def _column(x: Term, rank: int) -> Term:
    """A number for each row of the batch, as i64 [batch, 1, ..]."""
    return reshape(convert(x, I64), (x.tensor.dims[0], *(1,) * (rank - 1)))


def _packed(node: Node) -> tuple[Term, Term, Term]:
    """The heads of queries, keys and values, which may be one behind the other in the first operand."""
    count, shared = node.attributes["num_heads"], node.attributes["kv_num_heads"]
    query, key, value = (node.operand(i) for i in range(3))
    assert query is not None
    if key is not None and value is not None:
        return heads(query, count), heads(key, shared), heads(value, shared)
    wide = query.tensor.dims[2]
    size = dims.floordiv(wide, count + 2 * shared)
    ends = (0, dims.multiply(size, count), dims.multiply(size, count + shared), wide)
    q, k, v = (a.take(query, 2, low, high) for low, high in pairwise(ends))
    return heads(q, count), heads(k, shared), heads(v, shared)


def _placed(
    node: Node, qkv: tuple[Term, Term, Term], lengths: Term, cosines: Term | None, sines: Term | None, places: Term | None
) -> tuple[Term, tuple[Term, Term, Term]]:
    """How many keys each row of the batch has in the cache, and queries and keys turned by their positions behind these."""
    q, k, v = qkv
    batch, _, length, _ = q.tensor.dims
    offset = a.maximum(a.subtract(convert(lengths, I64), a.counted(length, I64)), 0)
    if not node.attributes.get("do_rotary", 0):
        return offset, qkv
    require(cosines is not None and sines is not None, f"{node.name} turns heads only by given angles")
    assert cosines is not None and sines is not None
    if places is None:
        places = a.add(a.unsqueeze(offset, 1), a.iota((batch, length), 1))
    angles = (broadcast(places, (batch, length), (0, 1)), cosines, sines)
    half = cosines.tensor.dims[1]
    attributes = {"interleaved": node.attributes.get("rotary_interleaved", 0), "rotary_embedding_dim": dims.multiply(2, half)}
    q, k = (rotated(x, angles, attributes) for x in (q, k))
    return offset, (q, k, v)


def _cached(past: Term | None, new: Term, offset: Term, total: int, *, shared: bool = False) -> Term:
    """The cache with `new` behind the first `offset` elements of each row, as long as it was, or `total`; behind that 0, or what it
    held where the result is the buffer of the operand."""
    batch, count, length, size = new.tensor.dims
    room = 0 if past is None else past.tensor.dims[2]
    wide = max(room, total) if isinstance(room, int) else room
    source = a.pad(new, 2, 0, 1, 0.0) if past is None else a.concatenate((past, a.pad(new, 2, 0, 1, 0.0)), 2)
    place = a.iota((batch, wide), 1)
    behind = a.subtract(place, a.unsqueeze(offset, 1))
    fresh = a.both(a.compare(behind, "GE", 0), a.compare(behind, "LT", a.counted(length, I64)))
    nothing = a.counted(dims.add(room, length), I64)
    kept = place if shared else a.select(a.compare(behind, "LT", 0), place, nothing)
    index = a.select(fresh, a.add(behind, a.counted(room, I64)), kept)
    attributes = {
        "offset_dims": (1, 3), "collapsed_slice_dims": (2,), "operand_batching_dims": (0,), "start_indices_batching_dims": (0,),
        "start_index_map": (2,), "index_vector_dim": 2, "slice_sizes": (1, count, 1, size),
    }  # fmt: skip
    return make("stablehlo.gather", (source, a.unsqueeze(index, 2)), attributes)


def _ahead(q: Term, keys: Term, offset: Term) -> Term:
    """How far each key lies behind each query in the sequence: [batch, 1, queries, keys]."""
    length, total = q.tensor.dims[2], keys.tensor.dims[2]
    return a.subtract(a.iota((1, 1, 1, total), 3), a.add(_column(offset, 4), a.iota((1, 1, length, 1), 2)))


def _blocks(node: Node, q: Term, keys: Term, offset: Term) -> Term:
    """Whether the block of each key is among the columns of the query's block, for each head."""
    rows, columns = node.operands[5:7]
    size, count = node.attributes["sparse_block_size"], node.attributes["num_heads"]
    layouts, most = columns.tensor.dims
    number = a.iota((1, most), 1, I32)
    blocks = dims.subtract(rows.tensor.dims[1], 1)
    first, last = a.take(rows, 1, 0, blocks), a.take(rows, 1, 1, rows.tensor.dims[1])
    inside = a.both(
        a.compare(a.unsqueeze(number, 1), "GE", a.unsqueeze(first, 2)), a.compare(a.unsqueeze(number, 1), "LT", a.unsqueeze(last, 2))
    )
    total = keys.tensor.dims[2]
    block_of_key = a.divide(a.iota((1, 1, total), 2, I32), size)
    named = a.compare(a.unsqueeze(columns, 2), "EQ", block_of_key)  # [layouts, most, keys]
    both = a.both(a.unsqueeze(inside, 3), a.unsqueeze(named, 1))  # [layouts, blocks, most, keys]
    seen = a.fold(both, (2,), "or", keep=False)
    require(isinstance(layouts, int), f"{node.name} needs a known number of layouts")
    assert isinstance(layouts, int)
    each = reshape(broadcast(seen, (count // layouts, *seen.tensor.dims), (1, 2, 3)), (count, *seen.tensor.dims[1:]))
    batch, _, length, _ = q.tensor.dims
    place = a.add(a.unsqueeze(offset, 1), a.iota((batch, length), 1))
    found = make("onnx.Gather", (each, a.divide(place, size)), {"axis": 1})  # [heads, batch, queries, keys]
    return transpose(found, (1, 0, 2, 3))


def _weighed(node: Node, q: Term, k: Term, v: Term, allowed: Term, sink: Term | None, bias: Term | None) -> Term:
    """The mean of the values by the softmax of the scores of the keys that are allowed, [batch, length, heads * size]; a sink is one
    score more for each head, without a value."""
    batch, count, length, size = q.tensor.dims
    dtype = q.tensor.dtype
    scale = node.attributes.get("scale", 0.0)
    root: Dim | float = scale or (1 / math.sqrt(size) if isinstance(size, int) and size else 0.0)
    require(root != 0.0, f"{node.name} needs a known size of heads")
    scores = a.multiply(convert(grouped(q, k, 3), F32), root)
    cap = node.attributes.get("softcap", 0.0)
    if cap:
        scores = a.multiply(a.tanh(a.divide(scores, cap)), cap)
    if bias is not None:
        wide = a.pad(bias, 3, 0, dims.subtract(k.tensor.dims[2], bias.tensor.dims[3]), 0.0)
        scores = a.add(scores, convert(wide, F32))
    scores = a.select(numpy_broadcast(allowed, scores.tensor.dims), scores, -a.INFINITY)
    if sink is not None:
        last = broadcast(convert(sink, F32), (batch, count, length, 1), (1,))
        scores = a.concatenate((scores, last), 3)
    probabilities = make("onnx.Softmax", (scores,), {"axis": 3})
    if sink is not None:
        probabilities = a.take(probabilities, 3, 0, k.tensor.dims[2])
    y = transpose(grouped(convert(probabilities, dtype), v, 2), (0, 2, 1, 3))
    return reshape(y, (batch, length, dims.multiply(count, y.tensor.dims[3])))


# ---------------------------------------------------------------- rotations of three positions


@contrib("MRotaryEmbedding")
def _three_positions(node: Node) -> Built:
    """Each pair is turned by an angle of one of three positions of its token: parts of the pairs in a row, or every third pair."""
    accept(node, scale=1.0, is_packed_batching=0)
    x, places, cosines, sines = node.operands
    time, height, width = node.attributes["mrope_section"]
    half = cosines.tensor.dims[1]
    require(half == time + height + width, f"`mrope_section` does not have the {half} pairs of the angles")
    if node.attributes.get("mrope_layout", 0):
        kinds = [1 if i % 3 == 1 and i < 3 * height else 2 if i % 3 == 2 and i < 3 * width else 0 for i in range(time + height + width)]
    else:
        kinds = [0] * time + [1] * height + [2] * width
    own = [[a.picked(_angle(table, a.picked(places, 0, kind)), 2, i) for i, kind in enumerate(kinds)] for table in (cosines, sines)]
    flat = x.tensor.rank == 3
    length = x.tensor.dims[1 if flat else 2]
    batch = x.tensor.dims[0]
    tables = [
        reshape(a.concatenate([a.unsqueeze(column, 2) for column in columns], 2), (dims.multiply(batch, length), half)) for columns in own
    ]
    token = reshape(a.iota((dims.multiply(batch, length),), 0), (batch, length))
    names = ("num_heads", "rotary_embedding_dim", "interleaved")
    attributes = {key: value for key, value in node.attributes.items() if key in names}
    return rotated(x, (token, *tables), attributes)


def _angle(table: Term, places: Term) -> Term:
    """The row of a table for each token: [batch, length, pairs]."""
    return make("onnx.Gather", (table, places), {"axis": 0})
