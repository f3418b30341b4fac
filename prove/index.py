"""Index arithmetic: polynomials over dims and index variables, simplified by what is known of their ranges.

An index variable is a dim symbol with a range 0 .. extent-1. Where an element exists, every extent on the way to it is at least 1;
other dims are at least 0. `nonnegative` is sound and incomplete: a polynomial that is linear in each variable takes its least
value at ends of the ranges, and one with no negative coefficient over variables that are not negative is not negative.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from coset.ir import dims
from coset.ir.dims import Atom, Dim, Monomial, Poly, Shape

MOST_VARIABLES = 8  # of which all ends are tried together
MOST_FACTS = 8  # of which two are used together
INDEX = (1 << 31) - (1 << 16)  # no dim, and no number that says where an op reads, is larger: a few more are still an i32
Bounds = tuple[float, float]


@dataclass(frozen=True)
class IndexFacts:
    """What is known where an element stands: the extents of index variables, and polynomials that are not negative."""

    extents: Mapping[str, Dim] = field(default_factory=dict)
    facts: tuple[Dim, ...] = ()
    positive: frozenset[str] = frozenset()  # further dims that are at least 1

    def with_variables(self, extents: Mapping[str, Dim]) -> "IndexFacts":
        """The same with more index variables."""
        return IndexFacts({**self.extents, **extents}, self.facts, self.positive)

    def rebound(self, extents: Mapping[str, Dim]) -> "IndexFacts":
        """The same with index variables that stand for others now: what was known of variables of these names is not known of them."""
        kept = tuple(fact for fact in self.facts if dims.symbols(fact).isdisjoint(extents))
        return IndexFacts({**self.extents, **extents}, kept, self.positive)

    def with_fact(self, fact: Dim) -> "IndexFacts":
        """The same where `fact` >= 0 too."""
        return IndexFacts(self.extents, (*self.facts, fact), self.positive)

    def nonnegative(self, dim: Dim) -> bool:
        """True when `dim` >= 0 could be shown."""
        found = self._told.get(dim)
        if found is None:
            found = self._told[dim] = self._nonnegative(dim)
        return found

    @cached_property
    def _told(self) -> dict[Dim, bool]:
        return {}

    @cached_property
    def _simple(self) -> dict[Dim, Dim]:
        return {}

    def _nonnegative(self, dim: Dim) -> bool:
        if self._shown(dim):
            return True
        left = [dims.subtract(dim, fact) for fact in self.facts]
        if any(map(self._shown, left)):
            return True
        pairs = itertools.combinations(range(len(left)), 2) if len(left) <= MOST_FACTS else ()
        return any(self._shown(dims.subtract(left[i], self.facts[j])) for i, j in pairs)

    def bounds(self, dim: Dim) -> Bounds:
        """Numbers that `dim` is not below and not above, as far as is seen; infinite ones where nothing is seen.

        An index that is within an extent is less than `INDEX`, as the extent is no larger.
        """
        least, greatest = self._interval(dim)
        if least < 0 and self.nonnegative(dim):
            least = 0
        if greatest > INDEX and any(self.nonnegative(dims.subtract(dims.subtract(extent, dim), 1)) for extent in self.extents.values()):
            greatest = INDEX - 1
        return least, greatest

    def _interval(self, dim: Dim) -> Bounds:
        """The sum of what its terms are at least, and of what they are at most."""
        if isinstance(dim, int):
            return dim, dim
        least: float = 0
        greatest: float = 0
        for monomial, coefficient in dim.terms:
            low: float = 1
            high: float = 1
            for atom in monomial:
                below, above = self._between(atom)
                if below < 0:
                    return -math.inf, math.inf
                low, high = low * below, high * above
            ends = sorted((coefficient * low, coefficient * high))
            least, greatest = least + ends[0], greatest + ends[1]
        return least, greatest

    def _between(self, atom: Atom) -> Bounds:
        """The bounds of a symbol, a quotient, a rest or an extreme; infinite ones where an operand may be negative."""
        if not atom.args:
            extent = self.extents.get(atom.name)
            return 0, INDEX if extent is None else extent - 1 if isinstance(extent, int) else INDEX - 1
        (low, high), (below, above) = map(self._interval, atom.args)
        if low < 0 or below < 0:
            return -math.inf, math.inf
        if atom.name in ("floordiv", "mod"):
            return 0, high if atom.name == "floordiv" else min(high, above)
        pick = max if atom.name == "max" else min
        return pick(low, below), pick(high, above)

    def within(self, index: Dim, extent: Dim) -> bool:
        """True when 0 <= index < extent could be shown."""
        return self.nonnegative(index) and self.nonnegative(dims.subtract(dims.subtract(extent, index), 1))

    def _shown(self, dim: Dim) -> bool:
        if isinstance(dim, int):
            return dim >= 0
        names = sorted(name for name in dims.symbols(dim) if name in self.extents)
        if len(names) > MOST_VARIABLES:
            return False
        atoms = _inside(dim)
        if any(name in atoms or _degree(dim, name) > 1 for name in names):
            return self._by_coefficients(dim)
        for choice in itertools.product((False, True), repeat=len(names)):
            ends = {name: dims.subtract(self.extents[name], 1) if high else 0 for name, high in zip(names, choice, strict=True)}
            if not self._by_coefficients(dims.substitute(dim, ends)):
                return False
        return True

    def _by_coefficients(self, dim: Dim) -> bool:
        """No negative coefficient is left once each dim that is at least 1 is written as 1 + a number that is not negative, or once
        an extent less 1 is taken away."""
        if self._plainly(dim):
            return True
        there = {monomial for monomial, coefficient in dim.terms if coefficient > 0} if not isinstance(dim, int) else set()
        return any(leading in there and self._plainly(dims.subtract(dim, less)) for leading, less in self._long)

    @cached_property
    def _long(self) -> tuple[tuple[Monomial, Dim], ...]:
        """The extents that are sums, less 1, each with a monomial that it has."""
        found = {extent for extent in self.extents.values() if not isinstance(extent, int) and not _factors(extent)}
        return tuple((extent.terms[0][0], dims.subtract(extent, 1)) for extent in found)

    @cached_property
    def _least_one(self) -> frozenset[str]:
        """The dims that are at least 1."""
        return self.positive.union(*map(_factors, self.extents.values()))

    def _plainly(self, dim: Dim) -> bool:
        shifted = dims.substitute(dim, {name: dims.add(dims.symbol(name), 1) for name in dims.symbols(dim) & self._least_one})
        if isinstance(shifted, int):
            return shifted >= 0
        return all(coefficient >= 0 for _, coefficient in shifted.terms) and all(self._atom(a) for m, _ in shifted.terms for a in m)

    def _atom(self, atom: Atom) -> bool:
        """A symbol is not negative; a quotient or a rest is not where its operands are not."""
        return not atom.args or all(self._shown(argument) for argument in atom.args)

    def simplify(self, dim: Dim) -> Dim:
        """`dim` with the quotients and rests taken that the ranges decide."""
        if isinstance(dim, int):
            return dim
        found = self._simple.get(dim)
        if found is None:
            found = self._simple[dim] = self._simplify(dim)
        return found

    def _simplify(self, dim: Poly) -> Dim:
        total: Dim = 0
        for monomial, coefficient in dim.terms:
            factors: Dim = coefficient
            for atom in monomial:
                factors = dims.multiply(factors, self._simplified(atom))
            total = dims.add(total, factors)
        return _rejoined(total)

    def _simplified(self, atom: Atom) -> Dim:
        if not atom.args:
            return Poly((((atom,), 1),))
        arguments = [self.simplify(argument) for argument in atom.args]
        if atom.name in ("floordiv", "mod"):
            quotient, rest = self.divided(arguments[0], arguments[1])
            return quotient if atom.name == "floordiv" else rest
        larger, smaller = arguments if atom.name == "max" else arguments[::-1]
        if self.nonnegative(dims.subtract(larger, smaller)):
            return arguments[0]
        if self.nonnegative(dims.subtract(smaller, larger)):
            return arguments[1]
        return dims.FUNCTIONS[atom.name](*arguments)

    def divided(self, dividend: Dim, divisor: Dim) -> tuple[Dim, Dim]:
        """Quotient and rest of two simplified dims; the divisor is at least 1."""
        whole: Dim = 0
        rest: Dim = 0
        for monomial, coefficient in dividend.terms if isinstance(dividend, Poly) else (((), dividend),):
            part: Dim = Poly(((monomial, coefficient),)) if monomial else coefficient
            exact = dims.divide_exactly(part, divisor)
            if exact is None:
                rest = dims.add(rest, part)
            else:
                whole = dims.add(whole, exact)
        if self.within(rest, divisor):
            return whole, rest
        again = dims.add(rest, divisor)
        if isinstance(rest, int) and rest < 0 and self.within(again, divisor):
            return dims.subtract(whole, 1), again  # what is a little less than nothing goes into the quotient below
        atom = _lone(rest)
        if atom is not None and atom.name == "floordiv" and self.within(atom.args[0], dims.multiply(atom.args[1], divisor)):
            return whole, rest  # a // b < c where a < b c
        quotient = self._nested(rest, divisor)
        if quotient is None:
            return dims.add(whole, dims.floordiv(rest, divisor)), dims.mod(rest, divisor)
        return dims.add(whole, quotient), dims.mod(rest, divisor)

    def _nested(self, dividend: Dim, divisor: Dim) -> Dim | None:
        """(a // b) // c is a // (b c); and (a mod b c) // c is (a // c) mod b."""
        atom = _lone(dividend)
        if atom is None or len(atom.args) != 2:
            return None
        inner, by = atom.args
        if atom.name == "floordiv":
            return self.divided(inner, dims.multiply(by, divisor))[0]
        share = dims.divide_exactly(by, divisor)
        if atom.name == "mod" and share is not None:
            return self.divided(self.divided(inner, divisor)[0], share)[1]
        return None


def _factors(extent: Dim) -> frozenset[str]:
    """The symbols that are at least 1 where `extent` is: of a product less a number, not of a sum or a difference of dims."""
    products = [(m, c) for m, c in extent.terms if m] if isinstance(extent, Poly) else []
    if len(products) != 1 or products[0][1] < 0 or any(not m and c > 0 for m, c in extent.terms):  # type: ignore[union-attr]
        return frozenset()
    named = frozenset(atom.name for atom in products[0][0] if not atom.args)
    quotients = [atom.args[0] for atom in products[0][0] if atom.name == "floordiv"]
    return named.union(*(_factors(dividend) for dividend in quotients))


def _lone(dim: Dim) -> Atom | None:
    if isinstance(dim, Poly) and len(dim.terms) == 1:
        ((monomial, coefficient),) = dim.terms
        if coefficient == 1 and len(monomial) == 1:
            return monomial[0]
    return None


def _inside(dim: Poly) -> frozenset[str]:
    """The symbols that occur in quotients, rests and extremes."""
    return frozenset().union(*(dims.symbols(argument) for m, _ in dim.terms for atom in m for argument in atom.args))


def _degree(dim: Poly, name: str) -> int:
    return max(sum(atom.name == name and not atom.args for atom in monomial) for monomial, _ in dim.terms)


def _rejoined(dim: Dim) -> Dim:
    """b (a // b) + a mod b is a."""
    while isinstance(dim, Poly):
        for monomial, coefficient in dim.terms:
            found = next((atom for atom in monomial if atom.name == "mod"), None)
            if found is None:
                continue
            rest = list(monomial)
            rest.remove(found)
            outer: Dim = dims.multiply(coefficient, Poly(((tuple(rest), 1),)) if rest else 1)
            inner = _lone(found.args[0])
            quotient = dims.floordiv(*found.args)
            if inner is not None and inner.name == "floordiv":  # (a // b) // c is written a // (b c)
                quotient = dims.floordiv(inner.args[0], dims.multiply(inner.args[1], found.args[1]))
            whole = dims.multiply(outer, dims.multiply(found.args[1], quotient))
            if _holds(dim, whole):
                plain = dims.multiply(outer, found.args[0])
                dim = dims.add(dims.subtract(dims.subtract(dim, whole), Poly(((monomial, coefficient),))), plain)
                break
        else:
            return dim
    return dim


def _holds(dim: Poly, part: Dim) -> bool:
    """True when every term of `part` is a term of `dim`."""
    return isinstance(part, Poly) and set(part.terms) <= set(dim.terms)


def linear(index: Sequence[Dim], shape: Shape) -> Dim:
    """The position in row-major order of the element at `index`."""
    position: Dim = 0
    for i, extent in zip(index, shape, strict=True):
        position = dims.add(dims.multiply(position, extent), i)
    return position


def spread(position: Dim, shape: Shape, known: IndexFacts) -> list[Dim]:
    """The index of the element at `position` in row-major order."""
    index: list[Dim] = []
    for axis in reversed(range(len(shape))):
        if axis == 0:
            index.append(position)
        else:
            position, rest = known.divided(position, shape[axis])
            index.append(known.simplify(rest))
            position = known.simplify(position)
    return index[::-1]


def reshaped(index: Sequence[Dim], source: Shape, target: Shape, known: IndexFacts) -> list[Dim]:
    """The index into a tensor of shape `source` of the element at `index` of the same tensor under shape `target`.

    The dims are taken in the smallest groups with equal products, so that what a reshape leaves alone stays as it is.
    """
    result: list[Dim] = []
    i = j = 0
    while i < len(source) or j < len(target):
        first, second = i, j
        left: Dim = 1
        right: Dim = 1
        while True:
            if left == right and (i > first or j > second):
                break
            if j < len(target) and (i >= len(source) or _shorter(right, left, j - second, i - first)):
                right, j = dims.multiply(right, target[j]), j + 1
            elif i < len(source):
                left, i = dims.multiply(left, source[i]), i + 1
            else:
                break
        if left != right:  # no groups: all that is left at once
            i, j = len(source), len(target)
        position = linear(index[second:j], target[second:j])
        result += spread(known.simplify(position), source[first:i], known) if i > first else []
    return result


def _shorter(a: Dim, b: Dim, count_a: int, count_b: int) -> bool:
    """Which side of a group to lengthen: the one that divides the other, else the one with fewer dims."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b if a != b else count_a <= count_b
    if a != b and dims.divide_exactly(b, a) is not None:
        return True
    if a != b and dims.divide_exactly(a, b) is not None:
        return False
    return count_a <= count_b
