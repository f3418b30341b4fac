"""What ONNX's Attention and RotaryEmbedding mean: grouped heads, caches, masks, and rotations by cached angles.

The text: https://onnx.ai/onnx/operators/onnx__Attention.html, onnx__RotaryEmbedding.html.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from coset.dialects.hub.terms import broadcast, convert, dot, numpy_broadcast, reshape, splat, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx import indexing as onnx_indexing
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.dtypes import DTYPE_OF_CODE
from coset.dialects.onnx.graphs import CAPTURED, instantiate
from coset.dialects.onnx.node import Built, Node, definition
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import BOOL, F32, F64, I64, DType

DEFINED = (onnx_ops.RULES, onnx_indexing.RULES)  # Softmax and Gather are used here


class _Scores(NamedTuple):
    """What `qk_matmul_output` can be asked for."""

    raw: Term
    capped: Term
    biased: Term
    probabilities: Term


@definition("Attention")
def _attention(node: Node) -> Built:
    """softmax(cap(sqrt(s) q (sqrt(s) k)^T) + bias) v for each head; query heads share the key heads in groups; rows that may attend
    nothing give zeros. Results: y, the keys and values with the past ones before them, and the scores at one stage."""
    given = node.attributes
    flat = node.operands[0].tensor.rank == 3
    query, key, value = (
        _heads(x, given.get(name)) for x, name in zip(node.operands, ("q_num_heads", *2 * ("kv_num_heads",)), strict=False)
    )
    past: Dim = 0
    if node.given(4):
        past = node.operands[4].tensor.dims[2]
        key, value = (_appended(old, new) for old, new in zip(node.operands[4:6], (key, value), strict=True))
    bias, masked = _bias(node, query, key, past)
    precision = DTYPE_OF_CODE[given["softmax_precision"]] if "softmax_precision" in given else query.tensor.dtype
    scores = _scores(query, key, bias, masked, given.get("scale"), given.get("softcap", 0.0), precision)
    dtype = query.tensor.dtype
    wide = max(dtype, value.tensor.dtype, key=lambda d: d.bits)
    y = convert(grouped(convert(convert(scores.probabilities, dtype), wide), convert(value, wide), 2), dtype)
    if flat:
        y = transpose(y, (0, 2, 1, 3))
        y = reshape(y, (*y.tensor.dims[:2], dims.multiply(*y.tensor.dims[2:])))
    return y, key, value, convert(scores[given.get("qk_matmul_output_mode", 0)], dtype)


def _appended(past: Term, new: Term) -> Term:
    """The past keys or values with the new ones behind them."""
    return a.concatenate((a.sized(a.sized(past, 1, new.tensor.dims[1]), 3, new.tensor.dims[3]), new), 2)


def _heads(x: Term, count: int | None) -> Term:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    if x.tensor.rank == 4:
        return x
    require(x.tensor.rank == 3 and count is not None, "attention takes tensors of rank 4, or of rank 3 with the numbers of heads")
    assert count is not None
    return transpose(reshape(x, (*x.tensor.dims[:2], *_split(x, count))), (0, 2, 1, 3))


def grouped(query: Term, key: Term, contracted: int) -> Term:
    """Products over the last dim of `query` and dim `contracted` of `key` for each head; a key head serves a group of query heads."""
    batch, heads, length, size = query.tensor.dims
    shared = key.tensor.dims[1]
    share = dims.divide_exactly(heads, shared)
    if share is None:
        known = isinstance(heads, int) and isinstance(shared, int)
        require(not known, f"{heads} query heads do not share {shared} key heads evenly")
        each = a.divide(a.iota((heads,), 0), dims.floordiv(heads, shared))
        key, share = make("onnx.Gather", (key, each), {"axis": 1}), 1
    key = a.sized(key, contracted, size)
    axes = (0, 1)
    if share == 1:
        return dot(query, key, lhs_batch=axes, rhs_batch=axes, lhs_contract=(3,), rhs_contract=(contracted,))
    groups = reshape(query, (batch, shared, share, length, size))
    product = dot(groups, key, lhs_batch=axes, rhs_batch=axes, lhs_contract=(4,), rhs_contract=(contracted,))
    return reshape(product, (batch, heads, length, product.tensor.dims[4]))


def _scores(query: Term, key: Term, bias: Term | None, masked: Term | None, scale: float | None, cap: float, precision: DType) -> _Scores:
    """The scores at each stage; with a bias, rows of -inf only have probability 0 everywhere."""
    root = _root(scale, query.tensor.dims[3], query.tensor.dtype)
    raw = grouped(a.multiply(query, root), a.multiply(key, root), 3)
    capped = a.multiply(a.tanh(a.divide(raw, cap)), cap) if cap else raw
    biased = capped if bias is None else a.add(capped, bias)
    probabilities = make("onnx.Softmax", (convert(biased, precision),), {"axis": 3})
    if masked is not None:
        probabilities = a.select(masked, 0.0, probabilities)
    return _Scores(raw, capped, biased, probabilities)


def _root(scale: float | None, size: Dim, dtype: DType) -> Term:
    """The square root of the scale (default: 1 / sqrt(head size)) as a scalar of `dtype`: NaN of one below 0, as in ONNX's evaluator."""
    if scale is not None:
        return splat(math.sqrt(scale) if scale >= 0 else math.nan, dtype, ())
    if isinstance(size, int):
        return splat(1 / math.sqrt(math.sqrt(size)) if size else math.inf, dtype, ())
    return make("stablehlo.rsqrt", (a.sqrt(a.counted(size, dtype)),))


