"""Expressions of rules with what needs no instance decided: comparisons of numbers, conditions that are true or false, lengths of lists."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from coset.rules import syntax

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def is_true(expression: Any) -> bool:
    """Whether an expression is the word for true."""
    return isinstance(expression, syntax.Name) and expression.value == "true"


def is_never(expression: Any) -> bool:
    """Whether an expression is the word for false."""
    return isinstance(expression, syntax.Name) and expression.value == "false"


def is_any(expression: Any) -> bool:
    """Whether an expression is the word for any value."""
    return isinstance(expression, syntax.Name) and expression.value == "_"


def settled(expression: Any, is_read: Callable[[Any], bool]) -> Any:
    """`expression`, whose parts are settled, or what it is for every instance. `is_read` says which names stand for what a program holds:
    its axes count from the front, and those of a reduction are sorted."""
    if isinstance(expression, syntax.Operation):
        return _operation(expression)
    if isinstance(expression, syntax.Invocation):
        return _call(expression, is_read)
    return expression


def _operation(expression: syntax.Operation) -> Any:
    operands = expression.operands
    if expression.operator == "if":
        return operands[1] if is_true(operands[0]) else operands[2] if is_never(operands[0]) else expression
    if expression.operator == "not":
        return _truth(is_never(operands[0]), expression) if is_true(operands[0]) or is_never(operands[0]) else expression
    if expression.operator in ("and", "or"):
        return _joined(expression)
    values = [_value(each) for each in operands]
    if expression.operator == "%" and is_any(operands[0]):
        return operands[0]
    first, *others = values
    if expression.operator in _COMPARED and first is not None and others and type(first) is type(others[0]):
        return _truth(_COMPARED[expression.operator](first, others[0]), expression)
    if expression.operator == "in" and values[0] is not None and isinstance(operands[1], syntax.Brackets):
        items = [_value(each) for each in operands[1].items]
        return expression if None in items else _truth(values[0] in items, expression)
    return expression


def _joined(expression: syntax.Operation) -> Any:
    first, second = expression.operands
    neutral, decisive = (is_true, is_never) if expression.operator == "and" else (is_never, is_true)
    if decisive(first) or decisive(second):
        return first if decisive(first) else second
    return second if neutral(first) else first if neutral(second) else expression


def _truth(holds: bool, beside: syntax.Expression) -> syntax.Name:
    return syntax.Name("true" if holds else "false", beside.place)


def _value(expression: Any) -> Decimal | str | None:
    """A number or a text that is written down."""
    if isinstance(expression, syntax.Number | syntax.Text):
        return expression.value
    if isinstance(expression, syntax.Operation) and expression.operator == "negate":
        inner = _value(expression.operands[0])
        return -inner if isinstance(inner, Decimal) else None
    return None


def _call(call: syntax.Invocation, is_read: Callable[[Any], bool]) -> Any:
    only = call.arguments[0] if len(call.arguments) == 1 else None
    if call.name == "len" and isinstance(only, syntax.Brackets) and not any(isinstance(each, syntax.Spread) for each in only.items):
        return syntax.Number(Decimal(len(only.items)), call.place)
    if call.name == "begin_end" and is_any(only):
        return only
    if call.name == "sort" and isinstance(only, syntax.Comprehension) and len(only.lists) == 1 and is_read(only.lists[0]):
        item = only.item
        counted = item.operands[0] if isinstance(item, syntax.Operation) and item.operator == "%" else None
        return only.lists[0] if isinstance(counted, syntax.Name) and counted.value == only.names[0] else call
    return call
