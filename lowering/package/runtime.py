"""What a package that coset wrote runs on: weights from a safetensors file, checks of what is given, device and CUDA graph.

This file is copied into every package. It needs torch only.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2, "F8_E4M3FNUZ": torch.float8_e4m3fnuz, "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "F8_E8M0": torch.float8_e8m0fnu, "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U64": torch.uint64,
    "U32": torch.uint32, "U16": torch.uint16, "U8": torch.uint8, "BOOL": torch.bool, "C64": torch.complex64, "C128": torch.complex128,
}  # fmt: skip
Dims = dict[str, int]
Shape = tuple[int, ...]
Size = int | str | tuple[str, Callable[[Dims], int]]  # a number, a free dim, or an expression with its function of the free dims


@dataclass(frozen=True)
class Input:
    """One input: its element type and its shape."""

    name: str
    dtype: torch.dtype
    shape: tuple[Size, ...]


class WrongInput(ValueError):
    """What was given does not fit the inputs of the model."""


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, mapped: pages are read when they are used."""
    if not path.exists():
        return {}
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
        if first == last:
            found[name] = torch.empty(shape, dtype=dtype)
        else:
            flat = torch.frombuffer(data, dtype=torch.uint8, offset=8 + length + first, count=last - first)
            found[name] = flat.view(dtype).reshape(shape)
    return found


def check(inputs: tuple[Input, ...], given: tuple[Any, ...], device: torch.device) -> Dims:
    """The free dims' numbers in what is given.

    Raises:
        WrongInput: a tensor is missing, or has another dtype, rank, size or device than the model takes.
    """
    if len(given) != len(inputs):
        names = ", ".join(one.name for one in inputs)
        raise WrongInput(f"the model takes {len(inputs)} inputs ({names}), not {len(given)}")
    dims: Dims = {}
    for one, value in zip(inputs, given):
        if not isinstance(value, Tensor):
            raise WrongInput(f"input `{one.name}` must be a torch.Tensor, not {type(value).__name__}")
        if value.dtype != one.dtype:
            raise WrongInput(f"input `{one.name}` must have elements of {one.dtype}, not {value.dtype}")
        if value.device != device:
            raise WrongInput(f"input `{one.name}` is on {value.device}, but the model on {device}: move one with .to()")
        if value.ndim != len(one.shape):
            raise WrongInput(f"input `{one.name}` must have rank {len(one.shape)}, not {value.ndim}")
        for axis, (size, number) in enumerate(zip(one.shape, value.shape)):
            if isinstance(size, str) and dims.setdefault(size, number) != number:
                raise WrongInput(f"dim {axis} of input `{one.name}` is `{size}`, which is {dims[size]} elsewhere, not {number}")
            if isinstance(size, int) and size != number:
                raise WrongInput(f"dim {axis} of input `{one.name}` must be {size}, not {number}")
    for one, value in zip(inputs, given):
        for axis, (size, number) in enumerate(zip(one.shape, value.shape)):
            if isinstance(size, tuple):
                text, compute = size
                if (expected := compute(dims)) != number:
                    raise WrongInput(f"dim {axis} of input `{one.name}` is `{text}`, here {expected}, not {number}")
    return dims


class Memory:
    """Buffers that are allocated once and used by every call."""

    def __init__(self) -> None:
        self._kept: dict[Any, Tensor] = {}

    def arena(self, size: int, device: torch.device) -> Tensor:
        """The bytes that temporaries share."""
        key = (size, device)
        if key not in self._kept:
            self._kept[key] = torch.empty(size, dtype=torch.uint8, device=device)
        return self._kept[key]

    def part(self, size: int, offset: int, shape: Shape, dtype: torch.dtype, device: torch.device, order: Shape = ()) -> Tensor:
        """A temporary at its place in the arena of `size` bytes, its dims in this `order` there."""
        key = (size, offset, shape, dtype, device, order)
        if key not in self._kept:
            count = dtype.itemsize
            for number in shape:
                count *= number
            whole = self.arena(size, device)
            flat = whole[offset : offset + count].view(dtype) if count else torch.empty(0, dtype=dtype, device=device)
            self._kept[key] = in_order(flat, shape, order)
        return self._kept[key]

    def own(self, name: str, shape: Shape, dtype: torch.dtype, device: torch.device, order: Shape = ()) -> Tensor:
        """A temporary whose size is known at the call: one for each name, as large as the last call needed."""
        found = self._kept.get(name)
        if found is None or found.shape != shape or found.device != device:
            found = self._kept[name] = empty(shape, dtype, device, order)
        return found


