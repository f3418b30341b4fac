"""A linear program over fractions: the largest value of a linear form where others are at most a number. Exact, for few variables.

Source: Dantzig's simplex method with Bland's rule (Bland, 1977), which comes to an end; variables may be negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

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
    table: list[list[Fraction]] = []
    for place, (row, side) in enumerate(zip(rows, sides, strict=True)):
        sign = -1 if side < 0 else 1
        extra = [Fraction(int(place == other)) for other in range(height)]
        table.append([*(sign * c for c in row), *extra, sign * side])
    basis = list(range(count, count + height))
    artificial = [Fraction(0)] * count + [Fraction(1)] * height
    if _pivoted(table, basis, artificial) != 0:
        return None
    for place, chosen in enumerate(basis):  # an artificial one that is left is 0: another takes its place where its row has any
        if chosen >= count:
            column = next((c for c in range(count) if table[place][c]), None)
            if column is not None:
                _pivot(table, basis, place, column)
    kept = [place for place, chosen in enumerate(basis) if chosen < count]
    table = [[*table[place][:count], table[place][-1]] for place in kept]
    return _pivoted(table, [basis[place] for place in kept], list(costs))


def _pivoted(table: list[list[Fraction]], basis: list[int], costs: Sequence[Fraction]) -> Fraction:
    """The least cost, from the basic solution at hand."""
    while True:
        used = set(basis)
        entering = next((c for c in range(len(costs)) if c not in used and costs[c] < _priced(table, basis, costs, c)), None)
        if entering is None:
            return sum((costs[b] * row[-1] for b, row in zip(basis, table, strict=True)), Fraction(0))
        ratios = [(row[-1] / row[entering], basis[place], place) for place, row in enumerate(table) if row[entering] > 0]
        if not ratios:  # the dual program has no bound: the program itself has no point
            raise Contradiction
        _pivot(table, basis, min(ratios)[2], entering)


def _priced(table: Sequence[Sequence[Fraction]], basis: Sequence[int], costs: Sequence[Fraction], column: int) -> Fraction:
    """What one of a column costs in the variables of the basis."""
    return sum((costs[b] * row[column] for b, row in zip(basis, table, strict=True) if row[column]), Fraction(0))


def _pivot(table: list[list[Fraction]], basis: list[int], place: int, column: int) -> None:
    """Let `column` enter the basis in the row `place`."""
    pivot = table[place][column]
    table[place] = [value / pivot for value in table[place]]
    for other, row in enumerate(table):
        if other != place and row[column]:
            factor = row[column]
            table[other] = [value - factor * base for value, base in zip(row, table[place], strict=True)]
    basis[place] = column
