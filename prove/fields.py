"""Identities of polynomials, tested at random points of finite fields.

A float tensor becomes one of residues modulo a prime; sums, products and what is made of them are computed there exactly. Two terms that
are different quotients of polynomials agree at a random point with probability at most d / p, where d is the degree of their difference
with denominators cleared (Schwartz 1980, Zippel 1979); the probabilities of as many points multiply. This says nothing about
rounding, and it never refutes: a term with a rounded constant may differ where floats do not. What is no polynomial (comparisons, extremes,
roots, exponentials) is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from coset.ir.errors import CosetError
from coset.ir.op import Array
from coset.ir.term import Term, input_term, intern, make, topological
from coset.ir.types import I64, TensorType
from coset.rules.definition import expand, is_defined

PRIMES = (1048573, 1048571, 1048559, 1048549, 1048517, 1048507)
"""Below 2^20: two million products of residues fit 64 bits, so that NumPy's integers are exact."""
MOST = 1 << 21  # terms of a sum of products
RATIONAL = ("add", "subtract", "multiply", "negate", "divide")
SUMS = ("dot_general", "convolution")  # sums of products, which the meaning on integers computes


class NoQuotient(Exception):
    """A term that is no quotient of polynomials, and why."""


class Unlucky(Exception):
    """A denominator is 0 at this point: another one is drawn."""


@dataclass(frozen=True)
class Identity:
    """Two terms agreed at so many points; different ones do so with probability at most `error`. `denominator`: the degree of theirs, 0 of
    polynomials, which have values everywhere."""

    points: int
    error: float
    denominator: int = 0


@dataclass(frozen=True)
class _Value:
    """Residues with the degrees of numerator and denominator; integers that no input decides have none."""

    array: Array
    degrees: tuple[int, int] | None


def identical(left: Term, right: Term, seed: int = 0, *, points: int = 4) -> Identity | None:
    """Whether two terms of floats with numbers for dims agree at `points` random points; None where they differ at one.

    Raises:
        Refused: one of them is no quotient of polynomials of its inputs.
    """
    generator, error, denominator, done, unlucky = np.random.default_rng(seed), 1.0, 0, 0, 0
    while done < points:
        prime = PRIMES[done % len(PRIMES)]
        try:
            a, b = evaluated((left, right), prime, generator)
        except Unlucky:
            unlucky += 1
            if unlucky > 4 * points:
                raise NoQuotient("a denominator that is always 0") from None
            continue
        if a.array.shape != b.array.shape or not np.array_equal(a.array, b.array):
            return None
        (n1, d1), (n2, d2) = a.degrees or (0, 0), b.degrees or (0, 0)
        error *= min(1.0, max(n1 + d2, n2 + d1) / prime)
        denominator = max(denominator, d1, d2)
        done += 1
    return Identity(points, error, denominator)


def evaluated(roots: Sequence[Term], prime: int, generator: np.random.Generator) -> list[_Value]:
    """The residues of `roots` where each input is a random one.

    Raises:
        Refused: a term is no quotient of polynomials.
        Unlucky: a denominator is 0.
    """
    values: dict[Term, _Value] = {}
    for term in topological(roots):
        values[term] = _value(term, [values[operand] for operand in term.operands], prime, generator)
    return [values[root] for root in roots]


def _value(term: Term, operands: Sequence[_Value], prime: int, generator: np.random.Generator) -> _Value:
    if not isinstance(term.type, TensorType) or term.type.static is None:
        raise NoQuotient(f"`{term.op}` gives {term.type}")
    name = term.op.name.removeprefix("stablehlo.")
    if not operands:
        return _leaf(term, prime, generator)
    if is_defined(term.op):
        inputs = [input_term(f"{i}", operand.type) for i, operand in enumerate(term.operands)]
        inner = dict(zip(inputs, operands, strict=True))
        body = expand(intern(term.op, tuple(inputs), term.attributes, term.regions, term.type))
        for each in topological([body]):
            if each not in inner:
                inner[each] = _value(each, [inner[operand] for operand in each.operands], prime, generator)
        return inner[body]
    arrays = [operand.array for operand in operands]
    if all(operand.degrees is None for operand in operands) and term.tensor.dtype.kind != "float":
        return _Value(np.asarray(_meant(term, term.operands, arrays)), None)
    if term.tensor.dtype.kind != "float":
        raise NoQuotient(f"`{term.op}` looks at numbers")
    known = [operand.degrees for operand in operands if operand.degrees is not None]
    if name in RATIONAL and len(known) == len(operands):
        return _rational(name, operands, prime)
    if name == "convert" and term.operands[0].tensor.dtype.kind == "float":
        return operands[0]
    if name in SUMS and len(known) == 2:
        (n1, d1), (n2, d2) = known
        return _summed(_integral(term, arrays), (n1 + n2, d1 + d2), _terms(name, term), prime)
    if name in ("reduce", "reduce_window") and term.attribute("combiner") == "add":
        shape = term.operands[0].tensor.static or ()
        return _summed(_integral(term, arrays), known[0], max(1, int(np.prod(shape))), prime)
    if term.op.has("movement") or (name == "select" and operands[0].degrees is None):
        return _Value(_integral(term, arrays) % prime, (max(n for n, _ in known), max(d for _, d in known)))
    raise NoQuotient(f"`{term.op}` is no quotient of polynomials")


