"""Models with QuantizeLinear and DequantizeLinear: each rule about them at a model of its own, and what it leaves of chains of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset
from benchmarks.quantized_models import Net, chain, kernels, session
from coset.frontends.onnx.model import import_model
from coset.ir.evaluate import evaluate_program
from coset.job.job import Job
from coset.job.phases import phases_for
from coset.rules.definition import evaluate_defined
from coset.rules.library import DEFAULT, load
from coset.targets.target import get_target

SCALE = 0.05
WHOLE = [2, 3, 4, 5]
UNSIGNED, SIGNED = np.dtype(np.uint8), np.dtype(np.int8)
Made = tuple[Net, str, list[int]]


def pairs(net: Net, kind: np.dtype[Any], zero: int, scale: float = SCALE) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """What quantizes a value, and what dequantizes it."""
    step, point = net.scalar(scale), net.scalar(zero, kind)
    return lambda x: net.node("QuantizeLinear", x, step, point), lambda x: net.node("DequantizeLinear", x, step, point)


def moved(op: str, shape: list[int], *numbers: tuple[int, ...], zero: int = 3, **attributes: Any) -> Callable[[], Made]:
    """A pair, the node of an op that takes what was dequantized first, and a pair of the same numbers."""

    def make() -> Made:
        net = Net(0)
        quantize, dequantize = pairs(net, UNSIGNED, zero)
        x = dequantize(quantize("x"))
        y = net.node(op, x, *(net.integers(*each) for each in numbers), **attributes)
        return net, dequantize(quantize(y)), shape

    return make


def joined() -> Made:
    net = Net(0)
    quantize, dequantize = pairs(net, UNSIGNED, 3)
    left, right = dequantize(quantize("x")), dequantize(quantize(net.node("Neg", "x")))
    return net, dequantize(quantize(net.node("Concat", left, right, axis=1))), [2, 6, 4, 5]


def bounded(kind: np.dtype[Any], zero: int, low: float, high: float) -> Callable[[], Made]:
    """A Clip in front of a pair."""

    def make() -> Made:
        net = Net(0)
        quantize, dequantize = pairs(net, kind, zero)
        return net, dequantize(quantize(net.node("Clip", "x", net.scalar(low), net.scalar(high)))), WHOLE

    return make


def rectified() -> Made:
    net = Net(0)
    quantize, dequantize = pairs(net, UNSIGNED, 0)
    return net, dequantize(quantize(net.node("Relu", "x"))), WHOLE


def padded() -> Made:
    """A pad of what no pair is in front of."""
    net = Net(0)
    quantize, dequantize = pairs(net, UNSIGNED, 3)
    around = net.node("Pad", net.node("Transpose", "x", perm=[0, 2, 3, 1]), net.integers(0, 1, 0, 0, 0, 1, 0, 0), net.scalar(1.5))
    return net, dequantize(quantize(net.node("Transpose", around, perm=[0, 3, 1, 2]))), [2, 3, 6, 5]


def weighed() -> Made:
    """A product with a weight of signed integers that is transposed, with a scale for each of its rows."""
    net = Net(0)
    quantize, dequantize = pairs(net, UNSIGNED, 3)
    weight = net.array(net.draw.integers(-127, 127, (7, 5)).astype(np.int8))
    scales, points = net.array((net.draw.random(7) + 0.1).astype(np.float32)), net.array(np.zeros(7, np.int8))
    turned = net.node("Transpose", net.node("DequantizeLinear", weight, scales, points, axis=0), perm=[1, 0])
    return net, net.node("MatMul", dequantize(quantize("x")), turned), [2, 3, 4, 7]


MODELS: dict[str, tuple[Callable[[], Made], dict[str, int]]] = {  # the model, and how many nodes of each op are left
    "quantize_dequantized": (moved("Identity", WHOLE), {"QuantizeLinear": 1, "DequantizeLinear": 1}),
    "transpose_dequantized": (
        moved("Transpose", [2, 4, 5, 3], perm=[0, 2, 3, 1]), {"QuantizeLinear": 1, "Transpose": 1, "DequantizeLinear": 1},
    ),
    "reshape_dequantized": (moved("Reshape", [6, 20], (6, 20)), {"QuantizeLinear": 1, "Reshape": 1, "DequantizeLinear": 1}),
    "slice_dequantized": (
        moved("Slice", [2, 3, 2, 5], (1,), (3,), (2,)), {"QuantizeLinear": 1, "Slice": 1, "DequantizeLinear": 1},
    ),
    "repeat_dequantized": (
        moved("Expand", [6, 2, 3, 4, 5], (6, 2, 3, 4, 5)), {"QuantizeLinear": 1, "Expand": 1, "DequantizeLinear": 1},
    ),
    "pad_dequantized": (
        moved("Pad", [2, 3, 6, 5], (0, 0, 1, 0, 0, 0, 1, 0)), {"QuantizeLinear": 1, "Pad": 1, "DequantizeLinear": 1},
    ),
    "maximum_pool_dequantized": (
        moved("MaxPool", [2, 3, 4, 5], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), {"QuantizeLinear": 1, "MaxPool": 1, "DequantizeLinear": 1},
    ),
    "rectify_dequantized_node": (moved("Relu", WHOLE, zero=100), {"QuantizeLinear": 1, "Max": 1, "DequantizeLinear": 1}),
    "concatenate_dequantized": (joined, {"Neg": 1, "QuantizeLinear": 2, "Concat": 1, "DequantizeLinear": 1}),
    "lower_bound_of_quantized": (rectified, {"QuantizeLinear": 1, "DequantizeLinear": 1}),
    "upper_bound_of_quantized": (bounded(SIGNED, 7, -6.75, 6.0), {"QuantizeLinear": 1, "DequantizeLinear": 1}),
    "transpose_quantized": (padded, {"QuantizeLinear": 1, "Pad": 1, "DequantizeLinear": 1}),
    "transpose_dequantized_weight": (weighed, {"QuantizeLinear": 1, "DequantizeLinear": 2, "MatMul": 1}),
}  # fmt: skip


def written(made: Made) -> onnx.ModelProto:
    net, result, shape = made
    return net.model(result, WHOLE, shape)


def drawn(seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Numbers inside and outside of what the integers stand for, at the middle of two of them, and infinite."""
    draw = np.random.default_rng(seed)
    x = (draw.standard_normal(WHOLE) * 10 ** draw.uniform(-2, 2)).astype(np.float32)
    steps = np.float32(SCALE) * (draw.integers(-300, 300, WHOLE) + 0.5).astype(np.float32)
    x = np.where(draw.random(WHOLE) < 0.3, steps, x)
    return {"x": np.where(draw.random(WHOLE) < 0.05, np.copysign(np.float32(np.inf), x), x)}


