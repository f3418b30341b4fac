"""What was found of the range of an instance is kept from run to run, of the library's rules alone."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects
from coset.egraph import ranges
from coset.egraph.kept_ranges import KeptRanges, _text
from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import saturate
from coset.ir import dims
from coset.ir.constants import constant_of
from coset.ir.op import get_op
from coset.ir.term import input_term, make
from coset.ir.types import F16, F32, TensorType, tensor
from coset.rules.codec import compact
from coset.rules.definition import definition_of
from coset.rules.elaborated import KeptRule
from coset.rules.library import load
from coset.rules.rule import Rule

assert coset.dialects
DISTINCT: tuple[Any, ...] = (
    None, True, 1, 1.0, -0.0, 0.0, float("nan"), "1", "", (), (1,), ((1,),), (1, 1), ("1",), F16, F32, "f16", tensor(F16), tensor(F16, 1),
    tensor(F16, dims.symbol("n")), TensorType(F16, None), dims.symbol("n"), "n", constant_of(np.zeros(2, np.float32)),
    constant_of(np.array([0.0, -0.0], np.float32)), constant_of(np.zeros((2, 1), np.float32)),
)  # fmt: skip


def _opening() -> list[Rule]:
    """The rules that open a Gelu, as they are when they were read before."""
    return [_read_before(rule) for rule in definition_of(get_op("onnx.Gelu")).rules[0]]


def _read_before(rule: Rule) -> Rule:
    copy = object.__new__(KeptRule)
    copy.__dict__.update(rule.__dict__, left=rule.left, right=rule.right, compiled=rule.compiled)
    return copy


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without answers."""
    assert _opening()  # from the cache that there is
    monkeypatch.setenv("COSET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_values_of_instances_have_different_texts() -> None:
    for one, other in combinations(DISTINCT, 2):
        assert compact(_text(one)) != compact(_text(other)), (one, other)
    for value in (b"bytes", {1: 2}, object()):
        with pytest.raises(TypeError):
            _text((value,))


@pytest.mark.usefixtures("folder")
def test_an_answer_is_there_in_the_next_run_for_the_same_instance() -> None:
    rule, first = _opening()[0], KeptRanges()
    key, other = first.key(rule, (F16, 3), ()), first.key(rule, (F16, 4), ())
    assert key != other and key is not None and first.get(key) is None
    first.put(key, frozenset({4, 2}))
    assert first.get(key) == {2, 4} and KeptRanges().get(key) is None
    first.save()
    second = KeptRanges()
    assert second.get(key) == {2, 4} and second.get(other) is None
    second.put(other, frozenset())
    second.save()
    third = KeptRanges()
    assert third.get(key) == {2, 4} and third.get(other) == frozenset()


def test_nothing_is_kept_of_rules_that_others_wrote_nor_of_values_without_a_text(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.rules"
    file.write_text('use stablehlo\n\nrule twice\n  "A sum."\n  for x: F[S..]\n  x + x => splat(2) * x\n  numerics reassociates\n')
    mine, *_ = load([file], with_definitions=False).rules
    kept = KeptRanges()
    assert kept.key(mine, 1) is None and kept.key(_opening()[0], object()) is None
    kept.put(None, frozenset({1}))
    kept.save()
    assert kept.get(None) is None and not (folder / "ranges").exists()


def test_a_file_that_was_cut_off_is_made_anew(folder: Path) -> None:
    kept = KeptRanges()
    key = kept.key(_opening()[0], 1)
    kept.put(key, frozenset({1}))
    kept.save()
    (file,) = (folder / "ranges").iterdir()
    file.write_bytes(file.read_bytes()[:-3])
    assert KeptRanges().get(key) is None


def _searched(rules: list[Rule]) -> tuple[frozenset[int], int]:
    """The classes that may not be stored behind a Gelu in f16, and how many there are."""
    root = make("onnx.Gelu", [input_term("x", tensor(F16, 4, 8))], {"approximate": "tanh"})
    found = saturate([root], [Phase("algebra", tuple(rules))], Limits(iterations=2)).graph
    return found.heavy, len(found.nodes)


def test_a_search_keeps_what_it_found_and_finds_the_same_with_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "KEPT", KeptRanges())
    monkeypatch.setattr("coset.egraph.serving.KEPT", ranges.KEPT)
    rules = _opening()
    first = _searched(rules)
    assert first[0], "what a Gelu in f16 has inside is too heavy"
    assert list((folder / "ranges").iterdir())
    monkeypatch.setattr(ranges, "KEPT", KeptRanges())
    monkeypatch.setattr(ranges, "_KNOWN", {})
    monkeypatch.setattr(ranges, "_outweighing", lambda *_: pytest.fail("asked again"))
    assert _searched(rules) == first
