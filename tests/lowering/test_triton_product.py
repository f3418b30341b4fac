"""Products in Triton's interpreter give what their scalars say: drawn ones, each dtype, prologues and epilogues, split k, empty sizes."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.dialects.hub.scalars import cast
from coset.ir.dims import Dim, evaluate, product, symbol
from coset.ir.op import get_op
from coset.ir.types import BF16, DTYPES, F16, F32, F64, I8, I32, DType
from coset.lowering.kernels.kernel import Buffer, Load, Loop, Plan, Product, Result, Scalar, ScalarConstant, ScalarOp, Store
from coset.lowering.triton.source import EmitOptions, Rounding, emit, kernel_source
from coset.lowering.triton.tiling import choose_tiling, unit_of
from tests.lowering.drawn_kernels import Drawing
from tests.lowering.triton_cases import assert_near, assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
EACH = EmitOptions(rounding=Rounding.EACH)
KINDS = tuple(DTYPES[name] for name in ("f32", "f32", "f16", "bf16", "f64", "i8", "i8", "i32", "f8e4m3fn", "f8e5m2"))
SIZES = (1, 2, 3, 5, 8, 17, 33)


def wide(dtype: DType) -> DType:
    return I32 if dtype.kind == "int" else F64 if dtype is F64 else F32


def widened(value: Scalar, accumulator: DType) -> Scalar:
    """The scalar as a dtype that a sum in `accumulator` takes: integers as they accumulate."""
    if accumulator is I32 and value.dtype is not I32:
        return ScalarOp(get_op("stablehlo.convert"), (value,), I32, (("dtype", I32),))
    return value


def drawn(seed: int, kinds: tuple[DType, ...] = KINDS) -> tuple[Drawing, Product]:
    """Small integers, so that every order of summation gives the same."""
    drawing = Drawing(seed, tame=True, dtypes=kinds)
    draw = drawing.draw
    sizes = (*SIZES, 0) if seed % 12 == 0 else SIZES
    batch = drawing.loops("b", int(draw.integers(0, 3)), extents=(1, 2, 3))
    m, n, k = (drawing.loops(role, int(draw.integers(0 if seed % 5 else 1, 3)), extents=sizes) for role in "mnk")
    while evaluate(product(loop.extent for loop in (*batch, *m, *n, *k)), drawing.binding) > 8000:
        m, n, k = m[:1], n[:1], k[:1] if len(k) > 1 else k[:0]
    dtype = drawing.dtype()
    accumulator = wide(dtype)
    lhs, rhs = [widened(drawing.scalar(dtype, (*batch, *own, *k), int(draw.integers(0, 3)), []), accumulator) for own in (m, n)]
    seen: list[Scalar] = [Result("sum", accumulator)]
    result: Scalar = seen[0]
    if drawing.chance(0.7):
        result = ScalarOp(get_op("stablehlo.add"), (result, drawing.scalar(accumulator, (*batch, *m, *n), 1, seen)), accumulator)
    stores = [drawing.store(result, (*batch, *m, *n))]
    if drawing.chance(0.3):
        stores.append(drawing.store(drawing.scalar(drawing.dtype(), (*batch, *m, *n), 2, seen), (*batch, *m, *n)))
    return drawing, Product(f"k{seed}", batch, m, n, k, lhs, rhs, accumulator, tuple(stores), terms=("drawn",))


@pytest.mark.parametrize("batch", sampled(range(10)))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 22, batch * 22 + 22):
        drawing, kernel = drawn(seed)
        found = run(kernel, Plan(drawing.buffers, (kernel,), (), ()), drawing.values, drawing.binding, interpreter, EACH)
        for name, (value, expected) in found.items():
            assert_near(value, expected, drawing.buffers[name].dtype, 1e-6, absolute=1e-5, what=f"seed {seed}, {name}")


# ---------------------------------------------------------------- what programs are made of


def matmul(m: Dim, n: Dim, k: Dim, dtype: DType, *, result: DType | None = None) -> tuple[Product, Plan]:
    """y = x @ w."""
    rows, columns, depth = Loop("loop:m", m), Loop("loop:n", n), Loop("loop:k", k)
    accumulator, result = wide(dtype), result or wide(dtype)
    x, w = Load("x", (rows.index, depth.index), dtype), Load("w", (depth.index, columns.index), dtype)
    total: Scalar = Result("sum", accumulator)
    total = total if result is accumulator else ScalarOp(get_op("stablehlo.convert"), (total,), result, (("dtype", result),))
    stores = (Store("y", (rows.index, columns.index), total),)
    kernel = Product("matmul", (), (rows,), (columns,), (depth,), x, w, accumulator, stores, terms=("dot_general",))
    shapes = {"x": ((m, k), dtype), "w": ((k, n), dtype), "y": ((m, n), result)}
    return kernel, Plan({name: Buffer(name, kind, shape, "input") for name, (shape, kind) in shapes.items()}, (kernel,), (), ())


def operands(m: int, n: int, k: int, dtype: DType) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(8)
    if dtype.kind == "int":
        return {"x": draw.integers(-128, 128, (m, k)).astype(dtype.numpy), "w": draw.integers(-128, 128, (k, n)).astype(dtype.numpy)}
    return {"x": cast(draw.normal(size=(m, k)), dtype), "w": cast(draw.normal(size=(k, n)), dtype)}


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (65, 33, 70), (128, 128, 64), (3, 129, 257), (0, 4, 4), (4, 0, 4), (4, 5, 0)])
@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "f64", "i8", "i32", "f8e4m3fn", "f8e5m2"])
def test_matmul(m: int, n: int, k: int, name: str, interpreter: Runner) -> None:
    dtype = DTYPES[name]
    kernel, plan = matmul(m, n, k, dtype)
    values = operands(m, n, k, dtype)
    found, expected = run(kernel, plan, values, {}, interpreter)["y"]
    if dtype.kind == "int":
        assert_same(found, expected, I32)
        return
    bound = np.abs(values["x"].astype(np.float64)) @ np.abs(values["w"].astype(np.float64))
    unit = 2.0**-53 if dtype is F64 else 2.0**-24  # Higham 2002, (3.5): k roundings of the sum of magnitudes
    assert_near(found, expected, wide(dtype), 0.0, absolute=float(np.max(bound, initial=0.0)) * (k + 1) * unit)


@pytest.mark.parametrize("dtype", [F32, BF16, I8])
def test_split_k(dtype: DType, interpreter: Runner) -> None:
    kernel, plan = matmul(20, 17, 5003, dtype)
    emission = emit(kernel, plan)
    assert len(emission.launches) == 2 and len(emission.scratch) == 1
    values = operands(20, 17, 5003, dtype)
    found, expected = run(kernel, plan, values, {}, interpreter)["y"]
    bound = np.abs(values["x"].astype(np.float64)) @ np.abs(values["w"].astype(np.float64))
    assert_near(found, expected, wide(dtype), 0.0, absolute=float(bound.max()) * 5004 * 2.0**-24)


def test_sizes_that_are_not_known(interpreter: Runner) -> None:
    kernel, plan = matmul(symbol("m"), symbol("n"), symbol("k"), F32)
    for m, n, k in ((1, 1, 1), (70, 5, 33), (0, 3, 3), (3, 3, 0)):
        values = operands(m, n, k, F32)
        found, expected = run(kernel, plan, values, {"m": m, "n": n, "k": k}, interpreter)["y"]
        assert_near(found, expected, F32, 1e-5, absolute=1e-5)


def test_what_is_not_finite_stays_in_its_row_and_column(interpreter: Runner) -> None:
    values = operands(33, 21, 40, F32)
    values["x"][3, 5], values["x"][7, 39], values["w"][2, 4] = np.nan, np.inf, -np.inf
    found, expected = run(*matmul(33, 21, 40, F32), values, {}, interpreter)["y"]
    assert_near(found, expected, F32, 1e-4, absolute=1e-4)


def test_dequantized_weights_with_bias_and_activation(interpreter: Runner) -> None:
    """y = relu(x @ (f16(q) * scale) + b), x in f16: the weight is scaled and rounded in front of the product."""
    m, n, k = Loop("loop:m", 19), Loop("loop:n", 35), Loop("loop:k", 50)

    def apply(name: str, *sides: Scalar, dtype: DType) -> ScalarOp:
        return ScalarOp(get_op(f"stablehlo.{name}"), sides, dtype, (("dtype", dtype),) if name == "convert" else ())

    weight = apply("convert", Load("q", (n.index, k.index), I8), dtype=F16)
    scaled = apply("multiply", weight, Load("scale", (n.index,), F16), dtype=F16)
    total = apply("add", Result("sum", F32), Load("b", (n.index,), F32), dtype=F32)
    value = apply("convert", apply("maximum", total, ScalarConstant(0.0, F32), dtype=F32), dtype=F16)
    x = Load("x", (m.index, k.index), F16)
    kernel = Product("linear", (), (m,), (n,), (k,), x, scaled, F32, (Store("y", (m.index, n.index), value),), terms=("dot_general",))
    shapes = {"x": ((19, 50), F16), "q": ((35, 50), I8), "scale": ((35,), F16), "b": ((35,), F32), "y": ((19, 35), F16)}
    plan = Plan({name: Buffer(name, kind, shape, "input") for name, (shape, kind) in shapes.items()}, (kernel,), (), ())
    draw = np.random.default_rng(9)
    values = {
        name: cast(draw.normal(size=shape) * (30 if kind is I8 else 1), kind) for name, (shape, kind) in shapes.items() if name != "y"
    }
    found, expected = run(kernel, plan, values, {}, interpreter)["y"]
    assert_near(found, expected, F16, 1e-3, absolute=1e-3 * float(expected.astype(np.float64).max()))


def test_the_unit_holds_what_it_is_given() -> None:
    names = {"f16": "f16", "bf16": "bf16", "f8e4m3fn": "f16", "f8e5m2": "f16", "f32": "f32"}
    assert {name: str(unit_of(DTYPES[name], DTYPES[name], F32)) for name in names} == names
    assert unit_of(F16, BF16, F32) is F32 and unit_of(BF16, DTYPES["f8e5m2"], F32) is BF16
    assert unit_of(I8, I8, I32) is I8 and unit_of(DTYPES["i16"], I8, I32) is None and unit_of(F64, F64, F64) is F64


def test_conversions_that_lose_nothing_are_left_out() -> None:
    m, n, k = Loop("loop:m", 64), Loop("loop:n", 64), Loop("loop:k", 64)
    convert = get_op("stablehlo.convert")
    lhs, rhs = [ScalarOp(convert, (Load(name, index, BF16),), F32, (("dtype", F32),)) for name, index in
             (("x", (m.index, k.index)), ("w", (k.index, n.index)))]  # fmt: skip
    kernel = Product("matmul", (), (m,), (n,), (k,), lhs, rhs, F32, (Store("y", (m.index, n.index), Result("sum", F32)),))
    plan = Plan({name: Buffer(name, F32 if name == "y" else BF16, (64, 64), "input") for name in "xwy"}, (kernel,), (), ())
    assert "total = tl.dot(x, w, total)\n" in emit(kernel, plan).source


def test_f32_is_multiplied_in_full_unless_tf32_is_allowed() -> None:
    kernel, plan = matmul(64, 64, 64, F32)
    assert 'input_precision="ieee"' in emit(kernel, plan).source
    assert 'input_precision="tf32"' in emit(kernel, plan, options=EmitOptions(tf32=True)).source


def test_tf32_is_rounded_to_ten_bits(interpreter: Runner) -> None:
    """On a device (and in the corrected interpreter): as the product of rounded operands says, and not as the full one does."""
    kernel, plan = matmul(32, 32, 64, F32)
    draw = np.random.default_rng(8)
    values = {name: draw.normal(size=(32, 64) if name == "x" else (64, 32)).astype(np.float32) for name in "xw"}
    tf32, full = (run(kernel, plan, values, {}, interpreter, EmitOptions(tf32=allowed))["y"][0] for allowed in (True, False))
    exact = values["x"].astype(np.float64) @ values["w"].astype(np.float64)
    scale = np.abs(values["x"]).astype(np.float64) @ np.abs(values["w"])
    assert np.all(np.abs(tf32 - exact) <= 2.0**-10 * scale) and np.all(np.abs(full - exact) <= 64 * 2.0**-23 * scale)
    assert np.any(np.abs(tf32 - exact) > 2.0**-16 * scale)


def test_k_is_split_where_the_grid_is_small() -> None:
    few = choose_tiling(16, 16, 65536, 1, BF16, EmitOptions())
    assert few.splits == 32 and few.chunk * few.splits >= 65536 and few.chunk % few.k == 0
    assert choose_tiling(4096, 4096, 65536, 1, BF16, EmitOptions()).splits == 1
    assert choose_tiling(16, 16, symbol("k"), 1, BF16, EmitOptions()).splits == 1


def test_the_text_of_a_matmul() -> None:
    assert kernel_source(*matmul(symbol("n"), 1000, 96, BF16, result=BF16)).endswith("""
    # dot_general
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    n = tl.cast(n, INDEX)
    program = tl.program_id(0).to(INDEX)
    tiles_m = tl.cdiv(n, BLOCK_M)
    tiles_n = tl.cdiv(1000, BLOCK_N)
    tile = program
    in_group = GROUP * tiles_n
    first = tile // in_group * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    tile_m = first + tile % in_group % height
    tile_n = tile % in_group // height
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    row_mask = rows < n
    column_mask = columns < 1000
    total = tl.full([BLOCK_M, BLOCK_N], 0.0, tl.float32)
    for start in range(0, 96, BLOCK_K):
        left_k = start + tl.arange(0, BLOCK_K).to(INDEX)[None, :]
        right_k = start + tl.arange(0, BLOCK_K).to(INDEX)[:, None]
        left_mask = left_k < 96
        right_mask = right_k < 96
        x = tl.load(x_ptr + left_k + rows * 96, mask=row_mask & left_mask, other=0.0)
        w = tl.load(w_ptr + right_k * 1000 + columns, mask=right_mask & column_mask, other=0.0)
        total = tl.dot(x, w, total)
    total_bf16 = total.to(tl.bfloat16)
    tl.store(y_ptr + rows * 1000 + columns, total_bf16, mask=row_mask & column_mask)
""")
