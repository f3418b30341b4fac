"""The one family of errors that a user can cause; everything else is a bug and crashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coset.ir.place import Place


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


def require(condition: bool, message: str) -> None:
    """Raise `TypeRuleError(message)` unless `condition`: the guard that type rules are made of."""
    if not condition:
        raise TypeRuleError(message)
