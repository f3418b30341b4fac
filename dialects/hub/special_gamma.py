"""Gamma, zeta and Bessel functions and the inverse error function on f64 arrays, each within some units in the last place.

CHLO names these functions and no algorithm, so that they are meanings, not terms: computed in f64 and rounded once to the operand's
type. Sources: Abramowitz, Stegun, *Handbook of Mathematical Functions* (1964): 6.3.18 (digamma's asymptotic series), 6.3.7 and 6.3.5
(reflection, recurrence), 9.6.10 and 9.7.1 (Bessel series), 23.1 (Bernoulli numbers), 25.4 (Euler-Maclaurin); M. Giles, "Approximating
the erfinv function" (GPU Computing Gems, 2012), the start of the Newton steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from coset.dialects.hub.special import complementary_error_function, error_function

Array = np.ndarray[Any, Any]
# B(2k) / (2k) of 6.3.18 and B(2k) / (2k)! of 25.4, k = 1 ..
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_FAR = 10.0  # from here on the asymptotic series are exact in f64
_TERMS = 12  # of zeta before Euler-Maclaurin takes over
_BESSEL_FAR = 30.0  # from here on I1's asymptotic series reaches f64's roundoff


def in_f64(function: Callable[..., Array]) -> Callable[..., Array]:
    """`function` of f64 arrays, computed for and rounded to the dtype of its first operand."""

    def rounded(*operands: Array) -> Array:
        dtype = np.asarray(operands[0]).dtype
        with np.errstate(all="ignore"):
            return np.asarray(function(*(np.asarray(operand, np.float64) for operand in operands))).astype(dtype)

    return rounded


def _log_gamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


@in_f64
def log_gamma(x: Array) -> Array:
    """log |Gamma(x)|; infinite at 0, -1, -2 .. and at both infinities."""
    return np.asarray(np.frompyfunc(_log_gamma, 1, 1)(x), np.float64)


@in_f64
def digamma(x: Array) -> Array:
    """The derivative of log Gamma; NaN at 0, -1, -2 .., where the sides differ."""
    pole = (x <= 0) & (x == np.floor(x)) | np.isneginf(x)
    reflected = x <= 0
    positive = np.where(reflected, 1.0 - x, x)
    turn = np.where(reflected, np.pi / np.tan(np.pi * (x - np.round(x))), 0.0)
    result = np.zeros_like(positive)
    for _ in range(int(_FAR)):
        near = positive < _FAR
        result -= np.where(near, 1.0 / positive, 0.0)
        positive = np.where(near, positive + 1.0, positive)
    inverse = 1.0 / (positive * positive)
    series = np.zeros_like(positive)
    for k in range(len(_BERNOULLI), 0, -1):
        series = (series + _BERNOULLI[k - 1] / (2 * k)) * inverse
    result += np.log(positive) - 0.5 / positive - series
    return np.where(pole, np.nan, result - turn)


@in_f64
def zeta(x: Array, q: Array) -> Array:
    """Hurwitz' sum of (q + n)^-x over n >= 0: NaN for x < 1, infinite for x = 1 and where a summand is infinite."""
    x, q = np.broadcast_arrays(x, q)
    whole = q == np.floor(q)
    below = (q < 0) & ~whole
    rest = np.where(below, q - np.floor(q), 0.5)
    # the sum over all integers has period 1 in q, and what lies below q is the same sum at 1 - q, but for the signs of odd powers
    turned = _hurwitz(x, 1.0 - rest) - _hurwitz(x, np.where(below, 1.0 - q, 1.0))
    found = np.where(below, _hurwitz(x, rest) + np.where(np.mod(x, 2.0) == 1.0, -turned, turned), _hurwitz(x, np.where(below, 1.0, q)))
    result = np.where(np.isposinf(x), np.where(q > 1, 0.0, np.where(q == 1, 1.0, np.inf)), found)
    result = np.where(x == 1, np.inf, np.where(x < 1, np.nan, result))
    result = np.where((q <= 0) & whole & (x > 1), np.inf, result)
    result = np.where((q <= 0) & ~whole & (x != np.floor(x)), np.nan, result)
    return np.where(np.isnan(x) | np.isnan(q), np.nan, result)


def _hurwitz(x: Array, q: Array) -> Array:
    """The sum for positive q: its first terms, and the others by Euler and Maclaurin."""
    total = np.zeros(x.shape)
    for n in range(_TERMS):
        total = total + np.power(q + n, -x)
    shifted = q + _TERMS
    tail = np.power(shifted, 1.0 - x) / (x - 1.0) + 0.5 * np.power(shifted, -x)
    factor = x * np.power(shifted, -x - 1.0)
    for k, number in enumerate(_BERNOULLI, start=1):
        tail = tail + number / math.factorial(2 * k) * factor
        factor = factor * (x + 2 * k - 1) * (x + 2 * k) / (shifted * shifted)
    return np.asarray(total + np.where(np.isposinf(q), 0.0, tail))


@in_f64
def polygamma(n: Array, x: Array) -> Array:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x); NaN where n is no natural number."""
    n, x = np.broadcast_arrays(n, x)
    factorial = np.exp(log_gamma(n + 1.0))
    sign = np.where(np.mod(n, 2.0) == 0.0, -1.0, 1.0)
    derived = np.where(n == 0, digamma(x), sign * factorial * zeta(n + 1.0, x))
    return np.where((n < 0) | (n != np.floor(n)), np.nan, derived)


@in_f64
def inverse_error_function(y: Array) -> Array:
    """The x with erf(x) = y: infinite at -1 and 1, NaN outside. A start good to 1e-3, then steps of Halley's method."""
    magnitude = np.abs(y)
    inner = np.minimum(magnitude, 1.0 - 2.0**-53)
    logarithm = np.log1p(-inner * inner)
    a = 0.147  # S. Winitzki, "A handy approximation for the error function and its inverse" (2008)
    half = 2.0 / (np.pi * a) + 0.5 * logarithm
    x = np.sqrt(np.sqrt(half * half - logarithm / a) - half)
    for _ in range(4):
        # the residual by erfc where erf is near 1: 1 - y is exact there
        residual = np.where(inner < 0.5, error_function(x) - inner, (1.0 - inner) - complementary_error_function(x))
        step = residual * (np.sqrt(np.pi) / 2.0) * np.exp(x * x)
        x = x - step / (1.0 + x * step)
    x = np.where(magnitude == 0, 0.0, x)
    result = np.where(magnitude > 1, np.nan, np.where(magnitude == 1, np.inf, x))
    return np.where(np.isnan(y), np.nan, np.copysign(result, y))


@in_f64
def bessel_i1e(x: Array) -> Array:
    """exp(-|x|) I1(x), the modified Bessel function of order 1, scaled."""
    magnitude = np.abs(x)
    near = np.minimum(magnitude, _BESSEL_FAR)
    quarter = 0.25 * near * near
    summand, total = 0.5 * near * np.exp(-near), np.zeros_like(near)
    for k in range(1, 100):  # all summands have one sign: nothing cancels
        total += summand
        summand = summand * quarter / (k * (k + 1))
    far = np.maximum(magnitude, _BESSEL_FAR)
    term, series = np.ones_like(far), np.ones_like(far)
    for k in range(1, 30):
        term = term * ((2 * k - 1) ** 2 - 4.0) / (8.0 * k * far)
        series = series + term
    scaled = np.where(np.isinf(far), 0.0, series / np.sqrt(2.0 * np.pi * far))
    return np.copysign(np.where(magnitude < _BESSEL_FAR, total, scaled), x)
