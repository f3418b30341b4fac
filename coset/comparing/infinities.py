"""Where a program's outputs are not finite: what they are if nothing overflows on the way.

An infinity or a NaN says nothing about rounding, but it is a result: `Where(mask, x, -inf)` is not `x`. So where the original is not
finite, what is made of it has the same infinity or NaN, or what the exact evaluation of the original says (`prove/exact_evaluation.py`):
then only the original overflowed, and to lose an overflow is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coset.comparing.feeds import Feed
from coset.comparing.fold import fallback_for
from coset.comparing.noise import weight_bytes, wide
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.op import Array
from coset.ir.program import Program
from coset.ir.term import Term
from coset.prove.exact_evaluation import Narrow, overflows, wide_inputs, widened

MOST_BYTES = 1 << 28  # of weights, above which a program is not evaluated in f64
FAR = 0.1  # of the largest element: how far a finite result may be off the exact one where the original has none
LOST = "a NaN is lost"  # the problems that are told
EXCHANGED = "a NaN where the original has an infinity, or the other way"
ANOTHER = "a number, or the other infinity, where the original has an infinity"
CHANGED = (LOST, EXCHANGED, ANOTHER)
REORDERED = frozenset({"nonfinite"})  # what sums and products in another order except
Exact = Callable[[], Array | None]
"""The exact values of an output on the inputs at hand, in f64; None where they are not known."""


@dataclass(frozen=True)
class ExactOutputs:
    """What a program gives exactly on some inputs, computed when it is first asked for: few comparisons do."""

    program: Program
    feed: Mapping[str, Array]

    @cached_property
    def values(self) -> Feed:
        """The outputs by name, as `exact_outputs`."""
        return exact_outputs(self.program, self.feed)

    def of(self, name: str) -> Exact:
        """What gives one output."""
        return lambda: self.values.get(name)


class _Overflows(Exception):
    """A number has left the range of f64."""


def exact_outputs(program: Program, feed: Mapping[str, Array]) -> Feed:
    """The exact evaluation of the float outputs, in f64; nothing where there is none, or f64 itself overflows on the way."""
    if weight_bytes(program) > MOST_BYTES or program.effects is not None:
        return {}
    seen: dict[Term, tuple[bool, bool]] = {}  # of floats: whether all are finite, whether there is a zero

    def tap(term: Term, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            operands = [seen[operand] for operand in term.operands if operand in seen]
            computed = bool(operands) and not term.op.has("movement") and not _of_nothing(term)
            if computed and overflows(term.op.name.removeprefix("stablehlo."), value, operands):
                raise _Overflows
            seen[term] = bool(np.isfinite(value).all()), bool((value == 0).any())
        return value

    try:
        opened = program.with_roots(tuple(widened(program.roots, {}, around=True)))
        with np.errstate(all="ignore"):
            values = evaluate_program(opened, wide_inputs(feed), fallback=fallback_for(program.source), tap=tap)
    except (Narrow, CosetError, ValueError, _Overflows):
        return {}
    found = {name: value for (name, _), value in zip(program.outputs, values, strict=True)}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray) and value.dtype == np.float64}


def _of_nothing(term: Term) -> bool:
    """True for the fold of an axis without elements, whose extreme is infinite and was not computed."""
    return term.op.name in ("stablehlo.reduce", "stablehlo.reduce_window") and 0 in (term.operands[0].tensor.static or ())


def problem_at_infinities(expected: Array, got: Array, exact: Exact | None, exceptions: AbstractSet[str], judged: Array) -> str:
    """What is wrong with real floats where those of the original are not finite; empty where nothing is. `exact`: the exact values of the
    original (None: its own count, whatever they come from); `exceptions`: those of the rules that were used; `judged`: which elements."""
    left, right = wide(expected), wide(got)
    differs = judged & ~np.isfinite(left) & ~_same(left, right)
    if "masked" in exceptions:
        differs &= ~np.isfinite(right)
    if "nonfinite" in exceptions:
        differs &= np.isfinite(right) | (np.isinf(left) & np.isinf(right))
    if exact is not None and differs.any():
        values = exact()
        if values is None or values.shape != left.shape:
            return ""  # what overflowed on the way is not known
        differs &= ~_is_exact(values, right, expected.dtype)
    if not differs.any():
        return ""
    left, right = left[differs], right[differs]
    if not np.isfinite(right).any() and not (np.isinf(left) & np.isinf(right)).any():
        return EXCHANGED
    return LOST if (np.isnan(left) & np.isfinite(right)).any() else ANOTHER


def _is_exact(values: Array, right: Array, dtype: np.dtype[Any]) -> Array:
    """Where numbers are the exact ones as they are stored, or near them, or overflow themselves."""
    with np.errstate(all="ignore"):
        stored = wide(values.astype(dtype))
        finite = np.isfinite(stored)
        scale = float(np.max(np.abs(stored), initial=0.0, where=finite))
        near = finite & (np.abs(right - stored) <= FAR * scale)
    return np.asarray(_same(stored, right) | near | (np.isfinite(values) & ~np.isfinite(right)))


def _same(left: Array, right: Array) -> Array:
    return np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))
