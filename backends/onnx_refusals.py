"""What ONNX Runtime says of a model that it does not load or run, in words that name the node, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import onnx

from coset.ir.suggestions import like

# of a node in a body the runtime names the nodes around it first: `.*` finds the last one
_HEAD = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (?:Load model from .*? failed:)?")
_SOURCE = re.compile(r"/\S+\.(?:h|cc|cpp):\d+ [^()]*\((?:[^()]|\([^()]*\))*\)(?: const)? ?")  # a place in its own source
_RUN = re.compile(r"Non-zero status code returned while running (?P<op>\w+) node\. Name:'(?P<node>[^']*)' Status Message: (?P<what>.*)")
_TYPED = re.compile(r".*Node \((?P<node>[^)]*)\) Op \((?P<op>\w+)\) \[\w+\] (?P<what>.*)")
_BOUND = re.compile(
    r"Type Error: Type parameter \(\w+\) of Optype \((?P<op>\w+)\) bound to different types \(tensor\((?P<one>\w+)\) and "
    r"tensor\((?P<other>\w+)\) in node \((?P<node>[^)]*)\)"
)
_INVALID = re.compile(
    r"Type Error: Type '(?P<type>[^']*)' of (?:input|output) parameter \((?P<value>[^)]*)\) of operator \((?P<op>\w+)\) in node "
    r"\((?P<node>[^)]*)\) is invalid"
)
_NO_OP = re.compile(
    r"In Node, \(\"(?P<node>[^\"]*)\", (?P<around>\w+), .*Error No Op registered for (?P<op>\w+) with domain_version of (?P<version>\d+)"
)
_FUTURE = re.compile(r"Opset (?P<version>\d+) is under development.*domain (?P<domain>\S+) is till opset (?P<most>\d+)")
_NO_KERNEL = re.compile(r"Could not find an implementation for (?P<op>\w+)\((?P<version>\d+)\) node with name '(?P<node>[^']*)'")
_OF_A_NODE = (_TYPED, _BOUND, _INVALID, _NO_OP, _NO_KERNEL)
_LONGEST = 400  # letters of what is passed on
_LARGEST = 1 << 26  # bytes of a model that is opened for the sake of a message

Model = onnx.ModelProto


def of_loading(said: str, model: str | Path | bytes, again: Callable[[bytes], str]) -> tuple[str, str]:
    """What is wrong with a `model` that is not loaded, and the remedy ("" where none is known). `again` says what the runtime says of the
    model in other words: nodes without a name are given that of their first output, so that it says which one it means."""
    text = _HEAD.sub("", said)
    if future := _FUTURE.search(text):
        what = f"version {future['version']} of `{future['domain']}` is newer than this ONNX Runtime, which ends at {future['most']}"
        return what, f"export the model for version {future['most']} or an older one, or install a newer onnxruntime"
    found = next((match for pattern in _OF_A_NODE if (match := pattern.search(text))), None)
    if found is None:
        return _short(text), ""
    opened = _opened(model)
    if not found["node"] and opened is not None and _name(opened.graph):
        named = _HEAD.sub("", again(opened.SerializeToString()))
        found = next((match for pattern in _OF_A_NODE if (match := pattern.search(named))), found)
    return _of_node(found, opened)


def of_running(said: str) -> str:
    """What is wrong with a run, without the places in the runtime's own source."""
    text = _HEAD.sub("", said)
    found = _RUN.search(text)
    if found is None:
        return _short(text)
    return _short(f"{_node(found['node'], found['op'])}: {found['what']}")


def _of_node(found: re.Match[str], model: Model | None) -> tuple[str, str]:
    name = found["node"]
    if found.re is _NO_OP and found["around"] != found["op"]:  # it names the node around the body that the node is in
        name = _first_of(model, found["op"])
    node = _node(name, found["op"])
    operands = _operands(model, name) if model is not None and name else ""
    told = f" (it reads {operands})" if operands else ""
    if found.re is _NO_OP:
        known = sorted({each.name for each in onnx.defs.get_all_schemas() if not each.domain})
        close = like(found["op"], known)
        what = f"{node}: version {found['version']} of the default domain has no op `{found['op']}`"
        return what, close or "`coset optimize --custom-op-library FILE` brings kernels for ops of its own; their nodes name their domain"
    if found.re is _NO_KERNEL:
        what = f"{node}: ONNX Runtime has no kernel for version {found['version']} of it with these element types{told}"
        return what, "put Casts around it, or run the model where the op has such a kernel"
    if found.re is _BOUND:
        what = f"{node} takes operands of one element type, and they are {found['one']} and {found['other']}{told}"
        return what, "put a Cast in front of one of them"
    if found.re is _INVALID:
        what = f"{node} takes no `{found['value']}` of type {found['type']}{told}"
        return what, "put a Cast in front of it, or take another version of the op"
    return f"{node}: {_short(found['what'])}{told}", "mend the node, or what its operands are declared as, and export the model again"


def _node(name: str, op: str) -> str:
    return f"node `{name}` ({op})" if name else f"a node {op}"


def _short(text: str) -> str:
    words = _SOURCE.sub("", text).strip()
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"


def _opened(model: str | Path | bytes) -> Model | None:
    """The model, where it is small enough to look at once more."""
    try:
        if (len(model) if isinstance(model, bytes) else Path(model).stat().st_size) > _LARGEST:
            return None
        return onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model, load_external_data=False)
    except Exception:  # the runtime has said already what is wrong with it
        return None


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    waiting = [graph]
    while waiting:
        yield (top := waiting.pop())
        for node in top.node:
            for attribute in node.attribute:
                waiting += [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def _name(graph: onnx.GraphProto) -> bool:
    """Give nodes without a name that of their first output; whether there were some."""
    unnamed = [node for each in _graphs(graph) for node in each.node if not node.name and any(node.output)]
    for node in unnamed:
        node.name = next(filter(None, node.output))
    return bool(unnamed)


def _first_of(model: Model | None, op: str) -> str:
    """The name of the first node of an op."""
    nodes = (node for graph in _graphs(model.graph) for node in graph.node) if model is not None else ()
    return next((node.name for node in nodes if node.op_type == op), "")


def _operands(model: Model, name: str) -> str:
    """The operands of a node with their types, as far as the model says them."""
    node = next((node for each in _graphs(model.graph) for node in each.node if name in (node.name, *node.output)), None)
    with suppress(Exception):  # it is the model that is wrong
        model = onnx.shape_inference.infer_shapes(model)
    types: dict[str, str] = {}
    for graph in _graphs(model.graph):
        types |= {value.name: _type(value.type) for value in (*graph.input, *graph.value_info, *graph.output)}
        types |= {each.name: f"{_element(each.data_type)}[{', '.join(map(str, each.dims))}]" for each in graph.initializer}
    return ", ".join(f"`{each}` {types[each]}" if types.get(each) else f"`{each}`" for each in (node.input if node else ()) if each)


def _type(type: onnx.TypeProto) -> str:
    if not type.HasField("tensor_type"):
        return ""
    tensor = type.tensor_type
    dims = [dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?") for dim in tensor.shape.dim]
    return _element(tensor.elem_type) + (f"[{', '.join(dims)}]" if tensor.HasField("shape") else "")


def _element(code: int) -> str:
    return onnx.TensorProto.DataType.Name(code).lower() if code in onnx.TensorProto.DataType.values() else f"element type {code}"
