"""Pointwise kernels that choose between many values by place (a concatenation of what they compute, as of rows of many tables): each
program stands in one box, in which all choices are made, and computes what is chosen there. Else every element would read under masks
whatever stands anywhere: rows of 26 tables took 157 us that way, and 80 with a kernel for each (DLRM on an H200, 2026-11-26).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from coset.ir.dims import Dim, add, ceildiv, product, subtract
from coset.lowering.boxes import Box, Frame, cuts_of, in_box
from coset.lowering.kernel import Buffer, Choose, Load, Plan, Pointwise, scalars, values_of
from coset.lowering.parts import SECTOR
from coset.lowering.triton_body import Body, function_text
from coset.lowering.triton_choice import Choice
from coset.lowering.triton_dims import join_loops
from coset.lowering.triton_launch import Emission, Launch
from coset.lowering.triton_values import Axis, Scope, Space, dims_of

LESS = 4  # times as few loads as without boxes, at least
MOST = 128  # boxes of a kernel
_AXES = frozenset({"all"})


def boxes_of(kernel: Pointwise, plan: Plan) -> list[Pointwise]:
    """The boxes of the only store of a kernel, each as a kernel, where each reads far less than all of them together and rows in it are
    sectors of memory or longer; else none."""
    values = list(scalars(*values_of(kernel)))
    loads = sum(isinstance(value, Load) for value in values)
    if len(kernel.stores) != 1 or loads < LESS or sum(isinstance(value, Choose) for value in values) < LESS - 1:
        return []
    (store,) = kernel.stores
    buffer, frame = plan.buffers[store.buffer], Frame.of(store, kernel.loops)
    plain = buffer.strides is None and buffer.order is None and buffer.packed is None
    boxes = cuts_of(store, frame, MOST) if plain and frame is not None else None
    if boxes is None or frame is None or any(_row(box, frame, buffer) < SECTOR for box in boxes):
        return []
    found = [in_box(kernel, store, frame, box) for box in boxes]
    return found if LESS * max(map(_loads, found)) <= loads else []


def _loads(kernel: Pointwise) -> int:
    return sum(isinstance(value, Load) for value in scalars(*values_of(kernel)))


def _row(box: Box, frame: Frame, buffer: Buffer) -> float:
    """Bytes that lie side by side in a box; of free dims as if there were many."""
    count = 1.0
    for size, whole in reversed(list(zip(frame.moved(box).shape, buffer.shape, strict=True))):
        count *= size if isinstance(size, int) else SECTOR
        if size != whole:
            break
    return count * buffer.dtype.bytes


def emit_in_boxes(
    kernel: Pointwise, boxes: Sequence[Pointwise], body: Body, comment: Sequence[str], sizes: tuple[Dim, ...], choice: Choice
) -> Emission:
    """One Triton function whose programs go through one box after the other."""
    block, program = choice["BLOCK"], body.name("program")
    counts = [ceildiv(product(loop.extent for loop in box.loops), block) for box in boxes]
    ends = list(accumulate(counts, add))
    begins = [subtract(end, count) for end, count in zip(ends, counts, strict=True)]
    texts = [_text(box, body, program, begin, block) for box, begin in zip(boxes, begins, strict=True)]
    start = "tl.program_id(0)" if body.wide is False else f"tl.program_id(0).to({body.index_type})"
    lines = [f"{program} = {start}", *_branches(texts, [body.text(begin) for begin in begins], program)]
    source = function_text(body, kernel.name, list(comment), ["BLOCK"], lines)
    launch = Launch(
        kernel.name, body.arguments(), (ends[-1],), choice.numbers, sizes, choice.warps, choice.stages, body.options.contracts
    )  # fmt: skip
    return Emission(source, (launch,), choice=choice)


def _text(box: Pointwise, body: Body, program: str, begin: Dim, block: int) -> list[str]:
    """The statements of a program in a box, of whose programs the first has the number `begin`."""
    loops, binding = join_loops(box.loops, dims_of([pick.value for pick in box.picks], box.stores, body.plan))
    total, flat = product(loop.extent for loop in box.loops), body.name("offsets")
    whole = isinstance(total, int) and total % block == 0
    mask = None if whole else body.name("mask")
    scope = Scope(_AXES)
    space = Space(body, {"all": Axis(flat, mask)}, [scope], binding, box.picks)
    space.number(loops, flat, _AXES)
    own = program if begin == 0 else f"({program} - {body.text(begin)})"
    scope.lines.append(f"{flat} = {own} * BLOCK + tl.arange(0, BLOCK)")
    if mask is not None:
        scope.lines.append(f"{mask} = {flat} < {body.text(total)}")
    for store in box.stores:
        space.store(store, _AXES)
    return scope.lines


def _branches(texts: Sequence[Sequence[str]], begins: Sequence[str], program: str) -> list[str]:
    """Each text where the program's number is between its begin and the next one, found by halves."""
    if len(texts) == 1:
        return list(texts[0])
    half = len(texts) // 2
    low, high = (_branches(texts[part], begins[part], program) for part in (slice(half), slice(half, None)))
    return [f"if {program} < {begins[half]}:", *(f"    {line}" for line in low), "else:", *(f"    {line}" for line in high)]
