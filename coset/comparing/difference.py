"""How far one output is from what it should be, and how far it may be: a tolerance by the rounding noise of the original."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.comparing.drawing import INFINITE
from coset.comparing.infinities import LOST, Exact, problem_at_infinities
from coset.comparing.noise import floating, wide
from coset.prove.error_bound import roundoff

# How many times its own rounding noise an output may move. The noise is what moving every float input and constant by one rounding
# error does to the original program: an estimate of the condition, not a bound (a running error analysis is to replace it).
NOISE_FACTOR = 32.0
# ... and the least that reassociating sums costs: a few roundings of the largest element of the output
ROUNDINGS = 64.0
# of a type of few digits so many would be half of the element, or more: then this share, and a few roundings at least
SHARE, FEWEST = 2.0**-4, 4.0
# No noise excuses more than this share of the largest element that the output has on this case or on the normal one: where the original is
# so ill conditioned that its own roundings move it further, an optimized program that differs as much would still look wrong to its user
MOST_NOISE = 0.1


@dataclass(frozen=True)
class Difference:
    """How far one output moved on one case. `tolerance` and `max_abs` are in the unit of the output."""

    case: str
    output: str
    max_abs: float
    max_rel: float
    tolerance: float
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Within the tolerance and without a new NaN, infinity, shape or dtype."""
        return not self.problem and self.max_abs <= self.tolerance

    def __str__(self) -> str:
        """What is wrong with it, for a message."""
        return f"output `{self.output}` on {self.case} inputs: {self.problem or f'{self.max_abs:.3g} off, allowed {self.tolerance:.3g}'}"


def difference(
    case: str, name: str, expected: Any, got: Any, noise: Any, *, exact: bool, usual: float | None = None, beyond: Exact | None = None,
    exceptions: AbstractSet[str] = frozenset(),
) -> Difference:  # fmt: skip
    """Compare one output, whose largest element is of the size `usual` on normal inputs (None: not known). Of a sequence each element is
    compared, and the worst one told. What is no tensor else must be equal; so must anything that is no float. Where the output is not
    finite the other one has the same infinity or NaN, or what is `beyond`, as the `exceptions` of the rules that were used allow
    (`problem_at_infinities`); `INFINITE` among them allows what rules may make of infinite inputs."""
    if isinstance(expected, list) and isinstance(got, list) and expected and len(expected) == len(got):
        pairs = zip(expected, got, strict=True)
        each = [difference(case, name, one, other, noise, exact=exact, usual=usual, exceptions=exceptions) for one, other in pairs]
        return max(each, key=lambda found: (not found.ok, found.max_abs))
    unequal = _without_tolerance(case, name, expected, got)
    if unequal is not None:
        return unequal
    left, right = wide(expected), wide(got)
    judged = np.ones(left.shape, bool)
    if case == INFINITE and not exact and exceptions & {"nonfinite", INFINITE}:  # behind an exchange there may be anything, by a tanh, say
        judged = ~(np.isnan(left) | np.isnan(right))
    finite = np.isfinite(left) & judged
    if exact:
        same = bool(np.array_equal(left, right, equal_nan=True) and np.array_equal(_signs(left[finite]), _signs(right[finite])))
    problem = "a new NaN or infinity" if not np.isfinite(right[finite]).all() else ""
    if not problem and not exact and not np.isfinite(left).all():
        if left.dtype.kind == "c":  # its parts are exchanged by each product
            problem = LOST if not np.isnan(right[np.isnan(left) & judged]).all() else ""
        else:
            problem = problem_at_infinities(expected, got, beyond, exceptions, judged)
    with np.errstate(invalid="ignore", over="ignore"):
        step = np.abs(left[finite] - right[finite])
        scale = float(np.max(np.abs(left[finite]), initial=0.0))
    max_abs = float(np.max(step, initial=0.0))
    if exact:
        return Difference(case, name, max_abs, max_abs / scale if scale else 0.0, 0.0, "" if same else problem or "other bits")
    allowed = NOISE_FACTOR * float(noise if noise is not None else 0.0)
    if usual is not None:
        allowed = min(allowed, MOST_NOISE * max(scale, usual))
    tolerance = allowed + reassociated(expected.dtype) * scale + ROUNDINGS * flushed(expected.dtype)
    return Difference(case, name, max_abs, max_abs / scale if scale else 0.0, tolerance, problem)


def _without_tolerance(case: str, name: str, expected: Any, got: Any) -> Difference | None:
    """The comparison of values that are no floats, which must be equal, or differ in shape or dtype; None for floats to compare."""
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        same = _equal_values(expected, got)
        return Difference(case, name, 0.0 if same else np.inf, 0.0, 0.0, "" if same else "another value")
    if expected.dtype != got.dtype or expected.shape != got.shape:
        problem = f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
        return Difference(case, name, np.inf, np.inf, 0.0, problem)
    if not floating(expected):
        same = bool(np.array_equal(expected, got))
        return Difference(case, name, 0.0 if same else 1.0, 0.0, 0.0, "" if same else "another value")
    return None


def reassociated(dtype: np.dtype[Any]) -> float:
    """What share of the largest element another order of sums may cost."""
    step = roundoff(dtype)
    return min(ROUNDINGS * step, max(SHARE, FEWEST * step))


def flushed(dtype: np.dtype[Any]) -> float:
    """The size of numbers that GPUs and vector libraries take for zeros: those below the normal ones of 8 bits of exponent."""
    return float(np.finfo(np.float32).tiny) if dtype in (np.float32, np.complex64) or dtype.name == "bfloat16" else 0.0


def _signs(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whether the numbers are negative, zeros too; of complex ones both parts."""
    parts = np.stack([value.real, value.imag]) if value.dtype.kind == "c" else value
    return np.asarray(np.signbit(parts))


def _equal_values(expected: Any, got: Any) -> bool:
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(_equal_values(a, b) for a, b in zip(expected, got, strict=True))
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(_equal_values(expected[k], got[k]) for k in expected)
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        return expected.dtype == got.dtype and np.array_equal(expected, got, equal_nan=expected.dtype.kind in "fc")
    return bool(expected == got or (expected != expected and got != got))  # a NaN in a map is one, too
