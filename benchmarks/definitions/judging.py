"""Whether a runtime's result is ours: as docs/numerics.md has it, infinities and NaN the same, integers the same, numbers near.

Near is what roundings explain: the running error bound of our definition's own evaluation, and what the runtime's approximations of
functions are off. Where the exact evaluation of our definition agrees with the runtime the difference is one of range: what our evaluator
stores on the way left the range of its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from coset.dialects.hub.scalars import cast
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import Term
from coset.ir.types import dtype_of
from coset.prove.error_bound import evaluate_bounded
from coset.prove.exact_evaluation import Narrow, exact
from coset.rules.definition import evaluate_defined

SAFETY = 8.0  # on bounds that are first-order, and of our own roundings alone
ULPS = 2.0  # that every result of floats may be off: a runtime rounds as often as we
VAGUE = 2.0**10  # roundings of the largest element that a result without a bound may be off
VALUE, NONFINITE, RANGE, INTEGER, ZERO, TYPE, REFUSED = "value", "nonfinite", "range", "integer", "sign of zero", "type", "refused"


@dataclass(frozen=True)
class Difference:
    """The first element where two results differ, and in what way."""

    kind: str
    result: int
    index: tuple[int, ...]
    ours: str
    theirs: str


@dataclass(frozen=True)
class Results:
    """Our results of a program on some inputs."""

    roots: Sequence[Term]
    inputs: Mapping[str, Array]
    values: Sequence[Array]

    @staticmethod
    def of(roots: Sequence[Term], inputs: Mapping[str, Array]) -> Results:
        """The values of `roots`.

        Raises:
            CosetError: they have none.
        """
        with np.errstate(all="ignore"):
            values = evaluate(roots, inputs, fallback=evaluate_defined)
        return Results(roots, inputs, [np.asarray(value) for value in values])

    def differences(self, theirs: Sequence[Any], most_ulps: float = 0.0) -> list[Difference]:
        """For each result the first and worst difference to a runtime's."""
        found = []
        for place, (mine, other) in enumerate(zip(self.values, theirs, strict=False)):
            difference = self._difference(place, mine, np.asarray(other), most_ulps)
            if difference is not None:
                found.append(difference)
        return found

    def _difference(self, place: int, mine: Array, other: Array, most_ulps: float) -> Difference | None:
        if mine.shape != other.shape or mine.dtype != other.dtype:
            return Difference(TYPE, place, (), f"{mine.dtype}{list(mine.shape)}", f"{other.dtype}{list(other.shape)}")
        kind = dtype_of(mine.dtype).kind
        if kind not in ("float", "complex"):
            return self._shown(INTEGER, place, mine != other, mine, other)
        a, b = _wide(mine), _wide(other)
        if kind == "complex":
            close = np.isclose(a, b, rtol=64 * np.finfo(mine.dtype).eps, atol=64 * np.finfo(mine.dtype).eps, equal_nan=True)
            return self._shown(VALUE, place, ~close, mine, other)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        zeros = same & (a == 0) & (np.signbit(a) != np.signbit(b))
        if same.all():
            return self._shown(ZERO, place, zeros, mine, other)
        step = float(ml_dtypes.finfo(mine.dtype).eps)  # type: ignore[no-untyped-call]
        least = float(ml_dtypes.finfo(mine.dtype).smallest_normal)  # type: ignore[no-untyped-call]
        finite = np.isfinite(a) & np.isfinite(b)
        with np.errstate(all="ignore"):
            near = finite & (np.abs(a - b) <= (ULPS + most_ulps) * step * np.maximum(np.abs(a), most_ulps > 0) + least)
        if (same | near).all():
            return self._shown(ZERO, place, zeros, mine, other)
        with np.errstate(all="ignore"):
            far = finite & ~(np.abs(a - b) <= self._allowed(place, a, step, most_ulps))
        mixed = ~finite & ~same
        if not (far | mixed).any():
            return self._shown(ZERO, place, zeros, mine, other)
        beyond = self._beyond(place, other, step, most_ulps)
        for name, where in ((VALUE, far & ~beyond), (NONFINITE, mixed & ~beyond), (RANGE, (far | mixed) & beyond)):
            if where.any():
                return self._shown(name, place, where, mine, other)
        return None

    def _allowed(self, place: int, value: Array, step: float, most_ulps: float) -> Array:
        """What roundings explain of each element."""
        largest = float(np.max(np.abs(value), where=np.isfinite(value), initial=1.0))
        try:
            bound = np.broadcast_to(np.asarray(evaluate_bounded(self.roots[place], self.inputs)[1], np.float64), value.shape)
        except (CosetError, AssertionError, TypeError, ValueError, IndexError):  # ops of which the bounds know nothing
            bound = np.full(value.shape, np.inf)
        bound = np.where(np.isfinite(bound), bound, VAGUE * step * largest)
        return np.asarray(SAFETY * bound + (ULPS + most_ulps) * step * np.abs(value) + most_ulps * step)

    def _beyond(self, place: int, theirs: Array, step: float, most_ulps: float) -> Array:
        """Where the exact evaluation of our definition is what the runtime gives."""
        try:
            found = exact(self.roots[place], self.inputs, {})
        except (Narrow, CosetError, AssertionError, TypeError, ValueError, IndexError):
            return np.zeros(theirs.shape, bool)
        with np.errstate(all="ignore"):
            stored = _wide(np.asarray(cast(np.asarray(found.value), dtype_of(theirs.dtype))))
            b = _wide(theirs)
            near = np.abs(stored - b) <= (4 * ULPS + most_ulps) * step * np.maximum(np.abs(stored), 1.0) + SAFETY * found.bound
        return np.asarray((stored == b) | (np.isnan(stored) & np.isnan(b)) | (np.isfinite(stored) & np.isfinite(b) & near))

    def _shown(self, kind: str, place: int, where: Array, mine: Array, other: Array) -> Difference | None:
        found = np.argwhere(where)
        if not len(found):
            return None
        index = tuple(int(i) for i in found[0])
        return Difference(kind, place, index, str(mine[index]), str(other[index]))


def _wide(array: Array) -> Array:
    return array if array.dtype.kind == "c" else array.astype(np.float64)
