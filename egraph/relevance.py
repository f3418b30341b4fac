"""Which rules can fire at all: those whose left side is made of ops that the program has or that another such rule makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
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
            ready = [rule for rule in waiting if _names(rule.left) <= known]
            if not ready:
                break
            for rule in ready:
                chosen.add(rule.name)
                known |= _names(rule.right)
            waiting = [rule for rule in waiting if rule.name not in chosen]
        kept.append(replace(phase, rules=tuple(rule for rule in phase.rules if rule.name in chosen)))
    return tuple(kept)


def _names(pattern: Pattern) -> set[str]:
    return {f"{node.op.name}/{len(node.operands)}" for node in applications(pattern)}
