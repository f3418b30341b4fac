"""What a name that is not known may be meant for, for messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def like(name: str, known: Iterable[str]) -> str:
    """A question after those of the names `known` that `name` may be meant for; "" where none is like it."""
    return meant(get_close_matches(name, list(known), n=3))


def meant(names: Sequence[str]) -> str:
    """A question after `names`; "" where there are none."""
    return f"do you mean {' or '.join(f'`{name}`' for name in names)}?" if names else ""
