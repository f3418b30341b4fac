"""Testing a rule: small instances at random, both sides evaluated on ordinary and adversarial values, compared as promised."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from coset.dialects.expansion import expanded
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import Term, absent, get, input_term, topological
from coset.ir.types import TensorType, TupleType, Type
from coset.prove.deadline import look
from coset.prove.error_bound import coarsest, evaluate_bounded
from coset.prove.values import ENDS, KINDS, LARGE, draw, fitted
from coset.rules.definition import evaluate_defined
from coset.rules.instance import QUESTIONS, Instance, Search, instances
from coset.rules.pattern import Pattern, Variable
from coset.rules.payloads import made
from coset.rules.rule import Numerics, Rule, RuleTypeError, build

ELEMENTS = 4096  # instances with larger operands are passed over
DTYPES = 9  # element types of a class
UNEVEN = 4  # one draw in so many has lists of mixed numbers, which keep many rules from firing: it may ask as much less
FRUITLESS = 7  # draws without an instance, after which none is expected
IDLE = 4000  # instances one after the other on which a rule does not fire; of the library's the rarest fires after 2,433
FRUGAL = 400  # questions to type rules; an instance that took more is compared on values of every kind, an ordinary one on those of one
SAFETY = 4.0  # on the first-order bounds
_WHOLE = "biu?O"  # kinds of arrays whose elements are equal or not: integers, booleans, strings
FINE, LOST = 1e-6, 2.0**12  # of the roundoff of a float type, and how many of them a result without a bound may be off


@dataclass(frozen=True)
class Counterexample:
    """Inputs on which the sides of a rule differ more than the rule promises."""

    rule: str
    attributes: str
    inputs: Mapping[str, Array]
    left: Array
    right: Array
    index: tuple[int, ...]
    why: str

    def __str__(self) -> str:
        lines = [f"{self.rule}: {self.why}"]
        lines += [f"  attributes {self.attributes}"] if self.attributes else []
        for name, array in self.inputs.items():
            text = np.array2string(array, threshold=24, separator=", ", prefix="    ")
            lines.append(f"  {name}: {array.dtype}{list(array.shape)} = {text}")
        at = f" at {list(self.index)}" if self.index else ""
        if self.left.shape == self.right.shape:
            lines.append(f"  left{at} = {self.left[self.index]}, right{at} = {self.right[self.index]}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Outcome:
    """What testing one rule gave: how many comparisons were made, and the first one that failed."""

    rule: str
    cases: int
    counterexample: Counterexample | None = None

    @property
    def ok(self) -> bool:
        """True when something was compared and nothing differed."""
        return self.counterexample is None and self.cases > 0


def test_rule(rule: Rule, seed: int, cases: int) -> Outcome:
    """Compare both sides of `rule` in `cases` drawn situations, in twice as many where they are easily found; the same seed draws the
    same ones.

    A side that the evaluator cannot compute (an opaque op) counts as no case.

    Raises:
        Late: the time that was set around it is over.
    """
    search = Search(random.Random(f"{seed}:{rule.name}"), dtypes=DTYPES, firing=True, watch=look)
    generator = np.random.default_rng([seed, len(rule.name)])
    done, left, idle = 0, 2 * cases, 0
    kinds = _kinds(rule.numerics)
    for round in range(4 * cases):
        search.random, search.turn = random.Random(f"{seed}:{rule.name}:{round}"), round
        search.rare, search.uneven = False, round % UNEVEN == UNEVEN - 1
        search.budget = QUESTIONS // UNEVEN if search.uneven else QUESTIONS
        fired = 0
        for instance in instances(rule, search):
            look()
            if not _small(instance):
                continue
            try:
                pair = sides(rule, instance)
            except RuleTypeError as error:  # sizes that the type checker did not look at
                if rule.definition is not None:  # recognised only where the definition declares such a result
                    continue
                return Outcome(rule.name, done + 1, _untyped(rule, instance, error))
            if pair is None:
                idle += 1
                if idle >= IDLE:
                    return Outcome(rule.name, done)
                continue
            fired, idle = fired + 1, 0
            costly = search.spent > FRUGAL
            left -= 2 * len(set(kinds)) if costly else 1
            for kind in dict.fromkeys(kinds) if costly or search.rare else (search.random.choice(kinds),):
                look()
                found = _compare(rule, instance, pair, kind, generator)
                done += 1
                if found is not None:
                    return Outcome(rule.name, done, found)
            if fired > costly or left <= 0:  # a fresh draw of ranks and dtypes, after two instances where they are hard to find
                break
        if left <= 0 or (round >= FRUITLESS and not done):
            break
    return Outcome(rule.name, done)


def _untyped(rule: Rule, instance: Instance, error: CosetError) -> Counterexample:
    nothing = np.array(0)
    return Counterexample(rule.name, _attributes(instance), {}, nothing, nothing, (), error.message)


setattr(test_rule, "__test__", False)  # noqa: B010  (pytest would take it for a test)


def drawn(rule: Rule, seed: int, count: int) -> list[tuple[Term, Term]]:
    """Both sides of up to `count` small instances of `rule`, the same ones for one seed."""
    found: list[tuple[Term, Term]] = []
    for round in range(count):
        search = Search(random.Random(f"{seed}:{rule.name}:{round}"), dtypes=1, firing=True, watch=look)
        for instance in instances(rule, search):
            pair = sides(rule, instance) if _small(instance) else None
            if pair is not None:
                found.append(pair)
                break
    return found


def _small(instance: Instance) -> bool:
    return all(map(_few, instance.variable_types)) and all(map(_few, instance.left_types))


@lru_cache(maxsize=4096)
def _few(type: Type) -> bool:
    """Whether an operand of that type is small enough; the same few types come by tens of thousands of times."""
    return not isinstance(type, TensorType) or (type.static is not None and prod(type.static) <= ELEMENTS)


def _kinds(numerics: Numerics) -> tuple[str, ...]:
    """Special values where the promise speaks about them."""
    return (*KINDS, "special") if numerics.word == "exact" else (*KINDS[:2], LARGE if numerics.word == "reassociates" else ENDS)


def sides(rule: Rule, instance: Instance) -> tuple[Term, Term] | None:
    """Both sides of an instance as terms over inputs that are called as the rule's variables; None where the rule does not fire."""
    decision = rule.decide(instance.attributes, instance.left_types, instance.variable_types)
    if decision is None:
        return None
    terms = {name: input_term(name, type) for name, type in zip(rule.variables, instance.variable_types, strict=True)}

    def left(pattern: Pattern) -> Term:
        if isinstance(pattern, Variable):
            return terms[pattern.name]
        if pattern.op.name == "builtin.absent":
            return absent()
        operands = tuple(left(operand) for operand in pattern.operands)
        return made(pattern.op, operands, instance.attributes[pattern.index], instance.left_types[pattern.index])

    return left(rule.left), build(rule, decision, terms)


