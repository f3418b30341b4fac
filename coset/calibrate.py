"""`coset calibrate`: time what programs are made of on this machine, keep it, and fit the target's numbers to it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any

from coset.backends.onnxruntime import Session
from coset.backends.profile import Profile, Row
from coset.calibrate_cases import LONG, SHORT, Case, cases
from coset.extract.fit import Measured, Quality, fit, quality
from coset.lowering.onnx import write
from coset.machine import this_machine
from coset.targets.target import Target
from coset.targets.write import overlay
from coset.timing import Protocol, measure

LEAST_ROUNDS, MOST_ROUNDS = 5, 50  # of both chains
RESOLUTION = 1e-8  # s: a link that seems to take less was lost in noise
HELD_BACK = 4  # one case in so many takes no part in the fit that is judged
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Calibrated:
    """What a calibration gave: the `target` fitted to all cases; how well a fit without the cases held back predicts those, beside how
    well the numbers did that were there before; how many cases there are, were measured now, and are left for another run."""

    target: Target
    before: Quality
    after: Quality
    cases: int
    measured: int
    left: int

    def summary(self) -> dict[str, Any]:
        """For people and for `--json`: errors are medians of |predicted - measured| / measured, on the cases held back."""
        held = {
            name: {"cases": found.cases, "spearman": _number(found.spearman), "median_relative_error": _number(found.error)}
            for name, found in (("before", self.before), ("after", self.after))
        }
        return {"cases": self.cases, "measured": self.measured, "left": self.left, "held_back": held}


def calibrate(target: Target, profile: Profile, *, seconds: float, each: float, progress: Progress = lambda _: None) -> Calibrated:
    """Measure what the profile has not, for at most `seconds`, `each` case so long, and fit `target` to all that it has by then.

    Raises:
        CosetError: the profile cannot be written, or a chain does not run.
    """
    place = this_machine()
    every = list(cases())
    known = {(row.op, row.dtype, row.shape): row for row in profile.rows(place)}
    wanting = [case for case in every if (case.op, case.dtype, case.shape) not in known]
    end = time.monotonic() + seconds
    measured = 0
    for case in wanting:
        if time.monotonic() > end:
            break
        progress(f"{measured + 1} of {len(wanting)}: {case.name}")
        took, rounds = link_seconds(case, each)
        profile.put(place, case.op, case.dtype, case.shape, took, rounds)
        measured += 1
    rows = {(row.op, row.dtype, row.shape): row for row in profile.rows(place)}
    found = [_measured(case, row) for case in every if (row := rows.get((case.op, case.dtype, case.shape))) and row.seconds > RESOLUTION]
    source = f"measured: {place.device}, {place.versions}, {time.strftime('%Y-%m-%d')}, `coset calibrate`"
    held = [case for case in found if _is_held_back(case.name)]
    shown = [case for case in found if not _is_held_back(case.name)]
    before, after = quality(held, target), quality(held, fit(target, shown, source, progress=progress))
    return Calibrated(fit(target, found, source, progress=progress), before, after, len(found), measured, len(wanting) - measured)


def link_seconds(case: Case, seconds: float) -> tuple[float, int]:
    """The time of one link, and of how many rounds: the median over rounds of the difference of both chains' medians, by the protocol of
    `coset.timing`, as programs are timed: chains take turns, and each waits until the other's threads sleep."""
    with tempfile.TemporaryDirectory(prefix="coset-") as folder:
        sessions = [_session(case, length, Path(folder)) for length in (SHORT, LONG)]
        feed = case.feed()
        programs = {str(number): partial(session.run, feed) for number, session in enumerate(sessions)}
        short, long = measure(programs, Protocol(MOST_ROUNDS, seconds, LEAST_ROUNDS)).values()
        differences = long.medians - short.medians
    return max(float(median(differences)), 1e-9) / (LONG - SHORT), len(differences)


def _session(case: Case, length: int, folder: Path) -> Session:
    path = folder / f"{length}.onnx"
    write(case.chain(length), path)
    return Session(path, level="all" if case.fused else "off")


def _measured(case: Case, row: Row) -> Measured:
    lengths = (SHORT, SHORT + 1)  # prices of links add up: no need for the long chain
    short, long = (case.chain(length).roots for length in lengths)
    return Measured(case.name, (short, long), lengths, row.seconds)


def _is_held_back(name: str) -> bool:
    return blake2b(name.encode(), digest_size=2).digest()[0] % HELD_BACK == 0


def _number(value: float) -> float | None:
    return value if isfinite(value) else None


def as_file(found: Calibrated, base: Target) -> str:
    """The calibrated target as a target file, based on the one that it was made from."""
    place = this_machine()
    return overlay(found.target, base, f"{base.title}, calibrated: {place.device}, {place.versions}, {found.cases} cases")
