"""What the page shows of an optimization beside its report: both graphs, and what each op costs on either side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.dialects.onnx.origin import onnx_origin
from coset.explaining.near_misses import near_misses
from coset.extract.priced import Priced, priced
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.ir.term import Term
from coset.reporting.graph import DrawnSide, aligned, graph_of
from coset.reporting.matching import Match, called, matched
from coset.searching.regionwise import Solved
from coset.searching.task import Task, wanted_roots

STORED, MOVED = "values made at build time", "transfers"


def picture(task: Task, solved: Solved, program: Program, names: Mapping[Term, str], kinds: Mapping[str, str]) -> dict[str, Any]:
    """What the page has beside the report: near misses in the task's program, and both graphs (`Job.picture`)."""
    return {"near_misses": near_misses(task, solved), "graphs": drawing(task, solved, program, names, kinds)}


def drawing(task: Task, solved: Solved, program: Program, names: Mapping[Term, str], kinds: Mapping[str, str]) -> dict[str, Any]:
    """The graphs of the task's program and of the one that was made of it, whose values are called `names` where it is written, and the ops
    that compute them `kinds`."""
    final = (*program.roots, *program.sources.values())
    wanted = wanted_roots(task)
    given = source_of(task.program).names
    if solved.zones:
        match = called(wanted, final, (given, names))
    else:
        match = matched(wanted, solved, final if len(final) == len(wanted) else (*program.roots, *solved.terms[len(program.roots) :]))
    prices = [priced(roots, task.job.target, task.binding) for roots in (task.program.roots, program.roots)]
    return side_by_side((task.program, program), (given, names), match, prices, (kinds_in_file(task.program), kinds))


def kinds_in_file(program: Program) -> Mapping[str, str]:
    """What the ops of a program are called in the ONNX model that it was read from, by the names of their values."""
    return onnx_origin(program.source).kinds


def side_by_side(
    programs: tuple[Program, Program], names: tuple[Mapping[Term, str], Mapping[Term, str]], match: Match,
    prices: Sequence[Priced | None], kinds: tuple[Mapping[str, str], Mapping[str, str]],
) -> dict[str, Any]:  # fmt: skip
    """The graphs of two programs that belong together by `match`."""
    sides = (
        DrawnSide(programs[0], names[0], match.before, match.states[0], {}, prices[0], kinds[0]),
        DrawnSide(programs[1], names[1], match.after, match.states[1], match.rules, prices[1], kinds[1]),
    )
    before = graph_of(sides[0])
    after = graph_of(sides[1], breaks=aligned(before))
    return {"before": before, "after": after, "by": match.by, "costs": costs(prices)}


def costs(prices: Sequence[Priced | None]) -> list[dict[str, Any]]:
    """Predicted seconds and number of each op that costs anything, before and after, the dearest first."""
    found: dict[str, dict[str, list[float]]] = {}

    def add(op: str, side: int, seconds: float) -> None:
        entry = found.setdefault(op, {"seconds": [0.0, 0.0], "count": [0, 0]})
        entry["seconds"][side] += seconds
        entry["count"][side] += 1

    for side, each in enumerate(prices):
        if each is None:
            continue
        for term, seconds in each.seconds.items():
            if seconds:
                add(describe(term), side, seconds)
        for op, seconds in ((STORED, each.stored), (MOVED, each.moved)):
            if seconds:
                add(op, side, seconds)
    ordered = sorted(found.items(), key=lambda item: (-max(item[1]["seconds"]), item[0]))
    return [{"op": op, **entry} for op, entry in ordered]
