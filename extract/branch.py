"""Exact extraction of a small part by branching over needed classes: for most parts sooner done than HiGHS has started."""

from __future__ import annotations

from dataclasses import dataclass

from coset.extract.problem import Picks, Problem, find_order

SAME = 1e-9  # relative difference of costs that are one


@dataclass(frozen=True)
class _State:
    cost: float
    open_cost: float  # the least that the open classes cost
    picks: Picks
    open: tuple[int, ...]


def branch(problem: Problem, upper: float, *, steps: int) -> tuple[Picks | None, bool]:
    """The cheapest picks below `upper`, or None, and whether the search came to its end within `steps` states.

    Every open class is needed, so a state costs at least its picks and the cheapest choice of each open class.
    """
    least = [min((entry.cost for entry in choices), default=0.0) for choices in problem.classes]
    best: Picks | None = None
    limit = upper * (1 - SAME)
    roots = tuple(dict.fromkeys(problem.roots))
    stack = [_State(0.0, sum(least[root] for root in roots), {}, roots)]
    while stack:
        state = stack.pop()
        if state.cost + state.open_cost >= limit:
            continue
        if not state.open:
            if find_order(problem, state.picks) is not None:
                best, limit = state.picks, state.cost * (1 - SAME)
            continue
        steps -= 1
        if steps < 0:
            return best, False
        number = min(state.open, key=lambda each: (len(problem.classes[each]), each))
        rest = tuple(each for each in state.open if each != number)
        children = [_child(problem, state, number, index, rest, least) for index in range(len(problem.classes[number]))]
        stack.extend(sorted(children, key=lambda each: -(each.cost + each.open_cost)))  # the most promising on top
    return best, True


def _child(problem: Problem, state: _State, number: int, index: int, rest: tuple[int, ...], least: list[float]) -> _State:
    entry = problem.classes[number][index]
    new = tuple(child for child in entry.children if child not in state.picks and child != number and child not in rest)
    open_cost = state.open_cost - least[number] + sum(least[child] for child in new)
    return _State(state.cost + entry.cost, open_cost, {**state.picks, number: index}, rest + new)
