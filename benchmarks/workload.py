"""A program as people write it, with the best forms that a person finds by hand.

All forms of one workload are the same function of the same inputs; `headroom` checks that by value before it times them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx

from benchmarks import feeds as inputs


@dataclass(frozen=True)
class Workload:
    """A naive program and better forms of it, each named by what was done."""

    name: str
    story: str
    naive: onnx.ModelProto
    best: dict[str, onnx.ModelProto]

    def feeds(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Return random inputs, equal for an equal seed."""
        return inputs.make(self.naive, self.name, seed)


WORKLOADS: dict[str, Callable[[], Workload]] = {}


def workload(make: Callable[[], tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]]) -> Callable[[], Workload]:
    """Register a function that returns the naive program and its better forms; its docstring is the story."""

    @cache
    def made() -> Workload:
        naive, best = make()
        return Workload(make.__name__, (make.__doc__ or "").split("\n")[0], naive, best)

    WORKLOADS[make.__name__] = made
    return made


def matrix(seed: int, rows: int, columns: int) -> np.ndarray:
    """Return a seeded matrix that keeps the size of what it multiplies."""
    return np.asarray(np.random.default_rng(seed).standard_normal((rows, columns)) / np.sqrt(rows))
