"""The optimization of a model from a path to a checked file: what depends on ONNX, and the entry points."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from coset.backends.onnxruntime import NotLoaded
from coset.comparing.check import Oracle
from coset.comparing.deadline import USUAL
from coset.comparing.evaluated import Evaluated, Loading
from coset.comparing.feeds import Sample
from coset.comparing.meant import MEANT, with_meanings
from coset.comparing.reference import is_stablehlo
from coset.comparing.runtime_fold import runtime_values
from coset.comparing.samples import with_samples
from coset.dialects.onnx.origin import onnx_origin
from coset.egraph.limits import Limits
from coset.extract.cost import Printable
from coset.extract.priced import Devices
from coset.frontends.onnx.model import import_model
from coset.frontends.onnx.unused import without_unused
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import Type
from coset.job.admission import Admission
from coset.job.alone import alone
from coset.job.answer import save_bytes
from coset.job.arguments import listed, numbered, required, typed
from coset.job.job import Job, Progress
from coset.job.machine import find_target
from coset.job.own_ops import as_written, has_form, meant_at_once
from coset.job.phases import phases_for
from coset.job.zone import Zone
from coset.lowering.arranging.live import Steps
from coset.lowering.onnx.model import (
    Graphs,
    count_ops,
    highest_opset,
    live_steps,
    lower,
    opset_of,
    printable,
    value_kinds,
    value_names,
    write,
)
from coset.lowering.onnx.standard import standard_only, without_runtimes
from coset.optimizing import running
from coset.optimizing.bodies import Bodies
from coset.optimizing.draft import Draft, draft_for
from coset.optimizing.flow import run_flow
from coset.optimizing.formats import Compare, Flow
from coset.optimizing.legality import refuse_unwritten
from coset.optimizing.optimized import Optimized
from coset.optimizing.ranges import Span, stretches
from coset.prove.certificate import Certificate
from coset.prove.certificate_file import packed
from coset.rules.written import WrittenRule
from coset.searching.inside import CERTIFIED, AsItCame, Inside, optimized_inside, untouched
from coset.searching.solving import finish, solve_task
from coset.searching.task import Task, usual_dims
from coset.searching.usage import Usage, used_rules
from coset.targets.running import KEY, Running
from coset.targets.target import Target

DEFAULT_TARGET = "cpu-onnxruntime"
MOST_UNUSED = 1000  # weights that nothing reads and that are handed to the runtime all the same
INSTEAD = {"torch": "use `coset lower` for it", "stablehlo": "write StableHLO for it: a result that ends in .mlir"}
"""What to do for a target that takes no ONNX, by what is printed for it."""


@alone
def optimize(
    model: str | Path | Any,
    *,
    target: str | Path | Target | None = None,
    numerics: str = "reassociates",
    limits: Limits | None = None,
    rules: Sequence[str | Path | WrittenRule] = (),
    dims: Mapping[str, int] | None = None,
    max_memory: int | None = None,
    progress: Progress = lambda _: None,
    measure: int = 0,
    certificate: bool = False,
    disable_rules: Sequence[str] = (),
    only_rules: Sequence[str] = (),
    keep_values: Sequence[str] = (),
    numerics_for: Mapping[str, str] | None = None,
    allow_assumed: bool = False,
    keep_functions: bool = False,
    check_seconds: float = USUAL,
    sample_inputs: Sequence[Sample] = (),
) -> Optimized:
    """The cheapest program for `target` that the rules show equal to `model`, compared with it on drawn and adversarial inputs.

    `model` is a path (ONNX or StableHLO) or an `onnx.ModelProto`. `target` is a name, or the path of a target's file. Without one it is
    the one that is written in the model's own format; the target decides what is written. `numerics` bounds what rules may promise
    (exact, reassociates, real, approx, lossy). `rules` are files of further rules, or rules of `coset.rule`; they are checked first, and
    one of which nothing is shown fires with `allow_assumed` only. `dims` are numbers for free dims, for costs and for the comparison.
    `max_memory` bounds the live bytes of activations in the order of the nodes as written.
    `measure`: so many other programs of the e-graph are tried too, and the clock decides; without it no clock does, and the result is the
    same each time. `disable_rules` and `only_rules` name rules (with `*` as in file names) that take no part, or that alone do beside
    definitions. `keep_values` are values inside an ONNX model that the result computes under the same names. `numerics_for` gives other
    numerics to values by the names of values or nodes (`{"encoder/*": "exact"}`), which are searched by themselves. With `certificate` the
    result carries the steps that `coset verify` checks. Functions of an ONNX model's own are replaced by their nodes, which are optimized
    with what is around them, unless `keep_functions` lets them stay, each optimized by itself. `sample_inputs` are inputs that the model is
    known to take (`coset.with_samples`): it is compared on them too, and on them alone if it takes nothing that is drawn. The
    comparison runs in a process of its own and takes at most `check_seconds`; what was not compared is not handed out. The checked file
    stays where temporary files go as long as the result is in use.

    Raises:
        CosetError: bad input, with place and remedy. `RefutedRule`, `UnshownRule`: one of `rules` is false, or nothing is shown of it.
        `Refused`: the comparison failed; `.rule` names the culprit. `coset.Unknown`: it did not end in time, or its process died.
    """
    started = time.perf_counter()
    if not hasattr(model, "SerializeToString"):
        required("model", model, str, Path, says="the path of a model or an onnx.ModelProto")
    required("rules", rules, list, tuple, says="a list of files and of rules")
    listed(disable_rules=disable_rules, only_rules=only_rules, keep_values=keep_values, sample_inputs=sample_inputs)
    typed(target=(target, str, Path, Target), numerics=(numerics, str), limits=(limits, Limits), numerics_for=(numerics_for, Mapping))
    typed(measure=(measure, int), max_memory=(max_memory, int), check_seconds=(check_seconds, int, float), certificate=(certificate, bool))
    dims = numbered("dims", dims)
    resolved = target if isinstance(target, Target) else find_target(target or default_target(model))
    job = Job(model, resolved, numerics, limits or Limits(), rules, dims, progress, None, max_memory, measure, certificate)
    zones = tuple(Zone(*item) for item in (numerics_for or {}).items())
    job = replace(job, admission=Admission(tuple(disable_rules), tuple(only_rules)), keep=tuple(keep_values), zones=zones)
    job = replace(job, allow_assumed=allow_assumed, keep_functions=keep_functions, check_seconds=check_seconds)
    job = replace(job, samples=tuple(sample_inputs))
    draft = Draft(f"optimized{suffix(resolved)}")
    try:
        program, report, proof = _run(job, draft.path, started)
    except BaseException:
        draft.discard()
        raise
    return Optimized(program, report, proof, draft=draft)


def default_target(output: Any) -> str:
    """The target that is written in the format of the path `output`; for a model that is no path, ONNX's."""
    return "stablehlo" if is_stablehlo(output) else DEFAULT_TARGET


