"""What has no value at build time stays a node: whoever runs the program computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset

CASES: dict[str, tuple[list[Any], list[np.ndarray[Any, Any]], int, list[str]]] = {
    "text": ([helper.make_node("Cast", ["a"], ["y"], to=TensorProto.STRING)], [np.float32([1.5])], TensorProto.STRING, ["Cast"]),
    "what feeds it is computed": (
        [helper.make_node("Add", ["a", "a"], ["b"]), helper.make_node("Cast", ["b"], ["y"], to=TensorProto.STRING)],
        [np.float32([1.5])], TensorProto.STRING, ["Cast"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_constant_into_a_node_without_a_value_stays(name: str, tmp_path: Any) -> None:
    nodes, constants, kind, left = CASES[name]
    graph = helper.make_graph(
        [*nodes, helper.make_node("Relu", ["x"], ["z"])], "g", [helper.make_tensor_value_info("x", 1, [2])],
        [helper.make_tensor_value_info("y", kind, constants[0].shape), helper.make_tensor_value_info("z", 1, [2])],
        [numpy_helper.from_array(constants[0], "a")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    optimized = coset.optimize(model)
    optimized.save(tmp_path / "m.onnx")
    assert sorted(node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node) == sorted([*left, "Relu"])
    feed = {"x": np.float32([1, -1])}
    before, after = (onnxruntime.InferenceSession(m).run(None, feed) for m in (model.SerializeToString(), str(tmp_path / "m.onnx")))
    assert np.array_equal(before[0], after[0])
