"""The steps about constants in an order that the checker admits: first what is computed of constants, and a number that was rounded before
what only moves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coset.ir.term import CONSTANT, Term, topological
from coset.proving.constants import rounds
from coset.proving.parts import UNDONE, moved_back
from coset.proving.steps import COMPUTED, ROUNDED, Step
from coset.rules.rule import Rule


def numbers_first(steps: Sequence[Step], rules: Mapping[str, Rule]) -> list[Step]:
    """The same steps, those about constants first. Where a constant that one program reshapes or transposes is what the other computes but
    for roundings, it is the constant itself that is, of what is computed moved back: a moved one stands for something already."""
    numbers = list(dict.fromkeys(step for step in steps if step.reason in (COMPUTED, ROUNDED)))
    moved = {step.right[0]: step for step in numbers if step.reason == COMPUTED and _is_moved(step.left[0])}
    before: dict[Term, list[Step]] = {}  # what says what a constant is
    further: dict[Step, list[Step]] = {}
    for step in numbers:
        home = moved.get(step.right[0]) if rounds(step.left[0]) else None
        if home is not None:
            step, *back = _moved_back(step, home.left[0], rules)
            further[step] = back
        before.setdefault(step.right[0], []).append(step)
    ordered: dict[Step, None] = {}
    waiting = [(step, False) for told in reversed(before.values()) for step in reversed(told)]
    entered: set[Step] = set()
    while waiting:
        step, ready = waiting.pop()
        if ready:
            ordered.update(dict.fromkeys([step, *further.get(step, ())]))
        elif step not in entered:
            entered.add(step)
            waiting.append((step, True))
            waiting += [(each, False) for leaf in topological(step.left) if leaf.op is CONSTANT for each in before.get(leaf, ())]
    rest = (step for step in steps if step.reason not in (COMPUTED, ROUNDED))
    return [*ordered, *rest]


def _is_moved(term: Term) -> bool:
    """Whether a term reshapes or transposes a constant, and does no more."""
    while term.op.name in UNDONE:
        term = term.operands[0]
        if term.op is CONSTANT:
            return True
    return False


def _moved_back(step: Step, home: Term, rules: Mapping[str, Rule]) -> list[Step]:
    """That a term moved back is the constant that `home` moves, as the step says of it, and the steps from that moved so to the term."""
    chain = []
    while home.op is not CONSTANT:
        chain.append(home)
        home = home.operands[0]
    back, steps = moved_back(step.left[0], chain, rules)
    return [Step(step.reason, (back,), (home,)), *steps]
