"""Steps of certificates, and how they are cut out of the log of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coset.comparing.fold import computed, fallback_for
from coset.egraph.saturate import Saturation
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.specialized import sized_term
from coset.ir.term import Term, rebuild
from coset.prove.closure import Closure
from coset.prove.contents import hashed
from coset.prove.kernel import DERIVED
from coset.prove.laws import support
from coset.rules.applied import matched, right_sides
from coset.rules.rule import Rule, decided


class Uncertified(CosetError):
    """There is no certificate, and why not."""


@dataclass(frozen=True)
class CertificateStep:
    """Each of `left` equals that of `right` at its place: by a rule; or, of one term, because it is `computed` (the right is its value),
    `rounded` (its value but for roundings) or a node that was kept, whose `meaning` the right one is. `apart`: the first of `left` becomes
    the right one where the others of the program after use it. `cited`: terms that show facts about
    numbers, equal to what the rule asks them of by then."""

    reason: Rule | str
    left: tuple[Term, ...]
    right: tuple[Term, ...]
    cited: tuple[Term, ...] = ()


def said(rule: Rule, root: Term) -> CertificateStep | None:
    """The rule at `root`; None where it does not hold there."""
    found = matched(rule, (root,))
    decision = None if found is None else decided(rule, *found)
    return None if found is None or decision is None else CertificateStep(rule, (root,), right_sides(rule, decision, found[1]))


COMPUTED, ROUNDED, MEANING, ENTERED, DIMS, APART = "computed", "rounded", "meaning", "entered", "dims", "apart"


Goals = Sequence[tuple[Term, Term]]


@dataclass
class Replay:
    """What a search found, as equations in order: those that were `entered`, then instances of rules; and what they join."""

    steps: list[CertificateStep]
    closure: Closure = field(default_factory=Closure)
    rests: dict[int, set[int]] = field(default_factory=dict)  # step -> earlier ones that show the facts that it asks for

    def add(self, step: CertificateStep) -> None:
        """One more step at the end, if the facts that it asks for are shown."""
        self.steps.append(step)
        self._play(len(self.steps) - 1)

    def _play(self, number: int) -> None:
        step, closure = self.steps[number], self.closure
        closure.enter((*step.left, *step.right))
        shown = _facts(step, closure)
        if shown is None:
            return  # no earlier step shows what it asks for
        if shown:
            self.rests[number] = closure.explain(shown)
            self.steps[number] = replace(step, cited=tuple(dict.fromkeys(term for pair in shown for term in pair)))
        for one, other in zip(step.left, step.right, strict=True):
            closure.join(one, other, number)

    def joins(self, goals: Goals) -> bool:
        """True when each pair is joined."""
        return all(self.closure.same(*goal) for goal in goals)

    def slice(self, goals: Goals) -> list[CertificateStep]:
        """The steps that join each pair, in order."""
        numbers: set[int] = set()
        waiting = list(self.closure.explain(goals))
        while waiting:
            number = waiting.pop()
            if number not in numbers:
                numbers.add(number)
                waiting += self.rests.get(number, ())
        return [self.steps[number] for number in sorted(numbers)]


def replay(found: Saturation, goals: Goals, entered: Sequence[CertificateStep] = ()) -> Replay:
    """The log of a search played again; a search that was ended from outside has none."""
    logged = () if found.decoder is None else found.decoder.instances()
    instances = (CertificateStep(each.rule, *zip(*each.pairs, strict=True)) for each in logged)
    played = Replay([*entered, *instances])
    played.closure.enter(term for goal in goals for term in goal)
    for number in range(len(played.steps)):
        played._play(number)
    return played


def slices_of(found: Saturation, every: Sequence[Goals], entered: Sequence[CertificateStep] = ()) -> list[list[CertificateStep]]:
    """For each list of goals the steps that join its pairs: of those that were `entered` as equalities, then instances in the order of the
    search.

    Raises:
        Uncertified: they do not, or a rule rests on what no certificate says.
    """
    played = replay(found, [goal for goals in every for goal in goals], entered)
    if not all(map(played.joins, every)):
        raise Uncertified("the log of the search does not join the result with the program")
    return list(map(played.slice, every))


def _facts(step: CertificateStep, closure: Closure) -> list[tuple[Term, Term]] | None:
    """The pairs of equal terms that show the facts which a step asks for, by the steps so far; None where they are not shown."""
    facts = [] if isinstance(step.reason, str) else [each for each in step.reason.facts if each[0] not in DERIVED]
    if not facts:
        return []
    assert isinstance(step.reason, Rule)
    found = matched(step.reason, step.left)
    assert found is not None, "an instance of the rule"
    pairs: list[tuple[Term, Term]] = []
    for fact, name in facts:
        shown = support(found[1][name], fact, closure.terms_of, lambda term: closure.find(closure.number[term]))
        if shown is None:
            return None
        pairs += shown
    return pairs


class Mapped:
    """Terms with others in place of some of their leaves, or of leaves that a function says, and of dim symbols."""

    def __init__(
        self, known: dict[Term, Term], leaf: Callable[[Term], Term] = lambda term: term, sizes: Mapping[str, Dim] | None = None
    ) -> None:
        self.known, self.leaf, self.sizes = known, leaf, sizes or {}

    def all(self, terms: Sequence[Term]) -> tuple[Term, ...]:
        """What the terms become. Each is built once."""
        stack = [(term, False) for term in terms]
        while stack:
            term, ready = stack.pop()
            if term in self.known:
                continue
            if not term.operands:
                self.known[term] = self.leaf(sized_term(term, (), self.sizes) if self.sizes else term)
            elif ready:
                operands = [self.known[operand] for operand in term.operands]
                self.known[term] = sized_term(term, operands, self.sizes) if self.sizes else rebuild(term, operands)
            else:
                stack.append((term, True))
                stack += [(operand, False) for operand in term.operands if operand not in self.known]
        return tuple(self.known[term] for term in terms)

    def step(self, step: CertificateStep) -> CertificateStep:
        """The same step over what its terms become."""
        return CertificateStep(step.reason, self.all(step.left), self.all(step.right), self.all(step.cited))


def hashed_value(term: Term) -> Term:
    """The value of a constant term, keyed by its bytes."""
    return hashed(computed(term, fallback_for(None)))
