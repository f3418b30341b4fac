"""An ONNX file or model opened: its parsed skeleton, and its tensors as constants that stay where they are."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError, EncodeError  # type: ignore[import-untyped]

from coset.dialects.onnx.dtypes import DTYPE_OF_CODE
from coset.frontends.onnx.wire import MARK, Malformed, skeleton
from coset.ir.constants import Constant, constant_of
from coset.ir.errors import CosetError
from coset.ir.packed import packed, unpacked
from coset.ir.place import Place
from coset.ir.span import FileSpan
from coset.ir.stored import constant_in_file
from coset.ir.types import DType, TensorType

Model = Any  # onnx.ModelProto and its parts: the package has no types that mypy knows
DENSE_ELEMENTS = 1 << 20  # sparse tensors up to this size become dense ones; larger ones stay as they came
MODEL_HELP = "check the file with `python -m onnx.bin.checker FILE`"


@dataclass(frozen=True)
class OpenedModel:
    """A model whose long weights are not in `proto` but in `path` or `memory`. External data lies in `folder` or below."""

    proto: Model
    name: str
    path: Path | None = None
    memory: memoryview | None = None
    folder: Path | None = None

    def error(self, message: str, *, help: str = "") -> CosetError:
        """The error `message` with this model as its place."""
        return CosetError(message, place=Place(self.name), help=help)

    def check_texts(self, names: Iterable[Any]) -> None:
        """Check that names are texts: where they are none protobuf gives bytes.

        Raises:
            CosetError: one is no text.
        """
        for name in names:
            if not isinstance(name, str):
                raise self.error(f"the name {name!r} in the model is no text", help=MODEL_HELP)

    @property
    def metadata(self) -> dict[str, str]:
        """The model's notes on itself; of a key that is there twice the last."""
        return {entry.key: entry.value for entry in self.proto.metadata_props}

    def constant(self, tensor: Model) -> Constant:
        """The constant that `tensor` is.

        Raises:
            CosetError: unknown element type, negative dims, too few or too many bytes, or a file that may not be read.
        """
        dtype = DTYPE_OF_CODE.get(tensor.data_type)
        if dtype is None:
            help = "convert the tensor to a usual type"
            raise self.error(f"tensor `{tensor.name}` has the unknown element type {tensor.data_type}", help=help)
        shape = tuple(tensor.dims)
        if any(dim < 0 for dim in shape):
            raise self.error(f"tensor `{tensor.name}` has a negative dim: {list(shape)}", help=MODEL_HELP)
        type = TensorType(dtype, shape)
        try:
            return self._constant(tensor, type)
        except CosetError as error:
            raise CosetError(f"tensor `{tensor.name}`: {error.message}", place=Place(self.name), help=error.help or MODEL_HELP) from None

    def dense(self, sparse: Model) -> Constant | None:
        """The constant with zeros written out that a SparseTensorProto is; None where it has more than `DENSE_ELEMENTS` elements.

        Raises:
            CosetError: as `constant`, or an index that lies outside.
        """
        values, indices = self.constant(sparse.values).array(), self.constant(sparse.indices).array()
        shape = tuple(sparse.dims)
        if any(dim < 0 for dim in shape):
            raise self.error(f"tensor `{sparse.values.name}` has a negative dim: {list(shape)}", help=MODEL_HELP)
        if prod(shape) > DENSE_ELEMENTS:
            return None
        whole = np.zeros(shape, values.dtype)
        try:
            flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
            whole.reshape(-1)[flat] = values
        except (ValueError, IndexError) as error:
            raise self.error(f"tensor `{sparse.values.name}`: {error}", help=MODEL_HELP) from None
        return constant_of(whole, self.constant(sparse.values).type.dtype)

    def _constant(self, tensor: Model, type: TensorType) -> Constant:
        dtype, shape = type.dtype, type.static
        assert shape is not None
        span = cut_span(tensor)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return self._external(tensor, type)
        if span is not None:
            return self._at(self.path, span, type)
        if dtype.kind == "string":
            return constant_of(_strings(tensor, shape), dtype)
        if tensor.HasField("raw_data"):
            return constant_of(_elements(tensor.raw_data, dtype, shape), dtype)
        return constant_of(_typed_elements(tensor, dtype, shape), dtype)

    def _at(self, path: Path | None, span: tuple[int, int], type: TensorType) -> Constant:
        """The constant at `span` (offset, length) of `path`, or of the model's bytes in memory."""
        dtype, shape = type.dtype, type.static
        assert shape is not None
        if path is None:
            assert self.memory is not None
            return constant_of(_elements(self.memory[span[0] : span[0] + span[1]], dtype, shape), dtype)
        if dtype.bits >= 8:
            return constant_in_file(type, FileSpan(path, *span))
        raw = constant_in_file(TensorType(DTYPE_OF_CODE[2], (span[1],)), FileSpan(path, *span))
        return constant_of(_elements(raw.array().tobytes(), dtype, shape), dtype)

    def _external(self, tensor: Model, type: TensorType) -> Constant:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        path = self.external_path(entries.get("location", ""))
        shape = type.static
        assert shape is not None
        try:
            offset = int(entries.get("offset", 0))
            length = int(entries.get("length", storage_bytes(type.dtype, shape)))
        except ValueError:
            raise CosetError("offset and length of external data must be numbers") from None
        if offset < 0 or length < 0:
            raise CosetError("offset and length of external data must not be negative")
        return self._at(path, (offset, length), type)

    def external_path(self, location: str) -> Path:
        """The file of external data `location`, which must lie in the model's folder, links resolved.

        Raises:
            CosetError: it lies elsewhere, or is no file.
        """
        if self.folder is None:
            raise CosetError("external data, but the model came without a folder", help="import the model from its file")
        folder = self.folder.resolve()
        path = (folder / location).resolve() if "\0" not in location else folder
        if not location or Path(location).is_absolute() or not path.is_relative_to(folder) or ".." in Path(location).parts:
            help = "external data must lie in the folder of the model"
            raise CosetError(f"external data at `{location}` is outside the model's folder", help=help)
        if not path.is_file():
            raise CosetError(f"external data `{location}` is not in {folder}", help="keep the data file beside the model")
        return path

    def whole(self, tensor: Model) -> None:
        """Put the bytes of `tensor` that were cut out or lie in another file back into it, in place."""
        if cut_span(tensor) is None and tensor.data_location != onnx.TensorProto.EXTERNAL:
            return
        constant = self.constant(tensor)
        kept = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, doc_string=tensor.doc_string)
        kept.dims.extend(tensor.dims)
        kept.raw_data = packed_bytes(constant.array(), constant.type.dtype)
        tensor.CopyFrom(kept)


