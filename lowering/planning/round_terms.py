"""Terms over the counter of a loop: a round's number, its part of what was made for all rounds, and whether that is inside."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub.terms import convert, reshape
from coset.ir.dims import Dim, Shape, substitute
from coset.ir.term import Term, constant, make
from coset.ir.types import I32
from coset.lowering.kernels.index_arithmetic import linear
from coset.lowering.planning.recurrence import ROUND, number_term

SUM, PRODUCT, FOLD, READ, WRITE = (
    f"stablehlo.{name}" for name in ("add", "dot_general", "reduce", "dynamic_slice", "dynamic_update_slice")
)  # fmt: skip


def is_inside(begin: Sequence[Dim], end: Sequence[Dim], shape: Shape) -> bool:
    """Whether nothing is clamped."""
    return all(
        (low == 0 and high == dim) or (isinstance(low, int) and isinstance(high, int) and isinstance(dim, int) and low >= 0 and high <= dim)
        for low, high, dim in zip(begin, end, shape, strict=True)
    )


def stack_shape(update: Shape, axis: int, count: Dim) -> Shape:
    return (*update[:axis], count, *update[axis + 1 :])


def part_of_round(whole: Term, index: Term, dims: Shape) -> Term:
    """The part of a round of what was made for all."""
    starts = [index, *[constant(0, I32)] * len(dims)]
    return reshape(make(READ, (whole, *starts), {"slice_sizes": (1, *dims)}), dims)


def counted_by(dim: Dim, index: Term) -> Term:
    """A dim over the round as a number, of the loop's counter."""
    step = linear(dim, ROUND)
    assert isinstance(step, int)
    rest = substitute(dim, {ROUND: 0})
    moved = index if step == 1 else make("stablehlo.multiply", (constant(step, I32), index))
    return moved if rest == 0 else make(SUM, (number_term(rest, index), moved))


def number_of_round(term: Term, index: Term) -> Term:
    """A number of the round, of the loop's counter, in its own type."""
    (dim,) = term.attribute("dims")
    return reshape(convert(counted_by(dim, index), term.tensor.dtype), term.tensor.dims)
