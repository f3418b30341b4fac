"""What outputs are like on usual inputs: how large, and of which little is seen because they are at the ends of a bounded function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coset.comparing.difference import MOST_NOISE, ROUNDINGS
from coset.comparing.noise import floating, wide
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.term import Term
from coset.prove.error_bound import roundoff

BOUNDED = frozenset({"logistic", "sigmoid", "hardsigmoid", "softmax", "tanh", "erf", "softsign", "sine", "cosine", "sin", "cos"})  # to 1


def usual_sizes(program: Program, outputs: Mapping[str, Any]) -> dict[str, float]:
    """The size of the largest element of each output, which a program gives on usual inputs. Of what a bounded function gives at least so
    much that noise may excuse a few roundings of 1: near its ends a runtime's kernel is off by these, not by roundings of its results
    (ONNX Runtime's Sigmoid of -16 by all of it)."""
    bounded = {name for name, root in program.outputs if _is_bounded(root)}
    return {name: max(largest(value), _of_one(value) if name in bounded else 0.0) for name, value in outputs.items()}


def _of_one(value: Any) -> float:
    """The size of an output of which noise may excuse `ROUNDINGS` of 1."""
    return ROUNDINGS * roundoff(value.dtype) / MOST_NOISE if isinstance(value, np.ndarray) and floating(value) else 0.0


def blindness(program: Program, results: Sequence[Mapping[str, Any]]) -> str:
    """Which outputs are within roundings of 0, 1 and -1 in all of the `results`, as bounded functions far out are: words for the user."""
    names = [name for name, root in program.outputs if _is_bounded(root) and results and all(_at_ends(each[name]) for each in results)]
    quoted = ", ".join(f"`{name}`" for name in names)
    return f"{quoted} {'is' if len(names) == 1 else 'are'} 0, 1 or -1 but for roundings on ordinary drawn inputs" if names else ""


def _at_ends(value: Any) -> bool:
    if not isinstance(value, np.ndarray) or not floating(value):
        return False
    sizes = np.abs(wide(value))
    return bool(np.all(np.minimum(sizes, np.abs(sizes - 1)) <= ROUNDINGS * roundoff(value.dtype)))


def _is_bounded(term: Term) -> bool:
    while term.op.has("movement") and term.operands:
        term = term.operands[0]
    return describe(term).rpartition(".")[2].lower() in BOUNDED


def largest(value: Any) -> float:
    """The size of the largest finite element, of all in a sequence; 0 for what is no float."""
    if isinstance(value, list):
        return max(map(largest, value), default=0.0)
    if not isinstance(value, np.ndarray) or not floating(value):
        return 0.0
    sizes = np.abs(wide(value))
    return float(np.max(sizes[np.isfinite(sizes)], initial=0.0))
