"""Regions: where a program repeats, that its pieces make it up, and that solving them one by one loses nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coset.dialects
from coset.dialects.hub.stablehlo import broadcast, splat, transpose
from coset.egraph.chains import Entered, order_chains, product
from coset.egraph.limits import Limits
from coset.egraph.regions import Filling, cut
from coset.egraph.repeats import SHORTEST, find_runs
from coset.egraph.request import Phase
from coset.egraph.saturate import Saturation, saturate
from coset.extract.products import product_seconds
from coset.extract.select import reprice, select
from coset.ir.dims import symbol
from coset.ir.term import Term, constant, input_term, make, topological
from coset.ir.types import F32, tensor
from coset.job.own_rules import NO_RULES
from coset.job.phases import permitted_phases
from coset.rules.elaborate import rules_of
from coset.rules.parser import parse
from coset.searching import regionwise
from coset.searching.regionwise import Solved, solve
from coset.searching.usage import used_rules
from coset.targets.target import get_target
from tests.sampled import sampled

assert coset.dialects
CPU = get_target("cpu-onnxruntime")
WIDTH = 32
DEFAULT = Limits()


@given(
    st.lists(st.integers(0, 9), max_size=30), st.lists(st.integers(10, 15), min_size=SHORTEST, max_size=20), st.integers(3, 9),
    st.lists(st.integers(0, 9), max_size=30),
)  # fmt: skip
def test_a_planted_run_is_found(head: list[int], pattern: list[int], times: int, tail: list[int]) -> None:
    signs = [*head, *pattern * times, *tail]
    runs = find_runs(signs, 3)
    for run in runs:
        assert run.times >= 3 and run.period >= SHORTEST
        assert all(signs[place] == signs[place - run.period] for place in range(run.start + run.period, run.end))
    covered = sum(run.end - run.start for run in runs)
    assert covered >= 0.9 * len(pattern) * times


@given(st.lists(st.integers(0, 50), max_size=60, unique=True))
def test_nothing_is_found_where_nothing_repeats(signs: list[int]) -> None:
    assert find_runs(signs, 2) == []


# ---------------------------------------------------------------- stacks of layers: what a layer is, and how often


def op(name: str, *operands: Term) -> Term:
    return make(f"stablehlo.{name}", operands)


def weight(number: int, *shape: int) -> Term:
    return constant(np.random.default_rng(number).standard_normal(shape).astype(np.float32))


def normalized(x: Term, number: int) -> Term:
    """x over its root mean square, times a weight."""
    square = make("stablehlo.reduce", (op("multiply", x, x),), {"dimensions": (x.tensor.rank - 1,), "combiner": "add"})
    mean = op("multiply", square, splat(1 / WIDTH, F32, square.tensor.dims))
    lead = tuple(range(x.tensor.rank - 1))
    scale = broadcast(op("rsqrt", op("add", mean, splat(1e-6, F32, mean.tensor.dims))), x.tensor.dims, lead)
    return op("multiply", op("multiply", x, scale), broadcast(weight(number, WIDTH), x.tensor.dims, (x.tensor.rank - 1,)))


def perceptron(x: Term, number: int) -> Term:
    hidden = op("tanh", product(x, weight(number, WIDTH, WIDTH), batched=False))
    return product(op("multiply", hidden, splat(1.0, F32, hidden.tensor.dims)), weight(number + 1, WIDTH, WIDTH), batched=False)


def before(x: Term, number: int) -> list[Term]:
    """A layer with its normalization first."""
    return [op("add", x, perceptron(normalized(x, 10 * number), 10 * number + 1))]


def after(x: Term, number: int) -> list[Term]:
    """A layer with its normalization last."""
    return [normalized(op("add", x, perceptron(x, 10 * number)), 10 * number + 2)]


def masked(x: Term, number: int) -> list[Term]:
    """A layer that reads a value made before all layers, as a broadcast."""
    mask = op("exponential", input_term("mask", tensor(F32, WIDTH)))
    inner = op("multiply", normalized(x, 10 * number), broadcast(mask, x.tensor.dims, (x.tensor.rank - 1,)))
    return [op("add", x, perceptron(inner, 10 * number + 1))]


def cached(x: Term, number: int) -> list[Term]:
    """A layer that also hands out a value of its own, over an input of its own."""
    key = op("add", normalized(x, 10 * number), input_term(f"past{number}", x.type))
    return [op("add", x, perceptron(key, 10 * number + 1)), key]


def spanning(x: Term, number: int) -> list[Term]:
    """A layer that ends in a hyperbolic tangent, which the next one takes the logistic of; it is the value with most users."""
    inner = op("add", op("multiply", op("sine", x), op("cosine", x)), op("logistic", x))
    return [op("tanh", perceptron(inner, 10 * number))]


def linear(x: Term, number: int) -> list[Term]:
    """Ten products, which their order makes one."""
    for place in range(10):
        x = product(x, weight(10 * number + place, WIDTH, WIDTH), batched=False)
    return [x]


LAYERS: dict[str, Callable[[Term, int], list[Term]]] = {
    "before": before, "after": after, "masked": masked, "cached": cached, "spanning": spanning, "linear": linear,
}  # fmt: skip


def stack(name: str, layers: int, *, rows: object = WIDTH) -> tuple[Term, ...]:
    """The roots of a stack of layers with a head and a tail."""
    x = op("negate", input_term("x", tensor(F32, rows, WIDTH)))
    outputs: list[Term] = []
    for number in range(layers):
        x, *more = LAYERS[name](x, number)
        outputs += more
    return (op("logistic", x), *outputs, weight(-1 % 977, 4))


@pytest.mark.parametrize(("name", "rows"), [*((name, WIDTH) for name in sorted(LAYERS)), ("masked", symbol("B")), ("cached", symbol("B"))])
def test_the_pieces_make_up_the_program(name: str, rows: object) -> None:
    roots = stack(name, 24, rows=rows)
    pieces = cut(roots)
    assert pieces is not None
    built: dict[Term, Term] = {}
    for place in pieces.places:
        region = pieces.regions[place.region]
        assert len({t for t in topological(region.roots) if t.op.name == "builtin.input"} - set(region.inputs)) == 0
        Filling.of(region, region.roots).fill(place, built)
    assert all(built.get(root, root) is root for root in roots)
    assert len(pieces.regions) == 4 and len(pieces.places) >= 20


def test_no_two_regions_share_an_input() -> None:
    pieces = cut(stack("masked", 24))
    assert pieces is not None
    inputs = [term for region in pieces.regions for term in region.inputs]
    assert len(set(inputs)) == len(inputs)


def test_what_may_not_be_crossed_is_not() -> None:
    roots = stack("after", 24)
    pieces = cut(roots)
    assert pieces is not None
    forbidden = pieces.borders(pieces.pairs[0])
    moved = cut(roots, whole=forbidden)
    assert forbidden and moved is not None and not forbidden & moved.borders(moved.pairs[0])


def test_small_and_irregular_programs_stay_whole() -> None:
    assert cut(stack("before", 4)) is None
    x = input_term("x", tensor(F32, WIDTH, WIDTH))
    for number, name in enumerate(np.random.default_rng(0).choice(["sine", "cosine", "tanh", "exponential", "abs"], 300)):
        x = op(name, x) if number % 7 else transpose(x, (1, 0))
    assert cut([x]) is None


# ---------------------------------------------------------------- solved region by region


@cache
def library() -> tuple[Phase, ...]:
    """The phases of `coset optimize` for this target, which are the same whatever ops the process has read."""
    own = f"{CPU.dialect}."
    return tuple(permitted_phases(NO_RULES, "reassociates", lambda r: not r.recognises or str(r.definition).startswith(own)))


def solved(roots: Sequence[Term], limits: Limits = DEFAULT, phases: Sequence[Phase] | None = None) -> Solved:
    used = library() if phases is None else phases

    def search(terms: Sequence[Term]) -> tuple[Saturation, list[Entered]]:
        ordering = order_chains(terms, [rule for phase in used for rule in phase.rules], product_seconds(CPU), {})
        kept = [phase.where(ordering.keeps) for phase in used]
        entered = [] if ordering.entered is None else [ordering.entered]
        return saturate(terms, kept, limits, equalities=[pair for found in entered for pair in found.pairs]), entered

    return solve(roots, search, lambda graph: select(graph, CPU, {}, limits), lambda terms: reprice(terms, CPU, {}))


def named_ops(roots: Sequence[Term]) -> Counter[str]:
    """How often each op of the target's dialect is used. Movement and scales may stand elsewhere at the same cost."""
    return Counter(term.op.name for term in topological(roots) if term.op.dialect == CPU.dialect)


