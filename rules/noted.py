"""Where the algebra treats a symbol otherwise than some number that it may stand for: a proof asks for this, a rewrite does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_notes: list[set[str]] = []


@contextmanager
def noting() -> Iterator[set[str]]:
    """Inside, what `note` says is collected in the set that this gives."""
    found: set[str] = set()
    _notes.append(found)
    try:
        yield found
    finally:
        _notes.pop()


def note(what: str) -> None:
    """Say that `what` tells a symbol from a number: other sizes may have another answer."""
    if _notes:
        _notes[-1].add(what)
