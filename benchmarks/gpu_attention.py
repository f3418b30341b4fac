"""What `gpu` measures of attention: whole sequences against torch's fused kernel, single tokens over a cache against the copy bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.gpu_clock import captured, measure, synchronize
from benchmarks.gpu_kernels import COPY_ELEMENTS, ERROR_GOAL, Kernels, scaled, seconds, shown
from benchmarks.gpu_programs import ATTENTION, TINY_ATTENTION, Case
from coset.backends.triton_runtime import Device
from coset.lowering.traffic import least
from coset.timing import Protocol, ratio

Row = dict[str, Any]
FUSED_GOAL, DECODE_GOAL = 0.9, 0.8


def attention(device: str, target: str, protocol: Protocol, *, tiny: bool) -> Iterator[Row]:
    """One row for each case: `share_of_torch` is torch's time over ours; `share_of_copy`, of single tokens, the bytes that must be read
    over our time as a share of what a copy reaches."""
    count = 4096 if tiny else COPY_ELEMENTS
    source, sink = torch.randn(count, device=device), torch.empty(count, device=device)
    for case in TINY_ATTENTION if tiny else ATTENTION:
        kernels = Kernels(case, device, target)
        query, key, value = (kernels.tensors[dict(kernels.plan.inputs)[name]] for name in "qkv")
        with Device(kernels.source()) as module:
            programs: dict[str, Callable[[], object]] = {
                "ours": captured(lambda: module.run(kernels.launches, kernels.tensors, {}), device),  # noqa: B023  (done in this round)
                "torch": captured(_fused(case, query, key, value), device),
            }
            if case.name == "decode":
                programs["copy"] = captured(lambda: sink.copy_(source), device)
            programs["ours"]()
            synchronize(device)
            error = kernels.error()
            times = measure(programs, protocol, device)
        batch, heads, groups, length, keys, width = case.sizes
        flop = 4 * batch * heads * groups * length * keys * width / (2 if case.name == "causal" else 1)
        row: Row = {
            "case": case.title, "kernels": len(kernels.launches), **seconds(times), "flop_per_s": flop / times["ours"].median,
            "share_of_torch": shown(ratio(times["torch"], times["ours"])), "goal": FUSED_GOAL,
            "error": error, "right": error <= ERROR_GOAL[case.dtype],
        }  # fmt: skip
        if case.name == "decode":
            floor = least(kernels.plan)
            row |= {"share_of_copy": shown(scaled(ratio(times["copy"], times["ours"]), floor / (8 * count))), "goal": DECODE_GOAL}
        yield row
        kernels.tensors.clear()


def _fused(case: Case, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Callable[[], object]:
    """torch's own on the same tensors: the queries of a group stand beside each other as heads."""
    batch, heads, groups, length, _, width = case.sizes
    query = query.reshape(batch, heads * groups, length, width)
    return lambda: scaled_dot_product_attention(query, key, value, is_causal=case.name == "causal", enable_gqa=groups > 1)
