"""Boxes of a tensor's places, and a store cut into those in which one side of its choices stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coset.ir.dims import Dim, Shape, add, divide_exactly, floordiv, multiply, substitute, subtract, symbols
from coset.lowering.kernels.index_arithmetic import Extents, is_natural, is_outside, is_within, linear
from coset.lowering.kernels.indexing import Index
from coset.lowering.kernels.kernel import (
    Choose,
    InBounds,
    IndexValue,
    Load,
    Loop,
    Pick,
    Pointwise,
    Scalar,
    ScalarOp,
    Store,
    scalars,
    used_picks,
)

MOST_PARTS = 1024  # of one store


@dataclass(frozen=True)
class Box:
    """The places with `low` <= i < `high` in each dim."""

    low: Shape
    high: Shape

    @property
    def shape(self) -> Shape:
        """How many places it has in each dim."""
        return tuple(subtract(high, low) for low, high in zip(self.low, self.high, strict=True))

    @property
    def is_empty(self) -> bool:
        """True where it is seen to have no places."""
        return 0 in self.shape

    def within(self, axis: int, low: Dim, high: Dim) -> Box:
        """The box with other ends in one dim."""
        return Box((*self.low[:axis], low, *self.low[axis + 1 :]), (*self.high[:axis], high, *self.high[axis + 1 :]))

    def joined(self, other: Box) -> Box | None:
        """Both boxes as one, where they are neighbours along one dim and alike in the others."""
        unlike = [axis for axis, _ in enumerate(self.low) if (self.low[axis], self.high[axis]) != (other.low[axis], other.high[axis])]
        if len(unlike) != 1:
            return None
        (axis,) = unlike
        if self.high[axis] == other.low[axis]:
            return self.within(axis, self.low[axis], other.high[axis])
        return self.within(axis, other.low[axis], self.high[axis]) if other.high[axis] == self.low[axis] else None


@dataclass(frozen=True)
class StoreFrame:
    """How the loops of a store go through the dims of its buffer: in the dims of `names` a loop of its own, from `base` on; none in the
    others. Boxes are over the loops, `whole` has all that they reach."""

    names: Mapping[int, str]
    base: Shape
    whole: Box

    @staticmethod
    def of(store: Store, loops: Sequence[Loop]) -> StoreFrame | None:
        """The frame of a store whose kernel has these loops; None where they go otherwise."""
        extents = {loop.name: loop.extent for loop in loops}
        names: dict[int, str] = {}
        base = list(store.index)
        for axis, dim in enumerate(store.index):
            own = symbols(dim) & extents.keys()
            if own:
                name = min(own)
                if len(own) > 1 or name in names.values() or linear(dim, name) != 1:
                    return None
                names[axis], base[axis] = name, substitute(dim, {name: 0})
        assert len(names) == len(extents), "a kernel stores each element once"
        shape = tuple(extents[names[axis]] if axis in names else 1 for axis in range(len(base)))
        return StoreFrame(names, tuple(base), Box((0,) * len(base), shape))

    def moved(self, box: Box) -> Box:
        """The places of the buffer that a box of the loops stores."""
        low, high = (tuple(map(add, ends, self.base)) for ends in (box.low, box.high))
        return Box(low, high)

    def binding(self, box: Box) -> dict[str, Dim]:
        """The loops as places of the buffer's, by loops over a box alone."""
        shape = box.shape
        return {name: add(box.low[axis], 0 if shape[axis] == 1 else Loop(name, 0).index) for axis, name in self.names.items()}

    def at(self, index: Index, box: Box) -> Index:
        """An index over the loops as one over those of a box alone."""
        binding = self.binding(box)
        return tuple(substitute(dim, binding) for dim in index)

    def interval(self, bound: InBounds) -> tuple[int, Dim, Dim] | None:
        """A dim, and the places along it at which a bound holds; None where it is about several dims. Ends that are computed are in no
        known order with those of a box."""
        axes = {name: axis for axis, name in self.names.items()}
        index, low, high = bound.index, bound.low, bound.high
        if len(symbols(index) & axes.keys()) > 1:
            index, low, high = self._outer(index, low, high)
        own = symbols(index) & axes.keys()
        if len(own) != 1:
            return None
        (name,) = own
        while linear(index, name) != 1:
            found = _quotient(index, name)
            if found is None:
                return None
            index, divisor, added = found  # index // divisor + added
            low, high = multiply(subtract(low, added), divisor), multiply(subtract(high, added), divisor)
        rest = substitute(index, {name: 0})
        return axes[name], subtract(low, rest), subtract(high, rest)

    def _outer(self, index: Dim, low: Dim, high: Dim) -> tuple[Dim, Dim, Dim]:
        """`low` <= `index` < `high` about the outermost loop alone, where the others stay below its step, which both ends have."""
        extents = {name: self.whole.shape[axis] for axis, name in self.names.items()}
        for name in sorted(symbols(index) & extents.keys()):
            step, loop = linear(index, name), Loop(name, 0).index
            if step is None or step == 0 or not is_within(subtract(index, multiply(step, loop)), 0, step, extents):
                continue
            ends = divide_exactly(low, step), divide_exactly(high, step)
            if ends[0] is not None and ends[1] is not None:
                return loop, ends[0], ends[1]
        return index, low, high


