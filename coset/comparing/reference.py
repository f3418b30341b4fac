"""Programs beside their reference meaning: any format is read, and a runner is compared with the evaluator on drawn inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from coset.comparing.check import EXTREME, OF_SAMPLES, CheckReport
from coset.comparing.difference import Difference, difference
from coset.comparing.feeds import SAMPLE, Case, Draw, Feed, cases, cases_of_bits
from coset.comparing.fold import fallback_for
from coset.comparing.infinities import LOST, ExactOutputs
from coset.comparing.noise import floating, largest_step, moved, nudged, rounded, weight_bytes, wide
from coset.comparing.sizes import trials
from coset.comparing.usual_outputs import blindness, usual_sizes
from coset.dialects.hub.hints import unhinted
from coset.frontends.onnx.model import STANDARD, import_model
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir import dims
from coset.ir.builtin import OPAQUE
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import TensorType

KNOWN = (*STANDARD, "ai.onnx")  # domains whose ops have values here
UNDEFINED = "say in a rule file what the node means, and give the file with --rules (docs/own-ops.md)"
STABLEHLO = (".mlir", ".mlirbc", ".stablehlo", ".bc")
SUMS = ("stablehlo.dot_general", "stablehlo.convolution", "stablehlo.reduce", "stablehlo.reduce_window")
GROWING = ("stablehlo.add", "stablehlo.subtract", "stablehlo.multiply", "stablehlo.exponential", "stablehlo.power")
Differing = Callable[..., Difference]  # of the value, the result and its noise: as `difference`
ENDLESS = 1 << 62  # FLOP
SHAKEN_BYTES = 64 << 20  # of weights, up to which the noise of constants is measured too


def is_stablehlo(model: Any) -> bool:
    """True for the path of a file whose suffix says that it holds StableHLO."""
    return isinstance(model, str | Path) and Path(model).suffix in STABLEHLO


def read_program(model: Any, *, inline: bool = False, own: Collection[str] = ()) -> Program:
    """The program in an ONNX file, a ModelProto, or a StableHLO file. `inline`: functions of an ONNX model's own are read as their nodes.
    `own`: the user's ops whose ONNX nodes are read as terms, by their names.

    Raises:
        CosetError: it cannot be read.
    """
    if isinstance(model, Program):
        return model
    if is_stablehlo(model):
        return import_stablehlo(Path(model))
    return import_model(model, inline=inline, own=own)


def against_reference(
    program: Program, run: Callable[[Feed], Feed], given: Mapping[str, int], *, amplified: float = 1.0, sums: float = 1.0,
    exact: bool = False, seed: int = 0, plain: Callable[[Feed], Feed] | None = None, opened: Program | None = None, overlooks: str = "",
    draw: Draw | None = None, exceptions: AbstractSet[str] = frozenset(),
) -> CheckReport:  # fmt: skip
    """`run` beside the evaluator's values of `program` on drawn and adversarial inputs, those of `draw` (None: the usual ones).
    `amplified`: how many roundings of an input one operand of a product may be off, `sums`: how many of a result its sum; `exact`:
    every bit counts; `seed`: of the inputs. `plain` runs the same program, op by op, by the library that `run` is made of: where that
    library itself gains an infinity (its sums overflow in another order) or loses a NaN (its convolutions do not multiply padding), the
    result need only be what it is there, and the report says so under `apart`; where the program comes so near to the largest number
    that the order of its sums decides (`near_overflow`), infinities are not judged, nor is what roundings explain where they move most
    of an output (a variance that is infinite in one order and not in another). `opened`: the program in ops of the algebra, whose noise
    is taken: what nodes read that were kept cannot be moved. `overlooks`: why a NaN may be lost by `run`, which the report says under
    `apart` where one is. `exceptions`: those of the rules that `run` rests on.

    Raises:
        CosetError: the evaluator runs the program on no drawn input.
    """
    refusal = apart = ""
    draw = draw or (cases_of_bits if exact else cases)
    beside = _Beside(program, run, opened or unhinted(program), plain, amplified, sums, exact, overlooks, exceptions)
    for binding in trials(program, given):
        report = CheckReport(dict(binding))
        usual: dict[str, float] = {}  # the largest element of each output on the first inputs
        ordinary: list[Feed] = []
        for case, expected, noise in expected_values(program, binding, report, seed, opened, draw=draw):
            report.cases.append(case.name)
            report.feeds[case.name] = case.feed
            usual = usual or usual_sizes(program, expected)
            ordinary += [] if case.name in EXTREME else [expected]
            for found, said in beside.outputs(case, expected, noise, usual):
                apart = apart or said
                report.differences.extend([] if found is None else [found])
        if report.cases:
            return replace(report, apart=apart, blind=blindness(program, ordinary))
        refusal = report.reasons[0] if report.reasons else ""
    unknown = any(term.op is OPAQUE and term.attribute("domain") not in KNOWN for term in program.terms())
    help = UNDEFINED if unknown else "give its free dims with --dim NAME=N"
    raise CosetError(f"the model has no value on drawn inputs ({refusal})", help=help)


@dataclass(frozen=True)
class _Beside:
    """What the outputs of a run are compared by: as `against_reference` says."""

    program: Program
    run: Callable[[Feed], Feed]
    opened: Program
    plain: Callable[[Feed], Feed] | None
    amplified: float
    sums: float
    exact: bool
    overlooks: str
    exceptions: AbstractSet[str]

    def outputs(
        self, case: Case, expected: Feed, noise: Callable[[], Feed], usual: Mapping[str, float]
    ) -> Iterator[tuple[Difference | None, str]]:
        """How far each output is off on a case, None where that is not judged, and what is to be said of it under `apart`."""
        results, exactly = self.run(case.feed), ExactOutputs(self.program, case.feed)
        roundings = cache(lambda: noise_of_results(self.opened, case.feed))  # measured where the rest does not explain a difference
        plain = cache(lambda: self._plain(case.feed))  # asked for once a case
        for name, value in expected.items():
            judge: Differing = partial(difference, case.name, name, beyond=exactly.of(name), exceptions=self.exceptions)
            found, explained = self._by_roundings(judge, name, value, results[name], noise, roundings, usual)
            if not found.ok and (found.problem or explained) and self.plain is not None and not self.exact:
                own, near = plain()
                judged = found  # a finite difference is never excused by what plain code gives
                if not explained:
                    judged = judge(own[name], results[name], noise()[name] * self.amplified, exact=self.exact)
                if not judged.ok and near is not None:
                    yield None, f"{found}; {near} may overflow in another order"
                    continue
                if judged.ok:
                    yield judged, str(found)
                    continue
            if found.problem == LOST and self.overlooks:
                yield None, f"{found}; {self.overlooks}"
                continue
            yield found, ""

    def _by_roundings(
        self, judge: Differing, name: str, value: Any, result: Any, noise: Callable[[], Feed], roundings: Callable[[], Feed],
        usual: Mapping[str, float],
    ) -> tuple[Difference, bool]:  # fmt: skip
        """How far one output is off, with as much noise as decides; and whether roundings explain it, if not as much of the output may be
        noise. Most are within a few roundings, and to measure noise takes as long as all else."""
        found = judge(value, result, 0.0, exact=self.exact)
        if not (found.ok or found.problem or self.exact):
            found = judge(value, result, noise()[name] * self.amplified, exact=self.exact)
        if found.ok or found.problem or self.exact:
            return found, False
        more = np.maximum(noise()[name] * self.amplified, roundings()[name] * self.sums)
        found = judge(value, result, more, exact=False, usual=usual[name])
        return found, not found.ok and judge(value, result, more, exact=False).ok

    def _plain(self, feed: Feed) -> tuple[Feed, str | None]:
        """What plain code gives, and what is near overflow."""
        assert self.plain is not None
        return self.plain(feed), near_overflow(self.program, feed)


def noise_of_results(program: Program, feed: Feed) -> Feed:
    """How far each output moves where every op of the program rounds once more; nothing for a program with weights above `SHAKEN_BYTES`."""
    expected = values_of(program, feed)
    noise: Feed = {name: np.zeros(()) for name in expected}
    for seed in (1, 2) if weight_bytes(program) <= SHAKEN_BYTES else ():
        for name, value in values_of(rounded(program, seed), feed).items():
            noise[name] = np.maximum(noise[name], largest_step(value, expected[name]))
    return noise


def near_overflow(program: Program, feed: Feed) -> str | None:
    """The first op of a run by the evaluator that overflows, or would in another order of its summands: a sum whose largest summand times
    their number is above the largest number of its type. None where there is none, or an input is not finite."""
    if not all(np.isfinite(wide(value)).all() for value in map(np.asarray, feed.values()) if floating(value)):
        return None
    largest: dict[Term, tuple[float, bool, int]] = {}  # of the finite elements; whether all are finite; how many there are
    found: list[str] = []

    def tap(term: Term, value: Any) -> Any:
        if isinstance(value, np.ndarray) and floating(value) and value.dtype.kind != "c":
            whole = wide(value)
            finite = np.isfinite(whole)
            largest[term] = (float(np.max(np.abs(whole), initial=0.0, where=finite)), bool(finite.all()), value.size)
            operands = [largest[operand] for operand in term.operands if operand in largest]
            overflows = not finite.all() and all(each[1] for each in operands) and term.op.name in (*SUMS, *GROWING)
            summands = max((each[2] for each in operands), default=0) if term.op.name in SUMS else 0
            bound = summands * float(np.prod([each[0] for each in operands]))
            if not found and (overflows or bound > _most(value)):
                found.append(f"`{term.op.name}`")
        return value

    with np.errstate(all="ignore"):
        evaluate_program(program, feed, fallback=fallback_for(program.source), tap=tap)
    return found[0] if found else None


def _most(value: np.ndarray[Any, Any]) -> float:
    """The largest number of an element type."""
    return float(ml_dtypes.finfo(value.dtype).max)  # type: ignore[no-untyped-call]


def expected_values(
    program: Program, binding: Mapping[str, int], report: CheckReport, seed: int = 0, opened: Program | None = None, *, draw: Draw = cases
) -> Iterator[tuple[Case, Feed, Callable[[], Feed]]]:
    """Each case with the outputs, and what measures how far one rounding error on every number that goes in moves them, where it is
    `opened`."""
    shaking = opened or unhinted(program)
    shaken: list[Program] = []
    for case in draw(program, binding, seed):
        try:
            outputs = values_of(program, case.feed)
        except (CosetError, ValueError) as error:
            if case.name.startswith(SAMPLE):
                said = getattr(error, "message", error)
                raise CosetError(f"the original model has no value on {case.name}: {said}", help=OF_SAMPLES) from None
            report.skipped.append(case.name)
            report.reasons.append(str(getattr(error, "message", error)))
            if case.name == "normal" and not report.cases:
                return
            continue

        @cache
        def noise(feed: Feed = case.feed, outputs: Feed = outputs) -> Feed:
            if not shaken:
                shaken.extend(nudges(shaking))
            still = outputs if shaking is program else values_of(shaking, feed)
            return noise_of(shaking, shaken, feed, still)

        yield case, outputs, noise


def nudges(program: Program) -> list[Program]:
    """The program with its constants moved by one rounding error, twice; none where its weights are large."""
    return [nudged(program, each) for each in (1, 2)] if weight_bytes(program) <= SHAKEN_BYTES else []


def noise_of(program: Program, shaken: Sequence[Program], feed: Feed, outputs: Feed) -> Feed:
    """How far one rounding error on every number that goes in moves each of `outputs`; `shaken` are the program's `nudges`."""
    elsewhere = moved(feed)
    noise: Feed = {name: np.zeros(()) for name in outputs}
    for one, given in ((program, elsewhere), *((one, given) for one in shaken for given in (feed, elsewhere))):
        for name, value in values_of(one, given).items():
            noise[name] = np.maximum(noise[name], largest_step(value, outputs[name]))
    return noise


def values_of(program: Program, feed: Feed) -> Feed:
    """The outputs of the program, by the evaluator."""
    with np.errstate(all="ignore"):
        values = evaluate_program(program, feed, fallback=fallback_for(program.source))
    return {name: np.asarray(value) for (name, _), value in zip(program.outputs, values, strict=False)}


def values_in_order(original: Program, written: Program, feed: Feed) -> Feed:
    """The outputs of `written`, whose inputs and outputs are those of `original` in the same order, under the names of `original`."""
    values = values_of(written, renamed(original, written, feed))
    return dict(zip((name for name, _ in original.outputs), values.values(), strict=True))


def renamed(original: Program, written: Program, feed: Feed) -> Feed:
    """Inputs of `original` under the names that `written` has for them, in the same order."""
    names = zip(original.inputs, written.inputs, strict=True)
    return {str(theirs.attribute("name")): feed[ours.attribute("name")] for ours, theirs in names}


def work_of(program: Program, binding: Mapping[str, int]) -> int:
    """FLOP, roughly, under numbers for all symbols: those of `binding`, 32 for what it does not name; loops take `ENDLESS`."""
    total = 0
    for term in program.terms():
        if term.op.name in ("stablehlo.while", "chlo.scan"):
            return ENDLESS
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
