"""The blocks of issue 4 as torch modules, with inputs: what `gpu` gives to torch, to torch.compile and, as ONNX, to coset.

Each block has a size that fills a GPU and a tiny one for a dry run. Weights are drawn; attention is torch's function, which its own fused
kernels compute, and which exporters write out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Block:
    """A module in evaluation mode with named inputs, in `dtype`."""

    module: nn.Module
    inputs: dict[str, Tensor]


class Mlp(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Heads turned by their positions (Su et al., 2021), halves beside each other."""
    low, high = x.chunk(2, -1)
    return x * cosine + torch.cat([-high, low], -1) * sine


class Attention(nn.Module):
    """Softmax attention of `heads` queries on `groups` keys; with rotated positions, and of what came before, where `rotary`."""

    def __init__(self, width: int, heads: int, groups: int, *, bias: bool, rotary: int = 0) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q = nn.Linear(width, width, bias=bias)
        self.k, self.v = (nn.Linear(width, groups * self.size, bias=bias) for _ in range(2))
        self.o = nn.Linear(width, width, bias=bias)
        self.rotary = rotary
        if rotary:
            angles = torch.outer(torch.arange(rotary).float(), 10000.0 ** (-torch.arange(0, self.size, 2).float() / self.size))
            self.register_buffer("cosine", torch.cat([angles, angles], -1).cos())
            self.register_buffer("sine", torch.cat([angles, angles], -1).sin())

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(x.shape[0], x.shape[1], heads, self.size).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.q(x), self.heads), self.split(self.k(x), self.groups), self.split(self.v(x), self.groups)
        if self.rotary:
            q, k = (rotated(y, self.cosine, self.sine) for y in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=bool(self.rotary), enable_gqa=self.groups != self.heads)
        return self.o(y.transpose(1, 2).reshape(x.shape))