def _bias(node: Node, query: Term, key: Term, past: Dim) -> tuple[Term | None, Term | None]:
    """What is added to the scores, and which rows of it are -inf throughout; None where nothing is masked."""
    batch, _, length, _ = query.tensor.dims
    total, dtype = key.tensor.dims[2], query.tensor.dtype
    allowed, added = [], None
    if node.given(3):
        mask = _padded_mask(node.operands[3], total)
        if mask.tensor.dtype is BOOL:
            allowed.append(mask)
        else:
            added = convert(mask, dtype)
    lengths = node.operand(6)
    offset = a.counted(past, I64) if lengths is None else a.subtract(reshape(lengths, (batch, 1, 1, 1)), a.counted(length, I64))
    rows, columns = a.iota((length, total), 0), a.iota((length, total), 1)
    ahead = a.subtract(columns, a.add(rows, offset))  # how far a key lies after its query
    if node.attributes.get("is_causal", 0):
        allowed.append(a.compare(ahead, "LE", 0))
    for name, sign in (("left_window_size", -1), ("right_window_size", 1)):
        width = node.attributes.get(name, -1)
        if width >= 0:
            allowed.append(a.compare(ahead, "GE", -width) if sign < 0 else a.compare(ahead, "LE", width))
    if lengths is not None:
        allowed.append(a.compare(a.iota((1, 1, 1, total), 3), "LT", reshape(lengths, (batch, 1, 1, 1))))
    if not allowed and added is None:
        return None, None
    if allowed:
        condition = allowed[0]
        for other in allowed[1:]:
            condition = a.both(condition, other)
        forbidden = a.select(condition, 0.0, -a.INFINITY, dtype=dtype)
        added = forbidden if added is None else a.add(added, forbidden)
    assert added is not None
    shape = (*added.tensor.dims[:-1], total)
    whole = numpy_broadcast(added, shape)
    return whole, a.compare(a.fold(whole, (-1,), "maximum"), "EQ", -a.INFINITY)


def _padded_mask(mask: Term, total: Dim) -> Term:
    """The mask as wide as there are keys; keys that it does not reach are not attended."""
    missing = dims.subtract(total, mask.tensor.dims[-1])
    return a.pad(mask, -1, 0, missing, 0 if mask.tensor.dtype is BOOL else -a.INFINITY)


