"""How much is shown: shares add up, weigh what is used, and are what `coset check` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import coset.dialects
from coset.cli import run
from coset.console.shares import USAGE, WORDS, EntryUsage, by_use, families, median_seconds, recorded_usage
from coset.ir.registry import all_ops
from coset.prove.verdict import RuleVerdict
from coset.rules.definition import is_defined
from coset.rules.library import load
from coset.rules.lock import ASSURANCES

assert coset.dialects
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
VERDICTS = st.dictionaries(NAMES, st.tuples(st.sampled_from(["one", "two"]), st.sampled_from(ASSURANCES), st.floats(0, 9)), min_size=1)


def made(drawn: Mapping[str, tuple[str, str, float]]) -> list[RuleVerdict]:
    return [RuleVerdict(name, f"/x/{file}.rules", 1, "exact", word, seconds, "") for name, (file, word, seconds) in drawn.items()]


@given(VERDICTS)
def test_the_shares_of_each_family_add_up(drawn: Mapping[str, tuple[str, str, float]]) -> None:
    found = families(made(drawn))
    assert sum(family["rules"] for family in found.values()) == len(drawn)
    for name, family in found.items():
        own = [word for file, word, _ in drawn.values() if file == name]
        assert family["rules"] == len(own)
        assert sum(family[word] for word in WORDS) == pytest.approx(1)
        assert all(family[word] * len(own) == pytest.approx(own.count(word)) for word in WORDS)


@given(VERDICTS, st.dictionaries(NAMES, st.integers(1, 50)))
def test_each_entry_weighs_as_much_as_it_is_used(drawn: Mapping[str, tuple[str, str, float]], counts: Mapping[str, int]) -> None:
    found = by_use(made(drawn), EntryUsage(counts, 3, 0))
    repeated = [word for name, (_, word, _) in drawn.items() for _ in range(counts.get(name, 0))]
    assert found["uses"] == len(repeated) and found["elsewhere"] == sum(counts.values()) - len(repeated)
    assert found["rules"] == len(drawn.keys() & counts.keys())
    assert all(found[word] * max(1, len(repeated)) == pytest.approx(repeated.count(word)) for word in WORDS)


def test_the_median_is_of_what_was_verified_now() -> None:
    kept = {"a": ("one", "proved", 0.0)}
    assert median_seconds(made(kept)) is None
    assert median_seconds(made({**kept, "b": ("one", "proved", 1.0), "c": ("one", "tested", 5.0), "d": ("one", "tested", 2.0)})) == 2.0


def test_what_the_models_use_is_there() -> None:
    usage = recorded_usage()
    assert usage is not None and usage.models > 30
    there = {rule.family for rule in load().rules} | {op.name for op in all_ops() if is_defined(op)}
    gone = {name: count for name, count in usage.counts.items() if name not in there}
    assert sum(gone.values()) <= 0.05 * sum(usage.counts.values()), f"python -m benchmarks.rule_usage: {gone}"


def test_without_the_benchmarks_nothing_is_weighed(tmp_path: Path) -> None:
    assert recorded_usage(tmp_path / USAGE.name) is None


def test_check_prints_the_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "signs.rules").write_text("use stablehlo\nrule twice for x: F[S..] -(-x) => x numerics exact\n")
    (tmp_path / "sums.rules").write_text("use stablehlo\nrule add_zero for x: F[S..] x + splat(0) => x numerics exact except signed_zero\n")
    assert run(["check", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["families"]["signs"]["rules"] == 1 and found["families"]["signs"]["proved"] == 1
    assert found["used"]["rules"] == 1 and found["used"]["uses"] == recorded_usage().counts["add_zero"] > 0  # type: ignore[union-attr]
    assert found["median_seconds"] > 0
    assert run(["check", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["median_seconds"] is None
    assert run(["check", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines if line.startswith(("signs", "sums"))] == [["signs", "1", "100%"], ["sums", "1", "100%"]]
    assert lines[-1] == "2 rules: 100% proved; 0% with native functions; 0 mistakes"
    assert "every verdict is from the lock file" in lines
