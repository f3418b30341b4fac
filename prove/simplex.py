"""A linear program over fractions: the largest value of a linear form where others are at most a number. Exact, for few variables.

Source: Dantzig's simplex method with Bland's rule (Bland, 1977), which comes to an end; variables may be negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

Linear = Mapping[str, Fraction]


@dataclass(frozen=True)
class Limit:
    """A form is at most a number."""

    form: Linear
    most: Fraction


class Contradiction(Exception):
    """No point fulfils all the limits."""


def largest(goal: Linear, limits: Sequence[Limit]) -> Fraction | None:
    """The largest value of `goal` within the limits; None where there is no bound.

    By the dual program: the least sum of y * most with y >= 0 where the forms, times y, add up to the goal. Where no y does that the goal
    has no bound.

    Raises:
        Contradiction: no point fulfils the limits.
    """
    names = sorted({name for form in (goal, *(limit.form for limit in limits)) for name, c in form.items() if c})
    if not any(goal.values()):
        return Fraction(0)
    rows = [[limit.form.get(name, Fraction(0)) for limit in limits] for name in names]
    return _least([limit.most for limit in limits], rows, [goal.get(name, Fraction(0)) for name in names])


def _least(costs: Sequence[Fraction], rows: Sequence[Sequence[Fraction]], sides: Sequence[Fraction]) -> Fraction | None:
    """The least `costs` y where rows y = sides and y >= 0; None where there is no such y."""
    count, height = len(costs), len(rows)
    table: list[list[int]] = []
    for place, (row, side) in enumerate(zip(rows, sides, strict=True)):
        common = lcm(side.denominator, *(c.denominator for c in row)) * (-1 if side < 0 else 1)
        whole = [c.numerator * (common // c.denominator) for c in (*row, side)]
        extra = [0] * height
        extra[place] = abs(common)
        table.append(_lowest([*whole[:-1], *extra, whole[-1]]))
    basis = list(range(count, count + height))
    if _pivoted(table, basis, [Fraction(0)] * count + [Fraction(1)] * height) != 0:
        return None
    for place, chosen in enumerate(basis):  # an artificial one that is left is 0: another takes its place where its row has any
        if chosen >= count:
            column = next((c for c in range(count) if table[place][c]), None)
            if column is not None:
                _pivot(table, basis, place, column)
    kept = [place for place, chosen in enumerate(basis) if chosen < count]
    table = [_lowest([*table[place][:count], table[place][-1]]) for place in kept]
    return _pivoted(table, [basis[place] for place in kept], list(costs))


def _pivoted(table: list[list[int]], basis: list[int], costs: Sequence[Fraction]) -> Fraction:
    """The least cost, from the basic solution at hand. A row of the table is any positive multiple of its equation, in whole numbers; the
    last row, while it pivots, is one of what each column saves: below 0 where its variable should enter."""
    table.append(_saved(table, basis, costs))
    while True:
        entering = next((c for c, saved in enumerate(table[-1][:-1]) if saved < 0), None)
        if entering is None:
            table.pop()
            return sum((costs[b] * Fraction(row[-1], row[b]) for b, row in zip(basis, table, strict=True)), Fraction(0))
        best: int | None = None
        for place, row in enumerate(table[:-1]):
            if row[entering] <= 0:
                continue
            if best is not None:
                step = row[-1] * table[best][entering] - table[best][-1] * row[entering]
            if best is None or (step, basis[place]) < (0, basis[best]):
                best = place
        if best is None:  # the dual program has no bound: the program itself has no point
            raise Contradiction
        _pivot(table, basis, best, entering)


def _saved(table: Sequence[Sequence[int]], basis: Sequence[int], costs: Sequence[Fraction]) -> list[int]:
    """What each column costs less what it costs in the variables of the basis, as a multiple; the last number is of no use."""
    prices = [costs[b] / row[b] for b, row in zip(basis, table, strict=True)]
    common = lcm(*(each.denominator for each in (*costs, *prices)))
    found = [c.numerator * (common // c.denominator) for c in (*costs, Fraction(0))]
    for price, row in zip(prices, table, strict=True):
        if price:
            factor = price.numerator * (common // price.denominator)
            found = [value - factor * base for value, base in zip(found, row, strict=True)]
    return _lowest(found)


def _pivot(table: list[list[int]], basis: list[int], place: int, column: int) -> None:
    """Let `column` enter the basis in the row `place`."""
    if table[place][column] < 0:
        table[place] = [-value for value in table[place]]
    chosen, pivot = table[place], table[place][column]
    for other, row in enumerate(table):
        factor = row[column]
        if other != place and factor:
            table[other] = _lowest([value * pivot - factor * base for value, base in zip(row, chosen, strict=True)])
    basis[place] = column


def _lowest(row: list[int]) -> list[int]:
    """A row in lowest terms."""
    common = gcd(*row)
    return [value // common for value in row] if common > 1 else row
