"""A package that coset wrote, loaded into this process and called with torch tensors: nothing is copied on the way.

Temporaries come from torch's allocator anew at each call and go back after it, so that threads and streams do not meet in them.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coset.ir.errors import CosetError
from coset.ir.types import DTYPES
from coset.lowering.package.safetensors import from_stored, stored_array

_NUMBERS = itertools.count()
Arrays = Mapping[str, np.ndarray[Any, Any]]


def imported(folder: Path, name: str) -> Any:
    """The package in `folder` as a module of this process, called `name`."""
    specification = importlib.util.spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


class LoadedPackage:
    """The package in `folder`, on `device`. Its Triton kernels run on a GPU, or in Triton's interpreter where TRITON_INTERPRET is 1.

    Raises:
        CosetError: the package has Triton kernels, which this process cannot run on this device.
    """

    def __init__(self, folder: Path, device: Any = "cpu") -> None:
        self.folder, self.device = folder, torch.device(device)
        interpreted = os.environ.get("TRITON_INTERPRET") == "1"
        if (folder / "kernels.py").exists() and self.device.type == "cpu":
            if not interpreted:
                raise CosetError(
                    "Triton kernels run on the CPU only in Triton's interpreter",
                    help="set TRITON_INTERPRET=1 before Python starts, or ask for the code `torch`",
                )
            from coset.backends.triton_corrections import correct_interpreter

            correct_interpreter()
        name = f"_coset_package_{next(_NUMBERS)}"
        module = imported(folder, name)
        self._memory = _CallMemory(sys.modules[f"{name}.runtime"])
        written = sys.modules[f"{name}.model"]
        if hasattr(written, "MEMORY"):
            vars(written)["MEMORY"] = self._memory
        self.model = module.model.to(self.device)
        self.model.manifest = {**self.model.manifest, "f32_sums": False}  # torch's settings hold, as for what it runs beside this
        self.manifest: Mapping[str, Any] = self.model.manifest

    def __call__(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs in order for tensors in the order of the inputs.

        Raises:
            ValueError: they do not fit (`WrongInput` of the package).
        """
        with self._memory:
            results = self.model(*given)
        return results if isinstance(results, tuple) else (results,)

    def tensors(self, feed: Arrays) -> list[Any]:
        """Inputs by name as tensors on the device, in the order of the inputs."""
        given = []
        for one in self.manifest["inputs"]:
            array = np.ascontiguousarray(stored_array(feed[one["name"]], DTYPES[one["dtype"]]))
            kind = getattr(torch, one["stored"])
            raw = torch.frombuffer(bytearray(array.tobytes()), dtype=torch.uint8).view(kind) if array.size else torch.empty(0, dtype=kind)
            given.append(raw.reshape(feed[one["name"]].shape).to(self.device))
        return given

    # ------------------------------------------------------------ as a package in a child process is used

    def __enter__(self) -> LoadedPackage:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def run(self, feed: Arrays) -> dict[str, np.ndarray[Any, Any]]:
        """The outputs by name for the inputs by name, as NumPy arrays.

        Raises:
            CosetError: the package refuses the inputs or fails.
        """
        try:
            outputs = self(self.tensors(feed))
        except (RuntimeError, ValueError) as error:
            raise CosetError(f"the package does not run: {error}") from error
        results = {}
        for one, value in zip(self.manifest["outputs"], outputs, strict=True):
            flat = value.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format)  # one element may have any stride
            data = flat.view(torch.uint8).numpy().tobytes() if value.numel() else b""
            results[one["name"]] = from_stored(data, tuple(value.shape), DTYPES[one["dtype"]])
        return results


class _CallMemory:
    """The memory of a package's temporaries during one call of one thread."""

    def __init__(self, runtime: Any) -> None:
        self._make, self._here = runtime.Memory, threading.local()

    def __enter__(self) -> None:
        self._here.memory = self._make()

    def __exit__(self, *_: object) -> None:
        del self._here.memory

    def part(self, *arguments: Any) -> Any:
        """As the package's `Memory`."""
        return self._here.memory.part(*arguments)

    def own(self, *arguments: Any) -> Any:
        """As the package's `Memory`."""
        return self._here.memory.own(*arguments)
