"""Evaluate at build time what depends on constants only."""

from __future__ import annotations

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from benchmarks.hand.graph import Graph

FOLDED_BYTES = 1 << 28
"""A fold that would write more constants than this is not made: the model file would outgrow a user's patience."""
IMPURE = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "If", "Loop", "Scan"}
QUANTIZED = {"DequantizeLinear", "QuantizeLinear"}
"""Folding these would undo the storage format that the author chose."""


def fold_constants(graph: Graph) -> int:
    """Fold constant subgraphs, shapes that are known, `CastLike` of a constant, and `Identity`; return how many nodes went."""
    before = len(graph.nodes)
    _bypass_identities(graph)
    _resolve_shapes(graph)
    _evaluate(graph)
    _share_equal(graph)
    graph.clean()
    return before - len(graph.nodes)


def _bypass_identities(graph: Graph) -> None:
    for node in list(graph.nodes):
        if node.op_type == "Identity" and node.output[0] not in graph.pinned:
            graph.replace([node], [])
            graph.rename(node.output[0], node.input[0])


def _resolve_shapes(graph: Graph) -> None:
    for node in list(graph.nodes):
        if node.op_type == "Shape" and node.output[0] not in graph.pinned:
            shape = graph.shape(node.input[0])
            if shape is not None and all(isinstance(dim, int) for dim in shape):
                start = {entry.name: entry.i for entry in node.attribute}
                value = np.asarray(shape, np.int64)[start.get("start", 0) : start.get("end", len(shape))]
                graph.rename(node.output[0], graph.add_constant(value, "shape"))
        if node.op_type == "CastLike" and graph.constant(node.input[0]) is not None:
            dtype = graph.dtype(node.input[1])
            if dtype:
                graph.replace([node], [graph.node("Cast", [node.input[0]], node.output, to=dtype)])


def _evaluate(graph: Graph) -> None:
    graph.clean()
    known = set(graph.initializers)
    constant = []
    for node in graph.nodes:
        if node.op_type not in IMPURE | QUANTIZED and node.domain in ("", "ai.onnx") and all(name in known for name in node.input if name):
            constant.append(node)
            known.update(node.output)
    inside = {id(node) for node in constant}
    made = [name for node in constant for name in node.output if name]
    wanted = [name for name in made if name not in graph.outputs and any(id(reader) not in inside for reader in graph.consumers(name))]
    if not wanted:
        return
    values = _run(graph, constant, wanted)
    if sum(value.nbytes for value in values.values()) > FOLDED_BYTES:
        return
    graph.replace([node for node in constant if not set(node.output) & graph.pinned], [])
    for name, value in values.items():
        if name not in graph.pinned:
            graph.rename(name, graph.add_constant(value, "folded"))


def _run(graph: Graph, nodes: list[onnx.NodeProto], wanted: list[str]) -> dict[str, np.ndarray]:
    read = {name for node in nodes for name in node.input}
    outputs = [helper.make_empty_tensor_value_info(name) for name in wanted]
    body = helper.make_graph(nodes, "constants", [], outputs, [tensor for name, tensor in graph.initializers.items() if name in read])
    model = helper.make_model(body, opset_imports=graph.opset_imports(), ir_version=max(8, graph.model.ir_version))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(wanted, session.run(wanted, {}), strict=True))


def _share_equal(graph: Graph) -> None:
    first: dict[tuple[str, tuple[int, ...], bytes], str] = {}
    for name in list(graph.initializers):
        value = graph.constant(name)
        if value is None or name in graph.pinned or value.nbytes > 1024 or value.dtype == object:
            continue
        same = first.setdefault((str(value.dtype), value.shape, value.tobytes()), name)
        if same != name:
            graph.rename(name, same)
