"""Pointwise kernels that read or write across: some buffer's neighbours lie along another loop than the last. Tiles of both loops are
used, so that every access is along its own neighbours; Triton turns the tile in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from coset.ir.dims import Dim, ceildiv, product, substitute
from coset.lowering.kernels.addresses import address
from coset.lowering.kernels.index_arithmetic import linear
from coset.lowering.kernels.kernel import Load, Loop, Plan, Pointwise, scalars
from coset.lowering.triton.body import FunctionBody, function_text
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmittedKernel, Launch
from coset.lowering.triton.scopes import TileAxis, TileScope
from coset.lowering.triton.values import Space

TILE = KernelChoice((("BLOCK_ROWS", 32), ("BLOCK_COLUMNS", 64)))  # where nothing else is chosen
_LEAST = 16  # values of a loop that a tile is worth making for
_NAMES = "program tiles_rows tiles_columns rows columns row_mask column_mask others BLOCK_ROWS BLOCK_COLUMNS"


def across(kernel: Pointwise, plan: Plan, loops: Sequence[Loop], binding: dict[str, Dim]) -> Loop | None:
    """The loop along which neighbours of some buffer lie, where it is not the last loop and both are long; else None."""
    if len(loops) < 2 or not _is_long(loops[-1]):
        return None
    places = [(store.buffer, store.index) for store in kernel.stores]
    for value in scalars(*(store.value for store in kernel.stores)):
        if isinstance(value, Load):
            places.append((value.buffer, value.index))
    for buffer, index in places:
        place = substitute(address(plan.buffers[buffer], index), binding)
        if linear(place, loops[-1].name) in (0, 1, -1):
            continue
        for loop in loops[:-1]:
            if linear(place, loop.name) == 1 and _is_long(loop):
                return loop
    return None


def _is_long(loop: Loop) -> bool:
    return not isinstance(loop.extent, int) or loop.extent >= _LEAST


def emit_transposed(
    kernel: Pointwise, body: FunctionBody, loops: Sequence[Loop], row: Loop, binding: dict[str, Dim], comment: list[str],
    sizes: tuple[Dim, ...], choice: KernelChoice,
) -> EmittedKernel:  # fmt: skip
    """One Triton function with tiles of `row` by the last loop."""
    for name in _NAMES.split():
        body.name(name)
    column, others = loops[-1], [loop for loop in loops[:-1] if loop is not row]
    both = frozenset({"row", "column"})
    scope = TileScope(both)
    lines = scope.lines
    lines.append("program = tl.program_id(0)" + (f".to({body.index_type})" if body.wide is not False else ""))
    lines.append(f"tiles_rows = tl.cdiv({body.text(row.extent)}, BLOCK_ROWS)")
    lines.append(f"tiles_columns = tl.cdiv({body.text(column.extent)}, BLOCK_COLUMNS)")
    lines.append("rows = program // tiles_columns % tiles_rows * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]")
    lines.append("columns = program % tiles_columns * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)[None, :]")
    height, width = choice["BLOCK_ROWS"], choice["BLOCK_COLUMNS"]
    axes: dict[str, TileAxis] = {}
    for key, index, loop, block in (("row", "rows", row, height), ("column", "columns", column, width)):
        ragged = not isinstance(loop.extent, int) or loop.extent % block != 0
        axes[key] = TileAxis(index, f"{key}_mask" if ragged else None)
        if ragged:
            lines.append(f"{key}_mask = {index} < {body.text(loop.extent)}")
    if others:
        lines.append("others = program // (tiles_columns * tiles_rows)")
    space = Space(body, axes, [scope], binding, kernel.picks)
    space.index(row.name, "rows", frozenset({"row"}))
    space.index(column.name, "columns", frozenset({"column"}))
    space.number(others, "others", frozenset())
    for store in kernel.stores:
        space.store(store, both)
    source = function_text(body, kernel.name, comment, [name for name, _ in choice.numbers], lines)
    grid = (product([ceildiv(row.extent, height), ceildiv(column.extent, width), *(loop.extent for loop in others)]),)
    contracts = body.options.contracts
    launch = Launch(kernel.name, body.arguments(), grid, choice.numbers, sizes, choice.warps, choice.stages, contracts)
    return EmittedKernel(source, (launch,), choice=choice)