def empty(shape: Shape, dtype: torch.dtype, device: torch.device, order: Shape) -> Tensor:
    """New memory, its dims in this `order`."""
    return in_order(torch.empty(shape, dtype=dtype, device=device), shape, order)


def in_order(memory: Tensor, shape: Shape, order: Shape) -> Tensor:
    """Memory as a tensor of this shape, whose dims lie there in this `order` (none: as they stand)."""
    if not order:
        return memory.reshape(shape)
    flat = memory.reshape(-1)  # so that the stride of a dim of 1 is that of its place, by which torch tells how a tensor lies
    return flat.reshape([shape[axis] for axis in order]).permute([order.index(axis) for axis in range(len(order))])


def start(kernel: Any, grid: tuple[int, ...], *arguments: Any, **numbers: Any) -> None:
    """Launch a Triton kernel over a grid, unless it is empty.

    Raises:
        WrongInput: the tensors are not on a GPU, and Triton does not interpret.
    """
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    tensors = [getattr(one, "base", one) for one in arguments]  # a descriptor's, or itself
    if not interpreted and any(isinstance(one, Tensor) and not one.is_cuda for one in tensors):
        raise WrongInput("Triton kernels need tensors on a GPU; on the CPU set TRITON_INTERPRET=1 before Triton is imported")
    if all(grid):
        kernel[grid](*arguments, **numbers)


_BESIDE: ContextVar[bool] = ContextVar("beside", default=True)  # False while a graph is recorded that is to have one branch


class Streams:
    """The streams of one run: while a CUDA graph is recorded, kernels that do not wait for each other become branches of it. Else all are
    launched one after the other on the caller's stream, where more streams would only take the host's time.

    Stream 0 is the caller's.
    """

    def __init__(self, count: int, device: torch.device) -> None:
        self._own: list[Any] = []
        if device.type == "cuda" and _BESIDE.get() and torch.cuda.is_current_stream_capturing():
            main = torch.cuda.current_stream(device)
            self._own = [main, *(torch.cuda.Stream(device) for _ in range(count - 1))]
            self._begun, self._used, self._marks = main.record_event(), {0}, dict[str, Any]()

    @contextmanager
    def on(self, number: int, after: tuple[str, ...] = (), marks: str = "") -> Iterator[None]:
        """What is launched meanwhile is launched on a stream, after kernels of others; `marks`: its name, where others wait for it."""
        if not self._own:
            yield
            return
        stream = self._own[number]
        if number not in self._used:
            self._used.add(number)
            stream.wait_event(self._begun)
        for name in after:
            stream.wait_event(self._marks[name])
        with torch.cuda.stream(stream):
            yield
        if marks:
            self._marks[marks] = stream.record_event()

    def join(self) -> None:
        """The caller's stream waits for all."""
        for number in sorted(self._used - {0}) if self._own else ():
            self._own[0].wait_event(self._own[number].record_event())


