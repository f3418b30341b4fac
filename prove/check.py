"""Verdicts on rules: each entry of the given files is tested, then proved where that works; the lock file keeps what was shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from types import MappingProxyType

from coset.dialects.expansion import expanded
from coset.ir.errors import CosetError
from coset.ir.judging import Ended, judged
from coset.ir.op import find_op, get_op
from coset.ir.term import topological
from coset.prove import combiners, obligations
from coset.prove.deadline import Late, Time, until
from coset.prove.fields import Identity, Refused, identical
from coset.prove.grades import CLASSES, as_words, entry_grades
from coset.prove.ground import broken_definition_tests, broken_tests
from coset.prove.guards import SECONDS as REPAIRING
from coset.prove.guards import repairs
from coset.prove.sample import drawn, results, test_rule
from coset.prove.verify import NATIVE, NOTHING_COVERED, SECONDS, SLOW, UNTYPED, prove
from coset.rules.definition import definition_of
from coset.rules.library import DEFAULT, check_files, read_text, rule_files
from coset.rules.lock import ASSURANCES, NAME, Locked, entry_of, read_lock, save_lock, text_hash
from coset.rules.parsed import parse
from coset.rules.pattern import applications
from coset.rules.ranges import NEVER, SOME
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError
from coset.rules.typecheck import likeness

assert combiners  # which answers what rules ask of payload functions
MOST_FORMS = 8  # of an entry for which identities of polynomials are tried
FEWEST = 8  # entries for which another process is worth its start
CASES, LEAST = 36, 10  # comparisons for an entry with one variant, and for each of very many
AGAIN, FAR = 4, 1009  # how often an entry that is not proved is drawn again, and how far the seeds are from each other
AGAIN_SECONDS = 15.0  # s of the processor for that
EXTREMES = ("maximum", "minimum", "clamp")  # which zero they give of two is left open by the runtimes
UNLIMITED = 1e9  # s
Range = Mapping[str, Mapping[str, str]]  # grades by direction and class of float types
NO_RANGE: Range = MappingProxyType({})
AGREEING = 5.0  # s of the processor, to say what identities of polynomials say of rules that are tested only
GRADING = 60.0  # s of the processor, for the grades of a definition
LIMIT = 90.0  # s of the processor for an entry, to draw and to prove it
UNKNOWN = "unknown"  # no grade: the time was over, and nothing had spoken against it


@dataclass(frozen=True)
class Verdict:
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


@dataclass(frozen=True)
class Effort:
    """What is done for an entry. `seconds` of the processor for all of it (None: as many as it takes), `proving` for the proof in them.
    `proofs`: whether it is proved where the tests pass; `repaired`: whether repairs are looked for where they fail. `apart`: whether it
    is judged in a process of its own, which is ended where it does not end by itself."""

    seconds: float | None = None
    proving: float = SECONDS
    proofs: bool = True
    repaired: bool = True
    apart: bool = False


USUAL = Effort()


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


def verify(
    paths: Sequence[Path] = DEFAULT, *, seed: int = 0, anew: bool = False, seconds: float = LIMIT
) -> tuple[list[Verdict], list[RuleError]]:
    """The verdicts of the entries that are well formed, and every mistake in the files. Each has so many `seconds` of the processor.

    An entry whose text has not changed since keeps the verdict of the lock file, but where everything is to be done `anew`.
    """
    rules, errors = check_files(paths, anew=anew)
    known = _nothing if anew else locked
    errors += _broken(rules.rules, _within(paths), known)
    errors.sort(key=lambda error: (error.place.file, error.place.line, error.place.column) if error.place else ("", 0, 0))
    return check_rules(rules.rules, _within(paths), seed=seed, known=known, effort=Effort(seconds=seconds, apart=True)), errors


def _broken(rules: Iterable[Rule], wanted: Callable[[Rule], bool], known: Known) -> list[RuleError]:
    """The test lines that fail, of entries about which nothing is `known`: what is locked has passed them."""
    errors: list[RuleError] = []
    for own in _entries(rules, wanted).values():
        definition = definition_of(get_op(own[0].definition)) if own[0].definition else None
        if (definition.entry.tests if definition else own[0].tests) and known(own[0]) is None:
            errors += broken_definition_tests(definition) if definition else broken_tests(own)
    return errors


def failed_tests(rules: Iterable[Rule]) -> list[RuleError]:
    """The test lines of `rules` that fail."""
    return _broken(rules, lambda _: True, _nothing)


def _entries(rules: Iterable[Rule], wanted: Callable[[Rule], bool]) -> dict[str, list[Rule]]:
    """The wanted rules by entry."""
    entries: dict[str, list[Rule]] = {}
    for rule in rules:
        if wanted(rule):
            entries.setdefault(entry_of(rule), []).append(rule)
    return entries


def _nothing(_: Rule) -> Locked | None:
    return None


def locked(rule: Rule) -> Locked | None:
    """What the lock file beside a rule says of its entry, where that has the same text."""
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
    effort: Effort = USUAL,
) -> list[Verdict]:
    """A verdict for each entry among `rules`, by name: all its directions and variants are tested, and then proved, with this `effort`."""
    entries = _entries(rules, wanted)
    kept = {name: locked_verdict(own, line) for name, own in entries.items() if (line := known(own[0])) is not None}
    names = sorted(entries.keys() - kept.keys())
    workers = _workers(len(names), effort)

    def judge(name: str) -> Verdict:
        return _verdict(entries[name], seed, effort)

    def ended(name: str, error: Ended) -> Verdict:
        why = f"{_over(effort)}, and it was ended" if error.late else str(error)
        return said_of(entries[name], UNKNOWN, why, seconds=(effort.seconds or 0.0) if error.late else 0.0)

    made = judged(names, judge, ended, seconds=effort.seconds, workers=workers) if workers else {name: judge(name) for name in names}
    return [kept.get(name) or made[name] for name in sorted(entries)]


def _workers(entries: int, effort: Effort) -> int:
    """In how many processes so many entries are judged: 0 for this one."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = min(processors, entries // (1 if effort.apart else FEWEST))
    return found if found > 1 else int(effort.apart)


