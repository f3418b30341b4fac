"""Type errors of rule families: what an op variable is no part of is not tried with every op."""

from __future__ import annotations

from pathlib import Path

import pytest

from coset.rules import typecheck
from coset.rules.library import check_files

RULE = """use stablehlo as hlo, chlo, onnx
rule choice_through_unary
  "The predicate is a number."
  for p: bool[S..], op f: unary, x, y, z: F[S..]
  select(p, x, f(select({predicate}, y, z), ..attrs)) => select(p, x, f(z, ..attrs))
  numerics exact
"""


@pytest.mark.parametrize(("predicate", "most"), [("0", 2), ("p", 80)])
def test_a_part_that_never_has_a_type_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, predicate: str, most: int) -> None:
    """It was drawn with each of 57 ops in turn: more than a minute for a mistake that the first one shows."""
    path = tmp_path / "own.rules"
    path.write_text(RULE.format(predicate=predicate))
    tried = []
    check = typecheck._check_direction
    monkeypatch.setattr(typecheck, "_check_direction", lambda forms: tried.append(forms) or check(forms))
    errors = check_files([path])[1]
    assert len(tried) <= most
    assert ["`pred` of `stablehlo.select` must be bool" in error.message for error in errors] == ([True] if predicate == "0" else [])
