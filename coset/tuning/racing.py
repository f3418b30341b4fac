"""Programs of one e-graph as whole packages against the clock, each in turn with the target's own choice, with tuned kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from coset.backends.triton_runtime import DeviceLost
from coset.backends.tuning_profile import Raced, Timed, Tunings
from coset.comparing import timing
from coset.comparing.feeds import Feed, cases
from coset.ir.errors import CosetError
from coset.ir.held import working_folder
from coset.ir.program import Program
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import write_package
from coset.lowering.triton.choice import KernelChoices
from coset.lowering.triton.launch import EmitOptions
from coset.packaging.chosen import kernels_of
from coset.packaging.compared import compare
from coset.packaging.programs import Alternative, model_key
from coset.pricing.kernel_options import noise
from coset.searching.task import Task
from coset.tuning.measuring import KernelBench


def race(
    task: Task,
    original: Program,
    programs: Sequence[Alternative],
    options: EmitOptions,
    store: Tunings,
    bench: KernelBench,
    wanted: Callable[[], bool],
) -> int:
    """Compare each program with the model, and time it in turn with the first one; how many were timed now. What the profile has is not
    done again, and nothing is begun where no more is `wanted`.

    Raises:
        CosetError: the first program does not run, or differs from the model.
    """
    target, key = task.job.target.name, model_key(task)
    known = {each.program for each in store.raced(target, bench.place, key)}
    others = [each for each in programs[1:] if each.digest not in known]
    if not others:
        return 0
    tuned = replace(options, choices=KernelChoices(kernels_of(store, target, bench.place), task.binding))
    done = 0
    with working_folder("coset-work-") as folder:
        race = _Race(task, original, tuned, bench, folder)
        problem = race.written(programs[0])
        if problem:
            raise CosetError(f"the program itself cannot be timed: {problem}", help="see what `coset lower --check interpreted` says of it")
        store.put_raced(target, bench.place, key, Raced(programs[0].digest, 0, Timed(ratio=1.0, low=1.0, high=1.0)))
        for each in others:
            if not wanted():
                break
            task.job.progress(f"program {each.strayed}: {len(each.plan.kernels)} kernels")
            problem = race.written(each)
            timed = Timed(problem=problem) if problem else race.timed(programs[0], each)
            if timed.problem:
                task.job.progress(f"  dropped: {timed.problem}")
            store.put_raced(target, bench.place, key, Raced(each.digest, each.strayed, timed))
            done += 1
    return done


class _Race:
    """Packages in a folder."""

    def __init__(self, task: Task, original: Program, options: EmitOptions, bench: KernelBench, folder: Path) -> None:
        self.task, self.original, self.options, self.bench, self.folder = task, original, options, bench, folder
        self.feed: Feed = next(cases(original, task.binding)).feed

    def written(self, one: Alternative) -> str:
        """Write a program's package; why it is not to be timed: it differs from the model, or does not run."""
        package = planned_package(one.planned.program, one.plan, title="a program that is timed", options=self.options)
        try:
            manifest = write_package(package, self._place(one))
            with self.bench.package(self._place(one)) as runs:
                amplified, sums = noise(manifest)
                report = compare(self.original, runs, self.task.job.dims, amplified=amplified, sums=sums)
        except DeviceLost:
            raise
        except CosetError as error:
            return f"does not run: {error.message}"
        return "" if report.ok else f"other values: {report.worst}"

    def timed(self, first: Alternative, other: Alternative) -> Timed:
        """Both in turn."""
        with self._ready(first) as one:
            try:
                with self._ready(other) as two:
                    times = timing.measure({"first": one, "other": two}, self.bench.protocol, clock=self.bench.clock)
            except DeviceLost:
                raise
            except CosetError as error:
                return Timed(problem=f"does not run: {error.message}")
        against = timing.ratio(times["other"], times["first"])
        return Timed(times["other"].median, against.value, against.low, against.high, len(times["other"].medians))

    def _ready(self, one: Alternative) -> AbstractContextManager[timing.Program]:
        return self.bench.calling(self._place(one), self.feed)

    def _place(self, one: Alternative) -> Path:
        return self.folder / f"program_{one.strayed}"
