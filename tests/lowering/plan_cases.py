"""Programs of the kernel families, as hub terms: what people write in models, small, with inputs for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import broadcast, convert, dot, reshape, splat, transpose
from coset.dialects.onnx.arithmetic import counted
from coset.dialects.onnx.loops import element, placed
from coset.ir.builtin import absent
from coset.ir.dims import Dim, multiply, symbol
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make
from coset.ir.types import BF16, BOOL, DTYPES, F16, F32, I8, I32, DType, TensorType

Feeds = dict[str, Any]
Case = Callable[[], tuple[Program, Feeds]]
CASES: dict[str, Case] = {}
LEAN = {
    "embedding", "gelu", "softmax", "layer_norm", "rms_norm", "group_norm", "moved", "two_norms", "wide_sum", "batch_norm", "argmax",
    "logsumexp",
}  # fmt: skip
"""Pointwise and normalization groups: their plans move at most 1.1 times the least."""


def case(build: Callable[[], tuple[list[Term], list[Term]]]) -> Callable[[], tuple[list[Term], list[Term]]]:
    """Enter a builder of (inputs, outputs) as a case by its name."""

    def made() -> tuple[Program, Feeds]:
        inputs, outputs = build()
        draw = np.random.default_rng(7)
        sizes = {"n": 5, "s": 7}
        feeds: Feeds = {}
        for term in inputs:
            shape = [dim if isinstance(dim, int) else sizes[str(dim)] for dim in term.tensor.dims]
            values = draw.normal(size=shape) if term.tensor.dtype.kind == "float" else draw.integers(-9, 9, shape)
            feeds[term.attribute("name")] = values.astype(term.tensor.dtype.numpy)
        return Program(tuple(inputs), tuple((f"y{i}", term) for i, term in enumerate(outputs))), feeds

    CASES[build.__name__.strip("_")] = made
    return build


def x_(name: str, dtype: DType, *shape: Dim) -> Term:
    return input_term(name, TensorType(dtype, shape))


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}" if "." not in name else name, operands, attributes)


def fold(x: Term, combiner: str, *axes: int) -> Term:
    return op("reduce", x, dimensions=axes, combiner=combiner)


def along(row: Term, x: Term, *axes: int) -> Term:
    """A row's value beside every element of `x` that it was folded from."""
    return broadcast(row, x.tensor.dims, tuple(i for i in range(x.tensor.rank) if i not in axes))


def last(vector: Term, x: Term) -> Term:
    return broadcast(vector, x.tensor.dims, (x.tensor.rank - 1,))


def like(value: float, x: Term) -> Term:
    return splat(value, x.tensor.dtype, x.tensor.dims)


def gelu_of(x: Term) -> Term:
    inner = op("chlo.erf", op("multiply", x, like(0.7071067811865476, x)))
    return op("multiply", op("multiply", x, like(0.5, x)), op("add", inner, like(1.0, x)))


def softmax_of(x: Term) -> Term:
    axis = x.tensor.rank - 1
    e = op("exponential", op("subtract", x, along(fold(x, "maximum", axis), x, axis)))
    return op("divide", e, along(fold(e, "add", axis), e, axis))


def normalized(x: Term, count: int, *axes: int) -> Term:
    mean = fold(x, "add", *axes)
    centered = op("subtract", x, along(op("divide", mean, like(count, mean)), x, *axes))
    squares = fold(op("multiply", centered, centered), "add", *axes)
    variance = op("add", op("divide", squares, like(count, squares)), like(1e-5, squares))
    return op("multiply", centered, along(op("rsqrt", variance), x, *axes))


@case
def gelu() -> tuple[list[Term], list[Term]]:
    x, b = x_("x", F32, symbol("n"), 24), x_("b", F32, 24)
    return [x, b], [gelu_of(op("add", x, last(b, x)))]


@case
def softmax() -> tuple[list[Term], list[Term]]:
    x, mask = x_("x", BF16, 2, 3, symbol("n"), 33), x_("mask", F32, symbol("n"), 33)
    scaled = op("multiply", convert(x, F32), splat(0.125, F32, x.tensor.dims))
    return [x, mask], [convert(softmax_of(op("add", scaled, broadcast(mask, x.tensor.dims, (2, 3)))), BF16)]


