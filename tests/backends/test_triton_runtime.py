"""The child processes of the Triton runtime: guard zones, errors, and kernels compiled ahead of time for devices that are not here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, OnDevice, Runner
from coset.ir.dims import Dim, symbol
from coset.ir.errors import CosetError
from coset.ir.types import BF16, DTYPES, F16, F32, F64
from coset.lowering.kernels.kernel import Plan
from coset.lowering.planning.plan import plan as planned
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import Argument
from coset.lowering.triton.source import EmitOptions, Launch, Rounding, can_emit, emit, kernel_source
from tests.lowering import test_triton_attention, test_triton_pointwise, test_triton_product, test_triton_rows
from tests.lowering.attention_cases import Backward, Case
from tests.lowering.test_triton_pointwise import chain, transposed
from tests.lowering.test_triton_product import matmul
from tests.lowering.test_triton_rows import layer_norm, softmax
from tests.lowering.triton_cases import assert_same, run

pytest.importorskip("triton", reason="Triton is not installed")

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef f(x_ptr, BLOCK: tl.constexpr):\n"
ONE = Launch("f", (Argument("x_ptr", "*fp32", "x"),), (1,), (("BLOCK", 8),))
ATTENTIONS = (
    Case((8, 16), (), 2048, 2048, 64, 64, F16, "none", 0.125),
    Case((8, 16), (), 2048, 2048, 128, 128, F16, "causal", 0.125),
    Case((8, 8), (4,), 1, 8192, 128, 128, BF16, "none", 0.125),
    Case((2, 4), (), 1024, 1024, 256, 256, F16, "boolean", 0.125),
    Case((2, 4), (), 1024, 1024, 128, 128, F32, "additive", 0.125),
    Case((2, 4), (), 1024, 1024, 64, 64, F64, "none", 0.125),
    Case((symbol("B"), 12), (), symbol("L"), symbol("S"), 80, 80, F16, "causal", 0.125),
)
ARRAYS = {"x": np.arange(8, dtype=np.float32)}


def test_a_store_outside_is_found(interpreter: Runner) -> None:
    store = "    tl.store(x_ptr + tl.arange(0, BLOCK) + {}, 1.0)\n"
    inside = interpreter.run(HEAD + store.format(0), (ONE,), ARRAYS, {})
    assert inside["x"].tolist() == [1.0] * 8
    for shift in (1, -1, 500):
        with pytest.raises(CosetError, match="a store went outside"):
            interpreter.run(HEAD + store.format(shift), (ONE,), ARRAYS, {})


def test_a_load_outside_is_poison(interpreter: Runner) -> None:
    found = interpreter.run(HEAD + "    i = tl.arange(0, BLOCK)\n    tl.store(x_ptr + i, tl.load(x_ptr + i + 4))\n", (ONE,), ARRAYS, {})
    assert found["x"][:4].tolist() == [4, 5, 6, 7] and np.all(found["x"][4:] < -1e-15)


def test_the_device_s_process_has_guard_zones_too() -> None:
    """Here over torch's memory on the CPU, with the interpreter in the device's place."""
    pytest.importorskip("torch")
    store = "    tl.store(x_ptr + tl.arange(0, BLOCK) + {}, 1.0)\n"
    with OnDevice("cpu") as device:
        assert device.run(HEAD + store.format(0), (ONE,), ARRAYS, {})["x"].tolist() == [1.0] * 8
        with pytest.raises(CosetError, match="a store went outside"):
            device.run(HEAD + store.format(1), (ONE,), ARRAYS, {})
        kernel, buffers = chain("bf16", 300)
        plan = Plan(buffers, (kernel,), (), ())
        values = {key: np.linspace(-3, 3, 300).astype(DTYPES["bf16"].numpy) for key in "xy"}
        found, expected = run(kernel, plan, values, {}, device, EmitOptions(rounding=Rounding.EACH))["z"]
        assert_same(found, expected, BF16)


def test_text_that_does_not_run_is_an_error(interpreter: Runner) -> None:
    with pytest.raises(CosetError, match="nothing_such"):
        interpreter.run(HEAD + "    nothing_such(x_ptr)\n", (ONE,), ARRAYS, {})
    with pytest.raises(CosetError, match="SyntaxError"):
        interpreter.run("def", (ONE,), ARRAYS, {})


def test_an_empty_grid_is_not_launched(interpreter: Runner) -> None:
    launch = Launch("f", ONE.arguments, (0,), ONE.constexprs)
    found = interpreter.run(HEAD + "    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)\n", (launch,), ARRAYS, {})
    assert found["x"].tolist() == ARRAYS["x"].tolist()


def test_the_process_that_asks_stays_as_it_was(interpreter: Runner) -> None:
    import os

    interpreter.run(HEAD + "    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)\n", (ONE,), ARRAYS, {})
    assert "TRITON_INTERPRET" not in os.environ


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_chain_compiles_ahead_of_time(target: str, compiler: Compiler) -> None:
    kernel, buffers = chain("bf16", 100000)
    plan = Plan(buffers, (kernel,), (), ())
    (compiled,) = compiler.run(kernel_source(kernel, plan), emit(kernel, plan).launches, target, {})
    assert compiled.registers <= 64 and compiled.spilled == 0 and compiled.shared == 0
    if target != "gfx942":
        assert "ld.global" in compiled.text


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_transpose_is_turned_in_shared_memory(target: str, compiler: Compiler) -> None:
    kernel, plan = transposed(4096, 4096)
    (compiled,) = compiler.run(kernel_source(kernel, plan), emit(kernel, plan).launches, target, {})
    assert compiled.shared > 0 and compiled.spilled == 0
    if target != "gfx942":
        assert "ld.global.v4" in compiled.text and "st.global.v4" in compiled.text


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("columns", [1000, 50000, symbol("n")])
def test_rows_compile_ahead_of_time(target: str, columns: Dim, compiler: Compiler) -> None:
    for kernel, plan in (softmax(4096, columns, BF16), *([layer_norm(symbol("m"), columns)] if isinstance(columns, int) else [])):
        (compiled,) = compiler.run(kernel_source(kernel, plan), emit(kernel, plan).launches, target, {})
        assert compiled.spilled == 0 and compiled.registers <= 128


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "f64", "i8", "i32", "f8e4m3fn"])
def test_products_compile_ahead_of_time(target: str, name: str, compiler: Compiler) -> None:
    for m, n, k in ((4096, 4096, 4096), (symbol("m"), 1000, 96)):
        kernel, plan = matmul(m, n, k, DTYPES[name])
        (compiled,) = compiler.run(kernel_source(kernel, plan), emit(kernel, plan).launches, target, {})
        assert compiled.spilled <= 16 and compiled.shared <= (64 if target == "gfx942" else 160) * 1024
        if target == "sm_90" and name in ("f16", "bf16", "i8"):
            assert "wgmma" in compiled.text


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("case", ATTENTIONS)
def test_attention_compiles_ahead_of_time(target: str, case: Case, compiler: Compiler) -> None:
    made = planned(case.program(), computes=can_emit)
    (kernel,) = made.kernels
    for compiled in compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {}):
        assert compiled.spilled <= (128 if target == "gfx942" else 0) and compiled.shared <= (64 if target == "gfx942" else 160) * 1024
    if target == "sm_90" and case.dtype.bits == 16 and case.length != 1:
        assert "wgmma" in compiled.text


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("dtype, width", [("f16", 128), ("f32", 64)])
def test_gradients_of_attention_compile_ahead_of_time(target: str, dtype: str, width: int, compiler: Compiler) -> None:
    case = Case((8,), (4,), 2048, 2048, width, width, DTYPES[dtype], "causal", 0.125)
    made = planned(Backward(case, alone=True).program(), computes=can_emit)
    assert len(made.kernels) == 3
    for kernel in made.kernels:
        (compiled,) = compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {})
        assert compiled.spilled <= 64 and compiled.shared <= (64 if target == "gfx942" else 160) * 1024
        if target == "sm_90" and dtype == "f16":
            assert "wgmma" in compiled.text


@pytest.mark.slow
@pytest.mark.parametrize("family", [test_triton_pointwise, test_triton_rows, test_triton_product, test_triton_attention])
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_drawn_kernels_compile_ahead_of_time(target: str, family: Any, compiler: Compiler) -> None:
    for seed in range(0, 220, 9 if family in (test_triton_pointwise, test_triton_rows) else 27):
        drawing, kernel = family.drawn(seed)
        plan = Plan(drawing.buffers, (kernel,), (), ())
        compiler.run(kernel_source(kernel, plan), emit(kernel, plan).launches, target, {})


def test_the_compiler_s_refusal_is_an_error(compiler: Compiler) -> None:
    with pytest.raises(CosetError, match="nothing_such"):
        compiler.run(HEAD + "    nothing_such(x_ptr)\n", (ONE,), "sm_90", {})


def test_more_tensor_memory_than_there_is_is_refused(compiler: Compiler) -> None:
    """The compiler writes a trap where sums need more columns; Triton says so when it loads it on a device only."""
    made = planned(Case((4, 12), (), 1024, 1024, 256, 256, F32, "none", 0.125).program(), computes=can_emit)
    (kernel,) = made.kernels
    choice = KernelChoice((("BLOCK_M", 64), ("BLOCK_N", 16), ("SPLITS", 1), ("BULK", 1)), 4, 2)
    options = EmitOptions(bf16x6=True, bulk=232448, choice=choice)
    launches, source = emit(kernel, made, options=options).launches, kernel_source(kernel, made, options=options)
    with pytest.raises(CosetError, match="columns of tensor memory, and there are 512"):
        compiler.run(source, launches, "sm_100", {})
    (compiled,) = compiler.run(source, launches, "sm_90", {})
    assert compiled.registers > 32
