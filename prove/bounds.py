"""Error bounds of single ops: how far two honest evaluations may be apart, by the bounds of the operands (docs/certificates.md).

Rules of Higham, *Accuracy and Stability of Numerical Algorithms* (2002), sections 2.2 and 3.1; for sums the square root law of
`coset.prove.bound`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from coset.ir.op import Array
from coset.ir.term import Term
from coset.ir.types import F32, DType, TensorType
from coset.prove.bound import NONE, NOTHING, Bound, growth, magnitude, plain_floats, roundoff, smallest

SLACK = 1 + 2.0**-20  # of a bound that is itself computed in f64
LIBRARY, UNKNOWN, POWER = 4.0, 8.0, 8.0  # roundings of a library's function, of an op that no row speaks of, of a power
SHARED = 1 << 14  # elements of a bound that is looked at for a common share
NARROW = 32  # bits of a float: fewer are computed in f32
FEW = 64  # elements of a product that are looked at first
Function = Callable[[Any], Any]
MONOTONE: dict[str, Function | None] = {
    "stablehlo.rsqrt": lambda x: 1 / np.sqrt(x), "stablehlo.cbrt": np.cbrt, "stablehlo.sqrt": np.sqrt, "stablehlo.exponential": np.exp,
    "stablehlo.exponential_minus_one": np.expm1, "stablehlo.log": np.log, "stablehlo.log_plus_one": np.log1p,
    "stablehlo.logistic": lambda x: 1 / (1 + np.exp(-x)), "stablehlo.tanh": np.tanh, "chlo.sinh": np.sinh, "chlo.asin": np.arcsin,
    "chlo.acos": np.arccos, "chlo.atan": np.arctan, "chlo.asinh": np.arcsinh, "chlo.acosh": np.arccosh, "chlo.atanh": np.arctanh,
    "chlo.erf": None,
}  # fmt: skip
"""The functions in f64; erf's slope is at most 2 / sqrt(pi)."""
ZERO, ENDS = (0.0,), (-np.inf, np.inf)
KNOWN: dict[str, tuple[float, ...]] = {
    "sqrt": ZERO, "cbrt": ZERO, "exponential": (0.0, *ENDS), "exponential_minus_one": (0.0, *ENDS), "log": (1.0,), "log_plus_one": ZERO,
    "logistic": ENDS, "tanh": (0.0, *ENDS), "erf": (0.0, *ENDS), "erfc": (0.0, *ENDS), "sine": ZERO, "cosine": ZERO, "tan": ZERO,
    "sinh": ZERO, "asin": ZERO, "asinh": ZERO, "atan": ZERO, "atanh": ZERO,
}  # fmt: skip
"""Where every library has the very value of a function."""
WHOLE: dict[str, Function] = {
    "stablehlo.floor": np.floor, "stablehlo.ceil": np.ceil, "stablehlo.round_nearest_even": np.rint, "stablehlo.sign": np.sign,
    "stablehlo.round_nearest_afz": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}  # fmt: skip
DEFINED = ("stablehlo.remainder", "stablehlo.reduce_precision")  # exact, or rounded as they say
CHOOSING = ("maximum", "minimum", "second")  # combiners that make no number
INEXACT = ("float", "complex")
STABLE = frozenset(f"stablehlo.{name}" for name in ("add", "subtract", "multiply", "divide", "sqrt", "convert", "negate", "abs", "maximum",
                                                     "minimum", "clamp", "select", "compare"))  # fmt: skip
"""Ops that round once, as IEEE says, if at all: every correct evaluation has the same bits."""


# ---------------------------------------------------------------- one op


def bound(term: Term, arrays: Sequence[Any], errors: Sequence[Bound], value: Array) -> Bound:
    """The bound of the value of an op whose operands have these."""
    kind = term.tensor.dtype.kind
    exact = all(error.exact for error in errors)
    if not value.size:
        return NOTHING
    if term.op.has("movement"):
        return NOTHING if exact else _moved(term, arrays, errors)
    if any(error.plain and np.isinf(error.absolute) for error in errors):
        return NONE
    if kind != "float":
        if kind == "complex":
            return _complex(term, arrays, errors, value)
        return NOTHING if exact and kind in ("int", "uint", "bool") else _compared(term, arrays, errors)
    found = _float(term, arrays, errors, value, exact)
    if found is NONE:
        return NONE
    return _with_infinities(term, arrays, errors, value, _plainly(Bound(found.relative * SLACK, found.absolute * SLACK), value))


