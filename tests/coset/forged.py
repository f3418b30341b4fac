"""A lock file that claims what is not so: how tests let a false rule of a file through to what they are about.

A user has no such way: what nobody locked is checked before it fires, and no option lets a refuted rule pass.
"""

from __future__ import annotations

from pathlib import Path

from coset.rules.library import load
from coset.rules.lock import NAME, Locked, entry_of, save_lock, text_hash


def forged(path: Path, assurance: str = "tested") -> Path:
    """The file of rules at `path`, beside a lock file whose sealed lines call each entry of it `assurance`."""
    rules = [rule for rule in load([path]).rules if Path(rule.place.file) == path]
    assert rules
    save_lock(path.parent / NAME, {entry_of(rule): Locked(text_hash(rule.text), assurance, "forged") for rule in rules})
    return path
