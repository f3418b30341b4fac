"""Times of GPU programs against each other: the protocol of `coset.timing` with the device's own clock.

A block is one call that is not timed and then timed ones, each between two events on the stream; on the CPU (a dry run) the host's
clock stands in. Programs are visited in turn, in an order of its own each round, and compared block by block of one round.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from coset import timing
from coset.backends.torch_clock import Program, block, captured, synchronize
from coset.timing import Protocol, Timing

__all__ = ["Program", "captured", "measure", "synchronize"]


def measure(programs: Mapping[str, Program], protocol: Protocol, device: str) -> dict[str, Timing]:
    """The timing of each program; all have the same number of rounds."""
    return timing.measure(programs, protocol, clock=partial(block, device=device))
