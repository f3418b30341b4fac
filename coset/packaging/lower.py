"""`coset lower`: a model optimized for a GPU target, written as a Python package that needs torch, compared with its reference meaning."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import coset.dialects
from coset.backends.torch_package import INSTALL, TorchPackage, installed
from coset.comparing.check import CheckReport
from coset.comparing.deadline import Talk, within
from coset.comparing.fault import Made, Runs
from coset.comparing.feeds import Feed, Sample
from coset.comparing.infinities import REORDERED
from coset.comparing.reference import against_reference, read_program
from coset.comparing.samples import with_samples
from coset.comparing.sizes import bindings
from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.held import working_folder
from coset.ir.program import Program
from coset.ir.term import Term, rewritten
from coset.job.admission import EVERY_RULE, Admission
from coset.job.job import Job, Progress
from coset.job.phases import phases_for
from coset.lowering.kernels.kernel import Attention, Chain, Kernel, Plan, Statistics
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import Package, aten_package, refuse_foreign, write_package
from coset.lowering.planning.chosen_matrix import chosen_matrix
from coset.lowering.planning.contraction import of_matrices
from coset.lowering.planning.convolution_gradients import gradient_of_convolution
from coset.lowering.planning.grouped import is_grouped
from coset.lowering.planning.kinds import is_convolution_gradient
from coset.lowering.planning.primitive import Opener, primitive
from coset.lowering.triton.choice import Choices
from coset.packaging.advised import Picked, advised_by
from coset.packaging.culprit import Candidate, refusal
from coset.pricing.kernel_options import noise, options_for
from coset.pricing.looping import Loops
from coset.pricing.plan_price import PlanPrices
from coset.pricing.streams import on_streams
from coset.searching.package_memory import Planned, Solve, limited, unlimited, unplanned
from coset.searching.regionwise import Solved
from coset.searching.solving import Searched, refuse_idle, solve_task
from coset.searching.task import Task
from coset.searching.usage import Usage, used_rules
from coset.targets.target import Target

assert coset.dialects  # imported so that every op and definition is registered

DIALECT = "torch"  # of the targets that this lowers for
EVERY_OPSET = 1 << 30
CODES = ("triton", "torch", "aten")


class Check(Enum):
    """How the package is compared: not at all; with torch functions in place of Triton kernels; or with the kernels themselves, in
    Triton's interpreter."""

    NONE = "none"
    TORCH = "torch"
    INTERPRETED = "interpreted"


Opened = Callable[[Path, bool], AbstractContextManager[Runs]]  # of a folder; true where its kernels are to be interpreted


def in_a_child(folder: Path, interpreted: bool) -> AbstractContextManager[Runs]:
    """The package in a process of its own, which may die without harm."""
    return TorchPackage(folder, interpreted=interpreted)


@dataclass(frozen=True)
class Lowering:
    """What is asked for: the arguments of `coset lower`. `model`: a file, or a program. `code`: Triton kernels for what a plan fuses, torch
    functions in their place, or plain torch code of one op after the other (aten). `opened`: how the package is run to be compared.
    `max_memory`: bytes that the temporaries of the plan may take at once. `atomics`: kernels may add what is scattered in any order, so
    that two runs differ in their last bits. `profile`: what `coset tune` has found, which kernels and the program are chosen by. `streams`:
    how many kernels may run beside each other where the launches are captured (None: as many as the target says). `admission`: which of the
    rules take part. `allow_assumed`: whether rules of the user's may fire of which nothing is shown."""

    model: Any
    target: Target
    numerics: str = "reassociates"
    limits: Limits = field(default_factory=Limits)
    rules: Sequence[str | Path] = ()
    dims: Mapping[str, int] | None = None
    code: str = "triton"
    check: Check = Check.TORCH
    progress: Progress = lambda _: None
    opened: Opened = in_a_child
    max_memory: int | None = None
    atomics: bool = False
    profile: Path | None = None
    streams: int | None = None
    admission: Admission = EVERY_RULE
    allow_assumed: bool = False
    samples: Sequence[Sample] = ()  # inputs of the user's to compare on, beside drawn ones
    check_seconds: float | None = None  # of the comparison, in a process of its own; None: in this one, without a limit


