"""Machine-readable answers: one JSON object, in which a number that is not finite is null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coset.ir.held import replacing

VERSION = 1
"""Of the objects that commands print: `docs/reports.schema.json` says what they hold. A key that is removed, or means something else, makes
a new one; a key that is added does not."""


def as_json(value: Any, *, indent: int | None = None) -> str:
    """`value` as strict JSON."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def versioned(value: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with the version of its format."""
    return {**value, "report_version": VERSION}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def save(path: Path, text: str) -> None:
    """Write a file whole.

    Raises:
        CosetError: it cannot be written.
    """
    save_bytes(path, text.encode())


def save_bytes(path: Path, data: bytes) -> None:
    """The same of bytes."""
    with replacing(path) as file:
        file.write(data)
