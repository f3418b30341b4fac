"""The functions of the index algebra: one table with how each is written, what it is, and how it is computed.

Dims may be symbolic. A comparison that canonical forms do not settle is `Undecided`, everything without a value `Undefined`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coset.ir import dims
from coset.ir.dims import Dim, Poly
from coset.ir.types import DType, TensorType
from coset.rules.scalar import Undefined


class Undecided(Undefined):
    """A comparison of symbolic dims that their canonical forms do not settle."""


def same(a: Any, b: Any) -> bool:
    """True when two values are known to be equal: dims by canonical form, floats bit for bit, constants by key."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex() or (a != a and b != b)
    return bool(a == b)


def as_list(value: Any) -> tuple[Any, ...]:
    """A list, or the shape of a type.

    Raises:
        Undefined: it is neither.
    """
    if isinstance(value, TensorType):
        return value.dims
    if not isinstance(value, tuple):
        raise Undefined
    return value


@dataclass(frozen=True)
class Function:
    """One function of the algebra: how it is written, what it is, how it is computed."""

    usage: str
    document: str
    compute: Callable[..., Any]
    arity: tuple[int, int]


def _number(value: Any) -> Dim:
    if isinstance(value, bool) or not isinstance(value, int | Poly):
        raise Undefined
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Undefined
    return value


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return as_list(a) + as_list(b)
    return dims.add(_number(a), _number(b))


def _exact(a: Any, b: Any) -> Dim:
    a, b = _number(a), _number(b)
    quotient = (a // b if b and a % b == 0 else None) if isinstance(a, int) and isinstance(b, int) else dims.divide_exactly(a, b)
    if quotient is None:
        raise Undefined
    return quotient


def _nonzero(compute: Callable[[Dim, Dim], Dim]) -> Callable[[Any, Any], Dim]:
    def guarded(a: Any, b: Any) -> Dim:
        if _number(b) == 0:
            raise Undefined
        return compute(_number(a), b)

    return guarded


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, TensorType):
        a = a if isinstance(b, TensorType) else a.dims
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) != len(b):
            return False
        verdicts = [_equal_or_none(x, y) for x, y in zip(a, b, strict=True)]
        if False in verdicts:
            return False
        if None in verdicts:
            raise Undecided
        return True
    if isinstance(a, Poly) or isinstance(b, Poly):
        if not isinstance(a, int | Poly) or not isinstance(b, int | Poly):
            return False
        difference = dims.subtract(a, b)
        if not isinstance(difference, int):
            raise Undecided
        return difference == 0
    return same(a, b)


def _equal_or_none(a: Any, b: Any) -> bool | None:
    try:
        return _equal(a, b)
    except Undecided:
        return None


