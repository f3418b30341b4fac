"""Torch modules of the usual kinds, small, written out here. Each is made of a seed, and takes inputs of a size `n` that may change."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
Inputs = tuple[Any, ...]


@dataclass(frozen=True)
class Model:
    """`inputs(n)` are drawn for a size; `trains` where gradients are compared too; `grows` where n may change without a compilation;
    `keeps` are reasons for which ops stay in torch; `within` is the narrowest type that it computes in."""

    make: Callable[[], Any]
    inputs: Callable[[int], Inputs]
    trains: bool = False
    grows: bool = True
    keeps: tuple[str, ...] = ()
    within: Any = torch.float32


MODELS: dict[str, Model] = {}


def model(name: str, inputs: Callable[[int], Inputs], **more: Any) -> Callable[[Any], Any]:
    """Enter what makes a module."""

    def enter(make: Any) -> Any:
        MODELS[name] = Model(make, inputs, **more)
        return make

    return enter


def rows(*shape: int) -> Callable[[int], Inputs]:
    return lambda n: (torch.randn(n, *shape),)


# ---------------------------------------------------------------- dense


@model("mlp", rows(16), trains=True)
class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32), nn.SiLU(), nn.LayerNorm(32), nn.Linear(32, 8))

    def forward(self, x):
        return self.layers(x)


@model("autoencoder", rows(24), trains=True)
class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Linear(24, 12), nn.Tanh(), nn.Linear(12, 4))
        self.up = nn.Sequential(nn.Linear(4, 12), nn.ELU(), nn.Linear(12, 24), nn.Sigmoid())

    def forward(self, x):
        return F.mse_loss(self.up(self.down(x)), torch.sigmoid(x))


@model("activations", rows(7, 5), trains=True)
class Activations(nn.Module):
    def forward(self, x):
        each = (F.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.celu, F.softplus, F.mish, F.hardswish, F.hardsigmoid, F.softsign,
                F.logsigmoid, F.hardtanh, torch.tanh, torch.sigmoid, torch.erf, F.silu)  # fmt: skip
        return sum(f(x) for f in each) + F.gelu(x, approximate="tanh") + F.glu(torch.cat([x, x * 2], -1), dim=-1)


@model("dlrm", lambda n: (torch.randn(n, 13), torch.randint(0, 20, (n, 3))), trains=True)
class DLRM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(20, 8) for _ in range(3))
        self.bottom, self.top = nn.Linear(13, 8), nn.Linear(8 + 6, 1)

    def forward(self, dense, sparse):
        x = F.relu(self.bottom(dense))
        every = torch.stack([x, *(table(sparse[:, i]) for i, table in enumerate(self.tables))], dim=1)
        pairs = torch.bmm(every, every.transpose(1, 2))
        i, j = torch.tril_indices(4, 4, offset=-1)
        return torch.sigmoid(self.top(torch.cat([x, pairs[:, i, j]], dim=1)))


@model("experts", rows(16), trains=True)
class Experts(nn.Module):
    """A mixture of four experts, each token to the two best, every expert computed."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(16, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 16, 24) / 4), nn.Parameter(torch.randn(4, 24, 16) / 5)

    def forward(self, x):
        weights, chosen = torch.topk(self.router(x).softmax(-1), 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        gates = torch.zeros(x.shape[0], 4).scatter(1, chosen, weights)
        each = torch.einsum("tef,efd->ted", F.silu(torch.einsum("td,edf->tef", x, self.up)), self.down)
        return (gates.unsqueeze(-1) * each).sum(1)


@model("grouped_experts", rows(16), within=torch.bfloat16)
class GroupedExperts(Experts):
    """The same with the rows in the order of their experts: each expert works on its own alone."""

    def forward(self, x):
        weights, chosen = torch.topk(self.router(x).softmax(-1), 2, dim=-1)
        order = torch.argsort(chosen.flatten(), stable=True)
        ends = (chosen.flatten()[:, None] <= torch.arange(4)).sum(0).int()
        hidden = F.silu(F.grouped_mm(x[order // 2].bfloat16(), self.up.bfloat16(), offs=ends))
        y = F.grouped_mm(hidden, self.down.bfloat16(), offs=ends) * weights.flatten()[order, None]
        return torch.zeros_like(x).index_add(0, order // 2, y)


@model("embedding_bag", lambda n: (torch.randint(0, 30, (n, 6)),))
class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(30, 8, mode="mean"), nn.Linear(8, 3)

    def forward(self, indices):
        return self.head(self.bag(indices)).relu()


# ---------------------------------------------------------------- images


@model("cnn", rows(3, 16, 16), trains=True)
class CNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )  # fmt: skip
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        return F.log_softmax(self.head(self.features(x).flatten(1)), dim=1)


@model("resnet_block", rows(8, 10, 10), trains=True)
class ResNetBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.short = nn.Conv2d(8, 16, 1, stride=2, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(16) for _ in range(3))

    def forward(self, x):
        y = self.norms[1](self.two(F.relu(self.norms[0](self.one(x)))))
        return F.relu(y + self.norms[2](self.short(x)))


@model("mobilenet_block", rows(8, 12, 12), trains=True)
class MobileNetBlock(nn.Module):
    """Inverted residual with a depthwise convolution and squeeze-and-excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.expand, self.project = nn.Conv2d(8, 24, 1), nn.Conv2d(24, 8, 1)
        self.depth = nn.Conv2d(24, 24, 5, padding=2, groups=24)
        self.squeeze, self.excite = nn.Conv2d(24, 6, 1), nn.Conv2d(6, 24, 1)

    def forward(self, x):
        y = F.hardswish(self.depth(F.hardswish(self.expand(x))))
        gate = F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return x + self.project(y * gate)


@model("unet_block", rows(4, 12, 12), trains=True)
class UNetBlock(nn.Module):
    """Down, up by a transposed convolution, and the skip beside it; GroupNorm and SiLU as in diffusion models."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.norm = nn.Conv2d(4, 8, 3, padding=1), nn.GroupNorm(4, 8)
        self.down, self.up = nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)
        self.leave = nn.Conv2d(16, 4, 1)

    def forward(self, x):
        skip = F.silu(self.norm(self.enter(x)))
        return self.leave(torch.cat([self.up(F.silu(self.down(skip))), skip], dim=1))


@model("pools", rows(4, 13, 13), trains=True)
class Pools(nn.Module):
    def forward(self, x):
        a = F.max_pool2d(x, 3, stride=2, padding=1)
        b = F.avg_pool2d(x, 3, stride=2, padding=1)
        c = F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)
        return (a + b + c).flatten(1), F.adaptive_avg_pool2d(x, (3, 4))


@model("dilated", rows(6, 20), trains=True)
class Dilated(nn.Module):
    """Causal convolutions over time with growing dilation, grouped."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(6, 6, 3, dilation=d, groups=2) for d in (1, 2, 4))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(F.pad(x, (2 * layer.dilation[0], 0))))
        return x


@model("transposed", rows(4, 7, 7))
class Transposed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, dilation=2)

    def forward(self, x):
        return F.interpolate(self.up(x), scale_factor=2, mode="nearest")


@model("resize", rows(3, 9, 9))
class Resize(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=(14, 5), mode="bilinear", align_corners=False) + 1, F.pad(x, (1, 2, 2, 1), mode="reflect")


@model("norms", rows(6, 5, 4), trains=True)
class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.instance, self.layer = nn.InstanceNorm2d(6, affine=True), nn.LayerNorm([5, 4])
        self.group, self.batch = nn.GroupNorm(3, 6), nn.BatchNorm2d(6)

    def forward(self, x):
        return self.batch(self.group(self.layer(self.instance(x))))


@model("vit", rows(3, 16, 16), trains=True)
class ViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.token = nn.Conv2d(3, 16, 4, stride=4), nn.Parameter(torch.zeros(1, 1, 16))
        self.place, self.block, self.head = nn.Parameter(torch.randn(1, 17, 16) / 10), Encoder(16, 2), nn.Linear(16, 4)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.place
        return self.head(self.block(x)[:, 0])


# ---------------------------------------------------------------- sequences


@model("encoder", lambda n: (torch.randn(2, n, 16),), trains=True)
class Encoder(nn.Module):
    """A block with the norms first and nn.MultiheadAttention."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        y = self.one(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed(self.two(x))


@model("decoder", lambda n: (torch.randn(2, n, 16), torch.randn(2, 6, 16)), trains=True)
class Decoder(nn.Module):
    """Causal attention to itself, then attention to the encoder's output."""

    def __init__(self) -> None:
        super().__init__()
        self.own, self.cross = nn.MultiheadAttention(16, 4, batch_first=True), nn.MultiheadAttention(16, 4, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(2))

    def forward(self, x, memory):
        mask = torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), diagonal=1)
        x = self.norms[0](x + self.own(x, x, x, attn_mask=mask, need_weights=False)[0])
        return self.norms[1](x + self.cross(x, memory, memory, need_weights=False)[0])


