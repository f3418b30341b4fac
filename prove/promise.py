"""Whether two sides are equal on given inputs in the sense of a promise; docs/numerics.md says what each word means.

`exact` compares bits of stored results. `reassociates` and `real` compare exact evaluations (`prove/exact_evaluation.py`); beside that
stored results that are ordinary numbers must not differ by more than rounding explains. What may overflow is a matter of growth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coset.dialects.expansion import expanded
from coset.dialects.hub.scalars import cast
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.stored import is_finite
from coset.ir.term import CONSTANT, Term, topological
from coset.ir.types import DType, TensorType
from coset.prove.error_bound import coarsest, evaluate_bounded
from coset.prove.exact_evaluation import ExactValues, Narrow, Numbers, exact, lost, wide_inputs, widened
from coset.rules.definition import evaluate_defined
from coset.rules.equation import Numerics

SAFETY = 4.0  # on the first-order bounds
SURE = 1e-6  # relative bound of an element up to which it is known to be finite
_WHOLE = "biu?O"  # kinds of arrays whose elements are equal or not: integers, booleans, strings
FINE, LOST = 1e-6, 2.0**12  # of the roundoff of a float type, and how many of them a result without a bound may be off

Difference = tuple[tuple[int, ...], str]


def difference_of(
    numerics: Numerics, left: Array, right: Array, sides: tuple[Term, Term], inputs: Mapping[str, Array]
) -> Difference | None:
    """The first element of stored results where the promise is broken, with the reason; None when it is kept."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return (), f"the left side is {left.dtype}{list(left.shape)}, the right side {right.dtype}{list(right.shape)}"
    if numerics.word == "lossy":
        return None
    if numerics.word == "exact" or _whole(left):
        return _first(_unequal(numerics, left, right), "the sides are not bit-equal")
    a, b = _wide(left), _wide(right)
    finite = np.isfinite(a) & np.isfinite(b)
    if numerics.word == "approx":
        allowed = float(numerics.bound.split()[0]) * np.maximum(1.0, np.abs(a))
        broken = _first((np.isfinite(a) != np.isfinite(b)), "one side is finite, the other is not")
        return broken or _first(finite & (np.abs(a - b) > allowed), f"the sides differ by more than {numerics.bound}")
    # where the right side computes in a coarser float type than the left one, its own roundings are no excuse
    trusted = sides[:1] if coarsest(sides[1:]) > coarsest(sides[:1]) and numerics.word == "reassociates" else sides
    bounds = _bounds(sum(evaluate_bounded(side, inputs)[1] for side in trusted), a, finite, coarsest(sides))
    beyond = finite & (a != b) & ~(np.abs(a - b) <= SAFETY * np.asarray(bounds) + 1e-300)
    return _first(beyond, "the sides differ by more than rounding explains")


def exact_difference(
    numerics: Numerics, sides: tuple[Term, Term], inputs: Mapping[str, Array], numbers: tuple[Numbers, Numbers], *, plain: bool
) -> Difference | None:
    """The first element of the exact evaluations of both sides where the promise is broken; None when it is kept, or cannot be judged.

    `plain`: the inputs are numbers of few digits, infinities and NaN, so that f64 sees a division by zero where there is one.
    """
    found = _exactly(numerics, sides, inputs, numbers, plain=plain)
    if found is not None and any(numbers) and _exactly(numerics, sides, inputs, ({}, {}), plain=plain) is None:
        return None  # numbers that definitions state are stored: so may be those of the rule
    return None if found is None or lost(sides, inputs, {}, real=_real(numerics)) else found


