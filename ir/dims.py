"""Symbolic dimensions: integers and canonical integer expressions over named symbols.

Two dims are equal when their canonical forms are: a polynomial with integer coefficients over *atoms*, where an
atom is a symbol or an application of `floordiv`, `mod`, `max` or `min` that did not simplify. A dim that is a
plain number is a plain `int`, so static shapes cost nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Union

from coset.ir.errors import CosetError, UnboundDim


@dataclass(frozen=True, order=True)
class Atom:
    """A symbol (`args` empty) or an unsimplified application `name(args)`."""

    name: str
    args: tuple["Poly | int", ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})" if self.args else self.name


Monomial = tuple[Atom, ...]  # sorted by text, with repetition for powers


@dataclass(frozen=True)
class Poly:
    """A non-constant dim: sorted (monomial, non-zero coefficient) pairs. Make one with `symbol` and the functions below."""

    terms: tuple[tuple[Monomial, int], ...]

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            factors = [str(atom) for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+"
            text += ("-" if sign == "-" else "") + "*".join(factors) if not text else f" {sign} " + "*".join(factors)
        return text

    __repr__ = __str__

    def __lt__(self, other: "Dim") -> bool:
        return str(self) < str(other)


Dim = Union[int, Poly]
Shape = tuple[Dim, ...]


@lru_cache(maxsize=4096)
def symbol(name: str) -> Poly:
    """The dim that is the symbol `name`; any text that is an identifier, else CosetError."""
    if not re.fullmatch(r"[A-Za-z_][\w.:/@-]*", name):
        raise CosetError(f"`{name}` is not a dim symbol", help="use letters, digits and _ . : / @ -")
    return Poly((((Atom(name),), 1),))


def _terms(dim: Dim) -> dict[Monomial, int]:
    return dict(dim.terms) if isinstance(dim, Poly) else ({(): dim} if dim else {})


def canonical(terms: Mapping[Monomial, int]) -> Dim:
    """The dim that is the sum of these monomials times their numbers."""
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1:
        return kept[()] if () in kept else Poly(tuple(kept.items()))
    return Poly(tuple(sorted(kept.items(), key=lambda item: (-len(item[0]), [str(a) for a in item[0]]))))


def add(a: Dim, b: Dim) -> Dim:
    """a + b."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0 or b == 0:
        return b if a == 0 else a
    terms = _terms(a)
    for monomial, coefficient in _terms(b).items():
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return canonical(terms)


def multiply(a: Dim, b: Dim) -> Dim:
    """a * b."""
    if isinstance(b, int):
        a, b = b, a
    if isinstance(a, int):
        return a * b if isinstance(b, int) else _scaled(b, a)
    terms: dict[Monomial, int] = {}
    for m1, c1 in _terms(a).items():
        for m2, c2 in _terms(b).items():
            monomial = tuple(sorted(m1 + m2, key=str))
            terms[monomial] = terms.get(monomial, 0) + c1 * c2
    return canonical(terms)


def _scaled(dim: Poly, by: int) -> Dim:
    """`dim * by`; its monomials stay in their order."""
    if by == 1:
        return dim
    return Poly(tuple((monomial, coefficient * by) for monomial, coefficient in dim.terms)) if by else 0


def subtract(a: Dim, b: Dim) -> Dim:
    """a - b."""
    return add(a, multiply(-1, b))


def product(dims: Iterable[Dim]) -> Dim:
    """The product of `dims`; 1 when there are none."""
    total: Dim = 1
    for dim in dims:
        total = multiply(total, dim)
    return total


def divide_exactly(a: Dim, b: Dim) -> Dim | None:
    """The polynomial a / b when b is a single term that divides every term of a (taken as non-zero), else None."""
    if b == 0:
        return None
    divisor = _terms(b)
    if len(divisor) != 1:
        return 1 if a == b else None
    ((monomial, coefficient),) = divisor.items()
    quotient: dict[Monomial, int] = {}
    for m, c in _terms(a).items():
        rest = list(m)
        for atom in monomial:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % coefficient:
            return None
        quotient[tuple(rest)] = c // coefficient
    return canonical(quotient)


