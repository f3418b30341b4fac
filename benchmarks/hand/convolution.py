"""Fold affine steps into convolutions, forwards and backwards, and say pooling by its name."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.hand.graph import Graph, attribute, operands


def fold_affine_back(graph: Graph) -> int:
    """Fold BatchNormalization and per-channel or scalar Mul, Div, Add, Sub that follow a convolution into its weights; return how many."""
    folded = 0
    for node in [node for node in graph.nodes if node.op_type in ("Conv", "ConvTranspose")]:
        weight = graph.constant(node.input[1])
        bias = graph.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros((), np.float32)
        if weight is None or bias is None or weight.dtype != np.float32:
            continue
        channels = weight.shape[0] if node.op_type == "Conv" else weight.shape[1] * attribute(node, "group", 1)
        if node.op_type == "ConvTranspose" and attribute(node, "group", 1) != 1:
            continue
        scale, shift, steps = _tail(graph, node.output[0], channels, weight.ndim)
        if not steps:
            continue
        axis = [1] * weight.ndim
        axis[0 if node.op_type == "Conv" else 1] = channels
        new_bias = np.broadcast_to(bias, channels).astype(np.float64) * scale + shift
        names = [
            graph.add_constant((weight.astype(np.float64) * scale.reshape(axis)).astype(np.float32), "weight"),
            graph.add_constant(new_bias.astype(np.float32), "bias"),
        ]
        merged = onnx.NodeProto()
        merged.CopyFrom(node)
        del merged.input[1:]
        merged.input.extend(names)
        merged.output[0] = steps[-1].output[0]
        graph.replace([node, *steps], [merged])
        folded += len(steps)
    return folded


def _tail(graph: Graph, value: str, channels: int, rank: int) -> tuple[np.ndarray, np.ndarray, list[onnx.NodeProto]]:
    """Return scale, shift (each [channels]) and the affine nodes that follow `value` one after another."""
    scale, shift, steps = np.ones(channels), np.zeros(channels), []
    while (node := graph.sole_consumer(value, "BatchNormalization", "Mul", "Div", "Add", "Sub")) is not None:
        step = _normalization(graph, node) if node.op_type == "BatchNormalization" else _elementwise(graph, node, value, channels, rank)
        if step is None:
            break
        scale, shift = scale * step[0], shift * step[0] + step[1]
        steps.append(node)
        value = node.output[0]
    return scale, shift, steps


def _normalization(graph: Graph, node: onnx.NodeProto) -> tuple[np.ndarray, np.ndarray] | None:
    parameters = [graph.constant(name) for name in node.input[1:5]]
    if any(value is None for value in parameters) or attribute(node, "training_mode", 0) or len([name for name in node.output if name]) > 1:
        return None
    gain, offset, mean, variance = (np.asarray(value, np.float64) for value in parameters)
    factor = gain / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    return factor, offset - mean * factor


def _elementwise(graph: Graph, node: onnx.NodeProto, value: str, channels: int, rank: int) -> tuple[np.ndarray, np.ndarray] | None:
    split = operands(node, graph)
    if split is None or split[0] != value or (node.op_type in ("Div", "Sub") and node.input[0] != value):
        return None
    constant = _per_channel(split[1], channels, rank)
    if constant is None:
        return None
    one, zero = np.ones(channels), np.zeros(channels)
    if node.op_type == "Div":
        return (1.0 / constant, zero) if constant.all() else None
    return {"Mul": (constant, zero), "Add": (one, constant), "Sub": (one, -constant)}[node.op_type]


def _per_channel(value: np.ndarray, channels: int, rank: int) -> np.ndarray | None:
    if value.dtype != np.float32 or value.ndim > rank:
        return None
    if value.size == 1:
        return np.full(channels, float(value.reshape(())))
    full = (1,) * (rank - value.ndim) + value.shape
    return value.astype(np.float64).reshape(channels) if full == (1, channels) + (1,) * (rank - 2) else None


def fold_affine_forward(graph: Graph) -> int:
    """Fold a scalar or per-channel Mul or Div, and before an unpadded convolution an Add or Sub, into the convolution that reads it.

    An Add before a padded convolution stays: padding is zero after the Add, so the border would change.
    """
    folded = 0
    for conv in [node for node in graph.nodes if node.op_type == "Conv"]:
        while (node := graph.producer(conv.input[0], "Mul", "Div", "Add", "Sub")) is not None and graph.only_feeds(node.output[0], conv):
            weight = graph.constant(conv.input[1])
            bias = graph.constant(conv.input[2]) if len(conv.input) > 2 and conv.input[2] else np.zeros((), np.float32)
            if weight is None or bias is None or weight.dtype != np.float32:
                break
            split, groups = operands(node, graph), attribute(conv, "group", 1)
            channels = weight.shape[1] * groups
            step = _elementwise(graph, node, split[0], channels, weight.ndim) if split else None
            padded = any(attribute(conv, "pads", [])) or attribute(conv, "auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID")
            if split is None or step is None or (padded and step[1].any()):
                break
            scale, shift = (np.repeat(part.reshape(groups, -1), weight.shape[0] // groups, axis=0) for part in step)
            spatial = (1,) * (weight.ndim - 2)
            moved = (weight * shift.reshape(*shift.shape, *spatial)).reshape(weight.shape[0], -1).sum(axis=1, dtype=np.float64)
            conv.input[0] = split[0]
            del conv.input[1:]
            conv.input.append(graph.add_constant((weight * scale.reshape(*scale.shape, *spatial)).astype(np.float32), "weight"))
            conv.input.append(graph.add_constant((np.broadcast_to(bias, weight.shape[0]) + moved).astype(np.float32), "bias"))
            graph.replace([node], [])
            folded += 1
    return folded


def global_average_pool(graph: Graph) -> int:
    """Write a mean over all spatial axes as GlobalAveragePool, which ORT's blocked layout knows; return how many."""
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "ReduceMean"]:
        rank = graph.rank(node.input[0])
        axes = graph.constant(node.input[1]) if len(node.input) > 1 else attribute(node, "axes")
        if rank != 4 or axes is None or sorted(int(axis) % 4 for axis in axes) != [2, 3]:
            continue
        if attribute(node, "keepdims", 1):
            graph.replace([node], [graph.node("GlobalAveragePool", node.input[:1], node.output)])
        else:
            pooled = graph.name("pooled")
            steps = [graph.node("GlobalAveragePool", node.input[:1], [pooled]), graph.node("Flatten", [pooled], node.output, axis=1)]
            graph.replace([node], steps)
        changed += 1
    return changed


