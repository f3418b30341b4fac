"""Plans as Triton, kernel by kernel: each gives in the interpreter what NumPy makes of the same kernel, and compiles for three devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import input_term, make
from coset.ir.types import F32, I32, I64, TensorType
from coset.lowering.kernels.kernel import Computed, Library
from coset.lowering.planning.plan import Plan, plan
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source, module_source, refusal
from coset.rules.definition import evaluate_defined
from tests.lowering import drawn_programs, plan_numpy
from tests.lowering.golden_texts import read_as_golden
from tests.lowering.plan_cases import CASES, grouped_product, op, scatter_rows, x_
from tests.lowering.triton_cases import assert_near, run

pytest.importorskip("triton", reason="Triton is not installed")

EACH = EmitOptions(rounding=Rounding.EACH)


def check(program: Any, feeds: dict[str, Any], interpreter: Runner, what: str, made: Plan | None = None) -> None:
    """Run a plan (without one, the program's own) in NumPy; beside each kernel that is not a library's, run it in the interpreter."""

    def before(kernel: Computed, at: plan_numpy._Run) -> None:
        assert not refusal(kernel), f"{what}: {refusal(kernel)}"
        for name, (found, expected) in run(kernel, at.plan, at.memory, at.binding, interpreter, EACH).items():
            size = np.abs(np.nan_to_num(expected.astype(np.float64), posinf=0, neginf=0))
            dtype, absolute = at.plan.buffers[name].dtype, 2e-5 * float(np.max(size, initial=1.0))
            assert_near(found, expected, dtype, 2e-5, absolute=absolute, what=f"{what} {kernel.name} {name}")

    plan_numpy.run(made or plan(program, computes=can_emit), feeds, before=before)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_kernel_families(name: str, interpreter: Runner) -> None:
    check(*CASES[name](), interpreter, name)


@pytest.mark.parametrize("batch", range(6))
def test_drawn_programs(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 20, batch * 20 + 20):
        check(*drawn_programs.program(seed), interpreter, f"seed {seed}:")


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_the_kernel_families_compile(target: str, compiler: Compiler) -> None:
    for name in sorted(CASES):
        made = plan(CASES[name]()[0], computes=can_emit)
        for kernel in made.kernels:
            if not isinstance(kernel, Library):
                for compiled in compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {}):
                    assert compiled.spilled <= 64, f"{name} {kernel.name} spills {compiled.spilled} bytes"


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_text_of_a_case_reads_as_its_golden(name: str) -> None:
    text = module_source(plan(CASES[name]()[0], computes=can_emit))
    read_as_golden(f"triton_{name}", text)


@pytest.mark.parametrize(("rows", "count"), [(5, 0), (0, 4), (1, 1), (1, 40), (2, 1)])
def test_irregular_kernels_of_nothing_and_of_one(rows: int, count: int, interpreter: Runner) -> None:
    """No updates, no rows, one of each: scatters, grouped products and sorts give the program's values."""
    x, at, updates = x_("x", F32, rows, 3), x_("at", I64, count), x_("updates", F32, count, 3)
    y, w, group = x_("y", F32, rows, 4), x_("w", F32, 2, 4, max(count, 1)), x_("group", I64, rows)
    both = op("sort", y, op("iota", shape=(rows, 4), dtype=I32, dimension=1), dimension=1, direction="GT")
    roots = (scatter_rows(x, at, updates), grouped_product(y, w, group), *(make("builtin.get", (both,), {"index": i}) for i in (0, 1)))
    program = Program((x, at, updates, y, w, group), tuple((f"y{i}", root) for i, root in enumerate(roots)))
    draw = np.random.default_rng(count)
    feeds = {term.attribute("name"): draw.integers(0, 2, term.tensor.static).astype(term.tensor.dtype.numpy) for term in program.inputs}
    check(program, feeds, interpreter, f"{rows} rows, {count} updates:")
    found = plan_numpy.run(plan(program, computes=can_emit), feeds)
    for value, expected in zip(found.values(), evaluate_program(program, feeds, fallback=evaluate_defined), strict=True):
        np.testing.assert_array_equal(value, np.asarray(expected))


def test_what_a_library_computes_is_no_kernel() -> None:
    """`remainder` of floats has no exact form: the planner gives it away, and a kernel with it is refused by name."""
    x = input_term("x", TensorType(F32, (40,)))
    y = make("stablehlo.remainder", (make("stablehlo.add", (x, x)), x))
    program = Program((x,), (("y", y),))
    assert not any(map(refusal, plan(program, computes=can_emit).kernels))
    made = plan(program)
    with pytest.raises(CosetError, match=r"`stablehlo.remainder` of f32, f32 has no exact form"):
        module_source(made)


def test_a_module_has_all_kernels_and_each_helper_once() -> None:
    made = plan(CASES["layer_norm"]()[0], computes=can_emit)
    text = module_source(made)
    for kernel in made.kernels:
        assert text.count(f"def {kernel.name}(") == 1
    assert text.count("import triton\n") == 1
    names = [line for line in text.splitlines() if line.startswith("def ")]
    assert len(names) == len(set(names))
