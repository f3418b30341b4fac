"""GELU, SiLU, SwiGLU and softmax as torch modules, in the ways that model code writes them."""

# ruff: noqa: E501
from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from cases import Case, normal, plain
from torch import nn

ROWS = normal((2, 3, 8))
DYNAMIC = {0: {0: "batch", 1: "length"}}
HALF = normal((2, 3, 8), dtype=torch.float16)


def gelu(approximate: str = "none") -> tuple[str, ...]:
    return (f"onnx.Gelu approximate={approximate}",)


def _new(x: Any) -> Any:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def _fast(x: Any) -> Any:
    return 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))


def _cubed(x: Any) -> Any:
    return x * 0.5 * (torch.tanh(0.7978845608028654 * x + 0.035677408136300125 * x * x * x) + 1)


def _python(x: Any) -> Any:
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def _distribution(x: Any) -> Any:
    return x * (0.5 * (1 + torch.erf(x * 0.7071067811865476)))


def _half(x: Any) -> Any:
    wide = x.float()
    return (0.5 * wide * (1.0 + torch.erf(wide / math.sqrt(2.0)))).to(x.dtype)


def _two_terms(x: Any) -> Any:
    half = 0.5 * x
    return half + half * torch.erf(x / 1.4142135623730951)


GELU = {
    "module": Case(nn.GELU, ROWS, gelu(), "nn.GELU()", ways=("script13", "dynamo18", "hlo"), dynamic=DYNAMIC),
    "module-tanh": Case(lambda: nn.GELU("tanh"), ROWS, gelu("tanh"), "nn.GELU('tanh')", ways=("script13", "dynamo18", "hlo"), dynamic=DYNAMIC),
    "new": Case(plain(_new), ROWS, gelu("tanh"), "GPT-2 gelu_new: torch.pow(x, 3.0)", ways=("script13", "dynamo18", "hlo")),
    "fast": Case(plain(_fast), ROWS, gelu("tanh"), "gelu_fast: x * 0.797 * (1 + 0.044715 * x * x)", ways=("script13", "dynamo18")),
    "cubed": Case(plain(_cubed), ROWS, gelu("tanh"), "both constants multiplied out", ways=("script13",)),
    "python": Case(plain(_python), ROWS, gelu(), "gelu_python: x / sqrt(2)", ways=("script13",)),
    "distribution": Case(plain(_distribution), ROWS, gelu(), "x times the distribution function, 1 / sqrt(2) rounded", ways=("script13", "hlo")),
    "half-module": Case(nn.GELU, HALF, gelu(), "nn.GELU() in f16", ways=("script13", "dynamo18")),
    "half-upcast": Case(plain(_half), HALF, gelu(), "f16 in and out, computed in f32", ways=("script13",)),
    "two-terms": Case(plain(_two_terms), ROWS, gelu(), "x/2 + x/2 * erf(x / sqrt(2))", ways=("script13",)),
}  # fmt: skip

SWISH = ("onnx.Swish alpha=1.0",)


def _logistic(x: Any) -> Any:
    return x / (1 + torch.exp(-x))


def _reciprocal(x: Any) -> Any:
    return x * torch.reciprocal(1 + (-x).exp())


def _tanh(x: Any) -> Any:
    return 0.5 * x * (1 + torch.tanh(0.5 * x))


SILU = {
    "module": Case(nn.SiLU, ROWS, SWISH, "nn.SiLU()", ways=("script13", "dynamo18", "hlo"), dynamic=DYNAMIC),
    "sigmoid": Case(plain(lambda x: torch.sigmoid(x) * x), ROWS, SWISH, "sigmoid(x) * x", ways=("script13",)),
    "logistic": Case(plain(_logistic), ROWS, SWISH, "x / (1 + exp(-x))", ways=("script13", "hlo")),
    "reciprocal": Case(plain(_reciprocal), ROWS, SWISH, "x * reciprocal(1 + exp(-x))", ways=("script13",)),
    "tanh": Case(plain(_tanh), ROWS, SWISH, "by tanh of the half", ways=("script13",)),
    "half": Case(plain(lambda x: F.silu(x.float()).to(x.dtype)), HALF, SWISH, "f16 in and out, computed in f32", ways=("script13", "dynamo18")),
    "image": Case(nn.SiLU, normal((1, 4, 3, 3)), SWISH, "nn.SiLU() of an image", ways=("script11",)),
}  # fmt: skip

SWIGLU = ("kernel.swiglu",)
DOT = "stablehlo.dot_general"


class _Llama(nn.Module):
    def __init__(self, split: str = "") -> None:
        super().__init__()
        self.split = split
        self.gate, self.up, self.down = nn.Linear(8, 12, bias=False), nn.Linear(8, 12, bias=False), nn.Linear(12, 8, bias=False)
        self.both = nn.Linear(8, 24, bias=split == "bias")

    def forward(self, x: Any) -> Any:
        if not self.split:
            return self.down(F.silu(self.gate(x)) * self.up(x))
        gate, up = self.both(x).chunk(2, -1) if self.split != "second" else reversed(self.both(x).chunk(2, -1))
        return self.down(F.silu(gate) * up)