@case
def logsumexp() -> tuple[list[Term], list[Term]]:
    x = x_("x", F32, 6, 50)
    top = fold(x, "maximum", 1)
    e = op("exponential", op("subtract", x, along(top, x, 1)))
    return [x], [op("add", op("log", fold(e, "add", 1)), top)]


@case
def layer_norm() -> tuple[list[Term], list[Term]]:
    """A residual is added first and given out too."""
    x, r, w, b = x_("x", F16, symbol("n"), 48), x_("r", F16, symbol("n"), 48), x_("w", F16, 48), x_("b", F16, 48)
    h = op("add", x, r)
    y = normalized(convert(h, F32), 48, 1)
    y = op("add", op("multiply", y, last(convert(w, F32), y)), last(convert(b, F32), y))
    return [x, r, w, b], [h, convert(y, F16)]


@case
def rms_norm() -> tuple[list[Term], list[Term]]:
    x, w = x_("x", F32, 3, symbol("s"), 32), x_("w", F32, 32)
    mean = fold(op("multiply", x, x), "add", 2)
    root = op("rsqrt", op("add", op("multiply", mean, like(1 / 32, mean)), like(1e-6, mean)))
    return [x, w], [op("multiply", op("multiply", x, along(root, x, 2)), last(w, x))]


@case
def group_norm() -> tuple[list[Term], list[Term]]:
    """Over [N, groups, channels of a group * height * width], then a scale for each channel and SiLU."""
    x, w, b = x_("x", F32, 2, 8, 5, 6), x_("w", F32, 8), x_("b", F32, 8)
    y = reshape(normalized(reshape(x, (2, 4, 60)), 60, 2), x.tensor.dims)
    y = op("add", op("multiply", y, broadcast(w, y.tensor.dims, (1,))), broadcast(b, y.tensor.dims, (1,)))
    return [x, w, b], [op("multiply", y, op("logistic", y))]


@case
def batch_norm() -> tuple[list[Term], list[Term]]:
    x, w, b = x_("x", F32, 4, 6, 5, 3), x_("w", F32, 6), x_("b", F32, 6)
    whole = op("batch_norm_training", x, w, b, epsilon=1e-5, feature_index=1)
    return [x, w, b], [make("builtin.get", (whole,), {"index": i}) for i in range(3)]


@case
def two_norms() -> tuple[list[Term], list[Term]]:
    """Sums of x and of its squares along the same rows: one kernel."""
    x = x_("x", F32, 9, 40)
    mean, square = (op("multiply", fold(y, "add", 1), splat(1 / 40, F32, (9,))) for y in (x, op("multiply", x, x)))
    root = op("rsqrt", op("add", op("subtract", square, op("multiply", mean, mean)), splat(1e-5, F32, (9,))))
    return [x], [op("multiply", op("subtract", x, along(mean, x, 1)), along(root, x, 1)), mean]


@case
def wide_sum() -> tuple[list[Term], list[Term]]:
    x = x_("x", BF16, 70000)
    return [x], [fold(op("multiply", x, x), "add", 0)]


@case
def argmax() -> tuple[list[Term], list[Term]]:
    """The first index of the largest element, by two folds."""
    x = x_("x", F32, 5, 30)
    places = op("iota", shape=(5, 30), dtype=I32, dimension=1)
    hit = op("compare", x, along(fold(x, "maximum", 1), x, 1), direction="EQ")
    return [x], [fold(op("select", hit, places, like(30, places)), "minimum", 1)]


