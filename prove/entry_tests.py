"""The rules of an entry on drawn instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from coset.prove.counterexample import Counterexample
from coset.prove.deadline import Late
from coset.prove.sample import test_rule
from coset.rules.rule import Rule

CASES, LEAST = 36, 10  # comparisons for an entry with one variant, and for each of very many


@dataclass
class Tests:
    """How the tests of an entry went: the comparisons that were made, which rules had none (ops that no element type of the rule fits), the
    rule with the first counterexample (`refuting`), and whether the time was over before all was drawn (`late`)."""

    compared: int = 0
    silent: set[str] = field(default_factory=set)
    refuting: tuple[Rule, Counterexample] | None = None
    late: bool = False

    @property
    def counterexample(self) -> str:
        """The first counterexample, in words, or ""."""
        return "" if self.refuting is None else str(self.refuting[1])

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
                tests.refuting = rule, outcome.counterexample
                return tests
        left = max(1, len(rules) - len(tests.silent))
        if cases * left >= CASES:
            break
        cases = CASES // left
    return tests
