"""Arrays to test programs on: moderate ones, ones full of special values, and integers at the ends of their range."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from coset.ir.op import Array
from coset.ir.types import DTYPES, DType
from coset.rules.patterns import NUMBERS, PATTERNS, has_pattern

KINDS = ("moderate", "zeros", "special")
LARGE, ENDS = "large", "ends"
# what an exponential takes to infinity while products of a few and sums of many stay finite, by the largest exponent of the float type
EXPONENTIAL_OVERFLOWS = {16: 12.0, 128: 150.0, 1024: 1000.0}
MOST_LARGE = 1.2  # times that: two products of sums, of f16 or an 8-bit type, shall not overflow by themselves
PLAIN = (0.0, 1.0, -1.0, 0.5, 2.0, -3.0)


def draw(generator: np.random.Generator, dtype: DType, shape: Sequence[int], kind: str) -> Array:
    """An array of the type: `moderate` has normal numbers, `zeros` mixes in small whole ones and both zeros, `special` NaN,
    infinities, the largest, the smallest and subnormal numbers (of integers: the ends of the range), `large`
    what overflows in exponentials, `ends` only the ends of the ranges of integers."""
    size = tuple(shape)
    if dtype.kind == "bool":
        return generator.integers(0, 2, size).astype(bool)
    if dtype.kind in ("int", "uint"):
        return _integers(generator, dtype, size, kind)
    if dtype.kind == "complex":
        found = np.empty(size, dtype.numpy)
        part = DTYPES["f32" if dtype.bits == 64 else "f64"]
        found.real, found.imag = draw(generator, part, size, kind), draw(generator, part, size, kind)
        return found
    base = generator.normal(size=size)
    if kind == LARGE:
        base = np.clip(base, -MOST_LARGE, MOST_LARGE) * EXPONENTIAL_OVERFLOWS.get(int(ml_dtypes.finfo(dtype.numpy).maxexp), 1.0)  # type: ignore[no-untyped-call]
    if kind == "zeros":
        base = np.where(generator.random(size) < 0.5, generator.choice([*PLAIN, -0.0], size), base)
    values = np.asarray(base).astype(dtype.numpy)
    if kind == "special":
        chosen = np.asarray(_specials(dtype), dtype.numpy)
        picked = chosen[generator.integers(0, len(chosen), size)]
        values = np.where(generator.random(size) < 0.6, picked, values).astype(dtype.numpy)
    return np.asarray(values)


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


def _integers(generator: np.random.Generator, dtype: DType, size: tuple[int, ...], kind: str) -> Array:
    low, high = (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)
    small = generator.integers(max(low, -9), min(high, 9), size, endpoint=True)
    if kind not in KINDS[:2]:
        ends = np.array([low, low + 1, high, high - 1, 0, 1], dtype=np.uint64 if dtype.bits == 64 and dtype.kind == "uint" else np.int64)
        picked = ends[generator.integers(0, len(ends), size)]
        return np.where(generator.random(size) < 0.5, picked, small.astype(picked.dtype)).astype(dtype.numpy)
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
