"""The smallest part of a list that still fails: delta debugging (Zeller and Hildebrandt, IEEE TSE 28(2), 2002, algorithm ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def smallest(items: Sequence[Item], fails: Callable[[tuple[Item, ...]], bool]) -> tuple[Item, ...]:
    """A part of `items`, in their order, that `fails` and of which no single item can be left out; `items` as a whole are to fail."""
    left = tuple(items)
    pieces = 2
    seen: dict[tuple[int, ...], bool] = {}
    numbers = {id(item): number for number, item in enumerate(left)}

    def known(part: tuple[Item, ...]) -> bool:
        key = tuple(numbers[id(item)] for item in part)
        if key not in seen:
            seen[key] = fails(part)
        return seen[key]

    while len(left) > 1:
        size = -(-len(left) // pieces)
        parts = [left[start : start + size] for start in range(0, len(left), size)]
        rests = [left[:start] + left[start + size :] for start in range(0, len(left), size)]
        part = next((each for each in parts if known(each)), None)
        rest = next((each for each in rests if known(each)), None) if part is None and len(parts) > 2 else None
        if part is not None:
            left, pieces = part, 2
        elif rest is not None:
            left, pieces = rest, max(2, pieces - 1)
        elif size == 1:
            return left
        else:
            pieces = min(2 * pieces, len(left))
    return left
