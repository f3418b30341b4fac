"""A model's own functions: what they are, and the model with their nodes in place of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import onnx
from onnx import inliner

from coset.dialects.onnx.bodies import all_nodes
from coset.dialects.onnx.origin import onnx_origin
from coset.frontends.onnx.tensors import OpenedModel
from coset.ir.program import Program


def name_of(function: Any) -> tuple[str, str, str]:
    """Domain, name and overload of a function."""
    return function.domain, function.name, function.overload


def called(node: Any) -> tuple[str, str, str]:
    """What a node calls, by domain, name and overload."""
    return node.domain, node.op_type, node.overload


def call_graph(model: Any) -> Any:
    """Which of a model's own functions call which, by name, as a directed graph of networkx."""
    import networkx as nx  # few models have functions

    own = {name_of(each): each for each in model.functions}
    calls = nx.DiGraph()
    calls.add_nodes_from(own)
    for name, function in own.items():
        calls.add_edges_from((name, other) for node in all_nodes(function.node) if (other := called(node)) in own)
    return calls


def functions_of(program: Program) -> Mapping[tuple[str, str, str], bytes]:
    """The text of each function of the model's own that a program was read from, by domain, name and overload."""
    model = onnx_origin(program.source).model
    header = onnx.ModelProto.FromString(model or b"")
    return {name_of(each): each.SerializeToString(deterministic=True) for each in header.functions}


def two_of_one_name(one: Program, other: Program) -> str | None:
    """A function that both models have under one name with two texts: calls of it are no one op. None where there is none."""
    own, theirs = functions_of(one), functions_of(other)
    return next((name for key in own.keys() & theirs.keys() if own[key] != theirs[key] for name in (".".join(filter(None, key)),)), None)


def inlined(opened: OpenedModel) -> OpenedModel:
    """An opened model, as `without_calls` has it."""
    return replace(opened, proto=without_calls(opened.proto))


def without_calls(model: Any) -> Any:
    """The model with the nodes of its own functions in place of their calls; those stay whose versions of the opsets are others than the
    model's, and all where functions call each other in a circle or ONNX's inliner refuses the model."""
    if not model.functions or _are_circular(model):
        return model
    try:
        return inliner.inline_local_functions(_with_defaults(model))
    except (RuntimeError, ValueError):
        return model


def _are_circular(model: Any) -> bool:
    """Whether a function calls itself, by way of others too."""
    import networkx as nx

    return not nx.is_directed_acyclic_graph(call_graph(model))


def _with_defaults(model: Any) -> Any:
    """The model with each attribute written at a call that has a default there: ONNX's inliner (1.23) knows no defaults."""
    defaults = {name_of(each): list(each.attribute_proto) for each in model.functions}
    if not any(defaults.values()):
        return model
    told = onnx.ModelProto()
    told.CopyFrom(model)
    for node in all_nodes([*told.graph.node, *(node for function in told.functions for node in function.node)]):
        given = {attribute.name for attribute in node.attribute}
        node.attribute.extend(each for each in defaults.get(called(node), ()) if each.name not in given)
    return told
