"""Local search under a judge: never worse than its starts, acyclic, the same again, and better where sums mislead."""

from __future__ import annotations

from math import fsum

from hypothesis import given, settings
from hypothesis import strategies as st
from problems import best_by_trying, problems

from coset.extract.climb import climb
from coset.extract.greedy import greedy
from coset.extract.problem import Picks, Problem, choice, cost_of, find_order, needed


def each(number: int, index: int) -> tuple[int, int]:
    """Every choice is a kind of its own."""
    return number, index


@settings(max_examples=300, deadline=None)
@given(problems(), st.integers(1, 12))
def test_it_is_never_worse_than_its_start_and_keeps_to_its_number(problem: Problem, most: int) -> None:
    start = greedy(problem)
    if start is None:
        return
    calls: list[Picks] = []

    def judge(picks: Picks) -> float:
        """Dearer for each further child: no sum of what choices cost."""
        assert find_order(problem, picks) is not None
        calls.append(dict(picks))
        return cost_of(problem, picks) * (1 + len(needed(problem, picks)) % 3)

    found = climb(problem, [start], each, judge, most=most)
    assert found.cost == judge(found.picks) <= judge(start)
    assert found.judged == len(calls) - 2 <= max(1, most)
    again = climb(problem, [start], each, judge, most=most)
    assert (again.picks, again.cost, again.judged) == (found.picks, found.cost, found.judged)


@settings(max_examples=200, deadline=None)
@given(problems(classes=4))
def test_under_the_sum_itself_it_undoes_a_bad_start(problem: Problem) -> None:
    """From the input's picks, one move after the other, it comes to what no single move betters."""
    start = greedy(problem)
    if start is None:
        return
    found = climb(problem, [start], each, lambda picks: cost_of(problem, picks), most=500)
    best = best_by_trying(problem)
    assert best is not None and best - 1e-9 <= found.cost <= cost_of(problem, start)


def test_places_of_one_kind_move_together() -> None:
    """Eight layers, each of which loses alone and gains with all the others: a search place by place would stay where it is."""
    layers = 8
    made = [(choice(0.0),)]
    for place in range(layers):
        made.append((choice(1.0, [place]), choice(1.1, [place])))
    problem = Problem(made, (layers,))

    def judge(picks: Picks) -> float:
        others = [picks[place] for place in range(1, layers + 1)]
        return 1.0 if all(others) else fsum(problem.classes[place][picks[place]].cost for place in range(1, layers + 1))

    start = dict.fromkeys(range(layers + 1), 0)
    assert climb(problem, [start], each, judge, most=100).cost == layers
    together = climb(problem, [start], lambda number, index: (number > 0, index), judge, most=2)
    assert together.cost == 1.0 and together.judged == 2


def test_a_move_that_is_a_cycle_is_made_where_it_can_be() -> None:
    """Two classes that may each be made from the other: only one of them moves."""
    made = [(choice(0.0),), (choice(5.0, [0]), choice(1.0, [2])), (choice(5.0, [0]), choice(1.0, [1]))]
    problem = Problem(made, (1, 2))
    start = {0: 0, 1: 0, 2: 0}
    found = climb(problem, [start], lambda number, index: index, lambda picks: cost_of(problem, picks), most=10)
    assert found.cost == 6.0 and find_order(problem, found.picks) is not None


def test_the_best_start_is_where_it_begins() -> None:
    problem = Problem([(choice(2.0), choice(1.0), choice(3.0))], (0,))
    found = climb(problem, [{0: 2}, {0: 1}, {0: 0}], each, lambda picks: cost_of(problem, picks), most=3)
    assert found.picks == {0: 1} and found.judged == 3
