"""The attack on the prover: every rule of the corpus is read, its witness shows that it is false, and no false rule is called proved but
for those that are known. All verdicts: `python -m benchmarks.false_rules`."""

from __future__ import annotations

import re

import pytest

from benchmarks.false_rules import FOLDER, Attack, chosen, corpus, judged, kinds, misses, renamed, unbroken
from coset.ir.registry import all_ops
from tests.sampled import sampled

KINDS = kinds()[::-1]
SAMPLE, SEED = 40, 0  # about 40 s
ALMOST = 0.8  # of the true ones are to be proved


def _corpus(kind: str) -> list[Attack]:
    all_ops()
    return corpus(kind)


@pytest.mark.parametrize("kind", sampled(KINDS, 6))
def test_the_corpus_is_read_and_says_what_it_breaks(kind: str) -> None:
    attacks = _corpus(kind)
    assert len({attack.name for attack in attacks}) == len(attacks) >= 15
    assert [attack.name for attack in attacks if attack.false and not attack.witness] == []
    assert [attack.name for attack in attacks if not attack.false and attack.grounds] == []


@pytest.mark.parametrize("kind", sampled([kind for kind in KINDS if not kind.startswith("true")], 6))
def test_each_witness_breaks_the_promise(kind: str) -> None:
    found = {attack.name: reasons for attack in _corpus(kind) if (reasons := unbroken(attack))}
    assert found == {}


@pytest.mark.slow
def test_none_of_a_sample_is_called_proved() -> None:
    all_ops()
    false = [attack for attack in chosen(kinds(), None, SEED) if attack.false]
    step = max(1, len(false) // SAMPLE)
    known = misses()
    called = {f"{each.kind}/{each.name}": each.verdict for each in map(judged, false[SEED::step][:SAMPLE])}
    proved = {name for name, verdict in called.items() if verdict == "proved"}
    assert proved - known.keys() == set(), "false, and called proved"
    assert {name for name in known if name in called} - proved == set(), "no longer missed: take it out of known_misses.txt"


def test_a_verdict_does_not_depend_on_the_name() -> None:
    all_ops()
    named = {attack.name: renamed(attack, 20) for attack in chosen(kinds(), 6, SEED)}
    assert [name for name, verdicts in named.items() if len(verdicts) > 1] == []


@pytest.mark.slow
def test_true_neighbours_are_not_refuted() -> None:
    all_ops()
    true = [attack for attack in chosen(kinds(), None, SEED) if not attack.false][::12]
    verdicts = [judged(attack) for attack in true]
    assert [each.name for each in verdicts if each.verdict == "refuted"] == []
    assert sum(each.verdict == "proved" for each in verdicts) >= ALMOST * len(verdicts)


def test_what_is_known_to_be_missed_is_in_the_corpus() -> None:
    names = {f"{kind}/{name}" for kind in kinds() for name in re.findall(r"(?m)^rule (\w+)", (FOLDER / f"{kind}.rules").read_text())}
    assert misses().keys() - names == set()
