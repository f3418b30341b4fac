"""Growth that is measured: both sides of a small instance on inputs that fill the range of their type, evaluated in f64.

It shows nothing: what it lets pass is `tested` at that type. Of f64, which has nothing wider, it is measured in the range of f32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import Term, topological
from coset.ir.types import F32, F64, DType, TensorType
from coset.prove.retyped import retyped
from coset.prove.values import draw, fitted
from coset.rules.definition import evaluate_defined

DRAWS, RAISED = 40, 80  # draws, and how many more where something is raised to a power
RAISING = frozenset({"exponential", "exponential_minus_one", "power", "logistic", "log_plus_one", "cosh", "sinh"})
LARGEST_DEGREE = 4
SPREADS = (0.0, 1.0, 4.0, 24.0)  # of the elements of one input, as powers of 2 about one that is drawn
VAST = 1e9  # log2 of what is beyond f64


@dataclass(frozen=True)
class MeasuredGrowth:
    """How far a value outweighed the heaviest of the left: 2^first, 2^second times; and by how much, `over`, it left the domain of
    2^(+-room) where the values of the left stayed within the root of it that belongs to the largest degree."""

    first: float
    second: float
    over: float


def range_of(dtype: DType) -> float:
    """log2 of the largest number that is drawn of a float type."""
    return math.log2(float(ml_dtypes.finfo((F32 if dtype == F64 else dtype).numpy).max))  # type: ignore[no-untyped-call]


def measured(
    left: Sequence[Term], right: Mapping[Term, bool], constants: frozenset[str], facts: Mapping[str, str], *, least: float, room: float
) -> dict[Term, MeasuredGrowth]:
    """How far each value of `right` outweighed those on the `left`, of which weights below 2^least do not count; nothing where they cannot
    be evaluated. With each stands whether its second weight counts. `room`: log2 of the domain for degrees."""
    terms = [*left, *right]
    span = max(range_of(term.tensor.dtype) for term in terms)
    try:
        wide = retyped(terms, dict.fromkeys(_floats(terms), F64))
    except CosetError:
        return {}
    generator = np.random.default_rng(3)
    inputs = [term for term in topological(terms) if term.op.name == "builtin.input"]
    fixed = [_fixed(term, constants) for term in left]
    found = {term: MeasuredGrowth(-math.inf, -math.inf, -math.inf) for term in right}
    raised = any(term.op.name.rpartition(".")[2] in RAISING for term in topological(wide))
    for turn in range(DRAWS + (RAISED if raised else 0)):
        if turn < DRAWS:
            bound = span if turn % 2 else room / (1 + turn // 2 % LARGEST_DEGREE)
            given = {str(term.attribute("name")): _drawn(generator, term, bound, facts) for term in inputs}
        else:  # numbers of which powers fill the range, and of which sums and differences are small
            middle = float(np.exp2(generator.uniform(0.0, math.log2(span))))
            given = {str(term.attribute("name")): _about(generator, term, middle, facts) for term in inputs}
        try:
            with np.errstate(all="ignore"):
                ends = [_ends(value) for value in evaluate(wide, given, fallback=evaluate_defined)]
        except CosetError:
            return {}
        own = ends[: len(left)]
        if any(high == VAST for high, _ in own):
            continue  # it is not known how heavy the left is
        lows = [low for (_, low), constant in zip(own, fixed, strict=True) if not constant]
        heaviest = max(least, *(high - span for high, _ in own), *(-low - span for low in lows))
        within = max(0.0, *(max(high, -low) for high, low in own)) <= room / LARGEST_DEGREE
        for (term, below), (high, low) in zip(right.items(), ends[len(left) :], strict=True):
            # what vanishes on the left by cancellation alone is no measure of what is small on the right
            before, light = found[term], -low if below and turn < DRAWS else -math.inf
            over = max(before.over, high - room, light - room) if within else before.over
            found[term] = MeasuredGrowth(max(before.first, high - span - heaviest), max(before.second, light - span - heaviest), over)
    return found


def _floats(terms: Sequence[Term]) -> set[DType]:
    found = {term.type.dtype for term in topological(terms) if isinstance(term.type, TensorType)}
    return {dtype for dtype in found if dtype.kind == "float"}


def _fixed(term: Term, constants: frozenset[str]) -> bool:
    leaves = [each for each in topological([term]) if not each.operands]
    return all(each.op.name != "builtin.input" or str(each.attribute("name")) in constants for each in leaves)


def _ends(value: Array) -> tuple[float, float]:
    """log2 of the largest and of the least magnitude that is neither 0 nor NaN."""
    wide = np.abs(np.asarray(value).astype(np.float64))
    wide = wide[wide > 0]
    logs = np.where(np.isfinite(wide), np.log2(wide), VAST)
    return (float(logs.max()), float(logs.min())) if logs.size else (-math.inf, math.inf)


def _drawn(generator: np.random.Generator, term: Term, bound: float, facts: Mapping[str, str]) -> Array:
    """An input whose magnitudes lie about one that is drawn by its logarithm."""
    type, name = term.tensor, str(term.attribute("name"))
    assert type.static is not None
    if type.dtype.kind != "float":
        return fitted(draw(generator, type.dtype, type.static, "moderate"), facts.get(name, ""))
    spread = SPREADS[generator.integers(len(SPREADS))]
    logs = generator.uniform(-bound, bound) + generator.uniform(-spread, spread, type.static)
    signs = np.where(generator.random(type.static) < generator.choice([0.0, 0.5]), -1.0, 1.0)
    return fitted(np.asarray(signs * np.exp2(np.clip(logs, -bound, bound))), facts.get(name, ""))


def _about(generator: np.random.Generator, term: Term, middle: float, facts: Mapping[str, str]) -> Array:
    """An input all of whose numbers are near `middle`, or all near its negative."""
    type, name = term.tensor, str(term.attribute("name"))
    assert type.static is not None
    if type.dtype.kind != "float":
        return fitted(draw(generator, type.dtype, type.static, "moderate"), facts.get(name, ""))
    return fitted(np.asarray(generator.choice([-1.0, 1.0]) * middle + generator.normal(size=type.static)), facts.get(name, ""))
