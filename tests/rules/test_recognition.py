"""The library in the e-graph: each named op is found in its own expansion, and batch norms melt into convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects
from coset.dialects.expansion import expanded
from coset.egraph.limits import Limits
from coset.egraph.saturate import Saturation, saturate
from coset.ir.builtin import absent
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import F32, tensor
from coset.job.own_rules import NO_RULES
from coset.job.phases import permitted_phases

assert coset.dialects
NUMBERS = np.random.default_rng(0)
X = input_term("x", tensor(F32, 2, 16, 8))
CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "Relu": ((), {}), "LeakyRelu": ((), {}), "Elu": ((), {"alpha": 0.5}), "Selu": ((), {}), "HardSigmoid": ((), {}), "HardSwish": ((), {}),
    "Gelu": ((), {"approximate": "tanh"}), "Mish": ((), {}), "Softplus": ((), {}),
    "Softmax": ((), {"axis": -1}), "LogSoftmax": ((), {"axis": 1}),
    "ReduceMean": ((), {"dimensions": (1, 2)}), "GlobalAveragePool": ((), {}), "LayerNormalization": (((8,), (8,)), {"axis": -1}),
    "BatchNormalization": (((16,), (16,), (16,), (16,)), {}), "RMSNormalization": (((16, 8),), {"axis": 1}), "Swish": ((), {"alpha": 1.0}),
    "InstanceNormalization": (((16,), (16,)), {}), "GroupNormalization": (((16,), (16,)), {"num_groups": 4}),
}  # fmt: skip


def weight(*shape: int) -> Term:
    return constant(NUMBERS.normal(size=shape).astype(np.float32))


def search(root: Term) -> Saturation:
    return saturate([root], permitted_phases(NO_RULES, "real", lambda _: True), Limits(seconds=30, iterations=24))


@pytest.mark.parametrize("name", CASES)
def test_a_named_op_is_recognised_in_its_expansion(name: str) -> None:
    shapes, attributes = CASES[name]
    term = make(f"onnx.{name}", [X, *(weight(*shape) for shape in shapes)], attributes)
    graph = search(expanded([term], keep=lambda _: False)[0]).graph
    assert term.op in {node.op for node in graph.nodes[graph.roots[0]]}


def test_convolution_bias_and_normalization_are_one_convolution() -> None:
    attributes = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilations": (1, 1), "group": 1}
    for bias in (absent(), weight(4)):
        conv = make("onnx.Conv", [input_term("image", tensor(F32, 1, 3, 8, 8)), weight(4, 3, 3, 3), bias], attributes)
        root = make("onnx.BatchNormalization", [conv, *(weight(4) for _ in range(4))])
        saturation = search(root)
        assert saturation.stop == "saturated"
        graph = saturation.graph
        found = [node for node in graph.nodes[graph.roots[0]] if node.op.name == "onnx.Conv"]
        assert any(all(child in graph.constant for child in node.children[1:]) for node in found)
