"""What a plan moves: bytes and launches, beside the same program one op at a time and beside the least that any plan could move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from coset.ir.dims import evaluate, symbols
from coset.ir.program import Program
from coset.ir.term import Term, topological
from coset.ir.types import TensorType, TupleType
from coset.lowering.kernels.kernel import (
    Buffer,
    Computed,
    Kernel,
    Library,
    Load,
    Plan,
    dims_in,
    loops_of,
    reads,
    scalars,
    stores_of,
    values_of,
    writes,
)
from coset.lowering.planning.kinds import LEAVES, NOTHING, bytes_of
from coset.lowering.planning.primitive import primitive


@dataclass(frozen=True)
class Traffic:
    """Bytes that go to or come from memory, and kernels."""

    bytes: int
    kernels: int


def kernel_traffic(plan: Plan, kernel: Kernel, binding: Mapping[str, int]) -> int:
    """The bytes of one kernel: each element of a buffer that it touches once, whatever it is read for."""
    if isinstance(kernel, Library):
        return sum(_size(plan.buffers[name], binding) for name in (*reads(kernel), *writes(kernel)))
    return sum(stored_bytes(plan, kernel, binding)) + sum(read_bytes(plan, kernel, binding).values())


def stored_bytes(plan: Plan, kernel: Computed, binding: Mapping[str, int]) -> list[int]:
    """Bytes that each store of a kernel writes: an element for each index of the loops that it moves along."""
    extents = {loop.name: loop.extent for loop in loops_of(kernel)}
    found = []
    for store in stores_of(kernel):
        loops = {name for dim in store.index for name in symbols(dim) & extents.keys()}
        count = prod(evaluate(extents[name], binding) for name in loops)
        found.append(int(count * plan.buffers[store.buffer].dtype.bytes))
    return found


def _size(buffer: Buffer, binding: Mapping[str, int]) -> int:
    count = 1
    for dim in buffer.shape:
        count *= evaluate(dim, binding)
    return int(count * buffer.dtype.bytes)


def read_bytes(plan: Plan, kernel: Computed, binding: Mapping[str, int]) -> dict[str, int]:
    """Bytes read of each buffer: at most one element for each index of the loops that each load moves along, and at most the whole."""
    extents = {loop.name: loop.extent for loop in loops_of(kernel)}
    moves: dict[str, set[str]] = {}  # the loops that a pick moves along
    for pick in kernel.picks:
        indices = [dim for value in scalars(pick.value) for dim in dims_in(value)]
        moves[pick.name] = {loop for dim in indices for name in symbols(dim) for loop in moves.get(name, {name} & extents.keys())}
    totals: dict[str, int] = {}
    for value in scalars(*values_of(kernel)):
        if isinstance(value, Load):
            loops = {loop for dim in value.index for name in symbols(dim) for loop in moves.get(name, {name} & extents.keys())}
            count = 1
            for loop in loops:
                count *= evaluate(extents[loop], binding)
            totals[value.buffer] = totals.get(value.buffer, 0) + int(count * plan.buffers[value.buffer].dtype.bytes)
    return {name: min(total, _size(plan.buffers[name], binding)) for name, total in totals.items()}


def traffic(plan: Plan, binding: Mapping[str, int] | None = None) -> Traffic:
    """What the plan moves with its dim symbols bound; each kernel reads each element once."""
    return Traffic(sum(kernel_traffic(plan, kernel, binding or {}) for kernel in plan.kernels), len(plan.kernels))


def unfused(program: Program, binding: Mapping[str, int] | None = None) -> Traffic:
    """One kernel for each primitive op, each reading its operands and writing its result; reshapes, broadcasts, numbers of the host and
    constants of one element move nothing."""
    numbers = dict(binding or {})
    total = count = 0
    for term in topological(primitive(program)):
        free = term.op.name in (*LEAVES, *NOTHING, "builtin.get", "builtin.tuple", "builtin.dims", "stablehlo.reshape")
        if free or term.op.name == "stablehlo.broadcast_in_dim":
            continue
        operands = [_unbroadcast(operand) for operand in term.operands]
        results = term.type.items if isinstance(term.type, TupleType) else (term.type,)
        total += sum(bytes_of(operand, numbers) for operand in operands)
        total += sum(int(item.bytes(numbers)) for item in results if isinstance(item, TensorType))
        count += 1
    return Traffic(total, count)


def _unbroadcast(term: Term) -> Term:
    while term.op.name in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        term = term.operands[0]
    return term


def least(plan: Plan, binding: Mapping[str, int] | None = None) -> int:
    """Bytes of the inputs and constants that the plan reads, once, and of its outputs, once: no plan moves fewer. Of a table that is only
    read at computed places, one element for each place."""
    numbers = binding or {}
    used = {name for kernel in plan.kernels for name in reads(kernel)} | {name for _, name in plan.outputs}
    ends = {name for name in used if plan.buffers[name].role in ("input", "constant")} - {name for _, name in plan.outputs}
    total = sum(_size(plan.buffers[name], numbers) for name in {name for _, name in plan.outputs})
    return total + sum(_least_of(plan, name, numbers) for name in ends)


def _least_of(plan: Plan, name: str, binding: Mapping[str, int]) -> int:
    """The bytes of an input that some kernel must read."""
    most = 0
    for kernel in plan.kernels:
        if name not in reads(kernel):
            continue
        if isinstance(kernel, Library):
            return _size(plan.buffers[name], binding)
        picks = {pick.name for pick in kernel.picks}
        loads = [value for value in scalars(*values_of(kernel)) if isinstance(value, Load) and value.buffer == name]
        if any(not any(symbols(dim) & picks for dim in load.index) for load in loads):
            return _size(plan.buffers[name], binding)
        most = max(most, read_bytes(plan, kernel, binding)[name])
    return most