def _over(effort: Effort) -> str:
    return f"the time limit of {effort.seconds:g} s was over"


def said_of(
    rules: Sequence[Rule], assurance: str, method: str, counterexample: str = "", *, seconds: float, repairs: tuple[str, ...] = (),
    range: Range = NO_RANGE,
) -> Verdict:  # fmt: skip
    """The verdict on the entry of `rules`, with what was found of it."""
    first = rules[0]
    return Verdict(
        entry_of(first), first.place.file, first.place.line, str(first.numerics), assurance, seconds, method, counterexample,
        text_hash(first.text), method, repairs, bool(first.natives), dict(range),
    )  # fmt: skip


def locked_verdict(rules: Sequence[Rule], line: Locked) -> Verdict:
    """The verdict that a lock file has on the entry of `rules`."""
    first = rules[0]
    method = f"{line.method}, from the lock file" if line.method else "from the lock file"
    return Verdict(
        entry_of(first), first.place.file, first.place.line, str(first.numerics), line.assurance, 0.0, method, "", line.hash, line.method,
        native=bool(first.natives), range=line.range,
    )  # fmt: skip


def _verdict(rules: Sequence[Rule], seed: int, effort: Effort) -> Verdict:
    """The verdict on an entry: `unknown` where its time was over before there was one."""
    late, start, time = False, perf_counter(), Time.of(UNLIMITED if effort.seconds is None else effort.seconds)
    obligations.entry(entry_of(rules[0]))
    with until(time):
        tried, tests = _tested(rules, seed)
        method = f"{tests} of {len(tried)} {'form' if len(tried) == 1 else 'forms'}{tests.quiet}"
        if tests.counterexample:
            offered = _repairs(rules[0], seed, time) if effort.proofs and effort.repaired else ()
            return said_of(rules, "refuted", method, tests.counterexample, seconds=perf_counter() - start, repairs=offered)
        assurance = "tested" if tests.compared else "assumed"
        needless = _needless(tried, seed, tests, effort)
        if needless:
            return said_of(rules, "refuted", method, needless, seconds=perf_counter() - start)
        grades, out = _graded(tried, tests, effort)
        if out:
            return said_of(rules, "refuted", method, out, seconds=perf_counter() - start, range=grades)
        if not tests.late and effort.proofs and assurance == "tested" and not all(_expands(rule) for rule in tried):
            assurance, method = _proved(tried, tests, seed, method, min(effort.proving, time.left))
            late = assurance != "proved" and time.over
            found = _drawn_again(tried, seed, time) if assurance != "proved" and rules[0].definition is None and not late else ""
            if found:
                return said_of(rules, "refuted", method, found, seconds=perf_counter() - start)
    if rules[0].definition is not None:
        grades = _opening(rules, effort)
    if assurance != "proved" and (tests.late or late):
        assurance, method = UNKNOWN, f"{_over(effort)} while it was {'drawn' if tests.late else 'proved'}: {method}"
    return said_of(rules, assurance, method, seconds=perf_counter() - start, range=grades)


