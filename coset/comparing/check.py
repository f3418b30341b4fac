"""Checked output: the optimized model and the original run side by side, without any optimizer, before one byte is handed out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coset.backends.onnxruntime import Session
from coset.comparing.deadline import spared
from coset.comparing.difference import ROUNDINGS, Difference, difference
from coset.comparing.drawing import ENDS, INFINITE, MIXED
from coset.comparing.feeds import OTHER_SIZES, SAMPLE, Case, Draw, Feed, cases, cases_of_bits, with_other_sizes
from coset.comparing.infinities import ExactOutputs
from coset.comparing.noise import largest_step, moved, nudged, rounded, weight_bytes
from coset.comparing.seeds import with_seeds
from coset.comparing.sizes import trials
from coset.comparing.usual_outputs import blindness, usual_sizes
from coset.ir.errors import CosetError
from coset.ir.held import working_folder
from coset.ir.program import Program
from coset.lowering.onnx.model import write
from coset.targets.running import Running

WAITING = {"session.intra_op.allow_spinning": "0"}  # threads sleep between nodes: spinning took two fifths of a comparison's processor time
UNOPTIMIZED = Running("off")
SEEDS = (1, 2)  # constants, and results, are moved in two ways, the second where the first does not decide
MEASURED = ("", "inputs", *("inputs and constants",) * len(SEEDS), *("inputs, constants and results",) * len(SEEDS))  # moved, after each
EXTREME = ("huge", "nan", INFINITE, ENDS, MIXED)  # cases on which a level of the runtime may be another program than without it
ORDINARY = ("normal", "second", "negative")  # how cases of usual numbers are called, one of which must run
REDRAWS = 6  # seeds of a model that runs on no first draw
OF_SAMPLES = "sample inputs must be such that the model takes (--sample-inputs)"
SHAKEN_BYTES = 512 << 20  # of weights, up to which the constants are moved too


@dataclass(frozen=True)
class CheckReport:
    """The comparison on all cases. `skipped` are cases that the original itself refuses to run."""

    binding: dict[str, int]
    differences: list[Difference] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)  # why they are, where it is known
    apart: str = ""  # how the original itself is another at the options of this run; then it was compared with that
    measured: str = "inputs and constants"  # which were moved by one rounding error to measure the noise of the original
    feeds: dict[str, Feed] = field(default_factory=dict, repr=False)  # the inputs by case
    by: str = ""  # what ran both, where it is not what will run the result
    loose: str = ""  # why bits did not count, where the rules that were used keep every one
    blind: str = ""  # of which outputs the drawn inputs show little

    @property
    def ok(self) -> bool:
        """True when at least one case ran and every output of every case is within its tolerance."""
        return bool(self.cases) and all(difference.ok for difference in self.differences)

    @property
    def worst(self) -> Difference | None:
        """The output that is furthest from its tolerance, a failing one first."""
        return max(self.differences, key=lambda d: (not d.ok, d.max_abs / d.tolerance if d.tolerance else d.max_abs), default=None)

    @property
    def method(self) -> str:
        """Where the tolerance comes from."""
        if not self.measured:
            return f"{ROUNDINGS:.0f} roundings of the largest element of each output; that was enough, no noise was measured"
        return f"estimated: rounding noise of the original under one rounding error on its {self.measured}"

    def summary(self) -> dict[str, Any]:
        """What `--json` prints under `check`."""
        worst = self.worst
        return {
            "inputs": self.cases,
            "skipped": self.skipped,
            "dims": self.binding,
            "max_abs": max((d.max_abs for d in self.differences), default=0.0),
            "max_rel": max((d.max_rel for d in self.differences if d.case in ("normal", "second")), default=0.0),
            "tolerance": worst.tolerance if worst else 0.0,
            "method": self.method,
            "by": self.by,
            "loose": self.loose,
            "blind": self.blind,
            "problem": worst.problem if worst and not worst.ok else "",
            "ok": self.ok,
        }


@dataclass(frozen=True)
class OriginalRun:
    """One case with the original's outputs, how far rounding errors were seen to move each, and what they are exactly."""

    case: Case
    outputs: Feed
    noise: dict[str, float]
    exact: ExactOutputs


