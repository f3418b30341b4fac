"""Forgeries by hand about constants: each row says what is claimed, and is refused by both checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coset.dialects.hub.terms import convert, dot
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import BF16, BOOL, DTYPES, F16, F32, F64, DType, TensorType
from coset.prove.certificate import Rejected
from coset.prove.contents import other_of
from coset.prove.second import ACCEPTS
from coset.proving.certify import certificate_of
from coset.proving.steps import APART, CertificateStep
from tests.prove.forged_certificates import (
    RULES,
    Forgery,
    S,
    by_one_step,
    claimed,
    computed,
    number,
    numbers,
    op,
    program,
    rounded,
    said,
)  # fmt: skip

Build = Callable[[Term], Term]


def like(value: float, term: Term) -> Term:
    """A number in each place of a term's type."""
    return constant(np.full(term.tensor.static or (), value, term.tensor.dtype.numpy), term.tensor.dtype)


def of(dtype: DType, *values: float) -> Term:
    return constant(np.asarray(values, dtype.numpy), dtype)


def second_of(term: Term) -> Term:
    return op("slice", term, start=(1,), limit=(2,), strides=(1,))


# ---------------------------------------------------------------- a small element beside a huge one

FOLDS: dict[str, Build] = {
    "times one": lambda w: op("multiply", w, like(1, w)),
    "plus nothing": lambda w: op("add", w, like(0, w)),
    "less nothing": lambda w: op("subtract", w, like(0, w)),
    "by one": lambda w: op("divide", w, like(1, w)),
    "by three and times three": lambda w: op("multiply", op("divide", w, like(3, w)), like(3, w)),
    "root of the square": lambda w: op("sqrt", op("multiply", op("sqrt", w), op("sqrt", w))),
    "the larger of itself": lambda w: op("maximum", w, w),
    "a choice": lambda w: make("stablehlo.select", (constant(np.bool_([True, True])), w, like(2, w))),
}
BESIDE: dict[str, tuple[DType, float, float, float]] = {
    "1 as 8 beside 1e30": (F32, 1e30, 1, 8),
    "1 as 2 beside 1e10 in f64": (F64, 1e10, 1, 2),
    "1 as 1.5 beside 3e4 in f16": (F16, 3e4, 1, 1.5),
    "1 as 4 beside 1e20 in bf16": (BF16, 1e20, 1, 4),
    "1e-30 as -1e-30 beside 1": (F32, 1, 1e-30, -1e-30),
}


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("what", BESIDE)
def test_a_small_element_is_no_other_beside_a_huge_one(what: str, fold: str) -> None:
    """A bound relative to the largest element would admit it, and a slice takes the small one out again."""
    dtype, huge, small, other = BESIDE[what]
    weight, forged = FOLDS[fold](of(dtype, huge, small)), of(dtype, huge, other)
    refused(
        by_one_step(second_of(weight), second_of(forged), [rounded(weight, forged)], "not what is computed|nothing is computed|no bound")
    )


def refused(forged: Forgery) -> None:
    """Both checkers refuse it."""
    with pytest.raises(Rejected, match=forged.reason):
        forged.check()
    assert forged.second().verdict != ACCEPTS


# ---------------------------------------------------------------- what a term is said to compute

