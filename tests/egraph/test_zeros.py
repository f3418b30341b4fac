"""Constants with zeros at the ends of their matrices are entered as paddings, where a rule asks for such."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset
from coset.egraph.zeros import asks_for_zeros, filled, pad_constants
from coset.ir.constants import constant_of
from coset.ir.evaluate import evaluate
from coset.ir.term import constant
from coset.rules.library import DEFAULT, load

assert coset.dialects
RULES = [rule for phase in load(DEFAULT).phases for rule in phase.rules if asks_for_zeros(rule)]


def matrix(*shape: int, rows: tuple[int, int] | None = None, columns: tuple[int, int] | None = None, zero: float = 0.0) -> Any:
    """Numbers that are `zero` outside of these rows and columns."""
    value = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    for axis, ends in ((-2, rows), (-1, columns)):
        if ends is not None:
            other = [place for place in range(shape[axis]) if not ends[0] <= place < ends[1]]
            np.moveaxis(value, axis, 0)[other] = zero
    return value


def test_which_rules_ask() -> None:
    """All are `real`: an infinity times a zero is NaN. None is asked for by default."""
    assert RULES and all("zero" in rule.name for rule in RULES)
    assert {rule.numerics.word for rule in RULES} == {"real"}


LONELY = matrix(2, 5, 6, rows=(2, 4))
LONELY[1, 0, 3] = 1  # one number in one matrix of the batch


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (matrix(5, 6), None), (matrix(5, 6, rows=(1, 3)), ((1, 3), (0, 6))), (matrix(5, 6, columns=(0, 4)), ((0, 5), (0, 4))),
        (matrix(5, 6, rows=(2, 5), columns=(1, 2)), ((2, 5), (1, 2))), (matrix(2, 5, 6, rows=(2, 4)), ((2, 4), (0, 6))),
        (LONELY, ((0, 4), (0, 6))), (matrix(5, 6, rows=(1, 3), zero=-0.0), None), (np.zeros((5, 6), np.float32), None),
        (np.eye(4, dtype=np.float32), None), (matrix(5, 6, rows=(1, 3)).astype(np.int32), None), (matrix(1, 6, columns=(1, 3))[0], None),
        (matrix(5, 6, columns=(2, 6)).astype(np.float64), ((0, 5), (2, 6))), (np.zeros((0, 4), np.float32), None),
    ],
)  # fmt: skip
def test_what_is_filled(value: Any, expected: Any) -> None:
    """In every matrix of a batch; a negative zero is none, since the padding would have another sign."""
    assert filled(constant_of(value)) == expected


@pytest.mark.parametrize("shape", [(5, 6), (2, 5, 6), (2, 1, 5, 6)])
@pytest.mark.parametrize(("rows", "columns"), [((1, 3), None), (None, (2, 6)), ((2, 5), (1, 2))])
def test_what_is_entered_has_the_value(shape: tuple[int, ...], rows: Any, columns: Any) -> None:
    table = constant(matrix(*shape, rows=rows, columns=columns))
    entered = pad_constants([table], RULES)
    assert entered is not None
    ((old, new),) = entered.pairs
    assert old is table and new.type == old.type
    np.testing.assert_array_equal(*evaluate([old, new], {}))


def test_nothing_is_entered_where_no_rule_asks() -> None:
    table = constant(matrix(5, 6, rows=(1, 3)))
    assert pad_constants([table], []) is None
    assert pad_constants([constant(matrix(5, 6))], RULES) is None
