"""Grades of a rule by range: for each class of float types whether what it stores is admitted always, for some instances, or never."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from coset.ir.errors import CosetError
from coset.ir.term import Term, input_term, make, rebuild, topological
from coset.ir.types import DTYPES, DType, TensorType
from coset.prove.deadline import look
from coset.prove.growth import growth
from coset.prove.retyped import retyped
from coset.prove.sample import sides
from coset.prove.stored import Growth, StoredGrowth
from coset.rules.algebra import Literal
from coset.rules.applied import matched, right_sides
from coset.rules.instance import InstanceSearch
from coset.rules.instances import instances
from coset.rules.lock import arrow
from coset.rules.pattern import Pattern, Variable
from coset.rules.ranges import ALWAYS, COUNTED, FEW, NEVER, SOME, class_of
from coset.rules.rule import Rule, decided
from coset.rules.undecided import possible

CLASSES = {"f8": "f8e5m2", "f16": "f16", "bf16": "f32", "f32": "f32", "f64": "f64"}  # each with a type of its range
FORMS = 12  # of a definition: the others are the same clauses with other operands left out
ORDER = (ALWAYS, COUNTED, SOME, NEVER)
DRAWS, PLAIN = 6, 3  # instances of a rule that takes numbers as they are, and of another
SIZES = (2, 3, 4, 5, 8)
LOOKED_AT = 24  # instances of one draw
QUESTIONS = 4000  # to type rules, for one draw
MANY = 1 << 20  # elements that an op may fold
EXPONENTS = (0, 1, -4, 30, -60, 120)  # of the numbers that a rule takes as they are, in the order of draws


@dataclass(frozen=True)
class Grade:
    """What is known for one class of float types: the verdict, the growth of the worst instance as text, whether it was drawn."""

    verdict: str
    growth: str
    drawn: bool = False

    def __str__(self) -> str:
        return f"{self.verdict} ({self.growth})" if self.growth != "h = 0" else self.verdict


def as_words(found: Mapping[str, Mapping[str, Grade]]) -> dict[str, dict[str, str]]:
    """Grades as the lock file keeps them: those that are not `always`."""
    return {
        direction: {name: str(grade) for name, grade in own.items() if grade.verdict != ALWAYS} for direction, own in found.items()
    }  # fmt: skip


def grades(rule: Rule) -> dict[str, Grade]:
    """The grades of one direction and variant of a rule, by class of float types; none where no instance has floats. Only `reassociates`
    promises something of ranges: the results of an exact rule are the same bits whatever it stores on the way."""
    if rule.numerics.word != "reassociates":
        return {}
    constants = constants_of(rule)
    opens = rule.definition is not None
    facts = {name: fact for fact, name in rule.facts} if not opens else None  # a search measures by no draw
    pairs = list(_pairs(rule))
    found: dict[str, Grade] = {}
    known: dict[str, tuple[list[Growth], list[Growth]]] = {}
    met = _met(rule)
    stands = any(term.tensor.dtype == DTYPES["f32"] for pair in pairs for term in topological(pair) if _is_float(term))
    for name, dtype in CLASSES.items():
        look()
        if name not in met:
            continue
        narrow = not pairs  # what is said of narrow types alone has no instance of f32
        key = dtype if stands else name  # a type that is written down has no other in its place
        if key not in known:
            own = _pairs(rule, dtype) if narrow else pairs
            typed = [each for each in (pair if narrow else _typed(pair, name, DTYPES[dtype]) for pair in own) if each is not None]
            plain = [growth(*pair, constants=constants, facts=facts, opens=opens) for pair in typed]
            many = [(pair, each) for pair, each in zip(typed, plain, strict=True) if each.counted]
            known[key] = plain, [growth(*pair, constants=constants, most=MANY, known=_drawn(each), opens=opens) for pair, each in many]
        if known[key][0]:
            found[name] = _grade(name, *known[key])
    return found


def entry_grades(rules: Sequence[Rule]) -> dict[str, dict[str, Grade]]:
    """The grades of the rules of one entry, by direction: all its forms together. What finds a defined op stores nothing but the result,
    and has no grade; of what opens one so many forms are looked at."""
    found: dict[str, list[dict[str, Grade]]] = {}
    opening = [rule for rule in rules if rule.family == rule.definition]
    for rule in [*(rule for rule in rules if rule.definition is None), *opening[:: -(-len(opening) // FORMS) or 1]]:
        found.setdefault(arrow(rule), []).append(grades(rule))
    return {direction: joined(own) for direction, own in sorted(found.items()) if any(own)}


def growth_of_step(rule: Rule, roots: Sequence[Term]) -> Growth | None:
    """The growth of a rule where its left side is `roots`, with the numbers of the constants there; None where it does not fire."""
    found = matched(rule, roots)
    if found is None:
        return None
    left, given = found
    decision = decided(rule, left, given)
    if decision is None:
        return None
    leaves = {name: term if term.op.name == "builtin.constant" else input_term(name, term.type) for name, term in given.items()}
    after = right_sides(rule, decision, leaves)
    before = [_over(root, pattern, leaves) for root, (pattern, _) in zip(roots, rule.pairs, strict=True)]
    pair = (before[0], after[0]) if rule.roots == 1 else (make("builtin.tuple", before), make("builtin.tuple", after))
    return growth(*pair, constants=constants_of(rule))


def _over(term: Term, pattern: Pattern, leaves: Mapping[str, Term]) -> Term:
    """A term that has the form of a pattern over other terms in the places of its variables."""
    if isinstance(pattern, Variable):
        return leaves[pattern.name]
    operands = [_over(operand, each, leaves) for operand, each in zip(term.operands, pattern.operands, strict=True)]
    return rebuild(term, operands)


def _met(rule: Rule) -> set[str]:
    """The classes of the float types that a rule may meet: those that its variables have, as far as conditions on types leave them."""
    kinds = rule.compiled.kinds
    named = [name for name, kind in kinds.items() if kind.word == "dtype"]
    chosen = possible(rule, named, list(itertools.product(*(sorted(kinds[name].classes, key=str) for name in named))))
    types = [dtype for each in chosen for dtype in each]
    types += [pattern.dtype.value for pattern in rule.compiled.types if isinstance(pattern.dtype, Literal)]
    return {class_of(dtype) for dtype in types if dtype.kind == "float"}


def constants_of(rule: Rule) -> frozenset[str]:
    """The variables that stand for numbers of the program."""
    return frozenset(name for fact, name in rule.facts if fact == "const")


def admitted_at(found: Growth, *classes: str) -> bool:
    """Whether what is stored in types of these classes is admitted."""
    return all(value.admitted for value in found.values if class_of(value.dtype) in classes)


def joined(found: Sequence[Mapping[str, Grade]]) -> dict[str, Grade]:
    """The grades of several forms together."""
    result: dict[str, Grade] = {}
    for name in CLASSES:
        own = [each[name] for each in found if name in each]
        if own:
            words = {grade.verdict for grade in own}
            worst = max(own, key=lambda grade: ORDER.index(grade.verdict))
            verdict = words.pop() if len(words) == 1 else COUNTED if words == {ALWAYS, COUNTED} else SOME
            result[name] = Grade(verdict, worst.growth, any(grade.drawn for grade in own))
    return result


def _drawn(found: Growth) -> dict[Term, StoredGrowth]:
    """What was measured."""
    return {term: value for term, value in found.by_term.items() if value.drawn or not value.bounded}


def _grade(name: str, plain: Sequence[Growth], counted: Sequence[Growth]) -> Grade:
    """The grade by instances with the numbers of elements that they have, and with very many."""
    every = [*plain, *counted]
    good = {id(each): admitted_at(each, name, class_of(DTYPES[CLASSES[name]])) for each in every}
    if all(good.values()):
        verdict = ALWAYS
    elif not any(good.values()):
        verdict = NEVER
    else:
        verdict = COUNTED if all(good[id(each)] for each in plain) and FEW[name] > 1 else SOME
    worst = max([each for each in every if not good[id(each)]] or every, key=_size)
    return Grade(verdict, str(worst), any(each.drawn for each in every))


def _size(found: Growth) -> tuple[float, float]:
    worst = found.worst
    if worst is None:
        return 0.0, 0.0
    bound = max(worst.first, worst.second)
    return (float(worst.degree or 99), worst.over) if bound == float("inf") else (1.0, bound)


class _Several(InstanceSearch):
    """Draws no dim of one element, of which nothing is folded."""

    def refresh(self) -> None:
        """Draw the numbers that dims are made of."""
        assert self.random is not None
        self.pool = self.random.sample(SIZES, self.random.choice((1, 2, 3, len(SIZES))))


def _pairs(rule: Rule, dtype: str = "f32") -> Iterator[tuple[Term, Term]]:
    """Both sides of some instances with floats, of this type where none is written down."""
    names = [name for name, kind in rule.compiled.kinds.items() if kind.word == "float"]
    for turn, exponent in enumerate(EXPONENTS[: DRAWS if names else PLAIN]):
        draw = random.Random(f"growth {turn}")
        numbers = {} if turn % 2 == 0 else {name: draw.uniform(1, 2) * 2.0 ** (exponent + place) for place, name in enumerate(names)}
        kind = InstanceSearch if turn % 3 == 2 else _Several
        search = kind(draw, dtypes=2, firing=True, elements=(dtype,), budget=QUESTIONS, numbers=numbers, turn=turn)
        found: list[tuple[Term, Term]] = []
        try:
            for instance in itertools.islice(instances(rule, search), LOOKED_AT):
                pair = sides(rule, instance)
                if pair is not None and any(_is_float(term) for term in topological(pair)):
                    found.append(pair)
        except CosetError:
            pass
        most = max(found, key=_folded, default=None)  # where a list of axes may be empty the first seldom folds anything
        yield from [found[0], most] if most is not None and _folded(most) > _folded(found[0]) else found[:1]


def _folded(pair: tuple[Term, Term]) -> int:
    """How many more elements the ops of both sides read than they give, but for those that work element by element or move them."""
    total = 0
    for term in topological(pair):
        if term.operands and isinstance(term.type, TensorType) and not term.op.has("elementwise") and not term.op.has("movement"):
            sizes = [prod(each.type.static or ()) for each in (*term.operands, term) if isinstance(each.type, TensorType)]
            total += max(0, sum(sizes[:-1]) - sizes[-1])
    return total


def _typed(pair: tuple[Term, Term], name: str, dtype: DType) -> tuple[Term, Term] | None:
    """The instance with floats of this type in the place of those of f32, or as it is where it has others of this class and none of f32;
    None where it has none, or cannot be."""
    floats = {term.tensor.dtype for term in topological(pair) if _is_float(term)}
    if DTYPES["f32"] not in floats:
        return pair if any(class_of(own) == name for own in floats) else None
    if dtype == DTYPES["f32"]:
        return pair
    try:
        left, right = retyped(pair, {DTYPES["f32"]: dtype})
    except (CosetError, OverflowError):
        return None
    return left, right


def _is_float(term: Term) -> bool:
    return isinstance(term.type, TensorType) and term.type.dtype.kind == "float"
