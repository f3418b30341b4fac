"""An e-graph made by hand: a program and further terms that are equal to terms of it."""

from __future__ import annotations

from collections.abc import Sequence

from coset.egraph.saturated import ENode, Saturated
from coset.extract.plain import is_constant
from coset.ir.builtin import ABSENT
from coset.ir.term import Term, topological


def saturated_with(roots: Sequence[Term], equal: Sequence[tuple[Term, Term]] = ()) -> Saturated:
    """The e-graph of the program `roots` in which each pair of `equal` is one class (congruence is not closed)."""
    program = list(topological(roots))
    terms = list(topological([*roots, *(term for pair in equal for term in pair)]))
    leader = {term: term for term in terms}

    def find(term: Term) -> Term:
        while leader[term] is not term:
            term = leader[term]
        return term

    for a, b in equal:
        leader[find(b)] = find(a)
    numbers: dict[Term, int] = {}
    for term in terms:
        numbers.setdefault(find(term), len(numbers))
    number = {term: numbers[find(term)] for term in terms}
    nodes: list[list[ENode]] = [[] for _ in numbers]
    place: dict[Term, tuple[int, int]] = {}
    types = {number[term]: term.type for term in reversed(terms)}
    inside = set(program)
    for term in terms:
        node = ENode(term.op, tuple(number[operand] for operand in term.operands), term.attributes, term.regions, term in inside)
        if node not in nodes[number[term]]:
            nodes[number[term]].append(node)
        place[term] = (number[term], nodes[number[term]].index(node))
    constant: set[int] = set()
    before = -1
    while before < len(constant):
        before = len(constant)
        for term in terms:
            node = nodes[number[term]][place[term][1]]
            if is_constant(node, term.type, [number[operand] in constant or operand.op is ABSENT for operand in term.operands]):
                constant.add(number[term])
    return Saturated([types[n] for n in range(len(numbers))], [tuple(entries) for entries in nodes], tuple(number[root] for root in roots),
                     frozenset(constant), tuple(place[term] for term in program))  # fmt: skip
