"""Loops whose number of turns is known: a `while` whose condition looks at integers that are made of constants alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from coset.ir.constants import INLINE_ELEMENTS, constant_of
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.term import CONSTANT, TUPLE, Region, Term, constant, make, rebuild, topological
from coset.ir.types import TensorType
from coset.rules.definition import evaluate_defined

MOST_TURNS = 64
MOST_TERMS = 4096  # of all turns together
MOST_LOOKED = 64  # terms of a condition, or of a counter, that are computed


def unrolled(term: Term) -> Term | None:
    """What a `while` gives, turn by turn, a tuple of several results: the same ops in the same order. Integers of a few elements that are
    made of constants alone are constants in it, and slices that begin at such are plain ones. None for another op, and for a loop whose
    end is not seen in `MOST_TURNS`."""
    if term.op.name != "stablehlo.while":
        return None
    condition, body = term.regions
    state = [_number(operand) for operand in term.operands]
    terms = 0
    for _ in range(MOST_TURNS + 1):
        (go,) = _turned(condition, state)
        if go.op is not CONSTANT:
            return None
        if not go.attribute("value").array().item():
            return state[0] if len(state) == 1 else make(TUPLE, state)
        state = _turned(body, state)
        terms += len(list(topological(body.results)))
        if terms > MOST_TERMS:
            return None
    return None


def _turned(region: Region, operands: Sequence[Term]) -> list[Term]:
    """The results of a region with these terms for its parameters."""
    done = dict(zip(region.parameters, operands, strict=True))
    for term in topological(region.results):
        if term not in done:
            done[term] = _placed(_number(rebuild(term, [done[operand] for operand in term.operands])))
    return [done[result] for result in region.results]


def _placed(term: Term) -> Term:
    """A slice, or the writing of one, that begins at constants within the tensor, as one whose place is known."""
    if term.op.name not in ("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"):
        return term
    updates = term.op.name == "stablehlo.dynamic_update_slice"
    x, starts = term.operands[0], term.operands[2 if updates else 1 :]
    shape, sizes = x.tensor.dims, (term.operands[1].tensor.dims if updates else term.attribute("slice_sizes"))
    if any(each.op is not CONSTANT for each in starts):
        return term
    at = [int(each.attribute("value").array()) for each in starts]
    if not all(_is_within(*each) for each in zip(at, sizes, shape, strict=True)):
        return term  # it is moved to where it fits
    ends = [begin + size if isinstance(size, int) else size for begin, size in zip(at, sizes, strict=True)]
    if not updates:
        return _slice(x, at, ends)
    axes = [axis for axis, (size, dim) in enumerate(zip(sizes, shape, strict=True)) if size != dim]
    if len(axes) != 1:
        return term.operands[1] if not axes else term
    (axis,) = axes
    begin, end = at[axis], ends[axis]
    parts = [_slice(x, [0] * len(shape), [*shape[:axis], begin, *shape[axis + 1 :]])] if begin else []
    parts.append(term.operands[1])
    if end != shape[axis]:
        parts.append(_slice(x, [end if each == axis else 0 for each in range(len(shape))], shape))
    return make("stablehlo.concatenate", parts, {"dimension": axis}) if len(parts) > 1 else parts[0]


def _is_within(begin: int, size: Dim, dim: Dim) -> bool:
    """Whether so many elements from `begin` on lie within a dim: all of one that is a symbol."""
    if isinstance(size, int) and isinstance(dim, int):
        return 0 <= begin <= begin + size <= dim
    return begin == 0 and size == dim


def _slice(x: Term, start: Sequence[int], limit: Sequence[Dim]) -> Term:
    return make("stablehlo.slice", (x,), {"start": tuple(start), "limit": tuple(limit), "strides": (1,) * len(start)})


def _number(term: Term) -> Term:
    """The constant that a term of integers or truths is, where that is seen at a look; the term where it is not."""
    if term.op is CONSTANT or not _is_small(term):
        return term
    below: Sequence[Term] = []
    for each in topological([term]):
        below = [*below, each]
        if len(below) > MOST_LOOKED or not _is_small(each) or each.regions or not (each.operands or each.op is CONSTANT):
            return term
    try:
        with np.errstate(all="ignore"):
            (value,) = evaluate([term], {}, fallback=evaluate_defined)
    except CosetError:
        return term
    found = constant(constant_of(np.asarray(value), term.tensor.dtype))
    return found if found.type == term.type else term


def _is_small(term: Term) -> bool:
    type = term.type
    whole = isinstance(type, TensorType) and type.static is not None and type.dtype.kind in ("int", "uint", "bool")
    return whole and prod(term.tensor.static or ()) <= INLINE_ELEMENTS
