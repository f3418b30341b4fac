"""Programs with numbers for their dim symbols: every type, attribute and region that mentions one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coset.ir.builtin import DIMS
from coset.ir.dims import Dim, Poly, substitute
from coset.ir.program import Program
from coset.ir.term import Region, Term, constant, make, topological
from coset.ir.types import TensorType, TupleType, Type


def with_sizes(program: Program, binding: Mapping[str, Dim]) -> Program:
    """`program` with the symbols of `binding` replaced; symbols that it does not have stay.

    Raises:
        TypeRuleError: an op refuses the numbers.
    """
    terms = resized((*program.inputs, *program.roots), binding)
    inputs, roots = terms[: len(program.inputs)], terms[len(program.inputs) :]
    return replace(program.with_roots(tuple(roots)), inputs=tuple(inputs))


def resized(roots: Sequence[Term], binding: Mapping[str, Dim]) -> list[Term]:
    """The terms with the symbols of `binding` replaced, in all that they are made of."""
    done: dict[Term, Term] = {}
    for term in topological(roots):
        attributes = {name: _value(value, binding) for name, value in term.attributes}
        if term.op is DIMS and not any(isinstance(dim, Poly) for dim in attributes["dims"]):
            type = term.tensor
            done[term] = constant(np.array(attributes["dims"], np.int64).astype(type.dtype.numpy).reshape(type.static or ()), type.dtype)
            continue
        regions = tuple(_region(region, binding) for region in term.regions)
        done[term] = make(term.op, [done[operand] for operand in term.operands], attributes, regions)
    return [done[root] for root in roots]


def _region(region: Region, binding: Mapping[str, Dim]) -> Region:
    terms = resized((*region.parameters, *region.results), binding)
    count = len(region.parameters)
    return Region(tuple(terms[:count]), tuple(terms[count:]))


def _value(value: Any, binding: Mapping[str, Dim]) -> Any:
    if isinstance(value, Poly):
        return substitute(value, binding)
    if isinstance(value, TensorType | TupleType):
        return _type(value, binding)
    return tuple(_value(item, binding) for item in value) if isinstance(value, tuple) else value


def _type(type: Type, binding: Mapping[str, Dim]) -> Type:
    if isinstance(type, TupleType):
        return TupleType(tuple(_type(item, binding) for item in type.items))
    if isinstance(type, TensorType) and type.shape is not None:
        return TensorType(type.dtype, tuple(substitute(dim, binding) for dim in type.shape))
    return type
