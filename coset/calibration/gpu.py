"""What `coset calibrate` times on a GPU: single ops as the kernels that `coset lower` writes for them, by the device's own clock.

A chain of links would say nothing there: a plan makes one kernel of elementwise ops, of movement and of the rows around them. So a case is
a program of its own that is called again and again, and nothing of one call is part of the next. What a target prices as fused into its
neighbours has no launch (`pointwise`, `function`, `movement`): its numbers say how plans fuse and not what a single call takes, so no
case speaks of them, and they stay as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from coset.backends import torch_clock
from coset.backends.profile import MeasuredAt
from coset.calibration.calibrate import LEAST_ROUNDS, MOST_ROUNDS, CalibrationBench, per_link
from coset.calibration.cases import LONG, SHORT, CalibrationCase, constant_term, tensor_of, weights
from coset.comparing.timing import Protocol, measure
from coset.extract.fit import MeasuredLink
from coset.ir.builtin import absent
from coset.ir.errors import CosetError
from coset.ir.held import working_folder
from coset.ir.program import Program
from coset.ir.term import Term, make
from coset.ir.types import DTYPES
from coset.job.machine import this_machine
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import write_package
from coset.lowering.planning.plan import plan
from coset.lowering.planning.primitive import primitive
from coset.lowering.triton.source import can_emit
from coset.pricing.kernel_options import options_for
from coset.targets.target import Kernel, Target

CALLS = 10  # timed ones in a block
NUMERICS = "reassociates"  # those of `coset lower`, where nothing else is asked for


@dataclass(frozen=True)
class GpuCase(CalibrationCase):
    """A case whose link is a program of its own: it may change the shape."""

    def measured(self, seconds: float) -> MeasuredLink:
        nothing, once = self.chain(0), self.program()
        return MeasuredLink(self.name, (nothing.roots, once.roots), (0, 1), seconds)

    def program(self) -> Program:
        """The program of one call, in the ops that kernels are planned from."""
        whole = self.chain(1)
        return whole.with_roots(primitive(whole))


def on_gpu(target: Target, device: str = torch_clock.CUDA, *, tiny: bool = False) -> CalibrationBench:
    """This machine's GPU, which runs what is lowered for `target`. On the `device` cpu, plans run as plain torch functions and the times
    mean nothing: for trying out. `tiny`: only the smallest case of each kind.

    Raises:
        CosetError: there is no GPU.
        MissingExtra: torch or Triton is not installed.
    """
    place = (
        torch_clock.gpu() if device == torch_clock.CUDA else MeasuredAt(f"dry run on {this_machine().device}", "torch functions on the CPU")
    )
    return CalibrationBench(place, list(calls())[: len(KINDS)] if tiny else list(calls()), partial(_seconds, target, device), has_launch)


def has_launch(kernel: Kernel) -> bool:
    """Whether a single call of it can be timed."""
    return kernel.launch.value > 0


def _seconds(target: Target, device: str, case: CalibrationCase, seconds: float) -> tuple[float, int]:
    """The time of one call among others in a row, and of how many rounds."""
    assert isinstance(case, GpuCase)
    program = case.program()
    kernels = plan(program, target, computes=can_emit)
    package = planned_package(program, kernels, title=case.name, triton=device == torch_clock.CUDA, options=options_for(NUMERICS, target))
    with working_folder("coset-work-") as place:
        folder = place / "case"
        write_package(package, folder)
        try:
            short, long = torch_clock.repeated(folder, case.feed(), case.type.dtype, (SHORT, LONG), device)
            protocol = Protocol(MOST_ROUNDS, seconds, LEAST_ROUNDS, CALLS)
            times = measure({"short": short, "long": long}, protocol, clock=partial(torch_clock.block, device=device))
        except Exception as error:  # torch and Triton raise a dozen classes: no memory, a kernel that does not compile, a lost device
            said = str(error).splitlines() or [""]
            raise CosetError(f"{type(error).__name__}: {said[0]}") from error
        finally:
            torch_clock.released(device)
    return per_link(times["short"], times["long"])


# ---------------------------------------------------------------- what is called

HALVES = ("f16", "bf16")


def calls() -> Iterator[GpuCase]:
    """All of them, small ones of every kind first, so that a run that is cut short knows something of each."""
    for row in itertools.zip_longest(*(kind() for kind in KINDS)):
        yield from (case for case in row if case is not None)


def _reductions() -> Iterator[GpuCase]:
    for rows, columns in ((16, 64), (64, 1024), (512, 1024), (4096, 1024), (8192, 4096), (32768, 4096)):
        for dtype, axis in itertools.product(("f32", "f16"), (1, 0)):

            def summed(x: Term, _: int, axis: int = axis) -> Term:
                return make("stablehlo.reduce", (x,), {"dimensions": (axis,), "combiner": "add"})

            yield GpuCase("stablehlo.reduce", dtype, f"{rows},{columns} over {axis}", tensor_of(dtype, rows, columns), summed)


def _products() -> Iterator[GpuCase]:
    depths = ((64, 64), (256, 256), (1024, 1024), (1024, 4096), (4096, 4096))
    for dtype, m, (k, n) in itertools.product(("f32", *HALVES), (1, 16, 64, 256, 1024, 4096), depths):
        if dtype == "bf16" and m not in (64, 4096):
            continue  # as fast as f16 where either was published

        def multiplied(x: Term, index: int, k: int = k, n: int = n, dtype: str = dtype) -> Term:
            return make("stablehlo.dot_general", (x, weights(tensor_of(dtype, k, n), index)), {"lhs_contract": (1,), "rhs_contract": (0,)})

        yield GpuCase("stablehlo.dot_general", dtype, f"{m}x{k}x{n}", tensor_of(dtype, m, k), multiplied)


def _batched() -> Iterator[GpuCase]:
    given = {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (1,)}
    sizes = ((4, 16, 64, 16), (12, 128, 64, 128), (16, 1024, 128, 1024), (64, 512, 64, 512))
    for (batch, m, k, n), dtype in itertools.product(sizes, ("f32", "f16")):

        def multiplied(x: Term, index: int, batch: int = batch, k: int = k, n: int = n, dtype: str = dtype) -> Term:
            return make("stablehlo.dot_general", (x, weights(tensor_of(dtype, batch, k, n), index)), given)

        yield GpuCase("stablehlo.dot_general", dtype, f"{batch} of {m}x{k}x{n}", tensor_of(dtype, batch, m, k), multiplied)


def _convolutions() -> Iterator[GpuCase]:
    shapes = ((1, 16, 14, 3), (8, 64, 56, 3), (8, 256, 14, 3), (8, 512, 7, 3), (8, 256, 56, 1), (64, 128, 28, 3))
    for (batch, channels, side, kernel), dtype in itertools.product(shapes, ("f32", "f16")):
        attributes = {"strides": (1, 1), "padding": ((kernel // 2, kernel // 2),) * 2, "dilations": (1, 1), "group": 1}
        given = (channels, kernel, dtype, attributes)

        def convolved(x: Term, index: int, given: tuple[int, int, str, dict[str, object]] = given) -> Term:
            channels, kernel, dtype, attributes = given
            return make("onnx.Conv", (x, weights(tensor_of(dtype, channels, channels, kernel, kernel), index), absent()), attributes)

        label = f"{batch},{channels},{side},{side}, {kernel}x{kernel}"
        yield GpuCase("stablehlo.convolution", dtype, label, tensor_of(dtype, batch, channels, side, side), convolved)


def _gathers() -> Iterator[GpuCase]:
    for rows, width, count in ((128, 64, 16), (32768, 768, 128), (32768, 768, 4096), (32768, 768, 65536)):

        def gathered(x: Term, _: int, rows: int = rows, count: int = count) -> Term:
            places = constant_term(np.random.default_rng(count).integers(0, rows, count), DTYPES["i32"])
            return make("onnx.Gather", (x, places), {"axis": 0})

        yield GpuCase("stablehlo.gather", "f32", f"{count} of {rows},{width}", tensor_of("f32", rows, width), gathered)


KINDS = (_reductions, _products, _batched, _convolutions, _gathers)
