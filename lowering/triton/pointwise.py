"""Pointwise kernels as Triton: the index space in row-major order, or that of one box after the other, cut into blocks; each program does
one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from coset.ir.dims import Dim, add, ceildiv, product, subtract
from coset.lowering.kernels.addresses import join_loops, largest_index, span
from coset.lowering.kernels.kernel import Loop, Plan, Pointwise, extents_of, reads, writes
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.boxes import boxes_of
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.scopes import TileAxis, TileScope
from coset.lowering.triton.transposed import TILE, across, emit_transposed
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import dims_of

_AXES = frozenset({"all"})


def block_size(total: Dim, processors: int) -> int:
    """Elements of a program: enough programs to fill the device, then enough elements to load 16 bytes at once."""
    if not isinstance(total, int):
        return 1024
    return next((block for block in (1024, 512) if total >= block * processors * 4), 256)


def flat_choice(block: int) -> KernelChoice:
    """The choice of a kernel over one index space: so many elements a program."""
    return KernelChoice((("BLOCK", block),))


def emit_pointwise(kernel: Pointwise, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
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
    body = FunctionBody(plan, options, wide=wide)
    if row is not None:
        return emit_transposed(kernel, body, loops, row, binding, comment, sizes, choice)
    start = "tl.program_id(0)" if wide is False else f"tl.program_id(0).to({body.index_type})"
    boxes = boxes_of(kernel, plan)
    if boxes:
        lines, programs = _in_boxes(boxes, body, start, block)
    else:
        lines, programs = _flat(kernel, loops, binding, body, start, block, "mask"), ceildiv(total, block)
    source = function_text(body, kernel.name, comment, ["BLOCK"], lines)
    launch = Launch(kernel.name, body.arguments(), (programs,), choice.numbers, sizes, choice.warps, choice.stages, options.contracts)
    return EmittedKernel(source, (launch,), choice=choice)


def _flat(
    kernel: Pointwise, loops: Sequence[Loop], binding: Mapping[str, Dim], body: FunctionBody, program: str, block: int, mask: str
) -> list[str]:
    """The statements of one block of a kernel over its joined `loops`: the block whose number `program` says."""
    total, flat, scope = product(loop.extent for loop in loops), body.name("offsets"), TileScope(_AXES)
    whole = isinstance(total, int) and total % block == 0
    space = Space(body, {"all": TileAxis(flat, None if whole else mask)}, [scope], binding, kernel.picks)
    space.number(loops, flat, _AXES)
    scope.lines.append(f"{flat} = {program} * BLOCK + tl.arange(0, BLOCK)")
    if not whole:
        scope.lines.append(f"{mask} = {flat} < {body.text(total)}")
    for store in kernel.stores:
        space.store(store, _AXES)
    return scope.lines


def _in_boxes(boxes: Sequence[Pointwise], body: FunctionBody, start: str, block: int) -> tuple[list[str], Dim]:
    """The statements of programs that go through one box after the other, and how many programs there are."""
    program = body.name("program")
    counts = [ceildiv(product(loop.extent for loop in box.loops), block) for box in boxes]
    ends = list(accumulate(counts, add))
    begins = [body.text(subtract(end, count)) for end, count in zip(ends, counts, strict=True)]
    texts = []
    for box, begin in zip(boxes, begins, strict=True):
        loops, binding = join_loops(box.loops, dims_of([pick.value for pick in box.picks], box.stores, body.plan))
        own = program if begin == "0" else f"({program} - {begin})"
        texts.append(_flat(box, loops, binding, body, own, block, body.name("mask")))
    return [f"{program} = {start}", *_branches(texts, begins, program)], ends[-1]


def _branches(texts: Sequence[Sequence[str]], begins: Sequence[str], program: str) -> list[str]:
    """Each text where the program's number is between its begin and the next one, found by halves."""
    if len(texts) == 1:
        return list(texts[0])
    half = len(texts) // 2
    low, high = (_branches(texts[part], begins[part], program) for part in (slice(half), slice(half, None)))
    return [f"if {program} < {begins[half]}:", *(f"    {line}" for line in low), "else:", *(f"    {line}" for line in high)]


def index_limits(plan: Plan, buffers: tuple[str, ...], dims: list[Dim], extents: Mapping[str, Dim], more: list[Dim]) -> list[Dim]:
    """Dims that no offset or index of a kernel is above."""
    return [*(span(plan.buffers[name]) for name in buffers), *(largest_index(dim, extents) for dim in dims), *more]
