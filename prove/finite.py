"""Whole numbers of a rule that its conditions leave few values: a proof looks at each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from coset.ir.errors import CosetError
from coset.rules.algebra import Call, Literal, Ref, Scope, Unbound, evaluate
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined

MOST = 64  # values of one number

Values = dict[str, Any]


def finite(rule: Rule) -> Mapping[str, Callable[[Values], list[int]]]:
    """The names of whole numbers that can have few values, and what gives these values where element types are known.

    A name has few values where a condition says of which list it is, or what it is at least and what a sum of it and of others that
    are not negative is less than.
    """
    names = [name for name, kind in rule.compiled.kinds.items() if kind.word == "int"]
    least = {name: low for name in names if (low := _least(rule, name)) is not None}
    found: dict[str, Callable[[Values], list[int]]] = {}
    for name in names:
        for condition in rule.compiled.conditions:
            listed = _list(condition, name)
            if listed is not None:
                found[name] = partial(_given, listed)
            elif name in least and (bound := _above(condition, name, least)) is not None and _known(rule, bound[0]):
                found.setdefault(name, partial(_between, least[name], *bound))
    return found


def _least(rule: Rule, name: str) -> int | None:
    """What a condition says that the number is at least."""
    for condition in rule.compiled.conditions:
        if isinstance(condition, Call) and condition.function in (">=", ">") and condition.arguments[0] == Ref(name):
            low = condition.arguments[1]
            if isinstance(low, Literal) and isinstance(low.value, int) and not isinstance(low.value, bool):
                return low.value + (condition.function == ">")
    return None


def _list(condition: Any, name: str) -> list[int] | None:
    """The numbers of which a condition says that the name is one."""
    if not isinstance(condition, Call) or condition.function != "in" or condition.arguments[0] != Ref(name):
        return None
    try:
        values = evaluate(condition.arguments[1], Scope({}))
    except (Undefined, Unbound, CosetError):
        return None
    fine = isinstance(values, tuple) and len(values) <= MOST and all(isinstance(v, int) and not isinstance(v, bool) for v in values)
    return list(values) if fine else None


def _above(condition: Any, name: str, least: Mapping[str, int]) -> tuple[Any, list[str]] | None:
    """What a condition says that the number is less than, and together with which others that are not negative."""
    if not isinstance(condition, Call) or condition.function != "<":
        return None
    summands = _summands(condition.arguments[0])
    if name not in summands or any(least.get(each, -1) < 0 for each in summands):
        return None
    summands.remove(name)
    return condition.arguments[1], summands


def _summands(expression: Any) -> list[str]:
    """The names that a sum adds up; none where it is another expression."""
    if isinstance(expression, Ref):
        return [expression.name]
    if not isinstance(expression, Call) or expression.function != "+":
        return []
    inner = [_summands(argument) for argument in expression.arguments]
    return [name for names in inner for name in names] if all(inner) else []


def _known(rule: Rule, bound: Any) -> bool:
    """Whether a bound is a small number, or the bits of an element type."""
    if isinstance(bound, Literal):
        return isinstance(bound.value, int) and bound.value <= MOST
    (of,) = bound.arguments if isinstance(bound, Call) and bound.function == "bits" else (None,)
    return isinstance(of, Ref) and rule.compiled.kinds[of.name].word == "dtype"


def _between(low: int, above: Any, others: list[str], values: Values) -> list[int]:
    limit = evaluate(above, Scope(values))
    assert isinstance(limit, int)
    return list(range(low, limit - sum(values[name] for name in others if name in values)))


def _given(listed: list[int], _: Values) -> list[int]:
    return listed
