"""The library as a page to read: each entry in words, its text, what it promises and what was shown of it, file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from coset.rules.format import format_text
from coset.rules.library import read_text, rule_files
from coset.rules.lock import NAME, Locked, read_lock, text_hash
from coset.rules.parser import parse
from coset.rules.sources import SOURCE, sources
from coset.rules.syntax import OpEntry, RuleEntry, RuleFile


def reference(paths: Iterable[Path]) -> str:
    """The rules and definitions of `paths` in Markdown.

    Raises:
        RuleError: a file is no rule file.
    """
    sections: list[str] = []
    contents: list[str] = []
    verdicts: Counter[str] = Counter()
    for path in rule_files(paths):
        text = read_text(path)
        file, errors = parse(text, str(path))
        if errors:
            raise errors[0]
        lock = read_lock(path.parent / NAME)
        sections += [f"## {_title(path)}", *_introduction(text), *_entries(file, sources(text), lock, verdicts)]
        contents.append(f"- [{_title(path)}](#{_title(path).lower().replace(' ', '-')}): {_count(file)}")
    shares = ", ".join(f"{number} {word}" for word, number in verdicts.most_common())
    head = [
        "# The rules",
        "Written by `coset rules --docs`; do not edit.",
        f"What was shown: {shares or 'nothing yet'}.",
        "\n".join(contents),
    ]
    return "\n\n".join([*head, *sections]) + "\n"


def _title(path: Path) -> str:
    return path.stem.replace("_", " ").capitalize()


def _count(file: RuleFile) -> str:
    parts = [f"{len(file.rules)} rules" if file.rules else "", f"{len(file.ops)} definitions" if file.ops else ""]
    return ", ".join(part for part in parts if part) or "nothing"


def _introduction(text: str) -> list[str]:
    """The comment at the head of the file."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines += [] if line.startswith(SOURCE) else [line.lstrip("# ").rstrip()]
    return [" ".join(lines)] if lines else []


def _entries(file: RuleFile, ideas: Mapping[int, str], lock: dict[str, Locked], verdicts: Counter[str]) -> list[str]:
    found: list[str] = []
    entries: Sequence[RuleEntry | OpEntry] = sorted((*file.rules, *file.ops), key=lambda entry: entry.place.line)
    for entry in entries:
        line = lock.get(entry.name)
        known = line if line is not None and line.hash == text_hash(entry.text) else None
        assurance = known.assurance if known else "assumed"
        verdicts[assurance] += 1
        promise = entry.promise if isinstance(entry, RuleEntry) else entry.clauses[0].promise
        exceptions = f" except {', '.join(promise.exceptions)}" if promise.exceptions else ""
        said = f"{promise.word}{f' {promise.bound}' if promise.bound else ''}{exceptions}"
        how = f": {known.method}" if known and known.method else ""
        place = f"{Path(entry.place.file).name}:{entry.place.line}"
        found += [
            f"### {entry.name}",
            *([entry.document] if entry.document else []),
            f"```\n{format_text(entry.text, entry.place.file).strip()}\n```",
            f"Promise: {said}. Shown: {assurance}{how}. At {place}.",
            *([f"Source: {ideas[entry.place.line]}"] if entry.place.line in ideas else []),
        ]
    return found
