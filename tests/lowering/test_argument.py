"""argmax and argmin as exporters of StableHLO write them become two folds of one kernel, with the values that the payload has."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.evaluate import evaluate_program
from coset.lowering.kernels.kernel import Rows
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import can_emit
from tests.lowering import plan_numpy

TEXT = """
func.func public @main(%x: tensor<{shape}x{type}>) -> (tensor<{kept}x{type}>, tensor<{kept}xi32>) {{
  %i = stablehlo.iota dim = {axis} : tensor<{shape}xi32>
  %v = stablehlo.constant dense<{start}> : tensor<{type}>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %v), (%i init: %c) across dimensions = [{axis}] : (tensor<{shape}x{type}>, tensor<{shape}xi32>, tensor<{type}>, tensor<i32>) -> (tensor<{kept}x{type}>, tensor<{kept}xi32>)
   reducer(%a: tensor<{type}>, %b: tensor<{type}>) (%ai: tensor<i32>, %bi: tensor<i32>) {{
    %0 = stablehlo.compare {better}, %a, %b : (tensor<{type}>, tensor<{type}>) -> tensor<i1>
    %1 = stablehlo.compare NE, %a, %a : (tensor<{type}>, tensor<{type}>) -> tensor<i1>
    %2 = stablehlo.or %0, %1 : tensor<i1>
    %3 = stablehlo.compare EQ, %a, %b : (tensor<{type}>, tensor<{type}>) -> tensor<i1>
    %4 = stablehlo.compare {lower}, %ai, %bi : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %2, %5 : tensor<i1>
    %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<{type}>
    %8 = stablehlo.select %6, %ai, %bi : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<{type}>, tensor<i32>
  }}
  return %r#0, %r#1 : tensor<{kept}x{type}>, tensor<{kept}xi32>
}}
"""  # noqa: E501
STARTS = {("GT", "f32"): "0xFF800000", ("LT", "f32"): "0x7F800000", ("GT", "i32"): "-2147483648", ("LT", "i32"): "2147483647"}


def text(better: str, type: str, *, axis: int = 1, lower: str = "LT") -> str:
    return TEXT.format(shape="5x9", kept="5" if axis else "9", axis=axis, type=type, better=better, lower=lower, start=STARTS[better, type])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("better, type", STARTS)
def test_the_place_of_an_extreme_is_one_kernel(better: str, type: str, axis: int) -> None:
    pytest.importorskip("torch_mlir")
    program = import_stablehlo(text(better, type, axis=axis))
    made = plan(program, computes=can_emit)
    (kernel,) = made.kernels
    assert isinstance(kernel, Rows) and len(kernel.folds) == 2
    draw = np.random.default_rng(5)
    for _ in range(20):
        x = draw.integers(-2, 3, (5, 9)).astype(np.float32 if type == "f32" else np.int32)
        if type == "f32":
            x[draw.random((5, 9)) < 0.1] = draw.choice([np.nan, np.inf, -np.inf, -0.0])
            x[2] = -np.inf if better == "GT" else np.inf
        name = program.inputs[0].attribute("name")
        found, expected = plan_numpy.run(made, {name: x}), evaluate_program(program, {name: x})
        for (output, _), value in zip(program.outputs, expected, strict=True):
            np.testing.assert_array_equal(found[output], value)


def test_a_payload_that_means_something_else_stays() -> None:
    """The last place of equal elements."""
    pytest.importorskip("torch_mlir")
    made = plan(import_stablehlo(text("GT", "f32", lower="GT")), computes=can_emit)
    assert "Library" in {type(kernel).__name__ for kernel in made.kernels}
