"""Values of terms made of constants, each with a bound of how far two honest evaluations may be apart: NumPy, and a table of our own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from coset.ir.constants import Constant
from coset.ir.dims import Poly
from coset.ir.term import CONSTANT, Term
from coset.ir.types import DType, TensorType
from coset.prove.second.algebra import FUNCTIONS
from coset.prove.second.answer import CannotSay, Refused
from coset.prove.second.classes import below

Array = np.ndarray[Any, Any]
BUDGET = 1 << 33  # operations that one certificate may spend
EACH = 1 << 10  # what an op costs, however small it is
LARGEST = 1 << 24  # elements of an array, or as many as all constants of the programs have together
ROUND_UP = 1 + 2.0**-20
MOVES = frozenset(
    f"stablehlo.{name}" for name in ("transpose", "reshape", "broadcast_in_dim", "slice", "reverse", "concatenate", "pad", "gather")
)
LEAVES = frozenset({"builtin.constant", "builtin.absent", "stablehlo.iota"})
SAME_BITS = frozenset(f"stablehlo.{name}" for name in ("add", "subtract", "multiply", "divide", "sqrt", "convert"))


@dataclass(frozen=True)
class Value:
    """An array, the bound of each element, and the bound where each constant is off by one rounding; infinite where there is none."""

    array: Array
    bound: Array
    condition: Array


def is_float(dtype: DType) -> bool:
    """True of real floats."""
    return dtype.kind == "float"


def wide(x: Array) -> Array:
    """The elements as floats of 64 bits."""
    return x.astype(np.float64)


@dataclass(frozen=True)
class Format:
    """Of a float type: the distance from 1 to the next number, the least subnormal, the least normal number."""

    eps: float
    tiny: float
    normal: float


def form(dtype: DType) -> Format:
    """The numbers that bounds are made of."""
    known: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return Format(float(known.eps), float(known.smallest_subnormal), float(known.smallest_normal))


def growth(eps: float, count: int) -> float:
    """The error of a sum of `count` terms (Higham and Mary, 2019, with lambda = 6); infinite above 1/4."""
    g = eps * min(count, 6 * math.sqrt(count))
    return math.inf if g > 0.25 else g


class Evaluator:
    """Values of terms within one budget; `recorded` are the bounds of constants that earlier lines said."""

    def __init__(self, elements: int) -> None:
        self.left = BUDGET
        self.largest = max(elements, LARGEST)
        self.recorded: dict[Term, Array] = {}

    def value(self, root: Term) -> Value:
        """The value of a term that is made of constants alone.

        Raises:
            Refused: it is not, or costs more than is left.
            CannotSay: an op in it has no entry in the table.
        """
        done: dict[Term, Value] = {}
        for term in below([root]):
            if term.op.name == "builtin.absent":
                continue
            shape = term.type.static if isinstance(term.type, TensorType) else None
            if shape is None or not isinstance(term.type, TensorType):
                raise Refused(f"{term.type} is no static tensor")
            self._spend(term, shape)
            operands = [done[operand] for operand in term.operands]
            with np.errstate(all="ignore"):
                done[term] = self._leaf(term) if term.op.name in LEAVES else self._computed(term, term.type.dtype, operands)
            if done[term].array.shape != shape:
                raise CannotSay(f"the value of {term.op.name} has another shape")
        return done[root]

    def _spend(self, term: Term, shape: tuple[int, ...]) -> None:
        count = math.prod(shape)
        work = count
        if term.op.name == "stablehlo.dot_general":
            contracted = [term.operands[0].tensor.dims[axis] for axis in term.attribute("lhs_contract")]
            work = 2 * count * math.prod(each for each in contracted if isinstance(each, int))
        sizes = [math.prod(operand.tensor.static or ()) for operand in term.operands if isinstance(operand.type, TensorType)]
        self.left -= EACH + count + sum(sizes) + work
        if self.left < 0 or count > self.largest:
            raise Refused(f"more than {BUDGET} operations")

    def _leaf(self, term: Term) -> Value:
        if term.op is CONSTANT:
            array = term.attribute("value").array()
            bound = self.recorded.get(term, np.zeros(array.shape))
            if is_float(term.tensor.dtype):
                return Value(array, bound, bound + form(term.tensor.dtype).eps * np.where(np.isfinite(wide(array)), np.abs(wide(array)), 0))
            return Value(array, bound, np.zeros(array.shape))
        shape, axis = term.attribute("shape"), term.attribute("dimension")
        counts = np.arange(shape[axis]).reshape([-1 if place == axis else 1 for place in range(len(shape))])
        zero = np.zeros(shape)
        return Value(np.broadcast_to(counts, shape).astype(term.tensor.dtype.numpy), zero, zero)

    def _computed(self, term: Term, dtype: DType, operands: Sequence[Value]) -> Value:
        name = term.op.name
        if name in MOVES:
            move = MOVED.get(name)
            if move is None:
                raise CannotSay(f"the value of {name}")
            arrays = [move(term, [value.array for value in operands])]
            for which in ("bound", "condition"):
                arrays.append(move(term, [getattr(value, which) for value in operands]))
            return Value(*arrays)
        compute = COMPUTED.get(name)
        if compute is None:
            raise CannotSay(f"the value of {name}")
        array = np.asarray(compute(term, [value.array for value in operands]))
        array = array if array.dtype == dtype.numpy else array.astype(dtype.numpy)
        bounds = [
            self._bound(term, dtype, array, [(value.array, getattr(value, which)) for value in operands])
            for which in ("bound", "condition")
        ]
        return Value(array, *bounds)

    def _bound(self, term: Term, dtype: DType, v: Array, operands: Sequence[tuple[Array, Array]]) -> Array:
        name = term.op.name.removeprefix("stablehlo.")
        inexact = [bool(e.any()) for _, e in operands]
        if not is_float(dtype):
            return np.zeros(v.shape) if not any(inexact) else np.full(v.shape, np.inf)
        rule = BOUNDS.get(name)
        if rule is None:
            return np.full(v.shape, np.inf)
        bound = np.asarray(rule(term, form(dtype), v, operands), np.float64) * ROUND_UP
        bound = np.where(np.isnan(bound), np.inf, np.broadcast_to(bound, v.shape))
        return _at_infinity(name, v, bound, operands)


def _at_infinity(name: str, v: Array, bound: Array, operands: Sequence[tuple[Array, Array]]) -> Array:
    """Infinities and NaNs that no finite result overflowed to have the bound 0 where their operands are exact."""
    odd = ~np.isfinite(wide(v))
    if not odd.any():
        return bound
    if name not in ELEMENTWISE:
        return np.where(odd, np.inf, bound)
    exact = np.ones(v.shape, bool)
    cause = np.zeros(v.shape, bool)
    for array, e in operands:
        exact &= np.broadcast_to(e == 0, v.shape)
        cause |= np.broadcast_to(~np.isfinite(wide(array)), v.shape)
    if name == "divide":
        cause |= wide(operands[1][0]) == 0
    elif name in ("log", "rsqrt", "sqrt", "log_plus_one"):
        cause |= wide(operands[0][0]) <= (-1 if name == "log_plus_one" else 0)
    return np.where(odd, np.where(exact & cause, 0.0, np.inf), bound)


# ---------------------------------------------------------------- meanings


def _numbers(values: Any) -> tuple[int, ...]:
    if any(isinstance(each, Poly) for each in values):
        raise Refused("symbols in what is computed")
    return tuple(values)


def _broadcast(term: Term, arrays: Sequence[Array]) -> Array:
    shape, axes = _numbers(term.attribute("shape")), term.attribute("broadcast_dimensions")
    x = arrays[0].transpose(sorted(range(len(axes)), key=lambda i: axes[i]))
    sizes = iter(x.shape)
    view = [next(sizes) if place in axes else 1 for place in range(len(shape))]
    return np.array(np.broadcast_to(x.reshape(view), shape))


def _slice(term: Term, arrays: Sequence[Array]) -> Array:
    places = zip(_numbers(term.attribute("start")), _numbers(term.attribute("limit")), term.attribute("strides"), strict=True)
    index: tuple[Any, ...] = tuple(slice(first, last, step) for first, last, step in places)
    return np.asarray(arrays[0][(*index, ...)])


def _pad(term: Term, arrays: Sequence[Array]) -> Array:
    x, fill = arrays
    low, high, between = (term.attribute(name) for name in ("low", "high", "interior"))
    sizes = [size + max(size - 1, 0) * gap for size, gap in zip(x.shape, between, strict=True)]
    if min((*low, *high), default=0) < 0:
        raise CannotSay("padding that crops")
    result = np.full([a + size + b for a, size, b in zip(low, sizes, high, strict=True)], fill.reshape(-1)[0], x.dtype)
    result[tuple(slice(a, a + size, gap + 1) for a, size, gap in zip(low, sizes, between, strict=True))] = x
    return result


MOVED: dict[str, Callable[[Term, Sequence[Array]], Array]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": lambda term, arrays: arrays[0].reshape(_numbers(term.attribute("shape"))),
    "stablehlo.transpose": lambda term, arrays: np.ascontiguousarray(arrays[0].transpose(term.attribute("permutation"))),
    "stablehlo.slice": _slice,
    "stablehlo.reverse": lambda term, arrays: np.flip(arrays[0], term.attribute("dimensions")),
    "stablehlo.concatenate": lambda term, arrays: np.concatenate(arrays, axis=term.attribute("dimension")),
    "stablehlo.pad": _pad,
}


def _in_f32(compute: Callable[..., Array]) -> Callable[[Term, Sequence[Array]], Array]:
    """A function of floats; those narrower than f32 are computed in f32 and rounded once."""

    def computed(_: Term, arrays: Sequence[Array]) -> Array:
        first = arrays[0].dtype
        if first.kind in "biu" or first in (np.float32, np.float64):
            return np.asarray(compute(*arrays))
        if first.kind == "c":
            raise CannotSay("complex numbers that are computed")
        return np.asarray(compute(*(array.astype(np.float32) for array in arrays))).astype(first)

    return computed


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu":
        if not b.all():
            raise CannotSay("an integer divided by zero")
        quotient = np.abs(a.astype(object)) // np.abs(b.astype(object))
        return np.asarray(np.where((a < 0) != (b < 0), -quotient, quotient)).astype(a.dtype)
    if a.dtype.kind == "b":
        raise CannotSay("a quotient of truths")
    return np.asarray(a / b)


def _floats(name: str, compute: Callable[..., Array]) -> Callable[..., Array]:
    def of_floats(*arrays: Array) -> Array:
        if arrays[0].dtype.kind in "biu":
            raise CannotSay(f"{name} of integers")
        return compute(*arrays)

    return of_floats


def _no_truths(name: str, compute: Callable[..., Array]) -> Callable[..., Array]:
    def of_numbers(*arrays: Array) -> Array:
        if arrays[0].dtype.kind == "b":
            raise CannotSay(f"{name} of truths")
        return compute(*arrays)

    return of_numbers


def _extreme(compute: Any) -> Callable[..., Array]:
    """NaN if one is, and -0 below 0."""

    def larger(a: Array, b: Array) -> Array:
        result = np.asarray(compute(a, b))
        if a.dtype.kind == "f":
            zeros = (a == 0) & (b == 0)
            sign = np.signbit(a) & np.signbit(b) if compute is np.maximum else np.signbit(a) | np.signbit(b)
            result = np.where(zeros, np.where(sign, np.asarray(-0.0, a.dtype), np.asarray(0.0, a.dtype)), result)
        return result

    return larger


def _compare(term: Term, arrays: Sequence[Array]) -> Array:
    functions = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    word = term.attribute("direction")
    if word not in functions or arrays[0].dtype.kind == "c":
        raise CannotSay(f"the comparison {word}")
    return np.asarray(functions[word](*arrays))


def _convert(term: Term, arrays: Sequence[Array]) -> Array:
    x, target = arrays[0], term.tensor.dtype
    source = term.operands[0].tensor.dtype
    if source is target:
        return x
    if source.kind in ("bool", "int", "uint") and target.kind in ("int", "uint") and target.bits >= 8:
        return x.astype(target.numpy)
    if target.kind == "float" and source.kind in ("bool", "int", "uint") and target.bits >= 32:
        return x.astype(target.numpy)
    if target.kind == "float" and source.kind == "float" and target.bits >= 16 and source.bits >= 16:
        if source.name == "f64" and target.name == "bf16":
            raise CannotSay("f64 as bf16")
        return x.astype(target.numpy)
    if target.kind == "bool":
        return np.asarray(x != 0)
    raise CannotSay(f"{source} as {target}")


def _dot(term: Term, arrays: Sequence[Array]) -> Array:
    a, b = (_rows(term, arrays, side) for side in (0, 1))
    first = arrays[0].dtype
    if first.kind == "c":
        raise CannotSay("complex numbers that are computed")
    if first.kind == "b":
        return np.asarray(_matmul(term, a.astype(np.int64), b.astype(np.int64)) != 0)
    widened = np.float32 if first.kind not in "iu" and first.itemsize < 4 else first
    return _matmul(term, a.astype(widened), b.astype(widened)).astype(first)


def _rows(term: Term, arrays: Sequence[Array], side: int) -> Array:
    """An operand as [batch, free, contracted], or on the right as [batch, contracted, free]."""
    name = ("lhs", "rhs")[side]
    batch, contract = term.attribute(f"{name}_batch"), term.attribute(f"{name}_contract")
    x = arrays[side]
    free = tuple(axis for axis in range(x.ndim) if axis not in batch + contract)
    order = batch + (free + contract if side == 0 else contract + free)
    sizes = [math.prod(x.shape[axis] for axis in group) for group in ((free, contract) if side == 0 else (contract, free))]
    return np.ascontiguousarray(x.transpose(order)).reshape(*(x.shape[axis] for axis in batch), *sizes)


def _matmul(term: Term, a: Array, b: Array) -> Array:
    return np.matmul(a, b).reshape([int(str(dim)) for dim in term.tensor.dims])


def _reduce(term: Term, arrays: Sequence[Array]) -> Array:
    x, axes = arrays[0], tuple(term.attribute("dimensions"))
    word = term.attribute("combiner")
    functions: dict[str, Any] = {
        "add": np.add,
        "multiply": np.multiply,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "and": np.logical_and,
        "or": np.logical_or,
    }
    if word not in functions or x.dtype.kind == "c" or (word in ("maximum", "minimum") and 0 in x.shape):
        raise CannotSay(f"a reduction with {word}")
    if x.dtype.kind == "b" and word not in ("and", "or"):
        raise CannotSay("a reduction of truths")
    widened = x.astype(np.float32) if x.dtype.kind not in "biu" and x.dtype.itemsize < 4 else x
    if word in ("and", "or") and x.dtype.kind != "b":
        raise CannotSay("bits of integers that are reduced")
    for axis in sorted(axes, reverse=True):
        widened = functions[word].reduce(widened, axis=axis, dtype=widened.dtype)
    return np.asarray(widened).astype(x.dtype)


COMPUTED: dict[str, Callable[[Term, Sequence[Array]], Array]] = {
    "stablehlo.add": _in_f32(_no_truths("a sum", np.add)),
    "stablehlo.subtract": _in_f32(_no_truths("a difference", np.subtract)),
    "stablehlo.multiply": _in_f32(_no_truths("a product", np.multiply)),
    "stablehlo.divide": _in_f32(_divide),
    "stablehlo.maximum": _in_f32(_extreme(np.maximum)),
    "stablehlo.minimum": _in_f32(_extreme(np.minimum)),
    "stablehlo.negate": _in_f32(_no_truths("a negative", np.negative)),
    "stablehlo.abs": _in_f32(np.abs),
    "stablehlo.sqrt": _in_f32(_floats("sqrt", np.sqrt)),
    "stablehlo.rsqrt": _in_f32(_floats("rsqrt", lambda x: np.asarray(1 / np.sqrt(x)).astype(x.dtype))),
    "stablehlo.exponential": _in_f32(_floats("exp", np.exp)),
    "stablehlo.log": _in_f32(_floats("log", np.log)),
    "stablehlo.tanh": _in_f32(_floats("tanh", np.tanh)),
    "stablehlo.sine": _in_f32(_floats("sine", np.sin)),
    "stablehlo.cosine": _in_f32(_floats("cosine", np.cos)),
    "stablehlo.power": _in_f32(_floats("power", np.power)),
    "stablehlo.floor": _in_f32(_floats("floor", np.floor)),
    "stablehlo.ceil": _in_f32(_floats("ceil", np.ceil)),
    "stablehlo.select": lambda term, arrays: np.where(arrays[0], arrays[1], arrays[2]),
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.dot_general": _dot,
    "stablehlo.reduce": _reduce,
    "stablehlo.and": lambda term, arrays: np.bitwise_and(*arrays),
    "stablehlo.or": lambda term, arrays: np.bitwise_or(*arrays),
    "stablehlo.xor": lambda term, arrays: np.bitwise_xor(*arrays),
    "stablehlo.not": lambda term, arrays: np.invert(arrays[0]),
}
ELEMENTWISE = frozenset(name.removeprefix("stablehlo.") for name in COMPUTED) - {"dot_general", "reduce"}


# ---------------------------------------------------------------- bounds

Operands = Sequence[tuple[Array, Array]]
BoundRule = Callable[[Term, Format, Array, Operands], Any]


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum in f64 and what it rounds off (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The product in f64 and what it rounds off (Dekker)."""
    whole = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return whole, ((ah * bh - whole) + ah * bl + al * bh) + al * bl


