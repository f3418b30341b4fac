"""Factors and shifts around convolutions: what folds into filters and biases, and what must stay where padding or a bend is between."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset


@dataclass(frozen=True)
class Case:
    """Nodes from `x` to `y` with constants, and the nodes that are left of them."""

    name: str
    nodes: tuple[Any, ...]
    left: dict[str, int]
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    channels: int = 8


def node(op: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), [output], **attributes)


POINT, WIDE, DEPTHWISE = (16, 8, 1, 1), (16, 8, 3, 3), (8, 1, 3, 3)
PADDED = {"pads": [1, 1, 1, 1]}
SHIFT, BEND = node("Add", "v d", "t"), node("Sigmoid", "t", "y")
CASES = (
    Case("behind", (node("Conv", "x w b", "u"), node("Mul", "c u", "v"), SHIFT, node("Sigmoid", "t", "y")),
         {"Conv": 1, "Sigmoid": 1}, {"w": WIDE, "b": (16,), "c": (), "d": (1,)}),
    Case("behind_without_bias", (node("Conv", "x w", "u", **PADDED), node("Mul", "u c", "v"), node("Add", "d v", "t"), BEND),
         {"Conv": 1, "Sigmoid": 1}, {"w": WIDE, "c": (), "d": ()}),
    Case("in_front", (node("Sigmoid", "x", "u"), node("Mul", "u c", "v"), SHIFT, node("Conv", "t w b", "y")),
         {"Conv": 1, "Sigmoid": 1}, {"w": POINT, "b": (16,), "c": (), "d": ()}),
    Case("in_front_of_window", (node("Sigmoid", "x", "u"), node("Mul", "u c", "v"), SHIFT, node("Conv", "t w", "y", strides=[2, 2])),
         {"Conv": 1, "Sigmoid": 1}, {"w": WIDE, "c": (), "d": ()}),
    Case("shift_stays_before_padding", (node("Sigmoid", "x", "u"), node("Mul", "u c", "v"), SHIFT, node("Conv", "t w b", "y", **PADDED)),
         {"Sigmoid": 1, "Add": 1, "Conv": 1}, {"w": WIDE, "b": (16,), "c": (), "d": ()}),
    Case("factor_passes_padding", (node("Sigmoid", "x", "u"), node("Mul", "u c", "v"), node("Conv", "v w b", "y", group=8, **PADDED)),
         {"Sigmoid": 1, "Conv": 1}, {"w": DEPTHWISE, "b": (8,), "c": ()}),
    Case("channels_in_front_of_groups", (node("Sigmoid", "x", "u"), node("Mul", "u c", "v"), SHIFT, node("Conv", "t w b", "y", group=2)),
         {"Sigmoid": 1, "Conv": 1}, {"w": (6, 4, 3, 3), "b": (6,), "c": (8, 1, 1), "d": (8, 1, 1)}),
    Case("channel_shift_stays_before_padding", (node("Sigmoid", "x", "u"), node("Add", "u d", "t"), node("Conv", "t w", "y", **PADDED)),
         {"Sigmoid": 1, "Add": 1, "Conv": 1}, {"w": WIDE, "d": (8, 1, 1)}),
    Case("between_two", (node("Conv", "x w b", "u"), node("Mul", "u c", "v"), SHIFT, node("Conv", "t z", "y", **PADDED)),
         {"Conv": 2}, {"w": POINT, "b": (16,), "c": (), "d": (), "z": (8, 16, 3, 3)}),
    Case("not_through_a_bend", (node("Conv", "x w b", "u"), node("Sigmoid", "u", "v"), node("Mul", "v c", "y")),
         {"Conv": 1, "Sigmoid": 1, "Mul": 1}, {"w": POINT, "b": (16,), "c": ()}),
)  # fmt: skip


@pytest.mark.parametrize("height", [7, "H"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_folds(case: Case, height: int | str, tmp_path: Path) -> None:
    """What is left is what was said; `optimize` has compared the values."""
    rng = np.random.default_rng(1)
    weights = [numpy_helper.from_array((rng.normal(size=shape) + 0.1).astype(np.float32), name) for name, shape in case.shapes.items()]
    graph = helper.make_graph(
        list(case.nodes),
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, case.channels, height, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "O", "P", "Q"])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    coset.optimize(model).save(tmp_path / "y.onnx")
    assert Counter(n.op_type for n in onnx.load(tmp_path / "y.onnx").graph.node) == Counter(case.left)
