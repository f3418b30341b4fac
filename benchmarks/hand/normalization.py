"""Say a normalization, with the addition before it, by the name of its fused kernel."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.hand.graph import Graph, attribute, operands

MICROSOFT = "com.microsoft"


def layer_normalization(graph: Graph) -> int:
    """Write (x - mean) / sqrt(variance + eps) * gain + offset over the last axis as LayerNormalization; return how many.

    ONNX Runtime knows the op in every opset, ONNX itself from 17 on.
    """
    changed = 0
    for divide in [node for node in graph.nodes if node.op_type == "Div"]:
        centered, root = graph.producer(divide.input[0], "Sub"), graph.producer(divide.input[1], "Sqrt")
        add = graph.producer(root.input[0], "Add") if root is not None else None
        split = operands(add, graph) if add is not None else None
        variance = graph.producer(split[0], "ReduceMean") if split is not None else None
        square = graph.producer(variance.input[0], "Pow", "Mul") if variance is not None else None
        if centered is None or split is None or square is None or square.input[0] != divide.input[0]:
            continue
        squared = graph.scalar(square.input[1]) == 2.0 if square.op_type == "Pow" else square.input[1] == divide.input[0]
        mean = graph.producer(centered.input[1], "ReduceMean")
        if not squared or mean is None or mean.input[0] != centered.input[0] or not (_last(graph, mean) and _last(graph, variance)):
            continue
        ends = _gain_and_offset(graph, divide.output[0])
        if ends is None:
            continue
        gain, offset, scale, shift = ends
        epsilon = float(split[1].reshape(()))
        kernel = graph.node("LayerNormalization", [centered.input[0], gain, offset], shift.output, axis=-1, epsilon=epsilon)
        graph.replace([divide, scale, shift], [kernel])
        changed += 1
    return changed


def _last(graph: Graph, node: onnx.NodeProto | None) -> bool:
    if node is None or not attribute(node, "keepdims", 1):
        return False
    axes = graph.constant(node.input[1]) if len(node.input) > 1 else attribute(node, "axes")
    rank = graph.rank(node.input[0])
    return axes is not None and [int(axis) for axis in axes] in ([-1], [rank - 1 if rank else -1])


def _gain_and_offset(graph: Graph, value: str) -> tuple[str, str, onnx.NodeProto, onnx.NodeProto] | None:
    scale = graph.sole_consumer(value, "Mul")
    gain = operands(scale, graph) if scale is not None else None
    shift = graph.sole_consumer(scale.output[0], "Add") if scale is not None else None
    offset = operands(shift, graph) if shift is not None else None
    if scale is None or shift is None or gain is None or offset is None or gain[1].ndim != 1 or offset[1].shape != gain[1].shape:
        return None
    names = [next(name for name in node.input if graph.constant(name) is not None) for node in (scale, shift)]
    return names[0], names[1], scale, shift


def rms_normalization(graph: Graph) -> int:
    """Write x / sqrt(mean(x^2) + eps) * gain over the last axis as ORT's SimplifiedLayerNormalization; return how many."""
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "Reciprocal"]:
        root = graph.producer(node.input[0], "Sqrt")
        add = graph.producer(root.input[0], "Add") if root is not None else None
        split = operands(add, graph) if add is not None else None
        mean = graph.producer(split[0], "ReduceMean") if split is not None else None
        power = graph.producer(mean.input[0], "Pow", "Mul") if mean is not None else None
        product = graph.sole_consumer(node.output[0], "Mul")
        if split is None or power is None or product is None or not _last(graph, mean) or power.input[0] not in product.input:
            continue
        if not (graph.scalar(power.input[1]) == 2.0 if power.op_type == "Pow" else power.input[0] == power.input[1]):
            continue
        scale = graph.sole_consumer(product.output[0], "Mul")
        gain = operands(scale, graph) if scale is not None else None
        if scale is None or gain is None or gain[1].ndim != 1:
            continue
        name = next(name for name in scale.input if name != product.output[0])
        kernel = graph.node(
            "SimplifiedLayerNormalization", [power.input[0], name], scale.output, axis=-1, epsilon=float(split[1].reshape(())), stash_type=1
        )
        graph.replace([node, product, scale], [kernel])
        changed += 1
    return changed


def skip_normalization(graph: Graph) -> int:
    """Join the residual addition, and the bias of its branch, to the normalization that follows; return how many."""
    changed = 0
    kernels = {"LayerNormalization": "SkipLayerNormalization", "SimplifiedLayerNormalization": "SkipSimplifiedLayerNormalization"}
    for node in [node for node in graph.nodes if node.op_type in kernels and attribute(node, "axis", -1) in (-1, 2)]:
        add = graph.producer(node.input[0], "Add")
        if add is None or len([name for name in node.output if name]) != 1 or any(graph.constant(name) is not None for name in add.input):
            continue
        shapes = [graph.shape(name) for name in add.input]
        if shapes[0] is None or shapes[0] != shapes[1] or len(shapes[0]) != 3:
            continue
        branch, skip, bias, gone = add.input[1], add.input[0], "", [add, node]
        for position in (1, 0):
            inner = graph.producer(add.input[position], "Add")
            split = operands(inner, graph) if inner is not None else None
            if inner is not None and split is not None and split[1].ndim == 1 and graph.only_feeds(inner.output[0], add):
                branch, skip = split[0], add.input[1 - position]
                bias = next(name for name in inner.input if name != split[0])
                gone.append(inner)
                break
        simple = node.op_type == "SimplifiedLayerNormalization"
        inputs = [skip, branch, node.input[1]] if simple else [skip, branch, node.input[1], _offset(graph, node)]
        kept = [] if graph.only_feeds(add.output[0], node) else ["", "", add.output[0]]
        epsilon = attribute(node, "epsilon", 1e-5)
        kernel = graph.node(kernels[node.op_type], [*inputs, bias] if bias else inputs, [node.output[0], *kept], MICROSOFT, epsilon=epsilon)
        graph.replace(gone, [kernel])
        changed += 1
    return changed


def _offset(graph: Graph, node: onnx.NodeProto) -> str:
    if len(node.input) > 2 and node.input[2]:
        return str(node.input[2])
    gain = graph.shape(node.input[1])
    return graph.add_constant(np.zeros([int(dim or 0) for dim in gain or ()], np.float32), "offset")


def native_group_normalization(graph: Graph) -> int:
    """Fold the per-channel Mul and Add after a reshaped InstanceNormalization into GroupNormalization (opset 21); return how many."""
    if graph.opset() < 18:
        return 0
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "InstanceNormalization"]:
        before, after = graph.producer(node.input[0], "Reshape"), graph.sole_consumer(node.output[0], "Reshape")
        gain, offset = graph.constant(node.input[1]), graph.constant(node.input[2])
        if before is None or after is None or gain is None or offset is None or (gain != 1).any() or offset.any():
            continue
        scale = graph.sole_consumer(after.output[0], "Mul")
        shift = graph.sole_consumer(scale.output[0], "Add") if scale is not None else None
        factors = [operands(step, graph) if step is not None else None for step in (scale, shift)]
        if scale is None or shift is None or factors[0] is None or factors[1] is None or factors[0][1].size != factors[1][1].size:
            continue
        names = [graph.add_constant(factor[1].reshape(-1), "channel") for factor in factors if factor is not None]
        epsilon = attribute(node, "epsilon", 1e-5)
        kernel = graph.node("GroupNormalization", [before.input[0], *names], shift.output, num_groups=gain.size, epsilon=epsilon)
        graph.require("", 21)
        graph.replace([node, after, scale, shift], [kernel])
        changed += 1
    return changed
