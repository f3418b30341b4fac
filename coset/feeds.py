"""Inputs to compare two programs on: drawn and adversarial values for every input, and numbers for the dim symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.types import DType, TensorType

Feed = dict[str, np.ndarray[Any, Any]]
# what a free dim may be when the user does not say: the first one that the original program runs with is taken
DIM_CANDIDATES = (32, 64, 16, 224, 128, 1, 2, 8, 320, 4)
BATCH_NAMES = ("batch", "b", "n", "batch_size", "N", "B")


@dataclass(frozen=True)
class Case:
    """One set of inputs and what is special about it (normal, negative, zeros, huge, nan)."""

    name: str
    feed: Feed


def bindings(program: Program, given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Numbers for the program's dim symbols, most natural first; the user's numbers are never changed.

    Raises:
        CosetError: `given` names a symbol that the program has not, or a number below 1.
    """
    symbols = program.symbols()
    for name, number in given.items():
        if name not in symbols:
            raise CosetError(f"the model has no free dim `{name}`", help=f"it has: {', '.join(symbols) or 'none'}")
        if number < 1:
            raise CosetError(f"the dim `{name}` is {number}; it must be at least 1")
    free = [name for name in symbols if name not in given]
    if not free:
        yield dict(given)
        return
    for candidate in DIM_CANDIDATES:
        yield {**given, **{name: 1 if name in BATCH_NAMES else candidate for name in free}}
    yield {**given, **dict.fromkeys(free, 1)}


def cases(program: Program, binding: Mapping[str, int], seed: int = 0) -> Iterator[Case]:
    """Inputs of growing nastiness. Integers stay small, so that what is an index into a table stays in it."""
    for name in ("normal", "second", "negative", "zeros", "huge", "nan"):
        rng = np.random.default_rng([seed, *name.encode()])
        feed: Feed = {}
        floats = False
        for term in program.inputs:
            type = term.type
            if not isinstance(type, TensorType) or type.shape is None:
                raise CosetError(f"input `{term.attribute('name')}` is {type}: such a program cannot be run on drawn inputs")
            shape = tuple(dims.evaluate(dim, binding) for dim in type.shape)
            floats = floats or type.dtype.kind in ("float", "complex")
            feed[term.attribute("name")] = _draw(rng, name, type.dtype, shape)
        if floats or name in ("normal", "second", "zeros"):
            yield Case(name, feed)


def _draw(rng: np.random.Generator, case: str, dtype: DType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    if dtype.kind == "bool":
        return np.zeros(shape, np.bool_) if case == "zeros" else rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in ("int", "uint"):
        return (np.zeros(shape) if case == "zeros" else rng.integers(0, 2, shape)).astype(dtype.numpy)
    if dtype.kind == "string":
        return np.full(shape, "", np.object_)
    values = rng.standard_normal(shape)
    if case == "negative":
        values = -np.abs(values)
    elif case == "zeros":
        values = np.zeros(shape)
    elif case == "huge":
        values = values * _huge(dtype)
    elif case == "nan" and values.size:
        values.reshape(-1)[rng.integers(values.size)] = np.nan
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype.numpy)


def _huge(dtype: DType) -> float:
    # the fourth root of the largest number: squares and products of two stay finite, so that only sums of many can overflow
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype.numpy).max) ** 0.25 if dtype.kind == "float" else 1e9  # type: ignore[no-untyped-call]