GATED = normal((2, 3, 8), (2, 3, 8))
SWI_GLU = {
    "llama": Case(lambda: _Llama(), ROWS, SWIGLU, "Llama, Mistral, Qwen: down(silu(gate(x)) * up(x))", DOT, ways=("script13", "dynamo18", "hlo"), dynamic=DYNAMIC),
    "fused": Case(lambda: _Llama("first"), ROWS, SWIGLU, "one projection, chunk(2, -1), gate first (Phi-3)", DOT, ways=("script13", "dynamo18")),
    "fused-bias": Case(lambda: _Llama("bias"), ROWS, SWIGLU, "one projection with a bias", f"{DOT} stablehlo.add", ways=("script13",)),
    "fused-second": Case(lambda: _Llama("second"), ROWS, SWIGLU, "one projection, gate second (diffusers)", DOT, ways=("script13", "hlo")),
    "elementwise": Case(plain(lambda g, u: F.silu(g) * u), GATED, SWIGLU, "silu(gate) * up of two inputs", ways=("script13", "dynamo18")),
    "reordered": Case(plain(lambda g, u: (u * g) * torch.sigmoid(g)), GATED, SWIGLU, "(up * gate) * sigmoid(gate)", ways=("script13",)),
    "quotient": Case(plain(lambda g, u: u * (g / (1 + torch.exp(-g)))), GATED, SWIGLU, "up * (gate / (1 + exp(-gate)))", ways=("script13",)),
    "late-quotient": Case(plain(lambda g, u: u * g / (1 + torch.exp(-g))), GATED, SWIGLU, "up * gate / (1 + exp(-gate))", ways=("script13",)),
    "half": Case(plain(lambda g, u: F.silu(g.float()).to(g.dtype) * u), normal((2, 3, 8), (2, 3, 8), dtype=torch.float16), SWIGLU, "silu in f32, product in f16", ways=("script13",)),
}  # fmt: skip


def softmax(axis: int = -1) -> tuple[str, ...]:
    return (f"onnx.Softmax axis={axis}",)


def _shifted(x: Any) -> Any:
    e = torch.exp(x - x.max(-1, keepdim=True).values)
    return e / e.sum(-1, keepdim=True)


def _unshifted(x: Any) -> Any:
    e = x.exp()
    return e / e.sum(-1, keepdim=True)


def _amax_middle(x: Any) -> Any:
    e = torch.exp(x - torch.amax(x, 1, keepdim=True))
    return e * (1 / e.sum(1, keepdim=True))


def _logsumexp(x: Any) -> Any:
    return torch.exp(x - torch.logsumexp(x, -1, keepdim=True))


def _upcast(x: Any) -> Any:
    wide = x.float()
    e = torch.exp(wide - wide.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)


def _log(x: Any) -> Any:
    return torch.exp(F.log_softmax(x, -1))


def _unsqueezed(x: Any) -> Any:
    e = torch.exp(x - x.amax(-1)[..., None])
    return e / e.sum(-1)[..., None]


def _transposed(x: Any) -> Any:
    t = x.transpose(1, 2)
    e = torch.exp(t - t.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)).transpose(1, 2)


def _power(x: Any) -> Any:
    e = torch.pow(torch.tensor(math.e), x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


SOFTMAX = {
    "shifted": Case(plain(_shifted), ROWS, softmax(), "exp(x - max) / sum", ways=("script13", "dynamo18", "hlo"), dynamic=DYNAMIC),
    "unshifted": Case(plain(_unshifted), ROWS, softmax(), "exp(x) / sum, without a shift", ways=("script13", "hlo")),
    "middle": Case(plain(_amax_middle), ROWS, softmax(1), "over dim 1, by the reciprocal of the sum", ways=("script13",)),
    "logsumexp": Case(plain(_logsumexp), ROWS, softmax(), "exp(x - logsumexp(x))", ways=("script13", "hlo")),
    "upcast": Case(plain(_upcast), HALF, softmax(), "f16 in and out, computed in f32", ways=("script13", "dynamo18")),
    "log": Case(plain(_log), ROWS, softmax(), "exp of log_softmax", ways=("script13", "hlo")),
    "unsqueezed": Case(plain(_unsqueezed), ROWS, softmax(), "reduced without kept dims, [..., None]", ways=("script13",)),
    "transposed": Case(plain(_transposed), ROWS, ("onnx.Softmax",), "over the middle dim by transposes", ways=("script13",)),
    "power": Case(plain(_power), ROWS, softmax(), "e to the power of x - max", ways=("script13",)),
    "module": Case(lambda: nn.Softmax(-1), ROWS, softmax(), "nn.Softmax(-1)", ways=("hlo",), dynamic=DYNAMIC),
    "matrix": Case(plain(_shifted), normal((4, 6)), softmax(), "exp(x - max) / sum of a matrix", ways=("script9",)),
}  # fmt: skip

CASES: dict[str, dict[str, Case]] = {"gelu": GELU, "silu": SILU, "swiglu": SWI_GLU, "softmax": SOFTMAX}
