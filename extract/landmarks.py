"""Sets of choices of which every solution takes one (landmarks), and the bound that they add up to.

Extraction is planning without deletes: a choice makes its class out of its children, and each class is made once. The landmarks are found
as LM-cut finds them (Helmert, Domshlak 2009): what the dearest child of each choice costs at least (h_max; Bonet, Geffner 2001) says where
the way to the roots is dearest, and the choices that cross from what can be had into what leads to the roots for nothing are a landmark;
its cheapest choice is paid, by all of it, until the roots are free. A cycle pays for nothing here, nor do half choices, from which the
linear relaxation of deep programs draws nearly everything.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, inf

from coset.extract.problem import Problem

TOUCHES = 2_000_000  # of choices and their children, in all: about a second; what is left then is not paid
REFILL = 0.5  # times the children of all choices: looked at between two searches for all costs, which take about as long
NOTHING = 1e-12  # of the dearest choice: what is left of a cost by rounding
SLACK = 1e-11  # what rounding may do to a bound


@dataclass(frozen=True)
class Landmarks:
    """`bound`: no solution costs less (infinite: there is none). `sets`: of each, every solution takes one (class, choice). `rises`: of
    every choice, how far above the bound every solution with it costs (infinite: no solution has it)."""

    bound: float
    sets: Sequence[tuple[tuple[int, int], ...]]
    rises: Sequence[Sequence[float]]


def landmarks(problem: Problem, *, touches: int = TOUCHES, known: float = 0.0) -> Landmarks:
    """The landmarks of a problem, found until the roots cost nothing more or choices were looked at `touches` times. After a quarter of
    those it is given up where the bound is less than a quarter of `known`, one from elsewhere: the first landmarks pay most."""
    costs = _Costs(problem)
    paid: list[float] = []
    sets: list[tuple[tuple[int, int], ...]] = []
    while 0 < costs.least[costs.goal] < inf and costs.touched < touches:
        crossing = costs.crossing()
        paid.append(costs.pay(crossing))
        costs.settle()
        sets.append(tuple(costs.places[each] for each in crossing))
        if costs.touched > touches / 4 and 4 * (fsum(paid) + costs.least[costs.goal]) < known:
            break
    total = fsum(paid)
    bound = (total + costs.least[costs.goal]) * (1 - SLACK)
    rises = [[inf] * len(choices) for choices in problem.classes]
    for each, (number, index) in enumerate(costs.places):
        if bound < inf:
            rises[number][index] = max(0.0, total + costs.left[each] + costs.least[costs.dearest[each]] - bound)
    return Landmarks(bound, sets, rises)


class _Costs:
    """What is left to pay for each choice, and what each class costs at least by it, with the dearest child of every choice counted.

    Beside the classes there is a `start`, which is free and the child of what has none, a `goal`, made of all roots by a last choice, and
    one that can `never` be had, the dearest child of what cannot be taken.
    """

    def __init__(self, problem: Problem) -> None:
        self.goal, self.start, self.never = range(len(problem.classes), len(problem.classes) + 3)
        entries = [
            (number, index, entry)
            for number, choices in enumerate(problem.classes)
            for index, entry in enumerate(choices)
            if number not in entry.children
        ]
        self.places = [(number, index) for number, index, _ in entries]
        self.left = [*(entry.cost for _, _, entry in entries), 0.0]
        self.made = [*(number for number, _, _ in entries), self.goal]
        self.children = [*(entry.children or (self.start,) for _, _, entry in entries), tuple(dict.fromkeys(problem.roots))]
        self.nothing = NOTHING * max(self.left)
        self.makers: list[list[int]] = [[] for _ in range(self.never + 1)]
        self.users: list[list[int]] = [[] for _ in range(self.never + 1)]
        for each, number in enumerate(self.made):
            self.makers[number].append(each)
            for child in self.children[each]:
                self.users[child].append(each)
        self.turn = [0] * (self.never + 1)  # when its cost was found: of equal children the last counts, which may be made of the others
        self.turns = self.touched = 0
        self.dearest = [self.never] * len(self.made)
        self.edges = sum(map(len, self.children))
        self._fill()

    def settle(self) -> None:
        """Find all costs anew, now and then: which of equal children is made of the other is seen only so, and bounds are up to a seventh
        weaker where it is not."""
        if self.touched - self.filled > REFILL * self.edges:
            self._fill()

    def _fill(self) -> None:
        """The costs of all classes, the cheapest first (Knuth 1977): the last child of a choice to be known is its dearest."""
        self.touched += self.edges
        self.filled = self.touched
        missing = [len(children) for children in self.children]
        self.least = [inf] * (self.never + 1)
        self.least[self.start] = 0.0
        heap, done = [(0.0, self.start)], set()
        while heap:
            _, number = heapq.heappop(heap)
            if number in done:
                continue
            done.add(number)
            self._found(number)
            for user in self.users[number]:
                missing[user] -= 1
                if not missing[user]:
                    self.dearest[user] = number
                    self._offer(user, heap)

    def _found(self, number: int) -> None:
        self.turns += 1
        self.turn[number] = self.turns

    def _dear(self, number: int) -> tuple[float, int]:
        return self.least[number], self.turn[number]

    def _offer(self, each: int, heap: list[tuple[float, int]]) -> None:
        cost = self.least[self.dearest[each]] + self.left[each]
        if cost < self.least[self.made[each]]:
            self.least[self.made[each]] = cost
            heapq.heappush(heap, (cost, self.made[each]))

    def crossing(self) -> list[int]:
        """The choices that lead from what can be had without what leads to the goal for nothing into that, by the dearest children."""
        ready, stack = {self.goal}, [self.goal]  # what leads to the goal for nothing
        edge: list[int] = []
        while stack:
            for each in self.makers[stack.pop()]:
                self.touched += 1
                below = self.dearest[each]
                if self.left[each] > 0:
                    edge.append(each)
                elif below not in ready and self.least[below] < inf:
                    ready.add(below)
                    stack.append(below)
        apart: set[int] = set(ready)  # and what cannot be had without it
        return [each for each in edge if self._is_had(self.dearest[each], ready, apart)]

    def _is_had(self, number: int, ready: set[int], apart: set[int]) -> bool:
        """True when `number` can be made without `ready`. All of `ready` costs as much as the goal, so what costs less can."""
        if number in apart or self.least[number] == inf:
            return False
        seen, stack = {number}, [number]
        while stack:
            current = stack.pop()
            if self.least[current] < self.least[self.goal]:
                return True
            for each in self.makers[current]:
                self.touched += 1
                below = self.dearest[each]
                if below not in seen and below not in apart and self.least[below] < inf:
                    seen.add(below)
                    stack.append(below)
        apart |= seen
        return False

    def pay(self, crossing: Iterable[int]) -> float:
        """Take what the cheapest of the choices costs from all of them."""
        paid = min(self.left[each] for each in crossing)
        heap: list[tuple[float, int]] = []
        for each in crossing:
            rest = self.left[each] - paid
            self.left[each] = rest if rest > self.nothing else 0.0
        for each in crossing:
            self._offer(each, heap)
        while heap:
            cost, number = heapq.heappop(heap)
            if cost > self.least[number]:
                continue
            self._found(number)
            for user in self.users[number]:
                self.touched += 1
                if self.dearest[user] == number:
                    self.touched += len(self.children[user])
                    self.dearest[user] = max(self.children[user], key=self._dear)
                    self._offer(user, heap)
        return paid
