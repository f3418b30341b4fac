"""Where written values stand: lines at one indentation, and along which dims of a tile a value differs."""

from __future__ import annotations

from dataclasses import dataclass, field

Axes = frozenset[str]
NONE: Axes = frozenset()


@dataclass
class TileScope:
    """Lines at one indentation, for values that differ along `axes` at most."""

    axes: Axes
    lines: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)  # text -> the name that it was given


@dataclass(frozen=True)
class Value:
    """A value that has been written: a name, or a plain number (`literal`)."""

    text: str
    axes: Axes
    literal: bool = False


@dataclass
class TileAxis:
    """One dim of a space's tiles: the index along it (for shape), and the mask of what is inside, where there may be something else."""

    index: str
    mask: str | None
