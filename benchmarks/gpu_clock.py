"""Times of GPU programs against each other: the protocol of `coset.timing` with the device's own clock.

A block is one call that is not timed and then timed ones, each between two events on the stream; on the CPU (a dry run) the host's
clock stands in. Programs are visited in turn, in an order of its own each round, and compared block by block of one round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import torch

from coset.timing import Protocol, Timing

Program = Callable[[], object]


def synchronize(device: str) -> None:
    """Wait for the device."""
    if device == "cuda":
        torch.cuda.synchronize()


def captured(program: Program, device: str) -> Program:
    """`program` as the replay of a CUDA graph, so that no launch is waited for; on the CPU it stays what it is."""
    if device != "cuda":
        return program
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compiled and warm before it is recorded
        for _ in range(2):
            program()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        program()
    return graph.replay


def block(program: Program, calls: int, device: str) -> list[float]:
    """The seconds of `calls` calls in a row, after one that is not timed."""
    program()
    synchronize(device)
    if device != "cuda":
        marks = [time.perf_counter()]
        for _ in range(calls):
            program()
            marks.append(time.perf_counter())
        return [later - earlier for earlier, later in pairwise(marks)]
    events = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
    events[0].record()
    for event in events[1:]:
        program()
        event.record()
    synchronize(device)
    return [earlier.elapsed_time(later) / 1e3 for earlier, later in pairwise(events)]


def measure(programs: Mapping[str, Program], protocol: Protocol, device: str) -> dict[str, Timing]:
    """The timing of each program; all have the same number of rounds."""
    blocks: dict[str, list[list[float]]] = {name: [] for name in programs}
    start, order = time.perf_counter(), np.random.default_rng(0)
    for number in range(protocol.rounds):
        if number >= protocol.least and time.perf_counter() - start > protocol.seconds:
            break
        for name in order.permutation(list(programs)).tolist():
            blocks[name].append(block(programs[name], protocol.calls, device))
    found = {}
    for name, rows in blocks.items():
        medians, minima = np.asarray([np.median(each) for each in rows]), np.asarray([min(each) for each in rows])
        found[name] = Timing(medians, minima, sum(map(len, rows)))
    return found