def _quotient(dim: Dim, name: str) -> tuple[Dim, Dim, Dim] | None:
    """(index, divisor, rest) of a dim that is index // divisor + rest, where only `index` has the loop `name`; None for others."""
    if isinstance(dim, int):
        return None
    for monomial, coefficient in dim.terms:
        if coefficient == 1 and len(monomial) == 1 and monomial[0].name == "floordiv" and monomial[0].args:
            index, divisor = monomial[0].args
            rest = subtract(dim, floordiv(index, divisor))
            if name in symbols(index) and name not in symbols(divisor) and name not in symbols(rest) and is_natural(subtract(divisor, 1)):
                return index, divisor, rest
    return None


@dataclass(frozen=True)
class StorePart:
    """What a store stores in a box."""

    box: Box
    value: Scalar


def parts_of(store: Store, frame: StoreFrame) -> list[StorePart]:
    """The parts of a store, boxes in which all choices of the value that are about places alone are made. They are apart, and together the
    whole; a part whose choices stay is one."""
    found: list[StorePart] = []
    stack = [StorePart(frame.whole, store.value)]
    while stack:
        part = stack.pop()
        sides = _sides(part, frame) if isinstance(part.value, Choose) else None
        if sides is None or len(found) + len(stack) + len(sides) > MOST_PARTS:
            found.append(part)
        else:
            stack += [side for side in reversed(sides) if not side.box.is_empty]
    return found


def _sides(part: StorePart, frame: StoreFrame) -> list[StorePart] | None:
    """A part with a choice as one part for each box in which it is made; None where ends are in no known order."""
    assert isinstance(part.value, Choose)
    inside, outside = part.box, list[Box]()
    for bound in part.value.bounds:
        found = frame.interval(bound)
        if found is None:
            return None
        axis, low, high = found
        begin, end = _later(low, inside.low[axis]), _earlier(high, inside.high[axis])
        if begin is None or end is None or not is_natural(subtract(end, begin)):
            return None
        outside += [inside.within(axis, inside.low[axis], begin), inside.within(axis, end, inside.high[axis])]
        inside = inside.within(axis, begin, end)
    return [StorePart(inside, part.value.inside), *(StorePart(box, part.value.outside) for box in outside)]


def _later(first: Dim, second: Dim) -> Dim | None:
    """The larger of two dims; None where that is not seen."""
    return first if is_natural(subtract(first, second)) else second if is_natural(subtract(second, first)) else None


def _earlier(first: Dim, second: Dim) -> Dim | None:
    """The smaller of two dims; None where that is not seen."""
    return first if is_natural(subtract(second, first)) else second if is_natural(subtract(first, second)) else None


