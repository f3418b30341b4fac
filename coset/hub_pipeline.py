"""The pipeline where StableHLO is read or written: the same search and extraction, compared with the reference evaluator.

StableHLO in and out, ONNX in and StableHLO out, or the other way round, as the suffixes say. What is compared is the file that was
written: StableHLO text is imported again and evaluated, small programs run in StableHLO's reference interpreter too; ONNX is run by
ONNX Runtime.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coset.backends.onnxruntime import Session
from coset.backends.stablehlo_interpreter import Interpreter
from coset.check import CheckReport, breaking_rule, difference
from coset.feeds import Feed, bindings
from coset.frontends.stablehlo import import_stablehlo
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import PARAMETER, Term, make
from coset.ir.types import TensorType, Type
from coset.lowering.onnx import highest_opset, write
from coset.lowering.onnx import printable as onnx_printable
from coset.lowering.primitive import primitive
from coset.lowering.stablehlo import print_stablehlo, write_stablehlo
from coset.lowering.stablehlo_ops import has_form
from coset.pipeline import Job, Refused, Seconds, Task, finish, keeps_every_bit, phases_for, refused, report_of, solve_task
from coset.reference import against_reference, expected_values, is_stablehlo, read_program, values_of
from coset.usage import used_rules

EVERY_OPSET = 1 << 30
INTERPRETED = 1 << 21  # FLOP up to which the reference interpreter runs a program: it is a thousand times slower than we are


def optimize_hub(job: Job, path: Path, started: float) -> tuple[Program, dict[str, Any]]:
    """The optimized program and the report; what was compared is at `path`.

    Raises:
        CosetError: as `coset.optimize`; the target is not printed as what `path` is to hold.
    """
    out = StableHloOut() if is_stablehlo(path) else OnnxOut()
    if job.target.dialect != out.dialect:
        fitting = "stablehlo" if is_stablehlo(path) else "cpu-onnxruntime"
        raise CosetError(f"the target `{job.target.name}` is not written as {path.suffix}", help=f"use --target {fitting}")
    job.progress("reading the model")
    original = read_program(job.model)
    program = out.prepared(original, job.model)
    binding = dict(next(bindings(program, job.dims)))
    task = Task(job, program, binding, phases_for(job, out.newest(program)))
    printable = out.printable(program)
    read = time.perf_counter()
    job.progress("searching equal programs")
    solved, searched = solve_task(task, task.phases, printable)
    extracted = time.perf_counter()
    optimized, folded = finish(task, solved)
    usage = used_rules(solved)
    out.write(optimized, path)
    lowered = time.perf_counter()
    job.progress("comparing with the original")
    exact = not folded and is_stablehlo(path) and all(keeps_every_bit(one.rule) for one in usage)
    check = out.compared(original, optimized, path, job.dims, exact=exact)
    if not check.ok:
        job.progress("the result differs; looking for the rule that breaks it")
        raise _explained(task, original, out, check)
    ended = time.perf_counter()
    seconds = Seconds(read - started, searched, extracted - read - searched, lowered - extracted, ended - lowered)
    return optimized, report_of(task, optimized, solved, usage, folded, check, seconds, count=_count)


def _count(program: Program) -> int:
    """The ops of a program, without its leaves and what names results."""
    return sum(not term.op.has("leaf") and term.op.name not in ("builtin.get", "builtin.tuple") for term in program.terms())


def _explained(task: Task, original: Program, out: Any, check: CheckReport) -> Refused:
    """The error that names the rule without which the program would pass."""

    def passes(names: Sequence[str]) -> bool:
        kept = [replace(phase, rules=tuple(r for r in phase.rules if r.name in names)) for phase in task.phases]
        solved, _ = solve_task(task, kept, out.printable(task.program))
        optimized, _ = finish(task, solved)
        with tempfile.TemporaryDirectory(prefix="coset-") as folder:
            attempt = Path(folder) / out.attempt
            out.write(optimized, attempt)
            return out.compared(original, optimized, attempt, task.job.dims, exact=False).ok  # type: ignore[no-any-return]

    return refused(breaking_rule([rule.name for phase in task.phases for rule in phase.rules], passes), check)


# ---------------------------------------------------------------- what is written


@dataclass(frozen=True)
class StableHloOut:
    """MLIR text."""

    dialect = "stablehlo"
    attempt = "attempt.mlir"

    def prepared(self, program: Program, model: Any) -> Program:
        """Kept ONNX nodes and ops of other dialects are opened, for nothing else has a form; StableHLO stays as it came."""
        return program if is_stablehlo(model) else program.with_roots(primitive(program))

    def newest(self, _: Program) -> int:
        return EVERY_OPSET

    def printable(self, _: Program) -> Callable[[str, Mapping[str, Any], Sequence[Type]], str | None]:
        return _why_not

    def write(self, program: Program, path: Path) -> None:
        write_stablehlo(program, path)

    def compared(self, original: Program, _: Program, path: Path, given: Mapping[str, int], *, exact: bool) -> CheckReport:
        """The text is imported again."""
        written = import_stablehlo(path)
        report = against_reference(original, lambda feed: values_in_order(original, written, feed), given, exact=exact)
        _interpret(original, written, report)
        return report


@dataclass(frozen=True)
class OnnxOut:
    """An ONNX model."""

    dialect = "onnx"
    attempt = "attempt.onnx"

    def prepared(self, program: Program, _: Any) -> Program:
        return program

    def newest(self, program: Program) -> int:
        return highest_opset(program)

    def printable(self, program: Program) -> Callable[[str, Mapping[str, Any], Sequence[Type]], str | None]:
        newest = highest_opset(program)
        return lambda name, attributes, types: onnx_printable(name, attributes, types, newest)

    def write(self, program: Program, path: Path) -> None:
        write(program, path)

    def compared(self, original: Program, _: Program, path: Path, given: Mapping[str, int], *, exact: bool) -> CheckReport:
        """Run by ONNX Runtime, without its optimizer."""
        return against_reference(original, Session(path, level="off").run, given, exact=exact)


def _why_not(name: str, attributes: Mapping[str, Any], types: Sequence[Type]) -> str | None:
    """None when the op has a form in StableHLO text, else why not."""
    op = get_op(name)
    if op.has("leaf") or op.dialect == "builtin" or op.check_regions is not None:
        return None
    try:
        sample: Term = make(op, [make(PARAMETER, (), {"index": i, "type": type}) for i, type in enumerate(types)], dict(attributes))
    except CosetError as error:
        return error.message
    return None if has_form(sample) else f"`{describe(sample)}` has no form in StableHLO"


# ---------------------------------------------------------------- running


def values_in_order(original: Program, written: Program, feed: Feed) -> Feed:
    """The outputs of `written`, whose inputs and outputs are those of `original` in the same order, under the names of `original`."""
    values = values_of(written, _renamed(original, written, feed))
    return dict(zip((name for name, _ in original.outputs), values.values(), strict=True))


def _renamed(original: Program, written: Program, feed: Feed) -> Feed:
    names = zip(original.inputs, written.inputs, strict=True)
    return {str(theirs.attribute("name")): feed[ours.attribute("name")] for ours, theirs in names}


def compare_files(first: str, second: str, given: Mapping[str, int]) -> CheckReport:
    """The program in `second`, run by ONNX Runtime or evaluated, beside the evaluator's values of that in `first`. Inputs and outputs
    correspond by their order.

    Raises:
        CosetError: a file cannot be read, or the programs have different numbers of inputs or outputs.
    """
    original, other = read_program(first), read_program(second)
    for what, ours, theirs in (("inputs", original.inputs, other.inputs), ("outputs", original.outputs, other.outputs)):
        if len(ours) != len(theirs):
            raise CosetError(f"`{first}` has {len(ours)} {what}, but `{second}` has {len(theirs)}")
    if is_stablehlo(second):
        return against_reference(original, lambda feed: values_in_order(original, other, feed), given)
    session = Session(second, level="off")

    def run(feed: Feed) -> Feed:
        results = session.run(_renamed(original, other, feed))
        return {ours: results[theirs] for (ours, _), (theirs, _) in zip(original.outputs, other.outputs, strict=True)}

    return against_reference(original, run, given)


def _interpret(original: Program, written: Program, report: CheckReport) -> None:
    """Enter what StableHLO's reference interpreter computes on the first case, where the program is small and it runs it."""
    if _work(written, report.binding) > INTERPRETED or any(term.op.has("foreign") for term in written.terms()):
        return
    case, expected, noise = next(expected_values(original, report.binding, CheckReport(report.binding)))
    numbers = _numbers(written, [case.feed[term.attribute("name")] for term in original.inputs])
    with Interpreter() as interpreter:
        try:
            results = interpreter.run(print_stablehlo(written, binding=numbers), list(_renamed(original, written, case.feed).values()))
        except CosetError:
            return  # the evaluator has compared it; what the interpreter does not know is no mistake of the program
    name = f"{case.name}, interpreted"
    report.cases.append(name)
    for (output, value), result in zip(expected.items(), results, strict=True):
        report.differences.append(difference(name, output, value, result, noise[output], exact=False))


def _numbers(program: Program, arrays: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for term, array in zip(program.inputs, arrays, strict=True):
        for dim, size in zip(term.tensor.dims, array.shape, strict=True):
            name = dims.alone(dim)
            if name is not None:
                found.setdefault(name, int(size))
    return found


def _work(program: Program, binding: Mapping[str, int]) -> int:
    """FLOP, roughly, under numbers for all symbols: those of `binding`, 32 for what it does not name; loops count as endless."""
    total = 0
    for term in program.terms():
        if term.op.name in ("stablehlo.while", "chlo.scan"):
            return INTERPRETED + 1
        if isinstance(term.type, TensorType) and term.type.shape is not None:
            work = (
                term.type.elements
                if term.op.flops is None
                else term.op.flops(term.type, [operand.type for operand in term.operands], dict(term.attributes))
            )
            names = dims.symbols(work) | dims.symbols(term.type.elements)
            numbers = {name: binding.get(name, 32) for name in names}
            total += max(dims.evaluate(work, numbers), dims.evaluate(term.type.elements, numbers))
    return total
