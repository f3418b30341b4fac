"""Every rule of the library holds on samples, and the false rules that were shipped somewhere are refuted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import coset.dialects
from coset.prove.check import check, check_rules, write_lock
from coset.prove.sample import test_rule as try_rule
from coset.rules.library import DEFAULT, check_files, load
from coset.rules.lock import NAME, entry_of

assert coset.dialects
ENTRIES = sorted({entry_of(rule) for rule in load().rules})

# From the table of the design page: rules as shipped somewhere, and why they are false.
FALSE = {
    "nan_becomes_finite": 'for x: F[S..] is_finite(x) => hlo.not(compare(splat(inf), abs(x), "EQ")) numerics exact',
    "loses_precision": "for x: F[S..] log_plus_one(x) => log(x + splat(1)) numerics exact",
    "minus_zero": "for x: F[S..] x + splat(0.0) => x numerics exact",
    "integer_quotient_of_quotient": "for a, b, c: I[S..] a / (b / c) => (a * c) / b numerics exact",
    "integer_product_by_quotient": "for x, y, z: I[S..] (x * y) / z => x * (y / z) numerics exact",
    "integer_sum_by_quotient": "for a, b, c: I[S..] (a + b) / c => a / c + b / c numerics exact",
    "shift_of_negative": "for x: I[S..], I: signed x / splat(4) => shift_right_arithmetic(x, splat(2)) numerics exact",
    "remainder_of_fraction": "for x: F[S..] remainder(x, splat(1)) => splat(0) numerics exact",
    "rounds": "for x: f32[S..] convert(convert(x, f16), f32) => x numerics exact",
    "zero_by_zero": "for x: F[S..] x / x => splat(1) numerics exact",
    "zero_by_zero_reassociates": "for x: F[S..] x / x => splat(1) numerics reassociates",
    "times_zero": "for x: F[S..] x * splat(0) => splat(0) numerics exact",
    "minus_itself": "for x: F[S..] x - x => splat(0) numerics exact",
    "wrong_axis": "for x: F[N, N] sum(x, [0]) => sum(x, [1]) numerics reassociates",
    "assoc_exact": "for x, y, z: F[S..] (x + y) + z => x + (y + z) numerics exact",
}


@pytest.fixture(scope="module")
def false_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("false") / "false.rules"
    path.write_text("use stablehlo as hlo, chlo\n" + "\n".join(f"rule {name} {text}" for name, text in FALSE.items()))
    return path


@pytest.mark.parametrize("name", FALSE)
def test_a_false_rule_is_refuted_with_a_counterexample(name: str, false_rules: Path) -> None:
    rules, errors = check_files([false_rules])
    assert errors == []
    (verdict,) = check_rules(rules.family(name))
    assert verdict.assurance == "refuted", verdict.method
    assert ("left" in verdict.counterexample and "x:" in verdict.counterexample) or "a:" in verdict.counterexample


@pytest.mark.parametrize("name", ENTRIES)
def test_each_rule_of_the_library_holds_on_samples(name: str) -> None:
    (verdict,) = check_rules([rule for rule in load().rules if entry_of(rule) == name], seed=7, proofs=False)
    assert verdict.ok, verdict.counterexample
    assert verdict.assurance == "tested"


def test_the_lock_file_is_up_to_date() -> None:
    assert {rule.assurance for rule in load().rules} == {"tested"}
    locked = set(json.loads((DEFAULT[0] / NAME).read_text())["rules"])
    assert locked == {rule.family for rule in load(with_definitions=False).rules}


def test_the_same_seed_draws_the_same_cases() -> None:
    rule = load().family("matmul_assoc")[0]
    assert try_rule(rule, 3, 10) == try_rule(rule, 3, 10)


def test_a_lock_is_written_beside_the_rules_and_dies_with_a_change(tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text("use stablehlo\nrule odd for x: F[S..] tanh(-x) => -tanh(x) numerics exact\n")
    write_lock(check([path]))
    assert load([path]).family("odd")[0].assurance == "tested"
    path.write_text("use stablehlo\nrule odd for x: F[S..] sine(-x) => -sine(x) numerics exact\n")
    assert load([path]).family("odd")[0].assurance == "assumed"
