"""Near-misses, and the entries that they resemble: `python tests/corpus/make/near_misses.py [PART ..]`. What is learned is an input, so
that a near-miss differs from its entry by its formula alone."""

# ruff: noqa: E501
from __future__ import annotations

import io
import logging
import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import onnx
import torch
import torch.nn.functional as F
from common import plain, text_of
from header import CORPUS, write
from torch import nn

EPSILON = 0.05  # large, so that its place is seen in f32
N, D = 4, 4
ROOT = 1 / math.sqrt(D)


@dataclass(frozen=True)
class Family:
    """An entry (its folder, name, what it is, inputs by name, formula) and the formulas that are not it: name -> (formula, not, why)."""

    folder: str
    wanted: tuple[str, ...]
    inputs: dict[str, tuple[int, ...]]
    formula: Callable[..., Any]
    misses: dict[str, tuple[Callable[..., Any], str, str]]
    name: str = "inputs"
    dtypes: dict[str, Any] = field(default_factory=dict)


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


# ---------------------------------------------------------------- normalizations


def mean(x: Any, axes: Any = -1) -> Any:
    return x.mean(axes, keepdim=True)


def normalized(x: Any) -> Any:
    d = x - mean(x)
    return d / torch.sqrt(mean(d * d) + EPSILON)


def _layer(x: Any, w: Any, b: Any) -> Any:
    return normalized(x) * w + b


