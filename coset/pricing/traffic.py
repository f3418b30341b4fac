"""What it takes to move the bytes that a kernel touches, and what a buffer takes of memory."""

from __future__ import annotations

from coset.lowering.kernels.kernel import (
    Buffer,
    Computed,
    Plan,
    Rows,
)
from coset.lowering.kernels.memory import allocated
from coset.lowering.planning.kinds import WHOLE_ROW
from coset.lowering.planning.traffic import kernel_traffic
from coset.lowering.triton.rereading import WARPS, fetched_again
from coset.lowering.triton.sectors import is_in_order, moved_sectors
from coset.pricing.machine import Machine
from coset.targets.target import Kernel as Rating


def buffer_bytes(machine: Machine, buffer: Buffer) -> int:
    """What a buffer takes of memory, rounded up as allocations are."""
    return allocated(buffer, int(machine.sizes.product(buffer.shape)))


def moving_seconds(machine: Machine, own: Rating, planned: Plan, kernel: Computed, again: int = 0) -> float:
    """Seconds to move the bytes that a kernel touches, and those that it reads `again`; where dims lie in another order those of whole
    sectors, by the program instances that it has."""
    if not is_in_order(planned, kernel):
        return own.moving(kernel_traffic(planned, kernel, machine.sizes.binding) + again)
    moved, share = moved_sectors(planned, kernel, machine.sizes.binding, machine.options.processors)
    return own.moving(int(moved) + again) / share


def read_again(machine: Machine, planned: Plan, kernel: Rows) -> int:
    """The bytes that a kernel over long rows reads twice, though as few rows are under way as programs of many warps make it."""
    if machine.count(kernel.columns) <= WHOLE_ROW:
        return 0
    return int(fetched_again(kernel, planned, WARPS[-1], machine.options, machine.sizes.binding))


def copy_seconds(machine: Machine, buffer: Buffer) -> float:
    """Seconds of a copy of a buffer in another order: a kernel that reads and writes it."""
    own = machine.target.kernels[machine.fusion.pointwise]
    return own.launch.value + own.moving(2 * buffer_bytes(machine, buffer))
