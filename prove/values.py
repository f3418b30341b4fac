"""Arrays to test programs on: moderate ones, ones full of special values, and integers at the ends of their range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from coset.ir.op import Array
from coset.ir.types import DTYPES, DType
from coset.rules.constants import has_pattern
from coset.rules.facts import NUMBERS, PATTERNS

KINDS = ("moderate", "zeros", "special")
LARGE, ENDS, RANGE, NONFINITE, GRID, NEAR, WHOLE = "large", "ends", "range", "nonfinite", "grid", "near", "whole"
# what an exponential takes to infinity while products of a few and sums of many stay finite, by the largest exponent of the float type
EXPONENTIAL_OVERFLOWS = {16: 12.0, 128: 150.0, 1024: 1000.0}
MOST_LARGE = 1.2  # times that: two products of sums, of f16 or an 8-bit type, shall not overflow by themselves
_NONFINITE = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0)
_PER_OPERAND = 16  # numbers of a grid: all combinations of three operands stand in a row of 4,096
MOST_BITS = 150.0  # of the magnitudes of `range`: products of six of them are numbers of f64
MOST_WHOLE = 99
PLAIN = (0.0, 1.0, -1.0, 0.5, 2.0, -3.0)


def draw(generator: np.random.Generator, dtype: DType, shape: Sequence[int], kind: str, thresholds: Sequence[float] = ()) -> Array:
    """An array of the type. Kinds:

    - `moderate`: normal numbers; `zeros`: numbers of few digits, both zeros and `thresholds` among them;
    - `special`: NaN, infinities, the largest, the smallest and subnormal numbers as well (of integers: the ends of the range);
      `nonfinite`: the same without the largest and the smallest, of which functions leave the range of f64;
    - `whole`: whole numbers of two digits, of which sums with any small coefficients are 0 somewhere in a long row;
    - `near`: numbers about one that is drawn, which differ in their last digits;
    - `large`: what overflows in exponentials; `range`: numbers of every magnitude that the type has; `ends`: only the ends of the ranges
      of integers.
    """
    size = tuple(shape)
    if dtype.kind == "bool":
        return generator.integers(0, 2, size).astype(bool)
    if dtype.kind in ("int", "uint"):
        return _integers(generator, dtype, size, kind, thresholds)
    if dtype.kind == "complex":
        found = np.empty(size, dtype.numpy)
        part = DTYPES["f32" if dtype.bits == 64 else "f64"]
        found.real, found.imag = (draw(generator, part, size, kind, thresholds) for _ in range(2))
        return found
    if dtype.kind != "float":  # strings, of which only identity counts
        return np.asarray(generator.normal(size=size)).astype(dtype.numpy)
    with np.errstate(over="ignore"):
        return np.asarray(_floats(generator, dtype, size, kind, thresholds)).astype(dtype.numpy)


def grid(place: int, dtype: DType, shape: Sequence[int], thresholds: Sequence[float], *, finite: bool) -> Array:
    """The elements of the operand number `place` so that operands of one shape have all combinations of a few numbers: NaN, infinities,
    zeros, ones, `thresholds`; of integers the ends of the range. For long rows."""
    if dtype.kind == "bool":
        numbers = np.array([False, True])
    elif dtype.kind in ("int", "uint"):
        low, high = _ends(dtype)
        told = [int(each) for each in thresholds if each == int(each) and low <= each <= high and abs(each) < 1 << 53]
        middle = [-1] if low else [1 << (dtype.bits - 1)]
        numbers = np.array(list(dict.fromkeys([0, 1, low, high, *middle, *told, 2, 3, high - 1])), _whole(dtype))
    else:
        special = () if finite else (np.nan, np.inf, -np.inf)
        others = dict.fromkeys([*special, 1.0, -1.0, *thresholds, 2.0, -0.5, -3.0])
        numbers = np.array([0.0, -0.0, *others])
    count = min(len(numbers), _PER_OPERAND)
    digits = np.arange(int(np.prod(shape, dtype=np.int64))) // count**place % count
    with np.errstate(all="ignore"):
        return np.asarray(numbers[digits]).reshape(tuple(shape)).astype(dtype.numpy)


def _ends(dtype: DType) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)


def _whole(dtype: DType) -> Any:
    """A type of NumPy's that has the numbers of an integer type."""
    return np.uint64 if dtype.bits == 64 and dtype.kind == "uint" else np.int64


def _floats(generator: np.random.Generator, dtype: DType, size: tuple[int, ...], kind: str, thresholds: Sequence[float]) -> Array:
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    if kind in (*KINDS[1:], NONFINITE):
        values = _plain(generator, dtype, size, thresholds)
        picked = values if kind == KINDS[1] else generator.choice(_NONFINITE if kind == NONFINITE else _specials(dtype), size)
        return np.where(generator.random(size) < 0.5, picked, values)
    if kind == WHOLE:
        return np.asarray(generator.integers(-MOST_WHOLE, MOST_WHOLE, size, endpoint=True).astype(np.float64))
    base = generator.normal(size=size)
    if kind == LARGE:
        return np.asarray(np.clip(base, -MOST_LARGE, MOST_LARGE) * EXPONENTIAL_OVERFLOWS.get(int(info.maxexp), 1.0))
    if kind == RANGE:
        ends = (float(np.log2(float(end))) for end in (info.smallest_subnormal, info.max))
        low, high = (float(np.clip(end, -MOST_BITS, MOST_BITS)) for end in ends)
        exponents = generator.uniform(low, high, size)
        return np.asarray(np.sign(base) * np.exp2(exponents))
    if kind == NEAR:
        middle = float(np.sign(base.flat[0] if base.size else 1.0) * np.exp2(generator.uniform(-2.0, min(14.0, info.maxexp / 2))))
        return np.asarray(middle * (1.0 + float(info.eps) * generator.integers(-8, 8, size, endpoint=True)))
    return np.asarray(base)


