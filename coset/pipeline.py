"""The pipeline: import, search, extract, fold, lower, check. Nothing leaves it that was not compared with the original."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import coset.dialects
from coset.answer import as_json
from coset.backends.onnxruntime import Session
from coset.check import CheckReport, Oracle, breaking_rule
from coset.egraph.chains import Ordering, order_chains
from coset.egraph.limits import Limits
from coset.egraph.saturate import Saturation, saturate
from coset.egraph.search import Phase
from coset.extract.products import product_seconds
from coset.extract.select import Selection, select
from coset.feeds import bindings
from coset.fold import fold
from coset.frontends.onnx import import_model
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.types import Type
from coset.lowering.onnx import count_nodes, highest_opset, printable, write
from coset.lowering.onnx_named import first_version
from coset.rules.library import DEFAULT, load
from coset.rules.rule import NUMERICS_ORDER, Rule
from coset.targets.target import Target, get_target
from coset.usage import Usage, used_rules

assert coset.dialects  # imported so that every op and definition is registered

Progress = Callable[[str], None]
DEFAULT_TARGET = "cpu-onnxruntime"
RECOGNISE = ".recognise"  # the family of a definition read from right to left


class Refused(CosetError):
    """The optimized program differs from the original beyond its tolerance and is not handed out."""

    def __init__(self, message: str, *, rule: str | None, check: CheckReport, help: str = "") -> None:
        super().__init__(message, help=help)
        self.rule = rule
        self.check = check


@dataclass(frozen=True)
class Seconds:
    """Wall time of each stage, s."""

    read: float
    saturate: float
    extract: float
    lower: float
    check: float
    total: float


@dataclass(frozen=True)
class Optimized:
    """An optimized, checked program: `program` (terms), `report` (what `--json` prints), callable on NumPy inputs, saved by `save`."""

    program: Program
    report: dict[str, Any]
    certificate: None = None  # certificates come with the proof checker
    _sessions: list[Session] = field(default_factory=list, compare=False, repr=False)

    def save(self, path: str | Path) -> None:
        """Write the program as an ONNX model, beside the final name first, then renamed."""
        write(self.program, Path(path))

    def __call__(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """Run on inputs by name; the outputs by name."""
        if not self._sessions:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.onnx"
                write(self.program, path)
                self._sessions.append(Session(path, level="all"))
        return self._sessions[0].run(dict(feed))


def optimize(
    model: str | Path | Any,
    *,
    target: str | Target = DEFAULT_TARGET,
    numerics: str = "reassociates",
    limits: Limits | None = None,
    rules: Sequence[str | Path] = (),
    dims: Mapping[str, int] | None = None,
    progress: Progress = lambda _: None,
) -> Optimized:
    """The cheapest program for `target` that the rules show equal to `model`, compared with it on drawn and adversarial inputs.

    `model` is a path or an `onnx.ModelProto`. `numerics` bounds what rules may promise (exact, reassociates, real, approx,
    lossy). `rules` are files of further rules. `dims` are numbers for free dims, for costs and for the comparison.

    Raises:
        CosetError: bad input, with place and remedy. `Refused`: the comparison failed; `.rule` names the culprit.
    """
    started = time.perf_counter()
    job = _Job(
        model, target if isinstance(target, Target) else get_target(target), numerics, limits or Limits(), rules, dims or {}, progress
    )
    return job.run(started)


@dataclass
class _Job:
    model: Any
    target: Target
    numerics: str
    limits: Limits
    rule_files: Sequence[str | Path]
    dims: Mapping[str, int]
    progress: Progress

    def run(self, started: float) -> Optimized:
        self.progress("reading the model")
        program = import_model(self.model)
        self.binding = dict(next(bindings(program, self.dims)))
        phases = self._phases(program)
        read_at = time.perf_counter()

        self.progress("searching equal programs")
        saturation, ordering = self._search(program, phases)
        searched_at = time.perf_counter()
        self.progress(f"extracting from {saturation.enodes} e-nodes in {saturation.eclasses} classes")
        selection = self._select(saturation, program)
        extracted_at = time.perf_counter()
        optimized, folded = self._finish(program, selection)
        usage = used_rules(saturation, selection, ordering)
        with tempfile.TemporaryDirectory(prefix="coset-") as folder:
            self.folder = Path(folder)
            lowered = self.folder / "optimized.onnx"
            write(optimized, lowered)
            lowered_at = time.perf_counter()
            self.progress("comparing with the original")
            exact = all(u.rule.numerics.word == "exact" and not u.rule.numerics.exceptions for u in usage) and not folded
            oracle = Oracle(self._original(), program, self.dims, exact=exact)
            check = oracle.compare(lowered, exact=exact)
            if not check.ok:
                raise self._refused(program, phases, usage, oracle, check)
        ended = time.perf_counter()
        seconds = Seconds(
            read_at - started,
            searched_at - read_at,
            extracted_at - searched_at,
            lowered_at - extracted_at,
            ended - lowered_at,
            ended - started,
        )
        report = _report(self, program, optimized, saturation, selection, usage, folded, check, seconds)
        return Optimized(optimized, report)

    def _original(self) -> str | Path:
        """A file with the user's model, which a ModelProto is written to as it came."""
        if isinstance(self.model, str | Path):
            return self.model
        path = self.folder / "original.onnx"
        path.write_bytes(self.model if isinstance(self.model, bytes) else self.model.SerializeToString())
        return path

    def _phases(self, program: Program) -> list[Phase]:
        if self.numerics not in NUMERICS_ORDER:
            raise CosetError(f"there are no numerics `{self.numerics}`", help=f"one of: {', '.join(NUMERICS_ORDER)}")
        newest = highest_opset(program)
        library = load([*DEFAULT, *(Path(path) for path in self.rule_files)])
        usable = [
            (phase.name, [rule for rule in phase.rules if rule.numerics.permitted(self.numerics) and self._wanted(rule, newest)])
            for phase in library.phases
        ]
        # recognition comes last: kernels are looked for in all forms that the other phases found, and give them no new ones
        recognised = [rule for _, rules in usable for rule in rules if rule.family.endswith(RECOGNISE)]
        phases = [Phase(name, tuple(r for r in rules if not r.family.endswith(RECOGNISE))) for name, rules in usable]
        return [*phases, Phase("recognise", tuple(recognised))]

    def _wanted(self, rule: Rule, newest: int) -> bool:
        """Definitions are read from right to left only into ops that the target runs and the model's version of ONNX can hold."""
        if rule.definition is None or not rule.family.endswith(RECOGNISE):
            return True
        return get_op(rule.definition).dialect == self.target.dialect and first_version(rule.definition) <= newest

    def _search(self, program: Program, phases: Sequence[Phase]) -> tuple[Saturation, Ordering]:
        active = [rule for phase in phases for rule in phase.rules]
        ordering = order_chains(program.roots, active, product_seconds(self.target), self.binding)
        phases = [replace(phase, rules=tuple(filter(ordering.keeps, phase.rules))) for phase in phases]
        return saturate(program.roots, phases, self.limits, equalities=ordering.equalities), ordering

    def _select(self, saturation: Saturation, program: Program) -> Selection:
        newest = highest_opset(program)

        def refusal(name: str, attributes: Mapping[str, Any], types: Sequence[Type]) -> str | None:
            return printable(name, attributes, types, newest)

        return select(saturation.graph, self.target, self.binding, self.limits, printable=refusal)

    def _finish(self, program: Program, selection: Selection) -> tuple[Program, int]:
        roots, folded = fold(selection.terms, program.source)
        return program.with_roots(roots), folded

    def _refused(self, program: Program, phases: Sequence[Phase], usage: Sequence[Usage], oracle: Oracle, check: CheckReport) -> Refused:
        """Find by replay which rule breaks the program, and say so."""

        def passes(names: Sequence[str]) -> bool:
            kept = [replace(phase, rules=tuple(r for r in phase.rules if r.name in names)) for phase in phases]
            saturation, _ = self._search(program, kept)
            optimized, _ = self._finish(program, self._select(saturation, program))
            attempt = self.folder / "attempt.onnx"
            write(optimized, attempt)
            return oracle.compare(attempt, exact=False).ok

        self.progress("the result differs; looking for the rule that breaks it")
        culprit = breaking_rule([rule.name for phase in phases for rule in phase.rules], passes)
        worst = check.worst
        what = (
            f"output `{worst.output}` on {worst.case} inputs: {worst.problem or f'{worst.max_abs:.3g} off, allowed {worst.tolerance:.3g}'}"
            if worst
            else ""
        )
        if culprit is None:
            return Refused(
                f"the program does not survive import and export unchanged ({what}); it is not handed out", rule=None, check=check
            )
        return Refused(
            f"rule `{culprit}` breaks the program ({what}); it is not handed out", rule=culprit, check=check,
            help="leave the rule out or restrict --numerics; please report the model",
        )  # fmt: skip


