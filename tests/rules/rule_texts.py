"""Rules as text, read as a file would be."""

from __future__ import annotations

from pathlib import Path

import coset.dialects
from coset.rules.library import RuleSet, check_files
from coset.rules.syntax import RuleError

assert coset.dialects
HEADER = "use stablehlo as hlo, chlo, onnx\n"


def read_rules(folder: Path, text: str) -> tuple[RuleSet, list[RuleError]]:
    """The rules of `text` under the usual header, and what is wrong with them."""
    path = folder / "given.rules"
    path.write_text(HEADER + text)
    return check_files([path])
