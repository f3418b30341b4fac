"""Products whose operands are bulk copies, in Triton's interpreter: drawn ones against their scalars, what is not finite, sizes of 0 and 1,
what no descriptor can say, and the text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.ir.dims import Dim, add, evaluate, floordiv, multiply, subtract, symbol
from coset.ir.op import get_op
from coset.ir.types import BF16, DTYPES, F16, F32, F64, I8, I32, DType
from coset.lowering.kernels.kernel import (
    Buffer,
    Choose,
    Grouped,
    InBounds,
    Load,
    Loop,
    Pick,
    Plan,
    Product,
    Result,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Store,
)
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.copies import used_lines
from coset.lowering.triton.launch import Argument
from coset.lowering.triton.source import EmitOptions, EmittedKernel, Rounding, emit, kernel_source
from tests.lowering.drawn_kernels import Drawing
from tests.lowering.golden_texts import read_as_golden
from tests.lowering.test_triton_product import matmul, operands, wide, widened
from tests.lowering.triton_cases import assert_near, assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
KINDS = tuple(DTYPES[name] for name in ("f16", "f16", "bf16", "f32", "i8", "f8e4m3fn", "f8e5m2"))
HOPPER = EmitOptions(bulk=232448)
PER_BATCH = 20


def chosen(m: int = 64, n: int = 64, k: int = 32, *, splits: int = 1, bulk: int = 1, resident: int = 0, parts: int = 1) -> KernelChoice:
    """These tiles, by bulk copies where nothing else is said."""
    numbers = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "SPLITS": splits, "BULK": bulk, "RESIDENT": resident, "PARTS": parts}
    return KernelChoice(tuple(numbers.items()))


def copied(emission: EmittedKernel) -> list[Argument]:
    """The arguments that are descriptors."""
    return [argument for launch in emission.launches for argument in launch.arguments if argument.tiles is not None]


# ---------------------------------------------------------------- drawn ones


def drawn_load(drawing: Drawing, dtype: DType, loops: tuple[Loop, ...], unit: Loop) -> Load:
    """An element of a new input with these dims in any order but that of `unit`, which is the last one: where sizes are known shifted, with
    more elements before and behind that nothing may read (NaN, where there is one)."""
    draw, step = drawing.draw, 128 // dtype.bits
    known = all(isinstance(loop.extent, int) for loop in loops)
    others = [loop for loop in loops if loop is not unit]
    order = [*(others[place] for place in draw.permutation(len(others))), unit]
    starts = [int(draw.integers(0, 3)) * known for _ in others] + [step * int(draw.integers(0, 2)) * known]
    shape = [add(loop.extent, start + int(draw.integers(0, 2))) for loop, start in zip(order, starts, strict=True)]
    shape[-1] = multiply(step, floordiv(add(add(unit.extent, starts[-1]), step - 1), step)) if isinstance(unit.extent, int) else unit.extent
    whole, counts = ([evaluate(dim, drawing.binding) for dim in dims] for dims in (shape, [loop.extent for loop in order]))
    values = np.full(whole, np.nan if dtype.kind == "float" else 99).astype(dtype.numpy)
    inside = tuple(slice(start, start + count) for start, count in zip(starts, counts, strict=True))
    values[inside] = drawing.elements(dtype, tuple(counts))
    name = f"x{len(drawing.buffers)}"
    drawing.buffers[name], drawing.values[name] = Buffer(name, dtype, tuple(shape), "input"), values
    return Load(name, tuple(add(loop.index, start) for loop, start in zip(order, starts, strict=True)), dtype)


def drawn_operand(drawing: Drawing, dtype: DType, batch: tuple[Loop, ...], own: Loop, k: Loop) -> Scalar:
    """A load over the two loops, and of some of those of the batch, plain, or with something done to it."""
    draw = drawing.draw
    some = tuple(loop for loop in batch if drawing.chance(0.7))
    ends = [loop for loop in (own, k) if isinstance(loop.extent, int) or str(loop.extent).startswith("16*")]
    unit = ends[draw.integers(len(ends))]
    loops = (*some, own, k)
    accumulator = wide(dtype)
    way = draw.random()
    if way < 0.15 and dtype is F16:
        return ScalarOp(get_op("stablehlo.convert"), (drawn_load(drawing, I8, loops, unit),), F16, (("dtype", F16),))
    load: Scalar = drawn_load(drawing, dtype, loops, unit)
    if way > 0.85 and dtype is not I8:
        load = ScalarOp(get_op("stablehlo.multiply"), (load, drawing.load(dtype, (own if drawing.chance(0.5) else k,))), dtype)
    elif way > 0.75 and dtype is not I8:
        load = ScalarOp(get_op("stablehlo.add"), (load, drawn_load(drawing, dtype, (own, k), unit)), dtype)
    return widened(load, accumulator)


def drawn_loop(drawing: Drawing, name: str) -> Loop:
    extent = int(drawing.draw.choice([2, 3, 8, 16, 17, 31, 40, 67]))
    way = drawing.draw.random()
    if way < 0.1:
        drawing.binding[f"n_{name}"] = extent
        return Loop(f"loop:{name}", symbol(f"n_{name}"))
    if way < 0.2:
        drawing.binding[f"n_{name}"] = 1 + extent // 16
        return Loop(f"loop:{name}", multiply(16, symbol(f"n_{name}")))
    return Loop(f"loop:{name}", extent)


def drawn(seed: int, kinds: tuple[DType, ...] = KINDS) -> tuple[Drawing, Product, KernelChoice]:
    """Small integers, so that every order of summation gives the same; programs fewer than tiles, where they stay."""
    drawing = Drawing(seed, tame=True, dtypes=kinds)
    draw = drawing.draw
    batch = drawing.loops("b", int(draw.integers(0, 3)), extents=(1, 2, 3))
    m, n, k = (drawn_loop(drawing, role) for role in "mnk")
    if not isinstance(k.extent, int) and not str(k.extent).startswith("16*") and not all(isinstance(one.extent, int) for one in (m, n)):
        del drawing.binding["n_k"]
        k = Loop(k.name, 24)
    dtype = drawing.dtype()
    accumulator = wide(dtype)
    lhs, rhs = drawn_operand(drawing, dtype, batch, m, k), drawn_operand(drawing, dtype, batch, n, k)
    result: Scalar = Result("sum", accumulator)
    if drawing.chance(0.6):
        result = ScalarOp(get_op("stablehlo.add"), (result, drawing.scalar(accumulator, (*batch, m, n), 1, [])), accumulator)
    if drawing.chance(0.3) and accumulator is F32:
        result = ScalarOp(get_op("stablehlo.convert"), (result,), BF16, (("dtype", BF16),))
    stores = (drawing.store(result, (*batch, m, n)),)
    known = all(isinstance(loop.extent, int) for loop in (*batch, m, n, k))
    splits = 2 if known and drawing.chance(0.4) else 1
    resident = int(draw.integers(0, 3)) if splits == 1 and isinstance(k.extent, int) else 0
    tile = (int(draw.choice([16, 32])), int(draw.choice([16, 32, 64])), int(draw.choice([16, 32])))
    choice = chosen(*tile, splits=splits, resident=resident, parts=int(draw.choice([1, 2, 4])))
    return drawing, Product(f"k{seed}", batch, (m,), (n,), (k,), lhs, rhs, accumulator, stores, terms=("drawn",)), choice


@pytest.mark.parametrize("batch", sampled(range(11)))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    """Each has an operand that is copied; what no loop reads of it is NaN, and a store outside of a result is found."""
    for seed in range(batch * PER_BATCH, batch * PER_BATCH + PER_BATCH):
        drawing, kernel, choice = drawn(seed)
        plan = Plan(drawing.buffers, (kernel,), (), ())
        options = EmitOptions(rounding=Rounding.EACH, processors=2, choice=choice)
        assert copied(emit(kernel, plan, options=options)), f"seed {seed}"
        found = run(kernel, plan, drawing.values, drawing.binding, interpreter, options)
        for name, (value, expected) in found.items():
            assert_near(value, expected, drawing.buffers[name].dtype, 1e-6, absolute=1e-5, what=f"seed {seed}, {name}")


def test_the_drawn_ones_have_every_form() -> None:
    """Copies of both operands, turned, of three dims and more, from the middle of a buffer, by programs that stay, in parts, split."""
    seen = dict.fromkeys(("both", "turned", "deep", "begin", "stays", "parts", "split", "dynamic", "made"), 0)
    for seed in range(11 * PER_BATCH):
        drawing, kernel, choice = drawn(seed)
        emission = emit(kernel, Plan(drawing.buffers, (kernel,), (), ()), options=EmitOptions(processors=2, choice=choice))
        descriptors = copied(emission)
        seen["both"] += len(descriptors) > 1
        seen["turned"] += ").T" in emission.source
        seen["deep"] += any(one.tiles is not None and len(one.tiles.shape) > 2 for one in descriptors)
        seen["begin"] += any(one.begin for one in descriptors)
        seen["stays"] += "flatten=True" in emission.source
        seen["parts"] += "tl.split" in emission.source
        seen["split"] += len(emission.launches) > 1
        seen["dynamic"] += any(one.tiles is not None and any(not isinstance(dim, int) for dim in one.tiles.shape) for one in descriptors)
        seen["made"] += not isinstance(kernel.lhs, Load)
    assert min(seen.values()) >= 15, seen


# ---------------------------------------------------------------- values


def both_forms(
    kernel: Product, plan: Plan, values: dict[str, Any], interpreter: Runner, tile: dict[str, int], binding: dict[str, int] | None = None
) -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """What a product stores by copies, and with the same tiles by pointers."""
    found = []
    for bulk in (1, 0):
        choice = chosen(**tile, bulk=bulk) if bulk else chosen(**{**tile, "resident": 0}, bulk=0)
        options = EmitOptions(processors=2, choice=choice)
        assert bool(copied(emit(kernel, plan, options=options))) == bool(bulk)
        found.append(run(kernel, plan, values, binding or {}, interpreter, options))
    return {name: (found[0][name][0], found[1][name][0]) for name in found[0]}


@pytest.mark.parametrize("dtype", [F32, F16, BF16, DTYPES["f8e4m3fn"], DTYPES["f8e5m2"]])
def test_what_is_not_finite_is_as_by_pointers(dtype: DType, interpreter: Runner) -> None:
    """NaN, infinities and subnormal numbers, the last rows, columns and k among them: equal bits, as sums have one order. Zeros that fill a
    block up meet only each other."""
    drawing = Drawing(5)
    for m, n, k in ((33, 32, 48), (17, 48, 16), (64, 64, 80)):
        kernel, plan = matmul(m, n, k, dtype)
        values = {"x": drawing.elements(dtype, (m, k)), "w": drawing.elements(dtype, (k, n))}
        for tile in ({"m": 32, "n": 32, "k": 32}, {"m": 16, "n": 32, "k": 16, "resident": 1, "parts": 2}):
            for name, (ours, other) in both_forms(kernel, plan, values, interpreter, tile).items():
                assert_same(ours, other, F32, f"{name} {m} {n} {k}")


def test_a_nan_stays_in_its_row_and_column(interpreter: Runner) -> None:
    """Also one in the last element of k, beside which zeros fill the block."""
    kernel, plan = matmul(33, 40, 24, F32)
    values = operands(33, 40, 24, F32)
    values["x"][3, 23], values["w"][23, 39] = np.nan, np.inf
    found, expected = run(kernel, plan, values, {}, interpreter, EmitOptions(choice=chosen(16, 16, 16)))["y"]
    assert_near(found, expected, F32, 1e-4, absolute=1e-4)
    wrong = np.isnan(found)
    assert wrong[3].all() and not wrong[np.arange(33) != 3][:, np.arange(40) != 39].any()


@pytest.mark.parametrize("m, n, k", [(1, 16, 16), (2, 8, 8), (16, 16, 16), (131, 72, 56), (0, 8, 8), (8, 0, 8), (8, 8, 0)])
@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "i8", "f8e4m3fn"])
def test_matmul(m: int, n: int, k: int, name: str, interpreter: Runner) -> None:
    dtype = DTYPES[name]
    n, k = (-(-size // 16) * 16 if dtype.bits == 8 else size for size in (n, k))
    kernel, plan = matmul(m, n, k, dtype)
    values = operands(m, n, k, dtype)
    options = EmitOptions(processors=3, choice=chosen(32, 32, 32, resident=1 if k else 0, parts=2))
    found, expected = run(kernel, plan, values, {}, interpreter, options)["y"]
    if dtype is I8:
        assert_same(found, expected, I32)
        return
    bound = np.abs(values["x"].astype(np.float64)) @ np.abs(values["w"].astype(np.float64))
    # Higham 2002, (3.5): k roundings of the sum of magnitudes
    assert_near(found, expected, F32, 0.0, absolute=float(np.max(bound, initial=0.0)) * (k + 1) * 2.0**-24)


def test_sizes_that_are_not_known(interpreter: Runner) -> None:
    """Rows that are not known, and k that is sixteens: where there are none, nothing is read."""
    kernel, plan = matmul(symbol("m"), 24, multiply(16, symbol("k")), F16)
    options = replace(HOPPER, choice=chosen(32, 32, 32))
    assert len(copied(emit(kernel, plan, options=options))) == 2
    for m, k in ((1, 1), (70, 3), (0, 2), (5, 0), (64, 4)):
        values = operands(m, 24, 16 * k, F16)
        found, expected = run(kernel, plan, values, {"m": m, "k": k}, interpreter, options)["y"]
        assert_near(found, expected, F32, 1e-3, absolute=1e-3)


def test_rows_and_k_of_two_loops(interpreter: Runner) -> None:
    """Heads beside features, as an attention's result is multiplied: where blocks divide the last loop, each is one of the others."""
    heads, features, length, columns = Loop("loop:h", 3), Loop("loop:f", 32), Loop("loop:l", 64), Loop("loop:n", 40)
    batch = Loop("loop:b", 2)
    x = Load("x", (batch.index, heads.index, length.index, features.index), F16)
    w = Load("w", (columns.index, heads.index, features.index), F16)
    store = Store("y", (batch.index, length.index, columns.index), Result("sum", F32))
    kernel = Product("projected", (), (batch, length), (columns,), (heads, features), x, w, F32, (store,))
    buffers = {"x": Buffer("x", F16, (2, 3, 64, 32), "input"), "w": Buffer("w", F16, (40, 3, 32), "input")}
    plan = Plan({**buffers, "y": Buffer("y", F32, (2, 64, 40), "output")}, (kernel,), (), ())
    draw = np.random.default_rng(3)
    values = {name: cast(draw.integers(-3, 4, buffer.shape), F16) for name, buffer in buffers.items()}
    for tile, number in ((chosen(32, 32, 16, resident=1), 2), (chosen(64, 16, 32), 2), (chosen(128, 32, 32), 1), (chosen(32, 32, 64), 0)):
        options = EmitOptions(processors=1, choice=tile)
        assert len(copied(emit(kernel, plan, options=options))) == number, tile.text()
        found, expected = run(kernel, plan, values, {}, interpreter, options)["y"]
        assert_same(found, expected.astype(np.float32), F32, tile.text())


