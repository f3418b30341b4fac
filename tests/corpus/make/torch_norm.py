"""Normalizations as torch modules, in the ways that model code writes them: name -> (module, inputs, what it is, kernels beside it)."""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from cases import Case, formula, normal
from torch import nn

ROWS = normal((2, 3, 8))
ROW_DIMS = {0: {0: "batch", 1: "length"}}
IMAGE = normal((2, 8, 4, 5))


def layer(axis: int = -1, epsilon: float = 1e-5) -> tuple[str, ...]:
    return (f"onnx.LayerNormalization axis={axis} epsilon={epsilon}",)


def _bert(w: Any, b: Any, x: Any) -> Any:
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return w * ((x - mean) / torch.sqrt(variance + 1e-12)) + b


def _variance(w: Any, b: Any, x: Any) -> Any:
    return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-6) * w + b


def _var_mean(w: Any, b: Any, x: Any) -> Any:
    variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
    return (x - mean) / (variance + 1e-5).sqrt() * w + b


def _fast(w: Any, b: Any, x: Any) -> Any:
    mean, square = x.mean(-1, keepdim=True), (x * x).mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(square - mean * mean + 1e-6) * w + b


def _channels_first(w: Any, b: Any, x: Any) -> Any:
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).pow(2).mean(1, keepdim=True)
    return w[:, None, None] * ((x - mean) / torch.sqrt(variance + 1e-6)) + b[:, None, None]


def _channels_last(w: Any, b: Any, x: Any) -> Any:
    return F.layer_norm(x.permute(0, 2, 3, 1), (8,), w, b, 1e-6).permute(0, 3, 1, 2)


def _upcast(w: Any, b: Any, x: Any) -> Any:
    wide = x.float()
    mean = wide.mean(-1, keepdim=True)
    variance = (wide - mean).square().mean(-1, keepdim=True)
    return ((wide - mean) * torch.rsqrt(variance + 1e-5) * w.float() + b.float()).to(x.dtype)


def _modulated(w: Any, b: Any, x: Any, shift: Any, scale: Any) -> Any:
    return F.layer_norm(x, (8,), eps=1e-6) * (1 + scale[:, None]) + shift[:, None]


def _residual(w: Any, b: Any, x: Any, y: Any) -> Any:
    return F.layer_norm(x + y, (8,), w, b)


def _folded(w: Any, b: Any, x: Any) -> Any:
    scale = w * torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)
    return x * scale + (b - x.mean(-1, keepdim=True) * scale)


LAYER_NORM = {
    "module": Case(lambda: nn.LayerNorm(8), ROWS, layer(), "nn.LayerNorm(8)", ways=("script13", "script16", "hlo"), dynamic=ROW_DIMS),
    "module-plain": Case(lambda: nn.LayerNorm(8, elementwise_affine=False), ROWS, layer(), "nn.LayerNorm(8, elementwise_affine=False)"),
    "module-no-bias": Case(lambda: nn.LayerNorm(8, eps=1e-6, bias=False), ROWS, layer(epsilon=1e-6), "nn.LayerNorm(8, bias=False)", ways=("script11", "hlo")),
    "module-two-axes": Case(lambda: nn.LayerNorm((3, 8)), ROWS, layer(-2), "nn.LayerNorm((3, 8))", ways=("script13", "hlo")),
    "module-matrix": Case(lambda: nn.LayerNorm(8), normal((5, 8)), layer(), "nn.LayerNorm(8) of a matrix"),
    "bert": Case(formula(_bert, 8), ROWS, layer(epsilon=1e-12), "the formula of the first BERT ports: pow(2), sqrt, division", ways=("script13",), dynamic=ROW_DIMS),
    "variance": Case(formula(_variance, 8), ROWS, layer(epsilon=1e-6), "mean, var(unbiased=False), rsqrt", ways=("script13", "dynamo18", "hlo")),
    "var-mean": Case(formula(_var_mean, 8), ROWS, layer(), "torch.var_mean, sqrt", ways=("script13", "dynamo18"), dynamic=ROW_DIMS),
    "fast-variance": Case(formula(_fast, 8), ROWS, layer(epsilon=1e-6), "mean of squares less square of mean", ways=("script13",)),
    "channels-first": Case(formula(_channels_first, 8), IMAGE, layer(epsilon=1e-6), "ConvNeXt and SAM: over dim 1 of an image, weights [:, None, None]", ways=("script13", "dynamo18")),
    "channels-last": Case(formula(_channels_last, 8), IMAGE, layer(epsilon=1e-6), "timm LayerNorm2d: permute, layer_norm, permute", ways=("script14",)),
    "upcast": Case(formula(_upcast, 8, dtype=torch.float16), normal((2, 3, 8), dtype=torch.float16), layer(), "f16 in and out, computed in f32", ways=("script13", "dynamo18")),
    "modulated": Case(formula(_modulated, 8), normal((2, 3, 8), (2, 8), (2, 8)), layer(epsilon=1e-6), "DiT: adaptive scale and shift behind it", "stablehlo.multiply stablehlo.add", ways=("script13", "hlo")),
    "residual": Case(formula(_residual, 8), normal((2, 3, 8), (2, 3, 8)), layer(), "post-norm with a residual", "stablehlo.add", ways=("script15",)),
    "folded": Case(formula(_folded, 8), ROWS, layer(), "scale and shift computed first: x * s + (b - mean * s)", ways=("script13",)),
}  # fmt: skip


