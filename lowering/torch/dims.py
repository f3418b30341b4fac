"""Dims as Python expressions over the names that a generated program gives to dim symbols."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from coset.ir.dims import Atom, Dim


def dim_text(dim: Dim, names: Mapping[str, str]) -> str:
    """The expression of `dim`; `names` has the Python name of each symbol."""
    if isinstance(dim, int):
        return str(dim)
    text = ""
    for monomial, coefficient in dim.terms:
        factors = [_atom_text(atom, names) for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        part = " * ".join(factors)
        text = (f"-{part}" if coefficient < 0 else part) if not text else f"{text} {'-' if coefficient < 0 else '+'} {part}"
    return text


def _atom_text(atom: Atom, names: Mapping[str, str]) -> str:
    if not atom.args:
        return names[atom.name]
    a, b = (dim_text(arg, names) for arg in atom.args)
    if atom.name in ("max", "min"):
        return f"{atom.name}({a}, {b})"
    left, right = (text if re.fullmatch(r"\w+", text) else f"({text})" for text in (a, b))
    return f"({left} {'//' if atom.name == 'floordiv' else '%'} {right})"


def tuple_text(items: Iterable[object]) -> str:
    """The items as a Python tuple."""
    parts = [str(item) for item in items]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
