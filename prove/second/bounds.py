"""How far two honest evaluations of an op may be apart, element by element, by the table of `docs/certificates.md`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coset.ir.term import Term
from coset.prove.second.algebra import FUNCTIONS
from coset.prove.second.computed import ELEMENTWISE, erf, matrix_product, rows
from coset.prove.second.formats import Array, Format, growth, wide


def at_infinity(name: str, v: Array, bound: Array, operands: Sequence[tuple[Array, Array]]) -> Array:
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
    "log_plus_one": _function_bound(np.log1p),
    "exponential_minus_one": _function_bound(np.expm1),
    "logistic": _function_bound(lambda x: 1 / (1 + np.exp(-x))),
    "cbrt": _function_bound(np.cbrt),
    "erf": _function_bound(erf),
    "sine": lambda term, f, v, operands: operands[0][1] + 4 * f.eps,
    "cosine": lambda term, f, v, operands: operands[0][1] + 4 * f.eps,
    "power": _power_bound,
    "convert": _convert_bound,
    "reduce": _reduce_bound,
    "dot_general": _dot_bound,
}
