"""The functions of the index algebra, by the table in `docs/rules.md`: lists are tuples, dims are integers or expressions over symbols."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from coset.ir import dims
from coset.ir.constants import Constant
from coset.ir.dims import Poly
from coset.ir.term import Term
from coset.ir.types import DType, TensorType
from coset.prove.second import exact
from coset.prove.second.answer import CannotSay, Unknown


def whole(value: Any) -> bool:
    """True of integers and of dims."""
    return (isinstance(value, int) and not isinstance(value, bool)) or isinstance(value, Poly)


def _list(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        raise Unknown(f"{value} is no list")
    return value


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unknown(f"{value} is no known integer")
    return value


def _axis(value: Any, rank: int) -> int:
    axis = _int(value)
    if not -rank <= axis < rank:
        raise Unknown(f"there is no axis {axis} of {rank}")
    return axis % rank


def _axes(value: Any, rank: int) -> tuple[int, ...]:
    return tuple(_axis(each, rank) for each in _list(value))


# ---------------------------------------------------------------- arithmetic


def number(value: Any) -> Any:
    """A value as an exact number."""
    if isinstance(value, Poly):
        return value
    return exact.exact(value)


def plus(a: Any, b: Any) -> Any:
    """a + b: of lists what is in one or the other."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return _list(a) + _list(b)
    return dims.add(a, b) if whole(a) and whole(b) else exact.added(_plain(a), _plain(b))


def minus(a: Any, b: Any) -> Any:
    """a - b."""
    return dims.subtract(a, b) if whole(a) and whole(b) else exact.added(_plain(a), exact.negated(_plain(b)))


def times(a: Any, b: Any) -> Any:
    """a * b."""
    return dims.multiply(a, b) if whole(a) and whole(b) else exact.multiplied(_plain(a), _plain(b))


def over(a: Any, b: Any) -> Any:
    """a / b."""
    if isinstance(a, Poly) or isinstance(b, Poly):
        found = dims.divide_exactly(a, b) if whole(a) and whole(b) else None
        if found is None:
            raise Unknown(f"whether {b} divides {a}")
        return found
    quotient = exact.divided(_plain(a), _plain(b))
    return int(quotient) if whole(a) and whole(b) and isinstance(quotient, Fraction) and quotient.denominator == 1 else quotient


def floor_over(a: Any, b: Any) -> Any:
    """a // b."""
    if not (whole(a) and whole(b)) or b == 0:
        raise Unknown(f"{a} // {b}")
    return dims.floordiv(a, b)


def rest(a: Any, b: Any) -> Any:
    """a % b."""
    if not (whole(a) and whole(b)) or b == 0:
        raise Unknown(f"{a} % {b}")
    return dims.mod(a, b)


def minus_one_times(a: Any) -> Any:
    """-a."""
    return dims.multiply(-1, a) if whole(a) else exact.negated(_plain(a))


def _plain(value: Any) -> exact.Exact:
    if isinstance(value, Poly):
        raise Unknown(f"{value} as a number")
    return exact.exact(value)