def _plainly(found: Bound, value: Array) -> Bound:
    """A bound that is about one share of each element as that share, rounded up by a factor of 2 at most: what follows costs less."""
    if found.plain or not 0 < value.size <= SHARED:
        return found
    sizes, bounds = magnitude(value), found.of(value)
    if not sizes.all():
        return found
    shares = bounds / sizes
    largest = float(np.max(shares))
    return Bound(largest) if np.isfinite(largest) and largest <= 2 * float(np.min(shares)) else found


def _float(term: Term, arrays: Sequence[Any], errors: Sequence[Bound], value: Array, exact: bool) -> Bound:
    name, dtype = term.op.name, term.tensor.dtype
    eps, tiny = roundoff(dtype), smallest(dtype)
    if name in ("stablehlo.negate", "stablehlo.abs"):
        return errors[0]
    if name in ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.clamp"):
        return NOTHING if exact else Bound(0.0, reduce(np.maximum, [error.of(array) for error, array in zip(errors, arrays, strict=True)]))
    if name == "stablehlo.select":
        return _selected(arrays, errors, exact)
    if name in ("stablehlo.add", "stablehlo.subtract"):
        return _sum(arrays, errors, value, eps, exact, -1.0 if name.endswith("subtract") else 1.0)
    if name == "stablehlo.multiply":
        return _product(arrays, errors, value, dtype)
    if name == "stablehlo.divide":
        return _quotient(arrays, errors, value, dtype)
    if name == "stablehlo.convert":
        return _converted(term.operands[0].tensor.dtype, dtype, arrays[0], errors[0], value)
    if name in MONOTONE:
        return _function(name, arrays[0], errors[0], value, dtype)
    if name in ("stablehlo.sine", "stablehlo.cosine"):
        reach, narrow = errors[0].of(arrays[0]), dtype.bits < NARROW
        own = eps * magnitude(value) + LIBRARY * roundoff(F32) if narrow else LIBRARY * eps
        return Bound(0.0, np.where(_is_known(name, arrays[0], reach), 0.0, reach + own))
    if name == "stablehlo.power":
        return Bound(_roundings(POWER, dtype), tiny) if exact else NONE
    if name == "stablehlo.reduce":
        return _folded(term, arrays[0], errors[0], eps)
    if name in ("stablehlo.dot_general", "stablehlo.convolution"):
        return _contracted(term, arrays, errors, eps, tiny)
    if name in WHOLE:
        return errors[0] if exact else Bound(0.0, _spread(WHOLE[name], arrays[0], errors[0].of(arrays[0]), _wide(value)))
    if name in ("stablehlo.real", "stablehlo.imag"):
        return NOTHING if exact else Bound(0.0, errors[0].of(arrays[0]))
    if term.op.name in COMBINING:
        return _combined(term, arrays, errors, exact, eps)
    if name in DEFINED and exact:
        return NOTHING
    if not exact or not term.op.has("elementwise"):
        return NONE
    sure = _is_known(name, arrays[0], np.zeros(np.shape(arrays[0])))
    return NOTHING if bool(np.all(sure)) else Bound(_roundings(UNKNOWN, dtype), np.where(sure, 0.0, tiny) if np.any(sure) else tiny)


def _is_known(name: str, array: Any, reach: Array) -> Array:
    """Where a function of exact elements has a value that every library knows."""
    return np.asarray((reach == 0) & np.isin(_wide(array), KNOWN.get(name.split(".")[1], ())))


def _spread(function: Function, array: Any, reach: Array, middle: Array) -> Array:
    """How far a function that never falls is from its value in the middle where the operand may be anywhere within its bound."""
    ends = [_wide(function(_wide(array) + sign * reach)) for sign in (1.0, -1.0)]
    far = np.maximum(*(np.abs(end - middle) for end in ends))
    still = (reach == 0) | ((ends[0] == middle) & (ends[1] == middle))
    return np.where(still, 0.0, np.nan_to_num(far, nan=np.inf, posinf=np.inf))


def _roundings(count: float, dtype: DType) -> float:
    """So many roundings of a library's function; narrow floats are computed in f32 and rounded once."""
    eps = roundoff(dtype)
    return count * eps if dtype.bits >= NARROW else eps + count * roundoff(F32)


def _wide(array: Any) -> Array:
    """The elements in f64, of complex numbers their sizes."""
    given = np.asarray(array)
    return (np.abs(given) if given.dtype.kind == "c" else given).astype(np.float64)


