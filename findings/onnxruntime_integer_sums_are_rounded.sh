#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), onnx 1.23.2: reductions of integers are computed in double and stored back.
#
# ReduceSum of int64 [2^53 + 1, 0] gives 2^53: a sum of two integers, one of them 0, is off by one, and the model says int64 everywhere.
# ReduceProd, ReduceL1 and ReduceSumSquare do the same, and Pow of int64 by int64 (94906267 ** 2 is off by one). Of int32 the sum of
# 2^31 - 1 and 1 is 2^31 - 1 (it saturates), while Add of the same two numbers wraps to -2^31. onnx.reference and NumPy add integers.
#
# Why the quick guess misses: integer sums are exact or wrap in every framework that exports to ONNX, and a kernel whose type parameter is
# int64_t reads as if it added int64_t. Sums of hashes, ids, time stamps in ns (about 2^60) or of Shape products change silently.
#
# Output seen:
#   ReduceSum int64 [2^53+1, 0]  9007199254740992   (exact: 9007199254740993)
#   ReduceSum int32 [2^31-1, 1]  2147483647         (Add of the same: -2147483648)
#   Pow int64 94906267 ** 2      9007199515875288   (exact: 9007199515875289)
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


def run(op, inputs, opset, **attributes):
    codes = {np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32}
    names = [f"x{i}" for i in range(len(inputs))]
    values = [helper.make_tensor_value_info(name, codes[x.dtype], x.shape) for name, x in zip(names, inputs)]
    result = helper.make_tensor_value_info("y", codes[inputs[0].dtype], None)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return int(session.run(None, dict(zip(names, inputs)))[0].reshape(-1)[0])


wide = run("ReduceSum", [np.array([2**53 + 1, 0], np.int64)], 13, keepdims=0)
narrow = run("ReduceSum", [np.array([2**31 - 1, 1], np.int32)], 13, keepdims=0)
added = run("Add", [np.array([2**31 - 1], np.int32), np.array([1], np.int32)], 14)
power = run("Pow", [np.array([94906267], np.int64), np.array([2], np.int64)], 15)
print(f"onnxruntime {onnxruntime.__version__}")
print(f"ReduceSum int64 [2^53+1, 0]  {wide}   (exact: {2**53 + 1})")
print(f"ReduceSum int32 [2^31-1, 1]  {narrow}         (Add of the same: {added})")
print(f"Pow int64 94906267 ** 2      {power}   (exact: {94906267**2})")
sys.exit((wide, narrow, added, power) != (2**53, 2**31 - 1, -(2**31), 94906267**2 - 1))
PY
