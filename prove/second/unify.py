"""Equations between expressions and values: what is unbound is bound, what is bound must agree, what cannot be told yet waits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from coset.ir.constants import Constant
from coset.ir.dtype_classes import CLASSES
from coset.ir.types import DTYPES, DType
from coset.prove.second import arithmetic, exact
from coset.prove.second import syntax as l
from coset.prove.second.answer import CannotSay, Unknown
from coset.prove.second.scope import Found, Unbound, value_of

ROUNDS = 40  # over waiting equations


def unify(e: l.Expression, value: Any, found: Found, dtype: DType | None) -> Iterator[Found]:
    """The substitutions under which `e` is `value`; with a `dtype`, `value` is an element of that type and `e` the number that it stores.

    An equation that cannot be told yet is put with those that wait.
    """
    try:
        known = value_of(e, found)
    except Unbound:
        yield from _opened(e, value, found, dtype)
        return
    except Unknown:
        return
    if _agrees(known, value, dtype):
        yield found


def _agrees(known: Any, value: Any, dtype: DType | None) -> bool:
    try:
        if dtype is not None:
            return _stores(known, value, dtype)
        if isinstance(known, Constant) or isinstance(value, Constant):
            return type(known) is type(value) and bool(known == value)
        if isinstance(value, bool) or isinstance(known, bool):
            return known is value
        return arithmetic.equal(known, value) and not _other_zero(known, value)
    except Unknown:
        return False


def _other_zero(a: Any, b: Any) -> bool:
    """True of two zeros of different signs, one of which is -0."""
    return (
        isinstance(a, float | Fraction | int)
        and isinstance(b, float | Fraction | int)
        and a == 0
        and exact.negative(exact.exact(a)) != exact.negative(exact.exact(b))
    )


def _stores(known: Any, value: Any, dtype: DType) -> bool:
    """Whether an element is what a number is rounded to, bit for bit."""
    if dtype.kind == "bool":  # truths are written 1 and 0, too
        return (isinstance(known, bool) or arithmetic.whole(known)) and bool(arithmetic.equal(int(known), int(value)))
    if isinstance(known, bool):
        return False
    nearest = exact.rounded(arithmetic.number(known), dtype)
    return bool(nearest != nearest and value != value) or nearest.tobytes() == value.tobytes()


def _opened(e: l.Expression, value: Any, found: Found, dtype: DType | None) -> Iterator[Found]:
    match e:
        case l.Name("_"):
            yield found
        case l.Name(name):
            yield from _named(name, value, found, dtype)
        case l.Listed(items) if dtype is None:
            if isinstance(value, tuple):
                yield from _items(items, value, found)
        case l.Unary("-", inner) if dtype is None:
            yield from unify(inner, arithmetic.minus_one_times(value), found, None)
        case l.Binary(mark, left, right) if dtype is None and mark in "+-*/":
            yield from _inverted(mark, left, right, value, found)
        case l.Call("repeat", (item, _), (), None) if (
            dtype is None and isinstance(value, tuple) and value and not isinstance(value[0], tuple)
        ):
            for after in unify(item, value[0], found, None):
                yield after.wait(e, value)
        case _:
            yield found.wait(e, value, dtype)


def _named(name: str, value: Any, found: Found, dtype: DType | None) -> Iterator[Found]:
    scope = found.scope
    if name in scope.locals and name not in scope.variables:
        if scope.is_term(scope.locals[name]):
            raise CannotSay(f"the term `{name}` as a value")
        yield from unify(scope.locals[name], value, found, dtype)
        return
    plain = value
    if dtype is not None:
        try:
            plain = exact.stored(value, dtype)
        except Unknown:
            return
    elif isinstance(value, float):
        plain = exact.exact(value)
    variable = scope.variables.get(name)
    if variable is None or fits(variable.kind.dtype, plain, found):
        yield found.bind(name, plain)


def fits(kind: str, value: Any, found: Found) -> bool:
    """Whether a value is of a declared kind."""
    match kind:
        case "int":
            return arithmetic.whole(value)
        case "float":
            return (isinstance(value, DType) and value.kind == "float" and value.name != "f8e8m0fnu") or _is_number(value)
        case "bool":
            return isinstance(value, bool) or value is DTYPES["bool"]
        case "string" | "direction":
            return isinstance(value, str)
        case "combiner":
            return isinstance(value, str) and value != "region"
        case "ints" | "axes" | "dims":
            return isinstance(value, tuple) and all(arithmetic.whole(each) for each in value)
        case "floats":
            return isinstance(value, tuple) and all(_is_number(each) for each in value)
        case "permutation":
            return isinstance(value, tuple) and sorted(value) == list(range(len(value)))
        case "dtype":
            return isinstance(value, DType)
        case "padding":
            return isinstance(value, tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in value)
        case "constant":
            return isinstance(value, Constant)
    if kind in CLASSES:
        if not isinstance(value, DType):
            return kind == "any"
        return value in CLASSES[kind] and (kind == "any" or value.name != "f8e8m0fnu")
    raise CannotSay(f"values of the kind `{kind}`")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)


def _items(items: tuple[l.Expression, ...], values: tuple[Any, ...], found: Found) -> Iterator[Found]:
    """A list with parts of any length is a list of values: one part of unknown length takes what the others leave."""
    if not items:
        if not values:
            yield found
        return
    first, rest = items[0], items[1:]
    if not isinstance(first, l.Splice | l.AnyDims):
        if values:
            for inner in unify(first, values[0], found, None):
                yield from _items(rest, values[1:], inner)
        return
    least = sum(not isinstance(item, l.Splice | l.AnyDims) for item in rest)
    lengths = range(len(values) - least + 1) if any(isinstance(item, l.Splice | l.AnyDims) for item in rest) else [len(values) - least]
    if isinstance(first, l.Splice):
        try:
            known = value_of(first.inner, found)
            lengths = [len(known)] if isinstance(known, tuple) else []
        except Unbound:
            pass
        except Unknown:
            return
    for length in lengths:
        if 0 <= length <= len(values):
            starts = iter([found]) if isinstance(first, l.AnyDims) else unify(first.inner, values[:length], found, None)
            for inner in starts:
                yield from _items(rest, values[length:], inner)


def _inverted(mark: str, left: l.Expression, right: l.Expression, value: Any, found: Found) -> Iterator[Found]:
    """One side of an operation from its value and the other side; the whole is compared again when it is known."""
    for unknown, other, first in ((left, right, True), (right, left, False)):
        try:
            known = value_of(other, found)
        except Unbound:
            continue
        except Unknown:
            return
        try:
            solved = _solved(mark, known, value, first)
        except Unknown:
            return
        if solved is None:
            break
        for inner in unify(unknown, solved, found, None):
            yield inner.wait(l.Binary(mark, left, right), value)
        return
    yield found.wait(l.Binary(mark, left, right), value)


def _solved(mark: str, known: Any, value: Any, first: bool) -> Any:
    if isinstance(value, tuple) or isinstance(known, tuple):
        if mark != "+" or not isinstance(value, tuple) or not isinstance(known, tuple):
            return None
        rest = len(value) - len(known)
        if rest < 0:
            raise Unknown("a longer list")
        return value[:rest] if first else value[len(known) :]
    if mark == "+":
        return arithmetic.minus(value, known)
    if mark == "-":
        return arithmetic.plus(value, known) if first else arithmetic.minus(known, value)
    if mark == "*":
        return arithmetic.over(value, known)
    return arithmetic.times(value, known) if first else None


def settle(found: Found) -> Iterator[Found]:
    """The substitutions in which no equation waits any more.

    Raises:
        CannotSay: one cannot be solved.
    """
    yield from _settled(found, ROUNDS)


def _settled(found: Found, left: int) -> Iterator[Found]:
    if not found.pending:
        yield found
        return
    if not left:
        raise CannotSay(f"the equation {found.pending[0][0]} = {found.pending[0][1]}")
    (e, value, dtype), *others = found.pending
    rest = Found(found.scope, found.values, tuple(others))
    for inner in unify(e, value, rest, dtype):
        yield from _settled(inner, left - 1)
