"""Scans in Triton's interpreter give what their scalars say: drawn ones, long rows with what is carried along, each combiner and type."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.ir.dims import evaluate, product, symbol
from coset.ir.op import get_op
from coset.ir.types import BOOL, DTYPES, F16, F32, DType
from coset.lowering.kernels.kernel import Buffer, Load, Loop, Plan, Result, Scalar, ScalarOp, Scan, Store
from coset.lowering.planning.kinds import wide
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source
from tests.lowering.drawn_kernels import Drawing
from tests.lowering.plan_cases import CASES
from tests.lowering.triton_cases import assert_near, assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
EACH = EmitOptions(rounding=Rounding.EACH)
KINDS = tuple(DTYPES[name] for name in ("f32", "f32", "f16", "bf16", "f64", "i32", "i64", "i8", "u8", "bool"))


def combiners(dtype: DType) -> list[str]:
    if dtype is BOOL:
        return ["and", "or"]
    return ["add", "maximum", "minimum"] + (["and", "or"] if dtype.kind != "float" else [])


def drawn(seed: int) -> tuple[Drawing, Scan]:
    """Small integers, so that sums in every order are the same."""
    drawing = Drawing(seed, tame=True, dtypes=KINDS)
    draw = drawing.draw
    rows = drawing.loops("i", int(draw.integers(0, 3)), extents=(1, 2, 3, 7, 40))
    (column,) = drawing.loops("j", 1, extents=(1, 2, 3, 8, 31, 64, 100), dynamic=0.0)
    while evaluate(product(loop.extent for loop in rows), drawing.binding) > 200:
        rows = rows[:1]
    dtype = drawing.dtype()
    value = drawing.scalar(dtype, (*rows, column), int(draw.integers(0, 3)), [])
    combiner = str(draw.choice(combiners(dtype)))
    seen: list[Scalar] = [Result("scan", wide(dtype))]
    result = seen[0]
    if drawing.chance(0.5) and dtype is not BOOL:
        result = ScalarOp(get_op("stablehlo.add"), (result, drawing.scalar(wide(dtype), (*rows, column), 1, seen)), wide(dtype))
    stores = [drawing.store(result, (*rows, column))]
    if drawing.chance(0.3):
        stores.append(drawing.store(drawing.scalar(drawing.dtype(), (*rows, column), 2, seen), (*rows, column)))
    return drawing, Scan(f"k{seed}", rows, column, value, combiner, wide(dtype), tuple(stores), terms=("drawn",))


@pytest.mark.parametrize("batch", sampled(range(8)))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 26, batch * 26 + 26):
        drawing, kernel = drawn(seed)
        found = run(kernel, Plan(drawing.buffers, (kernel,), (), ()), drawing.values, drawing.binding, interpreter, EACH)
        for name, (value, expected) in found.items():
            assert_near(value, expected, drawing.buffers[name].dtype, 1e-6, absolute=1e-5, what=f"seed {seed}, {name}")


def scan(rows: int, columns: int, dtype: DType, combiner: str, *, turned: bool = False) -> tuple[Scan, Plan]:
    """y[i, j] = x[i, 0] .. x[i, j]; `turned`: rows are the inner dim of memory."""
    i, j = Loop("loop:i", rows), Loop("loop:j", columns)
    index = (j.index, i.index) if turned else (i.index, j.index)
    shape = (columns, rows) if turned else (rows, columns)
    kernel = Scan("scan", (i,), j, Load("x", index, dtype), combiner, wide(dtype), (Store("y", index, Result("scan", wide(dtype))),))
    buffers = {"x": Buffer("x", dtype, shape, "input"), "y": Buffer("y", wide(dtype), shape, "output")}
    return kernel, Plan(buffers, (kernel,), (), ())


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("name", "combiner"),
    sampled([("f32", "add"), ("f32", "maximum"), ("f16", "add"), ("i32", "add"), ("bool", "or"), ("u8", "minimum")]),
)
def test_long_rows(name: str, combiner: str, turned: bool, interpreter: Runner) -> None:
    """What was folded in earlier blocks is carried into the later ones."""
    dtype = DTYPES[name]
    kernel, made = scan(3, 9001 if not turned else 300, dtype, combiner, turned=turned)
    draw = np.random.default_rng(4)
    shape = tuple(dim for dim in made.buffers["x"].shape if isinstance(dim, int))
    values = {"x": draw.random(shape) < 0.001 if dtype is BOOL else cast(draw.integers(0, 9, shape) - 4 * (dtype.kind != "uint"), dtype)}
    found, expected = run(kernel, made, values, {}, interpreter)["y"]
    if dtype.kind == "float":
        assert_near(found, expected, wide(dtype), 1e-6, absolute=1e-3)
    else:
        assert_same(found, expected, wide(dtype))


def test_nan_and_infinity_go_on_from_where_they_are(interpreter: Runner) -> None:
    kernel, made = scan(2, 50, F32, "add")
    x = np.ones((2, 50), np.float32)
    x[0, 20], x[1, 30], x[1, 40] = np.nan, np.inf, -np.inf
    found, _ = run(kernel, made, {"x": x}, {}, interpreter)["y"]
    assert np.isnan(found[0, 20:]).all() and np.isfinite(found[0, :20]).all()
    assert np.isinf(found[1, 30:40]).all() and np.isnan(found[1, 40:]).all()


def test_few_long_rows_are_for_a_library() -> None:
    from coset.ir.program import Program
    from coset.ir.term import input_term
    from coset.ir.types import TensorType
    from tests.lowering.plan_cases import cumulative

    for rows, columns, kinds in ((2, 1 << 16, {"Library"}), (64, 1 << 16, {"Scan"}), (2, 1000, {"Scan"}), (symbol("n"), 1 << 16, {"Scan"})):
        x = input_term("x", TensorType(F16, (rows, columns)))
        made = plan(Program((x,), (("y", cumulative(x, 1)),), None), computes=can_emit)
        assert {type(kernel).__name__ for kernel in made.kernels} == kinds


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_scans_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    for rows, columns, name, combiner in ((4096, 1000, "f32", "add"), (4096, 50000, "bf16", "add"), (512, 300, "i64", "maximum")):
        kernel, made = scan(rows, columns, DTYPES[name], combiner)
        (compiled,) = compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {})
        assert compiled.spilled == 0
    made = plan(CASES["scans"]()[0], computes=can_emit)
    for kernel_ in made.kernels:
        compiler.run(kernel_source(kernel_, made), emit(kernel_, made).launches, target, {})