def grouped(rows: int, columns: int, depth: int, count: int) -> tuple[Grouped, Plan]:
    """Rows of x by the transposed matrices of their groups, in f16 summed in f32."""
    m, n, k, groups = Loop("loop:m", rows), Loop("loop:n", columns), Loop("loop:k", depth), Loop("loop:g", count)
    x, w = Load("x", (m.index, k.index), F16), Load("w", (groups.index, n.index, k.index), F16)
    store = Store("y", (m.index, n.index), Result("sum", F32))
    kernel = Grouped("grouped", (groups,), (m,), (n,), (k,), Load("key", (m.index,), I32), x, w, F32, (store,))
    shapes = {"x": ((rows, depth), F16), "w": ((count, columns, depth), F16), "key": ((rows,), I32), "y": ((rows, columns), F32)}
    return kernel, Plan({name: Buffer(name, dtype, shape, "input") for name, (shape, dtype) in shapes.items()}, (kernel,), (), ())


def test_groups_read_their_matrices_by_copies(interpreter: Runner) -> None:
    """Tiles of a group begin anywhere, and rows of the next group beside them are not stored."""
    kernel, plan = grouped(70, 40, 48, 5)
    draw = np.random.default_rng(4)
    values: dict[str, Any] = {name: cast(draw.integers(-3, 4, plan.buffers[name].shape), F16) for name in "xw"}
    values["key"] = np.sort(draw.choice([0, 1, 3, 4], 70)).astype(np.int32)
    values["x"][values["key"] == 3] = np.nan
    for parts in (1, 2):
        numbers = (("BLOCK_M", 16), ("BLOCK_N", 32), ("BLOCK_K", 32), ("BULK", 1), ("RESIDENT", 0), ("PARTS", parts))
        options = EmitOptions(choice=KernelChoice(numbers))
        assert len(copied(emit(kernel, plan, options=options))) == 2
        found, expected = run(kernel, plan, values, {}, interpreter, options)["y"]
        assert_same(found, expected.astype(np.float32), F32)


