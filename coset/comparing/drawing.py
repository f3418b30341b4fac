"""Drawn values of one input by the kind of the case: usual, negative, zeros, huge, not finite, at the ends of the type."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from coset.ir.types import DType

MOST_ROWS = 1 << 24  # of a table whose rows are all looked up
INFINITE, ENDS, MIXED = "infinite", "ends", "mixed"  # names of cases
ONES, HALVES = np.array([0.0, -0.0, 1.0, -1.0]), np.array([0.0, -0.0, *(sign * half / 2 for half in range(1, 5) for sign in (1, -1))])
UNUSUAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 0.5])
FEW = 64  # elements of inputs
SMALL = 9  # the largest of small integers


def span_of(dtype: DType, tables: Sequence[int]) -> tuple[int, int] | None:
    """From where to where integers reach that are more than small ones: to the end of the smallest table, or all of 8 bits."""
    if dtype.kind not in ("int", "uint"):
        return None
    if tables:
        return 0, max(min(tables), 1)
    whole = np.iinfo(dtype.numpy) if dtype.numpy.kind in "iu" and dtype.numpy.itemsize == 1 else None
    return None if whole is None else (int(whole.min), int(whole.max) + 1)


def spread(span: tuple[int, int], dtype: DType, shape: Sequence[int], seed: int) -> np.ndarray[Any, Any]:
    """Numbers of the span in a drawn order, each once before one comes again; the next seed goes on where this one stops."""
    count = prod(shape)
    low, high = span
    if high - low > MOST_ROWS:  # then some of the rows, drawn
        return np.random.default_rng([seed, high]).integers(low, high, shape).astype(dtype.numpy)
    order = np.random.default_rng(high).permutation(np.arange(low, high))
    return order[(seed * count + np.arange(count)) % len(order)].reshape(shape).astype(dtype.numpy)


def draw_integers(rng: np.random.Generator, case: str, dtype: DType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Integers that may have any value: small ones, of both signs where the type has them, or those at the ends of its range."""
    ends = ml_dtypes.iinfo(dtype.numpy)  # type: ignore[no-untyped-call]
    low, high = int(ends.min), int(ends.max)
    if case == "zeros":
        return np.zeros(shape, dtype.numpy)
    if case == "huge":
        chosen = np.array([low, low + 1, high - 1, high, high // 2, high // 3, 0, 1], object)
        return np.asarray(rng.choice(chosen, shape)).astype(dtype.numpy)
    drawn = rng.integers(-SMALL, SMALL + 1, shape)
    drawn = -np.abs(drawn) if case == "negative" else drawn
    return np.asarray(np.clip(drawn if low else np.abs(drawn), low, high)).astype(dtype.numpy)  # of one number clip makes no array


def draw_values(rng: np.random.Generator, case: str, dtype: DType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Values of a tensor that nothing is known of; integers are 0 and 1."""
    if dtype.kind == "bool":
        return np.zeros(shape, np.bool_) if case == "zeros" else rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in ("int", "uint"):
        return (np.zeros(shape) if case == "zeros" else rng.integers(0, 2, shape)).astype(dtype.numpy)
    if dtype.kind == "string":
        return np.full(shape, "", np.object_)
    values = rng.standard_normal(shape)
    if case == "negative":
        values = -np.abs(values)
    elif case == "second":
        # few numbers: many are equal, and zeros of both signs are among them
        values = rng.choice(ONES if values.size < FEW and rng.integers(0, 2) else HALVES, shape)
    elif case == "zeros":
        values = np.where(rng.integers(0, 2, shape) == 1, -0.0, 0.0)
    elif case == "huge":
        values = values * _huge(dtype)
    elif case in (ENDS, MIXED):
        ends = _ends(dtype)
        values = rng.choice(ends if case == ENDS else np.concatenate([ends, UNUSUAL]), shape)
    elif case == "nan" and values.size:
        values.reshape(-1)[rng.integers(values.size)] = np.nan
    elif case == INFINITE and values.size:
        for infinity in (np.inf, -np.inf)[: max(1, min(2, values.size // 2))]:
            values.reshape(-1)[rng.integers(values.size)] = infinity
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype.numpy)


def map_values(rng: np.random.Generator, case: str, dtype: DType, count: int) -> list[Any]:
    """Values of a map; texts are numbers as they are written, since what reads them may make numbers of them."""
    if dtype.kind == "string":
        return [str(number) for number in (rng.integers(-SMALL, SMALL + 1, count) if case != "zeros" else np.zeros(count, int)).tolist()]
    return list(draw_values(rng, case, dtype, (count,)))


def _ends(dtype: DType) -> np.ndarray[Any, Any]:
    """The largest, half of it, the smallest normal number and one, of both signs."""
    if dtype.kind != "float":
        return np.array([1e9, 1.0, 1e-9, 0.0])
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    largest = float(info.max)
    return np.array([sign * number for number in (largest, largest / 2, float(info.tiny), 1.0) for sign in (1, -1)])


def _huge(dtype: DType) -> float:
    # the fourth root of the largest number: squares and products of two stay finite, so that only sums of many can overflow
    return float(ml_dtypes.finfo(dtype.numpy).max) ** 0.25 if dtype.kind == "float" else 1e9  # type: ignore[no-untyped-call]
