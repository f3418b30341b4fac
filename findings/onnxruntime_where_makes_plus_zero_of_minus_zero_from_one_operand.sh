#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), onnx 1.23.2: Where of float32 gives +0 for a -0 that it takes from its second operand (where the condition is
# true), and -0 for one that it takes from its third. Where(c, x, x) is therefore not x.
#
# Where(true, -0, 1) = +0 and Where(false, 1, -0) = -0. Where(c, x, x) has +0 at each true place of a -0, so that 1 / Where(c, x, x) and
# 1 / x are opposite infinities there. ONNX says that the result is the element of X or of Y.
#
# Why the quick guess misses: choosing copies an element, computes nothing and so keeps its bits; of the two operands it matters which one
# it is; and `Where(c, x, x)` is the identity that any optimizer takes out as exact.
#
# Output seen (sign of the zero):
#   Where(true, -0, 1) +   Where(false, 1, -0) -   Where(true, -0, -0) +   Where(false, -0, -0) -
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

inputs = [helper.make_tensor_value_info("c", TensorProto.BOOL, [8])]
inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in ("x", "y")]
graph = helper.make_graph(
    [helper.make_node("Where", ["c", "x", "y"], ["z"])], "g", inputs, [helper.make_tensor_value_info("z", TensorProto.FLOAT, [8])]
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
seen = []
for condition, x, y in ((True, -0.0, 1.0), (False, 1.0, -0.0), (True, -0.0, -0.0), (False, -0.0, -0.0)):
    feed = {"c": np.full(8, condition), "x": np.full(8, x, np.float32), "y": np.full(8, y, np.float32)}
    (found,) = session.run(None, feed)
    assert not found.any(), "all are zeros"
    signs = set(np.signbit(found))
    seen.append({True: "-", False: "+"}[signs.pop()] if len(signs) == 1 else "?")
    print(f"Where({str(condition).lower()}, {x:g}, {y:g}) {seen[-1]}")
sys.exit(seen != ["+", "-", "+", "-"])
PY
