"""The pipeline: import, search, extract, fold, lower, check. Nothing leaves it that was not compared with the original."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import coset.dialects
from coset import running
from coset.backends.onnxruntime import Session
from coset.check import CheckReport, Oracle, breaking_rule
from coset.draft import Draft, draft_for
from coset.egraph.chains import Ordering, order_chains
from coset.egraph.limits import Limits
from coset.egraph.saturate import Saturation, saturate
from coset.egraph.saturated import Saturated
from coset.egraph.search import Phase
from coset.extract.cost import Printable
from coset.extract.products import product_seconds
from coset.extract.select import Selection, reprice, select
from coset.feeds import bindings
from coset.fold import fold
from coset.frontends.onnx import import_model
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import Term
from coset.lowering.onnx import count_nodes, highest_opset, printable, write
from coset.lowering.onnx_named import first_version
from coset.lowering.onnx_write import copy_model
from coset.reference import is_stablehlo, values_of
from coset.regionwise import Solved, solve
from coset.report import Seconds, report_of
from coset.rules.library import DEFAULT, load
from coset.rules.rule import NUMERICS_ORDER, Rule
from coset.targets.running import KEY, Running
from coset.targets.target import Target, get_target
from coset.usage import used_rules

assert coset.dialects  # imported so that every op and definition is registered

Progress = Callable[[str], None]
DEFAULT_TARGET = "cpu-onnxruntime"
COMPOSITE = "kernel"  # the dialect of composite kernels, and the phase that looks for them
RECOGNISE = ".recognise"  # the family of a definition read from right to left
LAST = "recognise"  # the phase of those rules, and of rules that need what they find
PARTS = "part"  # the dialect of what definitions have in common, which no target runs alone


class Refused(CosetError):
    """The optimized program differs from the original beyond its tolerance and is not handed out."""

    def __init__(self, message: str, *, rule: str | None, check: CheckReport, help: str = "") -> None:
        super().__init__(message, help=help)
        self.rule = rule
        self.check = check


@dataclass(frozen=True)
class Optimized:
    """An optimized, checked program: `program` (terms), `report` (what `--json` prints), callable on NumPy inputs, saved by `save`."""

    program: Program
    report: dict[str, Any]
    certificate: None = None  # certificates come with the proof checker
    _draft: Draft = field(kw_only=True, compare=False, repr=False)

    def save(self, path: str | Path) -> None:
        """Write the model: a copy of the file that was checked, beside the final name first, then renamed."""
        copy_model(self._draft.path, Path(path))

    def __call__(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """As `run`."""
        return self.run(feed)

    def run(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name on inputs by name: ONNX by ONNX Runtime as the model says, StableHLO by the evaluator."""
        return values_of(self.program, dict(feed)) if is_stablehlo(self._draft.path) else self._session.run(dict(feed))

    @cached_property
    def _session(self) -> Session:
        return running.load(self._draft.path)


@dataclass(frozen=True)
class Job:
    """What is asked for: the arguments of `optimize`."""

    model: Any
    target: Target
    numerics: str
    limits: Limits
    rules: Sequence[str | Path]
    dims: Mapping[str, int]
    progress: Progress


@dataclass(frozen=True)
class Task:
    """The program that was read and what it is searched with: `binding` gives numbers to its dim symbols."""

    job: Job
    program: Program
    binding: Mapping[str, int]
    phases: Sequence[Phase]


