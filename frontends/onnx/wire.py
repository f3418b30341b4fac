"""Large weights are cut out of a serialized ModelProto before it is parsed, and stay where they are.

Protobuf copies every bytes field on parsing and again on access. This scanner walks the few message types on the
way to `TensorProto.raw_data`, leaves long ones out of the skeleton that is parsed, and marks each with its place:
one entry of `external_data` whose key is `MARK` and whose value is `offset,length`.
(Wire format: protobuf.dev, "Encoding"; field numbers: onnx.proto.)
"""

from __future__ import annotations

from typing import Any

MARK = "coset.span"
THRESHOLD = 1024  # bytes: shorter tensors are parsed as usual

_TENSOR = "tensor"
_ATTRIBUTE = {5: _TENSOR}
_NODE = {5: _ATTRIBUTE}
_GRAPH = {1: _NODE, 5: _TENSOR}
_MODEL = {7: _GRAPH}
_RAW_DATA = 9
_EXTERNAL_DATA = 13


class Malformed(ValueError):
    """The bytes are no protobuf message, or end too early; the argument says where."""


def skeleton(buffer: bytes | memoryview) -> bytes:
    """The serialized ModelProto `buffer` without the long `raw_data` of its main graph's initializers and node attributes.

    Raises:
        Malformed: the bytes are not a protobuf message.
    """
    view = memoryview(buffer)
    return bytes(_message(view, 0, len(view), _MODEL))


def _message(view: memoryview, start: int, end: int, fields: dict[int, Any]) -> bytearray:
    result = bytearray()
    position = copied = start
    while position < end:
        begin = position
        number, wire, position = _tag(view, position, end)
        if wire != 2:
            position = _skip(view, position, end, wire)
            continue
        length, position = _varint(view, position, end)
        stop = position + length
        if stop > end:
            raise Malformed(f"a field of {length} bytes at byte {position} ends after its message")
        inner = fields.get(number)
        if inner is not None and length >= THRESHOLD:
            body = _tensor(view, position, stop) if inner is _TENSOR else _message(view, position, stop, inner)
            result += view[copied:begin]
            result += _field(number, body)
            copied = stop
        position = stop
    result += view[copied:end]
    return result


def _tensor(view: memoryview, start: int, end: int) -> bytearray:
    result = bytearray()
    position = start
    while position < end:
        begin = position
        number, wire, position = _tag(view, position, end)
        if wire != 2:
            position = _skip(view, position, end, wire)
            result += view[begin:position]
            continue
        length, position = _varint(view, position, end)
        if position + length > end:
            raise Malformed(f"a field of {length} bytes at byte {position} ends after its message")
        if number == _RAW_DATA and length >= THRESHOLD:
            entry = _field(1, MARK.encode()) + _field(2, f"{position},{length}".encode())
            result += _field(_EXTERNAL_DATA, entry)
        else:
            result += view[begin : position + length]
        position += length
    return result


def _field(number: int, body: bytes | bytearray) -> bytearray:
    return _encode(number << 3 | 2) + _encode(len(body)) + body


def _encode(value: int) -> bytearray:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return result


def _tag(view: memoryview, position: int, end: int) -> tuple[int, int, int]:
    tag, position = _varint(view, position, end)
    if tag >> 3 == 0:
        raise Malformed(f"field number 0 at byte {position - 1}")
    return tag >> 3, tag & 7, position


def _varint(view: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise Malformed(f"a number at byte {position} does not end")


def _skip(view: memoryview, position: int, end: int, wire: int) -> int:
    if wire == 0:
        return _varint(view, position, end)[1]
    if wire not in (1, 5):
        raise Malformed(f"wire type {wire} at byte {position}")
    position += 8 if wire == 1 else 4
    if position > end:
        raise Malformed(f"a number at byte {position} ends after its message")
    return position
