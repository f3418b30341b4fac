"""What is optimized and how it is searched: the job, the program that was read, the rules that take part, search and extraction."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coset.dialects
from coset.admission import EVERY_RULE, Admission
from coset.answer import save
from coset.deadline import USUAL
from coset.egraph.chains import Entered, order_chains
from coset.egraph.doubled import double_constants
from coset.egraph.growth import SILENT, Watch
from coset.egraph.limits import Limits
from coset.egraph.merging import merge_products
from coset.egraph.saturate import Saturation, saturate
from coset.egraph.saturated import Saturated
from coset.egraph.search import Phase
from coset.egraph.zeros import pad_constants
from coset.extract.cost import Printable
from coset.extract.gym import Named, render_problem, side_by_side
from coset.extract.placement import NOWHERE
from coset.extract.products import product_seconds
from coset.extract.select import Selection, reprice, select
from coset.feeds import Sample, bindings
from coset.fold import SECONDS, Runtime, fold, lost_among
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import Term, topological
from coset.kernels import kernel_errors
from coset.lowering.onnx.named import first_version
from coset.own_rules import OwnRules, own_rules, warn
from coset.regionwise import Solved, solve
from coset.rules.definition import definition_of, is_defined, is_kernel
from coset.rules.equation import NUMERICS_ORDER
from coset.rules.library import DEFAULT, load
from coset.rules.rule import Rule, permitted
from coset.rules.written import WrittenRule
from coset.targets.ops import check_ops
from coset.targets.target import Target, get_target, target_names
from coset.zones import Zone, split

if TYPE_CHECKING:
    from coset.inside import AsItCame, Inside

assert coset.dialects  # imported so that every op and definition is registered

Progress = Callable[[str], None]
COMPOSITE = "kernel"  # the dialect of composite kernels, and the phase that looks for them
LAST = "recognise"  # the phase of those rules, and of rules that need what they find
MOST_REASONS = 6  # that an error lists
WITNESS = "witness"  # the phase of rules that only certificates are made with
MOVING = "parts"  # the phase of those that run by themselves, where programs are compared part by part
NEXT = ("numpy.random",)  # the modules that extraction and the comparison load
AT_LEAST = 1e-3  # s for a search, when those before it took all
RUNTIME = "ort"  # the dialect of ONNX Runtime's own ops
PARTS = "part"  # the dialect of what definitions have in common, which no target runs alone


@dataclass(frozen=True)
class Job:
    """What is asked for: the arguments of `optimize`. `extraction_problem`: where to write what extraction chose from.
    `max_memory`: live bytes of activations that the result may take."""

    model: Any
    target: Target
    numerics: str
    limits: Limits
    rules: Sequence[str | Path | WrittenRule]
    dims: Mapping[str, int]
    progress: Progress
    extraction_problem: Path | None = None
    max_memory: int | None = None
    measure: int = 0  # further programs that are timed beside the one chosen
    certified: bool = False  # a certificate is made: the search keeps a log
    admission: Admission = EVERY_RULE  # which of the rules take part
    keep: tuple[str, ...] = ()  # values inside the model that survive under their names
    zones: tuple[Zone, ...] = ()  # values for which rules may promise less, or must promise more, than `numerics`
    drawn: bool = False  # the report has both programs as graphs, for the page that shows them
    watch: Watch = SILENT  # who is told how a search goes
    allow_assumed: bool = False  # whether rules of the user's may fire of which nothing is shown
    check_seconds: float = USUAL  # of the comparison with the original
    samples: Sequence[Sample] = ()  # inputs of the user's to compare on, beside drawn ones
    keep_functions: bool = False  # functions of an ONNX model's own stay calls; else their nodes take the place of these
    lost: list[str] = field(default_factory=list, compare=False)  # constants that the runtime was lost with, as they are found

    @property
    def weakest(self) -> str:
        """The weakest numerics that are allowed anywhere."""
        return max((self.numerics, *(zone.numerics for zone in self.zones)), key=NUMERICS_ORDER.index)

    def own(self) -> OwnRules:
        """The user's rules that take part, checked.

        Raises:
            CosetError: one is refuted, or nothing is shown of one and that is not allowed; a file has a mistake.
        """
        return own_rules(
            self.rules, allow_assumed=self.allow_assumed, seconds=self.limits.seconds, admits=self.admission.admits, progress=self.progress
        )


@dataclass(frozen=True)
class Task:
    """The program that was read and what it is searched with: `binding` gives numbers to its dim symbols; `runtime` computes its constants,
    where the result is for one. `functions`: those of the model's own that stay, smaller or as they came."""

    job: Job
    program: Program
    binding: Mapping[str, int]
    phases: Sequence[Phase]
    runtime: Runtime | None = None
    functions: Sequence[Inside | AsItCame] = ()


