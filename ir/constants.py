"""Constants by reference: a tensor's bytes stay where they are (a file, mapped on demand, or one array), and its key names them."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from coset.ir.types import DType, TensorType, dtype_of

if TYPE_CHECKING:  # who reads weights from files brings them
    from coset.ir.span import FileSpan

LARGE = 1 << 20  # bytes of an array that is copied in blocks
BLOCK = 64  # elements on a side of what is copied at once
INLINE_ELEMENTS = 16  # small constants are values: their elements are part of their key, and rules may look at them


@dataclass(frozen=True)
class Constant:
    """A constant tensor. Equal keys mean equal bytes; `key` is a content hash, or for a large file span its identity. One that stands for
    any other of its type has neither an array nor a span: no elements."""

    type: TensorType
    key: str
    _array: Any = field(default=None, compare=False, repr=False)
    span: FileSpan | None = field(default=None, compare=False)

    @property
    def has_elements(self) -> bool:
        """False for one that stands for any other of its type."""
        return self._array is not None or self.span is not None

    def array(self) -> np.ndarray[Any, Any]:
        """The tensor, read-only; a file span is memory-mapped anew at each call, so that pages can be dropped after use.

        Raises:
            CosetError: the file is gone, too short, or has changed.
        """
        if self._array is not None:
            return self._array  # type: ignore[no-any-return]
        assert self.span is not None
        return self.span.mapped(self.type)

    @property
    def bytes(self) -> int:
        """Bytes of storage."""
        shape = self.type.static
        assert shape is not None
        return int(np.prod(shape, dtype=np.int64)) * self.type.dtype.numpy.itemsize

    def __str__(self) -> str:
        elements = 1
        for dim in self.type.static or ():
            elements *= dim
        if elements <= 4:
            return f"{self.type}({', '.join(str(v) for v in self.array().ravel().tolist())})"
        return f"{self.type}#{self.key[:8]}"


def constant_of(array: object, dtype: DType | None = None) -> Constant:
    """The constant that holds `array` (kept, not copied; do not write to it). Its key is a hash of the content.

    Raises:
        CosetError: the element type is not one of ours.
    """
    value = np.asarray(array)
    element = dtype or dtype_of(value.dtype)
    value = np.asarray(value, element.numpy)
    value = _in_order(value)
    view = value.view()
    view.flags.writeable = False
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{element.name}{value.shape}".encode())
    if element.kind == "string":
        for item in value.ravel().tolist():
            encoded = item if isinstance(item, bytes) else str(item).encode()
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    elif value.size:
        digest.update(value.reshape(-1).view(np.uint8).data)
    return Constant(TensorType(element, tuple(value.shape)), digest.hexdigest(), view)


def _in_order(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements in row-major order. A large transposed array is copied in blocks that stay in the cache."""
    if value.flags.c_contiguous:
        return value
    steps = [abs(step) if dim > 1 else sys.maxsize for step, dim in zip(value.strides, value.shape, strict=True)]
    nearest = steps.index(min(steps))
    if value.nbytes < LARGE or nearest == value.ndim - 1:
        return value.copy()
    result = np.empty(value.shape, value.dtype)
    for first in range(0, value.shape[nearest], BLOCK):
        for last in range(0, value.shape[-1], 8 * BLOCK):
            block: tuple[Any, ...] = (*(slice(None),) * nearest, slice(first, first + BLOCK), ..., slice(last, last + 8 * BLOCK))
            result[block] = value[block]
    return result
