"""Constants of elements below a byte: in memory several share one, so that a kernel that reads them moves no more bytes than they have.

Neighbours along the dim before the last share a byte, where its size allows: addresses along the last dim stay next to each other, so
that loads can be wide, and the tile that reads one neighbour reads the others too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from coset.ir.dims import Shape
from coset.ir.types import DType
from coset.lowering.kernels.kernel import Buffer, Library, Plan, reads
from coset.lowering.planning.kinds import SMALL

Array = np.ndarray[Any, Any]
_PIECE = 16 << 20  # bytes that are packed at a time


def packed(plan: Plan) -> Plan:
    """The plan with constants packed that only kernels read: a library wants its elements apart, and so does a caller."""
    apart = {name for kernel in plan.kernels if isinstance(kernel, Library) for name in reads(kernel)} | {name for _, name in plan.outputs}
    buffers = {name: buffer if name in apart else _packed(buffer) for name, buffer in plan.buffers.items()}
    return replace(plan, buffers=buffers)


def _packed(buffer: Buffer) -> Buffer:
    if buffer.role != "constant" or buffer.dtype.name not in SMALL:
        return buffer
    return replace(buffer, packed=shared_dim(buffer.shape, buffer.dtype))


def shared_dim(shape: Shape, dtype: DType) -> int | None:
    """The dim along which neighbours share a byte: the last but one if it can be, else the nearest before it, else the last; None where
    no size is a multiple of how many share."""
    count = 8 // dtype.bits
    order = [*reversed(range(len(shape) - 1)), len(shape) - 1] if shape else []
    return next((axis for axis in order if isinstance(size := shape[axis], int) and size and size % count == 0), None)


def packed_pieces(array: Array, axis: int, bits: int) -> Iterator[Array]:
    """The bytes of `array`, whose elements have `bits` bits, packed along `axis`, row-major, some at a time; the first of those that
    share a byte has its lowest bits."""
    if not array.size:
        return
    count = 8 // bits
    inner = int(np.prod(array.shape[axis + 1 :], dtype=np.int64))
    rows = np.ascontiguousarray(array).view(np.uint8).reshape(-1, count, inner)
    step = max(1, _PIECE // (count * inner))
    for first in range(0, len(rows), step):
        part = rows[first : first + step] & np.uint8((1 << bits) - 1)
        yield np.bitwise_or.reduce(part << (np.arange(count, dtype=np.uint8) * np.uint8(bits))[:, None], axis=1).reshape(-1)
