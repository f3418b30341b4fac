"""Places of an editor (a line and a column from 0, in UTF-16 units or as it was agreed) and offsets into a text."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"


@dataclass(frozen=True)
class Spot:
    """A line and a column, both from 0; the column in the units of the editor."""

    line: int
    column: int


@dataclass(frozen=True)
class Lines:
    """The lines of a text. Only `\\n` and `\\r\\n` end one, as for the parser of rule files."""

    text: str
    encoding: str = UTF16

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins."""
        found = [0]
        for line in self.text.split("\n")[:-1]:
            found.append(found[-1] + len(line) + 1)
        return found

    def line(self, number: int) -> str:
        """The line, from 0, without its end; empty behind the last one."""
        if not 0 <= number < len(self.starts):
            return ""
        end = self.starts[number + 1] - 1 if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end].removesuffix("\r")

    def offset(self, spot: Spot) -> int:
        """The offset of a spot; what lies outside of the text or of its line is moved to the nearest place inside."""
        if spot.line < 0:
            return 0
        if spot.line >= len(self.starts):
            return len(self.text)
        units = 0
        line = self.line(spot.line)
        for place, sign in enumerate(line):
            if units >= spot.column:
                return self.starts[spot.line] + place
            units += self._units(sign)
        return self.starts[spot.line] + len(line)

    def spot(self, offset: int) -> Spot:
        """The spot of an offset."""
        offset = max(0, min(offset, len(self.text)))
        number = bisect_right(self.starts, offset) - 1
        return self.spot_in_line(number, offset - self.starts[number])

    def spot_in_line(self, number: int, column: int) -> Spot:
        """The spot of a column that counts letters, in a line from 0; at most at the end of the line."""
        return Spot(number, self._units(self.line(number)[: max(0, column)]))

    def _units(self, text: str) -> int:
        """How many units of the editor a text has."""
        if self.encoding == UTF32:
            return len(text)
        if self.encoding == UTF8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(sign > "\uffff" for sign in text)