def _moved(term: Term, arrays: Sequence[Any], errors: Sequence[Bound]) -> Bound:
    """The bounds of the elements where these go; places must be exact."""
    assert term.op.meaning is not None
    whole = [isinstance(each.type, TensorType) and each.tensor.dtype.kind not in INEXACT for each in term.operands]
    if any(integers and not error.exact for integers, error in zip(whole, errors, strict=True)):
        return NONE
    if len(errors) == 1 and errors[0].plain:
        return errors[0]
    if any(error is NONE for error in errors):
        return NONE
    data = [array if integers else error.of(array) for array, error, integers in zip(arrays, errors, whole, strict=True)]
    return Bound(0.0, np.asarray(term.op.meaning(term, data, {}), np.float64))


def _complex(term: Term, arrays: Sequence[Any], errors: Sequence[Bound], value: Array) -> Bound:
    """Sums as those of floats; else, of exact operands, 0 where the numbers stay, and roundings of an elementwise op."""
    eps, exact = float(np.finfo(value.dtype).eps), all(error.exact for error in errors)
    if term.op.name == "stablehlo.reduce":
        return _folded(term, arrays[0], errors[0], eps)
    if not exact:
        return NONE
    if term.op.name in ("stablehlo.convert", "stablehlo.complex", "stablehlo.negate"):
        parts = [np.asarray(array).astype(np.complex128) for array in arrays]
        meant = parts[0] + 1j * parts[1] if len(parts) == 2 else -parts[0] if term.op.name.endswith("negate") else parts[0]
        if np.array_equal(meant, value.astype(np.complex128)):
            return NOTHING
    return Bound(UNKNOWN * eps) if term.op.has("elementwise") else NONE


def _compared(term: Term, arrays: Sequence[Any], errors: Sequence[Bound]) -> Bound:
    """Nothing where two floats are further apart than their bounds, or where a float is one integer or truth within its bound."""
    if term.operands[0].tensor.dtype.kind != "float":
        return NONE
    one, reach = _wide(arrays[0]), errors[0].of(arrays[0])
    if term.op.name == "stablehlo.compare":
        reach = reach + errors[1].of(arrays[1])
        sure = np.abs(one - _wide(arrays[1])) > reach
    elif term.op.name == "stablehlo.convert" and term.tensor.dtype.kind == "bool":
        sure = np.abs(one) > reach
    elif term.op.name == "stablehlo.convert":
        sure = np.trunc(one - reach) == np.trunc(one + reach)
    else:
        return NONE
    return NOTHING if bool(np.all(sure | (reach == 0))) else NONE


def _selected(arrays: Sequence[Any], errors: Sequence[Bound], exact: bool) -> Bound:
    if exact or not errors[0].exact:
        return NOTHING if exact else NONE
    return Bound(0.0, np.where(np.asarray(arrays[0]), errors[1].of(arrays[1]), errors[2].of(arrays[2])))


def _sum(arrays: Sequence[Any], errors: Sequence[Bound], value: Array, eps: float, exact: bool, sign: float) -> Bound:
    a, b = _wide(arrays[0]), sign * _wide(arrays[1])
    whole = a + b
    turned = whole - a
    left = (a - (whole - turned)) + (b - turned)  # what the sum in f64 has lost (Knuth, TAOCP 2, 4.2.2, theorem B)
    own = np.where((left == 0) & (whole == _wide(value)), 0.0, eps * magnitude(value))
    if exact:
        return Bound(0.0, own) if np.any(own) else NOTHING
    return Bound(0.0, errors[0].of(arrays[0]) + errors[1].of(arrays[1]) + own)


def _product(arrays: Sequence[Any], errors: Sequence[Bound], value: Array, dtype: DType) -> Bound:
    eps = 0.0 if _is_exact_product(arrays, value, dtype) else roundoff(dtype)
    lost = _underflow(arrays, value, dtype) if eps else 0.0
    if all(error.plain and not error.absolute for error in errors):
        one, other = (error.relative for error in errors)
        return Bound(one + other + one * other + eps, lost)
    a, b = map(magnitude, arrays)
    ea, eb = (error.of(array) for error, array in zip(errors, arrays, strict=True))
    return Bound(eps, a * eb + b * ea + ea * eb + lost)


def _is_exact_product(arrays: Sequence[Any], value: Array, dtype: DType) -> bool:
    a, b = (np.broadcast_to(array, np.shape(value)) for array in arrays)
    some = slice(0, FEW)  # most products round: the first elements show it
    first = [np.asarray(each.flat[some]) for each in (a, b, np.asarray(value))]
    if not _all_exact(_wide(first[0]), _wide(first[1]), _wide(first[2]), dtype):
        return False
    return value.size <= FEW or _all_exact(_wide(a), _wide(b), _wide(value), dtype)