@contextmanager
def precision(tf32: bool, f32_sums: bool) -> Iterator[None]:
    """How libraries on a GPU multiply meanwhile: f32 with 10 bits of fraction where `tf32`, else in full; 16-bit floats with `f32_sums`, or
    as torch was told."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    wanted: list[tuple[Any, str, Any]] = [
        (place, "fp32_precision", "tf32" if tf32 else "ieee") for place in (matmul, cudnn.conv, cudnn.rnn)
    ]
    if f32_sums:
        wanted += [(matmul, f"allow_{kind}_reduced_precision_reduction", False) for kind in ("fp16", "bf16")]
        wanted.append((matmul, "allow_fp16_accumulation", False))
    before = [_setting(place, name) for place, name, _ in wanted]
    try:
        for place, name, value in wanted:
            setattr(place, name, value)
        yield
    finally:
        for (place, name, _), value in zip(wanted, before):
            setattr(place, name, value)


def _setting(place: Any, name: str) -> Any:
    """What a setting of torch is, as it can be set again: some have a second part, of sums that are split."""
    split = getattr(place, f"{name}_split_k", None)
    return getattr(place, name) if split is None else (getattr(place, name), split)


class Model:
    """A compiled program: call it with tensors in the order of `inputs`, or by name.

    It runs where `to` puts it: a GPU if there is one, else the CPU. One output is returned as it is, several as a tuple.
    """

    def __init__(
        self, program: Callable[..., tuple[Tensor, ...]], inputs: tuple[Input, ...], outputs: tuple[str, ...], folder: Path
    ) -> None:
        self.program, self.inputs, self.outputs, self.folder = program, inputs, outputs, folder
        self.manifest: Mapping[str, Any] = json.loads((folder / "manifest.json").read_text())
        self.device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
        self._weights: dict[str, Tensor] | None = None
        self._graph: tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]] | None = None

    def to(self, device: torch.device | str) -> Model:
        """Put weights and buffers on `device`."""
        moved = torch.device(device)
        if moved.type == "cuda" and moved.index is None:
            moved = torch.device("cuda", torch.cuda.current_device())
        if moved != self.device:
            self.device, self._weights, self._graph = moved, None, None
        return self

    @property
    def weights(self) -> dict[str, Tensor]:
        """The constants by name, on the device; read at first use."""
        if self._weights is None:
            stored = read_weights(self.folder / "weights.safetensors")
            self._weights = {name: value.to(self.device) for name, value in stored.items()}
            for one in self.manifest.get("weights", ()):
                if "order" in one:  # of dims in memory
                    value, order = self._weights[one["name"]], tuple(one["order"])
                    self._weights[one["name"]] = in_order(value.permute(order).contiguous(), tuple(value.shape), order)
        return self._weights

    def __call__(self, *given: Tensor, **named: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The outputs for the inputs.

        Raises:
            WrongInput: the inputs do not fit.
        """
        results = self._run(self._in_order(given, named))
        return results[0] if len(results) == 1 else results

    def run(self, feed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The outputs by name for the inputs by name.

        Raises:
            WrongInput: the inputs do not fit.
        """
        return dict(zip(self.outputs, self._run(self._in_order((), feed))))

    def _in_order(self, given: tuple[Tensor, ...], named: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        names = [one.name for one in self.inputs]
        unknown = [name for name in named if name not in names[len(given) :]]
        missing = [name for name in names[len(given) :] if name not in named]
        if unknown or missing:
            what = f"`{unknown[0]}` is none of them or given twice" if unknown else f"`{missing[0]}` is missing"
            raise WrongInput(f"the model takes the inputs {', '.join(names)}: {what}")
        return (*given, *(named[name] for name in names[len(given) :]))

    def _launch(self, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        with torch.no_grad(), precision(bool(self.manifest.get("tf32")), bool(self.manifest.get("f32_sums"))):
            return self.program(self.weights, *given, device=self.device)

    def _run(self, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        check(self.inputs, given, self.device)
        if self._graph is None:
            return self._launch(given)
        graph, inputs, outputs = self._graph
        if any(kept.shape != value.shape for kept, value in zip(inputs, given)):
            raise WrongInput(f"the model was captured for {[tuple(kept.shape) for kept in inputs]}; call release() to run other shapes")
        for kept, value in zip(inputs, given):
            kept.copy_(value)
        graph.replay()
        return tuple(value.clone() for value in outputs)

    def capture(self, *given: Tensor, beside: bool = True) -> Model:
        """Record the launches for these shapes as one CUDA graph, which later calls replay. `beside`: kernels that do not wait for each
        other are branches of it, where the program was lowered so.

        Raises:
            WrongInput: the inputs do not fit, or the model is not on a GPU.
        """
        check(self.inputs, given, self.device)
        if self.device.type != "cuda":
            raise WrongInput("a CUDA graph needs a GPU")
        inputs = tuple(value.clone() for value in given)
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):  # compile and warm up outside the capture
            for _ in range(2):
                self._launch(inputs)
        torch.cuda.current_stream(self.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        token = _BESIDE.set(beside)
        try:
            with torch.cuda.graph(graph):
                outputs = self._launch(inputs)
        finally:
            _BESIDE.reset(token)
        self._graph = (graph, inputs, outputs)
        return self

    def release(self) -> Model:
        """Forget the CUDA graph."""
        self._graph = None
        return self