@pytest.mark.parametrize("name", MODELS)
def test_a_rule_changes_no_bit(name: str, tmp_path: Path) -> None:
    make, wanted = MODELS[name]
    model = written(make())
    result = coset.optimize(model)
    result.save(tmp_path / "out.onnx")
    after = onnx.load(tmp_path / "out.onnx")
    assert Counter(node.op_type for node in after.graph.node) == wanted
    assert len(after.graph.node) < len(model.graph.node)
    sessions = [session(each.SerializeToString(), "DISABLE_ALL") for each in (model, after)]
    programs = [import_model(each) for each in (model, after)]
    for seed in range(3):
        feed = drawn(seed)
        for values in (
            [each.run(None, feed) for each in sessions],
            [evaluate_program(p, feed, fallback=evaluate_defined) for p in programs],
        ):
            np.testing.assert_array_equal(*values)
            assert values[0][0].dtype == np.float32 and np.isfinite(values[0][0]).all()


def test_every_rule_about_the_nodes_has_a_model() -> None:
    """Those that move past one of the two; what only leads to another rule is named with it."""
    about = {rule.family for rule in load(DEFAULT).rules if any("izeLinear" in op for op in rule.reads) and rule.definition is None}
    assert about - MODELS.keys() == {
        "reverse_dequantized",
        "pad_quantized",
    }  # Slice with steps of -1 has ends of its own; with transpose_quantized


@pytest.mark.parametrize(
    ("zero", "low", "high"),
    [(10, -0.4, 20.0), (10, -0.5, 12.2)],  # -0.5 stands for 0, 12.25 for 255
)
def test_a_bound_that_saturation_does_not_do_stays(zero: int, low: float, high: float, tmp_path: Path) -> None:
    coset.optimize(written(bounded(UNSIGNED, zero, low, high)())).save(tmp_path / "out.onnx")
    first, *others = (node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node)
    assert first in ("Clip", "Max", "Min") and others == ["QuantizeLinear", "DequantizeLinear"]


@pytest.mark.parametrize(("scale", "point"), [(0.06, 3), (SCALE, 4)])
def test_pairs_of_other_numbers_stay(scale: float, point: int, tmp_path: Path) -> None:
    net = Net(0)
    quantize, dequantize = pairs(net, UNSIGNED, 3)
    again, back = pairs(net, UNSIGNED, point, scale)
    coset.optimize(written((net, back(again(dequantize(quantize("x")))), WHOLE))).save(tmp_path / "out.onnx")
    assert len(onnx.load(tmp_path / "out.onnx").graph.node) == 4


def test_a_chain_of_pairs_becomes_what_is_between_them(tmp_path: Path) -> None:
    model = chain()
    coset.optimize(model).save(tmp_path / "out.onnx")
    found = Counter(node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node)
    assert len(model.graph.node) == 130
    assert found == {"Conv": 2, "QuantizeLinear": 1, "MaxPool": 6, "DequantizeLinear": 1}


