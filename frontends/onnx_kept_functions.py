"""The functions of a model's own that stay: each as a model of its own, for the types that its calls have, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from coset.dialects.onnx_bodies import all_nodes, bodies, count
from coset.dialects.onnx_dtypes import CODE_OF_DTYPE
from coset.frontends.onnx_functions import call_graph, called, name_of
from coset.frontends.onnx_tensors import Model
from coset.ir.builtin import OPAQUE
from coset.ir.dims import Dim
from coset.ir.program import Program
from coset.ir.types import TensorType, Type

Name = tuple[str, str, str]  # domain, name, overload
Calls = dict[Name, list[list[Type]]]  # of each function, the types of its operands


def callers_first(model: Model) -> list[Name]:
    """The functions, each behind those that call it; none where they call each other in a circle."""
    import networkx as nx

    calls = call_graph(model)
    return list(nx.topological_sort(calls)) if nx.is_directed_acyclic_graph(calls) else []


def called_in_bodies(model: Model) -> set[Name]:
    """The functions that bodies of control flow call, whose types are not known here."""
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    return {called(inner) for node in nodes for body in bodies(node) for inner in all_nodes(body.node)}


def called_by(function: Model) -> set[Name]:
    """What a function calls, in bodies too."""
    return {called(node) for node in all_nodes(function.node)}


def note_calls(program: Program, calls: Calls) -> None:
    """Add what the program calls."""
    for term in program.terms():
        if term.op is OPAQUE and "payload" in dict(term.attributes):
            overload = onnx.NodeProto.FromString(term.attribute("payload")).overload
            name = term.attribute("domain"), term.attribute("name"), overload
            if name in calls:
                calls[name].append([operand.type for operand in term.operands])


def as_model(function: Model, calls: Sequence[Sequence[Type]], header: Model) -> Model | None:
    """The function as a model whose inputs have the types of all `calls`: a dim that differs between them is free. None where there is no
    call, one leaves an input out, types differ by more than dims, or the function has attributes."""
    if function.attribute or function.attribute_proto or not calls or any(len(each) != len(function.input) for each in calls):
        return None
    model = onnx.ModelProto(ir_version=header.ir_version)
    model.opset_import.extend(function.opset_import)
    model.functions.extend(header.functions)
    model.graph.name = function.name or "function"
    symbols: dict[tuple[Dim, ...], str] = {}
    for place, name in enumerate(function.input):
        types = [each[place] for each in calls]
        value = _joined(name, types, symbols)
        if value is None:
            return None
        model.graph.input.append(value)
    model.graph.node.extend(function.node)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    return model


def _joined(name: str, types: Sequence[Type], symbols: dict[tuple[Dim, ...], str]) -> Model | None:
    """An input that takes all of the types. Dims that are equal wherever the function is called have one symbol."""
    first = types[0]
    if not all(isinstance(type, TensorType) and isinstance(first, TensorType) and type.dtype == first.dtype for type in types):
        return None
    shapes = [type.shape for type in types if isinstance(type, TensorType)]
    assert isinstance(first, TensorType)
    value = onnx.ValueInfoProto(name=name)
    value.type.tensor_type.elem_type = CODE_OF_DTYPE[first.dtype]
    if any(shape is None or len(shape) != len(shapes[0] or ()) for shape in shapes):
        return None
    value.type.tensor_type.shape.SetInParent()
    for dims in zip(*(shape or () for shape in shapes), strict=True):
        entry = value.type.tensor_type.shape.dim.add()
        if isinstance(dims[0], int) and all(dim == dims[0] for dim in dims):
            entry.dim_value = dims[0]
        else:
            entry.dim_param = symbols.setdefault(tuple(dims), f"d{len(symbols)}")
    return value


def rewritten(function: Model, made: Model) -> Model | None:
    """The function with the graph of the model `made`; None where that has no fewer nodes, or another interface."""
    graph = made.graph
    if [each.name for each in graph.input] != list(function.input) or [each.name for each in graph.output] != list(function.output):
        return None
    if count(graph) >= count(function):
        return None
    result = onnx.FunctionProto()
    result.CopyFrom(function)
    del result.node[:], result.opset_import[:], result.value_info[:]
    result.opset_import.extend(made.opset_import)
    for tensor in graph.initializer:
        held = onnx.TensorProto()
        held.CopyFrom(tensor)
        node = result.node.add(op_type="Constant", output=[tensor.name])
        node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=held)
    result.node.extend(graph.node)
    return result


def header_of(program: Program) -> Model:
    """What a program was read from, without its nodes and weights."""
    return onnx.ModelProto.FromString(program.source["model"])


def with_functions(header: Model, functions: Mapping[Name, Model]) -> bytes:
    """The header with some functions in place of its own."""
    kept = [functions.get(name_of(each), each) for each in header.functions]
    result = onnx.ModelProto()
    result.CopyFrom(header)
    del result.functions[:]
    result.functions.extend(kept)
    return bytes(result.SerializeToString(deterministic=True))