def _drawn_again(rules: Sequence[Rule], seed: int, time: Time) -> str:
    """A counterexample among more instances of rules that are not shown for all, or ""; a part of the time that is left is spent on it."""
    try:
        with until(time.share(1 / 2).at_most(AGAIN_SECONDS)):
            for turn in range(1, AGAIN + 1):
                tests = entry_tests(rules, seed + turn * FAR)
                if tests.counterexample or tests.late:
                    return tests.counterexample
    except Late:
        pass
    return ""


def _needless(rules: Sequence[Rule], seed: int, tests: Tests, effort: Effort) -> str:
    """What is wrong with an exception that no drawn input needs, or "". Beside extremes `signed_zero` is
    believed, and `masked` everywhere, for masks are seldom drawn."""
    first = rules[0]
    if not effort.proofs or not tests.compared or tests.late or first.definition is not None:
        return ""
    for exception in sorted(first.numerics.exceptions & {"nonfinite", "wider", "signed_zero"}):
        if exception == "signed_zero" and any(_leaves_zeros_open(rule, seed) for rule in rules):
            continue
        fewer = replace(first.numerics, exceptions=first.numerics.exceptions - {exception})
        strict = [replace(rule, numerics=fewer) for rule in rules]
        if not any(entry_tests(strict, seed + turn * FAR).counterexample for turn in range(AGAIN + 1)):
            return f"{entry_of(first)}: no drawn input needs `except {exception}`: leave it out"
    return ""


def _leaves_zeros_open(rule: Rule, seed: int) -> bool:
    """Whether an extreme is among the ops of a rule, or of those that an instance of it comes down to."""
    if any(node.op.name.rpartition(".")[2] in EXTREMES for pair in rule.pairs for side in pair for node in applications(side)):
        return True
    terms = topological(expanded([side for pair in drawn(rule, seed, 2) for side in pair], keep=lambda _: False))
    return any(term.op.name.rpartition(".")[2] in EXTREMES or dict(term.attributes).get("combiner") in EXTREMES for term in terms)


def _graded(rules: Sequence[Rule], tests: Tests, effort: Effort) -> tuple[Range, str]:
    """The grades of the directions of an entry by range, and why a direction is admitted for no element type, if one is not."""
    if not effort.proofs or not tests.compared or tests.late or rules[0].definition is not None:
        return {}, ""  # a definition says what an op is: no grade refutes it
    try:
        found = entry_grades(rules)
    except Late:
        return {}, ""
    for direction, own in found.items():
        if own and all(grade.verdict == NEVER for grade in own.values()):
            worst = next(reversed(own.values()))
            return as_words(found), f"{entry_of(rules[0])} {direction}: what the right side stores outweighs the left side, {worst.growth}"
    return as_words(found), ""


