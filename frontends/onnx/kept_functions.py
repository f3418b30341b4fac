"""The functions of a model's own that stay: each as a model of its own, for the types that its calls have, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from coset.dialects.onnx.bodies import all_nodes, bodies, count
from coset.dialects.onnx.dtypes import CODE_OF_DTYPE, DTYPE_OF_CODE
from coset.dialects.onnx.origin import header_bytes
from coset.frontends.onnx.functions import call_graph, called, name_of
from coset.frontends.onnx.tensors import Model, OpenedModel
from coset.frontends.onnx.types import UNKNOWN, Symbols, type_of
from coset.ir.builtin import OPAQUE
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.types import AbsentType, TensorType, Type

Name = tuple[str, str, str]  # domain, name, overload


@dataclass(frozen=True)
class FunctionCall:
    """The types of the operands of a call, and the attributes that it gives."""

    types: Sequence[Type]
    attributes: Sequence[Model]


Calls = dict[Name, list[FunctionCall]]  # of each function


class Stays(CosetError):
    """Why a function stays as it came."""


def callers_first(model: Model) -> list[Name]:
    """The functions, each behind those that call it; none where they call each other in a circle."""
    import networkx as nx

    calls = call_graph(model)
    return list(nx.topological_sort(calls)) if nx.is_directed_acyclic_graph(calls) else []


def note_calls_in_bodies(opened: OpenedModel, calls: Calls) -> None:
    """Add what the bodies of a model's control flow call, with the types that ONNX's inference finds there."""
    graph = opened.proto.graph
    if not any(called(inner) in calls for node in graph.node for body in bodies(node) for inner in all_nodes(body.node)):
        return
    try:
        inferred = onnx.shape_inference.infer_shapes(opened.proto).graph
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        inferred = graph
    _note_in(inferred, {}, Symbols(set()), opened, calls, inside=False)


def _note_in(graph: Model, outer: Mapping[str, Type], symbols: Symbols, opened: OpenedModel, calls: Calls, *, inside: bool) -> None:
    """Add the calls in a graph that is `inside` a body, and in the bodies of its nodes, which see the names of `outer` too."""
    types = dict(outer)
    for tensor in graph.initializer:
        dtype = DTYPE_OF_CODE.get(tensor.data_type)
        types[tensor.name] = UNKNOWN if dtype is None else TensorType(dtype, tuple(map(int, tensor.dims)))
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.WhichOneof("value"):
            types[value.name] = type_of(value.type, symbols, opened, f"the value `{value.name}`")
    for node in graph.node:
        if inside and called(node) in calls:
            given = [types.get(name, UNKNOWN) if name else AbsentType() for name in node.input]
            calls[called(node)].append(FunctionCall(given, tuple(node.attribute)))
        for body in bodies(node):
            _note_in(body, types, symbols, opened, calls, inside=True)


def called_by(function: Model) -> set[Name]:
    """What a function calls, in bodies too."""
    return {called(node) for node in all_nodes(function.node)}


def note_calls(program: Program, calls: Calls) -> None:
    """Add what the program calls."""
    for term in program.terms():
        if term.op is OPAQUE and "payload" in dict(term.attributes):
            node = onnx.NodeProto.FromString(term.attribute("payload"))
            name = term.attribute("domain"), term.attribute("name"), node.overload
            if name in calls:
                operands = term.operands[1:] if term.attribute("effect") else term.operands  # the first is the token
                calls[name].append(FunctionCall([operand.type for operand in operands], tuple(node.attribute)))


def as_model(function: Model, calls: Sequence[FunctionCall], header: Model) -> Model:
    """The function as a model whose inputs have the types of all `calls`, a dim that differs between them being free, and whose nodes have
    the attributes that all of them give.

    Raises:
        Stays: there is no call, one leaves an input out, types differ by more than dims, or attributes differ.
    """
    if not calls:
        raise Stays("nothing calls it")
    if any(len(each.types) != len(function.input) or any(isinstance(type, AbsentType) for type in each.types) for each in calls):
        raise Stays("a call leaves an input out")
    given = {_attributes(function, each) for each in calls}
    if len(given) > 1:
        raise Stays("its calls give it other attributes")
    model = onnx.ModelProto(ir_version=header.ir_version)
    model.opset_import.extend(function.opset_import)
    model.functions.extend(header.functions)
    model.graph.name = function.name or "function"
    symbols: dict[tuple[Dim, ...], str] = {}
    for place, name in enumerate(function.input):
        model.graph.input.append(_joined(name, [each.types[place] for each in calls], symbols))
    model.graph.node.extend(function.node)
    _give({attribute.name: attribute for attribute in map(onnx.AttributeProto.FromString, given.pop())}, model.graph.node)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    return model


def _attributes(function: Model, call: FunctionCall) -> tuple[bytes, ...]:
    """The values of a function's attributes in a call, those of its defaults among them.

    Raises:
        Stays: one is an attribute of a function around it, which stays itself.
    """
    given = {each.name: each for each in (*function.attribute_proto, *call.attributes)}  # a call's come last
    if any(each.ref_attr_name for each in given.values()):
        raise Stays("a function that stays gives it its own attributes")
    return tuple(given[name].SerializeToString(deterministic=True) for name in sorted(given))


def _give(attributes: Mapping[str, Model], nodes: Iterable[Model]) -> None:
    """Put values in place of the names of a function's attributes; what has none is left to its default."""
    for node in all_nodes(nodes):
        own = [each for each in node.attribute if not each.ref_attr_name]
        for each in (each for each in node.attribute if each.ref_attr_name in attributes):
            value = onnx.AttributeProto()
            value.CopyFrom(attributes[each.ref_attr_name])
            value.name = each.name
            own.append(value)
        if len(own) < len(node.attribute) or any(each.ref_attr_name for each in node.attribute):
            del node.attribute[:]
            node.attribute.extend(own)


def _joined(name: str, types: Sequence[Type], symbols: dict[tuple[Dim, ...], str]) -> Model:
    """An input that takes all of the types. Dims that are equal wherever the function is called have one symbol.

    Raises:
        Stays: they differ by more than dims, or one is not known.
    """
    first = types[0]
    if not isinstance(first, TensorType) or any(not isinstance(type, TensorType) or type.shape is None for type in types):
        raise Stays(f"the type of its input `{name}` is not known in a call")
    if any(not isinstance(type, TensorType) or type.dtype != first.dtype for type in types):
        raise Stays(f"its input `{name}` is of several element types")
    shapes = [type.shape for type in types if isinstance(type, TensorType)]
    value = onnx.ValueInfoProto(name=name)
    value.type.tensor_type.elem_type = CODE_OF_DTYPE[first.dtype]
    if any(len(shape or ()) != len(shapes[0] or ()) for shape in shapes):
        raise Stays(f"its input `{name}` is of several ranks")
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
    return onnx.ModelProto.FromString(header_bytes(program))


def with_functions(header: Model, functions: Mapping[Name, Model]) -> bytes:
    """The header with some functions in place of its own."""
    kept = [functions.get(name_of(each), each) for each in header.functions]
    result = onnx.ModelProto()
    result.CopyFrom(header)
    del result.functions[:]
    result.functions.extend(kept)
    return bytes(result.SerializeToString(deterministic=True))
