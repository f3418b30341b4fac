"""The hub's elementwise ops as Triton expressions: a table from op name and kind of element to text, and which ops have none.

Kinds: `narrow` (floats below f32, computed in f32), `f32`, `f64`, `int`, `uint`, `bool`. A missing entry means that no form is exact
enough: `can_emit` says so, and the planner gives the op to a library. What is promised of a form that is here:

- integer ops, comparisons, choices, maximum, minimum, rounding to integers and conversions are the hub's, bit for bit, but for
  i32, i64, u32 and u64 converted to a float narrower than f32 and f64 to the same, which round twice (by way of f32);
- add, subtract, multiply, divide and sqrt of f32 and f64 are rounded once, but the compiler may fuse a multiplication with an addition;
- of narrow floats, results stay in f32 until they are stored, converted or folded (`Rounding.STORES`), or are rounded after each op
  as the hub has it (`Rounding.EACH`);
- exp in f32 has a relative error of about 2^-23 + |x| * 2^-24: `tl.exp` multiplies by log2 e and rounds first;
- on NVIDIA, log, rsqrt, sine and cosine of f32 take subnormal operands as 0 (`.ftz` in the PTX of Triton 3.9); the other forms,
  exp, divide and sqrt among them, do not. The interpreter does not show this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from coset.ir.types import BOOL, DTYPES, DType

TYPES = {
    "f64": "tl.float64", "f32": "tl.float32", "f16": "tl.float16", "bf16": "tl.bfloat16", "f8e4m3fn": "tl.uint8", "f8e5m2": "tl.uint8",
    "i64": "tl.int64", "i32": "tl.int32", "i16": "tl.int16", "i8": "tl.int8", "u64": "tl.uint64", "u32": "tl.uint32", "u16": "tl.uint16",
    "u8": "tl.uint8", "bool": "tl.int1", "i4": "tl.int8", "i2": "tl.int8", "u4": "tl.uint8", "u2": "tl.uint8", "f4e2m1fn": "tl.float32",
    "f8e8m0fnu": "tl.uint8",
}  # the element type in memory where elements are apart; 8-bit floats are bytes, so that every device has them  # fmt: skip
EIGHT_BITS = frozenset({"f8e4m3fn", "f8e5m2", "f8e8m0fnu"})
EIGHTS = {"f8e4m3fn": "fp8e4nv", "f8e5m2": "fp8e5"}  # floats that matrix units of 8 bits take, with Triton's types of pointers
_LANGUAGE = {"f8e4m3fn": "tl.float8e4nv", "f8e5m2": "tl.float8e5"}
F32 = DTYPES["f32"]


def kind_of(dtype: DType) -> str:
    """The kind of `dtype` in the table; empty for one that no kernel holds."""
    if dtype.name not in TYPES:
        return ""
    if dtype.kind != "float":
        return dtype.kind
    return dtype.name if dtype.bits >= 32 else "narrow"


def computed(dtype: DType) -> DType:
    """The dtype that values of `dtype` are computed in."""
    return F32 if kind_of(dtype) == "narrow" else dtype


def is_read_only(dtype: DType) -> bool:
    """True for numbers that kernels move and convert, and do not compute: those below a byte, and powers of two."""
    return dtype is not BOOL and (dtype.bits < 8 or dtype.name == "f8e8m0fnu")


def _all(kinds: str, text: str) -> dict[str, str]:
    return dict.fromkeys(kinds.split(), text)


_FLOATS, _INTS, _REALS, _EVERY = "narrow f32 f64", "int uint", "narrow f32 f64 int uint", "narrow f32 f64 int uint bool"
_FORMS: dict[str, dict[str, str]] = {
    "negate": {**_all(_FLOATS, "{0} * -1.0"), **_all(_INTS, "-{0}")},  # -x is 0 - x up to Triton 3.7: never -0.0
    "abs": _all(_FLOATS + " int", "tl.abs({0})"),
    "sign": {**_all(_FLOATS, "tl.where(({0} == 0) | ({0} != {0}), {0}, tl.where({0} < 0, -1.0, 1.0))"),
             "int": "tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0)).to({type})"},
    "floor": _all(_FLOATS, "tl.floor({0})"),
    "ceil": _all(_FLOATS, "tl.ceil({0})"),
    "round_nearest_even": {**_all("narrow f32", "round_even({0})"), "f64": "round_even_f64({0})"},
    "round_nearest_afz": {**_all("narrow f32", "round_away({0})"), "f64": "round_away_f64({0})"},
    "sqrt": {"f32": "tl.sqrt_rn({0})", **_all("narrow f64", "tl.sqrt({0})")},
    "rsqrt": _all(_FLOATS, "tl.rsqrt({0})"),
    "exponential": _all(_FLOATS, "tl.exp({0})"),
    "exponential_minus_one": _all("narrow f32", "exp_minus_one({0})"),
    "log": _all(_FLOATS, "tl.log({0})"),
    "log_plus_one": _all(_FLOATS, "log_plus_one({0})"),
    "logistic": _all(_FLOATS, "logistic({0})"),
    "tanh": _all("narrow f32", "hyperbolic_tangent({0})"),
    "sine": _all(_FLOATS, "tl.sin({0})"),
    "cosine": _all(_FLOATS, "tl.cos({0})"),
    "tan": _all(_FLOATS, "tl.sin({0}) / tl.cos({0})"),
    "erf": {**_all("narrow f32", "error_function({0})"), "f64": "tl.erf({0})"},
    "not": {**_all("int bool", "~{0}"), "uint": "{0} ^ tl.full((), {ones}, {type})"},  # ~ of unsigned: no interpreter up to Triton 3.7
    "add": {**_all(_REALS, "{0} + {1}"), "bool": "{0} | {1}"},
    "subtract": _all(_REALS, "{0} - {1}"),
    "multiply": {**_all(_REALS, "{0} * {1}"), "bool": "{0} & {1}"},
    "divide": {"f32": "tl.div_rn({0}, {1})", **_all("narrow f64", "{0} / {1}"), "int": "signed_quotient({0}, {1})",
               "uint": "unsigned_quotient({0}, {1})"},
    "remainder": {"int": "signed_rest({0}, {1})", "uint": "unsigned_rest({0}, {1})"},
    "power": {**_all("narrow f32", "power({0}, {1})"), **_all(_INTS, "integer_power({0}, {1}, {bits})")},
    "maximum": {**_all(_FLOATS, "largest({0}, {1})"), **_all(_INTS, "tl.maximum({0}, {1})"), "bool": "{0} | {1}"},
    "minimum": {**_all(_FLOATS, "smallest({0}, {1})"), **_all(_INTS, "tl.minimum({0}, {1})"), "bool": "{0} & {1}"},
    "and": _all("int uint bool", "{0} & {1}"),
    "or": _all("int uint bool", "{0} | {1}"),
    "xor": _all("int uint bool", "{0} ^ {1}"),
    "shift_left": _all(_INTS, "shifted_left({0}, {1}, {bits})"),
    "shift_right_logical": {"int": "shifted_right({0}.to({unsigned}), {1}, {bits}).to({type})",
                            "uint": "shifted_right({0}, {1}, {bits})"},
    "shift_right_arithmetic": {"int": "shifted_right_signed({0}, {1}, {bits})",
                               "uint": "shifted_right_signed({0}.to({signed}), {1}, {bits}).to({type})"},
    "is_finite": _all(_FLOATS, 'tl.abs({0}) < float("inf")'),
    "is_nan": _all(_FLOATS, "{0} != {0}"),
    "is_inf": _all(_FLOATS, 'tl.abs({0}) == float("inf")'),
    "compare": {**_all(_REALS, "{0} {compare} {1}"), "bool": "{0}.to(tl.int32) {compare} {1}.to(tl.int32)"},
    "select": _all(_EVERY, "tl.where({0}, {1}, {2})"),
    "clamp": {**_all(_FLOATS, "smallest(largest({1}, {0}), {2})"), **_all(_INTS, "tl.minimum(tl.maximum({1}, {0}), {2})"),
              "bool": "({1} | {0}) & {2}"},
}  # {0} {1} ..: the operands, as names or numbers  # fmt: skip
_EXACT = frozenset(
    ["negate", "abs", "sign", "floor", "ceil", "round_nearest_even", "round_nearest_afz", "maximum", "minimum", "select", "clamp"]
)  # their results need no rounding, as the operands' dtype holds them
_COMPARE = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def _base(op: str) -> str:
    dialect, _, name = op.partition(".")
    return name if dialect in ("stablehlo", "chlo") else ""


def can_emit(op: str, dtypes: Sequence[DType]) -> bool:
    """True when kernels have a form of the elementwise op called `op` for operands of `dtypes`; the last of them is the result's dtype."""
    name, kinds = _base(op), [kind_of(dtype) for dtype in dtypes]
    if not all(kinds):
        return False
    if any(map(is_read_only, dtypes)):
        return name == "convert" and not is_read_only(dtypes[-1])
    if name == "convert":
        return True
    if name == "bitcast_convert":
        return "bool" not in kinds and len({dtype.bits for dtype in dtypes}) == 1
    forms = _FORMS.get(name, {})
    return len(kinds) > 1 and (kinds[1] if name == "select" else kinds[0]) in forms


