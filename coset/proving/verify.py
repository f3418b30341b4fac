"""`coset verify`: a certificate checked again, by the checker alone: no search is imported. On demand the rules are proved again too."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import coset.dialects
from coset.comparing.reference import read_program
from coset.frontends.onnx.functions import functions_of, two_of_one_name
from coset.ir.op import find_op
from coset.ir.program import Program
from coset.job.own_rules import own_rules, warn
from coset.prove.certificate import Certificate, Rejected
from coset.prove.certificate_file import read_certificate
from coset.prove.contents import by_content, digest
from coset.prove.kernel import ASSURANCES, FOLDED, Use, Verdict, verify
from coset.proving.meanings import DEFINED, meaning
from coset.rules.definition import definition_of, is_defined
from coset.rules.elaborated import comes_with_coset
from coset.rules.library import DEFAULT, load
from coset.rules.lock import entry_of
from coset.rules.rule import Rule

assert coset.dialects  # imported so that every op and definition is registered

NOT_SHOWN = "not shown"
Mapped = Mapping[str, Rule]


def summary(verdict: Verdict, known: Mapped) -> dict[str, Any]:
    """What reports say of a certificate that was accepted. `own`: rules of the user's with how far they are shown: a lock file beside them
    says nothing, and without a proof of this run they are assumed."""
    own = {name: NOT_SHOWN for name, rule in _rules(verdict, known).items() if not _is_ours(rule)}
    own |= {name: NOT_SHOWN for name in verdict.used if name not in known and not _is_our_definition(name)}
    return {
        "numerics": verdict.numerics.word,
        "exceptions": sorted(verdict.numerics.exceptions),
        "assurance": ASSURANCES[-1] if own else verdict.assurance,
        "promises": promises(verdict),
        "own": own,
        "steps": verdict.steps,
        "computed": verdict.computed,
        "rounded": verdict.rounded,
        "largest_rounding": {"absolute": verdict.absolute, "relative": verdict.relative},
        "names": dict(verdict.names),
        "unread": list(verdict.unread),
        "reordered": list(verdict.reordered),
    }


def promises(verdict: Verdict) -> dict[str, list[str]]:
    """What rules and definitions promise and except, each with their names."""
    found: dict[str, list[str]] = {}
    for name, use in sorted(verdict.used.items()):
        found.setdefault(str(use.numerics), []).append(name)
    return dict(sorted(found.items()))


def _rules(verdict: Verdict, known: Mapped) -> dict[str, Rule]:
    return {name: known[name] for name in verdict.used if name in known}


def _is_ours(rule: Rule) -> bool:
    """Whether what lock files say of a rule comes with coset."""
    return comes_with_coset(Path(rule.place.file))


def _is_our_definition(name: str) -> bool:
    """Whether a definition comes with a dialect; nodes that are defined in Python do, and so does what computes constants."""
    op = None if name == FOLDED else find_op(name)
    return op is None or not is_defined(op) or comes_with_coset(definition_of(op).directory)


def verify_files(
    certificate: Path, before: Path, after: Path, rules: Sequence[str | Path] = (), *, names: Mapping[str, str] | None = None,
    prove_rules: bool = False, allow_assumed: bool = False, progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Whether the certificate shows that the programs of two files are equal, and what that rests on; `ok` is False with the `reason` where
    it does not. `rules`: files of further rules that it was made with, which are checked first: one of which nothing is shown is taken with
    `allow_assumed` only. `names`: what inputs and outputs of `after` are called in `before`.
    With `prove_rules` what lock files say of the rules and definitions that are used is not believed: they are tested and proved anew.

    Raises:
        CosetError: a file cannot be read, or is no model, rule file or certificate; as `own_rules`.
    """
    started = time.perf_counter()
    own = own_rules(rules, allow_assumed=allow_assumed, progress=progress)
    warn(own, progress)
    known = {rule.name: own.assured(rule) for rule in load([*DEFAULT, *map(Path, rules)]).rules}
    proof = read_certificate(certificate)
    try:
        programs = read_certified(proof, before, after, own.ops)
        read = time.perf_counter()
        verdict = verify(proof, *programs, known.get, meaning=meaning, fallback=DEFINED, names=names)
    except Rejected as error:
        return {"not_shown": own.told(), "ok": False, "reason": error.message, "help": error.help, "seconds": time.perf_counter() - started}
    verified = time.perf_counter()
    seconds = {"read": read - started, "verify": verified - read}
    found: dict[str, Any] = {"not_shown": own.told(), "ok": True}
    if prove_rules:
        shown, weaker = _shown(verdict, known)
        seconds["prove"] = time.perf_counter() - verified
        found |= {**_anew(verdict, known, shown), "proved_anew": len(shown)}
        if weaker is not None:
            help = "the lock file was forged, or is of another prover: run `coset check --all`"
            return {**found, "ok": False, "reason": weaker, "help": help, "seconds": sum(seconds.values())}
        return {**found, "seconds": seconds}
    return {**found, **summary(verdict, known), "seconds": seconds}