@model("gpt2", lambda n: (torch.randint(0, 50, (2, n)),), trains=True)
class GPT2(nn.Module):
    """A small whole model: tokens, places, a block, and logits by the tied table."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 16), nn.Embedding(32, 16)
        self.project, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.one, self.two, self.last = nn.LayerNorm(16), nn.LayerNorm(16), nn.LayerNorm(16)
        self.feed = nn.Sequential(nn.Linear(16, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 16))

    def forward(self, tokens):
        b, t = tokens.shape
        x = self.tokens(tokens) + self.places(torch.arange(t))
        q, k, v = (part.view(b, t, 2, 8).transpose(1, 2) for part in self.project(self.one(x)).split(16, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, 16))
        x = x + self.feed(self.two(x))
        return self.last(x) @ self.tokens.weight.T


@model("llama", lambda n: (torch.randn(2, n, 16),), trains=True)
class Llama(nn.Module):
    """A block with RMSNorm, rotary embeddings, grouped queries and SwiGLU."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(16, w, bias=False) for w in (16, 8, 8, 16))
        self.gate, self.up, self.down = nn.Linear(16, 40, bias=False), nn.Linear(16, 40, bias=False), nn.Linear(40, 16, bias=False)
        self.one, self.two = nn.Parameter(torch.ones(16)), nn.Parameter(torch.ones(16))

    @staticmethod
    def normed(x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight

    @staticmethod
    def turned(x):
        angles = torch.outer(torch.arange(x.shape[2]).float(), 10000.0 ** (-torch.arange(0, 4, 2).float() / 4))
        angles = torch.cat([angles, angles], dim=-1)
        half = torch.cat([-x[..., 2:], x[..., :2]], dim=-1)
        return x * angles.cos() + half * angles.sin()

    def forward(self, x):
        b, t, _ = x.shape
        y = self.normed(x, self.one)
        q, k, v = (part(y).view(b, t, -1, 4).transpose(1, 2) for part in (self.q, self.k, self.v))
        z = F.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True, enable_gqa=True)
        x = x + self.o(z.transpose(1, 2).reshape(b, t, 16))
        y = self.normed(x, self.two)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@model("masked_attention", lambda n: (torch.randn(2, 3, n, 8), torch.rand(2, 1, n, n) > 0.2, torch.randn(2, 3, n, n)), trains=True)
