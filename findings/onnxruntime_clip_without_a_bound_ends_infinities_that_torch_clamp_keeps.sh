#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), onnx 1.23.2: Clip with a lower bound alone turns +infinity into 3.4028235e38, for f16 into 65504 at opset 13 and
# not at opset 11.
#
# The standard says that bounds "default to numeric_limits::lowest() and numeric_limits::max()", so a bound that is not given ends
# infinities. onnx.reference keeps them, as numpy.maximum and torch.clamp(min=..) do, which exporters write as this Clip. So does ONNX
# Runtime for f16 below the version that has a kernel for it: it computes in f32 there, whose largest number is an infinity again as f16.
#
# Why the quick guess misses: "Clip(x, 0) is Relu(x)", "Max(x, c) is Clip(x, c)" are what optimizers take for granted, and hold for all
# finite inputs; a mask of infinities behind such a Clip is a number, and its softmax another one. Relu keeps the infinity.
#
# Output seen:
#   ONNX Runtime   f32 3.4028234663852886e+38, f16 at 13 65504.0, f16 at 11 inf, Relu inf
#   onnx.reference f32 inf
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


def model(op, kind, opset):
    of = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    x, y = (helper.make_tensor_value_info(name, of, [1]) for name in ("x", "y"))
    held = [numpy_helper.from_array(np.zeros((), kind), "low")] if op == "Clip" else []
    graph = helper.make_graph([helper.make_node(op, ["x", *(["low"] if held else [])], ["y"])], "g", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(op, kind, opset):
    session = onnxruntime.InferenceSession(model(op, kind, opset).SerializeToString(), providers=["CPUExecutionProvider"])
    return float(session.run(None, {"x": np.array([np.inf], kind)})[0][0])


found = [run("Clip", np.float32, 13), run("Clip", np.float16, 13), run("Clip", np.float16, 11), run("Relu", np.float32, 13)]
reference = float(ReferenceEvaluator(model("Clip", np.float32, 13)).run(None, {"x": np.array([np.inf], np.float32)})[0][0])
print(f"onnxruntime {onnxruntime.__version__}")
print("ONNX Runtime   f32 {}, f16 at 13 {}, f16 at 11 {}, Relu {}".format(*found))
print(f"onnx.reference f32 {reference}")
sys.exit((found, reference) != ([3.4028234663852886e38, 65504.0, np.inf, np.inf], np.inf))
PY
