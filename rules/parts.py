"""What expressions of the index algebra, and patterns, are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from coset.rules.algebra import Call, Expression, Listing, MappedList, PayloadFunction, Ref, Scalar, Splice
from coset.rules.pattern import Pattern, Variable


def parts(expression: Any) -> Iterator[Any]:
    """`expression` and everything in it, but for the names that comprehensions in it bind."""
    yield expression
    if isinstance(expression, MappedList):
        for each in expression.lists:
            yield from parts(each)
        inner = (part for each in (expression.item, expression.condition) for part in parts(each))
        yield from (part for part in inner if not (isinstance(part, Ref) and part.name in expression.names))
        return
    for part in within(expression):
        yield from parts(part)


def within(expression: Any) -> Sequence[Any]:
    """What an expression is directly made of."""
    if isinstance(expression, MappedList):
        return (*expression.lists, expression.item, expression.condition)
    if isinstance(expression, Call):
        return expression.arguments
    if isinstance(expression, Listing):
        return expression.items
    if isinstance(expression, Splice):
        return (expression.value,)
    if isinstance(expression, Scalar):
        return (expression.value, expression.dtype)
    return expression.free if isinstance(expression, PayloadFunction) else ()


def conjuncts(condition: Expression) -> list[Expression]:
    """The conditions that `and` joins."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for argument in condition.arguments for part in conjuncts(argument)]
    return [condition]


def variables(pattern: Pattern) -> tuple[str, ...]:
    """The names of the variables of `pattern`, in order of first occurrence."""
    found: dict[str, None] = {}
    stack: list[Pattern] = [pattern]
    while stack:
        top = stack.pop()
        if isinstance(top, Variable):
            found.setdefault(top.name)
        else:
            stack.extend(reversed(top.operands))
    return tuple(found)
