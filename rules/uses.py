"""What a rule says of a name: how the left side uses it, and the numbers that conditions compare it with."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from coset.rules.algebra import Literal, Ref, parts
from coset.rules.pattern import applications
from coset.rules.rule import Rule


def spread_only(rule: Rule, name: str) -> bool:
    """True when the pack is only the shape of broadcasts: then up to two dims more than what is broadcast speak for all."""
    return all(
        (node.op.name, attribute) == ("stablehlo.broadcast_in_dim", "shape")
        for node in applications(rule.left)
        for attribute, value in rule.compiled.left[node.index].items
        if any(isinstance(part, Ref) and part.name == name for part in parts(value))
    )


def bounds(rule: Rule, name: str, word: str) -> list[Any]:
    """The numbers that conditions on a number speak of, and those beside them: where a condition is decided."""
    if word not in ("int", "float"):
        return []
    told = [part for part in rule.compiled.conditions if any(isinstance(each, Ref) and each.name == name for each in parts(part))]
    found = [each.value for whole in told for each in parts(whole) if isinstance(each, Literal)]
    numbers = [value for value in found if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)]
    if word == "float":
        return [float(n) + step for n in numbers for step in (0.0, 0.5, -0.5)]
    return [int(n) + step for n in numbers if math.isfinite(n) and n == int(n) for step in (0, 1, -1)]
