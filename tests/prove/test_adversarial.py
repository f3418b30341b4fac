"""False rules made to fool the prover, and true ones beside them that must stay shown.

Here the proof alone is on trial: no test is run first, so what no small tensor shows counts as well.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import coset.dialects
from coset.prove.verify import prove
from coset.rules.library import check_files, read_text
from coset.rules.parser import parse
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError

pytestmark = pytest.mark.slow

assert coset.dialects
SECONDS = 12.0  # for what is left open at once where symbols stand for the attributes
FOLDER = Path(__file__).parent


def _names(kind: str) -> list[str]:
    path = FOLDER / f"adversarial_{kind}.rules"
    return [entry.name for entry in parse(read_text(path), str(path))[0].rules]


@cache
def _read(kind: str) -> tuple[dict[str, list[Rule]], list[RuleError]]:
    rules, errors = check_files([FOLDER / f"adversarial_{kind}.rules"])
    return {name: [rule for rule in rules.family(name) if "#" not in rule.name] for name in _names(kind)}, errors


@pytest.mark.parametrize("kind", ["false", "sampled", "true"])
def test_they_are_rules(kind: str) -> None:
    assert [str(error) for error in _read(kind)[1]] == []


@pytest.mark.parametrize("name", _names("false"))
def test_the_prover_is_not_fooled(name: str) -> None:
    proofs = map(prove, _read("false")[0][name])
    assert any(proof.cases and not proof.assurance for proof in proofs), "shown, in every form that has instances"


@pytest.mark.parametrize("name", _names("sampled"))
def test_what_samples_do_not_show_is_not_proved(name: str) -> None:
    assert all(prove(rule, seconds=SECONDS).assurance != "proved" for rule in _read("sampled")[0][name])


@pytest.mark.parametrize("name", _names("true"))
def test_what_is_true_is_still_shown(name: str) -> None:
    for proof in map(prove, _read("true")[0][name]):
        assert proof.assurance, proof.reason