class MaskedAttention(nn.Module):
    """By a mask of booleans, and by a bias."""

    def forward(self, x, mask, bias):
        mask = mask | torch.eye(x.shape[2], dtype=torch.bool)
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask) + F.scaled_dot_product_attention(x, x, x, attn_mask=bias, scale=0.3)


@model("lstm", rows(5, 6), trains=True)
class LSTM(nn.Module):
    """A cell written out, over five steps."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(6, 32), nn.Linear(8, 32)

    def forward(self, x):
        h = c = torch.zeros(x.shape[0], 8)
        for step in range(x.shape[1]):
            i, f, g, o = (self.x(x[:, step]) + self.h(h)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


@model("gru", rows(4, 6), trains=True)
class GRU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(6, 24), nn.Linear(8, 24)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 8)
        for step in range(x.shape[1]):
            (a, b, c), (d, e, f) = self.x(x[:, step]).chunk(3, 1), self.h(h).chunk(3, 1)
            z = torch.sigmoid(b + e)
            h = (1 - z) * torch.tanh(c + torch.sigmoid(a + d) * f) + z * h
        return h


@model("mamba", rows(6, 8), trains=True)
class Mamba(nn.Module):
    """A selective scan of a diagonal state, written out over six steps, behind a depthwise convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(8, 8, 3, padding=2, groups=8)
        self.delta, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 4)
        self.log_a, self.skip = nn.Parameter(torch.randn(8, 4) / 4), nn.Parameter(torch.ones(8))

    def forward(self, x):
        u = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        delta, b, c = F.softplus(self.delta(u)), self.b(u), self.c(u)
        decay = torch.exp(delta.unsqueeze(-1) * -torch.exp(self.log_a))
        state, out = torch.zeros(x.shape[0], 8, 4), []
        for step in range(x.shape[1]):
            state = decay[:, step] * state + (delta[:, step] * u[:, step]).unsqueeze(-1) * b[:, step].unsqueeze(1)
            out.append((state * c[:, step].unsqueeze(1)).sum(-1))
        return torch.stack(out, dim=1) + u * self.skip


