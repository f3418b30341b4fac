"""Mutants of the library's rules, and how many of them `coset check` lets pass.

An operand is swapped, a condition dropped, an axis, a sign or a constant changed. A mutant is refused when it is read, refuted by the
ordinary tests, or neither. Of those, the ones that more tests refute are survivors: their meaning has changed and nobody noticed; one
that was proved is a mistake of the prover. `python -m benchmarks.rule_mutants --share 10` takes every tenth mutant of each rule.
Terms are mutated in tests/prove/mutants.py, where `compare` is on trial.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import coset.dialects
from coset.ir.errors import CosetError
from coset.prove.check import check_rules
from coset.prove.sample import test_rule
from coset.rules import syntax
from coset.rules.elaborate import rules_of
from coset.rules.library import DEFAULT, read_text, rule_files
from coset.rules.parser import parse
from coset.rules.rule import Rule
from coset.rules.typecheck import type_errors

assert coset.dialects
SIGNS = {"+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
THOROUGH = (101, 102, 103, 104)  # further seeds, 120 cases each


def changed(part: Any) -> Iterator[Any]:
    """The small changes at the top of a part of a term."""
    if isinstance(part, syntax.Number):
        yield replace(part, value=part.value + 1)
        yield replace(part, value=-part.value - 1)
    if isinstance(part, syntax.Operation):
        if part.operator in SIGNS:
            yield replace(part, operator=SIGNS[part.operator])
        if part.operator == "negate":
            yield part.operands[0]
        if len(part.operands) == 2 and part.operator not in ("item", "slice"):
            yield replace(part, operands=part.operands[::-1])
    if isinstance(part, syntax.Invocation) and len(part.arguments) > 1:
        yield replace(part, arguments=(part.arguments[1], part.arguments[0], *part.arguments[2:]))
    if isinstance(part, syntax.Brackets) and len(part.items) > 1:
        yield replace(part, items=part.items[::-1])


def mutated(part: Any) -> Iterator[Any]:
    """`part` with one small change somewhere in it."""
    yield from changed(part)
    if isinstance(part, syntax.Operation):
        for i, inner in enumerate(part.operands):
            yield from (replace(part, operands=(*part.operands[:i], m, *part.operands[i + 1 :])) for m in mutated(inner))
    elif isinstance(part, syntax.Brackets):
        for i, item in enumerate(part.items):
            yield from (replace(part, items=(*part.items[:i], m, *part.items[i + 1 :])) for m in mutated(item))
    elif isinstance(part, syntax.Invocation):
        for i, inner in enumerate(part.arguments):
            yield from (replace(part, arguments=(*part.arguments[:i], m, *part.arguments[i + 1 :])) for m in mutated(inner))
        for i, (name, value) in enumerate(part.keywords):
            yield from (replace(part, keywords=(*part.keywords[:i], (name, m), *part.keywords[i + 1 :])) for m in mutated(value))


def mutants(entry: syntax.RuleEntry) -> Iterator[tuple[str, syntax.RuleEntry]]:
    """What was changed, and the entry with that change."""
    for right in mutated(entry.right):
        yield "right side", replace(entry, right=right)
    for i, local in enumerate(entry.locals):
        for value in mutated(local.value):
            yield "local", replace(entry, locals=(*entry.locals[:i], replace(local, value=value), *entry.locals[i + 1 :]))
    if entry.condition is not None:
        yield "condition dropped", replace(entry, condition=None)
        for condition in mutated(entry.condition):
            yield "condition", replace(entry, condition=condition)


def judged(entry: syntax.RuleEntry, dialects: dict[str, str]) -> str:
    """What happens to a mutant: refused, refuted, survived (as what), or not told apart from the rule."""
    try:
        rules, errors = rules_of(entry, dialects)
        if errors or not rules or type_errors(rules):
            return "refused"
        (verdict,) = check_rules([replace(rule, assurance="assumed") for rule in rules], repaired=False)
    except CosetError:
        return "refused"
    if verdict.assurance == "refuted":
        return "refuted"
    return f"survived as {verdict.assurance}" if _differs(rules) else f"no difference found, {verdict.assurance}"


def _differs(rules: list[Rule]) -> bool:
    return any(test_rule(rule, seed, 120).counterexample is not None for rule in rules[:4] for seed in THOROUGH)


def library() -> list[tuple[syntax.RuleEntry, dict[str, str]]]:
    """The rules of the library with the dialects of their files, in an order drawn with a fixed seed."""
    entries = []
    for path in rule_files(DEFAULT):
        file, _ = parse(read_text(path), str(path))
        entries += [(entry, {name: dialect for name, dialect, _ in file.dialects}) for entry in file.rules]
    random.Random(0).shuffle(entries)
    return entries


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=int, default=1, help="one of so many mutants of each rule")
    parser.add_argument("--rules", type=int, default=10_000, help="at most so many rules, drawn with a fixed seed")
    arguments = parser.parse_args()
    start = time.perf_counter()
    entries = library()
    counts: Counter[str] = Counter()
    for entry, dialects in entries[: arguments.rules]:
        for number, (what, mutant) in enumerate(mutants(entry)):
            if (number + len(entry.name)) % arguments.share == 0:
                outcome = judged(mutant, dialects)
                counts[outcome] += 1
                if outcome.startswith("survived"):
                    print(f"{entry.name}, {what}: {outcome}: {entry.place.file}:{entry.place.line}", flush=True)
    changed_meaning = sum(number for word, number in counts.items() if not word.startswith("no difference"))
    caught = counts["refused"] + counts["refuted"]
    print(f"{len(entries[: arguments.rules])} rules: {dict(counts)}")
    print(f"of {changed_meaning} mutants that change the meaning {caught / max(1, changed_meaning):.1%} are refused or refuted")
    refutable = counts["refuted"] + sum(number for word, number in counts.items() if word.startswith("survived"))
    print(f"of {refutable} that can be read {counts['refuted'] / max(1, refutable):.1%} are refuted; {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
