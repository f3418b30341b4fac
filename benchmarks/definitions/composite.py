"""Drawn terms of what is ours alone (composite kernels, forms of ONNX Runtime's attention), with references in NumPy or torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import erf, sqrt
from typing import Any

import numpy as np

from benchmarks.definitions.hub import TermInstance, hub
from benchmarks.definitions.instance import Draw, Shape, Slot
from coset.ir.types import DTYPES, DType

F32, F64, BOOL = DTYPES["f32"], DTYPES["f64"], DTYPES["bool"]
Reference = Callable[[Sequence[Any]], Sequence[Any]]
ULPS = 256.0


@dataclass(frozen=True)
class OwnInstance(TermInstance):
    """A term whose results in f64 a function gives."""

    reference: Reference | None = None

    def own(self, feed: Mapping[str, Any]) -> list[Any]:
        """The reference's results, rounded to the types of the term's."""
        assert self.reference is not None
        given = [feed[f"x{place}"] for place in range(len(feed))]
        wide = [x.astype(np.float64) if x.dtype.kind not in "biu" else x for x in given]
        with np.errstate(all="ignore"):
            results = self.reference(wide)
            return [np.asarray(y).astype(root.tensor.dtype.numpy) for y, root in zip(results, self.roots(), strict=True)]


def own(op: str, slots: Sequence[Slot], given: Mapping[str, Any], reference: Reference, *, ulps: float = ULPS) -> OwnInstance:
    """An instance."""
    return OwnInstance(op, tuple(slots), most_ulps=ulps, given=given, reference=reference)


def drawn_float(r: Draw) -> DType:
    """A float type that NumPy computes in."""
    return r.choice((F32, F32, F64))


def softmax(x: Any, *, safe: bool = False) -> Any:
    """The softmax along the last axis; rows of -inf are 0 if it is `safe`."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    found = e / np.sum(e, axis=-1, keepdims=True)
    return np.where(np.all(x == -np.inf, axis=-1, keepdims=True), 0.0, found) if safe else found


# ---------------------------------------------------------------- softmax and its parts


@hub("kernel.softmax", "kernel.softmax_top", "kernel.softmax_share")
def _softmax(r: Draw, op: str) -> OwnInstance:
    dtype, shape, safe = drawn_float(r), (*r.shape(0, 2), r.randint(1, 5)), r.maybe()
    given: dict[str, Any] = {"precision": dtype, "safe": safe}
    if op == "kernel.softmax":
        return own(op, [Slot(dtype, shape)], {**given, "result": dtype}, lambda x: [softmax(x[0], safe=safe)])

    def top(x: Any) -> Any:
        m = np.max(x, axis=-1)
        return np.where(m == -np.inf, 0.0, m) if safe else m

    if op == "kernel.softmax_top":
        return own(op, [Slot(dtype, shape)], given, lambda x: [top(x[0])])

    def share(x: Any) -> Any:
        total = np.sum(np.exp(x - top(x)[..., None]), axis=-1)
        return 1 / np.where(total == 0, 1.0, total) if safe else 1 / total

    return own(op, [Slot(dtype, shape)], given, lambda x: [share(x[0])])


@hub("kernel.softmax_gradient", "kernel.softmax_slope")
def _softmax_gradient(r: Draw, op: str) -> OwnInstance:
    dtype, shape = drawn_float(r), (*r.shape(0, 2), r.randint(1, 5))
    slots = [Slot(dtype, shape), Slot(dtype, shape)]
    if op == "kernel.softmax_gradient":
        return own(op, slots, {}, lambda v: [v[0] * (v[1] - np.sum(v[0] * v[1], axis=-1, keepdims=True))])
    safe = r.maybe()
    return own(op, slots, {"precision": dtype, "safe": safe}, lambda v: [np.sum(softmax(v[0], safe=safe) * v[1], axis=-1)])


# ---------------------------------------------------------------- attention


