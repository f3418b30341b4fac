"""How a proof looks on while the index algebra computes: it answers what canonical forms do not settle, and is told what is noted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from coset.rules.arithmetic import ORACLES, Oracle
from coset.rules.scalar import NOTES


@contextmanager
def asking(oracle: Oracle) -> Iterator[None]:
    """Inside, `oracle` answers what canonical forms do not settle: a proof looks at both answers."""
    ORACLES.append(oracle)
    try:
        yield
    finally:
        ORACLES.pop()


def questioned() -> bool:
    """Whether a proof looks at both answers to what canonical forms do not settle."""
    return bool(ORACLES)


@contextmanager
def noting() -> Iterator[set[str]]:
    """Inside, what `note` says is collected in the set that this gives."""
    found: set[str] = set()
    NOTES.append(found)
    try:
        yield found
    finally:
        NOTES.pop()
