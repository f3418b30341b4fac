"""Numbers of float types that error bounds are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from coset.ir.types import DType

Array = np.ndarray[Any, Any]


ROUND_UP = 1 + 2.0**-20


def is_float(dtype: DType) -> bool:
    """True of real floats."""
    return dtype.kind == "float"


def wide(x: Array) -> Array:
    """The elements as floats of 64 bits."""
    return x.astype(np.float64)


def finite(x: Array) -> Array:
    """Where the elements, complex ones too, are neither infinite nor NaN."""
    return np.isfinite(x if x.dtype.kind == "c" else wide(x))


@dataclass(frozen=True)
class Format:
    """Of a float type: the distance from 1 to the next number, the least subnormal, the least normal number, the largest number."""

    eps: float
    tiny: float
    normal: float
    largest: float


def roundings(dtype: DType, count: float) -> float:
    """So many roundings of a library's function; floats of less than 32 bits are computed in f32 and rounded once."""
    eps = form(dtype).eps
    return count * eps if dtype.bits >= 32 else eps + count * 2.0**-23


def form(dtype: DType) -> Format:
    """The numbers that bounds are made of."""
    known: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return Format(float(known.eps), float(known.smallest_subnormal), float(known.smallest_normal), float(known.max))


def growth(eps: float, count: int) -> float:
    """The error of a sum of `count` terms (Higham and Mary, 2019, with lambda = 6); infinite above 1/4."""
    g = eps * min(count, 6 * math.sqrt(count))
    return math.inf if g > 0.25 else g


def same_elements(a: Array, b: Array) -> Array:
    """Where two arrays have one value, NaNs among each other included."""
    return np.asarray((wide(a) == wide(b)) | (np.isnan(wide(a)) & np.isnan(wide(b))))