def suffix(target: Target) -> str:
    """How the names of files in the target's format end."""
    return ".mlir" if target.dialect == "stablehlo" else ".onnx"


@alone
def optimize_file(job: Job, output: Path, certificate: Path | None = None) -> dict[str, Any]:
    """The report of `job`, whose result is written once, beside `output`, and takes that name when it was compared. A `certificate` is
    written first, where there is one.

    Raises:
        CosetError: as `optimize`, or nothing can be written at `output`, which is found out first.
    """
    started = time.perf_counter()
    draft = draft_for(output)
    try:
        _, report, proof = _run(job, draft.path, started)
        if certificate is not None and proof is not None:
            save_bytes(certificate, packed(proof))
        draft.move(output)
    finally:
        draft.discard()
    return report


@alone
def optimize_range(job: Job, output: Path, span: Span) -> dict[str, Any]:
    """The report of `job` for the program that does best over a `span` of sizes, which is written to `output`; where other programs are
    cheaper for some of them, they are written beside it, and `ranges` says which file is for which sizes.

    Raises:
        CosetError: as `optimize_file`, or the span is of no free dim.
    """
    found = stretches(job, span, lambda given: flow_for(given, output))
    several = len(found.stretches) > 1
    ranges = []
    for each in found.stretches if several else ():
        place = output.with_name(f"{output.stem}.{span.name}-{each.low}-{each.high}{output.suffix}")
        report = optimize_file(replace(job, dims={**job.dims, span.name: each.at}, picture=None), place)
        ranges.append({
            "low": each.low, "high": each.high, "output": str(place), "nodes": report["nodes"]["after"], "seconds": each.seconds,
            "saved": each.saved, "check": report["check"]["ok"],
        })  # fmt: skip
    report = optimize_file(replace(job, dims={**job.dims, span.name: found.overall}), output)
    return {**report, "ranges": ranges}


