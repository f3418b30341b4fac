"""Exact extraction of a part by eliminating classes one after the other: dynamic programming over what a few classes need together.

Whether a class is needed is a variable of two values. A class relates its own variable to those of its children: needed, it costs
its cheapest choice whose children are all needed; classes that may need each other (a strong component) are related as one, over
their picks without a cycle. Eliminating a class joins the tables that speak of it and keeps the better of its two values for each
state of its neighbours (bucket elimination: Dechter 1999). Takes 2^w for w neighbours at once: e-graphs of layered programs are
narrow (Goharshady, Lam, Parreaux 2024), where the bound of an integer program is weak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coset.extract.groups import StrongComponent
from coset.extract.problem import Picks, Problem, cost_of, needed
from coset.ir.op import Array

WIDEST = 20  # neighbours of a class when it is eliminated: 2^21 entries a table, 16 MiB
ENTRIES = 1 << 24  # of all tables: about 0.3 s, and 128 MiB; HiGHS takes 0.1 to 3 s for parts of such a width, and 0.3 s to load


@dataclass(frozen=True)
class _Table:
    """Numbers by the variables `scope`, an axis of two each."""

    scope: tuple[int, ...]
    values: Array


def eliminate(problem: Problem, groups: Sequence[StrongComponent], *, width: int = WIDEST) -> Picks | None:
    """Picks of least cost for the classes that the roots need, or None where a class has more than `width` neighbours when its turn
    comes (or a root has no finite choice)."""
    order = None if any(len(group.scope) > width + 1 for group in groups) else _order(problem, groups, width)
    if order is None:
        return None
    place = {number: at for at, number in enumerate(order)}
    buckets: dict[int, list[_Table]] = {number: [] for number in order}
    fixed = set(problem.roots)

    def add(table: _Table) -> None:
        if table.scope:
            buckets[min(table.scope, key=place.__getitem__)].append(table)

    for group in groups:
        add(_fixed(_costs(group), fixed))
    needed: list[tuple[int, _Table]] = []
    for number in order:
        tables = buckets.pop(number)
        if tables:
            joined = _sum(number, tables)
            needed.append((number, _Table(joined.scope[1:], joined.values[1] < joined.values[0])))
            add(_Table(joined.scope[1:], joined.values.min(axis=0)))
    values = dict.fromkeys(fixed, 1)
    for number, table in reversed(needed):
        values[number] = int(table.values[tuple(values[other] for other in table.scope)])
    return _picked(problem, groups, values)


def _order(problem: Problem, groups: Sequence[StrongComponent], width: int) -> list[int] | None:
    """The classes but the roots, one with fewest neighbours at a time; None where that is too many."""
    fixed = set(problem.roots)
    near: dict[int, set[int]] = {number: set() for number in range(len(problem.classes)) if number not in fixed}
    for group in groups:
        scope = [number for number in group.scope if number not in fixed]
        for number in scope:
            near[number].update(scope)
    for number, others in near.items():
        others.discard(number)
    by_degree: list[set[int]] = [set() for _ in range(width + 2)]
    for number, others in near.items():
        by_degree[min(len(others), width + 1)].add(number)
    order: list[int] = []
    entries = 0
    while near:
        degree = next(degree for degree, members in enumerate(by_degree) if members)
        entries += 2 << degree
        if degree > width or entries > ENTRIES:
            return None
        number = min(by_degree[degree])
        by_degree[degree].discard(number)
        order.append(number)
        others = near.pop(number)
        for other in others:
            by_degree[min(len(near[other]), width + 1)].discard(other)
            near[other] |= others
            near[other] -= {number, other}
            by_degree[min(len(near[other]), width + 1)].add(other)
    return order


def _costs(group: StrongComponent) -> _Table:
    """What a group costs by which of its classes and of those outside are needed."""
    axis = {number: at for at, number in enumerate(group.outside)}
    costs = np.full((2,) * len(group.scope), np.inf)
    for way in group.ways:
        picked = {number for number, _ in way.picks}
        where: list[int | slice] = [int(number in picked) for number in group.members] + [slice(None)] * len(group.outside)
        for child in way.outside:
            where[len(group.members) + axis[child]] = slice(1, 2)
        costs[tuple(where)] = np.minimum(costs[tuple(where)], way.cost)
    return _Table(group.scope, costs)


def _fixed(table: _Table, fixed: set[int]) -> _Table:
    """The table where the variables `fixed` are 1."""
    where = tuple(1 if number in fixed else slice(None) for number in table.scope)
    return _Table(tuple(number for number in table.scope if number not in fixed), table.values[where])


def _sum(number: int, tables: Sequence[_Table]) -> _Table:
    """The sum of tables over all their variables, `number` first."""
    scope = (number, *sorted({other for table in tables for other in table.scope} - {number}))
    axis = {other: at for at, other in enumerate(scope)}
    total = np.zeros((2,) * len(scope))
    for table in tables:
        shape = [1] * len(scope)
        for other in table.scope:
            shape[axis[other]] = 2
        ranked = sorted(range(len(table.scope)), key=lambda at, table=table: axis[table.scope[at]])  # type: ignore[misc]
        total += table.values.transpose(ranked).reshape(shape)
    return _Table(scope, total)


def _picked(problem: Problem, groups: Sequence[StrongComponent], values: dict[int, int]) -> Picks | None:
    """The picks that the values stand for, of the classes that the roots need."""
    picks: Picks = {}
    for group in groups:
        wanted = {number for number in group.members if values.get(number)}
        fitting = [
            (way.cost, way.picks) for way in group.ways
            if {number for number, _ in way.picks} == wanted and all(values.get(child) for child in way.outside)
        ]  # fmt: skip
        if not fitting:
            return None
        picks.update(min(fitting)[1])
    found = {number: picks[number] for number in needed(problem, picks)}
    assert np.isfinite(cost_of(problem, found))
    return found