def test_groups_copy_by_default_where_tiles_are_large() -> None:
    kernel, plan = grouped(4096, 1024, 1024, 8)
    emission = emit(kernel, plan, options=HOPPER)
    assert len(copied(emission)) == 2 and not copied(emit(kernel, plan))
    assert emission.choice is not None and emission.choice["RESIDENT"] == 0 and "flatten" not in emission.source


def test_a_load_beside_its_choice_is_a_copy_and_the_choice_is_none(interpreter: Runner) -> None:
    """x + (x where k < 40, else 7): what is chosen is read by pointers, where its condition holds."""
    kernel, plan = matmul(48, 64, 64, F16)
    (k,) = kernel.k
    x = kernel.lhs
    chosen_ = Choose((InBounds(k.index, 0, 40),), x, ScalarConstant(7.0, F16), F16)
    kernel = replace(kernel, lhs=ScalarOp(get_op("stablehlo.add"), (x, chosen_), F16))
    draw = np.random.default_rng(1)
    values = {"x": cast(draw.integers(-3, 4, (48, 64)), F16), "w": cast(draw.integers(-3, 4, (64, 64)), F16)}
    options = EmitOptions(choice=chosen(32, 32, 32))
    assert len(copied(emit(kernel, plan, options=options))) == 2
    found, expected = run(kernel, plan, values, {}, interpreter, options)["y"]
    assert_same(found, expected.astype(np.float32), F32)


