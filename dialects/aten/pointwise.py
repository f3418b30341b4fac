"""ATen's elementwise ops of several operands as hub terms, with torch's promotion of element types.

Torch computes 16-bit floats in f32 and rounds once; so do the terms here wherever rounding each step would give another number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import copysign
from typing import Any

from coset.dialects.aten.node import AtenNode, Builder, Built, NoTerm, aten, convert, given_as, holds, wide
from coset.dialects.aten.unary import Unary, is_marked_negative
from coset.dialects.hub import chlo, stablehlo, stablehlo_data, stablehlo_math
from coset.dialects.hub.terms import numpy_broadcast, numpy_shape
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.arithmetic import (
    Number,
    absolute,
    add,
    both,
    compare,
    divide,
    either,
    maximum,
    minimum,
    multiply,
    pointwise,
    power,
    select,
    sqrt,
    subtract,
    truth,
)  # fmt: skip
from coset.dialects.onnx.arithmetic import counted as number_term
from coset.ir.term import Term, make
from coset.ir.types import DType

PRIMITIVES = (chlo, onnx_ops, stablehlo, stablehlo_data, stablehlo_math)  # their ops are made here


@aten("copysign.Tensor", "copysign.Scalar")
def _copysign(node: AtenNode) -> Built:
    """The magnitude of the one with the sign of the other, a zero's and a NaN's too."""
    other, dtype = node["other"], node.dtype
    if not isinstance(other, Term | int | float):
        raise NoTerm("the sign of a number that only a run tells has no term")
    magnitude = absolute(convert(node.term("self"), dtype))
    if not isinstance(other, Term):
        return make("stablehlo.negate", (magnitude,)) if copysign(1.0, other) < 0 else magnitude
    one, sign = _terms(dtype, magnitude, convert(other, dtype))
    return select(is_marked_negative(sign), make("stablehlo.negate", (one,)), one)


# ---------------------------------------------------------------- two operands


def _working(node: AtenNode, dtype: DType, *values: Any) -> DType:
    """What is computed in: wider than `dtype` where a plain number has no exact form in it."""
    return dtype if all(holds(dtype, value) for value in values) else wide(dtype)


def _arithmetic(
    node: AtenNode, build: Callable[..., Term], *keys: str, result: DType | None = None, rounded: bool = False
) -> Term:  # fmt: skip
    """What `build` makes of the operands `keys` after promotion. Numbers are as exact as torch computes, or `rounded` to the type."""
    dtype = node.common if result is None else result
    assert dtype is not None
    values = [node[key] for key in keys]
    working = dtype if rounded else _working(node, dtype, *values)
    return convert(build(*_operands(working, *values)), node.dtype)


def _operands(dtype: DType, *values: Number) -> list[Number]:
    """`values` in the type `dtype`, one of them a tensor at least: two numbers are two scalars to torch."""
    some = any(isinstance(value, Term) for value in values)
    return [given_as(dtype, value) if some or isinstance(value, Term) else number_term(value, dtype) for value in values]


def _scaled(node: AtenNode, other: Any) -> Any:
    """`other` times `alpha`."""
    alpha = node["alpha"]
    if isinstance(alpha, int | float) and alpha == 1:
        return other
    if isinstance(other, Term) or isinstance(alpha, Term):
        return multiply(other, alpha) if isinstance(other, Term) else multiply(alpha, other)
    return other * alpha


def _sum(node: AtenNode, op: Callable[..., Term]) -> Term:
    dtype = node.common
    assert dtype is not None
    alpha, one, other = node["alpha"], node["self"], node["other"]
    # torch multiplies by alpha in the wider type
    plain = isinstance(alpha, int | float) and alpha == 1
    working = _working(node, dtype, one, other) if plain else wide(dtype)
    first, second = _operands(working, one, other)
    return convert(op(first, _scaled(node, second)), node.dtype)


def _comparison(direction: str) -> Builder:
    return lambda node: _compared(node, direction)


def _between(op: Callable[..., Term], *, rounded: bool = False) -> Builder:
    """`op` of both operands."""
    return lambda node: _arithmetic(node, op, "self", "other", rounded=rounded)


def _quotient(op: Callable[..., Term]) -> Builder:
    """`op` of both operands as floats."""
    return lambda node: _arithmetic(node, op, "self", "other", result=_quotient_type(node))


def _logical(op: Callable[..., Term]) -> Builder:
    return lambda node: op(truth(node.term("self")), truth(node.term("other")))


def _enter_binary() -> None:
    for overload in ("Tensor", "Scalar"):
        aten(f"add.{overload}")(partial(_sum, op=add))
        aten(f"sub.{overload}")(partial(_sum, op=subtract))
        aten(f"mul.{overload}")(_between(multiply))
        aten(f"div.{overload}")(_quotient(divide))
        aten(f"div.{overload}_mode")(_divided)
        aten(f"remainder.{overload}")(_between(_remainder, rounded=True))
        aten(f"fmod.{overload}")(_between(partial(pointwise, "remainder"), rounded=True))
        for name, direction in _COMPARISONS.items():
            aten(f"{name}.{overload}")(_comparison(direction))
        for name in ("and", "or", "xor"):
            aten(f"bitwise_{name}.{overload}")(_between(partial(pointwise, name)))
    aten("true_divide.Tensor")(_quotient(divide))
    aten("maximum.default")(_between(maximum))
    aten("minimum.default")(_between(minimum))
    aten("atan2.default")(_quotient(partial(pointwise, "atan2")))
    for name, op in (("and", both), ("or", either), ("xor", partial(pointwise, "xor"))):
        aten(f"logical_{name}.default")(_logical(op))


_COMPARISONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}


def _quotient_type(node: AtenNode) -> DType:
    """Integers become floats."""
    assert node.common is not None
    return node.common if node.common.kind in ("float", "complex") else node.dtype


def _compared(node: AtenNode, direction: str) -> Term:
    """In the promoted type, to which numbers are rounded."""
    assert node.common is not None
    a, b = _terms(node.common, *_operands(node.common, node["self"], node["other"]))
    return compare(a, direction, b)


def _terms(dtype: DType, a: Number, b: Number) -> tuple[Term, Term]:
    """Both operands, broadcast."""
    one, other = (x if isinstance(x, Term) else number_term(x, dtype) for x in (a, b))
    shape = numpy_shape(one.tensor.dims, other.tensor.dims)
    return numpy_broadcast(one, shape), numpy_broadcast(other, shape)


def _dtype_of(*numbers: Number) -> DType:
    return next(x.tensor.dtype for x in numbers if isinstance(x, Term))


def _remainder(a: Number, b: Number) -> Term:
    """Python's: with the sign of the divisor."""
    one, other = _terms(_dtype_of(a, b), a, b)
    rest = pointwise("remainder", one, other)
    if one.tensor.dtype.kind in ("uint", "bool"):
        return rest
    turned = both(compare(rest, "NE", 0), pointwise("xor", compare(rest, "LT", 0), compare(other, "LT", 0)))
    return select(turned, add(rest, other), rest)


