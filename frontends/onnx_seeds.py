"""A model whose random nodes have seeds, so that two models that draw the same numbers can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from coset.dialects.onnx_bodies import all_nodes, bodies
from coset.frontends.onnx_functions import without_calls
from coset.frontends.onnx_nodes import draws_itself
from coset.frontends.onnx_tensors import Model


def with_seeds(model: str | Path | bytes) -> bytes | None:
    """The serialized model in which each node that draws has a seed of its own where it has none: its number among those that draw, in the
    order of the file, with the bodies of control flow where their node stands and the nodes of functions where they are called. External
    data stays where it is said to be. None where nothing draws.
    """
    found = onnx.ModelProto.FromString(model) if isinstance(model, bytes) else onnx.load(model, load_external_data=False)
    if any(_draws(node) for function in found.functions for node in all_nodes(function.node)):
        found = without_calls(found)
    nodes = list(all_nodes(found.graph.node))
    shut = {name for graph in (found.graph, *(body for node in nodes for body in bodies(node))) for name in _falses(graph)}
    shut |= _computed_falses(found, {node.input[2] for node in nodes if node.op_type == "Dropout" and _draws(node)} - shut)
    drawing = [node for node in nodes if _draws(node) and (node.op_type != "Dropout" or node.input[2] not in shut)]
    if not drawing:
        return None
    for number, node in enumerate(drawing, 1):
        if not any(attribute.name == "seed" for attribute in node.attribute):
            node.attribute.append(helper.make_attribute("seed", number if node.op_type == "Dropout" else float(number)))
    return bytes(found.SerializeToString())


def _draws(node: Model) -> bool:
    return node.domain in ("", "ai.onnx") and draws_itself(node)


def _falses(graph: Model) -> Iterator[str]:
    """The names of constants of one truth that are false: they switch the training mode of a Dropout off."""
    tensors: list[tuple[str, Any]] = [(tensor.name, tensor) for tensor in graph.initializer]
    for node in graph.node:
        if node.op_type == "Constant":
            tensors += [(node.output[0], attribute.t) for attribute in node.attribute if attribute.name == "value"]
    for name, tensor in tensors:
        if tensor.data_type == onnx.TensorProto.BOOL and not tensor.external_data and not numpy_helper.to_array(tensor).any():
            yield name


def _computed_falses(model: Model, switches: set[str]) -> set[str]:
    """Those of the switches that are computed from constants of the graph alone and are false: the program made of the model has their
    values."""
    initial = {tensor.name: tensor for tensor in model.graph.initializer if not tensor.external_data}
    known, nodes = {"", *initial}, []
    for node in model.graph.node:
        if known.issuperset(node.input) and not any(bodies(node)) and not draws_itself(node):
            known.update(node.output)
            nodes.append(node)
    asked = sorted((switches & known) - initial.keys())
    if not asked:
        return set()
    needed, kept = set(asked), []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            needed.update(node.input)
            kept.append(node)
    from onnx.reference import ReferenceEvaluator  # few models come here, and it takes long to load

    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.BOOL, None) for name in asked]
    held = [tensor for name, tensor in initial.items() if name in needed]
    own = helper.make_graph(kept[::-1], "switches", [], outputs, held)
    try:
        values = ReferenceEvaluator(helper.make_model(own, opset_imports=model.opset_import, ir_version=model.ir_version)).run(None, {})
    except Exception:  # ops that it does not have: the switches stay unknown, as they are for whoever reads the model
        return set()
    return {name for name, value in zip(asked, values, strict=True) if not np.asarray(value).any()}