def _opening(rules: Sequence[Rule], effort: Effort) -> Range:
    """The grades of opening a defined op; where they take too long each instance is looked at in the search."""
    if not effort.proofs:
        return {}
    try:
        with until(Time.of(GRADING)):
            return as_words(entry_grades(rules))
    except Late:
        return {"=>": dict.fromkeys(CLASSES, f"{SOME} (not graded in time)")}


def _expands(rule: Rule) -> bool:
    """Whether a rule says what an op is: it expands by that; what can be wrong is reading it from right to left, where that can be done."""
    return rule.definition is not None and rule.family == rule.definition


OVERLAPPING = 3.0  # s of the processor to draw what the clauses of a definition say of the same operands


def _tested(rules: Sequence[Rule], seed: int) -> tuple[Sequence[Rule], Tests]:
    """The rules of an entry that are on trial, and how their tests went."""
    expanding = [rule for rule in rules if _expands(rule)]
    others = [rule for rule in rules if not _expands(rule)]
    tests = entry_tests(others, seed)
    if expanding and not (tests.compared or tests.counterexample or tests.late):
        return expanding, entry_tests(expanding, seed)
    if expanding and not (tests.counterexample or tests.late) and _may_overlap(rules[0]):
        overlapping = _overlapping(expanding, seed)
        if overlapping.counterexample:
            return expanding, overlapping
    return others, tests


def _overlapping(expanding: Sequence[Rule], seed: int) -> Tests:
    """How the clauses of a definition do on operands of which others may speak too, as far as a short time and the memory reach."""
    try:
        with until(Time.of(OVERLAPPING)):
            return entry_tests(expanding, seed)
    except MemoryError:  # long dims were drawn for what has their square
        return Tests()


def _may_overlap(rule: Rule) -> bool:
    """Whether an op has several meanings by its definition, so that two may speak of the same operands: then they must agree."""
    op = find_op(rule.definition or "")
    return op is not None and len(definition_of(op).entry.clauses) > 1


def _proved(rules: Sequence[Rule], tests: Tests, seed: int, method: str, seconds: float) -> tuple[str, str]:
    """The assurance of rules that were tested, and how it was shown; or why no more is shown."""
    try:
        shown, how = shown_of(rules, seconds=seconds)
    except Late:
        return "tested", method
    if shown:
        return shown, how
    try:
        with until(Time.of(AGREEING)):
            return "tested", f"{method}{_agreed(rules, seed)}; {how}"
    except Late:
        return "tested", f"{method}; {how}"


def _repairs(rule: Rule, seed: int, time: Time) -> tuple[str, ...]:
    try:
        return repairs(rule, lambda changed: _judged(changed, seed), seconds=min(REPAIRING, time.left))
    except Late:
        return ()


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
    """The assurance of a rule that is tried out, in little time.

    Raises:
        Late: there is no more time.
    """
    try:
        tests = entry_tests(rules, seed)
    except CosetError:  # its sides have different types
        return "refuted"
    if tests.late:
        raise Late
    if tests.counterexample or not tests.compared:
        return "refuted" if tests.counterexample else "assumed"
    return shown_of(rules, seconds=1.0)[0] or "tested"


