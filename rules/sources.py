"""Where the ideas of rules come from: `# Source: ..` in the comments of a rule file. Comments are no part of what is hashed and proved."""

from __future__ import annotations

from collections.abc import Iterator

from coset.ir.place import lines_of

SOURCE, HEADING = "# Source: ", "# ----"


def sources(text: str) -> dict[int, str]:
    """The source of what begins in each line of a rule file (from 1) after the first one that is given.

    Directly above an entry it is that entry's; under a heading (`# ---- title`) that of the section, up to the next heading; else that
    of the file.
    """
    lines = lines_of(text)
    found: dict[int, str] = {}
    file = section = ""
    for first, block in _blocks(lines):
        given = next((line.removeprefix(SOURCE) for line in block if line.startswith(SOURCE)), "")
        if any(line.startswith(HEADING) for line in block):
            section = given
        elif given and not file:
            file = given
        elif given:
            found[first + len(block)] = given
        if not block:
            found.setdefault(first, section or file)
    return {line: source for line, source in found.items() if source}


def _blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Comments that stand together with the number of their first line, and each other line with no comment."""
    block: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            block.append(line)
            continue
        if block:
            yield number - len(block), block
            block = []
        yield number, []