def _leaf(term: Term, prime: int, generator: np.random.Generator) -> _Value:
    shape = term.tensor.static
    if term.tensor.dtype.kind != "float":
        if term.op.name == "builtin.input":
            raise NoQuotient("an input that is no float")
        return _Value(np.asarray(_meant(term, (), ())), None)
    if term.op.name == "builtin.input":
        return _Value(generator.integers(0, prime, shape, dtype=np.int64), (1, 0))
    try:
        numbers = np.asarray(_meant(term, (), ())).astype(np.float64)
    except CosetError as error:
        raise NoQuotient(error.message) from None
    if not np.isfinite(numbers).all():
        raise NoQuotient("a constant that is no number")
    residues = {number: _residue(Fraction(number), prime) for number in np.unique(numbers).tolist()}
    return _Value(np.array([residues[number] for number in numbers.reshape(-1).tolist()], np.int64).reshape(shape or ()), (0, 0))


def _residue(number: Fraction, prime: int) -> int:
    return number.numerator * pow(number.denominator, -1, prime) % prime


def _rational(name: str, operands: Sequence[_Value], prime: int) -> _Value:
    (a, *rest), degrees = [operand.array for operand in operands], [operand.degrees or (0, 0) for operand in operands]
    if name == "negate":
        return _Value(-a % prime, degrees[0])
    (b,), ((n1, d1), (n2, d2)) = rest, degrees
    if name == "multiply":
        return _Value(a * b % prime, (n1 + n2, d1 + d2))
    if name == "divide":
        return _Value(a * _inverse(b, prime) % prime, (n1 + d2, d1 + n2))
    return _Value((a + b if name == "add" else a - b) % prime, (max(n1 + d2, n2 + d1), d1 + d2))


def _inverse(array: Array, prime: int) -> Array:
    """The inverse of each residue, by Fermat's little theorem."""
    if (array == 0).any():
        raise Unlucky
    result, power, exponent = np.ones_like(array), array.copy(), prime - 2
    while exponent:
        result = result * power % prime if exponent & 1 else result
        power, exponent = power * power % prime, exponent >> 1
    return result


def _summed(array: Array, degrees: tuple[int, int], terms: int, prime: int) -> _Value:
    """A sum of so many terms of these degrees."""
    if terms > MOST:
        raise NoQuotient(f"a sum of {terms} terms")
    numerator, denominator = degrees
    return _Value(array % prime, (numerator + (terms - 1) * denominator, terms * denominator))


def _terms(name: str, term: Term) -> int:
    """How many products at most one element of a contraction is the sum of."""
    right = term.operands[1].tensor.static or ()
    if name == "convolution":
        return max(1, int(np.prod(right[1:])))
    return max(1, int(np.prod([right[axis] for axis in term.attribute("rhs_contract")])))


def _integral(term: Term, arrays: Sequence[Array]) -> Array:
    """The meaning of a term on residues in the place of its floats."""
    return np.asarray(_meant(term, term.operands, arrays))


def _meant(term: Term, operands: Sequence[Term], arrays: Sequence[Any]) -> Any:
    """The reference meaning of `term` where floats are 64-bit integers."""
    types = [TensorType(I64, x.tensor.shape) if x.tensor.dtype.kind == "float" else x.type for x in operands]
    attributes: Mapping[str, Any] = dict(term.attributes)
    if not operands:
        assert term.op.meaning is not None
        return term.op.meaning(term, arrays, {})
    again = make(term.op, [input_term(f"{i}", type) for i, type in enumerate(types)], dict(attributes))
    if again.op.meaning is None or again.regions:
        raise NoQuotient(f"`{term.op}` is not interpreted")
    return again.op.meaning(again, arrays, {})
