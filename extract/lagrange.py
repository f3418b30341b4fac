"""A lower bound of a problem too large for a linear program, and picks that its prices suggest.

The rule that a child of a pick is picked too is relaxed at a price for each (user, class); so is the rule that two classes do not use
each other. What is left falls apart by class. Any prices give a valid bound; the best are sought along deflected subgradients (Held
and Karp 1971; Camerini, Fratta, Maffioli 1975), each step linear in the choices. That picks by such prices are good starts for a
local search is known from set covering (Caprara, Fischetti, Toth 1999).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coset.extract.greedy import tree_order
from coset.extract.problem import Picks, Problem
from coset.ir.op import Array

STEPS = 400
PATIENCE = 12  # steps without a better bound, after which steps get shorter
SHORTER = 0.7
LONGEST, SHORTEST = 1.0, 0.002  # of the step that would reach the upper bound along a straight line
MEMORY = 0.7  # of the direction before
SLACK = 1e-9  # what rounding may do to a bound


@dataclass(frozen=True)
class LagrangeBound:
    """The bound; for every class the choice that is cheapest at the prices that gave it; for every choice how far the bound rises when
    it is taken; and all choices (class, choice) by that, the least first."""

    bound: float
    picks: Picks
    rises: Sequence[Sequence[float]]
    ranked: Sequence[tuple[int, int]]


class _Relaxed:
    """The problem as arrays: a column for each choice, a row for each (user, class) and for each two classes that use each other."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        counts = [max(1, len(choices)) for choices in problem.classes]  # one that cannot be computed has a column without a price
        self.first = np.concatenate([[0], np.cumsum(counts)])[:-1].astype(np.int64)
        self.owner = np.repeat(np.arange(len(counts)), counts)
        self.costs = np.full(len(self.owner), np.inf)
        for number, choices in enumerate(problem.classes):
            for column, entry in enumerate(choices, int(self.first[number])):
                if number not in entry.children:
                    self.costs[column] = entry.cost
        rows: dict[tuple[int, int], int] = {}
        columns: list[int] = []
        at: list[int] = []
        for number, choices in enumerate(problem.classes):
            for column, entry in enumerate(choices, int(self.first[number])):
                for child in entry.children:
                    columns.append(column)
                    at.append(rows.setdefault((number, child), len(rows)))
        self.columns, self.rows = np.array(columns, np.int64), np.array(at, np.int64)
        self.user = np.array([user for user, _ in rows], np.int64)
        self.child = np.array([child for _, child in rows], np.int64)
        pairs = [(row, rows[child, user]) for (user, child), row in rows.items() if user < child and (child, user) in rows]
        place = np.full(len(rows), -1)
        for pair, both in enumerate(pairs):
            place[list(both)] = pair
        inside = place[self.rows] >= 0
        self.pair_columns, self.pairs = self.columns[inside], place[self.rows[inside]]
        self.pair_count = len(pairs)
        self.is_root = np.zeros(len(counts), bool)
        self.is_root[list(problem.roots)] = True

    def start(self) -> Array:
        """Prices that share the worth of a class among all that may use it."""
        shares = np.bincount(self.child, minlength=len(self.first)).tolist()
        _, _, trees = tree_order(self.problem, [max(1, share) for share in shares])
        worth = np.array(trees)
        return np.where(worth[self.child] < 1e200, worth[self.child] / np.maximum(1, np.array(shares))[self.child], 0.0)

    def _fined(self, prices: Array, fines: Array) -> Array:
        """For each choice its cost, what it is charged for its children, and its fines for standing in a pair."""
        charged: Array = self.costs + np.bincount(self.columns, prices[self.rows], len(self.costs))
        return charged + np.bincount(self.pair_columns, fines[self.pairs], len(self.costs)) if self.pair_count else charged

    def picked(self, values: Array) -> tuple[Array, Array]:
        """For each class the least of the `values` of its choices, and the choice."""
        least = np.minimum.reduceat(values, self.first)
        where = np.flatnonzero(values == least[self.owner])[::-1]
        picks = self.first.copy()
        picks[self.owner[where]] = where
        return least, picks

    def evaluate(self, prices: Array, fines: Array) -> tuple[float, Array, Array]:
        """The bound at these prices, and how far each row is broken by the choices that give it."""
        values = self._fined(prices, fines) - np.bincount(self.child, prices, len(self.first))[self.owner]
        least, picks = self.picked(values)
        used = self.is_root | (least < 0)
        bound = float(np.where(self.is_root, least, np.minimum(0.0, least)).sum() - fines.sum())
        taken = np.zeros(len(self.costs))
        taken[picks[used]] = 1.0
        broken = np.bincount(self.rows, taken[self.columns], len(self.child)) - used[self.child]
        return bound, broken, np.bincount(self.pairs, taken[self.pair_columns], self.pair_count) - 1.0

    def priced(self, bound: float, prices: Array, fines: Array) -> LagrangeBound:
        """What is read off prices."""
        charged = self._fined(prices, fines)
        _, picks = self.picked(charged)
        values = charged - np.bincount(self.child, prices, len(self.first))[self.owner]
        least, _ = self.picked(values)
        rises = values - np.where(self.is_root, least, np.minimum(0.0, least))[self.owner]
        finite = np.flatnonzero(np.isfinite(rises))
        ranked = finite[np.argsort(rises[finite], kind="stable")]
        owners = self.owner[ranked]
        pairs = zip(owners.tolist(), (ranked - self.first[owners]).tolist(), strict=True)
        by_class = [each.tolist() for each in np.split(rises, self.first[1:])]
        return LagrangeBound(max(0.0, bound * (1 - SLACK)), dict(enumerate((picks - self.first).tolist())), by_class, list(pairs))


def price(problem: Problem, upper: float, *, steps: int = STEPS, end: float = float("inf")) -> LagrangeBound:
    """The bound after `steps` (0 when they found none), where a solution costs `upper`. Stops at the time `end`."""
    relaxed = _Relaxed(problem)
    prices, fines = relaxed.start(), np.zeros(relaxed.pair_count)
    best, best_prices, best_fines = -np.inf, prices, fines
    along, along_pairs = np.zeros(len(prices)), np.zeros(len(fines))
    length, waited = LONGEST, 0
    for _ in range(steps):
        bound, broken, broken_pairs = relaxed.evaluate(prices, fines)
        if bound > best + 1e-6 * upper:
            waited = 0
        else:
            waited += 1
            if waited >= PATIENCE:
                length, waited = length * SHORTER, 0
        if bound > best:
            best, best_prices, best_fines = bound, prices, fines
        if length < SHORTEST or time.monotonic() > end or best >= upper * (1 - SLACK):
            break
        # a row whose price is 0 and that is kept with room to spare asks for nothing
        broken[(prices <= 0) & (broken < 0)] = 0
        broken_pairs[(fines <= 0) & (broken_pairs < 0)] = 0
        along, along_pairs = broken + MEMORY * along, broken_pairs + MEMORY * along_pairs
        norm = float(np.square(along).sum() + np.square(along_pairs).sum())  # not `@`, whose threads wait for each other
        if norm == 0:
            break
        reach = length * max(upper - bound, 1e-6 * upper) / norm
        prices, fines = np.maximum(0.0, prices + reach * along), np.maximum(0.0, fines + reach * along_pairs)
    return relaxed.priced(best, best_prices, best_fines)