@case
def embedding() -> tuple[list[Term], list[Term]]:
    """Rows of a table at tokens, and of another at places, added and normalized: one kernel. Tokens outside are clamped."""
    ids, table, places, w = x_("ids", I32, 2, symbol("s")), x_("table", F16, 11, 24), x_("places", F16, 40, 24), x_("w", F32, 24)
    rows = op("gather", table, ids, offset_dims=(2,), collapsed_slice_dims=(0,), operand_batching_dims=(), start_indices_batching_dims=(),
              start_index_map=(0,), index_vector_dim=2, slice_sizes=(1, 24), indices_are_sorted=False)  # fmt: skip
    first = op("dynamic_slice", places, x_("start", I32), splat(0, I32, ()), slice_sizes=(symbol("s"), 24))
    x = convert(op("add", rows, broadcast(first, rows.tensor.dims, (1, 2))), F32)
    y = normalized(x, 24, 2)
    return [ids, table, places, x_("start", I32), w], [convert(op("multiply", y, last(w, y)), F16)]


@case
def cache() -> tuple[list[Term], list[Term]]:
    """New keys are put into a cache at a place, and all are read back, scaled; a row of scores is looked up beside."""
    old, new, at, picked = x_("old", F32, 2, 9, 4), x_("new", F32, 2, symbol("n"), 4), x_("at", I32), x_("picked", I32, 2, 3)
    zero = splat(0, I32, ())
    keys = op("dynamic_update_slice", old, op("tanh", new), zero, at, zero)
    rows = op("gather", keys, picked, offset_dims=(2,), collapsed_slice_dims=(1,), operand_batching_dims=(0,),
              start_indices_batching_dims=(0,), start_index_map=(1,), index_vector_dim=2, slice_sizes=(1, 1, 4),
              indices_are_sorted=False)  # fmt: skip
    return [old, new, at, picked], [keys, op("negate", rows)]


@case
def moved() -> tuple[list[Term], list[Term]]:
    """Slices, a pad, a reverse, a transpose and a concatenate between elementwise ops."""
    x, y = x_("x", F32, 6, symbol("s")), x_("y", F32, symbol("s"), 6)
    both = op("add", x, transpose(y, (1, 0)))
    n = symbol("s")
    upper = op("slice", both, start=(0, 0), limit=(3, n), strides=(1, 1))
    lower = op("slice", both, start=(3, 0), limit=(6, n), strides=(1, 1))
    turned = op("concatenate", op("negate", lower), op("reverse", upper, dimensions=(1,)), dimension=0)
    return [x, y], [op("pad", op("tanh", turned), splat(0, F32, ()), low=(1, 0), high=(0, 2), interior=(1, 0))]


@case
def linear() -> tuple[list[Term], list[Term]]:
    x, w, b, r = x_("x", F16, symbol("n"), 20), x_("w", F16, 12, 20), x_("b", F16, 12), x_("r", F16, symbol("n"), 12)
    y = dot(x, w, lhs_contract=(1,), rhs_contract=(1,))
    return [x, w, b, r], [op("add", gelu_of(convert(op("add", y, last(b, y)), F32)), convert(r, F32))]


@case
def swiglu() -> tuple[list[Term], list[Term]]:
    x, gate, up = x_("x", F32, symbol("n"), 16), x_("gate", F32, 16, 24), x_("up", F32, 16, 24)
    g, u = (dot(x, w, lhs_contract=(1,), rhs_contract=(0,)) for w in (gate, up))
    return [x, gate, up], [op("multiply", op("multiply", g, op("logistic", g)), u)]


@case
def dequantized() -> tuple[list[Term], list[Term]]:
    x, w, scale = x_("x", F32, 6, 16), x_("w", I8, 16, 10), x_("scale", F32, 10)
    wide = op("multiply", convert(w, F32), broadcast(scale, (16, 10), (1,)))
    return [x, w, scale], [dot(x, wide, lhs_contract=(1,), rhs_contract=(0,))]


@case
def few_bits() -> tuple[list[Term], list[Term]]:
    """Weights and zero points of 4 bits that share bytes, a scale for each block of 16 along the sum."""
    draw = np.random.default_rng(9)
    w, zero = (constant(draw.integers(-8, 8, shape).astype(DTYPES["i4"].numpy)) for shape in ((20, 32), (20, 2)))
    x, scales = x_("x", F16, symbol("n"), 32), x_("scales", F16, 20, 2)
    near, step = (reshape(broadcast(each, (20, 2, 16), (0, 1)), (20, 32)) for each in (zero, scales))
    steps = op("subtract", op("convert", w, dtype=I8), op("convert", near, dtype=I8))
    y = dot(x, op("multiply", convert(steps, F16), step), lhs_contract=(1,), rhs_contract=(1,))
    return [x, scales], [op("maximum", y, like(0.0, y))]


