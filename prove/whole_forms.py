"""Forms that are whole numbers of dims and conditions, and what integer types hold of them."""

from __future__ import annotations

from fractions import Fraction

from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.types import DType
from coset.prove import functions, scalar
from coset.prove.scalar import MonomialSum, Size


def is_held(form: MonomialSum, dtype: DType) -> bool:
    """True for whole numbers chosen by conditions that the type holds for sure (and every float type, signed or not)."""
    if not all(c.denominator == 1 for _, c in form.terms) or not all(scalar.truth_valued(atom) for atom in form.atoms()):
        return False
    low, high = (sum(pick(c, Fraction(0)) for _, c in form.terms) for pick in (min, max))
    if dtype.kind == "bool":
        return low >= 0 and high <= 1
    if functions.wraps(dtype):
        least, greatest = ends(dtype)
        return least <= low and high <= greatest
    return low >= -4 and high <= 4 and dtype.name != "f8e8m0fnu"


def ends(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    least = 0 if dtype.kind == "uint" else -(1 << (dtype.bits - 1))
    return least, least + (1 << dtype.bits) - 1


def counts(form: MonomialSum) -> bool:
    """Whether a form is made of dims: how many elements there are is taken to be a number of wide float types."""
    return all(isinstance(factor, Size) and ":" not in str(factor.atom) for factor in form.atoms())


def as_dim(form: MonomialSum) -> Dim | None:
    """The form as a dim where it is one: sizes with whole coefficients."""
    total: Dim = 0
    for monomial, coefficient in form.terms:
        if coefficient.denominator != 1:
            return None
        part: Dim = int(coefficient)
        for factor, exponent in monomial:
            if not isinstance(factor, Size) or exponent.denominator != 1 or exponent < 0:
                return None
            for _ in range(int(exponent)):
                part = dims.multiply(part, dims.Poly((((factor.atom,), 1),)))
        total = dims.add(total, part)
    return total
