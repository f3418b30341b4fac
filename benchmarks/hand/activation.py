"""Say an activation, written out in elementary steps, by the name of its fused kernel."""

from __future__ import annotations

import math

import numpy as np
import onnx

from benchmarks.hand.graph import Graph, attribute, operands

MICROSOFT = "com.microsoft"


def gelu(graph: Graph) -> int:
    """Write 0.5 x (1 + erf(x / sqrt 2)) as com.microsoft.Gelu; return how many."""
    changed = 0
    for erf in [node for node in graph.nodes if node.op_type == "Erf"]:
        inner = graph.producer(erf.input[0], "Div", "Mul")
        split = operands(inner, graph) if inner is not None else None
        if inner is None or split is None or split[1].size != 1:
            continue
        factor = float(split[1].reshape(()))
        if not math.isclose(factor if inner.op_type == "Div" else 1 / factor, math.sqrt(2), rel_tol=1e-5):
            continue
        steps, value = [inner, erf], erf.output[0]
        add = graph.sole_consumer(value, "Add")
        if add is None or not _is_constant(graph, add, 1.0):
            continue
        steps.append(add)
        rest = {"x", "half"}
        value = add.output[0]
        while rest and (node := graph.sole_consumer(value, "Mul")) is not None:
            other = next((name for name in node.input if name != value), value)
            part = _gelu_factor(graph, other, split[0], rest)
            if part is None:
                break
            rest -= part
            steps.append(node)
            value = node.output[0]
        if not rest:
            graph.replace(steps, [graph.node("Gelu", [split[0]], [value], MICROSOFT)])
            changed += 1
    return changed


def _gelu_factor(graph: Graph, name: str, x: str, rest: set[str]) -> set[str] | None:
    if name == x and "x" in rest:
        return {"x"}
    if graph.scalar(name) == 0.5 and "half" in rest:
        return {"half"}
    maker = graph.producer(name, "Mul")
    split = operands(maker, graph) if maker is not None else None
    whole = split is not None and split[0] == x and split[1].size == 1 and float(split[1].reshape(())) == 0.5
    return {"x", "half"} if whole and rest == {"x", "half"} else None


def _is_constant(graph: Graph, node: onnx.NodeProto, value: float) -> bool:
    split = operands(node, graph)
    return split is not None and split[1].size == 1 and float(split[1].reshape(())) == value


def bias_gelu(graph: Graph) -> int:
    """Join the bias of a product into its GELU: BiasGelu for the exact one, FastGelu for the tanh form; return how many."""
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "Gelu"]:
        add = graph.producer(node.input[0], "Add")
        split = operands(add, graph) if add is not None else None
        if add is None or split is None or split[1].ndim != 1 or not graph.only_feeds(add.output[0], node):
            continue
        bias = next(name for name in add.input if name != split[0])
        kernel = "FastGelu" if attribute(node, "approximate", b"none") == b"tanh" else "BiasGelu"
        graph.replace([add, node], [graph.node(kernel, [split[0], bias], node.output, MICROSOFT)])
        changed += 1
    return changed


def quick_gelu(graph: Graph) -> int:
    """Write x * sigmoid(a x), which is SiLU for a = 1, as com.microsoft.QuickGelu; return how many."""
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "Sigmoid"]:
        product = graph.sole_consumer(node.output[0], "Mul")
        if product is None:
            continue
        x = next((name for name in product.input if name != node.output[0]), None)
        alpha, steps = 1.0, [node, product]
        if x != node.input[0]:
            inner = graph.producer(node.input[0], "Mul")
            split = operands(inner, graph) if inner is not None else None
            if inner is None or split is None or split[0] != x or split[1].size != 1 or not graph.only_feeds(inner.output[0], node):
                continue
            alpha = float(split[1].reshape(()))
            steps.append(inner)
        graph.replace(steps, [graph.node("QuickGelu", [x], product.output, MICROSOFT, alpha=alpha)])
        changed += 1
    return changed


def _clipped(graph: Graph, clip: onnx.NodeProto) -> tuple[str, list[onnx.NodeProto]] | None:
    """Return x and its steps when `clip` is clip(x + 3, 0, 6)."""
    if len(clip.input) < 3 or graph.scalar(clip.input[1]) != 0.0 or graph.scalar(clip.input[2]) != 6.0:
        return None
    add = graph.producer(clip.input[0], "Add")
    if add is None or not _is_constant(graph, add, 3.0) or not graph.only_feeds(add.output[0], clip):
        return None
    split = operands(add, graph)
    return (split[0], [add, clip]) if split is not None else None


def hard_swish(graph: Graph) -> int:
    """Write x * clip(x + 3, 0, 6) / 6 as x * HardSigmoid(x); return how many."""
    changed = 0
    for clip in [node for node in graph.nodes if node.op_type == "Clip"]:
        found = _clipped(graph, clip)
        product = graph.sole_consumer(clip.output[0], "Mul")
        if found is None or product is None or found[0] not in product.input:
            continue
        x, steps = found
        divide = graph.sole_consumer(product.output[0], "Div", "Mul")
        split = operands(divide, graph) if divide is not None else None
        gate, output, end = graph.name("gate"), product.output[0], [product]
        new = [graph.node("HardSigmoid", [x], [gate], alpha=1 / 6, beta=0.5)]
        if divide is not None and divide.op_type == "Div" and split is not None and divide.input[0] == output and _six(split[1]):
            output, end = divide.output[0], [product, divide]
            new.append(graph.node("Mul", [x, gate], [output]))
        else:
            six, swish = graph.add_constant(np.asarray(6.0, np.float32), "six"), graph.name("swish")
            new.extend([graph.node("Mul", [x, gate], [swish]), graph.node("Mul", [swish, six], [output])])
        graph.replace([*steps, *end], new)
        changed += 1
    return changed


def _six(value: np.ndarray) -> bool:
    return value.size == 1 and math.isclose(float(value.reshape(())), 6.0, rel_tol=1e-6)


def native_hard_swish(graph: Graph) -> int:
    """Write x * HardSigmoid(x; 1/6, 1/2) as HardSwish (opset 14); return how many."""
    if graph.opset() < 14:
        return 0
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "HardSigmoid"]:
        product = graph.sole_consumer(node.output[0], "Mul")
        if product is None or node.input[0] not in product.input:
            continue
        if math.isclose(attribute(node, "alpha", 0.2), 1 / 6, rel_tol=1e-5) and attribute(node, "beta", 0.5) == 0.5:
            graph.replace([node, product], [graph.node("HardSwish", node.input[:1], product.output)])
            changed += 1
    return changed
