"""Extraction for a target whose ops share kernels: regions are chosen anew by the kernels that they become, the whole is priced by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coset.egraph.saturated import ENode
from coset.extract.refine import MOST, Refined, refine
from coset.extract.select import Selection
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import Type
from coset.lowering.planning.plan import MOST_WALKS
from coset.pricing.judge import Judge, has_eights
from coset.pricing.plan_price import PlanPrices
from coset.searching.regionwise import PlanPrediction, Solved
from coset.targets.target import Target


class Planner:
    """What `solve` needs to choose by kernels, and what it says of the whole. A program that kernels cannot be planned for keeps what was
    chosen by the prices of single ops, and their predictions. Where it `searches` not, what was chosen stays and is only priced."""

    def __init__(self, target: Target, binding: Mapping[str, int], program: Program, *, numerics: str, searches: bool = True) -> None:
        self.searches, source, eights = searches, program.source, has_eights(program)

        def prices(walks: int = MOST_WALKS, *, lays: bool = False) -> PlanPrices:
            return PlanPrices(target, binding, walks, numerics=numerics, eights=eights, lays=lays)

        self.prices = prices(lays=True)
        self.judge, self.rough = (Judge(prices(walks), source) for walks in (MOST_WALKS, 1))
        self.whole = Judge(self.prices, source)
        self.refined: dict[int, Refined] = {}  # by the id of the selection, which `Refined` keeps alive

    def refine(self, selection: Selection) -> Selection:
        """The selection by kernels; as it is where they cannot be planned."""
        try:
            found = refine(selection, self.judge, self._least, rough=self.rough, most=MOST if self.searches else 0)
        except CosetError:
            return selection
        self.refined[id(found.selection)] = found
        return found.selection

    def _least(self, node: ENode, result: Type, operands: tuple[Type, ...]) -> float:
        return self.prices.least(node.op, node.attributes, result, operands)

    def planned(self, solved: Solved, roots: Sequence[Term]) -> Solved:
        """`solved` with what the kernels of it and of the input, `roots`, are predicted to take; the input where that takes less: regions
        are judged by themselves, and kernels reach over their borders."""
        found = [self.refined.get(id(part.selection)) for part in solved.parts]
        try:
            cost, input_cost = self.whole(solved.terms, solved.storable), self.whole(roots, frozenset())
        except CosetError:
            return solved
        bound = sum(0.0 if each is None else each.lower_bound * part.times for each, part in zip(found, solved.parts, strict=True))
        judged = sum(0 if each is None else each.judged for each in found)
        if cost > input_cost and self.searches:
            parts = tuple(replace(part, selection=_of_input(part.selection)) for part in solved.parts)
            solved, cost = replace(solved, terms=tuple(roots), storable=frozenset(), parts=parts), input_cost
        return replace(solved, planned=PlanPrediction(cost, input_cost, min(bound, cost), judged))


def _of_input(selection: Selection) -> Selection:
    """The selection that takes the e-nodes of the input program. Its terms are those of a region, which nobody needs again."""
    assert selection.choices is not None
    chosen: dict[int, int] = {}
    for number, index in selection.choices.saturated.source:
        chosen.setdefault(number, index)
    return replace(selection, chosen=chosen, storable=frozenset(), method="input")