def usual_dims(program: Program, given: Mapping[str, int]) -> dict[str, int]:
    """Numbers to predict costs with: the first of `bindings`, and what is likely then of dims that only a run tells.

    Raises:
        CosetError: as `bindings`.
    """
    binding = dict(next(bindings(program, given)))
    likely: Mapping[str, dims.Dim] = program.source.get("likely", {})
    for name, dim in likely.items():
        if name not in binding and dims.symbols(dim) <= binding.keys():
            binding[name] = max(1, dims.evaluate(dim, binding))
    return binding


def phases_for(job: Job, newest: int) -> list[Phase]:
    """The rules that the job allows somewhere, where `newest` is the highest version of ONNX's ops that the result may use.

    Raises:
        CosetError: as `permitted_phases` and `Admission.check`; a target of the user's speaks of ops that there are not, or a kernel is
            said to be on a target that does not have it.
    """
    if job.numerics not in NUMERICS_ORDER:
        raise CosetError(f"there are no numerics `{job.numerics}`", help=f"one of: {', '.join(NUMERICS_ORDER)}")
    check_ops(job.target)
    run = [get_op(op).name for forms in _run_on(job.target) for op, found in forms.items() if found]  # read by that: they may be recognised
    composites = with_parts(op for op in run if op.startswith(f"{COMPOSITE}.") or is_kernel(op))
    own = job.own()
    warn(own, job.progress)
    phases = permitted_phases(own, job.weakest, lambda rule: _wanted(rule, job.target, newest, composites), sought=job.target.forms)
    if job.admission != EVERY_RULE:
        every = permitted_phases(own, NUMERICS_ORDER[-1], lambda _: True)
        job.admission.check(rule for phase in every for rule in phase.rules)
        phases = job.admission.phases(phases)
    for error in kernel_errors():
        raise error
    return phases


def permitted_phases(own: OwnRules, numerics: str, wanted: Callable[[Rule], bool], *, sought: Container[str] | None = None) -> list[Phase]:
    """The library's rules and the user's `own` ones that promise no less than `numerics` and are `wanted`, by phase.

    Recognition comes last: ops are looked for in all forms that the other phases found, and give them no new ones. Behind it come
    composite kernels with the movement around named ops that they need, where one is wanted: one of those that are `sought`, not only what
    they are made of; None: any.

    Raises:
        CosetError: there are no such numerics, or a file has a mistake.
    """
    if numerics not in NUMERICS_ORDER:
        raise CosetError(f"there are no numerics `{numerics}`", help=f"one of: {', '.join(NUMERICS_ORDER)}")
    written = [rule for rule in own.sources if isinstance(rule, WrittenRule)]
    library = load([*DEFAULT, *(path for path in own.sources if not isinstance(path, WrittenRule))], written=written)
    usable = [
        (phase.name, [own.assured(r) for r in phase.rules if permitted(r.numerics, numerics) and wanted(r)]) for phase in library.phases
    ]
    recognised = [rule for _, rules in usable for rule in rules if rule.recognises]
    plain = {name: tuple(rule for rule in rules if not rule.recognises) for name, rules in usable}
    named, composite = ([r for r in recognised if (r.dialect == COMPOSITE) is kind] for kind in (False, True))
    last, moving = (*plain.pop(LAST, ()), *named), plain.pop(COMPOSITE, ())
    for name in (WITNESS, MOVING):
        plain.pop(name, None)
    phases = [*(Phase(name, rules) for name, rules in plain.items()), Phase(LAST, last)]
    # movement around named ops is for those who ask for what they are parts of
    if not composite:
        return phases
    found = frozenset(str(rule.definition) for rule in composite)
    seeks = found if sought is None else frozenset(op for op in found if op in sought)
    return [*phases, Phase(COMPOSITE, (*moving, *composite), seeks)]


