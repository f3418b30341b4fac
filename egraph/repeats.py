"""Where a sequence repeats itself: runs of equal pieces, found from the distances between equal windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

SHORTEST = 8  # entries of a period: a pattern of the rules may span a short one, and there is little to win
CANDIDATES = 12  # distances that are tried, those between most pairs of equal windows


@dataclass(frozen=True)
class Repetition:
    """Entries `start` to `end` (exclusive) of which each equals the one `period` before it, but for the first `period`."""

    start: int
    end: int
    period: int

    @property
    def times(self) -> int:
        """Whole periods."""
        return (self.end - self.start) // self.period


def find_runs(signs: Sequence[int], times: int) -> list[Repetition]:
    """Runs of at least `times` periods, in order, that do not overlap: the one that saves most first, then what is left and right of it.

    O(n) for each run and candidate distance.
    """
    found: list[Repetition] = []
    open_parts = [(0, len(signs))]
    while open_parts:
        low, high = open_parts.pop()
        run = _best(signs, low, high, times)
        if run is not None:
            found.append(run)
            open_parts += [(low, run.start), (run.end, high)]
    return sorted(found, key=lambda run: run.start)


def _best(signs: Sequence[int], low: int, high: int, times: int) -> Repetition | None:
    """The run that leaves out most entries; of almost equal ones the shortest period, whose multiples are runs too."""
    if high - low < times * SHORTEST:
        return None
    distances: Counter[int] = Counter()
    latest: dict[tuple[int, ...], int] = {}
    for place in range(low, high - SHORTEST):
        window = tuple(signs[place : place + SHORTEST])  # a single entry may stand many times in a period
        if window in latest:
            between = place - latest[window]
            distances[between * -(-SHORTEST // between)] += 1
        latest[window] = place
    likely = sorted(distances, key=lambda d: (-distances[d], d))[:CANDIDATES]
    runs = [run for d in likely if (run := _longest(signs, low, high, d)).times >= times]
    most = max((run.end - run.start for run in runs), default=0)
    return min((run for run in runs if run.end - run.start >= 0.9 * most), key=lambda run: (run.period, run.start), default=None)


def _longest(signs: Sequence[int], low: int, high: int, period: int) -> Repetition:
    best, begin = Repetition(low, low, period), low
    for place in range(low + period, high + 1):
        if place < high and signs[place] == signs[place - period]:
            continue
        if place - begin > best.end - best.start:
            best = Repetition(begin, place, period)
        begin = place - period + 1
    return best
