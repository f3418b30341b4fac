"""Pointwise kernels as Triton: the index space in row-major order, cut into blocks; each program does one."""

from __future__ import annotations

from collections.abc import Mapping

from coset.ir.dims import Dim, add, ceildiv, product
from coset.lowering.kernel import Plan, Pointwise, extents_of, reads, writes
from coset.lowering.triton_body import Body, function_text, wideness
from coset.lowering.triton_boxes import boxes_of, emit_in_boxes
from coset.lowering.triton_choice import Choice
from coset.lowering.triton_dims import join_loops, largest_index, span
from coset.lowering.triton_launch import Emission, Launch, Options
from coset.lowering.triton_transposed import TILE, across, emit_transposed
from coset.lowering.triton_values import Axis, Scope, Space, dims_of

_AXES = frozenset({"all"})


def block_size(total: Dim, processors: int) -> int:
    """Elements of a program: enough programs to fill the device, then enough elements to load 16 bytes at once."""
    if not isinstance(total, int):
        return 1024
    return next((block for block in (1024, 512) if total >= block * processors * 4), 256)


def flat_choice(block: int) -> Choice:
    """The choice of a kernel over one index space: so many elements a program."""
    return Choice((("BLOCK", block),))


def emit_pointwise(kernel: Pointwise, plan: Plan, options: Options, comment: list[str]) -> Emission:
    """One Triton function that gives every element of the kernel's stores."""
    total = product(loop.extent for loop in kernel.loops)
    dims = dims_of([pick.value for pick in kernel.picks], kernel.stores, plan)
    loops, binding = join_loops(kernel.loops, dims)
    row = across(kernel, plan, loops, binding)
    default = block_size(total, options.processors)
    choice = options.choice or (TILE if row is not None else flat_choice(default))
    block = default if row is not None else choice["BLOCK"]
    extents = extents_of(kernel)
    wide, sizes = wideness(index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents, [add(total, 4 * block)]))
    body = Body(plan, options, wide=wide)
    if row is not None:
        return emit_transposed(kernel, body, loops, row, binding, comment, sizes, choice)
    boxes = boxes_of(kernel, plan)
    if boxes:
        return emit_in_boxes(kernel, boxes, body, comment, sizes, choice)
    scope = Scope(_AXES)
    flat = body.name("offsets")
    whole = isinstance(total, int) and total % block == 0
    space = Space(body, {"all": Axis(flat, None if whole else "mask")}, [scope], binding, kernel.picks)
    space.number(loops, flat, _AXES)
    start = "tl.program_id(0)" if wide is False else f"tl.program_id(0).to({body.index_type})"
    scope.lines.append(f"{flat} = {start} * BLOCK + tl.arange(0, BLOCK)")
    if not whole:
        scope.lines.append(f"mask = {flat} < {body.text(total)}")
    for store in kernel.stores:
        space.store(store, _AXES)
    source = function_text(body, kernel.name, comment, ["BLOCK"], scope.lines)
    grid = (ceildiv(total, block),)
    launch = Launch(kernel.name, body.arguments(), grid, choice.numbers, sizes, choice.warps, choice.stages, options.contracts)
    return Emission(source, (launch,), choice=choice)


def index_limits(plan: Plan, buffers: tuple[str, ...], dims: list[Dim], extents: Mapping[str, Dim], more: list[Dim]) -> list[Dim]:
    """Dims that no offset or index of a kernel is above."""
    return [*(span(plan.buffers[name]) for name in buffers), *(largest_index(dim, extents) for dim in dims), *more]
