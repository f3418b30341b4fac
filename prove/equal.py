"""Whether two terms are equal for all sizes: element by element, by normal forms, by clearing denominators, and with Z3 for the rest.

`compare` answers with the reason where it cannot show equality; it never claims that the terms differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.term import Term, get, topological
from coset.ir.types import TensorType, TupleType
from coset.prove import scalar
from coset.prove.denote import Denotation, Split
from coset.prove.error_bound import coarsest
from coset.prove.exact_functions import exact
from coset.prove.functions import NONNEGATIVE, NONZERO, OTHER, Unprovable, sorted_call
from coset.prove.index import IndexFacts
from coset.prove.scalar import Base, MonomialSum
from coset.prove.solver import solved
from coset.prove.substitution import assumed, truths

MOST_PREDICATES = 4  # of which both values are looked at
MOST_CASES = 64  # of conditions on the index
NEAR = Fraction(1, 10**40)  # relative: numbers that are no fractions (roots, exponentials) are known to 60 digits


@dataclass(frozen=True)
class Shown:
    """How equality was shown: the number of cases, whether Z3 was needed, and whether it is shown of integers of this width only."""

    cases: int
    solver: bool
    widths: bool = False


class Open(Exception):
    """Equality could not be shown; the text says what is left."""


@dataclass(frozen=True)
class Sense:
    """What equal means: `real`: floats are real numbers, else bit by bit up to `exceptions`; `domains`: both sides must be undefined
    for the same inputs; `opaque`: elementwise ops that stay uninterpreted; `rounds`: written conversions round over the reals too, but for
    those by which a definition that was opened stores its result, `stored`."""

    real: bool
    domains: bool = False
    exceptions: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()
    rounds: bool = True
    stored: frozenset[Term] = frozenset()


Numbers = tuple[tuple[Term, Decimal], ...]  # constants of a side, with the numbers that they are the roundings of


def compare(left: Term, right: Term, sense: Sense, facts: tuple[Dim, ...] = (), numbers: tuple[Numbers, Numbers] = ((), ())) -> Shown:
    """Show that `left` and `right` are equal for all values of their inputs, and of their dims where `facts` are not negative. Constants
    are what `numbers` say, or else all of them are as they are stored.

    Raises:
        Open: it could not be shown.
    """
    if isinstance(left.type, TupleType):
        shown = [compare(get(left, i), get(right, i), sense, facts, numbers) for i in range(len(left.type.items))]
        return Shown(sum(s.cases for s in shown), any(s.solver for s in shown), any(s.widths for s in shown))
    if sense.domains and coarsest([right]) > coarsest([left]):
        raise Open("the right side computes in a coarser float type than the left side")
    assert isinstance(left.type, TensorType) and left.type.shape is not None
    shape = left.type.shape
    if 0 in shape and _of_nothing((left, right)):  # there is no element
        return Shown(1, False)
    index: list[Dim] = [0 if dim == 1 else dims.symbol(f"i:{axis}") for axis, dim in enumerate(shape)]
    known = IndexFacts({f"i:{axis}": dim for axis, dim in enumerate(shape) if dim != 1}, facts)
    waiting, cases, solver, widths = [known], 0, False, False
    while waiting:
        known = waiting.pop()
        cases += 1
        if cases > MOST_CASES:
            raise Open(f"more than {MOST_CASES} cases of the index")
        try:
            found = _case(left, right, tuple(index), known, sense, numbers)
            solver, widths = solver or found.solver, widths or found.widths
        except Split as split:
            waiting += [
                known.with_fact(fact)
                for fact in (split.dim, dims.subtract(-1, split.dim))
                if not known.nonnegative(dims.subtract(-1, fact))
            ]
        except (Unprovable, CosetError, RecursionError) as error:
            raise Open(str(error) or type(error).__name__) from None
    return Shown(cases, solver, widths)


def _of_nothing(pair: tuple[Term, Term]) -> bool:
    """Whether an input has a dim of 0, as a size that a condition tells apart may be. A slice drawn without elements is looked at as if it
    had some: it stands for others."""
    inputs = [term.type for term in topological(pair) if term.op.name == "builtin.input"]
    return any(isinstance(type, TensorType) and 0 in (type.shape or ()) for type in inputs)


def _case(left: Term, right: Term, index: tuple[Dim, ...], known: IndexFacts, sense: Sense, numbers: tuple[Numbers, Numbers]) -> Shown:
    if sense.real and any(numbers):
        try:
            return _equal_in(left, right, index, known, sense, numbers)
        except Open:
            pass  # numbers that definitions state are stored: so may be those of the rule
    return _equal_in(left, right, index, known, sense, ((), ()))


def _equal_in(left: Term, right: Term, index: tuple[Dim, ...], known: IndexFacts, sense: Sense, numbers: tuple[Numbers, Numbers]) -> Shown:
    """One case of the index, shown with these numbers for constants."""
    shown, divides = _equal_forms(left, right, index, known, sense, numbers)
    if sense.domains and divides:
        try:
            _equal_forms(left, right, index, known, sense, numbers, poles=True)
        except (Open, Unprovable) as error:
            raise Open(f"where a divisor is 0: {error}") from None
    return shown


def _equal_forms(
    left: Term,
    right: Term,
    index: tuple[Dim, ...],
    known: IndexFacts,
    sense: Sense,
    numbers: tuple[Numbers, Numbers],
    *,
    poles: bool = False,
) -> tuple[Shown, bool]:
    """How the forms of both sides are shown to be equal, and whether something that may be 0 is divided by."""
    sides = [
        Denotation(
            known, real=sense.real, rounds=sense.rounds, exceptions=sense.exceptions, opaque=sense.opaque, numbers=dict(own),
            stored=sense.stored, poles=poles,
        )
        for own in numbers
    ]  # fmt: skip
    stored = (_unstored(term) if sense.real and sense.rounds else term for term in (left, right))
    a, b = (side.element(term, index) for side, term in zip(sides, stored, strict=True))
    solver = False
    real = sense.real and left.tensor.dtype.kind == "float"  # integers wrap around, and no rounding excuses them
    if not equal(a, b, real=real, tolerance=NEAR if real else Fraction(0)) and not (not real and _by_cases(a, b, left.tensor)):
        tame = not (poles and real and any(side.reals.is_wild(form) for side, form in zip(sides, (a, b), strict=True)))
        if not (tame and solved(a, b, real=real)):  # to Z3 what may be infinite is a number
            raise Open(f"left is {_short(a)}; right is {_short(b)}")
        solver = True
    shown = Shown(1, solver, any(side.widths for side in sides))
    if not sense.real:
        return shown, False
    needs = [side.needed() for side in sides]
    _compare_domains(*needs, same=sense.domains)
    if poles and "nonfinite" not in sense.exceptions and any(side.reals.is_risky(form) for side, form in zip(sides, (a, b), strict=True)):
        raise Open("an infinity meets another one")
    divides = any(kind in (NONZERO, OTHER) for needed in needs for kind, _ in needed)
    return shown, divides or any(side.reals.tells_zeros for side in sides)


def _unstored(term: Term) -> Term:
    """What a conversion between floats stores as the result: results are compared once they are rounded to their type."""
    if term.op.name != "stablehlo.convert" or {term.tensor.dtype.kind, term.operands[0].tensor.dtype.kind} != {"float"}:
        return term
    return term.operands[0]


def _by_cases(a: MonomialSum, b: MonomialSum, type: TensorType, depth: int = 0) -> bool:
    """Whether the forms are one for both values of each predicate that they speak of: `select` goes in and out of what has no laws."""

    def rebuild(function: str, arguments: tuple[MonomialSum, ...]) -> MonomialSum | None:
        if type.dtype.kind == "complex":
            return exact(function, arguments, frozenset()) if function in ("add", "negate") else None
        if type.dtype.kind == "float" and function in ("add", "multiply", "negate", "maximum", "minimum", "divide", "abs"):
            return exact(function, arguments, frozenset())
        return sorted_call(function, *arguments) if function.split()[0] in ("maximum", "minimum", "and", "or") else None

    if a == b:
        return True
    predicates = sorted({*truths(a), *truths(b)}, key=lambda one: (len(one.key), one.key))
    if not predicates or depth == MOST_PREDICATES:
        return False
    sides = [[assumed(form, predicates[0], value, rebuild) for form in (a, b)] for value in (0, 1)]
    return all(_by_cases(left, right, type, depth + 1) for left, right in sides)


def equal(a: MonomialSum, b: MonomialSum, *, real: bool, tolerance: Fraction) -> bool:
    """Whether the normal forms are one, after denominators are cleared where floats are real numbers."""
    gap = scalar.subtract(a, b)
    if not gap.terms:
        return True
    if not real:
        return False
    if _negligible(gap, a, b, tolerance):
        return True
    for _ in range(6):
        below = _denominator(gap)
        if below is None:
            return False
        base, degree = below
        factor = scalar.power(base, degree)
        gap, a, b = scalar.multiply(gap, factor), scalar.multiply(a, factor), scalar.multiply(b, factor)
        if not gap.terms or _negligible(gap, a, b, tolerance):
            return True
    return False


def _denominator(form: MonomialSum) -> tuple[MonomialSum, Fraction] | None:
    """A sum that divides terms of `form`, and its highest power there."""
    found: dict[MonomialSum, Fraction] = {}
    for monomial, _ in form.terms:
        for factor, exponent in monomial:
            if isinstance(factor, Base) and exponent < 0 and exponent.denominator == 1:
                found[factor.form] = max(found.get(factor.form, Fraction(0)), -exponent)
    return next(iter(sorted(found.items(), key=lambda item: item[0].key)), None)


def _negligible(gap: MonomialSum, a: MonomialSum, b: MonomialSum, tolerance: Fraction) -> bool:
    """Every coefficient of the difference is rounding noise beside those of the sides."""
    size: dict[scalar.Monomial, Fraction] = {}
    for form in (a, b):
        for monomial, coefficient in form.terms:
            size[monomial] = max(size.get(monomial, Fraction(0)), abs(coefficient))
    return all(abs(c) <= tolerance * size.get(m, Fraction(0)) for m, c in gap.terms)


_NEEDS = {NONZERO: "!= 0", NONNEGATIVE: ">= 0", OTHER: "to be defined"}
Needed = Mapping[tuple[str, MonomialSum], MonomialSum]


def _compare_domains(left: Needed, right: Needed, *, same: bool) -> None:
    """Refuse a right side that is undefined somewhere where the left side is defined, and the reverse where domains must be the `same`."""
    for where, one, other in (("right", right, left), ("left", left, right))[: 1 + same]:
        for (kind, form), condition in sorted(one.items(), key=lambda item: (item[0][0], item[0][1].key)):
            if not _told(kind, form, condition, other) and (same or not _follows(kind, form, condition, other)):
                raise Open(
                    f"only the {where} side needs {form.key} {_NEEDS[kind]}{'' if condition == scalar.ONE else f' where {condition}'}"
                )


def _told(kind: str, form: MonomialSum, condition: MonomialSum, needed: Needed) -> bool:
    """Whether a form is needed, under a condition, where others are."""
    there = needed.get((kind, form), scalar.ZERO)
    return scalar.multiply(condition, there) == condition


def _follows(kind: str, form: MonomialSum, condition: MonomialSum, needed: Needed) -> bool:
    """Whether a form is not negative where others are: a sum of products of these and of squares."""

    def fine(factor: scalar.Atom, degree: Fraction) -> bool:
        base = factor.form if isinstance(factor, Base) else scalar.atom(factor)
        even = degree.denominator % 2 == 0 or (degree.denominator == 1 and int(degree) % 2 == 0)
        return even or scalar.positive(factor) or _told(NONNEGATIVE, base, condition, needed)

    return kind == NONNEGATIVE and all(c > 0 and all(fine(factor, degree) for factor, degree in m) for m, c in form.terms)


def _short(form: MonomialSum, most: int = 160) -> str:
    text = str(form)
    return text if len(text) <= most else text[:most] + " .."
