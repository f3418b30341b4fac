"""Extraction: the cheapest program of an e-graph on a target, as terms, never dearer than the input program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from coset.egraph.limits import Limits
from coset.egraph.saturated import ENode, Saturated
from coset.extract.cost import Pricer, Printable
from coset.extract.faces import FOLDED, ITSELF, Faces, Origin
from coset.extract.greedy import tree_order
from coset.extract.gym import Named
from coset.extract.heavy import without_heavy
from coset.extract.placement import Machines, Placement
from coset.extract.plain import is_constant, saturated_of
from coset.extract.problem import Choice, Picks, Problem, cost_of, needed
from coset.extract.solve import Solution, SolveEffort, solve
from coset.extract.storage import BROADCAST, Folded, folded, is_static
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.term import Term, intern
from coset.ir.types import AbsentType, Type
from coset.targets.target import Target

DEFAULT = SolveEffort()
Watch = Callable[[Named], None]


@dataclass(frozen=True)
class FaceChoices:
    """What a selection was chosen from: `picks` of `faces`, whose values made at build time are `constants`. `start`: the picks of the
    input program, where the target can run it."""

    saturated: Saturated
    faces: Faces
    constants: Folded
    picks: Picks
    start: Picks | None


@dataclass(frozen=True)
class Selection:
    """The chosen program: a term for each root, and what it is predicted to cost (s).

    `input_cost`: the input program under the same model (infinite when the target cannot run it as it is).
    `lower_bound`: no program of the e-graph costs less under the model. `method`: see `coset.extract.solve.Solution`, or
    `input` when the input itself is the best found. `chosen`: class -> index of the e-node taken for it (the one in
    memory where a class is used both there and as a view). `storable`: the constant terms below `terms` whose values are to be
    computed at build time and stored. `assumed`: dim symbols without a number, and the one taken. `placement`: what runs on the host of a
    target that has one. `choices`: to choose again by something else than these prices.
    """

    terms: tuple[Term, ...]
    cost: float
    input_cost: float
    lower_bound: float
    method: str
    chosen: Mapping[int, int]
    storable: frozenset[Term]
    assumed: Mapping[str, int] = field(default_factory=dict)
    placement: Placement = field(default_factory=Placement)
    choices: FaceChoices | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """How far the cost may be above the best of the e-graph, as a share of the cost."""
        return 0.0 if self.cost <= 0 else max(0.0, (self.cost - self.lower_bound) / self.cost)


def select(
    saturated: Saturated, target: Target, binding: Mapping[str, int], limits: Limits | None = None, *, effort: SolveEffort = DEFAULT,
    printable: Printable | None = None, watch: Watch | None = None, byte_price: float = 0.0,
) -> Selection:  # fmt: skip
    """The cheapest program found: `binding` gives numbers to the dim symbols.

    Of `limits` the seconds hold here too. `printable` says why an op cannot be printed (None: it can), where the printer
    is narrower than the target, for example for an old opset. `watch` is shown the problem that was solved. With a `byte_price` (s/B)
    the program is the cheapest where each byte that an op writes costs so much more; its cost and the bound are still those in seconds.

    Raises:
        CosetError: a root has no form that the target can run; the ops without a legal form are named.
    """
    if limits is not None:
        effort = replace(effort, seconds=min(effort.seconds, limits.seconds))
    if target.fusion is not None:  # prices of single ops are a start, from which whole programs are judged: proofs of it say nothing
        effort = replace(effort, nodes=None)
    machines = Machines.of(target, binding, printable)
    pricer = machines.pricer
    constants = folded(saturated, target)
    saturated = without_heavy(saturated, partial(machines.runs, saturated), constants.classes)
    constants, faces, start, solution = _with_constants(saturated, machines, constants, effort)
    if watch is not None:
        watch(Named(faces.problem, [[_name(saturated, origin) for origin in origins] for origins in faces.origins]))
    if byte_price:
        priced = solve(_priced(saturated, faces, pricer, byte_price), effort, start=solution.picks)
        assert priced is not None, "a solution is one at any price"
        cost = cost_of(faces.problem, priced.picks)
        if cost > solution.cost:
            solution = replace(solution, picks=priced.picks, cost=cost, method="search")  # best at that price, in seconds only good
    input_cost = _input_cost(saturated, machines, effort)
    method = "input" if solution.picks == start and solution.method not in ("pruned", "exact") else solution.method
    choices = FaceChoices(saturated, faces, constants, solution.picks, start)
    terms, chosen, storable = rebuilt(choices, solution.picks)
    placement = machines.placement(saturated, faces, constants, solution.picks)
    return Selection(
        terms, solution.cost, input_cost, solution.lower_bound, method, chosen, storable, pricer.sizes.assumed, placement, choices
    )


def _with_constants(
    saturated: Saturated, machines: Machines, constants: Folded, effort: SolveEffort
) -> tuple[Folded, Faces, Picks | None, Solution]:
    """The problem with its solution, and what it starts from; constants that are too large are stored if there is none without them.

    Raises:
        CosetError: there is none.
    """
    faces = machines.faces(saturated, constants)
    start = _source_picks(saturated, faces, effort)
    solution = _solved(machines, faces, effort, start)
    if solution is None:  # what is too large to store may have no kernel that makes it at run time
        constants = _stored_whatever_size(saturated, constants)
        faces = machines.faces(saturated, constants)
        start = _source_picks(saturated, faces, effort)
        solution = _solved(machines, faces, effort, start)
    if solution is None:
        raise _without_form(saturated, faces, machines)
    return constants, faces, start, solution


def _solved(machines: Machines, faces: Faces, effort: SolveEffort, start: Picks | None) -> Solution | None:
    """The solution of the problem of one machine or two, which starts from the input or from what is best without transfers."""
    placed, bound = machines.without_transfers(faces, effort)
    starts = [picks for picks in (start, placed) if picks is not None]
    best = min(starts, key=lambda picks: cost_of(faces.problem, picks), default=None)
    found = solve(faces.problem, effort, start=best)
    return found and replace(found, lower_bound=min(found.cost, max(found.lower_bound, bound)))


def _priced(saturated: Saturated, faces: Faces, pricer: Pricer, byte_price: float) -> Problem:
    """The problem where an op costs more by the bytes that it writes; what costs nothing (views, leaves) writes none."""
    classes = []
    for choices, origins in zip(faces.problem.classes, faces.origins, strict=True):
        sizes = [byte_price * pricer.sizes.bytes(saturated.types[origin.eclass]) if origin.node >= 0 else 0.0 for origin in origins]
        classes.append(tuple(Choice(e.cost + size if e.cost else 0.0, e.children) for e, size in zip(choices, sizes, strict=True)))
    return Problem(classes, faces.problem.roots)


def _name(saturated: Saturated, origin: Origin) -> str:
    """What a choice is, in a problem that is written out."""
    if origin.node == ITSELF:
        return "itself"
    return "folded" if origin.node == FOLDED else saturated.nodes[origin.eclass][origin.node].op.name


def reprice(terms: Sequence[Term], target: Target, binding: Mapping[str, int], *, effort: SolveEffort = DEFAULT) -> float:
    """Predicted seconds of a plain program, priced as `select` prices: shared terms once, constants nothing, views free.

    Infinite when the target cannot run it.
    """
    saturated, _ = saturated_of(terms)
    machines = Machines.of(target, binding, None)
    solution = solve(machines.faces(saturated, folded(saturated, target)).problem, effort)
    return float("inf") if solution is None else solution.cost


def _first_source(saturated: Saturated) -> dict[int, int]:
    """For each class of the input program the e-node of its first term there: acyclic, since operands come first."""
    first: dict[int, int] = {}
    for number, index in saturated.source:
        first.setdefault(number, index)
    return first


def _source_picks(saturated: Saturated, faces: Faces, effort: SolveEffort) -> Picks | None:
    """The input program as picks of the whole problem; None where the target cannot run it."""
    first = _first_source(saturated)
    kept = [
        [i for i, origin in enumerate(origins) if origin.node < 0 or first.get(origin.eclass) == origin.node] for origins in faces.origins
    ]
    classes = [[choices[i] for i in indices] for choices, indices in zip(faces.problem.classes, kept, strict=True)]
    solution = solve(Problem(classes, faces.problem.roots), effort)
    return None if solution is None else {number: kept[number][index] for number, index in solution.picks.items()}


def _input_cost(saturated: Saturated, machines: Machines, effort: SolveEffort) -> float:
    """The input program with every one of its terms paid, also those that the e-graph found equal to another or constant.

    Where the input has two equal terms, `source` does not say which of them a user reads: the first is taken.
    """
    place_of: dict[int, int] = {}
    types: list[Type] = []
    nodes: list[tuple[ENode, ...]] = []
    constant: set[int] = set()
    used: set[int] = set()
    for place, (number, index) in enumerate(saturated.source):
        node = replace(saturated.nodes[number][index], children=tuple(place_of[c] for c in saturated.nodes[number][index].children))
        used.update(node.children)
        types.append(saturated.types[number])
        nodes.append((node,))
        if is_constant(node, types[place], [c in constant or isinstance(types[c], AbsentType) for c in node.children]):
            constant.add(place)
        place_of.setdefault(number, place)
    roots = tuple(place_of[root] for root in saturated.roots)
    unused = [place for place in range(len(nodes)) if place not in used and place not in roots]
    views = {place: nodes[place][0].children for place in unused if nodes[place][0].op.name == BROADCAST}
    must = tuple(root for place in unused for root in views.get(place, (place,)))
    plain = Saturated(types, nodes, (*roots, *must), frozenset(constant), ())
    solution = solve(machines.faces(plain, folded(plain, machines.pricer.target)).problem, effort)
    return float("inf") if solution is None else solution.cost


def _stored_whatever_size(saturated: Saturated, constants: Folded) -> Folded:
    classes = frozenset(saturated.constant & constants.picks.keys())
    return Folded(classes, frozenset(number for number in classes if is_static(saturated, number)), constants.picks)


def rebuilt(choices: FaceChoices, picks: Picks) -> tuple[tuple[Term, ...], dict[int, int], frozenset[Term]]:
    """The terms of the roots under `picks`, operands first; class -> e-node taken for it; the terms that are to be stored."""
    saturated, faces, constants = choices.saturated, choices.faces, choices.constants
    terms: dict[int, Term] = {}
    made: dict[int, Term] = {}
    chosen: dict[int, int] = {}
    order = needed(faces.problem, picks)
    for face in order:
        origin = faces.origins[face][picks[face]]
        if origin.node == ITSELF:
            terms[face] = terms[origin.operands[0]]
        elif origin.node == FOLDED:
            terms[face] = _constant_term(saturated, constants.picks, origin.eclass, made)
        else:
            operands = tuple(terms[operand] for operand in origin.operands)
            terms[face] = _term(saturated, origin.eclass, origin.node, operands)
    for face in sorted(order):
        origin = faces.origins[face][picks[face]]
        if origin.node != ITSELF:
            chosen.setdefault(origin.eclass, constants.picks[origin.eclass] if origin.node == FOLDED else origin.node)
    for number in made:
        chosen.setdefault(number, constants.picks[number])
    storable = frozenset(term for number, term in made.items() if number in constants.stored)
    return tuple(terms[root] for root in faces.problem.roots), chosen, storable


def _term(saturated: Saturated, number: int, index: int, operands: tuple[Term, ...]) -> Term:
    node = saturated.nodes[number][index]
    return intern(node.op, operands, node.attributes, node.regions, saturated.types[number])


def _constant_term(saturated: Saturated, picks: Picks, number: int, made: dict[int, Term]) -> Term:
    stack = [number]
    while stack:
        current = stack[-1]
        children = saturated.nodes[current][picks[current]].children
        missing = [child for child in children if child not in made]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if current not in made:
            made[current] = _term(saturated, current, picks[current], tuple(made[child] for child in children))
    return made[number]


def _without_form(saturated: Saturated, faces: Faces, machines: Machines) -> CosetError:
    """Names the ops that stand between the roots and a program that the target can run: the program's own, where they do."""
    finite = _finite(faces.problem)
    own: dict[str, str] = {}
    made: dict[str, str] = {}  # by rules: no user knows them
    stack, seen = list(saturated.roots), set(saturated.roots)
    while stack:
        number = stack.pop()
        if number in finite:
            continue
        for index, node in enumerate(saturated.nodes[number]):
            if machines.runs(saturated, number, index):
                new = [child for child in node.children if child not in seen]
                seen.update(new)
                stack.extend(new)
            else:
                types = tuple(saturated.types[child] for child in node.children)
                sample = intern(node.op, (), node.attributes, node.regions, saturated.types[number])
                reasons = own if node.original else made
                reasons.setdefault(describe(sample), machines.pricer.why_illegal(node.op, node.attributes, types))
    listed = "; ".join(f"`{name}`: {reason}" for name, reason in sorted((own or made).items()))
    return CosetError(
        f"the target `{machines.pricer.target.name}` cannot run this program: {listed or 'a root needs itself'}",
        help="choose another target, or add a rule that rewrites the op into ops which the target has",
    )


def _finite(problem: Problem) -> set[int]:
    return set(tree_order(problem, [1] * len(problem.classes))[1])
