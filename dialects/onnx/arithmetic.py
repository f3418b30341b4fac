"""Arithmetic on terms as definitions write it: NumPy's broadcasting, plain numbers and dims as scalars of the dtype at hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Union

import numpy as np

from coset.dialects.hub import chlo, stablehlo, stablehlo_data, stablehlo_regions
from coset.dialects.hub.terms import convert, literal, numpy_broadcast, numpy_shape, reshape, splat
from coset.ir import dims
from coset.ir.builtin import DIMS
from coset.ir.dims import Dim, Poly
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import BOOL, I64, DType, TensorType

PRIMITIVES = (chlo, stablehlo, stablehlo_data, stablehlo_regions)  # their ops are made here
Number = Union[Term, float, Dim]
INFINITY = float("inf")


def pointwise(op: str, *operands: Number) -> Term:
    """The elementwise hub op `op` on the operands, broadcast to one shape.

    Raises:
        TypeRuleError: the shapes do not broadcast, or the dtypes differ.
    """
    terms = [operand for operand in operands if isinstance(operand, Term)]
    shape = numpy_shape(*(term.tensor.dims for term in terms))
    dtype = terms[0].tensor.dtype
    given = [x if isinstance(x, Term) else counted(x, dtype) for x in operands]
    return make(op if "." in op else f"stablehlo.{op}", [numpy_broadcast(x, shape) for x in given])


add, subtract, multiply, divide, power, maximum, minimum, both, either = (
    partial(pointwise, name) for name in ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "and", "or")
)
sqrt, exp, log, tanh, logistic, negate, absolute, rint, invert = (
    partial(pointwise, name)
    for name in ("sqrt", "exponential", "log", "tanh", "logistic", "negate", "abs", "round_nearest_even", "not")
)  # fmt: skip


def compare(a: Term, direction: str, b: Number) -> Term:
    """`a direction b` (EQ NE LT LE GT GE) element by element."""
    other = b if isinstance(b, Term) else counted(b, a.tensor.dtype)
    shape = numpy_shape(a.tensor.dims, other.tensor.dims)
    return make("stablehlo.compare", [numpy_broadcast(x, shape) for x in (a, other)], {"direction": direction})


def select(condition: Term, on_true: Number, on_false: Number, *, dtype: DType | None = None) -> Term:
    """`on_true` where `condition`, else `on_false`; `dtype` is needed where both are numbers."""
    terms = [x for x in (on_true, on_false) if isinstance(x, Term)]
    kind = terms[0].tensor.dtype if terms else dtype
    assert kind is not None
    shape = numpy_shape(condition.tensor.dims, *(term.tensor.dims for term in terms))
    given = [x if isinstance(x, Term) else counted(x, kind) for x in (on_true, on_false)]
    return make("stablehlo.select", [numpy_broadcast(x, shape) for x in (condition, *given)])


def fold(x: Term, axes: Sequence[int], combiner: str = "add", *, keep: bool = True) -> Term:
    """`x` folded over `axes`, which stay as dims of 1 with `keep`."""
    found = tuple(sorted(axis % max(1, x.tensor.rank) for axis in axes))
    if not found:
        return x
    reduced = make("stablehlo.reduce", (x,), {"dimensions": found, "combiner": combiner})
    return reshape(reduced, tuple(1 if axis in found else dim for axis, dim in enumerate(x.tensor.dims))) if keep else reduced


def iota(shape: Sequence[Dim], axis: int, dtype: DType = I64) -> Term:
    """0, 1, 2, .. along `axis`."""
    require(len(shape) > 0, "numbers are counted along an axis, and a scalar has none")
    return make("stablehlo.iota", (), {"shape": tuple(shape), "dtype": dtype, "dimension": axis % len(shape)})


def counted(dim: Dim | float, dtype: DType) -> Term:
    """A number, or that of a dim, as a rank-0 term of `dtype`."""
    if not isinstance(dim, Poly):
        return splat(dim, dtype, ())
    return convert(make(DIMS, (), {"dims": (dim,), "type": TensorType(I64, ())}), dtype)


def counted_all(numbers: Sequence[Dim], dtype: DType) -> Term:
    """The numbers of dims as a vector."""
    plain = [number for number in numbers if not isinstance(number, Poly)]
    if len(plain) == len(numbers):
        return convert(literal(np.array(plain, np.int64)), dtype)
    return convert(make(DIMS, (), {"dims": tuple(numbers), "type": TensorType(I64, (len(numbers),))}), dtype)


def clamp(x: Term, low: Dim | float, high: Dim | float) -> Term:
    """`x`, at least `low` and at most `high`."""
    dtype = x.tensor.dtype
    return make("stablehlo.clamp", (counted(low, dtype), x, counted(high, dtype)))


def unsqueeze(x: Term, *axes: int) -> Term:
    """`x` with dims of 1 at `axes` of the result."""
    rank = x.tensor.rank + len(axes)
    added = {axis % rank for axis in axes}
    rest = iter(x.tensor.dims)
    return reshape(x, tuple(1 if axis in added else next(rest) for axis in range(rank)))


def concatenate(parts: Sequence[Term], axis: int) -> Term:
    """The parts one after the other."""
    return parts[0] if len(parts) == 1 else make("stablehlo.concatenate", list(parts), {"dimension": axis % parts[0].tensor.rank})


def take(x: Term, axis: int, start: Dim, limit: Dim, stride: int = 1) -> Term:
    """The elements of `x` from `start` to before `limit` along `axis`."""
    axis %= x.tensor.rank
    shape = x.tensor.dims
    if (start, limit, stride) == (0, shape[axis], 1):
        return x
    require(not isinstance(start, int) or start >= 0, f"a slice of {x.type} starts at {start}")
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    limits = tuple(limit if i == axis else dim for i, dim in enumerate(shape))
    strides = tuple(stride if i == axis else 1 for i in range(len(shape)))
    return make("stablehlo.slice", (x,), {"start": starts, "limit": limits, "strides": strides})


def picked(x: Term, axis: int, index: Dim) -> Term:
    """Element `index` of `x` along `axis`, whose dim goes away."""
    require(x.tensor.rank > 0, "elements are picked along an axis, and a scalar has none")
    axis %= x.tensor.rank
    part = take(x, axis, index, index + 1 if isinstance(index, int) else index)
    return reshape(part, tuple(dim for i, dim in enumerate(x.tensor.dims) if i != axis))


def sized(x: Term, axis: int, dim: Dim) -> Term:
    """`x` with the dim `dim` along `axis`: what the op prescribes of a dim whose symbol does not say so. The elements up to there.

    Raises:
        TypeRuleError: both are numbers, and differ.
    """
    own = x.tensor.dims[axis]
    require(own == dim or not (isinstance(own, int) and isinstance(dim, int)), f"dim {axis} of {x.type} must be {dim}")
    return take(x, axis, 0, dim)


def pad(x: Term, axis: int, low: Dim, high: Dim, value: float) -> Term:
    """`x` with `low` elements `value` before and `high` after it along `axis`; negative numbers crop."""
    rest = x.tensor.rank - 1 - axis % x.tensor.rank
    before = x.tensor.rank - 1 - rest
    return padded(x, ((0,) * before + (low,) + (0,) * rest), ((0,) * before + (high,) + (0,) * rest), value)


def padded(x: Term, low: Sequence[Dim], high: Sequence[Dim], value: Number, interior: Sequence[int] = ()) -> Term:
    """`x` with `low` elements `value` before and `high` after it along each axis, where negative numbers crop, and `interior` of them
    between its elements. A symbolic dim with elements between is taken as 1 or more."""
    gaps = tuple(interior) or (0,) * x.tensor.rank
    if not any((*low, *high, *gaps)):
        return x
    filling = value if isinstance(value, Term) else splat(value, x.tensor.dtype, ())
    if not any(isinstance(width, Poly) for width in (*low, *high)):
        return make("stablehlo.pad", (x, filling), {"low": tuple(low), "high": tuple(high), "interior": gaps})
    wide = [d if not gap else dims.add(dims.multiply(dims.subtract(d, 1), gap + 1), 1) for d, gap in zip(x.tensor.dims, gaps, strict=True)]
    shape = tuple(dims.add(dim, dims.add(a, b)) for dim, a, b in zip(wide, low, high, strict=True))
    return make("stablehlo.dynamic_pad", (x, filling, *(counted_all(each, I64) for each in (low, high, gaps))), {"shape": shape})


def reverse(x: Term, axis: int) -> Term:
    """The elements along `axis` the other way round."""
    return make("stablehlo.reverse", (x,), {"dimensions": (axis % x.tensor.rank,)})


def truth(x: Term) -> Term:
    """`x` as booleans: what is not zero is true."""
    return convert(x, BOOL)
