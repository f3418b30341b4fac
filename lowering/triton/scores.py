"""Scores of attention as its loop over the keys takes them: without what says that a key is seen, where all of a block are, and without
the factor that they are scaled by, which goes into the base of the exponential.

exp(s x - s top) is exp2((x - top) * s log2(e)), one multiplication less for each score. The difference comes first: of the largest score
it is 0 and its weight 1, however large the scores are. x * s log2(e) - top * s log2(e) as one fused operation would be faster still, but
what it leaves is the rounding of the second product: of scores of 1e11 it is some thousands, and the weight infinite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from coset.ir.dims import Dim, subtract
from coset.ir.types import F32
from coset.lowering.kernels.index_arithmetic import Extents, is_natural, range_of
from coset.lowering.kernels.kernel import Choose, Scalar, ScalarConstant, ScalarOp, scalars
from coset.lowering.kernels.renaming import over
from coset.lowering.triton.scalars import computed

_FACTOR = 2.0**64  # that scores are scaled by at most, and by one over which at least


@dataclass(frozen=True)
class Scaled:
    """A score that is `value` times `factor`, but for the rounding of that product."""

    value: Scalar
    factor: float = 1.0


def unscaled(score: Scalar) -> Scaled:
    """A product that is computed in f32 by a positive number without it; places that are filled with -inf stay so."""
    if isinstance(score, Choose) and _is_hidden(score.outside):
        inside = unscaled(score.inside)
        return replace(inside, value=replace(score, inside=inside.value))
    if not isinstance(score, ScalarOp) or computed(score.dtype) is not F32:
        return Scaled(score)
    if score.op.name == "stablehlo.select" and _is_hidden(score.operands[2]):
        condition, kept, hidden = score.operands
        inside = unscaled(kept)
        return replace(inside, value=replace(score, operands=(condition, inside.value, hidden)))
    if score.op.name == "stablehlo.multiply":
        for factor, other in (score.operands, score.operands[::-1]):
            if isinstance(factor, ScalarConstant) and isinstance(factor.value, float) and 1 / _FACTOR <= factor.value <= _FACTOR:
                return Scaled(other, factor.value)
    return Scaled(score)


def _is_hidden(value: Scalar) -> bool:
    return isinstance(value, ScalarConstant) and value.value == float("-inf")


def all_seen(score: Scalar, beyond: Dim, extents: Extents) -> Scalar:
    """`score` at places where the dim `beyond` is 0 or more: choices that hold there, or everywhere, are what they choose."""
    done: dict[int, Scalar] = {}
    for each in scalars(score):
        found = over(each, done)
        done[id(each)] = found.inside if isinstance(found, Choose) and _holds(found, beyond, extents) else found
    return done[id(score)]


def _holds(choice: Choose, beyond: Dim, extents: Extents) -> bool:
    sides = [side for bound in choice.bounds for side in (subtract(bound.index, bound.low), subtract(subtract(bound.high, 1), bound.index))]
    return all(_is_never_below(side, extents) or _is_never_below(subtract(side, beyond), extents) for side in sides)


def _is_never_below(dim: Dim, extents: Extents) -> bool:
    """True where `dim` is seen to be 0 or more at every place."""
    found = range_of(dim, extents)
    return found is not None and is_natural(found[0])