def cut_span(tensor: Model) -> tuple[int, int] | None:
    """Offset and length of the bytes that `onnx_wire` cut out of `tensor`, or None.

    Raises:
        CosetError: the model came with such a mark, with something else in it.
    """
    for entry in tensor.external_data:
        if entry.key == MARK:
            offset, _, length = entry.value.partition(",")
            if not (offset.isdecimal() and length.isdecimal()):
                raise CosetError(f"its data is said to be at `{entry.value}` of the model, which is no place", help=MODEL_HELP)
            return int(offset), int(length)
    return None


def packed_bytes(array: np.ndarray[Any, Any], dtype: DType) -> bytes:
    """The bytes of ONNX's `raw_data`: little-endian, row-major, 4- and 2-bit elements packed from the low bits."""
    if dtype.bits >= 8:
        return np.ascontiguousarray(array).tobytes()
    return packed(array, dtype).tobytes()


def storage_bytes(dtype: DType, shape: Sequence[int]) -> int:
    """Bytes of `raw_data` for a tensor."""
    return -(-prod(shape) * min(dtype.bits, 8) // 8) * max(dtype.bits // 8, 1)


def _elements(raw: bytes | memoryview, dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if len(raw) != storage_bytes(dtype, shape):
        raise CosetError(f"it has {len(raw)} bytes of data; {dtype}{list(shape)} takes {storage_bytes(dtype, shape)}")
    flat = np.frombuffer(raw, np.uint8)
    if dtype.bits >= 8:
        return flat.view(dtype.numpy).reshape(shape)
    return unpacked(flat, dtype, shape)


def _typed_elements(tensor: Model, dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The elements of `float_data` and its like (onnx.proto says which field holds which type)."""
    if prod(shape) == 0:
        return np.zeros(shape, dtype.numpy)
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor)).astype(dtype.numpy, copy=False).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise CosetError(f"its data does not fit {dtype}{list(shape)}: {error}") from None


def _strings(tensor: Model, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if len(tensor.string_data) != prod(shape):
        raise CosetError(f"it has {len(tensor.string_data)} strings, its shape {list(shape)} wants {prod(shape)}")
    result = np.empty(len(tensor.string_data), object)
    for position, item in enumerate(tensor.string_data):
        result[position] = _text(item)
    return result.reshape(shape)


def _text(item: bytes) -> str | bytes:
    try:
        return item.decode()
    except UnicodeDecodeError:
        return item  # ONNX asks for UTF-8 but nothing enforces it: kept as it came


def copy_of(model: str | Path | bytes | Model) -> Model:
    """The ModelProto of a file, of serialized bytes, or a copy of a ModelProto; external data stays where it is."""
    if isinstance(model, str | Path):
        return onnx.load(model, load_external_data=False)
    return onnx.ModelProto.FromString(model if isinstance(model, bytes) else model.SerializeToString())


def open_model(source: str | Path | bytes | Model, *, folder: Path | None = None) -> OpenedModel:
    """The model in a file, in serialized bytes, or a ModelProto (which is serialized: under 2 GB, and copied).

    Raises:
        CosetError: no such file, or no ONNX model in it.
    """
    if isinstance(source, (str, Path)):
        return _open_file(Path(source))
    name = "(model in memory)"
    try:
        data = source if isinstance(source, bytes) else source.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise CosetError(
            f"the model cannot be serialized: {error}", place=Place(name), help="save it to a file and give its path"
        ) from None
    view = memoryview(data)
    return OpenedModel(_parse(view, name), name, memory=view, folder=folder)


def _open_file(path: Path) -> OpenedModel:
    place = Place(str(path))
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                raise CosetError("the file is empty", place=place, help="export the model again")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise CosetError(f"cannot read the model: {error.strerror or error}", place=place, help="give the path of an .onnx file") from None
    proto = _parse(memoryview(mapped), str(path))
    return OpenedModel(proto, str(path), path=path.resolve(), folder=path.resolve().parent)


def _parse(view: memoryview, name: str) -> Model:
    model = onnx.ModelProto()
    help = "the file must be a binary ONNX model, complete"
    try:
        model.ParseFromString(skeleton(view))
    except (Malformed, DecodeError) as error:
        if "MaxDepth" in str(error):  # 31 loops in each other
            help = "protobuf reads 100 messages in each other, and so does ONNX Runtime: make functions of what is nested so deep"
        raise CosetError(f"this is not an ONNX model: {error}", place=Place(name), help=help) from None
    if not model.HasField("graph"):
        raise CosetError("the model has no graph", place=Place(name), help=help)
    return model


def opsets_of(opened: OpenedModel) -> dict[str, int]:
    """The version that the model imports of each domain.

    Raises:
        CosetError: a version that there cannot be, a domain in two versions, or no default domain.
    """
    if not 0 <= opened.proto.ir_version < 1 << 31:
        raise opened.error(f"the model is of IR version {opened.proto.ir_version}", help=MODEL_HELP)
    result: dict[str, int] = {}
    for entry in opened.proto.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        if not 0 <= entry.version < 1 << 31:
            raise opened.error(f"the model imports version {entry.version} of the domain `{domain or 'ai.onnx'}`", help="set opset_import")
        if result.setdefault(domain, entry.version) != entry.version:
            raise opened.error(f"the domain `{domain or 'ai.onnx'}` is imported in two versions", help="import one version")
    if "" not in result and (opened.proto.ir_version < 3 or any(not node.domain for node in opened.proto.graph.node)):
        if opened.proto.ir_version >= 3:
            raise opened.error("the model imports no version of the default domain", help="set opset_import")
        result[""] = 1
    return result
