"""Verdicts on rules: each entry of the given files is tested, then proved where that works; the lock file keeps what was shown."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import perf_counter

from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.orphan import end_with
from coset.prove import combiners
from coset.prove.deadline import Time
from coset.prove.fields import Identity, Refused, identical
from coset.prove.grades import as_words, entry_grades
from coset.prove.ground import broken_definition_tests, broken_tests
from coset.prove.guards import repairs
from coset.prove.sample import drawn, results, test_rule
from coset.prove.verify import NATIVE, SECONDS, SLOW, UNTYPED, prove
from coset.rules.definition import definition_of
from coset.rules.library import DEFAULT, check_files, read_text, rule_files
from coset.rules.lock import ASSURANCES, NAME, Locked, entry_of, read_lock, save_lock, text_hash
from coset.rules.parsed import parse
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError
from coset.rules.typecheck import likeness

assert combiners  # which answers what rules ask of payload functions
MOST_FORMS = 8  # of an entry for which identities of polynomials are tried
FEWEST = 8  # entries for which another process is worth its start
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
    kept: str = ""  # the method as the lock file keeps it
    repairs: tuple[str, ...] = ()  # of a refuted rule: with which it holds
    native: bool = False  # whether it calls a native function
    range: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # the grades of its directions, as the lock file keeps them

    @property
    def ok(self) -> bool:
        """True unless the entry was refuted."""
        return self.assurance != "refuted"


Known = Callable[[Rule], Locked | None]  # what the lock file says of an entry with the same text


def check(paths: Sequence[Path] = DEFAULT, *, seed: int = 0) -> list[Verdict]:
    """A verdict for each entry of the files, by name, made anew.

    Raises:
        RuleError: the first mistake in the files, or test line that fails; `coset.rules.library.check_files` gives all.
    """
    rules, errors = check_files(paths)
    errors = errors or _broken(rules.rules, _within(paths), _nothing)
    if errors:
        raise errors[0]
    return check_rules(rules.rules, _within(paths), seed=seed)


def verify(paths: Sequence[Path] = DEFAULT, *, seed: int = 0, anew: bool = False) -> tuple[list[Verdict], list[RuleError]]:
    """The verdicts of the entries that are well formed, and every mistake in the files.

    An entry whose text has not changed since keeps the verdict of the lock file, but where everything is to be done `anew`.
    """
    rules, errors = check_files(paths, anew=anew)
    known = _nothing if anew else _locked
    errors += _broken(rules.rules, _within(paths), known)
    errors.sort(key=lambda error: (error.place.file, error.place.line, error.place.column) if error.place else ("", 0, 0))
    return check_rules(rules.rules, _within(paths), seed=seed, known=known), errors


def _broken(rules: Iterable[Rule], wanted: Callable[[Rule], bool], known: Known) -> list[RuleError]:
    """The test lines that fail, of entries about which nothing is `known`: what is locked has passed them."""
    errors: list[RuleError] = []
    for own in _entries(rules, wanted).values():
        definition = definition_of(get_op(own[0].definition)) if own[0].definition else None
        if (definition.entry.tests if definition else own[0].tests) and known(own[0]) is None:
            errors += broken_definition_tests(definition) if definition else broken_tests(own)
    return errors


def _entries(rules: Iterable[Rule], wanted: Callable[[Rule], bool]) -> dict[str, list[Rule]]:
    """The wanted rules by entry."""
    entries: dict[str, list[Rule]] = {}
    for rule in rules:
        if wanted(rule):
            entries.setdefault(entry_of(rule), []).append(rule)
    return entries


def _nothing(_: Rule) -> Locked | None:
    return None


def _locked(rule: Rule) -> Locked | None:
    line = read_lock(_lock_beside(rule.place.file)).get(entry_of(rule))
    return line if line is not None and line.hash == text_hash(rule.text) and line.assurance != "assumed" else None


@cache
def _lock_beside(file: str) -> Path:
    return Path(file).resolve().parent / NAME


def _within(paths: Sequence[Path]) -> Callable[[Rule], bool]:
    """Whether a rule stands in one of `paths`: definitions of other dialects are loaded too, but not on trial."""
    roots = [path.resolve() for path in paths]

    @cache
    def stands(file: str) -> bool:  # thousands of rules stand in dozens of files
        place = Path(file).resolve()
        return any(place.is_relative_to(root) for root in roots)

    return lambda rule: stands(rule.place.file)


def check_rules(
    rules: Iterable[Rule],
    wanted: Callable[[Rule], bool] = lambda _: True,
    *,
    seed: int = 0,
    known: Known = _nothing,
    proofs: bool = True,
    repaired: bool = True,
) -> list[Verdict]:
    """A verdict for each entry among `rules`, by name: all its directions and variants are tested, and then proved if `proofs`."""
    entries = _entries(rules, wanted)
    kept = {name: found for name, own in entries.items() if (found := _kept(name, own, known)) is not None}
    made = _made(sorted(entries.keys() - kept.keys()), lambda name: _verdict(name, entries[name], seed, proofs, repaired))
    return [kept.get(name) or made[name] for name in sorted(entries)]


def _made(entries: Sequence[str], judge: Callable[[str], Verdict]) -> dict[str, Verdict]:
    """The verdicts of `judge` on the entries, by all processors where there are many."""
    workers = min(len(os.sched_getaffinity(0)), len(entries) // FEWEST) if hasattr(os, "fork") else 0
    if workers < 2:
        return {name: judge(name) for name in entries}
    global _JUDGE
    _JUDGE = judge  # what a forked process takes along: rules are not sent
    try:
        with multiprocessing.get_context("fork").Pool(workers, _worker, (os.getpid(),)) as pool:
            return {verdict.name: verdict for verdict in pool.imap_unordered(_judge, entries)}
    finally:
        _JUDGE = None


_JUDGE: Callable[[str], Verdict] | None = None


def _worker(parent: int) -> None:
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers


def _judge(name: str) -> Verdict:
    assert _JUDGE is not None
    return _JUDGE(name)


def _kept(name: str, rules: Sequence[Rule], known: Known) -> Verdict | None:
    first = rules[0]
    line = known(first)
    if line is None:
        return None
    method = f"{line.method}, from the lock file" if line.method else "from the lock file"
    return Verdict(
        name, first.place.file, first.place.line, str(first.numerics), line.assurance, 0.0, method, "", line.hash, line.method,
        native=bool(first.natives), range=line.range,
    )  # fmt: skip


def _verdict(name: str, rules: Sequence[Rule], seed: int, proofs: bool, repaired: bool) -> Verdict:
    start = perf_counter()
    # a definition expands by what it says; what can be wrong is reading it from right to left, where that can be done
    expanding = [rule for rule in rules if rule.definition is not None and rule.family == rule.definition]
    tried = [rule for rule in rules if rule not in expanding] or expanding
    compared, silent, counterexample = entry_tests(tried, seed)
    if not compared and not counterexample and expanding:
        tried = expanding
        compared, silent, counterexample = entry_tests(tried, seed)
    assurance = "refuted" if counterexample else "tested" if compared else "assumed"
    quiet = f", {len(silent)} without an instance" if silent else ""
    method = f"{compared} comparisons of {len(tried)} {'form' if len(tried) == 1 else 'forms'}{quiet}"
    if proofs and assurance == "tested" and tried is not expanding:
        shown, how = shown_of([rule for rule in tried if rule.name not in silent])
        assurance, method = shown or assurance, how if shown else f"{method}{_agreed(tried, seed)}; {how}"
    first = rules[0]
    # no search asks for the range of a definition: benchmarks/growth.py lists it
    graded = as_words(entry_grades(rules)) if proofs and not counterexample and first.definition is None else {}
    offered = repairs(first, lambda changed: _judged(changed, seed)) if proofs and repaired and assurance == "refuted" else ()
    return Verdict(
        name, first.place.file, first.place.line, str(first.numerics), assurance, perf_counter() - start, method, counterexample,
        text_hash(first.text), method, offered, bool(first.natives), graded,
    )  # fmt: skip


def _agreed(rules: Sequence[Rule], seed: int) -> str:
    """What identities of polynomials say of rules that are tested only, if they are about any."""
    if any(rule.numerics.word not in ("reassociates", "real") for rule in rules):
        return ""
    found = [identity for rule in rules[:MOST_FORMS] for identity in _identities(rule, seed)]
    if not found or len(rules) > MOST_FORMS or not all(found):
        return ""
    worst = max(identity.error for identity in found if identity is not None)
    return f", {len(found)} polynomial identities at {found[0].points if found[0] else 0} points each (a false one: below {worst:.0e})"


def _identities(rule: Rule, seed: int) -> list[Identity | None]:
    """What the sides of small instances of a rule are as polynomials: None where they differ or are none."""
    found: list[Identity | None] = []
    for pair in drawn(rule, seed, LEAST):
        for left, right in results(pair):
            try:
                found.append(identical(left, right, seed))
            except (Refused, CosetError):
                found.append(None)
    return found or [None]


def _judged(rules: Sequence[Rule], seed: int) -> str:
    """The assurance of a rule that is tried out, in little time."""
    try:
        compared, silent, counterexample = entry_tests(rules, seed)
    except CosetError:  # its sides have different types
        return "refuted"
    if counterexample or not compared:
        return "refuted" if counterexample else "assumed"
    return shown_of([rule for rule in rules if rule.name not in silent], seconds=1.0)[0] or "tested"


def shown_of(rules: Sequence[Rule], *, seconds: float = SECONDS) -> tuple[str, str]:
    """What can be shown of all `rules` for all sizes (`proved`, `bounded` or nothing), and how, or what is in the way."""
    time = Time.of(seconds)
    cases, solver, gaps = 0, False, set[str]()
    shown = set[Hashable]()  # what forms are like of which all was shown with any op in the place of theirs
    for rule in rules:
        like = likeness(rule)
        if like in shown:
            continue
        proof = prove(rule, seconds=max(0.1, time.left))
        if not proof.cases and proof.reason.startswith((UNTYPED, NATIVE)):
            return "", f"no proof: {proof.reason}"
        if not proof.cases and proof.reason == SLOW:
            return "", f"no proof: {rule.name} {SLOW}"
        if not proof.cases:
            gaps.add(f"{rule.name.removeprefix(rule.family) or 'it'} has no instance with symbolic sizes")
            continue
        if not proof.assurance:
            return "", f"no proof: {rule.name if len(rules) > 1 else ''} {proof.reason}".replace("  ", " ")
        if proof.any_op:
            shown.add(like)
        cases, solver = cases + proof.cases, solver or proof.solver
        gaps.update(proof.gaps)
    if not cases:
        return "", "no proof: no instance with symbolic sizes"
    how = f"normal forms{' and Z3' if solver else ''}, {cases} instances of symbolic sizes"
    return ("bounded", f"{how}; not all: {', '.join(sorted(gaps))}") if gaps else ("proved", how)


def entry_tests(rules: Sequence[Rule], seed: int) -> tuple[int, set[str], str]:
    """How many comparisons were made, which rules had none (ops that no element type of the rule fits), and the first counterexample."""
    cases = max(LEAST, CASES // max(1, len(rules)))
    compared, silent = 0, set[str]()
    for rule in rules:
        outcome = test_rule(rule, seed, cases)
        compared += outcome.cases
        if not outcome.cases:
            silent.add(rule.name)
        if outcome.counterexample is not None:
            return compared, silent, str(outcome.counterexample)
    return compared, silent, ""


def weaker(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The entries of which less is shown now than their lock files say."""
    found = []
    for verdict in verdicts:
        line = read_lock(Path(verdict.file).resolve().parent / NAME).get(verdict.name)
        if verdict.ok and line is not None and ASSURANCES.index(verdict.assurance) > ASSURANCES.index(line.assurance):
            found.append(verdict)
    return found


def write_lock(verdicts: Iterable[Verdict]) -> list[Path]:
    """Enter the verdicts into the lock files beside their rules; entries of other files stay. Refuted entries lose their line."""
    folders: dict[Path, list[Verdict]] = {}
    for verdict in verdicts:
        folders.setdefault(Path(verdict.file).resolve().parent, []).append(verdict)
    written = []
    for folder, own in sorted(folders.items()):
        path = folder / NAME
        lines = read_lock(path)
        lines |= {v.name: Locked(v.hash, v.assurance, v.kept, v.range) for v in own if v.ok}
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
