"""Constants as the runtime that will run the program computes them: its kernels round otherwise than NumPy, and differ where a standard
leaves a case open (a sum of integers that does not fit, a maximum beside a NaN)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coset.backends.onnxruntime import Session
from coset.ir.errors import CosetError
from coset.ir.op import Array
from coset.ir.term import CONSTANT, Term, topological
from coset.ir.types import TensorType
from coset.lowering.onnx import part_model

MOST_BYTES = 1 << 26  # of constants, above which they are computed by the evaluator: a model that holds them is a copy
MOST_APART = 32  # terms that are asked for one by one, where the runtime does not compute all


def runtime_values(terms: Sequence[Term], source: Mapping[str, Any]) -> dict[Term, Array]:
    """What ONNX Runtime computes for constant terms of a program from `source`, without its optimizer; those that only move numbers, and
    those that it does not compute, are left out."""
    asked = [term for term in terms if _computes(term)]
    if not asked or sum(each.attribute("value").bytes for each in topological(asked) if each.op is CONSTANT) > MOST_BYTES:
        return {}
    try:
        return _values(asked, source)
    except CosetError:
        found: dict[Term, Array] = {}
        for term in asked if 1 < len(asked) <= MOST_APART else ():
            try:
                found |= _values([term], source)
            except CosetError:
                continue
        return found


def _values(terms: Sequence[Term], source: Mapping[str, Any]) -> dict[Term, Array]:
    outputs = [(f"y{number}", term) for number, term in enumerate(terms)]
    values = Session(part_model((), outputs, source).SerializeToString(), arena=False).run({})
    return {term: values[name] for name, term in outputs if _fits(values[name], term)}


def _fits(value: Any, term: Term) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == term.tensor.dtype.numpy and value.shape == term.tensor.static


def _computes(term: Term) -> bool:
    """Whether numbers are computed, not only moved."""
    plain = isinstance(term.type, TensorType) and term.type.static is not None and term.type.dtype.kind != "string"
    return plain and any(each.operands and not each.op.has("movement") for each in topological([term]))