def equal(a: Any, b: Any) -> bool:
    """a == b; unknown of symbolic dims that differ by no number."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and _each_equal(a, b)
    if isinstance(a, Poly) or isinstance(b, Poly):
        difference = dims.subtract(a, b) if whole(a) and whole(b) else None
        if isinstance(difference, int):
            return difference == 0
        raise Unknown(f"whether {a} is {b}")
    if _is_number(a) and _is_number(b):
        return bool(exact.exact(a) == exact.exact(b))
    if isinstance(a, Term) or isinstance(b, Term):
        return a is b
    return type(a) is type(b) and bool(a == b) if not isinstance(a, DType) else a is b


def _each_equal(a: Sequence[Any], b: Sequence[Any]) -> bool:
    unknown: Unknown | None = None
    for one, other in zip(a, b, strict=True):
        try:
            if not equal(one, other):
                return False
        except Unknown as found:
            unknown = found
    if unknown is not None:
        raise unknown
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)


def less(a: Any, b: Any) -> bool:
    """a < b; of dims unknown unless they differ by a number."""
    if whole(a) and whole(b):
        difference = dims.subtract(a, b)
        if isinstance(difference, int):
            return difference < 0
        raise Unknown(f"whether {a} is below {b}")
    return bool(_plain(a) < _plain(b))


def not_more(a: Any, b: Any) -> bool:
    """a <= b: of dims not b < a, of numbers what floats say, NaN included."""
    return not less(b, a) if whole(a) and whole(b) else bool(_plain(a) <= _plain(b))


def within(a: Any, p: Any) -> bool:
    """a in p."""
    unknown: Unknown | None = None
    for item in _list(p):
        try:
            if equal(a, item):
                return True
        except Unknown as found:
            unknown = found
    if unknown is not None:
        raise unknown
    return False


# ---------------------------------------------------------------- lists


def item(p: Any, i: Any) -> Any:
    """p[i]."""
    values = _list(p)
    return values[_axis(i, len(values))]


def part(p: Any, first: Any, last: Any) -> tuple[Any, ...]:
    """p[a:b]."""
    return _list(p)[None if first is None else _int(first) : None if last is None else _int(last)]


def _range(*ends: Any) -> tuple[int, ...]:
    return tuple(range(*(_int(end) for end in ends)))


def _repeat(value: Any, count: Any) -> tuple[Any, ...]:
    return (value,) * _int(count)


def _total(p: Any) -> Any:
    total: Any = 0
    for each in _list(p):
        total = plus(total, each)
    return total


def _product(p: Any) -> Any:
    total: Any = 1
    for each in _list(p):
        total = times(total, each)
    return total


def _index(p: Any, v: Any) -> int:
    for place, each in enumerate(_list(p)):
        if equal(each, v):
            return place
    raise Unknown(f"{v} is not in {p}")


def _put(p: Any, i: Any, v: Any) -> tuple[Any, ...]:
    values = list(_list(p))
    values[_axis(i, len(values))] = v
    return tuple(values)


def _drop(p: Any, axes: Any) -> tuple[Any, ...]:
    gone = _axes(axes, len(_list(p)))
    return tuple(each for place, each in enumerate(p) if place not in gone)


def _insert(p: Any, axes: Any, v: Any) -> tuple[Any, ...]:
    values = list(_list(p))
    places = set(_axes(axes, len(values) + len(_list(axes))))
    result = []
    for place in range(len(values) + len(places)):
        result.append(v if place in places else values.pop(0))
    return tuple(result)


def _ones_at(shape: Any, axes: Any) -> tuple[Any, ...]:
    ones = _axes(axes, len(_list(shape)))
    return tuple(1 if place in ones else each for place, each in enumerate(shape))


def _permutation(p: Any) -> tuple[int, ...]:
    values = _list(p)
    if sorted(_int(each) for each in values) != list(range(len(values))):
        raise Unknown(f"{p} is no permutation")
    return values


def _compose(p: Any, q: Any) -> tuple[int, ...]:
    first, second = _permutation(p), _permutation(q)
    if len(first) != len(second):
        raise Unknown("permutations of different length")
    return tuple(first[axis] for axis in second)


def _inverse(p: Any) -> tuple[int, ...]:
    values = _permutation(p)
    return tuple(values.index(axis) for axis in range(len(values)))


def _permute(values: Any, p: Any) -> tuple[Any, ...]:
    return tuple(item(values, i) for i in _list(p))


def _sort(p: Any) -> tuple[int, ...]:
    return tuple(sorted(_int(each) for each in _list(p)))


def _without(n: Any, axes: Any) -> tuple[int, ...]:
    gone = _axes(axes, _int(n))
    return tuple(axis for axis in range(n) if axis not in gone)


def _join(first: Any, second: Any) -> tuple[int, ...]:
    """What is left when `first` are gone has axes `second`; the answer is in axes of the whole."""
    gone = {_int(each) for each in _list(first)}
    most = max([*gone, -1]) + max([_int(each) for each in _list(second)] + [-1]) + 2 + len(gone)
    left = [axis for axis in range(most) if axis not in gone]
    return tuple(sorted(gone | {left[_axis(each, len(left))] for each in second}))


def _broadcast(*shapes: Any) -> tuple[Any, ...]:
    rank = max((len(_list(shape)) for shape in shapes), default=0)
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


def _placement(shape: Any, wide: Any) -> tuple[int, ...]:
    """Each dim of `shape`, in order, beside dims of 1 that were put in: dims of 1 of `shape` may stand at any of them, so the first."""
    found: list[int] = []
    place = 0
    for position, dim in enumerate(_list(shape)):
        while place < len(_list(wide)) and not _surely(wide[place], dim):
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


def _cut(shape: Any, n: Any) -> int:
    total: Any = 1
    for place in range(len(_list(shape)) + 1):
        if _surely(total, n):
            return place
        if place < len(shape):
            total = times(total, shape[place])
    raise Unknown(f"no leading dims of {shape} have the product {n}")


def _runs(shape: Any, merged: Any) -> tuple[tuple[int, ...], ...]:
    """For each dim of `merged` the axes of `shape`, in order, whose product it is: as few as do, but for dims of 1 at the end."""
    result: list[tuple[int, ...]] = []
    place = 0
    for position, dim in enumerate(_list(merged)):
        first, total = place, 1
        while place < len(_list(shape)) and not (_surely(total, dim) and (place > first or not _surely(shape[place], 1))):
            total = times(total, shape[place])
            place += 1
        if not _surely(total, dim):
            raise Unknown("no runs")
        while position == len(merged) - 1 and place < len(shape) and _surely(shape[place], 1):
            place += 1
        result.append(tuple(range(first, place)))
    if place != len(shape):
        raise Unknown("no runs")
    return tuple(result)


def _relocated(axes: Any, shape: Any, other: Any) -> tuple[int, ...]:
    """Where axes of `shape` are in `other`: what is not 1 keeps its order, and must be the same."""
    kept = [axis for axis, dim in enumerate(_list(shape)) if not _surely(dim, 1)]
    there = [axis for axis, dim in enumerate(_list(other)) if not _surely(dim, 1)]
    if len(kept) != len(there) or not all(_surely(shape[a], other[b]) for a, b in zip(kept, there, strict=True)):
        raise Unknown("the shapes differ by more than dims of 1")
    found = []
    for axis in _axes(axes, len(shape)):
        if axis not in kept:
            raise Unknown("an axis of one element has no place of its own")
        found.append(there[kept.index(axis)])
    return tuple(found)


def _regrouped(shape: Any, other: Any, axes: Any) -> tuple[int, ...]:
    """The axes of `shape` with the elements of the axes of `other`: both are cut where the products of what stands before agree."""
    wanted = set(_axes(axes, len(_list(other))))
    result: list[int] = []
    for mine, theirs in _groups(_list(shape), other):
        found = [axis for axis in theirs if axis in wanted and not _surely(other[axis], 1)]
        if found and len(found) != len([axis for axis in theirs if not _surely(other[axis], 1)]):
            raise Unknown("an axis is a part of another one")
        if found:
            result += [axis for axis in mine if not _surely(shape[axis], 1)]
    return tuple(result)


def _groups(shape: tuple[Any, ...], other: tuple[Any, ...]) -> list[tuple[list[int], list[int]]]:
    """The finest pairs of runs of axes with equal products."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(shape) or j < len(other):
        mine: list[int] = []
        theirs: list[int] = []
        a: Any = 1
        b: Any = 1
        while not (mine and theirs and _surely(a, b)):
            behind = i < len(shape) and (j >= len(other) or not theirs or not _more(a, b))
            if behind and (not mine or _more(b, a) or j >= len(other)):
                a, i = times(a, shape[i]), i + 1
                mine.append(i - 1)
            elif j < len(other):
                b, j = times(b, other[j]), j + 1
                theirs.append(j - 1)
            elif i < len(shape):
                a, i = times(a, shape[i]), i + 1
                mine.append(i - 1)
            elif _surely(a, b):
                break
            else:
                raise Unknown("the shapes have no common cut")
        groups.append((mine, theirs))
    return groups


