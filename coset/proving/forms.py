"""Two programs by the normal forms of the prover of rules: equal for all inputs and all sizes, without a step between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from coset.comparing.infinities import REORDERED
from coset.comparing.weights import NARROW
from coset.dialects.expansion import expanded
from coset.ir.dims import symbols
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.program import Program, tensors_in
from coset.ir.specialized import specialized
from coset.ir.term import CONSTANT, INPUT, Term, topological
from coset.prove.deadline import Late, Time, until
from coset.prove.equal import Open, Sense, compare
from coset.prove.kernel import weakest
from coset.prove.opened import reached
from coset.prove.sample import ELEMENTS, kinds_of, promised_difference, thresholds_of
from coset.prove.values import RANGE, draw
from coset.proving.constants import Goal
from coset.rules.definition import evaluate_defined
from coset.rules.elaborate import numerics_of
from coset.rules.equation import EXCEPTIONS, Numerics
from coset.rules.ranges import class_of
from coset.rules.rule import permitted

MOST_TERMS = 150  # of both programs: forms grow faster than programs
MOST_ELEMENTS = 1 << 22  # of all their values together, with `SIZE` for free dims: some are computed
SIZE = 4
SECONDS = 10.0  # of the processor
MOST_FACTORS = 4  # of a product (docs/numerics.md, C: k)
FAR = 2.0**16  # of a number from 1 (the same, h)
PRODUCTS = ("stablehlo.multiply", "stablehlo.dot_general", "stablehlo.convolution")
SIMPLE = "add subtract multiply negate abs maximum minimum clamp select compare and or not convert"
ALGEBRA = frozenset(f"stablehlo.{name}" for name in SIMPLE.split())


@dataclass(frozen=True)
class ByForms:
    """That two programs have one normal form: `solver` says whether Z3 was needed, `bits` whether every bit is the same."""

    solver: bool
    bits: bool


def by_forms(before: Program, after: Program, numerics: str, seconds: float) -> ByForms | None:
    """Whether the outputs of two programs by content, one by one, have the same forms: bit by bit, or where `numerics` allow it over the
    real numbers; None where that is not seen in `seconds` of the processor. Effects and foreign ops have no forms, and a definition that
    promises less than `numerics` is not opened.

    Forms over the real numbers speak of neither range nor precision, nor of infinities. So for `reassociates` no float may be narrow, and
    draws at small sizes must keep the promise, as the draws of a rule do.
    """
    if len(before.roots) != len(after.roots):  # one has effects
        return None
    goals = list(zip(before.roots, after.roots, strict=True))
    terms = list(topological([*before.roots, *after.roots]))
    if len(terms) > MOST_TERMS or before.effects is not None or after.effects is not None or not all(map(_has_forms, terms)):
        return None
    if any(one.type != other.type for one, other in goals) or _elements(terms) > MOST_ELEMENTS:
        return None
    time, promises = Time.of(min(seconds, SECONDS)), _promises(terms)
    found = _compared(goals, Sense(False), time.share(1 / 4)) if permitted(weakest(promises), "exact") else None
    if found is not None or numerics == "exact" or not permitted(weakest(promises), numerics):
        return found
    strict = numerics == "reassociates"
    if not strict:
        return _compared(goals, Sense(True, exceptions=frozenset(EXCEPTIONS), rounds=False), time)
    opened = list(topological(expanded(terms, keep=lambda _: False)))
    if not _is_moderate(opened):
        return None
    found = _compared(goals, Sense(True, True, opaque=_functions(opened)), time)
    return found if found is None or _keep_promise(goals, Numerics(numerics, REORDERED)) else None


def _functions(opened: Sequence[Term]) -> frozenset[str]:
    """The elementwise ops that stay what they are: all but sums, products, extremes, choices and conversions. A quotient of sums in another
    order is one of the same sums; that 1 / (1 / x) is x says nothing of a division by zero."""
    return frozenset(term.op.name for term in opened if term.op.has("elementwise") and term.op.name not in ALGEBRA)


def _is_moderate(opened: Sequence[Term]) -> bool:
    """Whether the promises about range and precision are kept whatever the order: all floats are of one type that is not narrow, no number
    is far from 1, and no value is a product of more than `MOST_FACTORS` inputs or results of functions."""
    formats = {type.dtype for term in opened for type in tensors_in(term.type) if type.dtype.kind not in ("int", "uint", "bool")}
    if len(formats) > 1 or any(class_of(dtype) in NARROW for dtype in formats):
        return False
    degree: dict[Term, int] = {}
    for term in opened:
        if term.op is CONSTANT and not _is_near_one(term):
            return False
        below = [degree[operand] for operand in term.operands]
        plain = term.op.has("movement") or term.op.name in ALGEBRA or not term.op.has("elementwise")
        most = sum(below) if term.op.name in PRODUCTS else max(below, default=int(term.op is not CONSTANT))
        degree[term] = most if plain else 1
        if degree[term] > MOST_FACTORS:
            return False
    return True


def _is_near_one(term: Term) -> bool:
    """Whether the numbers of a constant are 0, or no further from 1 than a sum may grow."""
    if term.tensor.dtype.kind != "float":
        return True
    values = np.abs(term.attribute("value").array().astype(np.float64))
    return bool(np.all((values == 0) | ((values <= FAR) & (values >= 1 / FAR))))


def _promises(terms: Sequence[Term]) -> list[Numerics]:
    """What the definitions promise that may be opened on the way: those of the ops, and of the ops that these are made of."""
    clauses = [clause for own in reached({term.op for term in terms}) for clause in own.entry.clauses]
    return [Numerics("exact"), *(numerics_of(clause.promise) for clause in clauses)]


def _keep_promise(goals: Sequence[Goal], numerics: Numerics) -> bool:
    """Whether the second term of each goal keeps what is promised of the first on drawn inputs of every kind, with small numbers for free
    dims; False where operands are too large to look at."""
    dims = [dim for goal in goals for term in topological(goal) for type in tensors_in(term.type) for dim in type.shape or ()]
    names = sorted({name for dim in dims for name in symbols(dim)})
    usual = [{name: first + number % 3 for number, name in enumerate(names)} for first in (2, 3)]
    empty = [usual[0] | {name: 0} for name in names] + [dict.fromkeys(names, 0)]  # a sum of nothing hides what a product shows
    for seed, sizes in enumerate((*usual, *(empty if names else ()))):
        try:
            pairs = [tuple(specialized(goal, sizes)) for goal in goals]
        except CosetError:
            return False
        if not all(_keeps((one, other), numerics, seed) for one, other in pairs):
            return False
    return True


def _keeps(pair: tuple[Term, Term], numerics: Numerics, seed: int) -> bool:
    inputs = {term.attribute("name"): term.tensor for term in topological(pair) if term.op is INPUT}
    if any(type.static is None or prod(type.static) > ELEMENTS for type in inputs.values()):
        return False
    generator, thresholds = np.random.default_rng(seed), thresholds_of(pair)
    for kind in kinds_of(numerics):
        if kind == RANGE:  # see `_is_moderate`
            continue
        feed = {name: draw(generator, type.dtype, type.static or (), kind, thresholds) for name, type in inputs.items()}
        try:
            with np.errstate(all="ignore"):
                left, right = (np.asarray(value) for value in evaluate(pair, feed, fallback=evaluate_defined))
                if promised_difference(numerics, pair, feed, (left, right), kind) is not None:
                    return False
        except CosetError:
            return False
    return True


def _compared(goals: list[tuple[Term, Term]], sense: Sense, time: Time) -> ByForms | None:
    try:
        with until(time):
            shown = [compare(one, other, sense) for one, other in goals]
    except (Open, Late):
        return None
    return ByForms(any(each.solver for each in shown), not sense.real)


def _elements(terms: Sequence[Term]) -> int:
    shapes = [type.shape or () for term in terms for type in tensors_in(term.type)]
    return sum(prod(dim if isinstance(dim, int) else SIZE for dim in shape) for shape in shapes)


def _has_forms(term: Term) -> bool:
    return not term.op.has("foreign") and all(type.shape is not None for type in tensors_in(term.type))
