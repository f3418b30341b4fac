"""The programs of issue 10, line 4, as torch modules in half precision: what `gpu` gives to torch.compile and, as ONNX, to coset.

Whole networks at their published sizes, or one or two layers of those whose layers are alike; inference, weights drawn.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.gpu_modules import Attention, Block, Bottleneck, Llama, Mlp, RmsNorm, Transformer, dlrm, mlp, rotated, trained_norms, unet


class Bert(nn.Module):
    """Encoder layers that normalize behind their sums (Devlin et al., 2019), on hidden states."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.ModuleList(Attention(width, heads, heads, bias=True) for _ in range(layers))
        self.mlp = nn.ModuleList(Mlp(width, 4 * width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))

    def forward(self, x: Tensor) -> Tensor:
        for place, (attention, inner) in enumerate(zip(self.attention, self.mlp, strict=True)):
            x = self.norms[2 * place](x + attention(x))
            x = self.norms[2 * place + 1](x + inner(x))
        return x


class ViT(nn.Module):
    """Patches, a class token, positions, layers that normalize first, a head (Dosovitskiy et al., 2021)."""

    def __init__(self, layers: int, width: int, heads: int, pixels: int, patch: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (pixels // patch) ** 2 + 1, width) * 0.02)
        self.layers = nn.Sequential(*(Transformer(width, heads, 4 * width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.patches(x).flatten(2).transpose(1, 2)
        rows = torch.cat([self.token.expand(x.shape[0], -1, -1), rows], 1) + self.positions
        return self.head(self.norm(self.layers(rows))[:, 0])


class ResNet(nn.Module):
    """Stages of bottlenecks, of which the first ones halve the picture."""

    def __init__(self, depths: tuple[int, ...], width: int, classes: int) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), trained_norms(width)
        channels, blocks = width, []
        for stage, depth in enumerate(depths):
            inner = width * 2**stage
            for place in range(depth):
                blocks.append(Bottleneck(channels, inner, 4 * inner, 2 if stage and not place else 1))
                channels = 4 * inner
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norm[0](self.stem(x))), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class Decoder(nn.Module):
    """A token of Llama after those in a cache: one layer (Grattafiori et al., 2024), whose new keys and values are results, too."""

    def __init__(self, width: int, heads: int, groups: int, hidden: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.first, self.second = RmsNorm(width), RmsNorm(width)
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(x.shape[0], 1, heads, self.size).transpose(1, 2)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.first(x)
        q, k, v = self.split(self.q(y), self.heads), self.split(self.k(y), self.groups), self.split(self.v(y), self.groups)
        q, k = (rotated(y, cosine, sine) for y in (q, k))
        all_keys, all_values = (torch.cat([old, new], 2) for old, new in ((keys, k), (values, v)))
        y = F.scaled_dot_product_attention(q, all_keys, all_values, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), k, v


class Experts(nn.Module):
    """A mixture of gated experts (Jiang et al., 2024), two for each token, whose weights are gathered: the form for few tokens."""

    def __init__(self, experts: int, width: int, hidden: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.gate, self.up = (nn.Parameter(torch.randn(experts, hidden, width) * width**-0.5) for _ in range(2))
        self.down = nn.Parameter(torch.randn(experts, width, hidden) * hidden**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        shares, chosen = torch.topk(F.softmax(self.router(x).float(), -1), 2, -1)
        shares = (shares / shares.sum(-1, keepdim=True)).to(x.dtype)
        y = x[:, None, :, None]
        inner = F.silu(self.gate[chosen] @ y) * (self.up[chosen] @ y)
        return ((self.down[chosen] @ inner)[..., 0] * shares[..., None]).sum(1)


class Mamba(nn.Module):
    """A block of Mamba-2 (Dao and Gu, 2024): projection, causal convolution, state spaces in chunks as products, gate, normalization."""

    def __init__(self, width: int, heads: int, size: int, state: int, chunk: int) -> None:
        super().__init__()
        self.heads, self.size, self.state, self.chunk = heads, size, state, chunk
        self.inner = heads * size
        self.enter = nn.Linear(width, 2 * self.inner + 2 * state + heads, bias=False)
        channels = self.inner + 2 * state
        self.convolution = nn.Conv1d(channels, channels, 4, groups=channels, padding=3)
        self.rate = nn.Parameter(torch.rand(heads))
        self.offset, self.skip = nn.Parameter(torch.rand(heads)), nn.Parameter(torch.rand(heads, 1))
        self.norm, self.leave = RmsNorm(self.inner), nn.Linear(self.inner, width, bias=False)
        self.register_buffer("before", torch.ones(chunk, chunk, dtype=torch.bool).tril())

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        gate, rows, steps = self.enter(x).split([self.inner, self.inner + 2 * self.state, self.heads], -1)
        rows = F.silu(self.convolution(rows.transpose(1, 2))[..., :length]).transpose(1, 2)
        values, inward, outward = rows.split([self.inner, self.state, self.state], -1)
        steps = F.softplus((steps + self.offset).float())
        y = self.mixed(values.view(batch, length, self.heads, self.size), steps, inward, outward)
        return self.leave(self.norm(y.reshape(batch, length, self.inner) * F.silu(gate)))

    def mixed(self, values: Tensor, steps: Tensor, inward: Tensor, outward: Tensor) -> Tensor:
        """The state space: inside a chunk as a masked product, between chunks by the states that they leave."""
        batch, length = values.shape[:2]
        chunks, chunk = length // self.chunk, self.chunk
        decay = (steps * -self.rate.float().exp()).view(batch, chunks, chunk, self.heads).permute(0, 3, 1, 2).cumsum(-1)
        scaled = values * steps.to(values.dtype)[..., None]
        scaled = scaled.view(batch, chunks, chunk, self.heads, self.size).permute(0, 3, 1, 2, 4)
        b, c = (each.view(batch, 1, chunks, chunk, self.state) for each in (inward, outward))
        within = torch.where(self.before, (decay[..., :, None] - decay[..., None, :]).exp(), 0.0).to(values.dtype)
        y = ((c @ b.transpose(-1, -2)) * within) @ scaled
        left = (decay[..., -1:] - decay).exp().to(values.dtype)[..., None]
        states = (b.transpose(-1, -2) @ (scaled * left)).flatten(-2)
        ends = decay[..., -1].cumsum(-1)
        apart = ends[..., :, None] - decay[..., -1][..., :, None] - ends[..., None, :]
        mask = torch.ones(chunks, chunks, dtype=torch.bool, device=values.device).tril(-1)
        carried = torch.where(mask, apart.exp(), 0.0).to(values.dtype) @ states
        carried = carried.view(batch, self.heads, chunks, self.state, self.size)
        y = y + (c @ carried) * decay.exp().to(values.dtype)[..., None]
        y = y.permute(0, 2, 3, 1, 4).reshape(batch, length, self.heads, self.size)
        return y + values * self.skip


# ---------------------------------------------------------------- the programs by name


def bert(tiny: bool) -> Block:
    layers, batch, length, width, heads = (2, 2, 6, 32, 4) if tiny else (12, 16, 512, 768, 12)
    return Block(Bert(layers, width, heads).half(), {"x": torch.randn(batch, length, width).half()})


def llama_prefill(tiny: bool) -> Block:
    layers, length, width, heads, groups, hidden = (2, 6, 32, 4, 2, 48) if tiny else (2, 2048, 4096, 32, 8, 14336)
    layer = nn.Sequential(*(Llama(width, heads, groups, hidden, length) for _ in range(layers)))
    return Block(layer.half(), {"x": torch.randn(1, length, width).half()})


def llama_decode(tiny: bool) -> Block:
    batch, length, width, heads, groups, hidden = (2, 5, 32, 4, 2, 48) if tiny else (8, 4095, 4096, 32, 8, 14336)
    size = width // heads
    angle = torch.cat(2 * [length * 10000.0 ** (-torch.arange(0, size, 2).float() / size)])
    inputs = {"x": torch.randn(batch, 1, width)} | {name: torch.randn(batch, groups, length, size) for name in ("keys", "values")}
    inputs |= {"cosine": angle.cos(), "sine": angle.sin()}
    return Block(Decoder(width, heads, groups, hidden).half(), {name: value.half() for name, value in inputs.items()})


def vit(tiny: bool) -> Block:
    layers, batch, pixels, patch, width, heads = (2, 2, 16, 8, 32, 4) if tiny else (12, 64, 224, 16, 768, 12)
    return Block(ViT(layers, width, heads, pixels, patch, 1000).half(), {"x": torch.randn(batch, 3, pixels, pixels).half()})


def resnet50(tiny: bool) -> Block:
    depths, width, batch, pixels = ((1, 1), 8, 2, 32) if tiny else ((3, 4, 6, 3), 64, 64, 224)
    return Block(ResNet(depths, width, 1000).half(), {"x": torch.randn(batch, 3, pixels, pixels).half()})


def moe(tiny: bool) -> Block:
    tokens, experts, width, hidden = (3, 4, 16, 24) if tiny else (8, 8, 4096, 14336)
    return Block(Experts(experts, width, hidden).half(), {"x": torch.randn(tokens, width).half()})


def mamba(tiny: bool) -> Block:
    batch, length, width, heads, size, state, chunk = (2, 12, 16, 2, 8, 8, 4) if tiny else (8, 2048, 1024, 32, 64, 128, 64)
    return Block(Mamba(width, heads, size, state, chunk).half(), {"x": torch.randn(batch, length, width).half()})


MODELS = {make.__name__: make for make in (mlp, bert, llama_prefill, llama_decode, vit, resnet50, unet, dlrm, moe, mamba)}
