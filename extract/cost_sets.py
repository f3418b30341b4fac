"""Greedy extraction with the set of all classes that a pick needs: what a choice costs is counted with sharing inside it.

extraction-gym's `faster-greedy-dag` (Goharshady, Lam, Parreaux: "Fast and Optimal Extraction for Sparse Equality Graphs",
2024, and the suite at github.com/egraphs-good/extraction-gym). The sets take quadratic time on deep graphs, hence a budget.
"""

from __future__ import annotations

from collections import deque
from math import inf

from coset.extract.problem import Picks, Problem

ENTRIES = 30_000_000  # set entries copied, over the whole run: about half a second


def cost_set_picks(problem: Problem, *, entries: int = ENTRIES) -> Picks | None:
    """A pick for every class with a finite choice, cheapest set first found; None when the budget did not suffice.

    The picks can have a cycle where costs are 0 or sets were outdated: `coset.extract.greedy.repaired` mends it.
    """
    users: list[list[int]] = [[] for _ in problem.classes]
    for number, choices in enumerate(problem.classes):
        for child in sorted({child for entry in choices for child in entry.children}):
            users[child].append(number)
    sets: list[dict[int, float] | None] = [None] * len(problem.classes)
    totals = [inf] * len(problem.classes)
    picks: Picks = {}
    queue = deque(number for number, choices in enumerate(problem.classes) if any(not entry.children for entry in choices))
    queued = set(queue)
    while queue:
        number = queue.popleft()
        queued.discard(number)
        improved = False
        for index, entry in enumerate(problem.classes[number]):
            needed = [sets[child] for child in entry.children]
            known = [each for each in needed if each is not None]
            if len(known) < len(needed) or any(number in each for each in known):
                continue
            joined = _join(known)
            entries -= sum(map(len, known)) + 1
            joined[number] = entry.cost
            total = sum(joined.values())
            if total < totals[number] * (1 - 1e-12) if totals[number] < inf else True:
                sets[number], totals[number], picks[number] = joined, total, index
                improved = True
        if entries < 0:
            return None
        if improved:
            for user in users[number]:
                if user not in queued:
                    queued.add(user)
                    queue.append(user)
    return picks


def _join(sets: list[dict[int, float]]) -> dict[int, float]:
    ranked = sorted(sets, key=len, reverse=True)
    joined = dict(ranked[0]) if ranked else {}
    for each in ranked[1:]:
        joined.update(each)
    return joined
