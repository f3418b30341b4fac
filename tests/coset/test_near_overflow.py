"""Where a program's sums come near the largest number, infinities that another order of summands makes are no differences."""

from __future__ import annotations

import numpy as np
import pytest

from coset.comparing.feeds import Feed
from coset.comparing.reference import against_reference, near_overflow, values_of
from coset.dialects.hub.terms import dot, splat
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import F32, TensorType


def _program(power: int) -> Program:
    """A twentieth of a power of x, and its sum over 40 columns against w."""
    x, w = (input_term(name, TensorType(F32, shape)) for name, shape in (("x", (3, 40)), ("w", (40, 2))))
    term: Term = x
    for _ in range(power - 1):
        term = make("stablehlo.multiply", (term, x))
    term = make("stablehlo.multiply", (term, splat(0.05, F32, (3, 40))))
    return Program((x, w), (("y", dot(term, w, lhs_contract=(1,), rhs_contract=(0,))),), None)


def _infinite(program: Program, feed: Feed) -> Feed:
    """The values, and an infinity where they are large."""
    return {
        name: np.where(np.isfinite(value) & (np.abs(value) > 1e15), np.inf, value).astype(value.dtype)
        for name, value in values_of(program, feed).items()
    }


def test_a_sum_that_may_overflow_in_another_order_is_not_judged() -> None:
    near, far = _program(3), _program(1)
    for program, ok in ((near, True), (far, False)):
        report = against_reference(program, lambda feed: _infinite(program, feed), {}, plain=lambda feed: values_of(program, feed))  # noqa: B023
        assert report.ok is ok
        assert ("may overflow in another order" in report.apart) is ok
    report = against_reference(near, lambda feed: _infinite(near, feed), {})
    assert not report.ok, "only where the result is said to sum in an order of its own"


def _added_and_taken_away(power: int) -> Program:
    """x's first columns plus what `_program` computes, minus the same: nothing but roundings on huge inputs."""
    program = _program(power)
    x, total = program.inputs[0], program.outputs[0][1]
    few = make("stablehlo.slice", (x,), {"start": (0, 0), "limit": (3, 2), "strides": (1, 1)})
    y = make("stablehlo.subtract", (make("stablehlo.add", (few, total)), total))
    return Program(program.inputs, (("y", y),), None)


@pytest.mark.parametrize(("power", "step", "ok"), [(3, 1e30, True), (3, 1e36, False), (1, 1e11, False)])
def test_what_roundings_explain_beside_an_overflow_is_not_judged(power: int, step: float, ok: bool) -> None:
    program = _added_and_taken_away(power)

    def run(feed: Feed) -> Feed:
        large = float(np.max(np.abs(feed["x"]), where=np.isfinite(feed["x"]), initial=0.0)) > 1e6
        return {name: (value + (step if large else 0)).astype(value.dtype) for name, value in values_of(program, feed).items()}

    for plain in (lambda feed: values_of(program, feed), run):  # that plain code is off as far is no excuse
        report = against_reference(program, run, {}, plain=plain)
        assert report.ok is ok
        assert ("may overflow in another order" in report.apart) is ok


def test_what_is_wrong_on_ordinary_inputs_stays_wrong() -> None:
    program = _program(3)
    wrong = lambda feed: {name: value + 1 for name, value in values_of(program, feed).items()}  # noqa: E731
    assert not against_reference(program, wrong, {}, plain=lambda feed: values_of(program, feed)).ok


@pytest.mark.parametrize(("scale", "near"), [(1.0, False), (1e13, True)])
def test_near_is_by_the_numbers(scale: float, near: bool) -> None:
    feed = {"x": np.full((3, 40), scale, np.float32), "w": np.ones((40, 2), np.float32)}
    assert (near_overflow(_program(3), feed) is not None) is near


def test_masks_of_infinities_are_not_near() -> None:
    x, mask = (input_term(name, TensorType(F32, (4,))) for name in ("x", "mask"))
    program = Program((x, mask), (("y", make("stablehlo.exponential", (make("stablehlo.add", (x, mask)),))),), None)
    assert near_overflow(program, {"x": np.ones(4, np.float32), "mask": np.zeros(4, np.float32)}) is None
    assert near_overflow(program, {"x": np.full(4, 100, np.float32), "mask": np.zeros(4, np.float32)}) == "`stablehlo.exponential`"
    assert near_overflow(program, {"x": np.ones(4, np.float32), "mask": np.full(4, -np.inf, np.float32)}) is None


@pytest.mark.parametrize("lost", ["where it was", "a number too"])
def test_a_lost_nan_is_told_where_the_program_may_overlook_it(lost: str) -> None:
    """Nothing else is excused by it: a number that changes stays a difference."""
    program = _program(1)

    def run(feed: Feed) -> Feed:
        off = 1.0 if lost == "a number too" else 0.0
        return {name: (np.nan_to_num(value) + off).astype(value.dtype) for name, value in values_of(program, feed).items()}

    assert not against_reference(program, run, {}).ok
    report = against_reference(program, run, {}, overlooks="a mask hides it")
    assert report.ok is (lost == "where it was")
    assert report.apart.endswith("a NaN is lost; a mask hides it")
