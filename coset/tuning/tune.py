"""`coset tune`: a model's kernels with other numbers, and other programs of its e-graph, on a target's device, into a profile.

The stages: the program and its plan as `coset lower` makes them; each kernel's alternatives by prediction; what compilers say of them;
with a device, the clock. Each result is in the profile as soon as it is known, and what the profile has is not done again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from coset.backends.profile import Place
from coset.backends.triton_runtime import Lost, Runner
from coset.backends.tuning_profile import Tunings
from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.lower import DIALECT, options_for, searched
from coset.lowering.triton_launch import Options
from coset.reference import read_program
from coset.targets.target import Target
from coset.task import Job, Progress, Task
from coset.tuning.chosen import best, default_row
from coset.tuning.measuring import Bench, Measuring, on_gpu, refusal
from coset.tuning.programs import Alternative, alternatives_of, model_key
from coset.tuning.pruning import Pruned, Pruning
from coset.tuning.racing import race
from coset.tuning.tunable import Tunable, tunables


@dataclass(frozen=True)
class Tuning:
    """What is asked for: the arguments of `coset tune`. `programs`: so many other programs are tried too; `seconds`: of compiling and
    measuring together; `jobs`: compilers at once."""

    model: Any
    target: Target
    numerics: str = "reassociates"
    limits: Limits = field(default_factory=Limits)
    rules: Sequence[str | Path] = ()
    dims: Mapping[str, int] | None = None
    seconds: float = 600.0
    jobs: int = 2
    programs: int = 0
    progress: Progress = lambda _: None


@dataclass(frozen=True)
class Prepared:
    """A model searched and planned: the `programs` (the first is the target's own choice) and the kernels of all of them."""

    original: Program
    task: Task
    programs: tuple[Alternative, ...]
    options: Options

    @property
    def sizes(self) -> Mapping[str, int]:
        """Of the free dims."""
        return self.task.binding


def prepare(asked: Tuning) -> Prepared:
    """The model's program, as `coset lower` chooses it, with its plan, and others.

    Raises:
        CosetError: the model or the target is none that can be lowered.
    """
    if asked.target.dialect != DIALECT:
        raise CosetError(f"the target `{asked.target.name}` has no kernels of ours to tune", help="name one that `coset lower` takes")
    asked.progress("reading the model")
    original = read_program(asked.model)
    job = Job(asked.model, asked.target, asked.numerics, asked.limits, asked.rules, asked.dims or {}, asked.progress)
    task = searched(job, original)
    asked.progress("searching equal programs")
    options = options_for(asked.numerics, asked.target)
    return Prepared(original, task, tuple(alternatives_of(task, asked.programs, options)), options)


@dataclass
class _Run:
    """One call: what is known so far, so that it can be told whenever it ends."""

    asked: Tuning
    profile: Tunings
    pruning: Pruning
    bench: Bench | None
    stop: str = "done"
    prepared: Prepared | None = None
    pruned: list[Pruned] = field(default_factory=list)
    kernels: int = 0
    measured: dict[str, str] = field(default_factory=dict)  # why a kernel has no time, or nothing, by key
    clocked: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> None:
        """All stages, until time is over."""
        started = time.monotonic()
        self.prepared = prepare(self.asked)
        self.seconds["prepare"] = time.monotonic() - started
        end = time.monotonic() + self.asked.seconds
        plans = [each.plan for each in self.prepared.programs]
        kernels = tunables(plans, self.prepared.options, self.asked.target, self.prepared.sizes)
        self.kernels = len(kernels)
        if self.bench is None:
            self.pruned = self.pruning.prune(kernels, self.asked.seconds)
        else:
            self._measure(kernels, self.bench, end)
        self.seconds["tune"] = time.monotonic() - end + self.asked.seconds
        if self.stop == "done" and any(each.left for each in self.pruned):
            self.stop = "time"

    def _measure(self, kernels: Sequence[Tunable], bench: Bench, end: float) -> None:
        """Kernel by kernel, so that what takes most of the time is done when time is over."""
        assert self.prepared is not None
        with bench.runner() as runner:
            for place, kernel in enumerate(kernels):
                if time.monotonic() > end:
                    self.stop = "time"
                    return
                self.asked.progress(f"kernel {place + 1} of {len(kernels)}: {kernel.kernel.name}, {len(kernel.choices)} alternatives")
                (pruned,) = self.pruning.prune([kernel], end - time.monotonic())
                self.pruned.append(pruned)
                self.measured[kernel.key] = self._clock(pruned, bench, runner, end)
        prepared = self.prepared
        self.clocked += race(
            prepared.task, prepared.original, prepared.programs, prepared.options, self.profile, bench, lambda: time.monotonic() < end
        )

    def _clock(self, pruned: Pruned, bench: Bench, runner: Runner, end: float) -> str:
        """Time a kernel's survivors; why that is not done, if it is not."""
        kernel, name = pruned.tunable, self.asked.target.name
        known = self.profile.timed(name, bench.place, kernel.key).get(kernel.key, {})
        wanting = [choice for choice in pruned.survivors if choice != kernel.default and choice.text() not in known]
        if why := refusal(kernel):
            return why
        measuring = Measuring(kernel, bench, runner)
        for choice in wanting:
            if time.monotonic() > end:
                self.stop = "time"
                return ""
            try:
                timed = measuring.timed(choice)
            except Lost:
                raise
            except CosetError as error:
                self.asked.progress(f"  not measured: {error.message}")
                return error.message
            if timed.problem:
                self.asked.progress(f"  {choice.text()}: {timed.problem}")
            self.profile.put_timed(name, bench.place, kernel.key, choice.text(), timed)
            self.clocked += 1
        if not pruned.left:
            times = self.profile.timed(name, bench.place, kernel.key).get(kernel.key, {}).values()
            default = next((each.seconds / each.ratio for each in times if each.rounds), 0.0)
            self.profile.put_timed(name, bench.place, kernel.key, kernel.default.text(), default_row(default))
        return ""

    def report(self) -> dict[str, Any]:
        """What is known."""
        families: dict[str, Counter[str]] = {}
        for each in self.pruned:
            counts = families.setdefault(each.tunable.family, Counter())
            counts.update(kernels=1, alternatives=len(each.tunable.choices), compiled=len(each.facts), survivors=len(each.survivors))
        programs = self.prepared.programs if self.prepared is not None else ()
        found: dict[str, Any] = {
            "target": self.asked.target.name, "architecture": self.pruning.architecture, "compiler": self.pruning.versions,
            "sizes": dict(self.prepared.sizes) if self.prepared is not None else {}, "stop": self.stop,
            "programs": [each.summary() for each in programs], "unlike": self.kernels,
            "families": {name: dict(counts) for name, counts in sorted(families.items())},
            "compiled_now": self.pruning.compiled, "measured_now": self.clocked, "seconds": self.seconds,
            "kernels": [{**each.summary(), **self._told(each)} for each in self.pruned], "device": None,
        }  # fmt: skip
        if self.bench is not None:
            found["device"] = {"name": self.bench.place.device, "versions": self.bench.place.versions}
            found["raced"] = self._raced(self.bench.place)
        return found

    def _told(self, pruned: Pruned) -> dict[str, Any]:
        """What the clock says of a kernel."""
        if self.bench is None:
            return {}
        kernel = pruned.tunable
        timed = self.profile.timed(self.asked.target.name, self.bench.place, kernel.key).get(kernel.key, {})
        chosen = best(timed)
        problems = {text: each.problem for text, each in timed.items() if each.problem}
        told = {"chosen": chosen.choice.text(), "factor": chosen.factor} if chosen is not None else {"chosen": None, "factor": None}
        why = self.measured.get(kernel.key, "")
        return {**told, "measured": sum(bool(each.rounds) for each in timed.values()), "problems": problems, "not_measured": why}

    def _raced(self, place: Place) -> list[dict[str, Any]]:
        if self.prepared is None or not self.asked.programs:
            return []
        model = model_key(self.prepared.task)
        return [
            {"strayed": each.strayed, "digest": each.program, **asdict(each.timed)}
            for each in self.profile.raced(self.asked.target.name, place, model)
        ]


def tune_model(asked: Tuning, profile: Tunings, *, measured: bool = True, bench: Bench | None = None) -> dict[str, Any]:
    """Tune; the report. `measured`: on `bench`, by default this machine's GPU; else compilers alone have their say. Ctrl-C ends it with
    what is known (`stop`: interrupt).

    Raises:
        CosetError: as `prepare`; there is no GPU; the target's file does not say what it is compiled for.
    """
    if measured and bench is None:
        try:
            bench = on_gpu()
        except CosetError as error:
            raise CosetError(f"measuring needs a GPU: {error.message}", help="--prune-only needs none, and says what is left") from None
    with Pruning(asked.target, profile, asked.jobs, asked.progress) as pruning:
        run = _Run(asked, profile, pruning, bench if measured else None)
        try:
            run.run()
        except KeyboardInterrupt:
            run.stop = "interrupt"
        return run.report()
