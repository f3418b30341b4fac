"""What is shown of the rules of an entry beyond drawn instances: for all sizes, or by identities of polynomials."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

from coset.ir.errors import CosetError
from coset.prove.deadline import Time
from coset.prove.entry_tests import LEAST
from coset.prove.fields import Identity, NoQuotient, identical
from coset.prove.sample import drawn, results
from coset.prove.verify import NATIVE, NOTHING_COVERED, SECONDS, SLOW, UNTYPED, prove
from coset.rules.rule import Rule
from coset.rules.typecheck import likeness

MOST_FORMS = 8  # of an entry for which identities of polynomials are tried


AGREEING = 5.0  # s of the processor, to say what identities of polynomials say of rules that are tested only


def agreed(rules: Sequence[Rule], seed: int) -> str:
    """What identities of polynomials say of rules that are tested only, if they are about any."""
    if any(rule.numerics.word not in ("reassociates", "real") for rule in rules):
        return ""
    found = [identity for rule in rules[:MOST_FORMS] for identity in _identities(rule, seed)]
    if not found or len(rules) > MOST_FORMS or not all(found):
        return ""
    worst = max(identity.error for identity in found if identity is not None)
    return f", {len(found)} polynomial identities at {found[0].points if found[0] else 0} points each (a false one: below {worst:.0e})"


def _identities(rule: Rule, seed: int) -> list[Identity | None]:
    """What the sides of small instances of a rule are as polynomials: None where they differ or are none."""
    found: list[Identity | None] = []
    for pair in drawn(rule, seed, LEAST):
        for left, right in results(pair):
            try:
                found.append(identical(left, right, seed))
            except (NoQuotient, CosetError):
                found.append(None)
    return found or [None]


def shown_of(rules: Sequence[Rule], *, seconds: float = SECONDS) -> tuple[str, str]:
    """What can be shown of all `rules` for all sizes (`proved`, `bounded` or nothing), and how, or what is in the way."""
    time = Time.of(seconds)
    cases, solver, gaps, covered, forms = 0, False, set[str](), NOTHING_COVERED, 0
    shown = set[Hashable]()  # what forms are like of which all was shown with any op in the place of theirs
    silent, spoken = dict[str, str](), set[str]()  # forms without an instance, by what they are but for their op, and those shown of any op
    for rule in rules:
        like = likeness(rule)
        if like in shown:
            continue
        proof = prove(rule, seconds=max(0.1, time.left))
        if not proof.cases and proof.reason.startswith((UNTYPED, NATIVE)):
            return "", f"no proof: {proof.reason}"
        if not proof.cases and proof.reason == SLOW:
            return "", f"no proof: {rule.name} {SLOW}"
        if not proof.cases:
            if not proof.vacuous:
                silent.setdefault(_without_op(rule), rule.name.removeprefix(rule.family) or "it")
            continue
        if not proof.assurance:
            return "", f"no proof: {rule.name if len(rules) > 1 else ''} {proof.reason}".replace("  ", " ")
        if proof.any_op:
            shown.add(like)
            spoken.add(_without_op(rule))
        cases, solver, covered, forms = cases + proof.cases, solver or proof.solver, covered | proof.covered, forms + 1
        gaps.update(proof.gaps)
    if not cases:
        return "", "no proof: no instance with symbolic sizes"
    gaps.update(f"{name} has no instance with symbolic sizes" for form, name in silent.items() if form not in spoken)
    how = f"normal forms{' and Z3' if solver else ''}, {cases} instances of symbolic sizes, {covered}{_count(forms)}"
    if SLOW in gaps:  # what a clock ended is no bound that anybody could name
        return "", f"no proof: {how}; not all: {', '.join(sorted(gaps))}"
    return ("bounded", f"{how}; not all: {', '.join(sorted(gaps))}") if gaps else ("proved", how)


def _count(forms: int) -> str:
    return f" in {forms} forms" if forms > 1 else ""


def _without_op(rule: Rule) -> str:
    """The name of a form but for the op in the place of its op variable. What is shown of any op there (it was uninterpreted, and which
    types it has made no difference) holds of an op of which no instance could be drawn, as one that quantizes."""
    return re.sub(r"\[[\w.]+\]", "[]", rule.name)
