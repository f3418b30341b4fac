#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU, x86-64), onnx 1.23.2: Max of equal elements is not equal. Of a tensor of -0 and the number +0, float32, the
# elements that fill vectors of four become +0 and those behind the last full vector stay -0 (of float64 vectors of two); a tensor of one
# element has +0. Relu of float16 gives +0 for -0 in a tensor of one element, and -0 in any longer one.
#
# Max([-0, -0, -0, -0, -0], 0) = [+0, +0, +0, +0, -0], so that Max(x, 0)[4:] and Max(x[4:], 0), where a one-element tensor has +0, or of
# x of seven elements Max(x, 0)[:3] and Max(x[:3], 0), have other bits; 1 / Max(x, 0) has infinities of both signs where x is -0 throughout.
#
# Why the quick guess misses: Max and Relu work element by element, so whatever they make of -0 they should make of each -0. Taking a slice, a
# reshape or a concatenation through them is what optimizers do as exact, and a test with one element, or with a multiple of four, shows one
# answer only. It is no matter of which operand stands first (that is another finding): both are the same here at every place.
#
# Output seen (signs of the zeros, by number of elements 1 to 9):
#   Max float32   + -- --- ++++ ++++- ++++-- ++++--- ++++++++ ++++++++-
#   Max float64   + ++ ++- ++++ ++++- ++++++ ++++++- ++++++++ ++++++++-
#   Relu float16  + -- --- ---- ----- ------ ------- -------- ---------
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

SEEN = {
    ("Max", "float32"): "+ -- --- ++++ ++++- ++++-- ++++--- ++++++++ ++++++++-",
    ("Max", "float64"): "+ ++ ++- ++++ ++++- ++++++ ++++++- ++++++++ ++++++++-",
    ("Relu", "float16"): "+ -- --- ---- ----- ------ ------- -------- ---------",
}
CODES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}
found = {}
for op, dtype in SEEN:
    x, y = (helper.make_tensor_value_info(name, CODES[dtype], [None]) for name in "xy")
    node = helper.make_node(op, ["x", "zero"] if op == "Max" else ["x"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(np.zeros((), dtype), "zero")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    words = []
    for count in range(1, 10):
        (zeros,) = session.run(None, {"x": np.full(count, -0.0, dtype)})
        assert not zeros.any(), "all are zeros"
        words.append("".join("-" if sign else "+" for sign in np.signbit(zeros)))
    found[op, dtype] = " ".join(words)
    print(f"{op} {dtype}  {found[op, dtype]}")
sys.exit(found != SEEN)
PY
