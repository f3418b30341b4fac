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

    def sized(value: Any) -> Any:
        if isinstance(value, Poly):
            return substitute(value, sizes)
        if isinstance(value, TensorType) and value.shape is not None:
            return TensorType(value.dtype, tuple(map(sized, value.dims)))
        if isinstance(value, TupleType):
            return TupleType(tuple(map(sized, value.items)))
        return tuple(map(sized, value)) if type(value) is tuple else value

    def function(region: Region) -> Region:
        ends = specialized((*region.parameters, *region.results), sizes)
        return Region(tuple(ends[: len(region.parameters)]), tuple(ends[len(region.parameters) :]))

    made = dict(put or {})
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        term, ready = stack.pop()
        if term in made:
            continue
        if not ready:
            stack += [(term, True), *((operand, False) for operand in reversed(term.operands))]
            continue
        attributes = {name: sized(value) for name, value in term.attributes}
        made[term] = make(term.op, [made[operand] for operand in term.operands], attributes, tuple(map(function, term.regions)))
    return [made[root] for root in roots]
