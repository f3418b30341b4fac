"""What one program of a kernel does, by family: for `predicted`, which says how this becomes seconds of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from coset.ir.types import DType
from coset.lowering.kernels.addresses import number_of
from coset.lowering.kernels.kernel import (
    Attention,
    Chain,
    Computed,
    Grouped,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Rows,
    Scan,
    Scatter,
    Sort,
    Statistics,
    loops_of,
)
from coset.lowering.planning.traffic import kernel_traffic
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.rereading import fetched_again
from coset.lowering.triton.rows import power_of_two
from coset.lowering.triton.scales import without_scales
from coset.lowering.triton.tiling import multiplied, narrowest, unit_of
from coset.targets.target import Target

CACHE = 4.0  # assumed: how many times as fast as memory a cache gives what was read before
THREADS = 2048  # of a processor at once (CUDA C++ Programming Guide, compute capability 8.0 and 9.0)
_SIDES = 2  # programs of a product that a processor holds: what shared memory of two stages has room for
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class ProgramShare:
    """What one program does: `seconds` if it had the machine alone, how many programs there are, and how many a processor holds; `joining`:
    seconds to add up the parts of sums that were split."""

    seconds: float
    programs: float
    resident: int
    joining: float = 0.0


# ---------------------------------------------------------------- products


def product_share(kernel: Product, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes) -> ProgramShare:
    """A tile of a product, or of a part of its sums."""
    m, n = number_of(kernel.m, sizes), number_of(kernel.n, sizes)
    groups = number_of(kernel.batch, sizes) * -(-m // choice["BLOCK_M"])
    share = _tile(kernel, choice, options, target, sizes, groups)
    return replace(share, joining=_joining(number_of(kernel.batch, sizes) * m * n, kernel.accumulator, choice, target))


def grouped_share(kernel: Grouped, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes) -> ProgramShare:
    """A tile of a grouped product: each group may end within one."""
    groups = number_of(kernel.batch, sizes) + -(-number_of(kernel.m, sizes) // choice["BLOCK_M"])
    return _tile(kernel, choice, options, target, sizes, groups)


def _tile(kernel: Product | Grouped, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes, groups: int) -> ProgramShare:
    """A tile of so many `groups` of rows."""
    n, k = number_of(kernel.n, sizes), number_of(kernel.k, sizes)
    splits, height, width = choice.get("SPLITS") or 1, choice["BLOCK_M"], choice["BLOCK_N"]
    left, right, taken = multiplied(without_scales(kernel, options)[0], eights=choice.get("EIGHTS") == 1)
    lhs, rhs, unit = narrowest(left).dtype, narrowest(right).dtype, taken or kernel.accumulator
    deep = _padded(-(-k // splits), choice["BLOCK_K"])
    flop, bytes_ = 2 * height * width * deep, deep * (height * lhs.bytes + width * rhs.bytes)
    return _multiplying(flop, bytes_, groups * -(-n // width) * splits, unit, choice, target)


def attention_share(
    kernel: Attention, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes
) -> ProgramShare:
    """A block of queries of an attention, or of a part of its keys."""
    batch, m, n, k = (number_of(loops, sizes) for loops in (kernel.batch, kernel.m, kernel.n, kernel.k))
    splits, height = choice.get("SPLITS") or 1, choice["BLOCK_M"]
    lhs, rhs = kernel.key.dtype, kernel.value.dtype
    unit = unit_of(lhs, rhs, kernel.accumulator) or kernel.accumulator
    keys = _padded(-(-number_of(kernel.keys, sizes) // splits), choice["BLOCK_N"])
    width = power_of_two(k) + power_of_two(n)
    flop, bytes_ = 2 * height * keys * width, keys * (k * lhs.bytes + n * rhs.bytes)
    share = _multiplying(flop, bytes_, batch * -(-m // height) * splits, unit, choice, target)
    return replace(share, joining=_joining(batch * m * n, kernel.accumulator, choice, target))


def gradient_share(
    kernel: Statistics | Chain, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes
) -> ProgramShare:
    """A program of the gradients of an attention, as if no mask bounded what it sums over: it goes through all of that for its rows."""
    batch, rows, summed = (number_of(loops, sizes) for loops in (kernel.batch, kernel.rows, kernel.summed))
    height, places = choice["BLOCK_M"], _padded(summed, choice["BLOCK_N"])
    inner = [(power_of_two(number_of(dot.k, sizes)), dot.rhs.dtype.bytes) for dot in kernel.dots]
    inner += [(power_of_two(number_of(each.n, sizes)), each.value.dtype.bytes) for each in kernel.sums]
    flop = 2 * height * places * sum(width for width, _ in inner)
    bytes_ = places * sum(width * size for width, size in inner)
    unit = unit_of(kernel.dots[0].lhs.dtype, kernel.dots[0].rhs.dtype, kernel.accumulator) or kernel.accumulator
    return _multiplying(flop, bytes_, batch * -(-rows // height), unit, choice, target)


def _multiplying(flop: float, bytes_: float, programs: int, unit: DType, choice: KernelChoice, target: Target) -> ProgramShare:
    """A program that multiplies this much in `unit` and reads so many bytes that others read, too; where no rate of products is known only
    reading counts."""
    rates = target.kernels["matmul"].rates if "matmul" in target.kernels else {}
    rate = rates.get(unit.name, rates.get("*"))
    seconds = bytes_ / (CACHE * _bandwidth(target))
    seconds = seconds if rate is None else max(flop / rate.value, seconds)
    return ProgramShare(seconds, programs, max(1, min(_SIDES, THREADS // (32 * choice.warps))))


def _joining(results: int, accumulator: DType, choice: KernelChoice, target: Target) -> float:
    """Seconds to write and read the parts of so many sums."""
    parts = (choice.get("SPLITS") or 1) * results
    return 2 * parts * accumulator.bytes / _bandwidth(target)


# ---------------------------------------------------------------- kernels that wait for memory


def pointwise_share(
    kernel: Pointwise, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes
) -> ProgramShare:
    """A tile of the index space."""
    tile, total = prod(dict(choice.numbers).values()), number_of(kernel.loops, sizes)
    return moving_share(kernel, plan, choice, target, sizes, tile, total, -(-total // tile))


def rows_share(kernel: Rows, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes) -> ProgramShare:
    """Some rows; what is read a second time counts."""
    rows, columns = number_of(kernel.rows, sizes), number_of(kernel.columns, sizes)
    again = fetched_again(kernel, plan, choice.warps, options, sizes) if choice["BLOCK_COLUMNS"] < columns else 0
    return _in_rows(kernel, plan, choice, target, sizes, rows, columns, again)


def scan_share(kernel: Scan, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes) -> ProgramShare:
    """Some rows."""
    return _in_rows(kernel, plan, choice, target, sizes, number_of(kernel.rows, sizes), number_of((kernel.column,), sizes), 0)


def _in_rows(
    kernel: Computed, plan: Plan, choice: KernelChoice, target: Target, sizes: Sizes, rows: int, columns: int, again: float
) -> ProgramShare:
    height = choice["BLOCK_ROWS"]
    tile = height * _padded(columns, choice["BLOCK_COLUMNS"])
    return moving_share(kernel, plan, choice, target, sizes, tile, rows * columns, -(-rows // height), again)


def scatter_share(kernel: Scatter, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes) -> ProgramShare:
    """A tile of what is stored, or a block of updates."""
    if "BLOCK" in dict(choice.numbers):
        tile, total = prod(dict(choice.numbers).values()), number_of((*kernel.updates, *kernel.columns), sizes)
        return moving_share(kernel, plan, choice, target, sizes, tile, total, -(-total // tile))
    rows, columns = number_of(kernel.rows, sizes), number_of(kernel.columns, sizes)
    height, width = choice.get("BLOCK_ROWS") or 1, choice["BLOCK_COLUMNS"]
    programs = -(-rows // height) * -(-columns // width)
    return moving_share(kernel, plan, choice, target, sizes, height * width, rows * columns, programs)


def whole_rows_share(
    kernel: Sort | Recurrence, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Sizes
) -> ProgramShare:
    """Whole rows."""
    total, rows, height = number_of(loops_of(kernel), sizes), number_of(kernel.rows, sizes), choice["BLOCK_ROWS"]
    return moving_share(kernel, plan, choice, target, sizes, height * (total // max(rows, 1)), total, -(-rows // height))


def moving_share(
    kernel: Computed, plan: Plan, choice: KernelChoice, target: Target, sizes: Sizes, tile: int, total: int, programs: int,
    again: float = 0,
) -> ProgramShare:  # fmt: skip
    """A program of a kernel that waits for memory: its share of the bytes is that of its `tile` in the index space of `total` places.
    `again`: bytes that are read a second time."""
    moved = kernel_traffic(plan, kernel, sizes) + again
    return ProgramShare(moved * tile / max(total, 1) / _bandwidth(target), programs, max(1, THREADS // (32 * choice.warps)))


def _bandwidth(target: Target) -> float:
    """B/s of memory; where a target says none, seconds are bytes."""
    found = target.numbers.get("bandwidth")
    return found.value if found is not None else 1.0


def _padded(count: int, block: int) -> int:
    return -(-count // block) * block