def _split(x: Array) -> tuple[Array, Array]:
    scaled = x * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def _sum_bound(sign: float) -> BoundRule:
    def bound(_: Term, f: Format, v: Array, operands: Operands) -> Any:
        (a, ea), (b, eb) = operands
        total, rest = _two_sum(wide(a), sign * wide(b))
        exact = (rest == 0) & (total == wide(v))
        return ea + eb + np.where(exact, 0, f.eps * np.abs(wide(v)))

    return bound


def _lost(f: Format, v: Array, a: Array, b: Array) -> Any:
    return np.where((np.abs(wide(v)) < f.normal) & (wide(a) != 0) & (wide(b) != 0), f.tiny, 0)


def _product_bound(_: Term, f: Format, v: Array, operands: Operands) -> Any:
    (a, ea), (b, eb) = operands
    total, rest = _two_product(wide(a), wide(b))
    exact = (rest == 0) & (total == wide(v))
    return np.abs(wide(a)) * eb + np.abs(wide(b)) * ea + ea * eb + np.where(exact, 0, f.eps * np.abs(wide(v)) + _lost(f, v, a, b))


def _quotient_bound(_: Term, f: Format, v: Array, operands: Operands) -> Any:
    (a, ea), (b, eb) = operands
    room = np.abs(wide(b)) - eb
    lost = np.where((np.abs(wide(v)) < f.normal) & (wide(a) != 0), f.tiny, 0)
    moved = np.where((ea == 0) & (eb == 0), 0, (ea + np.abs(wide(v)) * eb) / room)
    return np.where((eb > 0) & (room <= 0), np.inf, moved + f.eps * np.abs(wide(v)) + lost)