def _exactly(
    numerics: Numerics, sides: tuple[Term, Term], inputs: Mapping[str, Array], numbers: tuple[Numbers, Numbers], *, plain: bool
) -> Difference | None:
    try:
        one, other = (exact(side, inputs, own, real=_real(numerics)) for side, own in zip(sides, numbers, strict=True))
    except Narrow:
        return None
    if _whole(one.value):
        sure = (np.asarray(one.bound) == 0) & (np.asarray(other.bound) == 0)
        return _first(_apart(one.value, other.value) & sure, "the sides are not equal")
    a, b = one.value, other.value
    finite = np.isfinite(a) & np.isfinite(b)
    bounds = _bounds(one.bound + other.bound, a, finite, np.finfo(np.float64).eps)
    beyond = finite & (a != b) & ~(np.abs(a - b) <= SAFETY * bounds + 1e-300) & ~_stored_alike(a, b, sides[0].tensor.dtype)
    if beyond.any() and _bounds_all(sides):  # f64 lost digits that an exponential, say, makes the number of: what is left says nothing
        beyond &= np.isfinite(one.bound + other.bound)
    broken = _first(beyond, "the sides differ in exact arithmetic")
    if broken is not None or a.dtype.kind == "c":
        return broken
    if numerics.word == "real":
        return _undefined(one, other, sides, inputs, numbers, plain=plain)
    alike = _stored_alike(a, b, sides[0].tensor.dtype)
    if "masked" in numerics.exceptions and _masks(sides):
        alike = alike | ~np.isfinite(a) | ~np.isfinite(b)
    return _unlike(numerics, one, other, alike, dtype=sides[0].tensor.dtype, plain=plain)


def _real(numerics: Numerics) -> bool:
    """Whether conversions between floats do not count: of real numbers, or where values may be kept wider than the program stores them."""
    return numerics.word == "real" or "wider" in numerics.exceptions


def _stored_alike(a: Array, b: Array, dtype: DType) -> Array:
    """Where two numbers are one once they are rounded to the type of the result."""
    if dtype.kind != "float":
        return np.zeros(a.shape, bool)
    with np.errstate(all="ignore"):
        first, second = (np.asarray(cast(each, dtype)).astype(np.float64) for each in (a, b))
    return np.asarray((first == second) | (np.isnan(first) & np.isnan(second)))


def _masks(sides: tuple[Term, Term]) -> bool:
    """Whether a constant of one of the sides is infinite: a mask that closes places."""
    terms = topological(expanded(sides, keep=lambda _: False))
    return any(term.op is CONSTANT and not is_finite(term.attribute("value")) for term in terms)


def _infinity(dtype: DType) -> str:
    """What an infinity of the exact evaluation is to a float type, which may have none."""
    with np.errstate(all="ignore"):
        stored = np.asarray(cast(np.asarray(np.inf), dtype)).astype(np.float64)
    return "an infinity" if np.isinf(stored) else f"an infinity, which {dtype} cannot store,"


def _unlike(numerics: Numerics, one: ExactValues, other: ExactValues, alike: Array, *, dtype: DType, plain: bool) -> Difference | None:
    """Where one side is finite and the other not, or they are no numbers of two kinds, unless `alike`: stored as one, or masked."""
    a, b = one.value, other.value
    mixed = (np.isfinite(a) != np.isfinite(b)) & ~alike & _sure(one, other, plain=plain)
    broken = _first(mixed, "one side is finite, the other is not")
    if broken is not None or not plain:
        return broken
    turned = np.isinf(a) & np.isinf(b) & (a != b) & ~alike
    broken = _first(turned, f"{_infinity(dtype)} changes its sign")
    if broken is None and "nonfinite" not in numerics.exceptions:
        broken = _first(
            (np.isnan(a) != np.isnan(b)) & ~np.isfinite(a) & ~np.isfinite(b) & ~alike, "an infinity becomes a NaN, or a NaN an infinity"
        )
    return broken


