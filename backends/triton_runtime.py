"""Triton kernels without a device: run in Triton's interpreter, and compiled ahead of time, both in child processes; and with one.

The interpreter's child has TRITON_INTERPRET=1 before Triton is imported, and every buffer between guard zones; the compiler's child
has it not. So neither choice touches the process that asks.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from coset.backends.child import Child
from coset.backends.triton_child import imported, receive, send
from coset.ir.dims import evaluate
from coset.ir.errors import CosetError
from coset.ir.extras import MissingExtra, install
from coset.lowering.triton.launch import Argument, Launch
from coset.lowering.triton.scalars import EIGHTS
from coset.targets.target import Target

Arrays = Mapping[str, np.ndarray[Any, Any]]
TARGETS: dict[str, tuple[str, int | str, int]] = {"sm_80": ("cuda", 80, 32), "sm_90": ("cuda", 90, 32), "gfx942": ("hip", "gfx942", 64)}
AMD = {"amd-mi300x": "gfx942"}  # what has no compute capability


class DeviceLost(CosetError):
    """The device answers no more in this process: what broke it is not known, and nothing else can be measured in this run."""


@dataclass(frozen=True)
class CompiledFunction:
    """What a compiler says of one function: registers of a thread, bytes a thread spills, bytes of shared memory, the PTX if any."""

    function: str
    registers: int
    spilled: int
    shared: int
    text: str


class TritonChild(Child):
    """A process that has Triton with its interpreter, or without it."""

    def __init__(self, module: str, *arguments: str, interpreted: bool) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        if interpreted:
            environment["TRITON_INTERPRET"] = "1"
        super().__init__(("-m", f"coset.backends.{module}", *arguments), environment)

    def ask(self, request: dict[str, Any], arrays: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to a request.

        Raises:
            CosetError: the child refuses, or dies.
            MissingExtra: Triton is not installed.
        """
        outgoing, incoming = self.streams()
        try:
            send(outgoing, request, arrays)
            answer, values = receive(incoming)
        except (EOFError, BrokenPipeError):
            raise CosetError(f"the process that runs Triton died: {self.last_words()}") from None
        if "missing" in answer:
            raise MissingExtra(answer["missing"], help=install("gpu"))
        if "error" in answer:
            raise CosetError(f"Triton: {answer['error']}")
        return answer, values


class Runner(TritonChild):
    """A process that runs kernels on memory of its own, each buffer between guard zones."""

    def run(self, source: str, launches: Sequence[Launch], arrays: Arrays, binding: Mapping[str, int]) -> dict[str, np.ndarray[Any, Any]]:
        """All arrays after the launches, by buffer name, in their shapes; `binding` gives the program's symbols.

        Raises:
            CosetError: the text does not run, or a store went outside of its buffer.
            MissingExtra: Triton is not installed.
        """
        names = list(arrays)
        data = [np.ascontiguousarray(arrays[name]).tobytes() for name in names]
        request = {"source": source, "launches": [_request(launch, binding, names) for launch in launches]}
        _, values = self.ask(request, data)
        shapes = {name: (arrays[name].dtype, arrays[name].shape) for name in names}
        return {name: np.frombuffer(value, shapes[name][0]).reshape(shapes[name][1]) for name, value in zip(names, values, strict=True)}


class TritonInterpreter(Runner):
    """Triton's interpreter."""

    def __init__(self) -> None:
        super().__init__("triton_child", "interpret", interpreted=True)


class OnDevice(Runner):
    """This machine's GPU (`device` of torch's names; on the CPU it is Triton's interpreter over torch's memory)."""

    def __init__(self, device: str = "cuda") -> None:
        super().__init__("torch_device", device, interpreted=device == "cpu")


