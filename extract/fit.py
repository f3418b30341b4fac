"""Fit the numbers of a target's kernels to measured programs: what `coset calibrate` makes of its measurements.

Only numbers change: which op becomes which kernel, under which conditions, stays the target's. What no measured program tells anything
about stays too: each number is held near what it was. A curve keeps its shape where nothing says otherwise: its points are held to moving
together, more than to staying, so that what lies beyond the measured sizes goes along with what was measured, and a disturbed measurement
does not throw a point that nothing else holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, isfinite, log

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import spearmanr

from coset.egraph.saturated import Saturated
from coset.extract.cost import Pricer
from coset.extract.faces import faces_of
from coset.extract.plain import saturated_of
from coset.extract.problem import Picks, cost_of
from coset.extract.solve import SolveEffort, solve
from coset.extract.storage import Folded, folded
from coset.ir.term import Term
from coset.targets.target import Curve, Kernel, Rate, Target

TOGETHER = 0.3  # how much a point of a curve that goes another way than its neighbour counts: what lies beyond all cases goes along
HELD = 0.1  # how much a number that is off by a factor e counts, beside a measurement that is
UNUSUAL = 0.15  # of the logarithm of predicted over measured: from there on a case counts less than its square
SWEEPS = 2  # over all kernels, since a case has several
STEP = 1e-3  # of the logarithm of a number, to see which cases it touches
FURTHEST = 3.0  # a number moves by this factor's exponential at most

Wanted = Callable[[Kernel], bool]


@dataclass(frozen=True)
class MeasuredLink:
    """A link that took `seconds`: its chains of `lengths` links, as roots."""

    name: str
    chains: tuple[Sequence[Term], Sequence[Term]]
    lengths: tuple[int, int]
    seconds: float


@dataclass(frozen=True)
class Quality:
    """How well a target predicts: Spearman's rank correlation, the median of |predicted - measured| / measured, over `cases`."""

    cases: int
    spearman: float
    error: float


def predicted(case: MeasuredLink, target: Target) -> float:
    """Seconds of one link on `target`; infinite where it cannot run it."""
    short, long = (_priced(roots, target, {}) for roots in case.chains)
    return (long - short) / (case.lengths[1] - case.lengths[0])


def quality(cases: Sequence[MeasuredLink], target: Target) -> Quality:
    """How well `target` predicts the cases that it can run."""
    pairs = [(each.seconds, guess) for each in cases if isfinite(guess := predicted(each, target))]
    if len(pairs) < 3:
        return Quality(len(pairs), float("nan"), float("nan"))
    measured, guesses = np.asarray(pairs).T
    return Quality(len(pairs), float(spearmanr(measured, guesses).statistic), float(np.median(np.abs(guesses - measured) / measured)))


def every(_: Kernel) -> bool:
    """Of any kernel: it is to be fitted."""
    return True


def fit(
    target: Target,
    cases: Sequence[MeasuredLink],
    source: str,
    *,
    wanted: Wanted = every,
    progress: Callable[[str], None] = lambda _: None,
) -> Target:
    """`target` with the numbers of the `wanted` kernels moved to where they explain the cases; what was moved says `source`."""
    chosen: Known = {}
    known = [case for case in cases if isfinite(seconds_of(case, target, chosen))]
    for _ in range(SWEEPS):
        for name in sorted(name for name, kernel in target.kernels.items() if wanted(kernel)):
            touched = touched_by(target, name, known, chosen)
            if touched:
                progress(f"fitting `{name}` to {len(touched)} cases")
                target = with_kernel(target, name, _fitted(target, name, touched, source, chosen))
    return target


# ---------------------------------------------------------------- prices


@dataclass(frozen=True)
class _Plain:
    """A program that is priced again and again: its classes, what is made of constants, and the faces that it takes."""

    saturated: Saturated
    folded: Folded
    picks: Picks


Known = dict[tuple[Term, ...], _Plain]


def _priced(roots: Sequence[Term], target: Target, chosen: Known) -> float:
    """Seconds of a plain program; which faces it takes is decided once, in `chosen`: prices do not change what a program is made of."""
    key = tuple(roots)
    plain = chosen.get(key)
    if plain is not None:
        return cost_of(faces_of(plain.saturated, Pricer(target, {}), plain.folded).problem, plain.picks)
    saturated, _ = saturated_of(key)
    constants = folded(saturated, target)
    solution = solve(faces_of(saturated, Pricer(target, {}), constants).problem, SolveEffort())
    if solution is None:
        return float("inf")
    chosen[key] = _Plain(saturated, constants, solution.picks)
    return solution.cost


