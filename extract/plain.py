"""A program as an e-graph of itself: one class, one e-node for each term. So a plain program is priced as a choice is."""

from __future__ import annotations

from collections.abc import Sequence

from coset.egraph.saturated import ENode, Saturated
from coset.ir.builtin import ABSENT, DIMS
from coset.ir.op import AT_RUN_TIME
from coset.ir.term import CONSTANT, Term, topological
from coset.ir.types import TensorType, Type


def saturated_of(roots: Sequence[Term]) -> tuple[Saturated, list[Term]]:
    """The e-graph, and the term of each class."""
    terms = list(topological(roots))
    number = {term: place for place, term in enumerate(terms)}
    constant: set[int] = set()
    nodes: list[tuple[ENode, ...]] = []
    for place, term in enumerate(terms):
        children = tuple(number[operand] for operand in term.operands)
        node = ENode(term.op, children, term.attributes, term.regions, True)
        nodes.append((node,))
        if is_constant(node, term.type, [child in constant or terms[child].op is ABSENT for child in children]):
            constant.add(place)
    source = tuple((place, 0) for place in range(len(terms)))
    types = [term.type for term in terms]
    return Saturated(types, nodes, tuple(number[root] for root in roots), frozenset(constant), source), terms


def is_constant(node: ENode, type: Type, operands: Sequence[bool]) -> bool:
    """True when the value is known at build time, given which operands are (an absent one is)."""
    if node.op is CONSTANT:
        return True
    if not isinstance(type, TensorType) or type.static is None or node.regions or not node.op.traits.isdisjoint(AT_RUN_TIME):
        return False
    if node.op is DIMS:
        return all(isinstance(dim, int) for dim in dict(node.attributes)["dims"])
    if node.op.has("foreign"):
        return bool(operands) and not dict(node.attributes)["effect"] and all(operands)
    return not node.op.has("leaf") and all(operands)
