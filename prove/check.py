"""Verdicts on rules: each entry of the given files is tested, then proved where that works; the lock file keeps what was shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter

from coset.dialects.expansion import expanded
from coset.ir.errors import CosetError
from coset.ir.judging import Ended, judged
from coset.ir.op import find_op, get_op
from coset.ir.term import topological
from coset.prove import combiners, obligations
from coset.prove.deadline import Late, Time, until
from coset.prove.entry_tests import Tests, entry_tests
from coset.prove.grades import CLASSES, as_words, entry_grades
from coset.prove.ground import broken_definition_tests, broken_tests
from coset.prove.guards import SECONDS as REPAIRING
from coset.prove.guards import repairs
from coset.prove.sample import drawn
from coset.prove.shown import AGREEING, agreed, shown_of
from coset.prove.shrink import smallest
from coset.prove.verdict import Known, Range, RuleVerdict, locked, locked_verdict, said_of
from coset.prove.verify import SECONDS
from coset.rules.definition import definition_of
from coset.rules.library import DEFAULT, check_files
from coset.rules.lock import Locked, entry_of
from coset.rules.pattern import applications
from coset.rules.ranges import NEVER, SOME
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError

assert combiners  # which answers what rules ask of payload functions
FEWEST = 8  # entries for which another process is worth its start
AGAIN, FAR = 4, 1009  # how often an entry that is not proved is drawn again, and how far the seeds are from each other
AGAIN_SECONDS = 10.0  # s of the processor for that
EXTREMES = ("maximum", "minimum", "clamp")  # which zero they give of two is left open by the runtimes
UNLIMITED = 1e9  # s
GRADING = 60.0  # s of the processor, for the grades of a definition
LIMIT = 90.0  # s of the processor for an entry, to draw and to prove it
UNKNOWN = "unknown"  # no grade: the time was over, and nothing had spoken against it


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


def check(paths: Sequence[Path] = DEFAULT, *, seed: int = 0) -> list[RuleVerdict]:
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
) -> tuple[list[RuleVerdict], list[RuleError]]:
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
) -> list[RuleVerdict]:
    """A verdict for each entry among `rules`, by name: all its directions and variants are tested, and then proved, with this `effort`."""
    entries = _entries(rules, wanted)
    kept = {name: locked_verdict(own, line) for name, own in entries.items() if (line := known(own[0])) is not None}
    names = sorted(entries.keys() - kept.keys())
    workers = _workers(len(names), effort)

    def judge(name: str) -> RuleVerdict:
        return _verdict(entries[name], seed, effort)

    def ended(name: str, error: Ended) -> RuleVerdict:
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


def _verdict(rules: Sequence[Rule], seed: int, effort: Effort) -> RuleVerdict:
    """The verdict on an entry: `unknown` where its time was over before there was one."""
    late, start, time = False, perf_counter(), Time.of(UNLIMITED if effort.seconds is None else effort.seconds)
    obligations.entry(entry_of(rules[0]))
    with until(time):
        tried, tests = _tested(rules, seed)
        method = f"{tests} of {len(tried)} {'form' if len(tried) == 1 else 'forms'}{tests.quiet}"
        if tests.counterexample:
            offered = _repairs(rules[0], seed, time) if effort.proofs and effort.repaired else ()
            return said_of(rules, "refuted", method, shown_small(tests), seconds=perf_counter() - start, repairs=offered)
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


def shown_small(tests: Tests) -> str:
    """The counterexample of tests that found one, as small as a little time makes it; else ""."""
    return "" if tests.refuting is None else str(smallest(*tests.refuting))


def _drawn_again(rules: Sequence[Rule], seed: int, time: Time) -> str:
    """A counterexample among more instances of rules that are not shown for all, or ""; a part of the time that is left is spent on it."""
    try:
        with until(time.share(1 / 2).at_most(AGAIN_SECONDS)):
            for turn in range(1, AGAIN + 1):
                tests = entry_tests(rules, seed + turn * FAR)
                if tests.counterexample or tests.late:
                    return shown_small(tests)
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
            return "tested", f"{method}{agreed(rules, seed)}; {how}"
    except Late:
        return "tested", f"{method}; {how}"


def _repairs(rule: Rule, seed: int, time: Time) -> tuple[str, ...]:
    try:
        return repairs(rule, lambda changed: _judged(changed, seed), seconds=min(REPAIRING, time.left))
    except Late:
        return ()


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