def _function_bound(function: Callable[[Array], Array]) -> BoundRule:
    def bound(_: Term, f: Format, v: Array, operands: Operands) -> Any:
        ((a, ea),) = operands
        x = wide(a)
        middle = function(x)
        moved = np.maximum(np.abs(function(x - ea) - middle), np.abs(function(x + ea) - middle))
        return np.where(ea == 0, 0, moved) + 4 * f.eps * np.abs(wide(v)) + f.tiny

    return bound


def _convert_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    ((_, ea),) = operands
    kept = FUNCTIONS["lossless"](term.operands[0].tensor.dtype, term.tensor.dtype)
    return ea if kept else ea + f.eps * np.abs(wide(v)) + f.tiny


def _select_bound(_: Term, __: Format, v: Array, operands: Operands) -> Any:
    (c, ec), (_, ea), (_, eb) = operands
    return np.where(ec == 0, np.where(c, ea, eb), np.inf)


def _reduce_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    ((a, ea),) = operands
    axes = tuple(term.attribute("dimensions"))
    word = term.attribute("combiner")
    if word in ("maximum", "minimum"):
        return ea.max(axis=axes, initial=0.0)
    if word != "add":
        return np.full(v.shape, np.inf)
    count = math.prod(a.shape[axis] for axis in axes)
    weight = (np.abs(wide(a)) + ea).sum(axis=axes)
    return ea.sum(axis=axes) + np.where(weight == 0, 0, growth(f.eps, max(count, 1)) * weight)


