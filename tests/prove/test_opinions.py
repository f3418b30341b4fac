"""The scripts that ask again: more draws for what is called proved, and another solver for the questions to Z3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import coset.dialects
from benchmarks import second_solver
from benchmarks.second_opinion import kept, library, opinion, opinions
from coset.cli import run
from coset.rules.elaborate import rules_of
from coset.rules.parser import parse
from coset.rules.rule import Rule

assert coset.dialects
RULE = "use stablehlo as hlo\nrule times\n  for x: f32[S..]\n  x * splat({}) => x + x\n  numerics reassociates\n"


def _rules(text: str) -> list[Rule]:
    file, errors = parse(text, "times.rules")
    rules, more = rules_of(file.rules[0], {name: dialect for name, dialect, _ in file.dialects})
    assert not errors and not more
    return rules


def test_an_opinion_has_the_comparisons_that_are_wanted() -> None:
    found = opinion("times", _rules(RULE.format(2)), "key", wanted=150)
    assert found.comparisons >= 150 and not found.counterexample and not found.short


def test_an_opinion_speaks_against_what_is_false() -> None:
    assert opinion("times", _rules(RULE.format(3)), "key", wanted=150).counterexample.startswith("times")


def test_an_opinion_is_kept_until_the_text_changes(tmp_path: Path) -> None:
    name, file = min(library()), tmp_path / "opinions.jsonl"
    assert [new for _, new in opinions([name], file, 100.0, 2.0)] == [True]
    assert [new for _, new in opinions([name], file, 100.0, 2.0)] == [False]
    row = json.loads(file.read_text())
    file.write_text(json.dumps({**row, "hash": "another"}) + "\n")
    assert kept(file)[name].hash == "another"
    assert [new for _, new in opinions([name], file, 100.0, 2.0)] == [True]


def test_questions_are_what_check_writes(tmp_path: Path) -> None:
    path, folder = tmp_path / "bits.rules", tmp_path / "questions"
    path.write_text(
        "use stablehlo as hlo\nrule same\n  for x, y: i32[S..]\n  xor(x, y) => subtract(or(x, y), and(x, y))\n  numerics exact\n"
    )
    assert run(["check", str(path), "--smt", str(folder)]) == 0
    found = second_solver.questions(folder, None, 0)
    assert found and all(each.first in ("sat", "unsat") for each in found)
    assert len({each.key for each in found}) == len(found) and all("(check-sat)" in each.text for each in found)


def test_another_file_is_no_question(tmp_path: Path) -> None:
    file = tmp_path / "other.smt2"
    file.write_text("(check-sat)\n")
    with pytest.raises(ValueError, match="no file of"):
        second_solver.question(file)


def test_what_was_answered_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(set-info :status unsat)\n(assert false)\n(check-sat)\n"
    (tmp_path / "one.smt2").write_text(text)
    (tmp_path / "again.smt2").write_text(f"; the same\n{text}")
    told: list[str] = []
    monkeypatch.setattr(second_solver, "asked", lambda text, seconds: told.append(text) or "unsat")
    wanted = second_solver.questions(tmp_path, None, 0)
    for _ in range(2):
        assert [said for _, said in second_solver.answers(tmp_path, wanted, 1.0, float("inf"))] == ["unsat"]
    assert len(wanted) == len(told) == 1
