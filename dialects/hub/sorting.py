"""The NumPy meaning of sort: by a direction of the first operand, or by a comparator of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from coset.dialects.hub.payloads import Payload
from coset.dialects.hub.scalars import widen
from coset.dialects.hub.scattering import ranks
from coset.ir.evaluate import Fallback
from coset.ir.op import Array
from coset.ir.types import dtype_of

if TYPE_CHECKING:
    from coset.ir.term import Term

Binding = Mapping[str, int]
Lines = Sequence[Array | None]  # the rows of each operand, one after the other; None for one that the comparator does not look at
_UNUSED: Array = np.zeros((), np.bool_)


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
    place = np.arange(prod(lead) * size)
    order = place % max(size, 1)
    row = place - order
    lines = [np.ascontiguousarray(x).reshape(-1) if comparator.uses(2 * i, 2 * i + 1) else None for i, x in enumerate(arrays)]
    width = 1
    while width < size:
        start = row + (place - row) // (2 * width) * (2 * width)
        source = _merged_runs(start, row + size, width, lines, comparator)
        order, lines = order[source], [None if line is None else line[source] for line in lines]
        width *= 2
    return np.asarray(order.reshape(*lead, size))


def _merged_runs(start: Array, row_end: Array, width: int, lines: Lines, comparator: Payload) -> Array:
    """Where the element at each place comes from when the two runs of `width` behind each `start` are merged."""
    place = np.arange(start.size)
    right, beside = place - start >= width, start + width < row_end  # in the right run; a right run is there
    left = np.flatnonzero(~right & beside)
    end = np.minimum(start + 2 * width, row_end)
    target = place.copy()
    target[left] = left + _gone_before(start[left], end[left], left, width, lines, comparator)
    taken = ~right & ~beside
    taken[target[left]] = True
    target[right] = np.flatnonzero(~taken)
    source = np.empty_like(place)
    source[target] = place
    return source


def _gone_before(start: Array, end: Array, left: Array, width: int, lines: Lines, comparator: Payload) -> Array:
    """For each element of a left run, how many of its right run go before it."""
    low, high = start + width, end
    own = [_UNUSED if line is None else line[left] for line in lines]
    while np.any(low < high):
        probe = (low + high) // 2
        at = np.minimum(probe, end - 1)
        theirs = [_UNUSED if line is None else line[at] for line in lines]
        before = np.broadcast_to(comparator(*(x for pair in zip(theirs, own, strict=True) for x in pair))[0], at.shape)
        open = low < high
        low, high = np.where(open & before, probe + 1, low), np.where(open & ~before, probe, high)
    lift = start * 2  # more than the counts of the runs before, so that one running maximum serves every run
    return np.asarray(np.maximum.accumulate(low - start - width + lift) - lift)
