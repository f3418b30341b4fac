"""Elements of less than a byte as ONNX's files and runtimes hold them: several to a byte, the first in its lowest bits."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from coset.ir.types import DType


def packed(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """The bytes of an array that has one for each element, in its row-major order."""
    per_byte = 8 // dtype.bits
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << dtype.bits) - 1)
    codes = np.concatenate([codes, np.zeros(-codes.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    together: np.ndarray[Any, Any] = np.bitwise_or.reduce(codes << (np.arange(per_byte, dtype=np.uint8) * dtype.bits), axis=1)
    return together.astype(np.uint8)


def unpacked(raw: np.ndarray[Any, Any], dtype: DType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """The elements in such bytes, one byte for each."""
    codes = raw[:, None] >> (np.arange(8 // dtype.bits, dtype=np.uint8) * dtype.bits) & ((1 << dtype.bits) - 1)
    codes = codes.reshape(-1)[: prod(shape)].astype(np.uint8)
    if dtype.kind == "int":  # sign-extend
        low = 8 - dtype.bits
        return ((codes << low).view(np.int8) >> low).astype(dtype.numpy).reshape(shape)
    return codes.astype(dtype.numpy).reshape(shape) if dtype.kind == "uint" else codes.view(dtype.numpy).reshape(shape)
