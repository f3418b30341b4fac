"""Exact numbers of rules: rationals, and floats where a value is none (infinities, NaN, -0). Rounded once, to the element type at hand."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Union

import ml_dtypes
import numpy as np

from coset.ir.types import DTYPES, DType
from coset.prove.second.answer import CannotSay, Unknown

Exact = Union[int, Fraction, float]
DIGITS = 60  # what roots, powers and logarithms of constants are computed to
PI = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863"


def exact(value: Exact) -> Exact:
    """A finite number as a rational, but for -0; all others as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | np.floating):
        raise Unknown(f"{value} is no number")
    if isinstance(value, int | Fraction):
        return value
    number = float(value)
    if not math.isfinite(number) or (number == 0 and math.copysign(1, number) < 0):
        return number
    return Fraction(number)


def negative(value: Exact) -> bool:
    """True of numbers below 0, and of -0."""
    return math.copysign(1, value) < 0 if isinstance(value, float) else value < 0


def added(a: Exact, b: Exact) -> Exact:
    """a + b."""
    if isinstance(a, float) or isinstance(b, float):
        return exact(_specials(a) + _specials(b)) if _odd(a) or _odd(b) else exact(_zero_sum(a, b))
    return a + b


def _odd(value: Exact) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _specials(value: Exact) -> float:
    """A float that behaves as the number does beside an infinity or NaN."""
    return value if isinstance(value, float) else float((value > 0) - (value < 0))


def _zero_sum(a: Exact, b: Exact) -> Exact:
    """The sum where one of the two is -0."""
    if isinstance(a, float) and isinstance(b, float):
        return -0.0
    return b if isinstance(a, float) else a


def negated(a: Exact) -> Exact:
    """-a; the negative of 0 is -0."""
    if isinstance(a, float):
        return exact(-a)
    return -0.0 if a == 0 and isinstance(a, Fraction) else -a


def multiplied(a: Exact, b: Exact) -> Exact:
    """a * b, with the sign that IEEE gives a zero."""
    if _odd(a) or _odd(b):
        return exact(_specials(a) * _specials(b))
    if a == 0 or b == 0:
        sign = negative(a) != negative(b)
        return (
            -0.0
            if sign and not (isinstance(a, int) and isinstance(b, int))
            else (0 if isinstance(a, int) and isinstance(b, int) else Fraction(0))
        )
    return a * b


def divided(a: Exact, b: Exact) -> Exact:
    """a / b, with IEEE's infinities."""
    if _odd(a) or _odd(b) or b == 0:
        with np.errstate(all="ignore"):
            return exact(float(np.float64(_specials(a)) / np.float64(_specials(b))))
    if a == 0:
        return -0.0 if negative(a) != negative(b) else Fraction(0)
    return Fraction(a) / Fraction(b)


def _decimal(value: Exact) -> decimal.Decimal:
    fraction = Fraction(value)
    return decimal.Decimal(fraction.numerator) / decimal.Decimal(fraction.denominator)


def function(name: str) -> Callable[[Exact], Exact] | None:
    """The function of a number that is called so, or None."""
    return {"sqrt": _sqrt, "exp": _exp, "log": _log}.get(name)


def _sqrt(value: Exact) -> Exact:
    if isinstance(value, float):
        return value if value != value or value >= 0 or value == 0 else math.nan
    return math.nan if value < 0 else _computed(lambda number: number.sqrt(), value)


def _exp(value: Exact) -> Exact:
    if _odd(value):
        return exact(math.exp(value) if value != math.inf else math.inf)
    if abs(Fraction(value)) > 100_000:
        raise Unknown("the exponential of a number that large")
    return _computed(lambda number: number.exp(), value)


def _log(value: Exact) -> Exact:
    if _odd(value):
        return value if value == math.inf else math.nan
    if value == 0:
        return -math.inf
    return math.nan if value < 0 else _computed(lambda number: number.ln(), value)


def _computed(compute: Callable[[decimal.Decimal], decimal.Decimal], value: Exact) -> Fraction:
    with decimal.localcontext() as context:
        context.prec = DIGITS + 5
        context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
        result = compute(_decimal(value))
    with decimal.localcontext() as context:
        context.prec = DIGITS
        context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
        return Fraction(+result)


def pi() -> Fraction:
    """Pi to 60 digits."""
    with decimal.localcontext() as context:
        context.prec = DIGITS
        return Fraction(+decimal.Decimal(PI))


def rounded(value: Exact, dtype: DType) -> Any:
    """The element of `dtype` nearest to a number, ties to even, as a NumPy scalar.

    Raises:
        Unknown: an integer type does not hold it.
        CannotSay: the type is none that numbers are written in.
    """
    if dtype.kind in ("int", "uint"):
        return _whole(value, dtype)
    if dtype.kind == "complex":
        return np.asarray(complex(float(rounded(value, _part(dtype)))), dtype.numpy)[()]
    if dtype.kind != "float":
        raise CannotSay(f"a number as an element of {dtype}")
    if isinstance(value, float):
        return np.asarray(value, np.float64).astype(dtype.numpy)[()]
    return np.asarray(_nearest(Fraction(value), dtype), np.float64).astype(dtype.numpy)[()]


def _part(dtype: DType) -> DType:
    return DTYPES["f32" if dtype.name == "c64" else "f64"]


def _whole(value: Exact, dtype: DType) -> Any:
    if isinstance(value, float) or Fraction(value).denominator != 1:
        raise Unknown(f"{value} is no element of {dtype}")
    low = 0 if dtype.kind == "uint" else -(1 << dtype.bits - 1)
    number = int(value)
    if not low <= number < low + (1 << dtype.bits):
        raise Unknown(f"{value} is no element of {dtype}")
    return np.asarray(number).astype(dtype.numpy)[()] if dtype.bits < 64 else np.asarray(number, dtype.numpy)[()]


def _nearest(value: Fraction, dtype: DType) -> float:
    """The float of `dtype` nearest to `value`, as one of 64 bits, which hold it; beyond the largest number any larger one."""
    if dtype.bits == 64:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if value == 0:
        return 0.0
    form: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    least = int(form.minexp) - int(form.nmant)
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < _power(exponent)
    exponent += size >= _power(exponent + 1)
    step = _power(max(exponent - int(form.nmant), least))
    steps = size / step
    whole = round(steps)  # to even on ties
    if exponent > 1000:
        return math.inf if value > 0 else -math.inf
    return float(whole * step) if value > 0 else -float(whole * step)


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def stored(value: Any, dtype: DType) -> Exact | bool:
    """The number that an element of `dtype` is.

    Raises:
        Unknown: it is no number.
    """
    if dtype.kind == "bool":
        return bool(value)
    if dtype.kind in ("int", "uint"):
        return int(value)
    if dtype.kind == "float":
        return exact(float(value))
    raise Unknown(f"an element of {dtype} as a number")
