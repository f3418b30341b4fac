"""Constants of the program that was written which stand for what was computed with roundings, and for something else as well: apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coset.dialects.hub.terms import is_splat
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term, topological
from coset.prove.contents import all_terms, other_of, set_apart
from coset.prove.folded import computes, leaves_of
from coset.prove.valued import Evaluation, Uncomputed
from coset.proving.meanings import DEFINED, meaning_of
from coset.proving.steps import APART, COMPUTED, ROUNDED, CertificateStep, Mapped


def with_own_constants(
    chosen: Sequence[Term], values: Sequence[CertificateStep], before: Program, after: Program
) -> tuple[tuple[Term, ...], list[CertificateStep], Program]:
    """The terms that were `chosen` with constants of their own where these were computed with roundings and have the elements of others;
    the steps that say so, with those about `values`; and `after` with such constants in their places."""
    mine = set(all_terms(before))
    put: dict[Term, Term] = {}
    steps: list[CertificateStep] = []
    number = 0
    for step in values:
        (term,), (value,) = step.left, step.right
        place = _place(value, after, mine) if computes(term) and value not in put else None
        if place is None or not _collides(place, term, mine, after) or not _rounds(term):
            steps.append(step)
            continue
        number += 1
        other = other_of(place.stored, number)
        after = set_apart(after, place.stored, frozenset(place.users), other)
        steps.append(CertificateStep(APART, (place.stored, *place.users), (other,)))
        (leaf,) = leaves_of(other)
        if value in leaves_of(place.stored):  # the number itself: what spreads it follows
            put[value] = leaf
            steps.append(CertificateStep(ROUNDED, (term,), (leaf,)))
        else:
            put[value] = other
            steps += [step, CertificateStep(COMPUTED, (other,), (value,))]
    return (Mapped(dict(put)).all(chosen) if put else tuple(chosen)), steps, after


@dataclass(frozen=True)
class _Place:
    """A value in the program after: the constant, or what spreads the number that fills it, and the nodes that it was written for."""

    stored: Term
    users: tuple[Term, ...]


def _place(value: Term, after: Program, mine: set[Term]) -> _Place | None:
    """Where the program after has a value; what the program before has as well was not written for it."""
    terms = all_terms(after)
    for stored in terms:
        if stored is value or _spreads(stored, value):
            users = tuple(term for term in terms if stored in term.operands and term not in mine)
            if users:
                return _Place(stored, users)
    return None


def _spreads(term: Term, value: Term) -> bool:
    """Whether a term is the number that fills a value, or that is the value, in many places."""
    if len(term.operands) != 1 or is_splat(term) is None:
        return False
    (number,) = leaves_of(term)
    return number is value or (term.type == value.type and _fills(number, value))


def _fills(number: Term, value: Term) -> bool:
    """Whether a number is each element of a constant."""
    one, array = number.attribute("value").array(), value.attribute("value").array()
    return bool(array.size) and bool((array.reshape(-1).view(f"V{array.itemsize}") == one.reshape(-1).view(f"V{one.itemsize}")[0]).all())


def _collides(place: _Place, computed: Term, mine: set[Term], after: Program) -> bool:
    """Whether a constant stands for something else as well: before, in what is computed, or at another place after."""
    (leaf,) = leaves_of(place.stored)
    others = (term for term in all_terms(after) if leaf in term.operands and term not in place.users and term is not place.stored)
    return leaf in mine or leaf in topological([computed]) or any(others)


def _rounds(term: Term) -> bool:
    """Whether what a term computes is rounded on the way."""
    try:
        return not Evaluation({}, meaning_of, DEFINED, lambda *_: None).known(term).error.exact
    except (Uncomputed, CosetError):
        return False
