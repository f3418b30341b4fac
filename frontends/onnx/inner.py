"""The bodies of ONNX nodes that stay, written anew: each is read as a model of its own, whose inputs are its own and what it captures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx

from coset.dialects.onnx.bodies import all_nodes
from coset.frontends.onnx.nodes import draws_itself
from coset.frontends.onnx.tensors import Model
from coset.frontends.onnx.types import type_proto
from coset.ir.errors import CosetError
from coset.ir.types import AbsentType, TensorType, Type

Rewrite = Callable[[Model], Model | None]  # a body as a model -> the same, written anew and better; None: it stays


@dataclass(frozen=True)
class Rewriting:
    """How bodies of nodes that stay are written anew. `known`: also those that have a meaning, which then is that of the new body."""

    write: Rewrite
    known: bool = False


def rewritten(body: Model, captured: Mapping[str, Type], constants: Mapping[str, Model], header: Model, rewrite: Rewrite) -> Model:
    """`body` as `rewrite` writes it, or as it came where that does not work or makes nothing better. `captured` are the types of the
    outer values by the names under which the body uses them, `constants` those whose values are known; `header` is the model around it."""
    if any(not isinstance(type, TensorType | AbsentType) for type in captured.values()):
        return body
    try:
        made = rewrite(_alone(body, captured, constants, header))
    except CosetError:
        return body  # the body stays as it came, and whoever runs it says what is wrong with it
    if made is None or list(made.opset_import) != list(header.opset_import):
        return body
    if _drawing(made.graph) != _drawing(body):  # a comparison could not tell which are the same
        return body
    result = made.graph
    own = [value for value in result.input if value.name not in captured]
    del result.input[:]
    result.input.extend(own)
    return result


def _drawing(body: Model) -> int:
    """How many nodes of a body may draw random numbers."""
    return sum(draws_itself(node) for node in all_nodes(body.node))


def _alone(body: Model, captured: Mapping[str, Type], constants: Mapping[str, Model], header: Model) -> Model:
    model = onnx.ModelProto(ir_version=header.ir_version)
    model.opset_import.extend(header.opset_import)
    model.functions.extend(header.functions)
    model.graph.CopyFrom(body)
    for name, type in captured.items():
        if isinstance(type, TensorType):
            model.graph.input.append(onnx.ValueInfoProto(name=name, type=type_proto(type, {})))
    for name, value in constants.items():
        model.graph.initializer.add().CopyFrom(value)
        model.graph.initializer[-1].name = name
    return model
