"""A seeded part of the mutants of the library's rules: none that more tests refute is proved. All: `python -m benchmarks.rule_mutants`."""

from __future__ import annotations

import pytest

from benchmarks.rule_changes import KINDS, changes, shown
from benchmarks.rule_mutants import judged, library
from coset.prove.verify import prove
from coset.rules.elaborate import rules_of
from coset.rules.parser import parse

pytestmark = pytest.mark.slow

ENTRIES = library()[::12]
OVERFLOWS = {("factor_out_of_product", "condition dropped")}  # true of the reals; told apart where x y overflows (docs/limits.md)
TEXT = """use stablehlo
rule r for x, y: I[S..], a, b: int
  x - splat(a) * y => select(compare(x, y, "LT"), x, y)
  where a >= 0 and b > 0
  numerics exact
"""


@pytest.mark.parametrize("number", range(len(ENTRIES)), ids=lambda number: ENTRIES[number][0].name)
def test_no_mutant_survives_as_proved(number: int) -> None:
    entry, dialects = ENTRIES[number]
    drawn = changes(entry)[number % 2 :: 2][:3]
    outcomes = [judged(entry, change, dialects) for change in drawn]
    survived = [each for each in outcomes if each.outcome == "survived" and (each.rule, each.kind) not in OVERFLOWS]
    assert not [each for each in survived if each.assurance in ("proved", "bounded")]


def test_changes_are_of_every_kind_and_each_is_another_rule() -> None:
    entry = parse(TEXT, "given.rules")[0].rules[0]
    found = changes(entry)
    assert {change.kind for change in found} == set(KINDS)
    sides = [(c.entry.declarations, c.entry.left, c.entry.right, c.entry.condition) for c in found]
    assert all(side not in sides[:i] for i, side in enumerate(sides))
    told = {(change.where, change.text) for change in found}
    assert ("condition", "without (b > 0)") in told
    assert ("condition", f"without {shown(entry.condition)}") in told
    assert ("right side", '"LE" for "LT"') in told
    assert ("type", "I: number for int") in told


def test_what_holds_for_floats_is_not_said_to_be_proved_of_integers() -> None:
    """`x / 1000 * 1000` of an integer is not x: the marks of numbers were no integers, and nothing was looked at there."""
    mixed = next(entry for entry, _ in library() if entry.name == "divide_then_multiply")
    change = next(change for change in changes(mixed) if change.text == "F: number for float")
    rules, errors = rules_of(change.entry, {"hlo": "stablehlo", "chlo": "chlo", "onnx": "onnx"})
    assert not errors and "proved" not in [prove(rule).assurance for rule in rules]
