"""Scans as Triton: each program has some rows, held whole or gone through in blocks with what was folded before carried along."""

from __future__ import annotations

from coset.ir.dims import add, ceildiv, product, substitute
from coset.ir.types import BOOL, I32
from coset.lowering.kernels.addresses import join_loops
from coset.lowering.kernels.kernel import Plan, Scan, extents_of, reads, writes
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.pointwise import index_limits
from coset.lowering.triton.rows import beginning, choose_tiles, combining, helper_of, identity_number, lies_along_rows
from coset.lowering.triton.scalars import TYPES, computed, conversion
from coset.lowering.triton.scopes import TileAxis, TileScope, Value
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import dims_of

_ROW, _COLUMN = frozenset({"row"}), frozenset({"column"})
_BOTH = _ROW | _COLUMN
_BITS = {"both": "and", "either": "or"}
_NAMES = "rows columns row_mask column_mask start value scan so_far BLOCK_ROWS BLOCK_COLUMNS"


def emit_scan(kernel: Scan, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """One Triton function in which each program does some rows."""
    dims = dims_of([*(pick.value for pick in kernel.picks), kernel.value], kernel.stores, plan)
    rows, binding = join_loops(kernel.rows, dims)
    count, length = product(loop.extent for loop in kernel.rows), kernel.column.extent
    tiles = choose_tiles(count, length, options, along_rows=lies_along_rows((kernel.value,), rows, (kernel.column,), plan, binding))
    choice = options.choice or tiles.choice
    tiles = tiles.chosen(choice)
    ends = [add(count, tiles.rows), add(length, tiles.columns)]
    dims = [substitute(dim, binding) for dim in dims]
    wide, sizes = wideness(index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents_of(kernel), ends))
    body = FunctionBody(plan, options, wide=wide)
    for name in _NAMES.split():
        body.name(name)
    masks = [
        None if isinstance(size, int) and size and size % block == 0 else name
        for name, size, block in (("row_mask", count, tiles.rows), ("column_mask", length, tiles.columns))
    ]
    outer, inner = TileScope(_BOTH if tiles.whole else _ROW), TileScope(_BOTH)
    scopes = [outer] if tiles.whole else [outer, inner]
    space = Space(body, {"row": TileAxis("rows", masks[0]), "column": TileAxis("columns", masks[1])}, scopes, binding, kernel.picks)
    space.number(rows, "rows", _ROW)
    space.number((kernel.column,), "columns", _COLUMN)
    program = "tl.program_id(0)" if wide is False else f"tl.program_id(0).to({body.index_type})"
    outer.lines.append(f"rows = {program} * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]")
    outer.lines += [f"row_mask = rows < {body.text(count)}"] * (masks[0] is not None)
    lines = scopes[-1].lines
    lines.append(f"columns = {'' if tiles.whole else 'start + '}{body.places('BLOCK_COLUMNS')}[None, :]")
    lines += [f"column_mask = columns < {body.text(length)}"] * (masks[1] is not None)
    _write_scan(kernel, space, masks[1], lines, None if tiles.whole else outer.lines)
    space.results["scan"] = Value("scan", _BOTH)
    for store in kernel.stores:
        space.store(store, _BOTH)
    if not tiles.whole:
        outer.lines.append(f"for start in range(0, {body.text(length)}, BLOCK_COLUMNS):")
        outer.lines += [f"    {line}" for line in inner.lines]
    source = function_text(body, kernel.name, comment, [name for name, _ in choice.numbers], outer.lines)
    grid, contracts = (ceildiv(count, tiles.rows),), options.contracts
    launch = Launch(kernel.name, body.arguments(), grid, choice.numbers, sizes, choice.warps, choice.stages, contracts)
    return EmittedKernel(source, (launch,), choice=choice)


def _write_scan(kernel: Scan, space: Space, mask: str | None, lines: list[str], before: list[str] | None) -> None:
    """Write the scan of a tile; where a row has several, `before` them what is carried from one to the next."""
    boolean = kernel.dtype is BOOL  # its elements are folded as integers
    dtype = I32 if boolean else kernel.dtype
    combiner = _BITS[helper_of(kernel.combiner, BOOL)] if boolean else kernel.combiner
    together, start = helper_of(combiner, dtype), identity_number(combiner, dtype)
    lines.append(f"value = {_value(kernel, space, mask, start)}")
    lines.append(f"scan = tl.associative_scan(value, 1, {together})")
    if before is not None:
        before.append(f"so_far = tl.full([BLOCK_ROWS, 1], {beginning(combiner, dtype)}, {TYPES[computed(dtype).name]})")
        lines.append(f"scan = {combining(combiner, dtype, 'so_far', 'scan')}")
        lines.append(f"so_far = {combining(combiner, dtype, 'so_far', f'tl.reduce(value, 1, {together}, keep_dims=True)')}")
    lines += ["scan = scan != 0"] * boolean


def _value(kernel: Scan, space: Space, mask: str | None, start: str) -> str:
    """A tile of the elements, `start` where there is none."""
    found = space.name(kernel.value, space.computed(kernel.value))
    text = conversion(found.text, kernel.value.dtype, kernel.dtype)
    text = f"{text}.to(tl.int32)" if kernel.dtype is BOOL else text
    if found.axes != _BOTH:
        text = f"tl.broadcast_to({text}, [BLOCK_ROWS, BLOCK_COLUMNS])"
    return text if mask is None else f"tl.where({mask}, {text}, {start})"
