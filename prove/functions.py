"""Scalar functions of the hub in the normal form of `prove.scalar`, by element type and promise.

Floats over the reals: `real`. Floats bit by bit: `exact`, where every operation is an atom and only identities of IEEE 754 arithmetic
that hold for NaN, infinities and signed zeros too are used (all NaNs are one). Integers: the ring modulo 2^n, other operations
atoms. Booleans: polynomials over 0 and 1, which decide every propositional equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from coset.ir.dims import Dim
from coset.ir.types import DTYPES, DType
from coset.prove import scalar
from coset.prove.scalar import ONE, ZERO, Apply, Form


class Unprovable(Exception):
    """The prover has no way to go on; the text says why."""


NONZERO, NONNEGATIVE, OTHER = "nonzero", "nonnegative", "other"  # what is wanted of a form


@dataclass(frozen=True)
class Need:
    """That a form is a good argument where the `facts` are not negative and all `conditions` hold, which choose where it stands."""

    kind: str
    form: Form
    facts: tuple[Dim, ...]
    conditions: tuple[Form, ...] = ()


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
    def under(self, condition: Form) -> Iterator[None]:
        """Inside, what is needed is needed where the condition is 1."""
        self.collected.append(set())
        yield
        inner = self.collected.pop()
        self.again(frozenset(replace(need, conditions=(condition, *need.conditions)) for need in inner))

    def needs_nonzero(self, form: Form) -> None:
        if len(form.terms) == 1 and form.terms[0][0]:  # a product is 0 where a factor is, a power where its base is
            for factor, _ in form.terms[0][0]:
                self._add_nonzero(factor.form if isinstance(factor, scalar.Base) else scalar.atom(factor))
        else:
            self._add_nonzero(form)

    def _add_nonzero(self, form: Form) -> None:
        if not self.surely_positive(form) and not self.surely_positive(scalar.negate(form)):
            self._add(NONZERO, _normal(form))

    def _add(self, kind: str, form: Form) -> None:
        self.collected[-1].add(Need(kind, form, self.facts()))

    def needs_nonnegative(self, form: Form) -> None:
        root = _power_of_one(form)
        if root is not None and (root[1].denominator % 2 == 0 or (root[1].denominator == 1 and int(root[1]) % 2 == 0)):
            return  # a root is not negative (what it is of was asked for when it was made), nor is a square
        form = root[0] if root is not None and root[1].denominator == 1 else form
        if not self._surely_nonnegative(form):
            self._add(NONNEGATIVE, form)

    def needs(self, form: Form) -> None:
        self._add(OTHER, form)

    def surely_positive(self, form: Form) -> bool:
        """True when every term is a positive number times positive atoms."""
        return bool(form.terms) and all(c > 0 and all(self._positive(atom) for atom, _ in m) for m, c in form.terms)

    def _surely_nonnegative(self, form: Form) -> bool:
        """True when every term is a positive number times atoms that are positive, or sums of what is not negative."""
        return all(c > 0 and all(self._positive(a) or self._sums_up(a) for a, _ in m) for m, c in form.terms)

    def _sums_up(self, atom: scalar.Atom) -> bool:
        return isinstance(atom, scalar.Fold) and atom.combiner == "add" and self._surely_nonnegative(atom.body)

    def _positive(self, atom: scalar.Atom) -> bool:
        if isinstance(atom, scalar.Fold):  # of some places
            return atom.combiner == "add" and self.surely_positive(atom.body) and all(self.positive(extent) for _, extent in atom.variables)
        return self.positive(scalar.dim(atom)) if isinstance(atom, scalar.Size) else scalar.positive(atom)


MINUS_ZERO = scalar.atom(Apply("-0", ()))
INFINITE = scalar.atom(Apply("inf", ()))
NAN = scalar.atom(Apply("nan", ()))
_HALF = Fraction(1, 2)


def truth(function: str, *arguments: Form) -> Form:
    """A predicate that stays uninterpreted."""
    return scalar.atom(Apply(function, arguments, truth=True))


def negation(a: Form) -> Form:
    """Not, of 0 or 1."""
    return scalar.subtract(ONE, a)


def choice(condition: Form, a: Form, b: Form) -> Form:
    """a where the condition is 1, b where it is 0."""
    if a == b:
        return a
    return scalar.add(scalar.multiply(condition, a), scalar.multiply(negation(condition), b))


# ---------------------------------------------------------------- booleans


def either(a: Form, b: Form) -> Form:
    """Or, of 0 and 1."""
    return scalar.subtract(scalar.add(a, b), scalar.multiply(a, b))


def _differ(a: Form, b: Form) -> Form:
    return scalar.subtract(scalar.add(a, b), scalar.scale(scalar.multiply(a, b), 2))


BOOLS: dict[str, Callable[..., Form]] = {
    "and": scalar.multiply, "multiply": scalar.multiply, "minimum": scalar.multiply, "or": either, "add": either,
    "maximum": either, "xor": _differ, "not": negation,
}  # fmt: skip


def compare_bools(direction: str, a: Form, b: Form) -> Form:
    """Comparison of truth values, false before true."""
    table = {
        "EQ": negation(_differ(a, b)), "NE": _differ(a, b), "LT": scalar.multiply(negation(a), b), "GT": scalar.multiply(a, negation(b)),
    }  # fmt: skip
    if direction in table:
        return table[direction]
    return negation(table["GT"]) if direction == "LE" else negation(table["LT"])


# ---------------------------------------------------------------- what several kinds have


def sorted_call(function: str, *arguments: Form) -> Form:
    """An associative, commutative and idempotent function: nested ones are one, each operand counts once."""
    found: dict[Form, None] = {}
    for argument in arguments:
        inner = argument.call(function)
        found.update(dict.fromkeys(inner.arguments if inner else (argument,)))
    if len(found) == 1:
        return next(iter(found))
    return scalar.atom(Apply(function, tuple(sorted(found, key=lambda form: form.key))))


def conversion(form: Form) -> Apply | None:
    """The conversion between element types that the form is, or None."""
    return form.alone if isinstance(form.alone, Apply) and form.alone.function.startswith("convert ") else None


# ---------------------------------------------------------------- the reals


class Reals:
    """Functions over the reals; roots, logarithms and reciprocals note where they are defined in `domain`."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.table: dict[str, Callable[..., Form]] = {
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
        for name in ("erf", "sine", "tan", "asin", "atan", "asinh", "atanh", "erf_inv", "round_nearest_even", "round_nearest_afz"):
            self.table[name] = self._odd(name)

    def _odd(self, name: str) -> Callable[[Form], Form]:
        return lambda a: self.partial(name, scalar.odd(name, a))

    def partial(self, name: str, result: Form) -> Form:
        """The result of a function, noted where it is not defined for all numbers."""
        if name in _PARTIAL:
            self.domain.needs(scalar.even("of", result))
        return result

    def inverse(self, a: Form) -> Form:
        """1 / a."""
        if a.number == 0:
            raise Unprovable("a division by zero")
        self.domain.needs_nonzero(a)
        return scalar.power(a, Fraction(-1))

    def root(self, a: Form, exponent: Fraction) -> Form:
        """a to a power that wants a number that is not negative."""
        self.domain.needs_nonnegative(a)
        return scalar.power(a, exponent)

    def log(self, a: Form) -> Form:
        """The natural logarithm."""
        self.domain.needs_nonnegative(a)
        self.domain.needs_nonzero(a)
        return scalar.logarithm(a)

    def logistic(self, a: Form) -> Form:
        """1 / (1 + e^-a)."""
        return scalar.power(scalar.add(ONE, scalar.exponential(scalar.negate(a))), Fraction(-1))

    def power(self, a: Form, b: Form) -> Form:
        """a to the power of b."""
        if b.number is None:
            result = scalar.atom(Apply("power", (a, b)))
            self.domain.needs(result)
            return result
        if b.number.denominator == 1:
            return scalar.power(a, b.number) if b.number >= 0 else scalar.power(self.inverse(a), -b.number)
        return self.root(a, b.number) if b.number > 0 else self.inverse(self.root(a, -b.number))

    def compare(self, direction: str, a: Form, b: Form) -> Form:
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
_PARTIAL = frozenset({"tan", "asin", "acos", "acosh", "atanh", "erf_inv", "remainder", "lgamma", "digamma", "polygamma", "zeta"})


