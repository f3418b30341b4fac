"""Test lines of rules are held where a value is not finite, too."""

from __future__ import annotations

from pathlib import Path

import pytest

import coset.dialects
from coset.prove.check import failed_tests
from coset.rules.library import check_files

assert coset.dialects
RULE = """use stablehlo as hlo, chlo
rule own
  "One."
  for x, y: f32[S..]
  splat(1) / (x - y) + splat(2) => splat(2) + splat(1) / (x - y)
"""


@pytest.mark.parametrize(
    ("line", "holds"),
    [("test x = [1], y = [1] => [inf]", True), ("test x = [1], y = [1] => [5]", False), ("test x = [1], y = [1] => [nan]", False),
     ("test x = [2], y = [1] => [3]", True), ("test x = [2], y = [1] => [inf]", False)],
)  # fmt: skip
def test_what_a_line_says_is_the_value(tmp_path: Path, line: str, holds: bool) -> None:
    path = tmp_path / "own.rules"
    path.write_text(f"{RULE}  numerics reassociates\n  {line}\n")
    rules, errors = check_files([path])
    assert errors == []
    assert (failed_tests([rule for rule in rules.rules if rule.place.file == str(path)]) == []) is holds
