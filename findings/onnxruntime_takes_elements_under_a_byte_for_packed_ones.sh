#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU), ml_dtypes 0.5.4: six int4 numbers, handed over as an array of int4 of the same shape, come out as others.
#
# An array of ml_dtypes.int4 has a byte for each element. OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(uint8), INT4) takes it
# without a word, gives the OrtValue the shape of the array, and reads the bytes as if two elements lay in each: the first half of the array
# with a zero behind each element. uint4 and uint2 (four to a byte) likewise. Nothing is refused: the array has more bytes than the value
# needs. Right is the packed buffer in a value of the whole shape: ortvalue_from_shape_and_type, and a copy to data_ptr().
#
# Why the quick guess misses: the same call with the same view is right for bfloat16 and for the 8-bit floats, the shape that the value
# prints is right, and whoever compares two models on the same feed sees them agree.
#
# Output seen:
#   int4  given [1, 2, 3, -1, -2, -3] read [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]
#   uint4 given [1, 2, 3, 4, 5, 6] read [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]
#   uint2 given [1, 2, 3, 1, 2, 3] read [1.0, 0.0, 0.0, 0.0, 2.0, 0.0]
#   int4 packed, two in a byte: read [1.0, 2.0, 3.0, -1.0, -2.0, -3.0]
# Exit code 0 if this is still so, 1 if it changed.
set -euo pipefail
export ORT_DISABLE_TELEMETRY=1 PYTHONDONTWRITEBYTECODE=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$folder" \
    onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 ml_dtypes==0.5.4
PYTHONPATH="$folder" python3 - <<'PY'
import ctypes
import sys

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def session(code):
    x, y = helper.make_tensor_value_info("x", code, [6]), helper.make_tensor_value_info("y", TensorProto.FLOAT, [6])
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def read(code, value):
    return session(code).run(None, {"x": value})[0].tolist()


seen = []
for name, numbers in (("int4", [1, 2, 3, -1, -2, -3]), ("uint4", [1, 2, 3, 4, 5, 6]), ("uint2", [1, 2, 3, 1, 2, 3])):
    code = getattr(TensorProto, name.upper())
    array = np.array(numbers, np.int8).astype(getattr(ml_dtypes, name))
    value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint8), code)
    assert value.shape() == [6]
    seen.append(read(code, value))
    print(f"{name:5s} given {numbers} read {seen[-1]}")
packed = onnxruntime.OrtValue.ortvalue_from_shape_and_type([6], TensorProto.INT4)
parts = np.array([0x21, 0xF3, 0xDE], np.uint8)
ctypes.memmove(packed.data_ptr(), parts.ctypes.data, parts.nbytes)
right = read(TensorProto.INT4, packed)
print(f"int4 packed, two in a byte: read {right}")
half = [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]
sys.exit(seen != [half, half, [1.0, 0.0, 0.0, 0.0, 2.0, 0.0]] or right != [1.0, 2.0, 3.0, -1.0, -2.0, -3.0])
PY
