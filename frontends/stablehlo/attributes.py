"""Attributes and types of MLIR's bindings as plain values and types of ours."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from coset.dialects.hub.mlir_ops import Field
from coset.dialects.hub.mlir_text import DTYPE_OF_TEXT, DimBounds, bytes_array, dense_array, element_type
from coset.frontends.stablehlo.module import OpenedModule, hlo, mlir
from coset.ir.op import Array
from coset.ir.types import DType, ForeignType, TensorType, TokenType, TupleType, Type

_WORD = re.compile(r"#[\w.]+<(?:[\w.]+ )?([\w.]+)>")
_TYPED = re.compile(r"(dense<.*>|dense_resource<.*>|array<.*>) : (tensor<.*>)", re.DOTALL)
_BOUNDED = ("#stablehlo.bounds<", "#stablehlo.type_extensions<")
Sizes = tuple[int | None, ...]


class Foreign(Exception):
    """Something that we have no value for: the op is kept exactly."""


def attribute_of(op: Any, name: str) -> Any:
    """The attribute `name` of an operation, or None. One that the bindings cannot hold is given as its text."""
    if name not in op.attributes:
        return None
    try:
        return op.attributes[name]
    except TypeError as error:  # complex elements: the bindings have no class for them, but print them
        match = re.search(r"\(Attribute\((.*)\)\)\Z", str(error), re.DOTALL)
        if match is None:
            raise Foreign from None
        return match.group(1)


def value_of(attribute: Any) -> Any:
    """The plain value of an attribute: int, float, bool, str, a tuple, an array, or the word of an enumeration.

    Raises:
        Foreign: it is none of these.
    """
    ir = mlir()
    if isinstance(attribute, ir.BoolAttr | ir.StringAttr | ir.FloatAttr | ir.IntegerAttr | ir.FlatSymbolRefAttr):
        return attribute.value
    if isinstance(attribute, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr | ir.DenseBoolArrayAttr):
        return tuple(attribute)
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(value_of(item) for item in attribute)
    if isinstance(attribute, ir.UnitAttr):
        return True
    if isinstance(attribute, ir.DenseIntElementsAttr):
        return np.array(attribute)
    match = _WORD.fullmatch(str(attribute))
    if match is None:
        raise Foreign
    return match.group(1)


def field_value(op: Any, field: Field) -> Any:
    """The value of our attribute `field.ours` from what `op` says.

    Raises:
        Foreign: it is not written as the table says.
    """
    attribute = attribute_of(op, field.theirs)
    if attribute is None:
        if field.default is None:
            raise Foreign
        return field.default
    value = value_of(attribute)
    if field.kind == "pairs":
        return tuple((int(low), int(high)) for low, high in np.asarray(value).reshape(-1, 2))
    if field.kind in ("i64s", "bools") and isinstance(value, np.ndarray):  # older text: dense<..> : tensor<nxi64>
        return tuple(value.reshape(-1).tolist())
    return value


def dims_of(op: Any, name: str, kind: str) -> Any:
    """A structured attribute (`DotDimensionNumbers` and the like) in the class of the bindings.

    Raises:
        Foreign: it is not there.
    """
    attribute = attribute_of(op, name)
    if attribute is None:
        raise Foreign
    return getattr(hlo(), kind)(attribute)


# ---------------------------------------------------------------- types


def sized(type: Any) -> tuple[DType, Sizes] | None:
    """The element type and the sizes (None where dynamic) of a ranked tensor or of a scalar; None for any other type."""
    ir = mlir()
    if isinstance(type, ir.RankedTensorType):
        if type.encoding is not None and not str(type.encoding).startswith(_BOUNDED):
            return None
        dtype = element_type(str(type.element_type))
        return None if dtype is None else (dtype, tuple(None if type.is_dynamic_dim(i) else type.get_dim_size(i) for i in range(type.rank)))
    dtype = element_type(str(type))
    return None if dtype is None else (dtype, ())


def bounds_of(type: Any) -> DimBounds:
    """The bound of each dim of a ranked tensor, None where it has none; empty for a type without bounds."""
    if not isinstance(type, mlir().RankedTensorType) or type.encoding is None or not str(type.encoding).startswith(_BOUNDED):
        return ()
    return tuple(bound if bound >= 0 else None for bound in hlo().TypeExtensions(type.encoding).bounds)


def other_type(type: Any) -> Type:
    """The type of a value that is no ranked tensor of our element types."""
    text = str(type)
    if text in ("!stablehlo.token", "!mhlo.token"):
        return TokenType()
    if text.startswith("tuple<"):
        items = [type.get_type(i) for i in range(type.num_types)]
        return TupleType(tuple(static_type(item) for item in items))
    match = re.fullmatch(r"tensor<\*x(.*)>", text)
    if match is not None and match.group(1) in DTYPE_OF_TEXT:
        return TensorType(DTYPE_OF_TEXT[match.group(1)], None)
    return ForeignType("mlir", text.encode())


def static_type(type: Any) -> Type:
    """The type of a value without dynamic dims; with them it is foreign."""
    found = sized(type)
    if found is None:
        return other_type(type)
    dtype, sizes = found
    if None in sizes:
        return ForeignType("mlir", str(type).encode())
    return TensorType(dtype, tuple(size for size in sizes if size is not None))


# ---------------------------------------------------------------- constants


def elements_of(attribute: Any, opened: OpenedModule) -> Array:
    """The array of a dense attribute, a view of MLIR's own bytes where the bindings give one.

    Raises:
        Foreign: an element type that we have not.
        CosetError: its data is missing or of the wrong length.
    """
    ir = mlir()
    if isinstance(attribute, ir.DenseElementsAttr) and not isinstance(attribute, str):
        try:
            return _typed(np.asarray(memoryview(attribute)), attribute.type)
        except (BufferError, TypeError):
            pass
    match = _TYPED.fullmatch(str(attribute).strip())
    if match is None:
        raise Foreign
    type = _parsed(match.group(2))
    if match.group(1).startswith("dense_resource<"):
        blob = opened.resource(match.group(1).removeprefix("dense_resource<").removesuffix(">").strip('"'))
        return bytes_array(blob, *type)
    return dense_array(match.group(1), *type)


def _typed(array: Array, type: Any) -> Array:
    found = sized(type)
    if found is None:
        raise Foreign
    return array if array.dtype == found[0].numpy else array.astype(found[0].numpy)


def _parsed(text: str) -> tuple[DType, tuple[int, ...]]:
    """Element type and shape of the text of a static tensor type."""
    match = re.fullmatch(r"tensor<((?:\d+x)*)(.*)>", text.strip())
    dtype = None if match is None else element_type(match.group(2))
    if match is None or dtype is None:
        raise Foreign
    return dtype, tuple(int(size) for size in match.group(1).split("x") if size)