def _more(a: Any, b: Any) -> bool:
    """True where a is surely more than b, or b divides it."""
    try:
        return less(b, a)
    except Unknown:
        return not _surely(a, b) and dims.divide_exactly(a, b) is not None


def _joined(p: Any) -> tuple[Any, ...]:
    return tuple(each for inner in _list(p) for each in _list(inner))


def _static(value: Any) -> bool:
    return all(_static(each) for each in value) if isinstance(value, tuple) else not isinstance(value, Poly)


# ---------------------------------------------------------------- types and constants


def _dtype(value: Any) -> DType:
    if not isinstance(value, DType):
        raise Unknown(f"{value} is no dtype")
    return value


def type_of(value: Any) -> TensorType:
    """The type of a term or a constant."""
    found = value.type if isinstance(value, Term | Constant) else None
    if not isinstance(found, TensorType) or found.shape is None:
        raise Unknown(f"{value} has no shape")
    return found


def _kind(dtype: Any) -> str:
    return _dtype(dtype).kind


def _extreme(dtype: DType, side: int) -> Any:
    if dtype.kind == "float":
        return math.inf * side
    if dtype.kind == "bool":
        return side > 0
    low = 0 if dtype.kind == "uint" else -(1 << dtype.bits - 1)
    if dtype.kind not in ("int", "uint"):
        raise Unknown(f"{dtype} has no order")
    return low + (1 << dtype.bits) - 1 if side > 0 else low


