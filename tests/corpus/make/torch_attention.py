"""Attention as torch modules, in the ways that model code writes it."""

# ruff: noqa: E501
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from cases import Case, Plain, normal, plain
from header import PROJECTED, ROOT, B, D, H, L
from torch import nn

S = 5  # length of the keys in cross-attention
HEADS = normal((B, H, L, D), (B, H, L, D), (B, H, L, D))
CROSS = normal((B, H, L, D), (B, H, S, D), (B, H, S, 6))
HALF = normal((B, H, L, D), (B, H, L, D), (B, H, L, D), dtype=torch.float16)
DYNAMIC = {i: {0: "batch", 2: "length"} for i in range(3)}


def attention(scale: float = ROOT, *rest: str) -> tuple[str, ...]:
    return (f"kernel.attention scale={scale:.6g}", *rest)


def with_mask(mask: Callable[[], Any], heads: Callable[[], tuple[Any, ...]] = HEADS) -> Callable[[], tuple[Any, ...]]:
    return lambda: (*heads(), mask())


def additive(*shape: int) -> Callable[[], Any]:
    return lambda: torch.randn(*shape)


def boolean(*shape: int) -> Callable[[], Any]:
    return lambda: torch.rand(*shape) > 0.4


# ---------------------------------------------------------------- on heads


def _plain(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(D), dim=-1) @ v


def _scaled_query(q: Any, k: Any, v: Any) -> Any:
    return F.softmax((q * D**-0.5) @ k.transpose(-1, -2), dim=-1) @ v


def _traced_scale(q: Any, k: Any, v: Any) -> Any:
    return F.softmax((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2), dim=-1) @ v


def _scaled_key(q: Any, k: Any, v: Any) -> Any:
    return F.softmax(q @ (k * ROOT).transpose(-1, -2), dim=-1) @ v


def _scaled_both(q: Any, k: Any, v: Any) -> Any:
    scale = D**-0.25
    return F.softmax((q * scale) @ (k * scale).transpose(-1, -2), dim=-1) @ v


def _divided_query(q: Any, k: Any, v: Any) -> Any:
    return F.softmax((q / math.sqrt(D)) @ k.permute(0, 1, 3, 2), dim=-1) @ v


def _tensor_scale(q: Any, k: Any, v: Any) -> Any:
    return F.softmax(q @ k.transpose(-2, -1) / torch.sqrt(torch.tensor(float(D))), dim=-1) @ v


def _unscaled(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return F.softmax(q @ k.transpose(3, 2) + bias, dim=-1) @ v


def _exponentials(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(-1, -2) * ROOT
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)) @ v


def _late_sum(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(-1, -2) * ROOT
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    return (e @ v) / e.sum(-1, keepdim=True)


def _einsum(q: Any, k: Any, v: Any) -> Any:
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * ROOT
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)


def _einops_flat(q: Any, k: Any, v: Any) -> Any:
    scores = torch.einsum("bid,bjd->bij", q, k) * ROOT
    return torch.einsum("bij,bjd->bid", scores.softmax(-1), v)


def _transposed_scores(q: Any, k: Any, v: Any) -> Any:
    scores = torch.einsum("bhqd,bhkd->bhkq", q, k) * ROOT
    return torch.einsum("bhkq,bhkd->bhqd", scores.softmax(2), v)


