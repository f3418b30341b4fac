"""Facts about the numbers of a term, from what earlier lines have joined with it, by elementary laws for numbers as they are computed.

`nonnegative`: each element is 0 (of either sign) or more, or NaN. `positive`: more than 0, or NaN. `finite`: neither infinite nor NaN.
`unique_indices`: integers of which no two are equal. A fact that would need itself is none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coset.ir.term import CONSTANT, Term
from coset.ir.types import TensorType
from coset.prove.second.answer import CannotSay
from coset.prove.second.classes import Classes
from coset.prove.second.computed import MOVES

FACTS = ("nonnegative", "positive", "finite", "unique_indices")


class Facts:
    """Facts by the classes of now."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self.open: set[tuple[str, Term]] = set()

    def holds(self, fact: str, term: Term) -> bool:
        """Whether a fact follows for a term.

        Raises:
            CannotSay: no law for such facts is known here.
        """
        if fact not in FACTS:
            raise CannotSay(f"the fact `{fact}`")
        key = (fact, self.classes.find(term))
        if key in self.open:
            return False
        self.open.add(key)
        try:
            return any(self._of(fact, each) for each in self.classes.alike(term))
        finally:
            self.open.discard(key)

    def _of(self, fact: str, term: Term) -> bool:
        if not isinstance(term.type, TensorType):
            return False
        if term.op is CONSTANT:
            return _constant(fact, term)
        if fact == "unique_indices":
            return term.op.name == "stablehlo.iota" and term.tensor.rank == 1
        if term.tensor.dtype.kind != "float":
            return False
        if term.op.name in MOVES and term.op.name != "stablehlo.gather":
            return all(self.holds(fact, operand) for operand in term.operands)
        law = LAWS.get((fact, term.op.name.removeprefix("stablehlo.")))
        return law is not None and law(self, term)


def _constant(fact: str, term: Term) -> bool:
    array = term.attribute("value").array()
    if fact == "unique_indices":
        return array.dtype.kind in "iu" and np.unique(array).size == array.size
    if term.tensor.dtype.kind != "float":
        return False
    numbers = array.astype(np.float64)
    if fact == "finite":
        return bool(np.isfinite(numbers).all())
    return bool((np.isnan(numbers) | (numbers > 0 if fact == "positive" else numbers >= 0)).all())


Law = Callable[[Facts, Term], bool]


def _always(_: Facts, __: Term) -> bool:
    return True


def _all(fact: str) -> Law:
    return lambda facts, term: all(facts.holds(fact, operand) for operand in term.operands)


def _any(fact: str) -> Law:
    return lambda facts, term: any(facts.holds(fact, operand) for operand in term.operands)


def _product(facts: Facts, term: Term) -> bool:
    a, b = term.operands
    return a is b or (facts.holds("nonnegative", a) and facts.holds("nonnegative", b))


def _quotient(facts: Facts, term: Term) -> bool:
    return facts.holds("nonnegative", term.operands[0]) and facts.holds("positive", term.operands[1])


def _positive_sum(facts: Facts, term: Term) -> bool:
    a, b = term.operands
    return (facts.holds("positive", a) and facts.holds("nonnegative", b)) or (facts.holds("nonnegative", a) and facts.holds("positive", b))


def _chosen(fact: str) -> Law:
    return lambda facts, term: all(facts.holds(fact, operand) for operand in term.operands[1:])


def _reduced(fact: str) -> Law:
    def law(facts: Facts, term: Term) -> bool:
        (operand,) = term.operands
        word = term.attribute("combiner")
        some = all(isinstance(dim, int) and dim > 0 for dim in operand.tensor.dims)
        allowed = ("maximum", "minimum") if fact == "positive" else ("add", "multiply", "maximum", "minimum")
        return word in allowed and some and facts.holds(fact, operand)

    return law


def _converted(facts: Facts, term: Term) -> bool:
    source = term.operands[0].tensor.dtype
    return source.kind in ("bool", "uint") or (source.kind == "float" and facts.holds("nonnegative", term.operands[0]))


LAWS: dict[tuple[str, str], Law] = {
    ("nonnegative", "abs"): _always,
    ("nonnegative", "exponential"): _always,
    ("nonnegative", "sqrt"): _always,
    ("nonnegative", "logistic"): _always,
    ("nonnegative", "add"): _all("nonnegative"),
    ("nonnegative", "multiply"): _product,
    ("nonnegative", "divide"): _quotient,
    ("nonnegative", "maximum"): _any("nonnegative"),
    ("nonnegative", "minimum"): _all("nonnegative"),
    ("nonnegative", "rsqrt"): _all("positive"),
    ("nonnegative", "select"): _chosen("nonnegative"),
    ("nonnegative", "convert"): _converted,
    ("nonnegative", "reduce"): _reduced("nonnegative"),
    ("nonnegative", "dot_general"): _all("nonnegative"),
    ("nonnegative", "convolution"): _all("nonnegative"),
    ("positive", "add"): _positive_sum,
    ("positive", "maximum"): _any("positive"),
    ("positive", "minimum"): _all("positive"),
    ("positive", "sqrt"): _all("positive"),
    ("positive", "select"): _chosen("positive"),
    ("positive", "reduce"): _reduced("positive"),
    ("finite", "select"): _chosen("finite"),
    ("finite", "negate"): _all("finite"),
    ("finite", "abs"): _all("finite"),
    ("finite", "maximum"): _all("finite"),
    ("finite", "minimum"): _all("finite"),
}
