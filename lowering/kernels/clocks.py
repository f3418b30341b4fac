"""What is surely over when a kernel begins: all that stand before it on its stream, and what it and these have waited for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from coset.lowering.kernels.kernel import Plan, StreamPlan

Clock = tuple[int, ...]  # for each stream, how many of its kernels are over


@dataclass
class Clocks:
    """The clocks of kernels, entered one after the other: that at which each begins, and its number on its stream."""

    count: int  # streams
    begins: list[Clock] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    now: list[Clock] = field(init=False)  # for each stream, after its last kernel so far

    def __post_init__(self) -> None:
        self.now = [(0,) * self.count] * self.count

    def enter(self, stream: int, waits: Iterable[int]) -> None:
        """One more kernel at the end of a stream."""
        clock = self.now[stream]
        for other in waits:
            clock = tuple(map(max, clock, self.after(other)))
        self.begins.append(clock)
        self.stream.append(stream)
        self.number.append(clock[stream])
        self.now[stream] = self.after(len(self.begins) - 1)

    def after(self, kernel: int) -> Clock:
        """What is over when `kernel` is."""
        stream, clock = self.stream[kernel], self.begins[kernel]
        return (*clock[:stream], clock[stream] + 1, *clock[stream + 1 :])

    def are_over(self, kernels: Iterable[int], clock: Clock) -> bool:
        """True where all of `kernels` are surely over at that clock."""
        return all(clock[self.stream[kernel]] > self.number[kernel] for kernel in kernels)


def clocks_of(streams: StreamPlan) -> Clocks:
    """The clocks of all kernels."""
    found = Clocks(max(streams.of, default=0) + 1)
    for stream, waits in zip(streams.of, streams.waits, strict=True):
        found.enter(stream, waits)
    return found


def in_turn(plan: Plan) -> StreamPlan:
    """The plan's streams; one where it has none."""
    return plan.streams or StreamPlan((0,) * len(plan.kernels), ((),) * len(plan.kernels))