def optimize(
    model: str | Path | Any,
    *,
    target: str | Target | None = None,
    numerics: str = "reassociates",
    limits: Limits | None = None,
    rules: Sequence[str | Path] = (),
    dims: Mapping[str, int] | None = None,
    progress: Progress = lambda _: None,
) -> Optimized:
    """The cheapest program for `target` that the rules show equal to `model`, compared with it on drawn and adversarial inputs.

    `model` is a path (ONNX or StableHLO) or an `onnx.ModelProto`. Without a `target` it is the one that is written in the model's own
    format; the target decides what is written. `numerics` bounds what rules may promise (exact, reassociates, real, approx,
    lossy). `rules` are files of further rules. `dims` are numbers for free dims, for costs and for the comparison. The checked
    file stays where temporary files go as long as the result is in use.

    Raises:
        CosetError: bad input, with place and remedy. `Refused`: the comparison failed; `.rule` names the culprit.
    """
    started = time.perf_counter()
    resolved = target if isinstance(target, Target) else get_target(target or default_target(model))
    job = Job(model, resolved, numerics, limits or Limits(), rules, dims or {}, progress)
    draft = Draft("optimized.mlir" if resolved.dialect == "stablehlo" else "optimized.onnx")
    try:
        program, report = _run(job, draft.path, started)
    except BaseException:
        draft.discard()
        raise
    return Optimized(program, report, _draft=draft)


def default_target(output: Any) -> str:
    """The target that is written in the format of the path `output`; for a model that is no path, ONNX's."""
    return "stablehlo" if is_stablehlo(output) else DEFAULT_TARGET


def optimize_file(job: Job, output: Path) -> dict[str, Any]:
    """The report of `job`, whose result is written once, beside `output`, and takes that name when it was compared.

    Raises:
        CosetError: as `optimize`, or nothing can be written at `output`, which is found out first.
    """
    started = time.perf_counter()
    draft = draft_for(output)
    try:
        _, report = _run(job, draft.path, started)
        draft.move(output)
    finally:
        draft.discard()
    return report


class Compare(Protocol):
    """The model at a path beside the original, on the original's cases."""

    def __call__(self, model: Any, *, exact: bool, running: Running | None = None) -> CheckReport: ...


class Flow(Protocol):
    """What depends on the formats of the model and of the result: the flow of `_run` is one for all."""

    @property
    def attempt(self) -> str:
        """The name of a file in the format of the result."""

    @property
    def bitwise(self) -> bool:
        """Whether what is compared has every bit where rules keep it: one program that runs both models."""

    def read(self) -> Task:
        """The model as it is searched."""

    def printable(self, task: Task) -> Printable:
        """What the format of the result can hold."""

    def chosen(self, program: Program, seconds: float) -> Running | None:
        """The options that the result is to be run with; None where it carries none."""

    def write(self, program: Program, path: Path, options: Running | None) -> None:
        """Write the result."""

    def comparison(self, task: Task, folder: Path) -> Compare:
        """How results are compared with the original, which may be put into `folder`."""

    def count(self, program: Program) -> int:
        """How many nodes a program has in the format that is written."""


@dataclass(frozen=True)
class _Onnx:
    """ONNX in and out, run by ONNX Runtime."""

    job: Job
    attempt: str = "attempt.onnx"
    bitwise: bool = True

    def read(self) -> Task:
        return _read(self.job)

    def printable(self, task: Task) -> Printable:
        return _printable(task)

    def chosen(self, program: Program, seconds: float) -> Running | None:
        return running.chosen(self.job.target, program, seconds)

    def write(self, program: Program, path: Path, options: Running | None) -> None:
        write(program, path, metadata={} if options is None else {KEY: options.text()})

    def comparison(self, task: Task, folder: Path) -> Compare:
        return Oracle(_original(self.job.model, folder), task.program, self.job.dims).compare

    def count(self, program: Program) -> int:
        return count_nodes(program)


def _run(job: Job, path: Path, started: float) -> tuple[Program, dict[str, Any]]:
    """The optimized program and the report; the model that was compared is at `path`."""
    if is_stablehlo(job.model) or is_stablehlo(path):
        from coset.hub_pipeline import flow_of  # it is made of what is here

        return run_flow(flow_of(job, path), path, started)
    return run_flow(_Onnx(job), path, started)


