"""The rules of TASO and TENSAT as `benchmarks.taso_rules` has them: they are true, and how many of them the library covers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from benchmarks import taso_rules
from benchmarks.taso_rules import AXIOMS, FURTHER, MULTI, RULES, SINGLE, Entered, Verdict, judge
from coset.comparing.feeds import cases
from coset.comparing.reference import values_of
from coset.comparing.sizes import bindings

COVERED = {"axioms": 23, "single": 25, "multi": 7}
"""With the library alone: fewer is a rule lost."""


def test_both_sides_of_every_rule_have_one_value() -> None:
    entered = Entered()
    for number, rule in enumerate(RULES):
        entered.add(rule, number)
    program = entered.program()
    feed = next(iter(cases(program, next(bindings(program, {}))))).feed
    outputs = iter(values_of(program, feed).values())
    for rule in RULES:
        left, right = ([next(outputs) for _ in range(rule.outputs)] for _ in range(2))
        for one, other in zip(left, right, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * max(1.0, float(np.abs(one).max())), err_msg=str(rule))


@cache
def verdicts() -> dict[str, Verdict]:
    return {str(verdict.rule): verdict for verdict in judge(RULES, "nvidia-a100")}


@pytest.mark.parametrize(("name", "rules"), [("axioms", AXIOMS), ("single", SINGLE), ("multi", MULTI)])
def test_the_library_covers_what_it_did(name: str, rules: tuple[taso_rules.TasoRule, ...]) -> None:
    assert sum(verdicts()[str(rule)].covered for rule in rules) >= COVERED[name]


def test_what_is_found_from_one_side_is_met_by_both() -> None:
    assert all(found.met for found in verdicts().values() if found.left or found.right)


@pytest.mark.slow
def test_with_the_rules_beside_it_products_and_convolutions_merge() -> None:
    pairs = [rule for rule in MULTI if "relu" not in str(rule)]
    found = judge(pairs, "nvidia-a100", [FURTHER])
    assert [str(verdict.rule) for verdict in found if not verdict.met] == []
    assert sum(verdict.right for verdict in found) >= len(pairs) - 1
