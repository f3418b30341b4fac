"""What a partial match lacks, as rows: what is asked for, what there is, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coset.explaining.nearest import AbsentApplication, Broken, Miss, Unequal
from coset.explaining.words import Words
from coset.rules.refusal import Unmet
from coset.rules.wording import Wording

FACTS = {"nonnegative": "is not negative", "positive": "is positive", "finite": "is finite"}


def missing(miss: Miss, words: Words) -> Iterator[dict[str, Any]]:
    """What a miss asks for, what there is, and where."""
    name = miss.rule.name
    if isinstance(miss, Unequal):
        values = f"{words.value(miss.first)} and {words.value(miss.second)}"
        yield _row(name, f"`{miss.variable}` is one value", f"it would be {values}", words.value(miss.first))
    elif isinstance(miss, Broken):
        yield from (_unmet(name, each, words.value(miss.eclass)) for each in miss.unmet)
    elif isinstance(miss, AbsentApplication) and miss.near:
        yield from (_unmet(name, each, words.value(miss.eclass)) for each in miss.near)
    elif isinstance(miss, AbsentApplication):
        wanted = Wording(miss.rule).pattern(miss.pattern)
        yield _row(name, wanted, f"{words.place(miss.eclass)} (as {words.forms(miss.eclass)})", words.value(miss.eclass))
    elif miss.fact is not None:
        fact, variable = miss.fact
        yield _row(name, f"`{variable}` {FACTS.get(fact, f'is {fact}')}", "nothing shows it", words.value(miss.eclass))
    else:
        yield _row(name, "the rule acts here", "it has not: the search ended before, or another rule was first", words.value(miss.eclass))


def _unmet(rule: str, unmet: Unmet, value: str) -> dict[str, Any]:
    return _row(rule, unmet.condition, unmet.found, value, dict(unmet.values))


def _row(rule: str, needs: str, found: str, at: str, values: dict[str, str] | None = None) -> dict[str, Any]:
    return {"rule": rule, "condition": needs, "found": found, "at": at, "values": values or {}}
