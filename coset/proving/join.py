"""Two programs that are nearly the same term, shown equal piece by piece: between ops that both have in the same order.

What lies below such an op on both sides is one stand-in, as are large weights, so that equal pieces (the layers of a network) are one
search; each piece is shown from the stand-ins up, and congruence does the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import permutations
from math import prod

from coset.egraph.limits import Limits
from coset.egraph.saturate import saturate
from coset.egraph.search import Phase
from coset.ir.constants import INLINE_ELEMENTS, Constant
from coset.ir.evaluate import describe
from coset.ir.term import CONSTANT, INPUT, Term, constant, exact_key, input_term, make, rebuild, topological
from coset.ir.types import TensorType
from coset.prove.kernel import meaning_of
from coset.proving.steps import COMPUTED, MEANING, Mapped, Step, Uncertified, hashed_value, slices_of

PIECE = Limits(seconds=20.0, nodes=50_000, iterations=6)
ATTEMPTS = 3  # at cutting: ops above what is not joined are no ends of pieces in the next
WHOLE = 1_500  # terms of both programs, up to which one search is tried over all
MOST_AXES = 4  # of a constant whose orders are tried
Goal = tuple[Term, Term]


def join(goals: Sequence[Goal], phases: Sequence[Phase], *, limits: Limits = PIECE) -> list[Step]:
    """The steps that join each pair, by the rules of `phases`; exact ones are tried alone first.

    Raises:
        Uncertified: a pair is not seen to be equal.
    """
    goals = [goal for goal in goals if goal[0] is not goal[1]]
    if not goals:
        return []
    exact = [Phase(phase.name, tuple(rule for rule in phase.rules if rule.numerics.word == "exact")) for phase in phases]
    joining = _Joining(goals, (exact, phases), limits)
    for _ in range(ATTEMPTS):
        found = joining.by_pieces()
        if found is not None:
            return found
        if not joining.stuck:
            break
    return joining.whole()


@dataclass
class _Joining:
    goals: Sequence[Goal]
    tries: Sequence[Sequence[Phase]]
    limits: Limits
    sides: tuple[AbstractSet[Term], AbstractSet[Term]] = field(init=False)
    moved: list[Step] = field(init=False)
    solved: dict[Hashable, list[Step] | None] = field(default_factory=dict)
    stuck: list[Term] = field(default_factory=list)  # what stands above pieces that were not joined: taken for the same by mistake, maybe
    joined: int = 0  # pieces, in the last attempt

    def __post_init__(self) -> None:
        self.sides = (set(topological(one for one, _ in self.goals)), set(topological(other for _, other in self.goals)))
        self.moved = moved_constants(*self.sides)

    def whole(self) -> list[Step]:
        """The steps, everything in one search.

        Raises:
            Uncertified: it does not join them, or the programs are too large for that.
        """
        large = len(self.sides[0] | self.sides[1]) > WHOLE
        steps = None if large else self._searched(self.goals, self.moved)
        if steps is None:
            above = f", the first that was not is below `{describe(self.stuck[0])}`" if self.stuck else ""
            raise Uncertified(f"the two programs are not seen to be equal: {self.joined} pieces were joined{above}")
        return steps

    def by_pieces(self) -> list[Step] | None:
        """The steps, piece by piece; None where the programs have no ops in common to cut at, or a piece is not joined."""
        banned = {_kind(term) for term in self.stuck}
        pairs = [pair for pair in self._anchors() if _kind(pair[0]) not in banned]
        if not pairs:
            return None
        at = {one: number for number, (one, _) in enumerate(pairs)}
        other_at = {other: number for number, (_, other) in enumerate(pairs)}
        steps: list[Step] = []
        self.joined = 0
        below = [(one, *pair) for one, other in pairs for pair in zip(one.operands, other.operands, strict=True)]
        for user, one, other in [*below, *((None, *goal) for goal in self.goals)]:
            if one is not other and (at.get(one), other_at.get(other)) != (at.get(one, -1), at.get(one, -1)):
                found = self._piece(one, other, at, other_at, pairs)
                if found is None:
                    self.stuck += [] if user is None else [user]
                    return None
                steps += found
            self.joined += 1
        return list(dict.fromkeys(steps))

    def _anchors(self) -> list[Goal]:
        """Ops of both sides that are taken for the same, in order: those of one kind, of which both have as many."""
        left, right = self.sides
        kinds: tuple[dict[Hashable, list[Term]], dict[Hashable, list[Term]]] = ({}, {})
        for side, roots, own in zip(kinds, zip(*self.goals, strict=True), (left - right, right - left), strict=True):
            for term in topological(roots):
                if term in own and _is_anchor(term):
                    side.setdefault(_kind(term), []).append(term)
        return [
            pair
            for kind, terms in kinds[0].items()
            if len(terms) == len(kinds[1].get(kind, ()))
            for pair in zip(terms, kinds[1][kind], strict=True)
        ]

    def _piece(
        self, one: Term, other: Term, at: Mapping[Term, int], other_at: Mapping[Term, int], pairs: Sequence[Goal]
    ) -> list[Step] | None:
        stand = _StandIns(self.sides[0] & self.sides[1], pairs)
        goal = (stand.cut(one, at), stand.cut(other, other_at))
        moved = [
            Step(COMPUTED, tuple(map(stand.over, step.left)), tuple(map(stand.over, step.right)))
            for step in self.moved
            if step.left[0].operands[0] in stand.known and step.right[0] in stand.known
        ]
        key = (goal, tuple((step.left, step.right) for step in moved))
        if key not in self.solved:
            self.solved[key] = self._searched([goal], moved)
        found = self.solved[key]
        if found is None:
            return None
        put = Mapped({standin: actual for actual, standin in stand.known.items()})
        return [put.step(step) for step in found]

    def _searched(self, goals: Sequence[Goal], moved: Sequence[Step]) -> list[Step] | None:
        if all(one is other for one, other in goals):
            return []
        sides = [set(topological(side)) for side in zip(*goals, strict=True)]
        begun = [*_meanings(*sides), *moved]
        pairs = [(step.left[0], step.right[0]) for step in begun]
        roots = list(dict.fromkeys(term for goal in goals for term in goal))
        for phases in self.tries:
            found = saturate(roots, phases, self.limits, equalities=pairs, logged=True)
            try:
                return slices_of(found, [goals], begun)[0]
            except Uncertified:
                continue
        return None


class _StandIns:
    """A piece of both programs: what lies below its ends are inputs, large constants are any of their type, by order of first use."""

    def __init__(self, shared: AbstractSet[Term], pairs: Sequence[Goal]) -> None:
        self.shared, self.pairs = shared, pairs
        self.known: dict[Term, Term] = {}  # a term (of a pair: the left one) -> what stands for it

    def cut(self, root: Term, at: Mapping[Term, int]) -> Term:
        """`root` over stand-ins."""
        made: dict[Term, Term] = {}
        stack = [(root, False)]
        while stack:
            term, ready = stack.pop()
            if term in made:
                continue
            end = self._end(term, at)
            if end is not None:
                made[term] = end
            elif ready:
                made[term] = rebuild(term, [made[operand] for operand in term.operands])
            else:
                stack.append((term, True))
                stack += [(operand, False) for operand in reversed(term.operands) if operand not in made]
        return made[root]

    def over(self, term: Term) -> Term:
        """A movement of a constant, or the constant, over what stands for it."""
        return self.known.get(term) or rebuild(term, list(map(self.over, term.operands)))

    def _end(self, term: Term, at: Mapping[Term, int]) -> Term | None:
        if term in at:
            return self._standing(self.pairs[at[term]][0])
        if term.op is CONSTANT:
            large = term.tensor.dtype.kind == "float" and prod(term.tensor.static or ()) > INLINE_ELEMENTS
            return self._standing(term) if large else None  # definitions look at whole numbers
        if not isinstance(term.type, TensorType):
            return None
        return self._standing(term) if term.op is INPUT or (term in self.shared and _is_anchor(term)) else None

    def _standing(self, term: Term) -> Term:
        found = self.known.get(term)
        if found is None:
            name = f"joint {len(self.known)}"
            found = constant(Constant(term.tensor, name)) if term.op is CONSTANT else input_term(name, term.type)
            self.known[term] = found
        return found


def _kind(term: Term) -> Hashable:
    return term.op, exact_key(term.attributes), term.regions, term.type


def _is_anchor(term: Term) -> bool:
    """True for an op that is more than arithmetic element by element or movement: printing and reading keep those in order."""
    plain = term.op.has("elementwise") or term.op.has("movement") or term.op.has("leaf") or term.op.has("effect")
    return bool(term.operands) and not plain and isinstance(term.type, TensorType) and not term.op.has("foreign")


def _meanings(one: AbstractSet[Term], other: AbstractSet[Term]) -> list[Step]:
    """What the terms mean that only one side has, by their ops' definitions, down to ops without one."""
    stack = [term for side, rest in ((one, other), (other, one)) for term in topological(side) if term in side and term not in rest]
    found: dict[Term, Step] = {}
    while stack:
        term = stack.pop()
        if term in found or (meaning := meaning_of(term)) is None:
            continue
        found[term] = Step(MEANING, (term,), (meaning,))
        stack += [inner for inner in topological([meaning]) if inner not in found and inner is not term]
    return list(found.values())


