"""A model's own functions: what they are, and the model with their nodes in place of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import onnx
from onnx import inliner

from coset.dialects.onnx_bodies import bodies
from coset.frontends.onnx_tensors import Opened
from coset.ir.program import Program


def functions_of(program: Program) -> Mapping[tuple[str, str, str], bytes]:
    """The text of each function of the model's own that a program was read from, by domain, name and overload."""
    if program.source.get("format") != "onnx":
        return {}
    header = onnx.ModelProto.FromString(program.source["model"])
    return {(each.domain, each.name, each.overload): each.SerializeToString(deterministic=True) for each in header.functions}


def two_of_one_name(one: Program, other: Program) -> str | None:
    """A function that both models have under one name with two texts: calls of it are no one op. None where there is none."""
    own, theirs = functions_of(one), functions_of(other)
    return next((name for key in own.keys() & theirs.keys() if own[key] != theirs[key] for name in (".".join(filter(None, key)),)), None)


def inlined(opened: Opened) -> Opened:
    """The model with the nodes of its own functions in place of their calls; those stay whose versions of the opsets are others than the
    model's, and all where functions call each other in a circle or ONNX's inliner refuses the model."""
    if not opened.proto.functions or _are_circular(opened.proto):
        return opened
    try:
        return replace(opened, proto=inliner.inline_local_functions(_with_defaults(opened.proto)))
    except (RuntimeError, ValueError):
        return opened


def _are_circular(model: Any) -> bool:
    """Whether a function calls itself, by way of others too."""
    import networkx as nx  # few models have functions

    own = {(each.domain, each.name, each.overload): each for each in model.functions}
    calls = nx.DiGraph()
    for name, function in own.items():
        stack = list(function.node)
        while stack:
            node = stack.pop()
            called = node.domain, node.op_type, node.overload
            if called in own:
                calls.add_edge(name, called)
            stack += [inner for body in bodies(node) for inner in body.node]
    return not nx.is_directed_acyclic_graph(calls)


def _with_defaults(model: Any) -> Any:
    """The model with each attribute written at a call that has a default there: ONNX's inliner (1.23) knows no defaults."""
    defaults = {(each.domain, each.name, each.overload): list(each.attribute_proto) for each in model.functions}
    if not any(defaults.values()):
        return model
    told = onnx.ModelProto()
    told.CopyFrom(model)
    stack = [*told.graph.node, *(node for function in told.functions for node in function.node)]
    while stack:
        node = stack.pop()
        given = {attribute.name for attribute in node.attribute}
        node.attribute.extend(each for each in defaults.get((node.domain, node.op_type, node.overload), ()) if each.name not in given)
        stack += [inner for body in bodies(node) for inner in body.node]
    return told
