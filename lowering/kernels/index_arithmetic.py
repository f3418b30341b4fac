"""Arithmetic of indices: what dims over a kernel's loops can be, and quotients and remainders simplified by it.

`//` and `%` are simplified by what is known of the loops: each runs over 0 .. extent - 1, so that `(32*i + j) // 32` is `i` where j runs
to 31. The symbols of the program are taken as 1 or more: with a dim of size 0 no index is ever asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coset.ir.dims import Atom, Dim, Monomial, Poly, add, canonical, divide_exactly, floordiv, mod, multiply, substitute, subtract, symbols

Extents = Mapping[str, Dim]  # loop symbol -> how many values it takes


def _sum(terms: Iterable[tuple[Monomial, int]]) -> Dim:
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        total[monomial] = total.get(monomial, 0) + coefficient
    return canonical(total)


def _terms(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    return dim.terms if isinstance(dim, Poly) else ((((), dim),) if dim else ())


def is_positive(dim: Dim) -> bool:
    """True when `dim` is seen to be 1 or more (symbols are)."""
    return is_natural(subtract(dim, 1))


def is_natural(dim: Dim) -> bool:
    """True when `dim`, without loops, is seen to be 0 or more: each of its symbols is 1 or more."""
    if isinstance(dim, int):
        return dim >= 0
    plain = {name: add(1, _symbol(name)) for name in symbols(dim)}
    shifted = substitute(dim, plain)
    return all(coefficient >= 0 and all(map(_is_natural_atom, monomial)) for monomial, coefficient in _terms(shifted))


def _is_natural_atom(atom: Atom) -> bool:
    """Of an atom whose symbols are 0 or more. Nested quotients are few: dims are small."""
    if not atom.args:
        return True
    first, second = atom.args
    if atom.name == "max":
        return _is_plainly_natural(first) or _is_plainly_natural(second)
    if atom.name == "mod":
        return _is_plainly_natural(second)
    return _is_plainly_natural(first) and _is_plainly_natural(second)


def _is_plainly_natural(dim: Dim) -> bool:
    """True when `dim` is seen to be 0 or more for symbols of 0 or more."""
    return all(coefficient >= 0 and all(map(_is_natural_atom, monomial)) for monomial, coefficient in _terms(dim))


def _symbol(name: str) -> Poly:
    return Poly((((Atom(name),), 1),))


# ---------------------------------------------------------------- factors and ranges


def linear(dim: Dim, name: str) -> Dim | None:
    """The factor of the symbol `name` in `dim` when it occurs to the first power and outside quotients, else None."""
    total: Dim = 0
    for monomial, coefficient in _terms(dim):
        count = sum(atom.name == name and not atom.args for atom in monomial)
        inside = any(name in symbols(arg) for atom in monomial for arg in atom.args)
        if count > 1 or inside:
            return None
        if count:
            rest = tuple(atom for atom in monomial if atom.args or atom.name != name)
            total = add(total, Poly(((rest, coefficient),)) if rest else coefficient)
    return total


def range_of(dim: Dim, extents: Extents) -> tuple[Dim, Dim] | None:
    """The least and the largest value of `dim` over the loops, or None where it is not seen."""
    low: Dim = 0
    high: Dim = 0
    for monomial, coefficient in _terms(dim):
        least: Dim = 1
        most: Dim = 1
        for atom in monomial:
            found = _atom_range(atom, extents)
            if found is None or not is_natural(found[0]):
                return None
            least, most = multiply(least, found[0]), multiply(most, found[1])
        if coefficient < 0:
            least, most = most, least
        low, high = add(low, multiply(coefficient, least)), add(high, multiply(coefficient, most))
    return low, high


def _atom_range(atom: Atom, extents: Extents) -> tuple[Dim, Dim] | None:
    if not atom.args:
        one = _symbol(atom.name)
        return (0, subtract(extents[atom.name], 1)) if atom.name in extents else (one, one)
    if not any(symbols(arg) & extents.keys() for arg in atom.args):
        one = Poly((((atom,), 1),))
        return one, one
    if atom.name not in ("floordiv", "mod") or not is_positive(atom.args[1]):
        return None
    inner, divisor = range_of(atom.args[0], extents), atom.args[1]
    if atom.name == "mod":
        return 0, subtract(divisor, 1)
    return None if inner is None else (floordiv(inner[0], divisor), floordiv(inner[1], divisor))


def is_within(dim: Dim, low: Dim, high: Dim, extents: Extents) -> bool:
    """True when `low <= dim < high` is seen for all values of the loops."""
    found = range_of(dim, extents)
    return found is not None and is_natural(subtract(found[0], low)) and is_natural(subtract(subtract(high, 1), found[1]))


def is_outside(dim: Dim, low: Dim, high: Dim, extents: Extents) -> bool:
    """True when `low <= dim < high` is seen to be false for all values of the loops."""
    found = range_of(dim, extents)
    return found is not None and (is_natural(subtract(found[0], high)) or is_natural(subtract(subtract(low, 1), found[1])))


# ---------------------------------------------------------------- quotient and remainder


def divided(dim: Dim, divisor: Dim, extents: Extents) -> tuple[Dim, Dim]:
    """`dim // divisor` and `dim % divisor`, simplified; `divisor` is 1 or more."""
    if divisor == 1:
        return dim, 0
    if isinstance(dim, int) and isinstance(divisor, int):
        return dim // divisor, dim % divisor
    whole, rest = _multiples(dim, divisor)
    if is_within(rest, 0, divisor, extents):
        return whole, rest
    quotient, remainder = _by_factor(rest, divisor, extents)
    return add(whole, quotient), remainder


def _multiples(dim: Dim, divisor: Dim) -> tuple[Dim, Dim]:
    """(q, r) with dim = divisor * q + r, term by term: the terms that the divisor divides, and the others."""
    whole: Dim = 0
    rest: list[tuple[Monomial, int]] = []
    for monomial, coefficient in _terms(dim):
        one = _sum([(monomial, coefficient)])
        exact = divide_exactly(one, divisor)
        if exact is not None:
            whole = add(whole, exact)
        else:
            rest.append((monomial, coefficient))
    return whole, _sum(rest)


def _by_factor(dim: Dim, divisor: Dim, extents: Extents) -> tuple[Dim, Dim]:
    """As `divided`, where no term is a multiple: a factor g of the divisor is taken out of the terms that have it, where what is left
    stays below g: (g*a + b) // (g*c) is a // c."""
    for monomial, coefficient in _terms(dim):
        plain = tuple(atom for atom in monomial if not atom.args and atom.name not in extents)
        factor = _sum([(plain, abs(coefficient))])
        if factor == 1:
            continue
        rest_divisor = divide_exactly(divisor, factor)
        if rest_divisor is None or rest_divisor == 1:
            continue
        upper, lower = _multiples(dim, factor)
        if is_within(lower, 0, factor, extents):
            quotient, remainder = divided(upper, rest_divisor, extents)
            return quotient, joined(add(multiply(factor, remainder), lower))
    inner = _only_atom(dim)
    if inner is not None and inner.name == "floordiv" and is_positive(inner.args[1]):
        quotient = divided(inner.args[0], multiply(inner.args[1], divisor), extents)[0]
        return quotient, mod(dim, divisor)
    if inner is not None and inner.name == "mod" and divide_exactly(inner.args[1], divisor) is not None:
        return floordiv(dim, divisor), divided(inner.args[0], divisor, extents)[1]
    return floordiv(dim, divisor), mod(dim, divisor)