@dataclass(frozen=True)
class _Scores:
    """What is done to the products of queries and keys."""

    scale: float
    causal: bool
    offset: int
    fill: float
    safe: bool

    def of(self, products: Any, mask: Any) -> Any:
        """The scores; a boolean mask says which stay."""
        scores = self.scale * products
        if mask is not None:
            return np.where(mask, scores, self.fill) if mask.dtype == bool else scores + mask
        if not self.causal:
            return scores
        rows, columns = (np.arange(size) for size in products.shape[-2:])
        return np.where(rows[:, None] + self.offset >= columns[None, :], scores, self.fill)


def _attention_shapes(r: Draw) -> tuple[Shape, Shape, int, int, int]:
    batch = r.choice([(), (2,), (1, 2)])
    queries = r.choice([(r.randint(1, 4),), (2, r.randint(1, 3))])
    return batch, queries, r.randint(1, 4), r.randint(1, 3), r.randint(1, 3)


def _attention_of(r: Draw) -> tuple[DType, list[Slot], list[Slot], dict[str, Any], _Scores, tuple[Shape, Shape]]:
    batch, queries, keys, size, values = _attention_shapes(r)
    dtype = drawn_float(r)
    form = r.choice(["plain", "added", "boolean", "causal"])
    safe = r.maybe(0.3)
    scores = _Scores(
        r.choice([1.0, 0.5]), form == "causal", r.randint(-1, 2) if form == "causal" else 0,
        r.choice([-np.inf, -50.0]) if form in ("boolean", "causal") else -np.inf, safe,
    )  # fmt: skip
    given = {"scale": scores.scale, "precision": dtype, "causal": scores.causal, "offset": scores.offset, "fill": scores.fill, "safe": safe}
    slots = [Slot(dtype, (*batch, *queries, size)), Slot(dtype, (*batch, keys, size)), Slot(dtype, (*batch, keys, values))]
    mask = [Slot(BOOL if form == "boolean" else dtype, (*batch, *queries, keys))] if form in ("added", "boolean") else []
    return dtype, slots, mask, given, scores, (batch, queries)


def _dot(a: Any, b: Any, batch: int) -> Any:
    """Rows of a times rows of b, whose middle dims are few: [B.., M.., D] with [B.., S, D]."""
    middle = a.ndim - batch - 2
    return np.matmul(a, np.swapaxes(b.reshape(*b.shape[:batch], *[1] * middle, *b.shape[batch:]), -1, -2))


def _weighted(p: Any, v: Any, batch: int) -> Any:
    middle = p.ndim - batch - 2
    return np.matmul(p, v.reshape(*v.shape[:batch], *[1] * middle, *v.shape[batch:]))


@hub("kernel.attention")
def _attention(r: Draw, op: str) -> OwnInstance:
    _, slots, mask, given, scores, (batch, _) = _attention_of(r)

    def reference(x: Sequence[Any]) -> list[Any]:
        s = scores.of(_dot(x[0], x[1], len(batch)), x[3] if len(x) > 3 else None)
        return [_weighted(softmax(s, safe=scores.safe), x[2], len(batch))]

    return own(op, [*slots, *mask], given, reference)


@hub("kernel.library_attention", "kernel.library_attention_of_rows")
def _library(r: Draw, op: str) -> OwnInstance:
    dtype, causal, scale = drawn_float(r), r.maybe(), r.choice([1.0, 0.5])
    given = {"scale": scale, "precision": dtype, "causal": causal}
    length, keys, size = r.randint(1, 3), r.randint(1, 4), r.randint(1, 3)
    scores = _Scores(scale, causal, 0, -np.inf, False)
    if op == "kernel.library_attention":
        batch = r.choice([(2,), (1, 2)])
        slots = [Slot(dtype, (*batch, n, size)) for n in (length, keys, keys)]
        return own(op, slots, given, lambda x: [_weighted(softmax(scores.of(_dot(x[0], x[1], len(batch)), None)), x[2], len(batch))])
    heads, group = r.randint(1, 2), r.choice([(), (2,)])
    slots = [Slot(dtype, (2, length, heads, *group, size)), Slot(dtype, (2, keys, heads, size)), Slot(dtype, (2, keys, heads, size))]

    def rows(x: Sequence[Any]) -> list[Any]:
        q = x[0].reshape(2, length, heads, -1, size)
        s = scores.of(np.einsum("blhgd,bshd->bhgls", q, x[1]), None)
        return [np.einsum("bhgls,bshd->blhgd", softmax(s), x[2]).reshape(x[0].shape)]

    return own(op, slots, given, rows)


