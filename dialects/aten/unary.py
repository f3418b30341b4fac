"""ATen's elementwise ops of one operand as hub terms. Integers become floats first where torch makes them so.

Torch computes 16-bit floats in f32 and rounds once; so do the terms here wherever rounding each step would give another number.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log as ln

from coset.dialects.aten.node import AtenNode, Builder, Built, NoTerm, aten, convert, widened
from coset.dialects.hub import chlo, stablehlo, stablehlo_data, stablehlo_math
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.arithmetic import absolute, clamp, compare, divide, invert, log, multiply, power, rint, select, truth
from coset.dialects.onnx.arithmetic import counted as number_term
from coset.ir.term import Term, make
from coset.ir.types import DTYPES

PRIMITIVES = (chlo, onnx_ops, stablehlo, stablehlo_data, stablehlo_math)  # their ops are made here
Unary = Callable[[Term], Term]

_FLOAT: dict[str, str] = {  # integers become floats first
    "exp": "stablehlo.exponential", "expm1": "stablehlo.exponential_minus_one", "log": "stablehlo.log", "log1p": "stablehlo.log_plus_one",
    "sqrt": "stablehlo.sqrt", "rsqrt": "stablehlo.rsqrt", "sin": "stablehlo.sine", "cos": "stablehlo.cosine", "tan": "stablehlo.tan",
    "tanh": "stablehlo.tanh", "sigmoid": "stablehlo.logistic", "asin": "chlo.asin", "acos": "chlo.acos", "atan": "chlo.atan",
    "sinh": "chlo.sinh", "cosh": "chlo.cosh", "asinh": "chlo.asinh", "acosh": "chlo.acosh", "atanh": "chlo.atanh", "erf": "chlo.erf",
    "erfc": "chlo.erfc", "erfinv": "chlo.erf_inv", "lgamma": "chlo.lgamma",
}  # fmt: skip
_SAME: dict[str, str] = {"neg": "stablehlo.negate", "bitwise_not": "stablehlo.not"}
_WHOLE: dict[str, str] = {  # integers are as they are
    "floor": "stablehlo.floor", "ceil": "stablehlo.ceil", "round": "stablehlo.round_nearest_even",
}  # fmt: skip


def _floating(node: AtenNode, build: Unary) -> Term:
    x = convert(node.term("self"), node.dtype)
    return widened(x, build)


def _of_floats(op: str) -> Builder:
    return lambda node: _floating(node, lambda x: make(op, (x,)))


def _of_all(op: str, *, floats: bool = False) -> Builder:
    """`op`, or of `floats` only: others are as they are."""
    return lambda node: node.term("self") if floats and node.dtype.kind != "float" else make(op, (node.term("self"),))


def _enter_unary() -> None:
    for name, op in _FLOAT.items():
        aten(f"{name}.default")(_of_floats(op))
    for name, op in _SAME.items():
        aten(f"{name}.default")(_of_all(op))
    for name, op in _WHOLE.items():
        aten(f"{name}.default")(_of_all(op, floats=True))


_enter_unary()


@aten("abs.default")
def _abs(node: AtenNode) -> Built:
    x = node.term("self")
    return x if x.tensor.dtype.kind in ("uint", "bool") else absolute(x)


@aten("sign.default")
def _sign(node: AtenNode) -> Built:
    """NaN has the sign 0 in torch, and NaN in the hub."""
    x = node.term("self")
    if x.tensor.dtype.kind in ("uint", "bool"):
        return convert(compare(x, "NE", 0), x.tensor.dtype) if x.tensor.dtype.kind == "uint" else x
    if x.tensor.dtype.kind not in ("float", "int"):
        raise NoTerm(f"the sign of {x.tensor.dtype} has no term")
    found = make("stablehlo.sign", (x,))
    return select(compare(x, "EQ", x), found, 0) if x.tensor.dtype.kind == "float" else found


@aten("trunc.default")
def _trunc(node: AtenNode) -> Built:
    """To zero: -0.0 stays."""
    x = node.term("self")
    if x.tensor.dtype.kind != "float":
        return x
    return select(compare(x, "LT", 0), make("stablehlo.ceil", (x,)), make("stablehlo.floor", (x,)))


@aten("round.decimals")
def _round(node: AtenNode) -> Built:
    digits = int(node.number("decimals"))
    scale = 10.0 ** abs(digits)

    def rounded(x: Term) -> Term:
        moved = multiply(x, scale) if digits > 0 else divide(x, scale)
        return divide(rint(moved), scale) if digits > 0 else multiply(rint(moved), scale)

    return widened(node.term("self"), rounded) if digits else rint(node.term("self"))


@aten("reciprocal.default")
def _reciprocal(node: AtenNode) -> Built:
    return _floating(node, lambda x: divide(number_term(1, x.tensor.dtype), x))


@aten("log2.default")
def _log2(node: AtenNode) -> Built:
    return _floating(node, lambda x: divide(log(x), ln(2)))


@aten("log10.default")
def _log10(node: AtenNode) -> Built:
    return _floating(node, lambda x: divide(log(x), ln(10)))


@aten("exp2.default")
def _exp2(node: AtenNode) -> Built:
    return _floating(node, lambda x: power(number_term(2, x.tensor.dtype), x))


@aten("digamma.default")
def _digamma(node: AtenNode) -> Built:
    """At a zero the pole: minus infinity at 0.0, infinity at -0.0, where the hub's function is NaN as at the other poles."""
    return _floating(node, lambda x: select(compare(x, "EQ", 0), divide(number_term(-1, x.tensor.dtype), x), make("chlo.digamma", (x,))))


