"""Loops as one kernel: in Triton's interpreter and as torch code they give what the loops mean, and compile for GPUs that are not here."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.ir.evaluate import evaluate_program
from coset.lowering.kernel import Library, Plan, Recurrence
from coset.lowering.plan import plan
from coset.lowering.recurrence_products import lighter_loops
from coset.lowering.triton import Options, Rounding, can_emit
from coset.rules.definition import evaluate_defined
from tests.lowering.drawn_recurrences import Drawn, drawn
from tests.lowering.plan_numpy import _Run
from tests.lowering.plan_numpy import run as run_in_numpy
from tests.lowering.triton_cases import assert_same, run

pytest.importorskip("triton", reason="Triton is not installed")
EACH = Options(rounding=Rounding.EACH)


def planned(given: Drawn) -> tuple[dict[str, np.ndarray], Plan]:
    """What a drawn loop means, and its plan, in which every loop is a kernel; those in which nothing is carried are none any more."""
    expected = evaluate_program(given.program, given.feeds, fallback=evaluate_defined)
    roots, _ = lighter_loops(given.program.roots, lambda *_: True, sums=False)
    made = plan(given.program.with_roots(roots), computes=can_emit)
    assert not any(isinstance(kernel, Library) for kernel in made.kernels)
    return dict(zip((name for name, _ in given.program.outputs), expected, strict=True)), made


@pytest.mark.parametrize("batch", range(10))
def test_drawn_loops(batch: int, interpreter: Runner) -> None:
    """Against the evaluator of terms, bit for bit: sums of small integers are exact."""
    kernels = 0
    for seed in range(batch * 26, batch * 26 + 26):
        given = drawn(seed)
        expected, made = planned(given)
        for name, value in run_in_numpy(made, given.feeds).items():
            assert_same(value, expected[name], made.buffers[dict(made.outputs)[name]].dtype, f"seed {seed}, {name} in NumPy")
        memory = {buffer: given.feeds[name] for name, buffer in made.inputs}
        memory |= {name: buffer.value.attribute("value").array() for name, buffer in made.buffers.items() if buffer.value is not None}
        for kernel in made.kernels:
            if isinstance(kernel, Recurrence):
                kernels += 1
                memory |= {name: value for name, (value, _) in run(kernel, made, memory, given.binding, interpreter, EACH).items()}
            else:
                _Run(made, memory, given.binding).kernel(kernel)
        for name, buffer in made.outputs:
            assert_same(memory[buffer], expected[name], made.buffers[buffer].dtype, f"seed {seed}, {name}")
    assert kernels >= 20