def _ln(rest: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A layer norm whose normalization is `rest(x, x - mean)`."""
    return lambda x, w, b: rest(x, x - mean(x)) * w + b


def _wrong_axis(x: Any, w: Any, b: Any) -> Any:
    d = x - mean(x, 1)
    return d / torch.sqrt(mean(d * d, 1) + EPSILON) * w + b


def _late_variance_axes(x: Any, w: Any, b: Any) -> Any:
    d = x - mean(x)
    return d / torch.sqrt(mean(d * d, (1, 2)) + EPSILON) * w + b


def _wide_mean(x: Any, w: Any, b: Any) -> Any:
    d = x - mean(x)
    return (x - mean(x, (1, 2))) / torch.sqrt(mean(d * d) + EPSILON) * w + b


def _median(x: Any, d: Any) -> Any:
    return (x - x.amax(-1, keepdim=True)) / torch.sqrt(mean(d * d) + EPSILON)


LN = "onnx.LayerNormalization"
LAYER = Family(
    "layer_norm", (f"{LN} axis=-1 epsilon={EPSILON}",), {"x": (2, 8, 8), "w": (8,), "b": (8,)}, _layer,
    {
        "ln-wrong-axis": (_wrong_axis, LN, "normalized over dim 1, weights along the last"),
        "ln-epsilon-outside": (_ln(lambda x, d: d / (torch.sqrt(mean(d * d)) + EPSILON)), LN, "epsilon added to the deviation"),
        "ln-epsilon-after-rsqrt": (_ln(lambda x, d: d * (torch.rsqrt(mean(d * d)) + EPSILON)), LN, "epsilon added to the reciprocal root"),
        "ln-epsilon-clamped": (_ln(lambda x, d: d / torch.sqrt(torch.clamp(mean(d * d), min=0.8))), LN, "epsilon as a lower bound of the variance"),
        "ln-unbiased": (_ln(lambda x, d: d / torch.sqrt((d * d).sum(-1, keepdim=True) / 7 + EPSILON)), LN, "the unbiased variance"),
        "ln-unbiased-var": (_ln(lambda x, d: d / torch.sqrt(x.var(-1, unbiased=True, keepdim=True) + EPSILON)), LN, "torch.var with its default correction"),
        "ln-not-centered": (_ln(lambda x, d: x / torch.sqrt(mean(d * d) + EPSILON)), f"{LN}", "the mean is not subtracted from the numerator"),
        "ln-raw-square": (_ln(lambda x, d: d / torch.sqrt(mean(x * x) + EPSILON)), LN, "the mean is not subtracted in the variance"),
        "ln-variance-axes": (_late_variance_axes, LN, "mean over one dim, variance over two"),
        "ln-mean-axes": (_wide_mean, LN, "mean over two dims, variance over one"),
        "ln-bias-inside": (lambda x, w, b: (normalized(x) + b) * w, f"{LN} scale=w bias=b", "the bias is scaled too"),
        "ln-scaled-before": (lambda x, w, b: normalized(x * w) + b, f"{LN} x=x", "the weight goes in before"),
        "ln-sum-of-squares": (_ln(lambda x, d: d / torch.sqrt((d * d).sum(-1, keepdim=True) + EPSILON)), LN, "the sum of squares in place of the mean"),
        "ln-fast-wrong": (_ln(lambda x, d: d / torch.sqrt(mean(x * x) - mean(x) + 1)), LN, "the mean less, not its square"),
        "ln-no-root": (_ln(lambda x, d: d / (mean(d * d) + EPSILON)), LN, "the variance without its root"),
        "ln-absolute": (_ln(lambda x, d: d / (mean(d.abs()) + EPSILON)), LN, "the mean absolute deviation"),
        "ln-from-maximum": (_ln(_median), LN, "the maximum is subtracted"),
    },
)  # fmt: skip


def _rms(x: Any, w: Any) -> Any:
    return x * torch.rsqrt(mean(x * x) + EPSILON) * w


RN = "onnx.RMSNormalization"
RMS = Family(
    "rms_norm", (f"{RN} axis=-1 epsilon={EPSILON}",), {"x": (2, 8, 8), "w": (8,)}, _rms,
    {
        "rms-epsilon-outside": (lambda x, w: x / (torch.sqrt(mean(x * x)) + EPSILON) * w, RN, "epsilon added to the root"),
        "rms-wrong-axis": (lambda x, w: x * torch.rsqrt(mean(x * x, 1) + EPSILON) * w, f"{RN} axis=-1", "over dim 1, weight along the last"),
        "rms-sum": (lambda x, w: x * torch.rsqrt((x * x).sum(-1, keepdim=True) + EPSILON) * w, f"{RN} epsilon={EPSILON} scale=w", "the sum of squares: the L2 norm"),
        "rms-centered": (lambda x, w: normalized(x) * w, f"{RN} x=x", "the mean is subtracted"),
        "rms-maximum": (lambda x, w: x * torch.rsqrt(torch.clamp(mean(x * x), min=0.8)) * w, RN, "epsilon as a lower bound"),
        "rms-square-of-mean": (lambda x, w: x * torch.rsqrt(mean(x) * mean(x) + EPSILON) * w, RN, "the square of the mean"),
        "rms-no-root": (lambda x, w: x / (mean(x * x) + EPSILON) * w, RN, "no root"),
        "rms-half": (lambda x, w: x * torch.rsqrt(mean(x[..., :4] * x[..., :4]) + EPSILON) * w, RN, "the statistic of half of the row"),
        "rms-absolute": (lambda x, w: x / (mean(x.abs()) + EPSILON) * w, RN, "the mean magnitude"),
        "rms-other-numerator": (lambda x, w: x.transpose(1, 2) * torch.rsqrt(mean(x * x) + EPSILON) * w, RN, "another tensor is divided"),
    },
)  # fmt: skip


def _gn(rest: Callable[[Any], Any], shape: tuple[int, ...] = (2, 2, -1), order: tuple[int, ...] | None = None) -> Callable[..., Any]:
    def function(x: Any, w: Any, b: Any) -> Any:
        g = x.reshape(shape) if order is None else x.reshape(shape).permute(order)
        g = rest(g)
        g = g if order is None else g.permute(order)
        return g.reshape(2, 8, 4, 8) * w[:, None, None] + b[:, None, None]

    return function


def _group_epsilon_outside(g: Any) -> Any:
    d = g - mean(g)
    return d / (torch.sqrt(mean(d * d)) + EPSILON)


def _group_unbiased(g: Any) -> Any:
    return (g - mean(g)) / torch.sqrt(g.var(-1, unbiased=True, keepdim=True) + EPSILON)


def _pixels(g: Any) -> Any:
    d = g - mean(g, 2)
    return d / torch.sqrt(mean(d * d, 2) + EPSILON)


def _over_batch(g: Any) -> Any:
    d = g - mean(g, (0, 2))
    return d / torch.sqrt(mean(d * d, (0, 2)) + EPSILON)


def _group_channel_mean(x: Any, w: Any, b: Any) -> Any:
    g = x.reshape(2, 2, -1)
    d = g - mean(g)
    centered = (x - mean(x, (2, 3))).reshape(2, 2, -1)
    return (centered / torch.sqrt(mean(d * d) + EPSILON)).reshape(x.shape) * w[:, None, None] + b[:, None, None]


def _group_columns(x: Any, w: Any, b: Any) -> Any:
    return normalized(x.reshape(2, 2, -1)).reshape(2, 8, 4, 8) * w + b


GN = "onnx.GroupNormalization"
GROUP = Family(
    "group_norm", (f"{GN} num_groups=2 epsilon={EPSILON}",), {"x": (2, 8, 4, 8), "w": (8,), "b": (8,)}, _gn(normalized),
    {
        "gn-transposed-groups": (_gn(lambda g: normalized(g.reshape(2, 2, -1)).reshape(2, 2, 4, 4, 8), (2, 4, 2, 4, 8), (0, 2, 1, 3, 4)), f"{GN} x=x", "every other channel is a group"),
        "gn-unbiased": (_gn(_group_unbiased), GN, "the unbiased variance"),
        "gn-epsilon-outside": (_gn(_group_epsilon_outside), GN, "epsilon added to the deviation"),
        "gn-pixels": (_gn(_pixels, (2, 2, 4, 32)), GN, "each pixel of a group for itself"),
        "gn-over-batch": (_gn(_over_batch), GN, "statistics over the batch too"),
        "gn-instances": (_gn(normalized, (2, 8, -1)), f"{GN} num_groups=2", "each channel for itself"),
        "gn-channel-mean": (_group_channel_mean, GN, "the mean of a channel, the variance of a group"),
        "gn-columns": (_group_columns, f"{GN} scale=w bias=b", "scale and bias along the columns"),
        "gn-mean-only": (_gn(lambda g: g - mean(g)), GN, "only the mean is taken off"),
    },
)  # fmt: skip

# ---------------------------------------------------------------- activations


def _tanh(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: 0.5 * x * (1 + torch.tanh(inner(x)))


GE = "onnx.Gelu"
TWO_PI = math.sqrt(2 / math.pi)
GELU = Family(
    "gelu", (f"{GE} approximate=none",), {"x": (2, 8, 8)}, lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    {
        "gelu-sigmoid": (lambda x: x * torch.sigmoid(1.702 * x), GE, "the sigmoid approximation"),
        "gelu-no-root": (lambda x: 0.5 * x * (1 + torch.erf(x)), f"{GE} x=x", "erf of x itself"),
        "gelu-not-halved": (lambda x: x * (1 + torch.erf(x / math.sqrt(2))), GE, "twice the value"),
        "gelu-minus": (lambda x: 0.5 * x * (1 - torch.erf(x / math.sqrt(2))), f"{GE} x=x", "1 - erf"),
        "gelu-rounded-root": (lambda x: 0.5 * x * (1 + torch.erf(x / 1.41)), GE, "sqrt(2) rounded to 1.41"),
        "gelu-other-argument": (lambda x: 0.5 * x * (1 + torch.erf(x.transpose(1, 2) / math.sqrt(2))), GE, "erf of another tensor"),
        "gelu-offset": (lambda x: 0.5 * x * (1.1 + torch.erf(x / math.sqrt(2))), GE, "1.1 + erf"),
    },
)  # fmt: skip
GELU_TANH = Family(
    "gelu", (f"{GE} approximate=tanh",), {"x": (2, 8, 8)}, _tanh(lambda x: TWO_PI * (x + 0.044715 * x * x * x)),
    {
        "gelu-tanh-rounded-cubic": (_tanh(lambda x: TWO_PI * (x + 0.044 * x * x * x)), GE, "0.044715 rounded to 0.044"),
        "gelu-tanh-rounded-root": (_tanh(lambda x: 0.8 * (x + 0.044715 * x * x * x)), GE, "sqrt(2 / pi) rounded to 0.8"),
        "gelu-tanh-square": (_tanh(lambda x: TWO_PI * (x + 0.044715 * x * x)), GE, "the square in place of the cube"),
        "gelu-tanh-no-cubic": (_tanh(lambda x: TWO_PI * x), GE, "without the cubic term"),
        "gelu-tanh-minus": (_tanh(lambda x: TWO_PI * (x - 0.044715 * x * x * x)), GE, "the cubic term subtracted"),
    },
    "inputs-tanh",
)  # fmt: skip
SW = "onnx.Swish"
SILU = Family(
    "silu", (f"{SW} alpha=1.0",), {"x": (2, 8, 8)}, lambda x: x / (1 + torch.exp(-x)),
    {
        "silu-alpha": (lambda x: x * torch.sigmoid(1.5 * x), f"{SW} alpha=1.0", "another slope"),
        "silu-negative": (lambda x: x * torch.sigmoid(-x), f"{SW} x=x alpha=1.0", "sigmoid of -x"),
        "silu-mish": (lambda x: x * torch.tanh(F.softplus(x)), SW, "mish"),
        "silu-hard": (lambda x: x * torch.clamp(x + 3, 0, 6) / 6, SW, "hard-swish"),
        "silu-exponential-sign": (lambda x: x / (1 + torch.exp(x)), f"{SW} x=x alpha=1.0", "exp(x) in place of exp(-x)"),
        "silu-two": (lambda x: x / (2 + torch.exp(-x)), SW, "2 + exp(-x)"),
    },
)  # fmt: skip
SG = "kernel.swiglu"
SWIGLU = Family(
    "swiglu", (SG,), {"g": (2, 8, 8), "u": (2, 8, 8)}, lambda g, u: g * torch.sigmoid(g) * u,
    {
        "swiglu-swapped": (lambda g, u: u * torch.sigmoid(u) * g, f"{SG} gate=g", "the other operand is the gate"),
        "swiglu-gelu": (lambda g, u: F.gelu(g) * u, SG, "GeGLU"),
        "swiglu-glu": (lambda g, u: torch.sigmoid(g) * u, SG, "GLU: sigmoid alone"),
        "swiglu-sum": (lambda g, u: F.silu(g) + u, SG, "a sum"),
        "swiglu-mixed": (lambda g, u: g * torch.sigmoid(u), SG, "sigmoid of the other operand"),
    },
)  # fmt: skip

# ---------------------------------------------------------------- softmax and attention


def _exp(x: Any, axis: int = -1) -> Any:
    return torch.exp(x - x.amax(axis, keepdim=True))


SM = "onnx.Softmax"
SOFTMAX = Family(
    "softmax", (f"{SM} axis=-1",), {"x": (2, 8, 8)}, lambda x: _exp(x) / _exp(x).sum(-1, keepdim=True),
    {
        "softmax-mixed-axes": (lambda x: _exp(x) / _exp(x).sum(1, keepdim=True), f"{SM} x=x", "the maximum over one dim, the sum over another"),
        "softmax-wrong-axis": (lambda x: _exp(x, 1) / _exp(x, 1).sum(1, keepdim=True), f"{SM} axis=-1", "over dim 1"),
        "softmax-two-axes": (lambda x: _exp(x) / _exp(x).sum((1, 2), keepdim=True), SM, "the sum over two dims"),
        "softmax-epsilon": (lambda x: _exp(x) / (_exp(x).sum(-1, keepdim=True) + EPSILON), SM, "epsilon added to the sum"),
        "softmax-off-by-one": (lambda x: torch.exp(x) / (1 + torch.exp(x).sum(-1, keepdim=True)), SM, "1 added to the sum"),
        "softmax-half-shift": (lambda x: torch.exp(x) / _exp(x).sum(-1, keepdim=True), SM, "the shift in the sum only"),
        "softmax-minimum": (lambda x: torch.exp(-x) / torch.exp(-x).sum(-1, keepdim=True), f"{SM} x=x", "softmin"),
        "softmax-base-two": (lambda x: torch.pow(2.0, x) / torch.pow(2.0, x).sum(-1, keepdim=True), f"{SM} x=x", "powers of two"),
        "softmax-no-exponential": (lambda x: x / x.sum(-1, keepdim=True), SM, "no exponential"),
        "softmax-mean": (lambda x: _exp(x) / mean(_exp(x)), SM, "divided by the mean"),
        "softmax-other-sum": (lambda x: _exp(x) / _exp(2 * x).sum(-1, keepdim=True), SM, "the sum of other exponentials"),
    },
)  # fmt: skip
AT = "kernel.attention"


def scores(q: Any, k: Any) -> Any:
    return q @ k.transpose(-1, -2) * ROOT


SQUARE = (N, N, N, D)
HEADS = {"q": SQUARE, "k": SQUARE, "v": SQUARE}
ATTENTION = Family(
    "attention", (f"{AT} scale={ROOT}",), HEADS, lambda q, k, v: scores(q, k).softmax(-1) @ v,
    {
        "attention-wrong-axis": (lambda q, k, v: scores(q, k).softmax(-2) @ v, AT, "softmax over the queries"),
        "attention-scale-squared": (lambda q, k, v: (q @ k.transpose(-1, -2) / D).softmax(-1) @ v, f"{AT} scale={ROOT} q=q k=k", "divided by d, not its root"),
        "attention-scale-both": (lambda q, k, v: scores(q * ROOT, k * ROOT).softmax(-1) @ v, f"{AT} scale={ROOT} q=q k=k", "scaled three times"),
        "attention-scale-late": (lambda q, k, v: (q @ k.transpose(-1, -2)).softmax(-1) * ROOT @ v, f"{AT} scale={ROOT} v=v", "scaled behind the softmax"),
        "attention-unscaled": (lambda q, k, v: (q @ k.transpose(-1, -2)).softmax(-1) @ v, f"{AT} scale={ROOT}", "without a scale"),
        "attention-key-not-transposed": (lambda q, k, v: (q @ k * ROOT).softmax(-1) @ v, f"{AT} k=k", "q k in place of q k^T"),
        "attention-value-transposed": (lambda q, k, v: scores(q, k).softmax(-1) @ v.transpose(-1, -2), f"{AT} v=v", "v^T"),
        "attention-key-heads": (lambda q, k, v: scores(q, k.transpose(0, 1)).softmax(-1) @ v, f"{AT} k=k", "batch and heads of k change places"),
        "attention-value-heads": (lambda q, k, v: scores(q, k).softmax(-1) @ v.transpose(1, 2), f"{AT} v=v", "heads and length of v change places"),
        "attention-key-permuted": (lambda q, k, v: (q @ k.permute(0, 2, 3, 1) * ROOT).softmax(-1) @ v, f"{AT} k=k", "k as [batch, length, size, heads]"),
        "attention-swapped": (lambda q, k, v: scores(k, q).softmax(-1) @ v, f"{AT} q=q k=k", "k q^T"),
        "attention-linear": (lambda q, k, v: scores(q, k) @ v, AT, "no softmax"),
        "attention-sigmoid": (lambda q, k, v: torch.sigmoid(scores(q, k)) @ v, AT, "sigmoid in place of softmax"),
        "attention-softcap": (lambda q, k, v: (torch.tanh(scores(q, k) / 2) * 2).softmax(-1) @ v, AT, "soft-capped scores (Gemma 2)"),
        "attention-off-by-one": (lambda q, k, v: torch.exp(scores(q, k)) / (1 + torch.exp(scores(q, k)).sum(-1, keepdim=True)) @ v, AT, "1 added to the sum"),
        "attention-probabilities-transposed": (lambda q, k, v: scores(q, k).softmax(-1).transpose(-1, -2) @ v, AT, "the probabilities are transposed"),
        "attention-normalized-value": (lambda q, k, v: scores(q, k) @ v.softmax(-1), AT, "the softmax of v"),
    },
)  # fmt: skip


def _masked(q: Any, k: Any, v: Any, m: Any) -> Any:
    return (scores(q, k) + m).softmax(-1) @ v


MASKED = Family(
    "attention", (f"{AT} scale={ROOT}",), {**HEADS, "m": (N, 1, N, N)}, _masked,
    {
        "mask-after-softmax": (lambda q, k, v, m: (scores(q, k).softmax(-1) + m) @ v, AT, "the mask is added behind the softmax"),
        "mask-multiplied": (lambda q, k, v, m: (scores(q, k) * m).softmax(-1) @ v, AT, "the scores are multiplied by the mask"),
        "mask-before-scale": (lambda q, k, v, m: ((q @ k.transpose(-1, -2) + m) * ROOT).softmax(-1) @ v, f"{AT} mask=m", "the mask is scaled too"),
        "mask-subtracted": (lambda q, k, v, m: (scores(q, k) - m).softmax(-1) @ v, f"{AT} mask=m", "the mask is subtracted"),
        "mask-transposed": (lambda q, k, v, m: (scores(q, k) + m.transpose(-1, -2)).softmax(-1) @ v, f"{AT} mask=m", "the mask as [keys, queries]"),
        "mask-times-probabilities": (lambda q, k, v, m: (scores(q, k).softmax(-1) * m) @ v, AT, "the probabilities are multiplied by the mask"),
        "mask-on-values": (lambda q, k, v, m: scores(q, k).softmax(-1) @ (v + m), f"{AT} mask=m", "added to the values"),
    },
    "inputs-additive",
)  # fmt: skip


BOOLEAN = Family(
    "attention", (f"{AT} scale={ROOT}",), {**HEADS, "m": (N, 1, N, N)}, lambda q, k, v, m: torch.where(m, scores(q, k), torch.tensor(-1e4)).softmax(-1) @ v,
    {
        "where-inverted": (lambda q, k, v, m: torch.where(m, torch.tensor(-1e4), scores(q, k)).softmax(-1) @ v, f"{AT} mask=m", "what the mask says is hidden"),
        "where-zero": (lambda q, k, v, m: torch.where(m, scores(q, k), torch.tensor(0.0)).softmax(-1) @ v, f"{AT} fill=-10000.0", "0 in place of a large negative number"),
        "where-after-softmax": (lambda q, k, v, m: torch.where(m, scores(q, k).softmax(-1), torch.tensor(0.0)) @ v, AT, "probabilities are put to 0 without dividing again"),
    },
    "inputs-boolean", {"m": torch.bool},
)  # fmt: skip


def causal(keep: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(q: Any, k: Any, v: Any) -> Any:
        mask = keep(torch.ones(N, N, dtype=torch.bool))
        return torch.where(mask, scores(q, k), torch.tensor(-math.inf)).softmax(-1) @ v

    return function


CAUSAL = Family(
    "attention", (f"{AT} scale={ROOT}",), HEADS, causal(lambda m: m.tril()),
    {
        "causal-upper": (causal(lambda m: m.triu()), f"{AT} causal=true", "the upper triangle"),
        "causal-shifted": (causal(lambda m: m.tril(1)), f"{AT} causal=true offset=0", "one key more than has been"),
        "causal-band": (causal(lambda m: m.tril() & m.triu(-1)), f"{AT} causal=true", "a band of two"),
        "causal-backward": (causal(lambda m: m.tril().flip(0)), f"{AT} causal=true", "rows in reverse"),
    },
    "inputs-causal",
)  # fmt: skip


def repeated(x: Any) -> Any:
    b, h, length, d = x.shape
    return x[:, :, None].expand(b, h, 2, length, d).reshape(b, h * 2, length, d)


def tiled(x: Any) -> Any:
    return x.repeat(1, 2, 1, 1)


GROUPED = Family(
    "attention", (f"{AT} scale={ROOT}",), {"q": (2, 4, 4, D), "k": (2, 2, 4, D), "v": (2, 2, 4, D)}, lambda q, k, v: scores(q, repeated(k)).softmax(-1) @ repeated(v),
    {
        "gqa-tiled": (lambda q, k, v: scores(q, tiled(k)).softmax(-1) @ tiled(v), f"{AT} q=q k=k", "query head h uses key head h % 2"),
        "gqa-mixed": (lambda q, k, v: scores(q, repeated(k)).softmax(-1) @ tiled(v), f"{AT} k=k v=v", "keys repeated, values tiled"),
    },
    "inputs-gqa",
)  # fmt: skip


def _rope(x: Any, cos: Any, sin: Any) -> Any:
    return x * cos + torch.cat((-x[..., 4:], x[..., :4]), -1) * sin


RO = "kernel.rope"
ROPE = Family(
    "rope", (RO,), {"x": (2, 4, 8, 8), "cos": (8, 8), "sin": (8, 8)}, _rope,
    {
        "rope-signs": (lambda x, cos, sin: x * cos + torch.cat((x[..., 4:], -x[..., :4]), -1) * sin, f"{RO} x=x sin=sin", "the other half is negated"),
        "rope-no-sign": (lambda x, cos, sin: x * cos + torch.cat((x[..., 4:], x[..., :4]), -1) * sin, RO, "nothing is negated"),
        "rope-not-swapped": (lambda x, cos, sin: x * cos + torch.cat((-x[..., :4], x[..., 4:]), -1) * sin, RO, "the halves stay where they are"),
        "rope-unequal-halves": (lambda x, cos, sin: x * cos + torch.cat((-x[..., 6:], x[..., :6]), -1) * sin, RO, "halves of 2 and 6"),
        "rope-interleaved": (lambda x, cos, sin: x * cos + torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2) * sin, f"{RO} interleaved=false", "neighbours are turned, not halves"),
        "rope-angles-swapped": (lambda x, cos, sin: x * sin + torch.cat((-x[..., 4:], x[..., :4]), -1) * cos, f"{RO} x=x cos=cos", "cos and sin change places"),
    },
)  # fmt: skip

# ---------------------------------------------------------------- convolution


def conv(x: Any, pad: int = 1) -> Any:
    weight = torch.linspace(-1, 1, 4 * 4 * 9).reshape(4, 4, 3, 3)
    return F.conv2d(x, weight, padding=pad)


def wide(v: Any) -> Any:
    return torch.tensor(v)[:, None, None]


MEAN, SCALE, SHIFT = wide([0.5, -1.0, 2.0, 0.1]), wide([1.5, 0.5, -2.0, 1.0]), wide([1.0, 2.0, -1.0, 0.5])


def _batch(x: Any) -> Any:
    return (conv(x) - MEAN) * SCALE + SHIFT


def _batch_statistics(x: Any) -> Any:
    y = conv(x)
    d = y - mean(y, (0, 2, 3))
    return d / torch.sqrt(mean(d * d, (0, 2, 3)) + EPSILON) * SCALE + SHIFT


CO = "onnx.Conv"
CONV = Family(
    "conv_bn", (CO,), {"x": (2, 4, 6, 6)}, _batch,
    {
        "conv-pixel-scale": (lambda x: conv(x) * torch.linspace(1, 2, 36).reshape(6, 6), CO, "a scale for each pixel"),
        "conv-column-scale": (lambda x: conv(x) * torch.linspace(1, 2, 6) + SHIFT, CO, "a scale for each column"),
        "conv-batch-statistics": (_batch_statistics, CO, "statistics of the batch itself"),
        "conv-norm-before": (lambda x: conv((x - MEAN) * SCALE + SHIFT), f"{CO} x=x", "normalized before a convolution that pads with zeros"),
        "conv-relu-between": (lambda x: torch.relu(conv(x)) * SCALE + SHIFT, f"{CO} x=x", "relu between convolution and normalization"),
        "conv-image-scale": (lambda x: conv(x) * torch.tensor([1.0, 2.0])[:, None, None, None], f"{CO} x=x", "a scale for each image of the batch"),
        "conv-quadratic": (lambda x: conv(x) * conv(x) * SCALE + SHIFT, CO, "the square of the convolution"),
    },
)  # fmt: skip

FAMILIES = (LAYER, RMS, GROUP, GELU, GELU_TANH, SILU, SWIGLU, SOFTMAX, ATTENTION, MASKED, BOOLEAN, CAUSAL, GROUPED, ROPE, CONV)


def exported(function: Callable[..., Any], family: Family) -> onnx.ModelProto:
    """By torch.onnx.export(dynamo=False, opset_version=14), without names."""
    file = io.BytesIO()
    torch.manual_seed(0)
    inputs = tuple(torch.randn(*s) if name not in family.dtypes else torch.rand(*s) > 0.3 for name, s in family.inputs.items())
    torch.onnx.export(Function(function), inputs, file, dynamo=False, opset_version=14, input_names=list(family.inputs))
    return plain(onnx.load_model_from_string(file.getvalue()))


def main() -> None:
    """Write what is asked for."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    how = f"torch {torch.__version__.split('+')[0]}, torch.onnx.export(.., dynamo=False, opset_version=14)"
    for family in FAMILIES:
        entry = f"{family.folder}/torch-script14-{family.name}"
        if not sys.argv[1:] or any(part in entry for part in sys.argv[1:]):
            write(
                f"{entry}.onnxtxt",
                "#",
                f"{how} of the plain formula, which near-misses resemble",
                family.wanted,
                "",
                text_of(exported(family.formula, family)),
            )
        for name, (function, refused, why) in family.misses.items():
            if sys.argv[1:] and not any(part in name for part in sys.argv[1:]):
                continue
            head = f"# near: {entry}\n# not: {refused}\n# why: {why}\n# source: {how}\n"
            (CORPUS / "near_misses" / f"{name}.onnxtxt").write_text(head + text_of(exported(function, family)).strip() + "\n")


if __name__ == "__main__":
    main()
