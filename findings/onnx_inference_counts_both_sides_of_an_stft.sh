#!/usr/bin/env bash
# onnx 1.23.2, ONNX Runtime 1.32.0 (CPU): shape inference of STFT without `onesided` answers for 0, the standard's default is 1.
#
# A signal of 128 samples, a frame of 16 and a step of 8 give float32[1, 15, 9, 2]: 9 frequencies, since the signal is real and `onesided`
# is 1 where a node does not say it. onnx.reference and ONNX Runtime compute that. onnx.shape_inference says [1, 15, 16, 2], without a warning,
# also in strict mode; with onesided=1 written out it says 9. ONNX Runtime loads the model all the same and only warns at run time.
#
# Why the quick guess misses: an attribute with a default means the same whether it is written or not, and inference is generated beside the
# schema that has the default; here its function reads the attribute with a default of its own.
#
# Output seen:
#   inferred       [1, 15, 16, 2]
#   written out    [1, 15, 9, 2]
#   ONNX Runtime   (1, 15, 9, 2)
#   onnx.reference (1, 15, 9, 2)
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
from onnx import TensorProto, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)


def model(**attributes):
    signal = helper.make_tensor_value_info("signal", TensorProto.FLOAT, [1, 128, 1])
    spectrum = helper.make_tensor_value_info("spectrum", TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(np.array(value), name) for name, value in (("step", 8), ("length", 16))]
    node = helper.make_node("STFT", ["signal", "step", "", "length"], ["spectrum"], **attributes)
    graph = helper.make_graph([node], "g", [signal], [spectrum], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def inferred(found):
    (value,) = shape_inference.infer_shapes(found, strict_mode=True, data_prop=True).graph.output
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


feed = {"signal": np.random.default_rng(0).standard_normal((1, 128, 1)).astype(np.float32)}
session = onnxruntime.InferenceSession(model().SerializeToString(), providers=["CPUExecutionProvider"])
runtime = session.run(None, feed)[0].shape
reference = ReferenceEvaluator(model()).run(None, feed)[0].shape
answers = inferred(model()), inferred(model(onesided=1)), runtime, reference
for name, answer in zip(("inferred      ", "written out   ", "ONNX Runtime  ", "onnx.reference"), answers):
    print(name, answer)
sys.exit(answers != ([1, 15, 16, 2], [1, 15, 9, 2], (1, 15, 9, 2), (1, 15, 9, 2)))
PY
