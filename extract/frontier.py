"""Exact extraction of a part that is too wide for elimination: forward over the classes, users first, over the sets of what is needed.

A state is the set of classes that are needed and not computed yet, with the least cost that leads to it. Each step takes one class (or
strong component) and computes it in every way in each state that needs it. Of the 2^w sets of a frontier of w classes few come up, and of
these few can still lead to less than a known solution: what a state costs at least from here on is read off the prices of the linear
relaxation, which split the cost of a class among those that may use it (branch and bound by states; Dijkstra's order is not needed,
since all states stand at the same class).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.extract.groups import StrongComponent
from coset.extract.highs import dual_values
from coset.extract.problem import Picks, Problem, needed
from coset.ir.op import Array

SLOTS = 63  # bits of a state: classes that are needed at once in some state
STATES = 1 << 21  # kept in all steps together: about 0.5 s, and 32 MiB to walk back on
AT_ONCE = 1 << 18  # of one step
SLACK = 1e-9  # what rounding may do to a bound
ROUNDS = 8  # of making the prices inside a strong component consistent

Prices = dict[tuple[int, int], float]  # (user, class): what of the class's cost the user is charged


@dataclass(frozen=True)
class _Step:
    """The states after a step: which state before each came from, and by which way (-1: nothing of the group is needed)."""

    group: StrongComponent
    parents: Array
    ways: Array


def advance(problem: Problem, groups: Sequence[StrongComponent], upper: float, *, states: int = STATES) -> Picks | None:
    """Picks of least cost for the classes that the roots need, none dearer than `upper`, the cost of a known solution; None where more
    than `states` sets come up."""
    order = _order(problem, groups)
    if order is None:
        return None
    prices = _prices(problem)
    worth = _consistent(problem, order, prices)
    walk = _Walk(problem, prices, worth, upper * (1 + SLACK), states)
    steps: list[_Step] = []
    for group in order:
        step = walk.step(group)
        if step is None:
            return None
        steps.append(step)
    return _picked(problem, steps)


def _order(problem: Problem, groups: Sequence[StrongComponent]) -> list[StrongComponent] | None:
    """Users first, and of those that may come next the one that widens the frontier least; None where it gets too wide."""
    home = {number: at for at, group in enumerate(groups) for number in group.members}
    users: list[set[int]] = [set() for _ in groups]
    for at, group in enumerate(groups):
        for child in group.outside:
            users[home[child]].add(at)
    left = [len(above) for above in users]
    ready = {at for at, count in enumerate(left) if not count}
    frontier = set(problem.roots)
    order = []
    while ready:
        at = min(ready, key=lambda at: (len(frontier.union(groups[at].outside).difference(groups[at].members)), at))
        ready.discard(at)
        order.append(groups[at])
        frontier.update(groups[at].outside)
        if len(frontier) > SLOTS:
            return None
        frontier.difference_update(groups[at].members)
        for below in {home[child] for child in groups[at].outside}:
            left[below] -= 1
            if not left[below]:
                ready.add(below)
    return order


def _prices(problem: Problem) -> Prices:
    """The dual values of the linear relaxation: a class is bought as often as its dearest user wants it."""
    roots = set(problem.roots)
    first: list[int] = []
    costs: list[float] = []
    for choices in problem.classes:
        first.append(len(costs))
        costs.extend(entry.cost for entry in choices)
    unit = max(costs) or 1.0
    places: dict[tuple[int, int], int] = {}
    rows: list[int] = []
    columns: list[int] = []
    data: list[float] = []

    def buy(row: int, number: int) -> None:
        count = len(problem.classes[number])
        rows.extend([row] * count)
        columns.extend(range(first[number], first[number] + count))
        data.extend([-1.0] * count)

    for number, choices in enumerate(problem.classes):
        for index, entry in enumerate(choices):
            for child in entry.children:
                if (number, child) not in places:
                    places[number, child] = len(places)
                    buy(places[number, child], child)
                rows.append(places[number, child])
                columns.append(first[number] + index)
                data.append(1.0)
    limits = np.zeros(len(places) + len(roots))
    limits[len(places) :] = -1.0
    for row, root in enumerate(sorted(roots), len(places)):
        buy(row, root)
    found = dual_values(np.array(costs) / unit, rows, columns, data, limits)
    if found is None:
        return dict.fromkeys(places, 0.0)
    return {key: max(0.0, -float(found[row]) * unit) for key, row in places.items()}


def _consistent(problem: Problem, order: Sequence[StrongComponent], prices: Prices) -> list[float]:
    """What each class is worth: the least that a choice costs with what it is charged for its children. Lowers `prices` until no class
    is charged for more than that: then they bound from below whatever the solver's rounding was."""
    worth = [0.0] * len(problem.classes)
    users: list[list[int]] = [[] for _ in problem.classes]
    for user, number in prices:
        users[number].append(user)
    for group in reversed(order):
        inside = set(group.members)
        for turn in range(ROUNDS):
            if turn == ROUNDS - 1:
                prices.update({(user, number): 0.0 for number in inside for user in users[number] if user in inside})
            for number in group.members:
                worth[number] = min((e.cost + sum(prices[number, c] for c in e.children) for e in problem.classes[number]), default=0.0)
            again = False
            for number in group.members:
                charged = sum(prices[user, number] for user in users[number])
                if charged > worth[number]:
                    again = again or any(user in inside for user in users[number])
                    prices.update({(user, number): prices[user, number] * (worth[number] / charged) for user in users[number]})
            if not again:
                break
    return worth