@pytest.mark.parametrize("kind", [UNSIGNED, SIGNED], ids=str)
def test_the_runtime_finds_as_many_kernels_of_integers(kind: np.dtype[Any], tmp_path: Path) -> None:
    """Of signed integers ONNX Runtime finds them by the pair on x86: nothing may come between."""
    net = Net(0)
    quantize, dequantize = pairs(net, kind, 3)
    x = dequantize(quantize("x"))
    for _ in range(2):
        weight = net.array(net.draw.integers(-127, 127, (4, 4, 3, 3)).astype(np.int8))
        w = net.node("DequantizeLinear", weight, net.scalar(0.01), net.scalar(0, np.int8))
        x = dequantize(quantize(net.node("Conv", x, w, pads=[1, 1, 1, 1])))
        x = dequantize(quantize(net.node("Transpose", x, perm=[0, 1, 3, 2])))
        x = dequantize(quantize(net.node("Reshape", x, net.integers(2, 4, 8, 8))))
    model = net.model(x, [2, 4, 8, 8], [2, 4, 8, 8])
    coset.optimize(model).save(tmp_path / "out.onnx")
    before, after = (kernels(each, tmp_path) for each in (model.SerializeToString(), (tmp_path / "out.onnx").read_bytes()))
    assert after["QLinearConv"] == before["QLinearConv"] == 2


def test_a_transposed_weight_stays_integers(tmp_path: Path) -> None:
    """It was stored as floats, and its product was one of floats."""
    coset.optimize(written(weighed())).save(tmp_path / "out.onnx")
    assert {tensor.data_type for tensor in onnx.load(tmp_path / "out.onnx").graph.initializer if len(tensor.dims) == 2} == {
        TensorProto.INT8
    }


def test_no_rule_looks_into_what_a_target_runs_whole() -> None:
    for name, looks in (("cpu-onnxruntime", False), ("onnx-portable", False), ("nvidia-h100", True)):
        rules = [
            rule
            for phase in phases_for(Job("none", get_target(name), "reassociates", coset.Limits(), (), {}, lambda _: None), 17)
            for rule in phase.rules
        ]
        assert ("onnx.DequantizeLinear" in {rule.definition for rule in rules}) == looks
        assert "onnx.Softmax" in {rule.definition for rule in rules}


NODES: dict[str, tuple[int, str, list[np.ndarray[Any, Any]], dict[str, Any], bool]] = {  # version, op, operands, attributes, seen by rules
    "one scale": (10, "QuantizeLinear", [np.float32(0.5), np.uint8(3)], {}, True),
    "without a zero point": (10, "QuantizeLinear", [np.float32(0.5)], {}, True),
    "a scale in a vector": (13, "QuantizeLinear", [np.full(1, 0.5, np.float32), np.full(1, 3, np.int8)], {"axis": 0}, True),
    "an axis": (13, "QuantizeLinear", [np.arange(1, 5, dtype=np.float32), np.arange(4).astype(np.int8)], {"axis": -1}, True),
    "16 bits": (21, "QuantizeLinear", [np.float32(0.5), np.uint16(3)], {}, True),
    "blocks": (21, "QuantizeLinear", [np.ones((2, 2), np.float32), np.zeros((2, 2), np.uint8)], {"axis": 1, "block_size": 2}, False),
    "a type by its number": (21, "QuantizeLinear", [np.float32(0.5)], {"output_dtype": TensorProto.INT8}, False),
}


@pytest.mark.parametrize("name", NODES)
def test_a_node_is_written_as_it_was(name: str, tmp_path: Path) -> None:
    opset, op, operands, attributes, seen = NODES[name]
    names = [f"p{place}" for place in range(len(operands))]
    nodes = [helper.make_node(op, ["x", *names], ["y"], **attributes)]
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4]), onnx.ValueInfoProto(name="y")]
    tensors = [numpy_helper.from_array(np.asarray(each), label) for each, label in zip(operands, names, strict=True)]
    graph = helper.make_graph(nodes, "one", values[:1], values[1:], tensors)
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8))
    assert (f"onnx.{op}" in {term.op.name for term in import_model(model).terms()}) == seen
    coset.optimize(model).save(tmp_path / "out.onnx")
    feed = {"x": np.linspace(-40, 40, 8, dtype=np.float32).reshape(2, 4)}
    after = onnx.load(tmp_path / "out.onnx")
    assert after.opset_import[0].version == opset
    before, found = (session(each.SerializeToString(), "DISABLE_ALL").run(None, feed)[0] for each in (model, after))
    np.testing.assert_array_equal(before, found)
    assert before.dtype == found.dtype