def _compare(rule: Rule, instance: Instance, sides: tuple[Term, Term], kind: str, generator: np.random.Generator) -> Counterexample | None:
    inputs = {}
    facts = {name: fact for fact, name in rule.facts}
    for name, type in zip(rule.variables, instance.variable_types, strict=True):
        assert isinstance(type, TensorType) and type.static is not None
        inputs[name] = fitted(draw(generator, type.dtype, type.static, kind), facts.get(name, ""))
    try:
        for pair in results(sides):
            with np.errstate(all="ignore"):
                left, right = (np.asarray(value) for value in evaluate(pair, inputs, fallback=evaluate_defined))
                difference = difference_of(rule.numerics, left, right, pair, inputs)
            if difference is not None:
                index, why = difference
                return Counterexample(rule.name, _attributes(instance), inputs, left, right, index, why)
    except CosetError as error:
        nothing, why = np.array(0), f"it cannot be evaluated: {error.message}"
        return Counterexample(rule.name, _attributes(instance), inputs, nothing, nothing, (), why)
    return None


def results(sides: tuple[Term, Term]) -> list[tuple[Term, Term]]:
    """The sides result by result."""
    type = sides[0].type
    if all(side.op.name == "builtin.tuple" for side in sides):
        return list(zip(sides[0].operands, sides[1].operands, strict=True))
    return [sides] if not isinstance(type, TupleType) else [(get(sides[0], i), get(sides[1], i)) for i in range(len(type.items))]


def _attributes(instance: Instance) -> str:
    return "; ".join(", ".join(f"{name}={value}" for name, value in items) for items in instance.attributes if items)


