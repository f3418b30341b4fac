"""What a rule says of a name: how the left side uses it, and the numbers at which something may change."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from coset.ir.types import DType
from coset.rules.algebra import Call, Literal, Ref
from coset.rules.meant import asked_for
from coset.rules.parts import parts
from coset.rules.pattern import applications
from coset.rules.rule import Rule

LEAST_SIZE, LARGEST_SIZE = 3, 2048  # of numbers that are taken for dims; smaller ones are drawn anyway
LARGEST_RANK = 12  # that is tried because a rule states it


def expressions(rule: Rule) -> list[Any]:
    """Everything that a rule asks, and what it writes for attributes."""
    compiled = rule.compiled
    written = [value for side in (compiled.left, compiled.right) for attributes in side for _, value in attributes.items]
    return [*written, *compiled.conditions, *(guard for guards in compiled.guards for guard in guards)]


def spread_only(rule: Rule, name: str) -> bool:
    """True when the pack is only the shape of broadcasts: then up to two dims more than what is broadcast speak for all."""
    return all(
        (node.op.name, attribute) == ("stablehlo.broadcast_in_dim", "shape")
        for node in applications(rule.left)
        for attribute, value in rule.compiled.left[node.index].items
        if any(isinstance(part, Ref) and part.name == name for part in parts(value))
    )


def numbers(rule: Rule) -> list[int | float | Decimal]:
    """The numbers that a rule states anywhere: in its conditions and in the attributes of both sides. Something changes at each."""
    wholes = [
        *rule.compiled.conditions,
        *(value for side in (rule.compiled.left, rule.compiled.right) for own in side for _, value in own.items),
    ]
    widths = {id(beside) for whole in wholes for part in parts(whole) if _of_a_type(part) for beside in part.arguments}
    return _stated(part for whole in wholes for part in parts(whole) if id(part) not in widths)


def _stated(found: Iterable[Any]) -> list[int | float | Decimal]:
    """The numbers among parts of expressions, each once."""
    values = (part.value for part in found if isinstance(part, Literal))
    return list(dict.fromkeys(n for n in values if isinstance(n, int | float | Decimal) and not isinstance(n, bool)))


def _of_a_type(part: Any) -> bool:
    """Whether it compares what an element type has: its number is no dim."""
    return isinstance(part, Call) and any(isinstance(each, Call) and each.function == "bits" for each in part.arguments)


def bounds(rule: Rule, name: str, word: str) -> list[Any]:
    """The numbers to try for a number of the rule: those that it states, first those of conditions on `name`, and those beside them."""
    if word not in ("int", "float"):
        return []
    told = [part for part in rule.compiled.conditions if any(isinstance(each, Ref) and each.name == name for each in parts(part))]
    stated = dict.fromkeys([*_stated(part for whole in told for part in parts(whole)), *numbers(rule)])
    if word == "float":
        return [beside for n in stated for beside in (float(n), float(n) + 0.5, float(n) - 0.5, 2 * float(n))]
    return [int(n) + step for n in stated if math.isfinite(n) and n == int(n) for step in (0, 1, -1)]


def types_named(rule: Rule) -> tuple[str, ...]:
    """The element types that a rule names anywhere."""
    values = [part.value for whole in expressions(rule) for part in parts(whole) if isinstance(part, Literal)]
    return tuple(dict.fromkeys(value.name for value in values if isinstance(value, DType)))


def highest_rank(rule: Rule, usual: int) -> int:
    """The highest rank to try: above the `usual` one where the rule asks for ranks, or for lengths of lists, and states a larger number."""
    counted = any(isinstance(part, Call) and part.function in ("rank", "len") for whole in expressions(rule) for part in parts(whole))
    stated = [int(n) + 1 for n in numbers(rule) if math.isfinite(n) and usual <= n < LARGEST_RANK] if counted else []
    return max([usual, *stated])


def sizes(rule: Rule, largest: int = LARGEST_SIZE) -> list[tuple[int, ...]]:
    """Dims at which something may change, by groups of which an instance is made: a number up to the `largest` that the rule states or that
    a definition of its ops asks for, one less and one more, and its divisors."""
    asked = (n for pair in rule.pairs for side in pair for node in applications(side) for n in asked_for(node.op))
    stated = {int(n) for n in (*numbers(rule), *asked) if math.isfinite(n) and n == int(n) and LEAST_SIZE < n <= largest}
    pairs: list[tuple[int, ...]] = [(d, n // d) for n in sorted(stated) for d in range(2, math.isqrt(n) + 1) if n % d == 0]
    near: list[tuple[int, ...]] = [dims for n in sorted(stated) for dims in ((n,), (n, 1), (n + 1, 1), (n - 1, 1))]
    return near + pairs
