"""Solutions are legal, bounded from below, and best where they say so."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import best_by_trying, layered, problems, shuffled

from coset.extract import highs
from coset.extract.branch import branch
from coset.extract.cost_sets import cost_set_picks
from coset.extract.eliminate import eliminate
from coset.extract.frontier import advance
from coset.extract.greedy import greedy, repaired
from coset.extract.groups import groups_of
from coset.extract.ilp import ExactSolution, solve_exactly
from coset.extract.landmarks import Landmarks
from coset.extract.problem import Picks, Problem, choice, cost_of, find_order
from coset.extract.prune import prune
from coset.extract.solve import SolveEffort, solve
from coset.extract.wide import Left, WidePicks, search

EFFORT = SolveEffort()
WALKED = SolveEffort(width=0)
LADDER = SolveEffort(
    width=0, states=0
)  # without elimination and frontiers, which leave the rest of the ladder nothing to do on problems as small as these
CLOSE = 1e-7  # of HiGHS: its tolerances are 1e-7 on a cost of 1e4 units (scipy.optimize.milp, primal feasibility)


@settings(max_examples=300, deadline=None)
@given(problems(), st.sampled_from([EFFORT, WALKED, LADDER, SolveEffort(width=3)]))
def test_the_ladder_finds_what_trying_everything_finds(problem: Problem, effort: SolveEffort) -> None:
    best = best_by_trying(problem)
    solution = solve(problem, effort)
    if best is None:
        assert solution is None and greedy(problem) is None
        return
    assert solution is not None and solution.method in ("pruned", "exact")
    assert solution.cost == pytest.approx(best, rel=1e-9)
    assert solution.lower_bound <= solution.cost == cost_of(problem, solution.picks)
    assert solution.gap == pytest.approx(0, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_each_method_alone_is_legal_and_in_order(problem: Problem) -> None:
    best = best_by_trying(problem)
    found = greedy(problem)
    if best is None or found is None:
        assert best is None and found is None
        return
    upper = cost_of(problem, found)
    assert upper >= best * (1 - 1e-12)
    exact = solve_exactly(problem, upper, nodes=100, seconds=10)
    cost = upper if exact.picks is None else cost_of(problem, exact.picks)
    assert exact.stop == "optimal" and cost == pytest.approx(best, rel=CLOSE, abs=1e-9)
    assert exact.bound <= best * (1 + CLOSE) + 1e-12
    picks, finished = branch(problem, upper, steps=10_000)
    assert finished and (upper if picks is None else cost_of(problem, picks)) == pytest.approx(best, rel=1e-8)
    groups = groups_of(problem)
    assert groups is not None
    for picks in (eliminate(problem, groups), advance(problem, groups, upper), advance(problem, groups, best)):
        assert picks is not None and cost_of(problem, picks) == pytest.approx(best, rel=1e-12)
    sets = cost_set_picks(problem)
    assert sets is not None
    mended = repaired(problem, sets)
    assert mended is None or find_order(problem, mended) is not None


@settings(max_examples=80, deadline=None)
@given(problems(), st.integers(0, 5))
def test_the_order_of_the_input_changes_no_cost(problem: Problem, seed: int) -> None:
    effort = (EFFORT, LADDER)[seed % 2]
    one, other = solve(problem, effort), solve(shuffled(problem, seed), effort)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert other.cost == pytest.approx(one.cost, rel=1e-9)


@settings(max_examples=80, deadline=None)
@given(problems())
def test_the_same_input_gives_the_same_picks(problem: Problem) -> None:
    one, other = solve(problem, EFFORT), solve(problem, EFFORT)
    assert (one is None and other is None) or (one is not None and other is not None and one.picks == other.picks)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_pruning_keeps_a_best_solution_and_maps_any_other(problem: Problem) -> None:
    pruned = prune(problem)
    found = greedy(problem)
    assert (pruned is None) == (found is None)
    if pruned is None or found is None:
        return
    projected = pruned.project(found)
    assert all(local is not None for local in projected), "a solution of the whole is one of each part"
    joined = pruned.join([local for local in projected if local is not None])
    assert cost_of(problem, joined) <= cost_of(problem, found) * (1 + 1e-12)


def test_a_known_solution_is_never_lost() -> None:
    problem = layered(30, 1)
    best = solve(problem, EFFORT)
    assert best is not None
    again = solve(problem, SolveEffort(width=0, states=0, choices=0, relaxed=0), start=best.picks)
    assert again is not None and again.cost <= best.cost * (1 + 1e-12)


def test_a_part_too_large_for_the_program_is_searched_and_has_a_bound() -> None:
    problem = layered(5, 1)
    exact, loose = solve(problem, EFFORT), solve(problem, SolveEffort(width=0, states=0, choices=0))
    assert exact is not None and loose is not None
    assert loose.method in ("search", "exact") and loose.lower_bound <= exact.cost <= loose.cost


def test_the_integer_program_is_asked_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the search's own solution is handed out, with the search's bound."""
    asked = []

    def program(problem: Problem, upper: float, *, nodes: int, seconds: float, near: float) -> ExactSolution:
        asked.append(nodes)
        return solve_exactly(problem, upper, nodes=nodes, seconds=seconds, near=near)

    def weak(problem: Problem, start: Picks, *, end: float) -> WidePicks:
        every = Left(problem, [tuple(range(len(choices))) for choices in problem.classes])
        return replace(search(problem, start, end=end), bound=0.0, left=every)  # a search that proves nothing

    def nothing(problem: Problem, *, known: float) -> Landmarks:
        return Landmarks(0.0, (), [[0.0] * len(choices) for choices in problem.classes])

    monkeypatch.setattr("coset.extract.solve.solve_exactly", program)
    monkeypatch.setattr("coset.extract.solve.search", weak)
    monkeypatch.setattr("coset.extract.solve.landmarks", nothing)
    monkeypatch.setattr("coset.extract.solve.relaxed", lambda problem, upper, marks: marks)
    monkeypatch.setattr("coset.extract.solve.BRANCH_STEPS", 0)
    problem = layered(5, 1)
    without = solve(problem, replace(LADDER, nodes=None))
    assert not asked and without is not None and (without.method, without.lower_bound) == ("search", 0.0)
    best = solve(problem, LADDER)
    assert asked and best is not None and best.method == "exact" and best.cost <= without.cost


