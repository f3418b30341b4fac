"""Rules as text, read as a file would be."""

from __future__ import annotations

from pathlib import Path

import coset.dialects
from coset.ir.dims import Dim
from coset.ir.types import F32, TensorType
from coset.rules.library import RuleSet, check_files
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError

assert coset.dialects
HEADER = "use stablehlo as hlo, chlo, onnx\n"


def read_rules(folder: Path, text: str) -> tuple[RuleSet, list[RuleError]]:
    """The rules of `text` under the usual header, and what is wrong with them."""
    path = folder / "given.rules"
    path.write_text(HEADER + text)
    return check_files([path])


def fires_at(rule: Rule, dim: Dim) -> bool:
    """Whether a rule of two unary ops over x: F[N] fires where N is `dim`."""
    type = TensorType(F32, (dim,))
    return rule.decide([(), ()], [type, type], [type]) is not None