class _Walk:
    """The states as they go forward: sets as bits, which classes get while they are on the frontier."""

    def __init__(self, problem: Problem, prices: Mapping[tuple[int, int], float], worth: Sequence[float], limit: float, room: int) -> None:
        self.limit, self.room = limit, room
        self.charges: list[list[tuple[int, float]]] = [[] for _ in problem.classes]  # of a user: the classes that it is charged for
        self.rest = list(worth)  # of a class: what those of its users that are left are not charged
        for (user, number), price in prices.items():
            self.charges[user].append((number, price))
            self.rest[number] -= price
        self.free = list(range(SLOTS))
        self.slot: dict[int, int] = {}
        for root in dict.fromkeys(problem.roots):
            self.slot[root] = self.free.pop()
        self.sets = np.array([sum(1 << slot for slot in self.slot.values())], np.uint64)
        self.costs = np.zeros(1)
        self.least = np.full(1, sum(self.rest[root] for root in self.slot))  # the cost and what is left to pay at least

    def step(self, group: StrongComponent) -> _Step | None:
        """Compute `group` in every state that needs it; None where too many states are left."""
        for member in group.members:
            for number, price in self.charges[member]:
                self.rest[number] += price
                if number in self.slot:
                    self.least = self.least + price * self._has(self.sets, number)
        for child in group.outside:
            if child not in self.slot:
                self.slot[child] = self.free.pop()
        own = self._bits(member for member in group.members if member in self.slot)
        wanted = self.sets & own
        without = self.sets & ~own
        least = self.least
        for member in group.members:
            if member in self.slot:
                least = least - self.rest[member] * self._has(self.sets, member)
        everywhere = np.arange(len(self.sets))
        found = [(everywhere[wanted == 0], -1, without[wanted == 0], self.costs[wanted == 0], least[wanted == 0])]
        for number, way in enumerate(group.ways):
            made = self._bits(member for member, _ in way.picks if member in self.slot)
            where = everywhere[(wanted != 0) & ((wanted & ~made) == 0)]
            before = without[where]
            bound = least[where] + way.cost
            for child in way.outside:
                bound = bound + self.rest[child] * ~self._has(before, child)
            good = bound <= self.limit
            where, before = where[good], before[good]
            found.append((where, number, before | self._bits(way.outside), self.costs[where] + way.cost, bound[good]))
        parents = np.concatenate([each[0] for each in found])
        ways = np.concatenate([np.full(len(each[0]), each[1], np.int16) for each in found])
        self.sets, self.costs, self.least = (np.concatenate([each[part] for each in found]) for part in (2, 3, 4))
        order = self._keep_cheapest()
        for member in group.members:
            if member in self.slot:
                self.free.append(self.slot.pop(member))
        fits = 0 < len(order) <= AT_ONCE and self.room >= 0
        return _Step(group, parents[order].astype(np.int32), ways[order]) if fits else None

    def _keep_cheapest(self) -> Any:
        """Of equal sets keep the cheapest; the places of those that stay."""
        order = np.lexsort((self.costs, self.sets))
        sets = self.sets[order]
        order = order[np.concatenate([[True], sets[1:] != sets[:-1]])] if len(order) else order
        self.sets, self.costs, self.least = self.sets[order], self.costs[order], self.least[order]
        self.room -= len(order)
        return order

    def _bits(self, numbers: Iterable[int]) -> np.uint64:
        return np.uint64(sum(1 << self.slot[number] for number in numbers))

    def _has(self, sets: Array, number: int) -> Array:
        found: Array = (sets & np.uint64(1 << self.slot[number])) != 0
        return found


def _picked(problem: Problem, steps: Sequence[_Step]) -> Picks:
    """The picks that lead to the one state in which nothing is needed any more."""
    picks: Picks = {}
    at = 0
    for step in reversed(steps):
        way = int(step.ways[at])
        if way >= 0:
            picks.update(step.group.ways[way].picks)
        at = int(step.parents[at])
    return {number: picks[number] for number in needed(problem, picks)}
