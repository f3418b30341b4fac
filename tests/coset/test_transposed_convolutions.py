"""Transposed convolutions: what they are written as again, and what folds into them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import coset
from coset.backends.onnxruntime import Session
from coset.frontends.onnx.model import import_model
from coset.lowering.onnx.model import lower

RNG = np.random.default_rng(0)
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides": {"strides": [2, 3]},
    "pads": {"strides": [2, 2], "pads": [1, 0, 2, 1]},
    "output padding": {"strides": [3, 2], "pads": [1, 1, 1, 1], "output_padding": [2, 1]},
    "output padding without pads": {"strides": [3, 3], "output_padding": [1, 2]},
    "dilations": {"dilations": [2, 1], "pads": [1, 1, 0, 0]},
    "groups": {"group": 2, "strides": [2, 2]},
    "a size": {"strides": [3, 3], "output_shape": [20, 22]},
    "same": {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
}


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def model(attributes: dict[str, Any], *behind: Any, bias: bool = True, **constants: Any) -> Any:
    """A transposed convolution from `x` to `t`, or to `y` where nothing is `behind`."""
    group = attributes.get("group", 1)
    given = {"w": numbers(4, 6 // group, 3, 3), **({"b": numbers(6)} if bias else {}), **constants}
    operands = ["x", "w", *(["b"] if bias else [])]
    nodes = [helper.make_node("ConvTranspose", operands, ["t" if behind else "y"], kernel_shape=[3, 3], **attributes), *behind]
    inputs, outputs = (helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", ["n", 4, 7, 8]), ("y", None)))
    initializers = [numpy_helper.from_array(value, name) for name, value in given.items()]
    graph = helper.make_graph(nodes, "g", [inputs], [outputs], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_one_is_written_as_one(form: str, bias: bool) -> None:
    given = model(FORMS[form], bias=bias)
    program = import_model(given)
    assert [term.op.name for _, term in program.outputs] == ["onnx.ConvTranspose"]
    written = lower(program)
    assert [node.op_type for node in written.graph.node] == ["ConvTranspose"]
    x = numbers(2, 4, 7, 8)
    one, other = (Session(each.SerializeToString()).run({"x": x})["y"] for each in (given, written))
    np.testing.assert_array_equal(one, other)


NORMALIZATION = {name: np.abs(numbers(6)) + np.float32(0.5) for name in ("scale", "shift", "mean", "variance")}
BEHIND: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "a normalization": ([helper.make_node("BatchNormalization", ["t", "scale", "shift", "mean", "variance"], ["y"])], NORMALIZATION),
    "a sum": ([helper.make_node("Add", ["t", "c"], ["y"])], {"c": numbers(6, 1, 1)}),
    "a product": ([helper.make_node("Mul", ["c", "t"], ["y"])], {"c": numbers(6, 1, 1)}),
    "a number": ([helper.make_node("Mul", ["t", "c"], ["y"])], {"c": np.float32(3)}),
    "a chain": (
        [helper.make_node("Mul", ["t", "c"], ["u"]), helper.make_node("Sub", ["u", "d"], ["y"])],
        {"c": numbers(6, 1, 1), "d": np.float32(2)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("behind", BEHIND)
def test_what_is_behind_one_goes_into_it(behind: str, bias: bool) -> None:
    nodes, constants = BEHIND[behind]
    optimized = coset.optimize(model(FORMS["output padding"], *nodes, bias=bias, **constants))
    assert optimized.report["nodes"]["after"] == 1 and optimized.report["check"]["ok"]


def test_groups_keep_what_differs_between_them() -> None:
    """Only a number goes into a convolution of several groups; the value is right all the same."""
    nodes, constants = BEHIND["a normalization"]
    optimized = coset.optimize(model(FORMS["groups"], *nodes, **constants))
    assert optimized.report["check"]["ok"]
    nodes, constants = BEHIND["a number"]
    assert coset.optimize(model(FORMS["groups"], *nodes, **constants)).report["nodes"]["after"] == 1
