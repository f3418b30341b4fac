"""The nodes of a model that draw random numbers: marked by seeds, found again in the program that is read from it, and numbered."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import helper, numpy_helper

from coset.dialects.onnx.bodies import all_nodes, bodies
from coset.frontends.onnx.functions import without_calls
from coset.frontends.onnx.nodes import draws_itself
from coset.frontends.onnx.tensors import Model
from coset.ir.builtin import OPAQUE
from coset.ir.program import Program
from coset.ir.term import Term

FIRST = 1 << 22  # of the marks: large, and all numbers to four times as much are f32s, in which most seeds are written
SWITCHED = "Dropout"
SWITCH = 2  # the operand of a Dropout that says whether it trains


def marked(model: str | Path | bytes) -> tuple[Model, range] | None:
    """The model in which each node that may draw and has no seed has a mark for one, and the marks; calls of functions that may draw are
    their nodes. External data stays where it is said to be. None where nothing draws."""
    found = onnx.ModelProto.FromString(model) if isinstance(model, bytes) else onnx.load(model, load_external_data=False)
    if any(_draws(node) for function in found.functions for node in all_nodes(function.node)):
        found = without_calls(found)
    nodes = list(all_nodes(found.graph.node))
    shut = {name for graph in (found.graph, *(body for node in nodes for body in bodies(node))) for name in _falses(graph)}
    drawing = [node for node in nodes if _draws(node) and (node.op_type != SWITCHED or node.input[SWITCH] not in shut)]
    seeds = [_seed_of(node) for node in nodes]
    first = FIRST
    while any(seed is not None and first <= seed < first + len(drawing) for seed in seeds):
        first += len(drawing)
    for number, node in enumerate(drawing, first):
        if _seed_of(node) is None:
            node.attribute.append(_seed(node, number))
    return (found, range(first, first + len(drawing))) if drawing else None


def effects_of(program: Program) -> Iterator[tuple[float, Term | None]]:
    """The seeds of the nodes with an effect in the program that was read from a marked model, those in bodies among them; each with the
    term that says whether the node trains, where it is a Dropout and that is computed outside of bodies."""
    for term in program.terms():
        if term.op is not OPAQUE or not term.attribute("effect"):
            continue
        node = onnx.NodeProto.FromString(term.attribute("payload"))  # without operands, but for the names of what its bodies capture
        captured = dict(zip(node.input, term.operands[len(term.operands) - len(node.input) :], strict=True))
        formal = term.operands[1:]  # the first is the token
        if (seed := _seed_of(node)) is not None:
            yield seed, formal[SWITCH] if term.attribute("name") == SWITCHED and len(formal) > SWITCH else None
        for each in (inner for body in bodies(node) for inner in all_nodes(body.node)):
            if (seed := _seed_of(each)) is not None:
                yield seed, captured.get(each.input[SWITCH]) if each.op_type == SWITCHED and len(each.input) > SWITCH else None


def numbered(model: Model, marks: range, drawing: Container[float]) -> bytes:
    """The serialized marked model in which each node whose mark is among the `drawing` has its number among those as its seed, in the order
    of the file, with the bodies of control flow where their node stands; others have none."""
    number = 0
    for node in all_nodes(model.graph.node):
        mark = _seed_of(node)
        if mark not in marks:
            continue
        kept = [attribute for attribute in node.attribute if attribute.name != "seed"]
        number += mark in drawing
        del node.attribute[:]
        node.attribute.extend([*kept, *([_seed(node, number)] if mark in drawing else [])])
    return bytes(model.SerializeToString())


def _seed(node: Model, number: int) -> Model:
    return helper.make_attribute("seed", number if node.op_type == SWITCHED else float(number))


def _seed_of(node: Model) -> float | None:
    return next((helper.get_attribute_value(attribute) for attribute in node.attribute if attribute.name == "seed"), None)


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
