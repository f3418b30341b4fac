"""A model whose random nodes have seeds, so that two models that draw the same numbers can be compared."""

from __future__ import annotations

from pathlib import Path

from coset.comparing.fold import computed, fallback_of_constants
from coset.frontends.onnx.model import import_model
from coset.frontends.onnx.seeds import effects_of, marked, numbered
from coset.ir.constants import Constant
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import CONSTANT, Term, topological


def with_seeds(model: str | Path | bytes) -> bytes | None:
    """The serialized model in which each node that draws has a seed of its own where it has none: its number among those that draw, in the
    order of the file. One does not draw that the program which is read from the model lacks (it stands in a branch that is never taken),
    nor a Dropout that constants switch off, however they are computed. None where nothing draws.
    """
    given = marked(model)
    if given is None:
        return None
    found, marks = given
    try:
        program = import_model(found, folder=None if isinstance(model, bytes) else Path(model).parent.resolve())
    except CosetError:  # what runs the model says what is wrong with it
        return numbered(found, marks, marks)
    return numbered(found, marks, {seed for seed, switch in effects_of(program) if not _is_off(switch, program)})


def _is_off(switch: Term | None, program: Program) -> bool:
    """Whether constants say that a Dropout does not train."""
    if switch is None or any(not each.operands and each.op is not CONSTANT for each in topological([switch])):
        return False
    try:
        value = computed(switch, fallback_of_constants(program.source))
    except CosetError:
        return False
    known = value.attribute("value") if value.op is CONSTANT else None
    return isinstance(known, Constant) and not known.array().any()
