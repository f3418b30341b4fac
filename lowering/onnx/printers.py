"""The printers: one ONNX expression for each op of the hub and each named op. Elementwise ops broadcast as NumPy does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coset.dialects.hub.terms import is_splat, numpy_shape
from coset.dialects.onnx.dtypes import USUAL
from coset.dialects.onnx.own import domain_and_name
from coset.ir.constants import constant_of
from coset.ir.errors import TypeRuleError
from coset.ir.term import Term
from coset.ir.types import BOOL, DTYPES, DType, TensorType
from coset.lowering.onnx import movement as onnx_movement
from coset.lowering.onnx import named as onnx_named
from coset.lowering.onnx import reduce as onnx_reduce
from coset.lowering.onnx.calls import Input, NodeCall, NoOnnxForm, Numbers, PrintContext, Printer
from coset.lowering.onnx.movement import ranked_view, reshaped, view, written_out
from coset.lowering.onnx.own import print_own

# op: name, and the version that first has it (with NumPy's broadcasting) for floats, then for 32- and 64-bit integers, then for small ones;
# 0: not at all
_UNARY: dict[str, tuple[str, int, int, int]] = {
    "stablehlo.abs": ("Abs", 6, 6, 6), "stablehlo.negate": ("Neg", 6, 6, 6), "stablehlo.sign": ("Sign", 9, 9, 9),
    "stablehlo.floor": ("Floor", 1, 0, 0), "stablehlo.ceil": ("Ceil", 1, 0, 0), "stablehlo.round_nearest_even": ("Round", 11, 0, 0),
    "stablehlo.sqrt": ("Sqrt", 1, 0, 0), "stablehlo.exponential": ("Exp", 1, 0, 0), "stablehlo.log": ("Log", 1, 0, 0),
    "stablehlo.logistic": ("Sigmoid", 1, 0, 0), "stablehlo.tanh": ("Tanh", 1, 0, 0), "stablehlo.tan": ("Tan", 7, 0, 0),
    "stablehlo.sine": ("Sin", 7, 0, 0), "stablehlo.cosine": ("Cos", 7, 0, 0), "chlo.erf": ("Erf", 9, 0, 0),
    "chlo.asin": ("Asin", 7, 0, 0), "chlo.acos": ("Acos", 7, 0, 0), "chlo.atan": ("Atan", 7, 0, 0), "chlo.sinh": ("Sinh", 9, 0, 0),
    "chlo.cosh": ("Cosh", 9, 0, 0), "chlo.asinh": ("Asinh", 9, 0, 0), "chlo.acosh": ("Acosh", 9, 0, 0), "chlo.atanh": ("Atanh", 9, 0, 0),
    "chlo.is_nan": ("IsNaN", 9, 0, 0), "chlo.is_inf": ("IsInf", 10, 0, 0),
}  # fmt: skip
_BINARY: dict[str, tuple[str, int, int, int]] = {
    "stablehlo.add": ("Add", 7, 7, 14), "stablehlo.subtract": ("Sub", 7, 7, 14), "stablehlo.multiply": ("Mul", 7, 7, 14),
    "stablehlo.divide": ("Div", 7, 7, 14), "stablehlo.power": ("Pow", 7, 12, 0), "stablehlo.maximum": ("Max", 8, 12, 12),
    "stablehlo.minimum": ("Min", 8, 12, 12),
}  # fmt: skip
_ON_BOOL = {
    "stablehlo.add": "Or", "stablehlo.multiply": "And", "stablehlo.maximum": "Or", "stablehlo.minimum": "And",
    "stablehlo.and": "And", "stablehlo.or": "Or", "stablehlo.xor": "Xor",
}  # fmt: skip
_BITWISE = {"stablehlo.and": "BitwiseAnd", "stablehlo.or": "BitwiseOr", "stablehlo.xor": "BitwiseXor"}
_SHIFTS = {"stablehlo.shift_left": "LEFT", "stablehlo.shift_right_logical": "RIGHT"}
_WIDE = frozenset(DTYPES[name] for name in ("i32", "i64", "u32", "u64"))


def print_term(term: Term, context: PrintContext) -> Input:
    """The expression that `term` prints to.

    Raises:
        Refused: it has none, or none under the context's version.
    """
    printer = PRINTERS.get(term.op.name)
    if printer is None:
        return print_own(term)
    if term.op.dialect != "builtin" and not term.op.has("foreign"):
        for part in (term, *term.operands):
            if isinstance(part.type, TensorType) and part.type.dtype not in USUAL and written_out(term) is None:
                raise NoOnnxForm(f"no kernels are counted on for {part.type.dtype} elements")
    return printer(term, context)


def _since(name: str, versions: tuple[int, int, int], dtype: DType) -> int:
    """The version from which the op takes `dtype`."""
    column = 0 if dtype.kind == "float" else 1 if dtype in _WIDE else 2
    if dtype.kind not in ("float", "int", "uint") or not versions[column]:
        raise NoOnnxForm(f"{name} takes no {dtype} elements")
    return versions[column]


def broadcast_operands(term: Term, operands: Sequence[Term], context: PrintContext) -> tuple[Input, ...]:
    """The operands of an elementwise op without the broadcasts that NumPy does itself; those that the shape needs stay.

    Where it is only the leading 1s of the result that no other operand has, a reshape gives them and moves nothing.
    """
    views: list[Input] = list(operands)
    shapes = [operand.tensor.dims for operand in operands]
    for index, operand in enumerate(operands):
        _, shape = view(operand, PrintContext(context.opset, beyond=context.beyond))
        whole = ranked_view(operand)
        if _broadcasts([*shapes[:index], shape, *shapes[index + 1 :]], term):
            views[index], shapes[index] = view(operand, context)
        elif whole is not None and _broadcasts([*shapes[:index], whole, *shapes[index + 1 :]], term):
            source = operand.operands[0]
            views[index], shapes[index] = reshaped(source, source.tensor.dims, whole, context), whole
    return tuple(views)


def _broadcasts(shapes: Sequence[tuple[object, ...]], term: Term) -> bool:
    try:
        return numpy_shape(*shapes) == term.tensor.dims  # type: ignore[arg-type]
    except TypeRuleError:
        return False


# ---------------------------------------------------------------- elementwise


def _print_unary(term: Term, _: PrintContext) -> Input:
    name, *versions = _UNARY[term.op.name]
    x = term.operands[0]
    if x.tensor.dtype.kind == "uint" and name == "Neg":
        raise NoOnnxForm(f"Neg takes no {x.tensor.dtype} elements")
    return NodeCall(name, (x,), since=_since(name, (versions[0], versions[1], versions[2]), x.tensor.dtype))


def _print_binary(term: Term, context: PrintContext) -> Input:
    operands = broadcast_operands(term, term.operands, context)
    dtype = term.tensor.dtype
    if dtype is BOOL and term.op.name in _ON_BOOL:
        return NodeCall(_ON_BOOL[term.op.name], operands, since=7)
    if term.op.name in _BITWISE:
        return NodeCall(_BITWISE[term.op.name], operands, since=18)
    name, *versions = _BINARY[term.op.name]
    if name == "Pow" and dtype.kind == "uint":
        raise NoOnnxForm(f"Pow takes no {dtype} elements")
    numerator = is_splat(term.operands[0])
    if name == "Div" and dtype.kind == "float" and numerator is not None and numerator.array() == 1:
        return NodeCall("Reciprocal", (term.operands[1],))
    return NodeCall(name, operands, since=_since(name, (versions[0], versions[1], versions[2]), dtype))


def _print_remainder(term: Term, context: PrintContext) -> Input:
    return NodeCall("Mod", broadcast_operands(term, term.operands, context), {"fmod": 1}, since=10)


def _print_shift(term: Term, context: PrintContext) -> Input:
    if term.tensor.dtype.kind != "uint":
        raise NoOnnxForm(f"BitShift takes no {term.tensor.dtype} elements")
    return NodeCall("BitShift", broadcast_operands(term, term.operands, context), {"direction": _SHIFTS[term.op.name]}, since=11)


def _print_not(term: Term, _: PrintContext) -> Input:
    return NodeCall("Not", term.operands) if term.tensor.dtype is BOOL else NodeCall("BitwiseNot", term.operands, since=18)


def _print_compare(term: Term, context: PrintContext) -> Input:
    operands = broadcast_operands(term, term.operands, context)
    floats = term.operands[0].tensor.dtype.kind == "float"
    equal = NodeCall("Equal", operands, since=11 if floats else 7)
    less, greater = (NodeCall(name, operands, since=7 if floats else 9) for name in ("Less", "Greater"))
    direction = term.attribute("direction")
    if direction not in ("EQ", "NE") and term.operands[0].tensor.dtype.kind not in ("float", "int", "uint"):
        raise NoOnnxForm(f"no ONNX op orders {term.operands[0].tensor.dtype} elements")
    if direction in ("LE", "GE"):
        if context.reaches(12):
            return NodeCall("LessOrEqual" if direction == "LE" else "GreaterOrEqual", operands)
        return NodeCall("Or", (less if direction == "LE" else greater, equal))
    return {"EQ": equal, "NE": NodeCall("Not", (equal,)), "LT": less, "GT": greater}[direction]


def _print_select(term: Term, context: PrintContext) -> Input:
    return NodeCall("Where", broadcast_operands(term, term.operands, context), since=9)


def _print_clamp(term: Term, context: PrintContext) -> Input:
    """Max then Min, as the hub has it; not Clip, whose kernels treat NaN as they like."""
    low, x, high = broadcast_operands(term, term.operands, context)
    since = _since("Max", (8, 12, 12), term.tensor.dtype)
    return NodeCall("Min", (NodeCall("Max", (x, low), since=since), high), since=since)


def _print_convert(term: Term, _: PrintContext) -> Input:
    return NodeCall("Cast", term.operands, {"to": term.attribute("dtype")}, since=6)


def _print_is_finite(term: Term, _: PrintContext) -> Input:
    x = term.operands[0]
    return NodeCall("Not", (NodeCall("Or", (NodeCall("IsInf", (x,), since=10), NodeCall("IsNaN", (x,), since=9)), since=7),))


def _scalar(value: float, term: Term) -> Input:
    return constant_of(np.array(value).astype(term.tensor.dtype.numpy), term.tensor.dtype)


def _print_rsqrt(term: Term, _: PrintContext) -> Input:
    return NodeCall("Reciprocal", (NodeCall("Sqrt", term.operands),))


def _print_exponential_minus_one(term: Term, _: PrintContext) -> Input:
    """tanh(x / 2) * (exp(x) + 1), which keeps its precision near 0."""
    x = term.operands[0]
    half = NodeCall("Mul", (x, _scalar(0.5, term)), since=7)
    return NodeCall("Mul", (NodeCall("Tanh", (half,)), NodeCall("Add", (NodeCall("Exp", (x,)), _scalar(1, term)), since=7)), since=7)


def _print_log_plus_one(term: Term, _: PrintContext) -> Input:
    """log(u) * x / (u - 1) with u = 1 + x, and x itself where u is 1 or plus infinity (Higham, Accuracy and Stability, section 1.14.1)."""
    x = term.operands[0]
    one = _scalar(1, term)
    u = NodeCall("Add", (x, one), since=7)
    scaled = NodeCall("Mul", (NodeCall("Log", (u,)), NodeCall("Div", (x, NodeCall("Sub", (u, one), since=7)), since=7)), since=7)
    plain = NodeCall("Or", (NodeCall("Equal", (u, one), since=11), NodeCall("Equal", (u, _scalar(np.inf, term)), since=11)), since=7)
    return NodeCall("Where", (plain, x, scaled), since=9)


def _print_get(term: Term, _: PrintContext) -> Input:
    whole = term.operands[0]
    if whole.op.name == "builtin.tuple":
        part: Term = whole.operands[term.attribute("index")]
        return part
    return whole if domain_and_name(whole.op) is None else print_own(term)


_COMPOSED: dict[str, Printer] = {
    "stablehlo.not": _print_not, "stablehlo.compare": _print_compare, "stablehlo.select": _print_select, "stablehlo.clamp": _print_clamp,
    "stablehlo.convert": _print_convert, "stablehlo.is_finite": _print_is_finite, "stablehlo.rsqrt": _print_rsqrt,
    "stablehlo.exponential_minus_one": _print_exponential_minus_one, "stablehlo.log_plus_one": _print_log_plus_one,
    "stablehlo.remainder": _print_remainder,
}  # fmt: skip
_BUILTIN: dict[str, Printer] = {
    **dict.fromkeys(("builtin.input", "builtin.parameter", "builtin.absent", "builtin.token"), lambda term, _: None),
    "builtin.constant": lambda term, _: term.attribute("value"),
    "builtin.dims": lambda term, _: Numbers(term.attribute("dims"), term.tensor.dtype, term.tensor.static),
    **dict.fromkeys(("builtin.opaque", "onnx.node"), lambda term, _: NodeCall("opaque", term.operands)),
    "builtin.tuple": lambda term, _: NodeCall("tuple", term.operands),
    "builtin.get": _print_get,
}
PRINTERS: dict[str, Printer] = {
    **_BUILTIN,
    **dict.fromkeys(_UNARY, _print_unary),
    **dict.fromkeys((*_BINARY, *_BITWISE), _print_binary),
    **dict.fromkeys(_SHIFTS, _print_shift),
    **_COMPOSED,
    **onnx_movement.PRINTERS,
    **onnx_reduce.PRINTERS,
    **onnx_named.PRINTERS,
}
