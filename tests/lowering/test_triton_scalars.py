"""Every elementwise op that kernels have a form of means what the hub says, on special and drawn values of every dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.dialects.hub.scalars import cast, widen
from coset.ir.op import Op, find_op, get_op
from coset.ir.registry import all_ops
from coset.ir.types import BOOL, DTYPES, DType
from coset.lowering.kernels.kernel import Buffer, IndexValue, Load, Loop, Plan, Pointwise, Scalar, ScalarConstant, ScalarOp, Store
from coset.lowering.triton.scalars import TYPES, filling, form_of, is_read_only, number, typed_number
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit
from tests.lowering.triton_cases import assert_near, assert_same, run

pytest.importorskip("triton", reason="Triton is not installed")

NAMES = tuple(name for name in TYPES if not is_read_only(DTYPES[name]))  # of those that are only read see test_packing.py
FLOATS = tuple(name for name in NAMES if DTYPES[name].kind == "float")
_EXACT = """negate abs sign floor ceil round_nearest_even round_nearest_afz sqrt not add subtract multiply divide remainder maximum minimum
    and or xor shift_left shift_right_logical shift_right_arithmetic is_finite is_nan is_inf compare select clamp convert"""
EXACT = frozenset(_EXACT.split())
EACH = EmitOptions(rounding=Rounding.EACH)


def special(dtype: DType) -> np.ndarray[Any, Any]:
    """Values where ops go wrong, and drawn ones."""
    draw = np.random.default_rng(5)
    if dtype is BOOL:
        return np.array([False, True])
    if dtype.kind == "float":
        values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e-7, 0.3, 7.7, 88.9]
        values += [-104.5, 2.0**23 + 1, 2.0**31, -(2.0**31), 2.0**63, 3e38, 255.5, -128.5, 464.0, 465.0, 57344.0, 61440.0, 65504.0, 65520.0]
        return cast(np.array([*values, *draw.normal(size=12), *draw.normal(size=6) * 50]), dtype)
    info = np.iinfo(dtype.numpy)
    values = [0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 64, 100, info.max, info.max - 1, info.min, info.min + 1, *([-1, -2, -7] if info.min else [])]
    kept = [value for value in values if info.min <= value <= info.max]
    return np.array([*kept, *draw.integers(info.min, info.max, 8, dtype.numpy, endpoint=True)], dtype.numpy)


def ops(count: int) -> list[tuple[Op, dict[str, Any]]]:
    """The elementwise ops of `count` operands of one dtype that some dtype has a form of."""
    found: list[tuple[Op, dict[str, Any]]] = []
    for op in all_ops():
        if op.dialect in ("stablehlo", "chlo") and op.has("elementwise") and len(op.operands) == count:
            if op.name == "stablehlo.compare":
                found += [(op, {"direction": way}) for way in ("EQ", "NE", "LT", "LE", "GT", "GE")]
            elif op.name not in ("stablehlo.convert", "stablehlo.select") and not op.attributes:
                found.append((op, {}))
    return found


def result_of(op: Op, dtype: DType) -> DType:
    return BOOL if op.name.split(".")[1] in ("compare", "is_finite", "is_nan", "is_inf") else dtype


def grid(dtype: DType, count: int) -> dict[str, np.ndarray[Any, Any]]:
    """Operands x0, x1 ..: every combination for up to two, a drawn one for three."""
    values = special(dtype)
    if count == 1:
        return {"x0": values}
    if count == 2:
        a, b = np.meshgrid(values, values, indexing="ij")
        return {"x0": a.ravel(), "x1": b.ravel()}
    draw = np.random.default_rng(7)
    return {f"x{i}": draw.choice(values, 200) for i in range(count)}


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_ops_mean_what_the_hub_says(name: str, count: int, interpreter: Runner) -> None:
    dtype = DTYPES[name]
    operands = grid(dtype, count)
    loop = Loop("loop:i", operands["x0"].size)
    buffers = {key: Buffer(key, dtype, (loop.extent,), "input") for key in operands}
    loads = tuple(Load(key, (loop.index,), dtype) for key in operands)
    stores = []
    for op, attributes in ops(count):
        result = result_of(op, dtype)
        if can_emit(op.name, [dtype] * count + [result]):
            output = f"{op.name.split('.')[1]}{attributes.get('direction', '')}"
            buffers[output] = Buffer(output, result, (loop.extent,), "output")
            stores.append(Store(output, (loop.index,), ScalarOp(op, loads, result, tuple(attributes.items()))))
    kernel = Pointwise("ops", (loop,), tuple(stores))
    if not stores:
        assert count == 3 or dtype is BOOL
        return
    found = run(kernel, Plan(buffers, (kernel,), (), ()), operands, {}, interpreter, EACH)
    for store in stores:
        assert isinstance(store.value, ScalarOp)
        op_name, (value, expected) = store.value.op.name.split(".")[1], found[store.buffer]
        if op_name in EXACT:
            assert_same(value, expected, store.value.dtype, f"{store.buffer} of {name}")
        else:
            assert_near(value, expected, store.value.dtype, 2e-6 if dtype.bits < 64 else 2e-15, what=f"{store.buffer} of {name}")
            if count == 1:  # a function that is odd keeps the sign of a zero
                zero = widen(expected) == 0
                signs = np.signbit(widen(value)[zero]), np.signbit(widen(expected)[zero])
                assert (signs[0] == signs[1]).all(), f"{store.buffer} of {name}: {operands['x0'][zero]} gives zeros of another sign"


@pytest.mark.parametrize("options", [EmitOptions(), EACH])
def test_erf_is_near_everywhere(options: EmitOptions, interpreter: Runner) -> None:
    """2 units in the last place of the result: in each binade and at each end of its two forms, and its limits without one."""
    draw = np.random.default_rng(3)
    drawn = draw.integers(0, 2**23, (254, 256)) + (np.arange(1, 255)[:, None] << 23)  # every exponent
    dense = np.concatenate([np.linspace(0.3, 4.5, 60_000), np.nextafter(np.float32(1), [0, 2], dtype=np.float32), [1.0]])
    x = np.concatenate([drawn.astype(np.int32).view(np.float32).ravel(), dense.astype(np.float32), np.float32([0, 1e-40, np.inf, np.nan])])
    x = np.concatenate([x, -x])
    loop = Loop("loop:i", x.size)
    erf = ScalarOp(get_op("chlo.erf"), (Load("x", (loop.index,), DTYPES["f32"]),), DTYPES["f32"])
    kernel = Pointwise("erf", (loop,), (Store("y", (loop.index,), erf),))
    buffers = {key: Buffer(key, DTYPES["f32"], (loop.extent,), role) for key, role in (("x", "input"), ("y", "output"))}
    found, _ = run(kernel, Plan(buffers, (kernel,), (), ()), {"x": x}, {}, interpreter, options)["y"]
    expected = np.array([math.erf(each) for each in x.tolist()])
    units = np.abs(found - expected) / np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    assert np.nanmax(units) <= 2.0 and np.array_equal(np.isnan(found), np.isnan(x))
    assert np.all(np.abs(found[np.abs(x) >= 4]) == 1.0) and np.array_equal(np.signbit(found[x == x]), np.signbit(x[x == x]))


@pytest.mark.parametrize("name", NAMES)
def test_conversions_mean_what_the_hub_says(name: str, interpreter: Runner) -> None:
    source, values = DTYPES[name], special(DTYPES[name])
    loop = Loop("loop:i", values.size)
    buffers = {"x": Buffer("x", source, (loop.extent,), "input")}
    load = Load("x", (loop.index,), source)
    op = find_op("stablehlo.convert")
    assert op is not None
    stores = []
    for target in map(DTYPES.__getitem__, NAMES):
        buffers[f"to_{target}"] = Buffer(f"to_{target}", target, (loop.extent,), "output")
        stores.append(Store(f"to_{target}", (loop.index,), ScalarOp(op, (load,), target, (("dtype", target),))))
    kernel = Pointwise("conversions", (loop,), tuple(stores))
    found = run(kernel, Plan(buffers, (kernel,), (), ()), {"x": values}, {}, interpreter)
    for store in stores:
        target = store.value.dtype
        twice = target.kind == "float" and target.bits < 32 and (source.name in ("f64", "i32", "u32", "i64", "u64"))
        check = assert_near if twice else assert_same
        value, expected = found[store.buffer]
        if check is assert_near:
            assert_near(value, expected, target, 0.0, what=f"{name} to {target}")
        else:
            assert_same(value, expected, target, f"{name} to {target}")


@pytest.mark.parametrize("name", NAMES)
def test_numbers_choices_and_indices(name: str, interpreter: Runner) -> None:
    """Constants beside values and beside constants, select among them, and index values as numbers."""
    dtype, values = DTYPES[name], special(DTYPES[name])
    loop = Loop("loop:i", values.size)
    load = Load("x", (loop.index,), dtype)
    buffers = {"x": Buffer("x", dtype, (loop.extent,), "input")}
    select, compare = find_op("stablehlo.select"), find_op("stablehlo.compare")
    assert select is not None and compare is not None
    numbers = [ScalarConstant(value.item(), dtype) for value in values[:: 2 if len(values) > 2 else 1]]
    scalars: list[Scalar] = [ScalarConstant(values[-1].item(), dtype), IndexValue(loop.index, dtype) if dtype is not BOOL else load]
    for one in numbers:
        chosen = ScalarOp(compare, (load, one), BOOL, (("direction", "EQ"),))
        scalars += [chosen, ScalarOp(select, (chosen, one, load), dtype), ScalarOp(select, (chosen, one, numbers[0]), dtype)]
    stores = []
    for place, scalar in enumerate(scalars):
        buffers[f"y{place}"] = Buffer(f"y{place}", scalar.dtype, (loop.extent,), "output")
        stores.append(Store(f"y{place}", (loop.index,), scalar))
    kernel = Pointwise("numbers", (loop,), tuple(stores))
    for buffer, (value, expected) in run(kernel, Plan(buffers, (kernel,), (), ()), {"x": values}, {}, interpreter).items():
        assert_same(value, expected, buffers[buffer].dtype, f"{buffer} of {name}: {scalars[int(buffer[1:])]}")


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_as_another_dtype(name: str, interpreter: Runner) -> None:
    source, values = DTYPES[name], special(DTYPES[name])
    loop = Loop("loop:i", values.size)
    buffers = {"x": Buffer("x", source, (loop.extent,), "input")}
    convert, negate = find_op("stablehlo.bitcast_convert"), find_op("stablehlo.negate")
    assert convert is not None and negate is not None
    load: Scalar = Load("x", (loop.index,), source)
    stores = []
    for target in map(DTYPES.__getitem__, NAMES):
        if can_emit(convert.name, [source, target]):
            bits = ScalarOp(convert, (load,), target, (("dtype", target),))
            for way, scalar in (("to", bits), ("minus", ScalarOp(negate, (bits,), target))):
                buffers[f"{way}_{target}"] = Buffer(f"{way}_{target}", target, (loop.extent,), "output")
                stores.append(Store(f"{way}_{target}", (loop.index,), scalar))
    assert stores or source is BOOL
    if stores:
        kernel = Pointwise("bitcasts", (loop,), tuple(stores))
        for buffer, (value, expected) in run(kernel, Plan(buffers, (kernel,), (), ()), {"x": values}, {}, interpreter).items():
            assert_same(value, expected, buffers[buffer].dtype, f"{name}: {buffer}")


def test_what_has_no_form_is_refused() -> None:
    f32, f64, c64 = (DTYPES[name] for name in ("f32", "f64", "c64"))
    assert not can_emit("stablehlo.remainder", [f32, f32, f32])  # no device has it exactly
    assert not can_emit("stablehlo.tanh", [f64, f64]) and can_emit("stablehlo.tanh", [f32, f32])
    assert not can_emit("stablehlo.add", [c64, c64, c64])
    assert not can_emit("stablehlo.convert", [f32, DTYPES["i4"]])
    assert not can_emit("stablehlo.sort", [f32, f32])


@pytest.mark.parametrize("name", NAMES)
def test_no_text_means_something_else_to_triton_3_6(name: str) -> None:
    """What up to Triton 3.7 loses -0.0 (unary minus), has no form in the interpreter (~ of unsigned), passes through f32 (numbers that
    are compared with f64) or makes an i32 of its neighbour (numbers beside narrow integers). Seen with 3.6.0 and 3.7.1."""
    dtype = DTYPES[name]
    for count in (1, 2, 3):
        for op, attributes in ops(count):
            dtypes = [dtype] * count + [result_of(op, dtype)]
            if can_emit(op.name, dtypes):
                text = form_of(op.name, dtypes, attributes).text
                assert not (text.startswith("-") and dtype.kind == "float"), op.name
                assert not (text.startswith("~") and dtype.kind == "uint"), op.name
    if dtype.kind == "float":
        assert typed_number(-0.0, dtype).endswith("* -1.0")
        assert (number(0.3, dtype) is None) is (dtype.bits > 32)
        assert number(0.25, dtype) == "0.25"
    elif dtype is not BOOL:
        assert (number(1, dtype) is None) is (dtype.bits < 32)
        assert filling(1, dtype) == "1"
