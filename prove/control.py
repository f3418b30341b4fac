"""Elements of ops with payload functions that are looked into: maps, folds, branches, loops that are not entered. For `prove.denote`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from coset.dialects.hub.region_terms import applied
from coset.dialects.hub.tensors import identity
from coset.ir.constants import constant_of
from coset.ir.dims import Dim
from coset.ir.term import CONSTANT, Region, Term, make
from coset.prove import scalar
from coset.prove.scalar import MonomialSum

if TYPE_CHECKING:
    from coset.prove.denote import Denotation

Index = tuple[Dim, ...]
ROUNDED = ("add", "multiply")
WORDS = (*ROUNDED, "maximum", "minimum", "and", "or")


def map_(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    with elements.strict():  # the function may tell the zeros apart
        (result,) = elements.applied(term.regions[0], [elements.element(x, index) for x in term.operands])
    return result


def fold(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    """A reduction by a function that is an op with a word is one by that word, with the init value once; regrouping it may round."""
    word = _word(term.regions[0])
    if len(term.operands) != 2 or word is None or (word in ROUNDED and not elements.real and term.tensor.dtype.kind == "float"):
        return elements.uninterpreted(term, index)
    x, init = term.operands
    folded = make("stablehlo.reduce", (x,), {"dimensions": term.attribute("dimensions"), "combiner": word})
    neutral = constant_of(identity(word, term.tensor.dtype), term.tensor.dtype).key
    if init.op is CONSTANT and init.attribute("value").key == neutral:
        return elements.element(folded, index)
    return elements.scalar(word, [elements.element(init, ()), elements.element(folded, index)], term.tensor)


def _word(region: Region) -> str | None:
    """The combiner whose op is all that the function does."""
    if len(region.results) != 1:
        return None
    (result,) = region.results
    word = result.op.name.removeprefix("stablehlo.")
    return word if word in WORDS and set(result.operands) == set(region.parameters) else None


def branch(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    chosen, *captured = term.operands
    sides = [applied(region, captured)[0] for region in term.regions]
    return elements.chosen(elements.element(chosen, ()), *(partial(elements.element, side, index) for side in sides))


def loop(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    entered = applied(term.regions[0], term.operands)[0]
    if len(term.operands) == 1 and elements.element(entered, ()) == scalar.number(0):
        return elements.element(term.operands[0], index)
    return elements.uninterpreted(term, index)
