"""Products of groups of rows: drawn ones against their scalars, programs in every order of groups, what is recognised, ahead of time."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.ir.dims import Dim, evaluate, symbol
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.types import BF16, DTYPES, F32, F64, I32, I64, DType
from coset.lowering.kernels.kernel import Grouped, Library, Load, Plan, Result, Scalar, ScalarOp
from coset.lowering.planning.kinds import wide
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source
from coset.rules.definition import evaluate_defined
from tests.lowering import plan_cases
from tests.lowering.drawn_kernels import Drawing
from tests.lowering.plan_cases import x_
from tests.lowering.triton_cases import assert_near, run

pytest.importorskip("triton", reason="Triton is not installed")
EACH = EmitOptions(rounding=Rounding.EACH)
KINDS = tuple(DTYPES[name] for name in ("f32", "f32", "f16", "bf16", "f64"))


def drawn(seed: int) -> tuple[Drawing, Grouped]:
    """Small integers, so that sums in every order are the same. Groups without rows are likely."""
    drawing = Drawing(seed, tame=True, dtypes=KINDS)
    draw = drawing.draw
    (m,) = drawing.loops("m", 1, extents=(1, 2, 7, 16, 40, 90))
    (n,) = drawing.loops("n", 1, extents=(1, 3, 16, 33))
    (k,) = drawing.loops("k", 1, extents=(1, 5, 16, 70))
    (each,) = drawing.loops("b", 1, extents=(1, 2, 5, 17), dynamic=0.0)
    rows, groups = (evaluate(loop.extent, drawing.binding) for loop in (m, each))
    drawing.buffer("keys", I32, (m.extent,), "input", filled=False)
    drawing.values["keys"] = np.sort(draw.integers(0, groups, rows)).astype(np.int32)
    dtype = drawing.dtype()
    lhs = drawing.scalar(dtype, (m, k), int(draw.integers(0, 2)), [])
    rhs = drawing.scalar(dtype, (each, k, n), int(draw.integers(0, 2)), [])
    accumulator = wide(dtype)
    result: Scalar = Result("sum", accumulator)
    if drawing.chance(0.5):
        result = ScalarOp(get_op("stablehlo.add"), (result, drawing.scalar(accumulator, (m, n), 1, [])), accumulator)
    stores = (drawing.store(result, (m, n)),)
    return drawing, Grouped(f"k{seed}", (each,), (m,), (n,), (k,), Load("keys", (m.index,), I32), lhs, rhs, accumulator, stores)


@pytest.mark.parametrize("batch", range(2))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 12, batch * 12 + 12):
        drawing, kernel = drawn(seed)
        found = run(kernel, Plan(drawing.buffers, (kernel,), (), ()), drawing.values, drawing.binding, interpreter, EACH)
        for name, (value, expected) in found.items():
            assert_near(value, expected, drawing.buffers[name].dtype, 1e-6, absolute=1e-5, what=f"seed {seed}, {name}")


# ---------------------------------------------------------------- from programs


def product(
    rows: Dim, groups: int, depth: Dim, columns: Dim, dtype: DType = F32, index: DType = I64, *, ascending: bool = False
) -> Program:
    x, w, group = x_("x", dtype, rows, depth), x_("w", dtype, groups, depth, columns), x_("group", index, rows)
    return Program((x, w, group), (("y", plan_cases.grouped_product(x, w, group, ascending=ascending)),))


def kinds(program: Program) -> list[str]:
    return [type(kernel).__name__ for kernel in plan(program, computes=can_emit).kernels]


@pytest.mark.parametrize("index", [I32, I64, DTYPES["u8"], DTYPES["i8"]])
@pytest.mark.parametrize("ascending", [False, True])
def test_every_row_meets_the_matrix_of_its_group(ascending: bool, index: DType, interpreter: Runner) -> None:
    """Groups outside are the nearest ones; NaN and infinities stay in their rows; a matrix that no row has is not read."""
    draw = np.random.default_rng(3)
    group = cast(draw.choice(np.arange(-2, 9) if index.kind == "int" else np.arange(9), 90), index)
    group = np.where(group == 3, cast(np.array(4), index), group)
    x, w = draw.integers(-3, 4, (90, 20)).astype(np.float32), draw.integers(-3, 4, (7, 20, 33)).astype(np.float32)
    x[5, 3], x[6, 4], w[3] = np.nan, np.inf, np.nan
    feeds = {"x": x, "w": w, "group": np.sort(group) if ascending else group}
    program = product(90, 7, 20, 33, index=index, ascending=ascending)
    with np.errstate(all="ignore"):
        (expected,) = evaluate_program(program, feeds, fallback=evaluate_defined)
    assert np.isnan(expected).sum() < 90 * 33 / 2
    memory = dict(feeds)
    made = plan(program, computes=can_emit)
    for kernel in made.kernels:
        if isinstance(kernel, Library):
            order = np.argsort(memory[str(kernel.operands[0])], kind="stable")
            memory |= {result: memory[str(operand)][order] for result, operand in zip(kernel.results, kernel.operands, strict=True)}
        else:
            memory |= {name: value for name, (value, _) in run(kernel, made, memory, {}, interpreter).items()}
    np.testing.assert_array_equal(memory["y"], expected)


def test_products_of_one_grouping_are_sorted_once_and_meet_in_that_order() -> None:
    program, _ = plan_cases.CASES["mixture_of_experts"]()
    found = kinds(program)
    assert found.count("Grouped") == 3 and found.count("Library") == 1
    # keys; the sort; three products, the gate in the epilogue of the first two; where each row stands; the sum over its experts
    assert found == ["Pointwise", "Library", "Grouped", "Grouped", "Grouped", "Scatter", "Rows"]
    assert kinds(product(90, 7, 20, 33, ascending=True)) == ["Pointwise", "Grouped"]


def test_what_no_kernel_groups_is_opened() -> None:
    assert "Grouped" in kinds(product(90, 1024, 20, 33)) and "Grouped" not in kinds(product(90, 1025, 20, 33))
    with pytest.raises(CosetError, match="is not defined for"):
        product(90, 7, 20, 33, I32)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_grouped_products_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    n = symbol("n")
    more = [product(n, 7, n, n), product(500, 3, 80, 96, F64)] if target == "sm_90" else []  # for speed
    for program in (product(4096, 8, 4096, 14336, BF16), *more):
        made = plan(program, computes=can_emit)
        for kernel in made.kernels:
            if isinstance(kernel, Grouped):
                for compiled in compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {}):
                    assert compiled.spilled == 0
