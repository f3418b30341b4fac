"""The search for parts that no exact method holds: never worse than its start, with bounds that hold, and near what was planted."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from problems import best_by_trying, problems

from benchmarks.shared_merges import shared_merges
from coset.extract.acyclic import Acyclic
from coset.extract.core import best_near
from coset.extract.forwards import without_forwards
from coset.extract.greedy import greedy, tree_order
from coset.extract.lagrange import price
from coset.extract.moves import Moves
from coset.extract.problem import Choice, Picks, Problem, choice, cost_of, find_order
from coset.extract.solve import SolveEffort, solve
from coset.extract.wide import search

SEARCHED = SolveEffort(width=0, states=0, choices=0)


def small(seed: int) -> Problem:
    """A small e-graph whose choices point anywhere, so that there are cycles."""
    draw = random.Random(seed)
    count = draw.randint(3, 8)
    made = [
        tuple(
            choice(draw.choice((0.0, 1.0, 2.0, 5.0)) + draw.random(), draw.choices(range(count), k=draw.randint(0, 3)))
            for _ in range(draw.randint(1, 3))
        )
        for _ in range(count)
    ]
    return Problem(made, (0, draw.randrange(count)))


def best_by_branching(problem: Problem) -> float:
    """The least cost over all picks of the classes that are needed, one after the other: no bound is used."""
    best = float("inf")
    stack: list[tuple[Picks, tuple[int, ...]]] = [({}, problem.roots)]
    while stack:
        picks, open_classes = stack.pop()
        left = [number for number in open_classes if number not in picks]
        if not left:
            if find_order(problem, picks) is not None:
                best = min(best, cost_of(problem, picks))
            continue
        for index, entry in enumerate(problem.classes[left[0]]):
            stack.append(({**picks, left[0]: index}, (*left[1:], *entry.children)))
    return best


@pytest.mark.parametrize("seed", range(100))
def test_small_problems_with_cycles_are_solved_as_trying_everything_does(seed: int) -> None:
    problem = small(seed)
    best = best_by_trying(problem)
    for effort in (SolveEffort(), SolveEffort(width=0, states=0)):
        solution = solve(problem, effort)
        assert (solution is None) == (best is None)
        if solution is not None:
            assert solution.cost == pytest.approx(best, rel=1e-9) and solution.method in ("pruned", "exact")


@settings(max_examples=200, deadline=None)
@given(problems())
def test_the_search_is_legal_no_worse_than_its_start_and_its_bound_holds(problem: Problem) -> None:
    best, start = best_by_trying(problem), greedy(problem)
    if best is None or start is None:
        return
    found = search(problem, start)
    assert find_order(problem, found.picks) is not None
    assert best * (1 - 1e-12) <= cost_of(problem, found.picks) <= cost_of(problem, start) * (1 + 1e-12)
    assert found.bound <= best * (1 + 1e-12) and price(problem, cost_of(problem, start)).bound <= best * (1 + 1e-12)
    assert search(problem, start) == found
    if cost_of(problem, found.picks) > best * (1 + 1e-9):
        left = best_by_trying(found.left.problem)
        assert left == pytest.approx(best), "what could be better is still there"


@settings(max_examples=200, deadline=None)
@given(problems())
def test_without_forwards_the_best_stays(problem: Problem) -> None:
    best = best_by_trying(problem)
    smaller, kept = without_forwards(problem)
    assert [tuple(problem.classes[n][i] for i in indices) for n, indices in enumerate(kept)] == list(smaller.classes)
    found = solve(smaller, SolveEffort())
    assert (best is None) == (found is None)
    if best is not None and found is not None:
        assert found.cost == pytest.approx(best, rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_a_core_is_no_dearer_than_its_start_and_legal(problem: Problem) -> None:
    start = greedy(problem)
    if start is not None:
        _, finite, _ = tree_order(problem, [1] * len(problem.classes))
        ranked = [
            (n, i)
            for n, choices in enumerate(problem.classes)
            for i, e in enumerate(choices)
            if all(child in finite for child in e.children)
        ]
        near, _ = best_near(problem, start, ranked)
        assert find_order(problem, near) is not None and cost_of(problem, near) <= cost_of(problem, start)


@pytest.mark.parametrize("seed", range(5))
def test_a_move_that_is_taken_back_leaves_no_trace(seed: int) -> None:
    problem = shared_merges(300, seed).problem
    order, picks, trees = tree_order(problem, [1] * len(problem.classes))
    moves = Moves(problem, picks, order, trees)
    moves.run(order)
    before = dict(moves.picks), list(moves.refs)
    mark = len(moves.done)
    for number in order:
        if moves.refs[number]:
            for index in range(len(problem.classes[number])):
                moves._switch(number, index)
    moves._take_back(mark)
    assert (moves.picks, moves.refs) == before
    assert moves.cost == pytest.approx(cost_of(problem, moves.picks))


def test_there_is_room_before_the_first_class_of_an_order() -> None:
    """mamba_like: a class that was moved before the first one counted as one that cannot be computed."""
    acyclic = Acyclic([[] for _ in range(40)], list(range(40)))
    for first, second in itertools.pairwise(range(40)):
        assert acyclic.allows(first, [second])
        acyclic.below[first] = [second]
    assert acyclic.ordered() == list(reversed(range(40)))
    assert all(not acyclic.allows(39, [number]) for number in range(39))


def test_an_order_is_mended_or_a_cycle_is_seen() -> None:
    acyclic = Acyclic([[], [0], [1], [2]], [0, 1, 2, 3])
    assert not acyclic.allows(1, [3]) and not acyclic.allows(0, [0])
    acyclic.below[2] = []
    assert acyclic.allows(1, [2]) and acyclic.ordered().index(2) < acyclic.ordered().index(1)


@pytest.mark.parametrize("seed", range(4))
def test_no_solution_is_cheaper_than_the_planted_one(seed: int) -> None:
    """By trying everything where that is possible, and by the integer program where it is not."""
    tiny = shared_merges(34, seed, towers=1, width=3)
    assert best_by_branching(tiny.problem) == pytest.approx(tiny.cost)
    planted = shared_merges(700, seed)
    solution = solve(planted.problem, SolveEffort(nodes=10_000))
    assert solution is not None and solution.method == "exact" and solution.cost == pytest.approx(planted.cost, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_shared_merges_are_found_that_greedy_misses(seed: int) -> None:
    planted = shared_merges(3_000, seed)
    start = greedy(planted.problem)
    assert start is not None and cost_of(planted.problem, start) > 1.15 * planted.cost
    solution = solve(planted.problem, SEARCHED)
    assert solution is not None and solution.method == "search"
    assert solution.lower_bound <= planted.cost <= solution.cost * (1 + 1e-9) and solution.cost <= 1.01 * planted.cost
    again = solve(planted.problem, SEARCHED)
    assert again is not None and again.picks == solution.picks


def test_a_search_without_time_returns_its_start() -> None:
    problem = shared_merges(500, 0).problem
    start = greedy(problem)
    assert start is not None
    found = search(problem, start, end=0.0)
    assert found.stopped and cost_of(problem, found.picks) <= cost_of(problem, start)


def test_a_class_that_only_cycles_keep_alive_is_no_trouble() -> None:
    loop: list[tuple[Choice, ...]] = [(choice(5.0), choice(1.0, [1])), (choice(0.0, [2]),), (choice(0.0, [1]),)]
    problem = Problem(loop, (0,))
    start = greedy(problem)
    assert start is not None and search(problem, start).picks == {0: 0}
