"""Mutants of the library's rules, and how many of them `coset check` lets pass.

Each small change of `benchmarks.rule_changes` is refused when it is read, refuted by the ordinary tests, or neither. What neither notices
is tested again with further seeds and many more cases: where those refute it, it is a survivor (its meaning changed and nobody
noticed), and one that is called `proved` or `bounded` is a mistake of the prover. A proof is tried of all of them: `same` is what further
tests did not refute and a proof covers, or what only asks for more than the rule; `open` is what was neither told apart nor shown to be the
same, and `late` what took too long (mostly the type checker on op variables); these may be survivors too.

    python -m benchmarks.rule_mutants --rules 210 --record mutants.jsonl --json mutants.json

`--record` keeps each outcome as it is found; the same command goes on where it was stopped. `--each 1` takes one mutant of each kind of
every rule, `--each 2` one more. Terms are mutated in tests/prove/mutants.py, where `compare` is on trial.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import coset.dialects
from benchmarks.rule_changes import KINDS, Change, changes
from coset.ir.errors import CosetError
from coset.prove.entry_tests import entry_tests
from coset.prove.sample import DTYPES, test_rule
from coset.prove.shown import shown_of
from coset.rules import syntax
from coset.rules.elaborate import rules_of
from coset.rules.instance import InstanceSearch
from coset.rules.instances import instances
from coset.rules.library import DEFAULT, read_text, rule_files
from coset.rules.parser import parse
from coset.rules.rule import Rule
from coset.rules.typecheck import type_errors

assert coset.dialects
THOROUGH, CASES, FORMS = 30, 12, 12  # further seeds, cases of each, and forms of a rule that are drawn from in turn
DRAWS, INSTANCES = 30, 30  # for the question whether a condition asks for more
SECONDS, PROOF = 2.0, 2.0  # for the further tests, and for a proof
LATE = 20.0  # seconds of the processor after which a mutant is left
OUTCOMES = ("refused", "refuted", "survived", "open", "same", "late")


@dataclass(frozen=True)
class Judged:
    """What happened to one mutant: a word of `OUTCOMES`, and what the proof said where one was tried."""

    rule: str
    place: str
    kind: str
    where: str
    text: str
    digest: str  # of the whole entry: a change may read the same at two places
    outcome: str
    assurance: str
    seconds: float


def digest(change: Change) -> str:
    """What tells a changed entry from all others."""
    entry = change.entry
    parts = (entry.name, entry.declarations, entry.left, entry.right, entry.locals, entry.condition)
    return hashlib.sha256(re.sub(r"Place\([^()]*\)", "", repr(parts)).encode()).hexdigest()[:16]


def judged(entry: syntax.RuleEntry, change: Change, dialects: dict[str, str]) -> Judged:
    """What happens to a mutant of `entry`."""
    start = time.perf_counter()
    signal.signal(signal.SIGVTALRM, _late)
    signal.setitimer(signal.ITIMER_VIRTUAL, LATE)
    try:
        outcome, assurance = _outcome(entry, change, dialects)
    except TimeoutError:
        outcome, assurance = "late", ""
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    where = f"{Path(entry.place.file).name}:{entry.place.line}"
    seconds = round(time.perf_counter() - start, 3)
    return Judged(entry.name, where, change.kind, change.where, change.text, digest(change), outcome, assurance, seconds)


def _late(number: int, frame: object) -> None:
    raise TimeoutError


def _outcome(entry: syntax.RuleEntry, change: Change, dialects: dict[str, str]) -> tuple[str, str]:
    try:
        rules, errors = rules_of(change.entry, dialects)
        if errors or not rules or type_errors(rules):
            return "refused", ""
    except CosetError:
        return "refused", ""
    tests = entry_tests(rules, 0)
    if tests.counterexample:
        return "refuted", ""
    if change.where == "condition" and _narrower(rules, rules_of(entry, dialects)[0]):
        return "same", "narrower"
    differs = _differs(rules)
    speaking = [rule for rule in rules if rule.name not in tests.silent]
    shown, _ = shown_of(speaking, seconds=PROOF) if tests.compared else ("", "")
    assurance = shown or ("tested" if tests.compared else "assumed")
    if differs:
        return "survived", assurance
    return ("same" if assurance in ("proved", "bounded") else "open"), assurance


def _narrower(rules: Sequence[Rule], originals: Sequence[Rule]) -> bool:
    """Whether rules with another condition fire only where the original ones do, on everything that is drawn: then they are as true."""
    if [rule.name for rule in rules] != [rule.name for rule in originals]:
        return False
    fired = 0
    for seed, (rule, original) in itertools.product(range(DRAWS), list(zip(rules, originals, strict=True))[:FORMS]):
        search = InstanceSearch(random.Random(seed), dtypes=DTYPES, turn=seed, uneven=seed % 2 == 1)
        for instance in itertools.islice(instances(rule, search), INSTANCES):
            given = instance.attributes, instance.left_types, instance.variable_types
            if rule.decide(*given) is not None:
                fired += 1
                if original.decide(*given) is None:
                    return False
    return fired > 0


def _differs(rules: Sequence[Rule]) -> bool:
    """Whether further tests tell the sides apart, in the time there is."""
    ends = time.perf_counter() + SECONDS
    chosen = rules[:: max(1, -(-len(rules) // FORMS))]
    for seed, rule in zip(range(101, 101 + max(THOROUGH, len(chosen))), itertools.cycle(chosen), strict=False):
        if test_rule(rule, seed, CASES).counterexample is not None:
            return True
        if time.perf_counter() > ends:
            break
    return False


def library() -> list[tuple[syntax.RuleEntry, dict[str, str]]]:
    """The rules of the library with the dialects of their files, in an order drawn with a fixed seed."""
    entries = []
    for path in rule_files(DEFAULT):
        file, _ = parse(read_text(path), str(path))
        entries += [(entry, {name: dialect for name, dialect, _ in file.dialects}) for entry in file.rules]
    random.Random(0).shuffle(entries)
    return entries


def _recorded(path: Path | None) -> dict[str, Judged]:
    """What an earlier run has found."""
    if path is None or not path.exists():
        return {}
    found = [Judged(**json.loads(line)) for line in path.read_text().splitlines()]
    return {each.digest: each for each in found}


def drawn(rules: int, each: int) -> list[tuple[syntax.RuleEntry, Change, dict[str, str]]]:
    """At most `each` changes of every kind of the first `rules` rules: the first ones of all rules and kinds, then the second ones .."""
    ranked: list[tuple[int, syntax.RuleEntry, Change, dict[str, str]]] = []
    for entry, dialects in library()[:rules]:
        own = changes(entry)
        random.Random(entry.name).shuffle(own)
        for kind in KINDS:
            ranked += [(rank, entry, change, dialects) for rank, change in enumerate([one for one in own if one.kind == kind][:each])]
    return [(entry, change, dialects) for _, entry, change, dialects in sorted(ranked, key=lambda one: one[0])]


def measured(rules: int, each: int, record: Path | None) -> list[Judged]:
    """The outcomes of the drawn mutants; what is on record is not judged again."""
    known = _recorded(record)
    chosen = drawn(rules, each)
    found: list[Judged] = []
    start = time.perf_counter()
    for number, (entry, change, dialects) in enumerate(chosen):
        one = known.get(digest(change))
        if one is None:
            one = judged(entry, change, dialects)
            if record is not None:
                with record.open("a") as file:
                    print(json.dumps(asdict(one)), file=file)
        found.append(one)
        if one.outcome in ("survived", "open") or number % 100 == 99:
            counts = Counter(past.outcome for past in found)
            line = f"{number + 1}/{len(chosen)}, {time.perf_counter() - start:.0f} s, {dict(counts)}"
            told = one.outcome in ("survived", "open")
            print(f"{line}: {_line(one)}" if told else line, file=sys.stderr, flush=True)
    return found


def _line(one: Judged) -> str:
    return f"{one.rule} ({one.place}), {one.kind}, {one.where}: {one.text}: {one.outcome} as {one.assurance}"


def report(found: Sequence[Judged]) -> str:
    """The table by kinds, the shares, and what was not refuted."""
    lines = [f"{'':18}" + "".join(f"{word:>10}" for word in OUTCOMES)]
    for kind in (*KINDS, "all"):
        counts = Counter(each.outcome for each in found if kind in (each.kind, "all"))
        lines.append(f"{kind:18}" + "".join(f"{counts[word]:>10}" for word in OUTCOMES))
    total = Counter(each.outcome for each in found)
    seconds = sum(each.seconds for each in found)
    lines.append(f"{len(found)} mutants of {len({each.rule for each in found})} rules, {seconds:.0f} s")
    for known, words in (("told apart by further tests", ("survived",)), ("or not proved to mean the same", ("survived", "open", "late"))):
        missed = sum(total[word] for word in words)
        read = total["refuted"] + missed
        whole = read + total["refused"]
        lines.append(f"missed, {known}: {missed}; refuted {total['refuted'] / max(1, read):.2%} of the {read} that can be read,")
        lines.append(f"  refused or refuted {1 - missed / max(1, whole):.2%} of all {whole}")
    wrong = [each for each in found if each.outcome == "survived" and each.assurance in ("proved", "bounded")]
    lines += [f"called proved or bounded, and false: {len(wrong)}", *map(_line, wrong)]
    for word in ("survived", "open", "late"):
        lines += ["", f"{word}:", *sorted(_line(each) for each in found if each.outcome == word)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=10_000, help="at most so many mutants of each kind of a rule, drawn with a fixed seed")
    parser.add_argument("--rules", type=int, default=10_000, help="at most so many rules, drawn with a fixed seed")
    parser.add_argument("--record", type=Path, help="a file of outcomes, to which each is added, and from which a run goes on")
    parser.add_argument("--json", type=Path, help="where to write all outcomes")
    arguments = parser.parse_args()
    found = measured(arguments.rules, arguments.each, arguments.record)
    print(report(found))
    if arguments.json is not None:
        arguments.json.write_text("[\n" + ",\n".join(json.dumps(asdict(each)) for each in found) + "\n]\n")


if __name__ == "__main__":
    main()