def merge_convolutions(graph: Graph) -> int:
    """Merge ungrouped convolutions that read one value with equal geometry into one convolution and a Split; return how many went."""
    if graph.opset() < 13:
        return 0
    groups: dict[tuple[object, ...], list[onnx.NodeProto]] = {}
    for node in [node for node in graph.nodes if node.op_type == "Conv" and attribute(node, "group", 1) == 1]:
        weight = graph.constant(node.input[1])
        bias = graph.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros((), np.float32)
        if weight is not None and bias is not None:
            geometry = sorted((entry.name, entry.SerializeToString()) for entry in node.attribute if entry.name != "kernel_shape")
            groups.setdefault((node.input[0], weight.shape[2:], str(geometry)), []).append(node)
    merged = 0
    for members in [members for members in groups.values() if len(members) > 1]:
        weights = [np.asarray(graph.constant(node.input[1])) for node in members]
        biases = [
            np.asarray(graph.constant(node.input[2])) if len(node.input) > 2 and node.input[2] else np.zeros(len(weight), np.float32)
            for node, weight in zip(members, weights, strict=True)
        ]
        whole = onnx.NodeProto()
        whole.CopyFrom(members[0])
        del whole.input[1:]
        whole.input.extend([graph.add_constant(np.concatenate(weights), "weight"), graph.add_constant(np.concatenate(biases), "bias")])
        whole.output[0] = graph.name("merged")
        sizes = graph.add_constant(np.asarray([len(weight) for weight in weights], np.int64), "sizes")
        graph.replace(members, [whole, graph.node("Split", [whole.output[0], sizes], [node.output[0] for node in members], axis=1)])
        merged += len(members) - 1
    return merged
