"""Facts about the numbers of a tensor that rules may ask for, and those of them that are patterns of a constant's elements."""

from __future__ import annotations

import numpy as np

from coset.ir.op import Array

NUMBERS = ("nonnegative", "positive", "finite")  # facts about the numbers of a tensor of floats
PATTERNS = ("unique_indices", "sparse")  # integers of which no two are equal; of four neighbours in a row at most two that are not 0 (2:4)


def has_pattern(values: Array, fact: str) -> bool:
    """Whether `values` are `unique_indices` (no two are equal) or `sparse` (2:4: of four neighbours in a row at most two are not 0)."""
    if fact == "unique_indices":
        return bool(np.unique(values).size == values.size)
    if not values.ndim or values.shape[-1] % 4:
        return False
    return bool(np.all(np.count_nonzero(values.reshape(*values.shape[:-1], values.shape[-1] // 4, 4), axis=-1) <= 2))
