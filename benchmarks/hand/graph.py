"""An ONNX model opened for surgery by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Shape = tuple[int | str | None, ...]
Types = dict[str, tuple[int, Shape | None]]
INFERENCE_BYTES = 4096
"""Constants above this size are hidden from shape inference, which copies the model: no shape is computed from so large a value."""


class Graph:
    """The nodes, constants and wiring of one model.

    Law: a value keeps its name while it is in the graph; a surgery replaces nodes and lets new nodes make the old names.
    Values that a nested graph (`If`, `Loop`) captures, and graph outputs, are `pinned`: no surgery may absorb them.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self._known: Types = {}
        self.opsets = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in model.opset_import}
        self.nodes = [_copy(node) for node in model.graph.node]
        self.initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in self.nodes:
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
                self.initializers[node.output[0]] = _constant_tensor(node)
        self.nodes = [node for node in self.nodes if node.op_type != "Constant"]
        self.outputs = {value.name for value in model.graph.output}
        self.inputs = [value for value in model.graph.input if value.name not in self.initializers]
        self._arrays: dict[str, np.ndarray] = {}
        self._types: Types | None = None
        self._used = set(self.initializers) | {name for node in self.nodes for name in node.output} | {value.name for value in self.inputs}
        self._fresh = 0
        self._index()

    def _index(self) -> None:
        self.pinned = set(self.outputs) | set(_captured(self.nodes))
        self._producer = {name: node for node in self.nodes for name in node.output if name}
        self._consumers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for name in set(node.input):
                self._consumers.setdefault(name, []).append(node)

    def opset(self, domain: str = "") -> int:
        """Return the version that the model imports of `domain`, 0 when it imports none."""
        return int(self.opsets.get(domain, 0))

    def opset_imports(self) -> list[onnx.OperatorSetIdProto]:
        """Return the imports as ONNX writes them."""
        return [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]

    def require(self, domain: str, version: int) -> None:
        """Import `domain` at `version` or newer."""
        self.opsets[domain] = max(self.opset(domain), version)

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of the constant `name`, None when it is not one."""
        if name not in self._arrays and name in self.initializers:
            self._arrays[name] = numpy_helper.to_array(self.initializers[name])
        return self._arrays.get(name)

    def scalar(self, name: str) -> float | None:
        """Return the value of a float constant that holds one number, of any rank."""
        value = self.constant(name)
        return float(value.reshape(())) if value is not None and value.size == 1 and value.dtype.kind == "f" else None

    def producer(self, name: str, *op_types: str) -> onnx.NodeProto | None:
        """Return the node that makes `name`, if its type is one of `op_types` (any, when none is given)."""
        node = self._producer.get(name)
        return node if node is not None and (not op_types or node.op_type in op_types) else None

    def consumers(self, name: str) -> list[onnx.NodeProto]:
        """Return the nodes that read `name`, each once."""
        return self._consumers.get(name, [])

    def sole_consumer(self, name: str, *op_types: str) -> onnx.NodeProto | None:
        """Return the only reader of `name` when nothing else sees the value and its type fits."""
        readers = self.consumers(name)
        if name in self.pinned or len(readers) != 1 or (op_types and readers[0].op_type not in op_types):
            return None
        return readers[0]

    def only_feeds(self, name: str, node: onnx.NodeProto) -> bool:
        """Return whether `node` alone sees the value `name`."""
        readers = self.consumers(name)
        return name not in self.pinned and len(readers) == 1 and readers[0] is node

    def shape(self, name: str) -> Shape | None:
        """Return the inferred shape of `name`: integers, symbols, None for an unknown dimension; None for unknown rank."""
        return self.types().get(name, (0, None))[1]

    def dtype(self, name: str) -> int:
        """Return the inferred ONNX element type of `name`, 0 when unknown."""
        return self.types().get(name, (0, None))[0]

    def rank(self, name: str) -> int | None:
        """Return the inferred rank of `name`, None when unknown."""
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def add_constant(self, value: np.ndarray, hint: str) -> str:
        """Add a constant and return its name."""
        name = self.name(hint)
        self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        self._arrays[name] = value
        return name

    def name(self, hint: str) -> str:
        """Return a value name that the graph does not use."""
        self._fresh += 1
        while f"{hint}_hand{self._fresh}" in self._used:
            self._fresh += 1
        self._used.add(f"{hint}_hand{self._fresh}")
        return f"{hint}_hand{self._fresh}"

    def node(self, op_type: str, inputs: Iterable[str], outputs: Iterable[str], domain: str = "", **attributes: Any) -> onnx.NodeProto:
        """Return a new node, not yet in the graph; a vendor's domain is imported."""
        if domain:
            self.require(domain, 1)
        return helper.make_node(op_type, list(inputs), list(outputs), domain=domain, **attributes)

    def replace(self, old: Iterable[onnx.NodeProto], new: Iterable[onnx.NodeProto]) -> None:
        """Exchange nodes; the order is mended by `finish`."""
        gone = {id(node) for node in old}
        self.nodes = [node for node in self.nodes if id(node) not in gone] + list(new)
        self._index()

    def rename(self, old: str, new: str) -> None:
        """Let every reader of `old` read `new`; `old` may not be pinned."""
        assert old not in self.pinned, old
        readers = self._consumers.pop(old, [])
        known = self._consumers.setdefault(new, [])
        for node in readers:
            for position, name in enumerate(node.input):
                if name == old:
                    node.input[position] = new
            if not any(node is other for other in known):
                known.append(node)

    def clean(self) -> None:
        """Drop what no output needs and order the nodes."""
        needed: list[onnx.NodeProto] = []
        seen: set[int] = set()
        pending = [(self._producer[name], False) for name in sorted(self.pinned, reverse=True) if name in self._producer]
        while pending:
            node, expanded = pending.pop()
            if expanded:
                needed.append(node)
                continue
            if id(node) in seen:
                continue
            seen.add(id(node))
            pending.append((node, True))
            reads = [*node.input, *_captured([node])]
            pending.extend((self._producer[name], False) for name in reversed(reads) if name in self._producer)
        self.nodes = needed
        read = {name for node in needed for name in node.input} | self.pinned
        self.initializers = {name: tensor for name, tensor in self.initializers.items() if name in read}
        self._index()

    def settle(self) -> None:
        """Clean up after a surgery, and let the next one infer the types of what is new."""
        self._known = self.types()
        self._types = None
        self.clean()

    def finish(self) -> onnx.ModelProto:
        """Return the model after surgery: dead nodes and constants dropped, nodes in topological order."""
        self.clean()
        graph = helper.make_graph(self.nodes, self.model.graph.name or "graph", self.inputs, list(self.model.graph.output))
        for name, tensor in self.initializers.items():
            added = graph.initializer.add()
            added.CopyFrom(tensor)
            added.name = name
        model = helper.make_model(graph, opset_imports=self.opset_imports(), ir_version=max(8, self.model.ir_version))
        model.functions.extend(self.model.functions)
        return model

    def counts(self) -> Counter[str]:
        """Return how many nodes there are of each type."""
        return Counter(node.op_type for node in self.nodes)

    def types(self) -> Types:
        """Return element type and shape of every value that inference or the `known` types of an earlier form tell.

        A value keeps its name and so its type: what was known before a vendor's node hid it from inference still holds.
        """
        if self._types is None:
            self._types = {**self._known, **{name: kind for name, kind in _infer(self).items() if kind[1] is not None}}
        return self._types

    def describe(self, name: str, like: str, perm: list[int] | None = None) -> None:
        """Record that the new value `name` has the type of `like`, its axes permuted."""
        dtype, shape = self.types().get(like, (0, None))
        self.types()[name] = (dtype, shape if shape is None or perm is None else tuple(shape[axis] for axis in perm))


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    return copied


