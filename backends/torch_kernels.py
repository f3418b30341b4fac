"""Kernels of a plan on torch's device, to be timed: their buffers as tensors there, their launches as one replayed call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from coset.backends.torch_clock import CUDA, Program, captured, released, synchronize
from coset.backends.triton_child import TORCH_NAMES
from coset.backends.triton_runtime import Device, DeviceLost
from coset.ir.errors import CosetError
from coset.ir.extras import MissingExtra, install
from coset.lowering.triton.launch import Launch

try:
    import torch

    from coset.backends.torch_loaded import LoadedPackage
except ImportError as error:
    raise MissingExtra("torch is not installed: nothing can be timed on a GPU", help=install("gpu")) from error


@contextmanager
def prepared(
    source: str, launches: Sequence[Launch], arrays: Mapping[str, np.ndarray[Any, Any]], sizes: Mapping[str, int], device: str = CUDA
) -> Iterator[Program]:
    """The launches on memory of their own, compiled and run once; each call of what is given runs them again, on the same memory.

    Raises:
        CosetError: the device refuses a kernel. `Lost`: it is gone.
    """
    types = {argument.buffer: argument.type for launch in launches for argument in launch.arguments if argument.buffer is not None}
    with _told(device):
        tensors = {name: _tensor(array, types[name], device) for name, array in arrays.items() if name in types}
        with Device(source) as module:
            yield _run_once(captured(lambda: module.run(launches, tensors, sizes), device), device)


@contextmanager
def called(folder: Path, feed: Mapping[str, np.ndarray[Any, Any]], device: str = CUDA) -> Iterator[Program]:
    """The package in `folder` on inputs that are on the device already, compiled and run once.

    Raises:
        CosetError: it does not run. `Lost`: the device is gone.
    """
    with _told(device):
        package = LoadedPackage(folder, device)
        given = package.tensors(feed)
        yield _run_once(captured(lambda: package(given), device), device)


@contextmanager
def _told(device: str) -> Iterator[None]:
    """What is raised inside is told as our error, and the device's memory is released behind it."""
    try:
        yield
    except CosetError:
        raise
    except Exception as error:  # torch and Triton raise a dozen classes: no memory, too much shared memory, a lost device
        said = str(error).splitlines() or [""]
        refuse_lost(device)
        raise CosetError(f"{type(error).__name__}: {said[0]}") from error
    finally:
        released(device)


def _run_once(program: Program, device: str) -> Program:
    """The program after its first run, which loads and compiles."""
    program()
    synchronize(device)
    return program


def refuse_lost(device: str) -> None:
    """Nothing where the device still answers.

    Raises:
        Lost: it does not.
    """
    try:
        torch.zeros(1, device=device).cpu()
    except RuntimeError as error:
        raise DeviceLost(f"the GPU answers no more: {str(error).splitlines()[0]}", help="run it again: it goes on where it was") from error


def _tensor(array: np.ndarray[Any, Any], type: str, device: str) -> torch.Tensor:
    """An array's bytes on the device, as what the kernel's pointer points to."""
    bytes_ = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    tensor = torch.from_numpy(bytes_.copy()).to(device)
    return tensor.view(getattr(torch, TORCH_NAMES[type.removeprefix("*")]))
