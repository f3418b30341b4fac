"""Torch programs from the emitter, run on NumPy arrays. For tests."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from coset.ir.program import Program
from coset.ir.types import DType, TensorType
from coset.lowering.package.program import Package
from coset.lowering.package.runtime import read_weights
from coset.lowering.package.safetensors import from_stored, stored_array, write_safetensors
from coset.lowering.torch.dtypes import STORED, plain
from coset.lowering.torch.program import Lowered, lower_to_aten, module_text

Array = np.ndarray[Any, Any]
CPU = torch.device("cpu")


def to_torch(array: Array, dtype: DType) -> torch.Tensor:
    """The array as the tensor that a program takes."""
    value, kind = stored_array(array, dtype), getattr(torch, STORED[plain(dtype).name])
    if not value.size:
        return torch.empty(value.shape, dtype=kind)
    return torch.frombuffer(bytearray(value.tobytes()), dtype=torch.uint8).view(kind).reshape(value.shape)


def to_numpy(tensor: torch.Tensor, dtype: DType) -> Array:
    """The inverse of `to_torch`."""
    name = plain(dtype).name
    assert tensor.dtype == getattr(torch, STORED[name]), f"{tensor.dtype} is not what {name} is stored as"
    raw = tensor.clone(memory_format=torch.contiguous_format).reshape(-1)
    data = bytes(raw.view(torch.uint8).numpy()) if raw.numel() else b""
    return np.asarray(from_stored(data, tuple(tensor.shape), dtype))


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


def run_package(package: Package, program: Program, arrays: Mapping[str, Array]) -> list[Array]:
    """The outputs of a package's program, from its texts in memory."""
    name = f"package_{abs(hash(package.texts['model.py']))}"
    if name not in sys.modules:
        whole = ModuleType(name)
        whole.__path__ = []  # type: ignore[attr-defined]
        sys.modules[name] = whole
        for part in ("runtime", "functions", "model"):
            text = package.texts.get(f"{part}.py", "")
            module = ModuleType(f"{name}.{part}")
            module.__dict__.update(__package__=name, __file__=f"{part}.py")
            sys.modules[f"{name}.{part}"] = module
            exec(compile(text.split("\nmodel = Model(")[0], f"<{part}>", "exec"), module.__dict__)
    function = sys.modules[f"{name}.model"].program  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:  # as they are in files
        write_safetensors(Path(folder, "weights"), package.weights, package.packed)
        weights = read_weights(Path(folder, "weights"))
    given = [to_torch(arrays[term.attribute("name")], term.tensor.dtype) for term in program.inputs]
    results = function(weights, *given, device=CPU)
    return [to_numpy(result, term.tensor.dtype) for result, (_, term) in zip(results, program.outputs, strict=True)]