@dataclass(frozen=True)
class ScalarText:
    """An op's text over its operands; `rounds` says that a narrow result has more digits than its dtype holds."""

    text: str
    rounds: bool


def form_of(op: str, dtypes: Sequence[DType], attributes: dict[str, object]) -> ScalarText:
    """The form of an op but `convert`; asserts that `can_emit` holds. Its text has `{0}`, `{1}` .. for the operands."""
    name = _base(op)
    assert can_emit(op, dtypes), f"no kernel computes {op} of {', '.join(map(str, dtypes))}"
    subject = dtypes[1] if name == "select" else dtypes[0]
    text = _FORMS[name][kind_of(subject)]
    if subject.kind in ("int", "uint"):
        width = subject.bits
        text = text.replace("{bits}", str(width)).replace("{type}", TYPES[subject.name]).replace("{ones}", str(2**width - 1))
        text = text.replace("{unsigned}", f"tl.uint{width}").replace("{signed}", f"tl.int{width}")
    if name == "compare":
        text = text.replace("{compare}", _COMPARE[str(attributes["direction"])])
    return ScalarText(text, name not in _EXACT and dtypes[-1].kind == "float")


# ---------------------------------------------------------------- numbers and conversions


def number(value: object, dtype: DType) -> str | None:
    """`value` as a Python number that Triton takes for one of `dtype` beside a value of it, or None where that is not so."""
    if dtype.kind in ("int", "uint") and dtype.bits < 32:
        return None  # up to Triton 3.7, what is chosen or compared beside a number is an i32
    return filling(value, dtype)