def lower(asked: Lowering, folder: Path) -> dict[str, Any]:
    """Write the package of a model at `folder`; the report. The package takes its name when it was compared with the model.

    Raises:
        CosetError: the model or the target is none that can be lowered, or `folder` holds something else.
        Refused: the package differs from the model.
    """
    if asked.code not in CODES:
        raise CosetError(f"there is no code `{asked.code}`", help=f"one of: {', '.join(CODES)}")
    if asked.code == "aten" and asked.max_memory is not None:
        raise CosetError("the code `aten` has no plan whose memory could be limited", help="use the code `triton` or `torch`")
    if asked.streams is not None and asked.streams < 1:
        raise CosetError(f"kernels cannot run on {asked.streams} streams", help="give 1 for one kernel after the other, or more")
    if asked.atomics and asked.numerics == "exact":
        raise CosetError("atomic sums are added in any order, which is not exact", help="allow --numerics reassociates")
    if asked.target.dialect != DIALECT:
        raise CosetError(f"the target `{asked.target.name}` is not lowered to torch", help="use `coset optimize` for it")
    if asked.profile is not None and asked.code == "aten":
        raise CosetError(
            "the code `aten` has no kernels that a profile could speak of", help="use the code `triton`, or leave --profile out"
        )
    refuse_foreign(folder)
    advised = advised_by(asked.profile, asked.target, asked.progress)
    clock = _Clock()
    job = Job(
        asked.model, asked.target, asked.numerics, asked.limits, asked.rules, asked.dims or {}, asked.progress, admission=asked.admission,
        allow_assumed=asked.allow_assumed,
    )  # fmt: skip
    job.own()  # before anything is read
    asked.progress("reading the model")
    original = with_samples(read_program(asked.model), asked.samples)
    task = searched(job, original, recurrences=asked.code != "aten")
    _refuse_foreign_ops(task.program)
    clock.mark("read")
    asked.progress("searching equal programs")
    searching = 0.0
    known: Searched = {}

    def solve_at(byte_price: float) -> Solved:
        nonlocal searching
        solved, seconds = solve_task(task, task.phases, byte_price=byte_price, known=known)
        refuse_idle(asked.target, solved)
        searching += seconds
        return solved

    chosen = _chosen(asked, task, solve_at)
    first, saturation = chosen.solved, chosen.solved.saturation
    picked = Picked(chosen)
    if asked.max_memory is None:
        options = options_for(asked.numerics, asked.target)
        picked = advised.picked(task, chosen, options, known, atomics=asked.atomics)
        chosen = picked.planned
    solved = chosen.solved
    usage = used_rules(solved)
    clock.mark("extract")
    clock.split("extract", "saturate", searching)
    planned, streams = chosen.plan, None
    if planned is not None:
        planned, streams = on_streams(planned, PlanPrices(asked.target, task.binding, numerics=asked.numerics), asked.streams)
    facts = {**_facts(asked, usage), "memory": chosen.memory, "streams": streams}
    emitted = _Emitted(asked, chosen.program, planned, facts, advised.choices(task.binding))
    package = emitted.package(asked.code)
    clock.mark("lower")
    check: dict[str, Any] = {}

    def checked(beside: Path) -> Mapping[str, Any]:
        def compared(talk: Talk) -> dict[str, Any]:
            return _checked(replace(asked, progress=talk.say), original, task, beside, emitted)

        if asked.check_seconds is None or asked.check is Check.NONE:
            check.update(_checked(asked, original, task, beside, emitted))
        else:
            check.update(within(compared, asked.check_seconds, say=asked.progress))
        return {"check": check}

    manifest = write_package(package, folder, checked=checked)
    clock.mark("check")
    return {
        "not_shown": job.own().told(),
        "target": asked.target.name, "numerics": asked.numerics, "output": str(folder), "code": manifest["code"],
        "egraph": {"enodes": saturation.enodes, "eclasses": saturation.eclasses, "iterations": saturation.iterations,
                   "stop": saturation.stop},
        "kernels": manifest.get("kernels", []),
        "cost": picked.cost(_cost(first, chosen.memory)), "profile": advised.told(manifest.get("kernels", []), picked),
        "memory": chosen.memory, "streams": streams, "rules": facts["rules"], "folded": chosen.folded, "not_folded": list(job.lost),
        "files": sorted([*manifest["files"], "manifest.json"]),
        "check": check, "seconds": clock.seconds,
    }  # fmt: skip


