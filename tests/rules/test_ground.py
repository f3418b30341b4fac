"""`test` lines: what they give to an entry, and that each way of failing is told where it stands, with both values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rule_texts import HEADER, read_rules

import coset.dialects
from coset.cli import run
from coset.ir.types import DTYPES
from coset.prove.check import check, failed_tests, verify
from coset.prove.ground import broken_tests
from coset.prove.verdict import write_lock
from coset.rules import syntax
from coset.rules.format import format_text
from coset.rules.library import check_files
from coset.rules.literals import array
from coset.rules.parser import parse
from coset.rules.syntax import RuleError

assert coset.dialects

TRANSPOSES = """rule r
  for x: T[S..], p, q: permutation(S)
  transpose(transpose(x, p), q) => transpose(x, compose(p, q))
  numerics exact
"""
EIGHTS = "rule r for x: F[N] -(-x) => x where N % 8 == 0 numerics exact\n"
COMMUTED = "rule r for a, b: F[S..] a - b => b - a numerics exact\n"
OPTIONAL = "rule r for x: F[M, N], b?: F[N] = 0 abs(-(x + bcast(b, [M, N]))) => abs(x + bcast(b, [M, N])) numerics exact\n"
CONSTANT = "rule r for x: F[S..], c, d: float x * splat(c) * splat(d) => x * splat(c * d) numerics reassociates\n"
RESHAPED = "rule r for x: T[S..] reshape(reshape(x, A), B) => reshape(x, B) numerics exact\n"
HOLD = {
    "the sides agree": TRANSPOSES + "test x = [[1, 2], [3, 4]]: f32, p = [1, 0], q = [1, 0]",
    "and are what is written": TRANSPOSES + "test x = [[1, 2]]: i32, p = [1, 0], q = [0, 1] => [[1], [2]]",
    "a condition does not hold": EIGHTS + "test not x = [1, 2]: f16",
    "and holds": EIGHTS + "test x = [1, 2, 3, 4, 5, 6, 7, -inf]: f16",
    "an element type that the class has not": EIGHTS + "test not x = [1, 2, 3, 4, 5, 6, 7, 8]: i16",
    "an optional operand": OPTIONAL + "test x = [[1, 2]]: f32, b = [3, 4] => [[4, 6]]",
    "without it": OPTIONAL + "test x = [[1, 2]]: f32 => [[1, 2]]",
    "numbers of constants": CONSTANT + "test x = [1, 2]: f32, c = 2, d = 0.5 => [1, 2]",
    "shapes": RESHAPED + "test x = [1, 2, 3, 4]: f32, A = [2, 2], B = [4, 1] => [[1], [2], [3], [4]]",
    "NaN and signed zeros": "rule r for x: F[S..] -(-x) => x numerics exact test x = [nan, -0.0, inf]: bf16 => [nan, -0.0, inf]",
}  # fmt: skip
FAIL = {
    "another value": (
        TRANSPOSES + "test x = [[1, 2], [3, 4]]: f32, p = [1, 0], q = [1, 0] => [[1, 2], [3, 5]]",
        "6:59", "`r` gives [[1., 2.], [3., 4.]], its test says [[1., 2.], [3., 5.]]", "at [1, 1]: the sides are not bit-equal",
    ),
    "another shape": (EIGHTS + "test x = [0, 0, 0, 0, 0, 0, 0, 0]: f32 => [0, 0]", "3:43", "`r` gives [0., 0., 0.", "the left side is"),
    "another sign": (
        "rule r for x: F[S..] -(-x) => x numerics exact test x = [0]: f32 => [-0.0]",
        "2:69", "`r` gives [0.], its test says [-0.]", "at [0]: the sides are not bit-equal",
    ),
    "sides that differ": (
        COMMUTED + "test a = [1, 2]: f32, b = [1, 3]",
        "3:1", "`r` fails its test: the left side is [ 0., -1.], the right side [0., 1.]", "at [1]: the sides are not bit-equal",
    ),
    "it does not fire": (EIGHTS + "test x = [1, 2]: f16", "3:1", "`r` does not fire at its test", "a condition or a type does not hold"),
    "it cannot be typed": (
        TRANSPOSES + "test x = [1, 2, 3]: f32, p = [1, 0], q = [1, 0]",
        "6:1", "`r` does not fire at its test", "`permutation` of `stablehlo.transpose` must have 1 entries",
    ),
    "declared otherwise": (EIGHTS + "test x = [[1]]: f32", "3:1", "`r` does not fire at its test", "`x` is f32[1, 1], declared F[N]"),
    "not determined": (TRANSPOSES + "test x = [1]: f32", "6:1", "`r` does not fire at its test", "the attributes of stablehlo.transpose"),
    "it fires": (EIGHTS + "test not x = [1, 2, 3, 4, 5, 6, 7, 8]: f16", "3:1", "`r` fires here", "r: stablehlo.negate"),
}  # fmt: skip


def broken(folder: Path, text: str) -> list[RuleError]:
    """The mistakes in a file with this text."""
    path = folder / "given.rules"
    path.write_text(HEADER + text + "\n")
    return verify([path])[1]


def failed(folder: Path, text: str) -> list[RuleError]:
    """As `broken`, without the verdict on the rules: that takes most of the time."""
    path = folder / "given.rules"
    path.write_text(HEADER + text + "\n")
    rules, errors = check_files([path])
    return errors + failed_tests(rules.family("r"))


@pytest.mark.parametrize("name", HOLD)
def test_a_true_line_passes(name: str, tmp_path: Path) -> None:
    assert failed(tmp_path, HOLD[name]) == []


@pytest.mark.parametrize("name", FAIL)
def test_a_false_line_is_a_mistake_at_its_place(name: str, tmp_path: Path) -> None:
    text, place, message, help = FAIL[name]
    (error,) = failed(tmp_path, text)
    assert error.message.startswith(message), str(error)
    assert error.help.startswith(help), str(error)
    assert error.place and f"{error.place.line}:{error.place.column}" == place, str(error)
    assert "^" in str(error)


@pytest.mark.parametrize("lines", [HOLD["the sides agree"], FAIL["another value"][0], HOLD["a condition does not hold"]])
def test_lines_are_formatted(lines: str) -> None:
    once = format_text(lines)
    assert format_text(once) == once
    assert "\n  test " in once and "]: f" in once


def test_an_unchanged_entry_keeps_its_verdict_and_a_changed_line_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(tmp_path, HOLD["the sides agree"]) == []
    path = tmp_path / "given.rules"
    write_lock(check([path]))
    tried: list[str] = []
    monkeypatch.setattr("coset.prove.check.broken_tests", lambda rules: tried.append(rules[0].family) or [])
    assert broken(tmp_path, HOLD["the sides agree"]) == [] and tried == []
    assert broken(tmp_path, HOLD["and are what is written"]) == [] and tried == ["r"]


def test_check_exits_with_an_error_and_locks_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "given.rules"
    path.write_text(HEADER + FAIL["another value"][0])
    assert run(["check", "--json", str(path)]) == 2
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert (error["line"], error["column"]) == (6, 59) and "its test says" in error["message"]
    assert not (tmp_path / "rules.lock").exists()
    with pytest.raises(RuleError, match="its test says"):
        check([path])


def test_sides_of_different_types_are_told_at_the_line(tmp_path: Path) -> None:
    rules, _ = read_rules(tmp_path, "rule r for x: F[S..] 2 + x => is_finite(x) numerics exact\ntest x = [1]: f32\n")
    (error,) = broken_tests(rules.family("r"))
    assert error.message.startswith("`r` fails its test: the left side of `r` is f32[1] but") and error.place and error.place.line == 3


def test_lines_of_a_definition(tmp_path: Path) -> None:
    text = """use stablehlo, ground
