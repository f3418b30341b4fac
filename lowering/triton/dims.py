"""Dims as Triton text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coset.ir.dims import Atom, Dim, multiply
from coset.lowering.kernels.addresses import terms_of
from coset.lowering.kernels.kernel import Loop

_FUNCTIONS = {"max": "tl.maximum", "min": "tl.minimum"}


def is_natural(dim: Dim) -> bool:
    """True when `dim` is seen to be 0 or more, as all its symbols are."""
    return all(coefficient > 0 and all(_natural_atom(atom) for atom in monomial) for monomial, coefficient in terms_of(dim))


def _natural_atom(atom: Atom) -> bool:
    return all(is_natural(arg) for arg in atom.args)


def dim_text(dim: Dim, names: Mapping[str, str]) -> str:
    """`dim` as Triton text over the names of its symbols; it may need parentheses beside `*`."""
    text = ""
    for monomial, coefficient in sorted(terms_of(dim), key=lambda term: (not term[0], term[1] < 0)):
        factors = [_atom_text(atom, names) for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.append(str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        body = " * ".join(factors)
        text = f"{text} {sign} {body}" if text else ("-" if sign == "-" else "") + body
    return text or "0"


def factor_text(dim: Dim, names: Mapping[str, str]) -> str:
    """`dim` as an operand of `*`, `//`, `%` or a comparison."""
    text = dim_text(dim, names)
    return text if len(terms_of(dim)) <= 1 and not text.startswith("-") and " * " not in text else f"({text})"


def _atom_text(atom: Atom, names: Mapping[str, str]) -> str:
    if not atom.args:
        return names[atom.name]
    first, second = atom.args
    if atom.name in _FUNCTIONS:
        return f"{_FUNCTIONS[atom.name]}({dim_text(first, names)}, {dim_text(second, names)})"
    if not (is_natural(first) and is_natural(second)):
        return f"floor_{'quotient' if atom.name == 'floordiv' else 'rest'}({dim_text(first, names)}, {dim_text(second, names)})"
    sign = "//" if atom.name == "floordiv" else "%"
    return f"({factor_text(first, names)} {sign} {factor_text(second, names)})"


def split_index(loops: Sequence[Loop], flat: str, names: Mapping[str, str]) -> dict[str, str]:
    """The text of each loop's index where `flat` numbers the points of the index space in row-major order."""
    found: dict[str, str] = {}
    inner: Dim = 1
    for place in reversed(range(len(loops))):
        loop = loops[place]
        text = flat if inner == 1 else f"{flat} // {factor_text(inner, names)}"
        found[loop.name] = text if place == 0 else (f"{text} % " if inner == 1 else f"({text}) % ") + factor_text(loop.extent, names)
        inner = multiply(inner, loop.extent)
    return found