def is_marked_negative(x: Term) -> Term:
    """True where the bit of the sign is set: of -0.0 and of some NaN too."""
    dtype = x.tensor.dtype
    if dtype.kind != "float":
        return compare(x, "LT", 0) if dtype.kind == "int" else compare(x, "NE", x)
    return compare(make("stablehlo.bitcast_convert", (x,), {"dtype": DTYPES[f"i{dtype.bits}"]}), "LT", 0)


@aten("signbit.default")
def _signbit(node: AtenNode) -> Built:
    return is_marked_negative(node.term("self"))


@aten("isnan.default")
def _isnan(node: AtenNode) -> Built:
    x = node.term("self")
    return compare(x, "NE", x)


@aten("isinf.default")
def _isinf(node: AtenNode) -> Built:
    x = node.term("self")
    return compare(absolute(x), "EQ", float("inf")) if x.tensor.dtype.kind == "float" else compare(x, "NE", x)


@aten("logical_not.default")
def _logical_not(node: AtenNode) -> Built:
    return invert(truth(node.term("self")))


@aten("relu.default")
def _relu(node: AtenNode) -> Built:
    return make("onnx.Relu", (node.term("self"),))


@aten("gelu.default")
def _gelu(node: AtenNode) -> Built:
    return widened(node.term("self"), lambda x: make("onnx.Gelu", (x,), {"approximate": node["approximate"]}))


@aten("elu.default")
def _elu(node: AtenNode) -> Built:
    """scale * x where x > 0, else scale * alpha * (exp(x * input_scale) - 1)."""
    alpha, scale, inner = (float(node.number(key)) for key in ("alpha", "scale", "input_scale"))

    def built(x: Term) -> Term:
        below = multiply(make("stablehlo.exponential_minus_one", (x if inner == 1 else multiply(x, inner),)), alpha * scale)
        return select(compare(x, "GT", 0), x if scale == 1 else multiply(x, scale), below)

    return widened(node.term("self"), built)


@aten("leaky_relu.default")
def _leaky_relu(node: AtenNode) -> Built:
    slope = node.number("negative_slope")
    return widened(node.term("self"), lambda x: select(compare(x, "GT", 0), x, multiply(x, slope)))


@aten("hardtanh.default")
def _hardtanh(node: AtenNode) -> Built:
    return clamp(node.term("self"), node.number("min_val"), node.number("max_val"))
