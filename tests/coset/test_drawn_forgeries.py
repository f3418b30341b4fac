"""A seeded sample of `benchmarks/forgeries.py`: none with a false claim is accepted, by a checker that accepts what is true."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.forgeries import KINDS, drawn, true_ones
from coset.prove.classes import Classes
from coset.prove.folded import Folding, refuse_unless


def test_no_forgery_with_a_false_claim_is_accepted() -> None:
    found = Counter((row["kind"], row["answer"]) for row in drawn(340, 11))
    assert not [kind for kind, answer in found if answer == "UNSOUND"]
    assert {kind for kind, answer in found if answer == "refused"} >= set(KINDS) - {"exactness"}


def test_the_certificates_that_forgeries_start_from_are_accepted() -> None:
    assert sum(true_ones(60, 3)) >= 58


def test_the_same_seed_draws_the_same_forgeries() -> None:
    assert list(drawn(20, 5)) == list(drawn(20, 5))


def test_the_generator_sees_a_checker_that_believes_what_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Classes, "same", lambda *_: True)
    assert any(row["answer"] == "UNSOUND" for row in drawn(20, 2, ["attributes", "names"]))


WITHOUT: dict[str, tuple[str, ...]] = {
    "how near a rounded number is": ("rounding", "beside_a_large_number"),
    "what cancels": ("cancelling",),
    "what absorbs, and that a number has one life": ("absorbing",),
}


@pytest.mark.parametrize("check", WITHOUT)
def test_the_generator_sees_a_checker_without_one_of_its_checks(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition on constants is needed; what absorbs others is refused by several of them, and so is what is too far away."""
    monkeypatch.setattr(Folding, "_admitted", lambda _, __, error, ___: error)
    if check == "how near a rounded number is":
        monkeypatch.setattr("coset.prove.folded.within", lambda *_: True)
    if check == "what absorbs, and that a number has one life":
        monkeypatch.setattr(Folding, "_define", lambda self, _, value, error, *__: self._record(value, error))
        monkeypatch.setattr("coset.prove.kernel.refuse_unless", _but_for_rounded_numbers)
    assert any(row["answer"] == "UNSOUND" for row in drawn(60, 4, WITHOUT[check]))


def _but_for_rounded_numbers(holds: bool, message: str) -> None:
    if "looks at a number that was rounded" not in message:
        refuse_unless(holds, message)
