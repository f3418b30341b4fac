"""Cumulative sums, products and extremes: the windows that reach from one end of an axis to each element, folded in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coset.ir.dims import Dim, add, subtract
from coset.ir.term import Term
from coset.lowering.planning.group import SCAN, loops_over

if TYPE_CHECKING:
    from coset.lowering.planning.grouping import Grouper


@dataclass(frozen=True)
class Prefix:
    """`axis` is scanned, from its end if `backward`; `shift`: 1 where an element itself does not count, else 0."""

    axis: int
    backward: bool
    shift: int

    def read(self, place: Dim, size: Dim) -> tuple[Dim, Dim]:
        """Where the element stands that is met at the step `place`, and where the one that is folded there (it may be outside)."""
        at = subtract(add(size, -1), place) if self.backward else place
        return at, add(at, self.shift if self.backward else -self.shift)


def prefix_of(term: Term) -> Prefix | None:
    """How a `reduce_window` is a scan along one axis of two elements or more, or None."""
    if term.op.name != "stablehlo.reduce_window":
        return None
    window, padding = term.attribute("window_dimensions"), term.attribute("padding")
    plain = ("window_strides", "base_dilations", "window_dilations")
    if any(set(term.attribute(name)) != {1} for name in plain):
        return None
    axes = [axis for axis, size in enumerate(window) if size != 1]
    if len(axes) != 1 or any(tuple(pair) != (0, 0) for axis, pair in enumerate(padding) if axis != axes[0]):
        return None
    axis, shape = axes[0], term.operands[0].tensor.dims
    size, (low, high) = window[axis], padding[axis]
    if shape[axis] != size or not isinstance(size, int):
        return None
    for shift in (0, 1):
        if (low, high) == (size - 1 + shift, -shift):
            return Prefix(axis, False, shift)
        if (low, high) == (-shift, size - 1 + shift):
            return Prefix(axis, True, shift)
    return None


def place_scan(walk: Grouper, term: Term) -> None:
    """Begin a kernel with a scan: it takes in what is computed only for it."""
    found = prefix_of(term)
    assert found is not None
    group = walk.open(SCAN, term)
    index = list(loops_over(group, "i", term.tensor.dims))
    read = list(index)
    index[found.axis], read[found.axis] = found.read(index[found.axis], term.tensor.dims[found.axis])
    group.heavy.append(term)
    group.reads[term] = (tuple(read),)
    walk.add(group, term, tuple(index))
    if not found.shift:
        walk.adopt(group, term, tuple(read))
