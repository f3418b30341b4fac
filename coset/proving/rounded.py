"""The steps about constants in an order that the checker admits: first what is computed of constants, and a number that was rounded before
what only moves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coset.egraph.request import Phase
from coset.ir.term import CONSTANT, Term, topological
from coset.prove.certificate import Certificate
from coset.prove.folded import leaves_of
from coset.proving.constants import rounds
from coset.proving.parts import UNDONE, moved_back
from coset.proving.steps import APART, COMPUTED, ROUNDED, CertificateStep, Uncertified
from coset.rules.rule import Rule


def numbers_first(steps: Sequence[CertificateStep], rules: Mapping[str, Rule]) -> list[CertificateStep]:
    """The same steps, those about constants first, and before them what sets constants apart. Where a constant that one program reshapes or
    transposes is what the other computes but for roundings, or moves from what is, it is the constant itself that is, of what is computed
    moved back: a moved one stands for something already."""
    numbers = list(dict.fromkeys(step for step in steps if step.reason in (COMPUTED, ROUNDED)))
    inexact = _inexact(numbers)
    rests = {step for step in numbers if not inexact.isdisjoint(leaves_of(step.left[0]))}  # on what rounds
    moved = {step.right[0]: step for step in numbers if step.reason == COMPUTED and _is_moved(step.left[0]) and step not in rests}
    before: dict[Term, list[CertificateStep]] = {}  # what says what a constant is
    further: dict[CertificateStep, list[CertificateStep]] = {}
    for step in numbers:
        home = moved.get(step.right[0]) if rounds(step.left[0]) or step in rests else None
        if home is not None:
            step, *back = _moved_back(step, home.left[0], rules)
            further[step] = back
        before.setdefault(step.right[0], []).append(step)
    ordered: dict[CertificateStep, None] = {}
    waiting = [(step, False) for told in reversed(before.values()) for step in reversed(told)]
    entered: set[CertificateStep] = set()
    while waiting:
        step, ready = waiting.pop()
        if ready:
            ordered.update(dict.fromkeys([step, *further.get(step, ())]))
        elif step not in entered:
            entered.add(step)
            waiting.append((step, True))
            waiting += [(each, False) for leaf in topological(step.left) if leaf.op is CONSTANT for each in before.get(leaf, ())]
    apart = [step for step in steps if step.reason == APART]
    rest = (step for step in steps if step.reason not in (COMPUTED, ROUNDED, APART))
    return [*apart, *ordered, *rest]


def in_an_order(
    steps: Sequence[CertificateStep],
    phases: Sequence[Phase],
    write: Callable[[Sequence[CertificateStep]], Certificate],
    check: Callable[[Certificate], Any],
) -> tuple[Certificate, Any]:
    """The certificate that `write` makes of the steps and `check` accepts, and what that says of it: in the order in which they were found,
    else with those about constants first. `phases`: of the rules that the steps are of.

    Raises:
        Uncertified: it refuses both; the reason for the first.
    """
    try:
        certificate = write(steps)
        return certificate, check(certificate)
    except Uncertified as refused:
        if not any(step.reason in (COMPUTED, ROUNDED) for step in steps):
            raise
        try:
            certificate = write(numbers_first(steps, {rule.name: rule for phase in phases for rule in phase.rules}))
            return certificate, check(certificate)
        except Uncertified:
            raise refused from None


def _inexact(numbers: Sequence[CertificateStep]) -> set[Term]:
    """The constants that are computed with roundings, or moved from such."""
    found = {step.right[0] for step in numbers if rounds(step.left[0])}
    users: dict[Term, list[Term]] = {}
    for step in numbers:
        for leaf in leaves_of(step.left[0]):
            users.setdefault(leaf, []).append(step.right[0])
    waiting = list(found)
    while waiting:
        new = [value for value in users.get(waiting.pop(), ()) if value not in found]
        found.update(new)
        waiting += new
    return found


def _is_moved(term: Term) -> bool:
    """Whether a term reshapes or transposes a constant, and does no more."""
    while term.op.name in UNDONE:
        term = term.operands[0]
        if term.op is CONSTANT:
            return True
    return False


def _moved_back(step: CertificateStep, home: Term, rules: Mapping[str, Rule]) -> list[CertificateStep]:
    """That a term moved back is the constant that `home` moves, as the step says of it, and the steps from that moved so to the term."""
    chain = []
    while home.op is not CONSTANT:
        chain.append(home)
        home = home.operands[0]
    back, steps = moved_back(step.left[0], chain, rules)
    return [CertificateStep(step.reason, (back,), (home,)), *steps]
