"""Quantized tensors of the hub: integers that stand for floats. See `QuantizedType`.

Ops that move elements take them as they are: with one scale for all elements any of them does, with scales along a dim those do whose
scales can follow. Ops that compute do not take them, and mean what the StableHLO specification says they mean: dequantize, compute,
quantize (the frontend makes these terms).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coset.dialects.hub.checks import get_dtype, require_class, tensors
from coset.dialects.hub.scalars import cast, narrow, widen
from coset.dialects.hub.tensors import Binding
from coset.ir import dims
from coset.ir.errors import require
from coset.ir.op import Array, Attributes
from coset.ir.quantized import QuantizedType, quantized
from coset.ir.term import Term
from coset.ir.types import DType, TensorType, Type

Rule = Callable[[str, Sequence[Type], Attributes], Type]


def per_tensor(rule: Rule) -> Rule:
    """The type rule of an op that moves elements: with one scale for all of them the element type stays; with scales along a dim it
    follows that dim, or the op is refused where elements would come under other scales."""

    def checked(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
        for i, operand in enumerate(operands):
            if not (isinstance(operand, TensorType) and isinstance(operand.dtype, QuantizedType) and operand.dtype.axis is not None):
                continue
            _require_axis(name, f"operand {i}", operand)
            follow = _FOLLOWS.get(name)
            away = f"`{name}` would move elements away from their scales: operand {i} is {operand}; dequantize it first"
            require(follow is not None, away)
            assert follow is not None
            plain = [_plain(other) for other in operands]
            result = rule(name, plain, attributes)
            assert isinstance(result, TensorType)
            dtype = follow(operand, result, attributes)
            require(dtype is not None and all(_alike(operand, other) for other in operands), away)
            assert dtype is not None
            moved = TensorType(dtype, result.shape)
            _require_axis(name, "the result", moved)
            return moved
        return rule(name, operands, attributes)

    return checked


def _plain(type: Type) -> Type:
    """The tensor with the elements of the storage."""
    return TensorType(type.dtype.storage, type.shape) if isinstance(type, TensorType) and isinstance(type.dtype, QuantizedType) else type


def _alike(first: TensorType, other: Type) -> bool:
    return isinstance(other, TensorType) and other.dtype == first.dtype


def _on(dtype: QuantizedType, axis: int, scales: Sequence[float], points: Sequence[int]) -> QuantizedType:
    limits = (dtype.minimum, dtype.maximum)
    return quantized(dtype.storage, dtype.expressed, tuple(scales), tuple(points), axis=axis, limits=limits)


def _axis(type: TensorType) -> tuple[QuantizedType, int]:
    dtype = type.dtype
    assert isinstance(dtype, QuantizedType) and dtype.axis is not None
    return dtype, dtype.axis


def _transposed(type: TensorType, _: TensorType, attributes: Attributes) -> QuantizedType | None:
    dtype, axis = _axis(type)
    return _on(dtype, attributes["permutation"].index(axis), dtype.scales, dtype.zero_points)


def _broadcast(type: TensorType, result: TensorType, attributes: Attributes) -> QuantizedType | None:
    """The specification lets a dim of size 1 be repeated with its one scale."""
    dtype, axis = _axis(type)
    to = attributes["broadcast_dimensions"][axis]
    size = result.dims[to]
    if len(dtype.scales) == size:
        return _on(dtype, to, dtype.scales, dtype.zero_points)
    if not isinstance(size, int) or size < 1 or len(dtype.scales) != 1:
        return None
    return _on(dtype, to, dtype.scales * size, dtype.zero_points * size)


def _reshaped(type: TensorType, result: TensorType, _: Attributes) -> QuantizedType | None:
    """The dim of the scales has as many elements before it and behind it as it had."""
    dtype, axis = _axis(type)
    before = dims.product(type.dims[:axis])
    for to, size in enumerate(result.dims):
        if size == type.dims[axis] and dims.product(result.dims[:to]) == before:
            return _on(dtype, to, dtype.scales, dtype.zero_points)
    return None


def _sliced(type: TensorType, _: TensorType, attributes: Attributes) -> QuantizedType | None:
    """The scales are sliced with their elements."""
    dtype, axis = _axis(type)
    bounds = [attributes[key][axis] for key in ("start", "limit", "strides")]
    if not all(isinstance(bound, int) for bound in bounds) or bounds[0] == bounds[1]:
        return None
    part = slice(*bounds)
    return _on(dtype, axis, dtype.scales[part], dtype.zero_points[part])


def _reversed(type: TensorType, _: TensorType, attributes: Attributes) -> QuantizedType | None:
    dtype, axis = _axis(type)
    step = -1 if axis in attributes["dimensions"] else 1
    return _on(dtype, axis, dtype.scales[::step], dtype.zero_points[::step])


def _concatenated(type: TensorType, _: TensorType, attributes: Attributes) -> QuantizedType | None:
    """Inputs of one element type, side by side along another dim than that of the scales."""
    dtype, axis = _axis(type)
    return None if attributes["dimension"] == axis else dtype


_Follow = Callable[[TensorType, TensorType, Attributes], QuantizedType | None]
# The element type of the result, or None where there is none. Padding has one value for all scales, and is refused.
_FOLLOWS: dict[str, _Follow] = {
    "stablehlo.transpose": _transposed, "stablehlo.broadcast_in_dim": _broadcast, "stablehlo.reshape": _reshaped,
    "stablehlo.slice": _sliced, "stablehlo.reverse": _reversed, "stablehlo.concatenate": _concatenated,
}  # fmt: skip


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
