#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), onnx 1.23.2: ReduceLogSumExp of float32 [1000, 1000] is 1000.6932 in a model of opset 13 or 18, and inf in
# the same model at opset 28.
#
# Raising the version of a model, with no other change, turns finite results into infinities from about 89 on.
# onnx.reference gives 1000.6932 at all of them.
#
# Why the quick guess misses: the op exists to subtract the maximum first, its text did not change, and the kernels of older versions do
# subtract it; one expects a newer version to be at least as stable.
#
# Output seen:
#   opset 13: 1000.6931762695312
#   opset 18: 1000.6931762695312
#   opset 28: inf
# Exit code 0 if this is still so, 1 if it changed.
set -euo pipefail
export ORT_DISABLE_TELEMETRY=1 PYTHONDONTWRITEBYTECODE=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$folder" onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
PYTHONPATH="$folder" python3 - <<'PY'
import math
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def run(opset):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("ReduceLogSumExp", ["x"], ["y"], keepdims=0)], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return float(session.run(None, {"x": np.float32([1000, 1000])})[0])


found = {opset: run(opset) for opset in (13, 18, 28)}
print(f"onnxruntime {onnxruntime.__version__}")
for opset, value in found.items():
    print(f"opset {opset}: {value}")
sys.exit(not (abs(found[13] - 1000.6932) < 1e-3 and abs(found[18] - 1000.6932) < 1e-3 and math.isinf(found[28])))
PY
