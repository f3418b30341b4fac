"""Types and functions on their way to another process, where equal ones must be one object too, and texts have other hashes. Who sends
something imports this (`tests/test_house.py`)."""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from coset.ir.op import get_op
from coset.ir.quantized import QuantizedType
from coset.ir.term import AttributeItems, Region, Term, intern, topological
from coset.ir.types import DTYPES, DType, TensorType, Type

Row = tuple[str, tuple[int, ...], AttributeItems, tuple[Region, ...], Type]


def _dtype(dtype: DType) -> tuple[Any, ...]:
    return _named, (dtype.name,)


def _named(name: str) -> DType:
    return DTYPES[name]


def _quantized(dtype: QuantizedType) -> tuple[Any, ...]:
    return QuantizedType, tuple(getattr(dtype, each.name) for each in fields(dtype))


def _tensor(type: TensorType) -> tuple[Any, ...]:
    return TensorType, (type.dtype, type.shape)


def _region(region: Region) -> tuple[Any, ...]:
    """As rows of terms, operands first."""
    numbers: dict[Term, int] = {}
    rows: list[Row] = []
    for term in topological((*region.parameters, *region.results)):
        rows.append((term.op.name, tuple(numbers[operand] for operand in term.operands), term.attributes, term.regions, term.type))
        numbers[term] = len(numbers)
    return _restored, (rows, [numbers[term] for term in region.parameters], [numbers[term] for term in region.results])


def _restored(rows: Sequence[Row], *ends: Sequence[int]) -> Region:
    terms: list[Term] = []
    for name, operands, attributes, regions, type in rows:
        terms.append(intern(get_op(name), tuple(terms[operand] for operand in operands), attributes, regions, type))
    parameters, results = (tuple(terms[number] for number in numbers) for numbers in ends)
    return Region(parameters, results)


copyreg.pickle(DType, _dtype)
copyreg.pickle(QuantizedType, _quantized)
copyreg.pickle(TensorType, _tensor)
copyreg.pickle(Region, _region)
