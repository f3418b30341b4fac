"""Wrong edits as benchmarks/refuted_edits.py draws them, of one small model: refuted, with inputs that show it and the node named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.models import Model
from benchmarks.refuted_edits import Bounded, counts, drawn
from coset.comparing.reference import read_program
from coset.proving.refute import PairedNames, ProgramPair


@pytest.fixture
def bounded(tmp_path: Path) -> Bounded:
    """A layer of attention over 12 rows, with all kinds of places to go wrong."""
    draw = np.random.default_rng(0)
    nodes = [helper.make_node("MatMul", ["x", name], [f"{name}x"]) for name in "qkv"]
    nodes += [
        helper.make_node("Transpose", ["kx"], ["kt"], perm=[0, 2, 1]), helper.make_node("MatMul", ["qx", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["t"]), helper.make_node("Add", ["t", "mask"], ["m"]),
        helper.make_node("Softmax", ["m"], ["p"], axis=-1), helper.make_node("MatMul", ["p", "vx"], ["o"]),
        helper.make_node("Add", ["o", "x"], ["r"]), helper.make_node("Tanh", ["r"], ["h"]), helper.make_node("Sub", ["h", "o"], ["y"]),
    ]  # fmt: skip
    weights = {name: draw.normal(size=(12, 12)).astype(np.float32) for name in "qkv"}
    weights |= {"scale": np.float32(0.25), "mask": np.triu(np.full((12, 12), -1e9, np.float32), 1)}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 12, 12]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(value, name) for name, value in weights.items()])
    path = tmp_path / "attention.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return Bounded(Model("attention", path, "here"), tmp_path)


def test_wrong_edits_are_refuted_and_located(bounded: Bounded) -> None:
    rows = list(drawn([bounded], 16, 0, 5.0))
    assert len({row["kind"] for row in rows}) == 8
    for row in filter(counts, rows):
        assert row["answer"] == "refuted" and row["shown"] and row["near"], str(row)
    assert not any(row["answer"] == "proved" for row in rows)


def test_no_sizes_are_drawn_with_which_a_value_is_empty(tmp_path: Path) -> None:
    """The mean over no rows is what happens to lie there: equal programs were refuted by it."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[40, 40], strides=[40, 40]),
        helper.make_node("GlobalAveragePool", ["p"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in (("x", ["b", 3, "h", "w"]), ("y", ["b", 3, 1, 1]))
    ]
    path = tmp_path / "pool.onnx"
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    program = read_program(path)
    sizes = ProgramPair((path, path), program, program, PairedNames({}, {}), {}).sizes
    assert sizes["b"] == 2 and sizes["h"] >= 40 and sizes["w"] >= 40
    assert ProgramPair((path, path), program, program, PairedNames({}, {}), {"h": 48, "w": 44}).sizes == {"b": 2, "h": 48, "w": 44}
