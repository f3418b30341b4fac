"""Which places a mask leaves a weight is read off scalars: only what hides a place whatever else is added counts."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.ir.dims import Dim, add, multiply, subtract, symbol
from coset.ir.op import get_op
from coset.ir.types import BOOL, F16, F32, I32, DType
from coset.lowering.kernels.kernel import Choose, InBounds, IndexValue, Load, Loop, Result, Scalar, ScalarConstant, ScalarOp
from coset.lowering.planning.visible import ends_of
from coset.lowering.planning.visible import hidden as with_infinite_fill

ROW, KEY, PART = Loop("loop:m0", 40), Loop("loop:s0", 56), Loop("loop:s1", 4)
DOT = Result("dot0", F32)
MANY = {loop.name: loop.extent for loop in (ROW, KEY, PART)} | {"pick:0": 40}
INFINITE = float("-inf")
LAST = add(ROW.index, 1)  # where a causal mask ends


def apply(name: str, *operands: Scalar, dtype: DType = F32) -> Scalar:
    return ScalarOp(get_op(f"stablehlo.{name}"), operands, dtype)


def causal(inside: Scalar, fill: float, *, row: Dim = ROW.index, dtype: DType = F32) -> Scalar:
    """`inside` for the keys up to `row`."""
    return Choose((InBounds(subtract(row, KEY.index), 0, 40),), inside, ScalarConstant(fill, dtype), inside.dtype)


def hidden(fill: float, offset: int) -> Scalar:
    """A product without the keys from `row` + `offset` + 1 on."""
    distance = add(subtract(ROW.index, KEY.index), 60)  # 0 or more
    return Choose((InBounds(distance, 0, 60 - offset),), ScalarConstant(fill, F32), DOT, F32)


SCALED = apply("multiply", DOT, ScalarConstant(0.5, F32))
BIASED = apply("add", DOT, Load("bias", (KEY.index,), F32))
ADDED = apply("select", Load("mask", (KEY.index,), BOOL), DOT, ScalarConstant(INFINITE, F32))
SCORES: dict[str, tuple[Scalar, Dim | None]] = {
    "infinite": (causal(DOT, INFINITE), LAST),
    "scaled": (causal(SCALED, INFINITE), LAST),
    "low": (causal(SCALED, -3e38), LAST),
    "not so low": (causal(DOT, -1e4), None),
    "the lowest f16": (apply("convert", causal(Result("dot0", F16), -65504.0, dtype=F16)), None),
    "infinite f16": (apply("convert", causal(Result("dot0", F16), INFINITE, dtype=F16)), LAST),
    "low under a cast": (causal(apply("convert", Result("dot0", F16)), -3e38), LAST),
    "low over a bias": (causal(BIASED, -3e38), None),
    "infinite over a bias": (causal(BIASED, INFINITE), LAST),
    "low over another mask": (causal(ADDED, -3e38), None),
    "infinite over another mask": (causal(ADDED, INFINITE), LAST),
    "low over another low mask": (causal(causal(DOT, -3e38), -2e38), None),
    "low over a power": (causal(apply("exponential", DOT), -3e38), None),
    "low that is added": (apply("add", DOT, causal(ScalarConstant(0.0, F32), -3e38)), None),
    "infinite that is added": (apply("add", DOT, causal(ScalarConstant(0.0, F32), INFINITE)), LAST),
    "infinite that is multiplied": (apply("multiply", DOT, causal(ScalarConstant(1.0, F32), INFINITE)), None),
    "of no index": (DOT, None),
    "up to a place that is read": (causal(DOT, INFINITE, row=symbol("pick:0")), None),
    "up to another key": (causal(DOT, INFINITE, row=PART.index), None),
    "of every second key": (
        Choose((InBounds(subtract(ROW.index, multiply(KEY.index, 2)), 0, 40),), DOT, ScalarConstant(INFINITE, F32), F32), None,
    ),
    "of integers": (
        apply("convert", causal(IndexValue(KEY.index, I32), INFINITE, dtype=F32)), None,
    ),
    "the other way about": (hidden(INFINITE, 0), LAST),
    "between two places": (
        Choose((InBounds(subtract(KEY.index, ROW.index), 1, 100),), ScalarConstant(INFINITE, F32), DOT, F32), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCORES)
def test_ends_of_keys(name: str) -> None:
    score, high = SCORES[name]
    assert ends_of(score, (PART, KEY), (PART, KEY), MANY, safe=True) == (None, high)
    if high is not None:  # the rows of each key begin where the keys of each row end
        assert ends_of(score, (ROW,), (PART, KEY), MANY, safe=True) == (KEY.index, None)
    assert ends_of(score, (), (PART, KEY), MANY, safe=True) == (None, None)


@pytest.mark.parametrize("about", [False, True])
@pytest.mark.parametrize("fill", [INFINITE, -3e38])
def test_a_row_that_sees_nothing_looks_at_everything(fill: float, about: bool) -> None:
    """Unless it is safe and the fill infinite: with a large number every key of such a row has a weight, and else it is NaN."""
    none = hidden(fill, -2) if about else causal(DOT, fill, row=subtract(ROW.index, 2))
    safe = ends_of(none, (KEY,), (KEY,), MANY, safe=True)
    assert safe == ((None, subtract(ROW.index, 1)) if np.isinf(fill) else (None, None))
    assert ends_of(none, (KEY,), (KEY,), MANY, safe=False) == (None, None)
    assert ends_of(causal(DOT, fill), (KEY,), (KEY,), MANY, safe=False) == (None, LAST)


def test_of_an_infinite_and_a_low_mask_both_must_leave_a_key() -> None:
    """The low one fills a whole row: its keys would all have a weight, were they not hidden by the other."""
    low = causal(DOT, -3e38, row=subtract(ROW.index, 2))
    assert ends_of(causal(low, INFINITE), (KEY,), (KEY,), MANY, safe=True) == (None, None)


def test_a_window_has_two_ends() -> None:
    near = Choose((InBounds(subtract(KEY.index, ROW.index), -8, 40),), DOT, ScalarConstant(INFINITE, F32), F32)
    assert ends_of(causal(near, INFINITE), (KEY,), (KEY,), MANY, safe=True) == (add(ROW.index, -8), LAST)


DOT16, LOWEST = Result("dot", F16), -65504.0
LESS = apply("multiply", ScalarConstant(0.125, F16), DOT16, dtype=F16)
ZERO = ScalarConstant(0.0, F16)
WIDE = Choose((InBounds(subtract(add(ROW.index, KEY.index), 200), 0, 40),), ZERO, ScalarConstant(LOWEST, F16), F16)  # no row sees a key


@pytest.mark.parametrize(("score", "expected"), [
    (apply("add", LESS, causal(ZERO, LOWEST, dtype=F16), dtype=F16), causal(LESS, INFINITE, dtype=F16)),
    (apply("add", causal(ZERO, LOWEST, dtype=F16), LESS, dtype=F16), causal(LESS, INFINITE, dtype=F16)),
    (apply("convert", apply("add", LESS, causal(ZERO, LOWEST, dtype=F16), dtype=F16)), apply("convert", causal(LESS, INFINITE, dtype=F16))),
    (causal(LESS, LOWEST, dtype=F16), causal(LESS, INFINITE, dtype=F16)),
    (apply("add", SCALED, causal(ScalarConstant(0.0, F32), -3.4e38)), None),  # half of what f32 holds, twice
    (apply("add", apply("divide", DOT, ScalarConstant(8.0, F32)), causal(ScalarConstant(0.0, F32), -3.4e38)),
     causal(apply("divide", DOT, ScalarConstant(8.0, F32)), INFINITE)),
    (apply("add", DOT16, causal(ZERO, LOWEST, dtype=F16), dtype=F16), None),  # a product of 65,504 would be 0 there
    (apply("add", LESS, causal(ZERO, -1e4, dtype=F16), dtype=F16), None),  # 8,188 below another
    (apply("add", LESS, causal(ScalarConstant(1.0, F16), LOWEST, dtype=F16), dtype=F16), None),  # what is seen would be another number
    (apply("add", Load("bias", (KEY.index,), F16), causal(ZERO, LOWEST, dtype=F16), dtype=F16), None),
    (apply("add", apply("divide", ScalarConstant(1.0, F16), DOT16, dtype=F16), causal(ZERO, LOWEST, dtype=F16), dtype=F16), None),
    (apply("add", LESS, WIDE, dtype=F16), None),
])  # fmt: skip
def test_a_finite_fill_that_leaves_no_weight_is_infinite(score: Scalar, expected: Scalar | None) -> None:
    assert with_infinite_fill(score, [KEY], MANY) == (score if expected is None else expected)
