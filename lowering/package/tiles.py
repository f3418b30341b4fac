"""Descriptors for kernels that read their operands by bulk copies: what Triton makes a GPU's tensor maps of, from torch's tensors.

This file is copied into every package that has such kernels. It needs torch and Triton.
"""

from __future__ import annotations

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

LIMIT = 2**31  # elements along a dim
ALIGNED = 16  # bytes that memory begins at a multiple of
Dims = tuple[int, ...]


def described(tensor: Tensor, begin: int, shape: Dims, strides: Dims, block: Dims, *, floats: bool = False) -> TensorDescriptor:
    """The memory of a tensor from its element `begin` on, seen with this shape and these strides, in blocks of `block`; 8-bit floats are
    bytes unless they stay `floats`. Memory that does not begin at a multiple of 16 bytes is copied to where it does.

    Raises:
        ValueError: a dim has 2^31 elements or more.
    """
    if max(shape) >= LIMIT:
        raise ValueError(f"a product has a dim of {max(shape)} elements, but its operand is copied by descriptors, of {LIMIT - 1} at most")
    tensor = viewed(tensor, floats=floats)
    if 0 in shape:  # nothing is read, but a descriptor is of something
        tensor, begin = torch.empty(ALIGNED, dtype=tensor.dtype, device=tensor.device), 0
        shape, strides = (1,) * len(shape), (*(ALIGNED,) * (len(shape) - 1), 1)
    base = tensor.as_strided((tensor.numel() - begin,), (1,), tensor.storage_offset() + begin) if begin else tensor
    if base.data_ptr() % ALIGNED:
        base = base.clone()
    return TensorDescriptor(base, list(shape), list(strides), list(block))


def viewed(tensor: Tensor, *, floats: bool) -> Tensor:
    """8-bit floats as bytes, unless they stay `floats`."""
    return tensor.view(torch.uint8) if tensor.dtype.itemsize == 1 and tensor.dtype.is_floating_point and not floats else tensor


class Descriptors:
    """Descriptors of tensors that stay, each made once."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Tensor, int, Dims, Dims, Dims, TensorDescriptor]] = {}

    def of(
        self, name: str, tensor: Tensor, begin: int, shape: Dims, strides: Dims, block: Dims, *, floats: bool = False
    ) -> TensorDescriptor:
        """As `described`; `name` says what for."""
        kept = self._kept.get(name)
        if kept is not None and kept[0] is tensor and kept[1:5] == (begin, shape, strides, block):
            return kept[5]
        found = described(tensor, begin, shape, strides, block, floats=floats)
        if found.base.data_ptr() == tensor.data_ptr() + begin * tensor.dtype.itemsize:  # a copy is of what was there when it was made
            self._kept[name] = (tensor, begin, shape, strides, block, found)
        return found
