"""Constants whose rows hold their numbers twice are entered as concatenations, where a rule asks for such."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset
from coset.egraph.doubled import asks_for_doubles, double_constants, doubled_axis
from coset.ir.constants import constant_of
from coset.ir.dims import add, symbol
from coset.ir.evaluate import evaluate
from coset.ir.term import constant, make
from coset.rules.library import DEFAULT, load

assert coset.dialects
RULES = [rule for phase in load(DEFAULT).phases for rule in phase.rules if asks_for_doubles(rule)]
TWICE = np.array([[1, 2, 1, 2], [3, -0.0, 3, -0.0]], np.float32)
BESIDE = np.array([[1, 1, 2, 2], [3, 3, -0.0, -0.0]], np.float32)


def test_which_rules_ask() -> None:
    """Not those that have what stands twice on both sides."""
    assert [rule.name for rule in RULES] == ["rotation_by_tables", "rotation_of_neighbours_by_tables"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (TWICE, 0), (TWICE[None, None], 0), (TWICE[0], 0), (TWICE.astype(np.float16), 0), (np.array([[np.nan, 1] * 2], np.float32), 0),
        (BESIDE, 1), (BESIDE[None, None], 1), (BESIDE[0], 1), (BESIDE.astype(np.float64), 1), (np.array([[1, 1], [2, 2]], np.float32), 0),
        (TWICE.astype(np.int32), None), (TWICE[:, :3], None), (np.ones((2, 4), np.float32), None), (np.float32(2), None),
        (np.zeros((0, 4), np.float32), None), (np.zeros((4, 0), np.float32), None), (TWICE.T, None), (TWICE[:, :2], None),
        (np.array([[1, 2, 1, 2], [3, 0.0, 3, -0.0]], np.float32), None), (np.array([[1, 1, 2, 2], [3, 3, 0.0, -0.0]], np.float32), None),
        (np.array([[1, 2, 1, 2], [1, 1, 2, 2]], np.float32), None), (BESIDE[:, 1:], None),
    ],
)  # fmt: skip
def test_what_is_doubled(value: Any, expected: int | None) -> None:
    """Bit by bit, so that zeros of two signs differ; a number that fills a tensor is none. A row of two has one half beside the other."""
    assert doubled_axis(constant_of(value)) == expected


@pytest.mark.parametrize("beside", [False, True])
def test_what_is_entered_has_the_value(beside: bool) -> None:
    once = np.arange(24, dtype=np.float32).reshape(1, 1, 6, 4)
    table = constant(np.repeat(once, 2, -1) if beside else np.tile(once, 2))
    rows = make("stablehlo.slice", (table,), {"start": (0, 0, 1, 0), "limit": (1, 1, 4, 8), "strides": (1, 1, 1, 1)})
    flat = make("stablehlo.reshape", (rows,), {"shape": (3, 8)})
    part = make("stablehlo.slice", (flat,), {"start": (0, 0), "limit": (3, 5 if beside else 6), "strides": (1, 1)})
    entered = double_constants([part], RULES)
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