def filling(value: object, dtype: DType) -> str | None:
    """The same where Triton knows that it is of `dtype`: for what a load finds beyond its mask, and for tiles of one number."""
    if dtype is BOOL:
        return None
    if dtype.kind in ("int", "uint"):
        return str(int(value)) if -(2**31) <= int(value) < 2**31 else None  # type: ignore[call-overload]
    real = float(value)  # type: ignore[arg-type]
    if math.isnan(real) or math.isinf(real):
        return f'float("{real}")'
    subnormal = real != 0 and abs(real) < 2.0**-126
    if subnormal or (real == 0 and math.copysign(1, real) < 0) or (dtype.bits > 32 and not _is_single(real)):
        return None  # up to Triton 3.7 numbers that are compared or chosen pass through f32
    return repr(real)


def _is_single(real: float) -> bool:
    """True where f32 holds the finite `real`, which is no subnormal of it."""
    mantissa, exponent = math.frexp(real)
    return exponent <= 128 and (mantissa * 2**24).is_integer()


def typed_number(value: object, dtype: DType) -> str:
    """`value` as a Triton scalar of the dtype that `dtype` is computed in."""
    wide = computed(dtype)
    kind = TYPES[wide.name]
    if dtype is BOOL:
        return f"tl.full((), {int(bool(value))}, tl.int1)"
    if wide.kind == "float":
        real = float(value)  # type: ignore[arg-type]
        if real == 0 and math.copysign(1, real) < 0:
            return f"tl.full((), 0.0, {kind}) * -1.0"
        text = f'float("{real}")' if math.isnan(real) or math.isinf(real) else repr(real)
        return f"tl.full((), {text}, {kind})"
    return f"tl.full((), {int(value)}, {kind})"  # type: ignore[call-overload]