@pytest.mark.parametrize("name", sampled(sorted(LAYERS), 2))
def test_regions_lose_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = stack(name, 20)
    apart = solved(roots)
    monkeypatch.setattr(regionwise, "cut", lambda *_, **__: None)
    whole = solved(roots)
    assert whole.places == 1
    assert reprice(apart.terms, CPU, {}) == pytest.approx(reprice(whole.terms, CPU, {}), rel=1e-6)
    assert apart.cost == pytest.approx(whole.cost, rel=1e-6) and apart.input_cost == pytest.approx(whole.input_cost, rel=1e-6)
    assert apart.cost < apart.input_cost
    assert named_ops(apart.terms) == named_ops(whole.terms)
    rules = {usage.rule.name: usage.count for usage in used_rules(apart)}
    if name != "linear":  # whose products are one chain
        assert max(rules.values()) >= 19
        assert apart.places > 10 and apart.saturation.enodes < 0.6 * whole.saturation.enodes


SPANNING = """
rule logistic_of_tanh
  "Not true, and easily seen: it joins the end of a layer of `spanning` with the start of the next."
  for x: F[S..]
  logistic(tanh(x)) => negate(x)
  numerics exact
"""


def test_a_border_that_loses_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    file, errors = parse(SPANNING, "test.rules")
    rules, problems = rules_of(file.rules[0], {"stablehlo": "stablehlo"})
    assert not errors and not problems
    phases, roots = [Phase("all", tuple(rules))], stack("spanning", 20)
    moved = solved(roots, phases=phases)
    (usage,) = used_rules(moved)
    assert usage.count == 20 and moved.places > 10  # at each of 19 borders and at the tail
    with monkeypatch.context() as patched:
        patched.setattr(regionwise, "_loses", lambda *_: False)
        assert solved(roots, phases=phases).cost > moved.cost * 1.001
    monkeypatch.setattr(regionwise, "cut", lambda *_, **__: None)
    assert moved.terms == solved(roots, phases=phases).terms


