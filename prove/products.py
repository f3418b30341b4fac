"""Magnitudes in logarithms: a number times powers of atoms, and what is known of an atom."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

ZERO, HALF, ONE_STEP = Fraction(0), Fraction(1, 2), Fraction(1)


@dataclass(frozen=True)
class MagnitudeProduct:
    """2^log times powers of atoms, with a sign; as a magnitude the sign does not count."""

    log: Fraction
    factors: tuple[tuple[MagnitudeAtom, Fraction], ...] = ()
    negative: bool = False

    @cached_property
    def key(self) -> str:
        """The product as text: the same text is the same value."""
        powers = " ".join(f"{atom.key}^{exponent}" if exponent != 1 else atom.key for atom, exponent in self.factors)
        return f"{'-' if self.negative else ''}2^{self.log}" + (f" {powers}" if powers else "")

    @property
    def nonnegative(self) -> bool:
        """Whether it is known to be 0 or more."""
        return not self.negative and all(atom.nonnegative or exponent % 2 == 0 for atom, exponent in self.factors)

    @property
    def positive(self) -> bool:
        """Whether it is known to be more than 0."""
        return self.nonnegative and all(atom.positive for atom, _ in self.factors)

    def times(self, other: MagnitudeProduct) -> MagnitudeProduct:
        """The product of both."""
        powers = dict(self.factors)
        for atom, exponent in other.factors:
            powers[atom] = powers.get(atom, ZERO) + exponent
        return MagnitudeProduct(self.log + other.log, by_key(powers), self.negative != other.negative)

    def whole_power(self, exponent: int) -> MagnitudeProduct:
        """The product to a power."""
        powers = {atom: each * exponent for atom, each in self.factors}
        return MagnitudeProduct(self.log * exponent, by_key(powers), self.negative and exponent % 2 == 1)

    def magnitude_power(self, exponent: Fraction) -> MagnitudeProduct:
        """A power of the magnitude."""
        return MagnitudeProduct(self.log * exponent, by_key({atom: each * exponent for atom, each in self.factors}))

    def negated(self) -> MagnitudeProduct:
        """The same with the other sign."""
        return MagnitudeProduct(self.log, self.factors, not self.negative)


def by_key(powers: Mapping[MagnitudeAtom, Fraction]) -> tuple[tuple[MagnitudeAtom, Fraction], ...]:
    """The factors that are not 1, in order."""
    return tuple(sorted(((atom, power) for atom, power in powers.items() if power), key=lambda item: item[0].key))


@dataclass(frozen=True)
class Option:
    """What the magnitude of an atom may follow: it is at least 2^-down times the product, at most 2^up times (None: no bound). The product
    is then at most each of `least_of`."""

    product: MagnitudeProduct
    up: Fraction | None = ZERO
    down: Fraction | None = ZERO
    least_of: tuple[MagnitudeProduct, ...] = ()


@dataclass(frozen=True, eq=False)
class MagnitudeAtom:
    """A value by its key. Where it is not 0 one of the `options` holds, no cap is exceeded, and no floor is undercut."""

    key: str
    nonnegative: bool = False
    positive: bool = False  # whether it is never 0
    options: tuple[Option, ...] = ()
    caps: tuple[MagnitudeProduct, ...] = ()
    floors: tuple[MagnitudeProduct, ...] = ()
    read: str = ""  # the input that it is an element of
    body: str = ""  # of a maximum over the variables `over`: the key of what it is the largest of
    over: frozenset[str] = frozenset()
    peak: frozenset[str] | None = None  # of max(x) - x, and of e to that: the variables over which it reaches 0, and 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MagnitudeAtom) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


ONE = MagnitudeProduct(ZERO)


def number(value: float) -> MagnitudeProduct | None:
    """The number as a product; None for 0, for which nothing counts, and for what is not finite."""
    if value == 0 or not math.isfinite(value):
        return None
    mantissa, exponent = math.frexp(abs(value))
    log = Fraction(exponent - 1) if mantissa == 0.5 else Fraction(math.log2(abs(value)))
    return MagnitudeProduct(log, (), value < 0)


def product(*factors: MagnitudeProduct | None) -> MagnitudeProduct | None:
    """The product; None, which is 0, where a factor is."""
    total = ONE
    for factor in factors:
        if factor is None:
            return None
        total = total.times(factor)
    return total


def negated(x: MagnitudeProduct | None) -> MagnitudeProduct | None:
    """The negative."""
    return None if x is None else x.negated()