# ---------------------------------------------------------------- what is a copy


def operand(index: tuple[Dim, ...], shape: tuple[Dim, ...], dtype: DType = F16, **more: Any) -> int:
    """How many operands of a product are copies, where the left one is read so; the right one never is."""
    m, n, k = Loop("loop:m", more.pop("m", 64)), Loop("loop:n", 64), Loop("loop:k", more.pop("k", 64))
    tile = more.pop("tile", chosen())
    x, w = Load("x", index, dtype), Load("w", (k.index, n.index), F64 if dtype is F64 else dtype)
    lhs, store = more.pop("wrap", lambda load: load)(x), Store("y", (m.index, n.index), Result("sum", wide(dtype)))
    kernel = Product("p", (), (m,), (n,), (k,), lhs, w, wide(dtype), (store,), picks=more.pop("picks", ()))
    buffers = {"x": Buffer("x", dtype, shape, "input", **more), "w": Buffer("w", dtype, (64, 64), "input", strides=(65, 1))}
    buffers |= {"y": Buffer("y", wide(dtype), (64, 64), "output"), "i": Buffer("i", I32, (1,), "input")}
    plan = Plan(buffers, (kernel,), (), ())
    return len(copied(emit(kernel, plan, options=EmitOptions(choice=tile))))


M, K = symbol("loop:m"), symbol("loop:k")


