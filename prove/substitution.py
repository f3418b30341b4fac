"""Forms under a change of the dims in them, and what occurs free in them."""

from __future__ import annotations

from collections.abc import Callable

from coset.ir import dims
from coset.ir.dims import Dim
from coset.prove import scalar
from coset.prove.scalar import Apply, Atom, Base, Exponential, Fold, Form, Read, Size, Where

Again = Callable[[Fold, tuple[tuple[str, Dim], ...], Form], Form]


def replaced(form: Form, change: Callable[[Dim], Dim], again: Again) -> Form:
    """`form` with `change` made to every dim in it; `again` makes a fold over the changed variables and body."""
    total = scalar.ZERO
    for monomial, coefficient in form.terms:
        part = scalar.number(coefficient)
        for factor, exponent in monomial:
            part = scalar.multiply(part, scalar.power(_replaced(factor, change, again), exponent))
        total = scalar.add(total, part)
    return total


def _replaced(factor: Atom, change: Callable[[Dim], Dim], again: Again) -> Form:
    if isinstance(factor, Read):
        return scalar.atom(Read(factor.name, tuple(map(change, factor.index))))
    if isinstance(factor, Size):
        return scalar.size(change(dims.Poly((((factor.atom,), 1),))))
    if isinstance(factor, Where):
        dim = change(factor.dim)
        return scalar.number(int(dim >= 0)) if isinstance(dim, int) else scalar.atom(Where(dim))
    if isinstance(factor, Apply):
        arguments = tuple(replaced(a, change, again) for a in factor.arguments)
        return scalar.maximum(arguments) if factor.function == "max" else scalar.atom(Apply(factor.function, arguments, factor.truth))
    if isinstance(factor, Base):
        return replaced(factor.form, change, again)
    if isinstance(factor, Exponential):
        return scalar.exponential(replaced(factor.exponent, change, again))
    variables = tuple((name, change(extent)) for name, extent in factor.variables)
    return again(factor, variables, replaced(factor.body, change, again))


def variables(form: Form) -> frozenset[str]:
    """The dim symbols and index variables that occur free in `form`."""
    found: set[str] = set()
    for factor in form.atoms():
        found |= atom_variables(factor)
    return frozenset(found)


def atom_variables(factor: Atom) -> frozenset[str]:
    """The same of one atom."""
    if isinstance(factor, Read):
        return frozenset().union(*(dims.symbols(i) for i in factor.index))
    if isinstance(factor, Size):
        return dims.symbols(dims.Poly((((factor.atom,), 1),)))
    if isinstance(factor, Where):
        return dims.symbols(factor.dim)
    if isinstance(factor, Apply):
        return frozenset().union(*(variables(a) for a in factor.arguments))
    if isinstance(factor, Base):
        return variables(factor.form)
    if isinstance(factor, Exponential):
        return variables(factor.exponent)
    own = {name for name, _ in factor.variables}
    return (variables(factor.body) | frozenset().union(*(dims.symbols(e) for _, e in factor.variables))) - own
