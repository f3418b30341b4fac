"""Lists, permutations and shapes of the index algebra."""

from __future__ import annotations

import itertools
from typing import Any

from coset.ir.dims import Poly
from coset.prove.second.answer import Unknown
from coset.prove.second.arithmetic import as_axes, as_axis, as_int, as_list, equal, item, times


def put(p: Any, i: Any, v: Any) -> tuple[Any, ...]:
    values = list(as_list(p))
    values[as_axis(i, len(values))] = v
    return tuple(values)


def drop(p: Any, axes: Any) -> tuple[Any, ...]:
    gone = as_axes(axes, len(as_list(p)))
    return tuple(each for place, each in enumerate(p) if place not in gone)


def insert(p: Any, axes: Any, v: Any) -> tuple[Any, ...]:
    values = list(as_list(p))
    places = set(as_axes(axes, len(values) + len(as_list(axes))))
    result = []
    for place in range(len(values) + len(places)):
        result.append(v if place in places else values.pop(0))
    return tuple(result)


def ones_at(shape: Any, axes: Any) -> tuple[Any, ...]:
    ones = as_axes(axes, len(as_list(shape)))
    return tuple(1 if place in ones else each for place, each in enumerate(shape))


def _permutation(p: Any) -> tuple[int, ...]:
    values = as_list(p)
    if sorted(as_int(each) for each in values) != list(range(len(values))):
        raise Unknown(f"{p} is no permutation")
    return values


def compose(p: Any, q: Any) -> tuple[int, ...]:
    first, second = _permutation(p), _permutation(q)
    if len(first) != len(second):
        raise Unknown("permutations of different length")
    return tuple(first[axis] for axis in second)


def inverse(p: Any) -> tuple[int, ...]:
    values = _permutation(p)
    return tuple(values.index(axis) for axis in range(len(values)))


def permute(values: Any, p: Any) -> tuple[Any, ...]:
    return tuple(item(values, i) for i in as_list(p))


def rising(p: Any) -> tuple[int, ...]:
    return tuple(sorted(as_int(each) for each in as_list(p)))


def without(n: Any, axes: Any) -> tuple[int, ...]:
    gone = as_axes(axes, as_int(n))
    return tuple(axis for axis in range(n) if axis not in gone)


def join(first: Any, second: Any) -> tuple[int, ...]:
    """What is left when `first` are gone has axes `second`; the answer is in axes of the whole."""
    gone = {as_int(each) for each in as_list(first)}
    most = max([*gone, -1]) + max([as_int(each) for each in as_list(second)] + [-1]) + 2 + len(gone)
    left = [axis for axis in range(most) if axis not in gone]
    return tuple(sorted(gone | {left[as_axis(each, len(left))] for each in second}))


def broadcast(*shapes: Any) -> tuple[Any, ...]:
    rank = max((len(as_list(shape)) for shape in shapes), default=0)
    result: list[Any] = [1] * rank
    for shape in shapes:
        for place, dim in enumerate(reversed(shape), start=1):
            if _surely(dim, 1) or _surely(dim, result[-place]):
                continue
            if not _surely(result[-place], 1):
                raise Unknown(f"{dim} and {result[-place]} do not broadcast")
            result[-place] = dim
    return tuple(result)


def _surely(a: Any, b: Any) -> bool:
    try:
        return equal(a, b)
    except Unknown:
        return False


def placement(shape: Any, wide: Any) -> tuple[int, ...]:
    """Each dim of `shape`, in order, beside dims of 1 that were put in: dims of 1 of `shape` may stand at any of them, so the first."""
    found: list[int] = []
    place = 0
    for position, dim in enumerate(as_list(shape)):
        while place < len(as_list(wide)) and not _surely(wide[place], dim):
            if not _surely(wide[place], 1):
                raise Unknown("no placement")
            place += 1
        if place == len(wide):
            raise Unknown("no placement")
        found.append(place)
        place += 1
        del position
    if not all(_surely(dim, 1) for dim in wide[place:]):
        raise Unknown("no placement")
    return tuple(found)