def difference_of(
    numerics: Numerics, left: Array, right: Array, sides: tuple[Term, Term], inputs: Mapping[str, Array]
) -> tuple[tuple[int, ...], str] | None:
    """The first element where the promise is broken, with the reason; None when it is kept."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return (), f"the left side is {left.dtype}{list(left.shape)}, the right side {right.dtype}{list(right.shape)}"
    if numerics.word == "lossy":
        return None
    if numerics.word == "exact" or left.dtype.kind in _WHOLE:
        unequal = _unequal(numerics, left, right) & ~_excused(numerics, left, right, sides, inputs)
        return _first(unequal, "the sides are not bit-equal")
    excused = _excused(numerics, left, right, sides, inputs)
    a, b = _wide(left), _wide(right)
    finite = np.isfinite(a) & np.isfinite(b)
    if numerics.word != "real":
        broken = _first((np.isfinite(a) != np.isfinite(b)) & ~excused, "one side is finite, the other is not")
        if broken is not None:
            return broken
    if numerics.word == "approx":
        allowed = float(numerics.bound.split()[0]) * np.maximum(1.0, np.abs(a))
        return _first(finite & ~excused & (np.abs(a - b) > allowed), f"the sides differ by more than {numerics.bound}")
    # where the right side computes in a coarser float type than the left one, its own roundings are no excuse
    trusted = sides[:1] if coarsest(sides[1:]) > coarsest(sides[:1]) and numerics.word == "reassociates" else sides
    bounds = _bounds(sum(evaluate_bounded(side, inputs)[1] for side in trusted), a, finite, coarsest(sides))
    beyond = finite & ~excused & (a != b) & ~(np.abs(a - b) <= SAFETY * np.asarray(bounds) + 1e-300)
    return _first(beyond, "the sides differ by more than rounding explains")


def _bounds(derived: Array | int, values: Array, finite: Array, roundoff: float) -> Array:
    """The `derived` bounds; where an op has none (a fold by any function), what no small tensor of a fine float type loses by rounding."""
    bounds = np.broadcast_to(np.asarray(derived, np.float64), values.shape)
    if roundoff > FINE or np.isfinite(bounds).all():
        return bounds
    largest = float(np.max(np.abs(values), where=finite, initial=1.0))
    return np.where(np.isfinite(bounds), bounds, LOST * roundoff * largest)


def _wide(array: Array) -> Array:
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def _excused(numerics: Numerics, left: Array, right: Array, sides: tuple[Term, Term], inputs: Mapping[str, Array]) -> Array:
    """Elements that an exception of the promise covers. A NaN is that of an overflow where something left the range on the way."""
    excused = np.zeros(left.shape, bool)
    if left.dtype.kind in _WHOLE or left.dtype.name in ("int4", "uint4", "int2", "uint2") or not numerics.exceptions:
        return excused
    a, b = _wide(left), _wide(right)
    unknown = np.isnan(a) | np.isnan(b)
    if "nan" in numerics.exceptions:
        excused |= unknown
    if "inf" in numerics.exceptions or "overflow" in numerics.exceptions:
        excused |= np.isinf(a) | np.isinf(b)
    if "inf" in numerics.exceptions or ("overflow" in numerics.exceptions and unknown.any() and _overflows(sides, inputs)):
        excused |= unknown
    return excused


def _overflows(sides: tuple[Term, Term], inputs: Mapping[str, Array]) -> bool:
    """Whether something on the way to the sides is infinite (NaN in formats without infinities), or became 0, as what vanishes does."""
    terms = [term for term in topological(expanded(sides, keep=lambda _: False)) if _is_float(term)]
    for term, value in zip(terms, evaluate(terms, inputs, fallback=evaluate_defined), strict=True):
        array = np.asarray(value)
        wide = _wide(array)
        if np.isinf(wide).any() or (term.operands and (wide == 0).any()) or not np.isinf(_wide(np.asarray(np.inf).astype(array.dtype))):
            return True
    return False


def _is_float(term: Term) -> bool:
    return isinstance(term.type, TensorType) and term.type.dtype.kind in ("float", "complex")


def _unequal(numerics: Numerics, left: Array, right: Array) -> Array:
    if left.dtype.kind in _WHOLE or left.dtype.name in ("int4", "uint4", "int2", "uint2"):
        return np.asarray(left != right)
    if left.dtype.kind == "c":
        parts = [(left.real, right.real), (left.imag, right.imag)]
        return np.logical_or(*(_unequal(numerics, np.asarray(a), np.asarray(b)) for a, b in parts))
    a, b = left.astype(np.float64), right.astype(np.float64)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
    if "signed_zero" in numerics.exceptions:
        same |= a == b
    if "denormal" in numerics.exceptions:
        import ml_dtypes

        tiny = float(ml_dtypes.finfo(left.dtype).tiny)  # type: ignore[no-untyped-call]
        same |= (np.abs(a) <= tiny) & (np.abs(b) <= tiny)
    return np.asarray(~same)


def _first(broken: Array, why: str) -> tuple[tuple[int, ...], str] | None:
    where = np.argwhere(broken)
    return (tuple(int(i) for i in where[0]), why) if len(where) else None
