"""What kernels move where dims lie in another order in memory: whole sectors, for neighbours that a program does not touch come with those
that it does."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from coset.ir.dims import Dim, evaluate, substitute, symbols
from coset.lowering.arranging.following import Access, accesses
from coset.lowering.kernels.addresses import address
from coset.lowering.kernels.index_arithmetic import linear
from coset.lowering.kernels.kernel import Computed, Kernel, Plan, reads, writes
from coset.lowering.planning.traffic import read_bytes, stored_bytes
from coset.lowering.triton.kinds import TRITON_KINDS
from coset.lowering.triton.sector_tiles import Tile

SECTOR = 32  # bytes that memory is read and written in (CUDA C++ Best Practices Guide, coalesced access to global memory)


def is_in_order(plan: Plan, kernel: Kernel) -> bool:
    """True for a kernel that touches a buffer whose dims lie in another order, of a kind whose loops follow memory."""
    follows = isinstance(kernel, Computed) and TRITON_KINDS[type(kernel)].tile is not None
    return follows and any(plan.buffers[name].order is not None for name in (*reads(kernel), *writes(kernel)))


def moved_sectors(plan: Plan, kernel: Computed, binding: Mapping[str, int], processors: int) -> tuple[float, float]:
    """The bytes of the sectors that a kernel moves, whose kind says what a program has at once, and the share of processors that have
    programs, of those that would have one if rows were read one by one."""
    has = TRITON_KINDS[type(kernel)].tile
    assert has is not None, f"{kernel.name} is of a kind whose buffers have no other order"
    tile, bound, share = has(kernel, plan, binding, processors)
    stored = stored_bytes(plan, kernel, binding)
    read = read_bytes(plan, kernel, binding)
    found = accesses(kernel)
    total = sum(bytes_ * _waste(plan, access, tile, bound, binding) for bytes_, access in zip(stored, found, strict=False))
    worst: dict[str, float] = {}
    for access in found[len(stored) :]:
        worst[access[0]] = max(worst.get(access[0], 1.0), _waste(plan, access, tile, bound, binding))
    return total + sum(bytes_ * worst[name] for name, bytes_ in read.items() if name in worst), share


def _waste(plan: Plan, access: Access, tile: Tile, bound: Mapping[str, Dim], binding: Mapping[str, int]) -> float:
    """How much more than the elements the sectors are in which they lie: runs of neighbours that a tile has."""
    buffer = plan.buffers[access[0]]
    place = substitute(address(buffer, access[1]), dict(bound))
    steps = []
    for name, count in tile.items():
        step = linear(place, name)
        if step is not None and not any(each.startswith(("loop:", "pick:")) for each in symbols(step)) and step != 0:
            steps.append((abs(evaluate(step, binding)), count))
    run = 1
    for step, count in sorted(steps):
        if step > run:
            break
        run = max(run, step * (count - 1) + run)
    bytes_ = run * float(buffer.dtype.bytes)
    return ceil(bytes_ / SECTOR) * SECTOR / bytes_
