"""The comparison of outputs: what counts as equal, what as different, and how the culprit is found."""

from __future__ import annotations

import numpy as np
import pytest

from coset.check import breaking_rule, difference


def compare(expected: object, got: object, *, exact: bool = False, noise: float = 0.0, case: str = "normal") -> bool:
    return difference(case, "y", np.asarray(expected), np.asarray(got), np.asarray(noise), exact=exact).ok


def test_rounding_is_within_and_a_wrong_value_is_not() -> None:
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    assert compare(x, np.nextafter(x, np.float32(9)))
    assert not compare(x, x + np.float32(1e-3))
    assert compare(x, x + np.float32(1e-3), noise=1e-4)


def test_exact_means_every_bit() -> None:
    x = np.array([0.0, np.nan, 1.0], np.float32)
    assert compare(x, x.copy(), exact=True)
    assert not compare(x, np.array([-0.0, np.nan, 1.0], np.float32), exact=True)
    assert not compare(x, np.nextafter(x, np.float32(9)), exact=True)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (np.float32([1, 2]), np.float64([1, 2])),
        (np.float32([1, 2]), np.float32([[1, 2]])),
        (np.float32([1, 2]), np.float32([1, np.nan])),
        (np.float32([1, 2]), np.float32([1, np.inf])),
        (np.int64([1, 2]), np.int64([1, 3])),
        (np.bool_([True]), np.bool_([False])),
    ],
)
def test_dtype_shape_new_nan_and_integers_are_never_tolerated(expected: object, got: object) -> None:
    assert not compare(expected, got)


def test_a_lost_nan_is_a_difference() -> None:
    assert not compare(np.float32([np.nan, 1]), np.float32([0, 1]), case="nan")


@pytest.mark.parametrize("culprit", range(7))
def test_the_breaking_rule_is_found_by_halving(culprit: int) -> None:
    names = [f"r{i}" for i in range(7)]
    assert breaking_rule(names, lambda kept: f"r{culprit}" not in kept) == f"r{culprit}"


def test_no_rule_is_blamed_for_what_breaks_without_rules() -> None:
    assert breaking_rule(["a"], lambda kept: False) is None
