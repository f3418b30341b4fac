"""f32 as six products of bf16 (`Options.bf16x6`): how far single products and sums are off, what is not finite, attention and its gradients
against the definition in f64, tiles, and compiled ahead of time for machines with and without bulk copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.ir.types import BF16, F16, F32, F64, DType
from coset.lowering.kernels.kernel import Attention, Chain, Plan, Statistics
from coset.lowering.planning.plan import plan
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source
from coset.pricing.kernel_options import noise, options_for
from coset.pricing.plan_price import PlanPrices
from coset.targets.target import get_target
from tests.lowering import test_triton_attention, test_triton_attention_copies, test_triton_gradients, test_triton_gradients_copies
from tests.lowering.attention_cases import Case, values_for
from tests.lowering.test_triton_copies import HOPPER, copied
from tests.lowering.test_triton_product import drawn, matmul
from tests.lowering.triton_cases import assert_near, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
Array = np.ndarray[Any, Any]
SIXTHS = EmitOptions(bf16x6=True)
UNIT = 2.0**-24  # a rounding of f32


def multiplied(x: Array, w: Array, interpreter: Runner, options: EmitOptions = SIXTHS) -> Array:
    """x @ w by the kernel."""
    kernel, made = matmul(x.shape[0], w.shape[1], x.shape[1], F32)
    return run(kernel, made, {"x": x, "w": w}, {}, interpreter, options)["y"][0]


def normal(shape: tuple[int, ...], seed: int, *, exponents: int = 0) -> Array:
    """f32 with all their bits, over so many powers of two."""
    draw = np.random.default_rng(seed)
    return np.ldexp(draw.normal(size=shape), draw.integers(-exponents, exponents + 1, shape)).astype(np.float32)


# ---------------------------------------------------------------- numbers


def test_a_single_product_is_off_by_two_to_the_minus_22_at_most(interpreter: Runner) -> None:
    """Of numbers of all sizes, one product for each sum; what tf32 makes of them is a thousand times farther off."""
    x, w = normal((256, 1), 0, exponents=40), normal((1, 256), 1, exponents=40)
    exact = x.astype(np.float64) * w
    off = np.abs(multiplied(x, w, interpreter) - exact) / np.abs(exact)
    assert UNIT / 4 < off.max() <= 2.0**-22 + 2.0**-23  # a device cuts sums off where the interpreter rounds them
    assert np.abs(multiplied(x, w, interpreter, EmitOptions(tf32=True)) / exact - 1).max() > 2.0**-12


def test_the_parts_that_are_left_out_lie_on_both_sides(interpreter: Runner) -> None:
    """Ones with all bits set are cut worst: the parts that are left out do not add up where signs are mixed or not."""
    x = np.full((16, 2048), np.float32(2.0 - 2.0**-23))
    w = normal((2048, 16), 2)
    for right in (w, np.abs(w)):
        exact = x.astype(np.float64) @ right
        assert np.all(np.abs(multiplied(x, right, interpreter) - exact) <= 2.0**-19 * (np.abs(x) @ np.abs(right)))


@pytest.mark.parametrize("k", [16, 100, 1000])
def test_sums_are_as_near_as_those_of_f32(k: int, interpreter: Runner) -> None:
    x, w = normal((70, k), 3, exponents=6), normal((k, 65), 4, exponents=6)
    exact, size = x.astype(np.float64) @ w, np.abs(x).astype(np.float64) @ np.abs(w)
    found, full = (np.abs(multiplied(x, w, interpreter, options) - exact) / size for options in (SIXTHS, EmitOptions()))
    assert found.max() <= (k + 5) * UNIT
    assert found.mean() <= 4 * full.mean() + UNIT


def test_integers_of_24_bits_are_multiplied_exactly_where_f32_holds_the_result(interpreter: Runner) -> None:
    draw = np.random.default_rng(5)
    x = draw.integers(-(2**24), 2**24, (64, 32)).astype(np.float32)
    w = (np.eye(32) * 2.0 ** draw.integers(-20, 20, 32)).astype(np.float32)
    assert np.array_equal(multiplied(x, w, interpreter), x @ w)


@pytest.mark.parametrize("options", [SIXTHS, replace(SIXTHS, bulk=HOPPER.bulk)], ids=["pointers", "copies"])
def test_what_is_not_finite_is_as_in_full(options: EmitOptions, interpreter: Runner) -> None:
    """Infinities and NaN on either side, with any bits; the largest number; what overflows; zeros; a row that has none of them."""
    big = np.finfo(np.float32).max
    odd = np.array([np.inf, -np.inf, np.nan, big, -big, 0.0, -0.0, 1e-30], np.float32)
    odd = np.concatenate([odd, np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF], np.uint32).view(np.float32)])
    for seed, side in enumerate("xwxw"):
        values = {"x": normal((64, 64), 10 + seed), "w": normal((64, 64), 20 + seed)}
        for place, number in enumerate(odd):
            at = (5 * place, 3 * place) if side == "x" else (3 * place, 5 * place)
            values[side][at] = number
        if seed > 1:
            values["w" if side == "x" else "x"][...] = np.round(values["w" if side == "x" else "x"])  # zeros beside infinities
        found, full = (multiplied(values["x"], values["w"], interpreter, each) for each in (options, EmitOptions()))
        finite = [np.where(np.isfinite(each) & (np.abs(each) < 1e38), np.abs(each), 0.0).astype(np.float64) for each in values.values()]
        absolute = (finite[0] @ finite[1]).max() * 80 * UNIT
        assert_near(found, full, F32, 80 * UNIT, absolute=absolute, what=f"{side} {seed}")
        assert np.isnan(found).any() and np.isinf(found).any()


def test_a_large_number_is_not_an_infinity(interpreter: Runner) -> None:
    """Nearest to the largest f32 there is no bf16."""
    big = np.finfo(np.float32).max
    x, w = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    x[0, 0], w[0, 0] = big, 0.5
    assert multiplied(x, w, interpreter)[0, 0] == big / 2


def test_numbers_above_two_to_the_minus_110_have_all_their_bits(interpreter: Runner) -> None:
    """Below, the third part is smaller than any bf16; what is said to be lost is, and no more."""
    x = np.ldexp(normal((64, 1), 6), -110 + 3).astype(np.float32)
    x = x[np.abs(x) >= 2.0**-110].reshape(-1, 1)
    w = np.full((1, 16), np.float32(2.0**100))
    assert np.array_equal(multiplied(x, w, interpreter), x @ w)
    less = np.ldexp(np.float32(1 + 2.0**-23), -120).reshape(1, 1).astype(np.float32)
    assert np.abs(multiplied(less, w, interpreter) / (less @ w) - 1).max() <= 2.0**-13


# ---------------------------------------------------------------- kernels


@pytest.mark.parametrize("batch", sampled(range(4)))
def test_drawn_products(batch: int, interpreter: Runner) -> None:
    """Of small integers, whose parts are exact, with what is in front and behind, sums of parts, empty sizes."""
    for seed in range(1000 + batch * 20, 1020 + batch * 20):
        drawing, kernel = drawn(seed, (F32,))
        found = run(kernel, Plan(drawing.buffers, (kernel,), (), ()), drawing.values, drawing.binding, interpreter, SIXTHS)
        for name, (value, expected) in found.items():
            assert_near(value, expected, drawing.buffers[name].dtype, 1e-6, absolute=1e-5, what=f"seed {seed}, {name}")


def drawn_attention(seed: int, *, bulk: bool) -> tuple[Case, dict[str, int], EmitOptions]:
    case, binding, options = test_triton_attention_copies.drawn(seed)
    options = replace(options, bf16x6=True) if bulk else SIXTHS
    return replace(case, dtype=F32), binding, options


@pytest.mark.parametrize("bulk", [False, True], ids=["pointers", "copies"])
@pytest.mark.parametrize("batch", sampled(range(6)))
def test_drawn_attentions(batch: int, bulk: bool, interpreter: Runner) -> None:
    """Against the definition in f64, within the bound of f32 that is multiplied in full."""
    for seed in range(700 + 12 * batch, 712 + 12 * batch):
        case, binding, options = drawn_attention(seed, bulk=bulk)
        values = test_triton_attention.values_for(case, binding, seed, special=False)
        test_triton_attention.check(case, binding, values, interpreter, f"seed {seed}: {case}", options)


@pytest.mark.parametrize("mask", ["none", "boolean", "additive", "causal"])
def test_attention_of_what_is_not_finite(mask: str, interpreter: Runner) -> None:
    """NaN and infinities where they are when f32 is multiplied in full, in blocks of the same keys."""
    case = Case((2,), (), 33, 75, 24, 40, F32, mask, 0.25)
    made = plan(case.program(), computes=can_emit)
    (kernel,) = made.kernels
    values = test_triton_attention.values_for(case, {}, 11, special=False)
    values["v"][0, 3, 5], values["v"][0, 40, 7], values["q"][0, 12, 3] = np.nan, -np.inf, np.inf
    values["k"][1, 30, 2] = np.inf
    choice = KernelChoice((("BLOCK_M", 32), ("BLOCK_N", 32), ("SPLITS", 1)), 4, 2)
    found, full = (
        run(kernel, made, values, {}, interpreter, EmitOptions(bf16x6=sixths, choice=choice))["y"][0] for sixths in (True, False)
    )
    assert np.isnan(found).any() and np.isfinite(found).any()
    assert_near(found, full, F32, 1e-5, absolute=1e-5)


@pytest.mark.parametrize("batch", sampled(range(4), 4))
def test_drawn_gradients(batch: int, interpreter: Runner) -> None:
    for seed in range(800 + 6 * batch, 806 + 6 * batch):
        given, binding, tile = test_triton_gradients_copies.drawn(seed)
        given = replace(given, case=replace(given.case, dtype=F32))

        def options(kernel: Any, tile: tuple[int, int] = tile, seed: int = seed) -> EmitOptions:
            found = test_triton_gradients_copies.chosen(kernel, *tile) if seed % 2 else EmitOptions()
            return replace(found, bf16x6=True)

        test_triton_gradients.check(given, binding, values_for(given, binding, seed), interpreter, f"seed {seed}: {given}", options)


# ---------------------------------------------------------------- what is chosen


@pytest.mark.parametrize(
    "numerics, target, unit",
    [
        ("exact", "nvidia-h200", "f32"), ("reassociates", "nvidia-h200", "bf16x6"), ("real", "nvidia-a100", "bf16x6"),
        ("reassociates", "nvidia-b200", "bf16x6"), ("approx", "nvidia-h200", "tf32"), ("lossy", "nvidia-a100", "tf32"),
        ("reassociates", "amd-mi300x", "f32"),
    ],
)  # fmt: skip
def test_the_numerics_and_the_target_say_what_f32_is_multiplied_as(numerics: str, target: str, unit: str) -> None:
    options = options_for(numerics, get_target(target))
    kernel, made = matmul(256, 256, 256, F32)
    assert options.f32_as == unit == emit(kernel, made, options=options).unit
    assert emit(*attention(64), options=options).unit == unit
    assert options_for(numerics, get_target(target)).rounding is (Rounding.EACH if numerics == "exact" else Rounding.STORES)


def test_no_more_is_allowed_of_results_than_of_f32() -> None:
    assert noise({"kernels": [{"multiplies": "bf16x6"}]}) == (1.0, 1.0) != noise({"kernels": [{"multiplies": "tf32"}]})


@pytest.mark.parametrize("dtype", [F16, BF16, F64], ids=str)
def test_other_floats_are_multiplied_as_they_were(dtype: DType) -> None:
    for kernel, made in (matmul(256, 256, 256, dtype), attention(64, dtype=dtype)):
        assert kernel_source(kernel, made, options=SIXTHS) == kernel_source(kernel, made)


def attention(width: int, mask: str = "none", *, dtype: DType = F32, length: int = 1024) -> tuple[Attention, Plan]:
    made = plan(Case((4, 12), (), length, 1024, width, width, dtype, mask, 0.125).program(), computes=can_emit)
    (kernel,) = made.kernels
    assert isinstance(kernel, Attention)
    return kernel, made


def test_attention_is_priced_by_what_it_is_multiplied_as() -> None:
    """On an H200 in less time than by products in full, of which it was measured to take 1.14 ms; in more than of 16 bits."""
    target = get_target("nvidia-h200")

    def seconds(dtype: DType, numerics: str) -> float:
        kernel, made = attention(64, dtype=dtype)
        return PlanPrices(target, {}, numerics=numerics).kernel(made, kernel)

    assert 3 * seconds(F16, "reassociates") < seconds(F32, "reassociates") < seconds(F32, "exact") / 2


# ---------------------------------------------------------------- ahead of time

UNITS = {"sm_80": "mma.sync", "sm_90": "wgmma.mma_async", "sm_100": "tcgen05.mma"}
TARGETS = {"sm_80": "nvidia-a100", "sm_90": "nvidia-h200", "sm_100": "nvidia-b200"}
SPILLED = {128: 352, 256: 736}  # bytes of a thread at most, by the width of heads; up to 64 a few


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "width, mask", sampled([(64, "causal"), (64, "none"), (64, "additive"), (40, "none"), (128, "causal"), (256, "none")], 3)
)
def test_attentions_compile_ahead_of_time(width: int, mask: str, target: str, compiler: Compiler, record_property: Any) -> None:
    """With the matrix units for bf16, in the shared memory that there is."""
    machine = get_target(TARGETS[target])
    options, (kernel, made) = options_for("reassociates", machine), attention(width, mask)
    emission = emit(kernel, made, options=options)
    (compiled,) = compiler.run(kernel_source(kernel, made, options=options), emission.launches, target, {})
    record_property(f"{width} {mask}", f"{compiled.registers} registers, {compiled.spilled} B spilled, {compiled.shared} B shared")
    assert compiled.spilled <= SPILLED.get(width, 128) and compiled.shared <= machine.numbers["shared"].value
    copies = bool(options.bulk) and width <= 128
    assert (UNITS[target] if copies else "mma.sync") in compiled.text
    assert ("cp.async.bulk.tensor" in compiled.text) == bool(copied(emission)) == copies


@pytest.mark.parametrize("target", TARGETS)
def test_products_compile_without_spilling(target: str, compiler: Compiler) -> None:
    machine = get_target(TARGETS[target])
    options = options_for("reassociates", machine)
    for sizes in ((4096, 4096, 4096), (512, 300, 200)):
        kernel, made = matmul(*sizes, F32)
        emission = emit(kernel, made, options=options)
        (compiled,) = compiler.run(kernel_source(kernel, made, options=options), emission.launches, target, {})
        assert compiled.spilled == 0 and compiled.shared <= machine.numbers["shared"].value
        assert UNITS[target] in compiled.text and emission.unit == "bf16x6"


@pytest.mark.parametrize("target", sampled(["sm_90", "sm_80"], 2))
def test_gradients_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    options = options_for("reassociates", get_target(TARGETS[target]))
    for width in (64, 128):
        made = test_triton_gradients_copies.gradients(width, F32, "causal")
        for kernel in made.kernels:
            assert isinstance(kernel, Statistics | Chain)
            emission = emit(kernel, made, options=options)
            (compiled,) = compiler.run(kernel_source(kernel, made, options=options), emission.launches, target, {})
            assert compiled.spilled <= 128 and emission.unit == "bf16x6"
