"""The ladder over one problem: prune; then for each part elimination where it is narrow, else greedy, and what proves or betters its
solution: the walk over frontiers, branching, the search with prices, the integer program where it is small enough."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import fsum

from coset.extract.branch import branch
from coset.extract.eliminate import WIDEST, eliminate
from coset.extract.frontier import STATES, advance
from coset.extract.greedy import greedy
from coset.extract.groups import groups_of
from coset.extract.ilp import relaxed, solve_exactly, trivial_bound
from coset.extract.landmarks import landmarks
from coset.extract.problem import Picks, Problem, cost_of
from coset.extract.prune import ProblemPart, prune
from coset.extract.wide import WidePicks, search, without_dear

BRANCH_STEPS = 3_000  # of the plain search (about 20 ms) before HiGHS is asked
SAME = 1e-9  # relative difference of costs that are one
SHRUNK = 0.9  # of the choices of a part: where landmarks leave no more, it is pruned and cut into parts again
METHODS = ("pruned", "exact", "nodes", "search", "time")  # from the strongest to the weakest
PROVED = METHODS[:2]


@dataclass(frozen=True)
class SolveEffort:
    """When extraction stops trying: a part is solved by elimination where that joins at most `width` classes at once (0: never), and
    over frontiers where at most `states` sets come up (0: never) in one with at most `relaxed` choices. For any other there is a search
    and a bound, which the linear relaxation makes better in one of that size; only one with at most `choices` choices is given to HiGHS,
    which stops at `nodes` branches for 1,000 choices, fewer for more (None: it is not asked). At more than 1,000 it also stops where the
    best is cheaper by a share of `near` at most: prices are not that good, and to prove it takes as long as to find it. `seconds`, over
    all, is a safety limit: a result that it cut short says `time` and may differ from run to run."""

    width: int = WIDEST
    states: int = STATES
    choices: int = 4_000
    relaxed: int = 20_000
    nodes: int | None = 50
    near: float = 0.005
    seconds: float = 60.0


@dataclass(frozen=True)
class Solution:
    """Picks for the classes that the roots need, their cost, a bound that no solution undercuts, and how it was found.

    `method`, of the weakest part: pruned (nothing was left to choose), exact (proved best), nodes (best so far when
    HiGHS had branched often enough, or was near enough), search (too large for HiGHS), time (best so far at the safety limit).
    """

    picks: Picks
    cost: float
    lower_bound: float
    method: str

    @property
    def gap(self) -> float:
        """How far the cost may be above the best, as a share of the cost."""
        return 0.0 if self.cost <= 0 else max(0.0, (self.cost - self.lower_bound) / self.cost)


def solve(problem: Problem, effort: SolveEffort, *, start: Picks | None = None) -> Solution | None:
    """The cheapest picks that the effort allows, never dearer than `start` (a known solution); None when a root has none."""
    pruned = prune(problem)
    if pruned is None:
        return None
    starts = pruned.project(start) if start is not None else [None] * len(pruned.parts)
    end = time.monotonic() + effort.seconds
    if any(_is_large(part.problem, effort) for part in pruned.parts):  # so that what comes out is never worse than greedy by itself
        whole = greedy(problem, starts=() if start is None else (start,))
        assert whole is not None, "pruning found a solution"
        starts = [
            known if local is None or not _is_large(part.problem, effort) else local
            for part, known, local in zip(pruned.parts, starts, pruned.project(whole), strict=True)
        ]
    seen: dict[object, Solution] = {}  # repeated layers are equal parts
    solved = []
    for part, known in zip(pruned.parts, starts, strict=True):
        key = (part.problem, None if known is None else tuple(sorted(known.items())))
        if key not in seen:
            seen[key] = _solve_part(part, known, effort, end)
        solved.append(seen[key])
    picks = pruned.join([part.picks for part in solved])
    cost = cost_of(problem, picks)
    method = max((part.method for part in solved), key=METHODS.index, default="pruned")
    bound = min(fsum(part.lower_bound for part in solved), cost)
    if method in PROVED:
        bound = cost
    if start is not None and cost_of(problem, start) < cost:
        picks, cost = start, cost_of(problem, start)
    return Solution(picks, cost, min(bound, cost), method)


def _is_large(problem: Problem, effort: SolveEffort) -> bool:
    return _size(problem) > max(1, effort.choices)


def _size(problem: Problem) -> int:
    return sum(map(len, problem.classes))


def _solve_part(part: ProblemPart, start: Picks | None, effort: SolveEffort, end: float) -> Solution:
    problem = part.problem
    size = _size(problem)
    if size == len(problem.classes):
        picks = dict.fromkeys(range(size), 0)
        cost = cost_of(problem, picks)
        return Solution(picks, cost, cost, "pruned")
    groups = groups_of(problem)
    narrow = eliminate(problem, groups, width=effort.width) if groups and effort.width else None
    if narrow is not None:
        cost = cost_of(problem, narrow)
        return Solution(narrow, cost, cost, "exact")
    known = start if _is_large(problem, effort) else None
    found = known or greedy(problem, starts=() if start is None else (start,))
    assert found is not None, "pruning left a part without a solution"
    cost = cost_of(problem, found)
    left = end - time.monotonic()
    if left <= 0:
        return Solution(found, cost, trivial_bound(problem), "time")
    if cost == 0:
        return Solution(found, 0.0, 0.0, "exact")
    walked = advance(problem, groups, cost, states=effort.states) if groups and effort.states and size <= effort.relaxed else None
    if walked is not None:
        cost = cost_of(problem, walked)
        return Solution(walked, cost, cost, "exact")
    if size <= effort.choices:
        short, finished = branch(problem, cost, steps=BRANCH_STEPS)
        found, cost = (found, cost) if short is None else (short, cost_of(problem, short))
        if finished:
            return Solution(found, cost, cost, "exact")
    return _searched(problem, found, effort, end)


def _searched(problem: Problem, known: Picks, effort: SolveEffort, end: float) -> Solution:
    """The solution by search from `known` picks, then by what it leaves open: the rest, or a linear program."""
    size = _size(problem)
    searched = search(problem, known, end=end)
    cost = cost_of(problem, searched.picks)
    if searched.stopped:
        return Solution(searched.picks, cost, searched.bound, "time")
    marked = _marked(searched, cost, effort)
    found, bound = marked.picks, marked.bound
    if bound >= cost * (1 - SAME):
        return Solution(found, cost, cost, "exact")
    if _size(marked.left.problem) <= SHRUNK * _size(searched.left.problem):
        return _of_the_rest(problem, marked, effort, end)
    if size > effort.choices or effort.nodes is None:
        return Solution(found, cost, bound, "search")
    return _by_program(problem, marked, effort.nodes * 1_000 // size, effort.near if size > 1_000 else 0.0, end)


def _marked(searched: WidePicks, cost: float, effort: SolveEffort) -> WidePicks:
    """With the bound of landmarks, where that is the better one, and without the choices that they show to be too dear."""
    marks = landmarks(searched.left.problem, known=searched.bound)
    if searched.bound < marks.bound < cost * (1 - SAME) and _size(searched.left.problem) <= effort.relaxed:
        marks = relaxed(searched.left.problem, cost, marks)
    if marks.bound >= cost * (1 - SAME):
        return replace(searched, bound=cost)
    return replace(searched, bound=max(searched.bound, marks.bound), left=without_dear(searched.left, marks.bound, marks.rises, cost))


def _of_the_rest(problem: Problem, searched: WidePicks, effort: SolveEffort, end: float) -> Solution:
    """The best of the choices that a better solution may have, a problem of its own."""
    cost = cost_of(problem, searched.picks)
    left = searched.left
    known = None
    if all(index in left.kept[number] for number, index in searched.picks.items()):
        known = {number: left.kept[number].index(index) for number, index in searched.picks.items()}
    rest = solve(left.problem, replace(effort, seconds=max(0.0, end - time.monotonic())), start=known)
    if rest is None:
        return Solution(searched.picks, cost, cost, "exact")
    bound = max(searched.bound, rest.lower_bound)
    picks = left.put_back(rest.picks) if rest.cost < cost else searched.picks
    cost = min(cost, cost_of(problem, picks))
    return Solution(picks, cost, cost if rest.method in PROVED else min(bound, cost), "exact" if rest.method in PROVED else rest.method)


def _by_program(problem: Problem, searched: WidePicks, nodes: int, near: float, end: float) -> Solution:
    """What HiGHS finds among the choices that a better solution may have."""
    cost = cost_of(problem, searched.picks)
    exact = solve_exactly(searched.left.problem, cost, nodes=max(1, nodes), near=near, seconds=max(0.0, end - time.monotonic()))
    better = None if exact.picks is None else searched.left.put_back(exact.picks)
    if better is not None and exact.stop != "optimal":
        better = greedy(problem, starts=(better,))
        better = None if better is None else search(problem, better, end=end).picks
    best = min((each for each in (searched.picks, better) if each is not None), key=lambda each: cost_of(problem, each))
    cost = cost_of(problem, best)
    if exact.stop == "optimal":
        return Solution(best, cost, cost, "exact")
    return Solution(best, cost, min(max(searched.bound, exact.bound), cost), exact.stop)