def _plain(generator: np.random.Generator, dtype: DType, size: tuple[int, ...], thresholds: Sequence[float]) -> Array:
    """Whole numbers, halves and quarters near 0, zeros and `thresholds`."""
    near = generator.integers(-12, 12, size, endpoint=True) / generator.choice((1.0, 1.0, 2.0, 4.0), size)
    chosen = np.where(generator.random(size) < 0.5, generator.choice((*PLAIN, -0.0), size), near)
    return np.where(generator.random(size) < 0.4, generator.choice(thresholds, size), chosen) if thresholds else chosen


def has_nan(dtype: Any) -> bool:
    """Whether a float type of NumPy's or ml_dtypes' has a NaN."""
    with np.errstate(all="ignore"):
        return bool(np.isnan(np.asarray(np.nan).astype(dtype).astype(np.float64))) if np.dtype(dtype).kind in "fV" else True


def fitted(values: Array, fact: str) -> Array:
    """`values` made such as a rule asks for: `nonnegative` (with both zeros and NaN), `positive` (with NaN), `finite`; else as they are."""
    if fact == "finite":
        return np.where(np.isfinite(values.astype(np.float64)), values, np.asarray(1.5, values.dtype)).astype(values.dtype)
    if fact == "unique_indices":
        return _different(values)
    if fact == "sparse":
        return np.where(np.arange(values.shape[-1]) % 4 < 2, values, np.zeros((), values.dtype)) if values.ndim else values
    if fact not in NUMBERS:
        return values
    upright = np.where(values.astype(np.float64) < 0, -values, values).astype(values.dtype)
    return np.where(upright == 0, np.asarray(0.5, values.dtype), upright).astype(values.dtype) if fact == "positive" else upright


def _different(values: Array) -> Array:
    """As many different integers, those that are there first; where the type has no more of them, as they are."""
    flat = values.reshape(-1)
    kept, rest = np.unique(flat), np.arange(values.size + flat.size)
    found = np.concatenate([kept, np.setdiff1d(rest.astype(values.dtype), kept)])
    return found[: flat.size].reshape(values.shape).astype(values.dtype) if found.size >= flat.size else values


def fits(values: Array, fact: str) -> bool:
    """Whether `values` are what a rule asks for."""
    if fact in PATTERNS:
        return has_pattern(values, fact)
    return fact not in NUMBERS or bool(np.all((fitted(values, fact) == values) | np.isnan(values.astype(np.float64)) & (fact != "finite")))


def _integers(generator: np.random.Generator, dtype: DType, size: tuple[int, ...], kind: str, thresholds: Sequence[float]) -> Array:
    (low, high), whole = _ends(dtype), _whole(dtype)
    small = generator.integers(max(low, -9), min(high, 9), size, endpoint=True).astype(whole)
    told = [int(each) for each in thresholds if each == int(each) and low <= each <= high and abs(each) < 1 << 53]
    if kind == "zeros" and told:
        return np.where(generator.random(size) < 0.5, generator.choice(np.array(told, whole), size), small).astype(dtype.numpy)
    if kind == RANGE:
        magnitudes = np.exp2(generator.uniform(0, dtype.bits - 1, size)).astype(np.float64)
        drawn = np.where(generator.random(size) < 0.5, magnitudes, -magnitudes) if dtype.kind == "int" else magnitudes
        return np.clip(drawn, low, float(np.nextafter(float(high), 0)) if dtype.bits == 64 else high).astype(whole).astype(dtype.numpy)
    if kind not in KINDS[:2]:
        middle = (
            [dtype.bits - 1, dtype.bits] if low else [1 << (dtype.bits - 1), (1 << (dtype.bits - 1)) + 1]
        )  # shifts, and what doubles to 0
        ends = np.array([low, low + 1, high, high - 1, 0, 1, *(each for each in middle if each <= high)], dtype=whole)
        picked = ends[generator.integers(0, len(ends), size)]
        return np.where(generator.random(size) < 0.5, picked, small).astype(dtype.numpy)
    return np.asarray(small).astype(dtype.numpy)


def _specials(dtype: DType) -> list[float]:
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    found = [0.0, -0.0, 1.0, -1.0, float(info.max), -float(info.max), float(info.tiny), float(info.smallest_subnormal)]
    for value in (np.nan, np.inf, -np.inf):
        with np.errstate(all="ignore"):
            kept = np.asarray(value).astype(dtype.numpy).astype(np.float64)
        if not np.isfinite(kept):
            found.append(float(kept))
    return found
