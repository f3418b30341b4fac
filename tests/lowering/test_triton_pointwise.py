"""Pointwise kernels in Triton's interpreter give what their scalars say: drawn ones, and shapes that are asked for by name."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.ir.dims import ceildiv, evaluate, multiply, product, subtract, symbol
from coset.ir.op import get_op
from coset.ir.types import BF16, DTYPES, F16, F32, I32
from coset.lowering.kernels.kernel import Buffer, Choose, InBounds, Load, Loop, Plan, Pointwise, Scalar, ScalarOp, Store
from coset.lowering.triton.source import EmitOptions, Rounding, emit, kernel_source
from tests.lowering.drawn_kernels import EXTENTS, Drawing
from tests.lowering.triton_cases import assert_near, assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")


def drawn(seed: int) -> tuple[Drawing, Pointwise]:
    drawing = Drawing(seed)
    extents = (*EXTENTS, 0) if seed % 10 == 0 else EXTENTS
    loops = drawing.loops("i", int(drawing.draw.integers(0, 5)), extents=extents)
    while evaluate(product(loop.extent for loop in loops), drawing.binding) > 3000:
        loops = loops[1:]
    seen: list[Scalar] = []
    values = [drawing.scalar(drawing.dtype(), loops, int(drawing.draw.integers(0, 4)), seen) for _ in range(1 + seed % 3)]
    stores = [drawing.store(value, loops) for value in values]
    return drawing, Pointwise(f"k{seed}", loops, tuple(stores), terms=("drawn",))


@pytest.mark.parametrize("batch", sampled(range(10)))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 25, batch * 25 + 25):
        drawing, kernel = drawn(seed)
        plan = Plan(drawing.buffers, (kernel,), (), ())
        found = run(kernel, plan, drawing.values, drawing.binding, interpreter, EmitOptions(rounding=Rounding.EACH))
        for name, (value, expected) in found.items():
            assert_same(value, expected, drawing.buffers[name].dtype, f"seed {seed}, {name}")


def chain(dtype_name: str, extent: int) -> tuple[Pointwise, dict[str, Buffer]]:
    """(x + y) * y - x."""
    dtype, loop = DTYPES[dtype_name], Loop("loop:i", extent)
    x, y = (Load(name, (loop.index,), dtype) for name in "xy")
    total = ScalarOp(get_op("stablehlo.add"), (x, y), dtype)
    product = ScalarOp(get_op("stablehlo.multiply"), (total, y), dtype)
    value = ScalarOp(get_op("stablehlo.subtract"), (product, x), dtype)
    roles = {"x": "input", "y": "input", "z": "output"}
    buffers = {name: Buffer(name, dtype, (extent,), role) for name, role in roles.items()}
    return Pointwise("chain", (loop,), (Store("z", (loop.index,), value),), terms=("add", "multiply", "subtract")), buffers


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_narrow_floats_are_rounded_where_they_are_stored(dtype: object, interpreter: Runner) -> None:
    """Three ops of f32 instead of three of `dtype`: an error of half a unit of the largest step is taken away by each."""
    name = str(dtype)
    kernel, buffers = chain(name, 999)
    draw = np.random.default_rng(1)
    values = {key: draw.normal(size=999).astype(DTYPES[name].numpy) for key in "xy"}
    plan = Plan(buffers, (kernel,), (), ())
    found, expected = run(kernel, plan, values, {}, interpreter)["z"]
    x, y = (values[key].astype(np.float64) for key in "xy")
    exact = (x + y) * y - x
    scale = float(np.max(np.abs(x) + np.abs((x + y) * y)))
    fraction = {"f16": 2.0**-11, "bf16": 2.0**-8}[name]
    assert_near(found, expected, DTYPES[name], 0.0, absolute=3 * fraction * scale)
    error = np.abs(found.astype(np.float64) - exact)
    assert np.all(error <= fraction * np.abs(exact) + 4 * 2.0**-24 * scale)  # one rounding to the dtype


@pytest.mark.parametrize("extent", [0, 1, 255, 256, 257, 4096, 5003])
def test_ragged_edges(extent: int, interpreter: Runner) -> None:
    kernel, buffers = chain("f32", extent)
    draw = np.random.default_rng(2)
    values = {key: draw.normal(size=extent).astype(np.float32) for key in "xy"}
    found, expected = run(kernel, Plan(buffers, (kernel,), (), ()), values, {}, interpreter)["z"]
    assert_same(found, expected, F32)


def transposed(rows: object, columns: object) -> tuple[Pointwise, Plan]:
    i, j = Loop("loop:i", rows), Loop("loop:j", columns)  # type: ignore[arg-type]
    value = Load("x", (j.index, i.index), I32)
    kernel = Pointwise("transposed", (i, j), (Store("y", (i.index, j.index), value),), terms=("transpose",))
    shapes = {"x": (j.extent, i.extent), "y": (i.extent, j.extent)}
    return kernel, Plan({name: Buffer(name, I32, shape, "input") for name, shape in shapes.items()}, (kernel,), (), ())


@pytest.mark.parametrize("shape", [(16, 16), (33, 65), (64, 100), (17, 200)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_reading_across_is_done_in_tiles(shape: tuple[int, int], dynamic: bool, interpreter: Runner) -> None:
    kernel, plan = transposed(symbol("m") if dynamic else shape[0], symbol("n") if dynamic else shape[1])
    values = {"x": np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape[1], shape[0])}
    assert "BLOCK_ROWS" in emit(kernel, plan).source
    found, expected = run(kernel, plan, values, {"m": shape[0], "n": shape[1]}, interpreter)["y"]
    assert_same(found, expected, I32)


def test_a_permutation_of_four_dims(interpreter: Runner) -> None:
    """[b, c, h, w] read as [b, h, w, c], with a bias along c."""
    b, h, w, c = (Loop(f"loop:{name}", size) for name, size in zip("bhwc", (2, 5, 7, 33), strict=True))
    x = Load("x", (b.index, c.index, h.index, w.index), F32)
    value = ScalarOp(get_op("stablehlo.add"), (x, Load("bias", (c.index,), F32)), F32)
    store = Store("y", (b.index, h.index, w.index, c.index), value)
    kernel = Pointwise("permuted", (b, h, w, c), (store,), terms=("transpose", "add"))
    shapes = {"x": (2, 33, 5, 7), "bias": (33,), "y": (2, 5, 7, 33)}
    plan = Plan({name: Buffer(name, F32, shape, "input") for name, shape in shapes.items()}, (kernel,), (), ())
    assert "BLOCK_ROWS" in emit(kernel, plan).source
    draw = np.random.default_rng(3)
    values = {name: draw.normal(size=shapes[name]).astype(np.float32) for name in ("x", "bias")}
    found, expected = run(kernel, plan, values, {}, interpreter)["y"]
    assert_same(found, expected, F32)


def test_sizes_decide_the_width_of_offsets() -> None:
    static = emit(*transposed(2**15, 2**15 - 1))
    assert not static.launches[0].extents and "int64" not in static.source
    large = emit(*transposed(2**16, 2**15))
    assert not large.launches[0].extents and "program = tl.program_id(0).to(tl.int64)" in large.source
    n = symbol("n")
    (launch,) = emit(*transposed(n, 3)).launches
    assert launch.numbers({"n": 1000}) == {"BLOCK": 1024, "WIDE": False}
    assert launch.numbers({"n": 2**30}) == {"BLOCK": 1024, "WIDE": True}
    assert launch.grid == (ceildiv(multiply(n, 3), 1024),)


def test_joined_loops_need_no_quotients() -> None:
    i, j = Loop("loop:i", 12), Loop("loop:j", 50)
    x = Load("x", (i.index, j.index), F32)
    kernel = Pointwise("copy", (i, j), (Store("y", (i.index, j.index), x),), terms=("copy",))
    plan = Plan({name: Buffer(name, F32, (12, 50), "input") for name in "xy"}, (kernel,), (), ())
    source = emit(kernel, plan).source
    assert "//" not in source and "%" not in source
    assert "x_ptr + offsets" in source


@pytest.mark.parametrize("far", ["inside", "outside"])
def test_the_side_that_is_not_chosen_is_not_read(far: str, interpreter: Runner) -> None:
    """Elsewhere its address is 2^40 elements off: to read it would end the process."""
    loop = Loop("loop:i", 6)
    sides = {"near": Load("near", (loop.index,), F32), "far": Load("far", (subtract(loop.index, 5),), F32)}
    bound = InBounds(loop.index, 5, 6) if far == "inside" else InBounds(loop.index, 0, 5)
    first, second = ("far", "near") if far == "inside" else ("near", "far")
    doubled = ScalarOp(get_op("stablehlo.add"), (sides[second], sides[second]), F32)
    kernel = Pointwise("joined", (loop,), (Store("y", (loop.index,), Choose((bound,), sides[first], doubled, F32)),))
    buffers = {"near": Buffer("near", F32, (6,), "input"), "far": Buffer("far", F32, (1,), "input", (2**40,))}
    plan = Plan({**buffers, "y": Buffer("y", F32, (6,), "output")}, (kernel,), (), ())
    values = {"near": np.arange(6, dtype=np.float32), "far": np.array([70], np.float32)}
    found, expected = run(kernel, plan, values, {}, interpreter)["y"]
    assert_same(found, expected, F32)


def test_the_text_stands() -> None:
    kernel, buffers = chain("bf16", 1000)
    text = kernel_source(kernel, Plan(buffers, (kernel,), (), ()))
    assert text.endswith("""@triton.jit
def chain(x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
    # add, multiply, subtract
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < 1000
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    add = x + y
    multiply = add * y
    subtract = multiply - x
    subtract_bf16 = subtract.to(tl.bfloat16)
    tl.store(z_ptr + offsets, subtract_bf16, mask=mask)
""")