def test_loads_that_a_descriptor_says() -> None:
    assert operand((M, K), (64, 64)) == 1
    assert operand((K, M), (64, 64)) == 1, "turned"
    assert operand((M, add(K, 8)), (64, 72)) == 1, "from 16 bytes on"
    assert operand((3, add(M, 1), K), (4, 65, 64)) == 1, "from a row on"
    assert operand((multiply(2, M), K), (128, 64)) == 1, "every other row"
    assert operand((3, M, K), (4, 64, 64), order=(1, 0, 2)) == operand((M, 3, K), (64, 5, 64), order=(1, 2, 0)) == 1, "in another order"
    assert operand((M, K), (symbol("m"), 64), m=symbol("m")) == 1
    assert operand((M, K), (64, multiply(8, symbol("k"))), k=multiply(8, symbol("k"))) == 1
    assert operand((M, K), (64, 64), DTYPES["f8e5m2"]) == operand((M, K), (64, 64), F32) == operand((M, K), (64, 64), I8) == 1


def test_loads_that_no_descriptor_says() -> None:
    assert operand((M, K), (64, 65)) == 0, "a stride that is no multiple of 16 bytes"
    assert operand((M, add(K, 1)), (64, 72)) == 0, "a begin that is none"
    assert operand((M, multiply(2, K)), (64, 128)) == 0, "no stride of 1"
    assert operand((M,), (64,)) == operand((K,), (64,)) == operand((), ()) == 0, "one for all rows, or all k"
    assert operand((subtract(63, M), K), (64, 64)) == 0, "backwards"
    assert operand((M, subtract(63, K)), (64, 64)) == 0
    assert operand((floordiv(M, 2), K), (32, 64)) == 0, "no sum of indices"
    assert operand((M, K), (64, 64), strides=(64, 1)) == 0, "strides of its own"
    assert operand((M, 3, K), (64, 5, 64), order=(0, 2, 1)) == 0, "no stride of 1 in this order"
    assert operand((M, K), (64, symbol("k")), k=symbol("k")) == 0, "a stride that is not known"
    assert operand((M, K), (1, 64), m=1) == operand((M, K), (64, 1), k=1) == 0, "no side of a tile"
    assert operand((M, K), (64, 0), k=0) == operand((M, K), (64, 64), k=0) == 0, "nothing"
    assert operand((M, K), (64, 64), F64) == 0, "what no matrix unit for copies takes"
    assert operand((M, K), (64, 64), DTYPES["i4"], packed=1, wrap=as_f16) == 0, "packed below a byte"
    assert operand((3, M, K), (4, 64, 64), DTYPES["i4"], packed=0, wrap=as_f16) == 0, "packed along what has one index"
    assert operand((M, K), (2**31, 64), m=2**31) == 0, "a dim of 2^31"
    assert operand((M, K), (64, 2**40), k=64) == 0, "rows 2^41 bytes apart"
    assert operand((M, K), (512, 64), m=512, tile=chosen(256)) == 1 and operand((M, K), (512, 64), m=512, tile=chosen(512)) == 0, "a box"
    assert operand((M, K), (64, 64), I8, tile=chosen(k=16)) == 1 and operand((M, K), (64, 64), I8, tile=chosen(k=8)) == 0, "8 bytes"
    pick = Pick("pick:i", 64, Load("i", (0,), I32))
    assert operand((add(M, symbol("pick:i")), K), (128, 64), picks=(pick,)) == 0, "a place that memory says"
    far = add(K, multiply(8, multiply(M, symbol("pick:i"))))
    assert operand((M, far), (64, 64 + 8 * 64 * 64), picks=(pick,)) == 0, "a stride that memory says"
    assert operand((M, K), (64, 64), wrap=lambda load: Choose((InBounds(K, 0, 60),), load, ScalarConstant(0.0, F16), F16)) == 0, (
        "what may be left out"
    )


def as_f16(load: Scalar) -> Scalar:
    return ScalarOp(get_op("stablehlo.convert"), (load,), F16, (("dtype", F16),))


