"""Who answers the questions about payload functions (`coset.rules.judged`)."""

from __future__ import annotations

from collections.abc import Callable

from coset.rules.judged import JUDGED, JUDGES, PROVIDERS, Judge


def judge(name: str, decide: Judge) -> None:
    """Let `decide` answer the question `name` about functions."""
    assert name in JUDGED and name not in JUDGES, f"{name} is no open question"
    JUDGES[name] = decide


def provide(load: Callable[[], object]) -> None:
    """Let `load` bring the judges when the first question comes: a prover takes time to load, and few searches ask."""
    PROVIDERS.append(load)
