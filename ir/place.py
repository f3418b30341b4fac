"""Places in what a user wrote."""

from __future__ import annotations

from dataclasses import dataclass


def lines_of(text: str) -> list[str]:
    """The lines of a text as parsers and TOML count them: a line separator of Unicode inside of a comment ends none."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


@dataclass(frozen=True)
class Place:
    """Where a user's mistake stands: a file and, for text, a 1-based line and column with the source line."""

    file: str
    line: int = 0
    column: int = 0
    source: str = ""
    width: int = 1

    def render(self) -> str:
        """The `-->` line and, where the source is known, the line itself with a caret below."""
        if not self.line:
            return f"  --> {self.file}"
        head = f"  --> {self.file}:{self.line}:{self.column}"
        if not self.source:
            return head
        caret = " " * (self.column - 1) + "^" * max(1, self.width)
        return f"{head}\n   |   {self.source}\n   |   {caret}"
