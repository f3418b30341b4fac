"""What `gpu` measures of single groups: bytes moved against the copy bandwidth of the same minute, products against cuBLAS."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import coset.dialects
from benchmarks.gpu_clock import captured, measure, synchronize
from benchmarks.gpu_programs import BANDWIDTH, PRODUCTS, TINY_BANDWIDTH, TINY_PRODUCTS, Case
from coset.backends.torch_clock import loaded
from coset.backends.triton_runtime import Device
from coset.comparing.timing import Protocol, Ratio, Timing, ratio
from coset.ir.types import DTYPES
from coset.lowering.kernels.kernel import Buffer, Library, Plan
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import write_package
from coset.lowering.planning.plan import plan
from coset.lowering.planning.traffic import least
from coset.lowering.torch.dtypes import STORED, plain
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.scalars import EIGHTS
from coset.lowering.triton.source import can_emit, emit, module_of
from coset.pricing.kernel_options import eights_for, options_for
from coset.pricing.plan_price import PlanPrices
from coset.pricing.windows import Planning
from coset.targets.target import get_target

assert coset.dialects  # imported so that every op is registered

Row = dict[str, Any]
NOWHERE = "meta"  # torch's device of tensors without memory
COPY_ELEMENTS = 1 << 28  # of f32: 1 GiB read and 1 GiB written
BANDWIDTH_GOAL, PRODUCT_GOAL = 0.85, 0.95
ERROR_GOAL = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2, "f8e4m3fn": 1.6e-2}
"""Norm of the difference over the norm of the reference: some roundings of the dtype (of 8-bit floats, whose results are bf16, of that);
larger is a wrong result."""
TILINGS = (
    (128, 128, 64, 8, 3),
    (128, 128, 64, 4, 4),
    (128, 256, 64, 8, 3),
    (256, 128, 64, 8, 3),
    (128, 128, 32, 4, 4),
    (128, 128, 32, 8, 3),
    (128, 64, 32, 4, 4),
    (64, 256, 64, 4, 4),
)
"""(m, n, k, warps, stages) that are tried beside the chosen one where they fit the sizes: what `choose_tiling` might choose."""
COPIED = (
    (128, 256, 128, 1, 4, 8, 4),
    (128, 256, 128, 1, 4, 8, 3),
    (128, 256, 128, 0, 4, 8, 4),
    (128, 256, 128, 1, 1, 8, 3),
    (128, 128, 128, 1, 2, 8, 4),
    (128, 128, 128, 2, 2, 4, 3),
    (256, 128, 128, 1, 2, 8, 3),
)
"""(m, n, bytes of k, programs of a processor that stay, parts, warps, stages) where operands are bulk copies."""


def options_of(target: str) -> EmitOptions:
    """What kernels may do on this target by default, but 8-bit floats are multiplied in sums that may be short, as torch has them."""
    return replace(options_for("reassociates", get_target(target)), eights=eights_for("approx", get_target(target)))


class Kernels:
    """A case planned without a library's products, emitted and in the device's memory, or in none (the device `meta`)."""

    def __init__(self, case: Case, device: str, target: str, options: EmitOptions | None = None) -> None:
        self.case, self.device = case, device
        self.program = case.program()
        self.plan: Plan = plan(self.program, get_target(target), computes=can_emit)
        assert not any(isinstance(kernel, Library) for kernel in self.plan.kernels), f"{case.title}: a library's kernel"
        self.options = options or options_of(target)
        self.emissions: list[EmittedKernel] = [emit(kernel, self.plan, options=self.options) for kernel in self.plan.kernels]
        self._draw = None if device == NOWHERE else torch.Generator(device=device).manual_seed(1)
        self.tensors: dict[str, torch.Tensor] = {}
        self._fill([*self.plan.buffers.values(), *(buffer for emission in self.emissions for buffer in emission.scratch)])

    def _fill(self, buffers: Sequence[Buffer]) -> None:
        device, draw = self.device, self._draw
        for buffer in buffers:
            dtype = getattr(torch, STORED[plain(buffer.dtype).name])
            shape = tuple(dim for dim in buffer.shape if isinstance(dim, int))
            if device == NOWHERE:
                self.tensors[buffer.name] = torch.empty(shape, dtype=dtype, device=device)
            elif buffer.role == "input":
                self.tensors[buffer.name] = torch.randn(shape, generator=draw, device=device).to(dtype)
            elif buffer.role == "constant":
                assert buffer.value is not None
                self.tensors[buffer.name] = torch.from_numpy(buffer.value.attribute("value").array()).to(device)
            else:
                self.tensors[buffer.name] = torch.full(shape, 77, dtype=dtype, device=device)

    def other(self, choice: KernelChoice | None, options: EmitOptions) -> tuple[str, list[Launch]]:
        """The text and the launches of the one kernel with another choice, or with other options, on the same memory."""
        (kernel,) = self.plan.kernels
        emission = emit(kernel, self.plan, options=replace(options, choice=choice))
        self._fill([buffer for buffer in emission.scratch if buffer.name not in self.tensors])
        return module_of([emission]), list(emission.launches)

    @property
    def launches(self) -> list[Launch]:
        """All launches in order."""
        return [launch for emission in self.emissions for launch in emission.launches]

    def source(self) -> str:
        """The text of all kernels."""
        return module_of(self.emissions)

    def error(self) -> float:
        """How far the outputs are from the plan as torch functions over f32 copies of the inputs, by norms; the largest of the outputs."""
        wide = self.reference()
        return furthest([self.tensors[buffer] for _, buffer in self.plan.outputs], wide)

    def reference(self) -> tuple[torch.Tensor, ...]:
        """The plan as torch functions."""
        return packaged(self, self.plan, triton=False)()


def furthest(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """The largest norm of a difference over the norm of what is expected, 0 of no tensors; infinite where something is no number."""
    errors = [float((one.double() - other.double()).norm() / other.double().norm()) for one, other in zip(found, expected, strict=True)]
    return max((error if error == error else float("inf") for error in errors), default=0.0)


def packaged(kernels: Kernels, made: Plan, *, triton: bool) -> Callable[[], tuple[torch.Tensor, ...]]:
    """A plan of a case as a package, which is called with the same inputs."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "package"
        write_package(planned_package(kernels.program, made, title=kernels.case.title, triton=triton, options=kernels.options), folder)
        model = loaded(folder).to(kernels.device)  # all of it is in memory then
    inputs = [kernels.tensors[buffer] for _, buffer in kernels.plan.inputs]

    def run() -> tuple[torch.Tensor, ...]:
        found = model(*inputs)
        return found if isinstance(found, tuple) else (found,)

    return run


