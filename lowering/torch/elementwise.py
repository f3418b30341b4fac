"""Elementwise hub ops as torch expressions of held values (`aten_dtypes`), whatever their shapes are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coset.ir.errors import CosetError
from coset.ir.quantized import QuantizedType
from coset.ir.types import DTYPES, DType
from coset.lowering.torch.dtypes import ORDER_OF_U64, held, narrowed, plain

Operand = tuple[str, DType]
Writer = Callable[[Sequence[str], DType, DType, Mapping[str, Any]], str]  # operands, their dtype, the result's, attributes

_METHODS = {  # torch functions of one operand with exactly the op's meaning on floats
    "floor": "floor", "ceil": "ceil", "round_nearest_even": "round", "sqrt": "sqrt", "rsqrt": "rsqrt", "exponential": "exp",
    "exponential_minus_one": "expm1", "log": "log", "log_plus_one": "log1p", "logistic": "sigmoid", "tanh": "tanh", "tan": "tan",
    "sine": "sin", "cosine": "cos",
}  # fmt: skip
_CHLO = {
    "erf": "torch.erf", "erfc": "torch.erfc", "erf_inv": "torch.erfinv", "lgamma": "torch.lgamma", "digamma": "digamma",
    "bessel_i1e": "torch.special.i1e", "asin": "torch.asin", "acos": "torch.acos", "atan": "torch.atan", "sinh": "torch.sinh",
    "cosh": "torch.cosh", "asinh": "torch.asinh", "acosh": "torch.acosh", "atanh": "torch.atanh",
}  # fmt: skip
_COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def elementwise(name: str, attributes: Mapping[str, Any], operands: Sequence[Operand], dtype: DType) -> str:
    """The expression of the op `name` on operands of these texts, as held values of `dtype`.

    Raises:
        CosetError: torch cannot say the op.
    """
    write = _WRITERS.get(name)
    if write is None:
        raise CosetError(f"`{name}` has no torch expression", help="lower the program for another target, or report the model")
    texts = [text for text, _ in operands]
    return write(texts, operands[-1][1] if operands else dtype, dtype, attributes)


def _u64(dtype: DType) -> bool:
    return plain(dtype).name == "u64"


def _ordered(text: str, dtype: DType) -> str:
    """Values whose i64 order is that of the held u64; others as they are."""
    return f"({text} ^ {ORDER_OF_U64})" if _u64(dtype) else text


# ---------------------------------------------------------------- one operand


def _call(function: str, *, narrow: bool = True) -> Writer:
    """The function of the operands, rounded where the dtype is narrower than what holds it."""

    def write(x: Sequence[str], _: DType, dtype: DType, __: Mapping[str, Any]) -> str:
        text = f"{function}({', '.join(x)})"
        return narrowed(text, dtype) if narrow else text

    return write


def _accurate(function: str) -> Writer:
    """A function that torch has for real floats of 32 and 64 bits only: narrower ones go through f32."""

    def write(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
        if of.kind == "float" and of.bits == 16:
            return f"{function}({', '.join(f'{one}.float()' for one in x)}).to({held(dtype)})"
        return narrowed(f"{function}({', '.join(x)})", dtype)

    return write


def _sign(x: Sequence[str], of: DType, _: DType, __: Mapping[str, Any]) -> str:
    return f"{ {'float': 'sign', 'complex': 'complex_sign'}.get(of.kind, 'torch.sign') }({x[0]})"


def _negate(x: Sequence[str], _: DType, dtype: DType, __: Mapping[str, Any]) -> str:
    return narrowed(f"-{x[0]}", dtype)


def _not(x: Sequence[str], _: DType, dtype: DType, __: Mapping[str, Any]) -> str:
    return narrowed(f"~{x[0]}", dtype)


def _abs(x: Sequence[str], _: DType, dtype: DType, __: Mapping[str, Any]) -> str:
    return narrowed(f"{x[0]}.abs()", dtype) if dtype.kind == "int" else f"{x[0]}.abs()"


def _reciprocal_root(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    return f"1 / torch.sqrt({x[0]})" if of.kind == "complex" else narrowed(f"torch.rsqrt({x[0]})", dtype)


def _part(name: str) -> Writer:
    def write(x: Sequence[str], of: DType, _: DType, __: Mapping[str, Any]) -> str:
        if of.kind == "complex":
            return f"torch.{name}({x[0]})"
        return x[0] if name == "real" else f"torch.zeros_like({x[0]})"

    return write


def _cube_root(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    return f"{x[0]}.pow(1 / 3)" if of.kind == "complex" else narrowed(f"cube_root({x[0]})", dtype)


def _bits(function: str) -> Writer:
    def write(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
        return narrowed(f"{function}({', '.join(x)}, {of.bits})", dtype)

    return write


def _reduce_precision(x: Sequence[str], of: DType, dtype: DType, attributes: Mapping[str, Any]) -> str:
    exponent, mantissa = attributes["exponent_bits"], attributes["mantissa_bits"]
    if of.bits < 16:
        raise CosetError(f"`stablehlo.reduce_precision` of {of} has no torch expression")
    return f"reduce_precision({x[0]}, {exponent}, {mantissa})"


def _bitcast(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    """Of as many bits: a plan's kernel has one element for one."""
    old, new = plain(of), plain(dtype)
    return f"bitcast({x[0]}, {old.name!r}, {old.bits}, {new.name!r}, {new.bits})"


