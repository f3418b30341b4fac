"""The extraction problem with nothing of tensors in it: classes, their choices with a cost, and roots that must be computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

Picks = dict[int, int]  # class -> index of the picked choice


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to compute a class: what it costs by itself (>= 0) and the other classes it needs (sorted, distinct)."""

    cost: float
    children: tuple[int, ...]


@dataclass(frozen=True)
class Problem:
    """Classes by number, each with its choices, and the classes to compute. A class that is used twice is paid once.

    A solution picks one choice for every root and for every child of a picked choice, without a cycle.
    """

    classes: Sequence[Sequence[Choice]]
    roots: tuple[int, ...]


def choice(cost: float, children: Iterable[int] = ()) -> Choice:
    """A choice over `children` in any order, with repeats."""
    return Choice(cost, tuple(sorted(set(children))))


def find_order(problem: Problem, picks: Mapping[int, int]) -> list[int] | None:
    """The classes that the roots need under `picks` (all of them picked), children first; None when there is a cycle."""
    done: set[int] = set()
    begun: set[int] = set()
    order: list[int] = []
    for root in problem.roots:
        stack: list[tuple[int, int]] = [(root, 0)]
        while stack:
            number, position = stack.pop()
            if number in done:
                continue
            if position == 0:
                if number in begun:
                    return None
                begun.add(number)
            children = problem.classes[number][picks[number]].children
            if position < len(children):
                stack.append((number, position + 1))
                if children[position] not in done:
                    stack.append((children[position], 0))
                continue
            done.add(number)
            order.append(number)
    return order


def needed(problem: Problem, picks: Mapping[int, int]) -> list[int]:
    """The classes that the roots need under `picks`, children first; asserts that they have no cycle."""
    order = find_order(problem, picks)
    assert order is not None, "the picks have a cycle"
    return order


def cost_of(problem: Problem, picks: Mapping[int, int]) -> float:
    """The cost of all needed classes, each once."""
    return fsum(problem.classes[number][picks[number]].cost for number in needed(problem, picks))
