"""Models to files: weights are copied from where they are, a piece at a time, and a file appears whole or not at all."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.ir.constants import Constant
from coset.ir.held import locked, make_last, replacing
from coset.ir.packed import packed
from coset.ir.stored import pieces

Proto = Any
EXTERNAL_BYTES = 1_500_000_000  # above this much weight the weights get a file of their own (protobuf ends at 2 GiB)
SMALL_BYTES = 1024  # tensors that stay in the model in any case
_ALIGNMENT = 4096  # so that runtimes can map the weights (onnx.proto, external_data: page-aligned offsets)
_PIECE = 16 << 20
DIGEST_BYTES = 6  # of what is in a file of weights, in its name


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
    if constant.type.dtype.bits < 8:
        yield packed(constant.array(), constant.type.dtype).tobytes()
    else:
        yield from pieces(constant)


def write_inside(model: Proto, weights: Mapping[str, Constant], path: Path, *, lasting: bool = True) -> None:
    """Write `model` with `weights` as further initializers into one file. Nothing of their size is held in memory."""
    small = onnx.ModelProto()
    small.CopyFrom(model)
    graph = small.graph.SerializeToString(deterministic=True)
    small.ClearField("graph")
    heads = {name: _weight_head(name, constant) for name, constant in weights.items()}
    total = len(graph) + sum(len(heads[name]) + stored_bytes(constant) for name, constant in weights.items())
    with replacing(path, lasting=lasting) as file:
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


def write_beside(model: Proto, weights: Mapping[str, Constant], path: Path, *, lasting: bool = True) -> None:
    """Write `model` with the data of `weights` in a file of their own, which is named by what is in it: a model never has another's."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    digest = blake2b(digest_size=DIGEST_BYTES)
    with replacing(path, lasting=lasting) as file:
        offset = 0
        with replacing(_weights_path(path, "new"), named=lambda: _weights_path(path, digest.hexdigest()), lasting=lasting) as data:
            for name, constant in weights.items():
                gap = bytes(-offset % _ALIGNMENT)
                offset += len(gap)
                tensor = tensor_header(name, constant)
                tensor.data_location = onnx.TensorProto.EXTERNAL
                length = stored_bytes(constant)
                for key, value in (("location", ""), ("offset", str(offset)), ("length", str(length))):
                    tensor.external_data.add(key=key, value=value)
                whole.graph.initializer.append(tensor)
                for piece in (gap, *_pieces(constant)):
                    digest.update(piece)
                    data.write(piece)
                offset += length
        _relocate(whole, _weights_path(path, digest.hexdigest()).name)
        file.write(whole.SerializeToString(deterministic=True))


def _weights_path(path: Path, digest: str) -> Path:
    return path.with_name(f"{path.name}.{digest}.data")


def _relocate(model: Proto, name: str) -> None:
    """Let the weights of `model` be in the file `name`."""
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = name


def weights_beside(path: Path) -> list[Path]:
    """The files beside `path` that are named as those with the weights of a model there."""
    named = re.compile(re.escape(path.name) + rf"\.[0-9a-f]{{{2 * DIGEST_BYTES}}}\.data")
    return [each for each in path.parent.iterdir() if named.fullmatch(each.name)]


def move_model(source: Path, path: Path) -> None:
    """Rename a written model, and its weights first, to a path of the same name in another folder of the same disk. The weights of an
    earlier model go when nothing needs them any more: at any moment there is the whole old model or the whole new one."""
    assert source.name == path.name, "the model names the file of its weights"
    for each in (*weights_beside(source), source):
        make_last(each)
    with locked(path.parent) as alone:
        weights = [each.replace(path.parent / each.name) for each in weights_beside(source)]
        source.replace(path)
        _forget_weights(path, weights, alone=alone)


def copy_model(source: Path, path: Path) -> None:
    """Copy a written model, and its weights, to another name, with the care of `move_model`.

    Raises:
        CosetError: the files cannot be written.
    """
    with locked(path.parent) as alone:
        _forget_weights(path, _copy_files(source, path), alone=alone)


def _copy_files(source: Path, path: Path) -> list[Path]:
    """Copy a model and the files with its weights; the latter."""
    found = weights_beside(source)
    if not found:
        with source.open("rb") as original, replacing(path) as file:
            shutil.copyfileobj(original, file, _PIECE)
        return []
    model = onnx.load_model(source, load_external_data=False)
    data = path.with_name(path.name + found[0].name.removeprefix(source.name))
    _relocate(model, data.name)
    with found[0].open("rb") as original, replacing(path) as file, replacing(data) as copy:  # the weights get their name first
        shutil.copyfileobj(original, copy, _PIECE)
        file.write(model.SerializeToString(deterministic=True))
    return [data]


def _forget_weights(path: Path, kept: Sequence[Path], *, alone: bool) -> None:
    for each in weights_beside(path) if alone else ():
        if each not in kept:
            each.unlink(missing_ok=True)
