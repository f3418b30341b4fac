"""What kernels over long rows read again: a row is gone over once for its folds and once more for what is made with them. Memory gives it
twice, unless a cache still holds it: then as few rows are under way at once as programs of many warps make it.

The walks go to and fro, so that what was read last is read again first: of a cache that holds a part of the rows under way, about that
part is found there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coset.ir.dims import symbols
from coset.lowering.kernels.addresses import number_of
from coset.lowering.kernels.kernel import Load, Plan, Rows, Scalar, scalars
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.online import walks

HELD = 0.75  # of a cache that rows under way may take: what is written passes through it, too
WARPS = (4, 8, 16, 32)  # of a program that goes over rows
AT_ONCE = 32  # warps of a processor that registers hold, where each thread keeps 16 elements and what is made of them


def again_bytes(kernel: Rows, plan: Plan, *, contracts: bool) -> int:
    """Bytes for each row and column that walks behind the first read again."""
    passes, _ = walks(kernel.folds, contracts=contracts)
    read = [_along(kernel, (fold.value for fold in folds)) for folds in passes]
    read.append(_along(kernel, (store.value for store in kernel.element_stores)))
    seen: set[str] = set()
    total = 0
    for names in read:
        total += sum(int(plan.buffers[name].dtype.bytes) for name in names & seen)
        seen |= names
    return total


def _along(kernel: Rows, values: Iterable[Scalar]) -> set[str]:
    """The buffers of which each row has elements of its own along the columns."""
    rows, columns = ({loop.name for loop in loops} for loops in (kernel.rows, kernel.columns))
    found = {}
    for value in scalars(*values):
        if isinstance(value, Load):
            moved = frozenset[str]().union(*map(symbols, value.index))
            found[value.buffer] = bool(moved & columns) and (not rows or bool(moved & rows))
    return {name for name, is_along in found.items() if is_along}


def share_missed(rows: int, row: int, warps: int, options: EmitOptions) -> float:
    """The share of what rows of so many bytes, one for each program of so many warps, read again that the cache does not hold any more."""
    if not options.cache:
        return 0.0
    under_way = min(rows, options.processors * max(1, AT_ONCE // warps))
    return max(0.0, 1.0 - HELD * options.cache / max(1, under_way * row))


def warps_for(rows: int, row: int, options: EmitOptions) -> int:
    """The fewest warps of a program with which nothing is missed; the most, where with any of them something is."""
    return next((warps for warps in WARPS if share_missed(rows, row, warps, options) == 0.0), WARPS[-1])


def fetched_again(kernel: Rows, plan: Plan, warps: int, options: EmitOptions, sizes: Mapping[str, int]) -> float:
    """Bytes that memory gives a second time to programs of so many warps that go over one row each."""
    count, length = number_of(kernel.rows, sizes), number_of(kernel.columns, sizes)
    again = again_bytes(kernel, plan, contracts=options.contracts)
    return count * length * again * share_missed(count, length * again, warps, options)
