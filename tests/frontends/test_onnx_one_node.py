"""A node of ONNX, of any version and with any of its operands constant, is read and written as one node that computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from benchmarks.onnx_nodes import FORMS, FREE, STATIC, form, model_of, models, written
from coset.backends.onnxruntime import Session
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.lowering.onnx.model import lower
from coset.optimizing.pipeline import optimize

# Their parts take less time or the same (docs/measurements.md); a Split of nothing gives the value itself, under three names
IN_PARTS = {"Max": ["Max"], "Min": ["Min"], "Sum": ["Add"], "Mean": ["Add", "Div"], "Split": ["Identity"]}
SIZES = ({"B": 2, "H": 4, "W": 5}, {"B": 1, "H": 3, "W": 3}, {"B": 3, "H": 7, "W": 1}, {"B": 1, "H": 0, "W": 4})
TOLERANCE = 1e-5  # of f32 sums of at most 60 terms, and of exponentials


@pytest.mark.slow
def test_every_case_is_written_as_one_node() -> None:
    count = 0
    for name, model in models():
        op, ops = model.graph.node[0].op_type, written(model)
        count += 1
        assert len(ops) <= 1 or set(ops) == set(IN_PARTS.get(op, ())), (name, op, ops)
    assert count > 5000


@pytest.mark.parametrize("place", range(len(FORMS)))
def test_a_form_computes_the_same(place: int) -> None:
    op = FORMS[place][0]
    for dims in (STATIC, FREE):
        model = model_of(FORMS[place], dims)
        runs = Session(model.SerializeToString()), Session(lower(import_model(model)).SerializeToString())
        for sizes in SIZES[: 1 if dims is STATIC else None]:
            shape = [sizes[word] if word in sizes else int(word) for word in FORMS[place][2].split()]
            feed = {"x": np.random.default_rng(place).standard_normal(shape).astype(np.float32)}
            try:
                wanted = runs[0].run(feed)
            except CosetError:
                continue  # an index that the dim has not, or an empty tensor that the kernel does not take
            found = runs[1].run(feed)
            for name, value in wanted.items():
                assert value.shape == found[name].shape and value.dtype == found[name].dtype, (op, sizes)
                assert np.allclose(value, found[name], rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True), (op, sizes)


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        (form("Cast", 13, "B H W", result=TensorProto.BOOL, to=TensorProto.BOOL), (8, 128, 64)),
        (form("HardSwish", 14, "B H W"), (8, 128, 64)),
        (form("Elu", 13, "B H W"), (8, 128, 64)),
        (form("Selu", 13, "B H W"), (8, 128, 64)),
        (form("ReduceL2", 13, "B H W", axes=[-1], keepdims=1), (8, 128, 64)),
        (form("ReduceLogSum", 13, "B H W", axes=[-1], keepdims=1), (1, 1, 16)),
        (form("Softmax", 11, "B H W", axis=1), (8, 128, 64)),
    ],
)
def test_a_node_that_is_fastest_is_chosen(given: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    """Each was written as two to six: the price of a comparison was that of one node, of a kept dim that of a Reshape, and that of Where
    under the signs of its operand that under a mask which is foretold."""
    for dims in (dict(zip("BHW", shape, strict=True)), FREE):
        if dims is FREE and given[0] == "ReduceLogSum":
            continue  # large ones take longer than their parts
        assert written(model_of(given, dims), search=True) == [given[0]]


def test_a_constant_of_one_small_element_is_written() -> None:
    """A zero point of 4 bits was refused once it had a dim: no kernel was counted on, though none is needed."""
    x = helper.make_tensor_value_info("x", TensorProto.UINT4, [5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [5])
    constants = [helper.make_tensor("s", TensorProto.FLOAT, [1], [0.5]), helper.make_tensor("z", TensorProto.UINT4, [1], [3])]
    node = helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], constants)
    optimized = optimize(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    assert optimized.report["check"]["ok"]


def test_parts_of_which_one_element_is_used_are_gathered() -> None:
    """Queries, keys and values out of one product, as exporters write them: three nodes went in, and four came out."""
    nodes = [helper.make_node("Gather", ["x", f"i{place}"], [f"y{place}"], axis=0) for place in range(3)]
    constants = [helper.make_tensor(f"i{place}", TensorProto.INT64, [], [place]) for place in range(3)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, "B", 4])
    results = [helper.make_tensor_value_info(f"y{place}", TensorProto.FLOAT, None) for place in range(3)]
    graph = helper.make_graph(nodes, "g", [x], results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert written(model) == ["Gather"] * 3
