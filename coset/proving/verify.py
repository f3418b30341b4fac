"""`coset verify`: a certificate checked again, by the checker alone: no search is imported. On demand the rules are proved again too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import coset.dialects
from coset.fold import fallback_for
from coset.own_rules import own_rules, warn
from coset.prove.certificate import read_certificate
from coset.prove.kernel import Rejected, Verdict, verify
from coset.reference import read_program
from coset.rules.library import DEFAULT, load
from coset.rules.lock import ASSURANCES, entry_of
from coset.rules.rule import Rule

assert coset.dialects  # imported so that every op and definition is registered


def summary(verdict: Verdict) -> dict[str, Any]:
    """What reports say of a certificate that was accepted."""
    return {
        "numerics": verdict.numerics, "assurance": verdict.assurance, "promises": verdict.promises, "steps": verdict.steps,
        "computed": verdict.folded, "rounded": verdict.rounded, "apart": verdict.apart, "unread": verdict.unread,
    }  # fmt: skip


def verify_files(
    certificate: Path,
    before: Path,
    after: Path,
    rules: Sequence[str | Path] = (),
    *,
    prove_rules: bool = False,
    allow_assumed: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Whether the certificate shows that the programs of two files are equal, and what that rests on; `ok` is False with the `reason` where
    it does not. `rules`: files of further rules that it was made with, which are checked first: one of which nothing is shown is taken with
    `allow_assumed` only. With `prove_rules` what lock files say of the rules that are used
    is not believed: they are tested and proved anew.

    Raises:
        CosetError: a file cannot be read, or is no model, rule file or certificate; as `own_rules`.
    """
    started = time.perf_counter()
    own = own_rules(rules, allow_assumed=allow_assumed, progress=progress)
    warn(own, progress)
    known = {rule.name: own.assured(rule) for rule in load([*DEFAULT, *map(Path, rules)]).rules}
    programs = read_program(before), read_program(after)
    proof = read_certificate(certificate)
    read = time.perf_counter()
    try:
        verdict = verify(proof, *programs, known.get, fallback=fallback_for({}))
    except Rejected as error:
        return {"not_shown": own.told(), "ok": False, "reason": error.message, "help": error.help, "seconds": time.perf_counter() - started}
    verified = time.perf_counter()
    seconds = {"read": read - started, "verify": verified - read}
    found = {"not_shown": own.told(), "ok": True, **summary(verdict)}
    if prove_rules:
        used = {entry_of(known[name]) for names in verdict.promises.values() for name in names}
        weaker = _weaker([rule for rule in known.values() if entry_of(rule) in used])
        seconds["prove"] = time.perf_counter() - verified
        found |= {"proved_anew": len(used)}
        if weaker is not None:
            help = "the lock file was forged, or is of another prover: run `coset check --all`"
            return {**found, "ok": False, "reason": weaker, "help": help, "seconds": sum(seconds.values())}
    return {**found, "seconds": seconds}


def _weaker(rules: Iterable[Rule]) -> str | None:
    """What is wrong with the first entry of which less can be shown than the lock file says; None where nothing is."""
    from coset.prove.check import LIMIT, Effort, check_rules  # the prover, which other certificates do without

    claimed = {entry_of(rule): rule.assurance for rule in rules}
    for verdict in check_rules(rules, effort=Effort(seconds=LIMIT, repaired=False)):
        if verdict.assurance == "refuted":
            return f"rule `{verdict.name}`, locked as {claimed[verdict.name]}, is false: {verdict.counterexample}"
        if verdict.assurance not in ASSURANCES or ASSURANCES.index(verdict.assurance) > ASSURANCES.index(claimed[verdict.name]):
            return f"rule `{verdict.name}`, locked as {claimed[verdict.name]}, is {verdict.assurance} only: {verdict.method}"
    return None