def _report(
    job: _Job, program: Program, optimized: Program, saturation: Saturation, selection: Selection,
    usage: Sequence[Usage], folded: int, check: CheckReport, seconds: Seconds,
) -> dict[str, Any]:  # fmt: skip
    return {
        "target": job.target.name,
        "numerics": job.numerics,
        "nodes": {"before": count_nodes(program), "after": count_nodes(optimized)},
        "egraph": {
            "enodes": saturation.enodes, "eclasses": saturation.eclasses, "iterations": saturation.iterations, "stop": saturation.stop,
        },
        "seconds": {
            "import": seconds.read, "saturate": seconds.saturate, "extract": seconds.extract,
            "lower": seconds.lower, "check": seconds.check, "total": seconds.total,
        },
        "cost": {
            "input": selection.input_cost, "output": selection.cost, "lower_bound": selection.lower_bound, "gap": selection.gap,
            "method": selection.method,
        },
        "rules": [u.summary() for u in usage],
        "folded": folded,
        "opaque": sorted({describe(term) for term in program.terms() if term.op.name == "builtin.opaque"}),
        "host": [],
        "check": check.summary(),
        "certificate": None,
    }  # fmt: skip


def save_report(report: Mapping[str, Any], path: Path) -> None:
    """Write the report as JSON, beside first and renamed."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(as_json(report, indent=2) + "\n")
    beside.replace(path)
