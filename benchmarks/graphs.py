"""Write ONNX graphs in few words."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20


class Writer:
    """A graph being written: each method adds nodes and returns the name of the value made."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, *shape: int) -> str:
        """Declare a float input."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def constant(self, value: np.ndarray | float | list[int]) -> str:
        """Add a constant: floats as f32, integers as i64."""
        array = np.asarray(value)
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array.astype(np.int64 if array.dtype.kind == "i" else np.float32), name))
        return name

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result."""
        name = f"{op_type.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def matmul(self, *factors: str) -> str:
        """Multiply from left to right."""
        product = factors[0]
        for factor in factors[1:]:
            product = self.op("MatMul", product, factor)
        return product

    def transpose(self, value: str, *perm: int) -> str:
        """Permute axes."""
        return self.op("Transpose", value, perm=list(perm))

    def layer_norm(self, value: str, width: int) -> str:
        """Normalize the last axis."""
        return self.op("LayerNormalization", value, self.constant(np.ones(width)), self.constant(np.zeros(width)), axis=-1, epsilon=1e-5)

    def heads(self, value: str, length: int, heads: int, width: int) -> str:
        """Split [1, length, heads * width] into [1, heads, length, width]."""
        return self.transpose(self.op("Reshape", value, self.constant([1, length, heads, width])), 0, 2, 1, 3)

    def model(self, *outputs: str) -> onnx.ModelProto:
        """Return the finished model, types of results inferred."""
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "workload", self.inputs, results, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        kinds = {value.name: value for value in [*inferred.graph.value_info, *inferred.graph.output]}
        del model.graph.output[:]
        model.graph.output.extend(kinds[name] for name in outputs)
        onnx.checker.check_model(model)
        return model
