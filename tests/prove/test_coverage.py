"""What a proof covers: every instance is shown, known not to fire, or named as a gap.

The false rules are true at small ranks, in one element type or for symbols at rank 0 alone: none may be called proved.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import pytest

import coset.dialects
from coset.ir import dims
from coset.prove.frame_sorts import Unnatural
from coset.prove.frames import frames_of
from coset.prove.index import INDEX, IndexFacts
from coset.prove.shown import shown_of
from coset.prove.verify import prove
from coset.rules.library import check_files, read_text
from coset.rules.parser import parse
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError

assert coset.dialects
FOLDER = Path(__file__).parent


def _names(kind: str) -> list[str]:
    path = FOLDER / f"coverage_{kind}.rules"
    return [entry.name for entry in parse(read_text(path), str(path))[0].rules]


@cache
def _read(kind: str) -> tuple[dict[str, list[Rule]], list[RuleError]]:
    rules, errors = check_files([FOLDER / f"coverage_{kind}.rules"])
    return {name: [rule for rule in rules.rules if rule.family == name] for name in _names(kind)}, errors


@pytest.mark.parametrize("kind", ["false", "true"])
def test_they_are_rules(kind: str) -> None:
    assert [str(error) for error in _read(kind)[1]] == []


@pytest.mark.parametrize("name", _names("false"))
def test_what_is_false_beyond_small_instances_is_not_proved(name: str) -> None:
    assert shown_of(_read("false")[0][name], seconds=8.0)[0] != "proved"


@pytest.mark.parametrize("name", _names("true"))
def test_what_is_true_stays_proved(name: str) -> None:
    assurance, how = shown_of(_read("true")[0][name])
    assert assurance == "proved", how


def test_a_proof_says_what_it_covers() -> None:
    (rule,) = _read("true")[0]["reversed_behind_a_turn"]
    proof = prove(rule)
    assert proof.covered.ranks >= {0, 1, 2}
    assert "f32" in proof.covered.dtypes
    assert f"{proof.covered}" in proof.method


def test_nothing_is_shown_by_no_instance() -> None:
    assert shown_of([]) == ("", "no proof: no instance with symbolic sizes")


def test_all_widths_of_a_class_are_covered() -> None:
    (rule,) = _read("true")[0]["truths_in_integers_of_eight_bits"]
    proof = prove(rule)
    assert proof.assurance == "proved"
    assert proof.covered.dtypes == {"bool", "i32"}  # of inputs and results: the integers are between them
    (rule,) = _read("false")[0]["counts_in_any_type"]
    assert not prove(rule).assurance


@pytest.mark.parametrize("name", ["sixth_power_of_a_permutation", "fifth_power_of_two_turns"])
def test_a_permutation_of_the_axes_of_one_tensor_has_no_frames(name: str) -> None:
    with pytest.raises(Unnatural):
        frames_of(_read("false")[0][name][0])


def test_bounds_of_indices() -> None:
    i, n = dims.symbol("i:0"), dims.symbol("N")
    known = IndexFacts({"i:0": n})
    assert known.bounds(i) == (0, INDEX - 1)
    assert known.bounds(dims.add(i, 5)) == (5, INDEX + 4)
    assert known.bounds(dims.subtract(dims.subtract(n, 1), i)) == (0, INDEX - 1)
    assert known.bounds(dims.multiply(i, i))[1] == (INDEX - 1) ** 2
    assert IndexFacts({"i:0": 3}).bounds(dims.multiply(i, 2)) == (0, 4)
    assert known.bounds(dims.mod(i, 7))[0] == 0


def _is_law(word: tuple[int, ...], size: int) -> bool:
    """Whether a word in two letters (1, 2 and their inverses -1, -2) is the identity for all permutations of so many things."""
    every = list(itertools.permutations(range(size)))
    for p, q in itertools.product(every, repeat=2):
        letters = {1: p, 2: q, -1: tuple(map(p.index, range(size))), -2: tuple(map(q.index, range(size)))}
        for start in range(size):
            place = start
            for letter in word:
                place = letters[letter][place]
            if place != start:
                return False
    return True


def _reduced(length: int) -> list[tuple[int, ...]]:
    """The words of so many letters that begin with the first one and have no letter beside its inverse; all exponents sum up to 0.

    No others are identities of fewer than six, or of four things of fewer than twelve, letters: both letters may be the same cycle.
    """
    words: list[tuple[int, ...]] = [(1,)]
    for _ in range(length - 1):
        words = [(*word, letter) for word in words for letter in (1, -1, 2, -2) if letter != -word[-1]]
    return [word for word in words if sum(x for x in word if abs(x) == 1) == 0 and sum(x for x in word if abs(x) == 2) == 0]


def test_no_word_of_up_to_five_letters_is_the_identity_for_three_things() -> None:
    assert not any(_is_law((1,) * power, 3) for power in range(1, 6))
    assert _is_law((1,) * 6, 3)
    assert not any(_is_law(word, 3) for length in range(1, 6) for word in _reduced(length))


def test_no_word_of_up_to_eleven_letters_is_the_identity_for_four_things() -> None:
    assert not any(_is_law((1,) * power, 4) for power in range(1, 12))
    assert _is_law((1,) * 12, 4)
    assert not any(_is_law(word, 4) for length in (2, 4, 6, 8, 10) for word in _reduced(length))