def by_library(kernels: Kernels, target: str) -> Callable[[], tuple[torch.Tensor, ...]] | None:
    """A case as it is planned where products may be a library's, as a whole; None where none is."""
    machine = get_target(target)
    planned = Planning(kernels.program, machine, {}).cheapest(PlanPrices(machine, {}))
    if not any(isinstance(kernel, Library) for kernel in planned.kernels):
        return None
    return packaged(kernels, planned, triton=kernels.device == "cuda")


def copying(source: torch.Tensor) -> Callable[[], object]:
    """A copy of `source`, as it is beside what waits for memory. It is not to be captured: in a graph it is done by another engine, at
    2.76 TB/s instead of 4.25 on an H200."""
    sink = torch.empty_like(source)
    return lambda: sink.copy_(source)


def bandwidth(device: str, target: str, protocol: Protocol, *, tiny: bool, only: Sequence[str] = ()) -> Iterator[Row]:
    """One row for each pointwise or normalization group: bytes that it must move over its time, as a share of what a copy reaches."""
    count = 4096 if tiny else COPY_ELEMENTS
    copy = copying(torch.randn(count, device=device))
    copy_bytes = 2 * 4 * count
    for case in TINY_BANDWIDTH if tiny else BANDWIDTH:
        if only and case.name not in only:
            continue
        kernels = Kernels(case, device, target)
        with Device(kernels.source()) as module:
            run = captured(lambda: module.run(kernels.launches, kernels.tensors, {}), device)  # noqa: B023  (done in this round)
            run()
            synchronize(device)
            error = kernels.error()
            times = measure({"copy": copy, "ours": run}, protocol, device)
        floor = least(kernels.plan)
        against = scaled(ratio(times["copy"], times["ours"]), floor / copy_bytes)
        yield {
            "case": case.title, "kernels": len(kernels.launches), "bytes": floor, **seconds(times),
            "copy_bytes_per_s": copy_bytes / times["copy"].median, "bytes_per_s": floor / times["ours"].median,
            "share_of_copy": shown(against), "goal": BANDWIDTH_GOAL, "error": error, "right": error <= ERROR_GOAL[case.dtype],
        }  # fmt: skip
        kernels.tensors.clear()
        if device == "cuda":
            torch.cuda.empty_cache()