def _chosen(asked: Lowering, task: Task, solve_at: Solve) -> Planned:
    """The program, and its plan where the code has one."""
    if asked.code == "aten":
        return unplanned(task, solve_at(0.0))
    if asked.max_memory is None:
        return unlimited(task, solve_at(0.0), atomics=asked.atomics, windows=asked.code == "triton")
    return limited(task, solve_at, asked.max_memory, atomics=asked.atomics, windows=asked.code == "triton")


def searched(job: Job, original: Program, *, recurrences: bool = True) -> Task:
    """What is searched of a program for a target that is lowered to: its primitive ops, with the rules that the job allows. `recurrences`:
    loops may be kernels.

    Raises:
        CosetError: as `phases_for`.
    """
    prices = None
    if recurrences and job.target.fusion is not None:
        prices = PlanPrices(job.target, next(bindings(original, job.dims)), numerics=job.numerics)
    program = _with_gradients(original, _opened(original, prices, sums=job.numerics != "exact"))
    return Task(job, program, dict(next(bindings(program, job.dims))), phases_for(job, EVERY_OPSET))


def _opened(program: Program, prices: PlanPrices | None, *, sums: bool) -> tuple[Term, ...]:
    """The roots over primitive ops; what is in the rounds of a loop is opened when these stand one after the other, where products of
    all rounds become one (`sums`: also where that makes a sum in another order)."""

    def primitives(roots: tuple[Term, ...], product: Opener) -> tuple[Term, ...]:
        return primitive(program.with_roots(roots), _is_kept, product=product)

    def opened(roots: tuple[Term, ...]) -> tuple[Term, ...]:
        return primitives(roots, lambda term: chosen_matrix(term) or of_matrices(term))

    return Loops(prices, opened, lambda roots: primitives(roots, lambda _: None), sums).gone(opened(program.roots))


def _with_gradients(program: Program, roots: Iterable[Term]) -> Program:
    """The program with these roots, in which gradients of convolutions are calls of what they are."""
    return program.with_roots(rewritten(roots, lambda term: gradient_of_convolution(term) or term))


def _is_kept(term: Term) -> bool:
    """True for a call that came as what it is: it need not be found."""
    return is_grouped(term) or is_convolution_gradient(term)


def _refuse_foreign_ops(program: Program) -> None:
    """Nothing for a program of ops that have a meaning.

    Raises:
        CosetError: one was kept as it came: no rule changes that, and no torch code is known for it.
    """
    for term in program.terms():
        if term.op.has("foreign"):
            what = f"`{describe(term)}` has no torch expression: what it means for these types is not known"
            raise CosetError(what, help="give the model static shapes where they are free, or lower it for another target")


@dataclass(frozen=True)
class _Emitted:
    """The packages of one optimized program."""

    asked: Lowering
    program: Program
    plan: Plan | None
    facts: Mapping[str, Any]
    choices: Choices | None

    def package(self, code: str) -> Package:
        """The package in this code."""
        title = _title(self.asked)
        if code == "aten":
            return aten_package(self.program, title=title, facts=self.facts)
        assert self.plan is not None
        options = replace(options_for(self.asked.numerics, self.asked.target), choices=self.choices)
        return planned_package(self.program, self.plan, title=title, facts=self.facts, triton=code == "triton", options=options)

    def runs(self, code: str, *, interpreted: bool) -> Made:
        """How the same package is made of another program and plan, and run."""

        @contextmanager
        def made(program: Program, plan: Plan) -> Iterator[Runs]:
            with working_folder("coset-work-") as place:
                write_package(replace(self, program=program, plan=plan).package(code), place / "package")
                with self.asked.opened(place / "package", interpreted) as package:
                    yield package

        return made


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


