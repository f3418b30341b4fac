"""Which rules can fire at all: those whose left side is made of ops that the program has or that another such rule makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from coset.rules.pattern import Pattern, applications

if TYPE_CHECKING:
    from coset.egraph.search import Phase


def relevant(phases: Sequence[Phase], ops: Iterable[str]) -> tuple[Phase, ...]:
    """The phases with the rules that can ever match; a phase sees what the phases up to itself make."""
    known = set(ops)
    kept: list[Phase] = []
    for phase in phases:
        waiting, chosen = list(phase.rules), set()
        while True:
            later = []
            for rule in waiting:
                if all(_names(left) <= known for left, _ in rule.pairs):
                    chosen.add(rule.name)
                    for _, right in rule.pairs:
                        known |= _names(right)
                else:
                    later.append(rule)
            if len(later) == len(waiting):
                break
            waiting = later
        kept.append(replace(phase, rules=tuple(rule for rule in phase.rules if rule.name in chosen)))
    return tuple(kept)


@lru_cache(maxsize=8192)
def _names(pattern: Pattern) -> frozenset[str]:
    return frozenset({f"{node.op.name}/{len(node.operands)}" for node in applications(pattern)})
