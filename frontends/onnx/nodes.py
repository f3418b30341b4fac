"""Nodes of an ONNX graph: their order, their attributes as Python values, and which of them have effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from typing import Any

import onnx

from coset.dialects.onnx.bodies import bodies, captured_names
from coset.frontends.onnx.tensors import Model, OpenedModel
from coset.ir.term import CONSTANT, Term

Attributes = dict[str, Any]
FunctionName = tuple[str, str, str]  # domain, name, overload
_RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
_RANDOM_CONTRIB = {"BiasDropout", "BitmaskDropout", "BitmaskBiasDropout", "Sampling", "PythonOp", "PythonOpGrad", "Send", "Recv"}
_MOST_IN_CYCLE = 8  # nodes that a message names
_KNOWN_DOMAINS = {
    "", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft", "com.microsoft.nchwc",
    "com.ms.internal.nhwc",
}  # fmt: skip


def used_names(graph: Model) -> set[str]:
    """The names of values that a node, a body or the graph's outputs use."""
    names = {value.name for value in graph.output}
    for node in graph.node:
        names.update(node.input)
        names.update(captured_names(node))
    return names


def ordered(opened: OpenedModel, graph: Model, available: set[str]) -> Iterator[Model]:
    """The nodes, operands before users; as the file has them wherever it can be.

    Raises:
        CosetError: two nodes give one name, or nodes need each other in a circle.
    """
    producer: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in producer or name in available):
                raise opened.error(f"two values are called `{name}`", help="names of values must be unique in a graph")
            producer[name] = index
    needs = [{producer[name] for name in (*node.input, *captured_names(node)) if name in producer and name} for node in graph.node]
    users: dict[int, list[int]] = {}
    for index, needed in enumerate(needs):
        for other in needed:
            users.setdefault(other, []).append(index)
    ready = [index for index, needed in enumerate(needs) if not needed]
    left = [len(needed) for needed in needs]
    count = 0
    while ready:
        index = heappop(ready)
        count += 1
        yield graph.node[index]
        for user in users.get(index, ()):
            left[user] -= 1
            if not left[user]:
                heappush(ready, user)
    if count < len(graph.node):
        nodes = [graph.node[index] for index in _cycle(needs, left)]
        first, *rest = [f"`{node.name or node.output[0]}`" for node in nodes]
        way = [*rest[:_MOST_IN_CYCLE], *([".."] if len(rest) > _MOST_IN_CYCLE else []), first]
        said = f"the graph has a cycle: node {first} ({nodes[0].op_type}) needs {', which needs '.join(way)}"
        raise opened.error(said, help="no node may use what is computed from its own result")


def _cycle(needs: Sequence[AbstractSet[int]], left: Sequence[int]) -> list[int]:
    """Nodes of which each needs the next one, and the last the first, among those that are `left` waiting."""
    place = next(index for index, number in enumerate(left) if number)
    seen: dict[int, None] = {}
    while place not in seen:
        seen[place] = None
        place = min(index for index in needs[place] if left[index])
    path = list(seen)
    return path[path.index(place) :]


def attributes_of(node: Model, opened: OpenedModel) -> Attributes | None:
    """The attributes as numbers, text, tuples and Constants, without bodies; None when one is of another kind (a type, a reference)."""
    kinds = onnx.AttributeProto
    result: Attributes = {}
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return None
        if attribute.type == kinds.GRAPH:
            continue
        if attribute.type == kinds.INT:
            result[attribute.name] = int(attribute.i)
        elif attribute.type == kinds.FLOAT:
            result[attribute.name] = float(attribute.f)
        elif attribute.type == kinds.STRING:
            result[attribute.name] = attribute.s.decode(errors="surrogateescape")
        elif attribute.type == kinds.INTS:
            result[attribute.name] = tuple(map(int, attribute.ints))
        elif attribute.type == kinds.FLOATS:
            result[attribute.name] = tuple(map(float, attribute.floats))
        elif attribute.type == kinds.STRINGS:
            result[attribute.name] = tuple(text.decode(errors="surrogateescape") for text in attribute.strings)
        elif attribute.type == kinds.TENSOR:
            result[attribute.name] = opened.constant(attribute.t)
        elif attribute.type == kinds.SPARSE_TENSOR and (dense := opened.dense(attribute.sparse_tensor)) is not None:
            result[attribute.name] = dense
        else:
            return None
    return result


def random_functions(functions: Mapping[FunctionName, Model]) -> set[FunctionName]:
    """The model-local functions that draw random numbers, themselves or through others."""
    found: set[FunctionName] = set()
    while True:
        left = {name: function for name, function in functions.items() if name not in found}
        new = {name for name, function in left.items() if any(_random(node, found, functions) for node in function.node)}
        if not new:
            return found
        found |= new


def _random(node: Model, random: set[FunctionName], functions: Mapping[FunctionName, Model] | set[FunctionName]) -> bool:
    name = (node.domain, node.op_type, node.overload)
    if name in functions:
        return name in random
    if node.domain not in _KNOWN_DOMAINS or (node.domain == "com.microsoft" and node.op_type in _RANDOM_CONTRIB):
        return True  # of a domain that we do not know anything may be expected
    if draws_itself(node):
        return True
    return any(_random(inner, random, functions) for body in bodies(node) for inner in body.node)


def draws_itself(node: Model) -> bool:
    """Whether a node of ONNX's own may draw random numbers, whatever its bodies do."""
    return node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2 and bool(node.input[2]))


def draws(
    node: Model, domain: str, operands: Sequence[Term], random: set[FunctionName], opsets: Mapping[str, int], functions: set[FunctionName]
) -> bool:
    """True when `node` has an effect: it draws random numbers, or is of a domain of which nothing is known."""
    if domain == "" and node.op_type == "Dropout" and opsets.get("", 1) >= 12 and len(operands) > 2:
        training = operands[2]
        known = training.op is CONSTANT and not training.attribute("value").array().any()
        return not known and bool(node.input[2])
    return _random(node, random, functions)
