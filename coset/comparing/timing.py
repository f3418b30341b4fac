"""Time programs against each other on a machine that is never quiet.

The protocol: a round visits every program in turn; a visit (a block) waits until the threads of the program before sleep, makes one call
that is not timed, and then five that are, or more until 3 ms have passed, since a call of 20 us needs more than five to be warm.
Programs are compared block by block of one round, so a slow second slows both.

The wait is not for show. ONNX Runtime's threads spin for about 30 ms after a call (1.31, measured by process time): after a pause of
10 ms, six sessions in turn made an OpenVINO program of 0.8 ms look like 3.9 ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

SLICE = 0.004
"""Seconds that `settle` sleeps at a time."""
IDLE = 0.1
"""A slice is idle when this process used at most this part of it on a core."""
PATIENCE = 0.15
"""Seconds after which `settle` gives up: something in the process never sleeps."""
CALLS = 5
"""Timed calls in a block, at least."""
BLOCK_SECONDS = 0.003
"""Seconds of timed calls in a block, at least."""
RESAMPLES = 2000
"""Bootstrap resamples of an interval."""

Program = Callable[[], object]


@dataclass(frozen=True)
class Protocol:
    """How long to measure: at most `rounds` rounds; after `least` of them, none begun after `seconds`.

    Five rounds are the least from which an interval can be had: the median lies between the extremes of five with probability 94 %.
    """

    rounds: int
    seconds: float = float("inf")
    least: int = 5
    calls: int = CALLS


@dataclass(frozen=True)
class Ratio:
    """A ratio of times, `value` times as long, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Timing:
    """The seconds of one program: the median and the minimum of each block, [rounds]; and the number of timed calls in all blocks."""

    medians: np.ndarray
    minima: np.ndarray
    calls: int

    @property
    def median(self) -> float:
        """Median over the medians of the blocks, s."""
        return float(np.median(self.medians))

    @property
    def spread(self) -> float:
        """How far the blocks of one program differ: the middle half of their medians spans so much of the median."""
        low, high = np.percentile(self.medians, [25, 75])
        return float((high - low) / self.median)

    @property
    def minimum(self) -> float:
        """Fastest call, s."""
        return float(self.minima.min())


def settle() -> None:
    """Sleep until no thread of this process has spun for two slices."""
    quiet, end = 0, time.perf_counter() + PATIENCE
    while quiet < 2 and time.perf_counter() < end:
        used = time.process_time()
        time.sleep(SLICE)
        quiet = quiet + 1 if time.process_time() - used <= IDLE * SLICE else 0


def block(program: Program, calls: int = CALLS) -> list[float]:
    """Return the seconds of single calls, at least `calls`, after all threads sleep and one call that is not timed."""
    settle()
    program()
    seconds: list[float] = []
    while len(seconds) < calls or sum(seconds) < BLOCK_SECONDS:
        start = time.perf_counter()
        program()
        seconds.append(time.perf_counter() - start)
    return seconds


Clock = Callable[[Program, int], list[float]]


def measure(programs: Mapping[str, Program], protocol: Protocol, *, clock: Clock = block) -> dict[str, Timing]:
    """Return the timing of each program; all have the same number of rounds. Each round has an order of its own, from a fixed seed.
    `clock` gives the seconds of the single calls of a block, of so many at least: `block` those of this process's clock."""
    blocks: dict[str, list[list[float]]] = {name: [] for name in programs}
    start, order = time.perf_counter(), np.random.default_rng(0)
    for number in range(protocol.rounds):
        if number >= protocol.least and time.perf_counter() - start > protocol.seconds:
            break
        for name in order.permutation(list(programs)).tolist():
            blocks[name].append(clock(programs[name], protocol.calls))
    return {name: _timing(rows) for name, rows in blocks.items()}


def _timing(rows: list[list[float]]) -> Timing:
    return Timing(np.asarray([np.median(each) for each in rows]), np.asarray([min(each) for each in rows]), sum(map(len, rows)))


def ratio(slow: Timing, fast: Timing, *, seed: int = 0) -> Ratio:
    """Return how many times as long `slow` takes: the median over rounds of the ratio of block medians, paired by round.

    The interval is the percentile bootstrap over rounds (Efron, 1979).
    """
    pairs = slow.medians / fast.medians
    picks = np.random.default_rng(seed).integers(0, len(pairs), (RESAMPLES, len(pairs)))
    low, high = np.percentile(np.median(pairs[picks], axis=1), [2.5, 97.5])
    return Ratio(float(np.median(pairs)), float(low), float(high))
