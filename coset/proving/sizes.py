"""Dims that no input has, one name for those that both programs compute: the nodes that give them, and how their operands are equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from coset.ir.dims import symbol
from coset.ir.program import Program
from coset.ir.specialized import sized
from coset.ir.term import Term, exact_key, topological
from coset.prove.contents import all_symbols, all_terms, inner_symbols, introduced, one_result, resized
from coset.proving.constants import Goal
from coset.proving.steps import DIMS, CertificateStep, Uncertified

Show = Callable[[Program, Sequence[Goal]], Sequence[CertificateStep]]
"""The steps that join each pair of terms, the second ones of this program; raises `Uncertified`."""
SIZED_TWICE = "the programs compute a dim of their outputs in two ways"


def with_shared_dims(before: Program, after: Program, show: Show, chosen: Sequence[Term] = ()) -> tuple[list[CertificateStep], Program]:
    """`after` with the names of `before` for the dims of nodes that are seen to be the same, and the steps that say so. `chosen`: terms
    that earlier steps join with the roots of `before`, and that are nearer to those of `after`."""
    own = set(inner_symbols(before))
    nearer = {term.type: term for term in topological(chosen) if introduced(term, own)}
    steps: list[CertificateStep] = []
    while unknown := [name for name in inner_symbols(after) if name not in own]:
        pairs = _level(before, after, own, set(unknown))
        sizes = one_result(pairs, unknown)
        if not sizes:
            break
        goals = [goal for one, other in pairs for goal in zip(nearer.get(one.type, one).operands, other.operands, strict=True)]
        try:
            steps += show(after, goals)
        except Uncertified:
            break
        steps.append(CertificateStep(DIMS, *zip(*pairs, strict=True)))
        after = resized(after, sizes)
    return list(dict.fromkeys(steps)), after


def _level(before: Program, after: Program, own: Set[str], unknown: Set[str]) -> list[Goal]:
    """The nodes of `after` that give unknown dims and are computed from none, each with the next of `before` that does the same."""
    waiting: dict[Any, list[Term]] = {}
    blank = dict.fromkeys((*own, *unknown), symbol("_"))
    for term in all_terms(before):
        if introduced(term, own):
            waiting.setdefault(_kind(term, blank), []).append(term)
    above: set[Term] = set()  # what unknown dims are needed for
    pairs = []
    for term in all_terms(after):
        gives = introduced(term, unknown)
        if any(operand in above for operand in term.operands):
            above.add(term)
        elif gives or introduced(term, own):
            same = waiting.get(_kind(term, blank))
            one = same.pop(0) if same else None
            if gives:
                above.add(term)
                pairs += [] if one is None else [(one, term)]
        elif not unknown.isdisjoint(all_symbols(term)):
            above.add(term)
    return pairs


def _kind(term: Term, blank: Mapping[str, Any]) -> Any:
    attributes = tuple((name, sized(value, blank)) for name, value in term.attributes)
    return term.op, exact_key(attributes), tuple(sized(operand.type, blank) for operand in term.operands)


def require_one_size(before: Sequence[Term], after: Sequence[Term]) -> None:
    """Require that pairs of terms have one type, when dims have one name where they are seen to be one.

    Raises:
        Uncertified: a pair has two.
    """
    if len(before) != len(after):
        raise Uncertified("one of the programs has effects, such as random numbers, and the other has none")
    if any(one.type != other.type for one, other in zip(before, after, strict=True)):
        raise Uncertified(SIZED_TWICE)
