"""The bodies of ONNX control flow (`If`, `Loop`, `Scan`): which outer values they capture, and renaming those.

Works on protobuf messages by their fields, so that this file needs no `onnx` package. Bodies nest as deep as
protobuf allows (under 100), so that recursion over nesting is safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

CAPTURE = "coset.capture."  # `coset.capture.<i>`: the i-th captured value in the payload of an opaque term


def bodies(node: Any) -> Iterator[Any]:
    """The graphs among the attributes of a NodeProto, by the names of these: files have them in any order."""
    for attribute in sorted(node.attribute, key=lambda attribute: str(attribute.name)):
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """Nodes in their order, each before those of its bodies."""
    stack = [iter(nodes)]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield node
        stack += [iter(body.node) for body in reversed([*bodies(node)])]


def ops_of(nodes: Iterable[Any]) -> dict[str, int]:
    """How many nodes there are of each op, also in bodies inside, the most first; constants are none. Ops of other domains have theirs."""
    called = (node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}" for node in all_nodes(nodes))
    found = Counter(name for name in called if name != "Constant")
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def count(body: Any) -> int:
    """Nodes of a graph or a function, also those of bodies inside; constants are none."""
    return sum(node.op_type != "Constant" for node in all_nodes(body.node))


def defined_names(graph: Any) -> set[str]:
    """The names that `graph` itself defines: inputs, initializers and results of its nodes."""
    names = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    names |= {sparse.values.name for sparse in graph.sparse_initializer}
    return names | {name for node in graph.node for name in node.output if name}


def all_names(graph: Any) -> set[str]:
    """Every name that is defined in `graph` or in a body inside it."""
    names = defined_names(graph)
    for node in graph.node:
        for body in bodies(node):
            names |= all_names(body)
    return names


def free_names(graph: Any) -> list[str]:
    """The names that `graph` takes from outside, in the order of their first use."""
    defined = defined_names(graph)
    found: dict[str, None] = {}
    for node in graph.node:
        found.update((name, None) for name in node.input if name and name not in defined)
        for body in bodies(node):
            found.update((name, None) for name in free_names(body) if name not in defined)
    found.update((value.name, None) for value in graph.output if value.name not in defined)
    return list(found)


def captured_names(node: Any) -> list[str]:
    """The outer names that the bodies of `node` use, in the order of their first use."""
    found: dict[str, None] = {}
    for body in bodies(node):
        found.update((name, None) for name in free_names(body))
    return list(found)


def rename_free(graph: Any, mapping: Mapping[str, str]) -> None:
    """Rename, in place, the outer names that `graph` uses. An inner name that would collide with a new one is renamed first."""
    defined = defined_names(graph)
    free = {old: new for old, new in mapping.items() if old not in defined}
    taken = defined | set(free.values()) | set(free)
    for clash in sorted(defined & set(free.values())):
        fresh = next(name for count in range(len(taken) + 1) if (name := f"{clash}_{count}") not in taken)
        taken.add(fresh)
        _rename_defined(graph, clash, fresh)
    _rename_uses(graph, free)


def _rename_uses(graph: Any, mapping: Mapping[str, str]) -> None:
    if not mapping:
        return
    for node in graph.node:
        for position, name in enumerate(node.input):
            if name in mapping:
                node.input[position] = mapping[name]
        for body in bodies(node):
            rename_free(body, mapping)
    for value in graph.output:
        value.name = mapping.get(value.name, value.name)


def _rename_defined(graph: Any, old: str, new: str) -> None:
    for value in (*graph.input, *graph.value_info):
        value.name = new if value.name == old else value.name
    for tensor in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
        tensor.name = new if tensor.name == old else tensor.name
    for node in graph.node:
        for position, name in enumerate(node.output):
            if name == old:
                node.output[position] = new
    _rename_uses(graph, {old: new})
