"""Quantized element types, made from what they store and stand for."""

from __future__ import annotations

from dataclasses import dataclass

from coset.ir.errors import CosetError
from coset.ir.types import DType


@dataclass(frozen=True, repr=False)
class QuantizedType(DType):
    """Integers of `storage` from `minimum` to `maximum` that stand for the numbers (integer - zero_point) * scale of `expressed`.

    One scale and zero point, or one for each index of dim `axis`. `numpy` is the storage's, and so are the values. It is in no
    dtype class: ops that compute take the numbers after `stablehlo.uniform_dequantize`. Make one with `quantized`.
    """

    storage: DType
    expressed: DType
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None
    minimum: int
    maximum: int

    @property
    def along(self) -> int | None:
        return self.axis


def quantized(
    storage: DType, expressed: DType, scales: tuple[float, ...], zero_points: tuple[int, ...], *, axis: int | None = None,
    limits: tuple[int, int] | None = None,
) -> QuantizedType:  # fmt: skip
    """The quantized element type; `limits` are the smallest and the largest integer, by default those of the storage.

    Raises:
        CosetError: the storage is no integer, a scale is not positive and finite, or a number is out of range.
    """
    if storage.kind not in ("int", "uint") or expressed.kind != "float":
        raise CosetError(f"a quantized type stores integers that stand for floats, not {storage} for {expressed}")
    lowest = 0 if storage.kind == "uint" else -(1 << storage.bits - 1)
    highest = lowest + (1 << storage.bits) - 1
    minimum, maximum = limits or (lowest, highest)
    if not lowest <= minimum < maximum <= highest:
        raise CosetError(f"the limits {minimum}:{maximum} of a quantized type must rise and lie in {lowest}:{highest} of {storage}")
    if len(scales) != len(zero_points) or not scales or (axis is None and len(scales) != 1) or (axis is not None and axis < 0):
        raise CosetError(f"a quantized type has one scale and zero point, or one of each along an axis, not {scales}, {zero_points}")
    if not all(0 < scale < float("inf") for scale in scales):
        raise CosetError(f"the scales of a quantized type must be positive and finite, not {scales}")
    if not all(minimum <= point <= maximum for point in zero_points):
        raise CosetError(f"the zero points of a quantized type must lie in {minimum}:{maximum}, not {zero_points}")
    between = "" if (minimum, maximum) == (lowest, highest) else f"<{minimum}:{maximum}>"
    pairs = ", ".join(f"{scale!r}" + (f":{point}" if point else "") for scale, point in zip(scales, zero_points, strict=True))
    values = pairs if axis is None else f"{{{pairs}}}"
    name = f"!quant.uniform<{storage}{between}:{expressed}{'' if axis is None else f':{axis}'}, {values}>"
    return QuantizedType(name, "quantized", storage.bits, storage.numpy, storage, expressed, scales, zero_points, axis, minimum, maximum)
