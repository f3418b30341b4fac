"""Classes that may need each other (a strong component) as one group, with the ways to pick in it without a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from coset.extract.graphs import strong_components
from coset.extract.problem import Problem

COMBINED = 4_096  # picks of a strong component that are tried


@dataclass(frozen=True)
class ComponentPicks:
    """Picks for some classes of a strong component, without a cycle: their cost, and the classes outside that they need."""

    cost: float
    picks: tuple[tuple[int, int], ...]
    outside: frozenset[int]


@dataclass(frozen=True)
class StrongComponent:
    """A strong component: its classes, the classes outside that some way needs, and its ways: of those that pick for the same classes
    the ones that no other beats."""

    members: tuple[int, ...]
    outside: tuple[int, ...]
    ways: tuple[ComponentPicks, ...]

    @property
    def scope(self) -> tuple[int, ...]:
        """The classes that it relates."""
        return (*self.members, *self.outside)


def groups_of(problem: Problem) -> list[StrongComponent] | None:
    """The strong components with their ways; None where one has too many."""
    edges = ((n, child) for n, choices in enumerate(problem.classes) for entry in choices for child in entry.children)
    components = sorted(sorted(component) for component in strong_components(edges, range(len(problem.classes))))
    if any(prod(len(problem.classes[number]) + 1 for number in members) > COMBINED for members in components):
        return None
    found = []
    for members in components:
        ways = tuple(_ways(problem, members))
        found.append(StrongComponent(tuple(members), tuple(sorted({child for way in ways for child in way.outside})), ways))
    return found


def _ways(problem: Problem, members: Sequence[int]) -> list[ComponentPicks]:
    """Each is made from a smaller one by a class whose children it has: so none has a cycle, and what is no way is not looked at."""
    inside = set(members)
    below = {number: [inside.intersection(entry.children) for entry in problem.classes[number]] for number in members}
    found: dict[tuple[int, ...], dict[int, int]] = {(-1,) * len(members): {}}
    pending = list(found.values())
    while pending:
        picks = pending.pop()
        for number in members:
            if number in picks:
                continue
            for index, needs in enumerate(below[number]):
                if needs <= picks.keys():
                    more = {**picks, number: index}
                    key = tuple(more.get(member, -1) for member in members)
                    if key not in found:
                        found[key] = more
                        pending.append(more)
    kept: dict[tuple[int, ...], list[ComponentPicks]] = {}  # by the classes that are picked
    for key in sorted(found):
        way = _way(problem, inside, [(number, index) for number, index in zip(members, key, strict=True) if index >= 0])
        rivals = kept.setdefault(tuple(number for number, _ in way.picks), [])
        if not any(_beats(rival, way) for rival in rivals):
            rivals[:] = [*(rival for rival in rivals if not _beats(way, rival)), way]
    return [way for ways in kept.values() for way in ways]


def _beats(way: ComponentPicks, other: ComponentPicks) -> bool:
    """True when `way`, which picks for the same classes, costs no more and needs nothing that the other does not."""
    return way.cost <= other.cost and way.outside <= other.outside


def _way(problem: Problem, inside: set[int], picks: Sequence[tuple[int, int]]) -> ComponentPicks:
    chosen = [problem.classes[number][index] for number, index in picks]
    outside = frozenset(child for entry in chosen for child in entry.children if child not in inside)
    return ComponentPicks(sum(entry.cost for entry in chosen), tuple(picks), outside)
