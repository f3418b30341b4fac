"""How far the stored values of a right side outweigh those of the left, and which of that float types admit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from coset.ir.term import Term
from coset.ir.types import DType

# 2^h that is admitted by the first and by the second weight, a degree and what may come on top of it, by bits of a float type: RULES, C
LIMITS = {8: (0.0, 0.0, 0, 0.0), 16: (1.0, 4.0, 0, 0.0), 32: (16.0, 16.0, 4, 16.0), 64: (64.0, 64.0, 4, 64.0)}


CLOSE = 1e-9


@dataclass(frozen=True)
class StoredGrowth:
    """How far a stored value of the right side can outweigh the heaviest of the left: at most 2^first times by the first weight and
    2^second times by the second; where that is no number it is a sum of products of `degree` values of the left, 2^over times at most."""

    what: str
    dtype: DType
    first: float
    second: float
    degree: int | None = None
    over: float = 0.0
    drawn: bool = False

    @property
    def bounded(self) -> bool:
        """Whether a bound or a degree is known."""
        return math.isfinite(self.first + self.second) or self.degree is not None

    @property
    def admitted(self) -> bool:
        """Whether the range of its type leaves room for that."""
        first, second, degree, over = LIMITS[width_of(self.dtype)]
        if self.first <= first + CLOSE and self.second <= second + CLOSE:
            return True
        return self.degree is not None and self.degree <= degree and self.over <= over + CLOSE

    def __str__(self) -> str:
        if math.isfinite(self.first) and math.isfinite(self.second):
            text = f"h = {max(self.first, self.second, 0.0):.4g}"
        elif self.degree is not None:
            text = f"k = {self.degree}" + (f", h = {self.over:.4g}" if self.over > CLOSE else "")
        else:
            text = "no bound"
        return text + (" (drawn)" if self.drawn else "")


@dataclass(frozen=True)
class Growth:
    """The stored values of a right side that the left has not. `counted`: numbers of folded elements came into it."""

    values: tuple[StoredGrowth, ...]
    counted: bool = False
    by_term: Mapping[Term, StoredGrowth] = field(default_factory=dict, compare=False, repr=False)

    @property
    def worst(self) -> StoredGrowth | None:
        """The one that is admitted least; None where nothing grows."""
        return max(self.values, key=_badness, default=None)

    @property
    def admitted(self) -> bool:
        """Whether every value is."""
        return all(value.admitted for value in self.values)

    @property
    def drawn(self) -> bool:
        """Whether some of it was measured, not shown."""
        return any(value.drawn for value in self.values)

    def __str__(self) -> str:
        return "h = 0" if self.worst is None else str(self.worst)


def _badness(value: StoredGrowth) -> tuple[bool, bool, float]:
    bound = max(value.first, value.second, 0.0)
    return not value.admitted, not math.isfinite(bound), value.degree or 99.0 if not math.isfinite(bound) else bound


def width_of(dtype: DType) -> int:
    """The row of `LIMITS`: bf16 has the range of f32."""
    return 32 if dtype.name == "bf16" else max(8, dtype.bits)
