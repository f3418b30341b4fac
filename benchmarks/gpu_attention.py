"""What `gpu` measures of attention: whole sequences against torch's fused kernel, single tokens over a cache against the copy bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.gpu_clock import captured, measure, synchronize
from benchmarks.gpu_kernels import COPY_ELEMENTS, ERROR_GOAL, Kernels, copying, form, scaled, seconds, shown
from benchmarks.gpu_programs import ATTENTION, TINY_ATTENTION, Case
from coset.backends.triton_runtime import Device
from coset.comparing.timing import Protocol, ratio
from coset.lowering.kernels.kernel import Attention
from coset.lowering.planning.traffic import least
from coset.lowering.triton.alternatives import alternatives
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions

Row = dict[str, Any]
FUSED_GOAL, DECODE_GOAL = 0.9, 0.8
TRIED = 12  # other tiles of the form by bulk copies, where tiles are tried


def attention(device: str, target: str, protocol: Protocol, *, tiny: bool, tune: bool) -> Iterator[Row]:
    """One row for each case: `share_of_torch` is torch's time over ours; `share_of_copy`, of single tokens, the bytes that must be read
    over our time as a share of what a copy reaches. What can be read by bulk copies is timed by pointers, too, or the other way round."""
    count = 4096 if tiny else COPY_ELEMENTS
    copy = copying(torch.randn(count, device=device))
    for case in TINY_ATTENTION if tiny else ATTENTION:
        kernels = Kernels(case, device, target)
        query, key, value = (kernels.tensors[dict(kernels.plan.inputs)[name]] for name in "qkv")
        refused: dict[str, str] = {}
        other, forms = attention_forms(kernels, tune=tune, tiny=tiny)
        with ExitStack() as stack, Device(kernels.source()) as module:
            programs: dict[str, Callable[[], object]] = {
                "ours": captured(lambda: module.run(kernels.launches, kernels.tensors, {}), device),  # noqa: B023  (done in this round)
                "torch": captured(_fused(case, query, key, value), device),
            }
            if case.name == "decode":
                programs["copy"] = copy
            programs["ours"]()
            synchronize(device)
            error = kernels.error()
            for name, (choice, options) in forms.items():
                form(name, choice, options, kernels, stack, programs, refused)
            times = measure(programs, protocol, device)
        batch, heads, groups, length, keys, width = case.sizes
        flop = 4 * batch * heads * groups * length * keys * width / (2 if case.name == "causal" else 1)
        row: Row = {
            "case": case.title, "kernels": len(kernels.launches), **seconds(times), "flop_per_s": flop / times["ours"].median,
            "share_of_torch": shown(ratio(times["torch"], times["ours"])), "goal": FUSED_GOAL,
            "error": error, "right": error <= ERROR_GOAL[case.dtype],
            "launch": {**dict(kernels.launches[0].constexprs), **kernels.launches[0].options()},
        }  # fmt: skip
        if other in programs:
            row["other_form"] = {"form": other, "share_of_torch": shown(ratio(times["torch"], times[other]))}
        tried = [name for name in programs if name in forms and name != other]
        if tried:
            best = min(tried, key=lambda name: times[name].median)
            row["best_tiling"] = {"tiling": best, "share_of_torch": shown(ratio(times["torch"], times[best]))}
        if refused:
            row["tilings_that_do_not_run"] = refused
        if case.name == "decode":
            floor = least(kernels.plan)
            row |= {"share_of_copy": shown(scaled(ratio(times["copy"], times["ours"]), floor / (8 * count))), "goal": DECODE_GOAL}
        yield row
        kernels.tensors.clear()


def attention_forms(kernels: Kernels, *, tune: bool, tiny: bool) -> tuple[str, dict[str, tuple[KernelChoice | None, EmitOptions]]]:
    """The name of the other form, and all other forms by name: choices with the options that they are made with."""
    (kernel,) = kernels.plan.kernels
    chosen, options = kernels.emissions[0].choice, kernels.options
    assert isinstance(kernel, Attention) and chosen is not None
    numbers = dict(chosen.numbers)
    if "BULK" not in numbers:
        return "", {}
    if numbers["BULK"]:
        other: tuple[str, dict[str, tuple[KernelChoice | None, EmitOptions]]] = "pointers", {"pointers": (None, replace(options, bulk=0))}
    else:
        copies = replace(chosen, numbers=tuple({**numbers, "BULK": 1}.items()))
        other = "copies", {"copies": (copies, options)}
    if kernels.emissions[0].unit == "bf16x6":
        other[1]["in full"] = None, replace(options, bf16x6=False)
    found = alternatives(kernel, chosen, options, {})
    other[1].update({choice.text(): (choice, options) for choice in [each for each in found if each.get("AHEAD")][:2]})
    if tune:
        copied = [choice for choice in found if choice["BULK"] and choice != chosen]
        other[1].update({choice.text(): (choice, options) for choice in copied[: 1 if tiny else TRIED]})
    return other


def _fused(case: Case, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Callable[[], object]:
    """torch's own on the same tensors: the queries of a group stand beside each other as heads."""
    batch, heads, groups, length, _, width = case.sizes
    query = query.reshape(batch, heads * groups, length, width)
    return lambda: scaled_dot_product_attention(query, key, value, is_causal=case.name == "causal", enable_gqa=groups > 1)