class Oracle:
    """The original program, run without optimization, with its outputs on every case.

    Its rounding noise is measured when a comparison asks for it, on the cases that differ: on moved inputs first, with moved constants
    then, and at last with moved results of every node, which tells what other sums inside the nodes may do.
    """

    def __init__(
        self, model: Any, program: Program, given: Mapping[str, int], *, seed: int = 0, draw: Draw | None = None, exact: bool = False
    ) -> None:
        """Find numbers for the free dims that the original runs with, and its outputs on the inputs that `draw` makes of `seed` (None: the
        usual ones, also with other numbers for dims that are not `given`; `exact`: those for comparing bits).

        Raises:
            CosetError: the original does not load or does not run on any drawn input.
        """
        self.skipped: list[str] = []
        self.runs: list[OriginalRun] = []
        self.binding: dict[str, int] = {}
        self._model, self._program, self._seed = model, program, seed
        self._draws = program.effects is not None and with_seeds(model) is not None  # other effects are of domains that nobody knows
        self._draw = draw or with_other_sizes(cases_of_bits if exact else cases, given)
        shaken = [partial(self._shake, shake, seed) for shake in (nudged, rounded) for seed in SEEDS]
        self._measures: list[Callable[[Sequence[OriginalRun]], None]] = [self._move_inputs, *shaken]  # of noise, the cheapest first
        self._measured: Counter[str] = Counter()  # how many of them were taken of each case
        refusal = self._run(model, program, given)
        usual = next((run for run in self.runs if run.case.name == "normal"), self.runs[0] if self.runs else None)
        self._usual = {} if usual is None else usual_sizes(program, usual.outputs)
        self._blind = blindness(program, [run.outputs for run in self.runs if run.case.name not in EXTREME])
        if not self.runs:
            raise CosetError(f"the original model does not run on drawn inputs: {refusal}", help=what_to_give(program))

    def _run(self, model: Any, program: Program, given: Mapping[str, int]) -> str:
        """Run the original on every case with the first numbers for its free dims that it takes; the last refusal.

        Only the outputs are kept: one copy of the weights at a time is in memory.
        """
        refusal = ""
        session = self._session(model)
        tried = []
        for binding in trials(program, given):
            tried.append(binding)
            refusal = self._take(session, program, binding, self._seed, whole=False) or refusal
            if self.runs:
                return refusal
        for binding in tried[:2]:  # numbers that are computed from what is drawn may be divisors, too: of many draws some will do
            for seed in range(self._seed, self._seed + REDRAWS):
                self._take(session, program, binding, seed, whole=True)
                if any(run.case.name.startswith(ORDINARY) for run in self.runs):
                    return refusal
        self.runs = []
        return refusal

    def _take(self, session: Session | _Drawing, program: Program, binding: Mapping[str, int], seed: int, *, whole: bool) -> str:
        """Run the original on every case of a seed with these numbers for its free dims; the last refusal. Unless the `whole` is wanted a
        refusal of the first case ends it, before others take time."""
        self.skipped, self.runs, self.binding, refusal = [], [], dict(binding), ""
        for case in self._draw(program, binding, seed):
            try:
                outputs = spared(partial(session.run, case.feed), f"the original on {case.name} inputs")
            except CosetError as error:
                if case.name == OTHER_SIZES:
                    continue  # they are a choice of ours
                if case.name.startswith(SAMPLE):
                    raise CosetError(f"the original model does not run on {case.name}: {error.message}", help=OF_SAMPLES) from None
                refusal = error.message
                self.skipped.append(case.name)
                if case.name == "normal" and not self.runs and not whole:
                    break
                continue
            self.runs.append(OriginalRun(case, outputs, dict.fromkeys(outputs, 0.0), ExactOutputs(program, case.feed)))
        return refusal

    def compare(
        self, model: Any, *, exact: bool, running: Running | None = None, exceptions: AbstractSet[str] = frozenset()
    ) -> CheckReport:
        """Run `model` on every case and compare; with `exact` every bit counts (all NaNs being equal), else `exceptions` are those of the
        rules that it rests on. It is run without optimization, or as `running` says. Where the runtime's own optimizer changes the original
        too on inputs that are huge or not finite (a NaN that its pooling drops), the result need only be that: the report says so under
        `apart`. What it changes on ordinary inputs is a fault of that level.

        Most programs stay within a few roundings of their outputs. Only for one that does not is the original's own noise measured, which
        takes as long as all the rest.
        """
        session = self._session(model, running)
        results = [session.run(run.case.feed) for run in self.runs]
        del session  # before the original is loaded again
        report = self._reported(results, self.runs, exact=exact, exceptions=exceptions)
        ordinary = any(not each.ok and each.case not in EXTREME for each in report.differences)
        return report if report.ok or running is None or ordinary else self._beside(report, results, running, exceptions)

    def _reported(self, results: Sequence[Feed], runs: Sequence[OriginalRun], *, exact: bool, exceptions: AbstractSet[str]) -> CheckReport:
        """The comparison of `results` with `runs`, for which noise is measured as far as it decides."""
        while True:
            report = self._report(results, runs, exact=exact, exceptions=exceptions)
            differing = {each.case for each in report.differences if not each.ok}
            left = [run for run in self.runs if run.case.name in differing and self._measured[run.case.name] < len(self._measures)]
            if exact or not left:
                return report
            least = min(self._measured[run.case.name] for run in left)
            now = [run for run in left if self._measured[run.case.name] == least]
            self._measures[least](now)
            self._measured.update(run.case.name for run in now)

    def _beside(self, report: CheckReport, results: Sequence[Feed], running: Running, exceptions: AbstractSet[str]) -> CheckReport:
        """`results` against the original run with the same options, or `report` where they differ from that too."""
        session = self._session(self._model, running)
        own = [replace(run, outputs=session.run(run.case.feed)) for run in self.runs]
        again = self._reported(results, own, exact=False, exceptions=exceptions)
        return replace(again, apart=str(report.worst)) if again.ok else report

    def _report(self, results: Sequence[Feed], runs: Sequence[OriginalRun], *, exact: bool, exceptions: AbstractSet[str]) -> CheckReport:
        measured = MEASURED[max(self._measured.values(), default=0)]
        report = CheckReport(self.binding, [], [], list(self.skipped), measured=measured, blind=self._blind)
        for run, found in zip(runs, results, strict=True):
            case, outputs = run.case, run.outputs
            report.cases.append(case.name)
            report.feeds[case.name] = case.feed
            if list(found) != list(outputs):
                report.differences.append(Difference(case.name, "", np.inf, np.inf, 0.0, f"outputs are {list(found)}, not {list(outputs)}"))
                continue
            for name, expected in outputs.items():
                usual = self._usual.get(name)
                judge = partial(difference, exact=exact, usual=usual, beyond=run.exact.of(name), exceptions=exceptions)
                report.differences.append(judge(case.name, name, expected, found[name], run.noise[name]))
        return report

    def _session(self, model: Any, running: Running | None = None) -> Session | _Drawing:
        """Either program for some runs; where they draw random numbers, with seeds."""
        seeded = with_seeds(model) if self._draws else None
        return _session(model, running) if seeded is None else _Drawing(partial(_session, seeded, running, Path(model).parent.resolve()))

    def _move_inputs(self, runs: Sequence[OriginalRun]) -> None:
        session = self._session(self._model)
        for run in runs:
            _listen(run, session, moved(run.case.feed))

    def _shake(self, shake: Callable[[Program, int], Program], seed: int, runs: Sequence[OriginalRun]) -> None:
        """Move the original by `shake`, but for large models, of which that would be another copy on the disk."""
        if weight_bytes(self._program) > SHAKEN_BYTES:
            return
        with working_folder("coset-work-") as folder:
            path = folder / "shaken.onnx"
            try:
                write(shake(self._program, seed), path)
                session = self._session(path)
            except CosetError:
                return  # the runtime has no arithmetic for its elements, or no kernel for the form of a node: that shows no noise
            for run in runs:
                _listen(run, session, run.case.feed)
                _listen(run, session, moved(run.case.feed))


