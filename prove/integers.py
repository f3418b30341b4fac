"""Scalar functions of integers: the ring modulo 2^n; what is no ring operation is an atom, or one of the ring in other words."""

from __future__ import annotations

from collections.abc import Callable

from coset.ir.types import DTYPES, DType
from coset.prove import scalar
from coset.prove.functions import sorted_call
from coset.prove.scalar import ONE, ZERO, Apply, MonomialSum, Size


def power_of_integer(a: MonomialSum, b: MonomialSum, dtype: DType) -> MonomialSum:
    """a to the power of b, of which the sign counts."""
    if b.number is not None and 0 <= b.number <= 8:
        return scalar.power(a, b.number)
    return scalar.atom(Apply(f"power {dtype}", (a, b)))


def remainder_of_integers(a: MonomialSum, b: MonomialSum, dtype: DType) -> MonomialSum:
    """What the quotient leaves, by 0 (where the quotient is -1 and the rest all of a: 0 * -1 is nothing) and by -1 too, where both may wrap
    around; of what a remainder by b leaves it is that: it is nearer to 0 than b, or b is 0."""

    def left(x: MonomialSum) -> MonomialSum:
        quotient = x if b == ONE else scalar.atom(Apply(f"divide {dtype}", (x, b)))
        return scalar.subtract(x, scalar.multiply(quotient, b))

    divided = [atom.arguments[0] for atom in a.atoms() if isinstance(atom, Apply) and atom.function == f"divide {dtype}"]
    return a if any(left(x) == a for x in divided) else left(a)


def shifted(name: str, a: MonomialSum, places: int, dtype: DType) -> MonomialSum:
    """A shift by a number of places: none is nothing, two to one side are one, and as many as there are bits leave 0 or the sign."""
    places = min(places, dtype.bits)
    if name == "shift_left":
        return ZERO if places == dtype.bits else scalar.scale(a, 1 << places)
    if places == 0:
        return a
    inner = a.call(f"{name} {dtype}")
    if inner is not None and inner.arguments[1].number is not None:
        return shifted(name, inner.arguments[0], min(dtype.bits, places + int(inner.arguments[1].number)), dtype)
    if places == dtype.bits and name == "shift_right_logical":
        return ZERO
    return scalar.atom(Apply(f"{name} {dtype}", (a, scalar.number(places))))


def _shifted(a: MonomialSum, b: MonomialSum) -> MonomialSum:
    return scalar.scale(a, 1 << int(b.number)) if b.number is not None and 0 <= b.number < 8 else scalar.atom(Apply("shift_left", (a, b)))


INTEGERS: dict[str, Callable[..., MonomialSum]] = {
    "add": scalar.add, "subtract": scalar.subtract, "multiply": scalar.multiply, "negate": scalar.negate,
    "shift_left": _shifted, "not": lambda a: scalar.subtract(scalar.negate(a), ONE),
    "and": lambda a, b: sorted_call("and", a, b), "or": lambda a, b: sorted_call("or", a, b),
    "xor": lambda a, b: _parity(a, b),
}  # fmt: skip


def _parity(*arguments: MonomialSum) -> MonomialSum:
    """The exclusive or: what comes twice is nothing."""
    odd: dict[MonomialSum, None] = {}
    for argument in arguments:
        inner = argument.call("xor")
        for part in inner.arguments if inner else (argument,):
            if part in odd:
                del odd[part]
            elif part != ZERO:
                odd[part] = None
    if len(odd) < 2:
        return next(iter(odd), ZERO)
    return scalar.atom(Apply("xor", tuple(sorted(odd, key=lambda form: form.key))))


def narrowed(a: MonomialSum, to: DType) -> MonomialSum:
    """Integers in fewer bits: a homomorphism of rings, so that it goes to the atoms."""
    total = ZERO
    for monomial, coefficient in a.terms:
        part = scalar.number(coefficient)
        for factor, exponent in monomial:
            part = scalar.multiply(part, scalar.power(_narrow_atom(factor, to), exponent))
        total = scalar.add(total, part)
    return total


def _narrow_atom(factor: scalar.Atom, to: DType) -> MonomialSum:
    if scalar.truth_valued(factor) or isinstance(factor, Size):  # an integer, of which fewer bits are left
        return scalar.atom(factor)
    if isinstance(factor, Apply) and factor.function.startswith("narrow "):
        return scalar.atom(Apply(f"narrow {to}", factor.arguments))
    if isinstance(factor, Apply) and factor.function.startswith("convert "):  # extended first: the bits below stay
        source = DTYPES[factor.function.split()[1]]
        if source.kind in ("int", "uint"):
            (inner,) = factor.arguments
            if to.bits == source.bits:
                return inner
            return narrowed(inner, to) if to.bits < source.bits else scalar.atom(Apply(f"convert {source} {to}", (inner,)))
    return scalar.atom(Apply(f"narrow {to}", (scalar.atom(factor),)))
