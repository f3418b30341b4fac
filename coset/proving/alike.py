"""Terms of two programs that are probably equal: those with one value on a drawn input."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from coset.feeds import Feed
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import TensorType
from coset.proving.constants import Goal
from coset.proving.difference import Print, known_by
from coset.proving.join import in_order, kind_of

NEAR = 1e-3  # of the size of the elements: how far sums may be apart; more than roundings, as a wrong pair costs a search and no more


def by_values(one: Program, other: Program, feeds: Iterable[Feed], goals: Sequence[Goal]) -> Sequence[Goal]:
    """Pairs of terms below the goals, which are terms of the two programs, on the first of `feeds` on which both have values; as `in_order`
    where they have none on any."""
    sides = [
        replace(program, outputs=tuple((str(place), root) for place, root in enumerate(roots)), effects=None)
        for program, roots in zip((one, other), zip(*goals, strict=True), strict=True)
    ]
    for feed in feeds:
        try:
            return _pairs(*({term: own for term, own in known_by(side, feed).items() if _counts(term)} for side in sides))
        except (CosetError, ValueError):
            continue
    return in_order(goals)


def _pairs(ours: Mapping[Term, Print], theirs: Mapping[Term, Print]) -> list[Goal]:
    rows: dict[Hashable, list[tuple[float, Print, Term]]] = {}
    for term, own in ours.items():
        rows.setdefault((term.type, own.key), []).append((own.first, own, term))
    for row in rows.values():
        row.sort(key=lambda entry: entry[0])
    pairs = []
    taken: set[Term] = set()
    for term, own in theirs.items():
        if term in ours:
            continue  # both programs have it
        near = _near(rows.get((term.type, own.key), []), own)
        kind = kind_of(term)
        if near:
            found = min(near, key=lambda each: (kind_of(each[1]) != kind, each[1] in taken, each[0]))[1]
            taken.add(found)
            pairs.append((found, term))
    return pairs


def _near(row: Sequence[tuple[float, Print, Term]], own: Print) -> list[tuple[float, Term]]:
    """The terms whose print may be that of the same value, with how far theirs is away."""
    around = NEAR * float(own.scales[0]) if own.scales.size else 0.0
    place = bisect_left(row, own.first - around, key=lambda entry: entry[0])
    found = []
    while place < len(row) and row[place][0] <= own.first + around:
        if own.close(row[place][1], NEAR * own.scales):
            found.append((own.distance(row[place][1]), row[place][2]))
        place += 1
    return found


def _counts(term: Term) -> bool:
    """Movement is no end of a piece: the rules are about what it is part of."""
    return bool(term.operands) and isinstance(term.type, TensorType) and not term.op.has("movement") and not term.op.has("effect")
