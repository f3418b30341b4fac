"""Bounds of dims and what follows from them: which of two is larger.

A symbol is the size of a dim, so 0 or more; `most` says of some symbols what they are never above.
"""

from __future__ import annotations

from collections.abc import Mapping

from coset.ir import dims
from coset.ir.dims import Atom, Dim, Poly

Most = Mapping[str, int]
_NONE: Most = {}


def least(dim: Dim, most: Most = _NONE) -> int | None:
    """A number that `dim` is never below, or None when none is seen."""
    if not isinstance(dim, Poly):
        return dim
    total = 0
    for monomial, coefficient in dim.terms:
        bound = _least_of_product(monomial, most) if coefficient > 0 or not monomial else _most_of_product(monomial, most)
        if bound is None:
            return None
        total += coefficient * bound
    return total


def _least_of_product(monomial: tuple[Atom, ...], most: Most) -> int | None:
    """Of factors that are 0 or more."""
    product = 1
    for atom in monomial:
        bound = _least_of_call(atom, most) if atom.args else 0
        if bound is None or bound < 0:
            return None
        product *= bound
    return product


def _most_of_product(monomial: tuple[Atom, ...], most: Most) -> int | None:
    """A number that the product is never above, where it is one symbol."""
    return most.get(monomial[0].name) if len(monomial) == 1 and not monomial[0].args else None


def _least_of_call(atom: Atom, most: Most) -> int | None:
    first, second = atom.args
    a, b = least(first, most), least(second, most)
    if atom.name == "max":
        known = [bound for bound in (a, b) if bound is not None]
        return max(known) if known else None
    if atom.name == "min":
        return None if a is None or b is None else min(a, b)
    if b is None or b < 1:
        return None
    if atom.name == "mod":
        return 0
    return None if a is None else a // second if isinstance(second, int) else 0 if a >= 0 else None


def at_most(a: Dim, b: Dim, most: Most = _NONE) -> bool | None:
    """Whether a <= b always (True) or never (False); None when it depends or is not seen."""
    difference = dims.subtract(b, a)
    low, high = least(difference, most), least(dims.multiply(-1, difference), most)
    if low is not None and low >= 0:
        return True
    return False if high is not None and high > 0 else None


def maximum(a: Dim, b: Dim, most: Most = _NONE) -> Dim:
    """The larger of a and b, decided where it can be."""
    if at_most(a, b, most):
        return b
    return a if at_most(b, a, most) else dims.maximum(a, b)


def minimum(a: Dim, b: Dim, most: Most = _NONE) -> Dim:
    """The smaller of a and b, decided where it can be."""
    if at_most(a, b, most):
        return a
    return b if at_most(b, a, most) else dims.minimum(a, b)


def implied_bound(a: Dim, b: Dim) -> tuple[str, int] | None:
    """The symbol s and the number c, where a and b are s and min(c, s) with c above 1.

    Such dims broadcast only if they are equal: s above c would make them two numbers above 1. So every run that
    broadcasts them and does not fail has s <= c.
    """
    for one, other in ((a, b), (b, a)):
        name = dims.alone(one)
        if name is None or not isinstance(other, Poly) or len(other.terms) != 1:
            continue
        ((monomial, coefficient),) = other.terms
        if coefficient != 1 or len(monomial) != 1 or monomial[0].name != "min":
            continue
        numbers = [arg for arg in monomial[0].args if isinstance(arg, int)]
        if one in monomial[0].args and numbers and numbers[0] > 1:
            return name, numbers[0]
    return None
