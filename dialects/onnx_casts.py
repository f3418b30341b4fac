"""ONNX's conversions between element types: values (Cast, CastLike) and bits (BitCast)."""

from __future__ import annotations

import ml_dtypes

from coset.dialects.hub_terms import convert, splat
from coset.dialects.onnx_dtypes import DTYPE_OF_CODE
from coset.dialects.onnx_node import Built, Node, definition
from coset.ir.term import Term, make
from coset.ir.types import BOOL, DTYPES, F32, I32, U8, DType

_SATURATED = frozenset(DTYPES[name] for name in ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"))
_EXPONENT = DTYPES["f8e8m0fnu"]
_NOT_A_NUMBER = 0xFF  # of f8e8m0, and the exponent of NaN and infinities in f32


@definition("Cast")
def _cast(node: Node) -> Built:
    """The operand's values in the element type `to`."""
    return converted(node, DTYPE_OF_CODE.get(node.attributes.get("to", 0)))


@definition("CastLike")
def _cast_like(node: Node) -> Built:
    """The operand's values in the element type of the second operand."""
    return converted(node, node.operands[1].tensor.dtype)


def converted(node: Node, dtype: DType | None) -> Term | None:
    """The first operand as `dtype`: the hub's conversion, but that floats of 8 bits saturate unless `saturate` is 0, and that
    f8e8m0 (powers of two) rounds as `round_mode` says, and that of a float beyond an integer of 4 or 2 bits (undefined) the lowest
    bits are kept, as of a wider integer. Strings are not defined."""
    x = node.operands[0]
    if dtype is None or "string" in (dtype.kind, x.tensor.dtype.kind):
        return None
    saturate = bool(node.attributes.get("saturate", 1))
    if dtype == _EXPONENT and x.tensor.dtype != _EXPONENT:
        return _power_of_two(convert(x, F32), str(node.attributes.get("round_mode", "up")), saturate=saturate)
    if dtype in _SATURATED and saturate and x.tensor.dtype != dtype:
        return convert(_clamped(x, float(ml_dtypes.finfo(dtype.numpy).max)), dtype)  # type: ignore[no-untyped-call]
    if x.tensor.dtype.kind == "float" and dtype.kind in ("int", "uint") and dtype.bits < 8:
        return convert(convert(x, I32), dtype)
    return convert(x, dtype)


def _clamped(x: Term, bound: float) -> Term:
    """`x` between -bound and bound, in f32 where its own type might not hold the bound; NaN stays."""
    wide = x if x.tensor.dtype.kind == "float" and x.tensor.dtype.bits > 8 else convert(x, F32)
    low, high = (splat(limit, wide.tensor.dtype, ()) for limit in (-bound, bound))
    return make("stablehlo.clamp", (low, wide, high))


def _power_of_two(x: Term, round_mode: str, *, saturate: bool) -> Term | None:
    """|x| (f32) as f8e8m0, whose bits are the exponent of f32: rounded up (`up`), down (`down`), or to nearest and up from half
    (`nearest`). What is above the largest power becomes that one if it is to saturate, else NaN; infinities and NaN are NaN."""
    whole = DTYPES["u32"]
    bits = make("stablehlo.bitcast_convert", (x,), {"dtype": whole})
    exponent = _both(make("stablehlo.shift_right_logical", (bits, _like(bits, 23))), 0xFF)
    fraction = _both(bits, 0x7FFFFF)
    if round_mode == "up":
        raised = _compare(fraction, 0, "GT")
    elif round_mode == "nearest":
        half, normal = _compare(fraction, 0x400000, "EQ"), _compare(exponent, 0, "GT")
        raised = make("stablehlo.or", (_compare(fraction, 0x400000, "GT"), make("stablehlo.and", (half, normal))))
    elif round_mode == "down":
        raised = _compare(fraction, 0, "LT")
    else:
        return None
    rounded = make("stablehlo.add", (exponent, convert(raised, whole)))
    if saturate:
        rounded = make("stablehlo.minimum", (rounded, _like(rounded, _NOT_A_NUMBER - 1)))
    special = _compare(exponent, _NOT_A_NUMBER, "EQ")
    return make("stablehlo.bitcast_convert", (convert(make("stablehlo.select", (special, exponent, rounded)), U8),), {"dtype": _EXPONENT})


def _like(x: Term, value: int) -> Term:
    return splat(value, x.tensor.dtype, x.tensor.dims)


def _both(x: Term, mask: int) -> Term:
    return make("stablehlo.and", (x, _like(x, mask)))


def _compare(x: Term, value: int, direction: str) -> Term:
    return make("stablehlo.compare", (x, _like(x, value)), {"direction": direction})


@definition("BitCast")
def _bit_cast(node: Node) -> Built:
    """The operand's bits in the element type `to` of the same width; a boolean is the byte 0 or 1, and any other byte is true."""
    x, dtype = node.operands[0], DTYPE_OF_CODE.get(node.attributes.get("to", 0))
    if dtype is None or "string" in (dtype.kind, x.tensor.dtype.kind) or dtype.bits != x.tensor.dtype.bits:
        return None
    if dtype == x.tensor.dtype:
        return x
    if BOOL not in (dtype, x.tensor.dtype):
        return make("stablehlo.bitcast_convert", (x,), {"dtype": dtype})
    if dtype is BOOL:
        return convert(x if x.tensor.dtype == U8 else make("stablehlo.bitcast_convert", (x,), {"dtype": U8}), BOOL)
    byte = convert(x, U8)
    return byte if dtype == U8 else make("stablehlo.bitcast_convert", (byte,), {"dtype": dtype})