def seconds_of(case: MeasuredLink, target: Target, chosen: Known) -> float:
    """As `predicted`, with what was chosen before for a program of the case."""
    short, long = (_priced(roots, target, chosen) for roots in case.chains)
    return (long - short) / (case.lengths[1] - case.lengths[0])


# ---------------------------------------------------------------- the numbers of a kernel

CURVES = ("bandwidth", "rows", "work")
Number = tuple[str, str | int]  # `launch`, `piece`, a rate by its dtype, a point of a curve by its place


def numbers_of(kernel: Kernel) -> Iterator[Number]:
    """The numbers of a kernel that can be fitted."""
    if kernel.launch.value > 0:
        yield ("launch", "")
    if kernel.piece is not None:
        yield ("piece", "")
    yield from (("rates", dtype) for dtype in kernel.rates)
    for name in CURVES:
        curve: Curve | None = getattr(kernel, name)
        yield from (
            (name, place) for place, (_, y) in enumerate(curve.points if curve else ()) if name == "bandwidth" or y < 1
        )  # a share of 1 is what the rate means


def moved(kernel: Kernel, factors: Mapping[Number, float], source: str) -> Kernel:
    """The kernel with some of its numbers multiplied."""

    def rate(given: Rate, factor: float | None) -> Rate:
        return given if factor is None else Rate(given.value * factor, given.unit, source)

    def curve(name: str) -> Curve | None:
        given: Curve | None = getattr(kernel, name)
        if given is None or not any((name, place) in factors for place in range(len(given.points))):
            return given
        most = float("inf") if name == "bandwidth" else 1.0
        points = tuple((x, min(most, y * factors.get((name, place), 1.0))) for place, (x, y) in enumerate(given.points))
        return Curve(points, given.x, given.unit, source)

    return replace(
        kernel,
        launch=rate(kernel.launch, factors.get(("launch", ""))),
        piece=kernel.piece and rate(kernel.piece, factors.get(("piece", ""))),
        rates={dtype: rate(given, factors.get(("rates", dtype))) for dtype, given in kernel.rates.items()},
        bandwidth=curve("bandwidth"),
        rows=curve("rows"),
        work=curve("work"),
    )


def with_kernel(target: Target, name: str, kernel: Kernel) -> Target:
    """`target` with another kernel of this name."""
    return replace(target, kernels={**target.kernels, name: kernel})


def touched_by(target: Target, name: str, cases: Sequence[MeasuredLink], chosen: Known) -> list[MeasuredLink]:
    """The cases whose price has to do with a kernel."""
    kernel = target.kernels[name]
    other = with_kernel(target, name, moved(kernel, dict.fromkeys(numbers_of(kernel), exp(STEP)), ""))
    return [case for case in cases if abs(seconds_of(case, other, chosen) - seconds_of(case, target, chosen)) > STEP * 1e-3 * case.seconds]


def _fitted(target: Target, name: str, cases: Sequence[MeasuredLink], source: str, chosen: Known) -> Kernel:
    kernel = target.kernels[name]
    numbers = list(numbers_of(kernel))
    neighbours = [(place, place + 1) for place, (one, next) in enumerate(pairwise(numbers)) if one[0] == next[0] and one[0] in CURVES]
    earlier, later = np.asarray(neighbours, int).reshape(-1, 2).T

    def off(logarithms: np.ndarray) -> np.ndarray:
        factors = dict(zip(numbers, np.exp(logarithms).tolist(), strict=True))
        other = with_kernel(target, name, moved(kernel, factors, source))
        misses = [log(max(seconds_of(case, other, chosen), 1e-12) / case.seconds) for case in cases]
        return np.asarray([*misses, *(HELD * logarithms), *(TOGETHER * (logarithms[later] - logarithms[earlier]))])

    found = least_squares(off, np.zeros(len(numbers)), bounds=(-FURTHEST, FURTHEST), loss="soft_l1", f_scale=UNUSUAL, max_nfev=12)
    factors = {number: exp(value) for number, value in zip(numbers, found.x.tolist(), strict=True) if abs(value) > STEP}
    return moved(kernel, factors, source)
