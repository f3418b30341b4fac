"""Ops that move elements and compute none, on NumPy arrays: of values, and of the bounds that go with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coset.ir.dims import Poly
from coset.ir.term import Term
from coset.ir.types import DTYPES
from coset.prove.second.answer import CannotSay, Refused
from coset.prove.second.conversions import converted
from coset.prove.second.formats import Array


def _numbers(values: Any) -> tuple[int, ...]:
    if any(isinstance(each, Poly) for each in values):
        raise Refused("symbols in what is computed")
    return tuple(int(each) for each in values)


def _broadcast(term: Term, arrays: Sequence[Array]) -> Array:
    shape, axes = _numbers(term.attribute("shape")), term.attribute("broadcast_dimensions")
    x = arrays[0].transpose(sorted(range(len(axes)), key=lambda i: axes[i]))
    sizes = iter(x.shape)
    view = [next(sizes) if place in axes else 1 for place in range(len(shape))]
    return np.array(np.broadcast_to(x.reshape(view), shape))


def _sliced(x: Array, start: Sequence[int], limit: Sequence[int], strides: Sequence[int]) -> Array:
    index: tuple[Any, ...] = tuple(slice(first, last, step) for first, last, step in zip(start, limit, strides, strict=True))
    return np.asarray(x[(*index, ...)])


def _slice(term: Term, arrays: Sequence[Array]) -> Array:
    return _sliced(arrays[0], _numbers(term.attribute("start")), _numbers(term.attribute("limit")), term.attribute("strides"))


def _real_slice(_: Term, arrays: Sequence[Array]) -> Array:
    start, limit, strides = (_numbers(array) for array in arrays[1:])
    inside = all(0 <= a <= b <= size and step > 0 for a, b, step, size in zip(start, limit, strides, arrays[0].shape, strict=True))
    if not inside:
        raise CannotSay("a slice that is not within the tensor")
    return _sliced(arrays[0], start, limit, strides)


def _window(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Array]) -> tuple[Any, ...]:
    """A window at starts that are clamped so that it lies in the tensor."""
    places = [min(max(int(start.reshape(-1)[0]), 0), size - own) for start, size, own in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(place, place + own) for place, own in zip(places, sizes, strict=True))


def _dynamic_slice(term: Term, arrays: Sequence[Array]) -> Array:
    x, *starts = arrays
    return np.array(x[(*_window(x.shape, _numbers(term.attribute("slice_sizes")), starts), ...)])


def _update(_: Term, arrays: Sequence[Array]) -> Array:
    x, part, *starts = arrays
    result = np.array(x)
    window: tuple[Any, ...] = _window(x.shape, part.shape, starts)
    result[(*window, ...)] = part
    return result


def _padded(x: Array, fill: Array, low: Sequence[int], high: Sequence[int], between: Sequence[int]) -> Array:
    """Elements with others put between and around them; a negative number of those around takes elements away."""
    sizes = [size + max(size - 1, 0) * gap for size, gap in zip(x.shape, between, strict=True)]
    whole = np.full([max(a, 0) + size + max(b, 0) for a, size, b in zip(low, sizes, high, strict=True)], fill.reshape(-1)[0], x.dtype)
    put: tuple[Any, ...] = tuple(slice(max(a, 0), max(a, 0) + size, gap + 1) for a, size, gap in zip(low, sizes, between, strict=True))
    whole[(*put, ...)] = x
    kept: tuple[Any, ...] = tuple(slice(max(-a, 0), size - max(-b, 0)) for a, b, size in zip(low, high, whole.shape, strict=True))
    return np.array(whole[(*kept, ...)])


def _pad(term: Term, arrays: Sequence[Array]) -> Array:
    return _padded(arrays[0], arrays[1], *(_numbers(term.attribute(name)) for name in ("low", "high", "interior")))


def _dynamic_pad(_: Term, arrays: Sequence[Array]) -> Array:
    return _padded(arrays[0], arrays[1], *(_numbers(array) for array in arrays[2:]))


def _gather(term: Term, arrays: Sequence[Array]) -> Array:
    """Slices of the operand at index vectors that are clamped so that they lie in it."""
    x, starts = arrays[:2]
    told = dict(term.attributes)
    sizes, shape = _numbers(told["slice_sizes"] if len(arrays) == 2 else arrays[2]), term.tensor.static
    assert shape is not None
    places = np.indices(shape, sparse=True)
    batch = [places[axis] for axis in range(len(shape)) if axis not in told["offset_dims"]]
    offsets = iter([places[axis] for axis in told["offset_dims"]])
    vector = told["index_vector_dim"]
    index: list[Any] = []
    for axis in range(x.ndim):
        alone = axis in told["collapsed_slice_dims"] or axis in told["operand_batching_dims"]
        place: Any = 0 if alone else next(offsets)
        if axis in told["operand_batching_dims"]:
            which = told["start_indices_batching_dims"][told["operand_batching_dims"].index(axis)]
            place = place + batch[which - (which > vector)]
        elif axis in told["start_index_map"]:
            number = told["start_index_map"].index(axis)
            row = list(batch)
            if vector < starts.ndim:
                row.insert(vector, np.asarray(number))
            start = np.asarray(starts[tuple(row)]) if row else starts
            place = place + np.clip(start.astype(np.int64), 0, x.shape[axis] - sizes[axis])
        index.append(place)
    return np.array(np.broadcast_to(x[tuple(index)], shape))


def _sized(move: Callable[[Term, Sequence[Array]], Array]) -> Callable[[Term, Sequence[Array]], Array]:
    """A move whose last operand is the shape of its result: it must be that of the type."""

    def moved(term: Term, arrays: Sequence[Array]) -> Array:
        if _numbers(arrays[-1]) != term.tensor.static:
            raise CannotSay(f"{term.op.name} to another shape than it says")
        return move(term, arrays)

    return moved


def counted(term: Term) -> Array:
    """The elements of an iota: places along one dim, as elements of its type."""
    shape, axis = _numbers(term.attribute("shape")), term.attribute("dimension")
    counts = np.arange(shape[axis]).reshape([-1 if place == axis else 1 for place in range(len(shape))])
    return np.array(np.broadcast_to(converted(counts.astype(np.int64), DTYPES["i64"], term.tensor.dtype), shape))


def _reshape(term: Term, arrays: Sequence[Array]) -> Array:
    return arrays[0].reshape(_numbers(term.attribute("shape")))


MOVED: dict[str, Callable[[Term, Sequence[Array]], Array]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": lambda term, arrays: np.ascontiguousarray(arrays[0].transpose(term.attribute("permutation"))),
    "stablehlo.slice": _slice,
    "stablehlo.reverse": lambda term, arrays: np.flip(arrays[0], term.attribute("dimensions")),
    "stablehlo.concatenate": lambda term, arrays: np.concatenate(arrays, axis=term.attribute("dimension")),
    "stablehlo.pad": _pad,
    "stablehlo.gather": _gather,
    "stablehlo.dynamic_broadcast_in_dim": _sized(_broadcast),
    "stablehlo.dynamic_reshape": _sized(_reshape),
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _update,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.real_dynamic_slice": _real_slice,
}
COUNTED = frozenset({"stablehlo.iota", "stablehlo.dynamic_iota"})
DATA: dict[str, int | None] = {
    "stablehlo.concatenate": None,
    "stablehlo.pad": 2,
    "stablehlo.dynamic_pad": 2,
    "stablehlo.dynamic_update_slice": 2,
}  # how many operands of a move are what it moves, all of them where None; of others the first one is. The rest are places.


def data(name: str) -> int | None:
    """How many of an op's first operands it moves; None: all of them."""
    return DATA.get(name, 1)
