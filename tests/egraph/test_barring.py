"""Rules that except infinities and NaN, and rules about weights, do not fire where a constant has some in it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset
from coset.ir.constants import constant_of
from coset.ir.stored import is_finite

GENERATOR = np.random.default_rng(0)


def _names(mask: np.ndarray, *, between: str = "Identity") -> list[str]:
    """The rules that are used on a product of three behind `between` of an input and a mask."""
    shapes = {"a": (8, 8), "b": (8, 8)}
    tensors = [numpy_helper.from_array(GENERATOR.normal(size=shape).astype(np.float32), name) for name, shape in shapes.items()]
    tensors.append(numpy_helper.from_array(mask.astype(np.float32), "m"))
    nodes = [
        helper.make_node("Add", ["x", "m"], ["y"]),
        helper.make_node(between, ["y"], ["s"]),
        helper.make_node("MatMul", ["s", "a"], ["z"]),
        helper.make_node("MatMul", ["z", "b"], ["w"]),
    ]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 8])] for name in "xw"]
    model = helper.make_model(helper.make_graph(nodes, "g", *ends, tensors), opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    return [rule["name"] for rule in coset.optimize(model).report["rules"]]


def _mask(closed: float) -> np.ndarray:
    return np.where(np.arange(8) < 7, 0.5, closed)


def test_products_are_taken_in_another_order_behind_finite_numbers() -> None:
    assert "matmul_assoc" in _names(_mask(1.0))


@pytest.mark.parametrize("closed", [-np.inf, np.inf, np.nan])
def test_not_where_an_infinite_constant_reaches_them(closed: float) -> None:
    assert "matmul_assoc" not in _names(_mask(closed))


def test_a_softmax_ends_its_reach() -> None:
    assert "matmul_assoc" in _names(_mask(-np.inf), between="Softmax")


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_large_finite_numbers_are_finite(dtype: str) -> None:
    largest = np.full(3000, np.finfo(dtype).max, dtype)
    assert is_finite(constant_of(largest))
    largest[1234] = np.nan
    assert not is_finite(constant_of(largest))