def test_dims_beyond_five_are_not_copied() -> None:
    def copies(count: int) -> int:
        batch = tuple(Loop(f"loop:b{place}", 2) for place in range(count))
        m, n, k = Loop("loop:m", 64), Loop("loop:n", 64), Loop("loop:k", 64)
        where = tuple(loop.index for loop in batch)
        x, w = Load("x", (*where, m.index, k.index), F16), Load("w", (k.index, n.index), F16)
        turned = (*reversed(where), m.index, n.index)  # so that no loops of the batch are one
        kernel = Product("p", batch, (m,), (n,), (k,), x, w, F32, (Store("y", turned, Result("sum", F32)),))
        shapes = {"x": ((2,) * count + (64, 64), F16), "w": ((64, 64), F16), "y": ((2,) * count + (64, 64), F32)}
        plan = Plan({name: Buffer(name, dtype, shape, "input") for name, (shape, dtype) in shapes.items()}, (kernel,), (), ())
        return sum(one.buffer == "x" for one in copied(emit(kernel, plan, options=EmitOptions(choice=chosen()))))

    assert [copies(count) for count in (0, 1, 2, 3, 4)] == [1, 1, 1, 1, 0]


# ---------------------------------------------------------------- what is chosen


def default(m: Dim, n: Dim, k: Dim, dtype: DType, *, options: EmitOptions = HOPPER) -> dict[str, int]:
    emission = emit(*matmul(m, n, k, dtype, result=dtype if dtype.bits == 16 else None), options=options)
    assert emission.choice is not None
    assert bool(copied(emission)) == bool(dict(emission.choice.numbers).get("BULK")), "what a choice says is what is emitted"
    return dict(emission.choice.numbers) | {"stages": emission.choice.stages}


def test_the_default_of_targets_with_copies() -> None:
    large = default(4096, 4096, 4096, F16)
    assert large == {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "SPLITS": 1, "BULK": 1, "RESIDENT": 1, "PARTS": 4, "stages": 4}
    assert default(1024, 1024, 1024, F16)["RESIDENT"] == 0, "fewer tiles than processors: each program has one"
    assert default(symbol("n"), 4096, 4096, F16) | {"stages": 0} == {
        "BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "SPLITS": 1, "BULK": 1, "RESIDENT": 2, "PARTS": 1, "stages": 0,
    }  # fmt: skip
    assert default(4096, 4096, multiply(64, symbol("k")), F16)["RESIDENT"] == 0, "k may be 0, and then a tile has no round"
    assert default(16, 4096, 4096, F16)["BULK"] == 0, "few rows: memory is what is waited for"
    split = default(128, 128, 65536, F16)
    assert split["BULK"] == 1 and split["SPLITS"] > 1 and split["RESIDENT"] == 0


def test_a_tile_is_no_larger_than_what_a_copy_brings() -> None:
    """Columns of two loops, of which the last one has 128: 256 columns are no block of the matrix."""
    m, outer, inner, k = Loop("loop:m", 4096), Loop("loop:o", 40), Loop("loop:i", 128), Loop("loop:k", 1024)
    x, w = Load("x", (m.index, k.index), F16), Load("w", (inner.index, outer.index, k.index), F16)
    store = Store("y", (m.index, outer.index, inner.index), Result("sum", F32))
    kernel = Product("p", (), (m,), (outer, inner), (k,), x, w, F32, (store,))
    shapes = {"x": ((4096, 1024), F16), "w": ((128, 40, 1024), F16), "y": ((4096, 40, 128), F32)}
    plan = Plan({name: Buffer(name, dtype, shape, "input") for name, (shape, dtype) in shapes.items()}, (kernel,), (), ())
    emission = emit(kernel, plan, options=HOPPER)
    assert emission.choice is not None and emission.choice["BLOCK_N"] == 128 and len(copied(emission)) == 2


def test_what_cannot_be_copied_says_nothing_of_copies() -> None:
    assert "BULK" not in default(4096, 4096, 4096, F32), "f32 in full has no matrix unit there"
    assert default(4096, 4096, 4096, F32, options=replace(HOPPER, tf32=True))["BULK"] == 1
    assert "BULK" not in default(4096, 4096, 4096, F64)
    assert "BULK" not in default(4096, 4095, 4095, F16), "neither operand"
    one = default(4096, 4095, 4096, F16)
    assert one["BULK"] == 1 and one["BLOCK_N"] == 128, "one operand: the other one needs registers for its places"
    assert "BULK" not in default(4096, 4096, 4096, F16, options=EmitOptions()), "a target without them"


def test_what_may_be_left_out_says_nothing_of_copies() -> None:
    kernel, plan = matmul(1024, 1024, 1024, F16)
    (k,) = kernel.k
    sides = [Choose((InBounds(k.index, 0, 1000),), side, ScalarConstant(0.0, F16), F16) for side in (kernel.lhs, kernel.rhs)]
    emission = emit(replace(kernel, lhs=sides[0], rhs=sides[1]), plan, options=HOPPER)
    assert emission.choice is not None and "BULK" not in dict(emission.choice.numbers)


