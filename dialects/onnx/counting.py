"""What ONNX's TfIdfVectorizer means: how often each n-gram of a list occurs in each row of a tensor of integers.

The text: https://onnx.ai/onnx/operators/onnx__TfIdfVectorizer.html.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coset.dialects.hub.terms import broadcast, convert, dot, literal, reshape
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.node import Built, Node, definition
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term
from coset.ir.types import F32, I64


@definition("TfIdfVectorizer")
def _count_ngrams(node: Node) -> Built:
    """The counts, 1 or 0 for IDF, times the weights (but for TF), of each n-gram at its index. The items of an n-gram stand 1 to
    max_skip_count + 1 places apart, all equally far; single items count once."""
    given = node.attributes
    x = node.operands[0]
    if "pool_int64s" not in given or x.tensor.dtype.kind != "int" or x.tensor.rank not in (1, 2):
        return None
    rows = convert(x if x.tensor.rank == 2 else reshape(x, (1, *x.tensor.dims)), I64)
    found = [total for length, pool in _ngrams(node) if (total := _occurrences(rows, pool, length, given["max_skip_count"])) is not None]
    indexes = np.array(given["ngram_indexes"], np.int64)
    mode = given["mode"]
    require(mode in ("TF", "IDF", "TFIDF"), f"TfIdfVectorizer has no mode `{mode}`")
    first, last = _range(node)
    own = indexes[first:last]
    weights = np.ones(len(own)) if mode == "TF" or "weights" not in given else np.array(given["weights"], np.float64)[first:last]
    placed = np.zeros((len(own), int(indexes.max()) + 1), np.float32)
    np.add.at(placed, (np.arange(len(own)), own), weights.astype(np.float32))
    counts = a.concatenate(found, 1)
    counts = a.minimum(counts, 1.0) if mode == "IDF" else counts
    result = dot(counts, literal(placed), lhs_contract=(1,), rhs_contract=(0,))
    return result if x.tensor.rank == 2 else reshape(result, result.tensor.dims[1:])


def _bounds(node: Node) -> list[tuple[int, int, int]]:
    """(length, first, last): the n-grams of each length, as their part of the pool."""
    starts = [*node.attributes["ngram_counts"], len(node.attributes["pool_int64s"])]
    return [(length, starts[length - 1], starts[length]) for length in range(1, len(starts))]


def _wanted(node: Node, length: int) -> bool:
    return bool(node.attributes["min_gram_length"] <= length <= node.attributes["max_gram_length"])


def _ngrams(node: Node) -> Iterator[tuple[int, np.ndarray]]:
    """The length and the n-grams, one a row, of each length that is asked for."""
    pool = np.array(node.attributes["pool_int64s"], np.int64)
    for length, first, last in _bounds(node):
        if _wanted(node, length):
            yield length, pool[first:last].reshape(-1, length)


def _range(node: Node) -> tuple[int, int]:
    """Which of all n-grams are asked for."""
    number, found = 0, []
    for length, first, last in _bounds(node):
        count = (last - first) // length
        found += [number, number + count] if _wanted(node, length) else []
        number += count
    return (min(found), max(found)) if found else (0, 0)


def _occurrences(rows: Term, pool: np.ndarray, length: int, skips: int) -> Term | None:
    """[rows, n-grams]: how often each occurs, with every distance between its items."""
    shape = (rows.tensor.dims[0], len(pool))
    total = broadcast(literal(np.float32(0)), shape, ())
    for distance in range(1, 2 if length == 1 else skips + 2):
        places: Dim = dims.subtract(rows.tensor.dims[1], (length - 1) * distance)
        if isinstance(places, int) and places <= 0:
            continue
        equal: Term | None = None
        for item in range(length):
            part = a.take(rows, 1, item * distance, dims.add(item * distance, places))
            same = a.compare(a.unsqueeze(part, 2), "EQ", literal(pool[:, item].reshape(1, 1, -1)))
            equal = same if equal is None else a.both(equal, same)
        assert equal is not None
        total = a.add(total, a.fold(convert(equal, F32), (1,), keep=False))
    return total