def _title(asked: Lowering) -> str:
    name = Path(asked.model).name if isinstance(asked.model, str | Path) else "a model"
    return f"{name}, lowered for {asked.target.title} by coset."


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


def _checked(asked: Lowering, original: Program, task: Task, folder: Path, emitted: _Emitted) -> dict[str, Any]:
    """The comparison of the package with the evaluator's values of the original on drawn inputs; why there is none, else. Triton
    kernels that are not to be interpreted are compared as torch functions over the same buffers.

    Raises:
        Refused: they differ.
    """
    if asked.check is Check.NONE:
        return {"ok": None, "why": "not asked for"}
    if not installed():
        asked.progress(f"not checked: torch is not installed: {INSTALL}")
        return {"ok": None, "why": "torch is not installed"}
    asked.progress("comparing with the reference")
    interpreted = asked.code == "triton" and asked.check is Check.INTERPRETED
    with working_folder("coset-work-") as place:
        if asked.code == "triton" and not interpreted:
            folder = place / "package"
            write_package(emitted.package("torch"), folder)
        amplified, sums = noise(json.loads((folder / "manifest.json").read_text())) if interpreted else (1.0, 1.0)
        with asked.opened(folder, interpreted) as package, ExitStack() as stack:
            plain = _Plain(original, place / "plain", lambda folder: stack.enter_context(asked.opened(folder, False)))
            opened = task.program if any(term.op.has("foreign") for term in original.terms()) else None
            overlooks = HIDDEN if interpreted and emitted.plan is not None and any(map(_hides, emitted.plan.kernels)) else ""
            report = compare(
                original, package, asked.dims or {}, amplified=amplified, sums=sums, plain=plain.run, opened=opened, overlooks=overlooks
            )
    if not report.ok:
        own, beside = (emitted.runs("triton" if code else "torch", interpreted=code) for code in (interpreted, False))
        made = Candidate(emitted.program, emitted.plan, own, beside if interpreted else None)
        raise refusal(original, task, report, made, amplified=amplified)
    ran = "in Triton's interpreter" if interpreted else "as torch functions" if asked.code == "triton" else f"as {asked.code}"
    return {**report.summary(), "kernels": ran, "apart": report.apart}


HIDDEN = "attention does not read the keys that a mask hides"


def _hides(kernel: Kernel) -> bool:
    """True for attention that goes through a part of its keys, whose NaN is lost then: a mask leaves them no weight."""
    if isinstance(kernel, Statistics | Chain):
        return kernel.low is not None or kernel.high is not None
    return isinstance(kernel, Attention) and kernel.seen is not None


@dataclass
class _Plain:
    """The program as it came, op by op in torch: written and opened where a comparison asks for it. Gradients of convolutions are torch's
    own there too, which do not multiply the zeros between elements: a NaN of the filters is not everywhere then."""

    program: Program
    folder: Path
    opened: Callable[[Path], Runs]
    package: Runs | None = None

    def run(self, feed: Feed) -> Feed:
        """The outputs by name."""
        if self.package is None:
            program = _with_gradients(self.program, primitive(self.program, is_convolution_gradient))
            write_package(aten_package(program, title="The program as it came, op by op."), self.folder)
            self.package = self.opened(self.folder)
        return self.package.run(feed)


def compare(
    program: Program, package: Runs, given: Mapping[str, int], *, amplified: float = 1.0, sums: float = 1.0,
    plain: Callable[[Feed], Feed] | None = None, opened: Program | None = None, overlooks: str = "",
) -> CheckReport:  # fmt: skip
    """Run the package beside the evaluator; see `against_reference`. Its kernels multiply and sum in orders of their own, as rules do that
    except `nonfinite`.

    Raises:
        CosetError: the evaluator runs the program on no drawn input.
    """
    return against_reference(
        program, package.run, given, amplified=amplified, sums=sums, plain=plain, opened=opened, overlooks=overlooks,
        exceptions=REORDERED,
    )  # fmt: skip
