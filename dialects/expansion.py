"""Programs without defined ops: every op that a term defines is replaced by its definition, until only primitives are left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coset.ir.term import Term, rebuild, topological
from coset.rules.definition import expand, is_defined


def expanded(roots: Sequence[Term], keep: Callable[[Term], bool], results: set[Term] | None = None) -> list[Term]:
    """`roots` with each defined op expanded of which `keep` is false; regions stay as they are. What stands for results of such ops is
    added to `results`.

    Raises:
        CosetError: no definition of an op fits its operands.
    """
    done: dict[Term, Term] = {}
    for term in topological(roots):
        current = rebuild(term, [done[operand] for operand in term.operands])
        # each step gives ops that stand lower in the definitions, which have no circle: the inner loop ends
        done[term] = _primitive(current, keep, results)
    return [done[root] for root in roots]


def opened_once(term: Term) -> Term:
    """The term that defines `term`, over its operands as they are.

    Raises:
        CosetError: no definition of its op fits them.
    """
    return expand(term)


def _primitive(term: Term, keep: Callable[[Term], bool], results: set[Term] | None) -> Term:
    """`term` over its own operands (which are primitive already) with definitions opened."""
    if not is_defined(term.op) or keep(term):
        return term
    opened = expand(term)
    done = {operand: operand for operand in term.operands}
    stack = [opened]
    while stack:
        top = stack[-1]
        if top in done:
            stack.pop()
            continue
        waiting = [operand for operand in top.operands if operand not in done]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        done[top] = _primitive(rebuild(top, [done[operand] for operand in top.operands]), keep, results)
    if results is not None:
        results.add(done[opened])
    return done[opened]