@hub("kernel.attention_gradient_value", "kernel.attention_gradient_query", "kernel.attention_gradient_key")
def _attention_gradient(r: Draw, op: str) -> OwnInstance:
    """Gradients as torch derives them from the attention itself."""
    dtype, slots, mask, given, scores, (batch, queries) = _attention_of(r)
    values = slots[2].shape[-1]
    g = Slot(dtype, (*batch, *queries, values))
    own_slots = [slots[0], slots[1], g] if op.endswith("value") else [*slots, g]

    def reference(x: Sequence[Any]) -> list[Any]:
        q, k = x[0], x[1]
        v = np.zeros(slots[2].shape) if op.endswith("value") else x[2]
        grad = x[2] if op.endswith("value") else x[3]
        return [_by_torch(q, k, v, grad, x[len(own_slots)] if mask else None, scores, len(batch), op.rpartition("_")[2])]

    return own(op, [*own_slots, *mask], given, reference, ulps=4 * ULPS)


def _by_torch(q: Any, k: Any, v: Any, g: Any, mask: Any, scores: _Scores, batch: int, which: str) -> Any:
    import torch

    tensors = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    middle = q.ndim - batch - 2
    wide = [t.reshape(*t.shape[:batch], *[1] * middle, *t.shape[batch:]) for t in tensors[1:]]
    products = scores.scale * tensors[0] @ wide[0].transpose(-1, -2)
    if mask is not None:
        s = torch.where(torch.tensor(mask), products, scores.fill) if mask.dtype == bool else products + torch.tensor(mask)
    elif scores.causal:
        rows, columns = (torch.arange(n) for n in products.shape[-2:])
        s = torch.where(rows[:, None] + scores.offset >= columns[None, :], products, scores.fill)
    else:
        s = products
    if scores.safe:  # a row that sees nothing has neither weights nor gradients
        closed = (s == -torch.inf).all(-1, keepdim=True)
        p = torch.where(closed, 0.0, torch.softmax(torch.where(closed, 0.0, s), -1))
    else:
        p = torch.softmax(s, -1)
    (p @ wide[1]).backward(torch.tensor(g))
    found = tensors[("query", "key", "value").index(which)].grad
    return np.zeros((q, k, v)[("query", "key", "value").index(which)].shape) if found is None else found.numpy()


