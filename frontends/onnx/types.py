"""ONNX's types and dims as ours and back, and the result types of nodes that stay opaque."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx

from coset.dialects.onnx.bodies import CAPTURE
from coset.dialects.onnx.dtypes import CODE_OF_DTYPE, DTYPE_OF_CODE
from coset.dialects.onnx.node import constant_elements
from coset.frontends.onnx.tensors import Model, OpenedModel
from coset.ir.dims import Dim, symbol
from coset.ir.term import Term
from coset.ir.types import AbsentType, DType, ForeignType, TensorType, Type

_SHOWN = 1024  # elements of constants that shape inference is told
UNKNOWN = ForeignType("onnx", b"")  # the type of a value of which nothing is known: all that consumes it stays opaque


class Symbols:
    """The dim symbols of one model: those that it names, and `d0, d1, ..` for dims that have no name."""

    def __init__(self, taken: set[str], fixed: Mapping[str, int] | None = None) -> None:
        """`taken`: names that no dim without one gets; `fixed`: what is known to be a number, by the name that it would get."""
        self._named: dict[str, str] = {}
        self._taken = set(taken)
        self._fixed = fixed or {}
        self._count = 0

    def named(self, text: str) -> Dim:
        """The symbol for the `dim_param` `text`: the same one for the same text, another for another text."""
        if text not in self._named:
            base = re.sub(r"[^A-Za-z0-9_.:@]", "_", text)
            base = base if base[0].isalpha() or base[0] == "_" else f"_{base}"
            name, count = base, 0
            while name in self._named.values() or (count and name in self._taken):
                count += 1
                name = f"{base}_{count}"
            self._named[text] = name
        return symbol(self._named[text])

    def fresh(self) -> Dim:
        """A symbol that nothing else is called, or the number that it is known to be."""
        while True:
            name = f"d{self._count}"
            self._count += 1
            if self.is_fresh(name):
                return self._fixed.get(name, symbol(name))

    def is_fresh(self, name: str) -> bool:
        """Whether a dim without a name is called so."""
        return name not in self._taken and name not in self._named.values()


@dataclass(frozen=True)
class Elements:
    """The tensors that a value is made of, one for each if it is no `sequence`: numbers and names of dims, None where the rank is open. An
    unnamed dim is ""."""

    dtype: DType
    dims: tuple[int | str, ...] | None
    sequence: bool


def elements_of(type: ForeignType) -> Elements | None:
    """What a sequence or an optional value is made of; None of a map, and where nothing is known."""
    proto = onnx.TypeProto.FromString(type.description)
    proto = proto.optional_type.elem_type if proto.HasField("optional_type") else proto
    sequence = proto.HasField("sequence_type")
    tensor = proto.sequence_type.elem_type.tensor_type if sequence else proto.tensor_type
    dtype = DTYPE_OF_CODE.get(tensor.elem_type)
    if dtype is None:
        return None
    shape = tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in tensor.shape.dim)
    return Elements(dtype, shape if tensor.HasField("shape") else None, sequence)


def named_dims(types: Sequence[Model]) -> set[str]:
    """Every `dim_param` of TypeProtos."""
    return {dim.dim_param for type in types if type.HasField("tensor_type") for dim in type.tensor_type.shape.dim if dim.dim_param}


def type_of(proto: Model, symbols: Symbols, opened: OpenedModel, what: str) -> Type:
    """The type that the TypeProto of `what` states; its unnamed dims are fresh symbols, and so are those that an exporter gave as -1.

    Raises:
        CosetError: an unknown element type.
    """
    if not proto.WhichOneof("value"):
        return UNKNOWN
    if not proto.HasField("tensor_type"):
        return ForeignType("onnx", proto.SerializeToString(deterministic=True))
    dtype = DTYPE_OF_CODE.get(proto.tensor_type.elem_type)
    if dtype is None:
        code = proto.tensor_type.elem_type
        raise opened.error(f"{what} has the unknown element type {code}", help="declare a usual element type")
    if not proto.tensor_type.HasField("shape"):
        return TensorType(dtype, None)
    return TensorType(dtype, tuple(_dim(dim, symbols) for dim in proto.tensor_type.shape.dim))


def _dim(dim: Model, symbols: Symbols) -> Dim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return symbols.named(dim.dim_param) if dim.dim_param else symbols.fresh()


def type_proto(type: Type, spelled: dict[str, Dim]) -> Model:
    """`type` as a TypeProto whose symbolic dims are `dim_param`s that `spelled` maps back to them."""
    proto = onnx.TypeProto()
    if isinstance(type, ForeignType):
        proto.ParseFromString(type.description)
        return proto
    assert isinstance(type, TensorType), f"{type} is no ONNX type"
    proto.tensor_type.elem_type = CODE_OF_DTYPE[type.dtype]
    if type.shape is None:
        return proto
    proto.tensor_type.shape.SetInParent()
    for dim in type.shape:
        entry = proto.tensor_type.shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
        else:  # the mark keeps our dims apart from names that a body declares and that inference may pass on
            entry.dim_param = f"={dim}"
            spelled[entry.dim_param] = dim
    return proto


@dataclass
class Inference:
    """Result types of opaque nodes, by ONNX's own inference: one node at a time, and equal questions asked once."""

    opsets: Mapping[str, int]
    ir_version: int
    functions: Mapping[tuple[str, str, str], Model]
    _answers: dict[Any, list[Model | None]] = field(default_factory=dict)

    def results(
        self, node: Model, operands: Sequence[Type], data: Sequence[Model | None], key: object
    ) -> tuple[list[Model | None], dict[str, Dim]]:
        """TypeProtos of the results of the normalised `node` (None: nothing known), and the dims that their `dim_param`s spell.

        `data[i]` is operand i as a TensorProto where it is a known small constant; `key` stands for it and for the payload.
        """
        spelled: dict[str, Dim] = {}
        types = [None if isinstance(type, AbsentType) else type_proto(type, spelled) for type in operands]
        question = (node.domain, node.op_type, key, tuple(operands))
        if question not in self._answers:
            self._answers[question] = self._ask(node, types, data)
        return self._answers[question], spelled

    def _ask(self, node: Model, types: Sequence[Model | None], data: Sequence[Model | None]) -> list[Model | None]:
        unknown: list[Model | None] = [None] * len(node.output)
        captured = sum(name.startswith(CAPTURE) for name in node.input)
        formal = len(node.input) - captured
        if any(type is not None and not type.WhichOneof("value") for type in types):
            return unknown
        function = self.functions.get((node.domain, node.op_type, node.overload))
        try:
            if function is not None:
                given = [type or onnx.TypeProto() for type in types[:formal]]
                found = onnx.shape_inference.infer_function_output_types(function, given, list(node.attribute))
                return [*found, *unknown][: len(node.output)]
            schema = onnx.defs.get_schema(node.op_type, self.opsets.get(node.domain, 1), node.domain)
            by_name = {name: type for name, type in zip(node.input, types, strict=True) if name and type is not None}
            known = {name: tensor for name, tensor in zip(node.input, data, strict=True) if name and tensor is not None}
            question = onnx.NodeProto()
            question.CopyFrom(node)
            del question.input[formal:]
            imports = [onnx.helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
            answer = onnx.shape_inference.infer_node_outputs(schema, question, by_name, known, None, imports, self.ir_version)
            return [answer.get(name) if name else None for name in node.output]
        except (onnx.shape_inference.InferenceError, onnx.defs.SchemaError, onnx.checker.ValidationError, RuntimeError, ValueError):
            return unknown  # inference refuses some valid nodes (unknown domains, odd bodies): then `value_info` decides


def merged_type(
    inferred: Model | None, declared: Model | None, known: Sequence[Dim | None] | None, spelled: Mapping[str, Dim], symbols: Symbols
) -> Type:
    """The type of an opaque result: what was inferred, then the dims that are `known`, then what `value_info` declares, then fresh symbols.

    Declared names of dims are not believed (exporters repeat names for dims that differ); declared numbers are.
    """
    candidates = [proto for proto in (inferred, declared) if proto is not None and proto.WhichOneof("value")]
    foreign = [proto for proto in candidates if not proto.HasField("tensor_type")]
    if foreign:
        return ForeignType("onnx", foreign[0].SerializeToString(deterministic=True))
    codes = [proto.tensor_type.elem_type for proto in candidates if proto.tensor_type.elem_type in DTYPE_OF_CODE]
    if not codes:
        return UNKNOWN
    stated = [_stated(proto, spelled) for proto in candidates if proto.tensor_type.HasField("shape")]
    first = 1 if inferred is not None and inferred.tensor_type.HasField("shape") else 0
    shapes: list[Sequence[Dim | None]] = [*stated[:first], *([] if known is None else [known]), *stated[first:]]
    if not shapes:
        return TensorType(DTYPE_OF_CODE[codes[0]], None)
    shapes = [shape for shape in shapes if len(shape) == len(shapes[0])]
    return TensorType(DTYPE_OF_CODE[codes[0]], tuple(_first(column, symbols) for column in zip(*shapes, strict=True)))


def without_shape(proto: Model | None) -> Model | None:
    """A TypeProto of the same element type that says nothing of dims."""
    if proto is None or not proto.HasField("tensor_type"):
        return proto
    return onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=proto.tensor_type.elem_type))


def _stated(proto: Model, spelled: Mapping[str, Dim]) -> list[Dim | None]:
    """The dims of a TypeProto that are numbers or ours; None for the others."""
    return [
        int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else spelled.get(dim.dim_param)
        for dim in proto.tensor_type.shape.dim
    ]


def _first(column: Sequence[Dim | None], symbols: Symbols) -> Dim:
    found = next((dim for dim in column if dim is not None), None)
    return symbols.fresh() if found is None else found


def shown(term: Term) -> Model | None:
    """A small constant as a TensorProto, for shape inference."""
    elements = constant_elements(term, _SHOWN)
    if elements is None or term.tensor.dtype.bits < 8 or term.tensor.dtype.kind == "string":
        return None
    return onnx.TensorProto(data_type=CODE_OF_DTYPE[term.tensor.dtype], dims=elements.shape, raw_data=elements.tobytes())
