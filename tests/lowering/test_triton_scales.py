"""Products of 8-bit floats with scales for blocks of k: the scales go behind the sums of blocks, in Triton's interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.ir.dims import Dim, add, floordiv, mod, multiply, symbol
from coset.ir.op import get_op
from coset.ir.types import BF16, DTYPES, F16, F32, I32, DType
from coset.lowering.kernels.kernel import Buffer, Grouped, Load, Loop, Pick, Plan, Product, Result, Scalar, ScalarOp, Store
from coset.lowering.triton.alternatives import alternatives
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.scales import without_scales
from coset.lowering.triton.source import EmitOptions, Rounding, emit, kernel_source
from coset.pricing.plan_price import PlanPrices
from coset.targets.target import get_target
from tests.lowering.triton_cases import assert_near, assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
E4M3, E5M2, E8M0 = DTYPES["f8e4m3fn"], DTYPES["f8e5m2"], DTYPES["f8e8m0fnu"]
FORMS = {
    "f16": EmitOptions(), "full": EmitOptions(eights=0), "short": EmitOptions(eights=128),
    "by copies": EmitOptions(eights=0, bulk=232448, processors=2), "short by copies": EmitOptions(eights=128, bulk=232448, processors=2),
}  # fmt: skip


def apply(name: str, *sides: Scalar, dtype: DType = F32) -> ScalarOp:
    return ScalarOp(get_op(f"stablehlo.{name}"), sides, dtype, (("dtype", dtype),) if name == "convert" else ())


def as_(value: Scalar, dtype: DType) -> Scalar:
    return value if value.dtype is dtype else apply("convert", value, dtype=dtype)


def scaled(value: Scalar, *factors: Scalar, wide: DType = F32) -> Scalar:
    for factor in factors:
        value = apply("multiply", as_(value, wide), as_(factor, wide), dtype=wide)
    return value


class Case:
    """x[m, k] and w[n, k] with what scales them: buffers are made as they are first asked for."""

    def __init__(self, m: Dim, n: Dim, *k: Dim, dtype: DType = E4M3) -> None:
        self.m, self.n = Loop("loop:m", m), Loop("loop:n", n)
        self.k = tuple(Loop(f"loop:k{place}", extent) for place, extent in enumerate(k))
        self.buffers: dict[str, Buffer] = {}
        depth = [loop.index for loop in self.k]
        self.x = self.load("x", dtype, (m, *k), (self.m.index, *depth))
        self.w = self.load("w", dtype, (n, *k), (self.n.index, *depth))

    def load(self, name: str, dtype: DType, shape: tuple[Dim, ...], index: tuple[Dim, ...]) -> Load:
        self.buffers[name] = Buffer(name, dtype, shape, "input")
        return Load(name, index, dtype)

    def made(self, lhs: Scalar, rhs: Scalar, **more: Any) -> tuple[Product, Plan]:
        store = Store("y", (self.m.index, self.n.index), Result("sum", F32))
        self.buffers["y"] = Buffer("y", F32, (self.m.extent, self.n.extent), "output")
        kernel = Product("p", (), (self.m,), (self.n,), self.k, as_(lhs, F32), as_(rhs, F32), F32, (store,), **more)
        return kernel, Plan(self.buffers, (kernel,), (), ())

    def values(self, **sizes: int) -> dict[str, Any]:
        from coset.ir.dims import evaluate

        draw, found = np.random.default_rng(len(self.buffers)), {}
        for name, buffer in self.buffers.items():
            shape = tuple(evaluate(dim, sizes) for dim in buffer.shape)
            drawn = 2.0 ** draw.integers(-2, 3, shape) if buffer.dtype is E8M0 else draw.normal(size=shape)
            found[name] = cast(drawn, buffer.dtype) if buffer.dtype is not I32 else draw.integers(0, 2, shape).astype(np.int32)
        return {name: value for name, value in found.items() if name != "y"}


def block_scaled(
    m: int = 70, n: int = 200, k: int = 512, *, block: int = 128, dtype: DType = E4M3, scale: DType = F32, wide: DType = F32
) -> Case:
    """DeepSeek-V3's: a scale for each row and block of k of x, for each block of both dims of w."""
    case = Case(m, n, k, dtype=dtype)
    (depth,) = case.k
    blocks = -(-k // block)
    s = case.load("s", scale, (m, blocks), (case.m.index, floordiv(depth.index, block)))
    t = case.load("t", scale, (-(-n // block), blocks), (floordiv(case.n.index, block), floordiv(depth.index, block)))
    case.lhs, case.rhs = scaled(case.x, s, wide=wide), scaled(case.w, t, wide=wide)  # type: ignore[attr-defined]
    return case


def check(
    kernel: Any, plan: Plan, values: dict[str, Any], interpreter: Runner, options: EmitOptions, sizes: dict[str, int] | None = None
) -> None:
    """Near to the scalars as they are: f32's roundings, and what short sums lose of normal numbers."""
    found, expected = run(kernel, plan, values, sizes or {}, interpreter, options)["y"]
    largest = float(np.max(np.abs(expected.astype(np.float64)), initial=0.0))
    assert_near(found, expected, F32, 0.0, absolute=largest * (2.0**-9 if options.eights else 2.0**-18))


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "scale", "wide"), sampled([(E4M3, F32, F32), (E5M2, E8M0, F32), (E4M3, BF16, F32)]), ids=str)
def test_scales_of_blocks(dtype: DType, scale: DType, wide: DType, form: str, interpreter: Runner) -> None:
    """Ragged rows, columns and k, of which the last block is short."""
    for m, n, k, block in (
        (70, 200, 512, 128),
        (129, 144, 336, 64),
        (64, 128, 128, 128),
        (16, 40, 100, 256),
        (65, 130, 160, 32),
        (70, 96, 288, 96),
    ):
        if "copies" in form:
            k = -(-k // 16) * 16
        case = block_scaled(m, n, k, block=block, dtype=dtype, scale=scale, wide=wide)
        kernel, plan = case.made(case.lhs, case.rhs)  # type: ignore[attr-defined]
        emission = emit(kernel, plan, options=FORMS[form])
        assert emission.unit == ("f16" if form == "f16" else dtype.name) and "block = tl.dot(" in emission.source
        assert emission.choice is not None and emission.choice["BLOCK_K"] <= block
        check(kernel, plan, case.values(), interpreter, FORMS[form])


@pytest.mark.parametrize("form", ["f16", "short"])
def test_halves_that_are_scaled_are_8_bit_floats(form: str, interpreter: Runner) -> None:
    """As ONNX has it: converted to f16 and scaled there, which rounds each element; behind the sum nothing is rounded."""
    case = block_scaled(wide=F16, scale=F16)
    kernel, plan = case.made(case.lhs, case.rhs)  # type: ignore[attr-defined]
    assert "block = tl.dot(" in emit(kernel, plan, options=FORMS[form]).source
    found, expected = run(kernel, plan, case.values(), {}, interpreter, FORMS[form])["y"]
    assert_near(found, expected, F32, 0.0, absolute=2.0**-9 * float(np.abs(expected).max()))


def test_every_way_to_scale(interpreter: Runner) -> None:
    """One side; several factors in any order, some of all of k; numbers; k of two loops; split; by programs that stay, in parts."""
    options = EmitOptions(eights=0, processors=2)
    case = Case(40, 72, 256)
    (depth,) = case.k
    s = case.load("s", F32, (40, 2), (case.m.index, floordiv(depth.index, 128)))
    row, column = case.load("r", F32, (40,), (case.m.index,)), case.load("c", F16, (72,), (case.n.index,))
    zoom = case.load("z", F32, (4,), (mod(floordiv(depth.index, 64), 4),))
    one_side = scaled(case.x, s), case.w
    several = apply("multiply", row, scaled(case.x, s, zoom)), scaled(case.w, column)
    behind = scaled(case.x, row), scaled(case.w, column)
    for (lhs, rhs), blocks, behinds in ((one_side, 1, 0), (several, 2, 2), (behind, 0, 2)):
        kernel, plan = case.made(lhs, rhs)
        _, scales = without_scales(kernel, options)
        assert (len(scales.blockwise), len(scales.behind)) == (blocks, behinds)
        check(kernel, plan, case.values(), interpreter, options)
    loops = Case(40, 72, 3, 128)
    outer, inner = loops.k
    s = loops.load("s", F32, (40, 3), (loops.m.index, outer.index))
    t = loops.load("t", F32, (3, 2), (outer.index, floordiv(inner.index, 64)))
    kernel, plan = loops.made(scaled(loops.x, s), scaled(loops.w, t))
    assert without_scales(kernel, options)[1].block == 64
    for form in FORMS.values():
        check(kernel, plan, loops.values(), interpreter, form)
    wide = block_scaled(64, 128, 8192)
    kernel, plan = wide.made(wide.lhs, wide.rhs)  # type: ignore[attr-defined]
    emission = emit(kernel, plan, options=EmitOptions(eights=0))
    assert emission.choice is not None and emission.choice["SPLITS"] > 1
    check(kernel, plan, wide.values(), interpreter, EmitOptions(eights=0))
    numbers = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "SPLITS": 1, "BULK": 1, "RESIDENT": 1, "PARTS": 2, "EIGHTS": 1}
    stays = EmitOptions(eights=128, processors=1, choice=KernelChoice(tuple(numbers.items())))
    kernel, plan = case.made(*several)
    assert "flatten=True" in emit(kernel, plan, options=stays).source
    check(kernel, plan, case.values(), interpreter, stays)


def test_sizes_that_are_not_known(interpreter: Runner) -> None:
    """Rows, and blocks of k."""
    case = Case(symbol("m"), 48, multiply(128, symbol("b")))
    (depth,) = case.k
    s = case.load("s", F32, (symbol("m"), symbol("b")), (case.m.index, floordiv(depth.index, 128)))
    kernel, plan = case.made(scaled(case.x, s), case.w)
    for options in (FORMS["f16"], FORMS["full"], FORMS["short by copies"]):
        assert "block = tl.dot(" in emit(kernel, plan, options=options).source
        for m, b in ((1, 1), (70, 3), (0, 1), (5, 0)):
            check(kernel, plan, case.values(m=m, b=b), interpreter, options, {"m": m, "b": b})


@pytest.mark.parametrize("form", ["f16", "full", "short by copies"])
def test_groups_have_scales(form: str, interpreter: Runner) -> None:
    """Experts: rows by the matrices of their groups, each with a scale for each block of k."""
    rows, columns, depth, count = 90, 72, 256, 3
    m, n, k, g = Loop("loop:m", rows), Loop("loop:n", columns), Loop("loop:k", depth), Loop("loop:g", count)
    block = floordiv(k.index, 128)
    lhs = scaled(Load("x", (m.index, k.index), E4M3), Load("s", (m.index, block), F32))
    rhs = scaled(Load("w", (g.index, n.index, k.index), E4M3), Load("t", (g.index, block), F32))
    store = Store("y", (m.index, n.index), Result("sum", F32))
    kernel = Grouped("grouped", (g,), (m,), (n,), (k,), Load("key", (m.index,), I32), lhs, rhs, F32, (store,))
    shapes = {
        "x": ((rows, depth), E4M3), "s": ((rows, 2), F32), "w": ((count, columns, depth), E4M3), "t": ((count, 2), F32),
        "key": ((rows,), I32), "y": ((rows, columns), F32),
    }  # fmt: skip
    plan = Plan({name: Buffer(name, dtype, shape, "input") for name, (shape, dtype) in shapes.items()}, (kernel,), (), ())
    draw = np.random.default_rng(2)
    values = {name: cast(draw.normal(size=shape), dtype) for name, (shape, dtype) in shapes.items() if name not in ("key", "y")}
    values["key"] = np.sort(draw.integers(0, count, rows)).astype(np.int32)
    emission = emit(kernel, plan, options=FORMS[form])
    assert emission.unit == ("f16" if form == "f16" else "f8e4m3fn") and "block = tl.dot(" in emission.source
    check(kernel, plan, values, interpreter, FORMS[form])


def test_all_alternatives_scale_blocks(interpreter: Runner) -> None:
    case = block_scaled(130, 144, 256, block=64)
    kernel, plan = case.made(case.lhs, case.rhs)  # type: ignore[attr-defined]
    options = EmitOptions(eights=0, bulk=232448, processors=2)
    default = emit(kernel, plan, options=options).choice
    assert default is not None
    found = alternatives(kernel, default, options, {})
    assert {choice["EIGHTS"] for choice in found} == {0, 1} and max(choice["BLOCK_K"] for choice in found) == 64
    for choice in found[::7]:
        check(kernel, plan, case.values(), interpreter, replace(options, choice=choice))


# ---------------------------------------------------------------- which do


def test_which_scales_stay_where_they_are() -> None:
    """What changes with k in short blocks or at each element, what is picked, other operands, and where results must be exact."""
    options = EmitOptions(eights=0)
    case = Case(64, 64, 256)
    (depth,) = case.k

    def stays(lhs: Scalar, rhs: Scalar, options: EmitOptions = options, **more: Any) -> bool:
        kernel, _ = case.made(lhs, rhs, **more)
        found, scales = without_scales(kernel, options)
        assert (found is kernel) == (not scales.factors)
        return found is kernel

    def s(*index: Dim) -> Load:
        return case.load("s", F32, (64,) * len(index), index)

    block = floordiv(depth.index, 128)
    assert not stays(scaled(case.x, s(block)), case.w)
    assert stays(scaled(case.x, s(block)), case.w, EmitOptions(eights=0, rounding=Rounding.EACH)), "exact"
    assert stays(case.x, case.w), "none"
    assert stays(scaled(case.x, s(depth.index)), case.w), "one for each k"
    assert stays(scaled(case.x, s(floordiv(depth.index, 16))), case.w), "short blocks"
    short = s(floordiv(depth.index, 32))
    assert not stays(scaled(case.x, short), case.w), "Microscaling's: else it would be f32"
    assert stays(scaled(case.x, short, wide=F16), case.w), "the matrix unit multiplies f16 as fast"
    assert stays(scaled(case.x, s(floordiv(depth.index, 48))), case.w), "16 is the power of two in it"
    assert stays(scaled(case.x, s(floordiv(add(depth.index, 64), 128))), case.w), "blocks that begin elsewhere"
    assert stays(scaled(case.x, s(add(block, mod(depth.index, 2)))), case.w)
    pick = Pick("pick:i", 64, Load("x", (case.m.index, depth.index), I32))
    assert stays(scaled(case.x, s(symbol("pick:i"))), case.w, picks=(pick,)), "a place that memory says"
    half = case.load("h", F16, (64, 256), (case.m.index, depth.index))
    assert stays(scaled(half, s(block)), case.w), "f16"
    assert stays(apply("add", scaled(case.x, s(block)), s(block)), case.w), "a zero point"
    assert stays(scaled(apply("tanh", as_(case.x, F32)), s(block)), case.w)
    two = Case(64, 64, 4, 80)
    outer, inner = two.k
    kernel, _ = two.made(scaled(two.x, two.load("s", F32, (4,), (outer.index,))), two.w)
    assert without_scales(kernel, options)[0] is kernel, "passes of 80"
    kernel, _ = two.made(scaled(two.x, two.load("s", F32, (4,), (floordiv(inner.index, 64),))), two.w)
    assert without_scales(kernel, options)[0] is kernel, "blocks of 64, 16, 64, 16 .."


def test_scales_are_looked_for_on_either_side(interpreter: Runner) -> None:
    """A scale that is an 8-bit float itself is no operand: it would change with each block."""
    case = Case(33, 40, 256)
    (depth,) = case.k
    s = case.load("s", E4M3, (33, 2), (case.m.index, floordiv(depth.index, 128)))
    kernel, plan = case.made(apply("multiply", as_(s, F32), as_(case.x, F32)), case.w)
    found, scales = without_scales(kernel, EmitOptions())
    assert found.lhs == case.x and scales.block == 128
    check(kernel, plan, case.values(), interpreter, EmitOptions(eights=0))


def test_what_is_not_finite_stays_in_its_row_and_column(interpreter: Runner) -> None:
    case = block_scaled()
    kernel, plan = case.made(case.lhs, case.rhs)  # type: ignore[attr-defined]
    values = case.values()
    values["x"][3, 5], values["s"][7, 1], values["t"][1, 0] = np.nan, np.inf, np.nan
    for options in FORMS.values():
        found, _ = run(kernel, plan, values, {}, interpreter, options)["y"]
        wrong = ~np.isfinite(found)
        assert wrong[3].all() and wrong[7].all() and wrong[:, 128:].all()
        wrong[[3, 7]] = wrong[:, 128:] = False
        assert not wrong.any()


def test_exact_ones_are_scaled_in_front(interpreter: Runner) -> None:
    """Bit for bit as the hub has it, but for the order of the sum: there is one summand."""
    case = block_scaled(20, 24, 1, block=128)
    kernel, plan = case.made(case.lhs, case.rhs)  # type: ignore[attr-defined]
    found, expected = run(kernel, plan, case.values(), {}, interpreter, EmitOptions(eights=0, rounding=Rounding.EACH))["y"]
    assert_same(found, expected.astype(np.float32), F32)


# ---------------------------------------------------------------- prices, and ahead of time


def test_prices_are_those_of_8_bits() -> None:
    case = block_scaled(8192, 8192, 8192)
    kernel, plan = case.made(case.lhs, case.rhs)  # type: ignore[attr-defined]
    flop, target = 2 * 8192.0**3, get_target("nvidia-h200")
    for numerics, rate in (("approx", 1979e12), ("reassociates", 989e12), ("exact", 0.34 * 67e12)):
        prices = PlanPrices(target, {}, numerics=numerics)
        assert prices.kernel(plan, kernel) - prices.launch(kernel) == pytest.approx(flop / rate, rel=0.01)


@pytest.mark.parametrize(("target", "options", "instruction"), [
    ("sm_90", EmitOptions(eights=128, bulk=232448), "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"),
    ("sm_100", EmitOptions(eights=0, bulk=232448), "tcgen05.mma.cta_group::1.kind::f8f6f4"),
    ("sm_80", EmitOptions(), "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), ("gfx942", EmitOptions(), ""),
])  # fmt: skip
def test_blocks_compile_ahead_of_time(
    target: str, options: EmitOptions, instruction: str, compiler: Compiler, record_property: Any
) -> None:
    case = block_scaled(4096, 4096, 4096)
    kernel, plan = case.made(case.lhs, case.rhs)  # type: ignore[attr-defined]
    emission = emit(kernel, plan, options=options)
    assert emission.choice is not None
    (compiled,) = compiler.run(kernel_source(kernel, plan, options=options), emission.launches, target, {})
    record_property(
        target, f"{emission.choice.text()}: {compiled.registers} registers, {compiled.shared} B shared, {compiled.spilled} spilled"
    )
    assert instruction in compiled.text and compiled.spilled <= 64
