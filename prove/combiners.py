"""Whether payload functions are associative, commutative, or have a neutral element: proved for all values, never believed.

Answers are those that `coset.rules.judged` asks for. What cannot be shown is unknown; nothing is ever called false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from coset.dialects.hub.region_terms import applied
from coset.ir.errors import CosetError
from coset.ir.term import Region, Term, constant, input_term
from coset.ir.types import TensorType
from coset.prove import pointwise
from coset.prove.equal import Open, Sense, compare
from coset.rules.judges import judge
from coset.rules.scalar import Undefined, note, number_in, scalar_constant

Function = Callable[..., list[Term]]


def _values(region: Region, label: str) -> list[Term]:
    """Unknown values of what `region` combines two of."""
    half = len(region.parameters) // 2
    return [input_term(f"{label}{i}", parameter.type) for i, parameter in enumerate(region.parameters[:half])]


def _combines(region: Region) -> bool:
    """Whether the function takes two of what it gives, single elements."""
    taken, given = [p.type for p in region.parameters], [r.type for r in region.results]
    return taken == [*given, *given] and all(isinstance(type, TensorType) and type.shape == () for type in given)


@lru_cache(maxsize=1024)
def associative(region: Region, promise: str) -> bool | None:
    """Whether f(f(a, b), c) is f(a, f(b, c)); over the reals unless the promise is `exact`."""
    if not _combines(region):
        return None
    a, b, c = (_values(region, label) for label in "abc")
    return _equal(_of(region, _of(region, a, b), c), _of(region, a, _of(region, b, c)), promise)


@lru_cache(maxsize=1024)
def commutative(region: Region, promise: str) -> bool | None:
    """Whether f(a, b) is f(b, a)."""
    if not _combines(region):
        return None
    a, b = (_values(region, label) for label in "ab")
    return _equal(_of(region, a, b), _of(region, b, a), promise)


@lru_cache(maxsize=1024)
def neutral(region: Region, number: Any, promise: str) -> bool | None:
    """Whether f(v, a) and f(a, v) are a, for the number v in the element type of the function."""
    if not _combines(region) or len(region.results) != 1:
        return None
    a = _values(region, "a")
    try:
        v = [constant(scalar_constant(number_in(number), region.results[0].tensor.dtype))]
    except Undefined:
        return None
    left = _equal(_of(region, v, a), a, promise)
    return left and _equal(_of(region, a, v), a, promise)


def _of(region: Region, first: Sequence[Term], second: Sequence[Term]) -> list[Term]:
    return applied(region, [*first, *second])


def _equal(left: Sequence[Term], right: Sequence[Term], promise: str) -> bool | None:
    """True where all results are shown to be equal, as the promise asks; None where one is not."""
    sense = Sense(promise != "exact", promise == "reassociates")
    for one, other in zip(left, right, strict=True):
        try:
            compare(one, other, sense)
        except (Open, CosetError):
            try:
                if not pointwise.equal(one, other, frozenset()):
                    return None
            except pointwise.Unsupported:
                return None
    return True


def _noted(found: bool | None) -> bool | None:
    """An answer; of a function of which nothing is known, which stands for others, it is said that there is none."""
    if found is None:
        note("what a condition asks of a function")
    return found


judge("associative", lambda region, _, promise: _noted(associative(region, promise)))
judge("commutative", lambda region, _, promise: _noted(commutative(region, promise)))
judge("neutral", lambda region, further, promise: _noted(neutral(region, further[0], promise)))
