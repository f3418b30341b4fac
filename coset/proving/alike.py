"""Terms of two programs that are probably equal: those with one value on a drawn input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from coset.comparing.feeds import Feed, cases
from coset.comparing.sizes import bindings, with_few_rows
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import TensorType
from coset.proving.constants import Goal
from coset.proving.join import in_order, kind_of
from coset.proving.prints import Prints, Shelf, known_by

NEAR = 1e-3  # of the size of the elements: how far sums may be apart; more than roundings, as a wrong pair costs a search and no more


def drawn(program: Program, given: Mapping[str, int]) -> Iterator[Feed]:
    """The plainest inputs of a program, of few rows first, then of as many as are natural."""
    tried: list[Mapping[str, int]] = []
    for binding in chain.from_iterable(zip(with_few_rows(program, given), bindings(program, given), strict=True)):
        if binding in tried:
            continue
        tried.append(binding)
        try:
            yield next(cases(program, binding)).feed
        except CosetError:  # they are too many numbers
            continue


def by_values(one: Program, other: Program, feeds: Iterable[Feed], goals: Sequence[Goal]) -> Sequence[Goal]:
    """Pairs of terms below the goals, which are terms of the two programs, on the first of `feeds` on which both have values; as `in_order`
    where they have none on any."""
    sides = [
        replace(program, outputs=tuple((str(place), root) for place, root in enumerate(roots)), effects=None)
        for program, roots in zip((one, other), zip(*goals, strict=True), strict=True)
    ]
    for feed in feeds:
        try:
            return _pairs(*({term: own for term, own in known_by(side, feed).items() if counts(term)} for side in sides))
        except (CosetError, ValueError):
            continue
    return in_order(goals)


def _pairs(ours: Prints, theirs: Prints) -> list[Goal]:
    shelf = Shelf((term.type, own, term) for term, own in ours.items())
    pairs = []
    taken: set[Term] = set()
    for term, own in theirs.items():
        if term in ours:
            continue  # both programs have it
        kind = kind_of(term)
        near = [
            (kind_of(one) != kind, one in taken, own.distance(other), one) for other, one in shelf.near(term.type, own, NEAR * own.scales)
        ]
        if near:
            found = min(near, key=lambda each: each[:3])[3]
            taken.add(found)
            pairs.append((found, term))
    return pairs


def counts(term: Term) -> bool:
    """True of what is worth a look for its value: movement is no end of a piece: the rules are about what it is part of."""
    return bool(term.operands) and isinstance(term.type, TensorType) and not term.op.has("movement") and not term.op.has("effect")