def moved_constants(one: AbstractSet[Term], other: AbstractSet[Term]) -> list[Step]:
    """The constants of the second side that have the elements of one of the first in another order or shape."""

    def own(side: AbstractSet[Term], rest: AbstractSet[Term]) -> list[Term]:
        found = (term for term in side if term.op is CONSTANT and term.tensor.rank and term not in rest)
        return sorted(found, key=lambda term: str(term.attribute("value").key))

    by_size: dict[Hashable, list[Term]] = {}
    for term in own(one, other):
        by_size.setdefault((term.tensor.dtype, prod(term.tensor.static or ())), []).append(term)
    steps = []
    for term in own(other, one):
        for candidate in by_size.get((term.tensor.dtype, prod(term.tensor.static or ())), ()):
            moved = next((way for way in _ways(candidate, term) if hashed_value(way) is term), None)
            if moved is not None:
                steps.append(Step(COMPUTED, (moved,), (term,)))
                break
    return steps


def _ways(value: Term, like: Term) -> Iterator[Term]:
    """The movements of a constant that have the shape of another."""
    shape = like.tensor.dims
    if value.tensor.rank == like.tensor.rank <= MOST_AXES:
        for order in permutations(range(value.tensor.rank)):
            if tuple(value.tensor.dims[axis] for axis in order) == shape:
                yield make("stablehlo.transpose", (value,), {"permutation": order})
    if value.tensor.dims != shape:
        yield make("stablehlo.reshape", (value,), {"shape": shape})