class Transformer(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.mlp = Attention(width, heads, heads, bias=True), Mlp(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.scale


class Llama(nn.Module):
    def __init__(self, width: int, heads: int, groups: int, hidden: int, length: int) -> None:
        super().__init__()
        self.first, self.second = RmsNorm(width), RmsNorm(width)
        self.attention = Attention(width, heads, groups, bias=False, rotary=length)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def trained_norms(*channels: int) -> nn.ModuleList:
    """Batch normalizations of trained networks: statistics that are not those of fresh ones."""
    norms = nn.ModuleList(nn.BatchNorm2d(each) for each in channels)
    for norm in norms:
        norm.running_mean.normal_(0, 0.1)
        norm.running_var.uniform_(0.5, 1.5)
    return norms


class Bottleneck(nn.Module):
    """A residual block of a ResNet (He et al., 2016), the stride in the 3 x 3 convolution; a projection where sizes change."""

    def __init__(self, channels: int, inner: int, outer: int, stride: int = 1) -> None:
        super().__init__()
        sizes = ((channels, inner, 1, 1), (inner, inner, 3, stride), (inner, outer, 1, 1))
        self.convolutions = nn.ModuleList(nn.Conv2d(i, o, k, s, k // 2, bias=False) for i, o, k, s in sizes)
        self.norms = trained_norms(*(o for _, o, _, _ in sizes))
        projected = stride > 1 or channels != outer
        self.projection = nn.Sequential(nn.Conv2d(channels, outer, 1, stride, bias=False), *trained_norms(outer)) if projected else None

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for place, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            y = norm(convolution(y))
            y = F.relu(y) if place < 2 else y
        return F.relu((x if self.projection is None else self.projection(x)) + y)


class UNet(nn.Module):
    """A residual block of a U-Net: GroupNorm, SiLU and convolutions, with a time embedding."""

    def __init__(self, channels: int, time: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(8, channels) for _ in range(2))
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(time, channels)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        y = self.convolutions[0](F.silu(self.norms[0](x))) + self.time(F.silu(t))[:, :, None, None]
        return x + self.convolutions[1](F.silu(self.norms[1](y)))


class Dlrm(nn.Module):
    """Embeddings of sparse features, an MLP of dense ones, their products, an MLP on top (Naumov et al., 2019)."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 4 * width), nn.ReLU(), nn.Linear(4 * width, width), nn.ReLU())
        count = tables + 1
        self.register_buffer("lower", torch.tensor([i * count + j for i in range(count) for j in range(i)]))
        self.top = nn.Sequential(nn.Linear(width + len(self.lower), 4 * width), nn.ReLU(), nn.Linear(4 * width, 1))

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        x = self.bottom(dense)
        rows = [x[:, None], *(table(sparse[:, i : i + 1]) for i, table in enumerate(self.tables))]
        features = torch.cat(rows, 1)
        products = (features @ features.transpose(1, 2)).flatten(1)
        return torch.sigmoid(self.top(torch.cat([x, products[:, self.lower]], 1)))


class Classifier(nn.Module):
    def __init__(self, *widths: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(widths))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class Step(nn.Module):
    """Loss, gradients and new weights as one forward graph: what `make_fx` recorded, with the weights as parameters."""

    def __init__(self, graph: Any, parameters: list[Tensor]) -> None:
        super().__init__()
        self.graph = graph
        self.weights = nn.ParameterList([nn.Parameter(each.detach().clone()) for each in parameters])

    def forward(self, x: Tensor, y: Tensor) -> Any:
        return self.graph(list(self.weights), x, y)


def training_step(model: nn.Module, x: Tensor, y: Tensor) -> Step:
    """A step of gradient descent on the cross entropy of `model`."""
    from torch._decomp import core_aten_decompositions
    from torch.fx.experimental.proxy_tensor import make_fx

    names = [name for name, _ in model.named_parameters()]
    parameters = [each.detach() for each in model.parameters()]

    def loss(given: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
        logits = torch.func.functional_call(model, dict(zip(names, given, strict=True)), (x,))
        return -(logits.log_softmax(-1) * y).sum(-1).mean()

    def step(given: list[Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        gradients, value = torch.func.grad_and_value(loss)(given, x, y)
        return (value, *(old - 0.1 * slope for old, slope in zip(given, gradients, strict=True)))

    return Step(make_fx(step, decomposition_table=core_aten_decompositions())(parameters, x, y), parameters)


# ---------------------------------------------------------------- the blocks by name


def mlp(tiny: bool) -> Block:
    rows, width = (6, 32) if tiny else (8192, 4096)
    return Block(Mlp(width, 2 * width if tiny else 4 * width).half(), {"x": torch.randn(rows, width).half()})


def transformer(tiny: bool) -> Block:
    batch, length, width, heads = (2, 6, 32, 4) if tiny else (16, 512, 1024, 16)
    return Block(Transformer(width, heads, 2 * width if tiny else 4 * width).half(), {"x": torch.randn(batch, length, width).half()})


def llama(tiny: bool) -> Block:
    length, width, heads, groups, hidden = (6, 32, 4, 2, 48) if tiny else (2048, 4096, 32, 8, 14336)
    return Block(Llama(width, heads, groups, hidden, length).half(), {"x": torch.randn(1, length, width).half()})


def bottleneck(tiny: bool) -> Block:
    batch, channels, inner, size = (2, 16, 4, 5) if tiny else (64, 256, 64, 56)
    return Block(Bottleneck(channels, inner, channels).half(), {"x": torch.randn(batch, channels, size, size).half()})


def unet(tiny: bool) -> Block:
    batch, channels, size = (2, 16, 6) if tiny else (16, 320, 64)
    inputs = {"x": torch.randn(batch, channels, size, size).half(), "t": torch.randn(batch, 4 * channels).half()}
    return Block(UNet(channels, 4 * channels).half(), inputs)


def dlrm(tiny: bool) -> Block:
    batch, tables, rows, width = (3, 3, 20, 8) if tiny else (8192, 26, 20000, 64)
    inputs = {"dense": torch.randn(batch, 13), "sparse": torch.randint(0, rows, (batch, tables))}
    return Block(Dlrm(tables, rows, width), inputs)


def train(tiny: bool) -> Block:
    batch, widths = (4, (12, 16, 5)) if tiny else (4096, (1024, 2048, 2048, 100))
    x, y = torch.randn(batch, widths[0]), F.one_hot(torch.randint(0, widths[-1], (batch,)), widths[-1]).float()
    return Block(training_step(Classifier(*widths), x, y), {"x": x, "y": y})


BLOCKS: dict[str, Callable[[bool], Block]] = {make.__name__: make for make in (mlp, transformer, llama, bottleneck, unet, dlrm, train)}


def drawn(name: str, make: Callable[[bool], Block], *, tiny: bool) -> Block:
    """What `make` makes, the same at each call for one name, in evaluation mode and without gradients."""
    torch.manual_seed(sum(map(ord, name)))
    with torch.no_grad():
        made = make(tiny)
    made.module.eval().requires_grad_(False)
    return made