def _less(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return bool(a < b)
    difference = dims.subtract(_number(a), _number(b))
    if not isinstance(difference, int):
        raise Undecided
    return difference < 0


def _contains(item: Any, items: Any) -> bool:
    verdicts = [_equal_or_none(item, other) for other in as_list(items)]
    if True in verdicts:
        return True
    if None in verdicts:
        raise Undecided
    return False


def _permutation(p: Any) -> tuple[int, ...]:
    items = tuple(_integer(item) for item in as_list(p))
    if sorted(items) != list(range(len(items))):
        raise Undefined
    return items


def _compose(p: Any, q: Any) -> tuple[int, ...]:
    first, second = _permutation(p), _permutation(q)
    if len(first) != len(second):
        raise Undefined
    return tuple(first[i] for i in second)


def _inverse(p: Any) -> tuple[int, ...]:
    items = _permutation(p)
    return tuple(items.index(i) for i in range(len(items)))


def _item(items: Any, index: Any) -> Any:
    found = as_list(items)
    if not -len(found) <= _integer(index) < len(found):
        raise Undefined
    return found[index]


def _slice(items: Any, start: Any, stop: Any) -> tuple[Any, ...]:
    return as_list(items)[None if start is None else _integer(start) : None if stop is None else _integer(stop)]


def _permute(items: Any, p: Any) -> tuple[Any, ...]:
    return tuple(_item(items, i) for i in as_list(p))


def _without(count: Any, axes: Any) -> tuple[int, ...]:
    length = _integer(count)
    dropped = {_integer(axis) % length for axis in as_list(axes)} if length else set()
    return tuple(i for i in range(length) if i not in dropped)


def _join(first: Any, second: Any) -> tuple[int, ...]:
    """Axes of the operand that reducing over `first` and then, in what is left, over `second` removes."""
    inner, outer = sorted(map(_integer, as_list(first))), sorted(map(_integer, as_list(second)))
    left = [i for i in range(len(inner) + (max(outer) + 1 if outer else 0)) if i not in inner]
    return tuple(sorted(inner + [left[i] for i in outer]))


def _broadcast(a: Any, b: Any) -> tuple[Dim, ...]:
    first, second = as_list(a), as_list(b)
    result: list[Dim] = []
    for x, y in itertools.zip_longest(reversed(first), reversed(second), fillvalue=1):
        if x != 1 and y != 1 and not _equal(x, y):
            raise Undefined
        result.append(y if x == 1 else x)
    return tuple(reversed(result))


def _batch_axes(a: Any, b: Any) -> tuple[int, ...]:
    """The batch axes of `a @ b`: none under a matrix on the right, all but the last two of equal ranks of three and more."""
    left, right = len(as_list(a)), len(as_list(b))
    if right == 2 and left >= 2:
        return ()
    if left != right or left < 3:
        raise Undefined
    return tuple(range(left - 2))


def _swap_last(a: Any) -> tuple[int, ...]:
    count = len(as_list(a))
    if count < 2:
        raise Undefined
    return (*range(count - 2), count - 1, count - 2)


def _expanding_axes(a: Any, shape: Any) -> tuple[int, ...]:
    """The axes of `a` whose dim is 1 and which broadcasting `a` to `shape` repeats, numpy's way."""
    own, target = as_list(a), as_list(shape)
    offset = len(target) - len(own)
    if offset < 0:
        raise Undefined
    found = []
    for axis, dim in enumerate(own):
        if not _equal(dim, target[offset + axis]):
            if dim != 1:
                raise Undefined
            found.append(axis)
    return tuple(found)


def _placement(own: Any, shape: Any) -> tuple[int, ...]:
    """The places of the dims of one shape in another one that has only dims of 1 besides."""
    target, found = list(as_list(shape)), list[int]()
    for dim in as_list(own):
        start = found[-1] + 1 if found else 0
        while start < len(target) and target[start] == 1 and dim != 1:
            start += 1
        if start >= len(target) or not _equal(target[start], dim):
            raise Undefined
        found.append(start)
    if any(dim != 1 for axis, dim in enumerate(target) if axis not in found):
        raise Undefined
    return tuple(found)


def _static(value: Any) -> bool:
    items = as_list(value) if isinstance(value, tuple | TensorType) else (value,)
    return all(isinstance(item, int) for item in items)


def _dtype(value: Any) -> DType:
    if not isinstance(value, TensorType):
        raise Undefined
    return value.dtype


def _widens(a: Any, b: Any) -> bool:
    """Every value of dtype `a` is one of dtype `b`."""
    if not isinstance(a, DType) or not isinstance(b, DType):
        raise Undefined
    if a == b:
        return True
    order = {"bf16": {"f32", "f64"}, "f16": {"f32", "f64"}, "f32": {"f64"}}
    if a.kind == "float" or a.kind == "bool":
        return a.kind == "bool" and b.kind in ("int", "uint", "float") if a.kind == "bool" else b.name in order.get(a.name, set())
    if a.kind in ("int", "uint") and b.kind in ("int", "uint"):
        return (a.kind == b.kind and a.bits < b.bits) or (a.kind == "uint" and b.kind == "int" and a.bits < b.bits)
    precision = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}.get(b.name, 0)
    return a.kind in ("int", "uint") and a.bits - (a.kind == "int") <= precision


