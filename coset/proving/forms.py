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
from coset.ir.op import Array
from coset.ir.program import Program, tensors_in
from coset.ir.specialized import specialized
from coset.ir.term import CONSTANT, INPUT, Term, topological
from coset.ir.types import TensorType, dtype_of
from coset.prove import pointwise
from coset.prove.deadline import Late, Time, until
from coset.prove.equal import Open, Sense, compare
from coset.prove.grades import MANY
from coset.prove.growth import growth
from coset.prove.kernel import weakest
from coset.prove.opened import reached
from coset.prove.sample import ELEMENTS, kinds_of, promised_difference, thresholds_of
from coset.prove.values import KINDS, NONFINITE, RANGE, WHOLE, draw
from coset.proving.constants import Goal
from coset.rules.definition import evaluate_defined
from coset.rules.elaborate import numerics_of
from coset.rules.equation import EXCEPTIONS, Numerics
from coset.rules.ranges import class_of
from coset.rules.rule import permitted

MOST_TERMS = 150  # of both programs: forms grow faster than programs
MOST_ELEMENTS = 1 << 22  # of all their values together, with `SIZE` for free dims: some are computed
SIZE = 4
DRAWS = 12  # of inputs, beside the empty ones
FEW, SPARSE = "few", 32  # draws with one or two numbers of these among ordinary ones, for each of the others
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)
SECONDS = 10.0  # of the processor
MOST_FACTORS = 4  # of a product (docs/numerics.md, C: k)
FAR = 2.0**16  # of a number from 1 (the same, h)
PRODUCTS = ("stablehlo.multiply", "stablehlo.dot_general", "stablehlo.convolution")
_POLES = "stablehlo.divide stablehlo.rsqrt stablehlo.power stablehlo.log stablehlo.log_plus_one stablehlo.tan stablehlo.atan2 chlo.atanh"
POLES = frozenset(f"{_POLES} chlo.digamma chlo.lgamma chlo.polygamma chlo.zeta chlo.erf_inv".split())  # or what tells the zeros apart
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

    Forms over the real numbers speak of neither range nor precision, nor of infinities. So for `reassociates` either all is moderate, and
    functions stay what they are, or what is stored is shown to be light; and draws at small sizes keep the promise, as those of a rule do.
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
    found = None
    if permitted(weakest(promises), "exact"):
        found = _compared(goals, Sense(False), time.share(1 / 4)) or _bit_by_bit(goals, time.share(1 / 4))
    if found is not None or numerics == "exact" or not permitted(weakest(promises), numerics):
        return found
    if numerics != "reassociates":
        return _compared(goals, Sense(True, exceptions=frozenset(EXCEPTIONS), rounds=False), time)
    opened = list(topological(expanded(terms, keep=lambda _: False)))
    if _is_moderate(opened) and not any(term.op.name in POLES for term in opened):
        found = _compared(goals, Sense(True, True, opaque=_functions(opened)), time.share(1 / 2))
        if found is not None and _keep_promise(goals, numerics, few=True):
            return found
    if not _is_light(goals, time):
        return None
    found = _compared(goals, Sense(True, True), time)
    return found if found is None or _keep_promise(goals, numerics, few=False) else None


def _bit_by_bit(goals: Sequence[Goal], time: Time) -> ByForms | None:
    """Whether Z3 shows that every element has the same bits, by what is elementwise in both terms of each goal."""
    if not all(isinstance(one.type, TensorType) for one, _ in goals):
        return None
    try:
        with until(time):
            return ByForms(True, True) if all(pointwise.equal(one, other, frozenset()) for one, other in goals) else None
    except (pointwise.Unsupported, Late):
        return None


def _is_light(goals: Sequence[Goal], time: Time) -> bool:
    """Whether what the second term of each goal stores is shown to weigh no more beside the first than C of docs/numerics.md admits."""
    try:
        with until(time):
            sized = [tuple(specialized(goal, _sizes(goals, 2))) for goal in goals]
            found = [growth(one, other, most=most) for one, other in sized for most in (None, MANY)]
    except (CosetError, Late):
        return False
    return all(value.admitted and not value.drawn for each in found for value in each.values)


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


def _keep_promise(goals: Sequence[Goal], word: str, *, few: bool) -> bool:
    """Whether the second term of each goal keeps what is promised of the first on drawn inputs of every kind, with small numbers for free
    dims; False where operands are too large to look at. Few draws are enough where functions were not looked into."""
    numerics = Numerics(word, REORDERED)
    usual = [_sizes(goals, first) for first in (2, 3)]
    empty = [usual[0] | {name: 0} for name in usual[0]] + [dict.fromkeys(usual[0], 0)]  # a sum of nothing hides what a product shows
    for seed, sizes in enumerate((*usual, *(empty if usual[0] else ()))):
        try:
            pairs = [tuple(specialized(goal, sizes)) for goal in goals]
        except CosetError:
            return False
        seeds = (seed,) if few else range(seed, DRAWS, 2)
        if not all(_keeps((one, other), numerics, each, ranges=not few) for one, other in pairs for each in seeds):
            return False
    return True


def _sizes(goals: Sequence[Goal], first: int) -> dict[str, int]:
    """Small numbers for the free dims, of which the first is this one."""
    dims = [dim for goal in goals for term in topological(goal) for type in tensors_in(term.type) for dim in type.shape or ()]
    names = sorted({name for dim in dims for name in symbols(dim)})
    return {name: first + number % 3 for number, name in enumerate(names)}


def _keeps(pair: tuple[Term, Term], numerics: Numerics, seed: int, *, ranges: bool) -> bool:
    inputs = {term.attribute("name"): term.tensor for term in topological(pair) if term.op is INPUT}
    if any(type.static is None or prod(type.static) > ELEMENTS for type in inputs.values()):
        return False
    generator, thresholds = np.random.default_rng(seed), thresholds_of(pair)
    for kind in (*kinds_of(numerics), WHOLE, *(FEW,) * SPARSE):
        if kind == RANGE and not ranges:  # see `_is_moderate`
            continue
        drawn, kind = (KINDS[1], NONFINITE) if kind == FEW else (kind, kind)
        feed = {name: draw(generator, type.dtype, type.static or (), drawn, thresholds) for name, type in inputs.items()}
        if drawn != kind:
            _put_few(generator, feed)
        try:
            with np.errstate(all="ignore"):
                left, right = (np.asarray(value) for value in evaluate(pair, feed, fallback=evaluate_defined))
                if promised_difference(numerics, pair, feed, (left, right), kind) is not None:
                    return False
        except CosetError:
            return False
    return True


def _put_few(generator: np.random.Generator, feed: dict[str, Array]) -> None:
    """Put one or two numbers that are special among those of a feed: among many the others hide what one of them shows."""
    names = [name for name, values in feed.items() if values.size and dtype_of(values.dtype).kind == "float"]
    for _ in range(int(generator.integers(1, 2, endpoint=True)) if names else 0):
        values = np.array(feed[name := names[int(generator.integers(len(names)))]])
        values.reshape(-1)[int(generator.integers(values.size))] = generator.choice(SPECIAL)
        feed[name] = values


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
