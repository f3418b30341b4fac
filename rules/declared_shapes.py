"""Dims of a shape that a rule declares: items and parts of it, as expressions of the language."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from coset.rules import syntax


def is_named(dim: Any) -> bool:
    value = dim.value if isinstance(dim, syntax.Spread) else dim
    return isinstance(value, syntax.Number) or (isinstance(value, syntax.Name) and value.value != "_")


def item(shape: syntax.Expression, place: int) -> syntax.Expression:
    """Dim `place` of a shape, from the end if negative."""
    if isinstance(shape, syntax.Brackets):
        before = shape.items[:place] if place >= 0 else shape.items[place:]
        if len(shape.items) > (place if place >= 0 else -place - 1) and not any(isinstance(each, syntax.Spread) for each in before):
            found = shape.items[place]
            if not isinstance(found, syntax.Spread):
                return found
    return syntax.Operation("item", (shape, _number(place, shape)), shape.place)


def without(shape: syntax.Expression, before: int, after: int) -> syntax.Expression:
    """A shape without so many dims before and after."""
    if not before and not after:
        return shape
    if isinstance(shape, syntax.Brackets):
        end = len(shape.items) - after
        outside = (*shape.items[:before], *shape.items[end:])
        if end >= before and not any(isinstance(each, syntax.Spread) for each in outside):
            return replace(shape, items=shape.items[before:end])
    bounds = _number(before, shape), _number(-after, shape) if after else None
    return syntax.Operation("slice", (shape, *bounds), shape.place)


def _number(value: int, beside: syntax.Expression) -> syntax.Expression:
    number = syntax.Number(Decimal(abs(value)), beside.place)
    return number if value >= 0 else syntax.Operation("negate", (number,), beside.place)
