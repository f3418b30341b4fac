"""Which places a softmax can give a weight: what a mask says by comparing indices, read off the scalar of the scores.

A causal mask in any spelling is such a comparison; so is a window. Places that have no weight need not be looked at. That is exact but
for NaN and infinities in what is there, and for scores that overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import ml_dtypes

from coset.ir.dims import Dim, add, substitute, subtract, symbols
from coset.lowering.kernels.index_arithmetic import Extents, is_natural, linear, range_of
from coset.lowering.kernels.kernel import Choose, Loop, Result, Scalar, ScalarConstant, ScalarOp, scalars

LOW = -1e30  # scores that models fill with where they mean -inf; f16 holds none but -inf
WEIGHTLESS = 1024.0  # e to the minus this is 0 in every dtype
_SCALING = {"stablehlo.multiply", "stablehlo.divide", "stablehlo.negate"}
Ends = tuple[Dim | None, Dim | None]


def hidden(score: Scalar, keys: Sequence[Loop], extents: Extents) -> Scalar:
    """`score` with -inf in place of a finite fill that leaves no weight: the largest score that is filled is less than the least one that
    is not by so much that its exponential is 0, for what a product gives is no larger than its dtype holds and its factor is known. Each
    row must see a key. The lowest f16 is such a fill, which models add to scores that are scaled."""
    found = _hidden(score)
    if found is None:
        return score
    conditions, _ = _conditions(found, extents)
    return found if conditions and _sees_a_key(conditions, keys, extents) else score


def _hidden(score: Scalar) -> Scalar | None:
    """The same without a look at rows; None where there is no such fill."""
    if isinstance(score, ScalarOp) and score.op.name == "stablehlo.convert" and score.dtype.kind == score.operands[0].dtype.kind == "float":
        found = _hidden(score.operands[0])
        return None if found is None else replace(score, operands=(found,))
    if isinstance(score, Choose):
        return _infinite(score, None)
    if isinstance(score, ScalarOp) and score.op.name == "stablehlo.add":
        for mask, other in (score.operands, score.operands[::-1]):
            if isinstance(mask, Choose) and (found := _infinite(mask, other)) is not None:
                return found
    return None


def _infinite(choice: Choose, other: Scalar | None) -> Choose | None:
    """A choice between a fill and scores, or between a fill and 0 where `other` is added, as one between -inf and scores."""
    for kept, fill in ((choice.inside, choice.outside), (choice.outside, choice.inside)):
        if not isinstance(fill, ScalarConstant) or not isinstance(fill.value, (int, float)) or fill.dtype.kind != "float":
            continue
        zero = isinstance(kept, ScalarConstant) and kept.value == 0
        if other is not None and not zero:
            continue
        seen = kept if other is None else other
        most = _most(seen)
        if most is None or not fill.value + (most if other is not None else 0.0) < -most - WEIGHTLESS or fill.value == float("-inf"):
            continue
        lowest = ScalarConstant(float("-inf"), choice.dtype)
        return replace(choice, inside=seen, outside=lowest) if kept is choice.inside else replace(choice, inside=lowest, outside=seen)
    return None


def _most(score: Scalar) -> float | None:
    """How large the magnitude of a finite score can be: of a product, scaled by numbers; None where that is not seen."""
    if isinstance(score, Result):
        return float(ml_dtypes.finfo(score.dtype.numpy).max) if score.dtype.kind == "float" else None  # type: ignore[no-untyped-call]
    if not isinstance(score, ScalarOp):
        return None
    if score.op.name == "stablehlo.convert" and score.dtype.kind == "float" and score.dtype.bits >= score.operands[0].dtype.bits:
        return _most(score.operands[0])
    if score.op.name not in _SCALING:
        return None
    numbers = [abs(each.value) for each in score.operands if isinstance(each, ScalarConstant) and isinstance(each.value, (int, float))]
    others = [each for each in score.operands if not isinstance(each, ScalarConstant)]
    most = _most(others[0]) if len(others) == 1 else None
    if most is None or (score.op.name == "stablehlo.divide" and (score.operands[0] is not others[0] or 0 in numbers)):
        return None
    for number in numbers:
        most = most / number if score.op.name == "stablehlo.divide" else most * number
    return most


def ends_of(score: Scalar, summed: Sequence[Loop], keys: Sequence[Loop], extents: Extents, *, safe: bool) -> Ends:
    """(low, high): only places low <= i < high of the last of the loops `summed` have a weight, where a softmax over `keys` is of `score`.

    Where the fill is a large number, and not -inf, all places of a row would have a weight if it had none above it: only masks under which
    each row sees a key count then. The same of -inf, where such a row is NaN and not `safe`.
    """
    conditions, infinite = _conditions(score, extents)
    if not summed or not conditions or not ((infinite and safe) or _sees_a_key(conditions, keys, extents)):
        return None, None
    inner = summed[-1]
    others = {loop.name for loop in summed[:-1]} | {name for name in extents if name.startswith("pick:")}
    low: Dim | None = None
    high: Dim | None = None
    for each in conditions:
        step = linear(each, inner.name)
        found = subtract(inner.index, each) if step == 1 else add(add(each, inner.index), 1) if step == -1 else None
        if found is None or symbols(found) & {*others, inner.name}:
            continue
        if step == 1 and low is None:
            low = found
        elif step == -1 and high is None:
            high = found
    return low, high


def _conditions(score: Scalar, extents: Extents) -> tuple[list[Dim], bool]:
    """Dims that are 0 or more wherever the score is not filled, and whether the fill is -inf."""
    found: list[Dim] = []
    infinite = True
    stack: list[tuple[Scalar, bool]] = [(score, True)]  # a part of a sum must be -inf: a finite fill may be outweighed
    while stack:
        value, alone = stack.pop()
        if isinstance(value, Choose):
            inside, outside = _fill(value.inside), _fill(value.outside)
            if outside is not None and _hides(outside, value.inside, alone):
                sides = [side for b in value.bounds for side in (subtract(b.index, b.low), subtract(subtract(b.high, 1), b.index))]
                infinite &= outside == float("-inf")
                stack.append((value.inside, alone))
            elif inside is not None and len(value.bounds) == 1 and _hides(inside, value.outside, alone):
                (bound,) = value.bounds
                sides = [subtract(bound.index, bound.high)] if _always(subtract(bound.index, bound.low), extents) else []
                infinite &= inside == float("-inf")
                stack.append((value.outside, alone))
            else:
                continue
            found += [side for side in sides if not _always(side, extents)]
        elif isinstance(value, ScalarOp) and value.op.name == "stablehlo.convert" and value.operands[0].dtype.kind == "float":
            stack.append((value.operands[0], alone))
        elif isinstance(value, ScalarOp) and value.op.name == "stablehlo.add":
            stack += [(operand, False) for operand in value.operands]
    return found, infinite


def _hides(fill: float, other: Scalar, alone: bool) -> bool:
    """True where what is filled has no weight beside `other`: a large number only where `other` is a product, scaled, and no mask."""
    made = [item for item in scalars(other) if isinstance(item, ScalarOp)]
    plain = all(isinstance(item, Result | ScalarConstant | ScalarOp) and _fill(item) is None for item in scalars(other))
    scaled = all(item.op.name in ("stablehlo.convert", "stablehlo.multiply", "stablehlo.divide") for item in made)
    return fill == float("-inf") or (alone and plain and scaled)


def _fill(value: Scalar) -> float | None:
    """A number so low that a score of it has no weight beside others, or None for any other value."""
    while isinstance(value, ScalarOp) and value.op.name == "stablehlo.convert":
        (value,) = value.operands
    if not isinstance(value, ScalarConstant) or value.dtype.kind != "float" or not isinstance(value.value, (int, float)):
        return None
    return float(value.value) if value.value <= LOW else None


def _always(dim: Dim, extents: Extents) -> bool:
    """True where `dim` is seen to be 0 or more at every place."""
    found = range_of(dim, extents)
    return found is not None and is_natural(found[0])


def _sees_a_key(conditions: Sequence[Dim], keys: Sequence[Loop], extents: Extents) -> bool:
    """True where the first or the last key is seen in each row."""
    ends = ({loop.name: 0 for loop in keys}, {loop.name: subtract(loop.extent, 1) for loop in keys})
    return any(all(_always(substitute(each, end), extents) for each in conditions) for end in ends)
