"""`coset calibrate`: time what programs are made of on this machine, keep it, and fit the target's numbers to it.

What is timed, where and by which clock is a `CalibrationBench`: the CPU's is here, a GPU's in `coset.calibration.gpu`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any

from coset.backends.onnxruntime import Session
from coset.backends.profile import MeasuredAt, Profile
from coset.calibration.cases import LONG, SHORT, CalibrationCase, cases
from coset.comparing.timing import Protocol, Timing, measure
from coset.extract.fit import Quality, Wanted, every, fit, quality
from coset.ir.errors import CosetError
from coset.ir.held import working_folder
from coset.job.machine import this_machine
from coset.lowering.onnx.model import write
from coset.targets.target import Target
from coset.targets.write import overlay

LEAST_ROUNDS, MOST_ROUNDS = 5, 50  # of both chains
RESOLUTION = 1e-8  # s: a link that seems to take less was lost in noise
HELD_BACK = 4  # one case in so many takes no part in the fit that is judged
Progress = Callable[[str], None]
Seconds = Callable[[CalibrationCase, float], tuple[float, int]]  # (case, seconds for it) -> seconds of a link, and of how many rounds


@dataclass(frozen=True)
class CalibrationBench:
    """Where cases are timed: the `place` that measurements are kept under, what is timed there, the `clock`, and which kernels its cases
    can speak about."""

    place: MeasuredAt
    cases: Sequence[CalibrationCase]
    clock: Seconds
    wanted: Wanted = every


@dataclass(frozen=True)
class Calibrated:
    """What a calibration gave: the `target` fitted to all cases; how well a fit without the cases held back predicts those, beside how
    well the numbers did that were there before; how many cases there are, were measured now, and are left for another run. `refused`:
    why a case does not run there."""

    target: Target
    place: MeasuredAt
    before: Quality
    after: Quality
    cases: int
    measured: int
    left: int
    refused: dict[str, str] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """For people and for `--json`: errors are medians of |predicted - measured| / measured, on the cases held back."""
        held = {
            name: {"cases": found.cases, "spearman": _number(found.spearman), "median_relative_error": _number(found.error)}
            for name, found in (("before", self.before), ("after", self.after))
        }
        summed = {"cases": self.cases, "measured": self.measured, "left": self.left, "held_back": held, "refused": self.refused}
        return {**summed, "device": self.place.device, "versions": self.place.versions}


def on_cpu() -> CalibrationBench:
    """This machine's CPU under ONNX Runtime."""
    return CalibrationBench(this_machine(), list(cases()), link_seconds)


def bench_of(target: Target) -> CalibrationBench:
    """Where `target` is measured: on this machine's CPU, or on its GPU.

    Raises:
        CosetError: nothing times programs for such a target, or there is no GPU.
    """
    if target.dialect == "torch":
        from coset.calibration.gpu import on_gpu  # torch is asked for only where a GPU is

        return on_gpu(target)
    if target.dialect != "onnx" or target.host is not None:
        raise CosetError(f"programs for `{target.name}` are not timed here", help="the target of a CPU under ONNX Runtime, or of a GPU")
    return on_cpu()


def calibrate(
    target: Target, profile: Profile, bench: CalibrationBench, *, seconds: float, each: float, progress: Progress = lambda _: None
) -> Calibrated:
    """Measure what the profile has not, for at most `seconds`, `each` case so long, and fit `target` to all that it has by then.

    Raises:
        CosetError: the profile cannot be written.
    """
    place = bench.place
    known = {(row.op, row.dtype, row.shape) for row in profile.rows(place)}
    wanting = [case for case in bench.cases if (case.op, case.dtype, case.shape) not in known]
    end = time.monotonic() + seconds
    done, refused = 0, {}
    for case in wanting:
        if time.monotonic() > end:
            break
        done += 1
        progress(f"{done} of {len(wanting)}: {case.name}")
        try:
            took, rounds = bench.clock(case, each)
        except CosetError as error:  # what one kernel cannot do says nothing of the others, and is told at the end
            refused[case.name] = error.message
            progress(f"  does not run: {error.message}")
        else:
            profile.put(place, case.op, case.dtype, case.shape, took, rounds)
    rows = {(row.op, row.dtype, row.shape): row.seconds for row in profile.rows(place)}
    times = [(case, rows.get((case.op, case.dtype, case.shape), 0.0)) for case in bench.cases]
    found = [case.measured(took) for case, took in times if took > RESOLUTION]
    source = f"measured: {place.device}, {place.versions}, {time.strftime('%Y-%m-%d')}, `coset calibrate`"
    held = [case for case in found if _is_held_back(case.name)]
    shown = [case for case in found if not _is_held_back(case.name)]
    before = quality(held, target)
    after = quality(held, fit(target, shown, source, wanted=bench.wanted, progress=progress))
    fitted = fit(target, found, source, wanted=bench.wanted, progress=progress)
    return Calibrated(fitted, place, before, after, len(found), done - len(refused), len(wanting) - done, refused)


def link_seconds(case: CalibrationCase, seconds: float) -> tuple[float, int]:
    """The time of one link, and of how many rounds: the median over rounds of the difference of both chains' medians, by the protocol of
    `coset.comparing.timing`, as programs are timed: chains take turns, and each waits until the other's threads sleep."""
    with working_folder("coset-work-") as folder:
        sessions = [_session(case, length, folder) for length in (SHORT, LONG)]
        feed = case.feed()
        programs = {str(number): partial(session.run, feed) for number, session in enumerate(sessions)}
        short, long = measure(programs, Protocol(MOST_ROUNDS, seconds, LEAST_ROUNDS)).values()
    return per_link(short, long)


def per_link(short: Timing, long: Timing) -> tuple[float, int]:
    """The time of one link, and of how many rounds, from those of the two chains or numbers of calls."""
    differences = long.medians - short.medians
    return max(float(median(differences)), 1e-9) / (LONG - SHORT), len(differences)


def _session(case: CalibrationCase, length: int, folder: Path) -> Session:
    path = folder / f"{length}.onnx"
    write(case.chain(length), path)
    return Session(path, level="all" if case.fused else "off")


def _is_held_back(name: str) -> bool:
    return blake2b(name.encode(), digest_size=2).digest()[0] % HELD_BACK == 0


def _number(value: float) -> float | None:
    return value if isfinite(value) else None


def as_file(found: Calibrated, base: Target) -> str:
    """The calibrated target as a target file, based on the one that it was made from."""
    return overlay(found.target, base, f"{base.title}, calibrated: {found.place.device}, {found.place.versions}, {found.cases} cases")
