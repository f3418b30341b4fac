"""Numbers of the index algebra: arithmetic and comparison of dims, which may be symbolic.

A comparison that canonical forms do not settle is `Undecided`, everything without a value `Undefined`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from coset.ir import dims
from coset.ir.constants import Constant
from coset.ir.dims import Dim, Poly
from coset.ir.types import TensorType
from coset.rules.scalar import Undefined, note, number_in


class Undecided(Undefined):
    """A comparison of symbolic dims that their canonical forms do not settle."""


Oracle = Callable[[str, Poly], bool]  # whether a difference of dims is "==" or "<" 0
ORACLES: list[Oracle] = []  # of the proofs that are going on, which look at both answers


def _asked(question: str, difference: Poly) -> bool:
    if not ORACLES:
        note("a comparison")
        raise Undecided
    return ORACLES[-1](question, difference)


def is_one(dim: Any) -> bool:
    """Whether a dim is 1. A symbol is not, unless a proof looks at it as 1 too."""
    return dim == 1 or (isinstance(dim, Poly) and bool(ORACLES) and _asked("==", difference_of(dim, 1)))


def difference_of(a: Dim, b: Dim) -> Poly:
    """a - b of dims that differ by no number."""
    found = dims.subtract(a, b)
    assert isinstance(found, Poly)
    return found


def same(a: Any, b: Any) -> bool:
    """True when two values are known to be equal: dims by canonical form, floats bit for bit, constants by key. In proofs dims whose
    canonical forms differ are looked at as equal too."""
    if ORACLES and (isinstance(a, Poly) or isinstance(b, Poly)):
        return equal(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex() or (a != a and b != b)
    return bool(a == b)


def as_list(value: Any) -> tuple[Any, ...]:
    """A list, or the shape of a type or a constant.

    Raises:
        Undefined: it is neither.
    """
    if isinstance(value, TensorType):
        return value.dims
    if isinstance(value, Constant):
        return value.type.dims
    if not isinstance(value, tuple):
        raise Undefined
    return value


def number(value: Any) -> Dim:
    if isinstance(value, bool) or not isinstance(value, int | Poly):
        raise Undefined
    return value


def integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        if isinstance(value, Poly):
            note("a place or a count")
        raise Undefined
    return value


def arithmetic(of_dims: Callable[..., Any], of_floats: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of dims that is the one of f64 where a float takes part."""

    def compute(*values: Any) -> Any:
        if not any(isinstance(value, float) for value in values):
            return of_dims(*map(number, values))
        for value in values:
            number_in(value)  # what is none, or a size without a number, which it says
        try:
            return of_floats(*map(float, values))
        except (ZeroDivisionError, OverflowError):
            raise Undefined from None

    return compute


def rounded(value: Any, rounding: Callable[[float], int]) -> Dim:
    """A float as an integer; dims stay as they are."""
    if not isinstance(value, float):
        return number(value)
    if not math.isfinite(value):
        raise Undefined
    return rounding(value)


def add(a: Any, b: Any) -> Any:
    """The sum of two numbers; the concatenation of two lists."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return as_list(a) + as_list(b)
    return _plus(a, b)


def _exact(a: Dim, b: Dim) -> Dim:
    quotient = (a // b if b and a % b == 0 else None) if isinstance(a, int) and isinstance(b, int) else dims.divide_exactly(a, b)
    if quotient is None:
        if isinstance(a, Poly) or isinstance(b, Poly):
            note("a quotient")
        raise Undefined
    return quotient


_plus = arithmetic(dims.add, operator.add)
exact = arithmetic(_exact, operator.truediv)


def nonzero(compute: Callable[[Dim, Dim], Dim]) -> Callable[[Dim, Dim], Dim]:
    """`compute` where its second operand is not 0."""

    def guarded(a: Dim, b: Dim) -> Dim:
        if b == 0:
            raise Undefined
        return compute(a, b)

    return guarded


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, TensorType):
        a = a if isinstance(b, TensorType) else a.dims
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) != len(b):
            return False
        verdicts = [equal_or_none(x, y) for x, y in zip(a, b, strict=True)]
        if False in verdicts:
            return False
        if None in verdicts:
            raise Undecided
        return True
    if isinstance(a, Poly) or isinstance(b, Poly):
        if not isinstance(a, int | Poly) or not isinstance(b, int | Poly):
            return _floats(a, b)
        difference = dims.subtract(a, b)
        return difference == 0 if isinstance(difference, int) else _asked("==", difference)
    return same(a, b)


def equal_or_none(a: Any, b: Any) -> bool | None:
    try:
        return equal(a, b)
    except Undecided:
        return None


def _floats(a: Any, b: Any) -> bool:
    """Whether two numbers are compared as floats; of a float and what is none, or a symbol, nothing is known."""
    if not isinstance(a, float) and not isinstance(b, float):
        return False
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in (a, b)):
        note("a comparison")
        raise Undefined
    return True


def less(a: Any, b: Any) -> bool:
    if _floats(a, b):
        return bool(a < b)
    difference = dims.subtract(number(a), number(b))
    return difference < 0 if isinstance(difference, int) else _asked("<", difference)


def at_most(a: Any, b: Any) -> bool:
    """a <= b, which NaN never is."""
    return bool(a <= b) if _floats(a, b) else not less(b, a)


def contains(item: Any, items: Any) -> bool:
    verdicts = [equal_or_none(item, other) for other in as_list(items)]
    if True in verdicts:
        return True
    if None in verdicts:
        raise Undecided
    return False