def products(device: str, target: str, protocol: Protocol, *, tiny: bool, tune: bool) -> Iterator[Row]:
    """One row for each product with bias, GELU and residual, beside cuBLAS's product alone (of f32 without tf32), and for products of 8-bit
    floats with scales beside cuBLAS's same, without its fast sums; those are multiplied as f16, too. Where the plan leaves a product to a
    library, ours is the whole plan, and our own kernel is beside it."""
    torch.backends.cuda.matmul.allow_tf32 = False
    for case in TINY_PRODUCTS if tiny else PRODUCTS:
        kernels = Kernels(case, device, target)
        with ExitStack() as stack, Device(kernels.source()) as module:
            programs = {"cublas": captured(library(kernels, device), device)}
            programs["ours"] = captured(lambda: module.run(kernels.launches, kernels.tensors, {}), device)  # noqa: B023
            programs["ours"]()
            synchronize(device)
            error = kernels.error()
            given = by_library(kernels, target)
            if given is not None:
                error = max(error, furthest(given(), kernels.reference()))
                programs |= {"own": programs["ours"], "ours": captured(given, device)}
            refused: dict[str, str] = {}
            for name, (choice, options) in product_forms(kernels, tiny=tiny, tune=tune).items():
                form(name, choice, options, kernels, stack, programs, refused)
            if tune and not is_copied(kernels):
                found, refused = _tilings(kernels, module, device, TINY_TILINGS if tiny else TILINGS)
                programs |= found
            times = measure(programs, protocol, device)
        m, n, k = case.sizes
        flop = 2 * m * n * k
        row: Row = {
            "case": case.title, **seconds(times), "cublas_flop_per_s": flop / times["cublas"].median,
            "flop_per_s": flop / times["ours"].median, "share_of_cublas": shown(ratio(times["cublas"], times["ours"])),
            "goal": PRODUCT_GOAL, "error": error, "right": error <= ERROR_GOAL[case.dtype],
            "launch": {**dict(kernels.launches[0].constexprs), **kernels.launches[0].options()},
        }  # fmt: skip
        if "pointers" in programs:
            row["pointers_share_of_cublas"] = shown(ratio(times["cublas"], times["pointers"]))
        if "f16" in programs:
            row["f16_share_of_cublas"] = shown(ratio(times["cublas"], times["f16"]))
        if "own" in programs:
            row["own_share_of_cublas"] = shown(ratio(times["cublas"], times["own"]))
        tried = [name for name in programs if name not in ("cublas", "ours", "own", "pointers", "f16")]
        if tried:
            best = min(tried, key=lambda name: times[name].median)
            row["best_tiling"] = {"tiling": best, "share_of_cublas": shown(ratio(times["cublas"], times[best]))}
        if refused:
            row["tilings_that_do_not_run"] = refused
        yield row


def library(kernels: Kernels, device: str) -> Callable[[], object]:
    """cuBLAS's product of the same operands."""
    inputs = {name: kernels.tensors[buffer] for name, buffer in kernels.plan.inputs}
    x, w = inputs["x"], inputs["w"]
    if kernels.case.name == "scaled":
        scales = {"scale_a": inputs["s"], "scale_b": inputs["t"]}
        return lambda: torch._scaled_mm(x, w.t(), **scales, out_dtype=torch.bfloat16, use_fast_accum=False)
    out = torch.empty(x.shape[0], w.shape[0], dtype=x.dtype, device=device)
    return lambda: torch.mm(x, w.t(), out=out)


def is_copied(kernels: Kernels) -> bool:
    """True where an operand is read by bulk copies."""
    return any(argument.tiles for launch in kernels.launches for argument in launch.arguments)


