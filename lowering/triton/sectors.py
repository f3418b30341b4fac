"""What kernels move where dims lie in another order in memory: whole sectors, for neighbours that a program does not touch come with those
that it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from coset.ir.dims import Dim, evaluate, substitute, symbols
from coset.lowering.arranging.layouts import Access, accesses
from coset.lowering.kernels.addresses import address, join_loops, number_of
from coset.lowering.kernels.index_arithmetic import linear
from coset.lowering.kernels.kernel import Kernel, Loop, Plan, Pointwise, Product, Rows, reads, writes
from coset.lowering.planning.traffic import read_bytes, stored_bytes
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.rows import choose_tiles, lies_along_rows
from coset.lowering.triton.transposed import TILE, across
from coset.lowering.triton.walks import dims_of

SECTOR = 32  # bytes that memory is read and written in (CUDA C++ Best Practices Guide, coalesced access to global memory)
_WARP = 256  # elements that the threads of a warp have of one index space: 16 bytes each of half precision
_SIDE = 32  # indices of each loop of a product that a tile has at least

Tile = dict[str, int]  # how many neighbouring indices of a loop a program has at once


def is_in_order(plan: Plan, kernel: Kernel) -> bool:
    """True for a kernel that touches a buffer whose dims lie in another order."""
    return any(plan.buffers[name].order is not None for name in (*reads(kernel), *writes(kernel)))


def moved_sectors(plan: Plan, kernel: Pointwise | Rows | Product, binding: Mapping[str, int], processors: int) -> tuple[float, float]:
    """The bytes of the sectors that a kernel moves, and the share of processors that have programs, of those that would have one if rows
    were read one by one."""
    tile, bound, share = _tile(kernel, plan, binding, processors)
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


def _tile(
    kernel: Pointwise | Rows | Product, plan: Plan, binding: Mapping[str, int], processors: int
) -> tuple[Tile, Mapping[str, Dim], float]:
    """What a program of a kernel has at once, what the kernel's loops are over these, and the share of processors, as above."""
    if isinstance(kernel, Product):
        sides = [_inner(loops, _SIDE, binding) for loops in (kernel.m, kernel.n, kernel.k)]
        return {name: count for side in sides for name, count in side.items()}, {}, 1.0
    if isinstance(kernel, Pointwise):
        loops, bound = join_loops(kernel.loops, dims_of([pick.value for pick in kernel.picks], kernel.stores, plan))
        row = across(kernel, plan, loops, bound)
        if row is not None:
            return {loops[-1].name: TILE["BLOCK_COLUMNS"], row.name: TILE["BLOCK_ROWS"]}, bound, 1.0
        return _inner(loops, _WARP, binding), bound, 1.0
    values = [*(pick.value for pick in kernel.picks), *(fold.value for fold in kernel.folds)]
    dims = dims_of(values, (*kernel.row_stores, *kernel.element_stores), plan)
    rows, bound = join_loops(kernel.rows, dims)
    columns, more = join_loops(kernel.columns, [substitute(dim, bound) for dim in dims])
    bound |= more
    along = lies_along_rows((fold.value for fold in kernel.folds), rows, columns, plan, bound)
    count, length = number_of(rows, binding), number_of(columns, binding)
    usual, tiles = (choose_tiles(count, length, EmitOptions(processors=processors), along_rows=each) for each in (False, along))
    had, has = (min(processors, ceil(count / each.rows)) for each in (usual, tiles))
    share = min(1.0, has / max(1, had))
    width = tiles.columns if along else min(tiles.columns, _WARP)
    return _inner(rows, tiles.rows, binding) | _inner(columns, width, binding), bound, share


def _inner(loops: Sequence[Loop], count: int, binding: Mapping[str, int]) -> Tile:
    """How many indices of each loop so many neighbours have, those of the last loops first."""
    found: Tile = {}
    for loop in reversed(loops):
        extent = max(1, number_of((loop,), binding))
        found[loop.name] = min(extent, count)
        count = max(1, count // extent)
    return found
