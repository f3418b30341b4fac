"""What a search did, as ground instances of rules: raw on the search's side, decoded into terms on demand.

An iteration's matches are read before any of them is applied: their classes are then those that the matches bound, and no union of this
iteration has touched them. Each class stands for one term, the first that was seen of it. So a match is an instance over terms that were
there before it, and earlier instances (with congruence) show that what it bound is what its terms are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coset.egraph.tables import Payload
from coset.ir.op import Op
from coset.ir.term import Term, intern
from coset.ir.types import Type
from coset.rules.applied import right_sides
from coset.rules.equation import Decision
from coset.rules.pattern import Pattern, Variable
from coset.rules.rule import Rule, decided

if TYPE_CHECKING:
    from coset.egraph.search import Search

Node = tuple[str, tuple[int, ...], int]  # constructor, operands by number of their term, payload
Match = tuple[int, tuple[int, ...], tuple[int, ...]]  # rule, terms of its classes, key


@dataclass
class Log:
    """`nodes`: the terms that classes stand for, operands first. `matches`: in the order in which they were found."""

    nodes: list[Node] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)


@dataclass
class Recorder:
    """Writes the log of a search, in its process."""

    log: Log = field(default_factory=Log)
    term_of: dict[Any, int] = field(default_factory=dict)  # class -> its term
    seen: set[Match] = field(default_factory=set)

    def record(self, search: Search) -> None:
        """Note the matches that wait and have a plan. Those that a limit leaves for later are true as well."""
        tables, read = search.engine.frozen()
        self._represent(search, tables, read)
        terms, seen, matches = self.term_of, self.seen, self.log.matches
        situations = search.situations(tables)
        for frame in search.frames:
            for row in tables[frame.match].rows:
                inputs = row.inputs
                number = read(inputs[0])
                key = tuple(map(read, situations[inputs[-1]][1 : 1 + frame.width]))
                if search.plans.get(number, {}).get(key) is None:
                    continue
                match = (number, tuple([terms[value] for value in inputs[1:-1]]), key)
                if match not in seen:
                    seen.add(match)
                    matches.append(match)

    def _represent(self, search: Search, tables: Mapping[str, Any], read: Any) -> None:
        """Give a term to each class that has none."""
        terms, nodes = self.term_of, self.log.nodes
        waiting: list[tuple[Any, str, tuple[Any, ...], Any]] = []
        for name, (_, arity) in search.tables.constructors.items():
            if name in tables:
                for row in tables[name].rows:
                    if row.output not in terms:
                        inputs = row.inputs
                        waiting.append((row.output, name, tuple(inputs[:arity]), inputs[arity]))
        while waiting:
            late = []
            for each in waiting:
                value, name, operands, payload = each
                if value in terms:
                    continue
                found = [terms.get(operand) for operand in operands]
                if None in found:
                    late.append(each)
                    continue
                terms[value] = len(nodes)
                nodes.append((name, tuple(found), read(payload)))  # type: ignore[arg-type]
            assert len(late) < len(waiting), "a class has no finite term"
            waiting = late


@dataclass(frozen=True)
class AppliedRule:
    """A rule at terms: `pairs` are the roots of its left side with what they equal."""

    rule: Rule
    pairs: tuple[tuple[Term, Term], ...]


@dataclass
class Decoder:
    """Turns a log into instances. `rules` and `payloads` are by number; `constructors`: name -> (op, arity)."""

    log: Log
    rules: Sequence[Rule]
    payloads: Sequence[Payload]
    constructors: Mapping[str, tuple[Op, int]]
    terms: list[Term] = field(default_factory=list)
    # situations are few where matches are many: each is typed and decided once
    types: dict[tuple[Op, tuple[Type, ...], int], Type] = field(default_factory=dict)
    decisions: dict[tuple[int, tuple[int, ...], tuple[Type, ...]], Decision | None] = field(default_factory=dict)

    def instances(self) -> Iterator[AppliedRule]:
        """The matches as instances, in order."""
        for name, operands, payload in self.log.nodes[len(self.terms) :]:
            op, _ = self.constructors[name]
            self.terms.append(self._made(op, tuple(self.terms[operand] for operand in operands), payload))
        for number, classes, key in self.log.matches:
            yield self._instance(number, [self.terms[place] for place in classes], key)

    def _made(self, op: Op, operands: tuple[Term, ...], payload: int) -> Term:
        attributes, regions = self.payloads[payload]
        situation = (op, tuple(operand.type for operand in operands), payload)
        if situation not in self.types:
            self.types[situation] = op.infer(situation[1], dict(attributes))
        return intern(op, operands, attributes, regions, self.types[situation])

    def _instance(self, number: int, classes: Sequence[Term], key: tuple[int, ...]) -> AppliedRule:
        rule = self.rules[number]
        given = dict(zip(rule.variables, classes[len(rule.typed) :], strict=True))
        left: dict[int, Term] = {}

        def construct(pattern: Pattern) -> Term:
            if isinstance(pattern, Variable):
                return given[pattern.name]
            operands = tuple(construct(operand) for operand in pattern.operands)
            made = left[pattern.index] = self._made(pattern.op, operands, key[pattern.index])
            return made

        roots = [construct(root) for root, _ in rule.pairs]
        situation = (number, key, tuple(given[name].type for name in rule.variables))  # what the types on the left follow from
        if situation not in self.decisions:
            self.decisions[situation] = decided(rule, left, given)
        decision = self.decisions[situation]
        assert decision is not None, f"{rule.name} fired where it does not hold"
        return AppliedRule(rule, tuple(zip(roots, right_sides(rule, decision, given), strict=True)))
