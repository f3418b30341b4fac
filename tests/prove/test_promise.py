"""What each numeric word admits and refuses (docs/numerics.md): `promise_holds.rules` and `promise_fails.rules` stand on either side."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import coset.dialects
from coset.prove.check import Effort, check_rules
from coset.prove.verdict import RuleVerdict
from coset.rules.library import RuleSet, check_files, read_text
from coset.rules.parser import parse
from tests.sampled import sampled

assert coset.dialects
QUICK = Effort(repaired=False)
HERE = Path(__file__).parent
HOLDS, FAILS = HERE / "promise_holds.rules", HERE / "promise_fails.rules"


def _names(path: Path) -> list[str]:
    file, mistakes = parse(read_text(path), str(path))
    assert not mistakes
    return [entry.name for entry in file.rules]


@cache
def _rules(path: Path) -> RuleSet:
    """The rules of a file, read once: each reading checks the types of all of them."""
    rules, errors = check_files([path])
    assert errors == []
    return rules


def _verdict(path: Path, name: str) -> RuleVerdict:
    (verdict,) = check_rules(_rules(path).rules, lambda rule: rule.place.file == str(path) and rule.family == name, effort=QUICK)
    return verdict


@pytest.mark.parametrize("name", sampled(_names(HOLDS), 3))
def test_what_a_word_admits_is_not_refuted(name: str) -> None:
    verdict = _verdict(HOLDS, name)
    assert verdict.assurance in ("proved", "bounded", "tested"), verdict.counterexample


@pytest.mark.parametrize("name", sampled(_names(FAILS), 3))
def test_what_a_word_refuses_is_refuted_by_an_input(name: str) -> None:
    verdict = _verdict(FAILS, name)
    assert verdict.assurance == "refuted", verdict.method
    assert verdict.counterexample.startswith(name)


@pytest.mark.parametrize("name", ["sine", "log", "a_rule_of_another_name"])
def test_a_verdict_does_not_depend_on_the_name(tmp_path: Path, name: str) -> None:
    file, _ = parse(read_text(FAILS), str(FAILS))
    (entry,) = (entry for entry in file.rules if entry.name == "look_for_nan")
    path = tmp_path / "renamed.rules"
    path.write_text(f"use stablehlo\n{entry.text}\n".replace("rule look_for_nan", f"rule {name}"))
    assert _verdict(path, name).assurance == "refuted"