@dataclass(frozen=True)
class _Onnx:
    """ONNX in and out, run by ONNX Runtime."""

    job: Job
    attempt: str = "attempt.onnx"
    bitwise: bool = True
    reorders: bool = True
    graphs: Graphs = field(default_factory=Graphs)
    devices: Devices = field(default_factory=Devices)

    def read(self) -> Task:
        return _read(self.job)

    def printable(self, task: Task) -> Printable:
        return _printable(task)

    def chosen(self, program: Program, seconds: float) -> Running | None:
        return running.chosen(self.job.target, program, seconds)

    def write(self, program: Program, path: Path, options: Running | None) -> None:
        program = as_written(program, self.job.target)
        metadata = {} if options is None else {KEY: options.text()}
        placed = self.devices.of(program, self.job.target, usual_dims(program, self.job.dims))
        write(program, path, metadata=metadata, devices=placed, graphs=self.graphs, lasting=False)  # it lasts when it is moved to its name

    def comparison(self, task: Task, folder: Path) -> Compare:
        own = self.job.own().ops
        listed = any(has_form(self.job.target, op) for op in own)  # then a result may have nodes of it
        try:
            outputs: Compare = self._oracle(task, _original(self.job.model, task.program, folder))
            outputs = Loading(outputs, self._evaluated) if listed else outputs
        except NotLoaded as error:
            meant = None if listed else self._by_meaning(task, own, folder)
            if meant is None and self.job.keep:
                raise
            if meant is None:
                task.job.progress(f"{error.message}; the evaluator compares")
                return self._evaluated()
            outputs = meant
        if not self.job.keep:
            return outputs
        from coset.optimizing.keeping import KeptValues  # which few ask for

        return KeptValues.of(outputs, task, folder)

    def _oracle(self, task: Task, original: str | Path) -> Compare:
        return Oracle(original, task.program, self.job.dims, exact=self.job.numerics == "exact").compare

    def _by_meaning(self, task: Task, own: Collection[str], folder: Path) -> Compare | None:
        """The comparison with the original in which nodes of the user's ops are what they mean; None if ONNX Runtime does not run it."""
        path = folder / "meant.onnx"
        try:
            with_meanings(self.job.model, task.program, own, path)
            found = self._oracle(task, path)
        except CosetError:  # the definition has no form in ONNX, or the model has other nodes that nobody knows
            return None
        return lambda model, **asked: replace(found(model, **asked), by=MEANT)

    def _evaluated(self) -> Evaluated:
        own = self.job.own().ops
        program = import_model(self.job.model, inline=not self.job.keep_functions, own=own)
        return Evaluated(with_samples(program, self.job.samples), self.job.dims, own)

    def runs(self, compare: Compare) -> bool:
        return compare.loads if isinstance(compare, Loading) else not isinstance(compare, Evaluated)

    def given(self, program: Program) -> Mapping[str, int]:
        return onnx_origin(program.source).ops

    def ops(self, program: Program) -> Mapping[str, int]:
        return count_ops(program, self.graphs)

    def names(self, program: Program) -> Mapping[Term, str]:
        return value_names(program, self.graphs)

    def kinds(self, program: Program) -> Mapping[str, str]:
        return value_kinds(program, self.graphs)

    def timed(self, path: Path, options: Running | None, task: Task) -> Callable[[], object] | None:
        return running.timed(path, options, task)

    def steps(self, program: Program) -> Steps:
        return live_steps(program, self.graphs)