def _only_atom(dim: Dim) -> Atom | None:
    terms = _terms(dim)
    return terms[0][0][0] if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and terms[0][0][0].args else None


def joined(dim: Dim, extents: Extents | None = None) -> Dim:
    """`dim` with quotients and remainders of one thing put together: n * (x // n) + x % n is x, n * (x // n % m) + x % n is x % (n * m).
    With the loops' `extents`, quotients that were simplified are found too."""
    if isinstance(dim, int):
        return dim
    for monomial, coefficient in dim.terms:
        for place, atom in enumerate(monomial):
            if atom.name != "mod" or not atom.args:
                continue
            inner, divisor = atom.args
            rest = _sum([(monomial[:place] + monomial[place + 1 :], coefficient)])
            for wanted, whole in _partners(dim, inner, divisor, multiply(rest, divisor), extents):
                if len(_terms(wanted)) == 1 and _terms(wanted)[0] in dim.terms:
                    less = subtract(subtract(dim, wanted), _sum([(monomial, coefficient)]))
                    return joined(add(less, multiply(rest, whole)), extents)
    return dim


def _partners(dim: Poly, inner: Dim, divisor: Dim, factor: Dim, extents: Extents | None) -> list[tuple[Dim, Dim]]:
    """What may stand in `dim` beside inner % divisor, times `factor`, and what both are together."""
    quotients = {floordiv(inner, divisor), _nested(inner, divisor)}
    if extents is not None:
        quotients.add(divided(inner, divisor, extents)[0])
    found = [(multiply(factor, quotient), inner) for quotient in quotients]
    for monomial, _ in dim.terms:
        for atom in monomial:
            if atom.name == "mod" and atom.args and atom.args[0] in quotients:
                one = Poly((((atom,), 1),))
                found.append((multiply(factor, one), mod(inner, multiply(divisor, atom.args[1]))))
    return found


def _nested(inner: Dim, divisor: Dim) -> Dim:
    """`inner // divisor` where inner is itself a quotient: one quotient."""
    atom = _only_atom(inner)
    if atom is not None and atom.name == "floordiv":
        return floordiv(atom.args[0], multiply(atom.args[1], divisor))
    return floordiv(inner, divisor)


def complexity(dim: Dim) -> int:
    """The number of atoms in `dim`, counted up to a thousand."""
    total = 0
    stack: list[Dim] = [dim]
    while stack and total < 1000:
        for monomial, _ in _terms(stack.pop()):
            total += len(monomial)
            stack += [arg for atom in monomial for arg in atom.args]
    return total
