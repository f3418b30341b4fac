"""The NumPy meaning of sort: by a direction of the first operand, or by a comparator of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from coset.dialects.hub_payloads import Payload
from coset.dialects.hub_scalars import widen
from coset.dialects.hub_scattering import ranks
from coset.ir.evaluate import Fallback
from coset.ir.op import Array
from coset.ir.types import dtype_of

if TYPE_CHECKING:
    from coset.ir.term import Term

Binding = Mapping[str, int]


def sort(term: Term, arrays: Sequence[Array], binding: Binding, fallback: Fallback | None = None) -> Array | tuple[Array, ...]:
    """Always stable. By a direction NaN counts as the largest and zeros are equal, unless `total` tells them apart; LE and GE turn
    equal elements round, which is what a merge with such a comparator does."""
    axis = term.attribute("dimension")
    if term.regions:
        order = _merged([np.moveaxis(x, axis, -1) for x in arrays], Payload(term.regions[0], binding, fallback))
    else:
        order = _ordered(np.moveaxis(arrays[0], axis, -1), term.attribute("direction"), total=term.attribute("total"))
    order = np.moveaxis(order, -1, axis)
    results = tuple(np.take_along_axis(x, order, axis) for x in arrays)
    return results[0] if len(results) == 1 else results


def _ordered(x: Array, direction: str, *, total: bool) -> Array:
    """The stable order of the last axis."""
    keys = widen(x)
    if total and keys.dtype.kind == "f":
        single = dtype_of(x.dtype).name.endswith("fnuz")  # has one NaN, whose bits are those of -0.0 elsewhere
        keys = ranks(np.where(np.isnan(keys), np.abs(keys), keys) if single else keys)
    last = keys.shape[-1] - 1
    if direction in ("LE", "GT"):
        order = np.asarray(last - np.argsort(keys[..., ::-1], axis=-1, kind="stable"))
        return order if direction == "LE" else order[..., ::-1]
    order = np.argsort(keys, axis=-1, kind="stable")
    return order if direction == "LT" else order[..., ::-1]


def _merged(arrays: Sequence[Array], comparator: Payload) -> Array:
    """Merge sort of the last axis with a comparator of elements, every row and every pair of runs at once.

    In a merge an element of the right run goes before one of the left run when the comparator says so. How many do is found by
    bisection, which is exact for a strict weak order; a comparator that is none still gives a permutation.
    """
    lead, size = arrays[0].shape[:-1], arrays[0].shape[-1]
    order = np.tile(np.arange(size), (prod(lead), 1))
    if not order.size:
        return order.reshape(*lead, size)
    rows = [np.ascontiguousarray(x).reshape(-1, size) for x in arrays]
    width = 1
    while width < size:
        order = _merge_runs(rows, order, width, comparator)
        width *= 2
    return order.reshape(*lead, size)


def _merge_runs(rows: Sequence[Array], order: Array, width: int, comparator: Payload) -> Array:
    """`order` with each two neighbouring runs of `width` merged."""
    count, size = order.shape
    start = np.arange(size) // (2 * width) * (2 * width)
    left = np.flatnonzero(np.arange(size) - start < width)
    line = np.arange(count)[:, None]
    middle = np.minimum(start[left] + width, size)
    end = np.minimum(start[left] + 2 * width, size)
    own = [row[line, order[:, left]] for row in rows]
    low = np.broadcast_to(middle, (count, left.size)).copy()
    high = np.broadcast_to(end, (count, left.size)).copy()
    while np.any(low < high):
        probe = np.minimum((low + high) // 2, size - 1)
        theirs = [row[line, order[line, probe]] for row in rows]
        pairs = [operand for pair in zip(theirs, own, strict=True) for operand in pair]
        (before,) = comparator(*pairs)
        open = low < high
        low, high = np.where(open & before, probe + 1, low), np.where(open & ~before, probe, high)
    gone = low - middle  # how many of the right run go before each element of the left run
    lift = start[left] * 2  # more than a run's counts can be, so that one running maximum serves every run
    gone = np.maximum.accumulate(gone + lift, axis=1) - lift
    place = left + gone
    merged = np.full((count, size), -1, order.dtype)
    np.put_along_axis(merged, place, order[:, left], axis=1)
    right = np.setdiff1d(np.arange(size), left)
    merged[merged < 0] = order[:, right].reshape(-1)
    return merged