def rms(axis: int = -1, epsilon: float = 1e-6) -> tuple[str, ...]:
    return (f"onnx.RMSNormalization axis={axis} epsilon={epsilon}",)


def _llama(w: Any, b: Any, x: Any) -> Any:
    wide = x.to(torch.float32)
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return w * wide.to(x.dtype)


def _gemma(w: Any, b: Any, x: Any) -> Any:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * (1.0 + w.float())).type_as(x)


def _square(w: Any, b: Any, x: Any) -> Any:
    return x / torch.sqrt(torch.mean(x * x, -1, keepdim=True) + 1e-5) * w


def _summed(w: Any, b: Any, x: Any) -> Any:
    return w * (x * (x.square().sum(-1, keepdim=True) / 8 + 1e-5).pow(-0.5))


def _unweighted(w: Any, b: Any, x: Any) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def _heads(w: Any, b: Any, x: Any) -> Any:
    heads = x.view(2, 3, 2, 4)
    return (w * heads * torch.rsqrt(heads.pow(2).mean(-1, keepdim=True) + 1e-6)).transpose(1, 2)


HALF_ROWS = normal((2, 3, 8), dtype=torch.float16)
RMS_NORM = {
    "module": Case(lambda: nn.RMSNorm(8, eps=1e-6), ROWS, rms(), "nn.RMSNorm(8)", ways=("dynamo18", "hlo")),
    "llama": Case(formula(_llama, 8), ROWS, rms(), "Llama, T5, Mistral, Qwen: pow(2), mean, rsqrt, weight last", ways=("script13", "dynamo18", "hlo"), dynamic=ROW_DIMS),
    "llama-half": Case(formula(_llama, 8, dtype=torch.float16), HALF_ROWS, rms(), "the same in f16, computed in f32, weight in f16", ways=("script14", "dynamo18")),
    "gemma": Case(formula(_gemma, 8), ROWS, rms(), "Gemma: weight is 1 + w", ways=("script13", "dynamo18")),
    "gemma-half": Case(formula(_gemma, 8, dtype=torch.bfloat16), normal((2, 3, 8), dtype=torch.bfloat16), rms(), "Gemma in bf16, computed in f32", "onnx.node", ways=("script17",)),
    "square": Case(formula(_square, 8), ROWS, rms(epsilon=1e-5), "x * x, mean, sqrt, division", ways=("script13", "dynamo18")),
    "summed": Case(formula(_summed, 8), ROWS, rms(epsilon=1e-5), "sum of squares / size, pow(-0.5)", ways=("script13",)),
    "unweighted": Case(formula(_unweighted, 8), ROWS, rms(), "without a weight", ways=("script13", "hlo")),
    "heads": Case(formula(_heads, 4), ROWS, rms(), "Qwen3: over the head size of split heads", ways=("script13",)),
}  # fmt: skip


def group(groups: int, epsilon: float = 1e-5) -> tuple[str, ...]:
    return (f"onnx.GroupNormalization num_groups={groups} epsilon={epsilon}",)


def _grouped(w: Any, b: Any, x: Any) -> Any:
    n, c, h, width = x.shape
    g = x.view(n, 4, c // 4, h, width)
    mean, variance = g.mean((2, 3, 4), keepdim=True), g.var((2, 3, 4), unbiased=False, keepdim=True)
    return ((g - mean) / torch.sqrt(variance + 1e-6)).view(n, c, h, width) * w.view(1, -1, 1, 1) + b.view(1, -1, 1, 1)


def _flat(w: Any, b: Any, x: Any) -> Any:
    g = x.reshape(x.shape[0], 2, -1)
    g = (g - g.mean(-1, keepdim=True)) * torch.rsqrt(g.var(-1, unbiased=False, keepdim=True) + 1e-5)
    return g.reshape(x.shape) * w[:, None, None] + b[:, None, None]


GROUP_NORM = {
    "module": Case(lambda: nn.GroupNorm(2, 8), IMAGE, group(2), "nn.GroupNorm(2, 8)", ways=("script13", "dynamo18", "hlo")),
    "module-sequence": Case(lambda: nn.GroupNorm(4, 8), normal((2, 8, 6)), group(4), "nn.GroupNorm(4, 8) of [batch, channels, length]"),
    "module-plain": Case(lambda: nn.GroupNorm(2, 8, affine=False), IMAGE, group(2), "nn.GroupNorm(2, 8, affine=False)"),
    "module-one": Case(lambda: nn.GroupNorm(1, 8, eps=1e-6), IMAGE, group(1, 1e-6), "nn.GroupNorm(1, 8): one group", ways=("script13", "hlo")),
    "grouped": Case(formula(_grouped, 8), IMAGE, group(4, 1e-6), "split channels, mean and var over three dims", ways=("script13",)),
    "flat": Case(formula(_flat, 8), IMAGE, group(2), "flattened groups, rsqrt", ways=("script13", "hlo")),
}  # fmt: skip

CASES: dict[str, dict[str, Case]] = {"layer_norm": LAYER_NORM, "rms_norm": RMS_NORM, "group_norm": GROUP_NORM}
