"""Say attention, written out in products and a softmax, by the name of a fused kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.hand.graph import Graph, attribute, operands
from benchmarks.hand.product import linear

MICROSOFT = "com.microsoft"
HEADS_SECOND = [0, 2, 1, 3]


@dataclass
class Head:
    """One multi-head attention: softmax(scale q kT + mask) v.

    q: [batch, heads, length, width], k and v: the same with their own heads (grouped-query attention has fewer) and length.
    `flat` are q, k, v as [batch, length, heads * width], where the graph has them so; `out` is the value made, flat or with heads.
    """

    q: str
    k: str
    v: str
    mask: str
    scale: float
    flat: list[str | None]
    heads: int
    out: str
    out_is_flat: bool
    ends: list[onnx.NodeProto]


def find_heads(graph: Graph) -> list[Head]:
    """Return every attention of the graph."""
    found = [_match(graph, node) for node in graph.nodes if node.op_type == "Softmax"]
    return [head for head in found if head is not None]


def _match(graph: Graph, softmax: onnx.NodeProto) -> Head | None:
    value, mask, scale = softmax.input[0], "", 1.0
    add = graph.producer(value, "Add")
    if add is not None:
        scores = next((name for name in add.input if _is_scores(graph, name)), None)
        if scores is None:
            return None
        mask = next(name for name in add.input if name != scores)
        value = scores
    value, factor = _unscaled(graph, value)
    product, scale = graph.producer(value, "MatMul"), scale * factor
    weighted = graph.sole_consumer(softmax.output[0], "MatMul")
    if product is None or weighted is None or weighted.input[0] != softmax.output[0] or attribute(softmax, "axis", -1) not in (-1, 3):
        return None
    q, q_factor = _unscaled(graph, product.input[0])
    keys = _keys(graph, product.input[1])
    shape = graph.shape(q)
    if keys is None or shape is None or len(shape) != 4 or not isinstance(shape[1], int):
        return None
    k, k_factor = keys
    k, v = _ungrouped(graph, k), _ungrouped(graph, weighted.input[1])
    out, flat, ends = weighted.output[0], False, [weighted]
    turned = graph.sole_consumer(out, "Transpose")
    joined = graph.sole_consumer(turned.output[0], "Reshape") if turned is not None else None
    if turned is not None and joined is not None and attribute(turned, "perm") == HEADS_SECOND:
        out, flat, ends = joined.output[0], True, [weighted, turned, joined]
    return Head(q, k, v, mask, scale * q_factor * k_factor, [_flat(graph, name) for name in (q, k, v)], shape[1], out, flat, ends)


def _is_scores(graph: Graph, name: str) -> bool:
    return graph.producer(_unscaled(graph, name)[0], "MatMul") is not None


def _unscaled(graph: Graph, value: str) -> tuple[str, float]:
    node = graph.producer(value, "Mul", "Div")
    split = operands(node, graph) if node is not None else None
    if node is None or split is None or split[1].size != 1 or (node.op_type == "Div" and node.input[0] != split[0]):
        return value, 1.0
    factor = float(split[1].reshape(()))
    return split[0], 1.0 / factor if node.op_type == "Div" else factor


def _keys(graph: Graph, value: str) -> tuple[str, float] | None:
    """Return k, its last two axes not swapped, and its scale."""
    value, factor = _unscaled(graph, value)
    node = graph.producer(value, "Transpose")
    if node is not None and attribute(node, "perm") == [0, 1, 3, 2]:
        return node.input[0], factor
    if node is not None and attribute(node, "perm") == [0, 2, 3, 1]:
        turned = graph.name("keys")
        graph.replace([], [graph.node("Transpose", node.input, [turned], perm=HEADS_SECOND)])
        graph.describe(turned, node.input[0], HEADS_SECOND)
        return turned, factor
    back = graph.producer(value, "Reshape")
    swap = graph.producer(back.input[0], "Transpose") if back is not None else None
    there = graph.producer(swap.input[0], "Reshape") if swap is not None else None
    if there is not None and swap is not None and attribute(swap, "perm") == [0, 2, 1] and graph.rank(there.input[0]) == 4:
        return there.input[0], factor
    return None


def _ungrouped(graph: Graph, value: str) -> str:
    """Return the value before its heads were repeated (Unsqueeze, Expand, Reshape), for grouped-query attention."""
    reshape = graph.producer(value, "Reshape")
    expand = graph.producer(reshape.input[0], "Expand") if reshape is not None else None
    unsqueeze = graph.producer(expand.input[0], "Unsqueeze") if expand is not None else None
    axes = graph.constant(unsqueeze.input[1]) if unsqueeze is not None and len(unsqueeze.input) > 1 else None
    return unsqueeze.input[0] if unsqueeze is not None and axes is not None and axes.tolist() == [2] else value


def _flat(graph: Graph, value: str) -> str | None:
    node = graph.producer(value, "Transpose")
    split = graph.producer(node.input[0], "Reshape") if node is not None and attribute(node, "perm") == HEADS_SECOND else None
    return split.input[0] if split is not None and graph.rank(split.input[0]) == 3 else None


def multi_head_attention(graph: Graph) -> int:
    """Write each attention as com.microsoft.MultiHeadAttention; return how many."""
    return _contrib(graph, with_bias=False)


def multi_head_attention_with_bias(graph: Graph) -> int:
    """Write each attention, the biases of q, k and v inside, as com.microsoft.MultiHeadAttention; return how many."""
    return _contrib(graph, with_bias=True)


def _contrib(graph: Graph, *, with_bias: bool) -> int:
    changed = 0
    masks: dict[tuple[str, object], str | None] = {}
    for head in find_heads(graph):
        flat = [name for name in head.flat if name is not None]
        if len(flat) != 3 or not head.out_is_flat:
            continue
        bias, mask = "", _full_mask(graph, head, masks)
        if mask is None:
            continue
        if with_bias:
            lines = [linear(graph, name) for name in flat]
            biases = [line[3] for line in lines if line is not None and line[3] is not None]
            if len(biases) != 3:
                continue
            flat = [line[0].output[0] for line in lines if line is not None]
            bias = graph.add_constant(np.concatenate(biases), "bias")
        inputs = [*flat, bias, "", mask]
        kernel = graph.node("MultiHeadAttention", _trim(inputs), [head.out], MICROSOFT, num_heads=head.heads, scale=head.scale)
        graph.replace(head.ends, [kernel])
        changed += 1
    return changed


def _trim(inputs: list[str]) -> list[str]:
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    return inputs


def _full_mask(graph: Graph, head: Head, made: dict[tuple[str, object], str | None]) -> str | None:
    """Return the additive mask as [1 or batch, 1 or heads, length, length], "" for none, None where its shape cannot be had."""
    if not head.mask:
        return ""
    lengths = [(graph.shape(name) or (None,) * 4)[2] for name in (head.q, head.k)]
    key = (head.mask, tuple(lengths))
    if key not in made:
        made[key] = _expand_mask(graph, head.mask, lengths)
    return made[key]


def _expand_mask(graph: Graph, mask: str, lengths: list[int | str | None]) -> str | None:
    value, shape = graph.constant(mask), graph.shape(mask)
    static = all(isinstance(length, int) for length in lengths)
    if value is not None and static:
        full = np.broadcast_to(value, np.broadcast_shapes(value.shape, (1, 1, *[int(length or 0) for length in lengths])))
        return graph.add_constant(full.copy(), "mask")
    if shape is None:
        return None
    if len(shape) == 4 and list(shape[2:]) == lengths:
        return mask
    if not all(isinstance(length, int) for length in lengths):
        return None
    name = graph.name("mask")
    target = graph.add_constant(np.asarray([1, 1, *[int(length or 0) for length in lengths]], np.int64), "lengths")
    graph.replace([], [graph.node("Expand", [mask, target], [name])])
    return name


def packed_attention(graph: Graph) -> int:
    """Write each self-attention, its three projections inside, as com.microsoft.Attention; return how many."""
    changed = 0
    masks: dict[tuple[str, object], str | None] = {}
    for head in find_heads(graph):
        lines = [linear(graph, name) for name in head.flat if name is not None]
        whole = [line for line in lines if line is not None and line[3] is not None]
        if len(whole) != 3 or len({line[0].input[0] for line in whole}) != 1 or not head.out_is_flat:
            continue
        if len({line[2].shape for line in whole}) != 1 or (mask := _full_mask(graph, head, masks)) is None:
            continue
        weight = graph.add_constant(np.concatenate([line[2] for line in whole], axis=1), "weight")
        bias = graph.add_constant(np.concatenate([np.asarray(line[3]) for line in whole]), "bias")
        inputs = _trim([whole[0][0].input[0], weight, bias, "", "", mask])
        kernel = graph.node("Attention", inputs, [head.out], MICROSOFT, num_heads=head.heads, scale=head.scale)
        graph.replace(head.ends, [kernel])
        changed += 1
    return changed


def native_attention(graph: Graph) -> int:
    """Write each attention, grouped-query included, as ai.onnx Attention (opset 23); return how many."""
    if graph.opset() < 18:
        return 0
    changed = 0
    masks: dict[tuple[str, object], str | None] = {}
    for head in find_heads(graph):
        shapes = [graph.shape(name) for name in (head.q, head.k, head.v)]
        if any(shape is None or len(shape) != 4 for shape in shapes):
            continue
        mask = _full_mask(graph, head, masks)
        if mask is None:
            continue
        inputs = _trim([head.q, head.k, head.v, mask])
        out = graph.name("attended")
        kernel = graph.node("Attention", inputs, [out], scale=head.scale)
        rest = [graph.node(node.op_type, [*node.input], node.output) for node in head.ends[1:]]
        for new, old in zip(rest, head.ends[1:], strict=True):
            new.attribute.extend(old.attribute)
        if rest:
            rest[0].input[0] = out
        else:
            kernel.output[0] = head.out
        graph.require("", 23)
        graph.replace(head.ends, [kernel, *rest])
        changed += 1
    return changed


def rotary_embedding(graph: Graph) -> int:
    """Write x cos + rotate(x) sin, with constant tables, as com.microsoft.RotaryEmbedding; return how many."""
    changed = 0
    for concat in [node for node in graph.nodes if node.op_type == "Concat"]:
        negated = graph.producer(concat.input[0], "Neg")
        halves = graph.producer(negated.input[0], "Split") if negated is not None else None
        sine = graph.sole_consumer(concat.output[0], "Mul")
        total = graph.sole_consumer(sine.output[0], "Add") if sine is not None else None
        if negated is None or halves is None or sine is None or total is None or list(concat.input[1:]) != [halves.output[0]]:
            continue
        cosine = next((maker for name in total.input if (maker := graph.producer(name, "Mul")) is not None and maker != sine), None)
        tables = [operands(node, graph) if node is not None else None for node in (cosine, sine)]
        if cosine is None or tables[0] is None or tables[1] is None or tables[0][0] != halves.input[0] or tables[0][1].ndim != 2:
            continue
        half = tables[0][1].shape[1] // 2
        if any((table[1][:, :half] != table[1][:, half:]).any() for table in tables if table is not None):
            continue
        names = [graph.add_constant(table[1][:, :half], "table") for table in tables if table is not None]
        position = graph.add_constant(np.zeros(1, np.int64), "position")
        kernel = graph.node("RotaryEmbedding", [halves.input[0], position, *names], total.output, MICROSOFT)
        graph.replace([cosine, sine, total, concat, negated], [kernel])
        changed += 1
    return changed
