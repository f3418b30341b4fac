#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), onnx 1.23.2: MeanVarianceNormalization over an axis of one element is NaN for ordinary finite numbers.
#
# (x - mean) / (sqrt(variance) + 1e-9) of a single number is 0 / 1e-9 = 0, and onnx.reference says 0. Both open the op into its function
# body, which takes the variance as mean(x^2) - mean(x)^2; where a square by Pow and the square of the mean round otherwise, as they do in
# ONNX Runtime, that is less than 0, and its root is NaN. (Where a row is long and of nearly equal numbers it can be the reference that
# has the NaN.)
#
# Why the quick guess misses: the formula has a 1e-9 against a division by 0, so that a constant row looks safe, and a variance of one
# number is 0 by every formula of it in exact arithmetic.
#
# Output seen (six rows of one number each):
#   ONNX Runtime   6 NaN of 6
#   onnx.reference 0 NaN of 6 (all 0.0)
# Exit code 0 if this is still so (some NaN in ONNX Runtime, none in the reference), 1 if it changed.
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

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 1])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
graph = helper.make_graph([helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[1])], "g", [x], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
feed = {"x": np.float32([[1.7640524], [0.4001572], [0.978738], [2.2408931], [1.867558], [-0.9772779]])}
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
runtime = session.run(None, feed)[0]
reference = ReferenceEvaluator(model).run(None, feed)[0]
print(f"onnxruntime {onnxruntime.__version__}")
for name, value in (("ONNX Runtime  ", runtime), ("onnx.reference", reference)):
    print(f"{name} {value.ravel().tolist()}: {int(np.isnan(value).sum())} NaN of 6")
sys.exit(not (np.isnan(runtime).any() and not np.isnan(reference).any()))
PY
