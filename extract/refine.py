"""Extraction where ops share kernels: what prices of single ops have chosen is the start, whole programs are judged from there on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial

from coset.egraph.saturated import ENode
from coset.extract.climb import Climbed, climb
from coset.extract.problem import Choice, Picks, Problem
from coset.extract.select import FaceChoices, Selection, rebuilt
from coset.extract.solve import SolveEffort, solve
from coset.ir.term import Term
from coset.ir.types import Type

JudgeTerms = Callable[[tuple[Term, ...], AbstractSet[Term]], float]
"""(roots, those that are stored) -> predicted seconds of the whole."""
Least = Callable[[ENode, Type, tuple[Type, ...]], float]
"""(op, its result, its operands) -> seconds that it adds to every program that has it."""
MOST = 200  # programs that are judged ..
WORK = 100_000  # .. and classes of all of them together: judging a program takes about 0.1 ms for each
BOUNDING = SolveEffort(states=0, nodes=0, seconds=5.0)  # most choices of the problem that bounds cost nothing: it falls apart


@dataclass(frozen=True)
class Refined:
    """A selection by what a judge says (s): what it takes, and what none of the e-graph undercuts. `judged`: programs that were looked
    at."""

    selection: Selection
    cost: float
    lower_bound: float
    judged: int


def refine(selection: Selection, judge: JudgeTerms, least: Least, *, rough: JudgeTerms | None = None, most: int = MOST) -> Refined:
    """The best program that a judge finds around the selection's and the input's, at most `most` of them tried; the selection where that
    is 0. Where a `rough` judge says something else of these two, what it finds is one more to begin with: plans that mend a program hide
    which change of it would be better.

    Raises:
        CosetError: as `judge`.
    """
    choices = selection.choices
    assert choices is not None, "a selection made by `select`"
    problem = choices.faces.problem

    def judged(picks: Picks, by: JudgeTerms = judge) -> float:
        terms, _, storable = rebuilt(choices, picks)
        return by(terms, storable)

    def climbed(starts: Sequence[Picks], by: JudgeTerms) -> Climbed:
        kind, limit = partial(_kind, choices), min(most, WORK // size)
        return climb(problem, starts, kind, partial(judged, by=by), most=limit)

    starts = [choices.picks, *([] if choices.start is None else [choices.start])]
    size = max(1, len(choices.picks))
    if not most:
        found = Climbed(choices.picks, judged(choices.picks), 1)
    else:
        further = 0
        if rough is not None and any(judged(start, rough) != judged(start) for start in starts):
            first = climbed(starts, rough)
            starts, further = [first.picks, *starts], first.judged
        found = climbed(starts, judge)
        found = replace(found, judged=found.judged + further)
    bound = min(found.cost, _bound(choices, least))
    if found.picks != choices.picks:
        terms, chosen, storable = rebuilt(choices, found.picks)
        method = "input" if found.picks == choices.start else "search"
        selection = replace(selection, terms=terms, chosen=chosen, storable=storable, method=method)
    return Refined(selection, found.cost, bound, found.judged)


def _kind(choices: FaceChoices, number: int, index: int) -> Hashable:
    origin = choices.faces.origins[number][index]
    if origin.node < 0:
        return origin.node
    node = choices.saturated.nodes[origin.eclass][origin.node]
    return node.op, node.attributes, node.regions, choices.saturated.types[origin.eclass]


def _bound(choices: FaceChoices, least: Least) -> float:
    """What no program of the e-graph undercuts: the cheapest where each op costs only what it adds to every program."""
    saturated = choices.saturated
    classes = []
    for options, origins in zip(choices.faces.problem.classes, choices.faces.origins, strict=True):
        costs = []
        for origin in origins:
            node = saturated.nodes[origin.eclass][origin.node] if origin.node >= 0 else None
            operands = () if node is None else tuple(saturated.types[child] for child in node.children)
            costs.append(0.0 if node is None else least(node, saturated.types[origin.eclass], operands))
        classes.append(tuple(Choice(cost, option.children) for cost, option in zip(costs, options, strict=True)))
    found = solve(Problem(classes, choices.faces.problem.roots), BOUNDING, start=choices.picks)
    return 0.0 if found is None else found.lower_bound
