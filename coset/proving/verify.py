"""`coset verify`: a certificate checked again, by the checker alone: no search is imported."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import coset.dialects
from coset.fold import fallback_for
from coset.prove.certificate import read_certificate
from coset.prove.kernel import Rejected, Verdict, verify
from coset.reference import read_program
from coset.rules.library import DEFAULT, load

assert coset.dialects  # imported so that every op and definition is registered


def summary(verdict: Verdict) -> dict[str, Any]:
    """What reports say of a certificate that was accepted."""
    return {
        "numerics": verdict.numerics, "assurance": verdict.assurance, "promises": verdict.promises, "steps": verdict.steps,
        "computed": verdict.folded, "rounded": verdict.rounded, "apart": verdict.apart,
    }  # fmt: skip


def verify_files(certificate: Path, before: Path, after: Path, rules: Sequence[str | Path] = ()) -> dict[str, Any]:
    """Whether the certificate shows that the programs of two files are equal, and what that rests on; `ok` is False with the `reason` where
    it does not. `rules`: files of further rules that it was made with.

    Raises:
        CosetError: a file cannot be read, or is no model, rule file or certificate.
    """
    started = time.perf_counter()
    known = {rule.name: rule for rule in load([*DEFAULT, *map(Path, rules)]).rules}
    programs = read_program(before), read_program(after)
    proof = read_certificate(certificate)
    read = time.perf_counter()
    try:
        verdict = verify(proof, *programs, known.get, fallback=fallback_for({}))
    except Rejected as error:
        return {"ok": False, "reason": error.message, "help": error.help, "seconds": time.perf_counter() - started}
    seconds = {"read": read - started, "verify": time.perf_counter() - read}
    return {"ok": True, **summary(verdict), "seconds": seconds}
