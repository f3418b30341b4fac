"""Where a divisor is 0 at numbers that nobody guesses: the sign of its zero, and what cancels over the reals only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import coset.dialects
from coset.prove.check import Effort, check_rules
from coset.prove.verify import prove
from coset.rules.library import check_files
from coset.rules.rule import Rule

assert coset.dialects
D = "(a * splat(61) - b * splat(89) + splat(17))"  # 0 at a = 63, b = 43.37.., at a = 70, b = 48.17.., and at whole numbers too
Q = f"({D} * {D})"
TURNED = "(b * splat(89) - a * splat(61) - splat(17))"
TYPES = {"a": "f32", "b": "f32", "m": "bool"}

FALSE = {
    "turned difference": (f"splat(1) / {D}", f"-(splat(1) / {TURNED})"),
    "cancelled": (f"splat(1) / (splat(1) / {D})", f"{D} * {D} / {D}"),
    "turned root": (f"rsqrt({D})", f"rsqrt(-{TURNED})"),
    "turned factor": (f"splat(1) / (a * {D})", f"-(splat(1) / (a * {TURNED}))"),
    "turned function": (f"splat(1) / sine({D})", f"-(splat(1) / sine({TURNED}))"),
    "turned choice": (f"splat(1) / select(m, {D}, b)", f"-(splat(1) / select(m, {TURNED}, -b))"),
    "multiplied out": (f"splat(1) / (a * {D})", "splat(1) / (a * a * splat(61) - a * b * splat(89) + a * splat(17))"),
}
UNPROVED = {  # what no draw has shown either, for some
    "angle": (f"hlo.atan2({D}, splat(-1))", f"hlo.atan2(-{TURNED}, splat(-1))"),
    "angle of 0 and -0": ("hlo.atan2(a, splat(-1))", "hlo.atan2(a + splat(0), splat(-1))"),
    "power": (f"hlo.power({D}, b)", f"hlo.power(-{TURNED}, b)"),
    "digamma": (f"chlo.digamma({D})", f"chlo.digamma(-{TURNED})"),
    "logarithm of 1 and more": (f"splat(1) / log_plus_one({D})", f"splat(1) / log_plus_one(-{TURNED})"),
    "exponential less 1": (f"splat(1) / exponential_minus_one({D})", f"splat(1) / exponential_minus_one(-{TURNED})"),
    "infinities that cancel": (f"splat(1) / {D}", f"splat(2) / {D} - splat(1) / {D}"),
    "infinities in an exponential": (
        f"exponential(-(splat(1) / {Q}))",
        f"exponential(splat(1) / {Q} - splat(2) / {Q})",
    ),
    "infinities in a maximum": (f"maximum(-(splat(1) / {Q}), a)", f"maximum(splat(1) / {Q} - splat(2) / {Q}, a)"),
    "a logarithm of 0": (f"exponential(log{Q})", f"exponential(splat(2) * log{Q} - log{Q})"),
}
TRUE = {
    "negated": (f"splat(1) / -{D}", f"-(splat(1) / {D})"),
    "by a number": (f"splat(1) / ({D} * splat(-2))", f"splat(-0.5) / {D}"),
    "other order": ("splat(1) / (a + b + splat(3))", "splat(1) / (splat(3) + b + a)"),
    "two factors": (f"b / (a * {D})", f"b * (splat(1) / ({D} * a))"),
    "root": (f"a / sqrt({D})", f"a * rsqrt({D})"),
    "negated function": (f"splat(1) / sine(-{D})", f"-(splat(1) / sine({D}))"),
    "choice": ("splat(1) / select(m, -a, -b)", "-(splat(1) / select(m, a, b))"),
}


def _forms(path: Path, left: str, right: str) -> list[Rule]:
    file = path / "own.rules"
    types = ", ".join(f"{name}: {dtype}[S..]" for name, dtype in TYPES.items() if re.search(rf"\b{name}\b", left))
    lines = ['  "One."', f"  for {types}", f"  {left} => {right}", "  numerics reassociates"]
    file.write_text("\n".join(["use stablehlo as hlo, chlo", "", "rule own", *lines, ""]))
    rules, errors = check_files([file])
    assert errors == []
    return [rule for rule in rules.rules if rule.place.file == str(file)]


@pytest.mark.parametrize("name", FALSE)
def test_what_a_zero_tells_apart_is_not_proved_but_refuted(tmp_path: Path, name: str) -> None:
    forms = _forms(tmp_path, *FALSE[name])
    assert {prove(rule, seconds=20).assurance for rule in forms} == {""}
    (verdict,) = check_rules(forms, effort=Effort(repaired=False))
    assert verdict.assurance == "refuted", verdict.method


@pytest.mark.parametrize("name", TRUE)
def test_what_no_zero_tells_apart_is_proved(tmp_path: Path, name: str) -> None:
    proofs = [prove(rule, seconds=20) for rule in _forms(tmp_path, *TRUE[name])]
    assert {proof.assurance for proof in proofs} == {"proved"}, [proof.reason for proof in proofs]


@pytest.mark.parametrize("name", UNPROVED)
def test_what_a_zero_tells_apart_is_not_proved(tmp_path: Path, name: str) -> None:
    assert {prove(rule, seconds=20).assurance for rule in _forms(tmp_path, *UNPROVED[name])} == {""}
