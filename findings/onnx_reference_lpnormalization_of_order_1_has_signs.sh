#!/usr/bin/env bash
# onnx 1.23.2, ONNX Runtime 1.32.0: onnx.reference divides by the sum of x, not of |x|, in LpNormalization with p = 1.
#
# [-3, 1] over its 1-norm (4) is [-0.75, 0.25]: so says ONNX Runtime. onnx.reference gives [1.5, -0.5]: the signs are turned, and for
# [1, -1] there is a division by 0. With p = 2 both agree, and the node cases of the standard with p = 1 have no negative number.
#
# Why the quick guess misses: numpy.linalg.norm(x, ord=1) and torch.nn.functional.normalize(p=1) take magnitudes, and "the 1-norm" does;
# who looks for the fault on the side of the runtime has the wrong one.
#
# Output seen:
#   ONNX Runtime   [-0.75, 0.25]
#   onnx.reference [1.5, -0.5]
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

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
graph = helper.make_graph([helper.make_node("LpNormalization", ["x"], ["y"], p=1)], "g", [x], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
feed = {"x": np.float32([-3, 1])}
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
runtime, reference = session.run(None, feed)[0].tolist(), ReferenceEvaluator(model).run(None, feed)[0].tolist()
print(f"onnxruntime {onnxruntime.__version__}")
print(f"ONNX Runtime   {runtime}")
print(f"onnx.reference {reference}")
sys.exit((runtime, reference) != ([-0.75, 0.25], [1.5, -0.5]))
PY
