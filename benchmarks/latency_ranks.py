"""How a target's predictions rank latencies that can be measured here: those of ONNX Runtime on this CPU.

Programs of a graph are the one that was read, those chosen for the CPU and for the target, and what is cheapest where the speeds of
kernels are drawn away from what a target says (`coset.extract.candidates`). What is chosen for a GPU is written in the runtime's ops
without any other rule. All are compared with the original, then timed in blocks in turn under one set of options.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from benchmarks import cost_pairs
from benchmarks.measure import Oracle
from benchmarks.rivals import Options, open_ort
from coset.backends.onnxruntime import LEVELS
from coset.comparing import timing
from coset.comparing.reference import read_program
from coset.comparing.sizes import bindings
from coset.egraph.limits import Limits
from coset.extract.candidates import strayed
from coset.extract.cost import Printable
from coset.extract.select import reprice
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.job.job import Job
from coset.job.phases import COMPOSITE, LAST, phases_for
from coset.lowering.onnx.model import highest_opset, printable, write
from coset.lowering.planning.primitive import primitive
from coset.optimizing import running
from coset.packaging.searched import EVERY_OPSET
from coset.searching.solving import Searched, finish, solve_task
from coset.searching.task import Task
from coset.targets.running import Running
from coset.targets.target import Target, get_target

HERE = get_target(cost_pairs.SHIPPED)
ROUNDS, CALLS = 9, 3

Row = dict[str, Any]


@dataclass(frozen=True)
class Written:
    """A program in a file: where it is from, and its predicted seconds on the CPU and on the target."""

    origin: str
    path: Path
    here: float
    there: float


@dataclass(frozen=True)
class Graph:
    """A program that was read, with what it is searched with for the CPU and for a target."""

    original: Program
    here: Task
    there: Task
    printable: Printable

    @staticmethod
    def read(path: Path, target: Target, limits: Limits) -> Graph:
        """The graph in the file `path`."""
        original = read_program(path)
        plain = original.with_roots(primitive(original))
        newest = highest_opset(original)

        def task(own: Target, program: Program, opset: int) -> Task:
            job = Job(path, own, "reassociates", limits, (), {}, lambda _: None)
            return Task(job, program, dict(next(bindings(program, {}))), phases_for(job, opset))

        prints: Printable = lambda name, attributes, types: printable(name, attributes, types, newest)  # noqa: E731
        return Graph(original, task(HERE, original, newest), task(target, plain, EVERY_OPSET), prints)

    def chosen_here(self, variants: int) -> Iterator[tuple[str, Program]]:
        """What is cheapest on the CPU, and on copies of it."""
        known: Searched = {}
        for seed in range(variants + 1):
            prices = strayed(HERE, seed) if seed else None
            solved, _ = solve_task(self.here, self.here.phases, self.printable, prices=prices, known=known)
            yield f"cpu {seed}", finish(self.here, solved)[0]

    def chosen_there(self, variants: int) -> Iterator[tuple[str, Program]]:
        """What is cheapest on the target and on copies of it, in the ops of the CPU."""
        known: Searched = {}
        names = [phase for phase in self.here.phases if phase.name in (LAST, COMPOSITE)]
        for seed in range(variants + 1):
            prices = strayed(self.there.job.target, seed) if seed else None
            solved, _ = solve_task(self.there, self.there.phases, prices=prices, known=known)
            program = finish(self.there, solved)[0]
            task = replace(self.here, program=program, phases=names)
            yield f"target {seed}", finish(task, solve_task(task, names, self.printable)[0])[0]

    def costs(self, program: Program) -> tuple[float, float]:
        """Predicted seconds of `program` on the CPU as it is, and on the target, which knows no op of the runtime's, as what it means."""
        here, there = self.here.job.target, self.there.job.target
        plain = primitive(program)
        own = min(reprice(roots, here, self.here.binding) for roots in (program.roots, plain))
        return own, reprice(plain, there, self.there.binding)


def programs(path: Path, target: Target, limits: Limits, variants: int, folder: Path) -> tuple[list[Written], Running, str]:
    """Distinct programs that equal the one in `path`, which is the first; how the one chosen for the CPU is run; and why what is chosen
    for the target has no form in ONNX, where it has none (a window over maxima, say, which only a node that no rule sees into has)."""
    graph = Graph.read(path, target, limits)
    found = {b"": Written("input", path, *graph.costs(graph.original))}
    options: Running | None = None
    refusal = ""

    def add(origin: str, program: Program) -> float:
        file = folder / f"{origin}.onnx".replace(" ", "")
        write(program, file)
        costs = graph.costs(program)
        found.setdefault(file.read_bytes(), Written(origin, file, *costs))
        return costs[0]

    for origin, program in graph.chosen_here(variants):
        seconds = add(origin, program)
        options = options or running.chosen(HERE, program, seconds)
    try:
        for origin, program in graph.chosen_there(variants):
            add(origin, program)
    except CosetError as error:
        refusal = error.message
    return list(found.values()), options or Running(), refusal


