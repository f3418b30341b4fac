"""Weights as a safetensors file, written a piece at a time: https://huggingface.co/docs/safetensors, format section."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coset.ir.constants import Constant
from coset.ir.types import DType
from coset.lowering.planning.packing import packed_pieces
from coset.lowering.torch.dtypes import STORED, plain

_CODES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL", "complex64": "C64",
    "complex128": "C128",
}  # fmt: skip
_PIECE = 16 << 20
_ALIGNMENT = 64  # bytes at which the data begins: the header is padded with spaces, as the format allows


def write_safetensors(path: Path, weights: Mapping[str, Constant], packed: Mapping[str, int] | None = None) -> str:
    """Write the constants by name, in the order given; the SHA-256 of the file. Nothing of their size is held in memory. Elements of those
    that are `packed` share bytes along a dim (`coset.lowering.planning.packing`).

    Raises:
        CosetError: a weight's file is gone or has changed.
    """
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    packed = packed or {}
    offset = 0
    for name, constant in weights.items():
        code, shape = _CODES[STORED[plain(constant.type.dtype).name]], list(constant.type.static or ())
        size = _stored_bytes(constant)
        if name in packed:
            code, size = "U8", constant.bytes * constant.type.dtype.bits // 8
            shape[packed[name]] //= 8 // constant.type.dtype.bits
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % _ALIGNMENT)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for piece in (len(text).to_bytes(8, "little"), text):
            file.write(piece)
            digest.update(piece)
        for name, constant in weights.items():
            for part in _pieces(constant) if name not in packed else _packed_pieces(constant, packed[name]):
                file.write(part)
                digest.update(part)
    return digest.hexdigest()


def _stored_bytes(constant: Constant) -> int:
    dtype = constant.type.dtype
    return constant.bytes * (4 if dtype.name == "f4e2m1fn" else 1)  # which torch has no dtype for: f32


def _pieces(constant: Constant) -> Iterator[memoryview]:
    array = constant.array()
    if array.size == 0:
        return
    data = stored_array(array, constant.type.dtype).reshape(-1).view(np.uint8)
    for start in range(0, data.size, _PIECE):
        yield data[start : start + _PIECE].data


def _packed_pieces(constant: Constant, axis: int) -> Iterator[memoryview]:
    for part in packed_pieces(constant.array(), axis, constant.type.dtype.bits):
        yield part.data


def stored_array(array: Any, dtype: DType) -> Any:
    """The elements as the bytes of the torch dtype that they are stored as."""
    dtype = plain(dtype)
    value = np.ascontiguousarray(array).reshape(np.shape(array))
    if dtype.name == "f4e2m1fn":
        return value.astype(np.float32)
    return value.astype(np.int8 if dtype.kind == "int" else np.uint8) if dtype.bits < 8 else value


def from_stored(data: bytes, shape: Sequence[int], dtype: DType) -> Any:
    """The array of `dtype` whose elements are stored as these bytes: the inverse of `stored_array`."""
    dtype = plain(dtype)
    numpy = stored_array(np.empty(0, dtype.numpy), dtype).dtype
    return np.frombuffer(bytearray(data), numpy).reshape(tuple(shape)).astype(dtype.numpy)


def torch_dtype(dtype: DType) -> str:
    """The name of the torch dtype that elements of `dtype` are stored as."""
    return STORED[plain(dtype).name]
