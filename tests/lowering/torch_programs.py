"""Torch programs from the emitter, run on NumPy arrays. For tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from coset.ir.program import Program
from coset.ir.types import DType, TensorType
from coset.lowering.aten import Lowered, lower_to_aten, module_text
from coset.lowering.aten_dtypes import STORED, plain

Array = np.ndarray[Any, Any]
CPU = torch.device("cpu")


def to_torch(array: Array, dtype: DType) -> torch.Tensor:
    """The array as the tensor that a program takes."""
    value = np.asarray(array).astype(np.float32) if plain(dtype).name == "f4e2m1fn" else np.asarray(array)
    kind = getattr(torch, STORED[plain(dtype).name])
    if not value.size:
        return torch.empty(value.shape, dtype=kind)
    data = torch.frombuffer(bytearray(np.ascontiguousarray(value).tobytes()), dtype=torch.uint8)
    return data.view(kind).reshape(value.shape)


def to_numpy(tensor: torch.Tensor, dtype: DType) -> Array:
    """The inverse of `to_torch`."""
    name = plain(dtype).name
    assert tensor.dtype == getattr(torch, STORED[name]), f"{tensor.dtype} is not what {name} is stored as"
    kind = np.dtype(np.float32) if name == "f4e2m1fn" else plain(dtype).numpy
    raw = tensor.contiguous().reshape(-1)
    data = bytes(raw.view(torch.uint8).numpy()) if raw.numel() else b""
    return np.frombuffer(data, kind).reshape(tuple(tensor.shape)).astype(plain(dtype).numpy)


def run(program: Program, arrays: Mapping[str, Array]) -> list[Array]:
    """The outputs of the program's torch code."""
    lowered = lower_to_aten(program)
    function = loaded(lowered)
    weights = {name: to_torch(term.attribute("value").array(), term.tensor.dtype) for name, term in lowered.weights.items()}
    given = [to_torch(arrays[term.attribute("name")], term.tensor.dtype) for term in program.inputs]
    results: Sequence[torch.Tensor] = function(weights, *given, device=CPU)
    types = [term.type for _, term in program.outputs]
    assert all(isinstance(type, TensorType) for type in types)
    return [to_numpy(result, type.dtype) for result, type in zip(results, types, strict=True)]  # type: ignore[union-attr]


def loaded(lowered: Lowered) -> Any:
    """The function that the text defines."""
    space: dict[str, Any] = {}
    exec(compile(module_text("A test.", lowered), "<lowered>", "exec"), space)
    return space[lowered.name]
