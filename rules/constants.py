"""What rules and the index algebra read off constants: small lists of integers, triangular masks, facts about the elements."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from coset.ir.constants import Constant
from coset.ir.op import Array
from coset.rules.scalar import Undefined

MOST_INTEGERS = 4096
MOST_MASK = 1 << 25  # elements of a mask that is looked at


def integers(value: Any) -> tuple[int, ...]:
    """The elements of a small constant of integers in row-major order."""
    if not isinstance(value, Constant) or value.type.dtype.kind not in ("int", "uint") or prod(_shape(value)) > MOST_INTEGERS:
        raise Undefined
    return tuple(int(each) for each in value.array().reshape(-1))


def diagonal(value: Any) -> int:
    """`k` where the matrix, which may stand under dims of 1, is true (of floats: 0) exactly where the column is at most the row plus k."""
    found = _triangle(value)
    if found is None:
        raise Undefined
    return found[0]


def masking(value: Any) -> float:
    """The number of such a matrix of floats that is not 0."""
    found = _triangle(value)
    if found is None or value.type.dtype.kind != "float":
        raise Undefined
    return found[1]


def _shape(value: Constant) -> tuple[int, ...]:
    shape = value.type.static
    assert shape is not None, "constants are static"
    return shape


def _triangle(value: Any) -> tuple[int, float] | None:
    """The diagonal of a triangular mask and what stands above it."""
    if not isinstance(value, Constant) or value.type.dtype.kind not in ("bool", "float"):
        return None
    shape = _shape(value)
    if len(shape) < 2 or prod(shape[:-2]) != 1 or not 1 < prod(shape) <= MOST_MASK:
        return None
    return _read_triangle(value)


@lru_cache(maxsize=64)
def _read_triangle(value: Constant) -> tuple[int, float] | None:
    rows, columns = _shape(value)[-2:]
    matrix = value.array().reshape(rows, columns)
    seen = matrix if value.type.dtype.kind == "bool" else matrix == 0
    k = int(np.count_nonzero(seen[0])) - 1
    if not 0 <= k < columns - 1:  # the first row is empty or full: the diagonal is read off the last one
        k = int(np.count_nonzero(seen[-1])) - rows
    if seen.all() or not seen.any() or not np.array_equal(seen, np.tri(rows, columns, k, dtype=bool)):
        return None
    others = matrix[~seen]
    return (k, float(others[0])) if np.all(others == others[0]) else None


def has_pattern(values: Array, fact: str) -> bool:
    """Whether `values` are `unique_indices` (no two are equal) or `sparse` (2:4: of four neighbours in a row at most two are not 0)."""
    if fact == "unique_indices":
        return not bool(np.any((ordered := np.sort(values, axis=None))[1:] == ordered[:-1]))  # np.unique would load np.ma
    if not values.ndim or values.shape[-1] % 4:
        return False
    return bool(np.all(np.count_nonzero(values.reshape(*values.shape[:-1], values.shape[-1] // 4, 4), axis=-1) <= 2))