@pytest.mark.parametrize("seed", range(6))
def test_what_is_near_enough_is_no_proof(seed: int) -> None:
    """The cost is no further above the bound than was asked for, and where it may be above it nothing is called optimal."""
    problem = layered(6, seed)
    found = greedy(problem)
    assert found is not None
    upper = cost_of(problem, found)
    exact, loose = (solve_exactly(problem, upper, nodes=1_000, seconds=60, near=near) for near in (0.0, 0.2))
    best = upper if exact.picks is None else cost_of(problem, exact.picks)
    assert exact.stop == "optimal" and loose.bound <= best * (1 + CLOSE)
    cost = upper if loose.picks is None else cost_of(problem, loose.picks)
    assert best * (1 - CLOSE) <= cost <= best * 1.25 and loose.bound >= cost * (0.8 - CLOSE)
    assert loose.stop == "nodes" or cost == pytest.approx(best, rel=CLOSE)


def test_no_time_left_is_said() -> None:
    solution = solve(layered(5, 1), SolveEffort(width=0, seconds=0))
    assert solution is not None and solution.method == "time" and solution.lower_bound <= solution.cost


@pytest.mark.parametrize("seed", range(8))
def test_elimination_frontiers_and_the_integer_program_agree(seed: int) -> None:
    """Wider problems than can be tried out: choices over near classes, some of which point up."""
    generator = random.Random(seed)
    made = [(choice(1.0),)]
    for number in range(1, 60):
        below, above = range(max(0, number - 4), number), range(max(0, number - 4), min(60, number + 2))
        made.append(tuple(
            choice(generator.choice((0.0, 1.0, 2.0, 5.0)) + generator.random(), generator.choices(below if not place else above, k=2))
            for place in range(generator.choice((1, 2, 3)))
        ))  # fmt: skip
    problem = Problem(made, (59,))
    found = [solve(problem, effort) for effort in (SolveEffort(states=0, choices=0), SolveEffort(width=0, choices=0), LADDER)]
    assert all(solution is not None and solution.method in ("exact", "pruned") for solution in found)
    one, *others = [solution.cost for solution in found if solution is not None]
    assert others == [pytest.approx(one, rel=CLOSE)] * 2


def test_a_problem_too_wide_is_left_to_the_others() -> None:
    """Ten classes that share one, which is worth it only for all."""
    wide = Problem([*[(choice(1.0), choice(0.5, [10])) for _ in range(10)], (choice(3.0),), (choice(0.0, range(10)),)], (11,))
    groups = groups_of(wide)
    assert groups is not None and eliminate(wide, groups, width=5) is None
    picks = eliminate(wide, groups)
    assert picks is not None and cost_of(wide, picks) == 8.0
    assert advance(wide, groups, 10.0, states=5) is None
    picks = advance(wide, groups, 10.0)
    assert picks is not None and cost_of(wide, picks) == 8.0


def test_dual_values_are_those_of_scipy_by_either_way() -> None:
    """Of `min costs @ x, matrix @ x <= limits`: both solve the dual, and the one that scipy does not document is there."""
    draw = np.random.default_rng(0)
    matrix = -draw.random((40, 30)) * (draw.random((40, 30)) < 0.4)
    costs, limits = draw.random(30), -draw.random(40)
    rows, columns = np.nonzero(matrix)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=40))])
    found = highs.dual_values(costs, list(rows), list(columns), list(matrix[rows, columns]), limits)
    public = highs._by_linprog(costs, (starts, columns, matrix[rows, columns]), limits)
    assert highs._core() is not None
    assert found is not None and public is not None and found @ limits == pytest.approx(public @ limits)
    for values in (found, public):
        assert (values <= 0).all() and (values @ matrix <= costs + 1e-9).all()


def test_layers_fall_into_parts_and_equal_parts_are_one() -> None:
    pruned = prune(layered(40, 2))
    assert pruned is not None
    assert max(len(part.classes) for part in pruned.parts) <= 5


def test_deep_and_diamond_graphs_need_no_stack_and_no_square() -> None:
    count = 50_000
    chain = Problem([(choice(0.0),), *((choice(1.0, [i]), choice(2.0, [max(0, i - 1)])) for i in range(count))], (count,))
    found = greedy(chain)
    assert found is not None and cost_of(chain, found) <= count
    diamonds = [(choice(1.0),)]
    for i in range(0, 3 * 2_000, 3):
        diamonds += [(choice(1.0, [i]),), (choice(1.0, [i]),), (choice(1.0, [i + 1, i + 2]),)]
    solution = solve(Problem(diamonds, (len(diamonds) - 1,)), EFFORT)
    assert solution is not None and solution.cost == len(diamonds) and solution.method == "pruned"


def test_a_class_that_only_needs_itself_has_no_solution() -> None:
    assert solve(Problem([(choice(1.0, [0]),)], (0,)), EFFORT) is None
    assert solve(Problem([(choice(1.0, [1]),), (choice(1.0, [0]),)], (0,)), EFFORT) is None
