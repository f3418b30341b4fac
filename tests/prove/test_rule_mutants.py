"""A seeded part of the mutants of the library's rules: none that more tests refute is proved. All: `python -m benchmarks.rule_mutants`."""

from __future__ import annotations

import pytest

from benchmarks.rule_mutants import judged, library, mutants

ENTRIES = library()[::12]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(ENTRIES)), ids=lambda number: ENTRIES[number][0].name)
def test_no_mutant_survives_as_proved(number: int) -> None:
    entry, dialects = ENTRIES[number]
    drawn = [mutant for place, (_, mutant) in enumerate(mutants(entry)) if place % 2 == number % 2]
    outcomes = [judged(mutant, dialects) for mutant in drawn[:3]]
    assert not [outcome for outcome in outcomes if outcome == "survived as proved"]
