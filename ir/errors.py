"""The one family of errors that a user can cause; everything else is a bug and crashes."""

from __future__ import annotations

from dataclasses import dataclass


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


class CosetError(Exception):
    """A mistake in what the user gave: what is wrong, where, and what to do. The CLI exits with 2."""

    def __init__(self, message: str, *, place: Place | None = None, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.help = help

    def __str__(self) -> str:
        parts = [f"error: {self.message}"]
        if self.place is not None:
            parts.append(self.place.render())
        if self.help:
            parts.append(f"  help: {self.help}")
        return "\n".join(parts)


class UnboundDim(CosetError):
    """A dim has symbols without a number: `names`."""

    def __init__(self, message: str, names: tuple[str, ...]) -> None:
        super().__init__(message)
        self.names = names


class TypeRuleError(CosetError):
    """Operands, attributes or regions that an op's type rule refuses."""


class MissingExtra(CosetError):
    """An optional tool that is not installed; the message says which extra brings it."""


def require(condition: bool, message: str) -> None:
    """Raise `TypeRuleError(message)` unless `condition`: the guard that type rules are made of."""
    if not condition:
        raise TypeRuleError(message)
