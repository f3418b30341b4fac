"""Which rules can fire at all: those whose left side is made of ops that the program has or that another such rule makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coset.egraph.request import Phase
    from coset.rules.rule import Rule


def relevant(phases: Sequence[Phase], ops: Iterable[str]) -> tuple[Phase, ...]:
    """The phases with the rules that can ever match; a phase sees what the phases up to itself make. One that seeks has none where it can
    find nothing."""
    known = set(ops)
    kept: list[Phase] = []
    for phase in phases:
        waiting = list(phase.rules)
        chosen: set[Rule] = set()
        while True:
            later = []
            for rule in waiting:
                if rule.reads <= known:
                    chosen.add(rule)
                    known |= rule.makes
                else:
                    later.append(rule)
            if len(later) == len(waiting):
                break
            waiting = later
        found = phase.where(chosen.__contains__)
        idle = phase.seeks is not None and not any(rule.recognises and rule.definition in phase.seeks for rule in chosen)
        kept.append(phase.where(lambda _: False) if idle else found)
    return tuple(kept)
