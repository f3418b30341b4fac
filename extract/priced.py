"""What each op of a plain program is predicted to cost, and which of two machines runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coset.extract.faces import FOLDED, ITSELF
from coset.extract.placement import Machines
from coset.extract.plain import saturated_of
from coset.extract.problem import needed
from coset.extract.select import DEFAULT
from coset.extract.solve import solve
from coset.extract.storage import folded
from coset.ir.program import Program
from coset.ir.term import Term
from coset.targets.target import Target


@dataclass(frozen=True)
class Priced:
    """Predicted seconds by term, under prices of single ops; what a view or a leaf costs is 0. `stored`: of values made at build time,
    `moved`: of transfers between two machines. `hosted`: the terms that the host of an accelerator computes. `total` is the sum of all."""

    seconds: Mapping[Term, float]
    stored: float
    moved: float
    hosted: frozenset[Term]
    total: float


def priced(roots: Sequence[Term], target: Target, binding: Mapping[str, int]) -> Priced | None:
    """The prices of a program as it stands, as `reprice` adds them up; None where the target cannot run it."""
    saturated, terms = saturated_of(roots)
    machines = Machines.of(target, binding, None)
    faces = machines.faces(saturated, folded(saturated, target))
    solution = solve(faces.problem, DEFAULT)
    if solution is None:
        return None
    seconds = dict.fromkeys(terms, 0.0)
    apart = {FOLDED: 0.0, ITSELF: 0.0}
    for face in needed(faces.problem, solution.picks):
        index = solution.picks[face]
        origin, cost = faces.origins[face][index], faces.problem.classes[face][index].cost
        if origin.node >= 0:
            seconds[terms[origin.eclass]] += cost
        else:
            apart[origin.node] += cost
    hosted = frozenset(terms[number] for number in machines.hosted(faces, solution.picks))
    return Priced(seconds, apart[FOLDED], apart[ITSELF], hosted, solution.cost)


def devices_of(program: Program, target: Target, binding: Mapping[str, int]) -> dict[Term, str]:
    """The name of the target that computes each term of a program as it stands: `target`, or its host. What no node is needed for is where
    what it is made of is, or what reads it. Empty where there is no host, or they cannot run it.

    A term that both compute, since that takes less than a transfer, is `target`'s: a model has one node for it.
    """
    if target.host is None:
        return {}
    saturated, terms = saturated_of(program.roots)
    machines = Machines.of(target, binding, None)
    faces = machines.faces(saturated, folded(saturated, target))
    solution = solve(faces.problem, DEFAULT)
    if solution is None:
        return {}
    far = machines.computed(faces, solution.picks)
    found = {terms[number]: target.host if there else target.name for number, there in far.items()}
    order = list(program.terms())
    for term in order:
        near = next((found[operand] for operand in term.operands if operand in found), None)
        if near is not None:
            found.setdefault(term, near)
    for term in reversed(order):
        for operand in term.operands:
            found.setdefault(operand, found.get(term, target.host))
    return {term: found.get(term, target.host) for term in order}


class Devices:
    """The devices of the program that was asked for last: a job writes one with several options."""

    def __init__(self) -> None:
        self._last: tuple[Program, dict[Term, str]] | None = None

    def of(self, program: Program, target: Target, binding: Mapping[str, int]) -> dict[Term, str]:
        """As `devices_of`; target and binding are the same each time."""
        if self._last is None or self._last[0] is not program:
            self._last = program, devices_of(program, target, binding)
        return self._last[1]
