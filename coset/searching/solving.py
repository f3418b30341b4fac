"""The cheapest equal program of a task: search and extraction, region by region and zone by zone, and its constants computed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from coset.comparing.fold import SECONDS, fold, lost_among
from coset.egraph.chains import Entered, order_chains
from coset.egraph.doubled import double_constants
from coset.egraph.merging import merge_products
from coset.egraph.request import Phase
from coset.egraph.saturate import Saturation, saturate
from coset.egraph.saturated import Saturated
from coset.egraph.zeros import pad_constants
from coset.extract.cost import Printable
from coset.extract.gym import Named, render_problem, side_by_side
from coset.extract.placement import NOWHERE
from coset.extract.products import product_seconds
from coset.extract.select import Selection, reprice, select
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.stages import passed
from coset.ir.term import Term, topological
from coset.job.answer import save
from coset.rules.rule import Rule, permitted
from coset.searching.regionwise import Solved, solve
from coset.searching.task import Task, wanted_roots
from coset.searching.zones import split
from coset.targets.target import Target

MOST_REASONS = 6  # that an error lists
NEXT = ("numpy.random",)  # the modules that extraction and the comparison load
AT_LEAST = 1e-3  # s for a search, when those before it took all

Searched = dict[tuple[Term, ...], tuple[Saturation, Sequence[Entered]]]  # what was found, by roots


def solve_task(
    task: Task,
    phases: Sequence[Phase],
    printable: Printable | None = None,
    *,
    prices: Target | None = None,
    byte_price: float = 0.0,
    known: Searched | None = None,
) -> tuple[Solved, float]:
    """The cheapest equal program found, region by region, and how many seconds of it were search. Zones are searched by themselves.

    `prices`: a target with other numbers to choose by. `byte_price` (s/B) is added for each byte that an op writes. What is `known` from
    searches of this task and these phases is not searched again, and what is found now is added to it.
    """
    known = {} if known is None else known
    wanted = wanted_roots(task)

    def solved(roots: Sequence[Term], numerics: str, spent: float) -> tuple[Solved, float]:
        allowed = [phase.where(lambda rule: permitted(rule.numerics, numerics)) for phase in phases]
        return _solve(task, roots, allowed, printable, prices, byte_price, known, spent)

    if not task.job.zones:
        return _solve(task, wanted, phases, printable, prices, byte_price, known)
    pieces = split(task.program, wanted, task.job.zones)
    rest, seconds = solved(pieces.rest, task.job.numerics, 0.0)
    zones = []
    for zone, roots in zip(task.job.zones, pieces.zones, strict=True):
        found, seconds = solved(roots, zone.numerics, seconds)
        zones.append(found)
    return pieces.joined(rest, zones), seconds


def _solve(
    task: Task, wanted: Sequence[Term], phases: Sequence[Phase], printable: Printable | None, prices: Target | None, byte_price: float,
    known: Searched, spent: float = 0.0,
) -> tuple[Solved, float]:  # fmt: skip
    """As `solve_task`, of one piece, after `spent` seconds of search; with all seconds that were spent then."""
    seconds = spent
    target = prices or task.job.target
    problems: list[Named] = []
    watch = None if task.job.extraction_problem is None else problems.append

    def search(roots: Sequence[Term]) -> tuple[Saturation, Sequence[Entered]]:
        nonlocal seconds
        problems.clear()  # of regions that were not kept
        if tuple(roots) in known:
            return known[tuple(roots)]
        started = time.perf_counter()
        found = known[tuple(roots)] = search_roots(roots, phases, task, spent=seconds)
        seconds += time.perf_counter() - started
        if found[0].warning:
            task.job.progress(f"warning: {found[0].warning}; going on with the best program so far")
        task.job.progress(f"extracting from {found[0].enodes} e-nodes in {found[0].eclasses} classes")
        return found

    def choose(graph: Saturated) -> Selection:
        found = select(graph, target, task.binding, task.job.limits, printable=printable, watch=watch, byte_price=byte_price)
        task.job.watch.chosen(found.cost, found.input_cost)
        return found

    # a region's inputs would be taken for the program's, which are on the host
    price, whole = partial(reprice, target=target, binding=task.binding), target.host is not None
    if target.fusion is None or whole:
        solved = solve(wanted, search, choose, price, whole=whole)
    else:
        from coset.searching.planner import Planner  # plans of kernels: for targets whose programs are judged as a whole

        planner = Planner(target, task.binding, task.program, numerics=task.job.numerics, searches=not byte_price)
        solved = planner.planned(solve(wanted, search, choose, price, refine=planner.refine), wanted)
    if task.job.extraction_problem is not None and prices is None:
        save(task.job.extraction_problem, render_problem(side_by_side(problems)))
    return solved, seconds


def refuse_idle(target: Target, solved: Solved) -> None:
    """An accelerator that can run nothing is a mistake of who named it, or of its file; one that is not worth the transfers is none.
    Of whole programs: the body of a branch may well have nothing for it.

    Raises:
        CosetError: nothing of the program has a form on a target that has a host.
    """
    placement = solved.placement
    if placement.hosted and not placement.here and all(each.reason != NOWHERE for each in placement.hosted):
        reasons = "; ".join(f"`{each.op}`: {each.reason}" for each in placement.hosted[:MOST_REASONS])
        more = len(placement.hosted) - MOST_REASONS
        raise CosetError(
            f"the target `{target.name}` can run nothing of this program: {reasons}" + (f"; and {more} more" if more > 0 else ""),
            help=f"optimize for `{target.host}`, or give `{target.name}` kernels for these ops",
        )


def search_roots(roots: Sequence[Term], phases: Sequence[Phase], task: Task, *, spent: float = 0.0) -> tuple[Saturation, Sequence[Entered]]:
    """The e-graph of what equals `roots`, whose chains of products were ordered and whose products of one operand were merged first.
    Of the job's seconds so many were `spent` on other searches of it."""
    started = time.perf_counter()
    active = [rule for phase in phases for rule in phase.rules]
    ordering = order_chains(roots, active, product_seconds(task.job.target), task.binding)
    phases = [phase.where(ordering.keeps) for phase in phases]
    rows = task.job.target.merges
    merged = None if rows is None else merge_products(roots, active, rows.value)
    entered = [
        found for found in (ordering.entered, merged, double_constants(roots, active), pad_constants(roots, active)) if found is not None
    ]
    pairs = [pair for found in entered for pair in found.pairs]
    left = task.job.limits.seconds - spent - (time.perf_counter() - started)
    limits = replace(task.job.limits, seconds=max(left, AT_LEAST))
    return saturate(roots, phases, limits, equalities=pairs, logged=task.job.certified, watch=task.job.watch, loads=NEXT), entered


def finish(task: Task, solved: Solved) -> tuple[Program, int]:
    """The chosen program with its constants computed, and how many were. What a runtime is lost with is noted in the job."""
    count = len(task.program.roots)
    passed("extraction", task.program.with_sources(solved.terms[count:]).with_roots(solved.terms[:count]))
    exact, seconds = task.job.numerics == "exact", min(SECONDS, task.job.check_seconds)
    roots, folded = fold(solved.terms, solved.storable, task.program.source, runtime=task.runtime, exact=exact, seconds=seconds)
    for term, how in lost_among(topological(solved.terms)).items():
        reason = f"`{describe(term)}` of constants is left to whoever runs the model: {how}"
        if reason not in task.job.lost:
            task.job.lost.append(reason)
            task.job.progress(f"warning: {reason}")
    return passed("folding", task.program.with_sources(roots[count:]).with_roots(roots[:count])), folded


def keeps_every_bit(rule: Rule) -> bool:
    return rule.numerics.word == "exact" and not rule.numerics.exceptions