def product_forms(kernels: Kernels, *, tiny: bool, tune: bool) -> dict[str, tuple[KernelChoice | None, EmitOptions]]:
    """Other forms of a product by name: choices with the options that they are made with."""
    case, copied = kernels.case, is_copied(kernels)
    forms: dict[str, tuple[KernelChoice | None, EmitOptions]] = {"pointers": (None, replace(kernels.options, bulk=0))} if copied else {}
    if any(emission.unit == case.dtype and case.dtype in EIGHTS for emission in kernels.emissions):
        forms["f16"] = None, replace(kernels.options, eights=None)
    if tune and copied:
        forms |= {choice.text(): (choice, kernels.options) for choice in _copied(case, kernels, COPIED[:1] if tiny else COPIED)}
    return forms


def _copied(case: Case, kernels: Kernels, table: Sequence[tuple[int, ...]]) -> list[KernelChoice]:
    """The kernel's choice with other tiles that are bulk copies, where they are no larger than its sizes."""
    m, n, _ = case.sizes
    chosen = kernels.emissions[0].choice
    assert chosen is not None
    found = []
    for tile_m, tile_n, bytes_, resident, parts, warps, stages in table:
        if tile_m <= m and tile_n <= n and chosen["SPLITS"] == 1:
            deep = bytes_ * 8 // DTYPES[case.dtype].bits
            numbers = {"BLOCK_M": tile_m, "BLOCK_N": tile_n, "BLOCK_K": deep, "SPLITS": 1, "BULK": 1, "RESIDENT": resident, "PARTS": parts}
            form = {} if "EIGHTS" not in dict(chosen.numbers) else {"EIGHTS": 1}
            found.append(KernelChoice(tuple({**numbers, **form}.items()), warps, stages))
    return found


def form(
    name: str, choice: KernelChoice | None, options: EmitOptions, kernels: Kernels, stack: ExitStack, programs: Row, refused: dict[str, str]
) -> None:
    """One more way to run the kernel, or why it does not run."""
    try:
        source, launches = kernels.other(choice, options)
        module = stack.enter_context(Device(source))
        programs[name] = captured(lambda: module.run(launches, kernels.tensors, {}), kernels.device)
        programs[name]()
        synchronize(kernels.device)
    except Exception as error:  # as below
        programs.pop(name, None)
        refused[name] = f"{type(error).__name__}: {error}"[:200]


TINY_TILINGS = ((16, 16, 16, 4, 2), (32, 16, 16, 4, 3))


def _tilings(
    kernels: Kernels, module: Device, device: str, tilings: Sequence[tuple[int, ...]]
) -> tuple[dict[str, Callable[[], object]], dict[str, str]]:
    """The same kernel at other tile sizes, where its text holds for them: whole tiles, one launch. And why others do not run."""
    m, n, k = kernels.case.sizes
    launches = kernels.launches
    chosen = dict(launches[0].constexprs)
    found: dict[str, Callable[[], object]] = {}
    refused: dict[str, str] = {}
    if len(launches) > 1 or m % chosen["BLOCK_M"] or n % chosen["BLOCK_N"] or k % chosen["BLOCK_K"]:
        return found, refused
    for tile_m, tile_n, tile_k, warps, stages in tilings:
        if m % tile_m or n % tile_n or k % tile_k:
            continue
        numbers = {**chosen, "BLOCK_M": tile_m, "BLOCK_N": tile_n, "BLOCK_K": tile_k}
        grid = (m // tile_m * (n // tile_n),)
        launch = replace(launches[0], constexprs=tuple(numbers.items()), grid=grid, num_warps=warps, num_stages=stages)
        name = f"{tile_m}x{tile_n}x{tile_k} {warps} warps {stages} stages"
        try:
            found[name] = captured(lambda launch=launch: module.run([launch], kernels.tensors, {}), device)  # type: ignore[misc]
        except Exception as error:  # too much shared memory, say: it is what the row is for
            refused[name] = f"{type(error).__name__}: {error}"[:200]
    return found, refused


def seconds(times: Mapping[str, Timing]) -> Row:
    """The medians and minima of the programs."""
    return {
        "median_s": {name: one.median for name, one in times.items()},
        "min_s": {name: one.minimum for name, one in times.items()},
        "rounds": len(next(iter(times.values())).medians),
    }


def scaled(given: Ratio, factor: float) -> Ratio:
    return Ratio(given.value * factor, given.low * factor, given.high * factor)


def shown(given: Ratio) -> Row:
    return {"value": given.value, "low": given.low, "high": given.high}
