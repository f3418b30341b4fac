"""How heavy the values are that a program stores in f16 and 8-bit floats, beside those of the original: exact evaluation, in f64, on
drawn inputs of growing size.

A value v of type D weighs |v| / max(D); weights below 2^-8 of f16 do not count (`docs/rules.md`, range). A program whose heaviest value
weighs more than twice the original's is a different one: it overflows where the original does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from coset.comparing.check import CheckReport
from coset.comparing.difference import Difference
from coset.comparing.drawing import INFINITE
from coset.comparing.feeds import Case, Feed, cases
from coset.comparing.noise import weight_bytes
from coset.comparing.reference import against_reference, values_in_order, work_of
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import DTYPES, F64, DType, TensorType
from coset.prove.retyped import retyped
from coset.rules.definition import evaluate_defined
from coset.rules.ranges import class_of

NARROW = ("f16", "f8")  # classes whose range is so small that every program is weighed
LEAST = {"f16": 2.0**-8, "f8": 0.0}  # weights below which nothing counts
HEAVIER = 2.0  # times as heavy as the original
EXPONENTS = (0, 3, 6, 9, 12)  # of the factors of ordinary inputs: they fill the range of f16
MOST_BYTES = 64 << 20  # of weights, above which a program is not evaluated in f64
FLOATS = ("float", "complex")
MOST_WORK = 1 << 31  # FLOP, above which it is not evaluated as it is stored
STORED = "the evaluator, which rounds where the programs store"
WIDE = {dtype: F64 for dtype in DTYPES.values() if dtype.kind == "float" and dtype.bits <= 32}


@dataclass(frozen=True)
class Weighed:
    """The heaviest value of a program on one case: its weight, and the op and type that it is of."""

    weight: float
    what: str


@dataclass(frozen=True)
class WeightScales:
    """The `original` and its heaviest values by case; none where nothing is narrow, or it cannot be evaluated."""

    original: Program
    feeds: Mapping[str, Feed]
    heaviest: Mapping[str, Weighed]

    def compare(self, report: CheckReport, program: Program, exceptions: AbstractSet[str] = frozenset()) -> CheckReport:
        """`report` with a difference for the case on which `program` is too heavy, if there is one, or with those of what both store.
        `exceptions`: those of the rules that it rests on."""
        for case, own in self.heaviest.items():
            found = _heaviest(program, self.feeds[case], report.binding)
            if found is not None and found.weight > HEAVIER * own.weight:
                problem = f"{found.what} is {found.weight / own.weight:.3g} times as heavy as the heaviest value of the original"
                return replace(
                    report, differences=[*report.differences, Difference(case, program.outputs[0][0], np.inf, np.inf, 0.0, problem)]
                )
        return as_stored(self.original, program, report, exceptions) if self.heaviest else report


def as_stored(original: Program, other: Program, report: CheckReport, exceptions: AbstractSet[str]) -> CheckReport:
    """`report`, or how `other` differs from the original where both are evaluated with every value rounded to the type that it is stored
    in, as a GPU runs them: ONNX Runtime's kernels for the CPU compute 16-bit floats in f32, which hides what overflows or loses digits."""
    if work_of(original, report.binding) > MOST_WORK or any(map(_jumps, original.terms())):
        return report

    def run(feed: Feed) -> Feed:
        return values_in_order(original, other, feed)

    found = against_reference(original, run, report.binding, exceptions=exceptions, draw=_ordinary)
    return report if found.ok else replace(report, differences=[*report.differences, *found.differences], by=STORED)


def _jumps(term: Term) -> bool:
    """Whether integers or truths are made of floats: then a rounding decides between far values, and each runtime rounds as it likes."""
    types = [each.type for each in (term, *term.operands) if isinstance(each.type, TensorType)]
    return len(types) > 1 and types[0].dtype.kind not in FLOATS and any(type.dtype.kind in FLOATS for type in types[1:])


def _ordinary(program: Program, binding: Mapping[str, int], seed: int) -> Iterator[Case]:
    """The drawn inputs of numbers: what happens to NaN and infinities does not depend on what runs the program."""
    return (case for case in cases(program, binding, seed) if case.name not in ("nan", INFINITE))


def scales_of(program: Program, binding: Mapping[str, int]) -> WeightScales:
    """The original, weighed."""
    if not any(map(_narrow, program.terms())) or program.effects is not None or weight_bytes(program) > MOST_BYTES:
        return WeightScales(program, {}, {})
    first = next(cases(program, binding))
    feeds = {f"2^{exponent} times {first.name}": _scaled(first.feed, program, exponent) for exponent in EXPONENTS}
    found = {case: _heaviest(program, feed, binding) for case, feed in feeds.items()}
    return WeightScales(program, feeds, {case: own for case, own in found.items() if own is not None})


def _scaled(feed: Feed, program: Program, exponent: int) -> Feed:
    """Inputs in f64, floats times a power of 2, as far as their own types go."""
    types = {str(term.attribute("name")): term.type for term in program.inputs}
    return {name: _one_scaled(value, types[name], exponent) for name, value in feed.items()}


def _one_scaled(value: Array, type: object, exponent: int) -> Array:
    if not isinstance(type, TensorType) or type.dtype not in WIDE:
        return value
    most = _largest(type.dtype)
    return np.clip(value.astype(np.float64) * 2.0**exponent, -most, most)


def _heaviest(program: Program, feed: Feed, binding: Mapping[str, int]) -> Weighed | None:
    """The heaviest narrow value, at least what counts; None where a value is not finite or the program cannot be evaluated."""
    terms = list(program.terms())
    try:
        wide = retyped(terms, WIDE)
    except CosetError:
        return None
    narrow: dict[Term, Term] = {}
    for term, other in zip(terms, wide, strict=True):
        if _narrow(term):
            narrow.setdefault(other, term)
    try:
        with np.errstate(all="ignore"):
            values = evaluate(list(narrow), feed, fallback=evaluate_defined, binding=binding)
    except CosetError:
        return None
    return _worst(list(narrow.values()), values)


def _worst(terms: Sequence[Term], values: Sequence[Array]) -> Weighed | None:
    worst = Weighed(0.0, "")
    for term, value in zip(terms, values, strict=True):
        size = float(np.max(np.abs(np.asarray(value, np.float64)), initial=0.0))
        if not np.isfinite(size):
            return None
        dtype = term.tensor.dtype
        weight = max(size / _largest(dtype), LEAST[class_of(dtype)])
        if weight > worst.weight:
            worst = Weighed(weight, f"`{term.op.name}` of {dtype}")
    return worst if worst.weight else None


def _narrow(term: Term) -> bool:
    return isinstance(term.type, TensorType) and term.type.dtype.kind == "float" and class_of(term.type.dtype) in NARROW


def _largest(dtype: DType) -> float:
    return float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
