"""`--measure`: programs of one e-graph against the clock, where the cost model has chosen one and may be wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coset.comparing.timing import Program, Protocol, measure, ratio

ROUNDS, SECONDS = 15, 20.0  # of timing all candidates, at most


@dataclass(frozen=True)
class TimedProgram:
    """A program that was compared: what it is predicted to take (s), and how to call it. `index`: which of those tried, 0 is the model's
    choice."""

    index: int
    nodes: int
    predicted: float
    call: Program


@dataclass(frozen=True)
class RaceOutcome:
    """The candidates by the clock: the `fastest`, and what the report says of all."""

    fastest: int
    rows: Sequence[Mapping[str, Any]]


def race(candidates: Sequence[TimedProgram], progress: Callable[[str], None]) -> RaceOutcome:
    """Time all in blocks in turn. One is faster than the first only if the 95 % interval of their ratio says so; of those the one with the
    least ratio is the fastest, and where there is none it is the first."""
    progress(f"timing {len(candidates)} programs side by side")
    found = measure({str(each.index): each.call for each in candidates}, Protocol(ROUNDS, SECONDS))
    first = found[str(candidates[0].index)]
    rows, fastest, least = [], candidates[0].index, 1.0
    for each in candidates:
        own = found[str(each.index)]
        against = ratio(own, first)
        rows.append({
            "index": each.index, "nodes": each.nodes, "predicted_ms": each.predicted * 1e3, "median_ms": own.median * 1e3,
            "ratio": against.value, "low": against.low, "high": against.high,
        })  # fmt: skip
        if against.high < 1.0 and against.value < least:
            fastest, least = each.index, against.value
    return RaceOutcome(fastest, rows)
