"""How far two honest evaluations of an op may be apart, element by element, by the table of `docs/certificates.md`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coset.ir.term import Term
from coset.prove.second.computed import away_from_zero, matrix_product, rows, sign
from coset.prove.second.conversions import nearest
from coset.prove.second.formats import Array, Format, finite, form, growth, roundings, same_elements, wide

Operands = Sequence[tuple[Array, Array]]
BoundRule = Callable[[Term, Format, Array, Operands], Any]  # None where the table says that there is no bound


def at_infinity(name: str, term: Term, f: Format, v: Array, bound: Array, operands: Operands) -> Array:
    """The bounds with 0 for the infinities and NaNs that every honest evaluation has, and none for the others: they have overflowed, or are
    those of a number that was not exact."""
    odd = ~np.isfinite(wide(v))
    if not odd.any() or name in AS_SAID or (name == "reduce" and term.attribute("combiner") != "add"):
        return bound
    if name == "reduce":
        sure = _sure_sum(term, f, operands)
    elif name == "dot_general":
        sure = _sure_products(term, f, operands)
    else:
        sure = _sure_elements(name, v, operands)
    return np.where(odd, np.where(sure, 0.0, np.inf), bound)


def _sure_elements(name: str, v: Array, operands: Operands) -> Array:
    odd = [np.broadcast_to(~finite(x), v.shape) for x, _ in operands]
    if name == "divide":
        odd[1] = odd[1] | (wide(operands[1][0]) == 0)
    some = np.logical_or.reduce(odd) | (name in NEVER_TOO_LARGE)
    sure = some & np.logical_and.reduce([np.broadcast_to(e == 0, v.shape) for _, e in operands])
    for place, (x, e) in enumerate(operands):
        others = [each for i, each in enumerate(operands) if i != place]
        if name in ABSORBING:
            sure |= odd[place] & (e == 0) & np.logical_and.reduce([np.broadcast_to(np.isfinite(other), v.shape) for _, other in others])
        elif name in ("multiply", "divide"):
            ((y, other),) = others
            sure |= odd[place] & (e == 0) & np.isfinite(other) & (np.isnan(wide(x)) | (np.abs(wide(y)) > other))
    return np.asarray(sure)


def _sure_sum(term: Term, f: Format, operands: Operands) -> Array:
    ((a, ea),) = operands
    axes = tuple(term.attribute("dimensions"))
    known = np.isfinite(wide(a))
    rest = np.where(known, np.abs(wide(a)) + ea, 0).sum(axis=axes)
    return np.asarray((known | (ea == 0)).all(axis=axes) & (rest <= f.largest / 2))


def _sure_products(term: Term, f: Format, operands: Operands) -> Array:
    if any(e.any() for _, e in operands):
        return np.zeros(term.tensor.static or (), bool)
    parts = [np.where(np.isfinite(wide(x)), np.abs(wide(x)), 0) for x, _ in operands]
    return np.asarray(matrix_product(term, rows(term, parts, 0), rows(term, parts, 1)) <= f.largest / 2)


AS_SAID = frozenset(
    {
        "negate",
        "abs",
        "select",
        "real",
        "imag",
        "convert",
        "floor",
        "ceil",
        "round_nearest_even",
        "round_nearest_afz",
        "sign",
    }
)  # the row of the table says it of infinities, too
ABSORBING = frozenset({"add", "subtract", "maximum", "minimum", "clamp"})  # an infinity or NaN stays what it is beside any number
NEVER_TOO_LARGE = frozenset(
    {
        "maximum",
        "minimum",
        "clamp",
        "remainder",
        "sqrt",
        "rsqrt",
        "cbrt",
        "log",
        "log_plus_one",
        "logistic",
        "tanh",
        "erf",
        "erfc",
        "sine",
        "cosine",
        "tan",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "atan2",
    }
)  # of numbers that are finite and no poles these are numbers of the type
KNOWN: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("sqrt", "cbrt", "log_plus_one", "sinh", "asin", "atan", "asinh", "atanh", "tan"), (0.0,)),
    **dict.fromkeys(("exponential", "exponential_minus_one", "tanh", "erf", "erfc"), (0.0, math.inf, -math.inf)),
    "log": (1.0,),
    "logistic": (math.inf, -math.inf),
}  # arguments whose value every library gives exactly


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum in f64 and what it rounds off (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _sum_bound(sign: float) -> BoundRule:
    def bound(_: Term, f: Format, v: Array, operands: Operands) -> Any:
        (a, ea), (b, eb) = operands
        total, rest = _two_sum(wide(a), sign * wide(b))
        exact = (rest == 0) & (total == wide(v))
        return ea + eb + np.where(exact, 0, f.eps * np.abs(wide(v)))

    return bound


def _rounding(f: Format, v: Array, *factors: Array) -> Any:
    """What rounding a product or quotient changes. Below the normal range it is the smallest number, too, but where a factor is 0."""
    none = np.logical_and.reduce([wide(factor) != 0 for factor in factors])
    return f.eps * np.abs(wide(v)) + np.where((np.abs(wide(v)) < f.normal) & none, f.tiny, 0)


def _product_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    (a, ea), (b, eb) = operands
    x, y = wide(a), wide(b)
    if term.tensor.dtype.bits < 64:
        exact = x * y == wide(v)  # of two floats of 32 bits at most, a float of 64 bits is the product
    else:
        exact = (x == 0) | (y == 0) | ((_power_of_two(x) | _power_of_two(y)) & (np.abs(v) >= f.normal))
    return np.abs(x) * eb + np.abs(y) * ea + ea * eb + (0.0 if exact.all() else _rounding(f, v, a, b))


def _power_of_two(x: Array) -> Array:
    return np.asarray(np.abs(np.frexp(x)[0]) == 0.5)


def _quotient_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    (a, ea), (b, eb) = operands
    x, y = wide(a), wide(b)
    room = np.abs(y) - eb
    moved = np.where((ea == 0) & (eb == 0), 0, (ea + np.abs(wide(v)) * eb) / room)
    exact = term.tensor.dtype.bits < 64 and (wide(v) * y == x).all()
    return np.where((eb > 0) & (room <= 0), np.inf, moved + (0.0 if exact else _rounding(f, v, a)))


def _function_bound(name: str, function: Callable[[Array], Array]) -> BoundRule:
    def bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
        ((a, ea),) = operands
        x = wide(a)
        middle = function(x)
        moved = np.maximum(np.abs(function(x - ea) - middle), np.abs(function(x + ea) - middle))
        sure = (ea == 0) & np.isin(x, KNOWN.get(name, ()))
        if name == "sqrt" and term.tensor.dtype.bits < 64:
            sure |= (ea == 0) & (wide(v) ** 2 == x)
        if sure.all():
            return np.zeros(v.shape)
        share = roundings(term.tensor.dtype, 4) * np.where(np.isfinite(wide(v)), np.abs(wide(v)), 0)
        return np.where(ea == 0, 0, moved) + share + np.where(sure, 0, f.tiny)

    return bound


def _erf_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    ((a, ea),) = operands
    sure = (ea == 0) & np.isin(wide(a), KNOWN["erf"])
    if sure.all():
        return np.zeros(v.shape)
    return 2 / math.sqrt(math.pi) * ea + roundings(term.tensor.dtype, 4) * np.abs(wide(v)) + np.where(sure, 0, f.tiny)


def _wave_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    ((a, ea),) = operands
    own = f.eps * np.abs(wide(v)) + 4 * 2.0**-23 if term.tensor.dtype.bits < 32 else 4 * f.eps
    return np.where((ea == 0) & (wide(a) == 0), 0, ea + own)


def _rising(function: Callable[[Array], Array]) -> BoundRule:
    """Of a function that never falls, and that everybody computes alike: how far its ends are."""

    def bound(_: Term, __: Format, v: Array, operands: Operands) -> Any:
        ((a, ea),) = operands
        middle, low, high = wide(v), wide(function(wide(a) - ea)), wide(function(wide(a) + ea))
        same = (ea == 0) | ((low == middle) & (high == middle))
        return np.where(same, 0, np.maximum(np.abs(low - middle), np.abs(high - middle)))

    return bound


def _convert_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    ((a, ea),) = operands
    source, target = term.operands[0].tensor.dtype, term.tensor.dtype
    if not ea.any():
        return np.zeros(v.shape)
    if source.kind != "float":
        return None
    wider = source.bits < target.bits and form(source).eps >= form(target).eps
    if wider and same_elements(a, v).all():
        return ea
    return _rising(lambda x: nearest(x, target))(term, f, v, operands)


def whole(term: Term, operands: Operands) -> bool:
    """Whether what is no float is one integer or truth wherever its operands, which are no exact ones, may be."""
    name = term.op.name
    if term.operands[0].tensor.dtype.kind != "float" or name not in ("stablehlo.compare", "stablehlo.convert"):
        return False
    (a, ea), *others = operands
    if name == "stablehlo.compare":
        ((b, eb),) = others
        return bool(((np.abs(wide(a) - wide(b)) > ea + eb) | (ea + eb == 0)).all())
    if term.tensor.dtype.kind == "bool":
        return bool(((np.abs(wide(a)) > ea) | (ea == 0)).all())
    return bool(((np.trunc(wide(a) - ea) == np.trunc(wide(a) + ea)) | (ea == 0)).all())


def _select_bound(_: Term, __: Format, v: Array, operands: Operands) -> Any:
    chosen, yes, no = operands
    return np.where(chosen[0], yes[1], no[1])


def _reduce_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    ((a, ea),) = operands
    axes = tuple(term.attribute("dimensions"))
    word = term.attribute("combiner")
    if word in ("maximum", "minimum"):
        return ea.max(axis=axes, initial=0.0)
    if word != "add":
        return None
    count = math.prod(a.shape[axis] for axis in axes)
    if count <= 1:
        return ea.sum(axis=axes)
    weight = (np.abs(wide(a)) + ea).sum(axis=axes)
    return ea.sum(axis=axes) + np.where(weight == 0, 0, growth(f.eps, count) * weight)


def _dot_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    (a, ea), (b, eb) = operands
    count = math.prod(a.shape[axis] for axis in term.attribute("lhs_contract"))

    def product(x: Array, y: Array) -> Array:
        return matrix_product(term, rows(term, (x, y), 0), rows(term, (x, y), 1))

    size, other = np.abs(wide(a)), np.abs(wide(b))
    weight = product(size + ea, other + eb)
    own = np.where(weight == 0, 0, growth(f.eps, count + 1) * weight + count * f.tiny)
    return product(size, eb) + product(ea, other) + product(ea, eb) + own


def _largest(_: Term, __: Format, ___: Array, operands: Operands) -> Any:
    result = operands[0][1]
    for _a, e in operands[1:]:
        result = np.maximum(result, e)
    return result


def _exact_bound(name: str) -> BoundRule:
    """Of exact operands alone: eight roundings, and what underflows but of an element whose value every library gives exactly."""

    def bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
        if any(e.any() for _, e in operands):
            return None
        sure = np.isin(wide(operands[0][0]), KNOWN.get(name, ())) if len(operands) == 1 else np.zeros(v.shape, bool)
        if sure.all():
            return np.zeros(v.shape)
        return roundings(term.tensor.dtype, 8) * np.abs(wide(v)) + np.where(sure, 0, f.tiny)

    return bound


def _of_exact(_: Term, __: Format, v: Array, operands: Operands) -> Any:
    return None if any(e.any() for _, e in operands) else np.zeros(v.shape)


def _of_complex(_: Term, __: Format, v: Array, operands: Operands) -> Any:
    return operands[0][1]


def changed_numbers(term: Term, v: Array, operands: Operands) -> Any:
    """The bound of complex numbers that are made of exact numbers: none where each is what it was."""
    if any(e.any() for _, e in operands):
        return None
    if term.op.name != "stablehlo.convert" or np.array_equal(operands[0][0].astype(np.complex128), v.astype(np.complex128), equal_nan=True):
        return np.zeros(v.shape)
    part = np.finfo(np.float32 if term.tensor.dtype.name == "c64" else np.float64)
    return 8 * float(part.eps) * np.abs(v.astype(np.complex128))


BOUNDS: dict[str, BoundRule] = {
    "negate": _largest,
    "abs": _largest,
    "maximum": _largest,
    "minimum": _largest,
    "clamp": _largest,
    "select": _select_bound,
    "add": _sum_bound(1.0),
    "subtract": _sum_bound(-1.0),
    "multiply": _product_bound,
    "divide": _quotient_bound,
    "sqrt": _function_bound("sqrt", np.sqrt),
    "rsqrt": _function_bound("rsqrt", lambda x: 1 / np.sqrt(x)),
    "exponential": _function_bound("exponential", np.exp),
    "log": _function_bound("log", np.log),
    "tanh": _function_bound("tanh", np.tanh),
    "log_plus_one": _function_bound("log_plus_one", np.log1p),
    "exponential_minus_one": _function_bound("exponential_minus_one", np.expm1),
    "logistic": _function_bound("logistic", lambda x: 1 / (1 + np.exp(-x))),
    "cbrt": _function_bound("cbrt", np.cbrt),
    "sinh": _function_bound("sinh", np.sinh),
    "asin": _function_bound("asin", np.arcsin),
    "acos": _function_bound("acos", np.arccos),
    "atan": _function_bound("atan", np.arctan),
    "asinh": _function_bound("asinh", np.arcsinh),
    "acosh": _function_bound("acosh", np.arccosh),
    "atanh": _function_bound("atanh", np.arctanh),
    "erf": _erf_bound,
    "sine": _wave_bound,
    "cosine": _wave_bound,
    "floor": _rising(np.floor),
    "ceil": _rising(np.ceil),
    "round_nearest_even": _rising(np.rint),
    "round_nearest_afz": _rising(away_from_zero),
    "sign": _rising(sign),
    "remainder": _of_exact,
    "real": _of_complex,
    "imag": _of_complex,
    **{name: _exact_bound(name) for name in ("power", "tan", "atan2", "erfc", "cosh")},
    "convert": _convert_bound,
    "reduce": _reduce_bound,
    "dot_general": _dot_bound,
}
