"""New names for what a user named: identifiers of Python and C."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container


def identifier(name: str, taken: Container[str], *, fallback: str = "x", first: int = 1) -> str:
    """An identifier close to `name` that is none of `taken`; the second one of a name has the number `first` behind it."""
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or fallback
    text = text if not (text[0].isdigit() or keyword.iskeyword(text)) else f"{fallback}_{text}"
    found, count = text, first
    while found in taken:
        found, count = f"{text}_{count}", count + 1
    return found