def run_flow(flow: Flow, path: Path, started: float) -> tuple[Program, dict[str, Any]]:
    """The optimized program and the report; the model that was compared is at `path`.

    Raises:
        CosetError: bad input. `Refused`: the result differs; the rule that breaks the program was found by replay.
    """
    task = flow.read()
    progress = task.job.progress
    read = time.perf_counter()
    progress("searching equal programs")
    solved, searched = solve_task(task, task.phases, flow.printable(task))
    extracted = time.perf_counter()
    optimized, folded = finish(task, solved)
    usage = used_rules(solved)
    wanted = flow.chosen(optimized, solved.cost)
    flow.write(optimized, path, wanted)
    lowered = time.perf_counter()
    progress("comparing with the original")
    exact = flow.bitwise and not folded and all(keeps_every_bit(one.rule) for one in usage)
    with tempfile.TemporaryDirectory(prefix="coset-") as folder:
        compare = flow.comparison(task, Path(folder))
        check = compare(path, exact=exact)
        if not check.ok:
            progress("the result differs; looking for the rule that breaks it")
            raise refused(_culprit(task, flow, compare, Path(folder) / flow.attempt), check)
        settled = _settled(task, flow, compare, optimized, path, wanted)
    ended = time.perf_counter()
    seconds = Seconds(read - started, searched, extracted - read - searched, lowered - extracted, ended - lowered)
    report = report_of(task, optimized, solved, usage, folded, check, seconds, flow.count)
    return optimized, {**report, "session": None if settled is None else settled.summary()}


def _read(job: Job) -> Task:
    if job.target.dialect != "onnx":
        raise CosetError(f"the target `{job.target.name}` takes no ONNX model", help="use `coset lower` for it")
    job.progress("reading the model")
    program = import_model(job.model)
    return Task(job, program, dict(next(bindings(program, job.dims))), phases_for(job, highest_opset(program)))


def phases_for(job: Job, newest: int) -> list[Phase]:
    """The rules that the job allows, where `newest` is the highest version of ONNX's ops that the result may use."""
    return permitted_phases(job.rules, job.numerics, lambda rule: _wanted(rule, job.target, newest))


def permitted_phases(files: Sequence[str | Path], numerics: str, wanted: Callable[[Rule], bool]) -> list[Phase]:
    """The library's rules and those of `files` that promise no less than `numerics` and are `wanted`, by phase.

    Recognition comes last: ops are looked for in all forms that the other phases found, and give them no new ones. Behind it come
    composite kernels with the movement around named ops that they need, where one is wanted.

    Raises:
        CosetError: there are no such numerics, or a file has a mistake.
    """
    if numerics not in NUMERICS_ORDER:
        raise CosetError(f"there are no numerics `{numerics}`", help=f"one of: {', '.join(NUMERICS_ORDER)}")
    library = load([*DEFAULT, *(Path(path) for path in files)])
    usable = [(phase.name, [r for r in phase.rules if r.numerics.permitted(numerics) and wanted(r)]) for phase in library.phases]
    recognised = [rule for _, rules in usable for rule in rules if rule.family.endswith(RECOGNISE)]
    plain = {name: tuple(rule for rule in rules if not rule.family.endswith(RECOGNISE)) for name, rules in usable}
    named, composite = ([r for r in recognised if (get_op(str(r.definition)).dialect == COMPOSITE) is kind] for kind in (False, True))
    last, moving = (*plain.pop(LAST, ()), *named), plain.pop(COMPOSITE, ())
    phases = [*(Phase(name, rules) for name, rules in plain.items()), Phase(LAST, last)]
    # movement around named ops is for those who ask for what they are parts of
    return [*phases, Phase(COMPOSITE, (*moving, *composite))] if composite else phases


def _wanted(rule: Rule, target: Target, newest: int) -> bool:
    """Definitions are read from right to left only into ops that the target runs and the model's version of ONNX can hold."""
    if rule.definition is None or not rule.family.endswith(RECOGNISE):
        return True
    dialect = get_op(rule.definition).dialect
    return dialect == PARTS or (dialect == target.dialect and first_version(rule.definition) <= newest)


