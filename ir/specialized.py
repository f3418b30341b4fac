"""Terms with other dims in place of dim symbols: what a program is for these sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.ir.dims import Dim, Poly, substitute
from coset.ir.term import Region, Term, make
from coset.ir.types import TensorType, TupleType


def specialized(roots: Sequence[Term], sizes: Mapping[str, Dim], put: Mapping[Term, Term] | None = None) -> list[Term]:
    """`roots` with `sizes` for their dim symbols, in functions too; `put` are terms that stand for some of them, and are left as they are.

    Raises:
        CosetError: a term has no type with these sizes.
    """

    made = dict(put or {})
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        term, ready = stack.pop()
        if term in made:
            continue
        if not ready:
            stack += [(term, True), *((operand, False) for operand in reversed(term.operands))]
            continue
        made[term] = sized_term(term, [made[operand] for operand in term.operands], sizes)
    return [made[root] for root in roots]


def sized_term(term: Term, operands: Sequence[Term], sizes: Mapping[str, Dim]) -> Term:
    """The term over `operands`, with `sizes` for its dim symbols.

    Raises:
        CosetError: it has no type so.
    """
    attributes = {name: sized(value, sizes) for name, value in term.attributes}
    return make(term.op, operands, attributes, tuple(sized_region(region, sizes) for region in term.regions))


def sized_region(region: Region, sizes: Mapping[str, Dim]) -> Region:
    """A function with `sizes` for its dim symbols."""
    ends = specialized((*region.parameters, *region.results), sizes)
    return Region(tuple(ends[: len(region.parameters)]), tuple(ends[len(region.parameters) :]))


def sized(value: Any, sizes: Mapping[str, Dim]) -> Any:
    """An attribute's value, or a type, with `sizes` for its dim symbols."""
    if isinstance(value, Poly):
        return substitute(value, sizes)
    if isinstance(value, TensorType) and value.shape is not None:
        return TensorType(value.dtype, tuple(sized(dim, sizes) for dim in value.dims))
    if isinstance(value, TupleType):
        return TupleType(tuple(sized(item, sizes) for item in value.items))
    return tuple(sized(item, sizes) for item in value) if type(value) is tuple else value
