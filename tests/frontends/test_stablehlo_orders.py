"""Total order of floats: JAX's comparators become a direction, and a direction is printed as such a comparator."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("torch_mlir")

import coset.dialects
from coset.dialects.hub.region_terms import comparator, direction_of, one_zero_one_nan, total_order
from coset.dialects.hub.scattering import ranks
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.evaluate import evaluate
from coset.ir.program import Program
from coset.ir.term import constant, input_term, make
from coset.ir.types import DTYPES, DType, TensorType, dtype_of
from coset.lowering.stablehlo.module import print_stablehlo

assert coset.dialects
KEYS = [0.0, -0.0, 1.0, np.nan, -np.inf, np.inf, -1.0, -np.nan]
JAX = """
func.func @main(%x: tensor<8xf32>, %i: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.compare EQ, %a, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %zero, %a : tensor<i1>, tensor<f32>
    %3 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %4 = stablehlo.select %3, %nan, %2 : tensor<i1>, tensor<f32>
    %5 = stablehlo.compare EQ, %b, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %6 = stablehlo.select %5, %zero, %b : tensor<i1>, tensor<f32>
    %7 = stablehlo.compare NE, %b, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = stablehlo.select %7, %nan, %6 : tensor<i1>, tensor<f32>
    %9 = stablehlo.compare DIRECTION, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %9 : tensor<i1>
  }) : (tensor<8xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xi32>
}
"""


def values(program: Program, *arrays: Any) -> list[Any]:
    inputs = {term.attribute("name"): array for term, array in zip(program.inputs, arrays, strict=True)}
    return evaluate([term for _, term in program.outputs], inputs)


@pytest.mark.parametrize("direction", ["LT", "GT", "LE", "GE"])
def test_a_comparator_of_jax_is_a_direction(direction: str) -> None:
    program = import_stablehlo(JAX.replace("DIRECTION", direction))
    (sort,) = {term for term in program.terms() if term.op.name == "stablehlo.sort"}
    assert (sort.attribute("direction"), sort.attribute("total"), sort.regions) == (direction, False, ())
    again = import_stablehlo(print_stablehlo(program))
    assert again.roots == program.roots


def test_a_direction_orders_as_the_comparator_does() -> None:
    keys, places = np.array(KEYS, np.float32), np.arange(8, dtype=np.int32)
    x, i = constant(keys), constant(places)
    dtypes = [DTYPES["f32"], DTYPES["i32"]]
    for direction in ("LT", "GT", "LE", "GE"):
        payload = comparator(direction, dtypes)
        assert direction_of(payload) == direction
        by_word = make("stablehlo.sort", (x, i), {"dimension": 0, "direction": direction})
        by_region = make("stablehlo.sort", (x, i), {"dimension": 0, "direction": "region"}, (payload,))
        np.testing.assert_array_equal(*(found[1] for found in evaluate([by_word, by_region], {})))


FORMATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn]


@pytest.mark.parametrize("format", FORMATS)
def test_total_order_is_an_order_of_integers(format: Any) -> None:
    keys = np.array(KEYS).astype(format)
    (found,) = evaluate([total_order(constant(keys))], {})
    wide = keys.astype(np.float32) if keys.dtype.itemsize < 4 else keys
    np.testing.assert_array_equal(np.argsort(found, kind="stable"), np.argsort(ranks(wide), kind="stable"))
    (settled,) = evaluate([total_order(one_zero_one_nan(constant(keys)))], {})
    assert settled[0] == settled[1] and settled[3] == settled[7] == settled.max()


@pytest.mark.parametrize("name", ["f64", "f16", "bf16", "f8e5m2"])
def test_every_float_is_printed_with_its_comparator(name: str) -> None:
    dtype: DType = DTYPES[name]
    x = input_term("x", TensorType(dtype, (8,)))
    program = Program((x,), (("y", make("stablehlo.sort", (x,), {"dimension": 0, "direction": "GT"})),))
    again = import_stablehlo(print_stablehlo(program))
    assert again.roots == program.roots
    keys = np.array(KEYS).astype(dtype.numpy)
    assert dtype_of(values(again, keys)[0].dtype) is dtype


def test_a_comparison_in_total_order_is_one_of_integers() -> None:
    program = import_stablehlo("""
        func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xi1> {
          %0 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
          return %0 : tensor<8xi1>
        }""")
    x = np.array(KEYS, np.float32)
    y = np.roll(x, 3)
    np.testing.assert_array_equal(values(program, x, y)[0], ranks(x) < ranks(y))
