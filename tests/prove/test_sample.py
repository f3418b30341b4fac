"""Rules of the library hold on samples; the lock file. False rules are in test_false.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import coset.dialects
from coset.cli import run
from coset.ir.term import input_term
from coset.ir.types import DTYPES, TensorType
from coset.prove.check import Effort, check, check_rules
from coset.prove.promise import difference_of
from coset.prove.sample import test_rule as try_rule
from coset.prove.verdict import write_lock
from coset.rules.equation import Numerics
from coset.rules.library import DEFAULT, check_files, load
from coset.rules.lock import NAME, entry_of, read_lock

assert coset.dialects
NAMES = sorted({entry_of(rule) for rule in load().rules})
# More than half of the time of all rules: those of a hundred ops, and those whose instances are hard to find.
SLOW = {
    "attention_one_key_head",
    "attention_one_key_head_masked",
    "attention_shared_keys",
    "attention_shared_keys_masked",
    "bias_of_channels_first",
    "broadcast_unary",
    "channels_behind_transpose",
    "choice_through_unary",
    "concatenate_binary",
    "concatenate_unary",
    "contraction_by_columns",
    "contraction_by_rows",
    "convolution_over_concatenation",
    "convolution_scale",
    "multiply_power_of_two",
    "number_added_to_convolution",
    "number_times_convolution",
    "padding_in_convolution",
    "projections_into_attention",
    "projections_without_bias_into_attention",
    "quotient_behind_contraction",
    "rectified_maximum_pool",
    "reduce_by_function_of_transpose",
    "reduce_twice_by_function",
    "reshape_binary",
    "reshape_into_contraction",
    "reshape_unary",
    "scale_left_operand",
    "shift_into_convolution",
    "slice_unary",
    "sum_divided",
    "sum_scaled",
    "transpose_unary",
    "unsigned_divide_power_of_two",
}


OFTEN, SELDOM = 6, 10  # of the quick entries one in so many is tried in the fast suite, of all others one in so many in the slow one


def _entries() -> list[Any]:
    """A sample that is the same each time: to try all takes 40 minutes, which `coset check --all` does where one or the prover changed."""
    quick = [name for name in NAMES if "." not in name and name not in SLOW][::OFTEN]  # definitions have up to 40 forms
    rest = [name for name in NAMES if name not in quick and crc32(name.encode()) % SELDOM == 0]
    return [*quick, *(pytest.param(name, marks=pytest.mark.slow) for name in rest)]


ENTRIES = _entries()


@pytest.mark.parametrize("name", ENTRIES)
def test_a_rule_of_the_library_holds_on_samples(name: str) -> None:
    rules = [rule for rule in load().rules if entry_of(rule) == name]
    for seed in (7, 8, 9):  # four parts side by side have seldom types that fit
        (verdict,) = check_rules(rules, seed=seed, effort=Effort(proofs=False))
        assert verdict.ok, verdict.counterexample
        if verdict.assurance == "tested":
            break
    assert verdict.assurance == "tested"


def test_the_slow_ones_are_entries() -> None:
    assert set(NAMES) >= SLOW


def test_the_lock_file_is_up_to_date() -> None:
    assert {rule.assurance for rule in load().rules} <= {"proved", "bounded", "tested"}
    locked = set(json.loads((DEFAULT[0] / NAME).read_text())["rules"])
    assert locked == {rule.family for rule in load(with_definitions=False).rules}


def test_the_same_seed_draws_the_same_cases() -> None:
    rule = load().family("matmul_assoc")[0]
    assert try_rule(rule, 3, 10) == try_rule(rule, 3, 10)


@pytest.mark.parametrize("name", ["rounded_twice", "integer_rounded_twice"])
def test_numbers_beside_the_middle_of_two_are_always_drawn(name: str) -> None:
    """Whatever the seed: few numbers of a type are rounded to another one by two conversions than by one."""
    rules, _ = check_files([Path(__file__).parent / "promise_fails.rules"])
    (rule,) = (rule for rule in rules.rules if rule.family == name)
    for seed in range(8):
        outcome = try_rule(rule, seed, 12)
        assert outcome.counterexample is not None and outcome.cases <= 40, seed


def test_strings_are_compared_as_they_are() -> None:
    x = input_term("x", TensorType(DTYPES["string"], (2,)))
    one, other = np.array(["a", "1"], object), np.array(["a", "2"], object)
    for word in ("exact", "real"):
        assert difference_of(Numerics(word), one, one.copy(), (x, x), {}) is None
        found = difference_of(Numerics(word), one, other, (x, x), {})
        assert found is not None and found[0] == (1,)


def test_a_lock_is_written_beside_the_rules_and_dies_with_a_change(tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text("use stablehlo, chlo\nrule odd for x: F[S..] erf(-x) => -erf(x) numerics exact\n")
    write_lock(check([path]))
    assert load([path]).family("odd")[0].assurance == "tested"
    path.write_text("use stablehlo\nrule odd for x: F[S..] sine(-x) => -sine(x) numerics exact\n")
    assert load([path]).family("odd")[0].assurance == "assumed"


def test_checking_a_file_forgets_what_is_gone_from_its_folder_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = "rule {} for x: F[S..] {}(-x) => -{}(x) numerics exact\n"
    first, second, lock = tmp_path / "first.rules", tmp_path / "second.rules", tmp_path / NAME
    first.write_text("use stablehlo\n" + odd.format("odd", "tanh", "tanh") + odd.format("gone", "sine", "sine"))
    second.write_text("use stablehlo\n" + odd.format("other", "cbrt", "cbrt"))
    assert run(["check", str(tmp_path)]) == 0
    assert set(read_lock(lock)) == {"odd", "gone", "other"}
    first.write_text("use stablehlo\n" + odd.format("odd", "tanh", "tanh"))
    assert run(["check", str(first)]) == 0
    assert set(read_lock(lock)) == {"odd", "other"}, "the entry of a file that was not given stays"
    assert "`gone`" in capsys.readouterr().err
    second.write_text("use stablehlo\nrule other for")
    first.write_text("use stablehlo\n" + odd.format("odder", "tanh", "tanh"))
    assert run(["check", str(first)]) == 0
    assert set(read_lock(lock)) == {"odd", "odder", "other"}, "a file beside it cannot be read"
