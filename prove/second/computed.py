"""What ops compute, on NumPy arrays: a table of our own. What is not in it, or a case that it does not know, cannot be said."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coset.ir.term import Term
from coset.ir.types import DType
from coset.prove.second.answer import CannotSay
from coset.prove.second.conversions import converted, low_bits
from coset.prove.second.formats import Array

Compute = Callable[..., Array]


def _elementwise(name: str, floats: Compute | None, integers: Callable[..., Array] | None = None, truths: Compute | None = None) -> Any:
    """An op that computes each element by itself: floats narrower than f32 in f32, rounded once; integers modulo 2^n, `integers` having
    their bits as its last argument; None where this table has no such function."""

    def computed(term: Term, arrays: Sequence[Array]) -> Array:
        dtype = term.operands[-1].tensor.dtype
        if dtype.kind == "float" and floats is not None:
            own = dtype.bits >= 32
            result = np.asarray(floats(*(array if own else array.astype(np.float32) for array in arrays)))
            return result if own or term.tensor.dtype is not dtype else result.astype(dtype.numpy)
        if dtype.kind in ("int", "uint") and integers is not None:
            result = np.asarray(integers(*(array if dtype.bits >= 8 else array.astype(np.int64) for array in arrays), dtype))
            return result if term.tensor.dtype is not dtype else low_bits(result, dtype)
        if dtype.kind == "bool" and truths is not None:
            return np.asarray(truths(*arrays))
        raise CannotSay(f"{name} of {dtype}")

    return computed


def _plain(compute: Compute) -> Callable[..., Array]:
    """A function of integers that does not ask how many bits they have."""
    return lambda *arrays: compute(*arrays[:-1])


def _in_objects(compute: Callable[..., int]) -> Callable[..., Array]:
    """A function of integers, one by one and without an end to their size; the low bits are its result."""

    def computed(*given: Any) -> Array:
        arrays, dtype = np.broadcast_arrays(*given[:-1]), given[-1]
        mask = (1 << dtype.bits) - 1
        elements = zip(*(each.reshape(-1) for each in arrays), strict=True)
        results = [compute(*(int(each) for each in row), dtype.bits) & mask for row in elements]
        return np.array(results, np.uint64).reshape(arrays[0].shape)

    return computed


def _quotient(a: int, b: int, _: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def _rest(a: int, b: int, bits: int) -> int:
    return a if b == 0 else a - b * _quotient(a, b, bits)


def _power(a: int, b: int, bits: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << bits)
    return (1 if b % 2 == 0 else a) if abs(a) == 1 else 0


def _shifted_left(a: int, b: int, bits: int) -> int:
    return a << b if 0 <= b < bits else 0


def _shifted_right(a: int, b: int, bits: int) -> int:
    return (a & ((1 << bits) - 1)) >> b if 0 <= b < bits else 0


def _shifted_signed(a: int, b: int, bits: int) -> int:
    signed = a - (1 << bits) if a >= 1 << bits - 1 else a  # of unsigned integers the highest bit is the sign
    return signed >> b if 0 <= b < bits else signed >> bits


def _larger(compute: Any) -> Compute:
    """NaN if one is, and -0 below 0."""

    def larger(a: Array, b: Array) -> Array:
        result = np.asarray(compute(a, b))
        zeros = (a == 0) & (b == 0)
        sign = np.signbit(a) & np.signbit(b) if compute is np.maximum else np.signbit(a) | np.signbit(b)
        return np.where(zeros, np.where(sign, np.asarray(-0.0, result.dtype), np.asarray(0.0, result.dtype)), result)

    return larger


def _clamped(low: Array, x: Array, high: Array) -> Array:
    return _larger(np.minimum)(_larger(np.maximum)(x, low), high)


def sign(x: Array) -> Array:
    """1, -1, or the number itself where it is a zero or NaN."""
    return np.where((x == 0) | np.isnan(x), x, np.copysign(np.asarray(1, x.dtype), x))


def away_from_zero(x: Array) -> Array:
    """The nearest whole number, of two the one that is further from 0."""
    whole = np.trunc(x)
    size = np.where(np.abs(x - whole) >= 0.5, np.abs(whole) + 1, np.abs(whole)).astype(x.dtype)
    return np.asarray(np.copysign(size, x))


def erf(x: Array) -> Array:
    """The error function of floats of 64 bits."""
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _erfc(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erfc, otypes=[np.float64])(x))


def _wide(compute: Compute) -> Compute:
    """Computed in 64 bits."""
    return lambda x: compute(x.astype(np.float64)).astype(x.dtype)


def _compare(term: Term, arrays: Sequence[Array]) -> Array:
    functions = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    word, dtype = term.attribute("direction"), term.operands[0].tensor.dtype
    if word not in functions or dtype.kind in ("complex", "string"):
        raise CannotSay(f"the comparison {word} of {dtype}")
    if arrays[0].dtype.kind == "V":
        arrays = [array.astype(np.float32 if dtype.kind == "float" else np.int64) for array in arrays]
    return np.asarray(functions[word](*arrays))


def _complex(term: Term, arrays: Sequence[Array]) -> Array:
    result = np.empty(arrays[0].shape, term.tensor.dtype.numpy)
    result.real, result.imag = arrays
    return result


def widened(x: Array, dtype: DType) -> Array:
    """What sums and products of elements are computed in: truths and integers of few bits as integers, floats in 32 bits at least."""
    if dtype.kind == "complex" or dtype.kind == "string":
        raise CannotSay(f"{dtype} that are computed")
    if dtype.kind == "float":
        return x if dtype.bits >= 32 else x.astype(np.float32)
    return x.astype(np.int64) if dtype.bits < 8 or dtype.kind == "bool" else x


def _narrowed(x: Array, dtype: DType) -> Array:
    if dtype.kind in ("int", "uint"):
        return low_bits(x, dtype)
    return np.asarray(x != 0) if dtype.kind == "bool" else x.astype(dtype.numpy)


def _dot(term: Term, arrays: Sequence[Array]) -> Array:
    dtype = term.operands[0].tensor.dtype
    a, b = (rows(term, [widened(array, dtype) for array in arrays], side) for side in (0, 1))
    return _narrowed(matrix_product(term, a, b), term.tensor.dtype)


def rows(term: Term, arrays: Sequence[Array], side: int) -> Array:
    """An operand as [batch, free, contracted], or on the right as [batch, contracted, free]."""
    name = ("lhs", "rhs")[side]
    batch, contract = term.attribute(f"{name}_batch"), term.attribute(f"{name}_contract")
    x = arrays[side]
    free = tuple(axis for axis in range(x.ndim) if axis not in batch + contract)
    order = batch + (free + contract if side == 0 else contract + free)
    sizes = [math.prod(x.shape[axis] for axis in group) for group in ((free, contract) if side == 0 else (contract, free))]
    return np.ascontiguousarray(x.transpose(order)).reshape(*(x.shape[axis] for axis in batch), *sizes)


def matrix_product(term: Term, a: Array, b: Array) -> Array:
    """The product of two operands as `rows` has them."""
    return np.asarray(np.matmul(a, b)).reshape(term.tensor.static or ())


FOLDS: dict[str, Any] = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
BITS: dict[str, Any] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _reduce(term: Term, arrays: Sequence[Array]) -> Array:
    x, axes, dtype = arrays[0], tuple(term.attribute("dimensions")), term.tensor.dtype
    word = term.attribute("combiner")
    function = FOLDS.get(word) if dtype.kind != "bool" else None
    if dtype.kind != "float":
        function = function or BITS.get(word)
    if function is None or (word in ("maximum", "minimum") and 0 in x.shape):
        raise CannotSay(f"a reduction of {dtype} with {word}")
    result = widened(x, dtype) if dtype.kind != "bool" else x
    for axis in sorted(axes, reverse=True):
        result = function.reduce(result, axis=axis, dtype=result.dtype)
    return _narrowed(np.asarray(result), dtype)


FUNCTIONS: dict[str, Compute] = {
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.rsqrt": lambda x: np.asarray(1 / np.sqrt(x)).astype(x.dtype),
    "stablehlo.cbrt": np.cbrt,
    "stablehlo.exponential": np.exp,
    "stablehlo.exponential_minus_one": np.expm1,
    "stablehlo.log": np.log,
    "stablehlo.log_plus_one": np.log1p,
    "stablehlo.logistic": lambda x: np.asarray(1 / (1 + np.exp(-x))).astype(x.dtype),
    "stablehlo.tanh": np.tanh,
    "stablehlo.sine": np.sin,
    "stablehlo.cosine": np.cos,
    "stablehlo.tan": np.tan,
    "stablehlo.atan2": np.arctan2,
    "stablehlo.floor": np.floor,
    "stablehlo.ceil": np.ceil,
    "stablehlo.round_nearest_even": np.rint,
    "stablehlo.round_nearest_afz": away_from_zero,
    "chlo.erf": _wide(erf),
    "chlo.erfc": _wide(_erfc),
    "chlo.sinh": np.sinh,
    "chlo.cosh": np.cosh,
    "chlo.asin": np.arcsin,
    "chlo.acos": np.arccos,
    "chlo.atan": np.arctan,
    "chlo.asinh": np.arcsinh,
    "chlo.acosh": np.arccosh,
    "chlo.atanh": np.arctanh,
    "chlo.is_inf": np.isinf,
    "chlo.is_nan": np.isnan,
}

COMPUTED: dict[str, Callable[[Term, Sequence[Array]], Array]] = {
    **{name: _elementwise(name, function) for name, function in FUNCTIONS.items()},
    "stablehlo.add": _elementwise("a sum", np.add, _plain(np.add), np.logical_or),
    "stablehlo.subtract": _elementwise("a difference", np.subtract, _plain(np.subtract)),
    "stablehlo.multiply": _elementwise("a product", np.multiply, _plain(np.multiply), np.logical_and),
    "stablehlo.divide": _elementwise("a quotient", np.divide, _in_objects(_quotient)),
    "stablehlo.remainder": _elementwise("a remainder", np.fmod, _in_objects(_rest)),
    "stablehlo.power": _elementwise("a power", np.power, _in_objects(_power)),
    "stablehlo.maximum": _elementwise("a maximum", _larger(np.maximum), _plain(np.maximum), np.logical_or),
    "stablehlo.minimum": _elementwise("a minimum", _larger(np.minimum), _plain(np.minimum), np.logical_and),
    "stablehlo.clamp": _elementwise("a clamp", _clamped, _plain(lambda low, x, high: np.minimum(np.maximum(x, low), high))),
    "stablehlo.negate": _elementwise("a negative", np.negative, _plain(np.negative)),
    "stablehlo.abs": _elementwise("a magnitude", np.abs, _plain(np.abs)),
    "stablehlo.sign": _elementwise("a sign", sign, _plain(np.sign)),
    "stablehlo.is_finite": _elementwise("is_finite", np.isfinite),
    "stablehlo.and": _elementwise("and", None, _plain(np.bitwise_and), np.logical_and),
    "stablehlo.or": _elementwise("or", None, _plain(np.bitwise_or), np.logical_or),
    "stablehlo.xor": _elementwise("xor", None, _plain(np.bitwise_xor), np.logical_xor),
    "stablehlo.not": _elementwise("not", None, _plain(np.invert), np.logical_not),
    "stablehlo.shift_left": _elementwise("a shift", None, _in_objects(_shifted_left)),
    "stablehlo.shift_right_logical": _elementwise("a shift", None, _in_objects(_shifted_right)),
    "stablehlo.shift_right_arithmetic": _elementwise("a shift", None, _in_objects(_shifted_signed)),
    "stablehlo.popcnt": _elementwise("popcnt", None, _in_objects(lambda a, bits: (a & ((1 << bits) - 1)).bit_count())),
    "stablehlo.count_leading_zeros": _elementwise(
        "count_leading_zeros", None, _in_objects(lambda a, bits: bits - (a & ((1 << bits) - 1)).bit_length())
    ),
    "stablehlo.select": lambda term, arrays: np.where(arrays[0], arrays[1], arrays[2]),
    "stablehlo.compare": _compare,
    "stablehlo.convert": lambda term, arrays: converted(arrays[0], term.operands[0].tensor.dtype, term.tensor.dtype),
    "stablehlo.real": lambda term, arrays: np.array(arrays[0].real) if term.operands[0].tensor.dtype.kind == "complex" else arrays[0],
    "stablehlo.imag": lambda term, arrays: (
        np.array(arrays[0].imag) if term.operands[0].tensor.dtype.kind == "complex" else np.zeros_like(arrays[0])
    ),
    "stablehlo.complex": _complex,
    "stablehlo.dot_general": _dot,
    "stablehlo.reduce": _reduce,
}