def _power_of_one(form: Form) -> tuple[Form, Fraction] | None:
    """The base and the exponent of a form that is a positive number times the power of one atom."""
    if len(form.terms) != 1 or form.terms[0][1] <= 0 or len(form.terms[0][0]) != 1:
        return None
    ((factor, exponent),) = form.terms[0][0]
    return factor.form if isinstance(factor, scalar.Base) else scalar.atom(factor), exponent


def _normal(form: Form) -> Form:
    """The form up to a factor."""
    return scalar.scale(form, 1 / form.terms[0][1]) if form.terms else form


def _unit(form: Form) -> Form:
    """The form up to a positive factor."""
    return scalar.scale(form, 1 / abs(form.terms[0][1])) if form.terms else form


# ---------------------------------------------------------------- floats, bit by bit

# functions whose results for 0 and -0 differ at most in the sign of a zero; an exception for signed zeros passes through them
BLIND = frozenset((
    "add", "subtract", "multiply", "negate", "abs", "maximum", "minimum", "select", "clamp", "compare", "floor", "ceil", "sign", "sqrt",
    "cbrt", "exponential", "exponential_minus_one", "sine", "cosine", "tan", "tanh", "logistic", "log", "log_plus_one",
    "round_nearest_even", "round_nearest_afz", "is_finite", "not", "and", "or", "xor",
))  # fmt: skip
_WHOLE = ("floor", "ceil", "round_nearest_even", "round_nearest_afz")
_COMMUTATIVE = ("add", "multiply", "maximum", "minimum")
# f(-x) = -f(x) bit by bit: IEEE 754-2019, table 9.1, has them rounded correctly, and rounding to nearest knows no sign
_ODD = frozenset({"sine", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh"})
_MIRROR = {"GT": "LT", "GE": "LE"}


def exact(name: str, arguments: Sequence[Form], exceptions: frozenset[str]) -> Form:
    """An operation of floats as an atom, after the identities of IEEE arithmetic that hold for every operand."""
    if name == "subtract":  # a - b is a + (-b), bit by bit
        return exact("add", (arguments[0], exact("negate", arguments[1:], exceptions)), exceptions)
    if name == "negate":
        total = arguments[0].call("add")
        if total is not None and "signed_zero" in exceptions:  # rounding to nearest knows no sign; only x + -x = 0 tells them apart
            return _added(_negated(total.arguments[0]), _negated(total.arguments[1]), exceptions)
        return _negated(arguments[0])
    if name == "add":
        return _added(arguments[0], arguments[1], exceptions)
    if name == "multiply":
        return _multiplied(arguments[0], arguments[1])
    if name in ("divide", "power") and arguments[1].number == 1:
        return arguments[0]
    if name == "power" and arguments[1] in (ZERO, MINUS_ZERO):  # of NaN too (IEEE 754-2019, 9.2.1)
        return ONE
    if name == "divide":
        a, b = arguments
        flips = [x.call("negate") for x in (a, b)]
        a, b = (flip.arguments[0] if flip else x for flip, x in zip(flips, (a, b), strict=True))
        quotient = scalar.atom(Apply("divide", (a, b)))
        return _negated(quotient) if sum(flip is not None for flip in flips) == 1 else quotient
    if name in ("maximum", "minimum"):
        return extreme(name, *arguments)
    if name in _ODD:
        flipped = arguments[0].call("negate")
        return _negated(scalar.atom(Apply(name, flipped.arguments))) if flipped else scalar.atom(Apply(name, tuple(arguments)))
    if name == "remainder" and (rest := arguments[0].call("remainder")) is not None and rest.arguments[1] == arguments[1]:
        return arguments[0]  # it is exact, and nearer to 0 than the divisor
    if name == "abs":
        inner = arguments[0].call("negate") or arguments[0].call("abs")
        return scalar.atom(Apply("abs", inner.arguments if inner else tuple(arguments)))
    if name in _WHOLE:
        converted = conversion(arguments[0])
        if any(map(arguments[0].call, _WHOLE)) or (converted is not None and wraps(DTYPES[converted.function.split()[1]])):
            return arguments[0]  # a whole number already, or infinite
    if name in _COMMUTATIVE:
        return scalar.atom(Apply(name, tuple(sorted(arguments, key=lambda form: form.key))))
    return scalar.atom(Apply(name, tuple(arguments)))


IEEE = frozenset({"f16", "bf16", "f32", "f64"})  # with infinities: what is too large stays the largest


def extreme(name: str, *arguments: Form) -> Form:
    """The largest or the smallest of floats. What keeps the order goes outside: it takes the largest to the largest, rounding too."""
    found = sorted_call(name, *arguments)
    whole = found.call(name)
    if whole is None:
        return found
    others = [argument for argument in whole.arguments if argument != ZERO]
    first = _ascending(others[0])
    if first is None:
        return found
    label, _, source, again = first
    inner: list[Form] = [ZERO] if len(others) < len(whole.arguments) else []  # 0 is what it makes of 0
    for each in others:
        ascending = _ascending(each)
        if ascending is None or ascending[0] != label:
            return found
        inner.append(ascending[1])
    if source is not None and wraps(source):
        return again(sorted_call(f"{name} {source}", *inner))
    return again(extreme(name, *inner))


def _ascending(form: Form) -> tuple[object, Form, DType | None, Callable[[Form], Form]] | None:
    """What identifies a function that keeps the order of numbers, takes 0 to 0 and NaN to NaN, its argument, the element type of that
    where it is another one, and the function; None where the form is no such application."""
    inner = conversion(form)
    if inner is not None:
        source, to = (DTYPES[name] for name in inner.function.split()[1:])
        if to.name in IEEE and (source.name in IEEE or wraps(source)):
            return inner.function, inner.arguments[0], source, lambda x: scalar.atom(Apply(inner.function, (x,)))
        return None
    product = form.call("multiply")
    if product is None:
        return None
    factors = sorted(product.arguments, key=_positive_number)
    return (factors[1], factors[0], None, partial(_multiplied, factors[1])) if _positive_number(factors[1]) else None


POSITIVE = "positive number "  # what the inputs are called that stand for any positive finite number


def _positive_number(form: Form) -> bool:
    if form.number is not None:
        return form.number > 0
    return isinstance(form.alone, scalar.Read) and form.alone.name.startswith(POSITIVE)


def _negated(a: Form) -> Form:
    inner = a.call("negate")
    if inner is not None:
        return inner.arguments[0]
    if a.number is not None and a.number != 0:
        return scalar.negate(a)
    if a == ZERO:
        return MINUS_ZERO
    if a == MINUS_ZERO:
        return ZERO
    return scalar.atom(Apply("negate", (a,)))


def _added(a: Form, b: Form, exceptions: frozenset[str]) -> Form:
    if a == b == ZERO:
        return ZERO
    for one, other in ((a, b), (b, a)):
        if other == MINUS_ZERO or (other == ZERO and "signed_zero" in exceptions):
            return one
    return scalar.atom(Apply("add", tuple(sorted((a, b), key=lambda form: form.key))))


def _multiplied(a: Form, b: Form) -> Form:
    for one, other in ((a, b), (b, a)):
        if other.number == 1:
            return one
        if other.number == -1:
            return _negated(one)
        if one == ZERO and other.number is not None and other.number != 0:
            return ZERO if other.number > 0 else MINUS_ZERO
        if one == ZERO and _positive_number(other):
            return ZERO
    flips = [x.call("negate") for x in (a, b)]
    a, b = (flip.arguments[0] if flip else x for flip, x in zip(flips, (a, b), strict=True))
    product = scalar.atom(Apply("multiply", tuple(sorted((a, b), key=lambda form: form.key))))
    return _negated(product) if sum(flip is not None for flip in flips) == 1 else product


def exact_compare(direction: str, a: Form, b: Form) -> Form:
    """A comparison of floats as an atom: a > b is b < a, and a != b is the negation of a == b, for NaN too."""
    if direction in _MIRROR:
        return exact_compare(_MIRROR[direction], b, a)
    if direction in ("EQ", "NE"):
        same = truth("compare EQ", *sorted((a, b), key=lambda form: form.key))
        return same if direction == "EQ" else negation(same)
    return truth(f"compare {direction}", a, b)


def wraps(dtype: DType) -> bool:
    """True for element types whose arithmetic is a ring modulo a power of 2."""
    return dtype.kind in ("int", "uint")