def read_certified(proof: Certificate, before: Path, after: Path, own: Collection[str] = ()) -> tuple[Program, Program]:
    """Both programs as the certificate speaks of them: calls of functions of a model's own are opened where it was made so, and where the
    two models have two functions of one name, which are no one op. `own`: the user's ops whose nodes are read as terms.

    Raises:
        CosetError: a file cannot be read.
        Rejected: two such functions cannot be opened.
    """
    programs = read_program(before, own=own), read_program(after, own=own)
    if not any(map(functions_of, programs)):
        return programs
    if two_of_one_name(*programs) is None and digest(by_content(programs[0])) == proof.head.get("before"):
        return programs
    programs = read_program(before, inline=True, own=own), read_program(after, inline=True, own=own)
    name = two_of_one_name(*programs)
    if name is not None:
        raise Rejected(f"the models have two functions `{name}`")
    return programs


def _anew(verdict: Verdict, known: Mapped, shown: Mapping[str, str]) -> dict[str, Any]:
    """The summary with what this run has shown of each entry; `shown`: assurances by entry."""
    entries = {name: entry_of(rule) for name, rule in _rules(verdict, known).items()}
    used = {name: Use(use.numerics, shown.get(entries.get(name, name), use.assurance)) for name, use in verdict.used.items()}
    weakest = max((use.assurance for use in used.values()), key=ASSURANCES.index, default=ASSURANCES[0])
    found = summary(replace(verdict, used=used, assurance=weakest), known)
    own = {name: used[name].assurance if entries.get(name, name) in shown else NOT_SHOWN for name in found["own"]}
    return {**found, "own": own, "assurance": ASSURANCES[-1] if NOT_SHOWN in own.values() else weakest}


def _shown(verdict: Verdict, known: Mapped) -> tuple[dict[str, str], str | None]:
    """What can be shown now of the entries that are used, by entry; and what is wrong with the first of the library of which that is less
    than the lock file says, or that is false; None where nothing is."""
    from coset.prove.check import LIMIT, Effort, check_rules  # the prover, which other certificates do without

    used = {entry_of(known[name]) if name in known else name for name in verdict.used}
    rules = [rule for rule in known.values() if entry_of(rule) in used]
    claimed = {entry_of(rule): rule.assurance if _is_ours(rule) else ASSURANCES[-1] for rule in rules}
    shown: dict[str, str] = {}
    for found in check_rules(rules, effort=Effort(seconds=LIMIT, repaired=False)):
        if found.assurance == "refuted":
            said = f", locked as {claimed[found.name]}," if claimed[found.name] != ASSURANCES[-1] else ""
            return shown, f"rule `{found.name}`{said} is false: {found.counterexample}"
        shown[found.name] = found.assurance if found.assurance in ASSURANCES else ASSURANCES[-1]
        if ASSURANCES.index(shown[found.name]) > ASSURANCES.index(claimed[found.name]):
            return shown, f"rule `{found.name}`, locked as {claimed[found.name]}, is {found.assurance} only: {found.method}"
    return shown, None