def _all_exact(a: Array, b: Array, value: Array, dtype: DType) -> bool:
    if dtype.bits < 64:
        return bool(np.all(a * b == value))
    plain = [np.isin(np.abs(np.frexp(each)[0]), (0.0, 0.5)) for each in (a, b)]  # 0 or a power of two: more is not known of f64
    normal = (np.abs(value) >= float(np.finfo(np.float64).tiny)) | (a == 0) | (b == 0)
    return bool(np.all((plain[0] | plain[1]) & normal))


def _underflow(arrays: Sequence[Any], value: Array, dtype: DType) -> Any:
    """The smallest number of the type where a result is below the normal range though no operand is 0."""
    tiny = float(ml_dtypes.finfo(dtype.numpy).tiny)  # type: ignore[no-untyped-call]
    small = np.abs(plain_floats(value)) < tiny
    if not small.any():
        return 0.0
    given = np.logical_and(*(np.asarray(array).astype(np.float64) != 0 for array in arrays))
    return np.where(small & given & np.isfinite(_wide(value)), smallest(dtype), 0.0)


def _quotient(arrays: Sequence[Any], errors: Sequence[Bound], value: Array, dtype: DType) -> Bound:
    exact = dtype.bits < 64 and bool(np.all(_wide(value) * _wide(arrays[1]) == _wide(arrays[0])))
    eps = 0.0 if exact else roundoff(dtype)
    lost = _underflow([arrays[0], np.ones(np.shape(arrays[1]))], value, dtype) if eps else 0.0
    if all(error.plain and not error.absolute for error in errors) and errors[1].relative < 1:
        one, other = (error.relative for error in errors)
        return Bound((one + other) / (1 - other) + eps, lost)
    ea, eb = (error.of(array) for error, array in zip(errors, arrays, strict=True))
    b = magnitude(arrays[1])
    sure = (eb < b) | ((eb == 0) & (ea == 0))
    carried = np.divide(ea + magnitude(value) * eb, b - eb, out=np.zeros(np.shape(value)), where=(ea + eb != 0))
    return Bound(eps, np.where(sure, carried, np.inf) + lost)


def _converted(source: DType, target: DType, array: Any, error: Bound, value: Array) -> Bound:
    """A conversion rounds as IEEE says, so that of an exact number everybody has the same; else what lies within the bound is rounded."""
    if error.exact:
        return NOTHING if source.kind != "complex" else NONE
    if source.kind != "float":
        return NONE
    wider = source.bits < target.bits and roundoff(source) >= roundoff(target)
    if wider and np.array_equal(_wide(array), _wide(value), equal_nan=True):
        return error  # every number of it is one of the target
    return Bound(0.0, _spread(lambda x: x.astype(value.dtype), array, error.of(array), _wide(value)))


def _function(name: str, array: Any, error: Bound, value: Array, dtype: DType) -> Bound:
    function = MONOTONE[name]
    share, tiny = _roundings(LIBRARY, dtype), smallest(dtype)
    a, reach = _wide(array), error.of(array)
    sure = _is_known(name, array, reach)
    if name == "stablehlo.sqrt" and dtype.bits < 64:
        sure = sure | ((reach == 0) & (_wide(value) ** 2 == a))
    if bool(np.all(sure)):
        return NOTHING
    least = np.where(sure, 0.0, tiny)
    if function is None:
        return Bound(share, 2 / np.sqrt(np.pi) * reach + least)
    return Bound(share, _spread(function, array, reach, function(a)) + least)


def _folded(term: Term, array: Any, error: Bound, eps: float) -> Bound:
    axes = term.attribute("dimensions")
    count = prod(np.shape(array)[axis] for axis in axes)
    if term.attribute("combiner") in ("maximum", "minimum"):
        return NOTHING if error.exact else Bound(0.0, np.max(error.of(array), axis=axes, initial=0.0))
    if term.attribute("combiner") != "add":
        return NONE
    errors = error.of(array)
    sizes = np.sum(magnitude(array) + errors, axis=axes)
    own = growth(count, eps) * sizes if count > 1 else 0.0
    return Bound(0.0, np.sum(errors, axis=axes) + np.where(sizes == 0, 0.0, own))


COMBINING = ("stablehlo.reduce_window", "stablehlo.scatter", "stablehlo.select_and_scatter")


