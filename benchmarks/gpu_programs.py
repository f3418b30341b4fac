"""Programs that `gpu` times kernel by kernel: pointwise and normalization groups, and products with an epilogue, as hub terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coset.dialects.hub.terms import broadcast, convert, dot, reshape, splat, transpose
from coset.ir.builtin import absent
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import DTYPES, F32, DType, TensorType

Outputs = tuple[list[Term], list[Term]]  # inputs, outputs


@dataclass(frozen=True)
class Case:
    """One program: its name, the dtype of its tensors, and its sizes."""

    name: str
    dtype: str
    sizes: tuple[int, ...]

    @property
    def title(self) -> str:
        return f"{self.name} {self.dtype} {'x'.join(map(str, self.sizes))}"

    def program(self) -> Program:
        """The program itself."""
        inputs, outputs = BUILDERS[self.name](DTYPES[self.dtype], *self.sizes)
        return Program(tuple(inputs), tuple((f"y{i}", term) for i, term in enumerate(outputs)))


def _op(name: str, *operands: Term, **attributes: object) -> Term:
    return make(name if "." in name else f"stablehlo.{name}", operands, attributes)


def _x(name: str, dtype: DType, *shape: int) -> Term:
    return input_term(name, TensorType(dtype, shape))


def _like(value: float, x: Term) -> Term:
    return splat(value, x.tensor.dtype, x.tensor.dims)


def _last(vector: Term, x: Term) -> Term:
    return broadcast(convert(vector, x.tensor.dtype), x.tensor.dims, (x.tensor.rank - 1,))


def _fold(x: Term, combiner: str) -> Term:
    return _op("reduce", x, dimensions=(x.tensor.rank - 1,), combiner=combiner)


def _along(row: Term, x: Term) -> Term:
    return broadcast(row, x.tensor.dims, tuple(range(x.tensor.rank - 1)))


def _gelu(x: Term) -> Term:
    inner = _op("chlo.erf", _op("multiply", x, _like(0.7071067811865476, x)))
    return _op("multiply", _op("multiply", x, _like(0.5, x)), _op("add", inner, _like(1.0, x)))


def _normal(x: Term, *, centered: bool) -> Term:
    count = x.tensor.dims[-1]
    assert isinstance(count, int)
    if centered:
        total = _fold(x, "add")
        x = _op("subtract", x, _along(_op("divide", total, _like(count, total)), x))
    squares = _fold(_op("multiply", x, x), "add")
    variance = _op("add", _op("divide", squares, _like(count, squares)), _like(1e-5, squares))
    return _op("multiply", x, _along(_op("rsqrt", variance), x))


def add(dtype: DType, rows: int, columns: int) -> Outputs:
    x, y = _x("x", dtype, rows, columns), _x("y", dtype, rows, columns)
    return [x, y], [_op("add", x, y)]


def bias_gelu(dtype: DType, rows: int, columns: int) -> Outputs:
    x, b = _x("x", dtype, rows, columns), _x("b", dtype, columns)
    return [x, b], [convert(_gelu(convert(_op("add", x, _last(b, x)), F32)), dtype)]


def swiglu_gate(dtype: DType, rows: int, columns: int) -> Outputs:
    x, y = _x("x", dtype, rows, columns), _x("y", dtype, rows, columns)
    return [x, y], [_op("multiply", _op("multiply", x, _op("logistic", x)), y)]


def transposed(dtype: DType, rows: int, columns: int) -> Outputs:
    x, b = _x("x", dtype, rows, columns), _x("b", dtype, rows)
    turned = transpose(x, (1, 0))
    return [x, b], [_op("add", turned, _last(b, turned))]


def softmax(dtype: DType, rows: int, columns: int) -> Outputs:
    x = _x("x", dtype, rows, columns)
    wide = convert(x, F32)
    e = _op("exponential", _op("subtract", wide, _along(_fold(wide, "maximum"), wide)))
    return [x], [convert(_op("divide", e, _along(_fold(e, "add"), e)), dtype)]


def layer_norm(dtype: DType, rows: int, columns: int) -> Outputs:
    """With a residual that is added first and given out too."""
    x, r, w, b = _x("x", dtype, rows, columns), _x("r", dtype, rows, columns), _x("w", dtype, columns), _x("b", dtype, columns)
    h = _op("add", x, r)
    y = _normal(convert(h, F32), centered=True)
    y = _op("add", _op("multiply", y, _last(w, y)), _last(b, y))
    return [x, r, w, b], [h, convert(y, dtype)]


def rms_norm(dtype: DType, rows: int, columns: int) -> Outputs:
    x, w = _x("x", dtype, rows, columns), _x("w", dtype, columns)
    y = _normal(convert(x, F32), centered=False)
    return [x, w], [convert(_op("multiply", y, _last(w, y)), dtype)]


def group_norm(dtype: DType, images: int, channels: int, pixels: int) -> Outputs:
    """32 groups, a scale for each channel, SiLU."""
    x, w, b = _x("x", dtype, images, channels, pixels), _x("w", F32, channels), _x("b", F32, channels)
    whole = reshape(convert(x, F32), (images, 32, channels // 32 * pixels))
    y = reshape(_normal(whole, centered=True), x.tensor.dims)
    y = _op("add", _op("multiply", y, broadcast(w, y.tensor.dims, (1,))), broadcast(b, y.tensor.dims, (1,)))
    return [x, w, b], [convert(_op("multiply", y, _op("logistic", y)), dtype)]


def row_sum(dtype: DType, rows: int, columns: int) -> Outputs:
    x = _x("x", dtype, rows, columns)
    return [x], [_fold(convert(x, F32), "add")]


def linear(dtype: DType, m: int, n: int, k: int) -> Outputs:
    """gelu(x @ w.T + b) + r."""
    x, w, b, r = _x("x", dtype, m, k), _x("w", dtype, n, k), _x("b", dtype, n), _x("r", dtype, m, n)
    y = convert(dot(x, w, lhs_contract=(1,), rhs_contract=(1,)), F32)
    return [x, w, b, r], [convert(_op("add", _gelu(_op("add", y, _last(b, y))), convert(r, F32)), dtype)]


def scaled(dtype: DType, m: int, n: int, k: int) -> Outputs:
    """bf16(x @ w.T * s * t) with a scale for each operand, summed in f32: what `torch._scaled_mm` computes of 8-bit floats."""
    x, w, s, t = _x("x", dtype, m, k), _x("w", dtype, n, k), _x("s", F32), _x("t", F32)
    y = dot(convert(x, F32), convert(w, F32), lhs_contract=(1,), rhs_contract=(1,))
    return [x, w, s, t], [convert(_op("multiply", y, broadcast(_op("multiply", s, t), (m, n), ())), DTYPES["bf16"])]


def attention(dtype: DType, batch: int, heads: int, groups: int, length: int, keys: int, width: int, *, causal: bool = False) -> Outputs:
    """softmax(q k^T / sqrt(width)) v, where `groups` heads of queries share the keys of one."""
    q, k, v = (
        _x("q", dtype, batch, heads, groups, length, width),
        _x("k", dtype, batch, heads, keys, width),
        _x("v", dtype, batch, heads, keys, width),
    )
    attributes = {"scale": width**-0.5, "precision": F32, "causal": causal, "offset": 0, "fill": float("-inf"), "safe": False}
    return [q, k, v], [make("kernel.attention", (q, k, v, absent()), attributes)]


def causal(dtype: DType, *sizes: int) -> Outputs:
    return attention(dtype, *sizes, causal=True)


def decode(dtype: DType, *sizes: int) -> Outputs:
    return attention(dtype, *sizes)


BUILDERS: dict[str, Callable[..., Outputs]] = {
    builder.__name__: builder
    for builder in (
        add,
        bias_gelu,
        swiglu_gate,
        transposed,
        softmax,
        layer_norm,
        rms_norm,
        group_norm,
        row_sum,
        linear,
        scaled,
        attention,
        causal,
        decode,
    )
}
BANDWIDTH = (
    *(
        Case(name, dtype, (32768, 4096))
        for name in ("add", "bias_gelu", "swiglu_gate", "layer_norm", "rms_norm")
        for dtype in ("f16", "f32")
    ),
    Case("softmax", "f16", (65536, 2048)),
    Case("softmax", "f32", (32768, 4096)),
    Case("softmax", "f32", (2048, 65536)),
    Case("softmax", "f32", (16, 4194304)),
    Case("layer_norm", "bf16", (131072, 1024)),
    Case("group_norm", "f16", (64, 512, 4096)),
    Case("transposed", "f32", (16384, 8192)),
    Case("row_sum", "f32", (32768, 4096)),
    Case("row_sum", "f32", (8, 16777216)),
)
"""Every tensor that counts is 256 MB or more."""
PRODUCTS = (
    Case("linear", "f16", (8192, 8192, 8192)),
    Case("linear", "bf16", (4096, 4096, 4096)),
    Case("linear", "f16", (2048, 14336, 4096)),
    Case("linear", "f16", (512, 4096, 4096)),
    Case("linear", "f32", (4096, 4096, 4096)),
    Case("scaled", "f8e4m3fn", (8192, 8192, 8192)),
    Case("scaled", "f8e4m3fn", (4096, 4096, 4096)),
    Case("scaled", "f8e4m3fn", (2048, 14336, 4096)),
)
TINY_BANDWIDTH = tuple(
    Case(name, "f32", (2, 64, 3) if name == "group_norm" else (6, 40))
    for name in BUILDERS
    if name not in ("linear", "scaled", "attention", "causal", "decode")
)  # for a dry run
TINY_PRODUCTS = (
    Case("linear", "f16", (32, 48, 64)),
    Case("linear", "f16", (128, 256, 64)),
    Case("linear", "f32", (20, 30, 40)),
    Case("scaled", "f8e4m3fn", (128, 256, 128)),
)
ATTENTION = (
    Case("attention", "f16", (4, 16, 1, 2048, 2048, 64)),
    Case("attention", "bf16", (4, 16, 1, 4096, 4096, 128)),
    Case("causal", "f16", (4, 16, 1, 2048, 2048, 64)),
    Case("causal", "bf16", (4, 8, 4, 4096, 4096, 128)),
    Case("attention", "f32", (4, 12, 1, 1024, 1024, 64)),
    Case("decode", "bf16", (16, 8, 4, 1, 16384, 128)),
    Case("decode", "f16", (1, 8, 4, 1, 131072, 128)),
    Case("decode", "f16", (64, 32, 1, 1, 4096, 64)),
)
TINY_ATTENTION = (
    Case("attention", "f16", (1, 2, 2, 20, 30, 16)),
    Case("causal", "f32", (2, 1, 1, 33, 33, 16)),
    Case("decode", "f16", (1, 2, 2, 1, 600, 16)),
    Case("causal", "f16", (1, 2, 1, 128, 128, 16)),
)