def _additive(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ k.transpose(-1, -2) / math.sqrt(D)
    return F.softmax(scores + mask, dim=-1) @ v


def _padding(q: Any, k: Any, v: Any, mask: Any) -> Any:
    wide = (1.0 - mask[:, None, None, :]) * -10000.0
    return F.softmax(q @ k.transpose(-1, -2) / math.sqrt(D) + wide, dim=-1) @ v


def _boolean(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ k.transpose(-1, -2) * ROOT
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


def _billion(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ k.transpose(-1, -2) * ROOT
    return scores.masked_fill(mask == 0, -1e9).softmax(-1) @ v


def _causal(q: Any, k: Any, v: Any) -> Any:
    mask = torch.tril(torch.ones(L, L, dtype=torch.bool))
    scores = q @ k.transpose(-1, -2) * ROOT
    return torch.where(mask, scores, torch.tensor(float("-inf"))).softmax(-1) @ v


def _causal_minimum(q: Any, k: Any, v: Any) -> Any:
    mask = torch.tril(torch.ones(L, L, dtype=torch.bool))[None, None]
    scores = q @ k.transpose(-1, -2) / torch.full([], D**0.5)
    return torch.where(mask, scores, torch.full([], torch.finfo(torch.float32).min)).softmax(-1) @ v


def _causal_added(q: Any, k: Any, v: Any) -> Any:
    mask = torch.full((L, L), float("-inf")).triu(1)
    return (q @ k.transpose(-1, -2) * ROOT + mask).softmax(-1) @ v


def _upcast(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(2, 3) * ROOT
    return F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype) @ v


def _repeated(q: Any, k: Any, v: Any) -> Any:
    def repeat(x: Any) -> Any:
        b, h, length, d = x.shape
        return x[:, :, None, :, :].expand(b, h, 2, length, d).reshape(b, h * 2, length, d)

    return F.softmax(q @ repeat(k).transpose(2, 3) * ROOT, dim=-1) @ repeat(v)


def _interleaved(q: Any, k: Any, v: Any) -> Any:
    k, v = k.repeat_interleave(2, dim=1), v.repeat_interleave(2, dim=1)
    return F.softmax(q @ k.transpose(2, 3) * ROOT, dim=-1) @ v


def _groups(q: Any, k: Any, v: Any) -> Any:
    g = q.view(B, 2, 2, L, D)
    scores = g @ k[:, :, None].transpose(-1, -2) * ROOT
    return (scores.softmax(-1) @ v[:, :, None]).reshape(B, H, L, D)


def _one_key_head(q: Any, k: Any, v: Any) -> Any:
    return F.softmax(q @ k.transpose(-1, -2) * ROOT, dim=-1) @ v


def _sdpa(**options: Any) -> Callable[..., Any]:
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)


def _sdpa_mask(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


GROUPED = normal((B, H, L, D), (B, 2, L, D), (B, 2, L, D))
ON_HEADS = {
    "sdpa": Case(plain(_sdpa()), HEADS, attention(), "scaled_dot_product_attention(q, k, v)", ways=("script14", "dynamo18", "hlo", "compile"), dynamic=DYNAMIC),
    "sdpa-cross": Case(plain(_sdpa()), CROSS, attention(), "scaled_dot_product_attention of other lengths and sizes", ways=("script17", "hlo", "compile")),
    "sdpa-scale": Case(plain(_sdpa(scale=0.2)), HEADS, attention(0.2), "scaled_dot_product_attention(scale=0.2)", ways=("script14", "dynamo18", "compile")),
    "sdpa-causal": Case(plain(_sdpa(is_causal=True)), HEADS, attention(), "scaled_dot_product_attention(is_causal=True)", ways=("script14", "dynamo18", "hlo", "compile")),
    "sdpa-additive": Case(plain(_sdpa_mask), with_mask(additive(B, 1, L, L)), attention(), "scaled_dot_product_attention(attn_mask: float)", ways=("script14", "dynamo18", "hlo", "compile")),
    "sdpa-boolean": Case(plain(_sdpa_mask), with_mask(boolean(B, 1, L, L)), attention(), "scaled_dot_product_attention(attn_mask: bool)", ways=("script14", "dynamo18", "hlo", "compile")),
    "sdpa-half": Case(plain(_sdpa()), HALF, attention(), "scaled_dot_product_attention in f16", ways=("script14", "dynamo18", "compile")),
    "plain": Case(plain(_plain), HEADS, attention(), "softmax(q k^T / sqrt(d)) v", ways=("script13", "dynamo18", "hlo"), dynamic=DYNAMIC),
    "scaled-query": Case(plain(_scaled_query), HEADS, attention(), "q * d^-0.5 (timm)", ways=("script13", "hlo")),
    "traced-scale": Case(plain(_traced_scale), HEADS, attention(), "q * q.shape[-1]^-0.5, a Pow of two constants in the graph", ways=("script17",)),
    "scaled-key": Case(plain(_scaled_key), HEADS, attention(), "k scaled before its transpose", ways=("script13",)),
    "scaled-both": Case(plain(_scaled_both), HEADS, attention(), "q and k times d^-0.25 (Whisper)", ways=("script13", "dynamo18")),
    "divided-query": Case(plain(_divided_query), HEADS, attention(), "q / sqrt(d), k permuted (DistilBERT)", ways=("script13",)),
    "tensor-scale": Case(plain(_tensor_scale), HEADS, attention(), "divided by the root of a tensor", ways=("script13",)),
    "unscaled-bias": Case(plain(_unscaled), with_mask(additive(1, H, L, L)), attention(1.0), "T5: no scale, position bias", ways=("script13", "hlo")),
    "exponentials": Case(plain(_exponentials), HEADS, attention(), "softmax written out", ways=("script13",)),
    "late-sum": Case(plain(_late_sum), HEADS, attention(), "divided by the sum behind the second product", ways=("script13",)),
    "einsum": Case(plain(_einsum), normal((B, L, H, D), (B, S, H, D), (B, S, H, D)), attention(), "einsum bqhd,bkhd->bhqk", ways=("script13", "hlo")),
    "einsum-flat": Case(plain(_einops_flat), normal((6, L, D), (6, S, D), (6, S, D)), attention(), "einsum bid,bjd->bij (diffusers)", ways=("script13",)),
    "transposed-scores": Case(plain(_transposed_scores), CROSS, attention(), "scores as [keys, queries], softmax over dim 2", ways=("script13",)),
    "additive": Case(plain(_additive), with_mask(additive(B, 1, 1, L)), attention(), "an additive mask for each batch (BERT)", ways=("script13", "dynamo18")),
    "padding": Case(plain(_padding), with_mask(lambda: (torch.rand(B, L) > 0.3).float()), attention(), "(1 - mask) * -10000 (old BERT)", "stablehlo.subtract stablehlo.multiply stablehlo.add", ways=("script13",)),
    "boolean": Case(plain(_boolean), with_mask(boolean(B, 1, L, L)), attention(), "masked_fill(~mask, -inf)", "stablehlo.not", ways=("script13", "dynamo18", "hlo")),
    "billion": Case(plain(_billion), with_mask(lambda: (torch.rand(B, 1, L, L) > 0.3).long()), attention(), "masked_fill(mask == 0, -1e9)", "stablehlo.compare stablehlo.select stablehlo.not", ways=("script13",)),
    "causal": Case(plain(_causal), HEADS, attention(), "where(tril, scores, -inf)", ways=("script14", "hlo")),
    "causal-minimum": Case(plain(_causal_minimum), HEADS, attention(), "GPT-2: where(tril, scores, finfo.min)", ways=("script14",)),
    "causal-added": Case(plain(_causal_added), HEADS, attention(), "triu of -inf, added", ways=("script14", "hlo")),
    "upcast": Case(plain(_upcast), HALF, attention(), "f16, softmax in f32 (Llama)", ways=("script13", "dynamo18")),
    "gqa-repeated": Case(plain(_repeated), GROUPED, attention(), "Llama repeat_kv: expand, reshape", ways=("script13", "dynamo18", "hlo")),
    "gqa-interleaved": Case(plain(_interleaved), GROUPED, attention(), "repeat_interleave of key heads", ways=("script13", "hlo")),
    "gqa-groups": Case(plain(_groups), GROUPED, attention(), "query heads in groups, rank 5", ways=("script13",)),
    "mqa": Case(plain(_one_key_head), normal((B, H, L, D), (B, 1, L, D), (B, 1, L, D)), attention(), "one key head, broadcast (Falcon)", ways=("script13", "hlo")),
    "matrix": Case(plain(_plain), normal((L, D), (S, D), (S, D)), attention(), "without batch and heads", ways=("script13", "hlo")),
}  # fmt: skip

# ---------------------------------------------------------------- with projections and split heads

ROWS = normal((B, L, H * D))


class _Bert(nn.Module):
    """Three projections, view and permute, output projection."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(H * D, H * D) for _ in range(4))

    def forward(self, x: Any, mask: Any) -> Any:
        def split(y: Any) -> Any:
            return y.view(*y.shape[:2], H, D).permute(0, 2, 1, 3)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        probabilities = F.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(D) + mask, dim=-1)
        mixed = torch.matmul(probabilities, v).permute(0, 2, 1, 3).contiguous()
        return self.out(mixed.view(*mixed.shape[:2], H * D))


class _Vit(nn.Module):
    """timm: one projection, reshape to five dims, permute, unbind."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(H * D, 3 * H * D), nn.Linear(H * D, H * D)

    def forward(self, x: Any) -> Any:
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = ((q * ROOT) @ k.transpose(-2, -1)).softmax(-1) @ v
        return self.proj(mixed.transpose(1, 2).reshape(b, n, c))


class _Gpt2(nn.Module):
    """One projection, split, causal bias cut from a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(H * D, 3 * H * D), nn.Linear(H * D, H * D)
        self.register_buffer("bias", torch.tril(torch.ones(8, 8, dtype=torch.bool)).view(1, 1, 8, 8))

    def forward(self, x: Any) -> Any:
        q, k, v = (y.view(B, L, H, D).transpose(1, 2) for y in self.c_attn(x).split(H * D, dim=2))
        scores = q @ k.transpose(-1, -2) / (D**0.5)
        scores = torch.where(self.bias[:, :, :L, :L], scores, torch.tensor(torch.finfo(scores.dtype).min))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, L, H * D))


class _Clip(nn.Module):
    """Heads folded into the batch, bmm."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(H * D, H * D) for _ in range(4))

    def forward(self, x: Any) -> Any:
        def shape(y: Any) -> Any:
            return y.view(B, L, H, D).transpose(1, 2).reshape(B * H, L, D)

        q, k, v = shape(self.q_proj(x) * ROOT), shape(self.k_proj(x)), shape(self.v_proj(x))
        mixed = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v)
        return self.out_proj(mixed.view(B, H, L, D).transpose(1, 2).reshape(B, L, H * D))


class _Diffusers(nn.Module):
    """baddbmm with beta 0 and the scale as alpha, no bias in the projections, another context."""

    def __init__(self) -> None:
        super().__init__()
        self.to_q, self.to_k, self.to_v, self.to_out = (
            nn.Linear(16, H * D, bias=False),
            nn.Linear(12, H * D, bias=False),
            nn.Linear(12, H * D, bias=False),
            nn.Linear(H * D, 16),
        )

    def forward(self, x: Any, context: Any) -> Any:
        def fold(y: Any) -> Any:
            return y.reshape(B, -1, H, D).permute(0, 2, 1, 3).reshape(B * H, -1, D)

        q, k, v = fold(self.to_q(x)), fold(self.to_k(context)), fold(self.to_v(context))
        scores = torch.baddbmm(torch.zeros(B * H, q.shape[1], k.shape[1]), q, k.transpose(-1, -2), beta=0, alpha=ROOT)
        mixed = torch.bmm(scores.softmax(dim=-1), v)
        return self.to_out(mixed.reshape(B, H, -1, D).permute(0, 2, 1, 3).reshape(B, -1, H * D))


class _Swin(nn.Module):
    """Relative position bias from a parameter, window by window."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(H * D, 3 * H * D, bias=False), nn.Linear(H * D, H * D)
        self.table = nn.Parameter(torch.randn(L * L, H))

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).reshape(B, L, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.table.view(L, L, H).permute(2, 0, 1).unsqueeze(0)
        mixed = (((q * ROOT) @ k.transpose(-2, -1)) + bias).softmax(-1) @ v
        return self.proj(mixed.transpose(1, 2).reshape(B, L, H * D))


class _KeyTransposed(nn.Module):
    """The key is split and put as [batch, heads, size, length] in one permutation (GPT-1, GPT-2's first export)."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(H * D, 3 * H * D)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).split(H * D, dim=2)
        q, k, v = q.view(B, L, H, D).permute(0, 2, 1, 3), k.view(B, L, H, D).permute(0, 2, 3, 1), v.view(B, L, H, D).permute(0, 2, 1, 3)
        return (torch.softmax(torch.matmul(q, k) * ROOT, -1) @ v).permute(0, 2, 1, 3).reshape(B, L, H * D)


class _Multihead(nn.Module):
    def __init__(self, weights: bool) -> None:
        super().__init__()
        self.inner, self.weights = nn.MultiheadAttention(H * D, H, batch_first=True), weights

    def forward(self, x: Any) -> Any:
        return self.inner(x, x, x, need_weights=self.weights)[0]


def _masked_rows() -> tuple[Any, ...]:
    return (*ROWS(), torch.randn(B, 1, 1, L))


IN_MODULES = {
    "bert": Case(_Bert, _masked_rows, attention(), "BERT self-attention with an additive mask", PROJECTED, ways=("script13", "dynamo18", "hlo"), dynamic={0: {0: "batch", 1: "length"}, 1: {0: "batch", 3: "length"}}),
    "vit": Case(_Vit, ROWS, attention(), "timm ViT", PROJECTED, ways=("script13", "dynamo18", "hlo")),
    "gpt2": Case(_Gpt2, ROWS, attention(), "GPT-2 with its causal buffer", PROJECTED, ways=("script13",)),
    "clip": Case(_Clip, ROWS, attention(), "CLIP of that time: heads in the batch, bmm", PROJECTED, ways=("script13",)),
    "diffusers": Case(_Diffusers, normal((B, L, 16), (B, S, 12)), attention(), "diffusers: baddbmm, cross-attention", PROJECTED, ways=("script13", "dynamo18")),
    "swin": Case(_Swin, ROWS, attention(), "Swin: relative position bias", PROJECTED, ways=("script13",)),
    "key-transposed": Case(_KeyTransposed, ROWS, attention(), "key permuted to [batch, heads, size, length] at once", PROJECTED, ways=("script13", "hlo")),
    "multihead": Case(lambda: _Multihead(False), ROWS, attention(), "nn.MultiheadAttention(need_weights=False)", PROJECTED, ways=("script14", "hlo")),
    "multihead-weights": Case(lambda: _Multihead(True), ROWS, attention(), "nn.MultiheadAttention, its weights averaged and dropped", PROJECTED, ways=("script14",)),
}  # fmt: skip

# ---------------------------------------------------------------- rotary embeddings

ROPE = ("kernel.rope", "kernel.rope")


def _rotate_half(x: Any) -> Any:
    first, second = x[..., : D // 2], x[..., D // 2 :]
    return torch.cat((-second, first), dim=-1)


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    return x * cos + _rotate_half(x) * sin


def _llama(q: Any, k: Any, v: Any, cos: Any, sin: Any) -> Any:
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return _plain(_rotated(q, cos, sin), _rotated(k, cos, sin), v)


def _angles(length: int, *, twice: bool = True) -> tuple[Any, Any]:
    inverse = 1.0 / (10000 ** (torch.arange(0, D, 2).float() / D))
    angles = torch.outer(torch.arange(length).float(), inverse)
    angles = torch.cat((angles, angles), dim=-1) if twice else angles
    return angles.cos(), angles.sin()


class _Cached(Plain):
    """Angles of a buffer: constants of the model."""

    def __init__(self, function: Callable[..., Any], *, twice: bool = True) -> None:
        super().__init__(function)
        self.cos, self.sin = (nn.Parameter(t, requires_grad=False) for t in _angles(L, twice=twice))

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs, self.cos, self.sin)


def _cached(q: Any, k: Any, v: Any, cos: Any, sin: Any) -> Any:
    return _plain(_rotated(q, cos, sin), _rotated(k, cos, sin), v)


def _halves(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def _chunked(q: Any, k: Any, v: Any, cos: Any, sin: Any) -> Any:
    return _plain(_halves(q, cos, sin), _halves(k, cos, sin), v)


def _pairs(x: Any, cos: Any, sin: Any) -> Any:
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)


def _interleaving(q: Any, k: Any, v: Any, cos: Any, sin: Any) -> Any:
    return _plain(_pairs(q, cos, sin), _pairs(k, cos, sin), v)


def _rotate_every_two(x: Any, cos: Any, sin: Any) -> Any:
    turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    twice = [torch.stack((angle, angle), dim=-1).flatten(-2) for angle in (cos, sin)]
    return x * twice[0] + turned * twice[1]


def _gptj(q: Any, k: Any, v: Any, cos: Any, sin: Any) -> Any:
    return _plain(_rotate_every_two(q, cos, sin), _rotate_every_two(k, cos, sin), v)


def _partial(q: Any, k: Any, v: Any, cos: Any, sin: Any) -> Any:
    def part(x: Any) -> Any:
        return torch.cat((_halves(x[..., : D // 2], cos[..., : D // 4], sin[..., : D // 4]), x[..., D // 2 :]), dim=-1)

    return _plain(part(q), part(k), v)


def _llama_gqa(q: Any, k: Any, v: Any, cos: Any, sin: Any) -> Any:
    return _repeated(_rotated(q, cos, sin), _rotated(k, cos, sin), v)


def _with_angles() -> tuple[Any, ...]:
    cos, sin = _angles(L)
    return (*HEADS(), cos[None].repeat(B, 1, 1), sin[None].repeat(B, 1, 1))


WITH_ROPE = {
    "llama": Case(plain(_llama), _with_angles, attention(ROOT, *ROPE), "Llama apply_rotary_pos_emb, cos and sin given", ways=("script13", "dynamo18", "hlo")),
    "cached": Case(lambda: _Cached(_cached), HEADS, attention(ROOT, *ROPE), "rotate_half with cached angles", ways=("script13",)),
    "halves": Case(lambda: _Cached(_chunked, twice=False), HEADS, attention(ROOT, *ROPE), "two halves, four products", ways=("script13", "hlo")),
    "pairs": Case(lambda: _Cached(_interleaving, twice=False), HEADS, attention(ROOT, *ROPE), "even and odd elements, stacked (Meta's Llama, real)", ways=("script13",)),
    "gptj": Case(lambda: _Cached(_gptj, twice=False), HEADS, attention(ROOT, *ROPE), "GPT-J rotate_every_two", ways=("script13",)),
    "partial": Case(lambda: _Cached(_partial, twice=False), HEADS, attention(ROOT, *ROPE), "GPT-NeoX: a part of the head is rotated", ways=("script13",)),
    "gqa": Case(lambda: _Cached(_llama_gqa), GROUPED, attention(ROOT, *ROPE), "Llama 3: rope and repeated key heads", ways=("script13",)),
}  # fmt: skip

CASES: dict[str, dict[str, Case]] = {"attention": {**ON_HEADS, **IN_MODULES}, "attention_rope": WITH_ROPE}
