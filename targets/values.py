"""Plain values of a target's file: texts, numbers that can be measured, tables without unknown keys. What is wrong is collected."""

from __future__ import annotations

from dataclasses import dataclass

from coset.targets.document import Document, Entry, TargetProblem

NUMBER = ("value", "unit", "source", "note")
"""The keys of a number."""
LARGEST = 1e30


@dataclass
class DocumentValues:
    """Reads values of one document and collects what is wrong. A value that is wrong is None, and what needs it is left out silently: one
    mistake is said once."""

    document: Document
    problems: list[TargetProblem]

    def top(self) -> Entry:
        return Entry(None, self.document.file, ())

    def section(self, name: str) -> list[tuple[str, Entry]]:
        return list(self.document.sections[name].items())

    def wrong(self, entry: Entry, what: str, help: str = "") -> None:
        """Enter a problem."""
        self.problems.append(TargetProblem(f"`{entry.name}`: {what}" if entry.keys else what, entry.place, help))

    def text(self, entry: Entry, *, empty: bool = False) -> str | None:
        if not isinstance(entry.value, str) or not (entry.value.strip() or empty):
            self.wrong(entry, "is no text" if not isinstance(entry.value, str) else "is empty", "a text in quotes")
            return None
        return entry.value

    def flag(self, entry: Entry) -> bool | None:
        if not isinstance(entry.value, bool):
            self.wrong(entry, "is neither true nor false", "true or false, without quotes")
            return None
        return entry.value

    def amount(self, entry: Entry, *, zero: bool = False) -> float | None:
        """A number above 0, or from 0 on; whole numbers stay what they are."""
        value = entry.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(entry, "is no number", "a number without quotes; its unit stands beside it")
            return None
        if value != value or abs(value) > LARGEST:
            self.wrong(entry, f"{'NaN' if value != value else 'so large a number'} is nothing that can be measured", "a finite number")
            return None
        if value < 0 or (value == 0 and not zero):
            self.wrong(entry, f"{value} is not {'0 or more' if zero else 'above 0'}", "a rate that is not there is left out")
            return None
        return value

    def count(self, entry: Entry, least: int = 0) -> int | None:
        value = entry.value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 1 << 31:
            self.wrong(entry, f"is no whole number from {least} on")
            return None
        return value

    def table(self, entry: Entry, known: set[str] | tuple[str, ...], required: tuple[str, ...] = ()) -> dict[str, Entry] | None:
        """The entries of a table with no other keys than `known`."""
        if not isinstance(entry.value, dict):
            self.wrong(entry, "is no table", f"{{ {', '.join(f'{key} = ..' for key in required or sorted(known))} }}")
            return None
        found = dict(entry.items())
        for key, each in found.items():
            if key not in known:
                self.wrong(each, "is no key that goes here", f"there are: {', '.join(sorted(known))}")
        for key in required:
            if key not in found:
                self.wrong(entry, f"`{key}` is missing", "every number says its unit and where it comes from" if key in NUMBER else "")
        return found if all(key in found for key in required) else None

    def array(self, entry: Entry, what: str) -> list[Entry]:
        if not isinstance(entry.value, list):
            self.wrong(entry, f"is no list of {what}", "a list in brackets")
            return []
        return list(entry.listed())