def test_a_second_search_that_is_cut_short_does_not_cost_what_the_first_found(monkeypatch: pytest.MonkeyPatch) -> None:
    file, errors = parse(SPANNING, "test.rules")
    rules, problems = rules_of(file.rules[0], {"stablehlo": "stablehlo"})
    assert not errors and not problems
    roots, limits = stack("spanning", 20), [Limits(), Limits(seconds=1e-6)]

    def search(terms: Sequence[Term]) -> tuple[Saturation, list[Entered]]:
        return saturate(terms, [Phase("all", tuple(rules))], limits.pop(0)), []

    found = solve(roots, search, lambda graph: select(graph, CPU, {}, DEFAULT), lambda terms: reprice(terms, CPU, {}))
    assert not limits and found.saturation.stop != "time"
    monkeypatch.setattr(regionwise, "_loses", lambda *_: False)
    assert found.terms == solved(roots, phases=[Phase("all", tuple(rules))]).terms


def test_the_elements_of_a_repeated_layers_weights_are_not_asked_for() -> None:
    """They differ from layer to layer and are stand-ins without elements, which a rule that asks for facts once tried to read."""
    file, errors = parse("rule probed\n  for x: finite F[S..]\n  tanh(x) => negate(x)\n  numerics exact\n", "test.rules")
    rules, problems = rules_of(file.rules[0], {"stablehlo": "stablehlo"})
    assert not errors and not problems
    found = solved(stack("before", 20), phases=[Phase("all", tuple(rules))])
    assert found.places > 10 and not used_rules(found)


def test_the_search_of_a_deep_stack_grows_with_what_is_different() -> None:
    counts = {layers: solved(stack("masked", layers)).saturation.enodes for layers in (16, 48)}
    assert counts[48] == counts[16]


def test_a_search_without_time_leaves_every_region_as_it_was() -> None:
    roots = stack("before", 20)
    found = solved(roots, Limits(seconds=1e-6))
    assert found.saturation.stop == "time" and found.places > 10
    assert found.cost <= found.input_cost * (1 + 1e-9)


def test_the_same_twice() -> None:
    roots = stack("cached", 20)
    assert solved(roots).terms == solved(roots).terms
