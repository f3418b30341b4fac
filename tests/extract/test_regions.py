"""Terms with payload functions come through search and selection as they are: no rule enters a payload, none is lost or merged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.region_terms import composite_term, if_term, region, while_term
from coset.dialects.hub.stablehlo import transpose
from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import saturate
from coset.extract.select import select
from coset.ir.builtin import TOKEN
from coset.ir.evaluate import evaluate
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make, topological
from coset.ir.types import BOOL, F32, I32, TokenType, tensor
from coset.rules.library import load
from coset.targets.target import Form, get_target

assert coset.dialects
CPU = get_target("cpu-onnxruntime")
REGIONS = ("while", "if", "sort", "scatter", "reduce_region", "composite", "custom_call", "all_reduce")
ANYWHERE = replace(CPU, forms={**CPU.forms, **{f"stablehlo.{name}": (Form("host"),) for name in (*REGIONS, "maximum")},
                               "builtin.get": (Form("host"),), "builtin.tuple": (Form("host"),)})  # fmt: skip
X = input_term("x", tensor(F32, 3, 4))


def call(op: str, *terms: Term, **attributes: object) -> Term:
    return make(f"stablehlo.{op}", terms, attributes)


def number(value: object, dtype: type = np.float32) -> Term:
    return constant(np.asarray(value, dtype))


def looped(steps: int) -> Term:
    """`x` doubled `steps` times by a loop, after two transposes that are none."""
    start = transpose(transpose(X, (1, 0)), (1, 0))
    state = while_term(
        [number(0, np.int32), start],
        lambda i, _: call("compare", i, number(steps, np.int32), direction="LT"),
        lambda i, x: [call("add", i, number(1, np.int32)), call("add", x, x)],
    )
    return get(state, 1)


def folded() -> Term:
    """The largest distance from 0 over each row, by a payload that no word names."""
    body = region([tensor(F32)] * 2, lambda a, b: call("maximum", a, call("abs", b)))
    return make("stablehlo.reduce_region", (X, number(0.0)), {"dimensions": (1,)}, (body,))


def ordered() -> Term:
    keys = constant(np.arange(4, dtype=np.int32)[::-1].copy())
    body = region([tensor(I32)] * 4, lambda a, b, c, d: call("compare", a, b, direction="LT"))
    return get(make("stablehlo.sort", (keys, constant(np.arange(4, dtype=np.int32))), {"dimension": 0, "direction": "region"}, (body,)), 1)


def chosen() -> Term:
    return if_term(input_term("flag", tensor(BOOL)), [X], lambda x: call("negate", x), lambda x: x)


PROGRAMS = {
    "while": looped(3), "reduce_region": folded(), "sort": ordered(), "if": chosen(),
    "composite": composite_term("ours.double", [X], lambda x: call("add", x, x)),
}  # fmt: skip


def through(*roots: Term) -> tuple[Term, ...]:
    """The roots after search over the whole library and selection under a target that has every op."""
    library = load()
    phases = [Phase(name, tuple(rule for rule in library.rules if rule.phase == name)) for name in sorted({r.phase for r in library.rules})]
    found = saturate(roots, phases, Limits(seconds=20, iterations=3))
    return select(found.graph, ANYWHERE, {}).terms


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_payload_comes_through(name: str) -> None:
    root = PROGRAMS[name]
    (after,) = through(root)
    regions = {term.regions for term in topological([root]) if term.regions}
    assert {term.regions for term in topological([after]) if term.regions} == regions
    inputs = {"x": np.arange(-6, 6, dtype=np.float32).reshape(3, 4), "flag": np.asarray(True)}
    for a, b in zip(evaluate([root], inputs), evaluate([after], inputs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_terms_that_differ_in_their_payload_stay_apart() -> None:
    before = (looped(2), looped(3))
    after = through(*before)
    inputs = {"x": np.ones((3, 4), np.float32)}
    assert [value[0, 0] for value in evaluate(after, inputs)] == [4.0, 8.0]


def test_what_is_around_a_payload_is_rewritten() -> None:
    (after,) = through(looped(2))
    assert not any(term.op.name == "stablehlo.transpose" for term in topological([after]))


def test_an_effect_is_neither_lost_nor_doubled() -> None:
    token = make(TOKEN)
    results = (tensor(F32, 3, 4), TokenType())
    first = make("stablehlo.custom_call", (token, X), {"call_target_name": "f", "results": results, "effect": True})
    second = make("stablehlo.custom_call", (get(first, 1), X), {"call_target_name": "f", "results": results, "effect": True})
    program = Program((X,), (("y", get(second, 0)),), effects=get(second, 1))
    after = program.with_roots(through(*program.roots))
    calls = [term for term in after.terms() if term.op.name == "stablehlo.custom_call"]
    assert len(calls) == 2


def test_a_collective_of_constants_is_not_computed_at_build_time() -> None:
    term = make("stablehlo.all_reduce", (number(np.ones(3)),), {"replica_groups": ((0, 1),), "combiner": "add"})
    (after,) = through(term)
    assert after.op.name == "stablehlo.all_reduce"
