"""Constants of the program that was written which stand for what was computed with roundings, and for something else as well: apart."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub_terms import is_splat
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import CONSTANT, Term, rebuild, topological
from coset.prove.contents import all_terms, other_of, set_apart
from coset.prove.folded import computes
from coset.prove.valued import Evaluation, Uncomputed
from coset.proving.meanings import DEFINED, meaning_of
from coset.proving.steps import APART, COMPUTED, ROUNDED, Mapped, Step


def with_own_constants(
    chosen: Sequence[Term], values: Sequence[Step], before: Program, after: Program
) -> tuple[tuple[Term, ...], list[Step], Program]:
    """The terms that were `chosen` with constants of their own where these were computed with roundings and have the elements of others;
    the steps that say so, with those about `values`; and `after` with such constants in their places."""
    mine = set(all_terms(before))
    put: dict[Term, Term] = {}
    steps: list[Step] = []
    number = 0
    for step in values:
        (term,), (value,) = step.left, step.right
        place = _place(value, after, mine) if computes(term) else None
        if place is None or value in put or not _collides(place[0], place[1], term, mine, after) or not _rounds(term):
            steps.append(step)
            continue
        stored, users = place
        number += 1
        other = other_of(stored, number)
        after = set_apart(after, stored, frozenset(users), other)
        steps.append(Step(APART, (stored, *users), (other,)))
        if stored is value:
            steps.append(Step(ROUNDED, (term,), (other,)))
            put[value] = other
        else:
            (user,) = users
            spread = rebuild(user, [other])
            steps += [step, Step(COMPUTED, (spread,), (value,))]
            put[value] = spread
    return (Mapped(dict(put)).all(chosen) if put else tuple(chosen)), steps, after


def _place(value: Term, after: Program, mine: set[Term]) -> tuple[Term, list[Term]] | None:
    """Where the program after has a value: the constant, whole or as the number that fills it, and the nodes that it was written for."""
    terms = all_terms(after)
    if value in terms:
        users = [term for term in terms if value in term.operands and term not in mine]
        return (value, users) if users else None
    for term in terms:
        number = is_splat(term) if len(term.operands) == 1 and term.type == value.type and term not in mine else None
        if number is not None and term.operands[0].op is CONSTANT and _fills(term.operands[0], value):
            return term.operands[0], [term]
    return None


def _fills(number: Term, value: Term) -> bool:
    """Whether a number is each element of a constant."""
    one, array = number.attribute("value").array(), value.attribute("value").array()
    return bool(array.size) and bool((array.reshape(-1).view(f"V{array.itemsize}") == one.reshape(-1).view(f"V{one.itemsize}")[0]).all())


def _collides(stored: Term, users: Sequence[Term], computed: Term, mine: set[Term], after: Program) -> bool:
    """Whether a constant stands for something else as well: before, in what is computed, or at another place after."""
    others = (term for term in all_terms(after) if stored in term.operands and term not in users)
    return stored in mine or stored in topological([computed]) or any(others)


def _rounds(term: Term) -> bool:
    """Whether what a term computes is rounded on the way."""
    try:
        return not Evaluation({}, meaning_of, DEFINED, lambda *_: None).known(term).error.exact
    except (Uncomputed, CosetError):
        return False
