"""Entries of PaddlePaddle through paddle2onnx; run in an environment of its own: paddlepaddle 3.3, paddle2onnx 2.1."""

# ruff: noqa: E501
from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import paddle
import paddle.nn.functional as F
from common import save_onnx
from header import ATTENTION, PROJECTED, ROOT, B, D, H, L
from paddle import nn


@dataclass(frozen=True)
class Case:
    """A layer (made when it is exported) over inputs of the given shapes (-1: a symbol)."""

    layer: Callable[[], Any]
    shapes: tuple[tuple[int, ...], ...]
    wanted: tuple[str, ...]
    how: str
    beside: str = ""
    opset: int = 13


class Formula(nn.Layer):
    """A function of the inputs and of two drawn vectors of 8."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.w, self.b = (self.create_parameter([8], default_initializer=nn.initializer.Uniform(0.5, 1.5)) for _ in range(2))

    def forward(self, x: Any, y: Any = None) -> Any:
        return self.function(self.w, self.b, x) if y is None else self.function(self.w, self.b, x, y)


class Heads(nn.Layer):
    """A function of queries, keys and values."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return self.function(q, k, v)


class Svtr(nn.Layer):
    """As in PaddleOCR's SVTR and PP-OCR recognizers: one projection, five dims, transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(H * D, 3 * H * D), nn.Linear(H * D, H * D)

    def forward(self, x: Any) -> Any:
        qkv = self.qkv(x).reshape((B, L, 3, H, D)).transpose((2, 0, 3, 1, 4))
        q, k, v = qkv[0] * ROOT, qkv[1], qkv[2]
        mixed = F.softmax(q.matmul(k.transpose((0, 1, 3, 2))), axis=-1).matmul(v)
        return self.proj(mixed.transpose((0, 2, 1, 3)).reshape((B, L, H * D)))


def _layer(w: Any, b: Any, x: Any) -> Any:
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / paddle.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + 1e-5) * w + b


def _rms(w: Any, b: Any, x: Any) -> Any:
    return paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * x * w


def _plain(q: Any, k: Any, v: Any) -> Any:
    return paddle.matmul(F.softmax(paddle.matmul(q * ROOT, k, transpose_y=True)), v)


def _softmax(w: Any, b: Any, x: Any) -> Any:
    e = paddle.exp(x - x.max(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def conv(activation: Callable[[], Any], **options: Any) -> Callable[[], Any]:
    return lambda: nn.Sequential(nn.Conv2D(4, 4, 3, bias_attr=False, **options), nn.BatchNorm2D(4), activation())


ROWS = ((-1, L, 8),)
IMAGE = ((2, 4, 6, 6),)
HEADS = ((B, H, L, D),) * 3
LN = "onnx.LayerNormalization axis=-1"
CASES: dict[str, dict[str, Case]] = {
    "layer_norm": {
        "layer": Case(lambda: nn.LayerNorm(8), ROWS, (f"{LN} epsilon=1e-5",), "nn.LayerNorm(8)"),
        "formula": Case(lambda: Formula(_layer), ROWS, (f"{LN} epsilon=1e-5",), "(x - mean) ** 2"),
    },
    "rms_norm": {"formula": Case(lambda: Formula(_rms), ROWS, ("onnx.RMSNormalization axis=-1 epsilon=1e-6",), "rsqrt(pow(2).mean) * x * w")},
    "group_norm": {"layer": Case(lambda: nn.GroupNorm(2, 8), ((2, 8, 4, 5),), ("onnx.GroupNormalization num_groups=2 epsilon=0.0",), "nn.GroupNorm(2, 8), whose epsilon paddle2onnx writes as 0")},
    "gelu": {
        "layer": Case(lambda: nn.GELU(), ROWS, ("onnx.Gelu approximate=none",), "nn.GELU()"),
        "tanh": Case(lambda: nn.GELU(approximate=True), ROWS, ("onnx.Gelu approximate=none",), "nn.GELU(approximate=True), which paddle2onnx writes with erf"),
    },
    "silu": {
        "layer": Case(lambda: nn.Silu(), ROWS, ("onnx.Swish alpha=1.0",), "nn.Silu()"),
        "swish": Case(lambda: nn.Swish(), ROWS, ("onnx.Swish alpha=1.0",), "nn.Swish()"),
    },
    "swiglu": {"layer": Case(lambda: Formula(lambda w, b, g, u: F.silu(g) * u), (*ROWS, *ROWS), ("kernel.swiglu",), "silu(gate) * up")},
    "softmax": {"formula": Case(lambda: Formula(_softmax), ROWS, ("onnx.Softmax axis=-1",), "exp(x - max) / sum")},
    "attention": {
        "plain": Case(lambda: Heads(_plain), HEADS, (ATTENTION,), "scaled query, matmul(transpose_y=True)"),
        "svtr": Case(Svtr, ((B, L, H * D),), (ATTENTION,), "PaddleOCR SVTR", PROJECTED),
        "multihead": Case(lambda: nn.MultiHeadAttention(H * D, H), ((B, L, H * D),), (ATTENTION,), "nn.MultiHeadAttention", PROJECTED),
    },
    "conv_bn": {
        "relu": Case(conv(nn.ReLU), IMAGE, ("onnx.Conv", "onnx.Relu"), "Conv2D, BatchNorm2D, ReLU"),
        "relu6": Case(conv(nn.ReLU6, stride=2, padding=1), IMAGE, ("onnx.Conv", "onnx.Clip"), "Conv2D, BatchNorm2D, ReLU6"),
        "hardswish": Case(conv(nn.Hardswish, groups=4), IMAGE, ("onnx.Conv", "onnx.HardSwish"), "depthwise Conv2D, BatchNorm2D, Hardswish (PP-LCNet)"),
    },
}  # fmt: skip


def drawn(layer: Any) -> Any:
    """`layer` in evaluation, with weights and statistics that are no neutral elements."""
    random = np.random.default_rng(9)
    for value in layer.state_dict().values():
        value.set_value(random.uniform(0.5, 1.5, value.shape).astype(np.float32))
    layer.eval()
    return layer


def main() -> None:
    """Write what is asked for and say what could not be."""
    import paddle2onnx

    version = f"paddlepaddle {paddle.__version__}, paddle2onnx {paddle2onnx.__version__}"
    for folder, group in CASES.items():
        for name, case in group.items():
            if sys.argv[1:] and not any(part in f"{folder}/paddle-{name}" for part in sys.argv[1:]):
                continue
            with tempfile.TemporaryDirectory() as place:
                path = str(Path(place) / "model")
                try:
                    specs = [paddle.static.InputSpec(list(shape), "float32", f"x{i}") for i, shape in enumerate(case.shapes)]
                    paddle.onnx.export(drawn(case.layer()), path, input_spec=specs, opset_version=case.opset)
                    how = f"{version}, paddle.onnx.export(opset_version={case.opset}) of {case.how}"
                    save_onnx(onnx.load(path + ".onnx"), f"{folder}/paddle-{name}", how, case.wanted, case.beside)
                except Exception as error:
                    print(f"{folder}/paddle-{name}: {type(error).__name__}: {str(error)[:200]}")


if __name__ == "__main__":
    main()
