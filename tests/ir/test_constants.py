"""Constants of arrays that lie in memory in another order are named and kept as those in their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.comparing.fold import LARGE, fold
from coset.dialects.hub.terms import broadcast, transpose
from coset.ir import constants
from coset.ir.constants import constant_of
from coset.ir.term import constant, input_term, make
from coset.ir.types import F32, TensorType


def test_turned_arrays_have_the_elements_of_their_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn orders of axes, steps and spread axes; blocks of every size."""
    monkeypatch.setattr(constants, "LARGE", 0)
    draw = np.random.default_rng(0)
    for _ in range(300):
        monkeypatch.setattr(constants, "BLOCK", int(draw.integers(1, 9)))
        shape = tuple(int(draw.integers(0, 30)) for _ in range(draw.integers(0, 5)))
        array: Any = draw.normal(size=shape).astype(np.float32).transpose(draw.permutation(len(shape)))
        if draw.random() < 0.4:
            array = array[tuple(slice(None, None, int(draw.choice([1, 2, -1]))) for _ in shape)]
        if draw.random() < 0.2:
            array = np.broadcast_to(array, (3, *array.shape))
        found, expected = constant_of(array), constant_of(np.ascontiguousarray(array).reshape(array.shape))
        assert found.key == expected.key and np.array_equal(found.array(), array)
        assert found.array().flags.c_contiguous or not shape


def test_a_large_one_is_copied_in_blocks() -> None:
    array = np.arange(3_000_000, dtype=np.float32).reshape(1000, 3000).T
    assert array.nbytes > constants.LARGE
    assert constant_of(array).key == constant_of(array.copy()).key


def test_large_constants_are_computed_together() -> None:
    """Turned weights of more bytes than threads are begun for, one of them spread and one of them twice, in their own places."""
    draw = np.random.default_rng(1)
    arrays = [draw.normal(size=(700, 600 + count)).astype(np.float32) for count in range(4)]
    assert sum(array.nbytes for array in arrays) > LARGE
    weights = [constant(constant_of(array)) for array in arrays]
    turned = [transpose(weight, (1, 0)) for weight in weights]
    x = input_term("x", TensorType(F32, (600, 700)))
    spread = broadcast(turned[1], (2, 601, 700), (1, 2))
    roots = (make("stablehlo.add", (x, turned[0])), spread, turned[2], make("stablehlo.negate", (turned[3],)), turned[2])
    storable = {*weights, *turned, spread}
    found, count = fold(roots, storable, {})
    assert count == 5 and found[2] is found[4]
    values = [found[0].operands[1], found[1].operands[0], found[2], found[3].operands[0]]
    for value, array in zip(values, arrays, strict=True):
        assert value.op.name == "builtin.constant" and np.array_equal(value.attribute("value").array(), array.T)
