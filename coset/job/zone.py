"""Zones: the values of a program, by name, that are searched with numerics of their own."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from coset.ir.errors import CosetError
from coset.rules.equation import NUMERICS_ORDER


@dataclass(frozen=True)
class Zone:
    """The values whose names, or the names of whose nodes, are like `pattern` (`*`, `?`, `[..]` as in file names; a `/` in front of a name
    may be left out), and the weakest promise that rules may make there.

    Raises:
        CosetError: there are no such numerics.
    """

    pattern: str
    numerics: str

    def __post_init__(self) -> None:
        if self.numerics not in NUMERICS_ORDER:
            raise CosetError(f"there are no numerics `{self.numerics}` (for `{self.pattern}`)", help=f"one of: {', '.join(NUMERICS_ORDER)}")

    def holds(self, name: str) -> bool:
        """True for a name of the zone."""
        return fnmatchcase(name, self.pattern) or fnmatchcase(name.removeprefix("/"), self.pattern)
