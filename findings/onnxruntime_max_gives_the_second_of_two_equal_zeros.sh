#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), onnx 1.23.2: Max and Min of float32 give their second operand where the two are zeros of different signs, so
# that neither is commutative, and Relu is another function than Max with 0.
#
# Max(+0, -0) = -0 and Max(-0, +0) = +0; Min(+0, -0) = -0 and Min(-0, +0) = +0, which is the larger one. Relu(-0) = -0 and
# Clip(-0, min 0) = -0, but Max(-0, 0) = +0: 1 / Relu(x) and 1 / Max(x, 0) are opposite infinities there. IEEE 754-2019 has
# maximum(+0, -0) = +0 and minimum(+0, -0) = -0 in either order.
#
# Why the quick guess misses: Relu is defined as max(x, 0), in the standard by those words, and the order of the operands of a maximum is
# the first thing that an optimizer exchanges as exact; NaN are looked after in such rules, and zeros compare as equal in every test.
#
# Output seen (signs of the zeros):
#   Max(+0, -0) -   Max(-0, +0) +   Min(+0, -0) -   Min(-0, +0) +   Relu(-0) -   Clip(-0, 0) -
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


def sign(op, *operands):
    names = [f"x{number}" for number in range(len(operands))]
    values = [np.full(() if op == "Clip" and number else (8,), value, np.float32) for number, value in enumerate(operands)]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in zip(names, values)]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [8])
    graph = helper.make_graph([helper.make_node(op, names, ["y"])], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, dict(zip(names, values)))
    assert not found.any(), "all are zeros"
    return {True: "-", False: "+"}.get(bool(np.signbit(found)[0])) if len(set(np.signbit(found))) == 1 else "?"


print(f"onnxruntime {onnxruntime.__version__}")
asked = {"Max(+0, -0)": ("Max", 0.0, -0.0), "Max(-0, +0)": ("Max", -0.0, 0.0), "Min(+0, -0)": ("Min", 0.0, -0.0),
         "Min(-0, +0)": ("Min", -0.0, 0.0), "Relu(-0)": ("Relu", -0.0), "Clip(-0, 0)": ("Clip", -0.0, 0.0)}
seen = {name: sign(*call) for name, call in asked.items()}
print("   ".join(f"{name} {found}" for name, found in seen.items()))
sys.exit("".join(seen.values()) != "-+-+--")
PY
