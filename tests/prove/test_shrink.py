"""Counterexamples are small: few elements of the commonest element type, simple numbers, written as rules are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import coset.dialects
from coset.prove.sample import test_rule as try_rule
from coset.prove.shrink import smallest
from coset.rules.rule import Rule
from tests.rules.rule_texts import read_rules

assert coset.dialects

FALSE = [  # rule, its most elements, and what its text has
    ("for x: I[S..]\n  (x * 2) / 2 => x\n  numerics exact", 1, ["x: i32[1] = ", "left"]),
    ("for x: F[S..], c: float\n  sqrt(x * x) + splat(c) => x + splat(c)\n  numerics real", 1, ["F = f32", "c = ", "-1"]),
    ("for x: F[A, A, A]\n  hlo.transpose(hlo.transpose(x, [1, 2, 0]), [1, 2, 0]) => x\n  numerics exact", 8, ["A = 2", "1."]),
    ("for x, y: F[S..]\n  maximum(x, y) => x\n  numerics exact", 2, ["F = f32"]),
    ("for x: F[N, M]\n  sum(x, [0]) => sum(x + x, [0])\n  numerics reassociates", 1, ["F = f32"]),
]


def false(text: str, folder: Path) -> Rule:
    text = text.replace("hlo.", "")
    found, errors = read_rules(folder, f'rule wrong\n  "Wrong."\n  {text}\n')
    assert not errors, errors
    return next(rule for rule in found.rules if rule.family == "wrong")


@pytest.mark.parametrize("number", range(len(FALSE)))
def test_a_counterexample_is_made_small_and_stays_one(number: int, tmp_path: Path) -> None:
    text, most, words = FALSE[number]
    rule = false(text, tmp_path)
    found = next(outcome for seed in range(5) if (outcome := try_rule(rule, seed, 36)).counterexample is not None).counterexample
    assert found is not None
    small = smallest(rule, found)
    assert sum(array.size for array in small.inputs.values()) <= min(most, sum(array.size for array in found.inputs.values()))
    assert not np.array_equal(small.left, small.right) and small.why
    assert all(word in str(small) for word in words), str(small)
    assert "i4[]" not in str(small) and "float32" not in str(small) and "broadcast_dimensions" not in str(small)


def test_it_is_the_same_each_time_and_whatever_the_rule_is_called(tmp_path: Path) -> None:
    rule = false(FALSE[2][0], tmp_path)
    found = try_rule(rule, 0, 36).counterexample
    assert found is not None
    assert str(smallest(rule, found)) == str(smallest(rule, found))
