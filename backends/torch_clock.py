"""The clock of torch's device: calls of a model in a CUDA graph, timed by the device's own events; on the CPU the host's stands in."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from coset.backends.profile import MeasuredAt
from coset.ir.errors import CosetError
from coset.ir.extras import MissingExtra, install
from coset.ir.types import DType
from coset.lowering.torch.dtypes import STORED, plain

try:
    import torch
except ImportError as error:
    raise MissingExtra("torch is not installed: nothing can be timed on a GPU", help=install("gpu")) from error

from coset.backends.torch_loaded import imported  # after that error: it needs torch

CUDA = "cuda"  # torch's name of a GPU, AMD's too
Program = Callable[[], object]


def gpu() -> MeasuredAt:
    """This machine's GPU and what runs programs on it.

    Raises:
        CosetError: there is none that torch sees.
        MissingExtra: Triton is not installed.
    """
    if not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        found = f"torch {torch.__version__} is built {f'for CUDA or ROCm {built}' if built else 'without CUDA and ROCm'}"
        raise CosetError(f"there is no GPU that torch sees on this machine ({found})", help="run it where the GPU is")
    try:
        triton = version("triton")
    except PackageNotFoundError:
        if importlib.util.find_spec("triton") is None:
            raise MissingExtra("Triton is not installed: kernels cannot run on the GPU", help=install("gpu")) from None
        triton = "of unknown version"  # one of its builds under another name
    platform = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    return MeasuredAt(str(torch.cuda.get_device_name()), f"torch {torch.__version__}, triton {triton}, {platform}")


def synchronize(device: str) -> None:
    """Wait for the device."""
    if device == CUDA:
        torch.cuda.synchronize()


def captured(program: Program, device: str) -> Program:
    """`program` as the replay of a CUDA graph, so that no launch is waited for; on the CPU it stays what it is."""
    if device != CUDA:
        return program
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compiled and warm before it is recorded
        for _ in range(2):
            program()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        program()
    return partial(_replay, graph, program)


def _replay(graph: Any, _: Program) -> None:
    """A graph has addresses only: what it reads belongs to the program, which is kept with it."""
    graph.replay()


def block(program: Program, calls: int, device: str) -> list[float]:
    """The seconds of `calls` calls in a row, after one that is not timed."""
    program()
    synchronize(device)
    if device != CUDA:
        marks = [time.perf_counter()]
        for _ in range(calls):
            program()
            marks.append(time.perf_counter())
        return [later - earlier for earlier, later in pairwise(marks)]
    events = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
    events[0].record()
    for event in events[1:]:
        program()
        event.record()
    synchronize(device)
    return [earlier.elapsed_time(later) / 1e3 for earlier, later in pairwise(events)]


def loaded(folder: Path) -> Any:
    """The model of the package in `folder`, imported into this process."""
    return imported(folder, f"package_{folder.name}_{len(sys.modules)}").model


def repeated(folder: Path, feed: Mapping[str, np.ndarray[Any, Any]], dtype: DType, counts: tuple[int, ...], device: str) -> list[Program]:
    """The package in `folder` called so many times in a row, one program for each of `counts`: calls share nothing but the weights, so
    that no kernel of one is part of the next."""
    before = set(sys.modules)
    model = loaded(folder).to(device)
    stored = getattr(torch, STORED[plain(dtype).name])
    given = [torch.from_numpy(value.astype(np.float32)).to(device=device, dtype=stored) for value in feed.values()]

    def calls(count: int) -> Program:
        def run() -> None:
            for _ in range(count):
                model(*given)

        return captured(run, device)

    programs = [calls(count) for count in counts]
    for name in sys.modules.keys() - before:
        if name.startswith(f"package_{folder.name}_"):
            del sys.modules[name]  # or the weights of every package would stay on the device
    return programs


def released(device: str) -> None:
    """Give memory back that no tensor holds."""
    if device == CUDA:
        torch.cuda.empty_cache()
