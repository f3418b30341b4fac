"""NumPy meanings of the hub's movement, contraction and reduction ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from coset.dialects.hub.scalars import cast, narrow, widen
from coset.ir.dims import Shape, evaluate
from coset.ir.op import Array
from coset.ir.types import DType, dtype_of

if TYPE_CHECKING:
    from coset.ir.term import Term

Binding = Mapping[str, int]
_COLUMN_BYTES = 64 << 20  # im2col of one chunk of a batch stays below this where one image does


def numbers(dims: Shape, binding: Binding) -> tuple[int, ...]:
    """The shape with its symbols bound."""
    return tuple(evaluate(dim, binding) for dim in dims)


def sliced(x: Array, slices: Iterable[Any]) -> Array:
    """A view of `x`; of rank 0 too an array."""
    part: Array = x[(*slices, ...)]  # the ellipsis keeps rank 0 an array
    return part


# ---------------------------------------------------------------- movement


def broadcast_in_dim(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """A read-only view."""
    return broadcasted(arrays[0], numbers(term.attribute("shape"), binding), term.attribute("broadcast_dimensions"))


def broadcasted(x: Array, shape: Sequence[int], axes: Sequence[int]) -> Array:
    """A read-only view of `x` with its dim i along dim `axes[i]` of `shape`."""
    order = sorted(range(len(axes)), key=axes.__getitem__)
    view = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        view[axis] = size
    return np.broadcast_to(x.transpose(order).reshape(view), shape)


def reshape(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """Row-major order is kept."""
    return np.reshape(arrays[0], numbers(term.attribute("shape"), binding))


def transpose(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """A view."""
    return np.transpose(arrays[0], term.attribute("permutation"))


def slice_(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """A view."""
    start, limit = (numbers(term.attribute(key), binding) for key in ("start", "limit"))
    return sliced(arrays[0], map(slice, start, limit, term.attribute("strides")))


def concatenate(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """The inputs one after the other."""
    return np.concatenate(arrays, axis=term.attribute("dimension"))


def pad(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """`interior` elements between neighbours, `low` before and `high` after; negative ones crop."""
    return padded(arrays[0], arrays[1], *(term.attribute(key) for key in ("low", "high", "interior")))


def padded(x: Array, value: object, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """`x` with padding `value`; see `pad`."""
    if not (any(low) or any(high) or any(interior)):
        return x
    spread = [size + max(size - 1, 0) * gap for size, gap in zip(x.shape, interior, strict=True)]
    result = np.full([max(a, 0) + s + max(b, 0) for a, s, b in zip(low, spread, high, strict=True)], value, x.dtype)
    result[tuple(slice(max(a, 0), max(a, 0) + s, gap + 1) for a, s, gap in zip(low, spread, interior, strict=True))] = x
    return sliced(result, (slice(max(-a, 0), size - max(-b, 0)) for a, b, size in zip(low, high, result.shape, strict=True)))


def reverse(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """A view."""
    axes = term.attribute("dimensions")
    return sliced(arrays[0], (slice(None, None, -1 if axis in axes else 1) for axis in range(arrays[0].ndim)))


def iota(term: Term, _: Sequence[Array], binding: Binding) -> Array:
    """0, 1, 2 .. along `dimension`."""
    shape, axis = numbers(term.attribute("shape"), binding), term.attribute("dimension")
    counts = cast(np.arange(shape[axis], dtype=np.int64), term.attribute("dtype"))
    return np.broadcast_to(counts.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


# ---------------------------------------------------------------- contractions


def dot_general(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """Transposes and one batched matmul, accumulated as `matmul` says."""
    lhs, rhs = arrays
    (lb, lc), (rb, rc) = ((term.attribute(f"{side}_batch"), term.attribute(f"{side}_contract")) for side in ("lhs", "rhs"))
    lf, rf = (tuple(i for i in range(x.ndim) if i not in b + c) for x, b, c in ((lhs, lb, lc), (rhs, rb, rc)))
    batch, depth = tuple(lhs.shape[i] for i in lb), prod(lhs.shape[i] for i in lc)
    left_free, right_free = tuple(lhs.shape[i] for i in lf), tuple(rhs.shape[i] for i in rf)
    a = lhs.transpose(lb + lf + lc).reshape((*batch, prod(left_free), depth))
    b = rhs.transpose(rb + rc + rf).reshape((*batch, depth, prod(right_free)))
    return matmul(a, b, dtype_of(lhs.dtype)).reshape(batch + left_free + right_free)


def matmul(a: Array, b: Array, dtype: DType) -> Array:
    """NumPy's matmul, in one order of sums whatever the memory layout. Floats narrower than f32 accumulate in f32 and are rounded once;
    integers wrap; booleans: or of ands."""
    with np.errstate(all="ignore"):
        if dtype.kind == "bool":
            return np.asarray(np.matmul(a.astype(np.float32), b.astype(np.float32)) != 0)
        a, b = np.ascontiguousarray(widen(a)), np.ascontiguousarray(widen(b))
        if dtype.kind in ("int", "uint") and _exact_in_f64(a, b):
            return narrow(np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64), dtype)
        return narrow(np.matmul(a, b), dtype)


def _exact_in_f64(a: Array, b: Array) -> bool:
    """True when no sum of products of these integers leaves f64's 53 bits; NumPy multiplies integer matrices without BLAS."""
    if not a.size or not b.size:
        return True
    largest = [max(abs(int(x.min())), abs(int(x.max()))) for x in (a, b)]
    return bool(largest[0] * largest[1] * a.shape[-1] < 1 << 53)


