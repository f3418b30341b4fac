"""What is known of the magnitudes of functions of floats: a table of bounds by other products."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import ml_dtypes

from coset.ir.types import TensorType
from coset.prove.products import HALF, ONE, ONE_STEP, ZERO, MagnitudeProduct, Option, negated, product

if TYPE_CHECKING:
    from coset.prove.magnitudes import Magnitudes

MOST_EXPONENT = 20  # log2 of what an exponential of a number is taken of
FACTORS = 4  # of a number whose logarithm is looked at: as many as a degree that is admitted


def logarithm_of(type: TensorType) -> Fraction:
    """What no natural logarithm of a product of so many numbers of the type exceeds, as a power of 2."""
    exponent = float(ml_dtypes.finfo(type.dtype.numpy).maxexp)  # type: ignore[no-untyped-call]
    return Fraction(math.log2(math.log(2.0) * FACTORS * exponent))


def as_float(x: MagnitudeProduct) -> float:
    """The number that a product without atoms is."""
    size: float = 2.0 ** float(x.log)
    return -size if x.negative else size


def _quotient(_: Magnitudes, a: MagnitudeProduct | None, b: MagnitudeProduct | None) -> MagnitudeProduct | None:
    return None if a is None or b is None else a.times(b.whole_power(-1))


def _abs(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
    if x is None or x.nonnegative:
        return x
    upright = MagnitudeProduct(x.log, x.factors)
    return elements.atom(f"abs({upright.key})", nonnegative=True, options=(Option(upright),))


def _raised(elements: Magnitudes, x: MagnitudeProduct | None, exponent: Fraction) -> MagnitudeProduct | None:
    """A power; where it is defined, its base is not negative."""
    if x is None:
        return None if exponent else ONE
    if exponent.denominator == 1:
        return x.whole_power(int(exponent))
    found = x.magnitude_power(exponent)
    if all(atom.nonnegative for atom, _ in x.factors) or (len(x.factors) == 1 and x.factors[0][1] == 1 and not x.negative):
        return found
    return elements.atom(f"({x.key})^{exponent}", nonnegative=True, options=(Option(found),))


def _power(elements: Magnitudes, x: MagnitudeProduct | None, y: MagnitudeProduct | None) -> MagnitudeProduct | None:
    if y is None:
        return ONE
    if not y.factors and y.log < 8:
        return _raised(elements, x, Fraction(as_float(y)).limit_denominator(1 << 20))
    return elements.atom(f"power({'0' if x is None else x.key}, {y.key})")


def _largest(elements: Magnitudes, *values: MagnitudeProduct | None) -> MagnitudeProduct | None:
    upright = any(value is None or value.nonnegative for value in values)
    return elements.choice("largest", values, nonnegative=upright)


def _smallest(elements: Magnitudes, *values: MagnitudeProduct | None) -> MagnitudeProduct | None:
    kept = tuple(value for value in values if value is not None)
    upright = all(value.nonnegative for value in kept)
    return elements.choice("smallest", values, nonnegative=upright, caps=kept if upright and len(kept) == len(values) else ())


def _clamped(
    elements: Magnitudes, low: MagnitudeProduct | None, x: MagnitudeProduct | None, high: MagnitudeProduct | None
) -> MagnitudeProduct | None:
    return _smallest(elements, _largest(elements, low, x), high)


def _logistic(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
    power = elements.exponential(x)
    if x is None or power is None:
        return MagnitudeProduct(-ONE_STEP) if x is None else None
    options = (Option(ONE, ZERO, ONE_STEP, (power,)), Option(power, ZERO, ONE_STEP, (ONE,)))
    return elements.atom(f"logistic({x.key})", nonnegative=True, positive=True, options=options, caps=(ONE, power))


def _exponential_minus_one(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
    power = elements.exponential(x)
    if x is None or power is None:
        return None
    down = Fraction(7, 10)  # 1 - 1/e is above 2^-0.7, e - 1 below 2^0.8
    options = (Option(x, Fraction(4, 5), down), Option(ONE, ZERO, down), Option(power, ZERO, down))
    return elements.atom(f"expm1({x.key})", nonnegative=x.nonnegative, options=options)


def _saturating(
    name: str, up: Fraction, down: Fraction, most: MagnitudeProduct
) -> Callable[[Magnitudes, MagnitudeProduct | None], MagnitudeProduct | None]:
    """An odd function between 2^-down and 2^up times the smaller of 1 and |x|, and at most `most`."""

    def of(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
        if x is None:
            return None
        options = (Option(ONE, most.log, down, (x,)), Option(x, up, down, (ONE,)))
        return elements.atom(f"{name}({x.key})", nonnegative=x.nonnegative, options=options, caps=(most, x.times(MagnitudeProduct(up))))

    return of


def _bounded(name: str, *, odd: bool) -> Callable[[Magnitudes, MagnitudeProduct | None], MagnitudeProduct | None]:
    """A function that is at most 1, and an odd one at most |x|."""

    def of(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
        if x is None:
            return None if odd else ONE
        return elements.atom(f"{name}({x.key})", caps=(ONE, x) if odd else (ONE,))

    return of


def _logarithm(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
    if x is None:
        return None
    return elements.atom(f"log({x.key})", caps=(MagnitudeProduct(elements.largest_logarithm),))


def _log_plus_one(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
    if x is None:
        return None
    most, down = elements.largest_logarithm, Fraction(3, 5)  # ln 2 is above 2^-0.6
    options = (Option(x, ZERO if x.nonnegative else None, down, (ONE,)), Option(ONE, most, down, (x,)))
    return elements.atom(f"log1p({x.key})", nonnegative=x.nonnegative, options=options, caps=(MagnitudeProduct(most),))


def _hyperbolic_arc(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
    """asinh: at most |x|, and at least 0.88 times the smaller of 1 and |x|."""
    if x is None:
        return None
    most, down = MagnitudeProduct(elements.largest_logarithm + 1), Fraction(1, 5)
    options = (Option(ONE, most.log, down, (x,)), Option(x, ZERO, down, (ONE,)))
    return elements.atom(f"asinh({x.key})", nonnegative=x.nonnegative, options=options, caps=(most, x))


def _whole(name: str) -> Callable[[Magnitudes, MagnitudeProduct | None], MagnitudeProduct | None]:
    def of(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
        if x is None:
            return None
        options = (Option(x, ONE_STEP, ONE_STEP), Option(ONE))
        return elements.atom(f"{name}({x.key})", nonnegative=x.nonnegative, options=options, floors=(ONE,))

    return of


def _remainder(elements: Magnitudes, a: MagnitudeProduct | None, b: MagnitudeProduct | None) -> MagnitudeProduct | None:
    if a is None or b is None:
        return None
    return elements.atom(f"remainder({a.key}, {b.key})", nonnegative=a.nonnegative, caps=(a, b))


def _sign(elements: Magnitudes, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
    return None if x is None else elements.atom(f"sign({x.key})", nonnegative=x.nonnegative, options=(Option(ONE),))


SCALARS: dict[str, Callable[..., MagnitudeProduct | None]] = {
    "add": lambda e, a, b: e.sum(a, b), "subtract": lambda e, a, b: e.sum(a, negated(b)), "multiply": lambda _, a, b: product(a, b),
    "divide": _quotient, "negate": lambda _, x: negated(x), "abs": _abs, "sign": _sign, "convert": lambda _, x: x,
    "reduce_precision": lambda _, x: x, "sqrt": lambda e, x: _raised(e, x, HALF), "rsqrt": lambda e, x: _raised(e, x, -HALF),
    "cbrt": lambda e, x: None if x is None else e.atom(f"cbrt({x.key})", options=(Option(x.magnitude_power(Fraction(1, 3))),)),
    "power": _power, "maximum": _largest, "minimum": _smallest, "clamp": _clamped, "remainder": _remainder,
    "exponential": lambda e, x: e.exponential(x), "exponential_minus_one": _exponential_minus_one, "logistic": _logistic,
    "log": _logarithm, "log_plus_one": _log_plus_one,
    "tanh": _saturating("tanh", ZERO, Fraction(2, 5), ONE), "erf": _saturating("erf", Fraction(1, 5), Fraction(1, 4), ONE),
    "atan": _saturating("atan", ZERO, Fraction(2, 5), MagnitudeProduct(Fraction(2, 3))),
    "asinh": _hyperbolic_arc,
    "sine": _bounded("sine", odd=True), "cosine": _bounded("cosine", odd=False),
    "erfc": lambda e, x: ONE if x is None else e.atom(f"erfc({x.key})", nonnegative=True, caps=(MagnitudeProduct(ONE_STEP),)),
    **{name: _whole(name) for name in ("floor", "ceil", "round_nearest_even", "round_nearest_afz")},
}  # fmt: skip
