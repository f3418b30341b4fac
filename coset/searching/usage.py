"""Which rules an extracted program rests on, and how often: read off the history of the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from coset.egraph.saturate import Saturation
from coset.rules.equation import EXCEPTIONS
from coset.rules.pattern import Variable, applications
from coset.rules.rule import Rule, permitted
from coset.searching.regionwise import RegionPart, Solved
from coset.searching.solving import keeps_every_bit


@dataclass(frozen=True)
class Usage:
    """A rule and how many e-nodes or equalities of the result it made."""

    rule: Rule
    count: int

    def summary(self) -> dict[str, Any]:
        """What the report prints for the rule."""
        numerics = self.rule.numerics
        promise = numerics.word + (f" except {', '.join(sorted(numerics.exceptions))}" if numerics.exceptions else "")
        return {
            "name": self.rule.name, "count": self.count, "numerics": promise, "assurance": self.rule.assurance,
            "range": dict(self.rule.grades),
        }  # fmt: skip


def together(several: Iterable[Iterable[Usage]]) -> list[Usage]:
    """What was used in several searches, by the names of the rules."""
    counts: Counter[Rule] = Counter()
    for usage in several:
        counts.update({each.rule: each.count for each in usage})
    return sorted((Usage(rule, count) for rule, count in counts.items()), key=lambda usage: usage.rule.name)


def exceptions_of(usage: Iterable[Usage]) -> frozenset[str]:
    """What a result that rests on these rules excepts; a word weaker than `reassociates` says nothing of infinities and NaN."""
    found: set[str] = set()
    for each in usage:
        found |= each.rule.numerics.exceptions if permitted(each.rule.numerics, "reassociates") else set(EXCEPTIONS)
    return frozenset(found)


def used_rules(solved: Solved) -> list[Usage]:
    """The rules that made a chosen e-node, or made a value of the input one with a cheaper one, perhaps with another of the input; and the
    rules of equalities that were entered.
    What a region uses counts at each of its places.

    Where several rules made the same node the first in the order of the search counts. This is no derivation: a proof (the certificate)
    may need fewer of them, and others that only led to what these matched.
    """
    saturation = solved.saturation
    counts: Counter[Rule] = Counter()
    for part in solved.parts:
        for place in part.chosen.items():
            for rule in _makers(saturation, place):
                counts[rule] += part.times
        replaced = {number for number, position in part.source.values() if part.chosen.get(number) != position}
        for number, classes in saturation.collapses.items():
            hits = sum(c in replaced for c in classes)
            if hits:
                counts[saturation.rules[number]] += hits * part.times
        for rule, hits in _merges(saturation, part):
            counts[rule] += hits * part.times
        for entered in solved.entered:
            if entered.rule is None:
                continue
            hits = sum(old in part.source and part.source[old][0] in replaced for old, _ in entered.pairs)
            if hits:
                counts[entered.rule] += hits * part.times
    for zone in solved.zones:
        counts.update({usage.rule: usage.count for usage in used_rules(zone)})
    return sorted((Usage(rule, count) for rule, count in counts.items()), key=lambda usage: usage.rule.name)


def _makers(saturation: Saturation, place: tuple[int, int]) -> Iterator[Rule]:
    """The rule that made an e-node, none for one of the input; where it only turned the operands of another round, what made that too."""
    made = saturation.origins.get(place)
    if not made:
        return
    rule = saturation.rules[made[0]]
    yield rule
    eclass, position = place
    nodes = saturation.graph.nodes[eclass]
    if _turns(rule):
        own = nodes[position]
        for other, node in enumerate(nodes):
            if other != position and node.op is own.op and sorted(node.children) == sorted(own.children):
                found = [saturation.rules[number] for number in saturation.origins.get((eclass, other), ())]
                yield from [each for each in found if not _turns(each)][:1]


def may_round(solved: Solved) -> bool:
    """Whether any rule was applied that may change bits, whether what it made was chosen, led to what was, or did neither."""
    saturation = solved.saturation
    fired = (saturation.rules[number] for number, times in saturation.fired.items() if times)
    entered = (each.rule for each in solved.entered if each.rule is not None)
    return not all(map(keeps_every_bit, (*fired, *entered))) or any(map(may_round, solved.zones))


def _merges(saturation: Saturation, part: RegionPart) -> Iterator[tuple[Rule, int]]:
    """For each class of several e-nodes of the input, of which the program needs one: the rule that made that one equal to another, and how
    many it stands for. A rule that only turns operands round is named if no other did it, because it makes each of them equal to itself."""
    given: dict[int, set[int]] = {}
    for eclass, position in part.source.values():
        given.setdefault(eclass, set()).add(position)
    for eclass, positions in given.items():
        chosen = part.chosen.get(eclass)
        if chosen not in positions or len(positions) == 1:
            continue
        places = [(eclass, chosen), *((eclass, other) for other in sorted(positions - {chosen}))]
        made = [saturation.rules[number] for place in places for number in saturation.merges.get(place, ())]
        if made:
            yield min(made, key=_turns), len(positions) - 1


def _turns(rule: Rule) -> bool:
    """Whether both sides have the same op above as many nodes."""
    left, right = rule.left, rule.right
    if isinstance(left, Variable) or isinstance(right, Variable):
        return False
    return left.op is right.op and len(list(applications(left))) == len(list(applications(right)))
