"""Constants whose bytes are a span of a file, and what a search asks of all elements of one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from coset.ir.constants import Constant, constant_of
from coset.ir.errors import CosetError
from coset.ir.span import FileSpan
from coset.ir.types import TensorType

PIECE = 1 << 20  # bytes that are read at a time
_FINITE: dict[str, bool] = {}  # by key, of large constants


def _read(span: FileSpan, type: TensorType) -> np.ndarray[Any, Any]:
    """The elements, read: for a few bytes a map costs several times that."""
    shape = type.static
    assert shape is not None
    try:
        return np.fromfile(span.path, np.uint8, span.length, offset=span.offset).view(type.dtype.numpy).reshape(shape)
    except (OSError, ValueError) as error:  # ValueError: the file has become shorter
        raise span.unreadable(error) from None


def constant_in_file(type: TensorType, span: FileSpan) -> Constant:
    """The constant whose bytes are `span`; up to 1 MiB it is keyed by content, above by path, offset and time of change.

    Raises:
        CosetError: the span does not lie in the file, or has another length than the type.
    """
    try:
        status = span.path.stat()
    except OSError as error:
        raise span.unreadable(error) from None
    if span.offset < 0 or span.offset + span.length > status.st_size:
        raise CosetError(f"{span.path} has {status.st_size} bytes; a weight wants bytes {span.offset} to {span.offset + span.length}")
    span = replace(span, modified=status.st_mtime_ns)
    constant = Constant(type, "", None, span)
    if constant.bytes != span.length:
        raise CosetError(f"a weight of type {type} takes {constant.bytes} bytes, {span.path} gives {span.length}")
    if span.length <= 1 << 20:
        return constant_of(_read(span, type), type.dtype)
    identity = f"{span.path.resolve()}:{span.offset}:{span.length}:{status.st_mtime_ns}:{type}"
    return Constant(type, hashlib.blake2b(identity.encode(), digest_size=16).hexdigest(), None, span)


def pieces(value: Constant) -> Iterator[bytes | memoryview]:
    """The bytes of the elements, row-major, some at a time. Of a file they are read and not mapped, which for whole files takes a third
    of the time, and no pages of this process.

    Raises:
        CosetError: as `Constant.array`.
    """
    span = value.span
    if span is None or not span.length:
        flat = np.ascontiguousarray(value.array()).reshape(-1)
        if flat.size:
            yield flat.view(np.uint8).data
        return
    left = span.length
    try:
        span.check()
        with span.path.open("rb", buffering=0) as file:
            file.seek(span.offset)
            while left:
                piece = file.read(min(left, PIECE))
                if not piece:
                    raise ValueError("it has become shorter")
                left -= len(piece)
                yield piece
    except (OSError, ValueError) as error:
        raise span.unreadable(error) from None


def is_finite(value: Constant) -> bool:
    """True where a constant has no infinity and no NaN in it; so is one that stands for any other of its type.

    Raises:
        CosetError: as `Constant.array`.
    """
    if not value.has_elements or value.type.dtype.kind not in ("float", "complex"):
        return True
    found = _FINITE.get(value.key)
    if found is None:
        found = _FINITE[value.key] = _all_finite(value.array().reshape(-1))
    return found


def _all_finite(flat: np.ndarray[Any, Any]) -> bool:
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, PIECE):
            piece = flat[start : start + PIECE]
            if piece.dtype.kind not in "fc":
                piece = piece.astype(np.float32)
            # a sum is not finite where an element is not, and is read once; where it overflows each element is asked
            if not np.isfinite(piece.sum(dtype=piece.dtype)) and not np.isfinite(piece).all():
                return False
    return True