def _lossless(a: Any, b: Any) -> bool:
    """True where each value of `a` is one of `b`, by the numbers of bits that both have."""
    one, other = _dtype(a), _dtype(b)
    if one is other:
        return True
    if one.kind == "bool":
        return other.kind in ("int", "uint", "float", "complex") and other.name not in ("f8e8m0fnu",)
    if one.kind in ("int", "uint"):
        digits = one.bits - (one.kind == "int")
        if other.kind in ("int", "uint"):
            return digits <= other.bits - (other.kind == "int") and (one.kind == "uint" or other.kind == "int")
        form = _float_form(other)
        return form is not None and digits <= form[0] and digits < form[2]
    if one.kind == "float" and other.kind in ("float", "complex"):
        first, second = _float_form(one), _float_form(other)
        usual = ("f16", "bf16", "f32", "f64", "c64", "c128")
        if one.name not in usual or other.name not in usual:
            if other.name in ("f32", "f64") and one.name != "f8e8m0fnu":
                return True
            raise CannotSay(f"whether every value of {one} is one of {other}")
        assert first is not None and second is not None
        return first[0] <= second[0] and first[1] >= second[1] and first[2] <= second[2]
    return one.kind == "complex" and other.kind == "complex" and one.bits <= other.bits


def _float_form(dtype: DType) -> tuple[int, int, int] | None:
    """Digits of the significand, the exponents of the least and of the greatest number."""
    return {
        "f16": (11, -24, 16), "bf16": (8, -133, 128), "f32": (24, -149, 128), "f64": (53, -1074, 1024),
        "c64": (24, -149, 128), "c128": (53, -1074, 1024),
    }.get(dtype.name)  # fmt: skip


def _integers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, Constant) or value.type.dtype.kind not in ("int", "uint") or value.bytes > 8 * 4096:
        raise Unknown("no small constant of integers")
    return tuple(int(each) for each in value.array().reshape(-1))


def _floor(value: Any) -> int:
    return math.floor(_finite(value))


def _ceil(value: Any) -> int:
    return math.ceil(_finite(value))


def _finite(value: Any) -> Fraction:
    plain = _plain(value)
    if isinstance(plain, float) and not math.isfinite(plain):
        raise Unknown(f"{value} has no whole number beside it")
    return Fraction(plain)


def _least(*values: Any) -> Any:
    if len(values) != 2:
        raise Unknown("min of two numbers")
    return values[0] if not_more(values[0], values[1]) else values[1]


def _most(*values: Any) -> Any:
    if len(values) != 2:
        raise Unknown("max of two numbers")
    return values[1] if not_more(values[0], values[1]) else values[0]


def _ceildiv(a: Any, b: Any) -> Any:
    if not (whole(a) and whole(b)) or b == 0:
        raise Unknown(f"ceildiv({a}, {b})")
    return dims.ceildiv(a, b)


def _truths(p: Any, wanted: bool) -> bool:
    values = _list(p)
    if not all(isinstance(each, bool) for each in values):
        raise Unknown("no list of truths")
    return any(values) if wanted else all(values)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": _least,
    "max": _most,
    "ceildiv": _ceildiv,
    "floor": _floor,
    "ceil": _ceil,
    "rank": lambda x: type_of(x).rank,
    "dims": lambda x: tuple(type_of(x).dims),
    "dtype": lambda x: type_of(x).dtype,
    "len": lambda p: len(_list(p)),
    "range": _range,
    "repeat": _repeat,
    "sum": _total,
    "all": lambda p: _truths(p, False),
    "any": lambda p: _truths(p, True),
    "product": _product,
    "index": _index,
    "reverse": lambda p: tuple(reversed(_list(p))),
    "put": _put,
    "drop": _drop,
    "insert": _insert,
    "ones_at": _ones_at,
    "compose": _compose,
    "inverse": _inverse,
    "permute": _permute,
    "sort": _sort,
    "without": _without,
    "join": _join,
    "broadcast": _broadcast,
    "placement": _placement,
    "cut": _cut,
    "runs": _runs,
    "relocated": _relocated,
    "joined": _joined,
    "integers": _integers,
    "regrouped": _regrouped,
    "static": _static,
    "bits": lambda t: _dtype(t).bits,
    "kind": _kind,
    "lowest": lambda t: _extreme(_dtype(t), -1),
    "highest": lambda t: _extreme(_dtype(t), 1),
    "lossless": _lossless,
    "batch_axes": lambda a, b: tuple(range(type_of(a).rank - 2)) if type_of(b).rank > 2 else (),
    "swap_axes": lambda x: (*range(type_of(x).rank - 2), type_of(x).rank - 1, type_of(x).rank - 2),
}