def _dot_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    (a, ea), (b, eb) = operands
    count = math.prod(a.shape[axis] for axis in term.attribute("lhs_contract"))

    def product(x: Array, y: Array) -> Array:
        return _matmul(term, _rows(term, (x, y), 0), _rows(term, (x, y), 1))

    size, other = np.abs(wide(a)), np.abs(wide(b))
    if not (np.isfinite(ea).all() and np.isfinite(eb).all()):
        return np.full(v.shape, np.inf)
    return (
        product(size, eb)
        + product(ea, other)
        + product(ea, eb)
        + growth(f.eps, count + 1) * product(size + ea, other + eb)
        + count * f.tiny
    )


def _largest(_: Term, __: Format, ___: Array, operands: Operands) -> Any:
    result = operands[0][1]
    for _a, e in operands[1:]:
        result = np.maximum(result, e)
    return result


def _power_bound(_: Term, f: Format, v: Array, operands: Operands) -> Any:
    exact = (operands[0][1] == 0) & (operands[1][1] == 0)
    return np.where(exact, 8 * f.eps * np.abs(wide(v)) + f.tiny, np.inf)


BOUNDS: dict[str, BoundRule] = {
    "negate": _largest,
    "abs": _largest,
    "maximum": _largest,
    "minimum": _largest,
    "select": _select_bound,
    "add": _sum_bound(1.0),
    "subtract": _sum_bound(-1.0),
    "multiply": _product_bound,
    "divide": _quotient_bound,
    "sqrt": _function_bound(np.sqrt),
    "rsqrt": _function_bound(lambda x: 1 / np.sqrt(x)),
    "exponential": _function_bound(np.exp),
    "log": _function_bound(np.log),
    "tanh": _function_bound(np.tanh),
    "sine": lambda term, f, v, operands: operands[0][1] + 4 * f.eps,
    "cosine": lambda term, f, v, operands: operands[0][1] + 4 * f.eps,
    "power": _power_bound,
    "convert": _convert_bound,
    "reduce": _reduce_bound,
    "dot_general": _dot_bound,
}


def made_of_constants(term: Term) -> bool:
    """Whether all leaves are constants or counts, and the type is a static tensor."""
    if not isinstance(term.type, TensorType) or term.type.static is None:
        return False
    return all(each.op.name in LEAVES for each in below([term]) if not each.operands)


def moves_alone(term: Term) -> bool:
    """Whether nothing in a term computes."""
    return all(each.op.name in MOVES or each.op.name in LEAVES for each in below([term]))


def elements_of(terms: Sequence[Term]) -> int:
    """The elements of all constants among the terms together."""
    return sum(math.prod(term.tensor.static or ()) for term in terms if term.op is CONSTANT)


def same_elements(a: Array, b: Array) -> Array:
    """Where two arrays have one value, NaNs among each other included."""
    return (wide(a) == wide(b)) | (np.isnan(wide(a)) & np.isnan(wide(b)))


def constant(term: Term) -> Constant:
    """The constant of a constant term."""
    found: Constant = term.attribute("value")
    return found
