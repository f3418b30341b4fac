#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), onnx 1.23.2: a product of float16 that is cast to float32 is 90000 with all graph optimization disabled.
#
# Mul of two float16 300s is infinite in float16 (the largest number is 65504), and Cast to float32 keeps an infinity: onnx.reference
# says inf. ONNX Runtime has no float16 Mul on a CPU: it puts a Cast to float32 in front and one back behind, and then drops the pair of the
# cast back and the model's own Cast, at ORT_DISABLE_ALL too. The rounding to float16 that the model asks for is gone with it: 90000.
# Where the product is an output of the graph as well the pair stays, and the same Cast gives inf: looking at a value changes another one.
#
# Why the quick guess misses: "optimization disabled" reads as "node by node as written", which is how such a session is used as a reference
# for numbers; the casts are put in and taken out by a transformer that no level turns off.
#
# Output seen:
#   cast alone      [90000.0]
#   beside product  [inf] [inf]
#   onnx.reference  [inf] [inf]
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

onnxruntime.set_default_logger_severity(4)
nodes = [helper.make_node("Mul", ["x", "x"], ["p"]), helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT)]
x, p = (helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1]) for name in "xp")
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
feed = {"x": np.float16([300])}


def model(*outputs):
    graph = helper.make_graph(nodes, "g", [x], list(outputs))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def run(found):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(found.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [value.tolist() for value in session.run(None, feed)]


with np.errstate(over="ignore"):
    reference = [value.tolist() for value in ReferenceEvaluator(model(p, y)).run(None, feed)]
alone, beside = run(model(y)), run(model(p, y))
print("cast alone     ", *alone)
print("beside product ", *beside)
print("onnx.reference ", *reference)
inf = float("inf")
sys.exit((alone, beside, reference) != ([[90000.0]], [[inf], [inf]], [[inf], [inf]]))
PY