# ---------------------------------------------------------------- two operands


def _infix(sign: str, *, of_booleans: str | None = None) -> Writer:
    def write(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
        return narrowed(f"{x[0]} {of_booleans if of.kind == 'bool' and of_booleans else sign} {x[1]}", dtype)

    return write


def _extreme(name: str, of_booleans: str) -> Writer:
    def write(x: Sequence[str], of: DType, _: DType, __: Mapping[str, Any]) -> str:
        if of.kind == "bool":
            return f"{x[0]} {of_booleans} {x[1]}"
        if of.kind == "float":
            return f"{name}({x[0]}, {x[1]})"
        if of.kind == "complex":
            first, second = (x[1], x[0]) if name == "maximum" else (x[0], x[1])
            return f"torch.where(complex_less({first}, {second}), {x[0]}, {x[1]})"
        text = f"torch.{name}({_ordered(x[0], of)}, {_ordered(x[1], of)})"
        return _ordered(text, of)

    return write


def _divide(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    if of.kind in ("float", "complex"):
        return narrowed(f"{x[0]} / {x[1]}", dtype)
    return narrowed(f"{'divide_u64' if _u64(of) else 'divide_integers'}({x[0]}, {x[1]})", dtype)


def _remainder(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    if of.kind == "float":
        return narrowed(f"torch.fmod({x[0]}, {x[1]})", dtype)
    return f"{'remainder_u64' if _u64(of) else 'remainder_of_integers'}({x[0]}, {x[1]})"


def _power(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    if of.kind == "float" and not re.fullmatch(r"[\w.]+", x[1]):  # a number in parentheses is negative or not finite
        return narrowed(f"torch.pow({x[0]}, {x[1]})", dtype)
    if of.kind == "float" and not x[1][0].isdigit() and not x[0][0].isdigit():
        return narrowed(f"power({x[0]}, {x[1]})", dtype)
    if of.kind in ("float", "complex"):
        return narrowed(f"torch.pow({x[0]}, {x[1]})", dtype)
    return narrowed(f"power_of_integers({x[0]}, {x[1]}{'' if of.kind == 'int' else ', signed=False'})", dtype)


def _arc_tangent(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    return narrowed(f"{'complex_arc_tangent' if of.kind == 'complex' else 'torch.atan2'}({x[0]}, {x[1]})", dtype)


# ---------------------------------------------------------------- comparison, choice, conversion


def _compare(x: Sequence[str], of: DType, _: DType, attributes: Mapping[str, Any]) -> str:
    direction = attributes["direction"]
    if of.kind == "complex" and direction not in ("EQ", "NE"):
        less, greater = f"complex_less({x[0]}, {x[1]})", f"complex_less({x[1]}, {x[0]})"
        equal = f"({x[0]} == {x[1]})"
        return {"LT": less, "GT": greater, "LE": f"{less} | {equal}", "GE": f"{greater} | {equal}"}[direction]
    ordered = direction not in ("EQ", "NE")
    a, b = (_ordered(one, of) if ordered else one for one in x)
    return f"{a} {_COMPARISONS[direction]} {b}"


def _select(x: Sequence[str], _: DType, __: DType, ___: Mapping[str, Any]) -> str:
    return f"torch.where({', '.join(x)})"


def _clamp(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    low, operand, high = x
    inner = _extreme("maximum", "|")((operand, low), of, dtype, {})
    return _extreme("minimum", "&")((f"({inner})" if of.kind == "bool" else inner, high), of, dtype, {})


def _convert(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    return converted(x[0], of, dtype)


def converted(text: str, of: DType, dtype: DType) -> str:
    """Held values of `of` as held values of `dtype`, as `hub_scalars.cast` has it."""
    if of == dtype:
        return text
    if dtype.kind == "bool":
        return f"({text} != 0)"
    if of.kind == "complex" and dtype.kind != "complex":
        return converted(f"{text}.real", F_OF[of.name], dtype)
    if of.kind == "float" and dtype.kind in ("int", "uint"):
        if _u64(dtype):
            return f"truncated_u64({text})"
        low = -(1 << dtype.bits - 1) if dtype.kind == "int" else 0
        return f"truncated({text}, {held(dtype)}, {low}, {low + (1 << dtype.bits) - 1})"
    if dtype.kind in ("int", "uint"):
        if of.bits <= dtype.bits and (of.kind == "uint" or (of.kind == dtype.kind)):
            return f"{text}.to({held(dtype)})"
        return narrowed(f"{text}.to({held(dtype)})", dtype)
    return _to_float(text, of, dtype)


def _to_float(text: str, of: DType, dtype: DType) -> str:
    narrow = dtype.kind == "float" and dtype.bits < 32
    if narrow and (of.name == "f64" or (of.kind in ("int", "uint") and of.bits > 16)):
        if of.kind != "float":
            text = f"u64_to_double({text})" if _u64(of) else f"whole_to_double({text})" if of.bits == 64 else f"{text}.double()"
        if dtype.bits == 16:
            return f"round_once({text}, {held(dtype)})"
        return f"rounded(round_to_odd({text}), {dtype.name!r})"
    if _u64(of):
        part = "torch.float64" if dtype.name in ("f64", "c128") else "torch.float32"
        text = f"u64_to_float({text}, {part})"
        return text if dtype.kind == "float" else f"{text}.to({held(dtype)})"
    return narrowed(f"{text}.to({held(dtype)})", dtype)


# ---------------------------------------------------------------- quantized


def _quantized_parts(dtype: QuantizedType, rank: int | None) -> tuple[str, str]:
    """The texts of the scales (as the expressed type holds them) and of the zero points."""
    scales = np.array(dtype.scales).astype(dtype.expressed.numpy).astype(np.float64).tolist()
    if dtype.axis is None:
        return repr(scales[0]), repr(dtype.zero_points[0])
    raise CosetError(f"a quantized type with scales along a dim has no torch expression: {dtype}")


def _dequantize(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    assert isinstance(of, QuantizedType)
    scale, point = _quantized_parts(of, None)
    difference = converted(f"({x[0]}.long() - {point})", _I64, dtype)
    return narrowed(f"{difference} * {scale}", dtype)


def _quantize(x: Sequence[str], of: DType, dtype: DType, _: Mapping[str, Any]) -> str:
    assert isinstance(dtype, QuantizedType)
    text = x[0]
    if isinstance(of, QuantizedType):
        text, of = _dequantize(x, of, of.expressed, {}), of.expressed
    scale, point = _quantized_parts(dtype, None)
    moved = narrowed(f"{narrowed(f'({text}) / {scale}', of)} + {point}", of)
    low = -(1 << dtype.bits - 1) if dtype.storage.kind == "int" else 0
    return f"truncated(({moved}).clamp({dtype.minimum}, {dtype.maximum}).round(), {held(dtype)}, {low}, {low + (1 << dtype.bits) - 1})"


_I64 = DTYPES["i64"]
F_OF = {"c64": DTYPES["f32"], "c128": DTYPES["f64"]}
_WRITERS: dict[str, Writer] = {
    **{f"stablehlo.{name}": _call(f"torch.{function}") for name, function in _METHODS.items()},
    **{f"chlo.{name}": _accurate(function) for name, function in _CHLO.items()},
    "chlo.is_nan": _call("torch.isnan", narrow=False),
    "chlo.is_inf": _call("torch.isinf", narrow=False),
    "chlo.polygamma": _accurate("polygamma"),
    "chlo.zeta": _accurate("zeta"),
    "stablehlo.is_finite": _call("torch.isfinite", narrow=False),
    "stablehlo.rsqrt": _reciprocal_root,
    "stablehlo.round_nearest_afz": _call("round_half_away"),
    "stablehlo.cbrt": _cube_root,
    "stablehlo.sign": _sign,
    "stablehlo.negate": _negate,
    "stablehlo.not": _not,
    "stablehlo.abs": _abs,
    "stablehlo.real": _part("real"),
    "stablehlo.imag": _part("imag"),
    "stablehlo.complex": _call("torch.complex", narrow=False),
    "stablehlo.popcnt": _bits("count_bits"),
    "stablehlo.count_leading_zeros": _bits("count_leading_zeros"),
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.add": _infix("+", of_booleans="|"),
    "stablehlo.subtract": _infix("-"),
    "stablehlo.multiply": _infix("*", of_booleans="&"),
    "stablehlo.and": _infix("&"),
    "stablehlo.or": _infix("|"),
    "stablehlo.xor": _infix("^"),
    "stablehlo.shift_left": _bits("shift_left"),
    "stablehlo.shift_right_logical": _bits("shift_right_logical"),
    "stablehlo.shift_right_arithmetic": _bits("shift_right_arithmetic"),
    "stablehlo.maximum": _extreme("maximum", "|"),
    "stablehlo.minimum": _extreme("minimum", "&"),
    "stablehlo.divide": _divide,
    "stablehlo.remainder": _remainder,
    "stablehlo.power": _power,
    "stablehlo.atan2": _arc_tangent,
    "stablehlo.compare": _compare,
    "stablehlo.select": _select,
    "stablehlo.clamp": _clamp,
    "stablehlo.convert": _convert,
    "stablehlo.uniform_quantize": _quantize,
    "stablehlo.uniform_dequantize": _dequantize,
}  # fmt: skip
ELEMENTWISE = frozenset(_WRITERS) - {"stablehlo.bitcast_convert"}  # which may have dims of its own, outside of kernels
