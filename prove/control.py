"""Elements of ops with payload functions of which not the order matters: maps, branches, loops that are not entered. For `prove.denote`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coset.dialects.hub_region_terms import applied
from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.prove import functions, scalar
from coset.prove.scalar import Form

if TYPE_CHECKING:
    from coset.prove.denote import Denotation

Index = tuple[Dim, ...]


def map_(elements: Denotation, term: Term, index: Index) -> Form:
    with elements.strict():  # the function may tell the zeros apart
        (result,) = elements.applied(term.regions[0], [elements.element(x, index) for x in term.operands])
    return result


def branch(elements: Denotation, term: Term, index: Index) -> Form:
    chosen, *captured = term.operands
    sides = [applied(region, captured)[0] for region in term.regions]
    return functions.choice(elements.element(chosen, ()), *(elements.element(side, index) for side in sides))


def loop(elements: Denotation, term: Term, index: Index) -> Form:
    entered = applied(term.regions[0], term.operands)[0]
    if len(term.operands) == 1 and elements.element(entered, ()) == scalar.number(0):
        return elements.element(term.operands[0], index)
    return elements.uninterpreted(term, index)
