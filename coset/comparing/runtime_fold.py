"""Constants as the runtime that will run the program computes them: its kernels round otherwise than NumPy, and differ where a standard
leaves a case open (a sum of integers that does not fit, a maximum beside a NaN)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from coset.backends.onnxruntime import Session
from coset.comparing.fold import LOST, SECONDS, apart
from coset.comparing.worker import RequestLost
from coset.ir.errors import CosetError
from coset.ir.op import Array
from coset.ir.program_source import ProgramSource
from coset.ir.term import CONSTANT, Term, topological
from coset.ir.types import TensorType
from coset.lowering.onnx.model import part_model

MOST_BYTES = 1 << 26  # of constants, above which they are computed by the evaluator: a model that holds them is a copy
MOST_APART = 32  # terms that are asked for one by one, where the runtime does not compute all


def runtime_values(terms: Sequence[Term], source: ProgramSource | None, seconds: float = SECONDS) -> dict[Term, Array]:
    """What ONNX Runtime computes for constant terms of a program from `source`, without its optimizer, in a process of its own; those that
    only move numbers, and those that it does not compute, are left out. One that the process dies of, or is not done with after so many
    `seconds`, is among the `LOST`; they have as many seconds together where they are asked for one by one."""
    asked = [term for term in terms if _computes(term)]
    if not asked or sum(each.attribute("value").bytes for each in topological(asked) if each.op is CONSTANT) > MOST_BYTES:
        return {}
    lost = False
    try:
        return _values(asked, source, seconds)
    except RequestLost as error:
        if len(asked) == 1:
            LOST[asked[0]] = error.message
        lost = True
    except CosetError:
        pass
    return _one_by_one(asked, source, seconds) if len(asked) > 1 and (lost or len(asked) <= MOST_APART) else {}


def _one_by_one(terms: Sequence[Term], source: ProgramSource | None, seconds: float) -> dict[Term, Array]:
    found: dict[Term, Array] = {}
    deadline = time.monotonic() + seconds
    for term in terms:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            found |= _values([term], source, left)
        except RequestLost as error:
            LOST[term] = error.message
        except CosetError:
            continue
    return found


def _values(terms: Sequence[Term], source: ProgramSource | None, seconds: float) -> dict[Term, Array]:
    outputs = [(f"y{number}", term) for number, term in enumerate(terms)]
    model = part_model((), outputs, source).SerializeToString()
    values = apart(_run, model, seconds=seconds, doing="computing constants")
    return {term: values[name] for name, term in outputs if _fits(values[name], term)}


def _run(model: bytes) -> dict[str, Any]:
    return Session(model, arena=False).run({})


def _fits(value: Any, term: Term) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == term.tensor.dtype.numpy and value.shape == term.tensor.static


def _computes(term: Term) -> bool:
    """Whether numbers are computed, not only moved."""
    plain = isinstance(term.type, TensorType) and term.type.static is not None and term.type.dtype.kind != "string"
    return plain and any(each.operands and not each.op.has("movement") for each in topological([term]))
