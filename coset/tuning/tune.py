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

from coset.backends.profile import MeasuredAt
from coset.backends.tuning_profile import Tunings
from coset.comparing.reference import read_program
from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.job.job import Job, Progress
from coset.lowering.triton.launch import EmitOptions
from coset.packaging.asked import DIALECT
from coset.packaging.chosen import best
from coset.packaging.programs import Alternative, alternatives_of, model_key
from coset.packaging.searched import searched
from coset.pricing.kernel_options import options_for
from coset.searching.task import Task
from coset.targets.target import Target
from coset.tuning.clocking import Clocking
from coset.tuning.measuring import KernelBench, on_gpu
from coset.tuning.pruning import PrunedKernel, Pruning
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
    allow_assumed: bool = False


@dataclass(frozen=True)
class Prepared:
    """A model searched and planned: the `programs` (the first is the target's own choice) and the kernels of all of them."""

    original: Program
    task: Task
    programs: tuple[Alternative, ...]
    options: EmitOptions

    @property
    def sizes(self) -> Mapping[str, int]:
        """Of the free dims."""
        return self.task.binding


def prepare(asked: Tuning) -> Prepared:
    """The model's program, as `coset lower` chooses it, with its plan, and others.

    Raises:
        CosetError: the model is none that can be lowered.
    """
    job = Job(
        asked.model, asked.target, asked.numerics, asked.limits, asked.rules, asked.dims or {}, asked.progress,
        allow_assumed=asked.allow_assumed,
    )  # fmt: skip
    own = job.own()  # before anything is read
    asked.progress("reading the model")
    original = read_program(asked.model, own=own.ops)
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
    clocking: Clocking | None
    stop: str = "done"
    prepared: Prepared | None = None
    pruned: Sequence[PrunedKernel] = ()
    kernels: Sequence[Tunable] = ()
    raced: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> None:
        """All stages, until time is over."""
        started = time.monotonic()
        prepared = self.prepared = prepare(self.asked)
        self.seconds["prepare"] = time.monotonic() - started
        started = time.monotonic()
        end = started + self.asked.seconds
        plans = [each.plan for each in prepared.programs]
        kernels = tunables(plans, prepared.options, self.asked.target, prepared.sizes)
        self.kernels = kernels
        if self.clocking is None:
            self.pruned = self.pruning.prune(kernels, self.asked.seconds)
            whole = True
        else:
            self.pruned = self.clocking.pruned  # it grows
            whole = self.clocking.kernels(kernels, self.pruning, end)
            if whole and len(prepared.programs) > 1:
                whole = self._race(prepared, self.clocking.bench, end)
        self.seconds["tune"] = time.monotonic() - started
        if not whole or any(each.left for each in self.pruned):
            self.stop = "time"

    def _race(self, prepared: Prepared, bench: KernelBench, end: float) -> bool:
        """Time the other programs; True where all have a time."""
        self.raced = race(
            prepared.task, prepared.original, prepared.programs, prepared.options, self.profile, bench, lambda: time.monotonic() < end
        )
        known = {each.program for each in self.profile.raced(self.asked.target.name, bench.place, model_key(prepared.task))}
        return all(each.digest in known for each in prepared.programs)

    def report(self) -> dict[str, Any]:
        """What is known."""
        families: dict[str, Counter[str]] = {}
        for each in self.pruned:
            counts = families.setdefault(each.tunable.family, Counter())
            counts.update(kernels=1, alternatives=len(each.tunable.choices), compiled=len(each.facts), survivors=len(each.survivors))
        programs = self.prepared.programs if self.prepared is not None else ()
        found: dict[str, Any] = {
            "not_shown": self.prepared.task.job.own().told() if self.prepared is not None else [],
            "target": self.asked.target.name, "architecture": self.pruning.architecture, "compiler": self.pruning.versions,
            "sizes": dict(self.prepared.sizes) if self.prepared is not None else {}, "stop": self.stop,
            "programs": [each.summary() for each in programs], "different_kernels": len(self.kernels),
            "families": {name: dict(counts) for name, counts in sorted(families.items())},
            "compiled_now": self.pruning.compiled, "measured_now": self.raced + (0 if self.clocking is None else self.clocking.measured),
            "seconds": self.seconds,
            "kernels": [{**each.summary(), **self._told(each)} for each in self.pruned], "device": None,
        }  # fmt: skip
        if self.clocking is not None:
            place = self.clocking.bench.place
            found["device"] = {"name": place.device, "versions": place.versions}
            found["raced"] = self._raced(place)
        return found

    def _told(self, pruned: PrunedKernel) -> dict[str, Any]:
        """What the clock says of a kernel."""
        if self.clocking is None:
            return {}
        kernel = pruned.tunable
        timed = self.profile.timed(self.asked.target.name, self.clocking.bench.place, kernel.key).get(kernel.key, {})
        chosen = best(timed)
        problems = {text: each.problem for text, each in timed.items() if each.problem}
        told = {"chosen": chosen.choice.text(), "factor": chosen.factor} if chosen is not None else {"chosen": None, "factor": None}
        why = self.clocking.unmeasured.get(kernel.key, "")
        return {**told, "measured": sum(bool(each.rounds) for each in timed.values()), "problems": problems, "not_measured": why}

    def _raced(self, place: MeasuredAt) -> list[dict[str, Any]]:
        if self.prepared is None or not self.asked.programs:
            return []
        model = model_key(self.prepared.task)
        return [
            {"strayed": each.strayed, "digest": each.program, **asdict(each.timed)}
            for each in self.profile.raced(self.asked.target.name, place, model)
        ]


def tune_model(asked: Tuning, profile: Tunings, *, measured: bool = True, bench: KernelBench | None = None) -> dict[str, Any]:
    """Tune; the report. `measured`: on `bench`, by default this machine's GPU; else compilers alone have their say. Ctrl-C ends it with
    what is known (`stop`: interrupt).

    Raises:
        CosetError: as `prepare`; there is no GPU; the target has no kernels, or its file does not say what they are compiled for.
    """
    if asked.target.dialect != DIALECT:
        raise CosetError(f"the target `{asked.target.name}` has no kernels of ours to tune", help="name one that `coset lower` takes")
    if measured and bench is None:
        try:
            bench = on_gpu()
        except CosetError as error:
            raise CosetError(f"measuring needs a GPU: {error.message}", help="--prune-only needs none, and says what is left") from None
    with Pruning(asked.target, profile, asked.jobs, asked.progress) as pruning:
        clocking = None if bench is None or not measured else Clocking(asked.target.name, profile, bench, asked.progress)
        run = _Run(asked, profile, pruning, clocking)
        try:
            run.run()
        except KeyboardInterrupt:
            run.stop = "interrupt"
            run.pruned = run.pruned or pruning.known(run.kernels)
        return run.report()