def cut(shape: Any, n: Any) -> int:
    total: Any = 1
    for place in range(len(as_list(shape)) + 1):
        if _surely(total, n):
            return place
        if place < len(shape):
            total = times(total, shape[place])
    raise Unknown(f"no leading dims of {shape} have the product {n}")


def runs(shape: Any, merged: Any) -> tuple[tuple[int, ...], ...]:
    """For each dim of `merged` the fewest axes of `shape`, of those that are left, whose product it is; the last one has all the rest."""
    own, result, place = as_list(shape), list[tuple[int, ...]](), 0
    for position, dim in enumerate(as_list(merged)):
        first, total, last = place, 1, position == len(merged) - 1
        while place < len(own) and (last or not _surely(total, dim)):
            total = times(total, own[place])
            place += 1
        if not _surely(total, dim):
            raise Unknown("no runs")
        result.append(tuple(range(first, place)))
    if place != len(own):
        raise Unknown("no runs")
    return tuple(result)


def relocated(axes: Any, shape: Any, other: Any) -> tuple[int, ...]:
    """Where axes of `shape` are in `other`: what is not 1 keeps its order, and must be the same."""
    kept = [axis for axis, dim in enumerate(as_list(shape)) if not _surely(dim, 1)]
    there = [axis for axis, dim in enumerate(as_list(other)) if not _surely(dim, 1)]
    if len(kept) != len(there) or not all(_surely(shape[a], other[b]) for a, b in zip(kept, there, strict=True)):
        raise Unknown("the shapes differ by more than dims of 1")
    found = []
    for axis in as_axes(axes, len(shape)):
        if axis not in kept:
            raise Unknown("an axis of one element has no place of its own")
        found.append(there[kept.index(axis)])
    return tuple(found)


def regrouped(shape: Any, other: Any, axes: Any) -> tuple[int, ...]:
    """The axes of `shape` with the elements of the axes of `other`: both are cut where the products of what stands before agree."""
    wanted = set(as_axes(axes, len(as_list(other))))
    result: list[int] = []
    for mine, theirs in _groups(as_list(shape), as_list(other)):
        large = [axis for axis in theirs if not _surely(other[axis], 1)]
        asked = [axis in wanted for axis in large or theirs]
        if large and any(asked) != all(asked):
            raise Unknown("an axis is a part of another one")
        result += mine if all(asked) else ()
    return tuple(result)


def _groups(shape: tuple[Any, ...], other: tuple[Any, ...]) -> list[tuple[range, range]]:
    """The finest pairs of ranges of axes with equal products; dims of 1 at the end belong to the last pair."""
    left, right = _leading(shape), _leading(other)
    if not _surely(_whole(shape), _whole(other)):
        raise Unknown("the shapes have no common cut")
    cuts = [(left[product], right[product]) for product in left if product in right and not _surely(product, 1)]
    ends = [(0, 0), *cuts]
    if len(ends) == 1:
        return [(range(len(shape)), range(len(other)))] if shape or other else []
    ends[-1] = (len(shape), len(other))
    return [(range(a, c), range(b, d)) for (a, b), (c, d) in itertools.pairwise(ends)]


def _leading(shape: tuple[Any, ...]) -> dict[Any, int]:
    """The products of leading dims, each with the fewest dims that have it."""
    found: dict[Any, int] = {}
    for count in range(1, len(shape) + 1):
        found.setdefault(_whole(shape[:count]), count)
    return found


def _whole(shape: tuple[Any, ...]) -> Any:
    total: Any = 1
    for dim in shape:
        total = times(total, dim)
    return total


def joined(p: Any) -> tuple[Any, ...]:
    return tuple(each for inner in as_list(p) for each in as_list(inner))


def static(value: Any) -> bool:
    return all(static(each) for each in value) if isinstance(value, tuple) else not isinstance(value, Poly)