@case
def integers() -> tuple[list[Term], list[Term]]:
    x, w = x_("x", I8, 6, 16), x_("w", I8, 16, 10)
    return [x, w], [convert(dot(convert(x, I32), convert(w, I32), lhs_contract=(1,), rhs_contract=(0,)), F32)]


@case
def attention() -> tuple[list[Term], list[Term]]:
    """Four heads of queries on two of keys, from one projection, unfused."""
    n = symbol("s")
    x, w = x_("x", F32, n, 32), x_("w", F32, 32, 64)
    qkv = dot(x, w, lhs_contract=(1,), rhs_contract=(0,))

    def heads(first: int, count: int) -> Term:
        part = op("slice", qkv, start=(0, first), limit=(n, first + 8 * count), strides=(1, 1))
        return transpose(reshape(part, (n, count, 8)), (1, 0, 2))

    def repeated(y: Term) -> Term:
        return reshape(broadcast(y, (2, 2, n, 8), (0, 2, 3)), (4, n, 8))

    q, k, v = heads(0, 4), repeated(heads(32, 2)), repeated(heads(48, 2))
    scores = dot(q, k, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(2,))
    rows, columns = (op("iota", shape=scores.tensor.dims, dtype=I32, dimension=axis) for axis in (1, 2))
    causal = op("select", op("compare", rows, columns, direction="GE"), op("multiply", scores, like(0.35, scores)), like(-1e9, scores))
    y = dot(softmax_of(causal), v, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,))
    return [x, w], [reshape(transpose(y, (1, 0, 2)), (n, 32))]


@case
def training_step() -> tuple[list[Term], list[Term]]:
    """One layer with ReLU, squared error, its gradients and a step against them."""
    n = symbol("n")
    x, w, b, t = x_("x", F32, n, 12), x_("w", F32, 12, 6), x_("b", F32, 6), x_("t", F32, n, 6)
    z = dot(x, w, lhs_contract=(1,), rhs_contract=(0,))
    z = op("add", z, last(b, z))
    error = op("subtract", op("maximum", z, like(0, z)), t)
    g = op("select", op("compare", z, like(0, z), direction="GT"), error, like(0, z))
    dw, db = dot(x, g, lhs_contract=(0,), rhs_contract=(0,)), fold(g, "add", 0)
    stepped = [op("subtract", p, op("multiply", d, like(0.01, d))) for p, d in ((w, dw), (b, db))]
    return [x, w, b, t], [fold(op("multiply", error, error), "add", 0, 1), *stepped]


@case
def library() -> tuple[list[Term], list[Term]]:
    """A convolution between elementwise ops, and a sort, which is no library's where rows are short."""
    x, w, b = x_("x", F32, 2, 3, 8, 8), x_("w", F32, 4, 3, 3, 3), x_("b", F32, 4)
    y = op("convolution", x, w, strides=(1, 1), padding=((1, 1), (1, 1)), lhs_dilation=(1, 1), rhs_dilation=(1, 1))
    y = op("maximum", op("add", y, broadcast(b, y.tensor.dims, (1,))), like(0, y))
    return [x, w, b], [op("negate", op("sort", reshape(y, (2, 256)), dimension=1, direction="LT")), y]


@case
def one_row() -> tuple[list[Term], list[Term]]:
    """A matrix times a vector with an epilogue, and an outer product."""
    x, w = x_("x", F16, 1, 40), x_("w", F16, 40, 24)
    y = op("tanh", dot(x, w, lhs_contract=(1,), rhs_contract=(0,)))
    row = reshape(y, (24,))
    return [x, w], [y, dot(row, row)]


@case
def symbolic_merge() -> tuple[list[Term], list[Term]]:
    """Symbolic dims merged, normalized and split again."""
    n, s = symbol("n"), symbol("s")
    x = x_("x", F32, n, s, 8)
    y = softmax_of(reshape(x, (multiply(n, s), 8)))
    return [x], [transpose(reshape(y, (n, s, 8)), (1, 0, 2))]


