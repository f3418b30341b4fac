"""Triton's interpreter made to compute what Triton's compiler does, where the two differ (Triton 3.9).

The interpreter truncates where f32 becomes bf16 or an 8-bit float (devices round to nearest even), lets the order of the operands
decide between 0.0 and -0.0 in a maximum that propagates NaN (`arith.maximumf` has 0.0 above -0.0), makes numbers of the truth values
of a scalar comparison that is spread over a tile, multiplies the bit patterns of bf16 matrices, multiplies f32 in full where tf32 was
asked for, sums products of 8-bit floats in full where fewer bits were allowed, and calls the function of a reduction once for each
element, which takes minutes for one small model.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
_FLOATS = {
    "fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp8e4nv": ml_dtypes.float8_e4m3fn,
    "fp8e5": ml_dtypes.float8_e5m2, "fp8e4b8": ml_dtypes.float8_e4m3fnuz, "fp8e5b16": ml_dtypes.float8_e5m2fnuz,
}  # fmt: skip
_LEAST = {"fp8e4nv": -6, "fp8e5": -14}  # exponents of the least normal numbers of what is summed in few bits
_KEPT, _AT_ONCE = 13, 32  # bits of fraction, products


def correct_interpreter() -> None:
    """Replace the differing parts of `triton.runtime.interpreter`; to be called once, with TRITON_INTERPRET=1 set before."""
    from triton.runtime import interpreter

    interpreter._convert_float = _convert
    builder = interpreter.InterpreterBuilder
    builder.create_maximumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, _maximum)
    builder.create_minimumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, _minimum)
    builder.create_splat = lambda self, type, value: interpreter.TensorHandle(_splat(type.shape, value.data), value.dtype.scalar)
    builder.create_dot = lambda self, a, b, total, precision, imprecise: interpreter.TensorHandle(
        _dot(a, b, total, precision, imprecise), total.dtype.scalar
    )
    interpreter.ReduceOps.generic_reduce = _reduce


def _convert(data: Array, source: Any, target: Any, _: Any) -> Array:
    """`data` (numbers, or bits where NumPy has no such float) as the bits of `target`, rounded to nearest even."""
    old, new = _FLOATS[source.name], _FLOATS[target.name]
    with np.errstate(all="ignore"):
        values = np.ascontiguousarray(data).view(old).astype(new)
    bits: Array = values.view(f"u{np.dtype(new).itemsize}")
    return bits.reshape(np.shape(data))


def _splat(shape: list[int], scalar: Array) -> Array:
    return np.full(shape, scalar.reshape(-1)[0], scalar.dtype)


def _dot(a: Any, b: Any, total: Any, precision: Any, imprecise: Any) -> Array:
    """The product of two tiles plus `total`, in the dtype of `total`."""
    sides = [_floats(side) for side in (a, b)]
    if imprecise and all(side.dtype.scalar.name in _LEAST for side in (a, b)):
        least = [_LEAST[side.dtype.scalar.name] for side in (a, b)]
        return _in_short_sums(sides, least, total.data, int(getattr(imprecise, "value", imprecise)))
    if str(precision).endswith("TF32") and sides[0].dtype == sides[1].dtype == np.float32:
        sides = [_as_tf32(side) for side in sides]
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(*sides, dtype=total.data.dtype) + total.data)


def _floats(side: Any) -> Array:
    bits: Array = side.data
    if bits.dtype.kind == "u" and side.dtype.scalar.name in _FLOATS:
        bits = np.ascontiguousarray(bits).view(_FLOATS[side.dtype.scalar.name]).astype(np.float32)
    return bits


def _as_tf32(values: Array) -> Array:
    """Rounded to 10 bits of fraction, ties away from zero, as the conversion of devices does; NaN and infinities stay."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def _in_short_sums(sides: list[Array], least: list[int], total: Array, most: int) -> Array:
    """The product of two tiles of 8-bit floats plus `total`, summed as compute capability 9.0 does: 32 products at a time beside what was
    summed before, each cut off 13 bits below the largest exponent of them, and so is the sum; after `most` products f32 takes it on
    (Xie et al., MMA-Sim, arXiv:2511.10909). `least`: the exponents of subnormal numbers."""
    left, right = (side.astype(np.float64) for side in sides)
    high, low = (_exponents(side, under) for side, under in zip((left, right), least, strict=True))
    result = total
    with np.errstate(all="ignore"):
        for start in range(0, left.shape[1], most):
            part = np.zeros_like(total, np.float64)
            for at in range(start, min(start + most, left.shape[1]), _AT_ONCE):
                now = slice(at, at + _AT_ONCE)
                part = _cut(left[:, now, None] * right[None, now], high[:, now, None] + low[None, now], part)
            result = result + part.astype(np.float32)
        exact = np.matmul(*sides, dtype=np.float32) + total
    return np.where(np.isfinite(exact), result, exact)


def _cut(products: Array, exponents: Array, part: Array) -> Array:
    """The sum of `products` along axis 1 and of `part`, without what is below the 13 bits that are kept."""
    top = np.maximum(exponents.max(axis=1), _exponents(part, -126))
    cut = np.trunc(np.ldexp(products, _KEPT - top[:, None])).sum(axis=1) + np.trunc(np.ldexp(part, _KEPT - top))
    fraction, exponent = np.frexp(np.ldexp(cut, top - _KEPT))
    kept: Array = np.ldexp(np.trunc(np.ldexp(fraction, _KEPT + 1)), exponent - _KEPT - 1)
    return kept


def _exponents(values: Array, least: int) -> Array:
    return np.where(values == 0, -126, np.maximum(np.frexp(values)[1] - 1, least))


def _maximum(a: Array, b: Array) -> Array:
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _minimum(a: Array, b: Array) -> Array:
    return np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b))


def _reduce(self: Any, values: Any) -> list[Any]:
    """Halves folded together until one element is left, as the compiler does; a part that is left over waits its turn."""
    whole = self.axis is None
    arrays = [value.handle.data.reshape(-1) if whole else value.handle.data for value in values]
    axis = 0 if whole else self.axis % arrays[0].ndim
    kinds = [value.dtype for value in values]
    rest: list[list[Array]] = []
    while (count := arrays[0].shape[axis]) > 1:
        if count % 2:
            rest.append([np.take(array, [count - 1], axis) for array in arrays])
        half = count // 2
        left = [np.take(array, range(half), axis) for array in arrays]
        right = [np.take(array, range(half, 2 * half), axis) for array in arrays]
        arrays = _fold_halves(self, left, right, kinds)
    for part in rest:
        arrays = _fold_halves(self, arrays, part, kinds)
    if whole:
        rank = values[0].handle.data.ndim
        arrays = [array.reshape((1,) * rank) if self.keep_dims else array.reshape(-1)[0] for array in arrays]
    elif not self.keep_dims:
        arrays = [np.squeeze(array, axis) for array in arrays]
    return [self.to_tensor(array, kind) for array, kind in zip(arrays, kinds, strict=True)]


def _fold_halves(reduction: Any, left: list[Array], right: list[Array], kinds: list[Any]) -> list[Array]:
    """One call of the reduction's function on whole arrays."""
    pairs = [[reduction.to_tensor(array, kind) for array, kind in zip(side, kinds, strict=True)] for side in (left, right)]
    result = reduction.combine_fn.fn(*pairs[0], *pairs[1])
    found = result if isinstance(result, tuple) else (result,)
    return [value.handle.data for value in found]