def solve_task(task: Task, phases: Sequence[Phase], printable: Printable | None = None) -> tuple[Solved, float]:
    """The cheapest equal program found, region by region, and how many seconds of it were search."""
    seconds = 0.0
    target = task.job.target

    def search(roots: Sequence[Term]) -> tuple[Saturation, Ordering]:
        nonlocal seconds
        started = time.perf_counter()
        found = search_roots(roots, phases, task)
        seconds += time.perf_counter() - started
        task.job.progress(f"extracting from {found[0].enodes} e-nodes in {found[0].eclasses} classes")
        return found

    def choose(graph: Saturated) -> Selection:
        return select(graph, target, task.binding, task.job.limits, printable=printable)

    return solve(task.program.roots, search, choose, lambda terms: reprice(terms, target, task.binding)), seconds


def _printable(task: Task) -> Printable:
    newest = highest_opset(task.program)
    return lambda name, attributes, types: printable(name, attributes, types, newest)


def search_roots(roots: Sequence[Term], phases: Sequence[Phase], task: Task) -> tuple[Saturation, Ordering]:
    """The e-graph of what equals `roots`, whose chains of products were ordered first."""
    active = [rule for phase in phases for rule in phase.rules]
    ordering = order_chains(roots, active, product_seconds(task.job.target), task.binding)
    phases = [replace(phase, rules=tuple(filter(ordering.keeps, phase.rules))) for phase in phases]
    return saturate(roots, phases, task.job.limits, equalities=ordering.equalities), ordering


def finish(task: Task, solved: Solved) -> tuple[Program, int]:
    """The chosen program with its constants computed, and how many were."""
    roots, folded = fold(solved.terms, solved.storable, task.program.source)
    return task.program.with_roots(roots), folded


def keeps_every_bit(rule: Rule) -> bool:
    return rule.numerics.word == "exact" and not rule.numerics.exceptions


def _settled(task: Task, flow: Flow, compare: Compare, program: Program, path: Path, wanted: Running | None) -> running.Settled | None:
    """The options with which `program`, written at `path` with those `wanted`, is handed out; written again where they are others.

    The runtime's optimizer rounds where it likes: that is held to the tolerance, also where the rules keep every bit.
    """
    sessions = task.job.target.sessions
    if wanted is None or sessions is None:
        return None
    task.job.progress("comparing as it will be run")
    return running.settle(
        wanted,
        sessions.levels,
        lambda options: compare(path, exact=False, running=options),
        lambda options: flow.write(program, path, options),
    )


def _original(model: Any, folder: Path) -> str | Path:
    """A file with the user's model, which a ModelProto is written to as it came."""
    if isinstance(model, str | Path):
        return model
    path = folder / "original.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path


def _culprit(task: Task, flow: Flow, compare: Compare, attempt: Path) -> str | None:
    """The rule without which the program would pass; None where it fails without any. Programs are tried at the path `attempt`."""

    def passes(names: Sequence[str]) -> bool:
        kept = [replace(phase, rules=tuple(r for r in phase.rules if r.name in names)) for phase in task.phases]
        solved, _ = solve_task(task, kept, flow.printable(task))
        optimized, _ = finish(task, solved)
        flow.write(optimized, attempt, None)
        return compare(attempt, exact=False).ok

    return breaking_rule([rule.name for phase in task.phases for rule in phase.rules], passes)


def refused(culprit: str | None, check: CheckReport) -> Refused:
    what = str(check.worst) if check.worst else ""
    if culprit is None:
        return Refused(f"the program does not survive import and export unchanged ({what}); it is not handed out", rule=None, check=check)
    return Refused(
        f"rule `{culprit}` breaks the program ({what}); it is not handed out", rule=culprit, check=check,
        help="leave the rule out or restrict --numerics; please report the model",
    )  # fmt: skip
