"""Until when a proof may go on: asked inside of comparisons too, for one of them may take longer than all the time there is.

Time is that of the processor, so that what is shown does not depend on what else the machine does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time
from typing import Any

from coset.ir.meter import METER
from coset.ir.term import Term

_ends: list[float] = []


class Late(Exception):
    """The time for a proof is over."""


@dataclass(frozen=True)
class Time:
    """The time until a moment, for all ways together in which something may be shown."""

    ends: float

    @staticmethod
    def of(seconds: float) -> Time:
        """So much time from now on."""
        return Time(process_time() + seconds)

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self.ends - process_time())

    @property
    def over(self) -> bool:
        """Whether none is left."""
        return process_time() > self.ends

    def share(self, part: float) -> Time:
        """A part of what is left, for one way of several."""
        return Time.of(part * self.left)

    def at_most(self, seconds: float) -> Time:
        """The same, or less of it."""
        return Time(min(self.ends, process_time() + seconds))


@contextmanager
def until(time: Time) -> Iterator[None]:
    """Inside, `look` says when `time` is over, or the time of what is around it."""
    _ends.append(min([time.ends, *_ends[-1:]]))
    try:
        yield
    finally:
        _ends.pop()


def left() -> float | None:
    """The seconds that are left; None where nobody set a time."""
    return max(0.0, _ends[-1] - process_time()) if _ends else None


@dataclass
class CallLimit:
    """How many calls of functions an evaluation may make: a loop over drawn numbers may have 2^31 turns. Each call looks at the time."""

    left: int

    def __call__(self, term: Term | None, _: Sequence[Any]) -> None:
        if term is None:
            look()
            self.left -= 1
            if self.left < 0:
                raise TooManyCalls


class TooManyCalls(Exception):
    """An evaluation makes more calls than it may."""


@contextmanager
def calling(most: int) -> Iterator[None]:
    """Inside, evaluations make at most so many calls of functions, and none when the time is over.

    Raises:
        TooManyCalls, Late: as an evaluation comes to it.
    """
    token = METER.set(CallLimit(most))
    try:
        yield
    finally:
        METER.reset(token)


def look() -> None:
    """Go on if there is time.

    Raises:
        Late: there is none.
    """
    if _ends and process_time() > _ends[-1]:
        raise Late