def what_to_give(program: Program) -> str:
    """What to do about a model that does not run on drawn inputs."""
    return (
        "give its free dims with --dim NAME=N" if program.symbols() else "does it run with inputs of its kind, in the memory that there is?"
    )


def _session(model: str | Path | bytes, running: Running | None = None, folder: Path | None = None) -> Session:
    """A session for few runs, which asks for no more memory than it needs. Whoever compares has a limit (`coset/comparing/deadline.py`)."""
    return Session.told(model, running or UNOPTIMIZED, entries=WAITING, folder=folder, arena=False, watched=False)


@dataclass(frozen=True)
class _Drawing:
    """A model that draws random numbers, with seeds: loaded for each run, so that each draws the same whatever was run before."""

    load: Callable[[], Session]

    def run(self, feed: Feed) -> Feed:
        """As `Session.run`."""
        return self.load().run(feed)


def _listen(run: OriginalRun, session: Session | _Drawing, feed: Feed) -> None:
    """Raise the noise of `run` to the move of each output that `session` shows on `feed`; a refusal shows none."""
    try:
        results = session.run(feed)
    except CosetError:
        return
    for name, value in results.items():
        run.noise[name] = max(run.noise[name], largest_step(value, run.outputs[name]))


def breaking_rule(names: Iterable[str], passes: Any) -> str | None:
    """The rule that turns a passing program into a failing one, by halving: `passes(rules)` tells whether the program made
    with only these rules is within its tolerance. None when even no rule at all fails."""
    ordered = list(names)
    if not passes(()):
        return None
    low, high = 0, len(ordered)  # passes(ordered[:low]) and not passes(ordered[:high])
    while high - low > 1:
        middle = (low + high) // 2
        if passes(tuple(ordered[:middle])):
            low = middle
        else:
            high = middle
    return ordered[high - 1]
