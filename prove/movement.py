"""Elements of what moves data: each is one of an operand's, or what stands around it. For the denotation in `prove.denote`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.prove import functions, scalar
from coset.prove.functions import Unprovable
from coset.prove.index import reshaped
from coset.prove.scalar import MonomialSum

if TYPE_CHECKING:
    from coset.prove.denote import Denotation

Index = tuple[Dim, ...]


def broadcast(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    (x,) = term.operands
    source: list[Dim] = []
    for dim, axis in zip(x.tensor.dims, term.attribute("broadcast_dimensions"), strict=True):
        if dim == term.tensor.dims[axis]:
            source.append(index[axis])
        elif dim == 1:
            source.append(0)
        else:
            raise Unprovable(f"a broadcast of {dim} to {term.tensor.dims[axis]}")
    return elements.element(x, tuple(source))


def transpose(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    source: list[Dim] = [0] * len(index)
    for axis, origin in enumerate(term.attribute("permutation")):
        source[origin] = index[axis]
    return elements.element(term.operands[0], tuple(source))


def reshape(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    (x,) = term.operands
    return elements.element(x, tuple(reshaped(index, x.tensor.dims, term.tensor.dims, elements.known)))


def slice(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    starts, strides = term.attribute("start"), term.attribute("strides")
    source = tuple(dims.add(start, dims.multiply(i, stride)) for i, start, stride in zip(index, starts, strides, strict=True))
    return elements.element(term.operands[0], source)


def reverse(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    turned = set(term.attribute("dimensions"))
    extents = term.tensor.dims
    source = tuple(dims.subtract(dims.subtract(extents[a], 1), i) if a in turned else i for a, i in enumerate(index))
    return elements.element(term.operands[0], source)


def concatenate(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    axis = term.attribute("dimension")

    def at(position: Dim, operands: Sequence[Term]) -> MonomialSum:
        first, *rest = operands
        here = (*index[:axis], position, *index[axis + 1 :])
        if not rest:
            return elements.element(first, here)
        extent = first.tensor.dims[axis]
        behind = dims.subtract(position, extent)
        return elements.cases(behind, lambda: at(behind, rest), lambda: elements.element(first, here))

    return at(index[axis], term.operands)


def pad(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    x, value = term.operands
    source: list[Dim] = []
    hit = scalar.ONE  # whether an element stands there, not one of those between them
    for i, low, gap in zip(index, term.attribute("low"), term.attribute("interior"), strict=True):
        place, on = spread_out(dims.subtract(i, low), dims.add(gap, 1))
        source.append(place)
        hit = scalar.multiply(hit, on)
    around = elements.element(value, ())
    within = inside(elements, x, tuple(source), around)
    found = functions.choice(hit, within, around)
    elements.reals.picked(found, (within, around))
    return found


def spread_out(place: Dim, step: Dim) -> tuple[Dim, MonomialSum]:
    """Which element stands at `place` where there is one at each multiple of `step`, and whether one does."""
    if step == 1:
        return place, scalar.ONE
    return dims.floordiv(place, step), functions.truth("=0", scalar.size(dims.mod(place, step)))


def inside(elements: Denotation, x: Term, source: Index, otherwise: MonomialSum, *, axis: int = 0) -> MonomialSum:
    """The element of x at `source` where that is an index of it, else another value; the axes before `axis` are known to be inside."""

    def check(axis: int) -> MonomialSum:
        if axis == len(source):
            return elements.element(x, source)
        last = dims.subtract(dims.subtract(x.tensor.dims[axis], 1), source[axis])
        within = lambda: elements.cases(last, lambda: check(axis + 1), lambda: otherwise)  # noqa: E731
        return elements.cases(source[axis], within, lambda: otherwise)

    return check(axis)
