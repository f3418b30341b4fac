"""A rule at terms: its left side matched to given terms, and what the rule says that they equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.ir.term import Term
from coset.ir.types import TupleType
from coset.rules import payloads
from coset.rules.pattern import Pattern, Variable
from coset.rules.rule import Decision, Rule


def matched(rule: Rule, roots: Sequence[Term]) -> tuple[dict[int, Term], dict[str, Term]] | None:
    """The terms of the left side, whose roots are `roots`, by index of application, and those of the variables; None where the left side
    is no pattern of them."""
    left: dict[int, Term] = {}
    given: dict[str, Term] = {}
    if len(roots) != len(rule.pairs):
        return None
    stack: list[tuple[Pattern, Term]] = [(pattern, term) for (pattern, _), term in zip(rule.pairs, roots, strict=True)]
    while stack:
        pattern, term = stack.pop()
        if isinstance(pattern, Variable):
            if given.setdefault(pattern.name, term) is not term:
                return None
            continue
        if term.op is not pattern.op or len(term.operands) != len(pattern.operands):
            return None
        left[pattern.index] = term
        stack += zip(pattern.operands, term.operands, strict=True)
    return (left, given) if given.keys() == set(rule.variables) else None


def decided(rule: Rule, left: Mapping[int, Term], given: Mapping[str, Term]) -> Decision | None:
    """What the rule decides where its left side, by index of application, is `left`."""
    several = int(rule.roots > 1)
    attributes: list[Any] = [()] * (len(left) + several)
    types: list[Any] = [None] * (len(left) + several)
    for index, term in left.items():
        items = payloads.described(term.op, term.attributes, term.regions)
        if items is None:
            return None
        attributes[index], types[index] = items, term.type
    if several:
        types[0] = TupleType(tuple(left[root.index].type for root, _ in rule.pairs))
    return rule.decide(attributes, types, [given[name].type for name in rule.variables])


def right_sides(rule: Rule, decision: Decision, given: Mapping[str, Term]) -> tuple[Term, ...]:
    """What the roots of the left side equal, over the terms of the variables."""

    def construct(pattern: Pattern) -> Term:
        if isinstance(pattern, Variable):
            return given[pattern.name]
        operands = tuple(construct(operand) for operand in pattern.operands)
        return payloads.made(pattern.op, operands, decision.attributes[pattern.index], decision.types[pattern.index])

    return tuple(construct(right) for _, right in rule.pairs)
