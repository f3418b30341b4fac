"""Two programs shown equal piece by piece: between terms of both that are taken for the same, from the inputs up.

Which those are is said by their values on an input, or, where nobody gives one, by their order. What lies below such a term on both sides
is one stand-in, as are large weights, so that equal pieces (the layers of a network) are one search; each piece is shown from the stand-ins
up, and congruence does the rest. A pair that is not shown is no end of a piece: those above it reach through it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from coset.dialects.onnx.kept import KEPT
from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import saturate
from coset.ir.constants import Constant
from coset.ir.evaluate import describe
from coset.ir.term import CONSTANT, INPUT, TUPLE, Term, constant, exact_key, get, input_term, rebuild, topological
from coset.ir.types import TensorType
from coset.proving.constants import Goal, in_one_form, is_large, numbers_in, paired, recomputed, same_value, wanted_constants
from coset.proving.meanings import meaning_of
from coset.proving.parts import PARTS, down, in_parts
from coset.proving.steps import COMPUTED, MEANING, ROUNDED, CertificateStep, Mapped, Replay, Uncertified, replay

PIECE = Limits(seconds=20.0, nodes=50_000, iterations=6)
SOON = 2.5  # s of a first look at a piece: rules that find it at all find most of it soon, and what they do not may be found by parts
DEEP = Limits(seconds=10.0, nodes=30_000, iterations=40)  # of what only moves things down, which ends by itself
MOST_FAILURES = 24  # searches that join nothing, until no more pieces are tried
WHOLE = 1_500  # terms of both programs, up to which one search is tried over all


Means = Callable[[Term], Term | None]
Alike = Callable[[Sequence[Goal]], Sequence[Goal]]
"""Terms of both sides that are probably equal, each pair behind those below it."""


def join(
    goals: Sequence[Goal], phases: Sequence[Phase], *, limits: Limits = PIECE, alike: Alike | None = None, means: Means = meaning_of
) -> list[CertificateStep]:
    """The steps that join each pair, by the rules of `phases`; exact ones are tried alone first. `means`: what definitions may be used.

    Raises:
        Uncertified: a pair is not seen to be equal.
    """
    rounded = any(rule.numerics.word != "exact" for phase in phases for rule in phase.rules)
    goals = [goal for goal in goals if goal[0] is not goal[1]]
    if not goals:
        return []
    goals, begun = in_one_form(goals)
    goals, moved, same = _with_own_constants(goals, begun, rounded=rounded)
    begun += same
    goals = [goal for goal in goals if goal[0] is not goal[1]]
    if not goals:
        return begun
    exact = [Phase(phase.name, tuple(rule for rule in phase.rules if rule.numerics.word == "exact")) for phase in phases]
    tries = [[phase for phase in each if phase.name != PARTS] for each in (exact, phases)]
    joining = _Joining(goals, tries, limits, moved, rounded, phases, means)
    found = joining.by_pieces(in_order(goals) if alike is None else alike(goals))
    return [*begun, *(joining.whole() if found is None else found)]


def joined_apart(
    goals: Sequence[Goal], pairs: Sequence[Goal], asked: Sequence[Goal], phases: Sequence[Phase], *, limits: Limits, seconds: float
) -> list[Goal]:
    """Those of `asked`, which are some of the `pairs` of terms under the goals, that rules join where the pairs below them are taken for
    equal: each by itself, until the `seconds` are over. Where all that are not of one kind over pairs are joined so, all are equal."""
    joining = _Joining(goals, ([phase for phase in phases if phase.name != PARTS],), limits, (), True, (), meaning_of)
    for one, other in pairs:
        number = joining.at[0].setdefault(one, len(joining.ends))
        if number == len(joining.ends):
            joining.ends.append(one)
        joining.at[1].setdefault(other, number)
    found = []
    end = time.monotonic() + seconds
    for one, other in asked:
        if time.monotonic() > end:
            break
        if joining.joins_apart(one, other):
            found.append((one, other))
    return found


def in_order(goals: Sequence[Goal]) -> list[Goal]:
    """Ops of both sides that are taken for the same because both have as many of the kind, in the order in which they stand."""
    orders = [list(topological(roots)) for roots in zip(*goals, strict=True)]
    shared = set(orders[0]) & set(orders[1])
    kinds: tuple[dict[Hashable, list[Term]], dict[Hashable, list[Term]]] = ({}, {})
    for side, order in zip(kinds, orders, strict=True):
        for term in order:
            if term not in shared and is_anchor(term):
                side.setdefault(kind_of(term), []).append(term)
    pairs = {
        other: one
        for kind, terms in kinds[0].items()
        if len(terms) == len(kinds[1].get(kind, ()))
        for one, other in zip(terms, kinds[1][kind], strict=True)
    }
    return [(pairs[term], term) for term in orders[1] if term in pairs]


def _with_own_constants(
    goals: Sequence[Goal], computed: Sequence[CertificateStep], *, rounded: bool
) -> tuple[list[Goal], list[CertificateStep], list[CertificateStep]]:
    """The goals, constants of the second side that are such of the first but for roundings replaced by those; the steps about constants
    that are moved, and those about the ones that were replaced. `computed`: how constants are computed."""
    one, other = (set(topological(side)) for side in zip(*goals, strict=True))
    found = paired(one, other, computed, rounded=rounded)
    put = Mapped({term: way for step, way, term in found if step.reason == ROUNDED})
    replaced = [(left, put.all([right])[0]) for left, right in goals]
    moved, same = ([step for step, _, _ in found if (step.reason == ROUNDED) is which] for which in (False, True))
    return replaced, moved, same


@dataclass
class _Joining:
    goals: Sequence[Goal]
    tries: Sequence[Sequence[Phase]]
    limits: Limits
    moved: Sequence[CertificateStep]  # constants of one side as movements of some of the other
    rounded: bool  # whether values may be rounded otherwise
    phases: Sequence[Phase]  # all, with that of what is moved down
    means: Means
    sides: tuple[AbstractSet[Term], AbstractSet[Term]] = field(init=False)
    shared: AbstractSet[Term] = field(init=False)
    solved: dict[Hashable, list[CertificateStep] | None] = field(default_factory=dict)
    at: tuple[dict[Term, int], dict[Term, int]] = field(default_factory=lambda: ({}, {}))  # of each side: joined pairs by number
    ends: list[Term] = field(default_factory=list)  # of joined pairs: the left terms
    stuck: list[Goal] = field(default_factory=list)  # pairs that were not joined
    failures: int = 0  # searches that joined nothing
    cut_short: bool = False  # whether the time ended one

    def __post_init__(self) -> None:
        self.sides = (set(topological(one for one, _ in self.goals)), set(topological(other for _, other in self.goals)))
        self.shared = self.sides[0] & self.sides[1]

    def whole(self) -> list[CertificateStep]:
        """The steps, everything in one search.

        Raises:
            Uncertified: it does not join them, or the programs are too large for that.
        """
        large = len(self.sides[0] | self.sides[1]) > WHOLE
        steps = None if large else self._searched(self.goals, self.moved, lambda term: term)
        if steps is None:
            words = [describe(term) for term in self.stuck[0]] if self.stuck else []
            first = f"; the first pair that was not is `{words[0]}` and `{words[1]}`" if words else ""
            raise Uncertified(f"the two programs are not seen to be equal: {len(self.ends)} pairs of terms were joined{first}")
        return steps

    def by_pieces(self, pairs: Sequence[Goal]) -> list[CertificateStep] | None:
        """The steps, piece by piece: what lies between the pairs, and the goals; None where a goal is not joined."""
        if not pairs:
            return None
        steps: dict[CertificateStep, None] = {}
        for one, other in pairs:
            found = self._pair(one, other)
            if found is None:
                self.stuck.append((one, other))
                if self.failures > MOST_FAILURES:
                    return None
                continue
            steps.update(dict.fromkeys(found))
            if one not in self.at[0]:
                self.at[0][one] = len(self.ends)
                self.ends.append(one)
            self.at[1][other] = self.at[0][one]
        for one, other in self.goals:
            found = self._pair(one, other)
            if found is None:
                self.stuck.append((one, other))
                return None
            steps.update(dict.fromkeys(found))
        return list(steps)

    def _pair(self, one: Term, other: Term) -> list[CertificateStep] | None:
        """The steps that join two terms: of one kind by their operands, else, or where those are not equal, from the pairs below; where
        that does not do, from those of them that are more than arithmetic, and from those that are below the ones next to it."""
        if self._are_joined(one, other):
            return []
        if kind_of(one) == kind_of(other) and len(one.operands) == len(other.operands):
            found: list[CertificateStep] = []
            for pair in zip(one.operands, other.operands, strict=True):
                steps = [] if self._are_joined(*pair) else self._piece(*pair, _StandIns(self.shared, self.ends))
                if steps is None:
                    break
                found += steps
            else:
                return found
        near = _StandIns(self.shared, self.ends)
        steps = self._piece(one, other, near)
        if steps is None:
            steps = self._piece(one, other, _StandIns(self.shared, self.ends, coarse=True))
        return self._piece(one, other, _StandIns(self.shared, self.ends, passed=frozenset(near.known))) if steps is None else steps

    def joins_apart(self, one: Term, other: Term) -> bool:
        """Whether rules join two terms over the joined pairs below them, one of which the second may be."""
        stand = _StandIns(self.shared, self.ends)
        end = self.ends[self.at[1][other]]
        if end is one:
            return self._piece(one, other, stand) is not None
        goal = (stand.cut(one, self.at[0]), stand.cut(end, self.at[0], whole=True))
        if (goal, ()) not in self.solved:
            put = Mapped({standin: actual for actual, standin in stand.known.items()})
            self.solved[goal, ()] = self._searched([goal], (), lambda term: put.all([term])[0])
        return self.solved[goal, ()] is not None

    def _are_joined(self, one: Term, other: Term) -> bool:
        return one is other or (one in self.at[0] and self.at[0][one] == self.at[1].get(other))

    def _piece(self, one: Term, other: Term, stand: _StandIns) -> list[CertificateStep] | None:
        goal = (stand.cut(one, self.at[0]), stand.cut(other, self.at[1]))
        moved = [
            CertificateStep(step.reason, tuple(map(stand.over, step.left)), tuple(map(stand.over, step.right)))
            for step in self.moved
            if step.left[0].operands[0] in stand.known and step.right[0] in stand.known
        ]
        key = (goal, tuple((step.left, step.right) for step in moved))
        put = Mapped({standin: actual for actual, standin in stand.known.items()})
        known = self.solved.get(key)
        if known is not None and (steps := self._reused(known, put)) is not None:
            return steps
        if known is None and key in self.solved:
            return None
        found = self.solved[key] = self._searched([goal], moved, lambda term: put.all([term])[0])
        self.failures += found is None
        return None if found is None else [put.step(step) for step in found]

    def _reused(self, steps: Sequence[CertificateStep], put: Mapped) -> list[CertificateStep] | None:
        """The steps of an equal piece at this one; None where the constants here have other values than they speak of."""
        found: list[CertificateStep] = []
        for step in map(put.step, steps):
            checked = same_value(step.left[0], step.right[0], rounded=self.rounded) if step.reason in (COMPUTED, ROUNDED) else step
            if checked is None:
                return None
            found.append(checked)
        return found

    def _searched(
        self, goals: Sequence[Goal], moved: Sequence[CertificateStep], actual: Callable[[Term], Term]
    ) -> list[CertificateStep] | None:
        """The steps that join the goals; `actual`: what a term is in the programs."""
        if all(one is other for one, other in goals):
            return []
        sides = [set(topological(side)) for side in zip(*goals, strict=True)]
        begun = [*_meanings(sides[0], sides[1], self.means), *moved]
        for seconds in (min(SOON, self.limits.seconds), self.limits.seconds):
            self.cut_short = False
            limits = replace(self.limits, seconds=seconds)
            found = self._by_rules(goals, begun, actual, limits)
            found = self._in_parts(goals, begun, actual, limits) if found is None else found
            if found is not None or not self.cut_short:
                return found
        return None

    def _in_parts(
        self, goals: Sequence[Goal], begun: Sequence[CertificateStep], actual: Callable[[Term], Term], limits: Limits
    ) -> list[CertificateStep] | None:
        """The steps that join the goals, of which one side is put together, part by part, and of others behind what slices, reshapes and
        transposes become further down; None where nothing is moved down, or that does not do."""
        phase = down(self.phases)
        if not phase.rules:
            return None
        rules = {rule.name: rule for phase in self.phases for rule in phase.rules}
        steps, parts = in_parts(goals, rules, self.means)
        entered = [*begun, *steps]
        roots = list(dict.fromkeys(term for goal in (*goals, *parts) for term in goal))
        pairs = [(step.left[0], step.right[0]) for step in entered]
        played = replay(saturate(roots, [phase], DEEP, equalities=pairs, logged=True), [*goals, *parts], entered)
        if len(played.steps) == len(begun):
            return None
        for goal in parts:
            if not played.closure.same(*goal):
                found = self._by_rules([goal], played.steps, actual, limits)
                if found is None:
                    return None
                for step in found:
                    played.add(step)
        return played.slice(goals) if played.joins(goals) else None

    def _by_rules(
        self, goals: Sequence[Goal], given: Sequence[CertificateStep], actual: Callable[[Term], Term], limits: Limits
    ) -> list[CertificateStep] | None:
        """The steps that join the goals by the rules, from those that are `given` on."""
        begun = list(given)
        roots = list(dict.fromkeys(term for goal in goals for term in goal))
        for phases in self.tries:
            rounded = self.rounded and phases is self.tries[-1]
            for _ in range(2):  # again with constants that it was found to compute
                pairs = [(step.left[0], step.right[0]) for step in begun]
                search = saturate(roots, phases, limits, equalities=pairs, logged=True)
                self.cut_short |= search.stop == "time"
                played = replay(search, goals, begun)
                known = len(begun)
                if not played.joins(goals):
                    begun += _values(played, goals, actual, rounded=rounded)
                if played.joins(goals):
                    return played.slice(goals)
                if len(begun) == known:
                    break
        return None


def _values(played: Replay, goals: Sequence[Goal], actual: Callable[[Term], Term], *, rounded: bool) -> list[CertificateStep]:
    """Steps about constants that one side has and the other computes, which are entered into what was played."""
    wanted = wanted_constants(goals, [step.right[0] for step in played.steps if step.reason == MEANING])
    if not wanted:
        return []
    closure = played.closure
    classes = [[closure.terms[number] for number in members] for members in closure.members if members]
    found: list[CertificateStep] = []
    for steps in recomputed(classes, wanted, actual, rounded=rounded, known=played.steps):
        for step in steps:
            played.add(step)
        found += steps
        if played.joins(goals):
            break
    return found


class _StandIns:
    """A piece of both programs: what lies below its ends are inputs, large constants are any of their type, by order of first use."""

    def __init__(
        self, shared: AbstractSet[Term], ends: Sequence[Term], *, coarse: bool = False, passed: AbstractSet[Term] = frozenset()
    ) -> None:
        """`ends`: left terms of joined pairs, by number. `coarse`: only those count that are more than arithmetic and movement; those
        `passed` do not."""
        self.shared, self.ends, self.coarse, self.passed = shared, ends, coarse, passed
        self.known: dict[Term, Term] = {}  # a term (of a pair: the left one) -> what stands for it

    def cut(self, root: Term, at: Mapping[Term, int], *, whole: bool = False) -> Term:
        """`root` over stand-ins, or, as a `whole`, what stands for it."""
        made: dict[Term, Term] = {}
        stack = [(root, False)]
        while stack:
            term, ready = stack.pop()
            if term in made:
                continue
            end = None if term is root and term.operands and not whole else self._end(term, at)
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
        if term in at and (not self.coarse or is_anchor(term)) and self.ends[at[term]] not in self.passed:
            return self._standing(self.ends[at[term]])
        if term.op is CONSTANT:
            return self._standing(term) if is_large(term) else None  # definitions look at whole numbers
        if not isinstance(term.type, TensorType):
            return None
        alike = term in self.shared and term not in self.passed and (is_anchor(term) or (term.op is KEPT and bool(term.operands)))
        return self._standing(term) if term.op is INPUT or alike else None

    def _standing(self, term: Term) -> Term:
        found = self.known.get(term)
        if found is None:
            name = f"joint {len(self.known)}"
            found = constant(Constant(term.tensor, name)) if term.op is CONSTANT else input_term(name, term.type)
            self.known[term] = found
        return found


def kind_of(term: Term) -> Hashable:
    """What a term is but for its operands."""
    return term.op, exact_key(term.attributes), term.regions, term.type


def is_anchor(term: Term) -> bool:
    """True for an op that is more than arithmetic element by element or movement: printing and reading keep those in order."""
    plain = term.op.has("elementwise") or term.op.has("movement") or term.op.has("leaf") or term.op.has("effect")
    return bool(term.operands) and not plain and isinstance(term.type, TensorType) and not term.op.has("foreign")


def _meanings(one: AbstractSet[Term], other: AbstractSet[Term], means: Means) -> list[CertificateStep]:
    """What the terms mean that only one side has, by their ops' definitions, down to ops without one."""
    stack = [term for side, rest in ((one, other), (other, one)) for term in topological(side) if term in side and term not in rest]
    found: dict[Term, CertificateStep] = {}
    while stack:
        term = stack.pop()
        if term in found or (meaning := means(term)) is None:
            continue
        found[term] = CertificateStep(MEANING, (term,), (meaning,))
        stack += [get(meaning, index) for index in range(len(meaning.operands))] if meaning.op is TUPLE else []
        stack += [inner for inner in topological([meaning]) if inner not in found and inner is not term]
    return [*found.values(), *numbers_in(step.right[0] for step in found.values())]
