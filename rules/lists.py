"""Lists of the index algebra: permutations, axes and shapes."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from coset.ir import dims
from coset.ir.dims import Dim
from coset.rules.arithmetic import as_list, equal, integer, is_one, number
from coset.rules.scalar import Undefined, note


def permutation(p: Any) -> tuple[int, ...]:
    items = tuple(integer(item) for item in as_list(p))
    if sorted(items) != list(range(len(items))):
        raise Undefined
    return items


def compose(p: Any, q: Any) -> tuple[int, ...]:
    first, second = permutation(p), permutation(q)
    if len(first) != len(second):
        raise Undefined
    return tuple(first[i] for i in second)


def inverse(p: Any) -> tuple[int, ...]:
    items = permutation(p)
    return tuple(items.index(i) for i in range(len(items)))


def item(items: Any, index: Any) -> Any:
    found = as_list(items)
    if not -len(found) <= integer(index) < len(found):
        raise Undefined
    return found[index]


def slice(items: Any, start: Any, stop: Any) -> tuple[Any, ...]:
    return as_list(items)[None if start is None else integer(start) : None if stop is None else integer(stop)]


def permute(items: Any, p: Any) -> tuple[Any, ...]:
    return tuple(item(items, i) for i in as_list(p))


def without(count: Any, axes: Any) -> tuple[int, ...]:
    length = integer(count)
    dropped = {integer(axis) % length for axis in as_list(axes)} if length else set()
    return tuple(i for i in range(length) if i not in dropped)


def join(first: Any, second: Any) -> tuple[int, ...]:
    """Axes of the operand that reducing over `first` and then, in what is left, over `second` removes."""
    inner, outer = sorted(map(integer, as_list(first))), sorted(map(integer, as_list(second)))
    left = [i for i in range(len(inner) + (max(outer) + 1 if outer else 0)) if i not in inner]
    return tuple(sorted(inner + [left[i] for i in outer]))


def broadcast(*shapes: Any) -> tuple[Dim, ...]:
    """The shape that numpy broadcasts all of `shapes` to."""
    return functools.reduce(_broadcast, map(as_list, shapes), ())


def _broadcast(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Dim, ...]:
    result: list[Dim] = []
    for x, y in itertools.zip_longest(reversed(first), reversed(second), fillvalue=1):
        if not equal_or_one(x, y):
            raise Undefined
        result.append(y if is_one(x) else x)
    return tuple(reversed(result))


def equal_or_one(x: Any, y: Any) -> bool:
    """Whether two dims broadcast."""
    return is_one(x) or is_one(y) or equal(x, y)


def batch_axes(a: Any, b: Any) -> tuple[int, ...]:
    """The batch axes of `a @ b`: none under a matrix on the right, all but the last two of equal ranks of three and more."""
    left, right = len(as_list(a)), len(as_list(b))
    if right == 2 and left >= 2:
        return ()
    if left != right or left < 3:
        raise Undefined
    return tuple(range(left - 2))


def swap_last(a: Any) -> tuple[int, ...]:
    if (count := len(as_list(a))) < 2:
        raise Undefined
    return (*range(count - 2), count - 1, count - 2)


def expanding_axes(a: Any, shape: Any) -> tuple[int, ...]:
    """The axes of `a` whose dim is 1 and which broadcasting `a` to `shape` repeats, numpy's way; under a symbol it counts as repeated."""
    own, target = as_list(a), as_list(shape)
    offset = len(target) - len(own)
    if offset < 0:
        raise Undefined
    found = []
    for axis, dim in enumerate(own):
        if is_one(dim):
            found += [axis] if not is_one(target[offset + axis]) else []
        elif not equal(dim, target[offset + axis]):
            raise Undefined
    return tuple(found)


def placement(own: Any, shape: Any) -> tuple[int, ...]:
    """The places of the dims of one shape in another one that has only dims of 1 besides."""
    target, found = list(as_list(shape)), list[int]()
    for dim in as_list(own):
        start = found[-1] + 1 if found else 0
        while start < len(target) and is_one(target[start]) and not is_one(dim):
            start += 1
        if start >= len(target) or not equal(target[start], dim):
            raise Undefined
        found.append(start)
    if any(not is_one(dim) for axis, dim in enumerate(target) if axis not in found):
        raise Undefined
    return tuple(found)


def total(items: Any) -> Dim:
    """The sum of a list of dims."""
    result: Dim = 0
    for each in as_list(items):
        result = dims.add(result, number(each))
    return result


def index(items: Any, value: Any) -> int:
    """The place of the first item that equals `value`."""
    for place, each in enumerate(as_list(items)):
        if equal(each, value):
            return place
    raise Undefined


def _axes(count: int, axes: Any) -> set[int]:
    """`axes` counted from the front, each less than `count` and there once."""
    given = [integer(axis) for axis in as_list(axes)]
    found = {axis % count for axis in given if -count <= axis < count}
    if len(found) != len(given):
        raise Undefined
    return found


def ones_at(shape: Any, axes: Any) -> tuple[Any, ...]:
    """The shape with 1 at the axes."""
    own = as_list(shape)
    found = _axes(len(own), axes)
    return tuple(1 if axis in found else dim for axis, dim in enumerate(own))


