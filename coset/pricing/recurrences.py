"""What a kernel takes that goes through the rounds of a loop: rounds wait for each other."""

from __future__ import annotations

import math

from coset.ir.types import F32
from coset.lowering.kernels.kernel import (
    Plan,
    Recurrence,
    results_in,
    step_values,
)
from coset.lowering.planning.kinds import wide
from coset.lowering.triton.recurrence import default_choice, read_again
from coset.lowering.triton.tiling import unit_of
from coset.pricing.machine import Machine
from coset.pricing.products import rates_full, rating

WARPS_AT_ONCE = 32  # of programs that go through rounds, on one processor


def program_instances(machine: Machine, kernel: Recurrence) -> float:
    """How many program instances a kernel has."""
    choice = default_choice(kernel, int(machine.number("multiprocessors")))
    return math.ceil(machine.count(kernel.rows) / choice["BLOCK_ROWS"])


def machine_share(machine: Machine, kernel: Recurrence) -> float:
    """The share of the machine's processors that have a program instance."""
    return min(1.0, program_instances(machine, kernel) / machine.number("multiprocessors"))


def recurrence_seconds(machine: Machine, planned: Plan, kernel: Recurrence) -> float:
    """Seconds of a kernel whose rounds wait for each other: each takes what a round and its exchanges take at least, and what its products
    take on one processor, whatever the rest of the machine does; as often as programs take turns on a processor."""
    processors = machine.number("multiprocessors")
    choice = default_choice(kernel, int(processors))
    programs, height, width = program_instances(machine, kernel), choice["BLOCK_ROWS"], choice["BLOCK_COLUMNS"]
    turns = math.ceil(programs / (processors * max(1, WARPS_AT_ONCE // choice.warps)))
    waiting = machine.number("round") + len(chained(kernel)) * machine.number("exchange")
    working = read_again(kernel, width) / machine.number("cached")
    for each in kernel.dots:
        full = rates_full(machine) and unit_of(each.lhs.dtype, each.rhs.dtype, wide(each.dtype)) is F32
        rate = rating(machine, full).rate(each.rhs.dtype.name)
        working += 0.0 if rate is None else 2 * height * width * width / (rate.value / processors * machine.number("round_share"))
    return machine.count([kernel.round]) * (waiting * turns + working * max(1.0, programs / processors))


def chained(kernel: Recurrence) -> tuple[str, ...]:
    """The names of the steps of a round that its states wait for; others are done beside the next round."""
    wanted = results_in(*(state.next for state in kernel.states))
    for step in reversed(kernel.steps):
        if step.name in wanted:
            wanted |= results_in(*step_values(step))
    return tuple(step.name for step in kernel.steps if step.name in wanted)
