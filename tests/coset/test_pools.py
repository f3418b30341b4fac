"""Pools: what they are written as again, and padding that becomes theirs."""

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
PADS = np.array([0, 0, 1, 2, 0, 0, 2, 1])
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides": {"strides": [2, 3]},
    "pads": {"strides": [2, 2], "pads": [1, 0, 2, 1]},
    "same": {"auto_pad": "SAME_LOWER"},
    "same with strides": {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    "ceiled": {"strides": [3, 3], "ceil_mode": 1},
}
OWN: dict[str, dict[str, dict[str, Any]]] = {
    "MaxPool": {"dilations": {"dilations": [2, 1]}},
    "AveragePool": {"counted": {"pads": [1, 1, 1, 1], "count_include_pad": 1}, "not counted": {"pads": [2, 2, 2, 2]}},
}
ALL = [(op, attributes) for op, own in OWN.items() for attributes in (FORMS | own).values()]


def model(nodes: list[Any], opset: int = 19, **constants: Any) -> Any:
    inputs, outputs = (helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", ["n", 3, 9, 10]), ("y", None)))
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", [inputs], [outputs], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def pool(op: str, attributes: dict[str, Any], operand: str = "x") -> Any:
    return helper.make_node(op, [operand], ["y"], kernel_shape=[3, 3], **attributes)


def numbers() -> Any:
    return RNG.standard_normal((2, 3, 9, 10)).astype(np.float32)


@pytest.mark.parametrize(("op", "attributes"), ALL)
def test_one_is_written_as_one(op: str, attributes: dict[str, Any]) -> None:
    given = model([pool(op, attributes)])
    written = lower(import_model(given))
    assert [node.op_type for node in written.graph.node] == [op]
    x = numbers()
    one, other = (Session(each.SerializeToString()).run({"x": x})["y"] for each in (given, written))
    np.testing.assert_array_equal(one, other)


PADDED: dict[str, tuple[str, list[Any], float | None, int]] = {
    # a pool, what is in front of the padding, the number that it has, and how many nodes are left
    "zeros in an average": ("AveragePool", [], 0.0, 1),
    "a number in an average": ("AveragePool", [], 1.0, 2),
    "the least number in a maximum": ("MaxPool", [], -np.inf, 1),
    "zeros in a maximum": ("MaxPool", [], 0.0, 2),
    "zeros in a maximum of rectified numbers": ("MaxPool", ["Relu"], 0.0, 2),
    "zeros in a maximum of squares": ("MaxPool", ["Abs"], None, 2),
}


@pytest.mark.parametrize("name", PADDED)
def test_padding_becomes_the_pool_s_where_it_is_the_same(name: str) -> None:
    op, in_front, number, nodes = PADDED[name]
    before = [helper.make_node(each, ["x"], ["p"]) for each in in_front]
    constants = {"pads": PADS} | ({} if number is None else {"number": np.float32(number)})
    padding = helper.make_node("Pad", ["p" if in_front else "x", *constants], ["q"])
    optimized = coset.optimize(model([*before, padding, pool(op, {"strides": [2, 2]}, "q")], **constants))
    assert optimized.report["nodes"]["after"] == nodes and optimized.report["check"]["ok"]


def test_padding_as_wide_as_the_windows_stays() -> None:
    """A window of padding alone has a value, and a pool of ONNX none."""
    constants = {"pads": np.array([0, 0, 3, 3, 0, 0, 3, 3]), "number": np.float32(0)}
    padding = helper.make_node("Pad", ["p", *constants], ["q"])
    given = model([helper.make_node("Relu", ["x"], ["p"]), padding, pool("MaxPool", {}, "q")], **constants)
    assert coset.optimize(given).report["nodes"]["after"] == 3