def _constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto:
    attribute = node.attribute[0]
    value = helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
    else:
        tensor = numpy_helper.from_array(np.asarray(value, np.float32 if "float" in attribute.name else np.int64))
    tensor.name = node.output[0]
    return tensor


def _captured(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Return every name that graphs nested in `nodes` read."""
    names: set[str] = set()
    pending = [attribute for node in nodes for attribute in node.attribute]
    while pending:
        attribute = pending.pop()
        for graph in [attribute.g, *attribute.graphs]:
            names.update(value.name for value in graph.output)
            for node in graph.node:
                names.update(node.input)
                pending.extend(node.attribute)
    return names


def _infer(graph: Graph) -> Types:
    small = [tensor for tensor in graph.initializers.values() if tensor.ByteSize() <= INFERENCE_BYTES]
    large = [tensor for tensor in graph.initializers.values() if tensor.ByteSize() > INFERENCE_BYTES]
    hidden = [helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in large]
    skeleton = helper.make_graph(graph.nodes, "skeleton", [*graph.inputs, *hidden], list(graph.model.graph.output), initializer=small)
    model = helper.make_model(skeleton, opset_imports=graph.opset_imports(), ir_version=max(8, graph.model.ir_version))
    model.functions.extend(graph.model.functions)
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    types: Types = {}
    for value in [*inferred.value_info, *inferred.input, *inferred.output]:
        tensor = value.type.tensor_type
        dims = tuple(dim.dim_param or (dim.dim_value if dim.HasField("dim_value") else None) for dim in tensor.shape.dim)
        types[value.name] = (tensor.elem_type, dims if tensor.HasField("shape") else None)
    types.update({tensor.name: (tensor.data_type, tuple(tensor.dims)) for tensor in graph.initializers.values()})
    return types


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    """Return the value of an attribute, `default` when the node does not give it."""
    for entry in node.attribute:
        if entry.name == name:
            return helper.get_attribute_value(entry)
    return default


def operands(node: onnx.NodeProto, graph: Graph) -> tuple[str, np.ndarray] | None:
    """Split a two-operand node into its variable and its constant operand, in whichever order; None when it has not one of each."""
    left, right = node.input[0], node.input[1]
    value = graph.constant(right)
    if value is not None and graph.constant(left) is None:
        return left, value
    value = graph.constant(left)
    return (right, value) if value is not None and graph.constant(right) is None else None
