"""What the arithmetic of elementwise ops, reductions, scans, scatters and sorts takes in one kernel."""

from __future__ import annotations

from coset.ir.types import F32
from coset.lowering.kernels.kernel import (
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
from coset.lowering.planning.scattering import LOOP
from coset.lowering.triton.boxes import boxes_of
from coset.pricing.machine import Machine

Elementwise = Pointwise | Rows | Scan | Scatter | Sort
INSTRUCTION = 2  # FLOP of a multiply-add, which takes as long as any other op of arithmetic


def arithmetic_seconds(machine: Machine, planned: Plan, kernel: Elementwise) -> tuple[str, float]:
    """The name of the numbers for a kernel of elementwise ops and reductions, and the seconds of its arithmetic."""
    if not isinstance(kernel, Pointwise):
        return machine.fusion.rows, _arithmetic(machine, kernel, machine.fusion.rows)
    parts = boxes_of(kernel, planned) or (kernel,)
    return machine.fusion.pointwise, sum(_arithmetic(machine, part, machine.fusion.pointwise) for part in parts)


def _arithmetic(machine: Machine, kernel: Elementwise, name: str) -> float:
    ops = [value.op.name.split(".", 1)[1] for value in scalars(*values_of(kernel)) if isinstance(value, ScalarOp)]
    if isinstance(kernel, Rows):
        ops += ["add"] * len(kernel.folds)
    if isinstance(kernel, Scan):
        ops += ["add"] * 2  # inside a thread, and over threads
    if isinstance(kernel, Scatter):
        ops.append("add")
    if isinstance(kernel, Sort):  # a network of so many layers, each an exchange and a choice
        assert isinstance(kernel.column.extent, int)
        depth = (kernel.column.extent - 1).bit_length()
        ops += ["minimum"] * (4 * depth * (depth + 1) // 2)
    count = _points(machine, kernel)
    costly = sum(1 for op in ops if op in COSTLY)
    functions, arithmetic = machine.target.kernels[name].rate(F32.name), machine.target.kernels[machine.fusion.product].rate(F32.name)
    seconds = costly * count / functions.value if functions is not None else 0.0
    return seconds + (INSTRUCTION * len(ops) * count / arithmetic.value if arithmetic is not None else 0.0)


def _points(machine: Machine, kernel: Elementwise) -> float:
    """How often a kernel computes its scalars; of a scatter, those of each element of the result and of each one of the updates."""
    if isinstance(kernel, Sort):
        return machine.count((*kernel.rows, kernel.column))
    if not isinstance(kernel, Scatter):
        return machine.count(loops_of(kernel))
    seen = machine.count((*kernel.rows, *kernel.updates)) if kernel.form == LOOP else 0.0
    return machine.count(kernel.columns) * (machine.count(kernel.rows) + machine.count(kernel.updates)) + seen
