"""Which kernels run beside each other: a stream for each, from what they read of each other and from predicted seconds.

A kernel takes a launch, in which the machine is free for others, and then its work, which takes a share of the machine: little work leaves
room beside it. Kernels are put on streams one after the other, each where it may begin first; with two, three .. streams. What is found is
run through a model of the machine, and kept where it ends clearly earlier than one kernel after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from coset.ir.stages import passed
from coset.lowering.kernels.clocks import Clocks
from coset.lowering.kernels.kernel import Kernel, Library, Plan, StreamPlan, writes
from coset.lowering.kernels.memory import arena
from coset.lowering.kernels.needs import needs_of

WORTH = 0.98  # of the seconds in turn: what is less saved than this is within the noise of any clock


@dataclass(frozen=True)
class Work:
    """What a kernel takes: seconds of its launch, seconds of its work alone on the machine, and the share of the machine that it needs."""

    launch: float
    seconds: float
    share: float


@dataclass(frozen=True)
class Beside:
    """A plan on streams, with its predicted seconds and those in turn."""

    plan: Plan
    seconds: float
    in_turn: float


def beside(plan: Plan, work_of: Callable[[Plan, Kernel], Work], *, most: int, wait: float) -> Beside | None:
    """The plan on up to `most` streams, with an arena for them; None where that is not worth it, or cannot be. `wait`: seconds that a
    kernel begins later for each other stream that it waits for."""
    if most < 2 or not _may_be(plan):
        return None
    works = [work_of(plan, kernel) for kernel in plan.kernels]
    turn = sum(work.launch + work.seconds for work in works)
    needs = [sorted(each) for each in needs_of(plan.kernels)]
    found = [_on_streams(works, needs, count, wait) for count in range(2, min(most, len(works)) + 1)]
    seconds, _, best = min(((simulated(works, each, wait), max(each.of), each) for each in found), default=(turn, 0, None))
    if best is None or seconds > WORTH * turn:
        return None
    offsets, size = arena(replace(plan, streams=best))
    return Beside(passed("putting kernels on streams", replace(plan, streams=best, offsets=offsets, arena=size)), seconds, turn)


def _may_be(plan: Plan) -> bool:
    """False where the order of kernels is more than what they read of each other: memory is given back in it, ops have effects or need
    other processes, or the host waits for the sizes of a result."""
    made = {name for kernel in plan.kernels for name in writes(kernel)}
    waits = any(source in made for source, _ in plan.symbols.values())
    ops = [kernel.term.op for kernel in plan.kernels if isinstance(kernel, Library)]
    return not plan.frees and not waits and not any(op.has("effect") or op.has("distributed") for op in ops)


def _on_streams(works: Sequence[Work], needs: Sequence[Sequence[int]], count: int, wait: float) -> StreamPlan:
    """Each kernel on the stream where it may begin first if the machine had room for all; of equals on the first."""
    ends: list[float] = []
    tails: list[float] = [0.0] + [wait] * (count - 1)  # when the last kernel of each stream ends; the others start after the caller's
    clocks = Clocks(count)
    found = []
    for work, before in zip(works, needs, strict=True):
        begins = []
        for stream in range(count):
            others = (ends[kernel] + wait for kernel in before if clocks.stream[kernel] != stream)
            begins.append(max(tails[stream], max(others, default=0.0)))
        stream = begins.index(min(begins))
        waits: list[int] = []
        clock = clocks.now[stream]
        for kernel in reversed(before):  # the later ones have waited for more
            if not clocks.are_over((kernel,), clock):
                waits.append(kernel)
                clock = tuple(map(max, clock, clocks.after(kernel)))
        clocks.enter(stream, waits)
        ends.append(begins[stream] + work.launch + work.seconds)
        tails[stream] = ends[-1]
        found.append(tuple(sorted(waits)))
    return StreamPlan(tuple(clocks.stream), tuple(found))


def simulated(works: Sequence[Work], streams: StreamPlan, wait: float) -> float:
    """Seconds until all kernels are done, and all streams have come together.

    A launch takes its time whatever else runs. Works that need more than the whole machine together are slowed down alike.
    """
    queues: list[list[int]] = [[] for _ in range(max(streams.of, default=0) + 1)]
    for kernel in reversed(range(len(works))):
        queues[streams.of[kernel]].append(kernel)
    done = [False] * len(works)
    running: dict[int, tuple[int, float, bool]] = {}  # by stream: the kernel, what is left of its launch or work, and which
    clock = 0.0
    started = [stream == 0 for stream in range(len(queues))]
    while True:
        for stream, queue in enumerate(queues):
            if stream not in running and queue and all(done[other] for other in streams.waits[queue[-1]]):
                kernel = queue.pop()
                late = len(streams.waits[kernel]) or (0 if started[stream] else 1)
                running[stream] = kernel, works[kernel].launch + late * wait, True
                started[stream] = True
        if not running:
            break
        wanted = sum(works[kernel].share for kernel, _, launching in running.values() if not launching)
        pace = 1.0 / max(1.0, wanted)
        step = min(left / (1.0 if launching else pace) for _, left, launching in running.values())
        clock += step
        for stream, (kernel, left, launching) in list(running.items()):
            rest = left - step * (1.0 if launching else pace)
            if rest > 1e-15:
                running[stream] = kernel, rest, launching
            elif launching:
                running[stream] = kernel, works[kernel].seconds, False
            else:
                done[kernel] = True
                del running[stream]
    assert all(done), "a kernel waits for one behind it"
    return clock + wait * (len(queues) - 1)