def with_witnesses(phases: Sequence[Phase], numerics: str = "reassociates") -> list[Phase]:
    """`phases` with the rules that certificates are made with and that promise no less than `numerics`, in the one that has most rules:
    what they are about arises there. Behind them is the phase of those about parts."""
    every = {phase.name: [rule for rule in phase.rules if permitted(rule.numerics, numerics)] for phase in load(DEFAULT).phases}
    given = list(phases) or [Phase(WITNESS, ())]
    place = max(range(len(given)), key=lambda at: len(given[at].rules))
    given[place] = replace(given[place], rules=(*every.get(WITNESS, ()), *given[place].rules))
    return [*given, Phase(MOVING, tuple(every.get(MOVING, ())))]


def with_parts(ops: Iterable[str]) -> set[str]:
    """`ops` and every defined op that their definitions are made of: none of them is found before its parts are."""
    found: set[str] = set()
    pending = sorted(ops)
    for name in pending:
        if not is_defined(get_op(name)):
            raise CosetError(f"`{name}` has no definition to be recognised by", help="`coset rules --ops` lists the definitions")
    while pending:
        name = pending.pop()
        if name not in found and is_defined(get_op(name)):
            found.add(name)
            pending += sorted(definition_of(get_op(name)).mentioned)
    return found


def _of_runtimes(spelled: Iterable[str]) -> list[str]:
    """Among ops with their numbers of operands the kernels of targets and what only those are made of."""
    names = {each.rpartition("/")[0] for each in spelled}
    return sorted(name for name in names if is_kernel(name) or name.partition(".")[0] == RUNTIME)


def _run_on(target: Target) -> list[Mapping[str, Any]]:
    """The forms of the target and of its host."""
    return [target.forms, *([] if target.host is None else [get_target(target.host).forms])]


def _wanted(rule: Rule, target: Target, newest: int, composites: AbstractSet[str]) -> bool:
    """Definitions are read from right to left only into ops that the target runs and the model's version of ONNX can hold, and into those
    that its `composites` are made of; a `kernel` only into those of the targets that it names. A rule that makes one, or a part of one, is
    for targets that run it."""
    if rule.definition is None:
        return set(_of_runtimes(rule.makes)) <= composites
    if not rule.recognises:
        return True
    kernel = {get_target(name).name for name in rule.targets if name in target_names()}
    if rule.targets and kernel.isdisjoint((target.name, *target.bases)):
        return False
    runs = rule.definition in target.forms or rule.dialect == target.dialect
    runs |= target.host is not None and rule.definition in get_target(target.host).forms
    return rule.dialect == PARTS or rule.definition in composites or (runs and first_version(rule.definition) <= newest)


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
        from coset.planner import Planner  # plans of kernels: for targets whose programs are judged as a whole

        planner = Planner(target, task.binding, task.program, numerics=task.job.numerics, searches=not byte_price)
        solved = planner.planned(solve(wanted, search, choose, price, refine=planner.refine), wanted)
    if task.job.extraction_problem is not None and prices is None:
        save(task.job.extraction_problem, render_problem(side_by_side(problems)))
    return solved, seconds


def wanted_roots(task: Task) -> tuple[Term, ...]:
    """What is searched: the program's roots, and what its dim symbols are read from."""
    return (*task.program.roots, *task.program.sources.values())


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
    exact, seconds = task.job.numerics == "exact", min(SECONDS, task.job.check_seconds)
    roots, folded = fold(solved.terms, solved.storable, task.program.source, runtime=task.runtime, exact=exact, seconds=seconds)
    for term, how in lost_among(topological(solved.terms)).items():
        reason = f"`{describe(term)}` of constants is left to whoever runs the model: {how}"
        if reason not in task.job.lost:
            task.job.lost.append(reason)
            task.job.progress(f"warning: {reason}")
    count = len(task.program.roots)
    return task.program.with_sources(roots[count:]).with_roots(roots[:count]), folded


def keeps_every_bit(rule: Rule) -> bool:
    return rule.numerics.word == "exact" and not rule.numerics.exceptions
