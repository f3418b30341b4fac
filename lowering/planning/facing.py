"""Which operand of a product stands on the left: tiles are stored along their columns, so these are what lies side by side in memory.

A convolution with filters of one place is `filters @ x`, which is what lies so with features first; with features last its transpose
does. What is done to the left operand is done in registers, from which a matrix unit takes it; the right one goes back to shared memory
(PTX ISA, section 9.7.15: of wgmma, A may be in registers, B is in shared memory). Activations are on the left then, where they are
computed, and weights on the right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coset.ir.dims import product
from coset.lowering.kernels.addresses import address
from coset.lowering.kernels.index_arithmetic import linear
from coset.lowering.kernels.kernel import Buffer, Kernel, Loop, Product

ROWS = 64  # of a matrix unit's instruction: fewer of them waste what fewer columns do not


def faced(kernel: Kernel, buffers: Mapping[str, Buffer]) -> Kernel:
    """A product whose columns are what lies side by side in most of what it stores; any other kernel as it is, and one over windows, which
    are on the left."""
    if not isinstance(kernel, Product) or kernel.windowed:
        return kernel
    beside = [_along(kernel.m, kernel, buffers), _along(kernel.n, kernel, buffers)]
    height = product(loop.extent for loop in kernel.n)
    if beside[0] <= beside[1] or (isinstance(height, int) and height < ROWS):
        return kernel
    return replace(kernel, m=kernel.n, n=kernel.m, lhs=kernel.rhs, rhs=kernel.lhs)


def _along(loops: Sequence[Loop], kernel: Product, buffers: Mapping[str, Buffer]) -> int:
    """The bits of a result, of all stores, whose neighbours in memory are neighbours along these loops."""
    places = [(buffers[store.buffer], store.index) for store in kernel.stores]
    return sum(buffer.dtype.bits for buffer, index in places if any(linear(address(buffer, index), loop.name) == 1 for loop in loops))
