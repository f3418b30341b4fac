"""Other programs of one e-graph for a target, as plans: those that are cheapest where kernels are faster or slower than the target says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from typing import Any

from coset.extract.candidates import strayed
from coset.ir.constants import INLINE_ELEMENTS, Constant
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term, topological
from coset.lowering.kernels.kernel import Library, Plan, reads, writes
from coset.lowering.triton.key import key_of
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.source import emit, refusal
from coset.pricing.plan_price import PlanPrices
from coset.searching.package_memory import PlannedPackage, unlimited
from coset.searching.solving import Searched, refuse_idle, solve_task
from coset.searching.task import Task


@dataclass(frozen=True)
class Alternative:
    """A program that was extracted at the prices `strayed` (0: the target's own), planned."""

    strayed: int
    planned: PlannedPackage
    digest: str

    @property
    def plan(self) -> Plan:
        """Its kernels."""
        assert self.planned.plan is not None
        return self.planned.plan

    def summary(self) -> dict[str, Any]:
        """For `--json`: what its kernels are predicted to take under the target's own prices."""
        assert self.planned.memory is not None
        predicted = self.planned.memory["default"]["seconds"]
        return {"strayed": self.strayed, "digest": self.digest, "kernels": len(self.plan.kernels), "predicted_s": predicted}


def alternatives_of(task: Task, count: int, options: EmitOptions, *, atomics: bool = False) -> Iterator[Alternative]:
    """The target's own choice, then up to `count` others whose kernels differ from its and from each other's."""
    known: Searched = {}
    seen: set[str] = set()
    for number in range(count + 1):
        try:
            found = extracted(task, number, options, known, atomics=atomics)
        except CosetError:
            if number == 0:
                raise
            continue  # at these prices there is none that can be planned
        if found.digest not in seen:
            seen.add(found.digest)
            yield found


def extracted(task: Task, number: int, options: EmitOptions, known: Searched | None = None, *, atomics: bool = False) -> Alternative:
    """The program at the prices `number`, by which convolutions are kernels or a library's too."""
    prices = strayed(task.job.target, number) if number else None
    solved, _ = solve_task(task, task.phases, prices=prices, known=known)
    refuse_idle(task.job.target, solved)
    by = PlanPrices(prices, task.binding, numerics=task.job.numerics) if prices is not None else None
    planned = unlimited(task, solved, atomics=atomics, by=by)
    assert planned.plan is not None
    return Alternative(number, planned, plan_digest(planned.plan, options, task.binding))


def plan_digest(plan: Plan, options: EmitOptions, sizes: Mapping[str, int]) -> str:
    """What a program is called in a profile: the digest of its kernels in order, by key, and of the buffers that they share. Two programs
    that differ as terms may well be the same kernels."""
    options = replace(options, splits=not plan.frees, choices=None, choice=None)
    numbers: dict[str, int] = {}
    rows: list[object] = []
    for kernel in plan.kernels:
        touched = [numbers.setdefault(name, len(numbers)) for name in (*reads(kernel), *writes(kernel))]
        if isinstance(kernel, Library) or refusal(kernel):
            told: object = _rows((), (kernel.term,)) if isinstance(kernel, Library) else list(kernel.terms)
        else:
            told = key_of(emit(kernel, plan, options=options), plan, sizes)
        rows.append([told, touched])
    return blake2b(json.dumps(rows).encode(), digest_size=12).hexdigest()


def model_key(task: Task) -> str:
    """What a model is called in a profile: the digest of its program before the search, with the sizes that it is tuned for."""
    told = [digest_of(task.program), sorted(task.binding.items())]
    return blake2b(json.dumps(told).encode(), digest_size=12).hexdigest()


def digest_of(program: Program) -> str:
    """The digest of a program's terms, without the names of its inputs and outputs and without the elements of its weights, which say
    nothing of its time."""
    return blake2b(json.dumps(_rows(program.inputs, program.roots)).encode(), digest_size=12).hexdigest()


def _rows(inputs: Sequence[Term], roots: Sequence[Term]) -> list[object]:
    """A row for each term under `roots`, operands before users, then the numbers of the roots."""
    numbers: dict[Term, int] = {}
    places = {term: place for place, term in enumerate(inputs)}
    rows: list[object] = []
    for term in topological(roots):
        numbers[term] = len(numbers)
        told = str(places[term]) if term in places else [[name, _told(value)] for name, value in term.attributes]
        regions = [_rows(region.parameters, region.results) for region in term.regions]
        rows.append([term.op.name, [numbers[operand] for operand in term.operands], told, str(term.type), regions])
    return [*rows, [numbers[root] for root in roots]]


def _told(value: object) -> str:
    big = isinstance(value, Constant) and prod(value.type.static or ()) > INLINE_ELEMENTS
    return str(value.type) if isinstance(value, Constant) and big else repr(value)