def test_what_rows_need_before_and_after_is_read_twice_by_programs_that_stay() -> None:
    """So that nothing is held from the begin of a tile to its end, when the next one has begun."""
    kernel, plan = matmul(512, 512, 512, F16)
    (m,) = kernel.m
    scale = Load("s", (m.index,), F16)
    value = ScalarOp(
        get_op("stablehlo.add"), (Result("sum", F32), ScalarOp(get_op("stablehlo.convert"), (scale,), F32, (("dtype", F32),))), F32
    )
    kernel = replace(
        kernel, lhs=ScalarOp(get_op("stablehlo.multiply"), (kernel.lhs, scale), F16), stores=(replace(kernel.stores[0], value=value),)
    )
    plan = replace(plan, buffers={**plan.buffers, "s": Buffer("s", F16, (512,), "input")})
    for resident, times in ((0, 1), (1, 2)):
        assert emit(kernel, plan, options=EmitOptions(choice=chosen(resident=resident))).source.count("tl.load(s_ptr") == times


def test_the_number_of_a_tile_and_of_those_that_stay_has_room() -> None:
    """What is counted on by as many as programs stay is a dim that decides how wide numbers are."""
    kernel, plan = matmul(symbol("m"), 64, 64, F16)
    (launch,) = emit(kernel, plan, options=EmitOptions(processors=100, choice=chosen(resident=2))).launches
    assert any(evaluate(dim, {"m": 64}) == 201 for dim in launch.extents)


def test_shared_memory_is_enough() -> None:
    """Stages of both operands and a part of the result, with what is left out where it is not."""
    for shared in (232448, 101376, 49152):
        numbers = default(4096, 4096, 4096, F16, options=replace(HOPPER, bulk=shared))
        if numbers["BULK"]:
            stage = 2 * numbers["BLOCK_K"] * (numbers["BLOCK_M"] + numbers["BLOCK_N"])
            assert numbers["stages"] >= 2
            part = 2 * numbers["BLOCK_M"] * numbers["BLOCK_N"] // numbers["PARTS"]
            assert numbers["stages"] * stage + part < shared / max(1, numbers["RESIDENT"])
    assert default(4096, 4096, 4096, F16, options=replace(HOPPER, bulk=49152))["BULK"] == 0


def test_windows_are_read_by_pointers() -> None:
    for windowed, number in ((False, 2), (True, 0)):
        kernel, plan = matmul(1024, 1024, 1024, F16)
        assert len(copied(emit(replace(kernel, windowed=windowed), plan, options=HOPPER))) == number


# ---------------------------------------------------------------- text


def test_lines_that_nothing_reads_are_left_out() -> None:
    lines = ["a = 1", "b = a + 1", "c = b", "total = zero(a)", "for start in range(0, c):", "    x = load(b)", "    y = load(a)",
             "    total = dot(x, total)", "later += a", "a = later", "store(a, total)"]  # fmt: skip
    assert used_lines(lines) == [line for line in lines if "y = " not in line]
    assert used_lines(["a = 1", "a = 2", "store(a)"]) == ["a = 2", "store(a)"]


def test_the_text_of_a_matmul_by_copies() -> None:
    options = replace(HOPPER, choice=chosen(128, 128, 64, resident=1))
    assert kernel_source(*matmul(symbol("n"), 1000, 96, BF16, result=BF16), options=options).endswith("""
    # dot_general
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    n = tl.cast(n, INDEX)
    program = tl.program_id(0).to(INDEX)
    tiles_m = tl.cdiv(n, BLOCK_M)
    tiles_n = tl.cdiv(1000, BLOCK_N)
    programs = tl.num_programs(0).to(INDEX)
    later = program - programs
    for work in tl.range(program, tiles_m * tiles_n, programs, flatten=True):
        tile = work
        in_group = GROUP * tiles_n
        first = tile // in_group * GROUP
        height = tl.minimum(tiles_m - first, GROUP)
        tile_m = first + tile % in_group % height
        tile_n = tile % in_group // height
        row_start = tile_m * BLOCK_M
        column_start = tile_n * BLOCK_N
        total = tl.full([BLOCK_M, BLOCK_N], 0.0, tl.float32)
        for start in range(0, 96, BLOCK_K):
            x = x_tiles.load([tl.cast(row_start, tl.int32), tl.cast(start, tl.int32)])
            w = w_tiles.load([tl.cast(start, tl.int32), tl.cast(column_start, tl.int32)])
            total = tl.dot(x, w, total)
        later += programs
        tile = later
        in_group = GROUP * tiles_n
        first = tile // in_group * GROUP
        height = tl.minimum(tiles_m - first, GROUP)
        tile_m = first + tile % in_group % height
        tile_n = tile % in_group // height
        rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
        columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        row_mask = rows < n
        column_mask = columns < 1000
        total_bf16 = total.to(tl.bfloat16)
        tl.store(y_ptr + rows * 1000 + columns, total_bf16, mask=row_mask & column_mask)
""")


