"""Which pointwise kernels choose by place between so many values (a concatenation of what they compute, as of rows of many tables) that
each program stands in one box, in which all choices are made, and computes what is chosen there. Else every element would read under
masks whatever stands anywhere: rows of 26 tables took 157 us that way, and 80 with a kernel for each (DLRM on an H200, 2026-11-26).
"""

from __future__ import annotations

from coset.lowering.kernels.boxes import Box, StoreFrame, cuts_of, in_box
from coset.lowering.kernels.kernel import Buffer, Choose, Load, Plan, Pointwise, scalars, values_of
from coset.lowering.planning.parts import SECTOR

LESS = 4  # times as few loads as without boxes, at least
MOST = 128  # boxes of a kernel


def boxes_of(kernel: Pointwise, plan: Plan) -> list[Pointwise]:
    """The boxes of the only store of a kernel, each as a kernel, where each reads far less than all of them together and rows in it are
    sectors of memory or longer; else none."""
    values = list(scalars(*values_of(kernel)))
    loads = sum(isinstance(value, Load) for value in values)
    if len(kernel.stores) != 1 or loads < LESS or sum(isinstance(value, Choose) for value in values) < LESS - 1:
        return []
    (store,) = kernel.stores
    buffer, frame = plan.buffers[store.buffer], StoreFrame.of(store, kernel.loops)
    plain = buffer.strides is None and buffer.order is None and buffer.packed is None
    boxes = cuts_of(store, frame, MOST) if plain and frame is not None else None
    if boxes is None or frame is None or any(_row(box, frame, buffer) < SECTOR for box in boxes):
        return []
    found = [in_box(kernel, store, frame, box) for box in boxes]
    return found if LESS * max(map(_loads, found), default=loads) <= loads else []


def _loads(kernel: Pointwise) -> int:
    return sum(isinstance(value, Load) for value in scalars(*values_of(kernel)))


def _row(box: Box, frame: StoreFrame, buffer: Buffer) -> float:
    """Bytes that lie side by side in a box; of free dims as if there were many."""
    count = 1.0
    for size, whole in reversed(list(zip(frame.moved(box).shape, buffer.shape, strict=True))):
        count *= size if isinstance(size, int) else SECTOR
        if size != whole:
            break
    return count * buffer.dtype.bytes
