"""Operands that are not given: they stand for a neutral number, which leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from coset.prove.second import arithmetic
from coset.prove.second import syntax as l
from coset.prove.second.answer import Unknown
from coset.prove.second.scope import MISSING, Found, Unbound, value_of


def neutral(e: l.Expression, found: Found) -> Any:
    """The number that stands for an operand which is not given, moved about or multiplied as it may be; None where nothing does."""
    scope = found.scope
    match e:
        case l.Name(name):
            if name in scope.locals and name not in found.values:
                return neutral(scope.locals[name], found)
            variable = scope.variables.get(name)
            if variable is None or found.values.get(name) is not MISSING or variable.default is None:
                return None
            return value_of(variable.default, found)
        case l.Call(function, arguments, _, _) if arguments and function in (
            "bcast",
            "splat",
            "reshape",
            "transpose",
            "convert",
            "slice",
            "swap_last",
        ):
            return neutral(arguments[0], found)
        case l.Binary("*", left, right):
            a, b = neutral(left, found), neutral(right, found)
            if a is None or b is None:
                one = a if b is None else b
                return 0 if one == 0 else None
            return arithmetic.times(a, b)
        case l.Unary("-", inner):
            inner_value = neutral(inner, found)
            return 0 if inner_value == 0 else None
    return None


LEFT_ALONE: dict[str, Callable[[Any], bool]] = {
    "+": lambda n: bool(n == 0),
    "-": lambda n: bool(n == 0),
    "*": lambda n: bool(n == 1),
    "/": lambda n: bool(n == 1),
    "stablehlo.maximum": lambda n: bool(n == float("-inf")),
    "stablehlo.minimum": lambda n: bool(n == float("inf")),
}
"""Whether a second operand that is not given leaves the first one alone."""


def mentioned(e: Any, found: Found) -> frozenset[str]:
    """The names of an expression, locals opened, but for those that vanish with the operands that are not given."""
    match e:
        case l.Name(name):
            inner = found.scope.locals.get(name) if name not in found.scope.variables else None
            return frozenset({name}) if inner is None else mentioned(inner, found)
        case l.Binary(mark, left, right) if mark in LEFT_ALONE:
            for own, other in ((left, right), (right, left)):
                value = neutral(other, found)
                if value is not None and LEFT_ALONE[mark](value):
                    return mentioned(own, found)
        case l.Choice(condition, yes, no):
            try:
                return mentioned(yes if value_of(condition, found) is True else no, found)
            except (Unbound, Unknown):
                pass
        case tuple():
            return frozenset().union(*(mentioned(each, found) for each in e))
    parts = [getattr(e, field.name) for field in fields(e)] if is_dataclass(e) else []
    return frozenset().union(*(mentioned(each, found) for each in parts))
