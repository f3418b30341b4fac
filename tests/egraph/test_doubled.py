"""Constants whose rows hold their numbers twice are entered as concatenations, where a rule asks for such."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset
from coset.egraph.doubled import asks_for_doubles, double_constants, is_doubled
from coset.ir.constants import constant_of
from coset.ir.dims import add, symbol
from coset.ir.evaluate import evaluate
from coset.ir.term import constant, make
from coset.rules.library import load
from coset.task import DEFAULT

assert coset.dialects
RULES = [rule for phase in load(DEFAULT).phases for rule in phase.rules if asks_for_doubles(rule)]
TWICE = np.array([[1, 2, 1, 2], [3, -0.0, 3, -0.0]], np.float32)


def test_one_rule_asks() -> None:
    """Not those that have what stands twice on both sides."""
    assert [rule.name for rule in RULES] == ["rotation_by_tables"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (TWICE, True), (TWICE[None, None], True), (TWICE[0], True), (TWICE.astype(np.float16), True),
        (np.array([[np.nan, 1] * 2], np.float32), True),
        (TWICE.astype(np.int32), False), (TWICE[:, :3], False), (np.ones((2, 4), np.float32), False), (np.float32(2), False),
        (np.zeros((0, 4), np.float32), False), (np.zeros((4, 0), np.float32), False), (TWICE.T, False), (TWICE[:, :2], False),
        (np.array([[1, 2, 1, 2], [3, 0.0, 3, -0.0]], np.float32), False),
    ],
)  # fmt: skip
def test_what_is_doubled(value: Any, expected: bool) -> None:
    """Bit by bit, so that zeros of two signs differ; a number that fills a tensor is none."""
    assert is_doubled(constant_of(value)) is expected


def test_what_is_entered_has_the_value() -> None:
    table = constant(np.tile(np.arange(24, dtype=np.float32).reshape(1, 1, 6, 4), 2))
    rows = make("stablehlo.slice", (table,), {"start": (0, 0, 1, 0), "limit": (1, 1, 4, 8), "strides": (1, 1, 1, 1)})
    flat = make("stablehlo.reshape", (rows,), {"shape": (3, 8)})
    half = make("stablehlo.slice", (flat,), {"start": (0, 0), "limit": (3, 6), "strides": (1, 1)})
    entered = double_constants([half], RULES)
    assert entered is not None and [old for old, _ in entered.pairs] == [table, rows, flat]
    for old, new in entered.pairs:
        assert old.type == new.type
        np.testing.assert_array_equal(*evaluate([old, new], {}))


def test_what_is_cut_at_a_free_dim_is_left_alone() -> None:
    """As the rows of a cache for as many places as there are, and for some from a place on."""
    table, (n, m) = constant(np.tile(np.arange(24, dtype=np.float32).reshape(6, 4), 2)), (symbol("n"), symbol("m"))
    ends = [((0, 0), (n, 8)), ((m, 0), (add(m, 2), 8))]
    cuts = [make("stablehlo.slice", (table,), {"start": start, "limit": limit, "strides": (1, 1)}) for start, limit in ends]
    entered = double_constants(cuts, RULES)
    assert entered is not None and [old for old, _ in entered.pairs] == [table]


def test_nothing_is_entered_where_no_rule_asks() -> None:
    assert double_constants([constant(TWICE)], []) is None
    assert double_constants([constant(TWICE.T)], RULES) is None
