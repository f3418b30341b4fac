"""Which rules an extracted program rests on, and how often: read off the history of the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coset.egraph.chains import Ordering
from coset.egraph.saturate import Saturation
from coset.extract.select import Selection
from coset.rules.rule import Rule


@dataclass(frozen=True)
class Usage:
    """A rule and how many e-nodes or equalities of the result it made."""

    rule: Rule
    count: int

    def summary(self) -> dict[str, Any]:
        """What the report prints for the rule."""
        numerics = self.rule.numerics
        promise = numerics.word + (f" except {', '.join(sorted(numerics.exceptions))}" if numerics.exceptions else "")
        return {"name": self.rule.name, "count": self.count, "numerics": promise, "assurance": self.rule.assurance}


def used_rules(saturation: Saturation, selection: Selection, ordering: Ordering) -> list[Usage]:
    """The rules that made a chosen e-node, or made a value of the input one with a cheaper one; and the rule of re-ordered chains.

    Where several rules made the same node the first in the order of the search counts. An upper bound, not a derivation: a
    proof (the certificate) may need fewer.
    """
    counts: Counter[int] = Counter()
    ordered, chain_rule = len(ordering.equalities), ordering.rule
    graph = saturation.graph
    for place in selection.chosen.items():
        made = saturation.origins.get(place)
        if made:
            counts[made[0]] += 1
    replaced = _replaced(graph.source, selection)
    for number, classes in saturation.collapses.items():
        hits = sum(c in replaced for c in classes)
        if hits:
            counts[number] += hits
    usages = [Usage(saturation.rules[number], count) for number, count in sorted(counts.items())]
    if chain_rule is not None and ordered:
        usages = [Usage(u.rule, u.count + (ordered if u.rule is chain_rule else 0)) for u in usages]
        if all(u.rule is not chain_rule for u in usages):
            usages.append(Usage(chain_rule, ordered))
    return sorted(usages, key=lambda u: u.rule.name)


def _replaced(source: Sequence[tuple[int, int]], selection: Selection) -> set[int]:
    """Classes of the input in which one of the input's own e-nodes was not chosen."""
    return {number for number, position in source if selection.chosen.get(number) != position}
