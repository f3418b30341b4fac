"""Quantized tensors of the hub: integers that stand for floats. See `QuantizedType`.

Ops that move elements take them as they are where one scale holds for all elements; ops that compute do not take them, and mean
what the StableHLO specification says they mean: dequantize, compute, quantize (the frontend makes these terms).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coset.dialects.hub_checks import get_dtype, require_class, tensors
from coset.dialects.hub_scalars import cast, narrow, widen
from coset.dialects.hub_tensors import Binding
from coset.ir.errors import require
from coset.ir.op import Array, Attributes
from coset.ir.term import Term
from coset.ir.types import DType, QuantizedType, TensorType, Type

Rule = Callable[[str, Sequence[Type], Attributes], Type]


def per_tensor(rule: Rule) -> Rule:
    """The type rule of an op that moves elements: it refuses tensors whose scale depends on where an element is."""

    def checked(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
        for i, operand in enumerate(operands):
            dtype = operand.dtype if isinstance(operand, TensorType) else None
            fixed = isinstance(dtype, QuantizedType) and dtype.axis is not None
            require(not fixed, f"`{name}` would move elements away from their scales: operand {i} is {operand}; dequantize it first")
        return rule(name, operands, attributes)

    return checked


def _require_axis(name: str, what: str, type: TensorType) -> None:
    dtype = type.dtype
    if isinstance(dtype, QuantizedType) and dtype.axis is not None:
        fits = dtype.axis < type.rank and type.dims[dtype.axis] == len(dtype.scales)
        require(fits, f"{what} of `{name}` has {len(dtype.scales)} scales along dim {dtype.axis}, but it is {type}")


def quantize_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operand's shape with quantized elements; the operand has elements of the expressed type, or is quantized to it."""
    (operand,) = tensors(name, operands, "operand")
    dtype = get_dtype(name, attributes)
    require(isinstance(dtype, QuantizedType), f"`dtype` of `{name}` must be a quantized type, not {dtype}")
    assert isinstance(dtype, QuantizedType)
    given = operand.dtype.expressed if isinstance(operand.dtype, QuantizedType) else operand.dtype
    require_class(name, "`operand`", given, "float")
    require(given == dtype.expressed, f"`{name}` to {dtype} takes {dtype.expressed} elements, but `operand` has {operand.dtype}")
    result = TensorType(dtype, operand.shape)
    _require_axis(name, "`operand`", operand)
    _require_axis(name, "the result", result)
    return result


def dequantize_type(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """The operand's shape with elements of the expressed type."""
    (operand,) = tensors(name, operands, "operand")
    dtype = operand.dtype
    require(isinstance(dtype, QuantizedType), f"`{name}` takes quantized elements, but `operand` has {dtype}")
    assert isinstance(dtype, QuantizedType)
    _require_axis(name, "`operand`", operand)
    return TensorType(dtype.expressed, operand.shape)


def uniform_quantize(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """round(clamp(operand / scale + zero_point)), every step in the expressed type, ties to even, NaN to 0."""
    operand, dtype = term.operands[0].tensor.dtype, term.tensor.dtype
    assert isinstance(dtype, QuantizedType)
    x = dequantized(arrays[0], operand) if isinstance(operand, QuantizedType) else arrays[0]
    return quantized_to(x, dtype)


def uniform_dequantize(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """(operand - zero_point) * scale; the difference is exact, the product is rounded once."""
    dtype = term.operands[0].tensor.dtype
    assert isinstance(dtype, QuantizedType)
    return dequantized(arrays[0], dtype)


def quantized_to(x: Array, dtype: QuantizedType) -> Array:
    """The floats `x` as integers of `dtype`; see `uniform_quantize`."""
    scales, points = _along(x, dtype)
    low, high = (cast(np.asarray(limit), dtype.expressed) for limit in (dtype.minimum, dtype.maximum))
    with np.errstate(all="ignore"):
        scaled = narrow(widen(x) / widen(scales), dtype.expressed)
        moved = narrow(widen(scaled) + widen(cast(points, dtype.expressed)), dtype.expressed)
        clamped = np.minimum(np.maximum(widen(moved), widen(low)), widen(high))
        return cast(np.rint(clamped), dtype.storage)


def dequantized(x: Array, dtype: QuantizedType) -> Array:
    """The floats that the integers `x` stand for; see `uniform_dequantize`."""
    scales, points = _along(x, dtype)
    with np.errstate(all="ignore"):
        difference = cast(widen(x).astype(np.int64) - points, dtype.expressed)
        return narrow(widen(difference) * widen(scales), dtype.expressed)


def _along(x: Array, dtype: QuantizedType) -> tuple[Array, Array]:
    """The scales (of the expressed type) and the zero points, shaped to meet `x`."""
    view = [] if dtype.axis is None else [-1 if axis == dtype.axis else 1 for axis in range(x.ndim)]
    return cast(np.array(dtype.scales).reshape(view), dtype.expressed), np.array(dtype.zero_points, np.int64).reshape(view)


def zeros(dtype: DType, shape: tuple[int, ...]) -> Array:
    """An array of the number 0: of quantized elements the zero points."""
    if not isinstance(dtype, QuantizedType):
        return np.zeros(shape, dtype.numpy)
    view = [] if dtype.axis is None else [-1 if axis == dtype.axis else 1 for axis in range(len(shape))]
    return np.array(np.broadcast_to(cast(np.array(dtype.zero_points).reshape(view), dtype.storage), shape))