def linear(m: Dim, n: int, k: int) -> tuple[Product, Plan]:
    """gelu(x @ w.T + b) + r in f16."""
    rows, columns, depth = Loop("loop:m", m), Loop("loop:n", n), Loop("loop:k", k)
    x, w = Load("x", (rows.index, depth.index), F16), Load("w", (columns.index, depth.index), F16)

    def apply(name: str, *sides: Scalar, dtype: DType = F32) -> ScalarOp:
        return ScalarOp(get_op(name), sides, dtype, (("dtype", dtype),) if name.endswith("convert") else ())

    total = apply("stablehlo.add", Result("sum", F32), apply("stablehlo.convert", Load("b", (columns.index,), F16)))
    erf = apply("chlo.erf", apply("stablehlo.multiply", total, ScalarConstant(0.7071067690849304, F32)))
    gelu = apply(
        "stablehlo.multiply",
        apply("stablehlo.multiply", total, ScalarConstant(0.5, F32)),
        apply("stablehlo.add", erf, ScalarConstant(1.0, F32)),
    )
    value = apply("stablehlo.add", gelu, apply("stablehlo.convert", Load("r", (rows.index, columns.index), F16)))
    store = Store("y", (rows.index, columns.index), apply("stablehlo.convert", value, dtype=F16))
    kernel = Product("linear", (), (rows,), (columns,), (depth,), x, w, F32, (store,), terms=("dot_general, add, gelu, add",))
    shapes: dict[str, tuple[Dim, ...]] = {"x": (m, k), "w": (n, k), "b": (n,), "r": (m, n), "y": (m, n)}
    return kernel, Plan({name: Buffer(name, F16, shape, "input") for name, shape in shapes.items()}, (kernel,), (), ())


@pytest.mark.parametrize(("sizes", "tile"), [
    ((8192, 8192, 8192), (128, 256, 1)), ((2048, 14336, 4096), (128, 256, 1)), ((8192, 768, 768), (128, 128, 1)),
    ((512, 4096, 4096), (128, 128, 1)), ((2048, 1024, 4096), (128, 128, 1)), ((256, 256, 256), (64, 64, 0)),
])  # fmt: skip
def test_tiles_leave_few_processors_idle(sizes: tuple[int, int, int], tile: tuple[int, int, int]) -> None:
    """192 tiles of 128 by 256 on 132 processors take as long as 264; 128 by 128 take three rounds of half the work instead of two."""
    kernel, plan = matmul(*sizes, F16)
    choice = emit(kernel, plan, options=HOPPER).choice
    assert choice is not None and (choice["BLOCK_M"], choice["BLOCK_N"], choice["RESIDENT"]) == tile


def test_a_linear_layer_reads_as_its_golden() -> None:
    read_as_golden("triton_copied_linear", kernel_source(*linear(4000, 4096, 1024), options=HOPPER))


# ---------------------------------------------------------------- ahead of time


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
@pytest.mark.parametrize("name", ["f16", "bf16", "i8", "f32", "f8e4m3fn"])
def test_products_by_copies_compile_ahead_of_time(name: str, target: str, compiler: Compiler, record_property: Any) -> None:
    """Bulk copies and the matrix unit of the machine; registers without spilling, in the shared memory that there is."""
    dtype = DTYPES[name]
    options = replace(HOPPER, tf32=True)
    for m, n, k in ((4096, 4096, 4096), (1024, 1024, 1024), (symbol("m"), 1024, 512)):
        kernel, plan = matmul(m, n, k, dtype, result=BF16 if name == "bf16" else None)
        emission = emit(kernel, plan, options=options)
        assert emission.choice is not None and emission.choice["BULK"] == 1
        (compiled,) = compiler.run(kernel_source(kernel, plan, options=options), emission.launches, target, {})
        record_property(f"{m} {n} {k}", f"{emission.choice.text()}: {compiled.registers} registers, {compiled.shared} B shared")
        assert compiled.spilled <= 32 and compiled.shared * max(1, emission.choice["RESIDENT"]) <= HOPPER.bulk
        assert "cp.async.bulk.tensor" in compiled.text and "cp.async.cg" not in compiled.text
        assert ("wgmma.mma_async" if target == "sm_90" else "tcgen05.mma") in compiled.text


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_a_linear_layer_compiles_without_spilling(target: str, compiler: Compiler) -> None:
    """Bias, GELU and a residual at the largest tile: it is stored in parts for that."""
    kernel, plan = linear(8192, 8192, 8192)
    emission = emit(kernel, plan, options=HOPPER)
    assert emission.choice is not None and emission.choice["BLOCK_N"] == 256
    (compiled,) = compiler.run(kernel_source(kernel, plan, options=HOPPER), emission.launches, target, {})
    assert compiled.spilled == 0 and compiled.shared <= HOPPER.bulk and "cp.async.bulk.tensor" in compiled.text


def test_below_hopper_descriptors_are_pointers(compiler: Compiler) -> None:
    """A package that is run on an older machine than it is for."""
    kernel, plan = matmul(1024, 1024, 1024, F16)
    (compiled,) = compiler.run(kernel_source(kernel, plan, options=HOPPER), emit(kernel, plan, options=HOPPER).launches, "sm_80", {})
    assert "cp.async.bulk" not in compiled.text and "mma.sync" in compiled.text
