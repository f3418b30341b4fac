"""The hub: StableHLO's ops, each with a type rule, a NumPy meaning, its work and its traits. Terms are built in `hub_terms`.

Source of every meaning: the StableHLO specification (https://openxla.org/stablehlo/spec). Where it leaves a choice, the
choice is in the docstrings of `hub_scalars` and `hub_tensors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from coset.dialects.hub import scalars, tensors
from coset.dialects.hub import types as rules
from coset.dialects.hub.quantized import per_tensor
from coset.dialects.hub.terms import (
    broadcast,
    convert,
    dot,
    is_splat,
    literal,
    numpy_broadcast,
    numpy_shape,
    numpy_view,
    reshape,
    splat,
    transpose,
)
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.op import Attribute, Attributes, Meaning, Op, register
from coset.ir.types import TensorType, Type

__all__ = [
    "broadcast", "convert", "dot", "is_splat", "literal", "numpy_broadcast", "numpy_shape", "numpy_view", "reshape",
    "splat", "transpose",
]  # fmt: skip

Rule = Callable[..., Type]
SPECIFICATION = "https://openxla.org/stablehlo/spec#"


def _op(name: str, infer: Rule, meaning: Meaning, document: str, traits: str = "", **more: Any) -> Op:
    full = f"stablehlo.{name}"
    named = frozenset(traits.split())
    return register(Op(full, partial(infer, full), meaning, traits=named, source=SPECIFICATION + name, document=document, **more))


# ---------------------------------------------------------------- elementwise: one table

_FC, _ALL, _LOGIC = "float complex", "number bool", "int bool"
_AC = "commutative associative"
_UNARY: tuple[tuple[str, str, Callable[..., object], str], ...] = (
    ("negate", "number", np.negative, "-operand; integers wrap."),
    ("sign", "signed float complex", scalars.sign, "-1, 0 or 1 with the operand's zeros and NaNs; operand / |operand| if complex."),
    ("floor", "float", np.floor, "The next integer to minus infinity."),
    ("ceil", "float", np.ceil, "The next integer to plus infinity."),
    ("round_nearest_even", "float", np.rint, "The nearest integer, ties to even."),
    ("round_nearest_afz", "float", scalars.round_half_away, "The nearest integer, ties away from zero."),
    ("sqrt", _FC, np.sqrt, "The square root."),
    ("rsqrt", _FC, scalars.reciprocal_root, "1 / sqrt(operand)."),
    ("cbrt", _FC, scalars.cube_root, "The cube root."),
    ("exponential", _FC, np.exp, "e to the power operand."),
    ("exponential_minus_one", _FC, np.expm1, "exp(operand) - 1, accurate near 0."),
    ("log", _FC, np.log, "The natural logarithm."),
    ("log_plus_one", _FC, np.log1p, "log(1 + operand), accurate near 0."),
    ("logistic", _FC, scalars.logistic, "1 / (1 + exp(-operand))."),
    ("tanh", _FC, np.tanh, "The hyperbolic tangent."),
    ("tan", _FC, np.tan, "The tangent."),
    ("sine", _FC, np.sin, "The sine."),
    ("cosine", _FC, np.cos, "The cosine."),
    ("not", _LOGIC, np.invert, "Every bit inverted; of a boolean: not."),
)
_BINARY: tuple[tuple[str, str, Callable[..., object], str, str], ...] = (
    ("add", _ALL, np.add, _AC, "lhs + rhs; integers wrap; of booleans: or."),
    ("subtract", "number", np.subtract, "", "lhs - rhs; integers wrap."),
    ("multiply", _ALL, np.multiply, _AC, "lhs * rhs; integers wrap; of booleans: and."),
    ("divide", "number", scalars.divide, "", "lhs / rhs; integers truncate to zero."),
    ("remainder", "int float", scalars.remainder, "", "lhs - rhs * trunc(lhs / rhs): the sign is that of lhs."),
    ("power", "number", scalars.power, "", "lhs to the power rhs."),
    ("maximum", _ALL, scalars.maximum, _AC, "The larger; NaN wins; of booleans: or."),
    ("minimum", _ALL, scalars.minimum, _AC, "The smaller; NaN wins; of booleans: and."),
    ("atan2", _FC, scalars.arc_tangent, "", "The angle of the point (rhs, lhs)."),
    ("and", _LOGIC, np.bitwise_and, _AC, "Bitwise and."),
    ("or", _LOGIC, np.bitwise_or, _AC, "Bitwise or."),
    ("xor", _LOGIC, np.bitwise_xor, _AC, "Bitwise exclusive or."),
)
_SHIFTS = (
    ("shift_left", "left", "lhs * 2^rhs, wrapped; 0 when rhs is the width or more."),
    ("shift_right_logical", "logical", "The bits of lhs moved down, zeros from above."),
    ("shift_right_arithmetic", "arithmetic", "The bits of lhs moved down, the sign bit from above."),
)
_ONE, _TWO = ("operand",), ("lhs", "rhs")


def _pointwise(names: tuple[str, ...], classes: str) -> Rule:
    return partial(rules.pointwise, names=names, classes=classes)


for _name, _classes, _function, _text in _UNARY:
    _op(_name, _pointwise(_ONE, _classes), scalars.lifted(_function), _text, "elementwise", operands=_ONE)
for _name, _classes, _function, _traits, _text in _BINARY:
    _op(_name, _pointwise(_TWO, _classes), scalars.lifted(_function), _text, f"elementwise {_traits}", operands=_TWO)
for _name, _direction, _text in _SHIFTS:
    _op(_name, _pointwise(_TWO, "int"), scalars.shift(_direction), _text, "elementwise", operands=_TWO)

ABS = _op("abs", rules.magnitude, scalars.lifted(np.abs), "The magnitude, real for a complex operand.", "elementwise", operands=_ONE)
IS_FINITE = _op("is_finite", partial(rules.predicate, classes="float"),
                scalars.lifted(np.isfinite), "True but for NaN and infinities.", "elementwise", operands=_ONE)  # fmt: skip
COMPARE = _op("compare", rules.compare, scalars.compare, "lhs `direction` rhs, one of EQ NE LT LE GT GE; NaN differs from everything.",
              "elementwise", operands=_TWO, attributes=(Attribute("direction", "string"),))  # fmt: skip
SELECT = _op("select", rules.select, scalars.select, "on_true where pred, else on_false; pred may have rank 0.",
             "elementwise", operands=("pred", "on_true", "on_false"))  # fmt: skip
CLAMP = _op("clamp", rules.clamp, scalars.lifted(scalars.clamp), "min(max(operand, min), max); a bound may have rank 0.",
            "elementwise", operands=("min", "operand", "max"))  # fmt: skip
CONVERT = _op("convert", rules.convert, scalars.convert, "The operand's values in another element type.",
              "elementwise", operands=_ONE, attributes=(Attribute("dtype", "dtype"),))  # fmt: skip

# ---------------------------------------------------------------- movement


def _no_flops(_: Type, __: Sequence[Type], ___: Attributes) -> Dim:
    return 0


def _moving(name: str, infer: Rule, meaning: Meaning, document: str, *attributes: Attribute, **more: Any) -> Op:
    return _op(name, per_tensor(infer), meaning, document, "movement", attributes=attributes, flops=_no_flops, **{"operands": _ONE, **more})


_SHAPE = Attribute("shape", "dims")
BROADCAST = _moving("broadcast_in_dim", rules.broadcast_in_dim, tensors.broadcast_in_dim, "Operand dim i is repeated along dim "
                    "`broadcast_dimensions[i]`.", _SHAPE, Attribute("broadcast_dimensions", "ints"))  # fmt: skip
RESHAPE = _moving("reshape", rules.reshape, tensors.reshape, "The same elements in row-major order under another shape.", _SHAPE)
TRANSPOSE = _moving("transpose", rules.transpose, tensors.transpose, "Result dim i is operand dim `permutation[i]`.",
                    Attribute("permutation", "permutation"))  # fmt: skip
SLICE = _moving("slice", rules.slice, tensors.slice_, "Every `strides`-th element from `start` to before `limit`.",
                Attribute("start", "dims"), Attribute("limit", "dims"), Attribute("strides", "ints"))  # fmt: skip
CONCATENATE = _moving("concatenate", rules.concatenate, tensors.concatenate, "The inputs one after the other along `dimension`.",
                      Attribute("dimension", "int"), operands=("inputs",), variadic=True)  # fmt: skip
PAD = _moving("pad", rules.pad, tensors.pad, "`padding_value` around and between the elements; negative `low` and `high` crop.",
              Attribute("low", "ints"), Attribute("high", "ints"), Attribute("interior", "ints"),
              operands=("operand", "padding_value"))  # fmt: skip
REVERSE = _moving("reverse", rules.reverse, tensors.reverse, "The order of the elements turned round along `dimensions`.",
                  Attribute("dimensions", "ints"))  # fmt: skip
IOTA = _moving("iota", rules.iota, tensors.iota, "0, 1, 2 .. along `dimension`.", _SHAPE, Attribute("dtype", "dtype"),
               Attribute("dimension", "int"), operands=())  # fmt: skip

# ---------------------------------------------------------------- contractions and reductions


def _contraction_flops(result: Type, operands: Sequence[Type], attributes: Attributes) -> Dim:
    """A multiplication and an addition for each result element and each contracted one."""
    lhs = operands[0]
    assert isinstance(result, TensorType) and isinstance(lhs, TensorType)
    depth = dims.product(lhs.dims[axis] for axis in attributes["lhs_contract"])
    return dims.multiply(2, dims.multiply(result.elements, depth))


def _convolution_flops(result: Type, operands: Sequence[Type], _: Attributes) -> Dim:
    """A multiplication and an addition for each result element and each element of one output channel's filter."""
    rhs = operands[1]
    assert isinstance(result, TensorType) and isinstance(rhs, TensorType)
    return dims.multiply(2, dims.multiply(result.elements, dims.product(rhs.dims[1:])))


