"""Facts about the numbers of a term, from what earlier lines have joined with it, by elementary laws for numbers as they are computed.

`nonnegative`: each element is 0 (of either sign) or more, or NaN. `positive`: more than 0, or NaN. `finite`: neither infinite nor NaN.
`unique_indices`: integers of which no two are equal. `sparse`: a matrix most of whose numbers are 0. A fact that would need itself is none,
and a constant that was rounded shows none.
"""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np

from coset.ir.term import CONSTANT, Term
from coset.ir.types import TensorType
from coset.prove.second.answer import CannotSay
from coset.prove.second.classes import Classes

FACTS = ("nonnegative", "positive", "finite", "unique_indices")
MOVED = frozenset(f"stablehlo.{name}" for name in ("transpose", "reshape", "broadcast_in_dim", "reverse", "slice", "concatenate"))
REORDERED = MOVED - {"stablehlo.broadcast_in_dim", "stablehlo.concatenate"}
LARGE = 1 << 16  # elements of a constant that says nothing


class Facts:
    """Facts by the classes of now. `rounded`: constants with a bound; `used` takes note of the others that a fact was read from."""

    def __init__(self, classes: Classes, rounded: Container[Term] = (), used: set[Term] | None = None) -> None:
        self.classes = classes
        self.rounded = rounded
        self.used: set[Term] = set() if used is None else used
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
            shown = term not in self.rounded and _constant(fact, term)
            if shown:
                self.used.add(term)
            return shown
        if term.op.name == "stablehlo.iota":
            return _counted(fact, term)
        if term.op.name in (REORDERED if fact == "unique_indices" else MOVED):
            return all(self.holds(fact, operand) for operand in term.operands)
        if fact == "nonnegative" and self.holds("positive", term):
            return True
        law = LAWS.get((fact, term.op.name.removeprefix("stablehlo.")))
        return law is not None and law(self, term)


def _constant(fact: str, term: Term) -> bool:
    array = term.attribute("value").array()
    if array.size > LARGE:
        return False
    if fact == "unique_indices":
        return array.dtype.kind in "iu" and np.unique(array).size == array.size
    if term.tensor.dtype.kind != "float":
        return False
    numbers = array.astype(np.float64)
    if fact == "finite":
        return bool(np.isfinite(numbers).all())
    return bool((np.isnan(numbers) | (numbers > 0 if fact == "positive" else numbers >= 0)).all())


def _counted(fact: str, term: Term) -> bool:
    """Facts of an iota: its type must hold all the numbers."""
    shape, dtype = term.tensor.static, term.tensor.dtype
    if shape is None:
        return False
    count = shape[term.attribute("dimension")]
    if fact == "finite" and dtype.kind == "float":
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.asarray(max(0, count - 1)).astype(dtype.numpy).astype(np.float64)))
    return fact == "unique_indices" and len(shape) == 1 and dtype.kind in ("int", "uint") and count <= 1 << (dtype.bits - 1)


Law = Callable[[Facts, Term], bool]


def _always(_: Facts, __: Term) -> bool:
    return True


def _all(fact: str) -> Law:
    return lambda facts, term: all(facts.holds(fact, operand) for operand in term.operands)


def _any(fact: str) -> Law:
    return lambda facts, term: any(facts.holds(fact, operand) for operand in term.operands)


def _product(facts: Facts, term: Term) -> bool:
    a, b = term.operands
    return facts.classes.equal(a, b) or (facts.holds("nonnegative", a) and facts.holds("nonnegative", b))


def _quotient(facts: Facts, term: Term) -> bool:
    return facts.holds("nonnegative", term.operands[0]) and facts.holds("positive", term.operands[1])


def _positive_sum(facts: Facts, term: Term) -> bool:
    a, b = term.operands
    return (facts.holds("positive", a) and facts.holds("nonnegative", b)) or (facts.holds("nonnegative", a) and facts.holds("positive", b))


def _chosen(fact: str) -> Law:
    return lambda facts, term: all(facts.holds(fact, operand) for operand in term.operands[1:])


def _folded(facts: Facts, term: Term) -> bool:
    return term.attribute("combiner") in ("add", "multiply") and facts.holds("nonnegative", term.operands[0])


FINITE = ("sign", "floor", "ceil", "round_nearest_even", "round_nearest_afz", "tanh", "logistic", "sine", "cosine")
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
    ("nonnegative", "select"): _chosen("nonnegative"),
    ("nonnegative", "reduce"): _folded,
    ("nonnegative", "dot_general"): _all("nonnegative"),
    ("nonnegative", "convolution"): _all("nonnegative"),
    ("positive", "add"): _positive_sum,
    ("positive", "maximum"): _any("positive"),
    ("positive", "minimum"): _all("positive"),
    ("positive", "sqrt"): _all("positive"),
    ("positive", "select"): _chosen("positive"),
    ("positive", "abs"): _all("positive"),
    ("finite", "select"): _chosen("finite"),
    ("finite", "negate"): _all("finite"),
    ("finite", "abs"): _all("finite"),
    ("finite", "maximum"): _all("finite"),
    ("finite", "minimum"): _all("finite"),
    ("finite", "clamp"): _all("finite"),
    **{("finite", name): _all("finite") for name in FINITE},
}
