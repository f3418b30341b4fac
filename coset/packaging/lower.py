"""`coset lower`: a model optimized for a GPU target, written as a Python package that needs torch, compared with its reference meaning."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from coset.comparing.deadline import Talk, within
from coset.comparing.reference import read_program
from coset.comparing.samples import with_samples
from coset.ir.program import Program
from coset.job.job import Job
from coset.lowering.package.program import refuse_foreign, write_package
from coset.packaging.advised import Advised, Picked, advised_by
from coset.packaging.asked import Check, Lowering
from coset.packaging.compared import checked_package
from coset.packaging.emitted import Emitted
from coset.packaging.searched import refuse_foreign_ops, searched
from coset.pricing.kernel_options import options_for
from coset.pricing.plan_price import PlanPrices
from coset.pricing.streams import on_streams
from coset.searching.package_memory import PlannedPackage, Solve, limited, unlimited, unplanned
from coset.searching.regionwise import Solved
from coset.searching.solving import Searched, refuse_idle, solve_task
from coset.searching.task import Task
from coset.searching.usage import Usage, used_rules


def lower(asked: Lowering, folder: Path) -> dict[str, Any]:
    """Write the package of a model at `folder`; the report. The package takes its name when it was compared with the model.

    Raises:
        CosetError: the model or the target is none that can be lowered, or `folder` holds something else.
        Refused: the package differs from the model.
    """
    asked.refuse_contradictions()
    refuse_foreign(folder)
    advised = advised_by(asked.profile, asked.target, asked.progress)
    clock = _Clock()
    job = Job(
        asked.model, asked.target, asked.numerics, asked.limits, asked.rules, asked.dims or {}, asked.progress, admission=asked.admission,
        allow_assumed=asked.allow_assumed,
    )  # fmt: skip
    own = job.own()  # before anything is read
    asked.progress("reading the model")
    original = with_samples(read_program(asked.model, own=own.ops), asked.samples)
    task = searched(job, original, recurrences=asked.code != "aten")
    refuse_foreign_ops(task.program)
    clock.mark("read")
    lowered = _lowered(asked, task, advised, clock)
    package = lowered.emitted.package(asked.code)
    clock.mark("lower")
    check: dict[str, Any] = {}

    def checked(beside: Path) -> Mapping[str, Any]:
        check.update(_checked_in_time(asked, original, task, beside, lowered.emitted))
        return {"check": check}

    manifest = write_package(package, folder, checked=checked)
    clock.mark("check")
    profile = advised.told(manifest.get("kernels", []), lowered.picked)
    return {
        "not_shown": job.own().told(), "target": asked.target.name, "numerics": asked.numerics, "output": str(folder),
        **lowered.report(manifest, profile), "not_folded": list(job.lost),
        "files": sorted([*manifest["files"], "manifest.json"]), "check": check, "seconds": clock.seconds,
    }  # fmt: skip


@dataclass(frozen=True)
class _Lowered:
    """What the search gave for a package. `first`: the target's own choice."""

    first: Solved
    picked: Picked
    streams: dict[str, Any] | None
    emitted: Emitted

    def report(self, manifest: Mapping[str, Any], profile: Mapping[str, Any] | None) -> dict[str, Any]:
        """What the report says of it."""
        saturation, chosen = self.first.saturation, self.picked.planned
        return {
            "code": manifest["code"],
            "egraph": {"enodes": saturation.enodes, "eclasses": saturation.eclasses, "iterations": saturation.iterations,
                       "stop": saturation.stop},
            "kernels": manifest.get("kernels", []),
            "cost": self.picked.cost(_cost(self.first, chosen.memory)), "profile": profile,
            "memory": chosen.memory, "streams": self.streams, "rules": self.emitted.facts["rules"], "folded": chosen.folded,
        }  # fmt: skip


def _lowered(asked: Lowering, task: Task, advised: Advised, clock: _Clock) -> _Lowered:
    """Search equal programs, choose one and plan it."""
    asked.progress("searching equal programs")
    searching = 0.0
    known: Searched = {}

    def solve_at(byte_price: float) -> Solved:
        nonlocal searching
        solved, seconds = solve_task(task, task.phases, byte_price=byte_price, known=known)
        refuse_idle(asked.target, solved)
        searching += seconds
        return solved

    own = _chosen(asked, task, solve_at)
    picked = Picked(own)
    if asked.max_memory is None:
        picked = advised.picked(task, own, options_for(asked.numerics, asked.target), known, atomics=asked.atomics)
    chosen = picked.planned
    usage = used_rules(chosen.solved)
    clock.mark("extract")
    clock.split("extract", "saturate", searching)
    planned, streams = chosen.plan, None
    if planned is not None:
        planned, streams = on_streams(planned, PlanPrices(asked.target, task.binding, numerics=asked.numerics), asked.streams)
    facts = {**_facts(asked, usage), "memory": chosen.memory, "streams": streams}
    emitted = Emitted(asked, chosen.program, planned, facts, advised.choices(task.binding))
    return _Lowered(own.solved, picked, streams, emitted)


def _checked_in_time(asked: Lowering, original: Program, task: Task, folder: Path, emitted: Emitted) -> dict[str, Any]:
    """As `checked_package`, in a process of its own where its time is limited."""

    def compared(talk: Talk) -> dict[str, Any]:
        return checked_package(replace(asked, progress=talk.say), original, task, folder, emitted)

    if asked.check_seconds is None or asked.check is Check.NONE:
        return checked_package(asked, original, task, folder, emitted)
    return within(compared, asked.check_seconds, say=asked.progress)


def _chosen(asked: Lowering, task: Task, solve_at: Solve) -> PlannedPackage:
    """The program, and its plan where the code has one."""
    if asked.code == "aten":
        return unplanned(task, solve_at(0.0))
    if asked.max_memory is None:
        return unlimited(task, solve_at(0.0), atomics=asked.atomics, windows=asked.code == "triton")
    return limited(task, solve_at, asked.max_memory, atomics=asked.atomics, windows=asked.code == "triton")


class _Clock:
    """Seconds between marks."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def mark(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name], self._last = now - self._last, now

    def split(self, name: str, part: str, seconds: float) -> None:
        """Take `seconds` out of `name` as a part of its own."""
        self.seconds[part] = seconds
        self.seconds[name] -= seconds


def _cost(solved: Solved, memory: Mapping[str, Any] | None) -> dict[str, Any]:
    """What extraction reports; its prices are those of a library's convolutions, of which a plan may have made cheaper kernels."""
    output = solved.cost if memory is None else min(solved.cost, memory["default"]["seconds"])
    gap = max(0.0, (output - solved.lower_bound) / output) if output else 0.0
    return {"input": solved.input_cost, "output": output, "lower_bound": min(solved.lower_bound, output), "gap": gap,
            "method": solved.method}  # fmt: skip


def _facts(asked: Lowering, usage: Sequence[Usage]) -> dict[str, Any]:
    """What the manifest says of how the package was made."""
    options = options_for(asked.numerics, asked.target)
    return {
        "target": asked.target.name, "numerics": asked.numerics, "tf32": options.tf32, "eights": options.eights,
        "rules": [one.summary() for one in usage],
        "versions": {"coset": _version(), "numpy": np.__version__},
    }  # fmt: skip


def _version() -> str:
    """Our version, where we are installed and do not run in place."""
    try:
        return version("coset")
    except PackageNotFoundError:
        return "not installed"


# ---------------------------------------------------------------- comparison with the reference
