"""Where the algebra treats a symbol otherwise than some number that it may stand for: a proof asks for this, a rewrite does not."""

from __future__ import annotations

NOTES: list[set[str]] = []  # who asks, and what was said to each


def note(what: str) -> None:
    """Say that `what` tells a symbol from a number: other sizes may have another answer."""
    if NOTES:
        NOTES[-1].add(what)
