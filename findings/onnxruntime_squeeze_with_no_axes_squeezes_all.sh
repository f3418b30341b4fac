#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), onnx 1.23.2: Squeeze (opset 13 and later) whose operand `axes` is given and empty removes all dims of 1.
#
# float32[1, 3, 1] with axes = int64[0] becomes float32[3]. onnx.reference leaves it float32[1, 3, 1], as numpy.squeeze(x, axis=()) and
# torch.squeeze(x, dim=()) do. The standard says: "If `axes` is not provided, all the single dimensions will be removed"; here it is
# provided. The rank of a result so depends on the number of elements of a tensor that may be computed at run time.
#
# Why the quick guess misses: an empty list of axes reads as "squeeze nothing", and does that in NumPy, in torch and in ONNX's reference;
# ReduceSum, beside it in the standard, needs an attribute (noop_with_empty_axes) to say which one is meant, Squeeze has none.
#
# Output seen:
#   ONNX Runtime   (3,)
#   onnx.reference (1, 3, 1)
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
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 1])
axes = helper.make_tensor_value_info("axes", TensorProto.INT64, [0])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
graph = helper.make_graph([helper.make_node("Squeeze", ["x", "axes"], ["y"])], "g", [x, axes], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
feed = {"x": np.zeros((1, 3, 1), np.float32), "axes": np.zeros(0, np.int64)}
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
runtime = session.run(None, feed)[0].shape
reference = ReferenceEvaluator(model).run(None, feed)[0].shape
print(f"onnxruntime {onnxruntime.__version__}")
print(f"ONNX Runtime   {runtime}")
print(f"onnx.reference {reference}")
sys.exit((runtime, reference) != ((3,), (1, 3, 1)))
PY