def convolution(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """Windows of the padded input as the columns of a matrix (im2col), then `matmul`."""
    return convolved_over(arrays[0], arrays[1], term.attribute("padding"), dict(term.attributes))


def convolved_over(lhs: Array, rhs: Array, padding: Sequence[tuple[int, int]], attributes: Mapping[str, Any]) -> Array:
    """The convolution with this `padding` and the other `attributes` of the op."""
    strides, spread, dilation = (attributes[key] for key in ("strides", "lhs_dilation", "rhs_dilation"))
    groups, batches = attributes["feature_group_count"], attributes["batch_group_count"]
    zeros = (0, 0)
    low, high = ((*zeros, *(pair[side] for pair in padding)) for side in (0, 1))
    x = padded(lhs, np.zeros((), lhs.dtype), low, high, (*zeros, *(s - 1 for s in spread)))
    if batches == 1:
        return convolved(x, rhs, strides, dilation, groups)
    parts = zip(np.split(x, batches), np.split(rhs, batches), strict=True)
    return np.concatenate([convolved(part, kernel, strides, dilation, 1) for part, kernel in parts], axis=1)


def convolved(x: Array, kernel: Array, strides: Sequence[int], dilation: Sequence[int], groups: int) -> Array:
    """The convolution of an input that is padded already: x [N, C, ..], kernel [O, C / groups, ..]."""
    dtype = dtype_of(x.dtype)
    windows = _windows(x, kernel.shape[2:], strides, dilation)
    batch, spatial = x.shape[0], windows.shape[2 : x.ndim]
    outputs, depth, count = kernel.shape[0], prod(kernel.shape[1:]), prod(spatial)
    matrix = kernel.reshape(groups, outputs // groups, depth)
    result = np.empty((batch, outputs, *spatial), x.dtype)
    last = tuple(range(2, x.ndim)), tuple(range(x.ndim, windows.ndim))
    chunk = max(1, _COLUMN_BYTES // max(1, groups * depth * count * x.itemsize))
    for first in range(0, batch, chunk):
        part = windows[first : first + chunk]
        columns = part.transpose(0, 1, *last[1], *last[0]).reshape(len(part), groups, depth, count)
        result[first : first + chunk] = matmul(matrix, columns, dtype).reshape(len(part), outputs, *spatial)
    return result


def _windows(x: Array, window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """The view [N, C, positions.., window..] of x [N, C, spatial..]."""
    sizes = [(k - 1) * d + 1 if k else 0 for k, d in zip(window, dilation, strict=True)]
    counts = [max((size - w) // s + 1, 0) if size >= w else 0 for size, w, s in zip(x.shape[2:], sizes, strides, strict=True)]
    steps = x.strides[2:]
    shape = (*x.shape[:2], *counts, *window)
    moves = (*x.strides[:2], *(t * s for t, s in zip(steps, strides, strict=True)), *(t * d for t, d in zip(steps, dilation, strict=True)))
    raw = x.view(f"V{x.itemsize}")  # NumPy cannot name ml_dtypes' own dtypes in the array interface that as_strided goes through
    return np.lib.stride_tricks.as_strided(raw, shape, moves, writeable=False).view(x.dtype)


# ---------------------------------------------------------------- reduction

_FOLDS: dict[str, Any] = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
}  # fmt: skip


def reduce(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """The combiner over `dimensions`, from its identity, in row-major order of the reduced elements whatever the memory layout;
    sums and products of f32 and narrower floats are kept in f64 and rounded once."""
    return reduced(arrays[0], term.attribute("dimensions"), term.attribute("combiner"))


def reduced(x: Array, axes: Sequence[int], combiner: str) -> Array:
    """`x` folded over `axes`; see `reduce`."""
    dtype = dtype_of(x.dtype)
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    shape = tuple(x.shape[axis] for axis in kept)
    rows = np.ascontiguousarray(x.transpose(*kept, *axes).reshape((*shape, prod(x.shape[axis] for axis in axes))))
    wide = widen(rows)
    if combiner in ("add", "multiply") and dtype.kind == "float":
        wide = wide.astype(np.float64)
    with np.errstate(all="ignore"):
        folded = _FOLDS[combiner].reduce(wide, axis=-1, initial=widen(identity(combiner, dtype))[()], dtype=wide.dtype)
        return narrow(_signed_zeros(np.asarray(folded), wide, combiner), dtype)


def _signed_zeros(folded: Array, rows: Array, combiner: str) -> Array:
    """Zeros with the sign that IEEE 754-2019 maximum and minimum give, which NumPy leaves to chance."""
    if rows.dtype.kind != "f" or combiner not in ("maximum", "minimum") or not np.any(folded == 0):
        return folded
    wanted = np.signbit(rows) if combiner == "minimum" else ~np.signbit(rows)
    found = np.any((rows == 0) & wanted, axis=-1)
    negative = found if combiner == "minimum" else ~found
    zero = np.where(negative, folded.dtype.type(-0.0), folded.dtype.type(0.0))
    return np.where(folded == 0, zero, folded)


def identity(combiner: str, dtype: DType) -> Array:
    """The element that changes nothing under `combiner`, as an array of rank 0: the lowest value for `maximum`, and so on."""
    if combiner in ("add", "or"):
        return np.zeros((), dtype.numpy)
    if combiner == "multiply":
        return np.ones((), dtype.numpy)
    if combiner == "and":
        return narrow(np.asarray(True) if dtype.kind == "bool" else np.asarray(-1), dtype)
    return _extreme(dtype, highest=combiner == "minimum")


def _extreme(dtype: DType, *, highest: bool) -> Array:
    if dtype.kind == "bool":
        return np.asarray(highest)
    if dtype.kind == "uint":
        return narrow(np.asarray((1 << dtype.bits) - 1 if highest else 0, np.uint64), dtype)
    if dtype.kind == "int":
        top = (1 << dtype.bits - 1) - 1
        return narrow(np.asarray(top if highest else -top - 1, np.int64), dtype)
    bound = np.float32(np.inf if highest else -np.inf)
    if dtype.kind == "complex":
        return np.asarray(complex(bound, bound), dtype.numpy)
    infinite = narrow(np.asarray(bound), dtype)
    if np.isinf(widen(infinite)):
        return infinite
    limits = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return np.asarray(limits.max if highest else limits.min, dtype.numpy)
