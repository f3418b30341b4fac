"""Dims that are products of symbols."""

from __future__ import annotations

from coset.ir.dims import Dim, Poly


def factors(dim: Dim) -> frozenset[str] | None:
    """The names of the symbols that `dim` is a product of, with a positive number or without; None where it is no such product."""
    ((monomial, coefficient),) = dim.terms if isinstance(dim, Poly) and len(dim.terms) == 1 else (((), dim),)
    plain = isinstance(coefficient, int) and coefficient > 0 and not any(atom.args for atom in monomial)
    return frozenset(atom.name for atom in monomial) if plain else None
