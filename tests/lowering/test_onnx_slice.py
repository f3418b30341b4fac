"""Slices, one after the other, are written as few nodes that take the same elements, whatever the sizes of free dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from coset.backends.onnxruntime import Session
from coset.frontends.onnx.model import import_model
from coset.lowering.onnx.model import lower

FAR = 1 << 40
BOUNDS = st.one_of(st.integers(-7, 7), st.sampled_from((-FAR, FAR)))
SLICES = st.lists(st.tuples(BOUNDS, BOUNDS, st.integers(0, 1), st.sampled_from((1, 1, 2, 3, -1, -1, -2))), min_size=1, max_size=3)
SIZES = (0, 1, 2, 3, 5, 8)


def model_of(slices: list[tuple[int, int, int, int]], rows: str | int) -> Any:
    nodes, constants = [], []
    for place, numbers in enumerate(slices):
        names = [f"{kind}{place}" for kind in ("start", "end", "axis", "step")]
        constants += [numpy_helper.from_array(np.array([number]), name) for number, name in zip(numbers, names, strict=True)]
        nodes.append(helper.make_node("Slice", [f"x{place}", *names], [f"x{place + 1}"]))
    result = helper.make_tensor_value_info(f"x{len(slices)}", TensorProto.INT32, None)
    x = helper.make_tensor_value_info("x0", TensorProto.INT32, [rows, 6])
    return helper.make_model(
        helper.make_graph(nodes, "g", [x], [result], constants), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )


@settings(max_examples=120, deadline=None, derandomize=True)
@given(slices=SLICES)
def test_slices_take_the_same_elements(slices: list[tuple[int, int, int, int]]) -> None:
    for rows in ("N", 5):
        model = model_of(slices, rows)
        written = lower(import_model(model))
        assert sum(node.op_type == "Slice" for node in written.graph.node) <= len(slices)
        runs = Session(model.SerializeToString()), Session(written.SerializeToString())
        for size in SIZES if rows == "N" else (5,):
            x = np.arange(size * 6, dtype=np.int32).reshape(size, 6)
            (wanted,), (found,) = (run.run({"x0": x}).values() for run in runs)
            assert np.array_equal(wanted, found), (size, [onnx.printer.to_text(node) for node in written.graph.node])
