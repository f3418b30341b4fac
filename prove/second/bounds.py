"""How far two honest evaluations of an op may be apart, element by element, by the table of `docs/certificates.md`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coset.ir.term import Term
from coset.prove.second.computed import matrix_product, rows
from coset.prove.second.formats import Array, Format, form, growth, roundings, same_elements, wide


def at_infinity(name: str, word: str, v: Array, bound: Array, operands: Sequence[tuple[Array, Array]]) -> Array:
    """Infinities and NaNs that no finite result overflowed to have the bound 0; others have none. `word` is the op's combiner."""
    odd = ~np.isfinite(wide(v))
    if not odd.any():
        return bound
    cause = np.zeros(v.shape, bool)
    if name in FOLDS:
        cause |= word not in ("", "add") or any(not np.isfinite(wide(array)).all() for array, _ in operands)
    elif name == "divide":
        cause |= wide(operands[1][0]) == 0
    elif name not in OVERFLOWING:
        cause |= True
    if name not in FOLDS:
        for array, _ in operands:
            cause |= np.broadcast_to(~np.isfinite(wide(array)), v.shape)
    return np.where(odd, np.where(cause, 0.0, np.inf), bound)


FOLDS = frozenset({"reduce", "dot_general", "reduce_window"})
OVERFLOWING = frozenset({"add", "subtract", "multiply", "exponential", "exponential_minus_one", "power"})
KNOWN: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("sqrt", "cbrt", "log_plus_one", "sine", "cosine"), (0.0,)),
    **dict.fromkeys(("exponential", "exponential_minus_one", "tanh", "erf"), (0.0, math.inf, -math.inf)),
    "log": (1.0,),
    "logistic": (math.inf, -math.inf),
}  # arguments whose value every library gives exactly


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
        return np.full(v.shape, np.inf)
    wider = source.bits < target.bits and form(source).eps >= form(target).eps
    if wider and same_elements(a, v).all():
        return ea
    return _rising(lambda x: x.astype(target.numpy))(term, f, v, operands)


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
    (c, ec), (_yes, ea), (_no, eb) = operands
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
        return matrix_product(term, rows(term, (x, y), 0), rows(term, (x, y), 1))

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


def _power_bound(term: Term, f: Format, v: Array, operands: Operands) -> Any:
    if operands[0][1].any() or operands[1][1].any():
        return np.full(v.shape, np.inf)
    return roundings(term.tensor.dtype, 8) * np.abs(wide(v)) + f.tiny


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
    "sqrt": _function_bound("sqrt", np.sqrt),
    "rsqrt": _function_bound("rsqrt", lambda x: 1 / np.sqrt(x)),
    "exponential": _function_bound("exponential", np.exp),
    "log": _function_bound("log", np.log),
    "tanh": _function_bound("tanh", np.tanh),
    "log_plus_one": _function_bound("log_plus_one", np.log1p),
    "exponential_minus_one": _function_bound("exponential_minus_one", np.expm1),
    "logistic": _function_bound("logistic", lambda x: 1 / (1 + np.exp(-x))),
    "cbrt": _function_bound("cbrt", np.cbrt),
    "erf": _erf_bound,
    "sine": _wave_bound,
    "cosine": _wave_bound,
    "floor": _rising(np.floor),
    "ceil": _rising(np.ceil),
    "power": _power_bound,
    "convert": _convert_bound,
    "reduce": _reduce_bound,
    "dot_general": _dot_bound,
}
