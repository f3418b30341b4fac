"""Survivors against the clock: each is first compared with the default on drawn inputs, then timed in turn with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from coset.backends.profile import MeasuredAt
from coset.backends.torch_package import TorchPackage
from coset.backends.triton_runtime import DeviceLost, OnDevice, Runner, TritonInterpreter
from coset.backends.tuning_profile import Timed
from coset.comparing import timing
from coset.comparing.fault import Runs
from coset.comparing.feeds import Feed
from coset.ir.errors import CosetError
from coset.ir.types import DType
from coset.lowering.kernels.addresses import number_of
from coset.lowering.kernels.kernel import reads, writes
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.kinds import TRITON_KINDS
from coset.lowering.triton.source import EmittedKernel
from coset.tuning.drawn import Array, drawn, elements
from coset.tuning.tunable import Tunable

ROUNDINGS = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7, "f8e4m3fn": 2.0**-3, "f8e5m2": 2.0**-2}
SHORT_ROUNDING = 2.0**-13
ULPS = 4.0  # roundings of a result that may fall the other way where its last sum does
PROTOCOL = timing.Protocol(15, 1.0, 5, 10)  # of a pair
LARGEST = 1 << 30  # bytes of one kernel's buffers: with more it is not measured alone, they go to its process and back
Program = Callable[[], object]
Running = Callable[[str, EmittedKernel, Mapping[str, Array], Mapping[str, int]], AbstractContextManager[Program]]


@dataclass(frozen=True)
class KernelBench:
    """Where kernels are measured: the `place` that times are kept under, the process that runs one for its values, how one is made ready to
    be called again and again, the same two of packages, and the clock."""

    place: MeasuredAt
    runner: Callable[[], Runner]
    running: Running
    package: Callable[[Path], AbstractContextManager[Runs]]
    calling: Callable[[Path, Feed], AbstractContextManager[Program]]
    clock: timing.Clock
    protocol: timing.Protocol = PROTOCOL


def on_gpu(device: str = "cuda", protocol: timing.Protocol = PROTOCOL) -> KernelBench:
    """This machine's GPU. Values are those of a process of their own: a kernel that breaks the GPU's context breaks no measurement. On the
    `device` cpu, in a process with TRITON_INTERPRET=1, the interpreter takes the same path, and times mean nothing.

    Raises:
        CosetError: there is none.
        MissingExtra: torch or Triton is not installed.
    """
    from coset.backends import torch_clock, torch_kernels  # torch is asked for only where a GPU is

    dry = device != torch_clock.CUDA
    place = MeasuredAt("dry run", "Triton's interpreter over torch's memory") if dry else torch_clock.gpu()

    def running(
        source: str, emission: EmittedKernel, arrays: Mapping[str, Array], sizes: Mapping[str, int]
    ) -> AbstractContextManager[Program]:
        return torch_kernels.prepared(source, emission.launches, arrays, sizes, device)

    def calling(folder: Path, feed: Feed) -> AbstractContextManager[Program]:
        return torch_kernels.called(folder, feed, device)

    def package(folder: Path) -> AbstractContextManager[Runs]:
        return TorchPackage(folder, device=device, interpreted=dry)

    clock = partial(torch_clock.block, device=device)
    return KernelBench(place, lambda: OnDevice(device), running, package, calling, clock, protocol)


def in_interpreter(clock: timing.Clock = timing.block, protocol: timing.Protocol | None = None) -> KernelBench:
    """A dry run: Triton's interpreter in a child process. Its times mean nothing."""
    kept = TritonInterpreter()

    @contextmanager
    def running(source: str, emission: EmittedKernel, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> Iterator[Program]:
        yield lambda: kept.run(source, emission.launches, arrays, sizes)

    @contextmanager
    def calling(folder: Path, feed: Feed) -> Iterator[Program]:
        with TorchPackage(folder, interpreted=True) as package:
            yield lambda: package.run(feed)

    def package(folder: Path) -> AbstractContextManager[Runs]:
        return TorchPackage(folder, interpreted=True)

    place = MeasuredAt("dry run", "Triton's interpreter")
    return KernelBench(place, lambda: kept, running, package, calling, clock, protocol or timing.Protocol(2, 1.0, 1, 1))


class Measuring:
    """One kernel on a bench."""

    def __init__(self, kernel: Tunable, bench: KernelBench, runner: Runner) -> None:
        self.kernel, self.bench, self.runner = kernel, bench, runner
        self._arrays: dict[str, Array] | None = None
        self._expected: Mapping[str, Array] | None = None

    def timed(self, choice: KernelChoice) -> Timed:
        """What the clock says of an alternative; why it says nothing, where it gives other values than the default or does not run.

        Raises:
            CosetError: the device is lost, or the default itself does not run.
        """
        expected = self._default()
        try:
            found = self._values(choice)
        except CosetError as error:
            return Timed(problem=f"does not run: {error.message}")
        for name in writes(self.kernel.kernel):
            dtype, short = self.kernel.plan.buffers[name].dtype, short_sums(self.kernel)
            problem = differs(found[name], expected[name], dtype, summed(self.kernel), short)
            if problem:
                return Timed(problem=f"other values: {problem}")
        return self._raced(choice)

    def _default(self) -> Mapping[str, Array]:
        if self._expected is None:
            self._arrays = drawn(self.kernel)
            self._expected = self._values(self.kernel.default)
        return self._expected

    def _memory(self, emission: EmittedKernel) -> dict[str, Array]:
        assert self._arrays is not None
        scratch = {each.name: np.zeros(elements(each, self.kernel.sizes), each.dtype.numpy) for each in emission.scratch}
        return {**self._arrays, **scratch}

    def _values(self, choice: KernelChoice) -> Mapping[str, Array]:
        emission = self.kernel.emission(choice)
        return self.runner.run(self.kernel.source(choice), emission.launches, self._memory(emission), self.kernel.sizes)

    def _raced(self, choice: KernelChoice) -> Timed:
        with self._ready(self.kernel.default) as default:
            try:
                with self._ready(choice) as other:
                    times = timing.measure({"default": default, "other": other}, self.bench.protocol, clock=self.bench.clock)
            except DeviceLost:
                raise
            except CosetError as error:  # it asks for more than the device has, say
                return Timed(problem=f"does not run: {error.message}")
        against = timing.ratio(times["other"], times["default"])
        return Timed(times["other"].median, against.value, against.low, against.high, len(times["other"].medians))

    def _ready(self, choice: KernelChoice) -> AbstractContextManager[Program]:
        emission = self.kernel.emission(choice)
        return self.bench.running(self.kernel.source(choice), emission, self._memory(emission), self.kernel.sizes)


def refusal(kernel: Tunable) -> str:
    """Why a kernel is not measured by itself; empty where it is."""
    touched = [kernel.plan.buffers[name] for name in dict.fromkeys((*reads(kernel.kernel), *writes(kernel.kernel)))]
    bytes_ = sum(elements(buffer, kernel.sizes) * buffer.held.bytes for buffer in touched)
    return f"its buffers take {bytes_:.3g} bytes" if bytes_ > LARGEST else ""


def summed(kernel: Tunable) -> int:
    """How many additions one result is behind, at most."""
    return max(1, sum(number_of(loops, kernel.sizes) for loops in kernel.kernel.sum_loops))


def short_sums(kernel: Tunable) -> int:
    """How many products of 8-bit floats may be added in fewer bits than f32 has."""
    takes = TRITON_KINDS[type(kernel.kernel)].takes_eights(kernel.kernel, kernel.options)
    return (kernel.options.eights or 0) if takes else 0


def differs(found: Array, expected: Array, dtype: DType, depth: int, short: int = 0) -> str:
    """How results differ by more than another order of their sums explains; empty where they do not. The bound: each of `depth` additions
    rounds once to f32 or f64 (Higham 2002, section 4.2), of magnitudes as large as the largest result; the result itself rounds to its
    dtype. Of `short` additions each cuts off what is below 13 bits."""
    if dtype.kind != "float" or dtype.bits < 8:  # kernels only move what is below a byte
        wrong = int((found != expected).sum())
        return f"{wrong} of {found.size} elements" if wrong else ""
    wide, other = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(other)
    sum_rounding = ROUNDINGS["f64"] if dtype.name == "f64" else ROUNDINGS["f32"]
    largest = float(np.max(np.abs(other), initial=0.0, where=finite))
    with np.errstate(all="ignore"):
        allowed = ULPS * ROUNDINGS[dtype.name] * np.abs(other) + (depth * sum_rounding + short * SHORT_ROUNDING) * largest
        same = np.where(finite, np.abs(wide - other) <= allowed, (wide == other) | (np.isnan(wide) & np.isnan(other)))
    if same.all():
        return ""
    place = int(np.argmin(same))
    return f"{wide[place]:.6g} instead of {other[place]:.6g} at {place}, {int((~same).sum())} of {same.size} elements"