def cuts_of(store: Store, frame: StoreFrame, most: int) -> list[Box] | None:
    """The boxes in which every choice that the value of a store is made of, and that is about places alone, is made; None where they are
    more than so many."""
    found: list[Box] = []
    stack = [StorePart(frame.whole, store.value)]
    while stack:
        part = stack.pop()
        sides = _first_sides(part, frame)
        if sides is None:
            found.append(part.box)
        else:
            stack += [side for side in reversed(sides) if not side.box.is_empty]
        if len(found) + len(stack) > most:
            return None
    return found


def _first_sides(part: StorePart, frame: StoreFrame) -> list[StorePart] | None:
    """A part as those in which one of its choices is made, of those the first that is about places alone; None where there is none."""
    if isinstance(part.value, Choose):
        return _sides(part, frame)
    order = list(scalars(part.value))
    for choice in reversed(order):
        sides = _sides(replace(part, value=choice), frame) if isinstance(choice, Choose) else None
        if sides is not None:
            return [replace(side, value=_instead(order, choice, side.value)) for side in sides]
    return None


def _instead(order: Sequence[Scalar], choice: Scalar, side: Scalar) -> Scalar:
    """The last scalar of `order`, which has all that it is made of, with one of them replaced by another of them."""
    done: dict[int, Scalar] = {}
    for value in order:
        if value is choice:
            done[id(value)] = done[id(side)]
        elif isinstance(value, ScalarOp):
            done[id(value)] = replace(value, operands=tuple(done[id(operand)] for operand in value.operands))
        elif isinstance(value, Choose):
            done[id(value)] = replace(value, inside=done[id(value.inside)], outside=done[id(value.outside)])
        else:
            done[id(value)] = value
    return done[id(order[-1])]


def in_box(kernel: Pointwise, store: Store, frame: StoreFrame, box: Box) -> Pointwise:
    """A kernel of that part of one store of `kernel` that stands in a box."""
    loops = tuple(Loop(name, box.shape[axis]) for axis, name in frame.names.items() if box.shape[axis] != 1)
    extents = {loop.name: loop.extent for loop in loops} | {pick.name: pick.count for pick in kernel.picks}
    binding = frame.binding(box)
    value, *picked = restricted([store.value, *(pick.value for pick in kernel.picks)], binding, extents)
    picks = tuple(Pick(pick.name, pick.count, now) for pick, now in zip(kernel.picks, picked, strict=True))
    index = frame.at(store.index, box)
    return replace(kernel, loops=loops, stores=(Store(store.buffer, index, value),), picks=used_picks(picks, (value,), ()))


def restricted(values: Sequence[Scalar], binding: Mapping[str, Dim], extents: Extents) -> list[Scalar]:
    """Scalars over other loops, of these `extents`; choices that are made there are gone."""
    done: dict[int, Scalar] = {}
    for value in scalars(*values):
        if isinstance(value, Load):
            now: Scalar = replace(value, index=tuple(substitute(dim, binding) for dim in value.index))
        elif isinstance(value, IndexValue):
            now = replace(value, index=substitute(value.index, binding))
        elif isinstance(value, ScalarOp):
            now = replace(value, operands=tuple(done[id(operand)] for operand in value.operands))
        elif isinstance(value, Choose):
            now = _chosen(value, done, binding, extents)
        else:
            now = value
        done[id(value)] = now
    return [done[id(value)] for value in values]


def _chosen(value: Choose, done: Mapping[int, Scalar], binding: Mapping[str, Dim], extents: Extents) -> Scalar:
    bounds = [InBounds(*(substitute(dim, binding) for dim in (bound.index, bound.low, bound.high))) for bound in value.bounds]
    left = tuple(bound for bound in bounds if not is_within(bound.index, bound.low, bound.high, extents))
    inside, outside = done[id(value.inside)], done[id(value.outside)]
    if any(is_outside(bound.index, bound.low, bound.high, extents) for bound in left):
        return outside
    return Choose(left, inside, outside, value.dtype) if left else inside