def _combined(term: Term, arrays: Sequence[Any], errors: Sequence[Bound], exact: bool, eps: float) -> Bound:
    """Windows and scatters: nothing where elements are chosen only, and sums of windows as sums."""
    words = dict(term.attributes)
    if words.get("combiner") in CHOOSING:
        return NOTHING if exact else NONE
    if term.op.name != "stablehlo.reduce_window" or words.get("combiner") != "add":
        return NONE
    assert term.op.meaning is not None
    own, sizes = (np.asarray(term.op.meaning(term, [each], {}), np.float64) for each in (errors[0].of(arrays[0]), magnitude(arrays[0])))
    return Bound(0.0, own + growth(prod(words["window_dimensions"]), eps) * (own + sizes))


def _contracted(term: Term, arrays: Sequence[Any], errors: Sequence[Bound], eps: float, tiny: float) -> Bound:
    assert term.op.meaning is not None
    meaning = term.op.meaning
    if term.op.name == "stablehlo.convolution":
        count = prod(np.shape(arrays[1])[1:])
    else:
        count = prod(np.shape(arrays[0])[axis] for axis in term.attribute("lhs_contract"))
    if any(operand.tensor.dtype.kind != "float" for operand in term.operands):
        return NONE
    g = growth(count + 1, eps)
    a, b = map(magnitude, arrays)

    def op(one: Array, other: Array) -> Array:
        return np.asarray(meaning(term, [one, other], {}), np.float64)

    if all(error.plain and not error.absolute for error in errors):
        one, other = (error.relative for error in errors)
        sizes = op(a, b)
        share = one + other + one * other + g * (1 + one) * (1 + other)
        return Bound(0.0, np.where(sizes == 0, 0.0, share * sizes + count * tiny))
    ea, eb = (error.of(array) for error, array in zip(errors, arrays, strict=True))
    own = op(a + ea, b + eb)
    return Bound(0.0, op(a, eb) + op(ea, b) + op(ea, eb) + np.where(own == 0, 0.0, g * own + count * tiny))


# ---------------------------------------------------------------- infinities and NaN

FOLDS = ("stablehlo.reduce", "stablehlo.dot_general", "stablehlo.convolution")
PLAIN = ("maximum", "minimum", "clamp", "remainder", "sine", "cosine", "negate", "abs", "real", "imag", "convert", "atan2", "tan")
NAMED = frozenset((*MONOTONE, *WHOLE, *(f"stablehlo.{name}" for name in PLAIN), "chlo.tan", "chlo.erfc"))
ENDLESS = NAMED - {"stablehlo.exponential", "stablehlo.exponential_minus_one", "chlo.sinh"}  # elementwise: no overflow but as IEEE says


def _with_infinities(term: Term, arrays: Sequence[Any], errors: Sequence[Bound], value: Array, found: Bound) -> Bound:
    """No bound where a result has overflowed, or an infinity or NaN comes of what is not exact; 0 where every evaluation has it."""
    finite = np.isfinite(plain_floats(value))
    if finite.all():
        return found
    name, wide = term.op.name.rpartition(".")[2], [_wide(array) for array in arrays]
    reach = [error.of(array) for error, array in zip(errors, arrays, strict=True)]
    sure, ended = [each == 0 for each in reach], [~np.isfinite(array) for array in wide]
    if term.op.name in FOLDS or term.op.name in COMBINING:
        product = name in ("dot_general", "convolution")
        sizes = [float(np.sum(magnitude(a) + np.where(end, 0.0, own))) for a, own, end in zip(wide, reach, ended, strict=True)]
        known = all(bool(np.all(s if product else s | ~end)) for s, end in zip(sure, ended, strict=True))
        largest = float(ml_dtypes.finfo(value.dtype).max)  # type: ignore[no-untyped-call]
        small = (prod(sizes) if product else sum(sizes)) <= largest / 2
        extreme = dict(term.attributes).get("combiner", "add") != "add"
        ends: Any = np.full(np.shape(value), known and (extreme or (small and any(map(np.any, ended)))))
    elif name == "select":
        ends = found.of(value) == 0
    else:
        if name == "divide":
            ended[1] = ended[1] | (wide[1] == 0)
        ends = reduce(np.logical_and, sure) & ((term.op.name in ENDLESS) | reduce(np.logical_or, ended))
        bounded = reduce(np.logical_and, map(np.isfinite, reach))
        given = [end & own for end, own in zip(ended, sure, strict=True)]
        if name in ("add", "subtract", "maximum", "minimum", "clamp"):
            ends = ends | (reduce(np.logical_or, given) & bounded)
        elif name in ("multiply", "divide"):
            for one, other in ((0, 1), (1, 0)):
                ends = ends | (given[one] & ((np.isnan(wide[one]) & bounded) | (reach[other] < np.abs(wide[other]))))
    return Bound(0.0, np.where(finite, found.of(value), np.where(ends, 0.0, np.inf)))
