"""Models to files: weights are copied from where they are, a piece at a time, and a file appears whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx

from coset.dialects.onnx_dtypes import CODE_OF_DTYPE
from coset.ir.constants import Constant
from coset.ir.errors import CosetError, Place

Proto = Any
EXTERNAL_BYTES = 1_500_000_000  # above this much weight the weights get a file of their own (protobuf ends at 2 GiB)
SMALL_BYTES = 1024  # tensors that stay in the model in any case
_ALIGNMENT = 4096  # so that runtimes can map the weights (onnx.proto, external_data: page-aligned offsets)
_PIECE = 16 << 20


def tensor_header(name: str, constant: Constant) -> Proto:
    """A TensorProto of the name, type and dims of `constant`, without its data."""
    return onnx.TensorProto(name=name, data_type=CODE_OF_DTYPE[constant.type.dtype], dims=constant.type.static or ())


def tensor_proto(name: str, constant: Constant) -> Proto:
    """`constant` as a TensorProto with its data inside."""
    tensor = tensor_header(name, constant)
    if constant.type.dtype.kind == "string":
        tensor.string_data.extend(item if isinstance(item, bytes) else str(item).encode() for item in constant.array().ravel().tolist())
    else:
        tensor.raw_data = b"".join(_pieces(constant))
    return tensor


def stored_bytes(constant: Constant) -> int:
    """Bytes of `constant` in a file; 4- and 2-bit elements are packed."""
    bits = constant.type.dtype.bits
    count = int(np.prod(constant.type.static or (), dtype=np.int64))
    return count * bits // 8 if bits >= 8 else -(-count * bits // 8)


def _pieces(constant: Constant) -> Iterator[bytes | memoryview]:
    """The bytes of `constant`, little-endian and row-major, some at a time."""
    array = constant.array()
    bits = constant.type.dtype.bits
    if bits < 8:
        yield _packed(array, bits)
        return
    if not array.size:
        return
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, _PIECE):
        yield flat[start : start + _PIECE].data


def _packed(array: np.ndarray[Any, Any], bits: int) -> bytes:
    per_byte = 8 // bits
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    codes = np.concatenate([codes, np.zeros(-codes.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    return bytes(np.bitwise_or.reduce(codes << (np.arange(per_byte, dtype=np.uint8) * bits), axis=1).astype(np.uint8))


def write_inside(model: Proto, weights: Mapping[str, Constant], path: Path) -> None:
    """Write `model` with `weights` as further initializers into one file. Nothing of their size is held in memory."""
    small = onnx.ModelProto()
    small.CopyFrom(model)
    graph = small.graph.SerializeToString(deterministic=True)
    small.ClearField("graph")
    heads = {name: _weight_head(name, constant) for name, constant in weights.items()}
    total = len(graph) + sum(len(heads[name]) + stored_bytes(constant) for name, constant in weights.items())
    with _replacing(path) as file:
        file.write(small.SerializeToString(deterministic=True) + _prefix(7, total) + graph)
        for name, constant in weights.items():
            file.write(heads[name])
            for piece in _pieces(constant):
                file.write(piece)


def _weight_head(name: str, constant: Constant) -> bytes:
    """What stands before the bytes of one initializer: field 5 of GraphProto, and field 9 (raw_data) of TensorProto at its end."""
    header: bytes = tensor_header(name, constant).SerializeToString(deterministic=True) + _prefix(9, stored_bytes(constant))
    return _prefix(5, len(header) + stored_bytes(constant)) + header


def _prefix(field: int, length: int) -> bytes:
    """Tag and length of a length-delimited protobuf field."""
    result = bytearray()
    for value in (field << 3 | 2, length):
        while value >= 0x80:
            result.append(value & 0x7F | 0x80)
            value >>= 7
        result.append(value)
    return bytes(result)


def weights_path(path: Path) -> Path:
    """Where the weights of the model at `path` lie when they have a file of their own."""
    return path.with_name(path.name + ".data")


def write_beside(model: Proto, weights: Mapping[str, Constant], path: Path) -> None:
    """Write `model` with the data of `weights` in `weights_path(path)`."""
    data = weights_path(path)
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    with _replacing(path) as model_file, _replacing(data) as data_file:
        offset = 0
        for name, constant in weights.items():
            gap = -offset % _ALIGNMENT
            data_file.write(bytes(gap))
            offset += gap
            tensor = tensor_header(name, constant)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            length = stored_bytes(constant)
            for key, value in (("location", data.name), ("offset", str(offset)), ("length", str(length))):
                tensor.external_data.add(key=key, value=value)
            whole.graph.initializer.append(tensor)
            for piece in _pieces(constant):
                data_file.write(piece)
            offset += length
        model_file.write(whole.SerializeToString(deterministic=True))


def move_model(source: Path, path: Path) -> None:
    """Rename a written model, and its weights first, to a path of the same name in another folder of the same disk."""
    assert source.name == path.name, "the model names the file of its weights"
    if weights_path(source).exists():
        weights_path(source).replace(weights_path(path))
    source.replace(path)


def copy_model(source: Path, path: Path) -> None:
    """Copy a written model, and its weights, to another name. The files appear whole, or not at all.

    Raises:
        CosetError: the files cannot be written.
    """
    if not weights_path(source).exists():
        with source.open("rb") as original, _replacing(path) as file:
            shutil.copyfileobj(original, file, _PIECE)
        return
    model = onnx.load_model(source, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = weights_path(path).name
    with weights_path(source).open("rb") as original, _replacing(path) as file, _replacing(weights_path(path)) as data:
        shutil.copyfileobj(original, data, _PIECE)
        file.write(model.SerializeToString(deterministic=True))


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its place when all went well, and is removed otherwise.

    Raises:
        CosetError: the folder cannot be written, or the disk is full.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        message = f"cannot write {path.name}: {error.strerror or error}"
        raise CosetError(message, place=Place(str(path)), help="write to another folder, or make room; nothing was changed") from None
    finally:
        with suppress(OSError):
            beside.unlink()
