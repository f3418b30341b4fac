"""Testing a rule: small instances at random, both sides evaluated on ordinary and adversarial values, compared as promised."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import prod

import numpy as np

from coset.dialects.expansion import expanded
from coset.ir.builtin import absent
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import CONSTANT, Term, constant, get, input_term, topological
from coset.ir.types import TensorType, TupleType, Type
from coset.prove.counterexample import Counterexample, named_in
from coset.prove.deadline import TooManyCalls, calling, look
from coset.prove.exact_evaluation import Numbers
from coset.prove.flat import shapeless
from coset.prove.opened import types_drawn
from coset.prove.precision import bits, lost_precision
from coset.prove.promise import Difference, difference_of, exact_difference
from coset.prove.undefined import may_be_undefined, newly_undefined
from coset.prove.values import ENDS, GRID, KINDS, LARGE, NEAR, NONFINITE, RANGE, WHOLE, draw, fitted, grid, has_nan
from coset.rules.algebra import Scalar, Scope, Unbound, evaluate_scalar
from coset.rules.algebra import evaluate as evaluated
from coset.rules.applied import built
from coset.rules.definition import evaluate_defined
from coset.rules.equation import Attributes, Numerics, RuleTypeError
from coset.rules.instance import QUESTIONS, Instance, InstanceSearch
from coset.rules.instances import instances
from coset.rules.pattern import Pattern, Variable, applications
from coset.rules.payloads import made
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined
from coset.rules.uses import highest_rank, sizes

ELEMENTS = 4096  # instances with larger operands are passed over
DTYPES = 9  # element types of a class
UNEVEN = 4  # one draw in so many has lists of mixed numbers, which keep many rules from firing: it may ask as much less
FRUITLESS = 7  # draws without an instance, after which none is expected
IDLE = 4000  # instances one after the other on which a rule does not fire; of the library's the rarest fires after 2,433
FRUGAL = 400  # questions to type rules; an instance that took more is compared on values of every kind, an ordinary one on those of one
LONG = 70_000  # the same of rules with `iota`, whose numbers wrap around in narrow integers
HIGH = 6  # the highest rank of packs, in one draw of so many as `HIGH_EVERY`
HIGH_EVERY = 4
RANK = 3  # that of the other draws
EMPTY_EVERY, LONG_EVERY = 6, 3  # of so many draws one has dims of 0, one more places than a narrow integer counts
EMPTIES = 10  # draws at the end with dims of 0, of rules that fold
SIZES_EVERY = 4  # of so many draws one has dims that the rule itself speaks of
THOROUGH, SOME = 6, 2  # draws that are compared on elements of every kind, and on how many kinds the later ones are
FEW, REPEATS = 64, 3  # elements of operands that are cheap to draw, and how often they are for numbers of few digits
LEAST_CALLS, CALLS_EACH = 1 << 14, 8  # of functions in an evaluation: so many, and so many more for each element of an input
MOST_THRESHOLDS = 24  # numbers of an instance that are drawn as elements
PLAIN = (KINDS[1], KINDS[2], NONFINITE, GRID, WHOLE)  # kinds of numbers of few digits
STORED = KINDS[0]  # the kind on which stored results are looked at, too: others overflow, which may come and go


@dataclass(frozen=True)
class TestOutcome:
    """What testing one rule gave: how many comparisons were made, and the first one that failed."""

    rule: str
    cases: int
    counterexample: Counterexample | None = None

    @property
    def ok(self) -> bool:
        """True when something was compared and nothing differed."""
        return self.counterexample is None and self.cases > 0


def test_rule(rule: Rule, seed: int, cases: int) -> TestOutcome:
    """Compare both sides of `rule` in `cases` drawn situations, in twice as many where they are easily found; the same seed draws the
    same ones, whatever the rule is called.

    A side that the evaluator cannot compute (an opaque op) counts as no case.

    Raises:
        Late: the time that was set around it is over.
    """
    own = f"{seed}:{rule.left} => {rule.right}"
    search = InstanceSearch(random.Random(own), dtypes=DTYPES, firing=True, watch=look, further=types_drawn(rule))
    digest = list(hashlib.blake2b(own.encode(), digest_size=16).digest())
    generator, apart = np.random.default_rng(digest), np.random.default_rng([*digest, 1])  # `apart`: other draws stay as they are
    done, left, idle = 0, 2 * cases, 0
    kinds = kinds_of(rule.numerics)
    counted, rows, stated, highest = _counts(rule), shapeless(rule), sizes(rule), highest_rank(rule, HIGH)
    for round in (*range(4 * cases), *range(-(EMPTIES if _folds(rule) else 0), 0)):
        if (round >= 0 and left <= 0) or (not done and not 0 <= round <= FRUITLESS):
            continue
        look()
        drawing = _turn(search, own, round, counted, rows, highest)
        if round < 0:
            search.empty, search.long, search.uneven, kinds = True, False, False, kinds_of(rule.numerics)[:3]
        sized = stated and round % SIZES_EVERY == SIZES_EVERY - 2 and round >= 0
        search.sizes = stated[(round // SIZES_EVERY + seed) % len(stated)] if sized else ()
        fired = 0
        for instance in instances(rule, search):
            look()
            if not _small(instance, LONG if counted else ELEMENTS):
                continue
            try:
                pair = sides(rule, instance)
            except RuleTypeError as error:  # sizes that the type checker did not look at
                if rule.definition is not None:  # recognised only where the definition declares such a result
                    continue
                return TestOutcome(rule.name, done + 1, _untyped(rule, instance, error))
            if pair is None:
                idle += 1
                if idle >= IDLE:
                    return TestOutcome(rule.name, done)
                continue
            fired, idle = fired + 1, 0
            costly = search.spent > FRUGAL
            left -= 2 * len(set(kinds)) if costly else 1
            situation = Situation.of(rule, instance, pair)
            every = costly or search.rare or round < THOROUGH
            for kind in (GRID, RANGE, WHOLE) if search.row else kinds if every else drawing.sample(kinds, SOME):
                for _ in range(REPEATS if kind in PLAIN and _small(instance, FEW) else 1):
                    look()
                    found = situation.compared(kind, apart if kind == WHOLE else generator)
                    if found is not None:
                        return TestOutcome(rule.name, done + 1, found)
                done += 1
            if fired > costly or left <= 0:  # a fresh draw of ranks and dtypes, after two instances where they are hard to find
                break
    return TestOutcome(rule.name, done)


def _folds(rule: Rule) -> bool:
    """Whether an op of a rule is neither elementwise nor a movement: what it makes of nothing is to be looked at."""
    nodes = (node for pair in rule.pairs for side in pair for node in applications(side))
    return any(not node.op.has("elementwise") and not node.op.has("movement") for node in nodes)


def _turn(search: InstanceSearch, own: str, round: int, counted: bool, rows: bool, highest: int) -> random.Random:
    """Set a search up for one more draw; what it draws with. Every few draws ranks are high, or where shapes do not count the instance has
    long rows, in which all combinations of some numbers stand."""
    drawing = search.random = random.Random(f"{own}:{round}")
    search.turn = round
    search.rare, search.uneven = False, round % UNEVEN == UNEVEN - 1
    search.budget = QUESTIONS // UNEVEN if search.uneven else QUESTIONS
    other = round >= 0 and round % HIGH_EVERY == HIGH_EVERY - 1
    search.row, search.high = other and rows, other and not rows
    search.least_rank, search.most_rank = (1, 1) if search.row else (RANK + 1, highest) if search.high else (0, RANK)
    search.empty = round % EMPTY_EVERY == EMPTY_EVERY - 1
    search.long = counted and round % LONG_EVERY == LONG_EVERY - 2
    return drawing


def _counts(rule: Rule) -> bool:
    """Whether a rule counts places in integers, which wrap around where there are many."""
    return any(node.op.name == "stablehlo.iota" for pair in rule.pairs for side in pair for node in applications(side))


def _untyped(rule: Rule, instance: Instance, error: CosetError) -> Counterexample:
    nothing = np.array(0)
    return Counterexample(rule.name, named_in(rule, instance), {}, nothing, nothing, (), error.message)


setattr(test_rule, "__test__", False)  # noqa: B010  (pytest would take it for a test)


def drawn(rule: Rule, seed: int, count: int) -> list[tuple[Term, Term]]:
    """Both sides of up to `count` small instances of `rule`, the same ones for one seed, whatever the rule is called."""
    found: list[tuple[Term, Term]] = []
    for round in range(count):
        search = InstanceSearch(random.Random(f"{seed}:{rule.left} => {rule.right}:{round}"), dtypes=1, firing=True, watch=look)
        for instance in instances(rule, search):
            pair = sides(rule, instance) if _small(instance) else None
            if pair is not None:
                found.append(pair)
                break
    return found


def _small(instance: Instance, most: int = ELEMENTS) -> bool:
    return all(_few(type, most) for type in (*instance.variable_types, *instance.left_types))


@lru_cache(maxsize=4096)
def _few(type: Type, most: int) -> bool:
    """Whether an operand of that type is small enough; the same few types come by tens of thousands of times."""
    return not isinstance(type, TensorType) or (type.static is not None and prod(type.static) <= most)


def kinds_of(numerics: Numerics) -> tuple[str, ...]:
    """The kinds of elements on which a promise is looked at: special values where it speaks about them."""
    if numerics.word == "exact":
        return (*KINDS, RANGE)
    if numerics.word == "reassociates":
        return (*KINDS[:2], NONFINITE, LARGE, RANGE, NEAR)
    return (*KINDS[:2], ENDS, RANGE) if numerics.word == "real" else (*KINDS[:2], ENDS)


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

    return left(rule.left), built(rule.right, decision, terms)


@dataclass(frozen=True)
class Situation:
    """An instance of a rule, with the exact numbers behind the constants of both sides, and numbers at which something may change."""

    rule: Rule
    instance: Instance
    pairs: tuple[tuple[Term, Term], ...]
    numbers: tuple[Numbers, Numbers]
    thresholds: tuple[float, ...]

    @staticmethod
    def of(rule: Rule, instance: Instance, pair: tuple[Term, Term]) -> Situation:
        """The situation in which `rule` says that the sides of `pair` are equal."""
        return Situation(rule, instance, tuple(results(pair)), numbers_of(rule, instance), thresholds_of(pair))

    def compared(self, kind: str, generator: np.random.Generator) -> Counterexample | None:
        """A counterexample among drawn elements of that kind, or None."""
        return self.judged(self.drawn(kind, generator), kind)

    def drawn(self, kind: str, generator: np.random.Generator) -> dict[str, Array]:
        """Inputs with elements of that kind, which are what the rule asks for."""
        facts = {name: fact for fact, name in self.rule.facts}
        real = self.rule.numerics.word == "real"  # which says nothing of infinities and NaN
        inputs: dict[str, Array] = {}
        for name, type in zip(self.rule.variables, self.instance.variable_types, strict=True):
            assert isinstance(type, TensorType) and type.static is not None
            fact = facts.get(name, "")
            finite = fact == "const" and self.rule.numerics.word != "exact" and type.dtype.kind in ("float", "complex")
            if kind == GRID:
                inputs[name] = fitted(grid(len(inputs), type.dtype, type.static, self.thresholds, finite=finite or real), fact)
                continue
            # a constant with an infinity or a NaN in it is none to the search
            own = KINDS[1] if finite and kind in (KINDS[2], NONFINITE) else kind
            inputs[name] = fitted(draw(generator, type.dtype, type.static, own, self.thresholds), fact)
        return inputs

    def judged(self, inputs: Mapping[str, Array], kind: str) -> Counterexample | None:
        """The counterexample that these inputs, of that kind, are; None where the sides agree as promised, or where a loop has too many
        turns to see it."""
        calls = LEAST_CALLS + CALLS_EACH * sum(each.size for each in inputs.values())
        try:
            for pair in self.pairs:
                with np.errstate(all="ignore"), calling(calls):
                    left, right = (np.asarray(value) for value in evaluate(pair, inputs, fallback=evaluate_defined))
                    difference = promised_difference(self.rule.numerics, pair, inputs, (left, right), kind, self.numbers)
                    if difference is None and may_be_undefined(pair):
                        difference = newly_undefined(pair, inputs)
                if difference is not None:
                    index, why = difference
                    own = self.instance
                    return Counterexample(self.rule.name, named_in(self.rule, own), inputs, left, right, index, why, kind, own)
        except TooManyCalls:
            return None
        except CosetError as error:
            nothing, why = np.array(0), f"it cannot be evaluated: {error.message}"
            return Counterexample(
                self.rule.name, named_in(self.rule, self.instance), inputs, nothing, nothing, (), why, kind, self.instance
            )
        return None


def promised_difference(
    numerics: Numerics, pair: tuple[Term, Term], inputs: Mapping[str, Array], values: tuple[Array, Array], kind: str,
    numbers: tuple[Numbers, Numbers] = ({}, {}),
) -> Difference | None:  # fmt: skip
    """Where two terms differ more than `numerics` promise on inputs of a kind on which they have these `values`; None where they do not."""
    left, right = values
    exactly = numerics.word in ("reassociates", "real")
    # what is undefined is no NaN in a type that has none
    stored = kind == STORED and not (numerics.word == "real" and not has_nan(left.dtype))
    if not exactly or stored or left.shape != right.shape or left.dtype != right.dtype:
        found = difference_of(numerics, left, right, pair, inputs)
        if found is not None or not exactly:
            return found
    found = exact_difference(numerics, pair, inputs, numbers, plain=kind in PLAIN)
    if found is None and kind == KINDS[0] and numerics.word == "reassociates":
        why = lost_precision(pair, inputs, numbers)
        found = ((), why) if why else None
    return found


def numbers_of(rule: Rule, instance: Instance) -> tuple[Numbers, Numbers]:
    """The constants of the left and of the right side that the rule states or computes, with the numbers that they are the roundings of,
    where these are others; those that stand for two are left out."""
    given = instance.attributes, instance.left_types, instance.variable_types
    scope, decision = rule.scope(*given), rule.decide(*given)
    if scope is None or decision is None:
        return {}, {}
    scope.right = list(decision.types)
    return _numbers(rule.compiled.left, scope), _numbers(rule.compiled.right, scope)


def _numbers(written: Sequence[Attributes], scope: Scope) -> Numbers:
    found: dict[Term, Decimal] = {}
    twice: set[Term] = set()
    for attributes in written:
        for _, value in attributes.items:
            if not isinstance(value, Scalar):
                continue
            try:
                number = evaluate_scalar(value.value, scope)
                stored = constant(evaluated(value, scope))
            except (Undefined, Unbound, CosetError):
                continue
            if stored.tensor.dtype.kind != "float" or not isinstance(number, Decimal) or not number.is_finite():
                continue
            if found.setdefault(stored, number) != number:
                twice.add(stored)
    return {term: number for term, number in found.items() if term not in twice and _stored(term) != number and _keeps(term, number)}


def _keeps(term: Term, number: Decimal) -> bool:
    """Whether a number is stored as a rounding of itself: 1e9 is infinite in f16 and 1e-10 is 0 there, which are other numbers."""
    stored = _stored(term)
    return stored.is_finite() and bool(stored) == bool(number)


def _stored(term: Term) -> Decimal:
    return Decimal(float(term.attribute("value").array().astype(np.float64)))


def thresholds_of(pair: tuple[Term, Term]) -> tuple[float, ...]:
    """The small constants in both sides, and their negatives: comparisons and quotients change there."""
    found: dict[float, None] = {}
    for term in topological(expanded(pair, keep=lambda _: False)):
        if (
            term.op is CONSTANT
            and term.tensor.dtype.kind in ("float", "int", "uint")
            and term.attribute("value").array().size <= MOST_THRESHOLDS
        ):
            for number in term.attribute("value").array().astype(np.float64).reshape(-1):
                if np.isfinite(number) and number:
                    found |= {float(number): None, -float(number): None}
    return (*_ties(pair), *found)[:MOST_THRESHOLDS]


def _ties(pair: tuple[Term, Term]) -> Iterator[float]:
    """Numbers that two conversions one after the other round to another one than the last alone: just beside the middle between two
    numbers of the coarser type, where the finer type of the first does not tell them from it."""
    terms = list(topological(expanded(pair, keep=lambda _: False)))
    floats = {t.tensor.dtype for t in terms if isinstance(t.type, TensorType) and t.tensor.dtype.kind == "float"}
    digits = sorted({bits(dtype) for dtype in floats})
    wide = {t.tensor.dtype.bits for t in terms if isinstance(t.type, TensorType) and t.tensor.dtype.kind in ("int", "uint")}
    if not any(term.op.name == "stablehlo.convert" for term in terms):
        return
    for coarse, fine in itertools.pairwise(digits):
        yield from (1 + 2.0**-coarse + sign * 2.0 ** -(fine + 1) for sign in (1, -1))
    for size in sorted(wide):
        yield from (2.0 ** (size - 2) * (1 + 2.0**-coarse) + sign for coarse in digits if coarse < size - 3 for sign in (1, -1))


def results(sides: tuple[Term, Term]) -> list[tuple[Term, Term]]:
    """The sides result by result."""
    type = sides[0].type
    if all(side.op.name == "builtin.tuple" for side in sides):
        return list(zip(sides[0].operands, sides[1].operands, strict=True))
    return [sides] if not isinstance(type, TupleType) else [(get(sides[0], i), get(sides[1], i)) for i in range(len(type.items))]
