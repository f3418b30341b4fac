"""Rules at the ends of the ranges of floats: the judge of `benchmarks.promise_at_ends` sees what is broken, and a sample of the library
keeps its promises; all of it is judged by the script."""

from __future__ import annotations

import random
import re

import pytest

import coset.dialects
from benchmarks import promise_at_ends
from coset.rules.elaborate import rules_of
from coset.rules.parser import parse
from coset.rules.rule import Rule

assert coset.dialects
SAMPLE = 30


def rules(text: str) -> list[Rule]:
    file, errors = parse(f"use stablehlo as hlo\nrule tried\n  {text}\n", "tried.rules")
    found, more = rules_of(file.rules[0], {name: dialect for name, dialect, _ in file.dialects})
    assert not errors and not more
    return found


def test_what_keeps_its_promise_is_drawn_at_every_type() -> None:
    found = promise_at_ends.judge("tried", rules("for x: F[S..]\n  x * splat(2) => x + x\n  numerics reassociates"), 2.0)
    assert not found.broken
    assert set(found.draws) == set(promise_at_ends.TYPES) and min(found.draws.values()) > 20


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "for x, y: F[S..]\n  x * (y * splat(0.001953125)) => (x * y) * splat(0.001953125)\n  numerics reassociates",
            "at f16: .*outweighs",
        ),
        ("for x: F[S..]\n  x * splat(1.5) => (x * splat(16384)) * splat(0.000091552734375)\n  numerics reassociates", "at f16"),
        ("for x, y: F[S..]\n  x + y => x - y\n  numerics reassociates", "values"),
        ("for x: F[S..]\n  x + splat(0) => x\n  numerics exact", "bits"),
    ],
)
def test_what_breaks_its_promise_is_seen(text: str, why: str) -> None:
    found = promise_at_ends.judge("tried", rules(text), 4.0)
    assert found.broken
    assert any(re.search(why, line) for line in found.broken), found.broken


@pytest.mark.slow
def test_a_sample_of_the_library_keeps_its_promises() -> None:
    every = promise_at_ends.entries()
    names = random.Random(4).sample(sorted(every), SAMPLE)
    assert not [line for name in names for line in promise_at_ends.judge(name, every[name], 0.7).broken]
