"""Products of 8-bit floats that matrix units multiply as such: values in Triton's interpreter, which sums in as few bits as Hopper where
that is allowed; what is multiplied so, the text, and the instructions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.ir.dims import Dim, symbol
from coset.ir.op import get_op
from coset.ir.types import BF16, DTYPES, F16, F32, F64, DType
from coset.lowering.kernels.kernel import Buffer, Load, Loop, Plan, Product, Result, Scalar, ScalarConstant, ScalarOp, Store
from coset.lowering.triton.alternatives import MOST, alternatives
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.predicted import predicted
from coset.lowering.triton.source import EmitOptions, Rounding, emit, kernel_source
from coset.targets.target import get_target
from tests.lowering import test_triton_copies, test_triton_product
from tests.lowering.test_triton_copies import chosen, copied
from tests.lowering.triton_cases import assert_near, assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
E4M3, E5M2 = DTYPES["f8e4m3fn"], DTYPES["f8e5m2"]
FULL, SHORT = EmitOptions(eights=0), EmitOptions(eights=128)
FORMS = {"full": FULL, "short": SHORT, "full by copies": replace(FULL, bulk=232448), "short by copies": replace(SHORT, bulk=232448)}
SPILLED = 16  # B: two sums of 128 x 128 in the registers of four warps, which are faster on an H200 than those of eight without spills
PAIRS = [(E4M3, E4M3), (E5M2, E5M2), (E4M3, E5M2), (E5M2, E4M3)]


def matmul(m: Dim, n: Dim, k: Dim, left: DType, right: DType, *, turned: str = "", wrap: Any = lambda side: side) -> tuple[Product, Plan]:
    """y = wrap(x) @ wrap(w) in f32; `turned`: which of them are transposed in memory."""
    rows, columns, depth = Loop("loop:m", m), Loop("loop:n", n), Loop("loop:k", k)
    x = Load("x", (depth.index, rows.index) if "x" in turned else (rows.index, depth.index), left)
    w = Load("w", (columns.index, depth.index) if "w" in turned else (depth.index, columns.index), right)
    store = Store("y", (rows.index, columns.index), Result("sum", F32))
    kernel = Product("p", (), (rows,), (columns,), (depth,), wrap(x), wrap(w), F32, (store,))
    shapes = {"x": (left, (k, m) if "x" in turned else (m, k)), "w": (right, (n, k) if "w" in turned else (k, n)), "y": (F32, (m, n))}
    return kernel, Plan({name: Buffer(name, dtype, shape, "input") for name, (dtype, shape) in shapes.items()}, (kernel,), (), ())


def to(value: Scalar, *dtypes: DType) -> Scalar:
    """The scalar converted to each dtype in turn."""
    for dtype in dtypes:
        value = ScalarOp(get_op("stablehlo.convert"), (value,), dtype, (("dtype", dtype),))
    return value


def every(dtype: DType) -> np.ndarray[Any, Any]:
    """All 256 bit patterns."""
    return np.arange(256, dtype=np.uint8).view(dtype.numpy)


def drawn(m: int, n: int, k: int, left: DType, right: DType) -> dict[str, np.ndarray[Any, Any]]:
    draw = np.random.default_rng(8)
    return {"x": draw.normal(size=(m, k)).astype(left.numpy), "w": draw.normal(size=(k, n)).astype(right.numpy)}


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("left", "right"), PAIRS, ids=str)
def test_every_pair_of_bit_patterns(left: DType, right: DType, form: str, interpreter: Runner) -> None:
    """Each number by each, also NaN and infinities, beside zeros that fill k up: every product is exact in any number of bits."""
    kernel, plan = matmul(256, 256, 16, left, right)
    values = {"x": np.zeros((256, 16), left.numpy), "w": np.zeros((16, 256), right.numpy)}
    values["x"][:, 0], values["w"][0] = every(left), every(right)
    assert "max_num_imprecise_acc" in kernel_source(kernel, plan, options=FORMS[form])
    found, _ = run(kernel, plan, values, {}, interpreter, FORMS[form])["y"]
    with np.errstate(all="ignore"):
        expected = every(left).astype(np.float32)[:, None] * every(right).astype(np.float32) + np.float32(0)
    assert_same(found, expected, F32)


@pytest.mark.parametrize("batch", sampled(range(6), 2))
@pytest.mark.parametrize("of", ["pointers", "copies"])
def test_drawn_kernels(batch: int, of: str, interpreter: Runner) -> None:
    """Prologues, epilogues, orders, ragged sizes, several loops, k split, as of other element types; small integers, exact in all sums."""
    seen = 0
    for seed in range(batch * 10, batch * 10 + 10):
        kinds = (E4M3,) if seed % 2 else (E5M2,)
        options = EmitOptions(rounding=Rounding.EACH, eights=(0, 32, 128)[seed % 3], processors=2)
        if of == "copies":
            drawing, kernel, choice = test_triton_copies.drawn(seed, kinds)
            numbers = {**dict(choice.numbers), "BLOCK_K": max(32, choice["BLOCK_K"]), "EIGHTS": 1}
            options = replace(options, choice=replace(choice, numbers=tuple(numbers.items())))
        else:
            drawing, kernel = test_triton_product.drawn(seed, kinds)
        plan = Plan(drawing.buffers, (kernel,), (), ())
        emission = emit(kernel, plan, options=options)
        seen += emission.unit in ("f8e4m3fn", "f8e5m2")
        assert not (of == "copies" and not copied(emission))
        found = run(kernel, plan, drawing.values, drawing.binding, interpreter, options)
        for name, (value, expected) in found.items():
            assert_near(value, expected, drawing.buffers[name].dtype, 1e-6, absolute=1e-5, what=f"seed {seed}, {name}")
    assert seen >= 8


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=str)
def test_full_sums_are_those_of_f16(left: DType, right: DType, interpreter: Runner) -> None:
    """The same tiles as f16 and as 8-bit floats: the interpreter sums both in one order, so that the bits are equal."""
    kernel, plan = matmul(65, 40, 200, left, right, turned="w")
    values = drawn(65, 40, 200, left, right)
    values["w"] = np.ascontiguousarray(values["w"].T)
    values["x"][3, 199], values["w"][7, 5] = np.nan, np.inf if right is E5M2 else np.nan
    as_ = [chosen_plainly(32, 32, 64, eights) for eights in (1, 0)]
    found = [run(kernel, plan, values, {}, interpreter, replace(FULL, choice=choice))["y"][0] for choice in as_]
    assert_same(found[0], found[1], F32)


def chosen_plainly(m: int, n: int, k: int, eights: int) -> KernelChoice:
    numbers = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "SPLITS": 1, "EIGHTS": eights}
    return KernelChoice(tuple(numbers.items()))


@pytest.mark.parametrize("most", [32, 64, 128])
@pytest.mark.parametrize(("left", "right"), PAIRS, ids=str)
def test_short_sums_are_within_their_bound(left: DType, right: DType, most: int, interpreter: Runner) -> None:
    """Of positive numbers, whose errors are of one sign. Each of 32 products and what was summed before lose less than 2^-13 of the largest
    of them, and the sum as much of itself: 34 * 2^-13 of the magnitudes for each 32 of `most`; f32 adds the sums."""
    values = {name: np.abs(value.astype(np.float32)).astype(value.dtype) for name, value in drawn(40, 33, 1000, left, right).items()}
    exact = values["x"].astype(np.float64) @ values["w"].astype(np.float64)
    kernel, plan = matmul(40, 33, 1000, left, right)
    errors = {}
    for eights in (most, 0):
        found, _ = run(kernel, plan, values, {}, interpreter, EmitOptions(eights=eights, choice=chosen_plainly(64, 32, 128, 1)))["y"]
        errors[eights] = float(np.max((exact - found) / exact))
    assert 2.0**-15 < errors[most] <= 34 * most // 32 * 2.0**-13 + 8 * 2.0**-24
    assert abs(errors[0]) <= 1001 * 2.0**-24, "Higham 2002, (3.5)"


def test_what_is_below_thirteen_bits_of_the_largest_is_cut_off(interpreter: Runner) -> None:
    """By hand, as on compute capability 9.0 in tiles of 64 rows: 1 beside products of 2^-13, 2^-14 and 0.75 * 2^-12, in one sum or two."""
    kernel, plan = matmul(1, 5, 64, E5M2, E5M2)
    values = {"x": np.zeros((1, 64), E5M2.numpy), "w": np.zeros((64, 5), E5M2.numpy)}
    values["x"][0], values["w"][0] = 2.0**-7, 2.0**7
    values["w"][1:33, 0] = 2.0**-6  # 31 in the first 32 products, one in the next: each is held
    values["w"][1:33, 1] = 2.0**-7  # all are lost
    values["w"][1, 2] = 0.75 * 2.0**-5  # one bit of two is lost
    values["w"][40, 3], values["w"][0, 3] = 2.0**-7, 0  # nothing larger is there
    values["w"][33:64, 4] = -(2.0**-7)  # beside what was summed before; cut off towards 0
    found, _ = run(kernel, plan, values, {}, interpreter, EmitOptions(eights=64, choice=chosen_plainly(64, 16, 64, 1)))["y"]
    assert found[0].tolist() == [1 + 32 * 2.0**-13, 1.0, 1 + 2.0**-13, 2.0**-14, 1.0]
    found, _ = run(kernel, plan, values, {}, interpreter, EmitOptions(eights=32, choice=chosen_plainly(64, 16, 64, 1)))["y"]
    assert found[0].tolist() == [1 + 32 * 2.0**-13, 1 + 2.0**-14, 1 + 2.0**-13, 2.0**-14, 1 - 31 * 2.0**-14], "f32 adds both"


@pytest.mark.parametrize("most", [0, 128])
def test_sizes_that_are_not_known(most: int, interpreter: Runner) -> None:
    kernel, plan = matmul(symbol("m"), 24, symbol("k"), E4M3, E5M2)
    for m, k in ((1, 1), (70, 33), (0, 3), (5, 0)):
        values = drawn(m, 24, k, E4M3, E5M2)
        found, expected = run(kernel, plan, values, {"m": m, "k": k}, interpreter, EmitOptions(eights=most))["y"]
        assert_near(found, expected, F32, 1e-2 if most else 1e-5, absolute=1e-2 if most else 1e-5)


# ---------------------------------------------------------------- what is multiplied so


def test_conversions_that_lose_nothing_are_left_out() -> None:
    for wrap in (lambda x: x, lambda x: to(x, F32), lambda x: to(x, F16), lambda x: to(x, BF16, F32), lambda x: to(x, F16, F32)):
        kernel, plan = matmul(64, 64, 64, E4M3, E5M2, wrap=wrap)
        emission = emit(kernel, plan, options=FULL)
        assert emission.unit == "f8e4m3fn f8e5m2"
        assert [argument.type for argument in emission.launches[0].arguments] == ["*fp8e4nv", "*fp8e5", "*fp32"]
        assert "from_f8" not in emission.source


def test_what_is_no_8_bit_float_is_not_multiplied_as_one() -> None:
    half = ScalarConstant(0.5, F32)

    def unit(kernel: Product, plan: Plan, options: EmitOptions = FULL) -> str:
        emission = emit(kernel, plan, options=options)
        assert "EIGHTS" not in dict(emission.choice.numbers) if emission.choice else True
        return emission.unit

    assert unit(*matmul(64, 64, 64, E4M3, F16)) == "f16", "one side only"
    assert unit(*matmul(64, 64, 64, E4M3, E4M3), EmitOptions()) == "f16", "a target that has no such unit, or numerics that forbid it"
    scaled = matmul(64, 64, 64, E4M3, E4M3, wrap=lambda x: ScalarOp(get_op("stablehlo.multiply"), (to(x, F32), half), F32))
    assert unit(*scaled, replace(FULL, rounding=Rounding.EACH)) == "f32", "a scale that has to stay in front of the sum"
    assert unit(*matmul(64, 64, 64, F32, F32, wrap=lambda x: to(x, F16))) == "f16", "rounded to what is wider"
    kernel, plan = matmul(64, 64, 64, E4M3, E4M3, wrap=lambda x: to(x, F64))
    wide = replace(kernel, accumulator=F64, stores=(replace(kernel.stores[0], value=Result("sum", F64)),))
    assert unit(wide, replace(plan, buffers={**plan.buffers, "y": Buffer("y", F64, (64, 64), "output")})) == "f64", "sums in f64"


def test_values_that_are_rounded_to_8_bits_go_as_their_bits(interpreter: Runner) -> None:
    """Quantized in front of the product: what the unit takes is what `to_f8e4m3fn` gives."""
    kernel, plan = matmul(33, 40, 50, F32, F32, wrap=lambda x: to(x, E4M3, F32))
    source = kernel_source(kernel, plan, options=FULL)
    assert "to_f8e4m3fn(" in source and ".to(tl.float8e4nv, bitcast=True)" in source and "from_f8" not in source
    draw = np.random.default_rng(1)
    values = {"x": draw.normal(size=(33, 50)).astype(np.float32), "w": draw.normal(size=(50, 40)).astype(np.float32)}
    found, expected = run(kernel, plan, values, {}, interpreter, FULL)["y"]
    assert_near(found, expected, F32, 1e-5, absolute=1e-5)


def test_a_buffer_may_be_read_as_bits_too(interpreter: Runner) -> None:
    """What the epilogue reads of an operand is a parameter of its own, of bytes."""
    kernel, plan = matmul(48, 48, 48, E4M3, E4M3)
    (m,), (n,) = kernel.m, kernel.n
    value = ScalarOp(get_op("stablehlo.add"), (Result("sum", F32), to(Load("x", (m.index, n.index), E4M3), F32)), F32)
    kernel = replace(kernel, stores=(replace(kernel.stores[0], value=value),))
    emission = emit(kernel, plan, options=FULL)
    assert [(one.buffer, one.type) for one in emission.launches[0].arguments] == [
        ("x", "*fp8e4nv"), ("w", "*fp8e4nv"), ("x", "*u8"), ("y", "*fp32"),
    ]  # fmt: skip
    found, expected = run(kernel, plan, drawn(48, 48, 48, E4M3, E4M3), {}, interpreter, FULL)["y"]
    assert_near(found, expected, F32, 1e-5, absolute=1e-5)


def test_an_operand_that_is_one_for_all_k(interpreter: Runner) -> None:
    """It is 0 beyond the end of k all the same."""
    kernel, plan = matmul(33, 40, 50, E5M2, E5M2)
    (m,) = kernel.m
    kernel = replace(kernel, lhs=Load("x", (m.index, 0), E5M2))
    values = drawn(33, 40, 50, E5M2, E5M2)
    values["x"][2, 0] = np.inf
    for options in (FULL, SHORT):
        found, expected = run(kernel, plan, values, {}, interpreter, options)["y"]
        assert_near(found, expected, F32, 1e-2, absolute=1e-2)


# ---------------------------------------------------------------- what is chosen


def test_both_forms_race_each_other(interpreter: Runner) -> None:
    """As 8-bit floats and as f16, whose blocks of k are half as deep; all alternatives give what the default gives."""
    kernel, plan = matmul(130, 144, 256, E4M3, E4M3, turned="w")
    options = EmitOptions(bulk=232448, eights=0, processors=2)
    default = emit(kernel, plan, options=options).choice
    assert default is not None and default["EIGHTS"] == 1
    found = alternatives(kernel, default, options, {})
    assert {choice["EIGHTS"] for choice in found} == {choice["BULK"] for choice in found} == {0, 1} and len(found) <= MOST
    assert max(choice["BLOCK_K"] for choice in found if choice["EIGHTS"]) == 2 * max(c["BLOCK_K"] for c in found if not c["EIGHTS"])
    assert all(choice["BLOCK_K"] >= 32 for choice in found if choice["EIGHTS"]), "what a matrix unit takes of them"
    values = drawn(130, 144, 256, E4M3, E4M3)
    values["w"] = np.ascontiguousarray(values["w"].T)
    for choice in found[::7]:
        value, expected = run(kernel, plan, values, {}, interpreter, replace(options, choice=choice))["y"]
        assert_near(value, expected, F32, 1e-5, absolute=1e-4, what=choice.text())
        assert (emit(kernel, plan, options=replace(options, choice=choice)).unit == "f8e4m3fn") == bool(choice["EIGHTS"])


def test_prediction_has_both_rates() -> None:
    """Where multiplying is what takes long, 8-bit floats take half of the time of f16."""
    kernel, plan = matmul(8192, 8192, 8192, E4M3, E4M3, turned="w")
    target, options = get_target("nvidia-h200"), EmitOptions(eights=128)
    eight, half = (predicted(kernel, plan, chosen_plainly(128, 128, 64, form), options, target, {}) for form in (1, 0))
    assert half / eight == pytest.approx(1979 / 989, rel=0.01)


def test_the_largest_tile_is_for_units_that_need_no_second_sum() -> None:
    """Sums of few bits need registers of their own beside those of f32."""
    kernel, plan = matmul(8192, 8192, 8192, E4M3, E4M3, turned="w")
    sides = {}
    for most in (0, 128):
        choice = emit(kernel, plan, options=EmitOptions(bulk=232448, eights=most)).choice
        assert choice is not None
        sides[most] = choice["BLOCK_M"], choice["BLOCK_N"], choice["BLOCK_K"]
    assert sides == {0: (128, 256, 128), 128: (128, 128, 128)}


def test_windows_of_few_features_have_blocks_that_the_unit_takes() -> None:
    from coset.lowering.triton.tiling import Tiling, for_windows

    assert for_windows(Tiling(64, 64, 128, E4M3, 4), 48).k == 32 and for_windows(Tiling(64, 64, 64, F16, 4), 48).k == 16


def test_the_text() -> None:
    kernel, plan = matmul(128, 128, 512, E4M3, E5M2, turned="w")
    for most, said in ((0, "0"), (32, "32"), (64, "BLOCK_K"), (128, "BLOCK_K")):
        wider = emit(kernel, plan, options=EmitOptions(eights=most, choice=chosen(128, 128, 64, resident=1)))
        assert wider.unit == "f16" and "max_num_imprecise_acc" not in wider.source, "what a choice does not say"
        numbers = (*chosen(128, 128, 64, resident=1).numbers, ("EIGHTS", 1))
        source = emit(kernel, plan, options=EmitOptions(eights=most, choice=KernelChoice(numbers))).source
        assert f"            total = tl.dot(x, w, total, max_num_imprecise_acc={said})\n" in source
        assert "            w = w_tiles.load([column_start, start]).T\n" in source and "uint8" not in source
    source = emit(*matmul(128, 128, 80, E4M3, E5M2, turned="w"), options=FULL).source
    assert source.count("other=0.0)") == 2, "zeros fill k up"


# ---------------------------------------------------------------- ahead of time


@pytest.mark.parametrize("turned", ["w", "", "x", "xw"])
@pytest.mark.parametrize(("target", "most", "instruction"), [
    ("sm_90", 128, "wgmma.mma_async.sync.aligned.m64n128k32.f32.{0}.{1}"), ("sm_100", 0, "tcgen05.mma.cta_group::1.kind::f8f6f4"),
])  # fmt: skip
def test_products_compile_to_matrix_units_of_8_bits(
    target: str, most: int, instruction: str, turned: str, compiler: Compiler, record_property: Any
) -> None:
    """By copies and by pointers, in every order of memory; operands that lie along k go from memory to the unit past the registers."""
    for left, right in PAIRS[::2] if turned == "w" else PAIRS[:1]:
        for bulk in (232448, 0):
            kernel, plan = matmul(4096, 4096, 4096, left, right, turned=turned)
            options = EmitOptions(eights=most, bulk=bulk)
            emission = emit(kernel, plan, options=options)
            assert emission.choice is not None
            (compiled,) = compiler.run(kernel_source(kernel, plan, options=options), emission.launches, target, {})
            record_property(
                f"{left} {right} {bulk}", f"{emission.choice.text()}: {compiled.registers} registers, {compiled.shared} B shared"
            )
            assert compiled.spilled <= SPILLED and compiled.shared <= 232448
            assert instruction.format(left.name[2:6].rstrip("f"), right.name[2:6].rstrip("f")) in compiled.text
            assert "mma.sync" not in compiled.text and ("cp.async.bulk.tensor" in compiled.text) == bool(bulk)
            if turned == "w" and bulk and target == "sm_90":
                assert compiled.text.count("st.shared") <= 32, "of the results only: of four warps each thread has 128"


def test_hopper_does_not_sum_in_few_bits_where_that_is_not_allowed(compiler: Compiler) -> None:
    """A package for sm_100 that runs there: Triton multiplies f16 then."""
    kernel, plan = matmul(1024, 1024, 1024, E4M3, E4M3, turned="w")
    (compiled,) = compiler.run(kernel_source(kernel, plan, options=FULL), emit(kernel, plan, options=FULL).launches, "sm_90", {})
    assert ".e4m3.e4m3" not in compiled.text and "f32.f16.f16.f32" in compiled.text


def test_few_rows_are_multiplied_as_f16_by_the_compiler(compiler: Compiler) -> None:
    """A tile of fewer than 64 rows is none of a wgmma: conversions are the machine's, and sums full."""
    kernel, plan = matmul(32, 4096, 512, E4M3, E4M3, turned="w")
    (compiled,) = compiler.run(kernel_source(kernel, plan, options=SHORT), emit(kernel, plan, options=SHORT).launches, "sm_90", {})
    assert "cvt.rn.f16x2.e4m3x2" in compiled.text and "f32.f16.f16.f32" in compiled.text
