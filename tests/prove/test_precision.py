"""What the right side of a rule must not open: a variance about its mean is found by its numbers, not by chance."""

from __future__ import annotations

from typing import Any

import numpy as np

import coset.dialects  # noqa: F401  (registers the ops)
from coset.ir.constants import constant_of
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import F32, tensor
from coset.prove.precision import lost_precision
from coset.prove.promise import exact_difference
from coset.rules.equation import Numerics

OUTER = {"lhs_batch": (), "rhs_batch": (), "lhs_contract": (), "rhs_contract": ()}


def _opened(left: Term, right: Term, **inputs: list[Any]) -> str:
    return lost_precision((left, right), {name: np.array(value, np.float32) for name, value in inputs.items()}, ({}, {}))


def _subtract(one: Term, other: Term) -> Term:
    return make("stablehlo.subtract", (one, other))


def test_numbers_of_few_bits_whose_sum_happens_to_be_0_are_no_variance() -> None:
    x, y, w = (input_term(name, tensor(F32, 4)) for name in "xyw")
    left = _subtract(make("stablehlo.dot_general", (x, w), OUTER), make("stablehlo.dot_general", (y, w), OUTER))
    right = make("stablehlo.dot_general", (_subtract(x, y), w), OUTER)
    assert _opened(left, right, x=[1, 2, 1, 0], y=[0, 1, 3, 0.5], w=[1, -1, 2, -2]) == ""


def test_a_variance_is_not_opened() -> None:
    x = input_term("x", tensor(F32, 4))
    average = constant(constant_of(np.full((4, 4), 0.25, np.float32)))
    mean = make("stablehlo.dot_general", (average, x), {**OUTER, "lhs_contract": (1,), "rhs_contract": (0,)})
    inner = {**OUTER, "lhs_contract": (0,), "rhs_contract": (0,)}
    apart = _subtract(x, mean)
    left = make("stablehlo.dot_general", (apart, apart), inner)
    right = _subtract(make("stablehlo.dot_general", (x, x), inner), make("stablehlo.dot_general", (x, mean), inner))
    assert "variance" in _opened(left, right, x=[1, 2, 5, -3])


def test_a_fraction_is_moved_into_only_where_its_numbers_are_others() -> None:
    """A floor of what the left side has too, by the numbers of these inputs alone, is another floor."""
    x, y = input_term("x", tensor(F32, 2)), input_term("y", tensor(F32, 2))
    left = make("stablehlo.add", (make("stablehlo.floor", (x,)), y))
    right = make("stablehlo.floor", (make("stablehlo.add", (x, y)),))
    assert "moves something into `floor`" in _opened(left, right, x=[0.5, 1.25], y=[1, 2])


def test_digits_that_f64_lost_say_nothing() -> None:
    """All of x is lost beside m, and the exponential of what is left may be any number: that the sides differ then is no difference."""
    x, m = input_term("x", tensor(F32, 1, 3)), input_term("m", tensor(F32, 1))
    spread = make("stablehlo.broadcast_in_dim", (m,), {"broadcast_dimensions": (0,), "shape": (1, 3)})
    sides = tuple(make("onnx.LogSoftmax", (each,), {"axis": 1}) for each in (_subtract(x, spread), x))
    inputs = {"x": np.array([[9.0, 0.0, -0.5]], np.float32), "m": np.array([2e25], np.float32)}
    assert exact_difference(Numerics("real"), (sides[0], sides[1]), inputs, ({}, {}), plain=False) is None
    near = {**inputs, "m": np.array([2.0], np.float32)}
    shifted = (sides[0], make("stablehlo.add", (sides[1], x)))
    assert exact_difference(Numerics("real"), shifted, near, ({}, {}), plain=False) is not None
