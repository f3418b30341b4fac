"""Terms over other element types: the same ops on inputs and constants of the types that take the place of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coset.ir.constants import Constant, constant_of
from coset.ir.errors import CosetError
from coset.ir.term import Term, constant, input_term, make, topological
from coset.ir.types import DType, TensorType, Type


def retyped(roots: Sequence[Term], instead: Mapping[DType, DType]) -> list[Term]:
    """`roots` with each element type replaced that is a key of `instead`. Constants are rounded.

    Raises:
        CosetError: an op does not take the new types, or has payload functions.
    """
    done: dict[Term, Term] = {}
    for term in topological(roots):
        done[term] = _one(term, [done[operand] for operand in term.operands], instead)
    return [done[root] for root in roots]


def _one(term: Term, operands: Sequence[Term], instead: Mapping[DType, DType]) -> Term:
    if term.op.name == "builtin.input":
        return input_term(str(term.attribute("name")), _type(term.type, instead))
    if term.regions:
        raise CosetError(f"`{term.op.name}` has payload functions, which have types of their own")
    if term.op.name == "builtin.constant":
        return constant(_value(term.attribute("value"), instead))
    return make(term.op, operands, {name: _value(value, instead) for name, value in term.attributes})


def _type(type: Type, instead: Mapping[DType, DType]) -> Type:
    return TensorType(instead.get(type.dtype, type.dtype), type.shape) if isinstance(type, TensorType) else type


def _value(value: Any, instead: Mapping[DType, DType]) -> Any:
    """An attribute in the new types."""
    if isinstance(value, DType):
        return instead.get(value, value)
    if isinstance(value, Constant) and value.type.dtype in instead:
        new = instead[value.type.dtype]
        with np.errstate(all="ignore"):
            return constant_of(value.array().astype(new.numpy), new)
    return tuple(_value(item, instead) for item in value) if isinstance(value, tuple) else value
