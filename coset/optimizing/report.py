"""What an optimization says of itself: the report that `--json` prints and `Optimized.report` holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coset.comparing.check import CheckReport
from coset.egraph.request import Phase
from coset.egraph.saturate import Saturation
from coset.extract.cost import Pricer, Printable
from coset.extract.select import reprice
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.job.answer import as_json, save, versioned
from coset.job.left_out import left_out
from coset.job.own_ops import as_written, why_unwritten
from coset.prove.certificate import Certificate
from coset.rules.lock import entry_of
from coset.searching.illegal import why_illegal
from coset.searching.inside import AsItCame, Inside
from coset.searching.regionwise import Solved
from coset.searching.usage import Usage

if TYPE_CHECKING:
    from coset.optimizing.formats import Flow
    from coset.searching.task import Task


TOP_RULES = 30  # whose matches the report lists by iteration


@dataclass(frozen=True)
class Seconds:
    """Wall time of each stage, s."""

    read: float = 0.0
    saturate: float = 0.0
    extract: float = 0.0
    lower: float = 0.0
    check: float = 0.0

    def more(self, other: Seconds, check: float) -> Seconds:
        """With what another attempt took, and the comparison after it."""
        return Seconds(
            self.read + other.read,
            self.saturate + other.saturate,
            self.extract + other.extract,
            self.lower + other.lower,
            self.check + check,
        )

    @property
    def total(self) -> float:
        """Wall time of the whole job, s."""
        return self.read + self.saturate + self.extract + self.lower + self.check


def report_of(
    task: Task, flow: Flow, optimized: Program, solved: Solved, usage: Sequence[Usage], folded: int, check: CheckReport, seconds: Seconds
) -> dict[str, Any]:
    """What `--json` prints."""
    saturation, placement = solved.saturation, solved.placement
    ops = flow.given(task.program), flow.ops(optimized)
    return {
        "not_shown": task.job.own().told(),
        "target": task.job.target.name,
        "numerics": task.job.numerics,
        "nodes": {"before": sum(ops[0].values()), "after": sum(ops[1].values())},
        "ops": {name: [each.get(name, 0) for each in ops] for name in dict.fromkeys((*ops[0], *ops[1]))},
        "egraph": {
            "enodes": saturation.enodes, "eclasses": saturation.eclasses, "iterations": saturation.iterations, "stop": saturation.stop,
            "regions": len(solved.parts), "places": solved.places, "growth": growth_of(saturation),
        },
        "seconds": {
            "import": seconds.read, "saturate": seconds.saturate, "extract": seconds.extract,
            "lower": seconds.lower, "check": seconds.check, "total": seconds.total,
        },
        "cost": {
            "input": _input_cost(task, solved), "output": solved.cost, "lower_bound": solved.lower_bound, "gap": solved.gap,
            "method": solved.method,
        },
        "rules": [u.summary() for u in usage],
        "rules_from": "search",
        **_own(task, solved, usage, own_nodes(task, solved, ops, flow.printable(task))),
        "folded": folded,
        "not_folded": list(task.job.lost),
        **_insides(task),
        "opaque": _names(task.program, "builtin.opaque"),
        "kept": _names(task.program, "onnx.node"),
        "host": [vars(each) for each in placement.hosted],
        "on_target": placement.here if task.job.target.host is not None else None,
        "transfers": {"count": placement.transfers, "bytes": placement.bytes, "seconds": placement.seconds},
        "warnings": [*left_out(task.job, task.program), *_warnings(solved)],
        "check": check.summary(),
        "certificate": None,
    }  # fmt: skip


def _warnings(solved: Solved) -> list[str]:
    return [warning for each in (solved, *solved.zones) if (warning := each.saturation.warning)]


def _insides(task: Task) -> dict[str, Any]:
    """Functions of the model's own and bodies of control flow: what became smaller, and which functions stay as they came."""
    better = [each for each in task.functions if isinstance(each, Inside)]
    return {
        "functions": [each.summary() for each in better if not each.body],
        "bodies": [each.summary() for each in better if each.body],
        "functions_as_they_came": [each.summary() for each in task.functions if isinstance(each, AsItCame)],
    }


