"""What one element of a tensor is: a sum of products of atoms, in one normal form.

Over the reals (and over integers, where wrap-around is a homomorphism) the ring's laws are in the normal form; further laws
(`e^a e^b = e^(a+b)`, powers, odd functions) are in the constructors below. Atoms are reads of inputs, applications of functions that
stay uninterpreted, sizes, conditions (1 where they hold, else 0), sums raised to a power, and folds over index variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Union

from coset.ir import dims
from coset.ir.dims import Dim

DIGITS = 60  # of the numbers that are no fractions


@dataclass(frozen=True)
class Read:
    """The element of the input `name` at `index`."""

    name: str
    index: tuple[Dim, ...]

    @cached_property
    def key(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.index))}]"


@dataclass(frozen=True)
class Size:
    """A dim symbol or index variable, or an application of dims (`floordiv`), as a number."""

    atom: dims.Atom

    @cached_property
    def key(self) -> str:
        return f"'{self.atom}"


@dataclass(frozen=True)
class Apply:
    """A function whose value is not interpreted, of arguments that are; `bool`: it is 0 or 1."""

    function: str
    arguments: tuple["MonomialSum", ...]
    truth: bool = False

    @cached_property
    def key(self) -> str:
        return f"{self.function}({', '.join(a.key for a in self.arguments)})"


@dataclass(frozen=True)
class Where:
    """1 where the dim is not negative, else 0."""

    dim: Dim

    @cached_property
    def key(self) -> str:
        return f"[{self.dim} >= 0]"


@dataclass(frozen=True)
class Base:
    """A sum that is raised to a power."""

    form: "MonomialSum"

    @cached_property
    def key(self) -> str:
        return f"({self.form.key})"


@dataclass(frozen=True)
class Exponential:
    """e to a product of atoms with coefficient 1."""

    exponent: "MonomialSum"

    @cached_property
    def key(self) -> str:
        return f"e^({self.exponent.key})"


@dataclass(frozen=True)
class Fold:
    """`combiner` over all values of the bound variables, from 0 to their extents."""

    combiner: str
    variables: tuple[tuple[str, Dim], ...]
    body: "MonomialSum"

    @cached_property
    def key(self) -> str:
        return f"{self.combiner}{{{', '.join(f'{name} < {extent}' for name, extent in self.variables)}}} {self.body.key}"


Atom = Union[Read, Size, Apply, Where, Base, Exponential, Fold]
Monomial = tuple[tuple[Atom, Fraction], ...]  # by key; exponents are not 0


@dataclass(frozen=True)
class MonomialSum:
    """A sum of monomials with coefficients that are not 0, in order of their keys."""

    terms: tuple[tuple[Monomial, Fraction], ...]

    @cached_property
    def key(self) -> str:
        return " + ".join(f"{c}{_monomial_key(m)}" for m, c in self.terms) or "0"

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.key

    __repr__ = __str__

    @property
    def number(self) -> Fraction | None:
        """The number that the form is, or None."""
        if not self.terms:
            return Fraction(0)
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def alone(self) -> Atom | None:
        """The atom that the form is, or None."""
        if len(self.terms) != 1 or self.terms[0][1] != 1 or len(self.terms[0][0]) != 1:
            return None
        ((factor, exponent),) = self.terms[0][0]
        return factor if exponent == 1 else None

    def call(self, function: str) -> Apply | None:
        """The application of `function` that the form is, or None."""
        return self.alone if isinstance(self.alone, Apply) and self.alone.function == function else None

    def atoms(self) -> set[Atom]:
        """The atoms of its monomials (not those inside of atoms)."""
        return {atom for monomial, _ in self.terms for atom, _ in monomial}


def _monomial_key(monomial: Monomial) -> str:
    return "".join(f" {atom.key}" + (f"^{exponent}" if exponent != 1 else "") for atom, exponent in monomial)


def truth_valued(atom: Atom) -> bool:
    """True for atoms that are 0 or 1: their powers are themselves."""
    return isinstance(atom, Where) or (isinstance(atom, Apply) and atom.truth)


def _form(terms: Mapping[Monomial, Fraction]) -> MonomialSum:
    kept = [(monomial, c) for monomial, c in terms.items() if c]
    return MonomialSum(tuple(sorted(kept, key=lambda term: _monomial_key(term[0]))))


def number(value: Fraction | int) -> MonomialSum:
    """A number."""
    return _form({(): Fraction(value)})


def atom(value: Atom, exponent: Fraction | int = 1) -> MonomialSum:
    """One atom to a power."""
    return _form({((value, Fraction(exponent)),): Fraction(1)})


def dim(factor: Size) -> Dim:
    """A number that is a dim, as one."""
    return dims.Poly((((factor.atom,), 1),))


def size(dim: Dim) -> MonomialSum:
    """A dim as a number."""
    if isinstance(dim, int):
        return number(dim)
    total = ZERO
    for monomial, coefficient in dim.terms:
        part = number(coefficient)
        for factor in monomial:
            part = multiply(part, atom(Size(factor)))
        total = add(total, part)
    return total


def add(*forms: MonomialSum) -> MonomialSum:
    """The sum."""
    terms: dict[Monomial, Fraction] = {}
    for form in forms:
        for monomial, coefficient in form.terms:
            terms[monomial] = terms.get(monomial, Fraction(0)) + coefficient
    return _form(terms)


def scale(form: MonomialSum, factor: Fraction | int) -> MonomialSum:
    """A number times the form."""
    return _form({monomial: c * factor for monomial, c in form.terms})


def negate(form: MonomialSum) -> MonomialSum:
    """The negative."""
    return scale(form, -1)


def subtract(a: MonomialSum, b: MonomialSum) -> MonomialSum:
    """The difference."""
    return add(a, negate(b))


def multiply(a: MonomialSum, b: MonomialSum) -> MonomialSum:
    """The product, multiplied out; a sum whose power has become a positive integer is multiplied out too."""
    terms: dict[Monomial, Fraction] = {}
    open_: list[MonomialSum] = []
    for m1, c1 in a.terms:
        for m2, c2 in b.terms:
            monomial, expanded = _times(m1, m2)
            if expanded:
                part = _form({monomial: c1 * c2})
                for form, times in expanded:
                    for _ in range(times):
                        part = multiply(part, form)
                open_.append(part)
            else:
                terms[monomial] = terms.get(monomial, Fraction(0)) + c1 * c2
    return add(_form(terms), *open_) if open_ else _form(terms)


def _times(a: Monomial, b: Monomial) -> tuple[Monomial, list[tuple[MonomialSum, int]]]:
    if not a or not b:
        return a or b, []
    exponents = dict(a)
    for factor, exponent in b:
        exponents[factor] = exponents.get(factor, Fraction(0)) + exponent
    kept: list[tuple[Atom, Fraction]] = []
    expanded: list[tuple[MonomialSum, int]] = []
    for factor, exponent in exponents.items():
        if not exponent:
            continue
        if truth_valued(factor):
            exponent = Fraction(1)
        if isinstance(factor, Base) and exponent > 0 and exponent.denominator == 1:
            expanded.append((factor.form, int(exponent)))
        else:
            kept.append((factor, exponent))
    return tuple(sorted(kept, key=lambda item: item[0].key)), expanded


ZERO, ONE = MonomialSum(()), MonomialSum((((), Fraction(1)),))


def positive(factor: Atom) -> bool:
    """True for atoms that are known to be more than 0 (a size where an element stands; an exponential)."""
    return isinstance(factor, Exponential) or (isinstance(factor, Size) and not factor.atom.args and ":" not in factor.atom.name)


def power(form: MonomialSum, exponent: Fraction) -> MonomialSum:
    """`form` to a power that is no symbol. What is known to be positive leaves the root; for the rest the root stays one atom.

    Where the power of the reals is undefined (a root of a negative number, a reciprocal of 0) so is the result's.
    """
    if exponent == 1:
        return form
    if exponent.denominator == 1 and 0 <= exponent <= 8:
        result = ONE
        for _ in range(int(exponent)):
            result = multiply(result, form)
        return result
    if form.number is not None and form.number > 0:
        return number(_number_power(form.number, exponent))
    if len(form.terms) != 1:
        return _of_sum(form, exponent)
    ((monomial, coefficient),) = form.terms
    whole = exponent.denominator == 1
    result = ONE
    rest: dict[Atom, Fraction] = {}
    for factor, degree in monomial:
        if whole or positive(factor):
            result = multiply(result, _raised(factor, degree * exponent))
        else:
            rest[factor] = degree
    if whole:
        return scale(result, coefficient ** int(exponent)) if coefficient else atom(Base(form), exponent)
    left = number(_number_power(abs(coefficient), exponent)) if coefficient else ZERO
    inner = _form({tuple(sorted(rest.items(), key=lambda item: item[0].key)): Fraction(1 if coefficient > 0 else -1)})
    if inner == ONE:
        return multiply(result, left)
    if len(rest) == 1 and coefficient > 0:
        ((factor, degree),) = rest.items()
        if degree.denominator != 1 or int(degree) % 2:  # an odd power has its base's sign: the root knows the base is not negative
            return multiply(multiply(result, left), _raised(factor, degree * exponent))
    return multiply(multiply(result, left), atom(Base(inner), exponent))


def _raised(factor: Atom, exponent: Fraction) -> MonomialSum:
    if isinstance(factor, Base) and exponent > 0 and exponent.denominator == 1:
        return power(factor.form, exponent)
    return atom(factor, exponent)


def _of_sum(form: MonomialSum, exponent: Fraction) -> MonomialSum:
    """The power of a sum, whose first coefficient is taken out where the sign allows it."""
    if not form.terms:
        return ZERO if exponent > 0 else atom(Base(form), exponent)
    first = form.terms[0][1]
    if exponent.denominator == 1:
        return scale(atom(Base(scale(form, 1 / first)), exponent), first ** int(exponent))
    return multiply(atom(Base(scale(form, 1 / abs(first))), exponent), number(_number_power(abs(first), exponent)))


def _number_power(value: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator == 1:
        return value ** int(exponent)
    with localcontext() as context:
        context.prec = DIGITS
        decimal = Decimal(value.numerator) / Decimal(value.denominator)
        root = (decimal.ln() * Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        return Fraction(root)


def exponential(form: MonomialSum) -> MonomialSum:
    """e to a sum is a product."""
    result = ONE
    for monomial, coefficient in form.terms:
        if not monomial:
            with localcontext() as context:
                context.prec = DIGITS
                value = (Decimal(coefficient.numerator) / Decimal(coefficient.denominator)).exp()
            result = scale(result, Fraction(value))
        else:
            inner = _form({monomial: Fraction(1)}).call("log")
            if inner is not None:  # e^(c log y) = y^c, where y has a logarithm
                result = multiply(result, power(inner.arguments[0], coefficient))
            else:
                result = multiply(result, atom(Exponential(_form({monomial: Fraction(1)})), coefficient))
    return result


def logarithm(form: MonomialSum) -> MonomialSum:
    """The logarithm; known positive factors of a single product become a sum."""
    if len(form.terms) == 1 and form.terms[0][1] > 0:
        monomial, coefficient = form.terms[0]
        total, rest = ZERO, []
        for factor, degree in monomial:
            if isinstance(factor, Exponential):
                total = add(total, scale(factor.exponent, degree))
            else:
                rest.append((factor, degree))
        inner = _form({tuple(rest): coefficient})
        if inner == ONE:
            return total
        if coefficient == 1 and len(rest) == 1 and (rest[0][1].denominator != 1 or int(rest[0][1]) % 2):  # positive where its base is
            ((factor, degree),) = rest
            base = factor.form if isinstance(factor, Base) else atom(factor)
            return add(total, scale(atom(Apply("log", (base,))), degree))
        return add(total, atom(Apply("log", (inner,))))
    return atom(Apply("log", (form,)))


def odd(function: str, form: MonomialSum) -> MonomialSum:
    """A function with f(-x) = -f(x)."""
    if form.terms and form.terms[0][1] < 0:
        return negate(atom(Apply(function, (negate(form),))))
    return atom(Apply(function, (form,))) if form.terms else ZERO


def even(function: str, form: MonomialSum) -> MonomialSum:
    """A function with f(-x) = f(x)."""
    return atom(Apply(function, (negate(form) if form.terms and form.terms[0][1] < 0 else form,)))


def maximum(forms: Iterable[MonomialSum]) -> MonomialSum:
    """The largest: nested ones are one, each counts once."""
    found: dict[MonomialSum, None] = {}
    for form in forms:
        inner = form.call("max")
        found.update(dict.fromkeys(inner.arguments if inner else (form,)))
    numbers = [form.number for form in found if form.number is not None]
    kept = [form for form in found if form.number is None] + ([number(max(numbers))] if numbers else [])
    return kept[0] if len(kept) == 1 else atom(Apply("max", tuple(sorted(kept, key=lambda f: f.key))))


def minimum(forms: Iterable[MonomialSum]) -> MonomialSum:
    """The smallest, as the negative of the largest negative."""
    return negate(maximum(map(negate, forms)))
