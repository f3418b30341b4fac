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
from coset.comparing.feeds import (
    ENDS,
    INFINITE,
    MIXED,
    OTHER_SIZES,
    SAMPLE,
    Case,
    Draw,
    Feed,
    cases,
    cases_of_bits,
    trials,
    with_other_sizes,
)
from coset.comparing.infinities import LOST, Exact, ExactOutputs, problem_at_infinities
from coset.comparing.noise import floating, largest_step, moved, nudged, rounded, weight_bytes, wide
from coset.comparing.seeds import with_seeds
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.held import working_folder
from coset.ir.program import Program
from coset.ir.term import Term
from coset.lowering.onnx.model import write
from coset.prove.error_bound import roundoff
from coset.targets.running import Running

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
BOUNDED = frozenset({"logistic", "sigmoid", "hardsigmoid", "softmax", "tanh", "erf", "softsign", "sine", "cosine", "sin", "cos"})  # to 1
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
class Run:
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
        self.runs: list[Run] = []
        self.binding: dict[str, int] = {}
        self._model, self._program, self._seed = model, program, seed
        self._draws = program.effects is not None and with_seeds(model) is not None  # other effects are of domains that nobody knows
        self._draw = draw or with_other_sizes(cases_of_bits if exact else cases, given)
        shaken = [partial(self._shake, shake, seed) for shake in (nudged, rounded) for seed in SEEDS]
        self._measures: list[Callable[[Sequence[Run]], None]] = [self._move_inputs, *shaken]  # of noise, the cheapest first
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
            self.runs.append(Run(case, outputs, dict.fromkeys(outputs, 0.0), ExactOutputs(program, case.feed)))
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

    def _reported(self, results: Sequence[Feed], runs: Sequence[Run], *, exact: bool, exceptions: AbstractSet[str]) -> CheckReport:
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

    def _report(self, results: Sequence[Feed], runs: Sequence[Run], *, exact: bool, exceptions: AbstractSet[str]) -> CheckReport:
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

    def _move_inputs(self, runs: Sequence[Run]) -> None:
        session = self._session(self._model)
        for run in runs:
            _listen(run, session, moved(run.case.feed))

    def _shake(self, shake: Callable[[Program, int], Program], seed: int, runs: Sequence[Run]) -> None:
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


def _listen(run: Run, session: Session | _Drawing, feed: Feed) -> None:
    """Raise the noise of `run` to the move of each output that `session` shows on `feed`; a refusal shows none."""
    try:
        results = session.run(feed)
    except CosetError:
        return
    for name, value in results.items():
        run.noise[name] = max(run.noise[name], largest_step(value, run.outputs[name]))


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
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        same = _equal_values(expected, got)
        return Difference(case, name, 0.0 if same else np.inf, 0.0, 0.0, "" if same else "another value")
    if expected.dtype != got.dtype or expected.shape != got.shape:
        problem = f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
        return Difference(case, name, np.inf, np.inf, 0.0, problem)
    if not floating(expected):
        same = bool(np.array_equal(expected, got))
        return Difference(case, name, 0.0 if same else 1.0, 0.0, 0.0, "" if same else "another value")
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


def usual_sizes(program: Program, outputs: Mapping[str, Any]) -> dict[str, float]:
    """The size of the largest element of each output, which a program gives on usual inputs. Of what a bounded function gives at least so
    much that noise may excuse a few roundings of 1: near its ends a runtime's kernel is off by these, not by roundings of its results
    (ONNX Runtime's Sigmoid of -16 by all of it)."""
    bounded = {name for name, root in program.outputs if _is_bounded(root)}
    return {name: max(largest(value), _of_one(value) if name in bounded else 0.0) for name, value in outputs.items()}


def _of_one(value: Any) -> float:
    """The size of an output of which noise may excuse `ROUNDINGS` of 1."""
    return ROUNDINGS * roundoff(value.dtype) / MOST_NOISE if isinstance(value, np.ndarray) and floating(value) else 0.0


def blindness(program: Program, results: Sequence[Mapping[str, Any]]) -> str:
    """Which outputs are within roundings of 0, 1 and -1 in all of the `results`, as bounded functions far out are: words for the user."""
    names = [name for name, root in program.outputs if _is_bounded(root) and results and all(_at_ends(each[name]) for each in results)]
    quoted = ", ".join(f"`{name}`" for name in names)
    return f"{quoted} {'is' if len(names) == 1 else 'are'} 0, 1 or -1 but for roundings on ordinary drawn inputs" if names else ""


def _at_ends(value: Any) -> bool:
    if not isinstance(value, np.ndarray) or not floating(value):
        return False
    sizes = np.abs(wide(value))
    return bool(np.all(np.minimum(sizes, np.abs(sizes - 1)) <= ROUNDINGS * roundoff(value.dtype)))


def _is_bounded(term: Term) -> bool:
    while term.op.has("movement") and term.operands:
        term = term.operands[0]
    return describe(term).rpartition(".")[2].lower() in BOUNDED


def largest(value: Any) -> float:
    """The size of the largest finite element, of all in a sequence; 0 for what is no float."""
    if isinstance(value, list):
        return max(map(largest, value), default=0.0)
    if not isinstance(value, np.ndarray) or not floating(value):
        return 0.0
    sizes = np.abs(wide(value))
    return float(np.max(sizes[np.isfinite(sizes)], initial=0.0))


def _equal_values(expected: Any, got: Any) -> bool:
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(_equal_values(a, b) for a, b in zip(expected, got, strict=True))
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(_equal_values(expected[k], got[k]) for k in expected)
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        return expected.dtype == got.dtype and np.array_equal(expected, got, equal_nan=expected.dtype.kind in "fc")
    return bool(expected == got or (expected != expected and got != got))  # a NaN in a map is one, too


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