def measure(path: Path, target: Target, limits: Limits, variants: int, budget: float) -> Row:
    """One graph: its programs with predicted and measured ms, pairs of them, and those whose outputs are not the original's."""
    with tempfile.TemporaryDirectory() as folder:
        made, own, refusal = programs(path, target, limits, variants, Path(folder))
        session = Options(LEVELS[own.level].name, own.disabled, own.threads or Options().threads, entries=own.entries)
        oracle = Oracle(onnx.load(path), path.stem)
        runs = {each.origin: open_ort(each.path, session) for each in made}
        errors = {origin: oracle.check(run) for origin, run in runs.items()}
        good = [each for each in made if errors[each.origin] <= oracle.tolerance]
        wanted = {each.origin: oracle.program(runs[each.origin]) for each in good}
        found = timing.measure(wanted, timing.Protocol(ROUNDS, budget, calls=CALLS))
    rows = [
        {"origin": e.origin, "here_ms": e.here * 1e3, "there_ms": e.there * 1e3, "ms": found[e.origin].median * 1e3} for e in good
    ]  # fmt: skip
    wrong = {each.origin: errors[each.origin] for each in made if each not in good}
    return {"name": path.stem, "programs": rows, "wrong": wrong, "refusal": refusal, "pairs": list(_pairs(good, found))}


def _pairs(made: Sequence[Written], found: dict[str, timing.Timing]) -> Iterator[Row]:
    for first, second in itertools.combinations(made, 2):
        measured = timing.ratio(found[first.origin], found[second.origin])
        ratios = {"here": first.here / second.here, "there": first.there / second.there}
        yield {"programs": [first.origin, second.origin], **ratios, "measured": vars(measured)}


def spearman(rows: Sequence[Row], by: str) -> float | None:
    """The rank correlation of the predictions `by` with the measured times of these programs; None where either is the same for all."""
    from scipy.stats import spearmanr

    predicted, measured = [each[by] for each in rows], [each["ms"] for each in rows]
    if len(set(predicted)) < 2 or len(set(measured)) < 2:
        return None
    return float(spearmanr(predicted, measured).statistic)


def summary(rows: Sequence[Row]) -> Row:
    """For each of the two models: the correlation over the programs as read, over all programs, the mean of those within graphs of three
    programs or more, and the pairs of equal programs that the clock tells apart, of which so many are predicted right."""
    pairs = [pair for row in rows for pair in row["pairs"] if cost_pairs.told_apart(pair)]
    found: Row = {"graphs": len(rows), "programs": sum(len(row["programs"]) for row in rows), "pairs told apart": len(pairs)}
    for key, by in (("there", "there_ms"), ("here", "here_ms")):
        within = [rho for row in rows if len(row["programs"]) > 2 and (rho := spearman(row["programs"], by)) is not None]
        found[key] = {
            "inputs": spearman([row["programs"][0] for row in rows], by),
            "programs": spearman([each for row in rows for each in row["programs"]], by),
            "within": sum(within) / len(within) if within else None, "graphs within": len(within),
            "right": sum(cost_pairs.right(pair, key) for pair in pairs),
            "equal": sum(abs(pair[key] - 1) < 1e-9 for pair in pairs),
        }  # fmt: skip
    return found


def line(row: Row) -> str:
    """One graph: each of its programs as predicted for the target / predicted for the CPU / measured, ms, and the ranks within it."""
    said = "  ".join(f"{e['origin']} {e['there_ms']:.3f}/{e['here_ms']:.2f}/{e['ms']:.2f}" for e in row["programs"])
    ranks = " ".join(_number(spearman(row["programs"], by) if len(row["programs"]) > 2 else None) for by in ("there_ms", "here_ms"))
    wrong = "".join(f"  {origin} is off by {error:.1e}" for origin, error in row["wrong"].items())
    missing = ", ".join(dict.fromkeys(re.findall(r"`([^`]+)`: `", row["refusal"]))) or row["refusal"]
    refused = f"  (no form in ONNX for what is chosen for the target: {missing})" if missing else ""
    return f"{row['name']:18s} {ranks}   {said}{wrong}{refused}"


def _number(value: float | None) -> str:
    return "     -" if value is None else f"{value:6.2f}"


HEAD = f"{'graph':18s} {'target':>6s} {'cpu':>6s}   program: ms predicted for the target / predicted for the CPU / measured on the CPU"


def text(found: Row, target: str) -> str:
    """The summary in words."""
    lines = [
        f"Spearman's rho over {found['graphs']} graphs, {found['programs']} programs; "
        f"{found['pairs told apart']} pairs of equal programs told apart"
    ]
    for key, name in (("there", target), ("here", HERE.name)):
        own = found[key]
        lines.append(
            f"  {name:16s} programs as read {_number(own['inputs'])}, all programs {_number(own['programs'])}, within graphs "
            f"{_number(own['within'])} (mean of {own['graphs within']}), pairs right {own['right']}, predicted equal {own['equal']}"
        )
    return "\n".join(lines)
