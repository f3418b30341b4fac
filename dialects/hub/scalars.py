"""NumPy meanings of the hub's elementwise ops, for every dtype that NumPy and ml_dtypes hold.

Floats narrower than f32 are computed in f32 and integers narrower than a byte in 32 bits; the result is rounded
(wrapped) once. Integer arithmetic wraps. What StableHLO leaves open is as XLA has it: `x / 0` is -1 (all bits set), the
remainder of `x` by 0 is `x`, a shift by the width or more gives 0 or the sign, 0 to a negative integer power is 0, and a
float that an integer cannot hold saturates, NaN giving 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from coset.ir.op import Array, Meaning
from coset.ir.types import DTYPES, DType, dtype_of

if TYPE_CHECKING:
    from coset.ir.term import Term

_ARITHMETIC: dict[str, tuple[int, type]] = {"float": (32, np.float32), "int": (8, np.int32), "uint": (8, np.uint32)}  # for fewer bits
_WIDE: dict[np.dtype, np.dtype] = {
    dtype.numpy: np.dtype(_ARITHMETIC[dtype.kind][1])
    for dtype in DTYPES.values()
    if dtype.kind in _ARITHMETIC and dtype.bits < _ARITHMETIC[dtype.kind][0]
}


def widen(array: Array) -> Array:
    """`array` in the type that arithmetic is done in; values are kept."""
    wide = _WIDE.get(array.dtype)
    return np.asarray(array) if wide is None else np.asarray(array).astype(wide)


def narrow(array: object, dtype: DType) -> Array:
    """`array` as `dtype`: floats rounded to nearest even, integers wrapped."""
    value = np.asarray(array)
    if value.dtype == dtype.numpy:
        return value
    if dtype.kind == "float" and dtype.bits < 32:
        return _rounded(value, dtype)
    if dtype.kind in ("int", "uint") and dtype.bits < 8:
        low = value.astype(np.int8) & np.int8((1 << dtype.bits) - 1)
        sign = np.int8((1 << dtype.bits - 1) if dtype.kind == "int" else 0)
        return np.asarray((low ^ sign) - sign).astype(dtype.numpy)
    return value.astype(dtype.numpy)


def _rounded(value: Array, dtype: DType) -> Array:
    """f32 and f64 to a narrower float with one rounding: ml_dtypes goes through f32, so f32 is reached by rounding to odd
    (Boldo and Melquiond 2008, theorem 1: the second rounding is then the only one)."""
    if value.dtype == np.float64:
        with np.errstate(all="ignore"):
            single = value.astype(np.float32)
            error = np.where(np.isfinite(value), value, single) - single
            even = single.view(np.int32) & 1 == 0
            inexact = (error != 0) & np.isfinite(single) & even
            odd = np.where((error > 0) != np.signbit(single), single.view(np.int32) + 1, single.view(np.int32) - 1)
            value = np.asarray(np.where(inexact, odd, single.view(np.int32)).view(np.float32))
    with np.errstate(all="ignore"):
        return value.astype(dtype.numpy)


def lifted(function: Callable[..., object]) -> Meaning:
    """The meaning of an elementwise op, from its function on wide arrays."""

    def meaning(term: Term, arrays: Sequence[Array], _: Mapping[str, int]) -> Array:
        with np.errstate(all="ignore"):
            return narrow(function(*map(widen, arrays)), term.tensor.dtype)

    return meaning


# ---------------------------------------------------------------- one operand


def _is_integer(x: Array) -> bool:
    return x.dtype.kind in "iu"


def sign(x: Array) -> object:
    """-1, 0 or 1; zeros keep their sign, NaN stays, a complex number is divided by its magnitude."""
    if x.dtype.kind != "f":
        return np.sign(x)
    return np.where((x == 0) | np.isnan(x), x, np.copysign(x.dtype.type(1), x))


def round_half_away(x: Array) -> object:
    """Round to nearest, ties away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


def reciprocal_root(x: Array) -> object:
    """1 / sqrt(x); -0.0 gives -inf."""
    return x.dtype.type(1) / np.sqrt(x)


def cube_root(x: Array) -> object:
    """The real cube root, or the principal complex one."""
    return np.power(x, 1 / 3) if x.dtype.kind == "c" else np.cbrt(x)


def logistic(x: Array) -> object:
    """1 / (1 + exp(-x)), without overflow."""
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    one = x.dtype.type(1)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, one / (one + small), small / (one + small))


# ---------------------------------------------------------------- two operands


def divide(a: Array, b: Array) -> object:
    """a / b; of integers truncated to zero."""
    if not _is_integer(a):
        return a / b
    divisor = np.where(b == 0, b.dtype.type(1), b)
    quotient = (a - np.fmod(a, divisor)) // divisor
    return np.where(b == 0, ~b, quotient)  # ~0 has all bits set


def remainder(a: Array, b: Array) -> object:
    """a - b * trunc(a / b), with the sign of a."""
    if not _is_integer(a):
        return np.fmod(a, b)
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def power(a: Array, b: Array) -> object:
    """a to the power b; a negative power of an integer is truncated: 0 unless a is 1 or -1."""
    if not _is_integer(a):
        # NumPy takes one exponent for all elements (of stride 0, or rank 0) for a square or a root, which round and treat -inf otherwise
        shape = np.broadcast_shapes(np.shape(a), np.shape(b))
        bases, exponents = (np.array(np.broadcast_to(x, shape)).reshape(-1) for x in (a, b))
        found = np.power(bases, exponents)
        return np.where(exponents == 1, bases, found).reshape(shape)  # its vectorized kernels round the first power of some numbers, too
    exponent, square = np.where(b < 0, 0, b).astype(np.uint64), np.asarray(a)
    result = np.ones_like(a)
    while np.any(exponent):  # by squaring: at most 64 rounds
        result = np.where(exponent & np.uint64(1), result * square, result)
        square, exponent = square * square, exponent >> np.uint64(1)
    unit = np.where(a == 1, a, np.where(b & 1 == 1, a, a * a))
    return np.where(b < 0, np.where(np.abs(a) == 1, unit, a.dtype.type(0)), result)


