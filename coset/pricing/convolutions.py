"""What a convolution takes as a kernel over windows, and whether it may take less than a library's: beside the work of its products there
are loads that each have an address and bounds of their own."""

from __future__ import annotations

from math import ceil, gcd

from coset.extract.work import ContractionWork as Sides
from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.ir.types import F32, DType
from coset.lowering.kernels.addresses import address
from coset.lowering.kernels.index_arithmetic import linear
from coset.lowering.kernels.kernel import (
    Load,
    Plan,
    Product,
    scalars,
)
from coset.lowering.planning.windows import has_windows, is_small_pool, is_thin
from coset.pricing.library import library_seconds
from coset.pricing.machine import Machine
from coset.pricing.products import matmul_seconds, product_seconds, rates_full, sides_of

_VECTOR = 128  # bits of one load at most
_TILE = 128  # columns of a tile at most: windows are read anew for each
_BLOCK = 16  # of a sum at least: where the features are a multiple, all of a block are in one place of their windows


def windows_may_pay(machine: Machine, term: Term) -> bool:
    """True for a convolution that a plan may do sooner as a kernel over windows (`planning/windows.py`) than by a library: where its
    work takes at most so much longer as the kernels before and behind it, which it may take in. Pools have nearly no work."""
    if "windows" not in machine.target.numbers or not (has_windows(term) or is_small_pool(term)):
        return False
    if is_small_pool(term) or is_thin(term):
        return True
    types = tuple(operand.type for operand in term.operands)
    sides = sides_of(machine, term)
    own = machine.target.kernels[machine.fusion.product]
    saved = sum(map(machine.passing, (types[0], term.type)))
    features = term.operands[1].tensor.dims[1]
    return (
        own.launch.value + windows_seconds(machine, sides, features, term.tensor.dtype, beside=True)
        < library_seconds(machine, term) + saved
    )


def windows_seconds(machine: Machine, sides: Sides, features: Dim, dtype: DType, *, beside: bool) -> float:
    """Seconds of the sums of a kernel over windows, which reach a share of what plain products do, and fill their tiles as these do; or of
    the loads that are counted by `gathered`, where these take longer."""
    tiled = Sides(sides.batch, sides.rows, sides.depth, sides.columns)
    rate = machine.number("gathered") * machine.options.processors
    loading = gathered(tiled, features, dtype, beside=beside) / rate
    full = dtype is F32 and rates_full(machine)
    return max(product_seconds(machine, tiled, dtype.name, full) / machine.number("windows"), loading)


def windowed_seconds(machine: Machine, planned: Plan, kernel: Product) -> float:
    """Seconds of the sums of one kernel over windows of a plan."""
    sides = Sides(machine.count(kernel.batch), machine.count(kernel.m), machine.count(kernel.k), machine.count(kernel.n))
    return windows_seconds(machine, sides, kernel.k[-1].extent, kernel.lhs.dtype, beside=lies_beside(planned, kernel))


def product_kernel_seconds(machine: Machine, planned: Plan, kernel: Product) -> float:
    """Seconds of the sums of a product, over windows or not."""
    return windowed_seconds(machine, planned, kernel) if kernel.windowed else matmul_seconds(machine, kernel)


def gathered(sides: Sides, features: Dim, dtype: DType, *, beside: bool) -> float:
    """How many loads of windows have addresses and bounds of their own: none where all that a block sums over lies in one place of its
    windows. `beside`: features lie side by side, so that one load brings several of them."""
    if isinstance(features, int) and features % _BLOCK == 0:
        return 0.0
    width = gcd(features, _VECTOR // dtype.bits) if beside and isinstance(features, int) else 1
    return sides.batch * sides.rows * ceil(sides.depth / _BLOCK) * _BLOCK * ceil(sides.columns / _TILE) / width


def lies_beside(plan: Plan, kernel: Product) -> bool:
    """True where the features that a kernel over windows reads lie side by side."""
    channel = kernel.k[-1].name
    loads = [value for value in scalars(kernel.lhs) if isinstance(value, Load)]
    return all(linear(address(plan.buffers[load.buffer], load.index), channel) == 1 for load in loads)
