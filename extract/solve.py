"""The ladder over one problem: prune; then for each part elimination where it is narrow, else greedy, and what proves or betters its
solution: branching, the walk over frontiers, the integer program where it is small enough, and the bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import fsum

from coset.extract.branch import branch
from coset.extract.eliminate import WIDEST, eliminate
from coset.extract.frontier import STATES, advance
from coset.extract.greedy import greedy
from coset.extract.groups import groups_of
from coset.extract.ilp import relaxed_bound, solve_exactly, trivial_bound
from coset.extract.problem import Picks, Problem, cost_of
from coset.extract.prune import Part, prune

BRANCH_STEPS = 3_000  # of the plain search (about 20 ms) before HiGHS is asked
METHODS = ("pruned", "exact", "nodes", "greedy", "time")  # from the strongest to the weakest


@dataclass(frozen=True)
class Effort:
    """When extraction stops trying: a part is solved by elimination where that joins at most `width` classes at once (0: never), and
    over frontiers where at most `states` sets come up (0: never). Any other with more than `choices` choices stays greedy, and with
    more than `relaxed` choices has a trivial bound; HiGHS stops at `nodes` branches for 1,000 choices of a part, fewer for more.
    `seconds`, over all, is a safety limit: a result that it cut short says `time` and may differ from run to run."""

    width: int = WIDEST
    states: int = STATES
    choices: int = 4_000
    relaxed: int = 20_000
    nodes: int = 50
    seconds: float = 60.0


@dataclass(frozen=True)
class Solution:
    """Picks for the classes that the roots need, their cost, a bound that no solution undercuts, and how it was found.

    `method`, of the weakest part: pruned (nothing was left to choose), exact (proved best), nodes (best so far when
    HiGHS had branched often enough), greedy (too large for HiGHS), time (best so far at the safety limit).
    """

    picks: Picks
    cost: float
    lower_bound: float
    method: str

    @property
    def gap(self) -> float:
        """How far the cost may be above the best, as a share of the cost."""
        return 0.0 if self.cost <= 0 else max(0.0, (self.cost - self.lower_bound) / self.cost)


def solve(problem: Problem, effort: Effort, *, start: Picks | None = None) -> Solution | None:
    """The cheapest picks that the effort allows, never dearer than `start` (a known solution); None when a root has none."""
    pruned = prune(problem)
    if pruned is None:
        return None
    starts = pruned.project(start) if start is not None else [None] * len(pruned.parts)
    end = time.monotonic() + effort.seconds
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
    if method in ("pruned", "exact"):
        bound = cost
    if start is not None and cost_of(problem, start) < cost:
        picks, cost = start, cost_of(problem, start)
    return Solution(picks, cost, min(bound, cost), method)


def _solve_part(part: Part, start: Picks | None, effort: Effort, end: float) -> Solution:
    problem = part.problem
    size = sum(len(choices) for choices in problem.classes)
    if size == len(problem.classes):
        picks = dict.fromkeys(range(size), 0)
        cost = cost_of(problem, picks)
        return Solution(picks, cost, cost, "pruned")
    groups = groups_of(problem)
    narrow = eliminate(problem, groups, width=effort.width) if groups and effort.width else None
    if narrow is not None:
        cost = cost_of(problem, narrow)
        return Solution(narrow, cost, cost, "exact")
    found = greedy(problem, starts=() if start is None else (start,))
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
    if size > effort.choices:
        bound = relaxed_bound(problem, cost) if size <= effort.relaxed else trivial_bound(problem)
        return Solution(found, cost, min(bound, cost), "greedy")
    short, finished = branch(problem, cost, steps=BRANCH_STEPS)
    candidates = [found] if short is None else [found, short]
    if finished:
        best = candidates[-1]
        cost = cost_of(problem, best)
        return Solution(best, cost, cost, "exact")
    exact = solve_exactly(problem, cost, nodes=max(1, effort.nodes * 1_000 // size), seconds=left)
    better = exact.picks
    if better is not None and exact.stop != "optimal":
        better = greedy(problem, starts=(better,))
    if better is not None:
        candidates.append(better)
    best = min(candidates, key=lambda each: cost_of(problem, each))
    cost = cost_of(problem, best)
    bound = cost if exact.stop == "optimal" else min(exact.bound, cost)
    return Solution(best, cost, bound, "exact" if exact.stop == "optimal" else exact.stop)