def _run(job: Job, path: Path, started: float) -> tuple[Program, dict[str, Any], Certificate | None]:
    """The optimized program, the report, and the certificate that was asked for; the model that was compared is at `path`."""
    return run_flow(flow_for(job, path), path, started)


def flow_for(job: Job, path: Path) -> Flow:
    """What is done for the formats of the model and of the result at `path`.

    Raises:
        CosetError: as `Job.own`, which is found out before the model is read; the formats do not go together.
    """
    own = job.own()
    refuse_unwritten(job.model, job.target, own.ops)
    if is_stablehlo(job.model) or is_stablehlo(path):
        if job.keep or job.zones:
            raise CosetError("values of StableHLO have no names", help="leave --keep-value and --numerics-for out")
        from coset.optimizing.hub_pipeline import flow_of  # it is made of what is here

        return flow_of(job, path)
    return _Onnx(job)


def _read(job: Job) -> Task:
    if job.target.dialect != "onnx":
        help = INSTEAD.get(job.target.dialect, "`coset targets` says what each takes")
        raise CosetError(f"the target `{job.target.name}` takes no ONNX model", help=help)
    job.progress("reading the model")
    own, inner = job.own(), Bodies(job, _Onnx)
    program = import_model(
        job.model, rewrite=inner.rewriting, keep=job.keep, inline=not job.keep_functions, own=own.ops,
        meant=meant_at_once(own, job.target, job.numerics, certified=job.certified),
    )  # fmt: skip
    program = with_samples(program, job.samples)
    if inner.refused is not None:
        raise inner.refused
    for node, why in onnx_origin(program.source).unread.items():
        job.progress(f"warning: {node} stays as it came: {why}")
    if job.target.standard:
        program = without_runtimes(program)
    functions: list[Inside] = []
    stay: list[AsItCame] = []
    if job.keep_functions and job.certified:
        stay = untouched(program, CERTIFIED)
    elif job.keep_functions:
        program, functions, stay = optimized_inside(program, job.model, partial(_optimized, job))
    for each in functions:
        job.progress(f"function {each.name}: {each.before} nodes, {each.after} of them left")
    phases = phases_for(job, _newest(program, job.target))
    return Task(job, program, usual_dims(program, job.dims), phases, runtime_values, (*functions, *stay, *inner.told))


def _optimized(job: Job, model: Any) -> tuple[Program, Any, list[Usage]]:
    """A function as it was read, as it is written, and the rules that were used."""
    inner = replace(job, model=model, extraction_problem=None, max_memory=None, keep=(), zones=(), samples=(), certified=False, dims={})
    own, bodies = job.own(), Bodies(inner, _Onnx)
    program = import_model(model, rewrite=bodies.rewriting, own=own.ops, meant=meant_at_once(own, job.target, job.numerics))
    if job.target.standard:
        program = without_runtimes(program)
    task = Task(inner, program, usual_dims(program, {}), phases_for(inner, _newest(program, job.target)), runtime_values)
    solved, _ = solve_task(task, task.phases, _printable(task))
    return program, lower(finish(task, solved)[0]), used_rules(solved)


def _printable(task: Task) -> Printable:
    newest, target = _newest(task.program, task.job.target), task.job.target

    def why_not(name: str, attributes: Mapping[str, Any], types: Sequence[Type]) -> str | None:
        return printable(name, attributes, types, newest)

    return standard_only(why_not) if target.standard else why_not


def _newest(program: Program, target: Target) -> int:
    """The newest version of ONNX's ops that the result may use."""
    return opset_of(program) if target.standard else highest_opset(program)


def _original(model: Any, program: Program, folder: Path) -> str | Path:
    """A file with the user's model, which a ModelProto is written to as it came. Where thousands of its weights are read by nothing they
    are left out: ONNX Runtime looks through all of them for each that it drops."""
    origin = onnx_origin(program.source)
    spare = origin.unused > MOST_UNUSED and not origin.external
    if isinstance(model, str | Path) and not spare:
        return model
    path = folder / "original.onnx"
    if spare:
        path.write_bytes(without_unused(model))
    else:
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path
