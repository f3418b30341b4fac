#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), onnx 1.23.2: from level EXTENDED on, ArgMax of a DequantizeLinear with a negative scale is the place of the least.
#
# DequantizeLinear of int8 [1, 5, 3] with scale -0.5 and a zero point of 0 is [-0.5, -2.5, -1.5]: ArgMax is 0. So say onnx.reference and the levels DISABLE and BASIC.
# EXTENDED and ALL move the ArgMax in front of the DequantizeLinear, as if that kept the order, and answer 1. Nothing warns.
#
# Why the quick guess misses: quantizers write positive scales, for which the swap is right, and no version of the standard asks for one;
# the model is valid, and the result has the right type and shape. Without the operand for the zero point nothing is moved.
#
# Output seen:
#   disabled 0
#   basic    0
#   extended 1
#   all      1
#   onnx.reference 0
# Exit code 0 if this is still so, 1 if it changed.
set -euo pipefail
export ORT_DISABLE_TELEMETRY=1 PYTHONDONTWRITEBYTECODE=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$folder" onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
PYTHONPATH="$folder" python3 - <<'PY'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
nodes = [
    helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["x"]),
    helper.make_node("ArgMax", ["x"], ["y"], axis=0, keepdims=0),
]
q = helper.make_tensor_value_info("q", TensorProto.INT8, [3])
y = helper.make_tensor_value_info("y", TensorProto.INT64, [])
graph = helper.make_graph(nodes, "g", [q], [y], [
    numpy_helper.from_array(np.float32(-0.5), "scale"), numpy_helper.from_array(np.int8(0), "zero"),
])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
feed = {"q": np.int8([1, 5, 3])}
found = []
for name, level in (("disabled", "DISABLE_ALL"), ("basic", "ENABLE_BASIC"), ("extended", "ENABLE_EXTENDED"), ("all", "ENABLE_ALL")):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found.append(int(session.run(None, feed)[0]))
    print(f"{name:8s}", found[-1])
reference = int(ReferenceEvaluator(model).run(None, feed)[0])
print("onnx.reference", reference)
sys.exit((found, reference) != ([0, 0, 1, 1], 0))
PY
