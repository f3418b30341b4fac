"""Forms that people write by hand for ONNX Runtime, which the default target is to find where its prices say that they pay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import coset

DRAW = np.random.default_rng(0)


def drawn(*shape: int) -> Any:
    return DRAW.uniform(0.5, 1.5, shape).astype(np.float32)


def written(path: Path, nodes: list[Any], shape: list[Any], weights: dict[str, tuple[int, ...]]) -> Path:
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    held = [numpy_helper.from_array(drawn(*size), name) for name, size in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def ops_of(model: Path) -> list[str]:
    found = coset.optimize(model)
    found.save(model.with_name("out.onnx"))
    return [node.op_type for node in onnx.load(model.with_name("out.onnx")).graph.node]


NORMALIZED = {"s": (3,), "b": (3,), "mu": (3,), "va": (3,)}
NORMALIZE = ("BatchNormalization", ("s", "b", "mu", "va"))


@pytest.mark.parametrize(
    ("before", "after", "shape", "weights", "left"),
    [
        (NORMALIZE, ("Conv", ("w",)), ["n", 3, 8, 8], {"w": (4, 3, 1, 1)}, ["Conv"]),
        (NORMALIZE, ("Gemm", ("w", "c")), ["n", 3], {"w": (5, 3), "c": (5,)}, ["Gemm"]),
        (("Gemm", ("w", "c")), NORMALIZE, ["n", 4], {"w": (3, 4), "c": (3,)}, ["Gemm"]),
    ],
)
def test_a_normalization_goes_into_its_neighbour(
    before: Any, after: Any, shape: list[Any], weights: dict[str, Any], left: list[str], tmp_path: Path
) -> None:
    nodes = []
    for (op, given), reads, gives in ((before, "x", "t"), (after, "t", "y")):
        nodes.append(helper.make_node(op, [reads, *given], [gives], **({"transB": 1} if op == "Gemm" else {})))
    assert ops_of(written(tmp_path / "model.onnx", nodes, shape, {**NORMALIZED, **weights})) == left


@pytest.mark.parametrize(("size", "parts"), [(96, True), (2, False)])
def test_a_slope_is_taken_apart_where_that_is_faster(size: int, parts: bool, tmp_path: Path) -> None:
    """PRelu takes a branch for each element: its parts read more, and are 8 times as fast where there are many."""
    model = written(tmp_path / "model.onnx", [helper.make_node("PRelu", ["x", "s"], ["y"])], [1, 16, size, size], {"s": (16, 1, 1)})
    assert ("PRelu" not in ops_of(model)) is parts


def test_a_slope_that_is_an_input_stays(tmp_path: Path) -> None:
    """It may be infinite, and 0 times that is no number."""
    nodes = [helper.make_node("PRelu", ["x", "x"], ["y"])]
    assert ops_of(written(tmp_path / "model.onnx", nodes, [1, 16, 96, 96], {})) == ["PRelu"]
