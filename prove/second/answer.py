"""What the second checker says: it accepts, rejects with a reason, or cannot say."""

from __future__ import annotations

from dataclasses import dataclass

ACCEPTS, REJECTS, CANNOT_SAY = "accepts", "rejects", "cannot say"


@dataclass(frozen=True)
class Answer:
    """`verdict` is one of the three words above; `line` is the one of the file that it stopped at (0: the head), `promises` what each rule
    that was used says about numbers."""

    verdict: str
    reason: str = ""
    line: int | None = None
    steps: int = 0
    promises: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        place = "" if self.line is None else f" at line {self.line}"
        return f"{self.verdict}{place}{': ' if self.reason else ''}{self.reason}"


class Refused(Exception):
    """A line does not hold; the message says why."""


class CannotSay(Exception):
    """A line asks for something that this checker does not have; the message says what."""


class Unknown(Exception):
    """A value that has none here: a comparison of symbols, an item that is not there. A rule whose condition is unknown does not hold."""


class Undecided(Unknown):
    """What has no value since a symbolic dim has no number: of some numbers it is true, of others perhaps not."""
