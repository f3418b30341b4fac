"""Scalar constants of rules: exact where they can be, else to 60 digits, and rounded once to the dtype at hand."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from functools import lru_cache
from typing import Any

import numpy as np

from coset.ir.constants import Constant, constant_of
from coset.ir.dims import Poly
from coset.ir.types import DType


class Undefined(Exception):
    """An expression without a value: the rule does not fire."""


NOTES: list[set[str]] = []  # who asks where a symbol is treated otherwise than some number that it may stand for, and what was said to each


def note(what: str) -> None:
    """Say that `what` tells a symbol from a number: other sizes may have another answer. A proof asks for this, a rewrite does not."""
    if NOTES:
        NOTES[-1].add(what)


_TRAPS = [InvalidOperation, DivisionByZero, Overflow]
_CONTEXT = Context(prec=60, Emin=-99999, Emax=99999, traps=_TRAPS)
# a tie between two floats has up to 770 digits, a product of two floats twice as many: what is rounded before may fall to the wrong side
_EXACT = Context(prec=2000, Emin=-99999, Emax=99999, traps=_TRAPS)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def number_in(value: Any) -> Decimal:
    """A number of the algebra as a Decimal, exactly.

    Raises:
        Undefined: it is no number, or a symbolic dim.
    """
    if isinstance(value, Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        if isinstance(value, Poly):
            note("a number made of sizes")
        raise Undefined
    return Decimal(value)


def element_of(value: Constant) -> Any:
    """The number that a rank-0 constant of numbers holds, as the algebra has it."""
    return value.array().item() if value.type.dtype.kind in ("int", "uint", "bool") else float(value.array().astype("float64"))


def scalar_operation(name: str, operands: Sequence[Decimal]) -> Decimal:
    """+ - * / negate sqrt exp log pi of Decimals: the first four exact where 2,000 digits hold that (a quotient else to 60), the others to
    60 digits. So the first four and the root of numbers of an IEEE type, rounded to it, are what the type's operation gives.

    Raises:
        Undefined: outside the function's domain.
    """
    try:
        if name == "negate" or (name == "-" and len(operands) == 1):
            return operands[0].copy_negate()  # keeps the sign of zero
        if name == "pi":
            return _PI
        if name in ("sqrt", "exp", "log"):
            return {"sqrt": _CONTEXT.sqrt, "exp": _CONTEXT.exp, "log": _CONTEXT.ln}[name](operands[0])
        if name == "/":
            return _quotient(operands[0], operands[1])
        operation = {"+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply}[name]
        return operation(operands[0], operands[1])
    except (InvalidOperation, DivisionByZero, Overflow):
        raise Undefined from None


def _quotient(a: Decimal, b: Decimal) -> Decimal:
    """a / b, exact where it ends; else nothing is as near to a tie of floats as 60 digits are to it."""
    _EXACT.clear_flags()
    quotient = _EXACT.divide(a, b)
    return _CONTEXT.divide(a, b) if _EXACT.flags[Inexact] else quotient


def scalar_constant(value: Decimal, dtype: DType) -> Constant:
    """The rank-0 constant nearest to `value` in `dtype`, rounded once.

    Raises:
        Undefined: an integer type that does not hold `value`, an element type without numbers, or none at all.
    """
    if not isinstance(dtype, DType):
        raise Undefined
    return _constant(value.as_tuple(), dtype)


@lru_cache(maxsize=4096)
def _constant(parts: Any, dtype: DType) -> Constant:
    value = Decimal(parts)
    if dtype.kind in ("int", "uint"):
        low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
        high = (1 << (dtype.bits - (dtype.kind == "int"))) - 1
        if not value.is_finite() or value != int(value) or not low <= int(value) <= high:
            raise Undefined
        return constant_of(np.array(int(value), dtype.numpy), dtype)
    if dtype.kind == "bool":
        if value not in (0, 1):
            raise Undefined
        return constant_of(np.array(bool(value)), dtype)
    if dtype.kind not in ("float", "complex"):
        raise Undefined
    nearest = float(value)
    with np.errstate(over="ignore"):
        exact = nearest if dtype.bits >= 64 else _to_odd(value, nearest)
        return constant_of(np.array(exact).astype(dtype.numpy), dtype)


def _to_odd(value: Decimal, nearest: float) -> float:
    """`value` in f64 rounded to odd, so that a second rounding to a narrower type gives the nearest (Boldo, Melquiond 2008)."""
    if not math.isfinite(nearest) or not nearest or Decimal(nearest) == value:
        return nearest
    toward_zero = nearest if abs(Decimal(nearest)) < abs(value) else math.nextafter(nearest, 0.0)
    bits = struct.unpack("<q", struct.pack("<d", toward_zero))[0] | 1
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])
