"""Operations of floats bit by bit: every one is an atom, and only identities of IEEE 754 arithmetic that hold for NaN, infinities and
signed zeros too are used (all NaNs are one).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from coset.ir.types import DTYPES, DType
from coset.prove import scalar
from coset.prove.functions import conversion, negation, sorted_call, truth, wraps
from coset.prove.scalar import ONE, ZERO, Apply, MonomialSum

MINUS_ZERO = scalar.atom(Apply("-0", ()))
INFINITE = scalar.atom(Apply("inf", ()))
NAN = scalar.atom(Apply("nan", ()))


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


def exact(name: str, arguments: Sequence[MonomialSum], exceptions: frozenset[str]) -> MonomialSum:
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


def extreme(name: str, *arguments: MonomialSum) -> MonomialSum:
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
    inner: list[MonomialSum] = [ZERO] if len(others) < len(whole.arguments) else []  # 0 is what it makes of 0
    for each in others:
        ascending = _ascending(each)
        if ascending is None or ascending[0] != label:
            return found
        inner.append(ascending[1])
    if source is not None and wraps(source):
        return again(sorted_call(f"{name} {source}", *inner))
    return again(extreme(name, *inner))


def _ascending(form: MonomialSum) -> tuple[object, MonomialSum, DType | None, Callable[[MonomialSum], MonomialSum]] | None:
    """What identifies a function that keeps the order of numbers, takes 0 to 0 and NaN to NaN, its argument, the element type of that
    where it is another one, and the function; None where the form is no such application."""
    inner = conversion(form)
    if inner is not None:
        names = inner.function.split()[1:]
        if len(names) != 2:  # a narrowing of integers
            return None
        source, to = (DTYPES[name] for name in names)
        if to.name in IEEE and (source.name in IEEE or wraps(source)):
            return inner.function, inner.arguments[0], source, lambda x: scalar.atom(Apply(inner.function, (x,)))
        return None
    product = form.call("multiply")
    if product is None:
        return None
    if len(product.arguments) != 2:  # a square, or a product of more
        return None
    factors = sorted(product.arguments, key=_positive_number)
    return (factors[1], factors[0], None, partial(_multiplied, factors[1])) if _positive_number(factors[1]) else None


POSITIVE = "positive number "  # what the inputs are called that stand for any positive finite number


def _positive_number(form: MonomialSum) -> bool:
    if form.number is not None:
        return form.number > 0
    return isinstance(form.alone, scalar.Read) and form.alone.name.startswith(POSITIVE)


def _negated(a: MonomialSum) -> MonomialSum:
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


def _added(a: MonomialSum, b: MonomialSum, exceptions: frozenset[str]) -> MonomialSum:
    if a == b == ZERO:
        return ZERO
    for one, other in ((a, b), (b, a)):
        if other == MINUS_ZERO or (other == ZERO and "signed_zero" in exceptions):
            return one
    return scalar.atom(Apply("add", tuple(sorted((a, b), key=lambda form: form.key))))


def _multiplied(a: MonomialSum, b: MonomialSum) -> MonomialSum:
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


def exact_compare(direction: str, a: MonomialSum, b: MonomialSum) -> MonomialSum:
    """A comparison of floats as an atom: a > b is b < a, and a != b is the negation of a == b, for NaN too."""
    if direction in _MIRROR:
        return exact_compare(_MIRROR[direction], b, a)
    if direction in ("EQ", "NE"):
        same = truth("compare EQ", *sorted((a, b), key=lambda form: form.key))
        return same if direction == "EQ" else negation(same)
    return truth(f"compare {direction}", a, b)
