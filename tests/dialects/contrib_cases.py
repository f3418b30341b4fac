"""Nodes of ONNX Runtime's domain com.microsoft, by op: inputs over drawn values, types and shapes, and attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx_runs import factors

RANDOM = np.random.default_rng(7)


@dataclass(frozen=True)
class Case:
    """A node; `known` inputs are initializers. Its first `outputs` results are compared, integers up to `quantum`."""

    inputs: Sequence[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    known: tuple[int, ...] = ()
    quantum: int = 0
    rtol: float = 2e-4
    atol: float = 2e-5
    shared: dict[int, int] = field(default_factory=dict)  # inputs, and the results that the kernel wants in their buffers
    skipped: tuple[int, ...] = ()  # results that no kernel on CPU gives


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return RANDOM.normal(size=shape).astype(dtype)


def whole(dtype: Any, *shape: int, low: int | None = None, high: int | None = None) -> Any:
    """Integers between the least and the greatest ones of `dtype`, or `low` and `high` (included)."""
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min if low is None else low, info.max if high is None else high, shape, dtype=dtype, endpoint=True)


def factor(dtype: Any, *shape: int) -> Any:
    """Integers that products are taken with."""
    low, high = factors(dtype)
    return whole(dtype, *shape, low=low, high=high)


def f32(number: float) -> Any:
    return np.array(number, np.float32)


CASES: dict[str, list[Case]] = {}


def cases(op: str, *found: Case) -> None:
    """Enter cases of an op."""
    CASES.setdefault(op, []).extend(found)
