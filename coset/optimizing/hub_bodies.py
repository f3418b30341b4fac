"""Bodies of StableHLO's control flow, each optimized as a program of its own: what `coset/optimizing/bodies.py` is for ONNX.

A body is compared with its original on inputs of its own. What is the same constant in each turn, or in each branch, is seen inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from coset.dialects.hub.region_terms import is_closed
from coset.ir.program import Program
from coset.ir.term import INPUT, Region, Term, input_term, intern, rewritten, topological
from coset.ir.types import TensorType
from coset.job.job import Job
from coset.optimizing.body_search import FEWEST, BodySearch
from coset.optimizing.formats import Flow
from coset.searching.inside import Inside

BRANCHES = ("stablehlo.if", "stablehlo.case")
LOOP = "stablehlo.while"


class HubBodies(BodySearch):
    """The bodies of one StableHLO program, equal ones looked at once; what comes when the time is up stays. `flow` gives what is done for
    a body."""

    def __init__(self, job: Job, flow: Callable[[Job, Program], Flow]) -> None:
        super().__init__(job)
        self._flow = flow
        self._known: dict[Region, Region] = {}

    def of(self, roots: Sequence[Term]) -> tuple[Term, ...]:
        """`roots` with better bodies; `refused` says which rule of the user's breaks one, if one does."""
        return rewritten(roots, self._changed) if self.left > 0 else tuple(roots)

    def _changed(self, term: Term) -> Term:
        if term.op.name not in (*BRANCHES, LOOP):
            return term
        regions = tuple(self._better(region, term, known) for region, known in zip(term.regions, _constants(term), strict=True))
        return term if regions == term.regions else intern(term.op, term.operands, term.attributes, regions, term.type)

    def _better(self, region: Region, term: Term, known: Mapping[Term, Term]) -> Region:
        if known:
            region = _with(region, known)
        if region not in self._known:
            self._known[region] = region
            if self.left > 0:
                with self.spending(f"of {term.op.name}"):
                    self._known[region] = self._searched(region, term.op.name)
        return self._known[region]

    def _searched(self, region: Region, name: str) -> Region:
        """The best body found, where it is predicted to be faster or has fewer ops."""
        if not all(isinstance(each.type, TensorType) for each in (*region.parameters, *region.results)):
            return region
        if any(term.op.has("effect") or term.op.has("foreign") for term in topological(region.results)):
            return region
        inputs = tuple(input_term(f"p{number}", each.type) for number, each in enumerate(region.parameters))
        given = dict(zip(region.parameters, inputs, strict=True))
        roots = self.of(rewritten(region.results, lambda term: given.get(term, term)))
        back = {f"p{number}": each for number, each in enumerate(region.parameters)}

        def again(roots: Sequence[Term]) -> Region:
            named = rewritten(roots, lambda term: back[str(term.attribute("name"))] if term.op is INPUT else term)
            return Region(region.parameters, named)

        program = Program(inputs, tuple((f"y{number}", root) for number, root in enumerate(roots)))
        flow = self._flow(self.job(), program)
        if sum(flow.ops(program).values()) < FEWEST:
            return again(roots)
        found = self.best(flow).made
        before, after = (sum(flow.ops(each).values()) for each in (program, found.program))
        if after < before or found.solved.cost < found.solved.input_cost:
            self.told.append(Inside(f"of {name}", before, after, list(found.usage), body=True))
            roots = tuple(root for _, root in found.program.outputs)
        return again(roots)


def _constants(term: Term) -> list[dict[Term, Term]]:
    """For each body the parameters that are the same constant whenever it is entered."""
    if term.op.name in BRANCHES:
        operands = [term.operands[1:]] * len(term.regions)
    else:
        body = term.regions[1]
        stays = [result is parameter for result, parameter in zip(body.results, body.parameters, strict=False)]
        operands = [
            tuple(operand if still else each for operand, still, each in zip(term.operands, stays, body.parameters, strict=False))
        ] * 2
    pairs = (zip(region.parameters, own, strict=False) for region, own in zip(term.regions, operands, strict=True))
    return [{parameter: operand for parameter, operand in each if is_closed(operand)} for each in pairs]


def _with(region: Region, known: Mapping[Term, Term]) -> Region:
    """The body with constants in the places of parameters, but where a parameter itself is a result."""
    kept = known.keys() & set(region.results)
    results = tuple(
        result if result in kept else rewritten([result], lambda term: known.get(term, term))[0] for result in region.results
    )  # fmt: skip
    return Region(region.parameters, results)
