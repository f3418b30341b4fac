"""The NumPy meaning of scatter: updates combined into the elements of operands that indices name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from coset.dialects.hub.payloads import Payload, accumulator
from coset.dialects.hub.scalars import narrow, widen
from coset.ir.evaluate import Fallback
from coset.ir.op import Array
from coset.ir.types import dtype_of

if TYPE_CHECKING:
    from coset.ir.term import Term

Binding = Mapping[str, int]
_ADDING = {"add": np.add, "multiply": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or}


def scatter(term: Term, arrays: Sequence[Array], binding: Binding, fallback: Fallback | None = None) -> Array | tuple[Array, ...]:
    """Updates in row-major order; an element that falls outside the operand is left out, the rest of its window is not."""
    count = term.attribute("count")
    operands, indices, updates = arrays[:count], arrays[count], arrays[count + 1 :]
    flat, inside = _positions(term, operands[0].shape, indices, updates[0].shape)
    payload = Payload(term.regions[0], binding, fallback) if term.regions else None
    kept = [update.reshape(-1)[inside] for update in updates]
    results = combined([np.array(x) for x in operands], flat[inside], kept, term.attribute("combiner"), payload)
    return results[0] if count == 1 else tuple(results)


def _positions(term: Term, shape: tuple[int, ...], indices: Array, updates: tuple[int, ...]) -> tuple[Array, Array]:
    """For each element of the updates its flat position in the operand, and whether it lies inside."""
    windows, batching = term.attribute("update_window_dims"), term.attribute("input_batching_dims")
    vector = term.attribute("index_vector_dim")
    scattered = [axis for axis in range(len(updates)) if axis not in windows]
    starts = np.moveaxis(indices, vector, -1) if vector < indices.ndim else indices[..., None]
    starts = starts.astype(np.int64)  # an unsigned index that i64 does not hold becomes negative: outside either way
    rank = len(updates)

    def along(values: Array, axes: Sequence[int]) -> Array:
        return values.reshape([values.shape[axes.index(axis)] if axis in axes else 1 for axis in range(rank)])

    coordinates = [np.zeros([1] * rank, np.int64) for _ in shape]
    for k, axis in enumerate(term.attribute("scatter_dims_to_operand_dims")):
        coordinates[axis] = coordinates[axis] + along(starts[..., k], scattered)
    for axis, where in zip(batching, term.attribute("scatter_indices_batching_dims"), strict=True):
        at = scattered[where - (where > vector)]
        coordinates[axis] = coordinates[axis] + along(np.arange(updates[at]), [at])
    moved = [axis for axis in range(len(shape)) if axis not in batching and axis not in term.attribute("inserted_window_dims")]
    for axis, window in zip(moved, windows, strict=True):
        coordinates[axis] = coordinates[axis] + along(np.arange(updates[window]), [window])
    flat, inside = np.zeros([1] * rank, np.int64), np.ones([1] * rank, np.bool_)
    for size, coordinate in zip(shape, coordinates, strict=True):
        valid = (coordinate >= 0) & (coordinate < size)
        inside = inside & valid
        flat = flat * size + np.where(valid, coordinate, 0)
    return np.broadcast_to(flat, updates).reshape(-1), np.broadcast_to(inside, updates).reshape(-1)


def combined(results: list[Array], flat: Array, updates: Sequence[Array], combiner: str, payload: Payload | None) -> list[Array]:
    """`results` (written to) with `updates` combined in at the `flat` positions, one after the other where a position repeats."""
    if payload is None:
        return [_by_word(result, flat, update, combiner) for result, update in zip(results, updates, strict=True)]
    rows = [np.ascontiguousarray(result).reshape(-1) for result in results]
    for part in _rounds(flat):
        fresh = payload(*(row[flat[part]] for row in rows), *(update[part] for update in updates))
        for row, value in zip(rows, fresh, strict=True):
            row[flat[part]] = value
    return [row.reshape(result.shape) for row, result in zip(rows, results, strict=True)]


def _by_word(result: Array, flat: Array, update: Array, combiner: str) -> Array:
    dtype = dtype_of(result.dtype)
    if combiner == "second":
        row = np.ascontiguousarray(result).reshape(-1)
        row[flat] = update  # of a position that repeats, NumPy keeps the last
        return row.reshape(result.shape)
    if not flat.size:
        return result
    with np.errstate(all="ignore"):
        if combiner in _ADDING:
            row = accumulator(result, combiner).reshape(-1)
            row = np.array(row)
            _ADDING[combiner].at(row, flat, accumulator(update, combiner))
            return narrow(row.reshape(result.shape), dtype)
        wide, values = widen(result), widen(update)
        extreme = np.maximum if combiner == "maximum" else np.minimum
        if wide.dtype.kind != "f":
            row = np.array(wide.reshape(-1))
            extreme.at(row, flat, values)
            return narrow(row.reshape(result.shape), dtype)
        keys = ranks(wide, combiner).reshape(-1)
        extreme.at(keys, flat, ranks(values, combiner))
        return narrow(_from_ranks(keys, wide.dtype).reshape(result.shape), dtype)


def ranks(x: Array, combiner: str = "") -> Array:
    """Unsigned integers in the total order of the floats `x` (-NaN, -inf .. -0.0, 0.0 .. inf, NaN). With `combiner`, every NaN is
    the one that wins: the highest for `maximum`, the lowest for `minimum`."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    bits = np.ascontiguousarray(x).reshape(x.shape).view(unsigned)
    top = unsigned.type(1 << 8 * x.dtype.itemsize - 1)
    order = np.where(bits & top, ~bits, bits | top)
    if combiner:
        order = np.where(np.isnan(x), unsigned.type(0) if combiner == "minimum" else ~unsigned.type(0), order)
    return np.asarray(order)


def _from_ranks(order: Array, dtype: np.dtype) -> Array:
    top = order.dtype.type(1 << 8 * dtype.itemsize - 1)
    return np.asarray(np.where(order & top, order ^ top, ~order)).view(dtype)


def _rounds(flat: Array) -> list[Array]:
    """The indices of `flat` in rounds: the first occurrences of each position, then the second ones, and so on."""
    if not flat.size:
        return []
    order = np.argsort(flat, kind="stable")
    places = flat[order]
    first = np.concatenate([[True], places[1:] != places[:-1]])
    starts = np.flatnonzero(first)
    turn = np.arange(flat.size) - np.repeat(starts, np.diff(np.append(starts, flat.size)))
    by_turn = order[np.argsort(turn, kind="stable")]
    return np.split(by_turn, np.cumsum(np.bincount(turn))[:-1])
