"""Entries of JAX and Flax: `python tests/corpus/make/jax_export.py [PART ..]`, with flax where that is installed (0.12 with JAX 0.10)."""

# ruff: noqa: E501
from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from header import ATTENTION, ROOT, B, D, H, L, save_mlir

RANDOM = np.random.default_rng(3)
DOT = "stablehlo.dot_general"


@dataclass(frozen=True)
class Case:
    """A function of arrays of the given shapes; `batched`: dim 0 of the first inputs is a symbol in the dynamic form."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    wanted: tuple[str, ...]
    how: str
    beside: str = ""
    dtypes: tuple[Any, ...] = ()
    batched: int = 0


def weights(*shape: int) -> Any:
    return jnp.asarray(RANDOM.normal(size=shape).astype(np.float32))


W, V = weights(8), weights(8)
ROWS = ((B, L, 8),)
LAYER, RMS = "onnx.LayerNormalization axis=-1", "onnx.RMSNormalization axis=-1"


def _layer(x: Any, w: Any, b: Any) -> Any:
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * w + b


def _layer_standardize(x: Any) -> Any:
    return jax.nn.standardize(x, axis=-1, epsilon=1e-5) * W + V


def _layer_haiku(x: Any, w: Any, b: Any) -> Any:
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return w * jax.lax.rsqrt(variance + 1e-5) * (x - mean) + b


def _layer_half(x: Any, w: Any, b: Any) -> Any:
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt(((wide - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * w
    return ((wide - mean) * scale + b).astype(x.dtype)


def _rms(x: Any, w: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * w


def _rms_gemma(x: Any, w: Any) -> Any:
    return x * jax.lax.reciprocal(jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)) * (1 + w)


def _rms_half(x: Any, w: Any) -> Any:
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype) * w


def _group_last(x: Any, w: Any, b: Any) -> Any:
    n, h, width, c = x.shape
    g = x.reshape(n, h, width, 2, c // 2)
    mean, variance = g.mean((1, 2, 4), keepdims=True), g.var((1, 2, 4), keepdims=True)
    return ((g - mean) * jax.lax.rsqrt(variance + 1e-5)).reshape(x.shape) * w + b


def _group_first(x: Any, w: Any, b: Any) -> Any:
    g = x.reshape(x.shape[0], 2, -1)
    g = (g - g.mean(-1, keepdims=True)) / jnp.sqrt(g.var(-1, keepdims=True) + 1e-5)
    return g.reshape(x.shape) * w[:, None, None] + b[:, None, None]


def _gelu_cdf(x: Any) -> Any:
    return x * jax.scipy.stats.norm.cdf(x)


def _swiglu(x: Any, gate: Any, up: Any, down: Any) -> Any:
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def _swiglu_split(x: Any, both: Any) -> Any:
    a, b = jnp.split(x @ both, 2, axis=-1)
    return jax.nn.swish(b) * a


def _softmax(x: Any) -> Any:
    e = jnp.exp(x - jnp.max(x, -1, keepdims=True))
    return e / jnp.sum(e, -1, keepdims=True)


def _softmax_logsumexp(x: Any) -> Any:
    return jnp.exp(x - jax.nn.logsumexp(x, axis=-1, keepdims=True))


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("...qhd,...khd->...hqk", q / jnp.sqrt(q.shape[-1]).astype(q.dtype), k)
    return jnp.einsum("...hqk,...khd->...qhd", jax.nn.softmax(scores), v)


def _attention_where(q: Any, k: Any, v: Any) -> Any:
    mask = jnp.tril(jnp.ones((L, L), bool))
    scores = jnp.where(mask, jnp.einsum("bqhd,bkhd->bhqk", q, k) * ROOT, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def _attention_big_negative(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q * ROOT, k)
    scores = jnp.where(mask, scores, jnp.finfo(jnp.float32).min)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def _attention_heads_first(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / math.sqrt(D)) @ v


def _dot_product(**options: Any) -> Callable[..., Any]:
    return lambda q, k, v, *mask: jax.nn.dot_product_attention(q, k, v, **({"mask": mask[0]} if mask else {}), **options)


def _bias(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, bias=bias)


def _rope(q: Any, k: Any, v: Any) -> Any:
    """As in Gemma's and MaxText's code: angles from positions, two halves."""
    scale = 10000.0 ** (2 * jnp.arange(0, D // 2) / D)
    angles = (jnp.arange(L)[:, None] / scale)[None, :, None, :]
    sin, cos = jnp.sin(angles), jnp.cos(angles)

    def rotate(x: Any) -> Any:
        a, b = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    return _attention(rotate(q), rotate(k), v)


def _conv(x: Any, w: Any, norm: Callable[[Any], Any]) -> Any:
    return norm(jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")))


KERNEL, SCALE, SHIFT, MEAN, VARIANCE = weights(4, 3, 3, 3), weights(4), weights(4), weights(4), jnp.abs(weights(4)) + 0.5


def _conv_relu(x: Any) -> Any:
    def norm(y: Any) -> Any:
        s = (SCALE * jax.lax.rsqrt(VARIANCE + 1e-5))[:, None, None]
        return (y - MEAN[:, None, None]) * s + SHIFT[:, None, None]

    return jax.nn.relu(_conv(x, KERNEL, norm))


def _conv_last(x: Any) -> Any:
    y = jax.lax.conv_general_dilated(x, jnp.transpose(KERNEL, (2, 3, 1, 0)), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu((y - MEAN) * (jax.lax.rsqrt(VARIANCE + 1e-3) * SCALE) + SHIFT)


HEADS = ((B, L, H, D), (B, L, H, D), (B, L, H, D))
FIRST = ((B, H, L, D),) * 3
HALF = (jnp.float16,)
CASES: dict[str, dict[str, Case]] = {
    "layer_norm": {
        "formula": Case(_layer, (*ROWS, (8,), (8,)), (f"{LAYER} epsilon=1e-5",), "mean, var, sqrt", batched=1),
        "standardize": Case(_layer_standardize, ROWS, (f"{LAYER} epsilon=1e-5",), "jax.nn.standardize with scale and bias"),
        "haiku": Case(_layer_haiku, (*ROWS, (8,), (8,)), (f"{LAYER} epsilon=1e-5",), "Haiku: scale * rsqrt first"),
        "half": Case(_layer_half, (*ROWS, (8,), (8,)), (f"{LAYER} epsilon=1e-5",), "f16 in and out, computed in f32", dtypes=HALF),
    },
    "rms_norm": {
        "formula": Case(_rms, (*ROWS, (8,)), (f"{RMS} epsilon=1e-6",), "mean of squares, rsqrt", batched=1),
        "gemma": Case(_rms_gemma, (*ROWS, (8,)), (f"{RMS} epsilon=1e-6",), "Gemma: reciprocal of the root, 1 + scale", beside="stablehlo.add"),
        "half": Case(_rms_half, (*ROWS, (8,)), (f"{RMS} epsilon=1e-6",), "bf16 in and out, computed in f32", dtypes=(jnp.bfloat16, jnp.bfloat16)),
    },
    "group_norm": {
        "channels-last": Case(_group_last, ((B, 4, 5, 8), (8,), (8,)), ("onnx.GroupNormalization num_groups=2 epsilon=1e-5",), "channels last, mean and var over three dims"),
        "channels-first": Case(_group_first, ((B, 8, 4, 5), (8,), (8,)), ("onnx.GroupNormalization num_groups=2 epsilon=1e-5",), "channels first, flattened groups"),
    },
    "gelu": {
        "tanh": Case(jax.nn.gelu, ROWS, ("onnx.Gelu approximate=tanh",), "jax.nn.gelu", batched=1),
        "erf": Case(lambda x: jax.nn.gelu(x, approximate=False), ROWS, ("onnx.Gelu approximate=none",), "jax.nn.gelu(approximate=False)", batched=1),
        "distribution": Case(_gelu_cdf, ROWS, ("onnx.Gelu approximate=none",), "x * norm.cdf(x)"),
        "half": Case(lambda x: jax.nn.gelu(x.astype(jnp.float32)).astype(x.dtype), ROWS, ("onnx.Gelu approximate=tanh",), "f16 in and out, computed in f32", dtypes=HALF),
    },
    "silu": {
        "silu": Case(jax.nn.silu, ROWS, ("onnx.Swish alpha=1.0",), "jax.nn.silu", batched=1),
        "formula": Case(lambda x: x / (1 + jnp.exp(-x)), ROWS, ("onnx.Swish alpha=1.0",), "x / (1 + exp(-x))"),
        "expit": Case(lambda x: jax.scipy.special.expit(x) * x, ROWS, ("onnx.Swish alpha=1.0",), "expit(x) * x"),
    },
    "swiglu": {
        "llama": Case(_swiglu, (*ROWS, (8, 12), (8, 12), (12, 8)), ("kernel.swiglu",), "(silu(x gate) * (x up)) down", DOT, batched=1),
        "split": Case(_swiglu_split, (*ROWS, (8, 24)), ("kernel.swiglu",), "split of one product, gate second", DOT),
        "inputs": Case(lambda g, u: jax.nn.silu(g) * u, (*ROWS, *ROWS), ("kernel.swiglu",), "silu(gate) * up"),
    },
    "softmax": {
        "softmax": Case(jax.nn.softmax, ROWS, ("onnx.Softmax axis=-1",), "jax.nn.softmax", batched=1),
        "middle": Case(lambda x: jax.nn.softmax(x, axis=1), ROWS, ("onnx.Softmax axis=1",), "jax.nn.softmax(axis=1)"),
        "formula": Case(_softmax, ROWS, ("onnx.Softmax axis=-1",), "exp(x - max) / sum"),
        "logsumexp": Case(_softmax_logsumexp, ROWS, ("onnx.Softmax axis=-1",), "exp(x - logsumexp(x))"),
        "log": Case(lambda x: jnp.exp(jax.nn.log_softmax(x)), ROWS, ("onnx.Softmax axis=-1",), "exp of log_softmax"),
        "half": Case(lambda x: jax.nn.softmax(x.astype(jnp.float32)).astype(x.dtype), ROWS, ("onnx.Softmax axis=-1",), "f16 in and out, computed in f32", dtypes=HALF),
    },
    "attention": {
        "einsum": Case(_attention, HEADS, (ATTENTION,), "einsum over [batch, length, heads, size], scaled query (Flax)", batched=3),
        "where": Case(_attention_where, HEADS, (ATTENTION,), "where(tril, scores, -inf)"),
        "big-negative": Case(_attention_big_negative, (*HEADS, (B, 1, L, L)), (ATTENTION,), "where(mask, scores, finfo.min) (Flax)", "stablehlo.select stablehlo.compare", dtypes=(jnp.float32,) * 3 + (jnp.bool_,)),
        "heads-first": Case(_attention_heads_first, FIRST, (ATTENTION,), "q @ k.swapaxes(-1, -2) / sqrt(d)"),
        "dot-product": Case(_dot_product(), HEADS, (ATTENTION,), "jax.nn.dot_product_attention", batched=3),
        "dot-product-causal": Case(_dot_product(is_causal=True), HEADS, (ATTENTION,), "jax.nn.dot_product_attention(is_causal=True)"),
        "dot-product-mask": Case(_dot_product(), (*HEADS, (B, 1, L, L)), (ATTENTION,), "jax.nn.dot_product_attention(mask)", "stablehlo.select", dtypes=(jnp.float32,) * 3 + (jnp.bool_,)),
        "dot-product-bias": Case(_bias, (*HEADS, (1, H, L, L)), (ATTENTION,), "jax.nn.dot_product_attention(bias)"),
        "dot-product-gqa": Case(_dot_product(), (HEADS[0], (B, L, 2, D), (B, L, 2, D)), (ATTENTION,), "jax.nn.dot_product_attention with two key heads"),
        "dot-product-scale": Case(_dot_product(scale=0.25), HEADS, ("kernel.attention scale=0.25",), "jax.nn.dot_product_attention(scale=0.25)"),
    },
    "attention_rope": {"gemma": Case(_rope, HEADS, (ATTENTION, "kernel.rope", "kernel.rope"), "Gemma, MaxText: angles from positions, halves")},
    "conv_bn": {
        "relu": Case(_conv_relu, ((B, 3, 6, 6),), ("onnx.Conv", "onnx.Relu"), "lax convolution, inference normalization, relu", batched=1),
        "channels-last": Case(_conv_last, ((B, 6, 6, 3),), ("onnx.Conv", "onnx.Relu"), "NHWC and HWIO (Flax)"),
    },
}  # fmt: skip


def flax_cases() -> dict[str, dict[str, Case]]:
    """Modules of flax.linen with parameters drawn once, as constants."""
    try:
        from flax import linen as nn
    except ImportError:
        return {}

    def bound(module: Any, *shape: int) -> Callable[..., Any]:
        example = [jnp.zeros(shape, jnp.float32)] if len(shape) else []
        parameters = jax.tree.map(
            lambda leaf: jnp.asarray(np.abs(RANDOM.normal(size=leaf.shape)).astype(np.float32) + 0.1),
            module.init(jax.random.key(0), *example),
        )
        return lambda x: module.apply(parameters, x)

    image = (B, 4, 5, 8)

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.Conv(4, (3, 3), use_bias=False)(x)
            return nn.relu(nn.BatchNorm(use_running_average=True, epsilon=1e-5)(x))

    attention = nn.MultiHeadDotProductAttention(num_heads=H, qkv_features=H * D, deterministic=True)
    return {
        "layer_norm": {
            "linen": Case(bound(nn.LayerNorm(), B, L, 8), ROWS, (f"{LAYER} epsilon=1e-6",), "flax.linen.LayerNorm (fast variance)"),
            "linen-slow": Case(bound(nn.LayerNorm(use_fast_variance=False), B, L, 8), ROWS, (f"{LAYER} epsilon=1e-6",), "flax.linen.LayerNorm(use_fast_variance=False)"),
        },
        "rms_norm": {"linen": Case(bound(nn.RMSNorm(), B, L, 8), ROWS, (f"{RMS} epsilon=1e-6",), "flax.linen.RMSNorm")},
        "group_norm": {"linen": Case(bound(nn.GroupNorm(num_groups=2), *image), (image,), ("onnx.GroupNormalization num_groups=2 epsilon=1e-6",), "flax.linen.GroupNorm (channels last, fast variance)")},
        "attention": {"linen": Case(bound(attention, B, L, H * D), ((B, L, H * D),), (ATTENTION,), "flax.linen.MultiHeadDotProductAttention", f"{DOT} stablehlo.add")},
        "conv_bn": {"linen": Case(bound(Block(), B, 6, 6, 3), ((B, 6, 6, 3),), ("onnx.Conv", "onnx.Relu"), "flax.linen Conv, BatchNorm, relu")},
    }  # fmt: skip


def text(case: Case, *, dynamic: bool) -> str:
    """The StableHLO of the case."""
    from jax import export

    dtypes = (*case.dtypes, *(jnp.float32 for _ in case.shapes))
    if not dynamic:
        return str(jax.jit(case.function).lower(*(jax.ShapeDtypeStruct(s, t) for s, t in zip(case.shapes, dtypes, strict=False))).as_text())
    (batch,) = export.symbolic_shape("b,")
    specs = [
        jax.ShapeDtypeStruct((batch, *s[1:]) if i < case.batched else s, t)
        for i, (s, t) in enumerate(zip(case.shapes, dtypes, strict=False))
    ]
    return str(export.export(jax.jit(case.function))(*specs).mlir_module())


def main() -> None:
    """Write what is asked for."""
    for source, cases in (("jax", CASES), ("flax", flax_cases())):
        version = f"jax {jax.__version__}"
        if source == "flax":
            import flax

            version += f", flax {flax.__version__}"
        for folder, group in cases.items():
            for name, case in group.items():
                if sys.argv[1:] and not any(part in f"{folder}/{source}-{name}" for part in sys.argv[1:]):
                    continue
                save_mlir(
                    text(case, dynamic=False),
                    f"{folder}/{source}-{name}",
                    f"{version}, jax.jit(..).lower(..) of {case.how}",
                    case.wanted,
                    case.beside,
                )
                if case.batched:
                    save_mlir(
                        text(case, dynamic=True),
                        f"{folder}/{source}-{name}-dynamic",
                        f"{version}, jax.export with a symbolic batch of {case.how}",
                        case.wanted,
                        case.beside,
                    )


if __name__ == "__main__":
    main()
