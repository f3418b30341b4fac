"""A package that `coset lower` wrote, run on NumPy arrays in a child process: a crash in a kernel does not take coset with it."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from coset.backends.child import Child
from coset.ir.errors import CosetError
from coset.ir.extras import MissingExtra, install
from coset.ir.types import DTYPES
from coset.lowering.package.safetensors import from_stored, stored_array

CHILD = Path(__file__).with_name("torch_child.py")
INSTALL = install("torch")
Arrays = Mapping[str, np.ndarray[Any, Any]]


def installed() -> bool:
    """True when torch can be imported."""
    return importlib.util.find_spec("torch") is not None


class TorchPackage(Child):
    """The package in `folder`, loaded by a child process on first use. Use it as a context manager, or call `close`.

    `interpreted`: its Triton kernels run under Triton's interpreter, on the CPU.
    """

    def __init__(self, folder: Path, *, device: str = "cpu", interpreted: bool = False) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        self.inputs: list[dict[str, Any]] = manifest["inputs"]
        self.outputs: list[dict[str, Any]] = manifest["outputs"]
        environment = {**os.environ, **({"TRITON_INTERPRET": "1"} if interpreted else {}), "PYTHONPATH": _without_ours()}
        super().__init__((str(CHILD), str(folder), device), environment)

    def run(self, feed: Arrays) -> dict[str, np.ndarray[Any, Any]]:
        """The outputs by name for the inputs by name.

        Raises:
            CosetError: an input is missing, or the package refuses the inputs or fails.
            MissingExtra: torch is not installed, or Triton where kernels need it.
        """
        arrays = []
        for one in self.inputs:
            if one["name"] not in feed:
                raise CosetError(f"input `{one['name']}` is not given", help=f"given: {', '.join(feed) or 'none'}")
            arrays.append(stored_array(feed[one["name"]], DTYPES[one["dtype"]]))
        head = {"arrays": [[one["stored"], list(array.shape)] for one, array in zip(self.inputs, arrays, strict=True)]}
        outgoing, incoming = self.streams()
        try:
            outgoing.write((json.dumps(head) + "\n").encode())
            for array in arrays:
                outgoing.write(array.tobytes())
            outgoing.flush()
            line = incoming.readline()
        except BrokenPipeError:
            line = incoming.readline()
        if not line:
            raise CosetError(f"the package died: {self.last_words()}")
        answer = json.loads(line)
        if "missing" in answer:
            raise MissingExtra(answer["missing"], help=INSTALL)
        if "error" in answer:
            raise CosetError(f"the package does not run: {answer['error']}")
        results = {}
        for one, (_, shape) in zip(self.outputs, answer["arrays"], strict=True):
            results[one["name"]] = _received(incoming, one, shape)
        return results


def _without_ours() -> str:
    """PYTHONPATH without the folders that hold coset, which a package does not need: torch may be found by the others."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if folder and not (Path(folder) / "coset").exists())


def _received(stream: IO[bytes], one: Mapping[str, Any], shape: list[int]) -> np.ndarray[Any, Any]:
    dtype = DTYPES[one["dtype"]]
    size = int(np.prod(shape, dtype=np.int64)) * stored_array(np.empty(0, dtype.numpy), dtype).dtype.itemsize
    data = stream.read(size)
    if len(data) != size:
        raise CosetError("the package died while it answered")
    return from_stored(data, shape, dtype)  # type: ignore[no-any-return]
