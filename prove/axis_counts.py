"""Expressions about how many axes there are: what changes with their number, and what ranges count from the last axis."""

from __future__ import annotations

from typing import Any

from coset.prove.frame_sorts import Unnatural
from coset.rules.algebra import Call, Literal, Ref, Scalar
from coset.rules.parts import parts

_COUNTS = frozenset(("rank", "len", "sum"))  # what changes with the number of axes by no factor
_COMPUTED = frozenset(("+", "-", "*", "/", "//", "%", "negate", "min", "max", "ceildiv", "floor", "ceil", "sqrt", "exp", "log", "if"))


def counts_axes(expression: Any) -> bool:
    """Whether an expression is a rank or a length."""
    return isinstance(expression, Call) and expression.function in ("rank", "len")


def _of_count(number: Any) -> bool:
    """Whether a number changes with the number of axes, and not by a factor for each."""
    if not isinstance(number, Call):
        return False
    return number.function in _COUNTS or (number.function in _COMPUTED and any(map(_of_count, number.arguments)))


def _of_product(number: Any) -> bool:
    """Whether a number is made of the product of a list."""
    if not isinstance(number, Call):
        return False
    return number.function == "product" or (number.function in _COMPUTED and any(map(_of_product, number.arguments)))


def refuse_sums(number: Any) -> None:
    """What two axes show of a number that elements are made of they show of all where each axis gives it a factor.

    Raises:
        Unnatural: it is another number.
    """
    sums = [part for part in parts(number) if isinstance(part, Call) and part.function in _COMPUTED - {"*", "/", "sqrt", "negate"}]
    if _of_count(number) or any(_of_product(argument) for part in sums for argument in part.arguments):
        raise Unnatural("a number computed from how many axes there are")
    for part in parts(number):
        if isinstance(part, Call) and part.function == "product" and any(map(_asks_count, parts(part.arguments[0]))):
            raise Unnatural("a number computed from how many axes there are")


def refuse_counts(whole: Any) -> None:
    """Refuse an expression in which the number of axes is divided, or multiplied by itself, or is what elements are made of.

    Raises:
        Unnatural: there is one.
    """
    for part in parts(whole):
        if isinstance(part, Scalar):
            refuse_sums(part.value)
        elif isinstance(part, Call) and part.function in ("*", "/", "//", "%"):
            first, second = map(_of_count, part.arguments)
            if (first and second) if part.function == "*" else first or (second and part.function != "%"):
                raise Unnatural("a number computed from how many axes there are")


def _asks_count(part: Any) -> bool:
    return isinstance(part, Call) and part.function in _COUNTS


def axes_from_end(expression: Any) -> int | None:
    """The number of which an expression says a rank less it."""
    if not isinstance(expression, Call) or expression.function != "-" or len(expression.arguments) != 2:
        return None
    count, less = expression.arguments
    return less.value if counts_axes(count) and isinstance(less, Literal) and isinstance(less.value, int) else None


def counted_behind(call: Call) -> tuple[Any, Any] | None:
    """What a range counts that is the last axes of one list, as many as another one has: `range(rank(x) - rank(s), rank(x))`."""
    if len(call.arguments) != 2 or not counts_axes(call.arguments[1]):
        return None
    first, last = call.arguments
    if not isinstance(first, Call) or first.function != "-" or len(first.arguments) != 2 or first.arguments[0] != last:
        return None
    part = first.arguments[1]
    return (last.arguments[0], part.arguments[0]) if isinstance(last, Call) and isinstance(part, Call) and counts_axes(part) else None


def counts_last_of(axes: Any, ends: Any) -> bool:
    """Whether an expression is the range of as many last axes as a name has: `range(rank(x) - len(A), rank(x))`."""
    if not isinstance(axes, Ref) or not isinstance(ends, Call) or ends.function != "range" or len(ends.arguments) != 2:
        return False
    first, last = ends.arguments
    return counts_axes(last) and first == Call("-", (last, Call("len", (axes,))))


def is_identity_range(expression: Any) -> bool:
    """Whether it is 0, 1, 2 .. up to a rank."""
    return isinstance(expression, Call) and expression.function == "range" and len(expression.arguments) == 1
