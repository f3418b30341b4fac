"""What `gpu` measures of tuned kernels: defaults and tuned forms in turn, beside cuBLAS's product or a copy of the same bytes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu_clock import captured, measure, synchronize
from benchmarks.gpu_kernels import ERROR_GOAL, Kernels, copying, library, seconds, shown
from benchmarks.gpu_programs import BANDWIDTH, PRODUCTS, TINY_BANDWIDTH, TINY_PRODUCTS, Case
from coset.backends.triton_runtime import Device
from coset.backends.tuning_profile import Tunings, opened
from coset.comparing.timing import Protocol, ratio
from coset.lowering.planning.traffic import least
from coset.lowering.triton.choice import KernelChoices
from coset.packaging.chosen import kernels_of
from coset.targets.target import get_target
from coset.tuning.clocking import Clocking
from coset.tuning.measuring import KernelBench, on_gpu
from coset.tuning.pruning import Pruning
from coset.tuning.tunable import tunables

Row = dict[str, Any]
PROFILE = "tuning.sqlite"
WANTED = ("layer_norm", "softmax", "bias_gelu")  # of the groups that wait for memory, the first of each name
TINY_EACH = 20.0  # s of a case in a dry run


def tuning(device: str, target: str, protocol: Protocol, folder: Path, allowed: float, *, tiny: bool) -> Iterator[Row]:
    """One row for each case: the median times, and `faster`, the default's over the tuned one's."""
    bench = on_gpu(device, Protocol(2, 1.0, 1, 1)) if tiny else on_gpu(device)
    chosen = [next((case for case in BANDWIDTH if case.name == name), None) for name in WANTED]
    cases = [TINY_BANDWIDTH[0], TINY_PRODUCTS[0]] if tiny else [*PRODUCTS[::2], *filter(None, chosen)]
    end = time.monotonic() + allowed
    with opened(folder / PROFILE) as store:
        for place, case in enumerate(cases):
            share = min(TINY_EACH, allowed) if tiny else (end - time.monotonic()) / (len(cases) - place)
            yield _row(case, device, target, protocol, store, bench, time.monotonic() + share)


def _row(case: Case, device: str, target: str, protocol: Protocol, store: Tunings, bench: KernelBench, end: float) -> Row:
    default = Kernels(case, device, target)
    machine = get_target(target)
    clocking = Clocking(machine.name, store, bench, lambda line: print(line, file=sys.stderr))
    with Pruning(machine, store, max(1, (os.cpu_count() or 2) - 2)) as pruning:
        whole = clocking.kernels(tunables([default.plan], default.options, machine, {}), pruning, end)
    options = replace(default.options, choices=KernelChoices(kernels_of(store, machine.name, bench.place)))
    tuned = Kernels(case, device, target, options)
    beside, other = _beside(case, default, device)
    with Device(default.source()) as first, Device(tuned.source()) as second:
        programs = {
            "default": captured(lambda: first.run(default.launches, default.tensors, {}), device),
            "tuned": captured(lambda: second.run(tuned.launches, tuned.tensors, {}), device),
            beside: other,
        }
        programs["tuned"]()
        synchronize(device)
        error = tuned.error()
        times = measure(programs, protocol, device)
    emissions = {kernel.name: emission.chosen for kernel, emission in zip(tuned.plan.kernels, tuned.emissions, strict=True)}
    return {
        "case": case.title, **seconds(times), "beside": beside, "faster": shown(ratio(times["default"], times["tuned"])),
        "alternatives": sum(len(each.tunable.choices) for each in clocking.pruned), "measured": clocking.measured, "whole": whole,
        "chosen": {name: found.choice.text() for name, found in emissions.items() if found is not None},
        "unmeasured": clocking.unmeasured, "error": error, "right": error <= ERROR_GOAL[case.dtype],
    }  # fmt: skip


def _beside(case: Case, kernels: Kernels, device: str) -> tuple[str, Callable[[], object]]:
    """What a case is shown beside: cuBLAS's product alone, or a copy of as many bytes."""
    inputs = dict(kernels.plan.inputs)
    if {"x", "w"} <= inputs.keys() and len(case.sizes) == 3:
        return "cublas", captured(library(kernels, device), device)
    return "copy", copying(torch.zeros(max(1, least(kernels.plan) // 2), dtype=torch.uint8, device=device))
