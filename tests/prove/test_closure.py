"""Congruence closure: the same classes as trying all pairs, and explanations that suffice."""

from __future__ import annotations

import itertools
import random

import pytest

import coset.dialects
from coset.ir.term import Term, input_term, make
from coset.ir.types import F32, TensorType
from coset.prove.closure import Closure

assert coset.dialects  # ops are registered
TYPE = TensorType(F32, (4,))


def drawn(seed: int) -> tuple[list[Term], list[tuple[Term, Term]]]:
    """Terms over few leaves, and equations between some of them."""
    draw = random.Random(seed)
    terms = [input_term(name, TYPE) for name in "abcd"]
    for _ in range(draw.randint(4, 14)):
        if draw.random() < 0.5:
            terms.append(make(draw.choice(("stablehlo.negate", "stablehlo.abs")), (draw.choice(terms),)))
        else:
            terms.append(make(draw.choice(("stablehlo.add", "stablehlo.multiply")), (draw.choice(terms), draw.choice(terms))))
    terms = list(dict.fromkeys(terms))
    return terms, [(draw.choice(terms), draw.choice(terms)) for _ in range(draw.randint(1, 6))]


def by_trying(terms: list[Term], equations: list[tuple[Term, Term]]) -> set[frozenset[Term]]:
    """The classes, by joining until nothing changes."""
    label = {term: number for number, term in enumerate(terms)}

    def join(one: Term, other: Term) -> bool:
        old, new = label[one], label[other]
        for term in terms if old != new else ():
            if label[term] == old:
                label[term] = new
        return old != new

    for one, other in equations:
        join(one, other)
    changed = True
    while changed:
        changed = False
        for one, other in itertools.combinations(terms, 2):
            same = one.op is other.op and one.operands and [label[o] for o in one.operands] == [label[o] for o in other.operands]
            changed |= bool(same) and join(one, other)
    return {frozenset(term for term in terms if label[term] == number) for number in set(label.values())}


@pytest.mark.parametrize("seed", range(150))
def test_classes_are_those_of_trying_all_and_explanations_suffice(seed: int) -> None:
    terms, equations = drawn(seed)
    closure = Closure()
    closure.enter(terms if seed % 2 else terms[:3])
    for number, (one, other) in enumerate(equations):
        closure.enter((one, other))
        closure.join(one, other, number)
    closure.enter(terms)
    wanted = by_trying(terms, equations)
    found: dict[int, set[Term]] = {}
    for term in terms:
        found.setdefault(closure.find(closure.number[term]), set()).add(term)
    assert {frozenset(each) for each in found.values()} == wanted
    for one, other in itertools.combinations(terms, 2):
        if closure.same(one, other):
            used = closure.explain([(one, other)])
            assert any({one, other} <= each for each in by_trying(terms, [equations[number] for number in used]))


def test_what_is_equal_already_needs_nothing() -> None:
    a = input_term("a", TYPE)
    closure = Closure()
    closure.enter([a])
    assert closure.explain([(a, a)]) == set()
