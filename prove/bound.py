"""An error bound of each element of an array, and what bounds are made of.

For sums the square root law of Higham and Mary, *A new approach to probabilistic rounding error analysis* (2019), with lambda = 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from coset.ir.op import Array
from coset.ir.types import DType

LAMBDA = 6.0  # deviations of a sum's error: farther off is one in 10^8
MOST_GROWTH = 0.25  # of a sum: beyond, first-order bounds say nothing


@dataclass(frozen=True)
class Bound:
    """`relative` times the size of each element, and `absolute`; infinite: none is known."""

    relative: float = 0.0
    absolute: Any = 0.0  # a number, or one for each element

    @property
    def exact(self) -> bool:
        """Whether it is 0 for every element."""
        return not self.relative and not np.any(self.absolute)

    @property
    def plain(self) -> bool:
        """Whether it is said by numbers."""
        return np.ndim(self.absolute) == 0

    def united(self, other: Bound) -> Bound:
        """What is at least as large as both."""
        return Bound(max(self.relative, other.relative), np.maximum(self.absolute, other.absolute))

    def of(self, value: Array) -> Array:
        """The bound of each element of `value`."""
        return np.broadcast_to(np.asarray(self.relative * magnitude(value) + self.absolute, np.float64), np.shape(value))


NOTHING, NONE = Bound(), Bound(0.0, np.inf)


def magnitude(value: Any) -> Array:
    """The sizes of the elements in f64, 0 for what is not finite."""
    array = np.asarray(value)
    sizes = np.abs(array).astype(np.float64) if array.dtype.kind == "c" else np.abs(array.astype(np.float64))
    return sizes if np.isfinite(sizes).all() else np.where(np.isfinite(sizes), sizes, 0.0)


def plain_floats(value: Any) -> Array:
    """The same numbers in a type that NumPy knows: f32 for narrower floats."""
    array = np.asarray(value)
    return array if array.dtype.kind in "biu" or (array.dtype.kind == "f" and array.dtype.itemsize >= 4) else array.astype(np.float32)


@cache
def roundoff(dtype: DType) -> float:
    """The distance from 1 to the next number of a float type."""
    return float(ml_dtypes.finfo(dtype.numpy).eps)  # type: ignore[no-untyped-call]


@cache
def smallest(dtype: DType) -> float:
    """The smallest subnormal of a float type."""
    return float(ml_dtypes.finfo(dtype.numpy).smallest_subnormal)  # type: ignore[no-untyped-call]


def growth(count: int, eps: float) -> float:
    """The error of a sum of `count` terms beside the sum of their sizes; infinite where no bound of first order holds."""
    found = eps * min(float(count), LAMBDA * count**0.5)
    return found if found <= MOST_GROWTH else np.inf
