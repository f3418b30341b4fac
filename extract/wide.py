"""Good picks and a bound for a part that is too wide for the exact methods: prices of a relaxation, whole moves, cores."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coset.extract.core import best_near
from coset.extract.forwards import without_forwards
from coset.extract.greedy import tree_order
from coset.extract.lagrange import LagrangeBound, price
from coset.extract.moves import Moves
from coset.extract.problem import Picks, Problem, cost_of

SHARES = (0.4, 0.55)  # of the choices that are in a core: those of least reduced cost
SAME = 1e-9  # relative difference of costs that are one


@dataclass(frozen=True)
class Left:
    """A problem with those choices only that a better solution may have; `kept[c]` are their places in class c."""

    problem: Problem
    kept: list[tuple[int, ...]]

    def put_back(self, picks: Picks) -> Picks:
        """Picks of the smaller problem as picks of the larger one."""
        return {number: self.kept[number][index] for number, index in picks.items()}


@dataclass(frozen=True)
class WidePicks:
    """The best picks found, a bound that no solution undercuts, what could still be better, and whether the time stopped the search."""

    picks: Picks
    bound: float
    left: Left
    stopped: bool


def search(problem: Problem, start: Picks, *, end: float = float("inf")) -> WidePicks:
    """Picks no dearer than `start`, the picks of a solution. What the time `end` stops is the best so far, with what bound there is."""
    upper = cost_of(problem, start)
    left = Left(*without_forwards(problem))
    priced = price(left.problem, upper, end=end)
    climb = _Climb(left, start, upper, end)
    climb.follow(priced)
    for share in SHARES:
        if climb.is_over(priced.bound) or not climb.move_in_core(priced, share):
            break
    stopped = time.monotonic() > end
    picks = start if climb.best is None or climb.cost >= upper else left.put_back(climb.best)
    cost = min(climb.cost, upper)
    return WidePicks(picks, min(priced.bound, cost), without_dear(left, priced.bound, priced.rises, cost), stopped)


class _Climb:
    """The best picks so far, of the smaller problem; None while all that is known is a start which is none there."""

    def __init__(self, left: Left, start: Picks, upper: float, end: float) -> None:
        self.problem = left.problem
        self.end = end
        self.alone = [1] * len(left.problem.classes)
        self.order, self.picks, self.trees = tree_order(left.problem, self.alone)
        self.best: Picks | None = None
        self.cost = float("inf")
        if all(index in left.kept[number] for number, index in start.items()):
            self.best, self.cost = {number: left.kept[number].index(index) for number, index in start.items()}, upper

    def is_over(self, bound: float) -> bool:
        """True when there is nothing better, or no time."""
        return self.best is None or self.cost - bound <= SAME * self.cost or time.monotonic() > self.end

    def follow(self, priced: LagrangeBound) -> None:
        """From the picks that the prices suggest."""
        moves = Moves(self.problem, self.picks, self.order, self.trees)
        moves.follow(priced.picks)
        self._improve(moves, moves.acyclic.ordered()[::-1])

    def move_in_core(self, priced: LagrangeBound, share: float) -> bool:
        """From the best of a core; False when it was too wide to be solved."""
        assert self.best is not None
        near, complete = best_near(self.problem, self.best, priced.ranked[: int(share * len(priced.ranked))])
        cost = cost_of(self.problem, near)
        if cost < self.cost * (1 - SAME):
            changed = [number for number, index in near.items() if self.best.get(number) != index]
            self.best, self.cost = near, cost
            order, picks, _ = tree_order(self.problem, self.alone, only=near)
            moves = Moves(self.problem, picks, order, self.trees)
            self._improve(moves, moves.around(changed))
        return complete

    def _improve(self, moves: Moves, numbers: Iterable[int]) -> None:
        moves.run(numbers, end=self.end)
        found, cost = moves.result()
        if cost < self.cost:
            self.best, self.cost = found, cost


def without_dear(left: Left, bound: float, rises: Sequence[Sequence[float]], cost: float) -> Left:
    """Without the choices that lead to no less than `cost`, by what each makes the bound rise."""
    room = cost * (1 + SAME) - bound
    kept = [
        tuple(i for i, rise in zip(indices, each, strict=False) if rise <= room) for indices, each in zip(left.kept, rises, strict=True)
    ]
    classes = [
        tuple(e for e, rise in zip(es, each, strict=False) if rise <= room) for es, each in zip(left.problem.classes, rises, strict=True)
    ]
    return Left(Problem(classes, left.problem.roots), kept)
