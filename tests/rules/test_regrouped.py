"""`regrouped`: reducing a reshape over some axes is reducing the operand over those that it names, for every reshape of drawn shapes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from coset.ir.dims import Dim, multiply, symbol
from coset.rules.lists import regrouped
from coset.rules.scalar import Undefined

SHAPES: list[tuple[int, ...]] = [(12,), (4, 3), (3, 4), (2, 2, 3), (2, 6), (6, 2), (1, 12), (4, 1, 3), (2, 2, 3, 1), (1, 1, 12, 1)]
N: Dim = symbol("N")


@pytest.mark.parametrize("own", SHAPES, ids=str)
def test_a_reduction_of_a_reshape_is_one_of_the_operand(own: tuple[int, ...]) -> None:
    x = np.arange(12.0).reshape(own)
    defined = 0
    for shape in SHAPES:
        for axes in itertools.chain.from_iterable(itertools.combinations(range(len(shape)), count) for count in range(len(shape) + 1)):
            try:
                found = regrouped(own, shape, axes)
            except Undefined:
                continue
            defined += 1
            expected = x.reshape(shape).sum(axes)
            assert x.sum(found).reshape(expected.shape).tolist() == expected.tolist(), (shape, axes, found)
    assert defined >= 2 * len(SHAPES), "no axes and all axes are always whole groups"


def test_groups_of_symbolic_dims_end_where_the_products_are_equal() -> None:
    assert regrouped((N, 8, 4), (N, 32), (1,)) == (1, 2)
    assert regrouped((multiply(N, 8), 4), (N, 8, 4), (2,)) == (1,)
    with pytest.raises(Undefined):
        regrouped((multiply(N, 8), 4), (N, 8, 4), (1,))
    with pytest.raises(Undefined):
        regrouped((N, 8), (N, 9), (1,))