class Device:
    """A module on this machine's GPU, in this process: tensors are torch's, on that GPU.
    Use it as a context manager: Triton reads the text from a file while it is open."""

    def __init__(self, source: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._module = imported(source, Path(self._folder.name))

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def run(self, launches: Sequence[Launch], tensors: Mapping[str, Any], binding: Mapping[str, int]) -> None:
        """Start kernels in order; `tensors` by buffer name, `binding` gives the program's symbols. Does not wait for them."""
        for function, grid, given, named in self._calls(launches, tensors, binding):
            function[grid](*given, **named)

    def compile(self, launches: Sequence[Launch], tensors: Mapping[str, Any], binding: Mapping[str, int]) -> None:
        """Fill Triton's cache with what `run` would start; tensors need no memory (torch's device `meta`)."""
        for function, grid, given, named in self._calls(launches, tensors, binding):
            function.warmup(*given, grid=grid, **named)

    def _calls(
        self, launches: Sequence[Launch], tensors: Mapping[str, Any], binding: Mapping[str, int]
    ) -> Iterator[tuple[Any, tuple[int, ...], list[Any], dict[str, Any]]]:
        """The function of each launch that has programs, its grid, and what it is handed."""
        for launch in launches:
            grid = tuple(evaluate(dim, binding) for dim in launch.grid)
            if all(grid):
                given = [_given(launch, each, tensors, binding) for each in launch.arguments]
                yield getattr(self._module, launch.function), grid, given, {**launch.numbers(binding), **launch.options()}

    def milliseconds(self, launches: Sequence[Launch], tensors: Mapping[str, Any], binding: Mapping[str, int]) -> float:
        """The median time of all launches together, with a cold L2 cache, as Triton's own benchmark measures it."""
        from triton.testing import do_bench

        return float(do_bench(lambda: self.run(launches, tensors, binding), return_mode="median"))


def _given(launch: Launch, argument: Argument, tensors: Mapping[str, Any], binding: Mapping[str, int]) -> Any:
    """What a function of this process is handed for an argument."""
    if argument.buffer is None:
        return evaluate(argument.dim, binding)
    tensor, floats = tensors[argument.buffer], argument.type.removeprefix("*") in EIGHTS.values()
    from coset.lowering.package.tiles import described, viewed

    if argument.tiles is None:
        return viewed(tensor, floats=floats)
    shape, strides = (tuple(evaluate(dim, binding) for dim in dims) for dims in (argument.tiles.shape, argument.tiles.strides))
    return described(tensor, argument.begin, shape, strides, launch.block(argument.tiles), floats=floats)


class Compiler(TritonChild):
    """Triton's compiler for devices that are not there."""

    def __init__(self) -> None:
        super().__init__("triton_child", "compile", interpreted=False)

    def run(self, source: str, launches: Sequence[Launch], target: str, binding: Mapping[str, int]) -> list[CompiledFunction]:
        """The launches' functions compiled for a target of `TARGETS`, or for another `sm_..` that Triton knows.

        Raises:
            CosetError: the compiler refuses one.
            MissingExtra: Triton is not installed.
        """
        request = {"source": source, "launches": [_request(each, binding, None) for each in launches], "target": _compiled_for(target)}
        answer, _ = self.ask(request, [])
        return [CompiledFunction(**facts) for facts in answer["kernels"]]


def architecture(target: Target) -> str | None:
    """What kernels for a target are compiled for; None where its file does not say."""
    capability = target.numbers.get("compute_capability")
    if capability is not None:
        return f"sm_{round(capability.value * 10)}"
    return next((AMD[name] for name in (target.name, *target.bases) if name in AMD), None)


def triton_version() -> str:
    """The release of Triton that compiles here.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return f"triton {version('triton')}"
    except PackageNotFoundError:
        if importlib.util.find_spec("triton") is None:
            raise MissingExtra("Triton is not installed: no kernel can be compiled", help=install("gpu")) from None
        return "triton of unknown version"  # one of its builds under another name


def _compiled_for(name: str) -> tuple[str, int | str, int]:
    return TARGETS.get(name) or ("cuda", int(name.removeprefix("sm_")), 32)


def _request(launch: Launch, binding: Mapping[str, int], names: list[str] | None) -> dict[str, Any]:
    arguments: list[list[Any]] = []
    for argument in launch.arguments:
        type_ = launch.type_of(argument)
        if names is None:
            arguments.append([type_, 0])
        elif argument.buffer is None:
            arguments.append([type_, evaluate(argument.dim, binding)])
        elif argument.tiles is None:
            arguments.append([type_, names.index(argument.buffer)])
        else:
            shape, strides = ([evaluate(dim, binding) for dim in dims] for dims in (argument.tiles.shape, argument.tiles.strides))
            block = list(launch.block(argument.tiles))
            arguments.append([type_, [names.index(argument.buffer), argument.begin, shape, strides, block]])
    return {
        "function": launch.function,
        "arguments": arguments,
        "grid": [evaluate(dim, binding) for dim in launch.grid] if names is not None else [],
        "constexprs": launch.numbers(binding) if names is not None else _sizes_unknown(launch),
        "num_warps": launch.num_warps,
        "num_stages": launch.num_stages,
        "contracts": launch.contracts,
    }


def _sizes_unknown(launch: Launch) -> dict[str, int | bool]:
    return {**dict(launch.constexprs), **({"WIDE": False} if launch.extents else {})}
