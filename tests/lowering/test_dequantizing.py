"""Products of what is stored in few bits with a scale for each block: one kernel, which multiplies what it has read and scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.dialects.hub.terms import broadcast, dot
from coset.ir.dims import symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import BF16, DTYPES, F16, F32, I32, DType, TensorType
from coset.lowering.kernels.kernel import Product
from coset.lowering.planning.plan import plan
from coset.lowering.planning.traffic import kernel_traffic
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source
from tests.lowering.triton_cases import assert_near, run

EACH = EmitOptions(rounding=Rounding.EACH)
STORED = ["i8", "u8", "i4", "u4", "i2", "u2", "f8e4m3fn", "f8e5m2", "f4e2m1fn"]
K, N, BLOCK = 64, 48, 16


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


def numbers(dtype: DType, shape: tuple[int, ...], draw: np.random.Generator) -> Any:
    """Elements that the type holds, small ones."""
    values = draw.normal(size=shape) * 1.5 if dtype.kind == "float" else draw.integers(0 if dtype.kind == "uint" else -2, 2, shape)
    return cast(values, dtype)


def spread(scales: Term, blocks: tuple[int, int]) -> Term:
    """A number for each block of rows and columns, for each element."""
    (rows, columns), (high, wide) = scales.tensor.dims, blocks
    return op("reshape", broadcast(scales, (rows, high, columns, wide), (0, 2)), shape=(int(rows) * high, int(columns) * wide))


def scaled(x: Term, wide: DType, scales: Term, blocks: tuple[int, int], zero: Term | None = None) -> Term:
    """(x - zero) * scale, both spread; zero points are taken from integers, as ONNX does."""
    if zero is not None:
        return op("multiply", op("convert", op("subtract", op("convert", x, dtype=I32), op("convert", spread(zero, blocks), dtype=I32)),
                                 dtype=wide), spread(scales, blocks))  # fmt: skip
    return op("multiply", op("convert", x, dtype=wide), spread(scales, blocks))


@pytest.mark.parametrize(("name", "zeros"), [*((name, False) for name in STORED), *((name, True) for name in STORED if name[0] in "iu")])
@pytest.mark.parametrize("blocks", [(BLOCK, 1), (BLOCK, BLOCK)])
def test_weights_are_scaled_where_they_are_read(name: str, blocks: tuple[int, int], zeros: bool, interpreter: Runner) -> None:
    dtype, draw = DTYPES[name], np.random.default_rng(0)
    few = (K // blocks[0], N // blocks[1])
    w, zero = constant(numbers(dtype, (K, N), draw)), constant(numbers(dtype, few, draw)) if zeros else None
    y = {}
    for wide in (F32, F16, BF16):
        x = input_term("x", TensorType(wide, (symbol("n"), K)))
        weights = scaled(w, wide, constant(cast(draw.uniform(0.5, 2, few), wide)), blocks, zero)
        program = Program((x,), (("y", dot(x, weights, lhs_contract=(1,), rhs_contract=(0,))),))
        made = plan(program, computes=can_emit)
        (kernel,) = made.kernels
        assert isinstance(kernel, Product), f"{name} as {wide}"
        feed = {"x": cast(draw.normal(size=(7, K)), wide)}
        memory = feed | {each.name: each.value.attribute("value").array() for each in made.buffers.values() if each.value is not None}
        found, near = run(kernel, made, memory, {"n": 7}, interpreter, EACH)["y"]
        assert_near(found, near, wide, 2e-5, absolute=1e-4)
        (expected,) = evaluate_program(program, feed)
        y[wide.name] = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max() / np.abs(expected.astype(np.float64)).max()
    assert y["f32"] < 1e-5 and y["f16"] < 2e-3 and y["bf16"] < 2e-2, y


def microscaled(name: str, rows: int, k: int, n: int) -> Program:
    """A product by elements of which 32 along the sum have one exponent of 8 bits."""
    dtype, draw, scale = DTYPES[name], np.random.default_rng(2), DTYPES["f8e8m0fnu"]
    powers = draw.integers(120, 134, (k // 32, n)).astype(np.uint8).view(scale.numpy)
    x = input_term("x", TensorType(BF16, (rows, k)))
    weights = scaled(constant(numbers(dtype, (k, n), draw)), BF16, op("convert", constant(powers), dtype=BF16), (32, 1))
    return Program((x,), (("y", dot(x, weights, lhs_contract=(1,), rhs_contract=(0,))),))


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_they_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    for rows in (1, 64):
        made = plan(microscaled("f4e2m1fn", rows, 512, 256), computes=can_emit)
        (kernel,) = made.kernels
        for compiled in compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {}):
            assert compiled.registers <= 256 and compiled.spilled == 0


@pytest.mark.parametrize("name", ["f4e2m1fn", "f8e4m3fn", "f8e5m2"])
def test_scales_are_powers_of_two(name: str, interpreter: Runner) -> None:
    """The formats of OCP's Microscaling specification 1.0."""
    dtype, draw = DTYPES[name], np.random.default_rng(4)
    program = microscaled(name, 9, K, N)
    made = plan(program, computes=can_emit)
    (kernel,) = made.kernels
    assert isinstance(kernel, Product)
    assert kernel_traffic(made, kernel, {}) == K * N * dtype.bits // 8 + K * N // 32 + 2 * 9 * (K + N)
    feed = {"x": cast(draw.normal(size=(9, K)), BF16)}
    memory = feed | {each.name: each.value.attribute("value").array() for each in made.buffers.values() if each.value is not None}
    found, near = run(kernel, made, memory, {}, interpreter, EACH)["y"]
    assert_near(found, near, BF16, 2e-5, absolute=1e-3)
    (expected,) = evaluate_program(program, feed)
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=2e-2, atol=2.0)


@pytest.mark.parametrize("name", ["f8e4m3fn", "f8e5m2", "i8"])
def test_both_sides_have_scales(name: str, interpreter: Runner) -> None:
    """Activations with a scale for each row and block of the sum, weights with one for each block of both dims."""
    dtype, draw = DTYPES[name], np.random.default_rng(1)
    x, s = input_term("x", TensorType(dtype, (5, K))), input_term("s", TensorType(F32, (5, K // BLOCK)))
    w, t = constant(numbers(dtype, (K, N), draw)), constant(draw.uniform(0.5, 2, (K // BLOCK, N // BLOCK)).astype(np.float32))
    y = dot(scaled(x, F32, s, (1, BLOCK)), scaled(w, F32, t, (BLOCK, BLOCK)), lhs_contract=(1,), rhs_contract=(0,))
    made = plan(Program((x, s), (("y", y),)), computes=can_emit)
    (kernel,) = made.kernels
    assert isinstance(kernel, Product)
    assert kernel_traffic(made, kernel, {}) == 5 * K + K * N + 4 * (5 * K // BLOCK + K * N // BLOCK**2 + 5 * N)
    feed = {"x": numbers(dtype, (5, K), draw), "s": draw.uniform(0.5, 2, (5, K // BLOCK)).astype(np.float32)}
    memory = feed | {each.name: each.value.attribute("value").array() for each in made.buffers.values() if each.value is not None}
    found, _ = run(kernel, made, memory, {}, interpreter, EACH)["y"]
    np.testing.assert_allclose(found, evaluate_program(Program((x, s), (("y", y),)), feed)[0], rtol=1e-5, atol=1e-3)
