"""Drawn nodes of ONNX's elementwise ops, conversions and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.definitions.instance import Draw, Fit, Instance, Slot, constant, types_of
from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.ir.types import BOOL, DTYPES, DType

Drawer = Callable[[Draw, str], Instance]
DRAWS: dict[str, Drawer] = {}
NUMBERS = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 0.009999999776482582, 1e-5, 3.25, -7.5)
FUNCTION_ULPS = 16.0  # what ONNX Runtime's polynomials are off, and NumPy's functions


def draws(*ops: str) -> Callable[[Drawer], Drawer]:
    """Enter the way to draw nodes of some ops."""

    def enter(drawer: Drawer) -> Drawer:
        DRAWS.update(dict.fromkeys(ops, drawer))
        return drawer

    return enter


def number(r: Draw) -> float:
    """An attribute of any sign, as a model stores it."""
    return float(np.float32(r.choice(NUMBERS)))


PLAIN = "Abs Neg Sign Floor Ceil Round IsNaN Not BitwiseNot Relu"
FUNCTIONS = (
    "Reciprocal Sqrt Exp Log Sigmoid Erf Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Softplus Softsign HardSwish Mish"
)
CHOSEN: dict[str, Callable[[Draw], dict[str, Any]]] = {
    "LeakyRelu": lambda r: {"alpha": number(r)},
    "Elu": lambda r: {"alpha": number(r)},
    "Selu": lambda r: {"alpha": number(r), "gamma": number(r)},
    "HardSigmoid": lambda r: {"alpha": number(r), "beta": number(r)},
    "Gelu": lambda r: {"approximate": r.choice(["none", "tanh"])},
    "Swish": lambda r: {"alpha": number(r)},
    "Celu": lambda r: {"alpha": number(r) or 1.0},
    "ThresholdedRelu": lambda r: {"alpha": number(r)},
    "Shrink": lambda r: {"bias": number(r), "lambd": number(r)},
    "IsInf": lambda r: {"detect_negative": r.randint(0, 1), "detect_positive": r.randint(0, 1)},
}


@draws(*PLAIN.split(), *FUNCTIONS.split(), *CHOSEN)
def _unary(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    attributes = CHOSEN[op](r) if op in CHOSEN and r.maybe(0.8) else {}
    numbers = tuple(value for value in attributes.values() if isinstance(value, float) and value)
    ulps = 0.0 if op in PLAIN.split() else FUNCTION_ULPS
    dtype = r.dtype(op, opset)
    fit = (lambda x: np.where(x == 0, 1, x)) if op == "Reciprocal" and dtype.kind != "float" else None
    return Instance(op, (Slot(dtype, r.wide(), fit),), attributes, opset, thresholds=numbers, most_ulps=ulps)


# ---------------------------------------------------------------- two operands and more

BINARY = "Add Sub Mul And Or Xor BitwiseAnd BitwiseOr BitwiseXor Equal Less LessOrEqual Greater GreaterOrEqual"


def not_zero(x: Any) -> Any:
    """The array with 3 where it is 0 or -1: what divides integers."""
    return np.where((x == 0) | (x == -1) if x.dtype.kind == "i" else x == 0, 3, x)


@draws(*BINARY.split(), "Div", "Mod")
def _binary(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    dtype = r.dtype(op, opset)
    one, other = (Slot(dtype, shape) for shape in r.shapes(2))
    attributes = {}
    if op == "Mod":
        attributes = {"fmod": 1} if dtype.kind == "float" and opset < 28 else {"fmod": r.randint(0, 1)}
    if op in ("Div", "Mod") and dtype.kind in ("int", "uint"):
        other = Slot(dtype, other.shape, not_zero)
    return Instance(op, (one, other), attributes, opset)


@draws("BitShift")
def _shift(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    dtype = r.dtype(op, opset)
    one, other = r.shapes(2)
    return Instance(op, (Slot(dtype, one), Slot(dtype, other, lambda y: y % dtype.bits)), {"direction": r.choice(["LEFT", "RIGHT"])}, opset)


@draws("Pow")
def _power(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    base = r.dtype(op, opset)
    exponent = base if opset < 12 or r.maybe(0.4) else r.dtype(op, opset, 1)
    one, other = r.shapes(2)
    return Instance(op, (Slot(base, one), Slot(exponent, other, _exponent(base, exponent))), {}, opset, most_ulps=FUNCTION_ULPS)


def _exponent(base: DType, exponent: DType) -> Fit | None:
    """Of an integer small whole exponents that are not negative: what others give is no number of its type."""
    if base.kind == "float":
        return None

    def fit(y: Any) -> Any:
        small = np.abs(np.where(np.isfinite(y.astype(np.float64)), y, 1).astype(np.float64)) % (3 if base.bits <= 32 else 5)
        return np.floor(small)

    return fit


@draws("PRelu")
def _slope(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    dtype, shape = r.dtype(op, opset), r.wide()
    other = tuple(1 if r.maybe(0.3) else dim for dim in shape)[r.randint(0, len(shape)) * r.maybe() :]
    return Instance(op, (Slot(dtype, shape), Slot(dtype, other)), {}, opset)


@draws("SwiGLU")
def _gated(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    dtype, shape = r.dtype(op, opset), r.wide()
    attributes = {"alpha": number(r)} if r.maybe() else {}
    return Instance(op, (Slot(dtype, shape), Slot(dtype, shape)), attributes, opset, most_ulps=FUNCTION_ULPS)


@draws("Sum", "Mean", "Max", "Min")
def _several(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=8)
    dtype = r.dtype(op, opset)
    return Instance(op, tuple(Slot(dtype, shape) for shape in r.shapes(r.randint(1, 4))), {}, opset)


@draws("Where")
def _where(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    dtype, (mask, one, other) = r.dtype(op, opset, 1), r.shapes(3)
    return Instance(op, (Slot(BOOL, mask), Slot(dtype, one), Slot(dtype, other)), {}, opset)


@draws("Clip")
def _clip(r: Draw, op: str) -> Instance:
    """Bounds in any order, also NaN; before version 11 as attributes."""
    opset = r.version(op, least=6)
    dtype, shape = r.dtype(op, opset), r.wide()
    if opset < 11:
        numbers = {"min": number(r), "max": number(r)}
        return Instance(op, (Slot(dtype, shape),), {key: value for key, value in numbers.items() if r.maybe(0.7)}, opset)
    bounds = [Slot(dtype, ()) if r.maybe(0.75) else None for _ in range(2)]
    return Instance(op, (Slot(dtype, shape), *bounds), {}, opset)


# ---------------------------------------------------------------- conversions

EIGHTS = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")


@draws("Cast", "CastLike", "BitCast")
def _cast(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    source = r.dtype(op, opset)
    targets = [t for t in types_of("Cast", max(opset, 9), 0) if t.name != "f4e2m1fn"]
    if op == "BitCast":
        targets = [t for t in targets if t.bits == source.bits and BOOL not in (source, t)] or [source]
    target = r.choice(targets)
    shape = r.wide()
    attributes: dict[str, Any] = {}
    if opset >= 19 and op != "BitCast" and target.name in EIGHTS and r.maybe():
        attributes["saturate"] = r.randint(0, 1)
    slots = [Slot(source, shape, None if op == "BitCast" else _inside(source, target))]
    if op == "CastLike":
        slots.append(constant(np.ones((), target.numpy)))
    else:
        attributes["to"] = CODE_OF_DTYPE[target]
    return Instance(op, tuple(slots), attributes, opset)


def _inside(source: DType, target: DType) -> Fit | None:
    """Of floats the numbers that an integer type holds, of all types those that a power of two may be rounded to."""
    if target.name == "f8e8m0fnu":
        return lambda x: np.abs(np.where(np.isfinite(x.astype(np.float64)) & (x != 0), x, 1))
    if target.kind in ("int", "uint") and source.kind == "float":
        info = ml_dtypes.iinfo(target.numpy)  # type: ignore[no-untyped-call]
        low, high = float(info.min), float(info.max)

        def fit(x: Any) -> Any:
            wide = np.nan_to_num(x.astype(np.float64), nan=1.0)
            most = float(ml_dtypes.finfo(source.numpy).max)  # type: ignore[no-untyped-call]
            edge = min(high, most) if high < 2**24 else min(high / 2, most)
            return np.clip(wide, max(low, -edge), edge) if source.bits > 8 else np.clip(wide, max(low, -edge) / 2, edge / 2)

        return fit
    return None


# ---------------------------------------------------------------- reductions

AXES_AS_OPERAND = {"ReduceSum": 13}  # the others: 18
SUMS = "ReduceSum ReduceProd ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp"


@draws(*SUMS.split(), "ReduceMax", "ReduceMin")
def _reduce(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(0, 4) if r.maybe(0.8) else r.choice([(64,), (3, 70)])
    axes = r.axes(len(shape))
    attributes: dict[str, Any] = {"keepdims": r.randint(0, 1)} if r.maybe(0.8) else {}
    slots: list[Slot | None] = [Slot(r.dtype(op, opset), shape)]
    if opset < AXES_AS_OPERAND.get(op, 18):
        attributes |= {"axes": axes} if axes else {}
    elif r.maybe(0.8):
        slots.append(constant(np.array(axes, np.int64)))
        attributes |= {"noop_with_empty_axes": r.randint(0, 1)} if r.maybe() else {}
    return Instance(op, tuple(slots), attributes, opset, most_ulps=FUNCTION_ULPS if "Log" in op or "L2" in op else 2.0)


@draws("ArgMax", "ArgMin")
def _arg(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(1, 4, least=1)
    attributes = {"axis": r.axis(len(shape)), "keepdims": r.randint(0, 1)}
    if opset >= 12 and r.maybe():
        attributes["select_last_index"] = r.randint(0, 1)
    return Instance(op, (Slot(r.dtype(op, opset), shape),), attributes, opset)


@draws("Softmax", "LogSoftmax", "Hardmax")
def _along(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(1, 4)
    attributes = {"axis": r.axis(len(shape)) if opset >= 11 else r.randrange(len(shape))} if r.maybe(0.8) or len(shape) < 2 else {}
    return Instance(op, (Slot(r.dtype(op, opset), shape),), attributes, opset, most_ulps=FUNCTION_ULPS)


@draws("CumSum", "CumProd")
def _cumulative(r: Draw, op: str) -> Instance:
    opset = r.version(op)
    shape = r.shape(1, 4)
    attributes = {name: r.randint(0, 1) for name in ("exclusive", "reverse") if r.maybe(0.7)}
    axis = np.array(r.axis(len(shape)), r.choice([np.int32, np.int64]))
    return Instance(op, (Slot(r.dtype(op, opset), shape), constant(axis)), attributes, opset)


@draws("LpNormalization", "MeanVarianceNormalization")
def _normalized(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=9)
    if op == "LpNormalization":
        shape = r.shape(1, 4)
        attributes: dict[str, Any] = {"axis": r.axis(len(shape)), "p": r.randint(1, 2)}
    else:
        shape = r.shape(4, 4) if r.maybe(0.7) else r.shape(2, 3)
        attributes = {"axes": r.axes(len(shape), empty=False)} if len(shape) != 4 or r.maybe() else {}
    return Instance(op, (Slot(r.dtype(op, opset), shape),), attributes, opset, most_ulps=FUNCTION_ULPS)


# ---------------------------------------------------------------- numbers made of little

SMALL = {"Range": ("i64", "i32", "i16", "f32", "f64", "f16", "bf16")}


@draws("Range")
def _range(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=11)
    dtype = r.dtype(op, opset)
    step = r.choice([1, 2, -1, -3, 0.5, -0.25]) if dtype.kind == "float" else r.choice([1, 2, -1, -3])
    start = r.randint(-5, 5)
    limit = start + step * r.choice([0, 1, 5, 5.5, 9, -2])
    values = (start, limit if dtype.kind == "float" else round(limit), step)
    return Instance(op, tuple(constant(np.asarray(value).astype(dtype.numpy)) for value in values), {}, opset)


@draws("HannWindow", "HammingWindow", "BlackmanWindow")
def _window(r: Draw, op: str) -> Instance:
    opset = r.version(op, least=17)
    size = np.array(r.choice([1, 2, 3, 10, 0, 17]), r.choice([np.int32, np.int64]))
    attributes = {"periodic": r.randint(0, 1)} if r.maybe(0.8) else {}
    if r.maybe():
        attributes["output_datatype"] = CODE_OF_DTYPE[DTYPES[r.choice(["f32", "f64", "f16", "i32", "u8"])]]
    return Instance(op, (constant(size),), attributes, opset, most_ulps=FUNCTION_ULPS)