PAIRS: dict[str, tuple[Callable[[], Term], Callable[[], Term], str]] = {
    "an exponential by a thousandth": (lambda: op("exponential", numbers(1, 2)), lambda: numbers(2.721, 7.389056), "not what"),
    "a logarithm of another base": (lambda: op("log", numbers(8, 2)), lambda: numbers(3, 1), "not what"),
    "a tanh as its argument": (lambda: op("tanh", numbers(0.1, 0.2)), lambda: numbers(0.1, 0.2), "not what"),
    "a sine of degrees": (lambda: op("sine", numbers(30, 90)), lambda: numbers(0.5, 1), "not what"),
    "a logistic as a step": (lambda: op("logistic", numbers(-3, 3)), lambda: numbers(0, 1), "not what"),
    "a root of a negative number": (lambda: op("sqrt", numbers(-1, 4)), lambda: numbers(1, 2), "not what|no bound"),
    "a reciprocal of 0": (lambda: op("divide", numbers(1, 1), numbers(0, 2)), lambda: numbers(0, 0.5), "not what|no bound"),
    "a power as a product": (lambda: op("power", numbers(3, 4), numbers(2, 2)), lambda: numbers(6, 8), "not what"),
    "a floor by one": (lambda: op("floor", numbers(1.5, 2.5)), lambda: numbers(2, 3), "not what"),
    "a ceiling as a floor": (lambda: op("ceil", numbers(1.5, 2.5)), lambda: numbers(1, 2), "not what"),
    "a half in f16 of many bits": (
        lambda: convert(numbers(1.0009765625 + 2**-12, 2), F16), lambda: of(F16, 1.001953125, 2), "not what",
    ),
    "an integer that wraps": (
        lambda: op("add", constant(np.int8([127, 1])), constant(np.int8([1, 1]))), lambda: constant(np.int8([127, 2])), "only floats",
    ),
    "a truth": (
        lambda: make("stablehlo.compare", (numbers(1, 2), numbers(2, 1)), {"direction": "LT"}),
        lambda: constant(np.bool_([True, True])), "only floats",
    ),
    "a mean as a sum": (
        lambda: op("divide", op("reduce", constant(np.float32([[1, 2], [3, 4]])), dimensions=(0,), combiner="add"), numbers(2, 2)),
        lambda: numbers(4, 6), "not what",
    ),
    "a sum of the other axis": (
        lambda: op("reduce", constant(np.float32([[1, 2], [3, 4]])), dimensions=(0,), combiner="add"), lambda: numbers(3, 7), "not what",
    ),
    "a product of matrices turned": (
        lambda: dot(constant(np.float32([[1, 2], [3, 4]])), numbers(1, 2), lhs_contract=(1,), rhs_contract=(0,)),
        lambda: numbers(7, 10), "not what",
    ),
    "a largest as a sum": (
        lambda: op("reduce", constant(np.float32([[1, 2], [3, 4]])), dimensions=(0,), combiner="maximum"),
        lambda: numbers(4, 6), "not what",
    ),
    "another shape": (
        lambda: op("add", numbers(1, 2), numbers(0, 0)), lambda: constant(np.float32([[1, 2]])), "no constant of this type|shape",
    ),
    "another type": (lambda: op("add", numbers(1, 2), numbers(0, 0)), lambda: of(F64, 1, 2), "no constant of this type|takes"),
    "an overflow as the largest number": (
        lambda: op("multiply", numbers(3e38, 1), numbers(10, 1)), lambda: numbers(3.4028235e38, 1), "no bound|not what",
    ),
    "an infinity as a NaN": (lambda: op("divide", numbers(1, 1), numbers(0, 1)), lambda: numbers(np.nan, 1), "not what"),
    "a NaN as 0": (lambda: op("subtract", numbers(np.inf, 1), numbers(np.inf, 1)), lambda: numbers(0, 0), "not what|no bound"),
    "a subnormal as 0": (lambda: op("multiply", numbers(1e-20, 1), numbers(1e-19, 1)), lambda: numbers(0, 1), "not what"),
    "an absorbed number": (
        lambda: op("subtract", op("add", numbers(3, 5), numbers(1e9, 1e9)), numbers(1e9, 1e9)), lambda: numbers(640, 640), "not what",
    ),
    "a sum in bf16 by a tenth": (
        lambda: op("add", of(BF16, 1, 2), of(BF16, 0.0078125, 0.5)), lambda: of(BF16, 1.1, 2.5), "not what",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", PAIRS)
def test_a_constant_is_not_what_something_else_computes(what: str) -> None:
    term, value, reason = PAIRS[what]
    left, right = term(), value()
    user = "not" if right.tensor.dtype is BOOL else "negate"
    before, after = (program(op(user, each)) for each in (left, right))
    forged = Forgery(before, after, [rounded(left, right)], reason)
    with pytest.raises(Rejected, match=reason):
        forged.check()
    assert forged.second().verdict != ACCEPTS


# ---------------------------------------------------------------- one constant, two lives


def by_cancelling(further: Term | None, other: Term | None, order: str) -> Forgery:
    """s + 1 as s by way of 1e8, where x - x is 0 by a rule that looks at no number, or 1e8 - 1e8 is computed."""
    large, one = number(1e8), number(1)
    shifted, around = op("add", op("add", S, one), large), op("add", op("add", op("add", S, one), large), number(-1e8))
    steps = {
        "zero": computed(op("add", large, number(-1e8))),
        "sum": computed(op("add", one, large)),
        "inner": said("add_assoc_const", shifted),
        "outer": said("add_assoc_const", around),
        "left": said("add_zero#2", op("add", op("add", S, one), number(0))),
        "back": said("add_assoc_const", op("add", op("add", S, large), number(-1e8))),
        "right": said("add_zero#2", op("add", S, number(0))),
    }
    extra = [] if further is None or other is None else [further, other]
    before, after = program(op("add", S, one), *extra[:1]), program(S, *extra[1:])
    return Forgery(before, after, [steps[word] for word in order.split()], "")


M = input_term("m", TensorType(F32, ()))
SUM = op("add", number(1), number(1e8))
ORDERS = {
    "the sum first": "inner sum zero outer left back right",
    "the zero first": "zero inner sum outer left back right",
    "both last": "inner outer left back right zero sum",
    "the sum last": "zero inner outer left back right sum",
}
PLACES: dict[str, tuple[Term | None, Term | None]] = {
    "in no program": (None, None),
    "in both": (op("add", M, number(1e8)), op("add", M, number(1e8))),
    "own": (op("add", M, SUM), op("add", M, number(1e8))),
    "own the other way round": (op("add", M, number(1e8)), op("add", M, SUM)),
    "only after": (op("add", M, number(2)), op("add", M, number(1e8))),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_number_that_absorbs_another_has_one_life(place: str, order: str) -> None:
    """x + 1 = x, whatever the programs have beside it, and in whatever order it is said."""
    forged = by_cancelling(*PLACES[place], ORDERS[order])
    with pytest.raises(Rejected):
        forged.check()
    assert forged.second().verdict != ACCEPTS


def own(before: Term, after: Term, left: Term, right: Term, steps: list[CertificateStep]) -> Forgery:
    """Two outputs: `before` as `after` is true of the numbers that are computed; `left` as `right` is not."""
    return Forgery(program(left, op("add", M, before)), program(right, op("add", M, after)), steps, "")


FIVE_AND_EIGHT = op("add", op("add", number(5), number(1e8)), number(-1e8))
NEARLY = op("multiply", number(3), op("multiply", op("divide", number(1), number(3)), number(3)))
LIVES: dict[str, Callable[[], Forgery]] = {
    "a multiple that was computed first": lambda: own(
        FIVE_AND_EIGHT, number(8), op("add", S, op("multiply", FIVE_AND_EIGHT, number(200))), op("add", S, number(1000)),
        [computed(op("multiply", number(8), number(200))), computed(FIVE_AND_EIGHT)],
    ),
    "an underflow where a rule has seen 0": lambda: own(
        op("multiply", number(2.0**-100), number(2.0**-100)), number(0), op("add", S, number(0)), S,
        [said("add_zero#2", op("add", S, number(0))), computed(op("multiply", number(2.0**-100), number(2.0**-100)))],
    ),
    "a number computed from itself": lambda: Forgery(
        program(op("add", S, op("add", number(1e8), number(1)))), program(op("add", S, number(1e8))),
        [computed(op("add", number(1e8), number(1)))],
    ),
    "a number rounded to itself": lambda: Forgery(
        program(op("add", S, op("add", number(1e8), number(3)))), program(op("add", S, number(1e8))),
        [rounded(op("add", number(1e8), number(3)), number(1e8))],
    ),
    "a product with what is nearly 1": lambda: Forgery(
        program(op("multiply", S, NEARLY)), program(op("multiply", S, number(3))), [computed(NEARLY)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LIVES)
def test_a_number_that_was_looked_at_stands_for_nothing_else(what: str) -> None:
    forged = LIVES[what]()
    with pytest.raises(Rejected):
        forged.check()
    assert forged.second().verdict != ACCEPTS


# ---------------------------------------------------------------- what is computed in no other way

INTEGERS: dict[str, Callable[[], tuple[Term, Term]]] = {
    "an integer of a rounded number": lambda: (
        convert(op("multiply", op("divide", numbers(1, 2), numbers(3, 3)), numbers(3, 3)), DTYPES["i32"]), constant(np.int32([1, 2]))
    ),
    "a truth of a rounded number": lambda: (
        convert(op("subtract", op("add", numbers(0.1, 1), numbers(0.2, 1)), numbers(0.3, 1)), BOOL), constant(np.bool_([True, True]))
    ),
    "a comparison with a rounded number": lambda: (
        make("stablehlo.compare", (op("divide", numbers(1, 2), numbers(3, 3)), numbers(1 / 3, 2 / 3)), {"direction": "EQ"}),
        constant(np.bool_([True, True])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", INTEGERS)
def test_a_rounding_decides_no_integer(what: str) -> None:
    term, value = INTEGERS[what]()
    user = (lambda t: op("not", t)) if value.tensor.dtype is BOOL else (lambda t: op("negate", t))
    refused(Forgery(program(user(term)), program(user(value)), [computed(term, value)], "rounded numbers"))


# ---------------------------------------------------------------- constants that are set apart


def by_line(before: Program, after: Program, *lines: dict[str, Any]) -> Forgery:
    return Forgery(before, after, lines=lines)


def apart_lines() -> dict[str, Forgery]:
    """BEFORE: 0 x, 1 the constant 2, 2 x + 2; AFTER adds 3, the constant 3, and 4, x + 3."""
    x = input_term("x", TensorType(F32, (2,)))
    one, other = program(op("add", x, numbers(2, 2))), program(op("add", x, numbers(3, 3)))
    same = program(op("subtract", x, numbers(2, 2)))
    rows: dict[str, Any] = {
        "nothing": [], "no users": [3, []], "no list": 3, "an input": [0, [4]], "a term that does not use it": [3, [3]],
        "a node of the program before": [1, [2]], "what computes": [4, [4]], "a truth for a number": [3, [True]],
        "numbers alone": [3, 4], "three parts": [3, [4], [4]], "a term that is not there": [3, [99]],
    }  # fmt: skip
    found = {what: by_line(one, other, {"apart": row}) for what, row in rows.items()}
    found["and no more is said"] = by_line(one, other, {"apart": [3, [4]]})
    found["and computed as its elements"] = by_line(one, other, {"apart": [3, [4]]}, {"computed": 5}, {"computed": 1})
    found["and rounded"] = by_line(one, other, {"apart": [3, [4]]}, {"rounded": [1, 5]})
    found["of another op"] = by_line(one, same, {"apart": [1, [3]]}, {"computed": 4})
    return found


@pytest.mark.parametrize("what", apart_lines())
def test_a_constant_that_is_set_apart_is_no_other(what: str) -> None:
    forged = apart_lines()[what]
    with pytest.raises(Rejected):
        forged.check()
    assert forged.second().verdict != ACCEPTS


def test_a_constant_that_is_set_apart_stands_for_what_is_computed_with_roundings() -> None:
    """(s 3) (3 (1 / 3)) is s 3 by 1 with roundings, though 1 and 3 stand for themselves elsewhere: both programs have both."""
    third = op("multiply", op("divide", number(1), number(3)), number(3))
    before, after = (program(op("multiply", S, each), op("add", M, number(1))) for each in (third, number(1)))
    user = after.outputs[0][1]
    plain = Forgery(before, after, [computed(third)])
    with pytest.raises(Rejected):
        plain.check()
    own = other_of(number(1), 1)
    apart = Forgery(before, after, [CertificateStep(APART, (number(1), user), (own,)), CertificateStep("rounded", (third,), (own,))])
    verdict = apart.check()
    assert verdict.rounded == 1 and 0 < verdict.relative < 1e-6
    assert apart.second().verdict == ACCEPTS
    assert len(certificate_of(before, after, apart.steps).lines) == 2


def test_what_is_set_apart_is_no_one_of_a_rule() -> None:
    """The 1 that was set apart is rounded: no rule may drop it as a factor."""
    third = op("multiply", op("divide", number(1), number(3)), number(3))
    before, after = program(op("multiply", S, third), op("add", M, number(1))), program(S, op("add", M, number(1)))
    step = claimed("multiply_one#2", op("multiply", S, number(1)), S)
    assert "multiply_one#2" in RULES
    refused(Forgery(before, after, [computed(third), step], "stands for something else|computed from it"))


def test_an_exact_difference_of_large_numbers_is_computed() -> None:
    """1e8 - 1e8 is 0 whatever rounds: what cancels exactly is no forgery."""
    zero = op("subtract", number(1e8), number(1e8))
    verdict = Forgery(program(op("add", S, zero)), program(op("add", S, number(0))), [computed(zero)]).check()
    assert verdict.computed == 1 and verdict.absolute == 0


def test_bounds_are_those_of_what_is_known_exactly() -> None:
    """A conversion rounds as IEEE says, and a truth of a number that is far from 0 is none of roundings."""
    half = convert(numbers(1 / 3, 2 / 3), F16)
    exact = Forgery(
        program(half),
        program(
            constant(np.asarray([1 / 3, 2 / 3], np.float32).astype(np.float16)),
        ),
        [computed(half)],
    ).check()
    assert exact.absolute == 0 and str(exact.numerics) == "exact"
    truth = convert(op("exponential", numbers(1, 2)), BOOL)
    value = constant(np.bool_([True, True]))
    assert Forgery(program(op("not", truth)), program(op("not", value)), [computed(truth)]).check().computed == 1