@hub("ort.MultiHead", "ort.SelfAttention")
def _heads(r: Draw, op: str) -> OwnInstance:
    batch, length, keys, heads, size, values = r.randint(1, 2), r.randint(1, 3), r.randint(1, 4), r.randint(1, 2), r.randint(1, 3), 2
    scale = r.choice([1.0, 0.5])
    keys, values = (length, size) if op == "ort.SelfAttention" else (keys, values)
    summand = [Slot(F32, (r.choice([1, batch]), r.choice([1, heads]), length, keys))] if r.maybe() else []

    def attended(q: Any, k: Any, v: Any, more: Any) -> Any:
        split = [x.reshape(batch, -1, heads, x.shape[-1] // heads).transpose(0, 2, 1, 3) for x in (q, k, v)]
        s = scale * split[0] @ split[1].swapaxes(-1, -2) + (0.0 if more is None else more)
        return (softmax(s) @ split[2]).transpose(0, 2, 1, 3).reshape(batch, length, -1)

    given = {"num_heads": heads, "scale": scale}
    if op == "ort.MultiHead":
        slots = [Slot(F32, (batch, length, heads * size)), Slot(F32, (batch, keys, heads * size)), Slot(F32, (batch, keys, heads * values))]
        return own(op, [*slots, *summand], given, lambda x: [attended(x[0], x[1], x[2], x[3] if len(x) > 3 else None)])
    width = heads * size
    slots = [Slot(F32, (batch, length, 3)), Slot(F32, (3, 3 * width)), Slot(F32, (3 * width,))]

    def projected(x: Sequence[Any]) -> list[Any]:
        p = x[0] @ x[1] + x[2]
        return [attended(p[..., :width], p[..., width : 2 * width], p[..., 2 * width :], x[3] if len(x) > 3 else None)]

    return own(op, [*slots, *summand], given, projected, ulps=4 * ULPS)


# ---------------------------------------------------------------- pairs, gates, products


@hub("ort.TurnedPairs", "ort.RotatedHeads", "ort.RotatedSequences", "ort.RotatedParts", "ort.RotatedSequenceParts")
def _rotated(r: Draw, op: str) -> OwnInstance:
    """Pairs as complex numbers, turned by angles of each position or of each position of each sequence."""
    batch, heads, length, half, beside = r.randint(1, 3), r.randint(1, 3), r.randint(1, 3), r.randint(1, 3), r.maybe()
    more = r.randint(0, 3) if "Part" in op else 0
    sequences = "Sequence" in op
    unread = r.randint(0, 2) if sequences else 0
    given: dict[str, Any] = {"interleaved": int(beside)}
    if op == "ort.TurnedPairs":
        axes = r.choice([(2, 3), (1, 3), (0, 2, 3), (0, 1, 3), (3,), (0, 1, 2, 3)])
        given["axes"] = axes
        table = tuple((batch, heads, length, half)[axis] for axis in axes)
    else:
        table = (batch * length + unread, half) if sequences else (length, half)

    def reference(x: Sequence[Any]) -> list[Any]:
        v, *tables = x
        if op == "ort.TurnedPairs":
            shape = [n if axis in axes else 1 for axis, n in enumerate((batch, heads, length, half))]
            c, s = (each.reshape(shape) for each in tables)
        else:
            c, s = (each[: len(each) - unread].reshape(batch if sequences else 1, 1, length, half) for each in tables)
        places = [np.arange(half) * 2, np.arange(half) * 2 + 1] if beside else [np.arange(half), np.arange(half) + half]
        first, second = v[..., places[0]], v[..., places[1]]
        result = v.copy()
        result[..., places[0]], result[..., places[1]] = first * c - second * s, first * s + second * c
        return [result]

    return own(op, [Slot(F32, (batch, heads, length, 2 * half + more)), *[Slot(F32, table)] * 2], given, reference)


@hub("kernel.rope")
def _rope(r: Draw, op: str) -> OwnInstance:
    dtype, lead, half, turned = drawn_float(r), r.shape(0, 2), r.randint(1, 3), r.maybe()
    width = r.choice([half, 2 * half])

    def reference(x: Sequence[Any]) -> list[Any]:
        v, c, s = x
        places = [np.arange(half) * 2, np.arange(half) * 2 + 1] if turned else [np.arange(half), np.arange(half) + half]
        first, second = v[..., places[0]], v[..., places[1]]
        one = [t[..., places[0]] if width == 2 * half else t for t in (c, s)]
        other = [t[..., places[1]] if width == 2 * half else t for t in (c, s)]
        result = np.zeros_like(v)
        result[..., places[0]] = first * one[0] - second * one[1]
        result[..., places[1]] = second * other[0] + first * other[1]
        return [result]

    slots = [Slot(dtype, (*lead, 2 * half)), Slot(dtype, (*lead, width)), Slot(dtype, (*lead, width))]
    return own(op, slots, {"interleaved": turned}, reference)


@hub("kernel.swiglu", "kernel.geglu")
def _gated(r: Draw, op: str) -> OwnInstance:
    dtype, shape = drawn_float(r), r.wide()
    slots = [Slot(dtype, shape), Slot(dtype, shape)]
    if op == "kernel.swiglu":
        return own(op, slots, {}, lambda v: [v[0] * (1 / (1 + np.exp(-v[0]))) * v[1]])
    approximate = r.choice(["none", "tanh"])

    def gelu(x: Any) -> Any:
        if approximate == "tanh":
            return 0.5 * x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + np.vectorize(erf, otypes=[np.float64])(x / sqrt(2)))

    return own(op, slots, {"approximate": approximate}, lambda v: [gelu(v[0]) * v[1]])


@hub("kernel.linear", "kernel.dense")
def _linear(r: Draw, op: str) -> OwnInstance:
    dtype, lead, k, n = drawn_float(r), r.shape(0, 2), r.randint(0, 4), r.randint(1, 4)
    rows = op == "kernel.linear"
    slots = [Slot(dtype, (*lead, k)), Slot(dtype, (n, k) if rows else (k, n)), Slot(dtype, (n,))]
    return own(op, slots, {}, lambda v: [v[0] @ (v[1].T if rows else v[1]) + v[2]])


@hub("kernel.grouped_product")
def _grouped(r: Draw, op: str) -> OwnInstance:
    """A group outside is the nearest one."""
    dtype, count, k, n, groups = drawn_float(r), r.randint(0, 4), r.randint(1, 3), r.randint(1, 3), r.randint(1, 3)
    which = np.array([r.randint(-2, groups + 1) for _ in range(count)], np.int32)
    slots = [Slot(dtype, (count, k)), Slot(dtype, (groups, k, n)), Slot(DTYPES["i32"], which.shape, value=which)]
    return own(op, slots, {}, lambda v: [np.einsum("tk,tkn->tn", v[0], v[1][np.clip(v[2], 0, groups - 1)])])


@hub("kernel.first_sorted")
def _first(r: Draw, op: str) -> OwnInstance:
    dtype, lead, length = r.choice((F32, DTYPES["i32"])), r.shape(0, 2), r.randint(1, 6)
    k, direction = r.randint(0, length), r.choice(["LT", "GT"])

    def reference(v: Sequence[Any]) -> list[Any]:
        keys = v[0] if direction == "LT" else -v[0].astype(np.float64)
        order = np.argsort(keys, axis=-1, kind="stable")[..., :k]
        return [np.take_along_axis(x, order, -1) for x in v]

    fit = (lambda x: np.nan_to_num(x, nan=0.5)) if dtype.kind == "float" else None
    slots = [Slot(dtype, (*lead, length), fit), Slot(F32, (*lead, length))]
    return own(op, slots, {"k": k, "direction": direction}, reference, ulps=0)


@hub("ort.Quantized", "ort.Dequantized")
def _quantized(r: Draw, op: str) -> OwnInstance:
    kind, shape = DTYPES[r.choice(["u8", "i8"])], r.wide()
    info = np.iinfo(kind.numpy)
    step = np.asarray(r.choice([0.5, 0.25, 2.0]), np.float32)
    point = np.asarray(r.randint(int(info.min), int(info.max))).astype(kind.numpy)
    ends = [Slot(F32, (), value=step), Slot(kind, (), value=point)]
    if op == "ort.Dequantized":
        return own(op, [Slot(kind, shape), *ends], {}, lambda v: [(v[0].astype(np.float64) - float(v[2])) * v[1]])
    near = Slot(F32, shape, lambda x: np.nan_to_num(x, nan=1.0))
    return own(op, [near, *ends], {}, lambda v: [np.clip(np.round(v[0] / v[1]) + float(v[2]), info.min, info.max)])