def floordiv(a: Dim, b: Dim) -> Dim:
    """a // b, rounded to minus infinity as Python does; b is not 0."""
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return a // b
    if isinstance(b, int) and b != 0:
        whole = {m: c // b for m, c in _terms(a).items() if c % b == 0 and m}
        if whole:  # (b*q + r) // b = q + r // b, whatever r is
            quotient = canonical(whole)
            rest = subtract(a, multiply(b, quotient))
            return add(quotient, floordiv(rest, b))
    exact = divide_exactly(a, b)
    return exact if exact is not None else _apply("floordiv", a, b)


def mod(a: Dim, b: Dim) -> Dim:
    """a - b * (a // b)."""
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return a % b
    if divide_exactly(a, b) is not None:
        return 0
    least = _residue(a, b) if isinstance(b, int) and b != 0 else a
    return _apply("mod", a, b) if least == a else mod(least, b)


def _residue(a: Dim, b: int) -> Dim:
    """A dim that leaves the same rest by `b`, without rests by `b` among its terms and then without whole multiples of it."""
    terms = _terms(a)
    rests = {m: m[0].args[0] for m in terms if len(m) == 1 and m[0].name == "mod" and m[0].args[1] == b}
    total: Dim = 0
    for monomial, coefficient in terms.items() if rests else ():
        least = coefficient % abs(b)
        total = add(total, multiply(least, rests[monomial]) if monomial in rests else canonical({monomial: least}))
    return total if rests else a


def maximum(a: Dim, b: Dim) -> Dim:
    """The larger of a and b."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return a if a == b else _apply("max", *sorted((a, b), key=str))


def minimum(a: Dim, b: Dim) -> Dim:
    """The smaller of a and b."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return a if a == b else _apply("min", *sorted((a, b), key=str))


def ceildiv(a: Dim, b: Dim) -> Dim:
    """a / b rounded up."""
    return multiply(-1, floordiv(multiply(-1, a), b))


def _apply(name: str, *args: Dim) -> Dim:
    return Poly((((Atom(name, tuple(args)),), 1),))


FUNCTIONS = {"floordiv": floordiv, "mod": mod, "max": maximum, "min": minimum}


def symbols(dim: Dim) -> frozenset[str]:
    """The names of the symbols that occur in `dim`."""
    if isinstance(dim, int):
        return frozenset()
    found: set[str] = set()
    for atom in (atom for monomial, _ in dim.terms for atom in monomial):
        found.update(*(map(symbols, atom.args) if atom.args else ({atom.name},)))
    return frozenset(found)


def alone(dim: Dim) -> str | None:
    """The symbol's name when `dim` is one symbol and nothing else, else None."""
    if isinstance(dim, int) or len(dim.terms) != 1:
        return None
    ((monomial, coefficient),) = dim.terms
    return monomial[0].name if coefficient == 1 and len(monomial) == 1 and not monomial[0].args else None


def substitute(dim: Dim, binding: Mapping[str, Dim]) -> Dim:
    """`dim` with every symbol of `binding` replaced; the result is canonical again."""
    if isinstance(dim, int):
        return dim
    total: Dim = 0
    for monomial, coefficient in dim.terms:
        value: Dim = coefficient
        for atom in monomial:
            if atom.args:
                factor = FUNCTIONS[atom.name](*(substitute(arg, binding) for arg in atom.args))
            else:
                factor = binding[atom.name] if atom.name in binding else symbol(atom.name)
            value = multiply(value, factor)
        total = add(total, value)
    return total


def evaluate(dim: Dim, binding: Mapping[str, int]) -> int:
    """The number that `dim` is under `binding`.

    Raises:
        UnboundDim: a symbol of `dim` is not bound.
    """
    value = substitute(dim, binding)
    if not isinstance(value, int):
        raise UnboundDim(f"dim `{dim}` needs a value for {', '.join(names := tuple(sorted(symbols(value))))}", names)
    return value
