"""Facts about numbers: each law on numbers that fulfil it, and rules that ask for facts on programs that have them and have them not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects
from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import saturate
from coset.ir.constants import Constant, constant_of
from coset.ir.evaluate import evaluate
from coset.ir.op import Attributes
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import BOOL, DTYPES, tensor
from coset.prove.laws import LAWS, MOVING, of_constant
from coset.prove.values import KINDS, LARGE, draw, fits, fitted
from coset.rules.elaborate import rules_of
from coset.rules.facts import NUMBERS
from coset.rules.parser import parse

assert coset.dialects
CASES = [(fact, op, way) for fact, own in LAWS.items() if fact in NUMBERS for op, ways in own.items() for way in ways]
WINDOW: Attributes = {
    "strides": (1,), "padding": ((1, 1),), "lhs_dilation": (1,), "rhs_dilation": (1,), "feature_group_count": 1, "batch_group_count": 1,
}  # fmt: skip
SHAPES: dict[str, list[tuple[int, ...]]] = {"dot_general": [(4, 5), (5, 3)], "convolution": [(2, 3, 5), (4, 3, 2)]}
ATTRIBUTES: dict[str, Attributes] = {
    "dot_general": {"lhs_batch": (), "rhs_batch": (), "lhs_contract": (1,), "rhs_contract": (0,)}, "convolution": WINDOW,
}  # fmt: skip


@pytest.mark.parametrize(("fact", "op", "way"), CASES, ids=[f"{fact} {op} {' '.join(way)}" for fact, op, way in CASES])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64", "f8e4m3fn"])
def test_a_law_holds_of_numbers_as_they_are_computed(fact: str, op: str, way: tuple[str, ...], dtype: str) -> None:
    generator = np.random.default_rng(len(op))
    for kind in (*KINDS, LARGE) * 4:
        values = []
        for place, asked in enumerate(way):
            shape = SHAPES[op][place] if op in SHAPES else (64,)
            own = BOOL if op == "select" and place == 0 else DTYPES[dtype]
            values.append(fitted(draw(generator, own, shape, kind), asked))
        terms = [input_term(f"x{i}", tensor(BOOL if x.dtype == bool else DTYPES[dtype], *x.shape)) for i, x in enumerate(values)]
        with np.errstate(all="ignore"):
            (result,) = evaluate([make(f"stablehlo.{op}", terms, ATTRIBUTES.get(op, {}))], {f"x{i}": x for i, x in enumerate(values)})
        assert fits(np.asarray(result), fact)


def test_what_is_moved_keeps_its_facts_and_constants_have_theirs() -> None:
    assert all(name.removeprefix("stablehlo.") not in LAWS[fact] for fact in NUMBERS for name in MOVING)
    signs = ("nonnegative", "positive")
    for values, facts in (([1.0, 2.0], NUMBERS), ([0.0, -0.0], ("nonnegative", "finite")), ([np.nan], signs), ([-1.0], ("finite",))):
        assert tuple(of_constant(constant_of(np.array(values, np.float32)))) == facts
    assert of_constant(constant_of(np.array([1, 1], np.int32))) == []
    assert of_constant(Constant(tensor(DTYPES["f32"], 32), "any of its type")) == []  # as equal regions have them
    assert of_constant(constant_of(np.array([3, 1], np.int32))) == ["unique_indices"]
    assert of_constant(constant_of(np.array([[1, 0, 2, 0], [0, 0, 0, 3]], np.int32))) == ["sparse"]
    assert "sparse" not in of_constant(constant_of(np.array([1, 2, 3, 0], np.float32)))


def call(op: str, *terms: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{op}", terms, attributes)


X = input_term("x", tensor(DTYPES["f32"], 4, 4))
ONES = constant(np.ones((4, 4), np.float32))
SQUARE = call("multiply", X, X)
ORDER = constant(np.array([2, 0, 1, 3], np.int32))
IOTA = call("iota", dtype=DTYPES["i32"], shape=(4,), dimension=0)
FIRES: list[tuple[str, Term, bool]] = [
    ("unique_indices", ORDER, True),
    ("unique_indices", call("reshape", IOTA, shape=(2, 2)), True),
    ("unique_indices", call("broadcast_in_dim", IOTA, shape=(4, 2), broadcast_dimensions=(0,)), False),
    ("unique_indices", constant(np.array([2, 0, 2], np.int32)), False),
    ("unique_indices", call("iota", dtype=DTYPES["i8"], shape=(300,), dimension=0), False),  # it wraps around
    ("sparse", call("negate", constant(np.array([[1, 0, 0, 2]] * 2, np.float32))), True),
    ("sparse", call("transpose", constant(np.array([[1, 0, 0, 2]] * 2, np.float32)), permutation=(1, 0)), False),
    ("nonnegative", SQUARE, True),
    ("nonnegative", X, False),
    ("positive", ONES, True),
    ("positive", constant(np.full((4, 4), np.inf, np.float32)), True),
    ("positive", constant(np.full((4, 4), np.nan, np.float32)), False),  # though of numbers that are none all is true
    ("nonnegative", constant(np.array([1.0, np.nan], np.float32)), False),
    ("nonnegative", call("multiply", X, call("negate", X)), False),
    ("nonnegative", call("transpose", SQUARE, permutation=(1, 0)), True),
    ("nonnegative", call("reduce", SQUARE, dimensions=(0,), combiner="add"), True),
    ("nonnegative", call("reduce", SQUARE, dimensions=(0,), combiner="maximum"), False),  # of nothing it is -inf
    ("nonnegative", call("subtract", SQUARE, SQUARE), False),
    ("positive", call("exponential", X), False),  # it may be 0
    ("positive", call("add", SQUARE, ONES), True),
    ("positive", call("add", SQUARE, constant(np.zeros((4, 4), np.float32))), False),
    ("nonnegative", call("divide", SQUARE, call("add", SQUARE, ONES)), True),
    ("nonnegative", call("divide", SQUARE, SQUARE), False),  # 1 / -0
    ("finite", call("tanh", X), False),  # of NaN it is NaN
    ("finite", call("tanh", call("iota", dtype=DTYPES["f32"], shape=(4,), dimension=0)), True),
    ("finite", call("iota", dtype=DTYPES["f16"], shape=(70_000,), dimension=0), False),  # f16 ends at 65,504
    ("finite", call("add", ONES, ONES), False),  # a sum may overflow
]


@pytest.mark.parametrize(("fact", "term", "holds"), FIRES, ids=[f"{fact} {number}" for number, (fact, *_) in enumerate(FIRES)])
def test_a_rule_fires_where_its_fact_is_derived(fact: str, term: Term, holds: bool) -> None:
    element = "I" if fact == "unique_indices" else "F"
    text = f"use stablehlo\nrule probed\n  for x: {fact} {element}[S..]\n  negate(x) => abs(x)\n  numerics exact\n"
    file, errors = parse(text, "test.rules")
    rules, more = rules_of(file.rules[0], {"stablehlo": "stablehlo"})
    assert not errors and not more
    root = call("add", call("negate", term), call("negate", term))
    found = saturate([root, X], [Phase("all", tuple(rules))], Limits())
    assert bool(sum(found.fired.values())) is holds
