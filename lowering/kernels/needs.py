"""Which kernels each kernel needs: those that stored what it reads. Of a buffer that several kernels store parts of, the ones whose parts
it is not seen to leave alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from coset.ir.dims import Dim, subtract
from coset.lowering.kernels.index_arithmetic import Extents, is_natural, range_of
from coset.lowering.kernels.indexing import Index
from coset.lowering.kernels.kernel import Kernel, Library, Load, extents_of, reads, scalars, stores_of, values_of, writes

Span = tuple[Dim, Dim]  # the least and the largest place along a dim
Region = tuple[Span | None, ...]  # for each dim of a buffer; None: not seen


def needs_of(kernels: Sequence[Kernel]) -> list[list[int]]:
    """The places of the kernels that each one needs, by what it reads first; kernels stand in an order in which they can be done."""
    makers: dict[str, list[int]] = {}
    for place, kernel in enumerate(kernels):
        for name in writes(kernel):
            makers.setdefault(name, []).append(place)
    shared = {name: _Stored(places, kernels, name) for name, places in makers.items() if len(places) > 1}
    found = []
    for place, kernel in enumerate(kernels):
        needed = dict.fromkeys(makers[name][0] for name in reads(kernel) if name in makers and name not in shared)
        if shared.keys() & reads(kernel):
            parts = (maker for name, region in _read(kernel) if name in shared for maker in shared[name].makers(region))
            needed |= dict.fromkeys(maker for maker in parts if maker < place)
        found.append(list(needed))
    return found


def _read(kernel: Kernel) -> Iterator[tuple[str, Region | None]]:
    """What a kernel reads; None for the region of a whole buffer."""
    if isinstance(kernel, Library):
        yield from ((name, None) for name in reads(kernel))
        return
    extents = extents_of(kernel)
    for value in scalars(*values_of(kernel)):
        if isinstance(value, Load):
            yield value.buffer, region_of(value.index, extents)


def region_of(index: Index, extents: Extents) -> Region:
    """Where an index goes over loops of these extents."""
    return tuple(range_of(dim, extents) for dim in index)


def are_apart(first: Region, second: Region) -> bool:
    """True where it is seen that two regions have no place in common."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    return any(is_natural(subtract(subtract(b[0], a[1]), 1)) or is_natural(subtract(subtract(a[0], b[1]), 1)) for a, b in pairs)


@dataclass
class _Stored:
    """The regions of one buffer with their kernels. Where they follow each other along a dim, those that a region meets are found by
    bisection: a recurrence has many rounds, each of which reads one."""

    places: Sequence[int]
    kernels: Sequence[Kernel]
    name: str
    regions: list[tuple[Region, int]] = field(init=False)
    axis: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.regions = []
        for place in self.places:
            kernel = self.kernels[place]
            assert not isinstance(kernel, Library), f"{kernel.name} makes the whole of {self.name}"
            extents = extents_of(kernel)
            self.regions += [(region_of(each.index, extents), place) for each in stores_of(kernel) if each.buffer == self.name]
        for axis in range(len(self.regions[0][0])):
            spans = [_numbers(region[axis]) for region, _ in self.regions]
            if all(span is not None for span in spans):
                order = sorted(range(len(spans)), key=lambda at: spans[at] or (0, 0))
                if all((spans[a] or (0, 0))[1] < (spans[b] or (0, 0))[0] for a, b in pairwise(order)):
                    self.regions, self.axis = [self.regions[at] for at in order], axis
                    self.ends = [(spans[at] or (0, 0))[1] for at in order]
                    return

    def makers(self, region: Region | None) -> Iterator[int]:
        """The kernels whose regions may have places in common with a region; None: with the whole."""
        span = None if region is None or self.axis is None else _numbers(region[self.axis])
        start = 0 if span is None else bisect_left(self.ends, span[0])
        for other, place in self.regions[start:]:
            if span is not None and self.axis is not None and (_numbers(other[self.axis]) or span)[0] > span[1]:
                return
            if region is None or not are_apart(region, other):
                yield place


def _numbers(span: Span | None) -> tuple[int, int] | None:
    return (span[0], span[1]) if span is not None and isinstance(span[0], int) and isinstance(span[1], int) else None