@definition("ai.onnx.preview.FlexAttention")
def _flex_attention(node: Node) -> Built:
    """prob_mod(softmax(score_mod(sqrt(s) q (sqrt(s) k)^T))) v; the modifiers are bodies; computed in f32 or wider unless said otherwise."""
    captured = node.attributes.get(CAPTURED, 0)
    query, key, value = node.operands[:3]
    outer = node.operands[len(node.operands) - captured :]
    require(all(x.tensor.rank == 4 for x in (query, key, value)), "FlexAttention takes tensors of rank 4")
    default = F64 if query.tensor.dtype == F64 else F32
    precision = DTYPE_OF_CODE[node.attributes["softmax_precision"]] if "softmax_precision" in node.attributes else default
    root = _root(node.attributes.get("scale"), query.tensor.dims[3], query.tensor.dtype)
    scores = convert(grouped(a.multiply(query, root), a.multiply(key, root), 3), precision)
    scores = _modified(node, "score_mod", scores, outer)
    probabilities = _modified(node, "prob_mod", make("onnx.Softmax", (scores,), {"axis": 3}), outer)
    return convert(grouped(probabilities, convert(value, precision), 2), value.tensor.dtype)


def _modified(node: Node, name: str, x: Term, captured: Sequence[Term]) -> Term:
    if name not in node.attributes:
        return x
    (result,) = instantiate(node.attributes[name], [x, *captured])
    require(result.tensor.shape == x.tensor.shape, f"`{name}` of FlexAttention makes {result.type} of {x.type}")
    return convert(result, x.tensor.dtype)


@definition("RotaryEmbedding")
def _rotary(node: Node) -> Built:
    """Pairs of elements of each head turned by the cached angles of their positions; pairs are halves apart, or neighbours."""
    x = node.operands[0]
    flat = x.tensor.rank == 3
    rows = reshape(x, (*x.tensor.dims[:2], *_split(x, node.attributes["num_heads"]))) if flat else transpose(x, (0, 2, 1, 3))
    size = node.attributes.get("rotary_embedding_dim", 0) or rows.tensor.dims[3]
    half = dims.floordiv(size, 2)
    require(not isinstance(size, int) or size % 2 == 0, f"heads of {size} elements cannot be rotated in pairs")
    cosine, sine = (_angles(node, index, rows, half) for index in (1, 2))
    turned, rest = a.take(rows, 3, 0, size), rows.tensor.dims[3]
    interleaved = node.attributes.get("interleaved", 0)
    if interleaved:
        pairs = reshape(turned, (*turned.tensor.dims[:3], half, 2))
        first, second = a.picked(pairs, 4, 0), a.picked(pairs, 4, 1)
    else:
        first, second = a.take(turned, 3, 0, half), a.take(turned, 3, half, dims.multiply(2, half))
    real = a.subtract(a.multiply(cosine, first), a.multiply(sine, second))
    imaginary = a.add(a.multiply(sine, first), a.multiply(cosine, second))
    if interleaved:
        result = reshape(a.concatenate([a.unsqueeze(real, 4), a.unsqueeze(imaginary, 4)], 4), turned.tensor.dims)
    else:
        result = a.concatenate([real, imaginary], 3)
    if size != rest:
        result = a.concatenate([result, a.take(rows, 3, size, rest)], 3)
    return reshape(result if flat else transpose(result, (0, 2, 1, 3)), x.tensor.dims)


def _split(x: Term, heads: int) -> tuple[Dim, Dim]:
    """The number of heads and their size; of a symbol rounded down, since the reshape to them asserts that nothing is left."""
    require(heads > 0, f"{x.type} does not split into {heads} heads")
    return heads, dims.floordiv(x.tensor.dims[2], heads)


def _angles(node: Node, index: int, rows: Term, half: Dim) -> Term:
    """The cached cosines or sines of each token, [batch, length, 1, pairs]."""
    cache = a.sized(node.operands[index], -1, half)
    if node.given(3):
        positions = node.operands[3]
        wide = cache.tensor.dims[1]
        gathered = make(
            "stablehlo.gather", (cache, positions),
            {"offset_dims": (2,), "collapsed_slice_dims": (0,), "operand_batching_dims": (), "start_indices_batching_dims": (),
             "start_index_map": (0,), "index_vector_dim": 2, "slice_sizes": (1, wide)},
        )  # fmt: skip
        cache = gathered
    return a.unsqueeze(broadcast(cache, (*rows.tensor.dims[:2], cache.tensor.dims[2]), (0, 1, 2)), 2)
