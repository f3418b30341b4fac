"""Whether two terms break a numeric promise at given inputs: an oracle that knows nothing of the prover.

The *exact evaluation* is that of the definition of the numeric words: every float is an f64, so that nothing rounds, overflows or
underflows that does so in f16, bf16 or f32, but for conversions that are written in the terms. Results that are finite in one
form only, that differ by more than the roundings of f64, or infinities of different sign break a promise about values; other bits
break `exact`. Range and precision are measured in the terms' own element types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from coset.dialects.expansion import expanded
from coset.ir.builtin import absent
from coset.ir.constants import constant_of
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import CONSTANT, Term, get, input_term, make, rebuild, topological
from coset.ir.types import DTYPES, DType, TensorType, TupleType
from coset.rules.applied import built
from coset.rules.definition import evaluate_defined
from coset.rules.instance import Instance
from coset.rules.pattern import Pattern, Variable
from coset.rules.payloads import made
from coset.rules.rule import Rule

BITS, VALUES, RANGE, PRECISION = KINDS = ("bits", "values", "range", "precision")
RELATIVE = 1e-9  # what is more than the roundings of f64 in a few dozen operations
IN_REGIONS = 1e-3  # the same where the element types stay as they are
CANCELLED = 1e-12  # of the largest value on the way
ROUNDED_NUMBERS = 8.0  # units of the coarsest type, where a number of the rule is no number of its element type
WORSE = 64.0  # how many times the error of the left side that of the right side is where precision is lost
FAR_OFF = 0.1  # of its value, where a result has lost its range
WIDE = DTYPES["f64"]


@dataclass(frozen=True)
class Broken:
    """A promise that is broken: which part of it, and how the sides differ."""

    kind: str
    why: str
    left: Any
    right: Any


def sides(rule: Rule, instance: Instance) -> tuple[Term, Term] | None:
    """Both sides of an instance over inputs that are called as the variables; None where the rule does not fire."""
    decision = rule.decide(instance.attributes, instance.left_types, instance.variable_types)
    if decision is None:
        return None
    terms = {name: input_term(name, type) for name, type in zip(rule.variables, instance.variable_types, strict=True)}

    def left(pattern: Pattern) -> Term:
        if isinstance(pattern, Variable):
            return terms[pattern.name]
        if pattern.op.name == "builtin.absent":
            return absent()
        operands = tuple(left(operand) for operand in pattern.operands)
        return made(pattern.op, operands, instance.attributes[pattern.index], instance.left_types[pattern.index])

    return left(rule.left), built(rule.right, decision, terms)


def results(pair: tuple[Term, Term]) -> list[tuple[Term, Term]]:
    """The sides, result by result."""
    type = pair[0].type
    if not isinstance(type, TupleType):
        return [pair]
    return [(get(pair[0], i), get(pair[1], i)) for i in range(len(type.items))]


# ---------------------------------------------------------------- the exact evaluation


def widening(roots: Sequence[Term]) -> dict[Term, Term]:
    """The terms below `roots` over inputs and numbers of f64, with the conversions kept that are written in them: what a definition
    converts is its op's own.

    Raises:
        CosetError: an op does not exist for f64, or has a payload function.
    """
    changed: dict[Term, Term] = {}
    for term in topological(roots):
        changed[term] = _widened(term, [changed[operand] for operand in term.operands])
    return changed


def widened(roots: Sequence[Term]) -> list[Term]:
    """`roots` as `widening` has them."""
    changed = widening(roots)
    return [changed[root] for root in roots]


def _widened(term: Term, operands: list[Term]) -> Term:
    if term.regions:
        raise CosetError(f"`{term.op.name}` has a payload function")
    if isinstance(term.type, TensorType) and _narrow(term.type.dtype):
        if term.op.name == "builtin.input":
            return input_term(str(term.attribute("name")), TensorType(WIDE, term.type.shape))
        if term.op is CONSTANT:
            return make(CONSTANT.name, (), {"value": constant_of(term.attribute("value").array().astype(np.float64), WIDE)})
    if term.op.name == "stablehlo.convert":
        return _written_conversion(term.operands[0].tensor.dtype, term.tensor.dtype, operands[0])
    if not term.operands or term.op.name.startswith("builtin."):
        given = dict(term.attributes)
        narrow = {name: value for name, value in given.items() if isinstance(value, DType) and _narrow(value)}
        return make(term.op.name, tuple(operands), {**given, **dict.fromkeys(narrow, WIDE)}) if narrow else rebuild(term, operands)
    return make(term.op.name, tuple(operands), dict(term.attributes))


def _narrow(dtype: DType) -> bool:
    return dtype.kind == "float" and dtype != WIDE


def _written_conversion(source: DType, target: DType, operand: Term) -> Term:
    """A conversion as the exact evaluation has it: to a float that holds every value of its source it does nothing."""
    floats = source.kind == target.kind == "float"
    if floats and (source == target or _holds(target, source)):
        return operand
    narrowed = make("stablehlo.convert", (operand,), {"dtype": target})
    return make("stablehlo.convert", (narrowed,), {"dtype": WIDE}) if _narrow(target) else narrowed


def _holds(wide: DType, narrow: DType) -> bool:
    a, b = (ml_dtypes.finfo(dtype.numpy) for dtype in (wide, narrow))  # type: ignore[no-untyped-call]
    return bool(a.nmant >= b.nmant and a.maxexp >= b.maxexp and a.minexp <= b.minexp)


def exact_values(pair: tuple[Term, Term], inputs: Mapping[str, Array]) -> tuple[Array, Array, float]:
    """The exact evaluations of both sides, and the largest finite magnitude on the way."""
    left, right = widened(pair)
    terms = [t for t in topological([left, right]) if isinstance(t.type, TensorType) and t.type.dtype.kind in ("float", "complex")]
    wide = {name: array.astype(np.float64) if _is_float(array) else array for name, array in inputs.items()}
    with np.errstate(all="ignore"):
        a, b, *others = evaluate([left, right, *terms], wide, fallback=evaluate_defined)
    largest = max((float(np.max(np.abs(v), where=np.isfinite(v), initial=0.0)) for v in map(np.asarray, others)), default=0.0)
    return np.asarray(a), np.asarray(b), largest


def _is_float(array: Array) -> bool:
    return bool(array.dtype.kind not in "biuc" and array.dtype.name not in ("int4", "uint4", "int2", "uint2", "bool"))


# ---------------------------------------------------------------- judgements


def broken(
    rule: Rule, pair: tuple[Term, Term], inputs: Mapping[str, Array], kind: str | None = None, *, meant: bool = True
) -> Broken | None:
    """How a pair of sides breaks the promise of `rule` at `inputs`: in bits, where it says `exact`, else in values; `kind` asks for a
    break of another part of the promise. None where it is kept. `meant`: every number of the rule is meant as it is stored; otherwise
    one that fills its type may be the rounding of another one.

    Raises:
        CosetError: a side cannot be evaluated.
    """
    kind = kind or (BITS if rule.numerics.word == "exact" else VALUES)
    judges: dict[str, Callable[..., Broken | None]] = {
        BITS: _bits,
        VALUES: partial(_values, meant=meant),
        RANGE: _range,
        PRECISION: _precision,
    }
    for each in results(pair):
        found = judges[kind](rule, each, inputs)
        if found is not None:
            return found
    return None


def evaluated(pair: tuple[Term, Term], inputs: Mapping[str, Array]) -> tuple[Array, Array]:
    """Both sides as they are stored."""
    with np.errstate(all="ignore"):
        left, right = evaluate(list(pair), inputs, fallback=evaluate_defined)
    return np.asarray(left), np.asarray(right)


def _bits(rule: Rule, pair: tuple[Term, Term], inputs: Mapping[str, Array]) -> Broken | None:
    left, right = evaluated(pair, inputs)
    if left.shape != right.shape or left.dtype != right.dtype:
        return Broken(BITS, "other shapes or types", left, right)
    same = left == right
    if left.dtype.kind == "c":
        parts = [(left.real, right.real), (left.imag, right.imag)]
        same = np.logical_and(*(_same_floats(rule, np.asarray(a), np.asarray(b)) for a, b in parts))
    elif _is_float(left):
        same = _same_floats(rule, left.astype(np.float64), right.astype(np.float64))
    return None if np.all(same) else Broken(BITS, "other bits", left, right)


def _same_floats(rule: Rule, a: Array, b: Array) -> Array:
    equal = (a == b) if "signed_zero" in rule.numerics.exceptions else (a == b) & (np.signbit(a) == np.signbit(b))
    return np.asarray(equal | (np.isnan(a) & np.isnan(b)))


def _values(rule: Rule, pair: tuple[Term, Term], inputs: Mapping[str, Array], *, meant: bool) -> Broken | None:
    if any(term.regions for term in topological(expanded(pair, keep=lambda _: False))):
        left, right = (side.astype(np.float64) if _is_float(side) else side for side in evaluated(pair, inputs))
        relative, largest = IN_REGIONS, 0.0  # what a payload function computes is not widened
    else:
        left, right, largest = exact_values(pair, inputs)
        relative = RELATIVE
    if left.shape != right.shape:
        return Broken(VALUES, "other shapes", left, right)
    if not _is_float(left) and left.dtype.kind != "c":
        return None if np.array_equal(left, right) else Broken(VALUES, "other values", left, right)
    real = rule.numerics.word == "real"
    finite = np.isfinite(left) & np.isfinite(right)
    if np.any((np.isfinite(left) != np.isfinite(right)) & (np.isfinite(left) | (not real))):
        return Broken(VALUES, "one side is finite, the other is not", left, right)
    if not real and "nonfinite" not in rule.numerics.exceptions and np.any(np.isnan(left) != np.isnan(right)):
        return Broken(VALUES, "NaN on one side, an infinity on the other", left, right)
    if not real and left.dtype.kind != "c" and np.any(np.isinf(left) & np.isinf(right) & (np.sign(left) != np.sign(right))):
        return Broken(VALUES, "infinities of different sign", left, right)
    with np.errstate(all="ignore"):
        magnitude = np.maximum(np.abs(left), np.abs(right))
        stored = 0.0 if meant else _stored_numbers(pair)
        allowed = relative * magnitude + CANCELLED * largest + stored * (magnitude if _single(pair) else largest)
        beyond = finite & (np.abs(left - right) > allowed)
    return Broken(VALUES, "other values", left, right) if np.any(beyond) else None


def _single(pair: tuple[Term, Term]) -> bool:
    """Whether nothing cancels: no sums or differences anywhere."""
    sums = ("stablehlo.add", "stablehlo.subtract", "stablehlo.reduce", "stablehlo.dot_general", "stablehlo.convolution")
    return not any(term.op.name in sums for term in topological(expanded(pair, keep=lambda _: False)))


def _stored_numbers(pair: tuple[Term, Term]) -> float:
    """What numbers that were rounded when they were stored may be off; nothing where every number is short enough to be meant so."""
    worst = 0.0
    for term in topological(expanded(pair, keep=lambda _: False)):
        if term.op is CONSTANT and isinstance(term.type, TensorType) and term.type.dtype.kind == "float":
            values = term.attribute("value").array().astype(np.float64).reshape(-1)
            eps = float(ml_dtypes.finfo(term.type.dtype.numpy).eps)  # type: ignore[no-untyped-call]
            if any(np.isfinite(v) and not _short(float(v), term.type.dtype) for v in values):
                worst = max(worst, eps)
    return ROUNDED_NUMBERS * worst


def _short(value: float, dtype: DType) -> bool:
    """Whether a stored number is surely the number that was written: its last two bits of a longer significand are not used."""
    mantissa, _ = np.frexp(value)
    bits = int(ml_dtypes.finfo(dtype.numpy).nmant) + 1  # type: ignore[no-untyped-call]
    return bool(float(mantissa) * 2.0 ** max(3, bits - 3) % 1 == 0)


def _range(rule: Rule, pair: tuple[Term, Term], inputs: Mapping[str, Array]) -> Broken | None:
    """Finite inputs at which the left side is what it should be in its own type, and the right side infinite, NaN, or far off."""
    if any(_is_float(array) and not np.all(np.isfinite(array.astype(np.float64))) for array in inputs.values()):
        return None
    left, right = (side.astype(np.float64) if _is_float(side) else side for side in evaluated(pair, inputs))
    found = Broken(RANGE, "the right side leaves the range of its type", left, right)
    with np.errstate(all="ignore"):
        lost = np.isfinite(left) & ~(np.abs(right - left) <= FAR_OFF * np.abs(left))
        if pair[0].tensor.dtype == WIDE:  # there is no wider type in which the right side could be seen to be right
            return found if np.any(lost) else None
        exact, other, _ = exact_values(pair, inputs)
        agree = np.isclose(exact, other, rtol=1e-3, atol=0) & np.isclose(left, exact, rtol=0.02, atol=0)
    return found if np.any(lost & agree) else None


def _precision(rule: Rule, pair: tuple[Term, Term], inputs: Mapping[str, Array]) -> Broken | None:
    """A right side that is much farther from the exact evaluation than the left side is."""
    left, right = (side.astype(np.float64) for side in evaluated(pair, inputs))
    exact, _, _ = exact_values(pair, inputs)
    with np.errstate(all="ignore"):
        own, other = np.abs(left - exact), np.abs(right - exact)
        eps = float(ml_dtypes.finfo(pair[0].tensor.dtype.numpy).eps)  # type: ignore[no-untyped-call]
        worse = np.isfinite(exact) & np.isfinite(left) & ~(other <= WORSE * np.maximum(own, eps * np.abs(exact) / 4))
    return Broken(PRECISION, "the right side is farther from the exact value", left, right) if np.any(worse) else None
