"""Verdicts on entries of rules, and the lock files that keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

from coset.ir.errors import CosetError
from coset.rules.library import DEFAULT, read_text, rule_files
from coset.rules.lock import ASSURANCES, NAME, Locked, entry_of, read_lock, save_lock, text_hash
from coset.rules.parsed import parse
from coset.rules.rule import Rule

Range = Mapping[str, Mapping[str, str]]  # grades by direction and class of float types
NO_RANGE: Range = MappingProxyType({})


@dataclass(frozen=True)
class RuleVerdict:
    """What is known of one entry. `assurance` is `refuted` when there is a counterexample, `assumed` when no case could be made, `unknown`
    when there was no time to tell."""

    name: str
    file: str
    line: int
    numerics: str
    assurance: str
    seconds: float
    method: str
    counterexample: str = ""
    hash: str = ""
    kept: str = ""  # the method as the lock file keeps it
    repairs: tuple[str, ...] = ()  # of a refuted rule: with which it holds
    native: bool = False  # whether it calls a native function
    range: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # the grades of its directions, as the lock file keeps them

    @property
    def ok(self) -> bool:
        """True unless the entry was refuted."""
        return self.assurance != "refuted"


Known = Callable[[Rule], Locked | None]  # what the lock file says of an entry with the same text


def locked(rule: Rule) -> Locked | None:
    """What the lock file beside a rule says of its entry, where that has the same text."""
    line = read_lock(_lock_beside(rule.place.file)).get(entry_of(rule))
    return line if line is not None and line.hash == text_hash(rule.text) and line.assurance != "assumed" else None


@cache
def _lock_beside(file: str) -> Path:
    return Path(file).resolve().parent / NAME


def said_of(
    rules: Sequence[Rule], assurance: str, method: str, counterexample: str = "", *, seconds: float, repairs: tuple[str, ...] = (),
    range: Range = NO_RANGE,
) -> RuleVerdict:  # fmt: skip
    """The verdict on the entry of `rules`, with what was found of it."""
    first = rules[0]
    return RuleVerdict(
        entry_of(first), first.place.file, first.place.line, str(first.numerics), assurance, seconds, method, counterexample,
        text_hash(first.text), method, repairs, bool(first.natives), dict(range),
    )  # fmt: skip


def locked_verdict(rules: Sequence[Rule], line: Locked) -> RuleVerdict:
    """The verdict that a lock file has on the entry of `rules`."""
    first = rules[0]
    method = f"{line.method}, from the lock file" if line.method else "from the lock file"
    return RuleVerdict(
        entry_of(first), first.place.file, first.place.line, str(first.numerics), line.assurance, 0.0, method, "", line.hash, line.method,
        native=bool(first.natives), range=line.range,
    )  # fmt: skip


def weaker(verdicts: Iterable[RuleVerdict]) -> list[RuleVerdict]:
    """The entries of which less is shown now than their lock files say."""
    found = []
    for verdict in verdicts:
        line = read_lock(Path(verdict.file).resolve().parent / NAME).get(verdict.name)
        told = verdict.assurance in ASSURANCES  # neither refuted nor unknown
        if told and line is not None and ASSURANCES.index(verdict.assurance) > ASSURANCES.index(line.assurance):
            found.append(verdict)
    return found


def write_lock(verdicts: Iterable[RuleVerdict]) -> list[Path]:
    """Enter the verdicts into the lock files beside their rules; entries of other files stay. Refuted entries lose their line,
    and one that is unknown keeps what it has: nothing, or what was shown of it before."""
    folders: dict[Path, list[RuleVerdict]] = {}
    for verdict in verdicts:
        folders.setdefault(Path(verdict.file).resolve().parent, []).append(verdict)
    written = []
    for folder, own in sorted(folders.items()):
        path = folder / NAME
        lines = read_lock(path)
        lines |= {v.name: Locked(v.hash, v.assurance, v.kept, v.range) for v in own if v.assurance in ASSURANCES}
        for verdict in own:
            if not verdict.ok:
                lines.pop(verdict.name, None)
        save_lock(path, lines)
        written.append(path)
    return written


def prune_locks(paths: Sequence[Path] = DEFAULT) -> list[str]:
    """Take the lines of entries that no rule file of the folder has any more out of the lock files of the folders of `paths`; their names.

    A folder with a file that cannot be read keeps all its lines: what the file has is not known.
    """
    gone: list[str] = []
    for folder in sorted({file.resolve().parent for file in rule_files(paths)}):
        lines = read_lock(folder / NAME)
        there = _names_in(folder)
        lost = [] if there is None else sorted(lines.keys() - there)
        if lost:
            save_lock(folder / NAME, {name: line for name, line in lines.items() if name not in lost})
        gone += lost
    return gone


def _names_in(folder: Path) -> set[str] | None:
    """The names of the rules and definitions in the files of `folder`; None where one has a mistake."""
    names: set[str] = set()
    for path in rule_files([folder]):
        try:
            file, mistakes = parse(read_text(path), str(path))
        except CosetError:
            return None
        if mistakes:
            return None
        names |= {rule.name for rule in file.rules} | {op.name for op in file.ops}
    return names
