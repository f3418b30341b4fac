"""For every op that has a meaning: nodes with any operands, and without attributes, are read or refused; no builder is surprised."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from coset.dialects.onnx.node import BUILDERS, DEFINITIONS
from coset.frontends.onnx.model import RUNTIME, import_model
from coset.ir.errors import CosetError

NAMES = sorted({*BUILDERS, *DEFINITIONS})
KINDS = (
    (TensorProto.FLOAT, [2, 3]),
    (TensorProto.FLOAT, []),
    (TensorProto.INT64, [3]),
    (TensorProto.BOOL, [2, 3]),
    (TensorProto.UINT8, [0]),
)
KINDS += ((TensorProto.FLOAT, ["N", 4, 4, 4]), (TensorProto.INT32, None), (TensorProto.STRING, [2]), (TensorProto.FLOAT16, [1, 2, 3, 4]))  # type: ignore[assignment]
GIVEN: tuple[Any, ...] = (-7, 0, 1, 99, 1 << 40, 0.5, "", "NOTSET", [], [0], [-1, 5], [1 << 40, 2], [0.5], ["a"])
DRAWS = 40


def attributes(draw: random.Random, name: str, domain: str) -> dict[str, Any]:
    """Some attributes of the op, where ONNX says which it has, with values of any size."""
    if domain or not onnx.defs.has(name) or draw.random() < 0.3:
        named = draw.sample(("axis", "num_heads", "mode", "blocksize", "k", "scale", "bits", "block_size", "kernel_shape"), 2)
        return {each: draw.choice(GIVEN) for each in named}
    found: dict[str, Any] = {}
    for each, formal in onnx.defs.get_schema(name).attributes.items():
        fitting = [value for value in GIVEN if value != [] and helper.make_attribute(each, value).type == int(formal.type)]
        if fitting and (formal.required or draw.random() < 0.5):
            found[each] = draw.choice(fitting)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_nodes_of_any_form_are_read_or_refused(name: str) -> None:
    domain, _, op = name.rpartition(".")
    for seed in range(DRAWS):
        draw = random.Random(f"{name} {seed}")
        kinds = [draw.choice(KINDS[:2] if seed % 2 else KINDS) for _ in range(seed % 8)]
        inputs = [helper.make_tensor_value_info(f"x{i}", code, shape) for i, (code, shape) in enumerate(kinds)]
        weights = [numpy_helper.from_array(draw.choice((np.array([1, -1]), np.float32(2))), "w")]
        operands = [draw.choice((f"x{i}", f"x{i}", f"x{i}", "w", "")) for i in range(len(kinds))]
        node = helper.make_node(op, operands, [f"y{i}" for i in range(draw.choice((1, 1, 2, 3)))], domain=domain)
        for key, value in attributes(draw, op, domain).items():
            if value != []:
                node.attribute.append(helper.make_attribute(key, value))
        graph = helper.make_graph([node], "any", inputs, [helper.make_empty_tensor_value_info("y0")], weights)
        opset = draw.choice((6, 9, 11, 13, 17, 21))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(RUNTIME, 1)], ir_version=8)
        try:
            import_model(model)
        except CosetError:
            continue
