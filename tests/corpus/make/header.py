"""The header of an entry, and entries of StableHLO text; needs no exporter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent


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
