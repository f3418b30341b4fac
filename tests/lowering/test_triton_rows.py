"""Row kernels in Triton's interpreter give what their scalars say: drawn ones, softmax and normalizations, short, long and empty rows."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.ir.dims import Dim, evaluate, product, symbol
from coset.ir.op import get_op
from coset.ir.types import BF16, BOOL, DTYPES, F16, F32, I32, DType
from coset.lowering.kernels.kernel import (
    Buffer,
    ColumnFold,
    IndexValue,
    Load,
    Loop,
    Plan,
    Result,
    Rows,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Store,
)
from coset.lowering.triton.source import EmitOptions, Rounding, emit, kernel_source
from tests.lowering.drawn_kernels import EXTENTS, Drawing
from tests.lowering.triton_cases import assert_near, assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")


def drawn(seed: int) -> tuple[Drawing, Rows]:
    """Even seeds: small integers and any combiner; odd seeds: wild values, and combiners that round nothing."""
    drawing = Drawing(seed, tame=seed % 2 == 0)
    draw = drawing.draw
    extents = (*EXTENTS, 0) if seed % 10 == 0 else EXTENTS
    rows = drawing.loops("r", int(draw.integers(0, 3)), extents=extents)
    columns = drawing.loops("c", int(draw.integers(1, 3)), extents=(*extents, 40))
    while evaluate(product(loop.extent for loop in (*rows, *columns)), drawing.binding) > 1500:
        rows, columns = rows[1:], columns if rows else columns[1:]
    folds: list[ColumnFold] = []
    seen: list[Scalar] = []
    once: list[Scalar] = []
    for place in range(int(draw.integers(1, 4))):
        dtype = drawing.dtype()
        words = ["and", "or"] if dtype.kind in ("bool", "int") else []
        words += ["maximum", "minimum", *(["add", "multiply"] if drawing.tame or dtype.kind != "float" else [])]
        value = drawing.scalar(dtype, (*rows, *columns), int(draw.integers(0, 3)), seen)
        wide = F32 if dtype.kind == "float" and dtype.bits < 32 else dtype
        folds.append(ColumnFold(f"fold{place}", str(draw.choice(words)), value, wide))
        result = Result(f"fold{place}", wide)
        seen.append(result)
        once.append(result)
    row_stores = [drawing.store(drawing.scalar(once[-1].dtype, rows, 1, once), rows) for _ in range(int(draw.integers(0, 3)))]
    element_stores = [drawing.store(drawing.scalar(drawing.dtype(), (*rows, *columns), 2, seen), (*rows, *columns))
                      for _ in range(int(draw.integers(not row_stores, 2)))]  # fmt: skip
    return drawing, Rows(f"k{seed}", rows, columns, tuple(folds), tuple(row_stores), tuple(element_stores), terms=("drawn",))


@pytest.mark.parametrize("batch", sampled(range(10)))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 25, batch * 25 + 25):
        drawing, kernel = drawn(seed)
        options = EmitOptions(rounding=Rounding.EACH, processors=1 + seed % 4 // 3 * 131)  # with few processors, tiles have more rows
        found = run(kernel, Plan(drawing.buffers, (kernel,), (), ()), drawing.values, drawing.binding, interpreter, options)
        for name, (value, expected) in found.items():
            dtype = drawing.buffers[name].dtype
            if drawing.tame and dtype.kind == "float":
                largest = float(np.max(np.abs(np.nan_to_num(expected.astype(np.float64), posinf=0, neginf=0)), initial=1.0))
                assert_near(value, expected, dtype, 2e-6, absolute=2e-6 * largest, what=f"seed {seed}, {name}")
            else:
                assert_equal(value, expected, dtype, f"seed {seed}, {name}")


def assert_equal(found: np.ndarray, expected: np.ndarray, dtype: DType, what: str = "") -> None:
    """The same, but for the sign of zero, which the order of a fold decides in NumPy."""
    zero = np.zeros((), dtype.numpy)
    if dtype.kind == "float":
        found, expected = np.where(found == 0, zero, found), np.where(expected == 0, zero, expected)
    assert_same(found, expected, dtype, what)


# ---------------------------------------------------------------- what programs are made of


def apply(name: str, *operands: Scalar, dtype: DType = F32, **attributes: object) -> ScalarOp:
    return ScalarOp(get_op(f"stablehlo.{name}"), operands, dtype, tuple(attributes.items()))


def softmax(rows: Dim, columns: Dim, dtype: DType = F32) -> tuple[Rows, Plan]:
    i, j = Loop("loop:i", rows), Loop("loop:j", columns)
    x: Scalar = Load("x", (i.index, j.index), dtype)
    x = x if dtype is F32 else apply("convert", x, dtype=F32)
    raised = apply("exponential", apply("subtract", x, Result("top", F32)))
    share = apply("divide", raised, Result("total", F32))
    share = share if dtype is F32 else apply("convert", share, dtype=dtype)
    folds = ColumnFold("top", "maximum", x, F32), ColumnFold("total", "add", raised, F32)
    kernel = Rows("softmax", (i,), (j,), folds, (), (Store("y", (i.index, j.index), share),), terms=("softmax",))
    return kernel, Plan({name: Buffer(name, dtype, (rows, columns), "input") for name in "xy"}, (kernel,), (), ())


def layer_norm(rows: Dim, columns: int) -> tuple[Rows, Plan]:
    i, j = Loop("loop:i", rows), Loop("loop:j", columns)
    x = Load("x", (i.index, j.index), F32)
    mean = apply("divide", Result("total", F32), ScalarConstant(float(columns), F32))
    off = apply("subtract", x, mean)
    folds = ColumnFold("total", "add", x, F32), ColumnFold("squares", "add", apply("multiply", off, off), F32)
    spread = apply("add", apply("divide", Result("squares", F32), ScalarConstant(float(columns), F32)), ScalarConstant(1e-5, F32))
    scaled = apply("multiply", apply("multiply", off, apply("rsqrt", spread)), Load("w", (j.index,), F32))
    stores = (Store("mean", (i.index,), mean),), (Store("y", (i.index, j.index), apply("add", scaled, Load("b", (j.index,), F32))),)
    kernel = Rows("layer_norm", (i,), (j,), folds, *stores, terms=("layer_norm",))
    shapes: dict[str, tuple[Dim, ...]] = {"x": (rows, columns), "y": (rows, columns), "w": (columns,), "b": (columns,), "mean": (rows,)}
    return kernel, Plan({name: Buffer(name, F32, shape, "input") for name, shape in shapes.items()}, (kernel,), (), ())


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
@pytest.mark.parametrize("rows, columns", [(1, 1), (5, 7), (3, 1024), (2, 8192), (2, 8193), (3, 20011), (0, 5)])
def test_softmax(rows: int, columns: int, dtype: DType, interpreter: Runner) -> None:
    kernel, plan = softmax(rows, columns, dtype)
    x = (np.random.default_rng(3).normal(size=(rows, columns)) * 4).astype(dtype.numpy)
    found, expected = run(kernel, plan, {"x": x}, {}, interpreter)["y"]
    assert_near(found, expected, dtype, 5e-6)


@pytest.mark.parametrize("columns", [1, 6, 700, 9001])
def test_layer_norm_of_any_number_of_rows(columns: int, interpreter: Runner) -> None:
    kernel, plan = layer_norm(symbol("n"), columns)
    draw = np.random.default_rng(4)
    for rows in (0, 1, 5):
        values = {"x": draw.normal(size=(rows, columns)) + 3, "w": draw.normal(size=columns), "b": draw.normal(size=columns)}
        single = {name: value.astype(np.float32) for name, value in values.items()}
        for name, (found, expected) in run(kernel, plan, single, {"n": rows}, interpreter).items():
            assert_near(found, expected, F32, 1e-5, absolute=1e-5, what=name)


@pytest.mark.parametrize("columns", [1, 37, 3000])
def test_rows_of_unknown_length(columns: int, interpreter: Runner) -> None:
    kernel, plan = softmax(3, symbol("n"))
    x = np.random.default_rng(3).normal(size=(3, columns)).astype(np.float32)
    found, expected = run(kernel, plan, {"x": x}, {"n": columns}, interpreter)["y"]
    assert_near(found, expected, F32, 5e-6)


@pytest.mark.parametrize("columns", [6, 10000])
@pytest.mark.parametrize("combiner", ["maximum", "minimum", "add", "multiply"])
def test_what_is_not_finite(combiner: str, columns: int, interpreter: Runner) -> None:
    """NaN wins, 0.0 is above -0.0, and rows without columns give the identity."""
    i, j = Loop("loop:i", 8), Loop("loop:j", columns)
    x = np.full((8, columns), {"maximum": -1.0, "minimum": 1.0, "add": 0.0, "multiply": 1.0}[combiner], np.float32)
    x[0, 3], x[1, 2], x[2, 1], x[3, :], x[4, :], x[5, ::2] = np.nan, np.inf, -np.inf, -0.0, np.nan, -0.0
    x[5, 1::2], x[6, :] = 0.0, -np.inf
    fold = ColumnFold("folded", combiner, Load("x", (i.index, j.index), F32), F32)
    kernel = Rows("fold", (i,), (j,), (fold,), (Store("y", (i.index,), Result("folded", F32)),), (), terms=(combiner,))
    plan = Plan({"x": Buffer("x", F32, (8, columns), "input"), "y": Buffer("y", F32, (8,), "output")}, (kernel,), (), ())
    found, expected = run(kernel, plan, {"x": x}, {}, interpreter)["y"]
    assert_equal(found, expected, F32)
    if combiner in ("maximum", "minimum"):
        assert np.signbit(found[5]) == (combiner == "minimum")


@pytest.mark.parametrize(
    "dtype, combiner", [("f32", "maximum"), ("i32", "add"), ("bool", "and"), ("bool", "or"), ("i8", "add"), ("u8", "minimum")]
)
@pytest.mark.parametrize("columns", [0, 9000])
def test_empty_and_long_rows(dtype: str, combiner: str, columns: int, interpreter: Runner) -> None:
    kind = DTYPES[dtype]
    i, j = Loop("loop:i", 3), Loop("loop:j", columns)
    fold = ColumnFold("folded", combiner, Load("x", (i.index, j.index), kind), kind)
    kernel = Rows("fold", (i,), (j,), (fold,), (Store("y", (i.index,), Result("folded", kind)),), (), terms=(combiner,))
    plan = Plan({"x": Buffer("x", kind, (3, columns), "input"), "y": Buffer("y", kind, (3,), "output")}, (kernel,), (), ())
    draw = np.random.default_rng(6)
    x = draw.integers(0, 2 if kind is BOOL else 100, (3, columns)).astype(kind.numpy)
    found, expected = run(kernel, plan, {"x": x}, {}, interpreter)["y"]
    assert_same(found, expected, kind)


@pytest.mark.parametrize("rows, columns", [(70, 5), (70, 50), (3, 4000), (5, 1)])
def test_columns_that_are_far_apart(rows: int, columns: int, interpreter: Runner) -> None:
    """A fold over the first dim: neighbours in memory are rows, so tiles have many of them."""
    i, j = Loop("loop:i", rows), Loop("loop:j", columns)
    fold = ColumnFold("total", "add", Load("x", (j.index, i.index), F32), F32)
    kernel = Rows("sums", (i,), (j,), (fold,), (Store("y", (i.index,), Result("total", F32)),), (), terms=("reduce",))
    plan = Plan({"x": Buffer("x", F32, (columns, rows), "input"), "y": Buffer("y", F32, (rows,), "output")}, (kernel,), (), ())
    (launch,) = emit(kernel, plan).launches
    assert columns == 1 or dict(launch.constexprs)["BLOCK_ROWS"] >= min(rows, 4)
    x = np.random.default_rng(3).normal(size=(columns, rows)).astype(np.float32)
    found, expected = run(kernel, plan, {"x": x}, {}, interpreter)["y"]
    assert_near(found, expected, F32, 1e-5, absolute=1e-6 * columns)


def test_argmax(interpreter: Runner) -> None:
    """The place of the largest element, as the plan has it: two folds."""
    i, j = Loop("loop:i", 11), Loop("loop:j", 23)
    x = Load("x", (i.index, j.index), I32)
    is_top = apply("compare", x, Result("top", I32), dtype=BOOL, direction="EQ")
    place = apply("select", is_top, IndexValue(j.index, I32), ScalarConstant(23, I32), dtype=I32)
    folds = ColumnFold("top", "maximum", x, I32), ColumnFold("place", "minimum", place, I32)
    kernel = Rows("argmax", (i,), (j,), folds, (Store("y", (i.index,), Result("place", I32)),), (), terms=("argmax",))
    plan = Plan({"x": Buffer("x", I32, (11, 23), "input"), "y": Buffer("y", I32, (11,), "output")}, (kernel,), (), ())
    values = np.random.default_rng(3).integers(-5, 5, (11, 23)).astype(np.int32)
    found, expected = run(kernel, plan, {"x": values}, {}, interpreter)["y"]
    assert_same(found, expected, I32)
    assert found.tolist() == values.argmax(1).tolist()


def test_the_text_of_softmax() -> None:
    assert kernel_source(*softmax(100000, 300)).endswith("""
@triton.jit
def softmax(x_ptr, y_ptr, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr):
    # softmax
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    columns = tl.arange(0, BLOCK_COLUMNS)[None, :]
    column_mask = columns < 300
    x = tl.load(x_ptr + rows * 300 + columns, mask=column_mask)
    x_inside = tl.where(column_mask, x, float("-inf"))
    top = tl.reduce(x_inside, 1, largest, keep_dims=True)
    subtract = x - top
    exponential = tl.exp(subtract)
    exponential_inside = tl.where(column_mask, exponential, 0.0)
    total = tl.sum(exponential_inside, 1, keep_dims=True)
    divide = tl.div_rn(1.0, total)
    multiply = exponential * divide
    tl.store(y_ptr + rows * 300 + columns, multiply, mask=column_mask)
""")
