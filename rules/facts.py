"""The facts about the numbers of a tensor that rules may ask for: names alone, so that reading a rule file loads no arrays."""

from __future__ import annotations

NUMBERS = ("nonnegative", "positive", "finite")  # facts about the numbers of a tensor of floats
PATTERNS = ("unique_indices", "sparse")  # integers of which no two are equal; of four neighbours in a row at most two that are not 0 (2:4)
