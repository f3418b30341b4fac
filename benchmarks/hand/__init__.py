"""Surgeries on ONNX graphs that a person would do by hand, and recipes that combine them.

A surgery edits a `Graph` in place and returns how many places it changed. It promises the same value up to reassociation; whoever
uses a result still compares it with the unoptimized model, because the fused kernels of a runtime keep promises of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx

from benchmarks.hand import activation, attention, constants, convolution, normalization, product, transpose
from benchmarks.hand.graph import Graph

Surgery = Callable[[Graph], int]

SURGERIES: dict[str, Surgery] = {
    surgery.__name__: surgery
    for surgery in (
        constants.fold_constants,
        activation.hard_swish,
        convolution.fold_affine_back,
        convolution.fold_affine_forward,
        transpose.cancel_transposes,
        product.merge_constant_chain,
        activation.native_hard_swish,
        convolution.global_average_pool,
        convolution.merge_convolutions,
        activation.gelu,
        normalization.layer_normalization,
        normalization.rms_normalization,
        normalization.native_group_normalization,
        attention.rotary_embedding,
        product.fold_scale_into_weights,
        attention.packed_attention,
        attention.multi_head_attention_with_bias,
        attention.multi_head_attention,
        attention.native_attention,
        product.merge_projections,
        product.split_gemm,
        product.make_gemm,
        product.gemm_update,
        product.fused_matmul,
        activation.quick_gelu,
        normalization.skip_normalization,
        activation.bias_gelu,
    )
}
"""Every surgery, in the order in which they are performed when several are: algebra first, then names of fused kernels."""

CLEAN = ("fold_constants", "fold_affine_back", "fold_affine_forward", "cancel_transposes", "merge_constant_chain")
"""The algebra that anyone would do first."""

STEPS: dict[str, tuple[str, ...]] = {
    "fold": ("fold_constants",),
    "hard swish": ("hard_swish",),
    "HardSwish": ("hard_swish", "native_hard_swish"),
    "average pool": ("global_average_pool",),
    "silu": ("quick_gelu",),
    "MHA": ("multi_head_attention",),
    "MHA with bias": ("multi_head_attention_with_bias",),
    "packed attention": ("packed_attention",),
    "onnx Attention": ("native_attention",),
    "rotary": ("rotary_embedding",),
    "rms norm": ("rms_normalization",),
    "skip norm": ("layer_normalization", "rms_normalization", "skip_normalization"),
    "layer norm": ("layer_normalization",),
    "gelu": ("gelu",),
    "bias gelu": ("gelu", "bias_gelu"),
    "scale in weights": ("fold_scale_into_weights",),
    "merge projections": ("merge_projections",),
    "fused matmul": ("fused_matmul",),
    "matmul for gemm": ("split_gemm",),
    "gemm": ("make_gemm",),
    "gemm update": ("gemm_update",),
    "group norm": ("native_group_normalization",),
    "merge convolutions": ("merge_convolutions",),
}
"""What is tried on top of `CLEAN`, one at a time and then joined: a name and the surgeries it needs."""


def recipe(steps: Sequence[str], *, clean: bool = True) -> tuple[str, ...]:
    """Return the surgeries of some steps, in the order of `SURGERIES`."""
    wanted = {name for step in steps for name in STEPS[step]} | (set(CLEAN) if clean else set())
    return tuple(name for name in SURGERIES if name in wanted)


def perform(model: onnx.ModelProto, surgeries: Sequence[str]) -> tuple[onnx.ModelProto, tuple[str, ...]] | None:
    """Return the model after the surgeries, in order, and the names of those that changed something; None when none did."""
    graph, done = Graph(model), []
    for name in surgeries:
        if SURGERIES[name](graph):
            done.append(name)
            graph.settle()
    return (graph.finish(), tuple(done)) if done else None
