"""Arithmetic and comparison of values of the index algebra: dims, exact numbers, lists. Lists are tuples."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from coset.ir import dims
from coset.ir.dims import Poly
from coset.ir.term import Term
from coset.ir.types import DType
from coset.prove.second import exact
from coset.prove.second.answer import Undecided, Unknown


def whole(value: Any) -> bool:
    """True of integers and of dims."""
    return (isinstance(value, int) and not isinstance(value, bool)) or isinstance(value, Poly)


def as_list(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        raise Unknown(f"{value} is no list")
    return value


def as_int(value: Any) -> int:
    if isinstance(value, Poly):
        raise Undecided(f"{value} is no known integer")
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unknown(f"{value} is no integer")
    return value


def as_axis(value: Any, rank: int) -> int:
    axis = as_int(value)
    if not -rank <= axis < rank:
        raise Unknown(f"there is no axis {axis} of {rank}")
    return axis % rank


def as_axes(value: Any, rank: int) -> tuple[int, ...]:
    return tuple(as_axis(each, rank) for each in as_list(value))


def number(value: Any) -> Any:
    """A value as an exact number."""
    if isinstance(value, Poly):
        return value
    return exact.exact(value)


def plus(a: Any, b: Any) -> Any:
    """a + b: of lists what is in one or the other."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return as_list(a) + as_list(b)
    return dims.add(a, b) if whole(a) and whole(b) else exact.added(as_number(a), as_number(b))


def minus(a: Any, b: Any) -> Any:
    """a - b."""
    return dims.subtract(a, b) if whole(a) and whole(b) else exact.added(as_number(a), exact.negated(as_number(b)))


def times(a: Any, b: Any) -> Any:
    """a * b."""
    return dims.multiply(a, b) if whole(a) and whole(b) else exact.multiplied(as_number(a), as_number(b))


def over(a: Any, b: Any) -> Any:
    """a / b."""
    if isinstance(a, Poly) or isinstance(b, Poly):
        found = dims.divide_exactly(a, b) if whole(a) and whole(b) else None
        if found is None:
            raise Undecided(f"whether {b} divides {a}")
        return found
    quotient = exact.divided(as_number(a), as_number(b))
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
    return dims.multiply(-1, a) if whole(a) else exact.negated(as_number(a))


def as_number(value: Any) -> exact.Exact:
    if isinstance(value, Poly):
        raise Undecided(f"{value} as a number")
    return exact.exact(value)


def equal(a: Any, b: Any) -> bool:
    """a == b; unknown of symbolic dims that differ by no number."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and _each_equal(a, b)
    if isinstance(a, Poly) or isinstance(b, Poly):
        difference = dims.subtract(a, b) if whole(a) and whole(b) else None
        if isinstance(difference, int):
            return difference == 0
        raise Undecided(f"whether {a} is {b}")
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
        raise Undecided(f"whether {a} is below {b}")
    return bool(as_number(a) < as_number(b))


def not_more(a: Any, b: Any) -> bool:
    """a <= b: of dims not b < a, of numbers what floats say, NaN included."""
    return not less(b, a) if whole(a) and whole(b) else bool(as_number(a) <= as_number(b))


def within(a: Any, p: Any) -> bool:
    """a in p."""
    unknown: Unknown | None = None
    for item in as_list(p):
        try:
            if equal(a, item):
                return True
        except Unknown as found:
            unknown = found
    if unknown is not None:
        raise unknown
    return False


def item(p: Any, i: Any) -> Any:
    """p[i]."""
    values = as_list(p)
    return values[as_axis(i, len(values))]


def part(p: Any, first: Any, last: Any) -> tuple[Any, ...]:
    """p[a:b]."""
    return as_list(p)[None if first is None else as_int(first) : None if last is None else as_int(last)]
