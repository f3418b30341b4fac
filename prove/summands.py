"""What is known of the range of a value because it is added to something.

A summand weighs at most as much as the sum and the other summand together: `a` of `a + b`, where both `a + b` and `b` are bounded. So a
product to which a bias is added (`onnx.Gemm`, `onnx.Conv`) weighs at most twice as much as the result or the bias, whatever is multiplied.

What underflows and is only added to one other value loses nothing: the error is no larger than that of rounding the sum, however small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

from coset.ir.term import Term

SUMS = ("stablehlo.add", "stablehlo.subtract")
KEEPING = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.reverse")  # moves that drop no element
LIKE_THEIR_OPERAND = frozenset((  # near 0: an error there is one as large in the result, at most
    "stablehlo.negate", "stablehlo.abs", "stablehlo.log_plus_one", "stablehlo.tanh", "stablehlo.sine",
))  # fmt: skip
DISTANCE = 4  # sums between a summand and a value whose bound is known


def bounds_of_summands(order: Sequence[Term], known: Callable[[Term], float]) -> dict[Term, float]:
    """By how much (log2) summands of the terms in `order`, operands first, can outweigh what `known` is told by: the same number of a term,
    infinite where there is none. Summands alone whose bound was not known, or is lower now."""
    found: dict[Term, float] = {}

    def bound(term: Term) -> float:
        own = min(found.get(term, math.inf), known(term))
        if term.op.has("movement") and len(term.operands) == 1:
            return min(own, bound(term.operands[0]))
        return own

    for _ in range(DISTANCE):
        before = len(found)
        for term in reversed(order):
            if term.op.name in SUMS:
                whole = bound(term)
                for summand, other in (term.operands, term.operands[::-1]):
                    together = _sum(whole, bound(other))
                    for each in _kept(summand):
                        if together < bound(each):
                            found[each] = together
        if len(found) == before:
            break
    return found


def _kept(term: Term) -> Iterator[Term]:
    """The term, and what it shows every element of."""
    yield term
    while term.op.name in KEEPING and term.operands:
        term = term.operands[0]
        yield term


def _sum(one: float, other: float) -> float:
    """log2 of 2^one + 2^other."""
    return math.inf if math.inf in (one, other) else float(max(one, other) + math.log2(1 + 2.0 ** -abs(one - other)))


def only_added(order: Sequence[Term], roots: Collection[Term]) -> set[Term]:
    """The terms in `order`, operands first, that go into sums of their type alone, and are none of the `roots`."""
    users: dict[Term, list[Term]] = {}
    for term in order:
        for operand in term.operands:
            users.setdefault(operand, []).append(term)
    found: set[Term] = set()
    for term in reversed(order):
        own = users.get(term, [])
        if own and term not in roots and all(user.op.name in SUMS or (_passes(user) and user in found) for user in own):
            found.add(term)
    return found


def _passes(term: Term) -> bool:
    return term.op.name in LIKE_THEIR_OPERAND or (term.op.has("movement") and len(term.operands) == 1)
