"""Scalar functions of the hub in the normal form of `prove.scalar`, by element type and promise.

Floats over the reals: `Reals`; bit by bit they are the atoms of `prove.exact_functions`. Integers: the ring modulo 2^n, other operations
atoms. Booleans: polynomials over 0 and 1, which decide every propositional equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction

from coset.ir.dims import Dim
from coset.ir.types import DType
from coset.prove import scalar
from coset.prove.scalar import ONE, ZERO, Apply, MonomialSum


class Unprovable(Exception):
    """The prover has no way to go on; the text says why."""


NONZERO, NONNEGATIVE, OTHER = "nonzero", "nonnegative", "other"  # what is wanted of a form


@dataclass(frozen=True)
class Need:
    """That a form is a good argument where the `facts` are not negative and all `conditions` hold, which choose where it stands."""

    kind: str
    form: MonomialSum
    facts: tuple[Dim, ...]
    conditions: tuple[MonomialSum, ...] = ()


NOTHING_NEEDED: frozenset[Need] = frozenset()


@dataclass
class Domain:
    """Where the reals leave a side undefined: sums that must not be 0, or not be negative, and other arguments that must be good ones.

    `facts` says what is known of bound variables where a form is asked for; `positive` whether a dim is known to be at least 1. What the
    element of a term needs is collected for that element: it is needed again, under other conditions, wherever the element is looked up.
    """

    facts: Callable[[], tuple[Dim, ...]]
    positive: Callable[[Dim], bool]
    collected: list[set[Need]] = field(default_factory=lambda: [set()])

    @property
    def needs_of_all(self) -> frozenset[Need]:
        """What is needed of all that was looked at."""
        return frozenset(self.collected[0])

    def begin(self) -> None:
        """Collect what an element needs apart."""
        self.collected.append(set())

    def end(self) -> frozenset[Need]:
        """What was needed since `begin`, which what is around needs too."""
        own = self.collected.pop()
        if not own:
            return NOTHING_NEEDED
        found = frozenset(own)
        self.again(found)
        return found

    def again(self, found: frozenset[Need]) -> None:
        """Need what an element needs that was looked at before."""
        self.collected[-1] |= found

    @contextmanager
    def under(self, condition: MonomialSum) -> Iterator[None]:
        """Inside, what is needed is needed where the condition is 1."""
        self.collected.append(set())
        yield
        inner = self.collected.pop()
        self.again(frozenset(replace(need, conditions=(condition, *need.conditions)) for need in inner))

    def needs_nonzero(self, form: MonomialSum) -> None:
        if len(form.terms) == 1 and form.terms[0][0]:  # a product is 0 where a factor is, a power where its base is
            for factor, _ in form.terms[0][0]:
                self._add_nonzero(factor.form if isinstance(factor, scalar.Base) else scalar.atom(factor))
        else:
            self._add_nonzero(form)

    def _add_nonzero(self, form: MonomialSum) -> None:
        if not self.surely_positive(form) and not self.surely_positive(scalar.negate(form)):
            self._add(NONZERO, _normal(form))

    def _add(self, kind: str, form: MonomialSum) -> None:
        self.collected[-1].add(Need(kind, form, self.facts()))

    def needs_nonnegative(self, form: MonomialSum) -> None:
        root = _power_of_one(form)
        if root is not None and (root[1].denominator % 2 == 0 or (root[1].denominator == 1 and int(root[1]) % 2 == 0)):
            return  # a root is not negative (what it is of was asked for when it was made), nor is a square
        form = root[0] if root is not None and root[1].denominator == 1 else form
        if not self._surely_nonnegative(form):
            self._add(NONNEGATIVE, form)

    def needs(self, form: MonomialSum) -> None:
        self._add(OTHER, form)

    def surely_positive(self, form: MonomialSum) -> bool:
        """True when every term is a positive number times positive atoms."""
        return bool(form.terms) and all(c > 0 and all(self._positive(atom) for atom, _ in m) for m, c in form.terms)

    def _surely_nonnegative(self, form: MonomialSum) -> bool:
        """True when every term is a positive number times atoms that are positive, or sums of what is not negative."""
        return all(c > 0 and all(self._positive(a) or self._sums_up(a) for a, _ in m) for m, c in form.terms)

    def _sums_up(self, atom: scalar.Atom) -> bool:
        return isinstance(atom, scalar.Fold) and atom.combiner == "add" and self._surely_nonnegative(atom.body)

    def _positive(self, atom: scalar.Atom) -> bool:
        if isinstance(atom, scalar.Fold):  # of some places
            return atom.combiner == "add" and self.surely_positive(atom.body) and all(self.positive(extent) for _, extent in atom.variables)
        return self.positive(scalar.dim(atom)) if isinstance(atom, scalar.Size) else scalar.positive(atom)


_HALF = Fraction(1, 2)


def truth(function: str, *arguments: MonomialSum) -> MonomialSum:
    """A predicate that stays uninterpreted."""
    return scalar.atom(Apply(function, arguments, truth=True))


def negation(a: MonomialSum) -> MonomialSum:
    """Not, of 0 or 1."""
    return scalar.subtract(ONE, a)


def choice(condition: MonomialSum, a: MonomialSum, b: MonomialSum) -> MonomialSum:
    """a where the condition is 1, b where it is 0."""
    if a == b:
        return a
    return scalar.add(scalar.multiply(condition, a), scalar.multiply(negation(condition), b))


# ---------------------------------------------------------------- booleans


def either(a: MonomialSum, b: MonomialSum) -> MonomialSum:
    """Or, of 0 and 1."""
    return scalar.subtract(scalar.add(a, b), scalar.multiply(a, b))


def _differ(a: MonomialSum, b: MonomialSum) -> MonomialSum:
    return scalar.subtract(scalar.add(a, b), scalar.scale(scalar.multiply(a, b), 2))


BOOLS: dict[str, Callable[..., MonomialSum]] = {
    "and": scalar.multiply, "multiply": scalar.multiply, "minimum": scalar.multiply, "or": either, "add": either,
    "maximum": either, "xor": _differ, "not": negation,
}  # fmt: skip


def compare_bools(direction: str, a: MonomialSum, b: MonomialSum) -> MonomialSum:
    """Comparison of truth values, false before true."""
    table = {
        "EQ": negation(_differ(a, b)), "NE": _differ(a, b), "LT": scalar.multiply(negation(a), b), "GT": scalar.multiply(a, negation(b)),
    }  # fmt: skip
    if direction in table:
        return table[direction]
    return negation(table["GT"]) if direction == "LE" else negation(table["LT"])


# ---------------------------------------------------------------- what several kinds have


def sorted_call(function: str, *arguments: MonomialSum) -> MonomialSum:
    """An associative, commutative and idempotent function: nested ones are one, each operand counts once."""
    found: dict[MonomialSum, None] = {}
    for argument in arguments:
        inner = argument.call(function)
        found.update(dict.fromkeys(inner.arguments if inner else (argument,)))
    if len(found) == 1:
        return next(iter(found))
    return scalar.atom(Apply(function, tuple(sorted(found, key=lambda form: form.key))))


def conversion(form: MonomialSum) -> Apply | None:
    """The conversion between element types that the form is, or None."""
    return form.alone if isinstance(form.alone, Apply) and form.alone.function.startswith("convert ") else None


# ---------------------------------------------------------------- the reals

# functions with f(-x) = -f(x) that have no form of their own
ODD = ("erf", "sine", "tan", "asin", "atan", "asinh", "atanh", "erf_inv", "round_nearest_even", "round_nearest_afz")


class Reals:
    """Functions over the reals; roots, logarithms and reciprocals note where they are defined in `domain`."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.tells_zeros = False  # whether a function was met that tells the zeros apart, beside quotients
        self.table: dict[str, Callable[..., MonomialSum]] = {
            "add": scalar.add, "subtract": scalar.subtract, "multiply": scalar.multiply, "negate": scalar.negate,
            "divide": lambda a, b: scalar.multiply(a, self.inverse(b)), "power": self.power,
            "sqrt": lambda a: self.root(a, _HALF), "rsqrt": lambda a: self.inverse(self.root(a, _HALF)),
            "cbrt": lambda a: scalar.odd("cbrt", a),
            "exponential": scalar.exponential, "exponential_minus_one": lambda a: scalar.subtract(scalar.exponential(a), ONE),
            "log": self.log, "log_plus_one": lambda a: self.log(scalar.add(ONE, a)), "logistic": self.logistic,
            "tanh": lambda a: scalar.subtract(scalar.scale(self.logistic(scalar.scale(a, 2)), 2), ONE),
            "maximum": lambda a, b: scalar.maximum((a, b)), "minimum": lambda a, b: scalar.minimum((a, b)),
            "abs": lambda a: scalar.maximum((a, scalar.negate(a))), "sign": lambda a: scalar.odd("sign", a),
            "sinh": lambda a: scalar.scale(scalar.subtract(scalar.exponential(a), scalar.exponential(scalar.negate(a))), _HALF),
            "cosh": lambda a: scalar.scale(scalar.add(scalar.exponential(a), scalar.exponential(scalar.negate(a))), _HALF),
            "erfc": lambda a: scalar.subtract(ONE, scalar.odd("erf", a)), "cosine": lambda a: scalar.even("cosine", a),
        }  # fmt: skip
        for name in ODD:
            self.table[name] = self._odd(name)

    def summed(self, form: MonomialSum, body: MonomialSum = ZERO) -> None:
        """Hear of a form that is made otherwise and is +0 where it is 0; of a sum of a `body`."""

    def is_wild(self, form: MonomialSum) -> bool:
        """Whether something in a form may be infinite of finite numbers."""
        return False

    def is_risky(self, form: MonomialSum) -> bool:
        """Whether a law of the reals was used on what may be infinite, so that an infinity and a NaN may be exchanged."""
        return False

    def read(self, *forms: MonomialSum) -> None:
        """Hear of the operands of what is no number, or no function of `table`."""

    def picked(self, form: MonomialSum, parts: Sequence[MonomialSum]) -> None:
        """Hear of a form that is one of several."""

    def _odd(self, name: str) -> Callable[[MonomialSum], MonomialSum]:
        return lambda a: self.partial(name, scalar.odd(name, a))

    def partial(self, name: str, result: MonomialSum) -> MonomialSum:
        """The result of a function, noted where it is not defined for all numbers."""
        self.tells_zeros |= name in SIGNED
        if name in PARTIAL:
            self.domain.needs(scalar.even("of", result))
        return result

    def inverse(self, a: MonomialSum) -> MonomialSum:
        """1 / a."""
        if a.number == 0:
            raise Unprovable("a division by zero")
        self.domain.needs_nonzero(a)
        return scalar.power(a, Fraction(-1))

    def root(self, a: MonomialSum, exponent: Fraction) -> MonomialSum:
        """a to a power that wants a number that is not negative."""
        self.domain.needs_nonnegative(a)
        return scalar.power(a, exponent)

    def log(self, a: MonomialSum) -> MonomialSum:
        """The natural logarithm."""
        self.domain.needs_nonnegative(a)
        self.domain.needs_nonzero(a)
        return scalar.logarithm(a)

    def logistic(self, a: MonomialSum) -> MonomialSum:
        """1 / (1 + e^-a)."""
        return scalar.power(scalar.add(ONE, scalar.exponential(scalar.negate(a))), Fraction(-1))

    def power(self, a: MonomialSum, b: MonomialSum) -> MonomialSum:
        """a to the power of b."""
        if b.number is None:
            self.tells_zeros = True
            result = scalar.atom(Apply("power", (a, b)))
            self.domain.needs(result)
            return result
        if b.number.denominator == 1:
            return scalar.power(a, b.number) if b.number >= 0 else scalar.power(self.inverse(a), -b.number)
        return self.root(a, b.number) if b.number > 0 else self.inverse(self.root(a, -b.number))

    def compare(self, direction: str, a: MonomialSum, b: MonomialSum) -> MonomialSum:
        """A comparison by the sign of a difference."""
        gap = scalar.subtract(a, b)
        if gap.number is not None:
            holds = {"EQ": gap.number == 0, "NE": gap.number != 0, "GE": gap.number >= 0, "GT": gap.number > 0}
            holds |= {"LT": gap.number < 0, "LE": gap.number <= 0}
            return ONE if holds[direction] else ZERO
        if direction in ("EQ", "NE"):
            same = truth("=0", _normal(gap))
            return same if direction == "EQ" else negation(same)
        if direction in ("LT", "GE"):
            least = truth(">=0", _unit(gap))
            return least if direction == "GE" else negation(least)
        return self.compare("LT" if direction == "GT" else "GE", b, a)


