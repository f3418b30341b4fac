"""Bisect: the fewest rules, and the fewest values of the model that they compute otherwise, that make the outputs differ too much."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coset.comparing.check import CheckReport
from coset.comparing.difference import Difference
from coset.egraph.saturate import Saturation
from coset.explaining.smallest import smallest
from coset.explaining.words import Words
from coset.extract.problem import Picks, find_order
from coset.extract.select import FaceChoices, Selection, rebuilt, select
from coset.ir.errors import CosetError
from coset.ir.held import working_folder
from coset.ir.program import Program
from coset.job.job import Job
from coset.optimizing.formats import Compare, Flow
from coset.optimizing.pipeline import flow_for, suffix
from coset.rules.rule import Rule
from coset.searching.regionwise import RegionPart, Solved
from coset.searching.solving import finish, search_roots, solve_task
from coset.searching.task import Task, wanted_roots
from coset.searching.usage import exceptions_of, used_rules


@dataclass(frozen=True)
class Bounds:
    """How far outputs may be off: `absolute` in the unit of the output, `relative` as a share of the largest element; where neither is
    given, what `coset optimize` allows."""

    absolute: float | None = None
    relative: float | None = None

    def broken_by(self, report: CheckReport) -> Difference | None:
        """The output that is furthest off of those that are off too far."""
        wrong = [each for each in report.differences if self._beyond(each)]
        return max(wrong, key=lambda each: (bool(each.problem), each.max_abs), default=None)

    def _beyond(self, difference: Difference) -> bool:
        if difference.problem or (self.absolute is None and self.relative is None):
            return not difference.ok
        return (self.absolute is not None and difference.max_abs > self.absolute) or (
            self.relative is not None and difference.max_rel > self.relative
        )


def bisect(job: Job, bounds: Bounds) -> dict[str, Any]:
    """Whether the outputs of the optimized model stay `within` the bounds; else the `rules` that are to blame and the `values` of the model
    at which that shows. Nothing is written.

    Rules are left out by delta debugging: none of those named can be left out without the outputs coming within the bounds. Values are
    found the same way, in a search with these rules only, by computing all others as the model does.

    Raises:
        CosetError: as `optimize`; the model cannot be written back unchanged, so that no rule is to blame.
    """
    with working_folder("coset-work-") as folder:
        return _Bisection(job, bounds, folder).run()


class _Bisection:
    def __init__(self, job: Job, bounds: Bounds, folder: Path) -> None:
        self.started = time.perf_counter()
        self.job, self.bounds = job, bounds
        flow: Flow = flow_for(job, folder / f"bisected{suffix(job.target)}")
        self.flow, self.path = flow, folder / flow.attempt
        self.task: Task = flow.read()
        self.compare: Compare = flow.comparison(self.task, folder)
        self.trials = 0

    def run(self) -> dict[str, Any]:
        solved = self._solved(None)
        report, worst = self._outcome(finish(self.task, solved)[0], solved)
        result: dict[str, Any] = {"not_shown": self.job.own().told()}
        result |= {"within": worst is None, "max_abs": _largest(report, "max_abs"), "max_rel": _largest(report, "max_rel")}
        if worst is None:
            return {**result, "worst": None, "rules": [], "values": [], **self._end()}
        if self._fails(()):
            raise CosetError(
                f"the model does not survive import and export unchanged ({worst}): no rule is to blame",
                help="please report the model; `coset diff` compares two files",
            )
        families = self._to_blame(list(dict.fromkeys(usage.rule.family for usage in used_rules(solved))))
        values = self._values(families)
        return {**result, "worst": str(worst), "rules": list(self._told(families)), "values": values, **self._end()}

    def _end(self) -> dict[str, Any]:
        return {"trials": self.trials, "seconds": time.perf_counter() - self.started}

    def _to_blame(self, used: Sequence[str]) -> tuple[str, ...]:
        """The fewest entries without which the outputs are within the bounds, of those used where they alone fail."""
        every = {rule.family: rule.definition is not None and not rule.recognises for phase in self.task.phases for rule in phase.rules}
        stated = [family for family, states in every.items() if states]  # what ops are: the rules that were used need some of them
        others = [family for family, states in every.items() if not states]
        items = next((each for each in (used, [*used, *stated], others) if self._fails(each)), list(every))
        self.job.progress(f"{len(items)} entries may be to blame")
        return smallest(items, self._fails)

    def _fails(self, families: Collection[str]) -> bool:
        self.job.progress(f"trial {self.trials + 1}: {len(families)} entries")
        try:
            solved = self._solved(frozenset(families))
        except CosetError:  # without some definition the target may have no form of the model
            return False
        return self._outcome(finish(self.task, solved)[0], solved)[1] is not None

    def _solved(self, families: frozenset[str] | None) -> Solved:
        phases = self.task.phases
        if families is not None:
            phases = [phase.where(lambda rule: rule.family in families) for phase in phases]
        return solve_task(self.task, phases, self.flow.printable(self.task))[0]

    def _outcome(self, program: Program, solved: Solved) -> tuple[CheckReport, Difference | None]:
        self.trials += 1
        self.flow.write(program, self.path, None)
        report = self.compare(self.path, exact=False, exceptions=exceptions_of(used_rules(solved)))
        return report, self.bounds.broken_by(report)

    def _values(self, families: Collection[str]) -> list[dict[str, Any]]:
        """The fewest values of the model that must be computed otherwise, each with what the model and the optimized program do."""
        phases = [phase.where(lambda rule: rule.family in families) for phase in self.task.phases]
        roots = wanted_roots(self.task)
        saturation, entered = search_roots(roots, phases, self.task)
        job = self.job
        selection = select(saturation.graph, job.target, self.task.binding, job.limits, printable=self.flow.printable(self.task))
        if selection.choices is None or selection.choices.start is None:
            return []
        chosen, start = selection.choices.picks, selection.choices.start
        items = sorted(face for face in chosen if start.get(face) not in (None, chosen[face]))

        def fails(faces: Collection[int]) -> bool:
            made = self._hybrid(selection, faces)
            if made is None:
                return False
            job.progress(f"trial {self.trials + 1}: {len(faces)} values")
            part = RegionPart(made, 1, range(len(saturation.graph.nodes)), saturation.source)
            solved = Solved(made.terms, made.storable, saturation, entered, (part,))
            return self._outcome(finish(self.task, solved)[0], solved)[1] is not None

        if not items or not fails(items):
            return []
        return list(_changed(smallest(items, fails), selection.choices, saturation, Words(self.task.program, saturation)))

    def _hybrid(self, selection: Selection, faces: Collection[int]) -> Selection | None:
        """The selection at `faces`, the input program elsewhere; None where that is a cycle."""
        choices = selection.choices
        assert choices is not None and choices.start is not None
        picks: Picks = {**choices.picks, **choices.start, **{face: choices.picks[face] for face in faces}}
        if find_order(choices.faces.problem, picks) is None:
            return None
        terms, chosen, storable = rebuilt(choices, picks)
        return replace(selection, terms=terms, chosen=chosen, storable=storable)

    def _told(self, families: Sequence[str]) -> Iterator[dict[str, Any]]:
        first: dict[str, Rule] = {}
        for phase in self.task.phases:
            for rule in phase.rules:
                first.setdefault(rule.family, rule)
        for family in families:
            rule = first[family]
            place = f"{rule.place.file}:{rule.place.line}"
            yield {"name": family, "place": place, "numerics": str(rule.numerics), "assurance": rule.assurance}


def _changed(faces: Sequence[int], choices: FaceChoices, saturation: Saturation, words: Words) -> Iterator[dict[str, Any]]:
    for face in faces:
        origin = choices.faces.origins[face][choices.picks[face]]
        made = saturation.origins.get((origin.eclass, origin.node), [])
        yield {
            "value": words.value(origin.eclass),
            "model": words.text(origin.eclass, named=False),
            "optimized": words.node(origin.eclass, origin.node) if origin.node >= 0 else "another form of the same value",
            "rules": [saturation.rules[number].name for number in made],
        }


def _largest(report: CheckReport, name: str) -> float:
    return max((getattr(each, name) for each in report.differences), default=0.0)
