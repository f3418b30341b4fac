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
    shut |= {node.input[2] for node in nodes if node.op_type == "Dropout" and _draws(node) and _computed_false(found, node.input[2])}
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


def _computed_false(model: Model, switch: str) -> bool:
    """Whether a switch is computed from constants of the graph alone, and is false: the program made of the model has its value."""
    from onnx.reference import ReferenceEvaluator  # few models come here, and it takes long to load

    made_by = {name: node for node in model.graph.node for name in node.output if name}
    initial = {tensor.name: tensor for tensor in model.graph.initializer}
    needed: dict[int, Model] = {}
    held: dict[str, Model] = {}
    pending = [switch] if switch in made_by else []
    while pending:
        name = pending.pop()
        if name in initial and not initial[name].external_data:
            held[name] = initial[name]
        elif name not in made_by or any(bodies(made_by[name])) or draws_itself(made_by[name]):
            return False  # an input, or what takes a runtime to compute
        elif id(made_by[name]) not in needed:
            needed[id(made_by[name])] = made_by[name]
            pending += [each for each in made_by[name].input if each]
    if not needed:
        return False
    nodes = [node for node in model.graph.node if id(node) in needed]
    graph = helper.make_graph(nodes, "switch", [], [helper.make_tensor_value_info(switch, onnx.TensorProto.BOOL, None)], [*held.values()])
    own = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    try:
        (value,) = ReferenceEvaluator(own).run(None, {})
    except Exception:  # ops that it does not have: the switch stays unknown, as it is for whoever reads the model
        return False
    return not np.asarray(value).any()
