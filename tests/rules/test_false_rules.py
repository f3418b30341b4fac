"""Rules that look right: each is refuted with the mistake shown, and its true version, with the guard that it lacked, holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from rule_texts import read_rules

import coset.dialects
from coset.prove.check import Effort, check_rules
from coset.rules.format import format_text
from coset.rules.library import RuleSet, check_files, load
from tests.sampled import sampled

assert coset.dialects
FILE = Path(__file__).with_name("false.rules")
GUARDED = "_guarded"
RULES, ERRORS = check_files([FILE])
FALSE = sorted({rule.family for rule in RULES.rules if rule.place.file == str(FILE) and not rule.family.endswith(GUARDED)})
REPAIRED = FALSE[::8]  # of which repairs are looked for too, which takes as long again: tests/prove/test_false.py asks for more
THEMES = (
    "casts", "comparison", "constants", "contraction", "convolution", "elementwise", "identity", "integers", "quantization", "shapes",
    "training",
)  # fmt: skip


def test_the_file_is_read_and_formatted() -> None:
    assert ERRORS == []
    assert len(FALSE) >= 19
    assert format_text(FILE.read_text(), FILE) == FILE.read_text()


@pytest.mark.parametrize("name", sampled(FALSE, 2))
def test_the_false_rule_is_refuted_with_the_mistake(name: str) -> None:
    (verdict,) = check_rules(RULES.family(name), effort=Effort(repaired=name in REPAIRED))
    assert verdict.assurance == "refuted", verdict.method
    assert "left" in verdict.counterexample and " = " in verdict.counterexample


@pytest.mark.parametrize("name", sampled(FALSE, 2))
def test_the_guarded_rule_holds(name: str) -> None:
    (verdict,) = check_rules(RULES.family(name + GUARDED))
    assert verdict.ok and verdict.assurance != "assumed", f"{verdict.method}\n{verdict.counterexample}"


def test_a_rule_whose_sides_are_one_term_says_nothing(tmp_path: Path) -> None:
    _, errors = read_rules(tmp_path, "rule odd for a: F[M, K], b: F[K, N], c: F[N, P] a @ (b @ c) => a @ (b @ c) numerics exact\n")
    assert [error.message for error in errors] == ["both sides are the same term"]


@pytest.fixture(scope="module")
def library() -> RuleSet:
    return load(with_definitions=False)


@pytest.mark.parametrize("theme", THEMES)
def test_each_theme_has_rules_and_none_is_taken_on_trust(theme: str, library: RuleSet) -> None:
    own = [rule for rule in library.rules if Path(rule.place.file).stem == theme]
    assert own and {rule.assurance for rule in own} <= {"tested", "bounded", "proved"}
