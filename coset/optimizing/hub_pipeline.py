"""The pipeline where StableHLO is read or written: the same search and extraction, compared with the reference evaluator.

StableHLO in and out, ONNX in and StableHLO out, or the other way round, as the suffixes say. What is compared is the file that was
written: StableHLO text is imported again and evaluated, small programs run in StableHLO's reference interpreter too; ONNX is run by
ONNX Runtime.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from coset.backends.onnxruntime import NotLoaded, Session
from coset.backends.stablehlo_interpreter import StablehloInterpreter
from coset.comparing.check import CheckReport
from coset.comparing.difference import difference
from coset.comparing.evaluated import compared
from coset.comparing.feeds import Feed, Sample
from coset.comparing.reference import against_reference, expected_values, is_stablehlo, read_program, renamed, values_in_order, work_of
from coset.comparing.samples import with_samples
from coset.comparing.sizes import bindings
from coset.dialects.hub.hints import honoured
from coset.extract.cost import Printable
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir import dims
from coset.ir.builtin import HINTED, OPAQUE
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.ir.term import PARAMETER, Term, make
from coset.ir.types import Type
from coset.job.job import Job
from coset.job.left_out import warn_of_left_out
from coset.job.phases import phases_for
from coset.lowering.arranging.live import Steps, steps_of
from coset.lowering.onnx.model import highest_opset, write
from coset.lowering.onnx.model import printable as onnx_printable
from coset.lowering.planning.primitive import primitive
from coset.lowering.stablehlo.module import print_stablehlo, write_stablehlo
from coset.lowering.stablehlo.ops import has_form
from coset.optimizing import running
from coset.optimizing.formats import Compare, Flow
from coset.optimizing.hub_bodies import HubBodies
from coset.searching.task import Task
from coset.targets.running import Running

EVERY_OPSET = 1 << 30
UNCOUNTED = ("builtin.get", "builtin.tuple")  # they name results
INTERPRETED = 1 << 21  # FLOP up to which the reference interpreter runs a program: it is a thousand times slower than we are


def flow_of(job: Job, path: Path) -> Flow:
    """What `coset.optimize` does where the model or the result at `path` is StableHLO.

    Raises:
        CosetError: the target is not printed as what `path` is to hold.
    """
    flow = StableHloOut(job) if is_stablehlo(path) else OnnxOut(job)
    if job.target.dialect != flow.dialect:
        fitting = "stablehlo" if is_stablehlo(path) else "cpu-onnxruntime"
        raise CosetError(f"the target `{job.target.name}` is not written as {path.suffix}", help=f"use --target {fitting}")
    return flow


@dataclass(frozen=True)
class _HubFlow:
    """What both formats share: the model is read as its meaning, and the result is compared with that."""

    job: Job
    dialect: ClassVar[str]
    reorders: ClassVar[bool] = False

    @cached_property
    def original(self) -> Program:
        """The model as it came."""
        return with_samples(read_program(self.job.model, own=self.job.own().ops), self.job.samples)

    def chosen(self, _: Program, __: float) -> None:
        """The result carries no options."""

    def runs(self, compare: Compare) -> bool:
        """No options are chosen."""
        return True

    def given(self, program: Program) -> Mapping[str, int]:
        """Those of the program: it is what the module says."""
        return self.ops(program)

    def ops(self, program: Program) -> Mapping[str, int]:
        """The ops of a program, without its leaves and what names results."""
        terms = (term for term in program.terms() if not term.op.has("leaf") and term.op.name not in UNCOUNTED)
        counted = (describe(term) if term.op is HINTED else term.op.name for term in terms)
        return dict(sorted(Counter(counted).items(), key=lambda each: (-each[1], each[0])))

    def names(self, program: Program) -> Mapping[Term, str]:
        """Those that the source has."""
        return source_of(program).names

    def kinds(self, _: Program) -> Mapping[str, str]:
        """Ops are called as in the program."""
        return {}

    def timed(self, _: Path, __: Running | None, ___: Task) -> Callable[[], object] | None:
        """Nothing here runs a program of its format as a compiler would."""
        return None

    def steps(self, program: Program) -> Steps:
        """Each op as it stands, operands first."""
        return steps_of(program.roots, [term for _, term in program.outputs])

    def _task(self, program: Program, newest: int) -> Task:
        return Task(self.job, program, dict(next(bindings(program, self.job.dims))), phases_for(self.job, newest))


class StableHloOut(_HubFlow):
    """MLIR text."""

    dialect = "stablehlo"
    attempt = "attempt.mlir"
    bitwise = True

    def read(self) -> Task:
        """Kept ONNX nodes and ops of other dialects are opened, for nothing else has a form; StableHLO stays as it came."""
        self.job.progress("reading the model")
        program = self.original
        warn_of_left_out(self.job, program)
        inner = HubBodies(self.job, _Body)
        roots = inner.of(program.roots if is_stablehlo(self.job.model) else primitive(program))
        if inner.refused is not None:
            raise inner.refused
        task = self._task(program if roots == program.roots else program.with_roots(roots), EVERY_OPSET)
        return replace(task, functions=tuple(inner.told))

    def printable(self, _: Task) -> Printable:
        return _why_not

    def write(self, program: Program, path: Path, _: Running | None) -> None:
        write_stablehlo(program, path)

    def comparison(self, _: Task, __: Path) -> Compare:
        """The text is imported again."""

        def compare(model: Any, *, exact: bool, running: Running | None = None, exceptions: AbstractSet[str] = frozenset()) -> CheckReport:
            assert running is None
            written = import_stablehlo(model)
            report = against_reference(
                self.original, lambda feed: values_in_order(self.original, written, feed), self.job.dims, exact=exact,
                exceptions=exceptions,
            )  # fmt: skip
            _interpret(self.original, written, report)
            return report

        return compare


@dataclass(frozen=True)
class _Body(StableHloOut):
    """A body of control flow as a module of its own, whose own bodies were looked at."""

    program: Program

    @property
    def original(self) -> Program:
        return self.program

    def read(self) -> Task:
        return self._task(self.program, EVERY_OPSET)


class OnnxOut(_HubFlow):
    """An ONNX model."""

    dialect = "onnx"
    attempt = "attempt.onnx"
    bitwise = False  # ONNX Runtime beside the evaluator

    @cached_property
    def original(self) -> Program:
        """The model as it came, but that ONNX cannot say how precisely an op is computed: what it runs on must do as it is asked anyway."""
        return honoured(super().original)

    def read(self) -> Task:
        self.job.progress("reading the model")
        warn_of_left_out(self.job, self.original)
        _refuse_foreign(self.original)
        return self._task(self.original, highest_opset(self.original))

    def printable(self, task: Task) -> Printable:
        newest = highest_opset(task.program)
        return lambda name, attributes, types: onnx_printable(name, attributes, types, newest)

    def write(self, program: Program, path: Path, _: Running | None) -> None:
        write(program, path)

    def timed(self, path: Path, options: Running | None, task: Task) -> Callable[[], object] | None:
        """ONNX Runtime runs it."""
        return running.timed(path, options, task)

    def comparison(self, _: Task, __: Path) -> Compare:
        """Run by ONNX Runtime, without its optimizer."""

        def compare(model: Any, *, exact: bool, running: Running | None = None, exceptions: AbstractSet[str] = frozenset()) -> CheckReport:
            assert running is None
            try:
                run = Session(model, level="off").run
            except NotLoaded:  # a node of a user's op, which the target lists
                return compared(
                    self.original, read_program(model, own=self.job.own().ops), self.job.dims, exact=exact, exceptions=exceptions
                )
            return against_reference(self.original, run, self.job.dims, exact=exact, exceptions=exceptions)

        return compare


def _refuse_foreign(program: Program) -> None:
    """Nothing for a program that ONNX can hold.

    Raises:
        CosetError: an operation of it is kept as MLIR text.
    """
    for term in program.terms():
        if term.op is OPAQUE and isinstance(term.attribute("payload"), str):
            raise CosetError(
                f"`{describe(term)}` is known to its own format only, so that no ONNX model can hold it", help="write StableHLO"
            )


def _why_not(name: str, attributes: Mapping[str, Any], types: Sequence[Type]) -> str | None:
    """None when the op has a form in StableHLO text, else why not."""
    op = get_op(name)
    if op.has("leaf") or op.dialect == "builtin" or op.signatures is not None:
        return None
    try:
        sample: Term = make(op, [make(PARAMETER, (), {"index": i, "type": type}) for i, type in enumerate(types)], dict(attributes))
    except CosetError as error:
        return error.message
    return None if has_form(sample) else f"`{describe(sample)}` has no form in StableHLO"


# ---------------------------------------------------------------- running


def compare_files(
    first: str, second: str, given: Mapping[str, int], *, exact: bool = False, exceptions: AbstractSet[str] = frozenset(),
    samples: Sequence[Sample] = (), own: Collection[str] = (),
) -> CheckReport:  # fmt: skip
    """The program in `second`, run by ONNX Runtime or evaluated, beside the evaluator's values of that in `first`. Inputs and outputs
    correspond by their order. Where it is to be `exact` every bit counts; `exceptions` as those of `difference`; `samples` are inputs of
    the first to compare on too; `own` are ops of the user's, by their names.

    Raises:
        CosetError: a file cannot be read, or the programs have different numbers of inputs or outputs.
    """
    original, other = with_samples(read_program(first, own=own), samples), read_program(second, own=own)
    for what, ours, theirs in (("inputs", original.inputs, other.inputs), ("outputs", original.outputs, other.outputs)):
        if len(ours) != len(theirs):
            raise CosetError(f"`{first}` has {len(ours)} {what}, but `{second}` has {len(theirs)}")
    if is_stablehlo(second):
        return against_reference(original, lambda feed: values_in_order(original, other, feed), given, exact=exact, exceptions=exceptions)
    try:
        session = Session(second, level="off")
    except NotLoaded:
        return compared(original, other, given, exact=exact, exceptions=exceptions)

    def run(feed: Feed) -> Feed:
        results = session.run(renamed(original, other, feed))
        return {ours: results[theirs] for (ours, _), (theirs, _) in zip(original.outputs, other.outputs, strict=True)}

    return against_reference(original, run, given, exact=exact, exceptions=exceptions)


def _interpret(original: Program, written: Program, report: CheckReport) -> None:
    """Enter what StableHLO's reference interpreter computes on the first case, where the program is small and it runs it."""
    if work_of(written, report.binding) > INTERPRETED or any(term.op.has("foreign") for term in written.terms()):
        return
    case, expected, noise = next(expected_values(original, report.binding, CheckReport(report.binding)))
    numbers = _numbers(written, [case.feed[term.attribute("name")] for term in original.inputs])
    alone = replace(written, source=None)  # what the module says beside its program says nothing of its value
    with StablehloInterpreter() as interpreter:
        try:
            results = interpreter.run(print_stablehlo(alone, binding=numbers), list(renamed(original, written, case.feed).values()))
        except CosetError:
            return  # the evaluator has compared it; what the interpreter does not know is no mistake of the program
    name = f"{case.name}, interpreted"
    report.cases.append(name)
    for (output, value), result in zip(expected.items(), results, strict=True):
        report.differences.append(difference(name, output, value, result, noise()[output], exact=False))


def _numbers(program: Program, arrays: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for term, array in zip(program.inputs, arrays, strict=True):
        for dim, size in zip(term.tensor.dims, array.shape, strict=True):
            name = dims.alone(dim)
            if name is not None:
                found.setdefault(name, int(size))
    return found
