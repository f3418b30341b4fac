"""Scans as Triton: each program has some rows, held whole or gone through in blocks with what was folded before carried along."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub_tensors import identity
from coset.ir.dims import add, ceildiv, product, substitute, symbols
from coset.ir.types import BOOL
from coset.lowering.kernel import Loop, Plan, Scan, extents_of, reads, writes
from coset.lowering.triton_body import Body, function_text, wideness
from coset.lowering.triton_dims import join_loops, split_index
from coset.lowering.triton_launch import Emission, Launch, Options
from coset.lowering.triton_pointwise import index_limits
from coset.lowering.triton_rows import choose_tiles, combining, folding, lies_along_rows
from coset.lowering.triton_scalars import TYPES, computed, conversion, number, typed_number
from coset.lowering.triton_values import Axis, Scope, Space, Value, dims_of

_ROW, _COLUMN = frozenset({"row"}), frozenset({"column"})
_BOTH = _ROW | _COLUMN
_NAMES = "rows columns row_mask column_mask start value scan so_far BLOCK_ROWS BLOCK_COLUMNS"


def emit_scan(kernel: Scan, plan: Plan, options: Options, comment: list[str]) -> Emission:
    """One Triton function in which each program does some rows."""
    dims = dims_of([*(pick.value for pick in kernel.picks), kernel.value], kernel.stores, plan)
    rows, binding = join_loops(kernel.rows, dims)
    count, length = product(loop.extent for loop in kernel.rows), kernel.column.extent
    tiles = choose_tiles(count, length, options, along_rows=lies_along_rows((kernel.value,), rows, (kernel.column,), plan, binding))
    ends = [add(count, tiles.rows), add(length, tiles.columns)]
    dims = [substitute(dim, binding) for dim in dims]
    wide, sizes = wideness(index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents_of(kernel), ends))
    body = Body(plan, options, wide=wide)
    for name in _NAMES.split():
        body.name(name)
    masks = [
        None if isinstance(size, int) and size and size % block == 0 else name
        for name, size, block in (("row_mask", count, tiles.rows), ("column_mask", length, tiles.columns))
    ]
    outer, inner = Scope(_BOTH if tiles.whole else _ROW), Scope(_BOTH)
    scopes = [outer] if tiles.whole else [outer, inner]
    space = Space(body, {"row": Axis("rows", masks[0]), "column": Axis("columns", masks[1])}, scopes, binding, kernel.picks)
    _index(space, body, rows, "rows", _ROW)
    _index(space, body, (kernel.column,), "columns", _COLUMN)
    program = "tl.program_id(0)" if wide is False else f"tl.program_id(0).to({body.index_type})"
    outer.lines.append(f"rows = {program} * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]")
    outer.lines += [f"row_mask = rows < {body.text(count)}"] * (masks[0] is not None)
    lines = scopes[-1].lines
    lines.append(f"columns = {'' if tiles.whole else 'start + '}tl.arange(0, BLOCK_COLUMNS)[None, :]")
    lines += [f"column_mask = columns < {body.text(length)}"] * (masks[1] is not None)
    start = _identity(kernel)
    value = _value(kernel, space, masks[1], start)
    together = _combiner(kernel)
    kind = "tl.int32" if kernel.dtype is BOOL else TYPES[computed(kernel.dtype).name]
    lines.append(f"scan = tl.associative_scan({value}, 1, {together})")
    if not tiles.whole:
        outer.lines.append(f"so_far = tl.full([BLOCK_ROWS, 1], {start}, {kind})")
        lines.append(f"scan = {_joined(kernel, 'so_far', 'scan')}")
        lines.append(f"so_far = {_joined(kernel, 'so_far', f'tl.reduce({value}, 1, {together}, keep_dims=True)')}")
    if kernel.dtype is BOOL:
        lines.append("scan = scan != 0")
    space.results["scan"] = Value("scan", _BOTH)
    for store in kernel.stores:
        space.store(store, _BOTH)
    if not tiles.whole:
        outer.lines.append(f"for start in range(0, {body.text(length)}, BLOCK_COLUMNS):")
        outer.lines += [f"    {line}" for line in inner.lines]
    constexprs = (("BLOCK_ROWS", tiles.rows), ("BLOCK_COLUMNS", tiles.columns))
    source = function_text(body, kernel.name, comment, [name for name, _ in constexprs], outer.lines)
    grid, contracts = (ceildiv(count, tiles.rows),), options.contracts
    return Emission(source, (Launch(kernel.name, body.arguments(), grid, constexprs, sizes, tiles.warps, contracts=contracts),))


def _index(space: Space, body: Body, loops: Sequence[Loop], flat: str, axes: frozenset[str]) -> None:
    names = {name: body.symbol(name) for loop in loops for name in sorted(symbols(loop.extent))}
    for name, text in split_index(loops, flat, names).items():
        space.index(name, text, axes)
    space.flat(loops, flat, axes)


def _identity(kernel: Scan) -> str:
    value = identity(kernel.combiner, kernel.dtype).item()
    if kernel.dtype is BOOL:
        return str(int(value))
    return number(value, kernel.dtype) or (str(int(value)) if kernel.dtype.kind != "float" else repr(value))


def _value(kernel: Scan, space: Space, mask: str | None, start: str) -> str:
    """The name of a tile of the elements, the identity where there is none."""
    found = space.name(kernel.value, space.computed(kernel.value))
    text = conversion(found.text, kernel.value.dtype, kernel.dtype)
    text = f"{text}.to(tl.int32)" if kernel.dtype is BOOL else text
    if found.axes != _BOTH:
        text = f"tl.broadcast_to({text}, [BLOCK_ROWS, BLOCK_COLUMNS])"
    if mask is not None:
        typed = start if kernel.dtype is BOOL else typed_number(identity(kernel.combiner, kernel.dtype).item(), kernel.dtype)
        text = f"tl.where({mask}, {text}, {number(identity(kernel.combiner, kernel.dtype).item(), kernel.dtype) or typed})"
    space.scopes[-1].lines.append(f"value = {text}")
    return "value"


def _combiner(kernel: Scan) -> str:
    """The helper that folds two elements."""
    if kernel.dtype is BOOL:
        return "both" if kernel.combiner in ("and", "multiply", "minimum") else "either"
    if kernel.combiner == "add":
        return "added"
    return folding(kernel.combiner, kernel.dtype, "").split(", ")[2]


def _joined(kernel: Scan, a: str, b: str) -> str:
    if kernel.dtype is BOOL:
        return f"{a} {'&' if _combiner(kernel) == 'both' else '|'} {b}"
    return combining(kernel.combiner, kernel.dtype, a, b)
