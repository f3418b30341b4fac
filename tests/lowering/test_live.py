"""Live bytes are those of a plain simulation, and an order that lessens them is legal, no worse, and near the best of all orders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coset.dialects
from coset.ir.term import Term, input_term, make
from coset.ir.types import F32, TensorType, tensor
from coset.lowering.arranging.live import LiveStep, Steps, lessened, peak, places_of, steps_of

assert coset.dialects


def bytes_of(term: Term) -> int:
    assert isinstance(term.type, TensorType) and term.type.static is not None
    total = 4
    for dim in term.type.static:
        total *= dim
    return total


@st.composite
def programs(draw: st.DrawFn) -> Steps:
    """Sums of inputs and of each other: broadcasts, which take more than they read, reductions, which take less, and views."""
    pool = [input_term("a", tensor(F32, 4)), input_term("b", tensor(F32, 4))]
    views = set()
    for number in range(draw(st.integers(1, 7))):
        x = draw(st.sampled_from(pool))
        kind = draw(st.sampled_from(("grow", "shrink", "add", "view")))
        rows = x.tensor.static
        assert rows is not None
        if kind == "grow":
            dims = tuple(range(1, 1 + len(rows)))
            pool.append(make("stablehlo.broadcast_in_dim", (x,), {"shape": (2 + number, *rows), "broadcast_dimensions": dims}))
        elif kind == "shrink" and len(rows) > 1:
            pool.append(make("stablehlo.reduce", (x,), {"dimensions": (0,), "combiner": "add"}))
        elif kind == "view":
            pool.append(make("stablehlo.reshape", (x,), {"shape": (1, *rows)}))
            views.add(pool[-1])
        else:
            fitting = [other for other in pool if other.type == x.type]
            pool.append(make("stablehlo.add", (x, draw(st.sampled_from(fitting)))))
    outputs = draw(st.lists(st.sampled_from(pool[2:]), min_size=1, max_size=2))
    plain = steps_of(outputs, outputs)
    return Steps(tuple(LiveStep(s.result, s.reads, s.result in views) for s in plain.steps), tuple(pool[:2]), tuple(outputs))


def orders(given: Steps) -> Iterator[list[int]]:
    """Every order in which operands stand first."""
    place = {step.result: at for at, step in enumerate(given.steps)}
    needs = [{place[read] for read in step.reads if read in place} for step in given.steps]
    stack: list[list[int]] = [[]]
    while stack:
        order = stack.pop()
        if len(order) == len(needs):
            yield order
        stack += [[*order, at] for at in range(len(needs)) if at not in order and needs[at] <= set(order)]


def simulated(given: Steps) -> int:
    """By the definition: at each step what was made and is still read, or is an output."""
    steps = given.steps
    base = {}
    for step in steps:
        base[step.result] = base.get(step.reads[0], step.reads[0]) if step.view else step.result
    made = {step.result for step in steps if not step.view}
    last = {base.get(output, output): len(steps) for output in given.outputs}
    for at, step in enumerate(steps):
        for read in step.reads:
            last[base.get(read, read)] = max(last.get(base.get(read, read), 0), at)
    first = {step.result: at for at, step in enumerate(steps)}
    held = sum(bytes_of(term) for term in given.inputs)
    live = [sum(bytes_of(v) for v in made if first[v] <= at <= last.get(v, first[v])) for at in range(len(steps))]
    return held + max(live, default=0)


@settings(max_examples=200, deadline=None)
@given(programs())
def test_the_peak_is_that_of_a_plain_simulation_in_every_order(given: Steps) -> None:
    for count, order in enumerate(orders(given)):
        assert peak(given.in_order(order), bytes_of) == simulated(given.in_order(order))
        if count > 50:
            break


@settings(max_examples=200, deadline=None)
@given(programs())
def test_a_lessened_order_is_legal_and_no_worse_and_not_better_than_the_best(given: Steps) -> None:
    better = lessened(given, bytes_of)
    assert set(better.steps) == set(given.steps)
    place = places_of(better)
    assert all(place[read] < at for at, step in enumerate(better.steps) for read in step.reads if read in place)
    best = min(peak(given.in_order(order), bytes_of) for order in orders(given))
    assert best <= peak(better, bytes_of) <= peak(given, bytes_of)


def test_what_frees_early_comes_first() -> None:
    """Four large values, each reduced to a small one: made together they take four times what one takes."""
    x = input_term("x", tensor(F32, 8))
    large = [make("stablehlo.broadcast_in_dim", (x,), {"shape": (100 + i, 8), "broadcast_dimensions": (1,)}) for i in range(4)]
    small = [make("stablehlo.reduce", (term,), {"dimensions": (0,), "combiner": "add"}) for term in large]
    total = small[0]
    for term in small[1:]:
        total = make("stablehlo.add", (total, term))
    steps = tuple(LiveStep(term, term.operands) for term in (*large, *small)) + tuple(
        step for step in steps_of([total], [total]).steps if step.result not in (*large, *small)
    )
    given = Steps(steps, (x,), (total,))
    best = min(peak(given.in_order(order), bytes_of) for order, _ in zip(orders(given), range(5_000), strict=False))
    assert peak(given, bytes_of) > 4 * 100 * 8 * 4 and peak(lessened(given, bytes_of), bytes_of) <= 1.02 * best < 110 * 8 * 4


@pytest.mark.parametrize("count", [20_000])
def test_a_long_program_is_ordered_without_a_square(count: int) -> None:
    x = input_term("x", tensor(F32, 4))
    term = x
    for at in range(count):
        term = make(("stablehlo.abs", "stablehlo.floor")[at % 2], (term,))
    steps = steps_of([term], [term])
    assert len(lessened(steps, bytes_of).steps) == count and peak(steps, bytes_of) == 3 * 16