# ---------------------------------------------------------------- attention in one kernel


def attention_of(q: Term, k: Term, v: Term, mask: Term | None = None, **given: Any) -> Term:
    attributes = {"scale": 0.25, "precision": F32, "causal": False, "offset": 0, "fill": -np.inf, "safe": False}
    return make("kernel.attention", (q, k, v, absent() if mask is None else mask), attributes | given)


def heads(x: Term, count: int) -> Term:
    """[rows, width] -> [heads, rows, width / heads]"""
    rows, width = x.tensor.dims
    assert isinstance(width, int)
    return transpose(reshape(x, (rows, count, width // count)), (1, 0, 2))


@case
def attention_in_one() -> tuple[list[Term], list[Term]]:
    """Heads of projections with a mask that is added, put side by side, and a residual."""
    s = symbol("s")
    x, w, bias = x_("x", F32, s, 16), x_("w", F32, 16, 48), x_("bias", F32, s, s)
    projected = dot(x, w, lhs_contract=(1,), rhs_contract=(0,))
    q, k, v = (op("slice", projected, start=(0, i), limit=(s, i + 16), strides=(1, 1)) for i in (0, 16, 32))
    y = attention_of(heads(q, 2), heads(k, 2), heads(v, 2), broadcast(bias, (2, s, s), (1, 2)))
    return [x, w, bias], [op("add", reshape(transpose(y, (1, 0, 2)), (s, 16)), x)]


@case
def attention_of_groups() -> tuple[list[Term], list[Term]]:
    """Queries of several heads over the keys of one, causal behind a cache."""
    q, k, v = x_("q", F32, 2, 3, 5, 8), x_("k", F32, 2, 9, 8), x_("v", F32, 2, 9, 4)
    return [q, k, v], [reshape(attention_of(q, k, v, causal=True, offset=4), (6, 5, 4))]


@case
def attention_of_turned() -> tuple[list[Term], list[Term]]:
    """Rotary embeddings in front of queries and keys."""
    q, k, v = (x_(name, F32, 2, 6, 8) for name in "qkv")
    cos, sin = x_("cos", F32, 6, 8), x_("sin", F32, 6, 8)
    turned = [op("kernel.rope", x, broadcast(cos, (2, 6, 8), (1, 2)), broadcast(sin, (2, 6, 8), (1, 2)), interleaved=False) for x in (q, k)]
    return [q, k, v, cos, sin], [attention_of(*turned, v, causal=True)]


@case
def attention_that_is_shown() -> tuple[list[Term], list[Term]]:
    """Two attentions with the same scores: they are made once, in memory."""
    q, k, v, w = x_("q", F32, 2, 5, 8), x_("k", F32, 2, 6, 8), x_("v", F32, 2, 6, 8), x_("w", F32, 2, 6, 4)
    return [q, k, v, w], [attention_of(q, k, v), attention_of(q, k, w)]


@case
def gradients_of_attention() -> tuple[list[Term], list[Term]]:
    """Beside the attention: none of the four kernels keeps its scores, and what a causal mask hides bounds their loops."""
    q, k, v, g = x_("q", F32, 2, 3, 20, 8), x_("k", F32, 2, 24, 8), x_("v", F32, 2, 24, 4), x_("g", F32, 2, 3, 20, 4)
    result = attention_of(q, k, v, causal=True, offset=4)
    given = {name: (q, k, v, g) if name != "value" else (q, k, g) for name in ("query", "key", "value")}
    made = [op(f"kernel.attention_gradient_{name}", *each, absent(), **dict(result.attributes)) for name, each in given.items()]
    return [q, k, v, g], [result, *made]


# ---------------------------------------------------------------- scans


def cumulative(x: Term, axis: int, combiner: str = "add", *, exclusive: int = 0, backward: bool = False) -> Term:
    rank, size = x.tensor.rank, x.tensor.dims[axis]
    assert isinstance(size, int)
    own = (-exclusive, size - 1 + exclusive) if backward else (size - 1 + exclusive, -exclusive)
    one = (1,) * rank
    return op(
        "reduce_window", x, window_dimensions=tuple(size if at == axis else 1 for at in range(rank)), window_strides=one,
        base_dilations=one, window_dilations=one, padding=tuple(own if at == axis else (0, 0) for at in range(rank)), combiner=combiner,
    )  # fmt: skip


@case
def scans() -> tuple[list[Term], list[Term]]:
    """Sums up to each element between a prologue and an epilogue; backward; without the element itself; extremes."""
    n = symbol("n")
    x, y = x_("x", F32, n, 40), x_("y", F32, 4, 9, 6)
    first = op("multiply", cumulative(op("tanh", x), 1), like(0.5, x))
    return [x, y], [
        first,
        cumulative(y, 1, backward=True),
        transpose(cumulative(y, 1, exclusive=1), (1, 0, 2)),
        cumulative(y, 2, "maximum"),
    ]


@case
def decays() -> tuple[list[Term], list[Term]]:
    """A state that decays: y_t = a_t y_(t-1) + x_t, as products and sums of scans."""
    a, x = x_("a", F32, 3, 16), x_("x", F32, 3, 16)
    kept = cumulative(op("logistic", a), 1, "multiply")
    return [a, x], [op("multiply", kept, cumulative(op("divide", x, kept), 1))]


# ---------------------------------------------------------------- weights of few bits


def scaled_blocks(weight: Term, scale: Term, block: int) -> Term:
    """`weight` [k, n] times `scale` [k / block, n], one scale for each block of rows."""
    rows, columns = scale.tensor.dims
    assert isinstance(rows, int)
    return op("multiply", weight, reshape(broadcast(scale, (rows, block, columns), (0, 2)), weight.tensor.dims))


@case
def dequantized_blocks() -> tuple[list[Term], list[Term]]:
    """x @ (int8 weight, one scale for 8 rows)."""
    x, q, s = x_("x", F32, 200, 32), x_("q", I8, 32, 24), x_("s", F32, 4, 24)
    return [x, q, s], [dot(x, scaled_blocks(convert(q, F32), s, 8), lhs_contract=(1,), rhs_contract=(0,))]


@case
def dequantized_pairs() -> tuple[list[Term], list[Term]]:
    """x @ (4-bit weight, two in a byte, one scale for 8 rows): few rows of x, so that each weight is unpacked once."""
    x, q, s = x_("x", F32, 5, 32), x_("q", DTYPES["u8"], 32, 12), x_("s", F32, 4, 24)
    low, high = op("and", q, like(15, q)), op("shift_right_logical", q, like(4, q))
    both = op("concatenate", *(reshape(part, (32, 12, 1)) for part in (low, high)), dimension=2)
    weight = op("subtract", convert(reshape(both, (32, 24)), F32), splat(8, F32, (32, 24)))
    return [x, q, s], [dot(x, scaled_blocks(weight, s, 8), lhs_contract=(1,), rhs_contract=(0,))]


# ---------------------------------------------------------------- scatters


def scatter_rows(x: Term, places: Term, updates: Term, combiner: str = "add", **given: Any) -> Term:
    """Rows of `updates` combined into the rows of `x` that the vector `places` names."""
    windows = tuple(range(1, x.tensor.rank))
    attributes = {
        "update_window_dims": windows, "inserted_window_dims": (0,), "input_batching_dims": (), "scatter_indices_batching_dims": (),
        "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1, "combiner": combiner,
    }  # fmt: skip
    return op("scatter", x, places, updates, **attributes | given)


@case
def embedding_gradient() -> tuple[list[Term], list[Term]]:
    """The rows of a table take the gradients of their tokens, which a prologue computes, and a step is made."""
    n = symbol("n")
    ids, g, x, table = x_("ids", I32, n), x_("g", F16, n, 24), x_("x", F16, n, 24), x_("table", F32, 11, 24)
    each = convert(op("multiply", g, op("logistic", x)), F32)
    total = scatter_rows(splat(0, F32, (11, 24)), ids, each)
    return [ids, g, x, table], [op("subtract", table, op("multiply", total, like(0.1, total)))]


@case
def segments() -> tuple[list[Term], list[Term]]:
    """Many updates of few rows, already in order: the largest of each segment, and the sums of truths."""
    x, flags = x_("x", F32, 200, 6), x_("flags", I32, 200)
    at = op("divide", op("iota", shape=(200,), dtype=I32, dimension=0), splat(40, I32, (200,)))
    top = scatter_rows(splat(-np.inf, F32, (5, 6)), at, x, "maximum", indices_are_sorted=True)
    some = op("compare", flags, like(3, flags), direction="GT")
    return [x, flags], [top, scatter_rows(splat(False, BOOL, (5,)), at, some, "or", indices_are_sorted=True)]


@case
def put_into_a_cache() -> tuple[list[Term], list[Term]]:
    """One row for each of three sequences, at a place of its own; the last of equal places stays."""
    old, new, at = x_("old", F16, 3, 9, 4), x_("new", F16, 3, 4), x_("at", I32, 3)
    places = op("concatenate", op("iota", shape=(3, 1), dtype=I32, dimension=0), reshape(at, (3, 1)), dimension=1)
    return [old, new, at], [op("scatter", old, places, op("tanh", new), update_window_dims=(1,), inserted_window_dims=(0, 1),
                               input_batching_dims=(), scatter_indices_batching_dims=(), scatter_dims_to_operand_dims=(0, 1),
                               index_vector_dim=1, combiner="second")]  # fmt: skip


@case
def histogram() -> tuple[list[Term], list[Term]]:
    """Counts of integers: any order gives the same."""
    ids = x_("ids", I32, 300)
    counts = scatter_rows(splat(0, I32, (9,)), ids, splat(1, I32, (300,)))
    return [ids], [convert(counts, F32)]


# ---------------------------------------------------------------- products of groups of rows


def grouped_product(x: Term, w: Term, group: Term, *, ascending: bool = False) -> Term:
    return make("kernel.grouped_product", (x, w, group), {"ascending": ascending})


@case
def router() -> tuple[list[Term], list[Term]]:
    """The probabilities of the two best experts, normalized, and which these are."""
    x, w = x_("x", F32, symbol("n"), 16), x_("w", F32, 16, 8)
    both = op("onnx.TopK", softmax_of(dot(x, w, lhs_contract=(1,), rhs_contract=(0,))), k=2)
    best, places = (make("builtin.get", (both,), {"index": i}) for i in (0, 1))
    return [x, w], [op("divide", best, along(fold(best, "add", 1), best, 1)), places]


@case
def mixture_of_experts() -> tuple[list[Term], list[Term]]:
    """Each token goes through two of four experts, gated, and takes what its router gives them."""
    n = symbol("n")
    x, chosen, shares = x_("x", F32, n, 16), x_("chosen", I32, n, 2), x_("shares", F32, n, 2)
    gate, up, down = x_("gate", F32, 4, 16, 24), x_("up", F32, 4, 16, 24), x_("down", F32, 4, 24, 16)
    rows = reshape(broadcast(x, (n, 2, 16), (0, 2)), (multiply(n, 2), 16))
    group = reshape(chosen, (multiply(n, 2),))
    g, u = (grouped_product(rows, w, group) for w in (gate, up))
    y = grouped_product(op("multiply", op("multiply", g, op("logistic", g)), u), down, group)
    weighed = op("multiply", reshape(y, (n, 2, 16)), broadcast(shares, (n, 2, 16), (0, 1)))
    return [x, chosen, shares, gate, up, down], [fold(weighed, "add", 1)]


# ---------------------------------------------------------------- values that are put together


@case
def grown_caches() -> tuple[list[Term], list[Term]]:
    """Keys of one more token behind those of the past, which a product reads from the whole; the new ones are asked for too."""
    n = symbol("n")
    past, x, w, bias = x_("past", F16, 2, n, 64), x_("x", F16, 2, 24), x_("w", F16, 24, 64), x_("bias", F16, 64)
    new = op("tanh", dot(x, w, lhs_contract=(1,), rhs_contract=(0,)))
    new = reshape(op("add", new, last(bias, new)), (2, 1, 64))
    keys = op("concatenate", past, new, dimension=1)
    query = x_("query", F16, 2, 4, 64)
    scores = dot(query, keys, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(2,))
    return [past, x, w, bias, query], [keys, scores, new]


@case
def rounds_put_together() -> tuple[list[Term], list[Term]]:
    """A state that each round multiplies; its rows, in the order of the rounds and behind zeros, and their sums."""
    state, w = x_("state", F32, 4, 16), x_("w", F32, 16, 16)
    rows, now = [], state
    for _ in range(3):
        now = op("tanh", dot(now, w, lhs_contract=(1,), rhs_contract=(0,)))
        rows.append(reshape(now, (1, 4, 16)))
    both = op("concatenate", rows[0], op("concatenate", rows[1], rows[2], dimension=0), dimension=0)
    return [state, w], [op("concatenate", splat(0.0, F32, (1, 4, 16)), both, dimension=0), fold(rows[1], "add", 2)]


# ---------------------------------------------------------------- loops


def recurrence(states: list[Term], fixed: list[Term], count: Dim, step: Callable[..., list[Term]]) -> Term:
    """A loop of `count` rounds over the states, then what no round changes; `step` gets the round first, and gives the states."""

    def body(*inner: Term) -> list[Term]:
        index, *rest = inner
        return [op("add", index, constant(1, I32)), *step(index, *rest), *rest[len(states) :]]

    bound = counted(count, I32)
    return while_term([constant(0, I32), *states, *fixed], lambda *inner: op("compare", inner[0], bound, direction="LT"), body)


@case
def recurrent_layer() -> tuple[list[Term], list[Term]]:
    """A gated recurrent layer from the last element to the first: two products by slices of one matrix, what each round gives, the last."""
    s = symbol("s")
    x, h, u = x_("x", F32, s, 3, 24), x_("h", F32, 3, 12), x_("u", F32, 12, 24)

    def step(index: Term, state: Term, pile: Term, x: Term, u: Term) -> list[Term]:
        place = op("subtract", op("subtract", counted(s, I32), constant(1, I32)), index)
        both = op("add", element(x, place), dot(state, u, lhs_contract=(1,), rhs_contract=(0,)))
        gate, new = (op("slice", both, start=(0, low), limit=(3, low + 12), strides=(1, 1)) for low in (0, 12))
        gate = op("logistic", gate)
        mixed = op("add", op("multiply", gate, state), op("multiply", op("subtract", like(1.0, gate), gate), op("tanh", new)))
        return [mixed, placed(pile, mixed, place)]

    loop = recurrence([h, splat(0, F32, (s, 3, 12))], [x, u], s, step)
    return [x, h, u], [get(loop, 1), get(loop, 2)]


@case
def state_space() -> tuple[list[Term], list[Term]]:
    """A selective state space: a state of two dims, of which each round gives a sum along one."""
    n = symbol("n")
    x, d, a, b, c = (
        x_(name, F32, *shape) for name, shape in (("x", (8, n, 6)), ("d", (8, n, 6)), ("a", (6, 4)), ("b", (8, n, 4)), ("c", (8, n, 4)))
    )
    whole = (n, 6, 4)

    def step(index: Term, state: Term, pile: Term, *given: Term) -> list[Term]:
        x, d, b, c = (element(each, index) for each in given[:4])
        kept = op("exponential", op("multiply", broadcast(d, whole, (0, 1)), broadcast(given[4], whole, (1, 2))))
        new = op("multiply", broadcast(op("multiply", d, x), whole, (0, 1)), broadcast(b, whole, (0, 2)))
        state = op("add", op("multiply", kept, state), new)
        return [state, placed(pile, fold(op("multiply", state, broadcast(c, whole, (0, 2))), "add", 2), index)]

    loop = recurrence([splat(0, F32, whole), splat(0, F32, (8, n, 6))], [x, d, b, c, a], 8, step)
    return [x, d, a, b, c], [get(loop, 2)]
