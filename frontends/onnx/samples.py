"""Values of test data beside an ONNX model: `input_0.pb` and its like, as the ONNX model zoo has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import numpy_helper

from coset.ir.errors import CosetError
from coset.ir.place import Place
from coset.ir.types import ForeignType, Type

READ: Mapping[str, tuple[Any, Any]] = {
    "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
    "map_type": (onnx.MapProto, numpy_helper.to_dict),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
}
"""The message of a file by the kind of the input's type, and what makes arrays of it."""


def read_value(path: Path, types: Mapping[str, Type], place: str | None) -> tuple[str, Any]:
    """The input of these `types` that a file belongs to, and its value: the one whose name the message has, or that at the `place` of the
    file among all (None: there are not so many) where it has none or another. The message is of the kind of the input's type.

    Raises:
        CosetError: there is none.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CosetError(f"cannot read the value: {error.strerror or error}", place=Place(str(path)), help="name a readable file") from None
    kinds = {name: _kind(type) for name, type in types.items()}
    for kind in dict.fromkeys([*([] if place is None else [kinds[place]]), *kinds.values()]):
        message, _ = _read(content, kind)
        if message is not None and kinds.get(message.name) == kind:
            return str(message.name), _value(content, kind, path)
    if place is None:
        raise CosetError(f"the model has {len(types)} inputs", place=Place(str(path)), help=f"its inputs: {', '.join(types)}")
    return place, _value(content, kinds[place], path)


def _value(content: bytes, kind: str, path: Path) -> Any:
    message, problem = _read(content, kind)
    try:
        if message is None:
            raise ValueError(problem)
        return _texts(READ[kind][1](message))
    except (ValueError, TypeError, IndexError) as error:
        what = f"this is no {kind.removesuffix('_type')}: {error}"
        raise CosetError(what, place=Place(str(path)), help="the input of the model is one") from None


def _read(content: bytes, kind: str) -> tuple[Any, str]:
    message = READ[kind][0]()
    try:
        message.ParseFromString(content)
    except DecodeError as error:
        return None, str(error)
    return message, ""


def _texts(value: Any) -> Any:
    """With keys that are texts as such: the library gives their bytes; and with numbers, which it gives as arrays, for values."""
    if not isinstance(value, dict):
        return value
    return {key.decode() if isinstance(key, bytes) else key: each[()] if hasattr(each, "shape") else each for key, each in value.items()}


def _kind(type: Type) -> str:
    """The field of a TypeProto that says what kind of value a type is of."""
    if not isinstance(type, ForeignType):
        return "tensor_type"
    return onnx.TypeProto.FromString(type.description).WhichOneof("value") or "tensor_type"
