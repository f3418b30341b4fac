"""Rules that are not exact do not look into a fraction: a number less its own rounding is exact as it stands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.stablehlo import splat
from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import saturate
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import F32, tensor
from coset.rules.elaborate import rules_of
from coset.rules.parser import parse

assert coset.dialects

RULES = """
rule spread_difference
  "A factor goes into a difference."
  for x, y, s: F[S..], F: float
  (x - y) * s => x * s - y * s
  numerics {numerics}

rule spread_sum
  "A factor goes into a sum."
  for x, y, s: F[S..], F: float
  (x + y) * s => x * s + y * s
  numerics {numerics}
"""
X, Y, S = (input_term(name, tensor(F32, 8)) for name in "xys")
THREE = constant(np.full(8, 3.0, np.float32))


def op(name: str, *operands: Term) -> Term:
    return make(f"stablehlo.{name}", operands)


FRACTIONS: dict[str, Callable[[], Term]] = {
    "x - floor(x)": lambda: op("subtract", X, op("floor", X)),
    "ceil(x) - x": lambda: op("subtract", op("ceil", X), X),
    "x - round(x)": lambda: op("subtract", X, op("round_nearest_even", X)),
    "x + -floor(x)": lambda: op("add", X, op("negate", op("floor", X))),
    "-x + floor(x)": lambda: op("add", op("negate", X), op("floor", X)),
    "(floor(x) + 1) - x": lambda: op("subtract", op("add", op("floor", X), splat(1.0, F32, (8,))), X),
    "x - 3 floor(x / 3)": lambda: op("subtract", X, op("multiply", THREE, op("floor", op("divide", X, THREE)))),
    "x - floor(x / y) y": lambda: op("subtract", X, op("multiply", op("floor", op("divide", X, Y)), Y)),
}
OTHERS: dict[str, Callable[[], Term]] = {
    "x - y": lambda: op("subtract", X, Y),
    "x - floor(y)": lambda: op("subtract", X, op("floor", Y)),
    "floor(x) + x": lambda: op("add", op("floor", X), X),
    "a fraction, and more": lambda: op("add", op("subtract", X, op("floor", X)), Y),
    "x - 3 floor(y / 3)": lambda: op("subtract", X, op("multiply", THREE, op("floor", op("divide", Y, THREE)))),
}


def fired(term: Term, numerics: str = "reassociates") -> set[str]:
    """The rules that fire on a number times `s`."""
    file, errors = parse(RULES.format(numerics=numerics), "test.rules")
    made = [rules_of(entry, {"stablehlo": "stablehlo"}) for entry in file.rules]
    assert not errors and not any(problems for _, problems in made)
    rules = tuple(rule for found, _ in made for rule in found)
    found = saturate([op("multiply", term, S)], [Phase("all", rules)], Limits())
    return {found.rules[number].name for number in found.fired}


@pytest.mark.parametrize("name", FRACTIONS)
def test_nothing_is_distributed_over_a_fraction(name: str) -> None:
    assert not fired(FRACTIONS[name]())


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_fraction_is_distributed_over(name: str) -> None:
    assert fired(OTHERS[name]())


def test_an_exact_rule_may_look_into_a_fraction() -> None:
    assert fired(FRACTIONS["x - floor(x)"](), "exact")
