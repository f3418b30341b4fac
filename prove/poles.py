"""What a divisor's zero makes of a side: reciprocals that cancel nothing, with the sign that a zero has as it is written.

Over the reals 1 / (b - a) is -1 / (a - b). Where a and b are equal both differences are +0, so that the first is an infinity of the other
sign than the second; and 1 / (1 / d) is d, while d * d / d is no number where d is 0. Draws see that where a divisor is 0 at small numbers,
but 61a - 89b + 17 is not. So what may be 0 without one of its factors being an input that is 0 (a sum) keeps its reciprocal as an atom,
of the sum as it is written; a sum that cancels is +0, the negative of one is -0. Such atoms, logarithms and what has them inside may be
infinite: where a law of the reals lets two of them meet (r - 2r is -r, a factor goes into a sum) an infinity and a NaN may be exchanged.
That is `nonfinite` in a result, and more in the argument of a function, which may make a number of one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from coset.prove import scalar
from coset.prove.functions import ODD, PARTIAL, SIGNED, Domain, Reals, Unprovable
from coset.prove.scalar import ONE, ZERO, Apply, Atom, Base, Exponential, Fold, MonomialSum

RECIPROCAL = "1 /"
UNKNOWN, MEETING = "the sign of a divisor's zero is not known", "an infinity meets another one"
ODD_TOO = ("sign", "cbrt", "tanh", "sinh", "log_plus_one", "exponential_minus_one")  # 0 where their argument is, with its sign
PLAIN = ("add", "subtract", "multiply", "negate", "divide")  # whose results are infinite where an operand is, or NaN


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
        self._risky: set[MonomialSum] = set()  # where two that may be infinite have cancelled
        self._spread: set[MonomialSum] = set()  # where a factor that may be infinite went into a sum, or came out of one
        self._wild: dict[Atom, bool] = {}
        table = self.table
        table["log_plus_one"] = lambda a: super(PoleReals, self).log(scalar.add(ONE, a))
        table["add"] = lambda a, b: self._added(a, b)
        table["subtract"] = lambda a, b: self._added(a, scalar.negate(b), b)
        table["erfc"] = self._noting(table["erfc"], self._sum)
        table["negate"] = lambda a: self._multiplied(a, scalar.number(-1))
        table["multiply"] = self._multiplied
        table["divide"] = lambda a, b: self._multiplied(a, self.inverse(b))
        for name in (*ODD, *ODD_TOO):
            table[name] = self._noting(table[name], self._odd_of)
        for name in ("maximum", "minimum", "abs"):
            table[name] = self._noting(table[name], self._one_of)
        for name in table.keys() - set(PLAIN):
            table[name] = self._reading(table[name])

    @staticmethod
    def _noting(function: Callable[..., MonomialSum], note: Callable[..., None]) -> Callable[..., MonomialSum]:
        def noted(*operands: MonomialSum) -> MonomialSum:
            result = function(*operands)
            note(result, *operands)
            return result

        return noted

    def _reading(self, function: Callable[..., MonomialSum]) -> Callable[..., MonomialSum]:
        def reading(*operands: MonomialSum) -> MonomialSum:
            self.read(*operands)
            return function(*operands)

        return reading

    # ---------------------------------------------------------------- what may be infinite

    def is_wild(self, form: MonomialSum) -> bool:
        return any(self._atom_is_wild(factor) for monomial, _ in form.terms for factor, _ in monomial)

    def _atom_is_wild(self, factor: Atom) -> bool:
        if factor not in self._wild:
            inner: tuple[MonomialSum, ...] = ()
            own = False
            if isinstance(factor, Apply):
                inner, poles = factor.arguments, factor.function == RECIPROCAL or factor.function in PARTIAL
                own = poles or (factor.function == "log" and not self.domain.surely_positive(factor.arguments[0]))
            elif isinstance(factor, Base | Exponential | Fold):
                inner = (factor.form if isinstance(factor, Base) else factor.exponent if isinstance(factor, Exponential) else factor.body,)
            self._wild[factor] = own or any(map(self.is_wild, inner))
        return self._wild[factor]

    def is_risky(self, form: MonomialSum) -> bool:
        return form in self._risky

    def read(self, *forms: MonomialSum) -> None:
        if any(form in self._risky or form in self._spread for form in forms):
            raise Unprovable(MEETING)

    def _like(self, form: MonomialSum, *parts: MonomialSum) -> None:
        """Note that a form is made of `parts`, with what was done to them."""
        for own in (self._risky, self._spread):
            if any(part in own for part in parts):
                own.add(form)

    def compare(self, direction: str, a: MonomialSum, b: MonomialSum) -> MonomialSum:
        self.read(a, b)
        return super().compare(direction, a, b)

    def _added(self, a: MonomialSum, b: MonomialSum, subtracted: MonomialSum | None = None) -> MonomialSum:
        result = scalar.add(a, b)
        mine = dict(a.terms)
        both = [monomial for monomial, c in b.terms if monomial in mine and mine[monomial] * c < 0]
        if any(self._atom_is_wild(factor) for monomial in both for factor, _ in monomial):
            self._risky.add(result)
        self._like(result, a, b if subtracted is None else subtracted)
        if len(result.terms) == 1 and result.number is None and (ZERO in (a, b) or both):
            self._whole(result, 1)  # with 0, or with what cancels, -0 is +0
        self._sum(result)
        return result

    def _meet(self, a: MonomialSum, b: MonomialSum) -> bool:
        """Whether what is infinite and what is 0 cancel in a product."""
        degrees = [(factor, degree) for form in (a, b) for monomial, _ in form.terms for factor, degree in monomial]
        signs = {(factor, degree > 0) for factor, degree in degrees if self._atom_is_wild(factor)}
        return any((factor, not above) in signs for factor, above in signs)

    # ---------------------------------------------------------------- how forms are written

    def _note(self, form: MonomialSum, spelled: WrittenProduct | None) -> None:
        self._spelled[form] = spelled if self._spelled.get(form, spelled) == spelled else None

    def summed(self, form: MonomialSum, body: MonomialSum = ZERO) -> None:
        outside = (factor for monomial, _ in form.terms for factor, _ in monomial if not isinstance(factor, Fold))
        self._like(form, body)
        if body.terms and any(map(self._atom_is_wild, outside)):
            self._spread.add(form)
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
        self._like(result, a, b)
        if a.number is None and b.number is None:
            if self._meet(a, b):
                self._risky.add(result)
            if (len(a.terms) > 1 or len(b.terms) > 1) and (self.is_wild(a) or self.is_wild(b)):
                self._spread.add(result)
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
        self._like(form, *parts)
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
        self.read(a)
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
        if b.number is None and any(each in self._spelled and self._sign(each) != 1 for each in (a, b)):
            raise Unprovable(UNKNOWN)
        return super().power(a, b)

    def log(self, a: MonomialSum) -> MonomialSum:
        result = super().log(a)
        if result.terms and result.number is None:
            self._whole(result, 1)  # the logarithm of 1
        return result

    def partial(self, name: str, result: MonomialSum) -> MonomialSum:
        found = super().partial(name, result)
        arguments = result.alone.arguments if isinstance(result.alone, Apply) else ()
        self.read(*arguments)
        if any(argument in self._spelled and self._sign(argument) != 1 for argument in arguments):
            if name in SIGNED:
                raise Unprovable(UNKNOWN)
            if found.terms:
                self._note(found, None)
        if name in SIGNED:
            told = (scalar.atom(Apply("+0", (each,))) if each in self._spelled else each for each in arguments)
            return scalar.atom(Apply(name, tuple(told)))
        return found


def _kept(factor: Atom, degree: Fraction) -> MonomialSum:
    """The reciprocal of a power that stays one atom."""
    return scalar.atom(Apply(RECIPROCAL, (scalar.atom(factor, degree),)))
