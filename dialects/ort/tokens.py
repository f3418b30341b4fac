"""com.microsoft nodes on tokens: repeated n-grams, matches of suffixes, hashes, and words of characters."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub.terms import convert, dot, numpy_broadcast, reshape, splat
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.node import Built, Node
from coset.dialects.onnx.selection import front
from coset.dialects.ort.nodes import accept, contrib
from coset.ir import dims
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import BOOL, DTYPES, I32, I64

_U32 = DTYPES["u32"]


@contrib("NGramRepeatBlock")
def _no_repetition(node: Node) -> Built:
    """-inf for each token that would make an n-gram which the ids hold already."""
    ids, scores = node.operands
    size, length = node.attributes["ngram_size"], ids.tensor.dims[1]
    require(size > 0 and isinstance(length, int), f"{node.name} needs a known number of ids")
    assert isinstance(length, int)
    count = length - size + 1
    if count < 1:
        return scores
    repeated = splat(True, BOOL, (ids.tensor.dims[0], count))
    for offset in range(size - 1):
        own = a.take(ids, 1, offset, offset + count)
        last = a.take(ids, 1, length + 1 - size + offset, length + 2 - size + offset)
        repeated = a.both(repeated, a.compare(own, "EQ", last))
    following = a.unsqueeze(a.take(ids, 1, size - 1, length), 2)
    named = a.compare(following, "EQ", a.iota((1, 1, scores.tensor.dims[1]), 2))
    banned = a.fold(a.both(a.unsqueeze(repeated, 2), named), (1,), "or", keep=False)
    return a.select(banned, -a.INFINITY, scores)


@contrib("BifurcationDetector")
def _bifurcation(node: Node) -> Built:
    """The tokens with the predicted ones up to the first that differs from the source, and where their last n-gram stands in the source.

    n goes from the least to the greatest size: a single match is remembered, several forget it, none or one at the end stops.
    """
    source, tokens, start = node.operands[:3]
    predicted = node.operand(3)
    require(all(each.tensor.rank == 1 for each in (source, tokens)), f"{node.name} takes rows of tokens, not {tokens.type}")
    known = tokens.tensor.dims[0]
    if predicted is None:
        whole, length, result = tokens, a.counted(known, I64), tokens
    else:
        room = predicted.tensor.dims[0]
        places = a.add(a.iota((room,), 0), number_of(start))
        size = source.tensor.dims[0]
        there = make("onnx.Gather", (a.pad(source, 0, 0, 1, 0), a.minimum(places, a.counted(size, I64))), {"axis": 0})
        same = a.both(a.compare(there, "EQ", predicted), a.compare(places, "LT", a.counted(size, I64)))
        index = a.iota((room,), 0)
        agreed = a.fold(a.select(same, a.counted(room, I64), index), (0,), "minimum", keep=False)
        length = a.add(a.add(agreed, 1), a.counted(known, I64))
        whole = a.concatenate((tokens, predicted), 0)
        result = front(whole, reshape(length, (1,)), dims.symbol("count"))
    found = _suffix(source, whole, length, node.attributes.get("min_ngram_size", 1), node.attributes.get("max_ngram_size", 3))
    return result, reshape(found, start.tensor.dims)


def number_of(x: Term) -> Term:
    """A vector of one, or a scalar, as a scalar."""
    return reshape(x, ())


def _suffix(source: Term, whole: Term, length: Term, least: int, most: int) -> Term:
    """The end of the match of the last n-gram of the first `length` elements of `whole`."""
    size = source.tensor.dims[0]
    require(isinstance(size, int), "the number of source tokens must be known")
    assert isinstance(size, int)
    found, going = splat(-1, I64, ()), splat(True, BOOL, ())
    for n in range(least, most + 1):
        going = a.both(going, a.compare(length, "GE", n))
        count = size - n + 1
        if count < 1:
            break
        last = a.maximum(a.add(a.iota((n,), 0), a.subtract(length, n)), 0)
        gram = make("onnx.Gather", (whole, last), {"axis": 0})
        match = splat(True, BOOL, (count,))
        for offset in range(n):
            match = a.both(match, a.compare(a.take(source, 0, offset, offset + count), "EQ", a.take(gram, 0, offset, offset + 1)))
        times = a.fold(convert(match, I64), (0,), keep=False)
        first = a.fold(a.select(match, a.iota((count,), 0), size), (0,), "minimum", keep=False)
        end = a.add(first, n)
        going = a.both(going, a.compare(times, "GT", 0))
        ends = a.compare(end, "GE", size)
        several = a.both(a.compare(times, "GT", 1), a.invert(ends))
        found = a.select(going, a.select(several, -1, end), found)
        going = a.both(going, a.invert(ends))
    return found


# ---------------------------------------------------------------- hashes


@contrib("MurmurHash3")
def _murmur(node: Node) -> Built:
    """MurmurHash3_x86_32 (A. Appleby, 2011) of the 4 or 8 bytes of each element."""
    x = node.operands[0]
    bits = x.tensor.dtype.bits
    require(bits in (32, 64), f"{node.name} is defined for elements of 4 and 8 bytes, not {x.type}")
    words = make("stablehlo.bitcast_convert", (x,), {"dtype": _U32})
    parts = [words] if bits == 32 else [a.picked(words, -1, i) for i in (0, 1)]
    state = splat(node.attributes.get("seed", 0), _U32, x.tensor.dims)
    for word in parts:
        key = a.multiply(_rotated(a.multiply(word, 0xCC9E2D51), 15), 0x1B873593)
        state = a.add(a.multiply(_rotated(_xor(state, key), 13), 5), 0xE6546B64)
    state = _xor(state, splat(bits // 8, _U32, x.tensor.dims))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = a.multiply(_xor(state, a.pointwise("shift_right_logical", state, shift)), factor)
    state = _xor(state, a.pointwise("shift_right_logical", state, 16))
    return state if node.attributes.get("positive", 1) else make("stablehlo.bitcast_convert", (state,), {"dtype": I32})


def _xor(x: Term, y: Term) -> Term:
    return a.pointwise("xor", x, y)


def _rotated(x: Term, count: int) -> Term:
    """The bits of u32 turned to the left."""
    return a.either(a.pointwise("shift_left", x, count), a.pointwise("shift_right_logical", x, 32 - count))


@contrib("NGramHashMapping")
def _engram_hash(node: Node) -> Built:
    """For each n the exclusive or of the last n ids, each times a factor, modulo the size of each head; and the last ids."""
    accept(node, reset_on_eos=0)
    require(not node.given(6), f"{node.name} is not defined for segments")
    ids, factors, sizes = node.operands[:3]
    most, heads = node.attributes["max_ngram_size"], node.attributes["n_head_per_ngram"]
    batch, length = ids.tensor.dims
    dtype = ids.tensor.dtype
    past, first = node.operand(3), node.operand(5)
    if past is None:
        missing = splat(node.attributes["pad_id"], dtype, ()) if first is None else number_of(first)
        past = numpy_broadcast(missing, (batch, most - 1))
    whole = a.concatenate((past, ids), 1)
    shifted = [a.take(whole, 1, most - 1 - shift, dims.add(length, most - 1 - shift)) for shift in range(most)]
    return _hashes(shifted, factors, sizes, heads, node.operand(4)), a.take(whole, 1, length, dims.add(length, most - 1))


def _hashes(shifted: Sequence[Term], factors: Term, sizes: Term, heads: int, offsets: Term | None) -> Term:
    """The hashes of the n-grams that end at each id, for each n; `shifted[k]` are the ids k places before."""
    mixed, results = None, []
    for shift, ids in enumerate(shifted):
        product = a.multiply(ids, a.take(factors, 0, shift, shift + 1))
        mixed = product if mixed is None else _xor(mixed, product)
        if shift:
            size = a.take(sizes, 0, (shift - 1) * heads, shift * heads)
            rest = a.pointwise("remainder", a.unsqueeze(mixed, mixed.tensor.rank), size)
            results.append(a.select(a.compare(rest, "LT", 0), a.add(rest, size), rest))
    hashes = a.concatenate(results, -1)
    return hashes if offsets is None else a.add(hashes, offsets)


@contrib("VarlenNGramHashMapping")
def _packed_hash(node: Node) -> Built:
    """The same of sequences that lie one after the other, each behind its own past; the ends of the sequences are an operand."""
    accept(node, reset_on_eos=0, state_update_capacity=0)
    require(not any(node.given(i) for i in (7, 8, 9)), f"{node.name} is not defined for segments and captured states")
    ids, factors, sizes, ends = node.operands[:4]
    most, heads = node.attributes["max_ngram_size"], node.attributes["n_head_per_ngram"]
    requests, count = dims.subtract(ends.tensor.dims[0], 1), ids.tensor.dims[0]
    past, first = node.operand(4), node.operand(6)
    if past is None:
        missing = splat(node.attributes["pad_id"], ids.tensor.dtype, ()) if first is None else number_of(first)
        past = numpy_broadcast(missing, (requests, most - 1))
    source = a.concatenate((reshape(past, (dims.multiply(requests, most - 1),)), ids), 0)
    bounds = convert(ends, I64)
    starts, stops = a.take(bounds, 0, 0, requests), a.take(bounds, 0, 1, ends.tensor.dims[0])

    def before(place: Term, request: Term, start: Term) -> Term:
        """The ids at places that may lie before the start of their sequence."""
        behind = a.add(a.multiply(request, most - 1), a.add(a.subtract(place, start), most - 1))
        inside = a.add(place, dims.multiply(requests, most - 1))
        return make("onnx.Gather", (source, a.select(a.compare(place, "GE", start), inside, behind)), {"axis": 0})

    tokens = a.iota((count,), 0)
    passed = a.compare(a.unsqueeze(tokens, 1), "GE", a.unsqueeze(stops, 0))
    request = a.fold(convert(passed, I64), (1,), keep=False)
    start = make("onnx.Gather", (starts, request), {"axis": 0})
    shifted = [before(a.subtract(tokens, shift), request, start) for shift in range(most)]
    slots = a.add(a.unsqueeze(stops, 1), a.subtract(a.iota((1, most - 1), 1), most - 1))
    own, begin = (numpy_broadcast(a.unsqueeze(x, 1), (requests, most - 1)) for x in (a.iota((requests,), 0), starts))
    return _hashes(shifted, factors, sizes, heads, node.operand(5)), before(slots, own, begin)


# ---------------------------------------------------------------- words


@contrib("WordConvEmbedding")
def _words(node: Node) -> Built:
    """For each word, the characters of which are numbers above 0, the greatest tanh of a convolution over windows of characters that lie in
    it (one window at least); 0 for words that begin with no character, of which the kernels write nothing."""
    letters, weight, bias, table = node.operands
    require(weight.tensor.rank == 4 and letters.tensor.rank == 2, f"{node.name} takes words of letters and four dims of weights")
    count, _, width, size = weight.tensor.dims
    length = letters.tensor.dims[1]
    embedded = make("onnx.Gather", (table, a.maximum(letters, 0)), {"axis": 0})
    windows = dims.add(dims.subtract(length, width), 1)
    places = a.add(a.iota((windows, width), 0), a.iota((windows, width), 1))
    unfolded = make("onnx.Gather", (embedded, places), {"axis": 1})
    products = dot(unfolded, reshape(weight, (count, width, size)), lhs_contract=(2, 3), rhs_contract=(1, 2))
    values = a.tanh(a.add(products, bias))
    there = a.compare(letters, "GT", 0)
    characters = a.fold(convert(there, I64), (1,))
    last = a.subtract(a.maximum(characters, width), width)
    inside = a.unsqueeze(a.compare(a.iota((1, windows), 1), "LE", last), 2)
    best = a.fold(a.select(inside, values, -1e12), (1,), "maximum", keep=False)
    return a.select(a.take(there, 1, 0, 1), best, 0.0)
