"""Matrix products: merge those that share an operand, fold scales and transposes into them, choose MatMul or Gemm."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.hand.graph import Graph, attribute, operands

MICROSOFT = "com.microsoft"


Linear = tuple[onnx.NodeProto, onnx.NodeProto | None, np.ndarray, np.ndarray | None]
"""A product with a constant, perhaps with a bias: MatMul, Add or None, weight [k, n], bias [n] or None."""


def linear(graph: Graph, value: str) -> Linear | None:
    """Return the parts when `value` is x @ W or x @ W + b with constant W and b."""
    add, bias = graph.producer(value, "Add"), None
    if add is not None:
        split = operands(add, graph)
        if split is None or split[1].ndim != 1:
            return None
        value, bias = split
    product = graph.producer(value, "MatMul")
    weight = graph.constant(product.input[1]) if product is not None else None
    if product is None or weight is None or weight.ndim != 2 or (add is not None and not graph.only_feeds(value, add)):
        return None
    return (product, add, weight, bias) if bias is None or bias.shape == weight.shape[1:] else None


def merge_projections(graph: Graph) -> int:
    """Merge constant products of one left operand (q, k, v; gate, up) into one product and a Split; return how many went."""
    if graph.opset() < 13:
        return 0
    groups: dict[tuple[str, bool], list[Linear]] = {}
    for node in [node for node in graph.nodes if node.op_type == "MatMul"]:
        add = graph.sole_consumer(node.output[0], "Add")
        found = (linear(graph, add.output[0]) if add is not None else None) or linear(graph, node.output[0])
        if found is not None:
            groups.setdefault((node.input[0], found[3] is not None), []).append(found)
    merged = 0
    for (left, biased), members in groups.items():
        if len(members) < 2:
            continue
        weight = graph.add_constant(np.concatenate([member[2] for member in members], axis=1), "weight")
        product, total = graph.name("merged"), graph.name("merged")
        new = [graph.node("MatMul", [left, weight], [product])]
        if biased:
            bias = graph.add_constant(np.concatenate([np.asarray(member[3]) for member in members]), "bias")
            new.append(graph.node("Add", [product, bias], [total]))
        sizes = graph.add_constant(np.asarray([member[2].shape[1] for member in members], np.int64), "sizes")
        outputs = [(member[1] if member[1] is not None else member[0]).output[0] for member in members]
        new.append(graph.node("Split", [total if biased else product, sizes], outputs, axis=-1))
        graph.replace([node for member in members for node in member[:2] if node is not None], new)
        merged += len(members) - 1
    return merged


def merge_constant_chain(graph: Graph) -> int:
    """Write (x @ A) @ B with constants as x @ (A B) where that takes fewer multiplications; return how many products went."""
    merged = 0
    for node in [node for node in graph.nodes if node.op_type == "MatMul"]:
        inner = graph.producer(node.input[0], "MatMul")
        if inner is None or not graph.only_feeds(inner.output[0], node):
            continue
        first, second = graph.constant(inner.input[1]), graph.constant(node.input[1])
        if first is None or second is None or first.ndim != 2 or second.ndim != 2:
            continue
        if first.shape[0] * second.shape[1] <= first.size + second.size:
            weight = graph.add_constant((first.astype(np.float64) @ second).astype(first.dtype), "weight")
            graph.replace([inner, node], [graph.node("MatMul", [inner.input[0], weight], node.output)])
            merged += 1
    return merged


def fold_scale_into_weights(graph: Graph) -> int:
    """Fold a scalar Mul or Div on x @ W (+ b), also through Reshape and Transpose and through the product of two such, into W and b."""
    folded = 0
    for node in [node for node in graph.nodes if node.op_type in ("Mul", "Div")]:
        split = operands(node, graph)
        factor = None if split is None or split[1].size != 1 or split[1].dtype != np.float32 else float(split[1].reshape(()))
        if split is None or factor is None or (node.op_type == "Div" and node.input[0] != split[0]):
            continue
        found = _scalable(graph, split[0], node)
        if found is None or split[0] in graph.pinned or node.output[0] in graph.pinned:
            continue
        _scale(graph, found, 1.0 / factor if node.op_type == "Div" else factor)
        graph.replace([node], [])
        graph.rename(node.output[0], split[0])
        folded += 1
    return folded


def _scalable(graph: Graph, value: str, reader: onnx.NodeProto) -> Linear | None:
    """Return the `linear` that alone makes `value` for `reader`, looking through data movement and one product."""
    while graph.only_feeds(value, reader):
        found = linear(graph, value)
        if found is not None:
            return found
        maker = graph.producer(value, "Reshape", "Transpose", "MatMul")
        if maker is None:
            return None
        reader, value = maker, maker.input[0]
    return None


def _scale(graph: Graph, found: Linear, factor: float) -> None:
    product, add, weight, bias = found
    product.input[1] = graph.add_constant((weight * np.float64(factor)).astype(weight.dtype), "weight")
    if add is not None and bias is not None:
        position = 1 if graph.constant(add.input[1]) is not None else 0
        add.input[position] = graph.add_constant((bias * np.float64(factor)).astype(bias.dtype), "bias")


def fused_matmul(graph: Graph) -> int:
    """Write MatMul with a transposed operand or a scaled result as com.microsoft.FusedMatMul; return how many nodes went."""
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "MatMul"]:
        flags, inputs, gone, moved = {"transA": 0, "transB": 0}, list(node.input), [], []
        for position, flag in enumerate(flags):
            transpose = graph.producer(inputs[position], "Transpose")
            perm = attribute(transpose, "perm") if transpose is not None else None
            if transpose is None or perm is None or len(perm) < 2 or not graph.only_feeds(transpose.output[0], node):
                continue
            swapped = [*perm[:-2], perm[-1], perm[-2]]
            flags[flag] = 1
            gone.append(transpose)
            inputs[position] = transpose.input[0]
            if swapped != sorted(perm):
                inputs[position] = graph.name("transposed")
                moved.append(graph.node("Transpose", transpose.input, [inputs[position]], perm=swapped))
        output, alpha = node.output[0], 1.0
        scaled = graph.sole_consumer(output, "Mul", "Div")
        split = operands(scaled, graph) if scaled is not None else None
        if scaled is not None and split is not None and split[1].size == 1 and (scaled.op_type == "Mul" or scaled.input[0] == output):
            factor = float(split[1].reshape(()))
            alpha, output = (factor if scaled.op_type == "Mul" else 1.0 / factor), scaled.output[0]
            gone.append(scaled)
        if gone:
            graph.replace([node, *gone], [*moved, graph.node("FusedMatMul", inputs, [output], MICROSOFT, alpha=alpha, **flags)])
            changed += len(gone)
    return changed


def split_gemm(graph: Graph) -> int:
    """Write Gemm with constant weights as MatMul and Add; return how many."""
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "Gemm"]:
        weight = graph.constant(node.input[1])
        if weight is None or attribute(node, "transA", 0) or attribute(node, "alpha", 1.0) != 1.0 or attribute(node, "beta", 1.0) != 1.0:
            continue
        right = graph.add_constant(weight.T.copy(), "weight") if attribute(node, "transB", 0) else node.input[1]
        if len(node.input) > 2:
            product = graph.name("product")
            new = [graph.node("MatMul", [node.input[0], right], [product]), graph.node("Add", [product, node.input[2]], node.output)]
        else:
            new = [graph.node("MatMul", [node.input[0], right], node.output)]
        graph.replace([node], new)
        changed += 1
    return changed


def make_gemm(graph: Graph) -> int:
    """Write a product of matrices (rank 2) plus a bias as Gemm; return how many."""
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "MatMul"]:
        add = graph.sole_consumer(node.output[0], "Add")
        split = operands(add, graph) if add is not None else None
        if add is None or split is None or split[1].ndim != 1 or graph.rank(node.input[0]) != 2 or graph.rank(node.input[1]) != 2:
            continue
        bias = next(name for name in add.input if name != node.output[0])
        graph.replace([node, add], [graph.node("Gemm", [*node.input, bias], add.output)])
        changed += 1
    return changed


def gemm_update(graph: Graph) -> int:
    """Write p - c * (aT @ b), a weight's step of gradient descent, as one Gemm with alpha = -c and beta = 1; return how many."""
    changed = 0
    for node in [node for node in graph.nodes if node.op_type == "Sub"]:
        scaled = graph.producer(node.input[1], "Mul")
        split = operands(scaled, graph) if scaled is not None else None
        product = graph.producer(split[0], "MatMul") if split is not None else None
        if scaled is None or split is None or product is None or split[1].size != 1 or graph.rank(node.output[0]) != 2:
            continue
        if not (graph.only_feeds(scaled.output[0], node) and graph.only_feeds(product.output[0], scaled)):
            continue
        if any(graph.rank(name) != 2 for name in product.input) or graph.shape(node.input[0]) != graph.shape(node.output[0]):
            continue
        left, transpose = product.input[0], graph.producer(product.input[0], "Transpose")
        turned = transpose is not None and attribute(transpose, "perm", [1, 0]) == [1, 0]
        inputs = [transpose.input[0] if turned and transpose is not None else left, product.input[1], node.input[0]]
        gemm = graph.node("Gemm", inputs, node.output, alpha=-float(split[1].reshape(())), beta=1.0, transA=int(turned))
        graph.replace([product, scaled, node], [gemm])
        changed += 1
    return changed
