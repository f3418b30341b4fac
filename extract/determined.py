"""Which numbers of a target measured programs determine, and which stay what they were before."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np

from coset.extract.fit import HELD, STEP, Known, MeasuredLink, Number, moved, numbers_of, seconds_of, touched_by, with_kernel
from coset.targets.target import Kernel, Target

DETERMINED = 0.1  # from this share on a number is not determined: of two numbers of equal weight in all cases each has a half


def shares_held(target: Target, cases: Sequence[MeasuredLink]) -> dict[str, dict[Number, float]]:
    """For each kernel that one of the `cases` has to do with, the share of each of its numbers that only its former value holds: 0 of a
    number that the cases determine, 1 of one that no case has to do with. Of two numbers that all cases have to do with in the same way,
    as launch and rate where all sizes are equal, each has a half. Which programs the target can run was found out before.

    It is the ratio of variances in the linear least squares of `coset.extract.fit`, with the cases and without them.
    """
    chosen: Known = {}
    found: dict[str, dict[Number, float]] = {}
    for name, kernel in sorted(target.kernels.items()):
        touched = touched_by(target, name, cases, chosen)
        if touched:
            found[name] = _shares(target, name, kernel, touched, chosen)
    return found


def _shares(target: Target, name: str, kernel: Kernel, cases: Sequence[MeasuredLink], chosen: Known) -> dict[Number, float]:
    numbers = list(numbers_of(kernel))
    slopes = np.asarray([_slopes(target, name, kernel, number, cases, chosen) for number in numbers]).T  # [cases, numbers]
    held = HELD**2
    variances = np.diagonal(np.linalg.inv(slopes.T @ slopes + held * np.eye(len(numbers))))
    return dict(zip(numbers, (held * variances).tolist(), strict=True))


def _slopes(target: Target, name: str, kernel: Kernel, number: Number, cases: Sequence[MeasuredLink], chosen: Known) -> list[float]:
    """How the logarithm of each case's seconds goes with that of the number."""
    other = with_kernel(target, name, moved(kernel, {number: exp(STEP)}, ""))
    return [log(seconds_of(case, other, chosen) / seconds_of(case, target, chosen)) / STEP for case in cases]
