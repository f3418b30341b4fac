"""Type errors of rule families: a left side that never has a type is not drawn again and again for each op that its variable may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import coset.dialects
from coset.rules import typecheck
from coset.rules.library import check_files

assert coset.dialects  # a variable of ops is each of them
RULE = """use stablehlo as hlo, chlo, onnx
rule choice_through_unary
  "The predicate is a number."
  for p: bool[S..], op f: unary, x, y, z: F[S..]
  select(p, x, f(select(0, y, z), ..attrs)) => select(p, x, f(z, ..attrs))
  numerics exact
"""


@pytest.mark.slow
def test_what_never_has_a_type_is_drawn_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was drawn 14 times with each of 57 ops: more than a minute for a mistake that the first draw shows."""
    path = tmp_path / "own.rules"
    path.write_text(RULE)
    drawn: list[Any] = []
    instances = typecheck.instances
    monkeypatch.setattr(typecheck, "instances", lambda rule, search: drawn.append(rule) or instances(rule, search))
    (error,) = check_files([path])[1]
    assert "`pred` of `stablehlo.select` must be bool" in error.message
    assert len(drawn) <= (2 + typecheck.HOPELESS) * len({rule.name for rule in drawn})