def _undefined(
    one: ExactValues,
    other: ExactValues,
    sides: tuple[Term, Term],
    inputs: Mapping[str, Array],
    numbers: tuple[Numbers, Numbers],
    *,
    plain: bool,
) -> Difference | None:
    """Where the left side is a number of defined parts, and the right side is none."""
    mixed = np.isfinite(one.value) & ~np.isfinite(other.value) & _sure(one, other, plain=plain)
    if not mixed.any():
        return None
    whole = list(topological(widened(sides[:1], numbers[0], real=True)))
    parts = [term for term in whole if isinstance(term.type, TensorType) and term.type.dtype.kind == "float"]
    with np.errstate(all="ignore"):
        values: list[Any] = evaluate(parts, wide_inputs(inputs), fallback=evaluate_defined)
    finite = [np.isfinite(np.asarray(value)) for value in values]
    if all(map(_at_its_place, whole)):  # other elements have no say
        mixed &= np.logical_and.reduce([each if each.shape == mixed.shape else np.full(mixed.shape, each.all()) for each in finite])
    elif not all(each.all() for each in finite):
        return None
    return _first(mixed, "only the left side is defined")


def _at_its_place(term: Term) -> bool:
    """Whether an element of a term depends on those of its operands at the same place only, or on single ones."""
    single = term.op.name == "stablehlo.broadcast_in_dim" and term.operands[0].tensor.rank == 0
    return single or not term.operands or term.op.has("elementwise")


def _sure(one: ExactValues, other: ExactValues, *, plain: bool) -> Array:
    """Where it is known of two elements, one of which is finite, that they are what they seem."""
    a, b = one.value, other.value
    value, bound = np.where(np.isfinite(a), a, b), np.where(np.isfinite(a), one.bound, other.bound)
    away = np.where(np.isfinite(a), other.bound, one.bound)
    near = bound <= SURE * np.maximum(1.0, np.abs(value))
    return np.asarray(near if plain else near & (away == 0))


def _bounds(derived: Array | float, values: Array, finite: Array, roundoff: float) -> Array:
    """The `derived` bounds; where an op has none (a fold by any function), what no small tensor of a fine float type loses by rounding."""
    bounds = np.broadcast_to(np.asarray(derived, np.float64), values.shape)
    if roundoff > FINE or np.isfinite(bounds).all():
        return bounds
    largest = float(np.max(np.abs(values), where=finite, initial=1.0))
    return np.where(np.isfinite(bounds), bounds, LOST * roundoff * largest)


def _bounds_all(sides: tuple[Term, Term]) -> bool:
    """Whether the errors of all ops of both sides have a rule, so that an infinite bound is what comes of them."""
    terms = topological(expanded(sides, keep=lambda _: False))
    return all(not term.operands or term.op.has("movement") or term.op.has("elementwise") or _is_sum(term) for term in terms)


def _is_sum(term: Term) -> bool:
    folds = term.op.name in ("stablehlo.reduce", "stablehlo.reduce_window") and term.attribute("combiner") in ("add", "maximum", "minimum")
    return folds or term.op.name in ("stablehlo.dot_general", "stablehlo.convolution")


def _whole(array: Array) -> bool:
    return array.dtype.kind in _WHOLE or array.dtype.name in ("int4", "uint4", "int2", "uint2")


def _apart(left: Array, right: Array) -> Array:
    """Where elements that are equal or not differ; what is not even equal to itself (a string may be any object) is equal to its like."""
    return np.asarray((left != right) & ((left == left) | (right == right)))


def _wide(array: Array) -> Array:
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def _unequal(numerics: Numerics, left: Array, right: Array) -> Array:
    if _whole(left):
        return _apart(left, right)
    if left.dtype.kind == "c":
        parts = [(left.real, right.real), (left.imag, right.imag)]
        return np.logical_or(*(_unequal(numerics, np.asarray(a), np.asarray(b)) for a, b in parts))
    a, b = left.astype(np.float64), right.astype(np.float64)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
    if "signed_zero" in numerics.exceptions:
        same |= a == b
    return np.asarray(~same)


def _first(broken: Array, why: str) -> Difference | None:
    where = np.argwhere(broken)
    return (tuple(int(i) for i in where[0]), why) if len(where) else None
