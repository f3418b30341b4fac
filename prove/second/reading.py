"""Reads a certificate: lines of JSON under gzip, and the values that attributes are written as."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from coset.ir import dims
from coset.ir.constants import constant_of
from coset.ir.dim_text import parse
from coset.ir.errors import CosetError
from coset.ir.op import Op
from coset.ir.types import DTYPES, AbsentType, DType, TensorType, TupleType, Type
from coset.prove.second.answer import Refused

MOST_BYTES = 64 << 20  # of one file, unpacked
MOST_VALUES = 1 << 22  # characters , [ { and newline in one file
VERSION = 3
LONGEST_DIM = 300  # characters of a dim; and at most two products of brackets, which multiply out


def read_lines(source: str | Path | bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The head of a certificate and the lines between it and the end.

    Raises:
        Refused: it is no certificate, or larger than one may be.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(data, MOST_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof or unpacker.unused_data:
            raise Refused("the file is cut off, too large, or more than one")
        if not text.endswith(b"\n"):
            raise Refused("the last line has no end")
        if sum(map(text.count, (b",", b"[", b"{", b"\n"))) > MOST_VALUES:
            raise Refused("more values than a certificate may have")
        lines = [_line(line) for line in text.split(b"\n")[:-1]]
    except (zlib.error, ValueError, RecursionError) as error:
        raise Refused(f"the file cannot be read: {type(error).__name__}") from None
    if len(lines) < 2 or not all(isinstance(line, dict) for line in lines):
        raise Refused("no head, or no end")
    head, *between, end = lines
    if head.get("format") != "coset certificate" or head.get("version") != VERSION or type(head["version"]) is not int:
        raise Refused("a format or version that is not known here")
    if end != {"end": len(between)} or type(end["end"]) is not int:
        raise Refused("the end does not say how many lines there are")
    return head, between


def _line(data: bytes) -> Any:
    """One line of JSON: its numbers are integers, and no object has a key twice."""

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise Refused("an object with a key twice")
        return dict(pairs)

    def refused(text: str) -> Any:
        raise Refused(f"{text} is no integer")

    line = json.loads(data.decode("utf-8"), object_pairs_hook=read, parse_float=refused, parse_constant=refused)
    json.dumps(line, ensure_ascii=False).encode("utf-8")  # a half of a pair of surrogates is an error
    return line


def attribute(value: Any) -> Any:
    """What an attribute's value is written as.

    Raises:
        Refused: it is none of the forms.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, list):
        return tuple(attribute(each) for each in value)
    if not isinstance(value, dict) or len(value) != 1:
        raise Refused(f"{value!r} is no value of an attribute")
    ((form, inner),) = value.items()
    if form == "float" and isinstance(inner, str):
        return _float(inner)
    if form == "dim" and isinstance(inner, str):
        return _dim(inner)
    if form == "constant" and isinstance(inner, list) and len(inner) == 2:
        return _constant(*inner)
    if form in ("dtype", "tensor", "types", "absent"):
        return _type(value)
    raise Refused(f"no value of an attribute is a `{form}`")


def _float(text: str) -> float:
    try:
        found = float(text) if text in ("nan", "inf", "-inf") else float.fromhex(text)
    except (ValueError, OverflowError):
        raise Refused(f"`{text}` is no float") from None
    if text != "nan" and text != found.hex():
        raise Refused(f"`{text}` is another spelling of {found.hex()}")
    return found


def _dim(text: str) -> Any:
    if len(text) > LONGEST_DIM:
        raise Refused("a dim that is too long")
    try:
        return parse(text)
    except (CosetError, RecursionError):
        raise Refused(f"`{text}` is no dim") from None


def _type(value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        ((form, inner),) = value.items()
        if form == "dtype":
            return _dtype(value)
        if form == "tensor" and isinstance(inner, list) and len(inner) == 2:
            shape = inner[1]
            if shape is not None and not isinstance(shape, list):
                raise Refused("a shape is a list")
            return TensorType(_dtype(inner[0]), None if shape is None else tuple(_size(each) for each in shape))
        if form == "types" and isinstance(inner, list):
            types: tuple[Type, ...] = tuple(_type(each) for each in inner)
            return TupleType(types)
        if form == "absent" and inner is True:
            return AbsentType()
    raise Refused(f"{value!r} is no type")


def _size(value: Any) -> Any:
    found = attribute(value)
    if isinstance(found, bool) or not isinstance(found, int | dims.Poly) or (isinstance(found, int) and found < 0):
        raise Refused(f"{value!r} is no dim")
    return found


def _dtype(value: Any) -> DType:
    name = value.get("dtype") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(name, str) or name not in DTYPES:
        raise Refused(f"{value!r} is no dtype")
    return DTYPES[name]


def _constant(type: Any, text: Any) -> Any:
    found = _type(type)
    shape = found.static if isinstance(found, TensorType) else None
    if not isinstance(found, TensorType) or shape is None or not isinstance(text, str):
        raise Refused("a constant has a type of known shape and its bytes")
    if prod(shape) > 16:
        raise Refused("a constant of more than 16 elements")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused("the bytes of a constant cannot be read") from None
    count = prod(shape)
    if len(data) != count * found.dtype.numpy.itemsize or found.dtype.kind == "string":
        raise Refused("a constant of other bytes than its type takes")
    bits = 1 if found.dtype.kind == "bool" else found.dtype.bits
    if bits < 8 and any(byte >> bits for byte in data):
        raise Refused("a byte that no element is stored as")
    return constant_of(np.frombuffer(data, found.dtype.numpy).reshape(shape), found.dtype)


def attributes(op: Op, row: Any) -> dict[str, Any]:
    """The attributes of a row: those that the op has, with no truth in place of an integer.

    Raises:
        Refused: they are others.
    """
    if not isinstance(row, dict) or set(row) != {each.name for each in op.attributes}:
        raise Refused(f"the attributes of `{op.name}` are others")
    found = {name: attribute(value) for name, value in row.items()}
    for each in op.attributes:
        value = found[each.name]
        if each.kind in ("int", "ints", "permutation"):
            numbers = value if isinstance(value, tuple) else (value,)
            if any(isinstance(number, bool | float) for number in numbers):
                raise Refused(f"`{each.name}` of `{op.name}` is no integer")
    return found
