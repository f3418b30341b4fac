"""Move transposes through elementwise steps until they meet and cancel."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.hand.graph import Graph, attribute

UNARY = {"Relu", "Sigmoid", "Tanh", "Gelu", "Erf", "Neg", "Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Cast", "Clip", "Softplus"}
UNARY |= {"LeakyRelu", "Elu", "HardSigmoid"}
BINARY = {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"}


def cancel_transposes(graph: Graph) -> int:
    """Sink transposes below elementwise steps, join neighbours and drop identities; return how many transposes went."""
    before = graph.counts()["Transpose"]
    for _ in range(len(graph.nodes)):
        if not any(_join(graph, node) or _sink(graph, node) for node in list(graph.nodes)):
            break
    graph.clean()
    return before - graph.counts()["Transpose"]


def _join(graph: Graph, node: onnx.NodeProto) -> bool:
    if node.op_type != "Transpose" or (outer := attribute(node, "perm")) is None:
        return False
    if outer == sorted(outer) and node.output[0] not in graph.pinned:
        graph.replace([node], [])
        graph.rename(node.output[0], node.input[0])
        return True
    maker = graph.producer(node.input[0], "Transpose")
    inner = attribute(maker, "perm") if maker is not None else None
    if maker is None or inner is None:
        return False
    perm = [inner[axis] for axis in outer]
    graph.replace([node], [graph.node("Transpose", maker.input, node.output, perm=perm)])
    graph.clean()
    return True


def _sink(graph: Graph, node: onnx.NodeProto) -> bool:
    if node.op_type not in UNARY | BINARY or node.output[0] in graph.pinned:
        return False
    perm: list[int] | None = None
    inputs: list[str] = []
    for name in node.input if node.op_type in BINARY else node.input[:1]:
        maker, value = graph.producer(name, "Transpose"), graph.constant(name)
        if maker is not None and graph.only_feeds(name, node) and attribute(maker, "perm") is not None:
            if perm is not None and perm != attribute(maker, "perm"):
                return False
            perm = attribute(maker, "perm")
            inputs.append(maker.input[0])
        elif value is not None:
            inputs.append(name)
        else:
            return False
    if perm is None:
        return False
    for position, name in enumerate(inputs):
        value = graph.constant(name)
        if value is not None and value.size > 1:
            full = value.reshape((1,) * (len(perm) - value.ndim) + value.shape)
            inputs[position] = graph.add_constant(full.transpose(np.argsort(perm)), "turned")
    result = graph.name("untransposed")
    moved = onnx.NodeProto()
    moved.CopyFrom(node)
    moved.input[: len(inputs)] = inputs
    moved.output[0] = result
    graph.replace([node], [moved, graph.node("Transpose", [result], node.output, perm=perm)])
    return True