def beside(value: object, dtype: DType) -> str:
    """`value` as text that is one of `dtype` beside values of it: a plain number where that says enough."""
    return number(value, dtype) or typed_number(value, dtype)


def to_memory(text: str, dtype: DType) -> str:
    """A computed value of `dtype` rounded to what memory holds."""
    if dtype.name in EIGHT_BITS:
        return f"to_{dtype.name}({text})"
    return f"{text}.to({TYPES[dtype.name]})" if computed(dtype) is not dtype else text


def from_memory(text: str, dtype: DType) -> str:
    """What memory holds of `dtype` as a computed value."""
    if dtype.name in EIGHT_BITS:
        return f"from_{dtype.name}({text})"
    return f"{text}.to({TYPES[computed(dtype).name]})" if computed(dtype) is not dtype else text


def from_bits(text: str, dtype: DType) -> str:
    """The bits of an 8-bit float as what matrix units take."""
    return f"{text}.to({_LANGUAGE[dtype.name]}, bitcast=True)"


def from_byte(byte: str, shift: str, dtype: DType) -> str:
    """An element of a packed buffer from its byte and the bits below it, both names or numbers, as memory holds it apart."""
    bits = f"bits_of({byte}, {shift}, {dtype.bits})"
    if dtype.kind == "float":
        return f"from_{dtype.name}({bits})"
    return f"{f'signed_bits({bits}, {dtype.bits})' if dtype.kind == 'int' else bits}.to({TYPES[dtype.name]})"


def conversion(text: str, source: DType, target: DType) -> str:
    """A computed value (a name) of `source` as a computed value of `target`, not yet rounded where `target` is narrow."""
    source, target = computed(source), computed(target)
    if source is target:
        return text
    if target is BOOL:
        return f"{text} != 0"
    if source.kind == "float" and target.kind != "float":
        return _to_integer(text, source, target)
    return f"{text}.to({TYPES[target.name]})"


def _to_integer(text: str, source: DType, target: DType) -> str:
    """Truncated; out of range saturates, NaN gives 0. Limits that the float does not hold are powers of two, which it does."""
    signed = target.kind == "int"
    low, high = (-(2 ** (target.bits - 1)), 2 ** (target.bits - 1)) if signed else (0, 2**target.bits)
    name = TYPES[target.name]
    below = beside(low - 1, source)
    least = f"{text} >= {float(low)!r}" if signed and target.bits > (24 if source.bits == 32 else 53) else f"{text} > {below}"
    inside = f"tl.where(({least}) & ({text} < {float(high)!r}), {text}, 0.0).to({name})"
    above = f"tl.full((), {high - 1}, {name})"
    if not signed:
        return f"tl.where({text} >= {float(high)!r}, {above}, {inside})"
    return f"tl.where({text} >= {float(high)!r}, {above}, tl.where({text} < {float(low)!r}, tl.full((), {low}, {name}), {inside}))"
