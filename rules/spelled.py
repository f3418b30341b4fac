"""Expressions of the rule language spelled with Python's operators: each object is the text that it stands for, read by the one parser.

Python drops parentheses that change nothing and rule files keep them: `group(a @ b) @ c` is `(a @ b) @ c`, `(a @ b) @ c` is `a @ b @ c`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Union

from coset.rules.syntax import RuleError

CONDITIONAL, OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY, ATOM, NAME = range(10)  # how tightly the grammar binds, loosest first
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@dataclass(frozen=True)
class SplicedName:
    """`S..`: what `*S` in a Python list or call gives."""

    text: str


@dataclass(frozen=True)
class Rest:
    """`..attrs`: all other attributes of a call."""

    text: str


Spellable = Union["Spelled", int, float, Decimal, str, list[Any], tuple[Any, ...]]


class Spelled:
    """A part of a rule: its `text`, and the `level` at which the grammar reads it. A name is called as an op or a function of values, and
    qualified with `.`; all parts are of this one class, because Python lets a subclass answer a comparison from the other side.

    Python's `& | ~` are `and`, `or`, `not`; `*S` in lists and calls is `S..`. What Python keeps for itself is a function here: `choice` is
    `if .. then .. else`, `contained` is `in`, `each` is a comprehension, `function` is `lambda`.
    """

    def __init__(self, text: str, level: int = ATOM) -> None:
        self.text, self.level = text, level

    def __repr__(self) -> str:
        return self.text

    def __add__(self, other: Spellable) -> Spelled:
        return _chain(self, "+", other, SUM)

    def __radd__(self, other: Spellable) -> Spelled:
        return _chain(other, "+", self, SUM)

    def __sub__(self, other: Spellable) -> Spelled:
        return _chain(self, "-", other, SUM)

    def __rsub__(self, other: Spellable) -> Spelled:
        return _chain(other, "-", self, SUM)

    def __mul__(self, other: Spellable) -> Spelled:
        return _chain(self, "*", other, PRODUCT)

    def __rmul__(self, other: Spellable) -> Spelled:
        return _chain(other, "*", self, PRODUCT)

    def __truediv__(self, other: Spellable) -> Spelled:
        return _chain(self, "/", other, PRODUCT)

    def __rtruediv__(self, other: Spellable) -> Spelled:
        return _chain(other, "/", self, PRODUCT)

    def __floordiv__(self, other: Spellable) -> Spelled:
        return _chain(self, "//", other, PRODUCT)

    def __rfloordiv__(self, other: Spellable) -> Spelled:
        return _chain(other, "//", self, PRODUCT)

    def __mod__(self, other: Spellable) -> Spelled:
        return _chain(self, "%", other, PRODUCT)

    def __rmod__(self, other: Spellable) -> Spelled:
        return _chain(other, "%", self, PRODUCT)

    def __matmul__(self, other: Spellable) -> Spelled:
        return _chain(self, "@", other, PRODUCT)

    def __rmatmul__(self, other: Spellable) -> Spelled:
        return _chain(other, "@", self, PRODUCT)

    def __neg__(self) -> Spelled:
        return Spelled(f"-{_at(self, ATOM)}", UNARY)  # a sign of a sign is written -(-x)

    def __and__(self, other: Spellable) -> Spelled:
        return _chain(self, "and", other, AND)

    def __or__(self, other: Spellable) -> Spelled:
        return _chain(self, "or", other, OR)

    def __invert__(self) -> Spelled:
        return Spelled(f"not {_at(self, NOT)}", NOT)

    def __eq__(self, other: Spellable) -> Spelled:  # type: ignore[override]
        return _compared(self, "==", other)

    def __ne__(self, other: Spellable) -> Spelled:  # type: ignore[override]
        return _compared(self, "!=", other)

    def __lt__(self, other: Spellable) -> Spelled:
        return _compared(self, "<", other)

    def __le__(self, other: Spellable) -> Spelled:
        return _compared(self, "<=", other)

    def __gt__(self, other: Spellable) -> Spelled:
        return _compared(self, ">", other)

    def __ge__(self, other: Spellable) -> Spelled:
        return _compared(self, ">=", other)

    __hash__ = None  # type: ignore[assignment]  # what `==` answers is no truth

    def __getitem__(self, place: Spellable | slice) -> Spelled:
        if not isinstance(place, slice):
            return Spelled(f"{_at(self, ATOM)}[{spelled(place)}]")
        if place.step is not None:
            raise RuleError("a slice of the rule language has no step", help="write p[a:b]")
        start, stop = ("" if end is None else spelled(end).text for end in (place.start, place.stop))
        return Spelled(f"{_at(self, ATOM)}[{start}:{stop}]")

    def __iter__(self) -> Iterator[SplicedName]:
        yield SplicedName(f"{_at(self, ATOM)}..")

    def __getattr__(self, name: str) -> Spelled:
        if name.startswith("_") or self.level != NAME:
            raise AttributeError(name)  # what Python and its tools ask every object for
        return Spelled(f"{self.text}.{name}", NAME)

    def __call__(self, *arguments: Spellable | SplicedName | Rest, **keywords: Spellable) -> Spelled:
        if self.level != NAME:
            raise RuleError(f"`{self}` is no op", help="only names are called")
        named = [f"{key}: {spelled(value)}" for key, value in keywords.items()]
        rest = [each.text for each in arguments if isinstance(each, Rest)]
        parts = [_item(each) for each in arguments if not isinstance(each, Rest)]
        return Spelled(f"{self.text}({', '.join([*parts, *named, *rest])})")

    def __bool__(self) -> bool:
        raise RuleError(f"`{self}` is neither true nor false here", help="write a & b, a | b, ~a or choice(c, a, b)")

    def __contains__(self, _: object) -> bool:
        raise RuleError(f"`in {self}` is decided by Python", help="write contained(a, p)")


class _Ops:
    """Every name by attribute: `op.transpose`, `op.onnx.Conv`, `op.len`."""

    def __getattr__(self, name: str) -> Spelled:
        if name.startswith("_"):
            raise AttributeError(name)
        return Spelled(name, NAME)


op = _Ops()


def names(text: str) -> tuple[Spelled, ...]:
    """The names of `text`, which spaces or commas separate.

    Raises:
        RuleError: one of them is no name.
    """
    found = text.replace(",", " ").split()
    wrong = next((name for name in found if not _NAME.fullmatch(name)), None)
    if wrong is not None or not found:
        raise RuleError(f"`{text if wrong is None else wrong}` is no name", help='write a, b = names("a b")')
    return tuple(Spelled(name, NAME) for name in found)


def spelled(value: Spellable) -> Spelled:
    """What `value` is in the rule language: numbers, texts, truths, lists, and tuples for several results.

    Raises:
        RuleError: it is nothing there.
    """
    if isinstance(value, Spelled):
        return value
    if isinstance(value, bool):
        return Spelled(str(value).lower())
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if isinstance(value, str) and not set('"\n') & set(value):
        return Spelled(f'"{value}"')
    if isinstance(value, list):
        return Spelled(f"[{', '.join(map(_item, value))}]")
    if isinstance(value, tuple) and len(value) > 1:
        return Spelled(f"({', '.join(spelled(each).text for each in value)})")
    raise RuleError(f"{value!r} is nothing in the rule language", help="names, numbers, texts without quotes, lists, tuples of results")


def _number(value: int | float | Decimal) -> Spelled:
    if math.isnan(value):
        raise RuleError("nan is no number of the rule language", help="ask with is_nan(x)")
    sign, size = ("-", -value) if math.copysign(1, value) < 0 else ("", value)
    text = "inf" if math.isinf(size) else format(Decimal(str(size)), "f")
    return Spelled(f"{sign}{text}", UNARY if sign else ATOM)


def number(text: str) -> Spelled:
    """A number in a spelling of its own, such as `1e-30`.

    Raises:
        RuleError: it is no number.
    """
    if not re.fullmatch(r"\d+(\.\d+)?([eE][+-]?\d+)?", text):
        raise RuleError(f"`{text}` is no number of the rule language", help="write 2, 0.5 or 1e-30, and the sign before it")
    return Spelled(text)


def group(value: Spellable) -> Spelled:
    """`(value)`, also where the parentheses change nothing."""
    return Spelled(f"({spelled(value)})")


def rest(name: str) -> Rest:
    """`..name`: all other attributes of a call."""
    return Rest(f"..{names(name)[0]}")


def contained(item: Spellable, items: Spellable) -> Spelled:
    """`item in items`."""
    return _compared(item, "in", items)


def choice(condition: Spellable, first: Spellable, second: Spellable) -> Spelled:
    """`if condition then first else second`."""
    return Spelled(f"if {spelled(condition)} then {spelled(first)} else {spelled(second)}", CONDITIONAL)


def each(item: Spellable, *, where: Spellable | None = None, **lists: Spellable) -> Spelled:
    """`[item for a, b in p, q if where]`, of `each(item, a=p, b=q, where=..)`."""
    tail = "" if where is None else f" if {spelled(where)}"
    return Spelled(f"[{spelled(item)} for {', '.join(lists)} in {', '.join(spelled(p).text for p in lists.values())}{tail}]")


def function(parameters: str, body: Spellable) -> Spelled:
    """`lambda a, b: body`, of `function("a b", a + b)`: a payload function.

    Raises:
        RuleError: a parameter is no name.
    """
    return Spelled(f"lambda {', '.join(each.text for each in names(parameters))}: {spelled(body)}", CONDITIONAL)


def _item(value: Spellable | SplicedName) -> str:
    return value.text if isinstance(value, SplicedName) else spelled(value).text


def _at(value: Spellable, level: int) -> str:
    """The text of `value` where the grammar wants what binds at least as tightly as `level`."""
    found = spelled(value)
    return found.text if found.level >= level else group(found).text


def _chain(left: Spellable, operator: str, right: Spellable, level: int) -> Spelled:
    return Spelled(f"{_at(left, level)} {operator} {_at(right, level + 1)}", level)


def _compared(left: Spellable, operator: str, right: Spellable) -> Spelled:
    return Spelled(f"{_at(left, SUM)} {operator} {_at(right, SUM)}", COMPARISON)
