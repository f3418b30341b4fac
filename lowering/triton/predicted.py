"""How alternatives of one kernel are ranked before anything is compiled: by whole waves of programs, what each of them does, and reads.

A machine has so many slots for programs; they run in waves, and a wave takes as long when it is not full. A program's work is that of
its whole tile, also where that reaches over an edge, at its share of the machine:

    seconds = launch + waves * slots * seconds of one program, if it had the whole machine

Of products a program takes the longer of its multiplications at the peak rate and its reads of both operands, which other programs have
read too, at `CACHE` times the bandwidth of memory; of all other kernels, bytes at that bandwidth. It says nothing of latencies, banks and
schedules, nor of how operands are read and whether programs stay: only what is several times worse than the best is left out by it, and
the clock decides among the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod

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
    Rows,
    Scan,
    Scatter,
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


@dataclass(frozen=True)
class _Share:
    """What one program does: seconds if it had the machine alone, how many programs there are, and how many a processor holds."""

    seconds: float
    programs: float
    resident: int


def predicted(kernel: Computed, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Mapping[str, int]) -> float:
    """Seconds of a kernel with these numbers on a target; only beside those of its other alternatives do they mean something."""
    launch = target.numbers.get("launch")
    share = None
    if isinstance(kernel, (Product, Grouped, Attention)):
        share = _multiplying(kernel, choice, options, target, sizes)
    elif isinstance(kernel, (Statistics, Chain)):
        share = _retracing(kernel, choice, target, sizes)
    share = share or _moving(kernel, plan, choice, options, target, sizes)
    slots = options.processors * share.resident
    joined = 0.0
    if dict(choice.numbers).get("SPLITS", 1) > 1:
        assert isinstance(kernel, (Product, Attention))
        parts = choice["SPLITS"] * number_of((*kernel.batch, *kernel.m, *kernel.n), sizes)
        joined = 2 * parts * kernel.accumulator.bytes / _bandwidth(target) + (launch.value if launch else 0.0)
    return (launch.value if launch else 0.0) + joined + ceil(share.programs / slots) * slots * share.seconds


def _multiplying(
    kernel: Product | Grouped | Attention, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Mapping[str, int]
) -> _Share | None:
    """A program of a product or an attention; None where no rate of products is known."""
    batch, m, n, k = (number_of(loops, sizes) for loops in (kernel.batch, kernel.m, kernel.n, kernel.k))
    numbers, splits = dict(choice.numbers), dict(choice.numbers).get("SPLITS", 1)
    height = numbers["BLOCK_M"]
    if isinstance(kernel, Attention):
        lhs, rhs = kernel.key.dtype, kernel.value.dtype
        unit = unit_of(lhs, rhs, kernel.accumulator) or kernel.accumulator
        keys = _padded(-(-number_of(kernel.keys, sizes) // splits), numbers["BLOCK_N"])
        width = power_of_two(k) + power_of_two(n)
        flop, bytes_ = 2 * height * keys * width, keys * (k * lhs.bytes + n * rhs.bytes)
        programs = batch * -(-m // height) * splits
    else:
        left, right, taken = multiplied(without_scales(kernel, options)[0], eights=numbers.get("EIGHTS") == 1)
        lhs, rhs, unit = narrowest(left).dtype, narrowest(right).dtype, taken or kernel.accumulator
        width, deep = numbers["BLOCK_N"], _padded(-(-k // splits), numbers["BLOCK_K"])
        flop, bytes_ = 2 * height * width * deep, deep * (height * lhs.bytes + width * rhs.bytes)
        groups = batch * -(-m // height) if isinstance(kernel, Product) else batch + -(-m // height)
        programs = groups * -(-n // width) * splits
    return _share(flop, bytes_, programs, unit, choice, target)


def _retracing(kernel: Statistics | Chain, choice: KernelChoice, target: Target, sizes: Mapping[str, int]) -> _Share | None:
    """A program of the gradients of an attention, as if no mask bounded what it sums over: it goes through all of that for its rows."""
    batch, rows, summed = (number_of(loops, sizes) for loops in (kernel.batch, kernel.rows, kernel.summed))
    height, places = choice["BLOCK_M"], _padded(summed, choice["BLOCK_N"])
    inner = [(power_of_two(number_of(dot.k, sizes)), dot.rhs.dtype.bytes) for dot in kernel.dots]
    inner += [(power_of_two(number_of(each.n, sizes)), each.value.dtype.bytes) for each in kernel.sums] if isinstance(kernel, Chain) else []
    flop = 2 * height * places * sum(width for width, _ in inner)
    bytes_ = places * sum(width * size for width, size in inner)
    unit = unit_of(kernel.dots[0].lhs.dtype, kernel.dots[0].rhs.dtype, kernel.accumulator) or kernel.accumulator
    return _share(flop, bytes_, batch * -(-rows // height), unit, choice, target)


def _share(flop: float, bytes_: float, programs: int, unit: DType, choice: KernelChoice, target: Target) -> _Share | None:
    """A program that multiplies this much in `unit` and reads so many bytes that others read, too."""
    rates = target.kernels["matmul"].rates if "matmul" in target.kernels else {}
    rate = rates.get(unit.name, rates.get("*"))
    if rate is None:
        return None
    seconds = max(flop / rate.value, bytes_ / (CACHE * _bandwidth(target)))
    return _Share(seconds, programs, max(1, min(_SIDES, THREADS // (32 * choice.warps))))


def _moving(kernel: Computed, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Mapping[str, int]) -> _Share:
    """A program of a kernel that waits for memory: its share of the bytes is that of its tile in the index space."""
    numbers = dict(choice.numbers)
    if isinstance(kernel, (Rows, Scan)):
        columns = number_of(kernel.columns if isinstance(kernel, Rows) else (kernel.column,), sizes)
        rows = number_of(kernel.rows, sizes)
        tile, programs = numbers["BLOCK_ROWS"] * _padded(columns, numbers["BLOCK_COLUMNS"]), -(-rows // numbers["BLOCK_ROWS"])
        total = rows * columns
    elif isinstance(kernel, Scatter) and "BLOCK" not in numbers:
        rows, columns = number_of(kernel.rows, sizes), number_of(kernel.columns, sizes)
        height, width = numbers.get("BLOCK_ROWS", 1), numbers["BLOCK_COLUMNS"]
        tile, total, programs = height * width, rows * columns, -(-rows // height) * -(-columns // width)
    elif isinstance(kernel, Pointwise) or "BLOCK" in numbers:
        loops = kernel.loops if isinstance(kernel, Pointwise) else (*kernel.updates, *kernel.columns)  # type: ignore[union-attr]
        tile, total = prod(numbers.values()), number_of(loops, sizes)
        programs = -(-total // tile)
    else:  # a sort or a recurrence: whole rows
        total = number_of(loops_of(kernel), sizes)
        rows = number_of(kernel.rows, sizes)  # type: ignore[union-attr]
        tile, programs = numbers["BLOCK_ROWS"] * (total // max(rows, 1)), -(-rows // numbers["BLOCK_ROWS"])
    moved: float = kernel_traffic(plan, kernel, sizes)
    if isinstance(kernel, Rows) and numbers["BLOCK_COLUMNS"] < columns:
        moved += fetched_again(kernel, plan, choice.warps, options, sizes)
    seconds = moved * tile / max(total, 1) / _bandwidth(target)
    return _Share(seconds, programs, max(1, THREADS // (32 * choice.warps)))


def _bandwidth(target: Target) -> float:
    """B/s of memory; where a target says none, seconds are bytes."""
    found = target.numbers.get("bandwidth")
    return found.value if found is not None else 1.0


def _padded(count: int, block: int) -> int:
    return -(-count // block) * block
