"""The error function on f64 arrays, by rational approximation, to within a few units in the last place.

Source: W. J. Cody, "Rational Chebyshev approximation for the error function", Mathematics of Computation 23 (1969);
coefficients as in his CALERF (SPECFUN, Netlib).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# (numerator, denominator), highest power first; the denominator's leading 1 is written out
_SMALL = (
    (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)  # erf(x) / x in x^2, for |x| <= 0.46875
_MIDDLE = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1, 2.98635138197400131e2,
     8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)  # erfc(x) exp(x^2) in x, for 0.46875 <= x <= 4  # fmt: skip
_LARGE = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1, 1.60837851487422766e-2,
     6.58749161529837803e-4),
    (1.0, 2.56852019228982242e0, 1.87295284992346047e0, 5.27905102951428412e-1, 6.05183413124413191e-2, 2.33520497626869185e-3),
)  # (1 / sqrt(pi) - x erfc(x) exp(x^2)) x^2 in 1 / x^2, for x >= 4  # fmt: skip
_NEAR, _FAR = 0.46875, 4.0
_ZERO = 28.0  # erfc(28) is below the smallest subnormal f64
_INVERSE_ROOT_PI = 5.6418958354775628695e-1


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    above, below = (np.polyval(row, x) for row in coefficients)
    return np.asarray(above / below)


def _tail(y: Array) -> Array:
    """erfc(y) for y >= 0.46875: exp(-y^2) is split so that the rounding of y^2 does no harm."""
    y = np.minimum(y, _ZERO)
    inverse = 1.0 / (y * y)
    far = (_INVERSE_ROOT_PI - inverse * _ratio(_LARGE, inverse)) / y
    scaled = np.where(y <= _FAR, _ratio(_MIDDLE, np.minimum(y, _FAR)), far)
    coarse = np.trunc(y * 16.0) / 16.0
    return np.asarray(np.exp(-coarse * coarse) * np.exp(-(y - coarse) * (y + coarse)) * scaled)


def error_function(x: Array) -> Array:
    """erf(x), in the dtype of x (f32 or f64), computed in f64."""
    wide = np.asarray(x, np.float64).ravel()
    magnitude = np.abs(wide)
    near = magnitude <= _NEAR
    result = np.copysign(1.0, wide)
    result[near] = wide[near] * _ratio(_SMALL, wide[near] ** 2)
    middle = ~near & (magnitude < 6.0)  # from 6 on, erf is 1 in f64
    result[middle] = np.copysign(0.5 - _tail(magnitude[middle]) + 0.5, wide[middle])
    result[np.isnan(wide)] = np.nan
    return result.reshape(np.shape(x)).astype(np.asarray(x).dtype)


def complementary_error_function(x: Array) -> Array:
    """1 - erf(x) without the cancellation, in the dtype of x (f32 or f64), computed in f64."""
    wide = np.asarray(x, np.float64).ravel()
    near = np.abs(wide) <= _NEAR
    result = np.full(wide.shape, np.nan)
    result[near] = 1.0 - wide[near] * _ratio(_SMALL, wide[near] ** 2)
    below, above = wide < -_NEAR, wide > _NEAR
    result[below] = 2.0 - _tail(-wide[below])
    result[above] = _tail(wide[above])
    return result.reshape(np.shape(x)).astype(np.asarray(x).dtype)
