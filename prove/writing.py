"""What makers of certificates write: values of attributes, terms and functions as JSON. `coset.prove.certificate` reads them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from coset.ir.constants import INLINE_ELEMENTS, Constant
from coset.ir.dim_text import parse
from coset.ir.dims import Poly
from coset.ir.errors import CosetError
from coset.ir.quantized import QuantizedType
from coset.ir.term import Region, Term, exact_key, topological
from coset.ir.types import AbsentType, DType, ForeignType, TensorType, TokenType, TupleType
from coset.prove.certificate import Line, Numbered


class Unwritable(Exception):
    """A value that certificates have no form for."""


def encode(value: Any) -> Any:
    """An attribute's value as JSON.

    Raises:
        Unwritable: there is no form for it.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex() if value == value else "nan"}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Poly):
        if parse(str(value)) != value:
            raise Unwritable("dim")
        return {"dim": value}
    if isinstance(value, QuantizedType | Region | TokenType | ForeignType):
        raise Unwritable(type(value).__name__)
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, TensorType):
        return {"tensor": [encode(value.dtype), None if value.shape is None else encode(value.shape)]}
    if isinstance(value, TupleType):
        return {"types": encode(value.items)}
    if isinstance(value, AbsentType):
        return {"absent": True}
    if isinstance(value, Constant) and value.has_elements and value.array().size <= INLINE_ELEMENTS and value.type.dtype.kind != "string":
        array = np.ascontiguousarray(value.array())
        return {"constant": [encode(value.type), base64.b64encode(array.reshape(-1).view(np.uint8).tobytes()).decode()]}
    raise Unwritable(type(value).__name__)


# ---------------------------------------------------------------- terms


def term_line(term: Term, numbered: Numbered, alike: Mapping[Any, int]) -> Line:
    """The line that adds `term`, whose operands have numbers. `alike`: terms by what is not their operands."""
    operands = [numbered.number[operand] for operand in term.operands]
    known = alike.get(_payload_key(term)) if term.regions else None
    if known is not None:
        return {"term": [term.op.name, operands, known]}
    try:
        return {"term": [term.op.name, operands, *_payload(term)]}
    except Unwritable as error:
        known = alike.get(_payload_key(term))
        if known is None:
            raise CosetError(f"a certificate cannot say `{term.op.name}`: it has no form for a {error} that neither program has") from None
        return {"term": [term.op.name, operands, known]}


def _payload(term: Term) -> list[Any]:
    """The attributes of a term and, where it has functions, these."""
    attributes = {name: encode(value) for name, value in term.attributes}
    return [attributes, *([[encode_function(region) for region in term.regions]] if term.regions else [])]


def encode_function(region: Region) -> list[Any]:
    """A function as JSON: its terms, operands first, then the numbers of its parameters and of its results.

    Raises:
        Unwritable: an attribute in it has no form.
    """
    numbers: dict[Term, int] = {}
    rows = []
    for term in topological((*region.parameters, *region.results)):
        rows.append([term.op.name, [numbers[operand] for operand in term.operands], *_payload(term)])
        numbers[term] = len(numbers)
    return [rows, [numbers[term] for term in region.parameters], [numbers[term] for term in region.results]]


def alike_of(terms: Iterable[Term]) -> dict[Any, int]:
    """The numbers of terms by what is not their operands, the first of each."""
    found: dict[Any, int] = {}
    for number, term in enumerate(terms):
        found.setdefault(_payload_key(term), number)
    return found


def _payload_key(term: Term) -> Any:
    return term.op, exact_key(term.attributes), term.regions
