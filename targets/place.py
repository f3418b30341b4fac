"""Where a key of a TOML text stands: what an error points at."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coset.ir.place import Place, lines_of
from coset.targets.document import LONGEST, Keys

_KEY = re.compile(r'"([^"\n]*)"|\'([^\'\n]*)\'|([A-Za-z0-9_-]+)')
_QUOTES = ('"""', "'''")


def place_of(file: str, text: str, keys: Keys) -> Place:
    """The line of the innermost of `keys` that is found in `text`, with a caret below it; the file alone where none is.

    Lines are looked at one by one, so a table in one line is found as a whole and then by its key.
    """
    lines = lines_of(text)
    best: tuple[int, int] | None = None
    for found, line in _assignments(lines):
        if keys[: len(found)] == found and (best is None or len(found) > best[0]):
            best = (len(found), line)
    if best is None:
        return Place(file)
    known, number = best
    source = lines[number]
    column, width = _within(source, keys[known - 1 : known], 0)
    for key in keys[known:]:
        inner, wide = _within(source, (key,), column + width)
        if wide:
            column, width = inner, wide
    return Place(file, number + 1, column + 1, source if len(source) <= LONGEST else "", max(1, width))


def _assignments(lines: list[str]) -> Iterator[tuple[Keys, int]]:
    """Every key and item that begins a line of its own, with the number of the line. Texts of several lines are passed over."""
    table: Keys = ()
    tables: dict[Keys, int] = {}
    items: tuple[Keys, int] | None = None  # the array that is open, and how many of its items were seen
    quoted = ""
    for number, line in enumerate(lines):
        if quoted:
            quoted = "" if line.count(quoted) % 2 else quoted
            continue
        quoted = next((mark for mark in _QUOTES if line.count(mark) % 2), "")
        bare = line.strip()
        if items is not None and bare.startswith(("{", "[", '"')):
            yield (*items[0], items[1]), number
            items = (items[0], items[1] + 1)
        elif bare.startswith("["):
            items, double = None, bare.startswith("[[")
            table = _keys(bare.partition("]")[0])
            if double:
                tables[table] = tables.get(table, -1) + 1
                table = (*table, tables[table])
            yield table, number
        elif "=" in bare and bare[0] not in "#{}":
            left, _, right = bare.partition("=")
            key = (*table, *_keys(left))
            yield key, number
            value = right.partition("#")[0].strip()
            items = (key, 0) if value.startswith("[") and value.count("[") > value.count("]") else None


def _keys(text: str) -> Keys:
    return tuple(double or single or bare for double, single, bare in _KEY.findall(text))


def _within(source: str, keys: Keys, start: int) -> tuple[int, int]:
    """Column and width of a key in its line; the first column that is not blank where it is not there."""
    for key in keys:
        match = re.compile(rf"(?<![\w.-])[\"']?{re.escape(str(key))}[\"']?(?=\s*[=.\]])").search(source, start)
        if match is not None and isinstance(key, str):
            return match.start(), len(match[0])
    return (len(source) - len(source.lstrip()), 0)
