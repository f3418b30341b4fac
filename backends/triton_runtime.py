"""Triton kernels without a device: run in Triton's interpreter, and compiled ahead of time, both in child processes; and with one.

The interpreter's child has TRITON_INTERPRET=1 before Triton is imported, and every buffer between guard zones; the compiler's child
has it not. So neither choice touches the process that asks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from coset.backends.triton_child import imported, receive, send
from coset.ir.dims import evaluate
from coset.ir.errors import CosetError, MissingExtra
from coset.lowering.triton_launch import Launch

Arrays = Mapping[str, np.ndarray[Any, Any]]
TARGETS = {"sm_80": ("cuda", 80, 32), "sm_90": ("cuda", 90, 32), "gfx942": ("hip", "gfx942", 64)}


@dataclass(frozen=True)
class Compiled:
    """What a compiler says of one function: registers of a thread, bytes a thread spills, bytes of shared memory, the PTX if any."""

    function: str
    registers: int
    spilled: int
    shared: int
    text: str


class Child:
    """A child process that is started on first use and again when it has died. Use it as a context manager, or call `close`."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    def ask(self, request: dict[str, Any], arrays: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to a request.

        Raises:
            CosetError: the child refuses, or dies.
            MissingExtra: Triton is not installed.
        """
        child = self._started()
        try:
            assert child.stdin is not None and child.stdout is not None
            send(child.stdin, request, arrays)
            answer, values = receive(child.stdout)
        except (EOFError, BrokenPipeError):
            raise CosetError(f"the process that runs Triton died: {self._last_words()}") from None
        if "missing" in answer:
            raise MissingExtra(answer["missing"], help="pip install 'coset[gpu]'")
        if "error" in answer:
            raise CosetError(f"Triton: {answer['error']}")
        return answer, values

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the child)
            environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
            if self._mode == "interpret":
                environment["TRITON_INTERPRET"] = "1"
            command = [sys.executable, "-m", "coset.backends.triton_child", self._mode]
            pipe = subprocess.PIPE
            self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, env=environment)
        return self._child

    def _last_words(self) -> str:
        """What the child wrote last before it died."""
        assert self._child is not None and self._errors is not None
        code = self._child.wait()
        self._errors.seek(0)
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        self.close()
        return lines[-1][:300] if lines else f"exit status {code}"

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    stream.close()
            self._child = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None


class Interpreter(Child):
    """Triton's interpreter."""

    def __init__(self) -> None:
        super().__init__("interpret")

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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


class Device:
    """A module on this machine's GPU, in this process: tensors are torch's, on that GPU (what stands for 8-bit floats is a view of bytes).
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
        for launch in launches:
            grid = tuple(evaluate(dim, binding) for dim in launch.grid)
            given = [evaluate(each.dim, binding) if each.buffer is None else tensors[each.buffer] for each in launch.arguments]
            if all(grid):
                numbers = launch.numbers(binding)
                function = getattr(self._module, launch.function)
                function[grid](*given, **numbers, num_warps=launch.num_warps, num_stages=launch.num_stages)

    def milliseconds(self, launches: Sequence[Launch], tensors: Mapping[str, Any], binding: Mapping[str, int]) -> float:
        """The median time of all launches together, with a cold L2 cache, as Triton's own benchmark measures it."""
        from triton.testing import do_bench

        return float(do_bench(lambda: self.run(launches, tensors, binding), return_mode="median"))


class Compiler(Child):
    """Triton's compiler for devices that are not there."""

    def __init__(self) -> None:
        super().__init__("compile")

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, source: str, launches: Sequence[Launch], target: str, binding: Mapping[str, int]) -> list[Compiled]:
        """The launches' functions compiled for a target of `TARGETS`.

        Raises:
            CosetError: the compiler refuses one.
            MissingExtra: Triton is not installed.
        """
        request = {"source": source, "launches": [_request(each, binding, None) for each in launches], "target": TARGETS[target]}
        answer, _ = self.ask(request, [])
        return [Compiled(**facts) for facts in answer["kernels"]]


def _request(launch: Launch, binding: Mapping[str, int], names: list[str] | None) -> dict[str, Any]:
    arguments = []
    for argument in launch.arguments:
        if argument.buffer is None:
            arguments.append([argument.type, evaluate(argument.dim, binding) if names is not None else 0])
        else:
            arguments.append([argument.type, names.index(argument.buffer) if names is not None else 0])
    return {
        "function": launch.function,
        "arguments": arguments,
        "grid": [evaluate(dim, binding) for dim in launch.grid] if names is not None else [],
        "constexprs": launch.numbers(binding) if names is not None else _sizes_unknown(launch),
        "num_warps": launch.num_warps,
        "num_stages": launch.num_stages,
    }


def _sizes_unknown(launch: Launch) -> dict[str, int | bool]:
    return {**dict(launch.constexprs), **({"WIDE": False} if launch.extents else {})}