@model("linear_attention", lambda n: (torch.randn(2, n, 8),), trains=True)
class LinearAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, dim=-1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.cumsum(torch.einsum("btd,bte->btde", k, v), dim=1)
        return torch.einsum("btd,btde->bte", q, kv) / (torch.einsum("btd,btd->bt", q, k.cumsum(1)).unsqueeze(-1) + 1e-6)


# ---------------------------------------------------------------- losses and the rest


@model("losses", lambda n: (torch.randn(n, 7), torch.randint(0, 7, (n,)), torch.randn(n, 7)), trains=True)
class Losses(nn.Module):
    def forward(self, x, labels, other):
        one = F.cross_entropy(x, labels, label_smoothing=0.1) + F.nll_loss(F.log_softmax(x, 1), labels) + F.mse_loss(x, other)
        two = F.smooth_l1_loss(x, other) + F.binary_cross_entropy_with_logits(x, torch.sigmoid(other)) + F.huber_loss(x, other)
        three = F.kl_div(F.log_softmax(x, 1), F.softmax(other, 1), reduction="batchmean") + F.cosine_embedding_loss(
            x, other, labels.sign() * 2 - 1
        )
        return one + two + three + F.l1_loss(x, other) + F.margin_ranking_loss(x, other, torch.ones_like(x))


@model("indexing", lambda n: (torch.randn(n, 9), torch.randint(0, 9, (n, 4))), trains=True)
class Indexing(nn.Module):
    def forward(self, x, at):
        picked = x.gather(1, at)
        added = torch.zeros_like(x).scatter_add(1, at, picked)
        return added.flip(1) + torch.roll(x, 2, dims=1), x[:, [3, 1]], x.masked_fill(x > 1, 0.5), torch.where(x > 0, x, x.exp())


@model("orders", rows(11))
class Orders(nn.Module):
    def forward(self, x):
        values, places = torch.sort(x, dim=-1, descending=True)
        return values, places, x.argmax(-1), x.max(dim=1).values, torch.topk(x, 3, largest=False).values, x.cumsum(1), x.std(1), x.amin(1)


@model("mixed_precision", rows(16), trains=True, within=torch.bfloat16)
class MixedPrecision(nn.Module):
    """bf16 inside, f32 outside."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(16, 32, dtype=torch.bfloat16), nn.Linear(32, 8, dtype=torch.bfloat16)

    def forward(self, x):
        y = F.gelu(self.one(x.bfloat16())) * 1.1
        return F.softmax(self.two(F.layer_norm(y, (32,))), dim=-1).float()


@model("positions", lambda n: (torch.randn(2, n, 8),))
class Positions(nn.Module):
    """Sines of places, and distances that are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 1)

    def forward(self, x):
        t = x.shape[1]
        steps = torch.arange(t, dtype=torch.float32).unsqueeze(1) * torch.exp(torch.arange(0, 8, 2) * (-math.log(1e4) / 8))
        waves = torch.stack([steps.sin(), steps.cos()], dim=-1).flatten(1)
        apart = (torch.arange(t)[:, None] - torch.arange(t)[None]).clamp(-4, 4) + 4
        return torch.softmax(x @ x.transpose(1, 2) / math.sqrt(t) + self.table(apart).squeeze(-1), -1) @ (x + waves)
