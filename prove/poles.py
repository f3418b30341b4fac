"""What a divisor's zero makes of a side: reciprocals that cancel nothing, with the sign that a zero has as it is written.

Over the reals 1 / (b - a) is -1 / (a - b). Where a and b are equal both differences are +0, so that the first is an infinity of the other
sign than the second; and 1 / (1 / d) is d, while d * d / d is no number where d is 0. Draws see that where a divisor is 0 at small numbers,
but 61a - 89b + 17 is not. So what may be 0 without one of its factors being an input that is 0 (a sum) keeps its reciprocal as an atom,
of the sum as it is written; a sum that cancels is +0, the negative of one is -0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from coset.prove import scalar
from coset.prove.functions import Domain, Reals, Unprovable
from coset.prove.scalar import Apply, Atom, Base, Fold, MonomialSum

RECIPROCAL = "1 /"
UNKNOWN = "the sign of a divisor's zero is not known"
SIGNED = frozenset({"atan2"})  # what tells the zeros apart, beside a quotient
ODD = ("erf", "sine", "tan", "asin", "atan", "asinh", "atanh", "erf_inv", "round_nearest_even", "round_nearest_afz", "sign", "cbrt")


@dataclass(frozen=True)
class WrittenProduct:
    """How a form is written: a product of numbers and atoms, and of sums, each of which is +0 where it is 0, to powers."""

    outside: MonomialSum
    sums: tuple[tuple[MonomialSum, Fraction], ...]


class PoleReals(Reals):
    """Functions over the reals whose reciprocals of sums stay what they are at the sums' zeros."""

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self._spelled: dict[MonomialSum, WrittenProduct | None] = {}  # None: in two ways, or in one that is not followed
        table = self.table
        for name in ("add", "subtract", "exponential_minus_one", "erfc"):
            table[name] = self._noting(table[name], self._sum)
        table["negate"] = lambda a: self._multiplied(a, scalar.number(-1))
        table["multiply"] = self._multiplied
        table["divide"] = lambda a, b: self._multiplied(a, self.inverse(b))
        for name in (*ODD, "tanh", "sinh"):
            table[name] = self._noting(table[name], self._odd_of)
        for name in ("maximum", "minimum", "abs"):
            table[name] = self._noting(table[name], self._one_of)

    @staticmethod
    def _noting(function: Callable[..., MonomialSum], note: Callable[..., None]) -> Callable[..., MonomialSum]:
        def noted(*operands: MonomialSum) -> MonomialSum:
            result = function(*operands)
            note(result, *operands)
            return result

        return noted

    # ---------------------------------------------------------------- how forms are written

    def _note(self, form: MonomialSum, spelled: WrittenProduct | None) -> None:
        self._spelled[form] = spelled if self._spelled.get(form, spelled) == spelled else None

    def summed(self, form: MonomialSum) -> None:
        self._sum(form)

    def _sum(self, form: MonomialSum, *_: MonomialSum) -> None:
        """Note a sum: +0 where it is 0. One of like terms is what they are."""
        if len(form.terms) > 1:
            self._whole(form, 1)

    def _whole(self, form: MonomialSum, sign: int) -> None:
        """Note what is +0 where it is 0 (`sign` 1), or -0."""
        outside = self._content(form)
        inner = scalar.scale(scalar.multiply(form, scalar.power(outside, Fraction(-1))), sign)
        self._note(form, WrittenProduct(scalar.scale(outside, sign), ((inner, Fraction(1)),)))

    def _content(self, form: MonomialSum) -> MonomialSum:
        """The positive number and the positive atoms that all terms have as factors."""
        common: dict[Atom, Fraction] = dict(form.terms[0][0])
        for monomial, _ in form.terms:
            own = dict(monomial)
            common = {factor: min(degree, own[factor]) for factor, degree in common.items() if factor in own}
        content = scalar.number(abs(form.terms[0][1]))
        for factor, degree in common.items():
            if self.domain.surely_positive(scalar.atom(factor)):
                content = scalar.multiply(content, scalar.atom(factor, degree))
        return content

    def _written(self, form: MonomialSum) -> WrittenProduct | None:
        """How a form is written; None where that is not known."""
        if form in self._spelled:
            return self._spelled[form]
        if len(form.terms) != 1:
            return None
        outside, sums = scalar.number(form.terms[0][1]), []
        for factor, degree in form.terms[0][0]:
            if isinstance(factor, Base) or (isinstance(factor, Fold) and factor.combiner == "add"):
                sums.append((scalar.atom(factor), degree))
            else:
                outside = scalar.multiply(outside, scalar.atom(factor, degree))
        return WrittenProduct(outside, tuple(sums))

    def _sign(self, form: MonomialSum) -> int:
        """1 or -1: the zero that a noted form is where it is 0; 0 where that depends on more, or is not known."""
        spelled = self._written(form)
        if spelled is None or len(spelled.sums) != 1 or spelled.sums[0][1] != 1:
            return 0
        return 1 if self.domain.surely_positive(spelled.outside) else -self.domain.surely_positive(scalar.negate(spelled.outside))

    def _multiplied(self, a: MonomialSum, b: MonomialSum) -> MonomialSum:
        result = scalar.multiply(a, b)
        if not result.terms or (len(result.terms) == 1 and a not in self._spelled and b not in self._spelled):
            return result
        one, other = self._written(a), self._written(b)
        if one is None or other is None:
            self._note(result, None)
            return result
        sums: dict[MonomialSum, Fraction] = {}
        for form, degree in (*one.sums, *other.sums):
            sums[form] = sums.get(form, Fraction(0)) + degree
        self._note(
            result, WrittenProduct(scalar.multiply(one.outside, other.outside), tuple(sorted(sums.items(), key=lambda item: item[0].key)))
        )
        return result

    def _odd_of(self, result: MonomialSum, a: MonomialSum) -> None:
        """Note a function that is 0 where `a` is, with the same sign."""
        if a not in self._spelled:
            self._sum(result)
        elif sign := self._sign(a):
            self._whole(result, sign)
        else:
            self._note(result, None)

    def _one_of(self, result: MonomialSum, *operands: MonomialSum) -> None:
        """Note what is one of the operands."""
        self.picked(result, operands)

    def picked(self, form: MonomialSum, parts: Sequence[MonomialSum]) -> None:
        noted = [part for part in parts if part in self._spelled]
        if not form.terms or form.number is not None or form in parts:
            return
        if noted:
            if all(self._sign(part) == 1 for part in noted):
                self._whole(form, 1)
            else:
                self._note(form, None)
        elif len(form.terms) > 1:
            self._whole(form, 1 if form.terms[0][1] > 0 else -1)

    # ---------------------------------------------------------------- what a zero makes infinite

    def inverse(self, a: MonomialSum) -> MonomialSum:
        if a.number == 0:
            raise Unprovable("a division by zero")
        self.domain.needs_nonzero(a)
        if self._never_zero(a):
            return scalar.power(a, Fraction(-1))
        spelled = self._written(a)
        if spelled is None:
            raise Unprovable(UNKNOWN)
        ((monomial, coefficient),) = spelled.outside.terms
        result = scalar.number(1 / coefficient)
        for factor, degree in monomial:
            infinite = isinstance(factor, Apply) and factor.function == RECIPROCAL
            result = scalar.multiply(result, _kept(factor, degree) if infinite else scalar.atom(factor, -degree))
        for form, degree in spelled.sums:
            if self._never_zero(form):
                result = scalar.multiply(result, scalar.power(form, -degree))
            elif degree.denominator == 1 and degree > 0:
                result = scalar.multiply(result, scalar.atom(Apply(RECIPROCAL, (form,)), degree))
            else:
                root = form.alone
                assert root is not None, "a sum that is written has no other power"
                result = scalar.multiply(result, _kept(root, degree))
        return result

    def _never_zero(self, form: MonomialSum) -> bool:
        base = form.alone.form if isinstance(form.alone, Base) else form
        return self.domain.surely_positive(base) or self.domain.surely_positive(scalar.negate(base))

    def root(self, a: MonomialSum, exponent: Fraction) -> MonomialSum:
        result = super().root(a, exponent)
        if a in self._spelled and result.terms and self._sign(a) != 1:
            self._note(result, None)
        return result

    def power(self, a: MonomialSum, b: MonomialSum) -> MonomialSum:
        if b.number is not None and b.number.denominator == 1 and 0 < b.number <= 8:
            result = a
            for _ in range(int(b.number) - 1):
                result = self._multiplied(result, a)
            return result
        return super().power(a, b)

    def log(self, a: MonomialSum) -> MonomialSum:
        result = super().log(a)
        if result.terms and result.number is None:
            self._whole(result, 1)  # the logarithm of 1
        return result

    def partial(self, name: str, result: MonomialSum) -> MonomialSum:
        found = super().partial(name, result)
        arguments = result.alone.arguments if isinstance(result.alone, Apply) else ()
        if any(argument in self._spelled and self._sign(argument) != 1 for argument in arguments):
            if name in SIGNED:
                raise Unprovable(UNKNOWN)
            if found.terms:
                self._note(found, None)
        return found


def _kept(factor: Atom, degree: Fraction) -> MonomialSum:
    """The reciprocal of a power that stays one atom."""
    return scalar.atom(Apply(RECIPROCAL, (scalar.atom(factor, degree),)))
