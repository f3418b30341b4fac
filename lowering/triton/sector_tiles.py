"""What a program of a kernel has at once, for `sectors`: how many neighbouring indices of each loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from coset.ir.dims import Dim, substitute
from coset.lowering.kernels.addresses import join_loops, number_of
from coset.lowering.kernels.kernel import Loop, Plan, Pointwise, Product, Rows
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.rows import choose_tiles, lies_along_rows
from coset.lowering.triton.transposed import TILE, across
from coset.lowering.triton.walks import dims_of

_WARP = 256  # elements that the threads of a warp have of one index space: 16 bytes each of half precision
_SIDE = 32  # indices of each loop of a product that a tile has at least

Tile = dict[str, int]  # how many neighbouring indices of a loop a program has at once
Has = tuple[Tile, Mapping[str, Dim], float]
"""A tile, what the kernel's loops are over it, and the share of processors that have programs, of those that would have one if rows were
read one by one."""


def product_tile(kernel: Product, plan: Plan, binding: Mapping[str, int], processors: int) -> Has:
    """A side of a matrix for each of m, n and k."""
    sides = [_inner(loops, _SIDE, binding) for loops in (kernel.m, kernel.n, kernel.k)]
    return {name: count for side in sides for name, count in side.items()}, {}, 1.0


def pointwise_tile(kernel: Pointwise, plan: Plan, binding: Mapping[str, int], processors: int) -> Has:
    """What a warp has, or a tile of rows and columns."""
    loops, bound = join_loops(kernel.loops, dims_of([pick.value for pick in kernel.picks], kernel.stores, plan))
    row = across(kernel, plan, loops, bound)
    if row is not None:
        return {loops[-1].name: TILE["BLOCK_COLUMNS"], row.name: TILE["BLOCK_ROWS"]}, bound, 1.0
    return _inner(loops, _WARP, binding), bound, 1.0


def rows_tile(kernel: Rows, plan: Plan, binding: Mapping[str, int], processors: int) -> Has:
    """Some rows, along which or across which a warp reads."""
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
