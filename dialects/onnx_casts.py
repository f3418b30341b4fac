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
_LARGEST = 0xFE  # the exponent of 2^127 in f8e8m0 and f32; the next one is NaN, and of f32 the infinities too
_FRACTION, _HALF, _INFINITY = 0x7FFFFF, 0x400000, 0x7F800000  # bits of f32


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
    (`nearest`). What is beyond the powers from 2^-127 to 2^127 becomes the nearest of them if it is to saturate, else NaN."""
    whole = DTYPES["u32"]
    bits = make("stablehlo.bitcast_convert", (x,), {"dtype": whole})
    exponent = _both(make("stablehlo.shift_right_logical", (bits, _like(bits, 23))), _LARGEST + 1)
    fraction = _both(bits, _FRACTION)
    subnormal = _compare(exponent, 0, "EQ")  # then the first bit of the fraction is 2^-127
    least = {"up": (1, _HALF + 1), "nearest": (_HALF, _HALF + _HALF // 2), "down": (_FRACTION + 1, _FRACTION + 1)}.get(round_mode)
    if least is None:
        return None
    threshold = make("stablehlo.select", (subnormal, _like(bits, least[1]), _like(bits, least[0])))
    raised = make("stablehlo.compare", (fraction, threshold), {"direction": "GE"})
    rounded = make("stablehlo.add", (exponent, convert(raised, whole)))
    magnitude = _both(bits, _INFINITY | _FRACTION)
    lost = _compare(magnitude, _INFINITY if saturate else _LARGEST << 23, "GT")
    if saturate:
        rounded = make("stablehlo.minimum", (rounded, _like(bits, _LARGEST)))
    else:
        lost = make("stablehlo.or", (lost, _compare(magnitude, _HALF, "LT")))
    found = make("stablehlo.select", (lost, _like(bits, _LARGEST + 1), rounded))
    return make("stablehlo.bitcast_convert", (convert(found, U8),), {"dtype": _EXPONENT})


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