def _divided(node: AtenNode) -> Built:
    """With `rounding_mode` floor as Python divides: of floats by way of the rest, so that 1.0 // 0.1 is 9."""
    mode = node["rounding_mode"]
    if mode is None:
        return _arithmetic(node, divide, "self", "other", result=_quotient_type(node))
    assert node.common is not None
    working = wide(node.common)
    one, other = _terms(working, given_as(working, node["self"]), given_as(working, node["other"]))
    whole = working.kind != "float"
    if mode == "trunc":
        quotient = divide(one, other)
        if not whole:
            quotient = select(compare(quotient, "LT", 0), make("stablehlo.ceil", (quotient,)), make("stablehlo.floor", (quotient,)))
        return convert(quotient, node.dtype)
    if whole:
        quotient = divide(one, other)
        if working.kind == "int":
            rest = subtract(one, multiply(quotient, other))
            below = both(compare(rest, "NE", 0), pointwise("xor", compare(rest, "LT", 0), compare(other, "LT", 0)))
            quotient = select(below, subtract(quotient, 1), quotient)
        return convert(quotient, node.dtype)
    exactly = divide(subtract(one, _remainder(one, other)), other)
    floor = make("stablehlo.floor", (exactly,))
    rounded = select(compare(subtract(exactly, floor), "GT", 0.5), add(floor, 1), floor)
    plain = divide(one, other)
    zero = multiply(make("stablehlo.sign", (plain,)), 0)  # with the sign of the quotient
    return convert(select(compare(other, "EQ", 0), plain, select(compare(exactly, "EQ", 0), zero, rounded)), node.dtype)


_enter_binary()

# ---------------------------------------------------------------- powers

_POWERS: dict[float, Unary] = {  # those that torch has formulas for
    0.5: sqrt, 2.0: lambda x: multiply(x, x), 3.0: lambda x: multiply(multiply(x, x), x),
    -0.5: lambda x: make("stablehlo.rsqrt", (x,)), -1.0: lambda x: divide(number_term(1, x.tensor.dtype), x),
    -2.0: lambda x: divide(number_term(1, x.tensor.dtype), multiply(x, x)), 1.0: lambda x: x,
}  # fmt: skip


@aten("pow.Tensor_Scalar")
def _pow_number(node: AtenNode) -> Built:
    exponent, dtype = node["exponent"], node.dtype
    x = convert(node.term("self"), wide(dtype))
    special = _POWERS.get(float(exponent)) if isinstance(exponent, int | float) else None
    if special is not None and (dtype.kind == "float" or exponent in (1, 2, 3)):
        return convert(special(x), dtype)
    if dtype.kind == "float" and exponent == 0:
        return convert(power(x, 0), dtype)
    return convert(power(x, given_as(wide(dtype), exponent)), dtype)


@aten("pow.Scalar", "pow.Tensor_Tensor")
def _pow(node: AtenNode) -> Built:
    working = wide(node.dtype)
    return convert(power(given_as(working, node["self"]), given_as(working, node["exponent"])), node.dtype)


# ---------------------------------------------------------------- three operands


@aten("where.self")
def _where(node: AtenNode) -> Built:
    on_true, on_false = (given_as(node.dtype, node[key]) for key in ("self", "other"))
    return select(truth(node.term("condition")), on_true, on_false, dtype=node.dtype)


@aten("clamp.default", "clamp.Tensor")
def _clamp(node: AtenNode) -> Built:
    """Where the lower bound is the higher one, that one; NaN stays."""
    x: Number = convert(node.term("self"), node.dtype)
    for key, bound in (("min", maximum), ("max", minimum)):
        if node[key] is not None:
            x = bound(x, given_as(node.dtype, node[key]))
    assert isinstance(x, Term)
    return x


@aten("_to_copy.default")
def _to_copy(node: AtenNode) -> Built:
    return node.converted("self")


@aten("prims.convert_element_type.default")
def _converted(node: AtenNode) -> Built:
    return node.converted("a")
