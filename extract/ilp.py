"""Exact extraction as an integer program for HiGHS: one 0/1 variable for each choice, cycles cut when they show up. A row for each landmark
makes its relaxation worth nearly what the best solution costs, where by itself it takes half of each cycle and pays for nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.extract.graphs import strong_components
from coset.extract.highs import dual_values
from coset.extract.landmarks import SLACK, Landmarks, landmarks
from coset.extract.problem import Picks, Problem, cost_of

CUT_ROUNDS = 30  # of lazy cuts; after them every class of a strong component gets a place in an order
SCALE = 1e4  # the upper bound in the program's own unit: HiGHS's tolerances are absolute
SAME = 1e-9  # relative difference of costs that are one
PROVED = 1e-7  # ... of a cost and HiGHS's bound of it


@dataclass(frozen=True)
class ExactSolution:
    """What the program found: `picks` (None: nothing better than the upper bound) and a lower bound of every solution's cost.

    `stop`: optimal, nodes (HiGHS's count of branches, or near enough) or time. The picks may have a cycle unless it is optimal.
    """

    picks: Picks | None
    bound: float
    stop: str


class _Rows:
    """Rows of a sparse constraint matrix, `row @ x <= limit`."""

    def __init__(self) -> None:
        self.data: list[float] = []
        self.columns: list[int] = []
        self.starts = [0]
        self.limits: list[float] = []

    def add(self, entries: Iterable[tuple[int, float]], limit: float) -> None:
        for column, value in entries:
            self.columns.append(column)
            self.data.append(value)
        self.starts.append(len(self.columns))
        self.limits.append(limit)

    def matrix(self, width: int) -> Any:
        from scipy.sparse import csr_array

        return csr_array((self.data, self.columns, self.starts), shape=(len(self.limits), width))


class _Program:
    """The variables and rows of one problem; `sets` are its landmarks."""

    def __init__(self, problem: Problem, upper: float, sets: Sequence[Sequence[tuple[int, int]]]) -> None:
        self.problem = problem
        self.unit = (upper or 1.0) / SCALE
        self.first: list[int] = []
        costs: list[float] = []
        for choices in problem.classes:
            self.first.append(len(costs))
            costs.extend(entry.cost / self.unit for entry in choices)
        self.costs = np.array(costs)
        self.most = np.array([float(n not in entry.children) for n, choices in enumerate(problem.classes) for entry in choices])
        self.using = [self._users(number) for number in range(len(problem.classes))]
        self.rows = _Rows()
        roots = set(problem.roots)
        for number in range(len(problem.classes)):
            everything = [(column, 1.0) for column in self.columns(number)]
            self.rows.add(everything, 1.0)
            if number in roots:
                self.rows.add([(column, -1.0) for column, _ in everything], -1.0)
            for child, columns in self.using[number].items():
                if child not in roots:
                    self.rows.add([(c, 1.0) for c in columns] + [(c, -1.0) for c in self.columns(child)], 0.0)
        self._cut_pairs()
        for each in sets:
            self.rows.add([(self.first[number] + index, -1.0) for number, index in each], -1.0)

    def _users(self, number: int) -> dict[int, list[int]]:
        """For each child of the class the variables of the choices that need it."""
        found: dict[int, list[int]] = {}
        for index, entry in enumerate(self.problem.classes[number]):
            for child in entry.children if number not in entry.children else ():
                found.setdefault(child, []).append(self.first[number] + index)
        return found

    def columns(self, number: int) -> range:
        """The variables of a class."""
        return range(self.first[number], self.first[number] + len(self.problem.classes[number]))

    def _cut_pairs(self) -> None:
        """Two classes that need each other: at once, for these are the cycles that movement rules make."""
        for number, using in enumerate(self.using):
            for child in using:
                if child > number and number in self.using[child]:
                    self.cut([number, child])

    def cut(self, cycle: Sequence[int]) -> None:
        """Forbid the picks that go once round `cycle`."""
        edges = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        self.rows.add([(column, 1.0) for user, child in edges for column in self.using[user][child]], len(cycle) - 1.0)

    def picks(self, x: Any) -> Picks:
        """What an integer point picks, for the classes that its roots reach; it may have cycles."""
        found: Picks = {}
        stack = list(self.problem.roots)
        while stack:
            number = stack.pop()
            if number in found:
                continue
            values = [x[column] for column in self.columns(number)]
            found[number] = int(np.argmax(values))
            stack.extend(self.problem.classes[number][found[number]].children)
        return found


def trivial_bound(problem: Problem) -> float:
    """The cheapest choice of each root, summed."""
    return sum(min(entry.cost for entry in problem.classes[root]) for root in set(problem.roots))


def relaxed(problem: Problem, upper: float, marks: Landmarks) -> Landmarks:
    """The landmarks with the bound and the rises of the linear relaxation, where those are higher (`upper`: the cost of a known solution).

    What dual values bound from below they do whatever the solver's rounding was: a choice that they make worth more than it costs is taken.
    """
    program = _Program(problem, upper, marks.sets)
    rows = np.repeat(np.arange(len(program.rows.limits)), np.diff(program.rows.starts))
    limits = np.array(program.rows.limits)
    found = dual_values(program.costs, rows.tolist(), program.rows.columns, program.rows.data, limits)
    if found is None:
        return marks
    duals = np.minimum(0.0, found)
    rest = program.costs - np.bincount(program.rows.columns, np.array(program.rows.data) * duals[rows], len(program.costs))
    least = float(limits @ duals + np.minimum(0.0, rest).sum()) * program.unit * (1 - SLACK)
    bound = max(marks.bound, least)
    over = (np.maximum(0.0, rest) * program.unit + (least - bound)).tolist()
    rises = [
        [max(rise + (marks.bound - bound), other) for rise, other in zip(each, over[first : first + len(each)], strict=True)]
        for first, each in zip(program.first, marks.rises, strict=True)
    ]
    return Landmarks(bound, marks.sets, rises)


def solve_exactly(problem: Problem, upper: float, *, nodes: int, seconds: float, near: float = 0.0) -> ExactSolution:
    """The cheapest picks below `upper` (the cost of a known solution), up to the share `near` of their cost.

    HiGHS is limited by `nodes` branches, which is deterministic; `seconds` is a safety limit over all rounds.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # 0.3 s, and most programs are solved without it

    program = _Program(problem, upper, landmarks(problem).sets)
    width = len(program.costs)
    integrality: Any = np.ones(width)
    bounds = Bounds(np.zeros(width), program.most)
    costs = program.costs
    end = time.monotonic() + seconds
    bound = trivial_bound(problem)
    for turn in range(CUT_ROUNDS + 1):
        if turn == CUT_ROUNDS:
            costs, integrality, bounds = _order_variables(program)
        rows = program.rows.matrix(len(costs))
        result = milp(
            costs,
            integrality=integrality,
            bounds=bounds,
            constraints=LinearConstraint(rows, -np.inf, np.array(program.rows.limits)),
            options={"node_limit": nodes, "time_limit": max(0.1, end - time.monotonic()), "mip_rel_gap": near},
        )
        if result.mip_dual_bound is not None and np.isfinite(result.mip_dual_bound):
            bound = max(bound, min(upper, float(result.mip_dual_bound) * program.unit * (1 - SAME)))
        ended = result.status == 0
        stop = "optimal" if ended else "time" if time.monotonic() >= end else "nodes"
        if result.x is None:
            return ExactSolution(None, bound, stop)
        picks = program.picks(result.x)
        cycles = _cycles(problem, picks)
        if not cycles:
            return _without_cycles(problem, picks, bound, upper, "" if ended else stop)
        if not ended:
            return ExactSolution(picks, bound, stop)
        for cycle in cycles:
            program.cut(cycle)
    raise AssertionError("order variables left a cycle")


def _without_cycles(problem: Problem, picks: Picks, bound: float, upper: float, stop: str) -> ExactSolution:
    """The answer where picks have no cycle; `stop`: why the search for better ones ended, empty where it had none left to look at."""
    cost = cost_of(problem, picks)
    bound = min(bound, cost)
    stop = stop or ("nodes" if bound < cost * (1 - PROVED) else "optimal")
    return ExactSolution(picks if cost < upper * (1 - SAME) else None, bound, stop)


def _cycles(problem: Problem, picks: Picks) -> list[list[int]]:
    """Cycles of the picks: from every strong component a short one through each of its classes, without repeats."""
    edges = [(number, child) for number in sorted(picks) for child in problem.classes[number][picks[number]].children]
    groups = [group for group in strong_components(edges) if len(group) > 1]
    if not groups:
        return []
    import networkx as nx  # hundreds of modules, which picks without a cycle do not need

    graph: nx.DiGraph = nx.DiGraph(edges)
    found: dict[frozenset[int], list[int]] = {}
    for group in groups:
        inner = graph.subgraph(group)
        for number in sorted(group)[:50]:
            cycle = _cycle_through(inner, number)
            found.setdefault(frozenset(cycle), cycle)
    return [found[key] for key in sorted(found, key=sorted)]


def _cycle_through(graph: Any, number: int) -> list[int]:
    """A shortest cycle through a class of a strong component."""
    import networkx as nx

    paths = ([number, *nx.shortest_path(graph, child, number)[:-1]] for child in sorted(graph.successors(number)))
    return min(paths, key=len)


def _order_variables(program: _Program) -> tuple[Any, Any, Any]:
    """Make the program acyclic by itself: within a strong component a class stands after its picked children."""
    from scipy.optimize import Bounds

    groups = strong_components((user, child) for user, using in enumerate(program.using) for child in using)
    width = len(program.costs)
    place: dict[int, int] = {}
    size: dict[int, int] = {}
    for group in sorted((sorted(g) for g in groups if len(g) > 1), key=lambda g: g[0]):
        for number in group:
            place[number] = width + len(place)
            size[number] = len(group)
    component = {c: n for n, g in enumerate(groups) for c in g}
    for user, using in enumerate(program.using):
        for child, columns in using.items():
            if user in place and child in place and component[user] == component[child]:
                length = float(size[user])
                entries = [(place[child], 1.0), (place[user], -1.0), *((column, length) for column in columns)]
                program.rows.add(entries, length - 1.0)
    upper = np.concatenate([program.most, [size[number] - 1.0 for number in place]])
    costs = np.concatenate([program.costs, np.zeros(len(place))])
    integrality = np.concatenate([np.ones(width), np.zeros(len(place))])
    return costs, integrality, Bounds(np.zeros(len(upper)), upper)
