"""Forms under a change of the dims in them, and what occurs free in them."""

from __future__ import annotations

from collections.abc import Callable

from coset.ir import dims
from coset.ir.dims import Dim
from coset.prove import scalar
from coset.prove.scalar import Apply, Atom, Base, Exponential, Fold, MonomialSum, Read, Size, Where

Again = Callable[[Fold, tuple[tuple[str, Dim], ...], MonomialSum], MonomialSum]


def replaced(form: MonomialSum, change: Callable[[Dim], Dim], again: Again) -> MonomialSum:
    """`form` with `change` made to every dim in it; `again` makes a fold over the changed variables and body."""
    total = scalar.ZERO
    for monomial, coefficient in form.terms:
        part = scalar.number(coefficient)
        for factor, exponent in monomial:
            part = scalar.multiply(part, scalar.power(_replaced(factor, change, again), exponent))
        total = scalar.add(total, part)
    return total


def _replaced(factor: Atom, change: Callable[[Dim], Dim], again: Again) -> MonomialSum:
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


def truths(form: MonomialSum) -> list[Apply]:
    """The predicates in `form` that no fold binds, each once."""
    found: dict[Apply, None] = {}
    stack = [form]
    while stack:
        for factor in stack.pop().atoms():
            if isinstance(factor, Apply):
                if factor.truth:
                    found[factor] = None
                stack += factor.arguments
            elif isinstance(factor, Base):
                stack.append(factor.form)
            elif isinstance(factor, Exponential):
                stack.append(factor.exponent)
    return list(found)


def assumed(
    form: MonomialSum, predicate: Apply, value: int, rebuild: Callable[[str, tuple[MonomialSum, ...]], MonomialSum | None]
) -> MonomialSum:
    """`form` where `predicate` is 0 or 1, also inside of other atoms but not inside of folds. `rebuild` makes an application of a function
    to new arguments in normal form; None: it has no laws."""
    total = scalar.ZERO
    for monomial, coefficient in form.terms:
        part = scalar.number(coefficient)
        for factor, exponent in monomial:
            part = scalar.multiply(part, scalar.power(_assumed(factor, predicate, value, rebuild), exponent))
        total = scalar.add(total, part)
    return total


def _assumed(
    factor: Atom, predicate: Apply, value: int, rebuild: Callable[[str, tuple[MonomialSum, ...]], MonomialSum | None]
) -> MonomialSum:
    if factor == predicate:
        return scalar.number(value)
    if isinstance(factor, Apply):
        arguments = tuple(assumed(a, predicate, value, rebuild) for a in factor.arguments)
        if arguments == factor.arguments:
            return scalar.atom(factor)
        made = None if factor.truth else rebuild(factor.function, arguments)
        return made if made is not None else scalar.atom(Apply(factor.function, arguments, factor.truth))
    if isinstance(factor, Base):
        return assumed(factor.form, predicate, value, rebuild)
    if isinstance(factor, Exponential):
        return scalar.exponential(assumed(factor.exponent, predicate, value, rebuild))
    return scalar.atom(factor)


def variables(form: MonomialSum) -> frozenset[str]:
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
