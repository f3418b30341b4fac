"""Plain values of a target's file: texts, numbers that can be measured, tables without unknown keys. What is wrong is collected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from coset.ir.problems import FileProblem
from coset.ir.suggestions import like, likely
from coset.targets.document import Document, Entry, known_entries
from coset.targets.keys import NUMBER, KeySet

LARGEST = 1e30


@dataclass
class DocumentValues:
    """Reads values of one document and collects what is wrong. A value that is wrong is None, and what needs it is left out silently: one
    mistake is said once."""

    document: Document
    problems: list[FileProblem]
    used: set[tuple[str, str]] = field(default_factory=set)  # entries that something names: section and name
    absent: set[tuple[str, str]] = field(default_factory=set)  # entries of which it is said that they are missing

    def top(self, section: str = "") -> Entry:
        """The beginning of the file, or of one of its tables."""
        return Entry(None, self.document.file, (section,) if section in self.document.file.data else ())

    def section(self, name: str) -> list[tuple[str, Entry]]:
        return list(self.document.sections[name].items())

    def wrong(self, entry: Entry, what: str, help: str = "") -> None:
        """Enter a problem."""
        self.problems.append(FileProblem(f"`{entry.name}`: {what}" if entry.keys else what, entry.place, help))

    def missing(self, section: str, name: str, help: str) -> None:
        """Enter that an entry is missing at the top or in a `section`; nothing if it may stand in a base that could not be read."""
        if self.document.whole_base:
            place = self.top(section).place
            self.absent.add((section, name))
            what = f"`{section}.{name}`" if section else f"`{name}`"
            self.problems.append(FileProblem(f"{what} is missing", place if place.line else replace(place, line=1, column=1), help))

    def named_entry(self, entry: Entry, section: str, name: str) -> bool:
        """Whether `section` has an entry `name`, which `entry` names."""
        known = self.document.sections[section]
        self.used.add((section, name if name in known else likely(name, known) or name))
        if name in known:
            return True
        if self.document.is_known_not(name) and (section, name) not in self.absent:
            help = f"[{section}] has: {', '.join(known) or 'none'}"
            self.unknown(entry, f"there is no {section.removesuffix('s')} `{name}`", name, list(known), help)
        return False

    def unknown(self, entry: Entry, what: str, name: str, known: Sequence[str], listed: str) -> None:
        """Enter that `name` is none of those `known`: the remedy is the nearest of them, else what is `listed`."""
        self.wrong(entry, what, like(name, known) or listed)

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
            self.wrong(entry, f"{value} is not {'0 or more' if zero else 'above 0'}", "leave out what the machine does not have")
            return None
        return value

    def count(self, entry: Entry, least: int = 0) -> int | None:
        value = entry.value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 1 << 31:
            self.wrong(entry, f"is no whole number from {least} on", f"as {max(1, least)}, without quotes")
            return None
        return value

    def table(self, entry: Entry, keys: KeySet) -> dict[str, Entry] | None:
        """The entries of a table with no other keys than `keys`; None if one is missing that must be there."""
        if not isinstance(entry.value, dict):
            self.wrong(entry, "is no table", f"{{ {', '.join(f'{key} = ..' for key in keys.required or sorted(keys.names))} }}")
            return None
        found = known_entries(dict(entry.items()), keys.names, "is no key that goes here", self.problems)
        for key in keys.required:
            if key not in found:
                own = next(each for each in keys.keys if each.name == key)
                said = f"{key} = {own.value}: {own.says}"
                help = "every number says its unit and where it comes from" if key in NUMBER.required else said
                self.wrong(entry, f"`{key}` is missing", help)
        return found if all(key in found for key in keys.required) else None

    def array(self, entry: Entry, what: str) -> list[Entry]:
        if not isinstance(entry.value, list):
            self.wrong(entry, f"is no list of {what}", "a list in brackets")
            return []
        return list(entry.listed())
