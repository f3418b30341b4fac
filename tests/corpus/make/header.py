"""The header of an entry, entries of StableHLO text, and what attention's makers share; needs no exporter."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent
B, H, L, D = 2, 4, 3, 8  # batch, heads, length, size of a head
ROOT = 1 / math.sqrt(D)
ATTENTION = f"kernel.attention scale={ROOT:.6g}"
PROJECTED = "stablehlo.dot_general stablehlo.add"  # beside it, where the spelling has its projections


def save_mlir(text: str, name: str, source: str, wanted: Sequence[str], beside: str = "") -> None:
    """Write the entry `name` (`folder/file`) from StableHLO text, without locations."""
    lines = [re.sub(r"\s*loc\(.*\)$", "", line) for line in text.splitlines() if not line.startswith("#loc")]
    write(f"{name}.mlir", "//", source, wanted, beside, "\n".join(lines))


def write(file: str, mark: str, source: str, wanted: Sequence[str], beside: str, text: str) -> None:
    """The header and the text."""
    path = CORPUS / file
    path.parent.mkdir(exist_ok=True)
    fields = [*(f"op: {line}" for line in wanted), *([f"beside: {beside}"] if beside else []), f"source: {source}"]
    path.write_text("".join(f"{mark} {field}\n" for field in fields) + text.strip() + "\n")