def certified_rules(certificate: Certificate, phases: Sequence[Phase]) -> dict[str, Any]:
    """What the report says of rules where there is a certificate: it names each on the way, not only those that made what was chosen, with
    the number of its steps."""
    steps = Counter(line["rule"] for line in certificate.lines if "rule" in line)
    known = {rule.name: rule for phase in phases for rule in phase.rules}
    used = [Usage(known[rule["name"]], steps[number]) for number, rule in enumerate(certificate.head["rules"])]
    return {"rules": [each.summary() for each in sorted(used, key=lambda usage: usage.rule.name)], "rules_from": "certificate"}


def _own(task: Task, solved: Solved, usage: Sequence[Usage], nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is said of the user's rules, and of the `nodes` of the user's ops."""
    told = {each["op"] for each in nodes}
    return {"own": [each for each in own_matches(task, solved, usage) if each["rule"] not in told], "own_ops": nodes}


def own_matches(task: Task, solved: Solved, usage: Sequence[Usage]) -> list[dict[str, Any]]:
    """The user's own rules, each with how often it matched and was applied, and how much of what was chosen it made."""
    made: Counter[str] = Counter()
    for used in usage:
        made[entry_of(used.rule)] += used.count
    counts: Counter[str] = Counter()
    for each in (solved, *solved.zones):
        for number, times in each.saturation.fired.items():
            counts[entry_of(each.saturation.rules[number])] += times
    return [{"rule": name, "matches": counts[name], "uses": made[name]} for name in task.job.own().verdicts]


def own_nodes(task: Task, solved: Solved, ops: Sequence[Mapping[str, int]], printable: Printable) -> list[dict[str, Any]]:
    """The user's ops: how many nodes the model and the result have of each (`ops`), and why the result has none."""
    pricer = Pricer(task.job.target, task.binding, printable=printable)
    found = []
    for op in sorted(task.job.own().ops):
        before, after = (each.get(op, 0) for each in ops)
        unwritten = why_unwritten(op, task.job.target)
        if unwritten and after:
            unwritten += "; what stays is in a body of control flow, or fits no clause of the definition"
        elif unwritten and before:
            unwritten += "; what it means is written"
        reason = unwritten or ("" if after else _why_none(op, task, solved, pricer))
        found.append({"op": op, "nodes": [before, after], "reason": reason})
    return found


def _why_none(op: str, task: Task, solved: Solved, pricer: Pricer) -> str:
    """Why the result has no node of a user's op that the target lists."""
    graphs = [each.saturation.graph for each in (solved, *solved.zones)]
    illegal = next((why for graph in graphs if (why := why_illegal(op, graph, pricer))), "")
    if illegal:
        return f"the target cannot run the nodes that were found: {illegal}"
    if any(node.op.name == op for graph in graphs for nodes in graph.nodes for node in nodes):
        return "what it means is predicted to be as fast or faster"
    active = any(rule.definition == op and rule.recognises for phase in task.phases for rule in phase.rules)
    if not active:
        return "its definition is not read from right to left, or promises less than the numerics ask"
    return f"nothing in the model was found to equal it; `coset explain --rule {op}` names the nearest"


def _input_cost(task: Task, solved: Solved) -> float:
    """Predicted seconds of the model; nodes of a user's op that the target does not run count as what they mean."""
    written = as_written(task.program, task.job.target)
    return solved.input_cost if written is task.program else reprice(written.roots, task.job.target, task.binding)


def growth_of(saturation: Saturation) -> list[dict[str, Any]]:
    """The e-graph after each iteration; where matches were counted, how many the rules that were applied most have built there."""
    totals: Counter[int] = sum((Counter(step.applied) for step in saturation.growth), Counter())
    shown = {number for number, _ in totals.most_common(TOP_RULES)}
    return [
        {
            "phase": step.phase, "iteration": step.iteration, "enodes": step.enodes, "eclasses": step.eclasses, "seconds": step.seconds,
            "rules": {saturation.rules[number].name: count for number, count in step.applied.items() if number in shown},
        }
        for step in saturation.growth
    ]  # fmt: skip


def _names(program: Program, op: str) -> list[str]:
    """The foreign names of the nodes that are `op`: no rule sees into them, as they are unknown or written back as they came."""
    return sorted({describe(term) for term in program.terms() if term.op.name == op})


def save_report(report: Mapping[str, Any], path: Path) -> None:
    """Write the report as JSON."""
    save(path, as_json(versioned(report), indent=2) + "\n")