op ground.Scaled(x: F[S..], y?: F[S..] = 0, n: int = 2) -> F[S..]
  "n x + y"
  means splat(n) * x + y
  numerics reassociates
  test x = [1, 2]: f32 => [2, 4]
  test x = [1, 2]: f32, y = [1, 1], n = 3 => [4, 7]
  test not x = [1, 2]: f32, y = [1, 1, 1]
  test x = [1, 2]: f32, n = 3 => [3, 5]
op ground.Joined(xs..: F[_]) -> F[_]
  "All of them."
  means concatenate(xs.., dimension: 0)
  numerics exact
  test xs = [1, 2]: f32, xs = [3], xs = [] => [1, 2, 3]
  test xs = [1, 2]: f32 => [1]
"""
    path = tmp_path / "given.rules"
    path.write_text(text)
    errors = verify([path])[1]
    assert [(error.place.line, error.message) for error in errors if error.place] == [
        (9, "`ground.Scaled` gives [3., 6.], its test says [3., 5.]"),
        (15, "`ground.Joined` gives [1., 2.], its test says [1.]"),
    ]


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "f8e4m3fn", "i4", "u64", "bool", "c64"])
def test_a_tensor_is_rounded_once(dtype: str) -> None:
    file, errors = parse(f"use stablehlo\nrule r for x: T[S..] -(-x) => x numerics exact test x = [[1, 0], [1, 1]]: {dtype}", "t.rules")
    assert errors == []
    (given,) = file.rules[0].tests[0].given
    found = array(given, DTYPES["f32"])
    assert found.dtype == DTYPES[dtype].numpy and found.tolist() == np.array([[1, 0], [1, 1]]).astype(found.dtype).tolist()


def test_a_decimal_between_two_numbers_goes_to_the_nearest() -> None:
    written = "1.0004882812500000000000001"  # just above the middle of two numbers of f16: by way of f64 it would be the lower one
    file, _ = parse(f"use stablehlo\nrule r for x: T[S..] -(-x) => x numerics exact test x = {written}: f16", "t.rules")
    (given,) = file.rules[0].tests[0].given
    assert isinstance(given, syntax.Written)
    assert array(given, DTYPES["f16"]) == np.float16(1.0009765625)