def maximum(a: Array, b: Array) -> object:
    """IEEE 754-2019 maximum: NaN wins, 0.0 is above -0.0; complex numbers compare lexicographically."""
    larger = np.maximum(a, b)
    return np.where((a == 0) & (b == 0), a + b, larger) if a.dtype.kind == "f" else larger


def minimum(a: Array, b: Array) -> object:
    """IEEE 754-2019 minimum: NaN wins, -0.0 is below 0.0; complex numbers compare lexicographically."""
    smaller = np.minimum(a, b)
    return np.where((a == 0) & (b == 0), -(-a - b), smaller) if a.dtype.kind == "f" else smaller


def arc_tangent(y: Array, x: Array) -> object:
    """The angle of the point (x, y); its analytic continuation for complex numbers."""
    if y.dtype.kind == "c":
        return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))
    return np.arctan2(y, x)


def shift(direction: str) -> Meaning:
    """The meaning of a shift: `left`, `logical` or `arithmetic`. The amount counts as unsigned."""

    def meaning(_: Term, arrays: Sequence[Array], __: Mapping[str, int]) -> Array:
        dtype = dtype_of(arrays[0].dtype)
        mask = np.uint64((1 << dtype.bits) - 1)
        bits, amount = (widen(array).astype(np.uint64) & mask for array in arrays)
        beyond, step = amount >= dtype.bits, np.minimum(amount, np.uint64(dtype.bits - 1))
        if direction == "arithmetic":
            top = np.uint64(1 << dtype.bits - 1)
            with np.errstate(over="ignore"):
                signed = ((bits ^ top) - top).view(np.int64)
            return narrow(signed >> step.view(np.int64), dtype)
        moved = bits << step if direction == "left" else bits >> step
        return narrow(np.where(beyond, np.uint64(0), moved), dtype)

    return meaning


# ---------------------------------------------------------------- comparison, choice, conversion

COMPARISONS: dict[str, Callable[[Array, Array], object]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip


def compare(term: Term, arrays: Sequence[Array], _: Mapping[str, int]) -> Array:
    """IEEE comparison (NaN differs from everything); complex numbers compare lexicographically."""
    with np.errstate(all="ignore"):
        return np.asarray(COMPARISONS[term.attribute("direction")](*map(widen, arrays))).astype(np.bool_)


def select(_: Term, arrays: Sequence[Array], __: Mapping[str, int]) -> Array:
    """`on_true` where `pred`, else `on_false`."""
    pred, on_true, on_false = arrays
    return np.where(pred, on_true, on_false)


def clamp(low: Array, x: Array, high: Array) -> object:
    """min(max(x, low), high); NaN in any of them wins."""
    return minimum(np.asarray(maximum(x, low)), high)


def convert(term: Term, arrays: Sequence[Array], _: Mapping[str, int]) -> Array:
    """The operand as the dtype that the term states; see `cast`."""
    return cast(arrays[0], term.tensor.dtype)


def cast(array: Array, dtype: DType) -> Array:
    """`array` as `dtype`. Floats round to nearest even; a float truncates to an integer, out of range saturates, NaN gives 0;
    integers wrap; anything but zero is true; a complex number loses its imaginary part."""
    value = np.asarray(array)
    if value.dtype == dtype.numpy:
        return value
    with np.errstate(all="ignore"):
        value = widen(value)
        if dtype.kind == "bool":
            return np.asarray(value != 0)
        if value.dtype.kind == "c" and dtype.kind != "complex":
            value = np.asarray(value.real)
        if value.dtype.kind == "f" and dtype.kind in ("int", "uint"):
            return _truncated(value, dtype)
        if dtype.kind == "float" and dtype.bits < 32:
            value = _for_rounding(value)
        return narrow(value, dtype)


def _truncated(value: Array, dtype: DType) -> Array:
    signed = dtype.kind == "int"
    low, high = (-(1 << dtype.bits - 1), 1 << dtype.bits - 1) if signed else (0, 1 << dtype.bits)  # both exact as f64
    whole = np.trunc(value.astype(np.float64))
    inside = (whole >= low) & (whole < high)
    storage = np.dtype(np.int64 if signed else np.uint64)
    result = np.where(inside, whole, 0).astype(storage)
    result = np.where(whole >= high, storage.type(high - 1), np.where(whole < low, storage.type(low), result))
    return narrow(result, dtype)


def _for_rounding(value: Array) -> Array:
    """Integers and booleans as f32 or f64 that round to a narrow float as the integer does: bits that f64 may not hold become
    one sticky bit (rounding to odd)."""
    if value.dtype.kind in "fc":
        return value
    if value.dtype.itemsize < 8:
        return value.astype(np.float64)
    bits = value.dtype.type(0x7FF)
    sticky = (value & ~bits) | np.where(value & bits, value.dtype.type(0x800), value.dtype.type(0))
    large = np.abs(value.astype(np.float64)) >= 2.0**53
    return np.where(large, sticky.astype(np.float64), value.astype(np.float64))