def shown_of(rules: Sequence[Rule], *, seconds: float = SECONDS) -> tuple[str, str]:
    """What can be shown of all `rules` for all sizes (`proved`, `bounded` or nothing), and how, or what is in the way."""
    time = Time.of(seconds)
    cases, solver, gaps, covered, forms = 0, False, set[str](), NOTHING_COVERED, 0
    shown = set[Hashable]()  # what forms are like of which all was shown with any op in the place of theirs
    silent, spoken = dict[str, str](), set[str]()  # forms without an instance, by what they are but for their op, and those shown of any op
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
            if not proof.vacuous:
                silent.setdefault(_without_op(rule), rule.name.removeprefix(rule.family) or "it")
            continue
        if not proof.assurance:
            return "", f"no proof: {rule.name if len(rules) > 1 else ''} {proof.reason}".replace("  ", " ")
        if proof.any_op:
            shown.add(like)
            spoken.add(_without_op(rule))
        cases, solver, covered, forms = cases + proof.cases, solver or proof.solver, covered | proof.covered, forms + 1
        gaps.update(proof.gaps)
    if not cases:
        return "", "no proof: no instance with symbolic sizes"
    gaps.update(f"{name} has no instance with symbolic sizes" for form, name in silent.items() if form not in spoken)
    how = f"normal forms{' and Z3' if solver else ''}, {cases} instances of symbolic sizes, {covered}{_count(forms)}"
    if SLOW in gaps:  # what a clock ended is no bound that anybody could name
        return "", f"no proof: {how}; not all: {', '.join(sorted(gaps))}"
    return ("bounded", f"{how}; not all: {', '.join(sorted(gaps))}") if gaps else ("proved", how)


def _count(forms: int) -> str:
    return f" in {forms} forms" if forms > 1 else ""


def _without_op(rule: Rule) -> str:
    """The name of a form but for the op in the place of its op variable. What is shown of any op there (it was uninterpreted, and which
    types it has made no difference) holds of an op of which no instance could be drawn, as one that quantizes."""
    return re.sub(r"\[[\w.]+\]", "[]", rule.name)


@dataclass
class Tests:
    """How the tests of an entry went: the comparisons that were made, which rules had none (ops that no element type of the rule fits), the
    first counterexample, and whether the time was over before all was drawn (`late`)."""

    compared: int = 0
    silent: set[str] = field(default_factory=set)
    counterexample: str = ""
    late: bool = False

    def __str__(self) -> str:
        return f"{self.compared} comparisons"

    @property
    def quiet(self) -> str:
        """How many rules had no comparison, where some had none."""
        return f", {len(self.silent)} without an instance" if self.silent else ""


def entry_tests(rules: Sequence[Rule], seed: int) -> Tests:
    """How the rules of an entry do on drawn instances, one after the other. Where few forms have instances, these are drawn as often as the
    forms of an entry that has few."""
    cases = max(LEAST, CASES // max(1, len(rules)))
    tests = Tests()
    for turn in range(2):
        for rule in rules:
            if rule.name in tests.silent:
                continue
            try:
                outcome = test_rule(rule, seed + turn * len(rules), cases)
            except Late:
                tests.late = True
                return tests
            tests.compared += outcome.cases
            if not outcome.cases and not turn:
                tests.silent.add(rule.name)
            if outcome.counterexample is not None:
                tests.counterexample = str(outcome.counterexample)
                return tests
        left = max(1, len(rules) - len(tests.silent))
        if cases * left >= CASES:
            break
        cases = CASES // left
    return tests


def weaker(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The entries of which less is shown now than their lock files say."""
    found = []
    for verdict in verdicts:
        line = read_lock(Path(verdict.file).resolve().parent / NAME).get(verdict.name)
        told = verdict.assurance in ASSURANCES  # neither refuted nor unknown
        if told and line is not None and ASSURANCES.index(verdict.assurance) > ASSURANCES.index(line.assurance):
            found.append(verdict)
    return found


def write_lock(verdicts: Iterable[Verdict]) -> list[Path]:
    """Enter the verdicts into the lock files beside their rules; entries of other files stay. Refuted entries lose their line,
    and one that is unknown keeps what it has: nothing, or what was shown of it before."""
    folders: dict[Path, list[Verdict]] = {}
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