FUNCTIONS: dict[str, Function] = {
    "+": Function("a + b", "the sum of two dims; of two lists their concatenation", _add, (2, 2)),
    "-": Function("a - b", "the difference of two dims", lambda a, b: dims.subtract(_number(a), _number(b)), (2, 2)),
    "*": Function("a * b", "the product of two dims", lambda a, b: dims.multiply(_number(a), _number(b)), (2, 2)),
    "/": Function("a / b", "the quotient of two dims; undefined unless it is known to leave no rest", _exact, (2, 2)),
    "//": Function("a // b", "the quotient rounded down", _nonzero(dims.floordiv), (2, 2)),
    "%": Function("a % b", "the rest of a // b, with b's sign", _nonzero(dims.mod), (2, 2)),
    "negate": Function("-a", "the negative of a dim", lambda a: dims.multiply(-1, _number(a)), (1, 1)),
    "min": Function("min(a, b)", "the smaller dim", lambda a, b: dims.minimum(_number(a), _number(b)), (2, 2)),
    "max": Function("max(a, b)", "the larger dim", lambda a, b: dims.maximum(_number(a), _number(b)), (2, 2)),
    "==": Function("a == b", "equality; unknown for symbolic dims that differ by no number", _equal, (2, 2)),
    "!=": Function("a != b", "the negation of ==", lambda a, b: not _equal(a, b), (2, 2)),
    "<": Function("a < b", "order of dims; unknown unless they differ by a number", _less, (2, 2)),
    "<=": Function("a <= b", "not b < a", lambda a, b: not _less(b, a), (2, 2)),
    ">": Function("a > b", "b < a", lambda a, b: _less(b, a), (2, 2)),
    ">=": Function("a >= b", "not a < b", lambda a, b: not _less(a, b), (2, 2)),
    "in": Function("a in p", "true when a is an item of the list p", _contains, (2, 2)),
    "not": Function("not a", "the negation", lambda a: not a, (1, 1)),
    "and": Function("a and b", "both", lambda a, b: a and b, (2, 2)),
    "or": Function("a or b", "one of them", lambda a, b: a or b, (2, 2)),
    "rank": Function("rank(x)", "the number of dims of a term variable", lambda t: len(as_list(t)), (1, 1)),
    "dims": Function("dims(x)", "the shape of a term variable, as a list", lambda t: as_list(t), (1, 1)),
    "dtype": Function("dtype(x)", "the element type of a term variable", _dtype, (1, 1)),
    "len": Function("len(p)", "the number of items of a list", lambda p: len(as_list(p)), (1, 1)),
    "range": Function("range(n) or range(a, b)", "0 .. n-1, or a .. b-1, as a list", lambda *a: tuple(range(*map(_integer, a))), (1, 2)),
    "repeat": Function("repeat(v, n)", "the list of n times v", lambda v, n: (v,) * _integer(n), (2, 2)),
    "product": Function("product(p)", "the product of a list of dims", lambda p: dims.product(_number(d) for d in as_list(p)), (1, 1)),
    "item": Function("p[i]", "item i of a list; from the end where i < 0", _item, (2, 2)),
    "slice": Function("p[a:b]", "items a .. b-1 of a list", _slice, (3, 3)),
    "compose": Function("compose(p, q)", "the permutation of transpose(transpose(x, p), q)", _compose, (2, 2)),
    "inverse": Function("inverse(p)", "the permutation that undoes p", _inverse, (1, 1)),
    "permute": Function("permute(l, p)", "the list l[p[0]], l[p[1]], ...", _permute, (2, 2)),
    "sort": Function("sort(p)", "the integers of p in ascending order", lambda p: tuple(sorted(map(_integer, as_list(p)))), (1, 1)),
    "without": Function("without(n, axes)", "0 .. n-1 less the axes: what a reduction keeps", _without, (2, 2)),
    "join": Function("join(A, B)", "the axes that reducing over A and then over B removes", _join, (2, 2)),
    "broadcast": Function("broadcast(A, B)", "the common shape of two shapes, numpy's way", _broadcast, (2, 2)),
    "placement": Function("placement(S, B)", "the axes of B that hold the dims of S, all other dims of B being 1", _placement, (2, 2)),
    "static": Function("static(e)", "true when a dim, list or shape has no symbol", _static, (1, 1)),
    "lossless": Function("lossless(A, B)", "true when every value of dtype A is one of dtype B", _widens, (2, 2)),
    "batch_axes": Function("batch_axes(a, b)", "the batch axes of a @ b", _batch_axes, (2, 2)),
    "swap_axes": Function("swap_axes(x)", "the permutation that swaps the last two axes", _swap_last, (1, 1)),
    "expanding": Function("expanding(x, S)", "the size-1 axes of x that broadcasting to S repeats", _expanding_axes, (2, 2)),
}