# ... and what is not defined for all numbers, beside quotients, roots and logarithms
PARTIAL = frozenset({"tan", "asin", "acos", "acosh", "atanh", "erf_inv", "remainder", "lgamma", "digamma", "polygamma", "zeta"})


SIGNED = frozenset({"atan2", "digamma"})  # what tells the zeros apart


def _power_of_one(form: MonomialSum) -> tuple[MonomialSum, Fraction] | None:
    """The base and the exponent of a form that is a positive number times the power of one atom."""
    if len(form.terms) != 1 or form.terms[0][1] <= 0 or len(form.terms[0][0]) != 1:
        return None
    ((factor, exponent),) = form.terms[0][0]
    return factor.form if isinstance(factor, scalar.Base) else scalar.atom(factor), exponent


def _normal(form: MonomialSum) -> MonomialSum:
    """The form up to a factor."""
    return scalar.scale(form, 1 / form.terms[0][1]) if form.terms else form


def _unit(form: MonomialSum) -> MonomialSum:
    """The form up to a positive factor."""
    return scalar.scale(form, 1 / abs(form.terms[0][1])) if form.terms else form


# ---------------------------------------------------------------- floats, bit by bit


def wraps(dtype: DType) -> bool:
    """True for element types whose arithmetic is a ring modulo a power of 2."""
    return dtype.kind in ("int", "uint")
