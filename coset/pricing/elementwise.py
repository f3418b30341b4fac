"""What the arithmetic of elementwise ops, reductions, scans, scatters and sorts takes in one kernel."""

from __future__ import annotations

from collections.abc import Sequence

from coset.ir.types import F32
from coset.lowering.kernels.kernel import (
    LOOP,
    Computed,
    Plan,
    Pointwise,
    Rows,
    ScalarOp,
    Scan,
    Scatter,
    Sort,
    loops_of,
    scalars,
    values_of,
)
from coset.lowering.planning.kinds import COSTLY
from coset.lowering.triton.boxes import boxes_of
from coset.pricing.machine import Machine

INSTRUCTION = 2  # FLOP of a multiply-add, which takes as long as any other op of arithmetic


def pointwise_seconds(machine: Machine, planned: Plan, kernel: Pointwise) -> float:
    """Seconds of the arithmetic of a kernel of elementwise ops."""
    parts = boxes_of(kernel, planned) or (kernel,)
    return sum(arithmetic_seconds(machine, part, machine.fusion.pointwise, machine.count(part.loops)) for part in parts)


def rows_seconds(machine: Machine, planned: Plan, kernel: Rows) -> float:
    """Seconds of the arithmetic of a kernel of reductions: of each fold an addition."""
    return arithmetic_seconds(machine, kernel, machine.fusion.rows, machine.count(loops_of(kernel)), ["add"] * len(kernel.folds))


def scan_seconds(machine: Machine, planned: Plan, kernel: Scan) -> float:
    """Seconds of the arithmetic of a scan: one addition inside a thread, and one over threads."""
    return arithmetic_seconds(machine, kernel, machine.fusion.rows, machine.count(loops_of(kernel)), ["add"] * 2)


def scatter_seconds(machine: Machine, planned: Plan, kernel: Scatter) -> float:
    """Seconds of the arithmetic of a scatter: for each element of the result and each one of the updates."""
    seen = machine.count((*kernel.rows, *kernel.updates)) if kernel.form == LOOP else 0.0
    count = machine.count(kernel.columns) * (machine.count(kernel.rows) + machine.count(kernel.updates)) + seen
    return arithmetic_seconds(machine, kernel, machine.fusion.rows, count, ["add"])


def sort_seconds(machine: Machine, planned: Plan, kernel: Sort) -> float:
    """Seconds of the arithmetic of a sort: a network of so many layers, each an exchange and a choice."""
    assert isinstance(kernel.column.extent, int)
    depth = (kernel.column.extent - 1).bit_length()
    network = ["minimum"] * (4 * depth * (depth + 1) // 2)
    return arithmetic_seconds(machine, kernel, machine.fusion.rows, machine.count((*kernel.rows, kernel.column)), network)


def arithmetic_seconds(machine: Machine, kernel: Computed, name: str, count: float, more: Sequence[str] = ()) -> float:
    """Seconds of the arithmetic of a kernel that does its ops, and `more` of its own, so many times; `name`: whose functions it has."""
    ops = [value.op.name.split(".", 1)[1] for value in scalars(*values_of(kernel)) if isinstance(value, ScalarOp)]
    ops += more
    costly = sum(1 for op in ops if op in COSTLY)
    functions, arithmetic = machine.target.kernels[name].rate(F32.name), machine.target.kernels[machine.fusion.product].rate(F32.name)
    seconds = costly * count / functions.value if functions is not None else 0.0
    return seconds + (INSTRUCTION * len(ops) * count / arithmetic.value if arithmetic is not None else 0.0)
