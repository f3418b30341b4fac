"""Classes that may need each other (a strong component) as one group, with every way to pick in it without a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import networkx as nx

from coset.extract.problem import Problem

COMBINED = 4_096  # picks of a strong component that are tried


@dataclass(frozen=True)
class Way:
    """Picks for some classes of a strong component, without a cycle: their cost, and the classes outside that they need."""

    cost: float
    picks: tuple[tuple[int, int], ...]
    outside: frozenset[int]


@dataclass(frozen=True)
class Group:
    """A strong component: its classes, the classes outside that some way needs, and its ways."""

    members: tuple[int, ...]
    outside: tuple[int, ...]
    ways: tuple[Way, ...]

    @property
    def scope(self) -> tuple[int, ...]:
        """The classes that it relates."""
        return (*self.members, *self.outside)


def groups_of(problem: Problem) -> list[Group] | None:
    """The strong components with their ways; None where one has too many."""
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(range(len(problem.classes)))
    graph.add_edges_from((n, child) for n, choices in enumerate(problem.classes) for entry in choices for child in entry.children)
    components = sorted(sorted(component) for component in nx.strongly_connected_components(graph))
    if any(prod(len(problem.classes[number]) + 1 for number in members) > COMBINED for members in components):
        return None
    found = []
    for members in components:
        ways = tuple(_ways(problem, members))
        found.append(Group(tuple(members), tuple(sorted({child for way in ways for child in way.outside})), ways))
    return found


def _ways(problem: Problem, members: Sequence[int]) -> list[Way]:
    inside = set(members)
    found = []
    for combination in product(*([None, *range(len(problem.classes[number]))] for number in members)):
        picks = {number: index for number, index in zip(members, combination, strict=True) if index is not None}
        chosen = {number: problem.classes[number][index] for number, index in picks.items()}
        below = {number: [child for child in entry.children if child in inside] for number, entry in chosen.items()}
        if all(child in picks for children in below.values() for child in children) and not _cyclic(below):
            outside = frozenset(child for entry in chosen.values() for child in entry.children if child not in inside)
            found.append(Way(sum(entry.cost for entry in chosen.values()), tuple(picks.items()), outside))
    return found


def _cyclic(below: dict[int, list[int]]) -> bool:
    left = dict(below)
    while left:
        ready = [number for number, children in left.items() if not any(child in left for child in children)]
        if not ready:
            return True
        for number in ready:
            del left[number]
    return False