def _reduction_flops(_: Type, operands: Sequence[Type], __: Attributes) -> Dim:
    """One combination for each operand element."""
    assert isinstance(operands[0], TensorType)
    return operands[0].elements


DOT_GENERAL = _op(
    "dot_general", rules.dot_general, tensors.dot_general,
    "Sums of products over the contracted dims; the result has the batch dims, then the free dims of lhs, then those of rhs.",
    operands=_TWO, flops=_contraction_flops,
    attributes=tuple(Attribute(name, "ints", (), required=False) for name in ("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract")),
)  # fmt: skip
CONVOLUTION = _op(
    "convolution", rules.convolution, tensors.convolution,
    "Sums of products of windows of lhs [N, C, spatial..] with the filters rhs [O, C / feature_group_count, window..]. The specification's "
    "window_reversal is `reverse` of the filters.",
    operands=_TWO, flops=_convolution_flops,
    attributes=(Attribute("strides", "ints"), Attribute("padding", "any"), Attribute("lhs_dilation", "ints"),
                Attribute("rhs_dilation", "ints"), Attribute("feature_group_count", "int", 1, required=False),
                Attribute("batch_group_count", "int", 1, required=False)),
)  # fmt: skip
REDUCE = _op(
    "reduce", rules.reduce, tensors.reduce,
    "The elements along the sorted `dimensions` folded by `combiner` (add multiply maximum minimum and or) from its identity.",
    operands=_ONE, flops=_reduction_flops, attributes=(Attribute("dimensions", "ints"), Attribute("combiner", "string")),
)  # fmt: skip