def put(items: Any, place: Any, value: Any) -> tuple[Any, ...]:
    """The list with another item at one place, counted from the end where it is negative."""
    own = as_list(items)
    (found,) = _axes(len(own), (place,))
    return (*own[:found], value, *own[found + 1 :])


def drop(items: Any, places: Any) -> tuple[Any, ...]:
    """The list without the items at some places."""
    own = as_list(items)
    found = _axes(len(own), places)
    return tuple(each for place, each in enumerate(own) if place not in found)


def insert(items: Any, places: Any, value: Any) -> tuple[Any, ...]:
    """The list with `value` put in so that it stands at `places` of the result."""
    rest = iter(as_list(items))
    count = len(as_list(items)) + len(as_list(places))
    found = _axes(count, places)
    return tuple(value if place in found else next(rest) for place in range(count))


def cut(shape: Any, elements: Any) -> int:
    """The least number of leading dims whose product is `elements`."""
    wanted, found = number(elements), number(1)
    for count, dim in enumerate((*as_list(shape), 1)):
        if found == wanted:
            return count
        if not (isinstance(found, int) and isinstance(wanted, int)):
            note("`cut`")
        found = dims.multiply(found, number(dim))
    raise Undefined


def runs(shape: Any, merged: Any) -> tuple[tuple[int, ...], ...]:
    """For each dim of `merged` the neighbouring axes of `shape` that a reshape makes it of; dims of 1 join the dim before them."""
    own, found, axis = as_list(shape), list[tuple[int, ...]](), 0
    target = as_list(merged)
    for place, dim in enumerate(target):
        last = place + 1 == len(target)
        count = len(own) - axis if last else cut(own[axis:], dim)
        if last and not equal(dims.product(map(number, own[axis:])), dim):
            raise Undefined
        found.append(tuple(range(axis, axis + count)))
        axis += count
    if axis != len(own):
        raise Undefined
    return tuple(found)


def relocated(axes: Any, shape: Any, reshaped: Any) -> tuple[int, ...]:
    """Where axes of a shape are in another one that differs from it by dims of 1 only."""
    own, target = as_list(shape), as_list(reshaped)
    ours, theirs = ([i for i, dim in enumerate(shape) if not is_one(dim)] for shape in (own, target))
    places = dict(zip(ours, theirs, strict=False))
    if not equal(tuple(own[i] for i in ours), tuple(target[i] for i in theirs)):
        raise Undefined
    if any(integer(axis) not in places for axis in as_list(axes)):
        raise Undefined
    return tuple(places[integer(axis)] for axis in as_list(axes))


def begin_end(items: Any) -> tuple[tuple[Any, Any], ...]:
    """The first half of a list beside its second half."""
    own = as_list(items)
    if len(own) % 2:
        raise Undefined
    return tuple(zip(own[: len(own) // 2], own[len(own) // 2 :], strict=True))


def joined(items: Any) -> tuple[Any, ...]:
    """The lists of a list of lists as one."""
    return tuple(each for part in as_list(items) for each in as_list(part))


def regrouped(own: Any, shape: Any, axes: Any) -> tuple[int, ...]:
    """The axes of one shape that hold, in a reshape of it to another one, what `axes` of the other one hold: both fall into groups
    of adjacent dims with equal products, and the axes must be whole groups (dims of 1 aside)."""
    left, right = as_list(own), as_list(shape)
    wanted = _axes(len(right), axes)
    found: list[int] = []
    for ours, theirs in _groups(left, right):
        inside = [axis in wanted for axis in theirs if right[axis] != 1]
        if inside and any(inside) != all(inside):
            raise Undefined
        if any(inside) if inside else all(axis in wanted for axis in theirs):
            found += ours
    return tuple(found)


def _groups(left: tuple[Any, ...], right: tuple[Any, ...]) -> list[tuple[range, range]]:
    """The finest cut of two shapes of one size into ranges of axes with equal products."""
    if not equal(dims.product(map(number, left)), dims.product(map(number, right))):
        raise Undefined
    if any(not isinstance(dim, int) for dim in (*left, *right)):
        note("`regrouped`")
    cuts_left, cuts_right = _products(left), _products(right)
    shared = [product for product in cuts_left if product in cuts_right]
    groups, i, j = [], 0, 0
    for product in shared:
        if product != 1:
            groups.append((range(i, cuts_left[product]), range(j, cuts_right[product])))
            i, j = cuts_left[product], cuts_right[product]
    if i < len(left) or j < len(right):  # dims of 1 at the end belong to the last group
        if not groups:
            return [(range(len(left)), range(len(right)))]
        groups[-1] = (range(groups[-1][0].start, len(left)), range(groups[-1][1].start, len(right)))
    return groups


def _products(shape: tuple[Any, ...]) -> dict[Dim, int]:
    """The product of the leading dims -> how many they are (the fewest)."""
    found: dict[Dim, int] = {}
    product: Dim = 1
    for count, dim in enumerate(shape, start=1):
        product = dims.multiply(product, number(dim))
        found.setdefault(product, count)
    return found
