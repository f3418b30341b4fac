"""The partial matches of a rule in an e-graph: how much of its left side is there, and what is missing.

A left side is matched from its leaves to its root, each application at each class once, with the best few ways kept. What is missing
costs what it weighs: an op that few classes have tells more of where a rule was meant to match than one that most have. An op that has
a definition and is not there itself may be there in part: then its definition, read from right to left, is matched in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

from coset.egraph.request import Phase
from coset.egraph.saturated import ENode, Saturated
from coset.ir.op import get_op
from coset.ir.term import AttributeItems
from coset.ir.types import Type
from coset.rules import payloads
from coset.rules.pattern import Application, Pattern, Variable, applications
from coset.rules.refusal import Unmet, unmet, wrong_attributes
from coset.rules.rule import Rule

OTHERS = 4  # e-nodes of a class that are looked at in place of an op that it has not
KEPT = 6  # partial matches of an application at a class
TURNS = 3  # definitions inside definitions that are looked into
PLAIN = 0.3  # the weight of movement, which is everywhere
LEAF = 0.6  # the weight of a constant
REFUSED = 0.25  # what an equation or a condition that does not hold costs
INVENTED = 0.1  # what an op costs that rules made, and not the model: of equal forms the model's own is the one to speak of
FURTHER = 0.01  # each one more of them
INSERTED = 0.9  # what an op between two that should be neighbours costs
UPROOTED = 1.0  # what a place costs that has not the root of the left side: more likely it is an operand of one that has
UNEQUAL = 0.8  # what a variable that would have to be two values costs


@dataclass(frozen=True)
class AbsentApplication:
    """An application of the left side of `rule` that a class has not; `near`: its op is there, with other attributes than these."""

    rule: Rule
    pattern: Application
    eclass: int
    near: tuple[Unmet, ...] = ()


@dataclass(frozen=True)
class Unequal:
    """A variable of `rule` that stands for two values."""

    rule: Rule
    variable: str
    first: int
    second: int


@dataclass(frozen=True)
class Broken:
    """The left side of `rule` is all there, at `eclass`, and what it asks for does not hold."""

    rule: Rule
    eclass: int
    unmet: tuple[Unmet, ...]


@dataclass(frozen=True)
class UnknownFact:
    """The left side is all there and its conditions hold; a `fact` about numbers was not shown, or None where no rule came to act."""

    rule: Rule
    eclass: int
    fact: tuple[str, str] | None


Miss = AbsentApplication | Unequal | Broken | UnknownFact


@dataclass(frozen=True)
class Partial:
    """A match as far as it goes: what `matched` weighs and what it `lacks`, the class of each variable, the e-node of each application
    (by index; class and index there), and the misses."""

    matched: float
    lacks: float
    bindings: tuple[tuple[str, int], ...] = ()
    nodes: tuple[tuple[int, int, int], ...] = ()
    misses: tuple[Miss, ...] = ()

    @property
    def whole(self) -> bool:
        """Nothing is missing."""
        return not self.misses

    @property
    def share(self) -> float:
        """How much of the left side is there, 0 to 1."""
        total = self.matched + self.lacks
        return self.matched / total if total else 1.0

    @property
    def rank(self) -> tuple[float, int]:
        """What is smallest for the nearest match: much that is there speaks for a place, what is missing speaks twice against it."""
        return 2 * self.lacks - self.matched, len(self.misses)


@dataclass(frozen=True)
class Near:
    """A partial match of `rule` at the class `eclass`."""

    rule: Rule
    eclass: int
    partial: Partial

    @property
    def rank(self) -> tuple[float, int, int, str]:
        """What is smallest for the nearest place."""
        rooted = any(index == self.rule.left.index for index, _, _ in self.partial.nodes)
        cost, misses = self.partial.rank
        return cost + UPROOTED * (not rooted), misses, self.eclass, self.rule.name


@dataclass
class Matcher:
    """Partial matches in `graph`, where `makers` are the rules that read definitions from right to left, by the op that they make."""

    graph: Saturated
    makers: Mapping[str, Sequence[Rule]]
    edits: bool = True  # other ops may stand in place of what is not there; else only what is asked of them fails
    _by_op: dict[str, dict[int, list[int]]] = field(init=False)  # op/arity -> class -> positions
    _memo: dict[tuple[int, int, int, int, bool], tuple[Partial, ...]] = field(default_factory=dict)
    _weights: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_op = {}
        for number, nodes in enumerate(self.graph.nodes):
            for position, node in enumerate(nodes):
                self._by_op.setdefault(_key(node.op.name, len(node.children)), {}).setdefault(number, []).append(position)
        self._counts = Counter({name: len(classes) for name, classes in self._by_op.items()})

    def places(self, rules: Sequence[Rule], classes: Sequence[int] | None = None) -> list[Near]:
        """The partial matches of `rules`, nearest first: at the classes given, or at all that might have the root of a left side."""
        found = []
        for rule in rules:
            for number in self._roots(rule) if classes is None else classes:
                found += [Near(rule, number, partial) for partial in self._rooted(rule, number, TURNS) if partial.matched > 0]
        return sorted(found, key=lambda near: near.rank)

    def _roots(self, rule: Rule) -> list[int]:
        root = rule.pairs[0][0]
        there = self._by_op.get(_key(root.op.name, len(root.operands)), {})
        if there and root.op.name not in self.makers:
            return sorted(there)
        inner = {maker.left.op.name for maker in self.makers.get(root.op.name, ())}
        return sorted({*there, *(c for name, classes in self._by_op.items() if name.partition("/")[0] in inner for c in classes)})

    def _rooted(self, rule: Rule, eclass: int, turns: int) -> tuple[Partial, ...]:
        """The left side at a class, with what the rule asks of types and attributes."""
        if rule.roots > 1:
            return ()
        found = []
        for partial in self._at(rule, rule.left, eclass, turns):
            found.append(self._judged(rule, eclass, partial) if partial.whole else partial)
        return tuple(sorted(found, key=lambda each: each.rank)[:KEPT])

    def _judged(self, rule: Rule, eclass: int, partial: Partial) -> Partial:
        """With the equations and conditions that do not hold."""
        known = dict(partial.bindings)
        nodes = {index: self.graph.nodes[c][position] for index, c, position in partial.nodes}
        classes = {index: c for index, c, _ in partial.nodes}
        given: list[AttributeItems] = []
        for application in applications(rule.left):
            node = nodes[application.index]
            items = payloads.described(node.op, node.attributes, node.regions)
            if items is None:
                return replace(
                    partial, lacks=partial.lacks + REFUSED, misses=(AbsentApplication(rule, application, classes[application.index]),)
                )
            given.append(items)
        types: list[Type | None] = [self.graph.types[classes[index]] if index in rule.typed else None for index in range(len(given))]
        variables = [self.graph.types[known[name]] for name in rule.variables]
        wrong = unmet(rule, given, types, variables)
        for fact, name in rule.facts:
            holds = {"const": known[name] in self.graph.constant, "varying": known[name] not in self.graph.constant}.get(fact)
            if holds is False:
                wrong.append(Unmet(f"`{name}` is {_FACTS[fact]}", f"it is {_FACTS[_OTHER[fact]]}", (), None, name))
        if not wrong:
            return partial
        return replace(partial, lacks=partial.lacks + REFUSED + FURTHER * (len(wrong) - 1), misses=(Broken(rule, eclass, tuple(wrong)),))

    def _at(self, rule: Rule, pattern: Pattern, eclass: int, turns: int, *, between: bool = True) -> tuple[Partial, ...]:
        """The best matches of a pattern at a class; with one op `between` it and what it is an operand of, or none."""
        if isinstance(pattern, Variable):
            return (Partial(0.0, 0.0, ((pattern.name, eclass),)),)
        key = (id(rule), pattern.index, eclass, turns, between)
        found = self._memo.get(key)
        if found is None:
            self._memo[key] = (self._lacking(rule, pattern, eclass),)  # a class may be its own operand
            found = self._memo[key] = self._found(rule, pattern, eclass, turns, between)
        return found

    def _found(self, rule: Rule, pattern: Application, eclass: int, turns: int, between: bool) -> tuple[Partial, ...]:
        ways = [self._lacking(rule, pattern, eclass)]
        there = self._by_op.get(_key(pattern.op.name, len(pattern.operands)), {}).get(eclass, ())
        for position in there:
            node = self.graph.nodes[eclass][position]
            begin = self._begin(rule, pattern, eclass, position, node)
            ways += self._with_operands(rule, begin, list(zip(pattern.operands, node.children, strict=True)), turns)
        if not any(way.whole for way in ways):
            if turns:
                parts = self._in_part(rule, pattern, eclass, turns - 1)
                ways += [part for part in parts if not (there and any(isinstance(miss, UnknownFact) for miss in part.misses))]
            ways += self._in_place(rule, pattern, eclass, turns, between) if self.edits else ()
        best: dict[tuple[object, ...], Partial] = {}
        for way in sorted(ways, key=lambda each: each.rank):
            best.setdefault(way.bindings, way)
        return tuple(list(best.values())[:KEPT])

    def _with_operands(self, rule: Rule, begin: Partial, pairs: Sequence[tuple[Pattern, int]], turns: int) -> list[Partial]:
        """`begin` and the best matches of patterns at classes."""
        partials = [begin]
        for operand, child in pairs:
            joined = [_joined(rule, first, second) for first in partials for second in self._at(rule, operand, child, turns)]
            partials = sorted(joined, key=lambda each: each.rank)[:KEPT]
        return partials

    def _in_place(self, rule: Rule, pattern: Application, eclass: int, turns: int, between: bool) -> Iterator[Partial]:
        """Another op where one is not, over operands that match; no op there; or one more between."""
        others = [node for node in self.graph.nodes[eclass] if node.children and node.op is not pattern.op]
        others = sorted(others, key=lambda each: not each.original)[:OTHERS]
        for node in others if between else ():
            if len(node.children) == 1:
                wedged = Partial(0.0, INSERTED, (), (), (AbsentApplication(rule, pattern, eclass),))
                for partial in self._at(rule, pattern, node.children[0], turns, between=False):
                    yield _joined(rule, wedged, partial)
        inner = [operand for operand in pattern.operands if isinstance(operand, Application)]
        if not inner:
            return
        lost = Partial(0.0, self._weight(pattern), (), (), (AbsentApplication(rule, pattern, eclass),))
        for operand in inner:
            rest = sum(self._weight(each) for other in inner if other is not operand for each in applications(other))
            yield from self._with_operands(rule, replace(lost, lacks=lost.lacks + rest), [(operand, eclass)], turns)
        for node in others:
            if len(node.children) == len(pattern.operands):
                yield from self._with_operands(rule, lost, list(zip(pattern.operands, node.children, strict=True)), turns)
            elif len(inner) == 1:
                for child in dict.fromkeys(node.children):
                    yield from self._with_operands(rule, lost, [(inner[0], child)], turns)

    def _begin(self, rule: Rule, pattern: Application, eclass: int, position: int, node: ENode) -> Partial:
        """The node itself: attributes that the rule fixes by themselves are looked at here, the others when all is there."""
        weight = self._weight(pattern)
        wrong = wrong_attributes(rule, pattern, payloads.described(node.op, node.attributes, node.regions) or ())
        made = INVENTED if node.children and not node.original and pattern.op.name not in self.makers else 0.0
        if not wrong:
            return Partial(weight, made, (), ((pattern.index, eclass, position),))
        cost = max(REFUSED, weight / 2) + made
        return Partial(
            max(0.0, weight - cost), cost, (), ((pattern.index, eclass, position),), (AbsentApplication(rule, pattern, eclass, wrong),)
        )

    def _in_part(self, rule: Rule, pattern: Application, eclass: int, turns: int) -> Iterator[Partial]:
        """What of the definition of an op that is not there is there, with the variables that its operands stand for."""
        whole = self._size(pattern.op.name)
        for maker in self.makers.get(pattern.op.name, ()):
            if not isinstance(maker.right, Application) or maker is rule:
                continue
            for inner in self._rooted(maker, eclass, turns):
                if inner.matched <= 0:
                    continue
                misses = inner.misses or (UnknownFact(maker, eclass, next(iter(maker.facts), None)),)
                lacks = whole * (1 - inner.share) + (0 if inner.misses else REFUSED)
                bound = dict(inner.bindings)
                pairs = [
                    (outer, bound[own.name])
                    for outer, own in zip(pattern.operands, maker.right.operands, strict=False)
                    if isinstance(own, Variable) and own.name in bound
                ]
                yield from self._with_operands(rule, Partial(whole * inner.share, lacks, (), (), misses), pairs, turns)

    def _lacking(self, rule: Rule, pattern: Application, eclass: int) -> Partial:
        return Partial(0.0, sum(self._weight(node) for node in applications(pattern)), (), (), (AbsentApplication(rule, pattern, eclass),))

    def _weight(self, node: Application) -> float:
        return self._size(node.op.name, len(node.operands))

    def _size(self, op: str, arity: int | None = None) -> float:
        """What an op weighs: a defined one what the smallest of its definitions does."""
        if op not in self._weights:
            self._weights[op] = 1.0  # of an op that is defined by itself
            makers = [sum(self._weight(node) for node in applications(maker.left)) for maker in self.makers.get(op, ())]
            self._weights[op] = min(makers) if makers else self._rarity(op, arity or 0)
        return self._weights[op]

    def _rarity(self, op: str, arity: int) -> float:
        if not arity or get_op(op).has("movement"):
            return PLAIN if arity else LEAF
        classes = max(1, len(self.graph.nodes))
        return 1.0 + log(classes / (1 + self._counts[_key(op, arity)])) / log(1 + classes)


_FACTS = {"const": "a constant", "varying": "a value that inputs decide"}
_OTHER = {"const": "varying", "varying": "const"}


def _key(op: str, arity: int) -> str:
    return f"{op}/{arity}"


def _joined(rule: Rule, first: Partial, second: Partial) -> Partial:
    known = dict(first.bindings)
    misses: list[Miss] = [*first.misses, *second.misses]
    lacks = first.lacks + second.lacks
    for name, eclass in second.bindings:
        if known.setdefault(name, eclass) != eclass:
            misses.append(Unequal(rule, name, known[name], eclass))
            lacks += UNEQUAL
    return Partial(first.matched + second.matched, lacks, tuple(known.items()), first.nodes + second.nodes, tuple(misses))


def makers_in(phases: Sequence[Phase]) -> dict[str, list[Rule]]:
    """The rules that read definitions from right to left, by the op that they find."""
    found: dict[str, list[Rule]] = {}
    for phase in phases:
        for rule in phase.rules:
            if rule.definition is not None and rule.recognises:
                found.setdefault(rule.definition, []).append(rule)
    return found
