"""The best solution near a known one: over the choices of least reduced cost that no order forbids, solved exactly.

What makes a large e-graph hard to cut into parts are choices that no good solution takes, and cycles. With the choices that the
prices of a relaxation speak for, and of these only such as can all be had in one order, it falls into many small parts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from coset.extract.acyclic import Acyclic
from coset.extract.eliminate import WIDEST, eliminate
from coset.extract.frontier import STATES, advance
from coset.extract.groups import groups_of
from coset.extract.problem import Picks, Problem, cost_of, needed
from coset.extract.prune import prune

REGION = 4_000  # classes that are looked at to fit in one choice: what is refused here is lost to the core
Ranked = Sequence[tuple[int, int]]


def best_near(problem: Problem, start: Picks, ranked: Ranked) -> tuple[Picks, bool]:
    """Picks no dearer than `start`, the picks of a solution, over its choices and those of `ranked` (class, choice) that fit in with
    them, best first; and whether they are the best over these."""
    kept = _fitting(problem, start, ranked)
    core = Problem([tuple(problem.classes[n][i] for i in indices) for n, indices in enumerate(kept)], problem.roots)
    pruned = prune(core)
    assert pruned is not None, "the known solution is one of the core"
    known = pruned.project({number: kept[number].index(index) for number, index in start.items()})
    solutions, complete = [], True
    for part, picks in zip(pruned.parts, known, strict=True):
        found = _solved(part.problem, picks)
        complete = complete and found is not None
        if found is None and picks is None:
            return start, False
        solutions.append(found if found is not None else picks or {})
    best = {number: kept[number][index] for number, index in pruned.join(solutions).items()}
    return (best if cost_of(problem, best) < cost_of(problem, start) else start), complete


def _solved(problem: Problem, known: Picks | None) -> Picks | None:
    if all(len(choices) == 1 for choices in problem.classes):
        return dict.fromkeys(range(len(problem.classes)), 0)
    groups = groups_of(problem)
    if groups is None:
        return None
    found = eliminate(problem, groups, width=WIDEST)
    if found is None and known is not None:
        found = advance(problem, groups, cost_of(problem, known), states=STATES)
    return found


def _fitting(problem: Problem, start: Picks, ranked: Ranked) -> list[list[int]]:
    """For each class the choices that stay: with all of them no cycle can be picked."""
    order = needed(problem, start)
    below: list[Collection[int]] = [() for _ in problem.classes]
    kept: list[list[int]] = [[] for _ in problem.classes]
    for number, index in start.items():
        below[number] = set(problem.classes[number][index].children)
        kept[number].append(index)
    acyclic = Acyclic(below, [*order, *(n for n in range(len(problem.classes)) if n not in start)])
    for number, index in ranked:
        children = problem.classes[number][index].children
        if start.get(number) != index and acyclic.allows(number, children, region=REGION):
            below[number] = {*below[number], *children}
            kept[number].append(index)
    return [sorted(indices) for indices in kept]
