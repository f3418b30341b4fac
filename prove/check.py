"""Verdicts on rules: each entry of the given files is tested, and the lock file keeps what was shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from coset.prove.sample import test_rule
from coset.rules.library import DEFAULT, check_files
from coset.rules.lock import NAME, Locked, entry_of, read_lock, save_lock, text_hash
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError

CASES, LEAST = 36, 6  # comparisons for an entry with one variant, and for each of very many


@dataclass(frozen=True)
class Verdict:
    """What is known of one entry. `assurance` is `refuted` when there is a counterexample, `assumed` when no case could be made."""

    name: str
    file: str
    line: int
    numerics: str
    assurance: str
    seconds: float
    method: str
    counterexample: str = ""
    hash: str = ""

    @property
    def ok(self) -> bool:
        """True unless the entry was refuted."""
        return self.assurance != "refuted"


def check(paths: Sequence[Path] = DEFAULT, *, seed: int = 0) -> list[Verdict]:
    """A verdict for each entry of the files, by name.

    Raises:
        RuleError: the first mistake in the files; `coset.rules.library.check_files` gives all.
    """
    rules, errors = check_files(paths)
    if errors:
        raise errors[0]
    return check_rules(rules.rules, _within(paths), seed=seed)


def verify(paths: Sequence[Path] = DEFAULT, *, seed: int = 0) -> tuple[list[Verdict], list[RuleError]]:
    """The verdicts of the entries that are well formed, and every mistake in the files."""
    rules, errors = check_files(paths)
    return check_rules(rules.rules, _within(paths), seed=seed), errors


def _within(paths: Sequence[Path]) -> Callable[[Rule], bool]:
    """Whether a rule stands in one of `paths`: definitions of other dialects are loaded too, but not on trial."""
    roots = [path.resolve() for path in paths]
    return lambda rule: any(Path(rule.place.file).resolve().is_relative_to(root) for root in roots)


def check_rules(rules: Iterable[Rule], wanted: Callable[[Rule], bool] = lambda _: True, *, seed: int = 0) -> list[Verdict]:
    """A verdict for each entry among `rules`, by name: all its directions and variants are tested."""
    entries: dict[str, list[Rule]] = {}
    for rule in rules:
        if wanted(rule):
            entries.setdefault(entry_of(rule), []).append(rule)
    return [_verdict(name, entries[name], seed) for name in sorted(entries)]


def _verdict(name: str, rules: Sequence[Rule], seed: int) -> Verdict:
    start = time.perf_counter()
    # a definition expands by what it says; what can be wrong is reading it from right to left, where that can be done
    expanding = [rule for rule in rules if rule.definition is not None and rule.family == rule.definition]
    tried = [rule for rule in rules if rule not in expanding] or expanding
    compared, silent, counterexample = _tested(tried, seed)
    if not compared and not counterexample and expanding:
        tried = expanding
        compared, silent, counterexample = _tested(tried, seed)
    assurance = "refuted" if counterexample else "tested" if compared else "assumed"
    quiet = f", {silent} without an instance" if silent else ""
    method = f"{compared} comparisons of {len(tried)} {'form' if len(tried) == 1 else 'forms'}{quiet}"
    first = rules[0]
    return Verdict(
        name, first.place.file, first.place.line, str(first.numerics), assurance, time.perf_counter() - start, method, counterexample,
        text_hash(first.text),
    )  # fmt: skip


def _tested(rules: Sequence[Rule], seed: int) -> tuple[int, int, str]:
    """How many comparisons were made, how many rules had none, and the first counterexample."""
    cases = max(LEAST, CASES // max(1, len(rules)))
    compared, silent = 0, 0
    for rule in rules:
        outcome = test_rule(rule, seed, cases)
        compared += outcome.cases
        silent += outcome.cases == 0
        if outcome.counterexample is not None:
            return compared, silent, str(outcome.counterexample)
    return compared, silent, ""


def write_lock(verdicts: Iterable[Verdict]) -> list[Path]:
    """Enter the verdicts into the lock files beside their rules; entries of other files stay. Refuted entries lose their line."""
    folders: dict[Path, list[Verdict]] = {}
    for verdict in verdicts:
        folders.setdefault(Path(verdict.file).resolve().parent, []).append(verdict)
    written = []
    for folder, own in sorted(folders.items()):
        path = folder / NAME
        lines = read_lock(path)
        lines |= {v.name: Locked(v.hash, v.assurance) for v in own if v.ok}
        for verdict in own:
            if not verdict.ok:
                lines.pop(verdict.name, None)
        save_lock(path, lines)
        written.append(path)
    return written
