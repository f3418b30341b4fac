"""Blocks and networks of today at their published sizes, as ONNX models: what exporters write of them, seeded random weights.

The weights of the two largest would take 26 and 6 GB. There, weights above 1 MiB are windows of one file of random numbers, each at a
place of its own: no two are equal, none is of one value, and coset tells them apart by their places without reading them. So nothing
can be merged or left out that could not be with weights of their own. They are to be optimized and priced; to run them takes all of
their memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.stacks import Builder

INLINE_BYTES = 1 << 20
STEP = 1 << 16
"""Bytes from one window to the next; a multiple of the page, so that a runtime can map them."""
SPREAD = 4096**-0.5
"""Standard deviation of the numbers in the file: what keeps a product 4096 deep at the size of its operand."""


class Windows(Builder):
    """A builder whose weights above 1 MiB are windows of a file of random numbers, `location` beside the model."""

    def __init__(self, location: str, seed: int = 0) -> None:
        super().__init__(seed)
        self.bytes = 0
        self._location, self._count = location, 0

    def weight(self, *shape: int, share: float = 1.0) -> str:
        """A fresh weight; of a long one the numbers spread as all in the file do."""
        length = 4 * math.prod(shape)
        if length <= INLINE_BYTES:
            return super().weight(*shape, share=share)
        tensor = TensorProto(name=f"w{len(self.tensors)}", data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self._location), ("offset", STEP * self._count), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        self.tensors.append(tensor)
        self.bytes = max(self.bytes, STEP * self._count + length)
        self._count += 1
        return tensor.name

    def model(self, output: str, shape: tuple[int, ...]) -> onnx.ModelProto:  # type: ignore[override]
        """The finished model, not yet checked: that takes its file of numbers."""
        return self._proto(output, shape)

    def write_numbers(self, folder: Path) -> None:
        """Write the file of random numbers, where there are windows."""
        if self.bytes:
            (np.random.default_rng(0).standard_normal(self.bytes // 4, np.float32) * np.float32(SPREAD)).tofile(folder / self._location)


def _ints(b: Builder, *values: int) -> str:
    return b.number(list(values), np.int64)


def _heads(b: Builder, x: str, tokens: int, heads: int, size: int) -> str:
    return b.node("Transpose", b.node("Reshape", x, _ints(b, 1, tokens, heads, size)), perm=[0, 2, 1, 3])


def _mixed(b: Builder, q: str, k: str, v: str, mask: str | None = None) -> str:
    """Softmax of q kT, masked, times v: of heads that are scaled already, as [1, tokens, heads, size]."""
    scores = b.node("MatMul", q, b.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = scores if mask is None else b.node("Add", scores, mask)
    return b.node("Transpose", b.node("MatMul", b.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])


def _layer_norm(b: Builder, x: str, width: int) -> str:
    return b.node("LayerNormalization", x, b.weight(width), b.weight(width), axis=-1, epsilon=1e-5)


def _rms_norm(b: Builder, x: str, width: int) -> str:
    mean = b.node("ReduceMean", b.node("Mul", x, x), _ints(b, -1), keepdims=1)
    root = b.node("Reciprocal", b.node("Sqrt", b.node("Add", mean, b.number(1e-5))))
    return b.node("Mul", b.weight(width), b.node("Mul", x, root))


def _gelu(b: Builder, x: str) -> str:
    inner = b.node("Add", b.node("Erf", b.node("Div", x, b.number(2**0.5))), b.number(1))
    return b.node("Mul", b.node("Mul", x, inner), b.number(0.5))


def _silu(b: Builder, x: str) -> str:
    return b.node("Mul", x, b.node("Sigmoid", x))


def _gated(b: Builder, x: str, width: int, hidden: int) -> str:
    gate, up = b.linear(x, width, hidden, bias=False), b.linear(x, width, hidden, bias=False)
    return b.linear(b.node("Mul", _silu(b, gate), up), hidden, width, bias=False)


@dataclass(frozen=True)
class Rotary:
    """What all layers of a decoder share: tables of rotary positions as [tokens, size] and the causal mask as [tokens, tokens]."""

    cosine: str
    sine: str
    mask: str

    @staticmethod
    def of(b: Builder, tokens: int, size: int, base: float = 1e4) -> Rotary:
        """The constants that an exporter leaves of them where the number of tokens is fixed."""
        angles = np.arange(tokens)[:, None] * base ** (-np.arange(0, size, 2) / size)
        angles = np.concatenate([angles, angles], 1)
        later = np.triu(np.full((tokens, tokens), np.finfo(np.float32).min, np.float32), 1)
        return Rotary(b.number(np.cos(angles)), b.number(np.sin(angles)), b.number(later))

    def turned(self, b: Builder, x: str, size: int) -> str:
        """The heads `x` turned by their positions."""
        low, high = (
            b.node("Slice", x, _ints(b, start), _ints(b, stop), _ints(b, 3)) for start, stop in pairwise((0, size // 2, size))
        )  # fmt: skip
        half = b.node("Concat", b.node("Neg", high), low, axis=-1)
        return b.node("Add", b.node("Mul", x, self.cosine), b.node("Mul", half, self.sine))

    def attention(self, b: Builder, x: str, tokens: int, width: int, heads: int, keys: int) -> str:
        """Causal attention of `heads` heads that share `keys` keys and values, which are repeated as exporters do."""
        size = width // heads
        q, k, v = (_heads(b, b.linear(x, width, n * size, bias=False), tokens, n, size) for n in (heads, keys, keys))
        q, k = self.turned(b, q, size), self.turned(b, k, size)
        if keys < heads:
            k, v = (self._repeated(b, each, (tokens, heads, keys, size)) for each in (k, v))
        mixed = _mixed(b, b.node("Div", q, b.number(size**0.5)), k, v, self.mask)
        return b.linear(b.node("Reshape", mixed, _ints(b, 1, tokens, width)), width, width, bias=False)

    def _repeated(self, b: Builder, x: str, sizes: tuple[int, int, int, int]) -> str:
        tokens, heads, keys, size = sizes
        wide = b.node("Expand", b.node("Unsqueeze", x, _ints(b, 2)), _ints(b, 1, keys, heads // keys, tokens, size))
        return b.node("Reshape", wide, _ints(b, 1, heads, tokens, size))


def llama(
    b: Builder, *, layers: int = 32, width: int = 4096, heads: int = 32, hidden: int = 11008, words: int = 32000, tokens: int = 128
) -> onnx.ModelProto:
    """Llama 2 (Touvron et al., 2023, 7B): RMS normalization first, rotary positions, SiLU gates, from ids to logits."""
    x = b.node("Gather", b.weight(words, width), b.input("ids", 1, tokens, dtype=TensorProto.INT64), axis=0)
    rotary = Rotary.of(b, tokens, width // heads)
    for _ in range(layers):
        x = b.node("Add", x, rotary.attention(b, _rms_norm(b, x, width), tokens, width, heads, heads))
        x = b.node("Add", x, _gated(b, _rms_norm(b, x, width), width, hidden))
    return b.model(b.linear(_rms_norm(b, x, width), width, words, bias=False), (1, tokens, words))


def mixtral_block(
    b: Builder, *, width: int = 4096, heads: int = 32, keys: int = 8, hidden: int = 14336, experts: int = 8, top: int = 2, tokens: int = 128
) -> onnx.ModelProto:
    """A layer of Mixtral 8x7B (Jiang et al., 2024): grouped queries; each token goes to the two of eight experts that the router prefers.

    As exporters write it without control flow: every expert works on every token, weighed by 0 where it was not chosen.
    """
    x = b.input("x", 1, tokens, width)
    rotary = Rotary.of(b, tokens, width // heads, 1e6)
    x = b.node("Add", x, rotary.attention(b, _rms_norm(b, x, width), tokens, width, heads, keys))
    y = b.node("Reshape", _rms_norm(b, x, width), _ints(b, tokens, width))
    chances = b.node("Softmax", b.linear(y, width, experts, bias=False), axis=-1)
    best, places = b.results("TopK", chances, _ints(b, top), count=2, axis=-1, largest=1, sorted=1)
    best = b.node("Div", best, b.node("ReduceSum", best, _ints(b, -1), keepdims=1))
    hot = b.node("OneHot", places, b.number(experts, np.int64), b.number([0, 1]), axis=-1)  # [tokens, top, experts]
    shares = b.node("ReduceSum", b.node("Mul", hot, b.node("Unsqueeze", best, _ints(b, -1))), _ints(b, 1), keepdims=0)
    total = ""
    for expert in range(experts):
        share = b.node("Gather", shares, _ints(b, expert), axis=1)
        weighed = b.node("Mul", _gated(b, y, width, hidden), share)
        total = b.node("Add", total, weighed) if total else weighed
    return b.model(b.node("Add", x, b.node("Reshape", total, _ints(b, 1, tokens, width))), (1, tokens, width))


def whisper_encoder(
    b: Builder, *, layers: int = 6, width: int = 512, heads: int = 8, bins: int = 80, frames: int = 3000
) -> onnx.ModelProto:
    """The encoder of Whisper (Radford et al., 2022, base): two convolutions, fixed positions, normalization first, keys without bias."""
    x, tokens, size = b.input("mel", 1, bins, frames), frames // 2, width // heads
    for inputs, stride in ((bins, 1), (width, 2)):
        x = b.node("Conv", x, b.weight(width, inputs, 3), b.weight(width), kernel_shape=[3], pads=[1, 1], strides=[stride])
        x = _gelu(b, x)
    angles = np.arange(tokens)[:, None] * np.exp(-math.log(1e4) / (width // 2 - 1) * np.arange(width // 2))
    x = b.node("Transpose", x, perm=[0, 2, 1])
    x = b.node("Add", x, b.number(np.concatenate([np.sin(angles), np.cos(angles)], 1)))
    for _ in range(layers):
        y = _layer_norm(b, x, width)
        q = b.node("Mul", b.linear(y, width, width), b.number(size**-0.5))
        k, v = b.linear(y, width, width, bias=False), b.linear(y, width, width)
        mixed = _mixed(b, *(_heads(b, each, tokens, heads, size) for each in (q, k, v)))
        x = b.node("Add", x, b.linear(b.node("Reshape", mixed, _ints(b, 1, tokens, width)), width, width))
        x = b.node("Add", x, b.linear(_gelu(b, b.linear(_layer_norm(b, x, width), width, 4 * width)), 4 * width, width))
    return b.model(_layer_norm(b, x, width), (1, tokens, width))


def _group_norm(b: Builder, x: str, channels: int, side: int, groups: int) -> str:
    """As exporters write it: an instance normalization of groups, then scale and bias of channels."""
    ones, zeros = b.number(np.ones(groups)), b.number(np.zeros(groups))
    flat = b.node("Reshape", x, _ints(b, 1, groups, -1))
    normal = b.node("InstanceNormalization", flat, ones, zeros, epsilon=1e-5)
    normal = b.node("Reshape", normal, _ints(b, 1, channels, side, side))
    return b.node("Add", b.node("Mul", normal, b.weight(channels, 1, 1)), b.weight(channels, 1, 1))


def _convolution(b: Builder, x: str, channels: int, size: int) -> str:
    weight, bias = b.weight(channels, channels, size, size), b.weight(channels)
    return b.node("Conv", x, weight, bias, kernel_shape=[size] * 2, pads=[size // 2] * 4)


def unet_block(
    b: Builder,
    *,
    channels: int = 640,
    side: int = 32,
    heads: int = 8,
    groups: int = 32,
    time: int = 1280,
    words: int = 77,
    context: int = 768,
) -> onnx.ModelProto:
    """The second level of Stable Diffusion's U-Net (Rombach et al., 2022): a residual block with the time's embedding, then a transformer
    of self-attention, attention to the text and a gated perceptron."""
    x, tokens, size = b.input("x", 1, channels, side, side), side * side, channels // heads
    hour, text = b.input("time", 1, time), b.input("text", 1, words, context)
    y = _convolution(b, _silu(b, _group_norm(b, x, channels, side, groups)), channels, 3)
    y = b.node("Add", y, b.node("Unsqueeze", b.linear(_silu(b, hour), time, channels), _ints(b, 2, 3)))
    x = b.node("Add", x, _convolution(b, _silu(b, _group_norm(b, y, channels, side, groups)), channels, 3))
    y = _convolution(b, _group_norm(b, x, channels, side, groups), channels, 1)
    y = b.node("Reshape", b.node("Transpose", y, perm=[0, 2, 3, 1]), _ints(b, 1, tokens, channels))
    for cross in (False, True):
        z = _layer_norm(b, y, channels)
        source, width, count = (text, context, words) if cross else (z, channels, tokens)
        q = b.node("Mul", b.linear(z, channels, channels, bias=False), b.number(size**-0.5))
        k, v = (b.linear(source, width, channels, bias=False) for _ in range(2))
        mixed = _mixed(b, _heads(b, q, tokens, heads, size), *(_heads(b, each, count, heads, size) for each in (k, v)))
        y = b.node("Add", y, b.linear(b.node("Reshape", mixed, _ints(b, 1, tokens, channels)), channels, channels))
    wide = b.linear(_layer_norm(b, y, channels), channels, 8 * channels)
    up, gate = b.results("Split", wide, _ints(b, 4 * channels, 4 * channels), count=2, axis=-1)
    y = b.node("Add", y, b.linear(b.node("Mul", up, _gelu(b, gate)), 4 * channels, channels))
    y = b.node("Transpose", b.node("Reshape", y, _ints(b, 1, side, side, channels)), perm=[0, 3, 1, 2])
    return b.model(b.node("Add", x, _convolution(b, y, channels, 1)), (1, channels, side, side))


def mamba_block(b: Builder, *, width: int = 768, states: int = 16, rank: int = 48, window: int = 4, tokens: int = 32) -> onnx.ModelProto:
    """A block of Mamba (Gu and Dao, 2023, 130M): a causal convolution by channel, a selective scan whose steps are written out, a gate."""
    x, inner = b.input("x", 1, tokens, width), 2 * width
    wide = b.linear(_rms_norm(b, x, width), width, 2 * inner, bias=False)
    u, gate = b.results("Split", b.node("Transpose", wide, perm=[0, 2, 1]), _ints(b, inner, inner), count=2, axis=1)
    u = b.node("Conv", u, b.weight(inner, 1, window), b.weight(inner), kernel_shape=[window], pads=[window - 1] * 2, group=inner)
    u = _silu(b, b.node("Slice", u, _ints(b, 0), _ints(b, tokens), _ints(b, 2)))  # [1, inner, tokens]
    chosen = b.linear(b.node("Transpose", u, perm=[0, 2, 1]), inner, rank + 2 * states, bias=False)
    pace, into, out = b.results("Split", chosen, _ints(b, rank, states, states), count=3, axis=-1)
    pace = b.node("Transpose", b.node("Softplus", b.linear(pace, rank, inner)), perm=[0, 2, 1])  # [1, inner, tokens]
    decay = b.node("Neg", b.node("Exp", b.weight(inner, 1, states)))
    each = b.node("Unsqueeze", pace, _ints(b, 3))
    kept = b.node("Exp", b.node("Mul", decay, each))  # [1, inner, tokens, states]
    added = b.node("Mul", each, b.node("Unsqueeze", into, _ints(b, 1)))
    added = b.node("Mul", added, b.node("Unsqueeze", u, _ints(b, 3)))
    state, steps = b.number(np.zeros((1, inner, states))), []
    for token in range(tokens):
        one = b.number(token, np.int64)
        state = b.node("Add", b.node("Mul", b.node("Gather", kept, one, axis=2), state), b.node("Gather", added, one, axis=2))
        read = b.node("MatMul", state, b.node("Unsqueeze", b.node("Gather", out, one, axis=1), _ints(b, -1)))
        steps.append(read)
    y = b.node("Add", b.node("Concat", *steps, axis=-1), b.node("Mul", u, b.weight(inner, 1)))
    y = b.node("Transpose", b.node("Mul", y, _silu(b, gate)), perm=[0, 2, 1])
    return b.model(b.node("Add", x, b.linear(y, inner, width, bias=False)), (1, tokens, width))


@dataclass(frozen=True)
class Model:
    """How a model is made, and its sizes in words. `windows`: its weights would take more than a disk or a machine of ours has to spare."""

    make: Callable[..., onnx.ModelProto]
    sizes: str
    windows: bool = False


MODELS: dict[str, Model] = {
    "llama2_7b": Model(llama, "32 layers, width 4096, 32 heads, gates 11008, 32000 words, 128 tokens", windows=True),
    "mixtral_block": Model(
        mixtral_block, "one layer, width 4096, 32 heads on 8 keys, 2 of 8 experts of 14336, 128 tokens, every expert on every token",
        windows=True,
    ),
    "unet_block": Model(unet_block, "640 channels, 32 x 32, 8 heads, 77 words of width 768, time of width 1280"),
    "whisper_base": Model(whisper_encoder, "6 layers, width 512, 8 heads, 80 bins, 3000 frames"),
    "mamba_block": Model(mamba_block, "width 768, 16 states, rank 48, window 4, 32 tokens written out"),
}  # fmt: skip


def build(name: str, folder: Path) -> Path:
    """Write the model `name` at its full size into `folder`, and its file of numbers where it has one."""
    model, path = MODELS[name], folder / f"{name}.onnx"
    b = Windows(f"{name}.numbers") if model.windows else Builder()
    proto = model.make(b)
    if isinstance(b, Windows):
        b.write_numbers(folder)
    onnx.save(proto, path)
    onnx.checker.check_model(str(path))
    return path
