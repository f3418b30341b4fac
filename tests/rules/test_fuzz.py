"""No text crashes or hangs the parser, the elaboration or the type checker: every refusal is a RuleError."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from grammar_texts import NOISE, TYPED, read, text
from hypothesis import given, settings
from hypothesis import strategies as st

from coset.ir.constants import constant_of
from coset.ir.dims import symbol
from coset.ir.errors import CosetError
from coset.ir.types import DTYPES, TensorType
from coset.rules import attempts, instance
from coset.rules.format import format_text
from coset.rules.functions import FUNCTIONS
from coset.rules.scalar import Undefined
from coset.rules.syntax import RuleError
from coset.rules.typecheck import BUDGET, FURTHER

pytestmark = pytest.mark.slow

TEXTS, BLOCKS = 10_000, 10  # all of them: python tests/rules/grammar_texts.py 100000


@pytest.mark.parametrize("block", range(BLOCKS))
def test_drawn_texts_are_read_or_refused(block: int) -> None:
    share = TEXTS // BLOCKS
    mistakes = [read(text(seed), types=seed % TYPED == 0) for seed in range(block * share, (block + 1) * share)]
    assert 0 < sum(count == 0 for count in mistakes) < share  # some are well formed, some are not


@pytest.mark.parametrize("seed", range(0, 400, 4))
def test_what_can_be_read_is_formatted_once_and_for_all(seed: int) -> None:
    try:
        once = format_text(text(seed))
    except RuleError:
        return
    assert format_text(once) == once


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF), max_size=60))
@settings(max_examples=300)
def test_any_characters(given: str) -> None:
    read(given, types=False)


WORDS = [
    *NOISE,
    "rule",
    "r",
    "x",
    "F",
    "S",
    "op",
    "means",
    "use",
    "stablehlo",
    "if",
    "then",
    "else",
    "in",
    "not",
    "exact",
    "2",
    "1.5",
    "[]",
    "=",
    "?",
    "{",
    "}",
]


@given(st.lists(st.sampled_from(WORDS), max_size=40))
@settings(max_examples=500)
def test_any_words(words: list[str]) -> None:
    read(" ".join(words), types=False)


F32 = DTYPES["f32"]
VALUES = [
    1, -1, 0, 1.5, math.nan, math.inf, True, (), (1, 2), (1.5,), ((0, 1), (2,)), "LT", F32, symbol("N"), None, TensorType(F32, (2, 3)),
    TensorType(F32, (symbol("N"),)), constant_of(np.array([1, 0])), constant_of(np.array([[True]])),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_of_values_take_every_kind_or_have_no_value(name: str) -> None:
    least, most = FUNCTIONS[name].arity
    calls = [chosen for count in range(least, min(most, 3) + 1) for chosen in itertools.product(VALUES, repeat=count)]
    for call in calls:
        try:
            FUNCTIONS[name].compute(*call)
        except (Undefined, CosetError):
            continue


def test_deep_nesting_is_refused_or_read() -> None:
    deep = "-(" * 3000 + "x" + ")" * 3000
    read(f"use stablehlo\nrule r for x: F[S..] {deep} => x numerics exact", types=False)


def test_long_sums_are_read() -> None:
    long = " + ".join(["x"] * 400)
    read(f"use stablehlo\nrule r for x: F[S..] {long} => x numerics real", types=False)


def test_payload_functions_are_tried_within_the_budget_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """`..attrs` of an op with a payload function left it open how often functions were made: a rule that never fires took minutes."""
    tried = itertools.count()
    choices = attempts.choices

    def counted(*arguments: Any) -> Iterator[Any]:
        next(tried)
        return choices(*arguments)

    monkeypatch.setattr(attempts, "choices", counted)
    text = "use stablehlo as hlo\nrule r for x: F[], y: F[] floor((convert(y, f32) @ hlo.map(x, ..attrs))) => y numerics real"
    assert read(text, types=True) == 1  # a product of scalars has no type
    assert 0 < next(tried) <= (2 + FURTHER) * BUDGET / instance.EXPANSION  # a symbolic draw, and those of numbers
