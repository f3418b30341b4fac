"""Values that are put together from others (a concatenation, a pad, a slice that is written into), stored where they belong by the kernels
that make the parts: what was made to be copied is a part of what it was copied into, for all who read it.

A kernel that only moves what others store is left with what nobody of ours makes, each box of it a kernel of its own, or is gone. It is
done where fewer bytes are moved by it, with a launch counted as the bytes that could be moved meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from coset.ir.dims import Dim, Shape, add, evaluate, multiply, product, subtract
from coset.lowering.boxes import Box, Frame, parts_of, restricted
from coset.lowering.index_arithmetic import Extents, complexity, linear
from coset.lowering.indexing import Index, offset, reshaped
from coset.lowering.kernel import (
    Buffer,
    Choose,
    Grouped,
    Kernel,
    Library,
    Load,
    Loop,
    Pick,
    Pointwise,
    Scalar,
    Scatter,
    Store,
    extents_of,
    reads,
    scalars,
    stores_of,
    used_picks,
    values_of,
    writes,
)
from coset.lowering.kinds import Limits
from coset.lowering.renaming import mapped_kernel

SECTOR = 32  # bytes: what a GPU reads and writes memory by (NVIDIA, CUDA C++ Best Practices Guide, 10.2.1)
ROLES = ("temporary", "output")


@dataclass(frozen=True)
class Place:
    """Where the elements of a buffer of `shape` are in another: in the `box`, whose dims in the order `axes` are the buffer's elements in
    row-major order. `run`: how many of them are next to each other there."""

    into: str
    shape: Shape
    box: Box
    axes: tuple[int, ...]
    run: int

    def of(self, index: Index, extents: Extents) -> Index:
        """The index there of the element at `index`."""
        inner = reshaped(index, self.shape, tuple(self.box.shape[axis] for axis in self.axes), extents)
        found = list(self.box.low)
        for axis, place in zip(self.axes, inner, strict=True):
            found[axis] = add(found[axis], place)
        return tuple(found)


def stored_in_parts(
    buffers: Mapping[str, Buffer], kernels: Sequence[Kernel], limits: Limits, numbers: Mapping[str, int]
) -> tuple[dict[str, Buffer], list[tuple[Kernel, int]]]:
    """The buffers that are left, and the kernels, each with the place of the one that it was before. `numbers` for dim symbols say what
    moves less; the result holds for all."""
    walk = _Parts(dict(buffers), limits, numbers, kernels)
    for place in reversed(range(len(kernels))):  # what a part is put into finds its own place first
        walk.visit(place)
    return walk.buffers, [(walk.kernels[each], place) for place, here in enumerate(walk.slots) for each in here]


@dataclass(frozen=True)
class _Gain:
    """What storing one buffer in its place is worth: bytes that need not be moved, less those that are moved in pieces of a sector."""

    name: str
    place: Place
    bytes: int


class _Parts:
    """The walk from users to makers, over kernels by number; `slots` are the numbers at each place of the launch order."""

    def __init__(self, buffers: dict[str, Buffer], limits: Limits, numbers: Mapping[str, int], kernels: Sequence[Kernel]) -> None:
        self.buffers, self.limits, self.numbers = buffers, limits, numbers
        self.kernels = dict(enumerate(kernels))
        self.slots = [[place] for place in range(len(kernels))]
        self.readers: dict[str, set[int]] = {}
        self.writers: dict[str, set[int]] = {}
        self.whole: set[str] = set()  # buffers that are read or written as wholes, not element by element
        if any(map(self._may_copy, kernels)):
            for number in self.kernels:
                self._enter(number)

    def _may_copy(self, kernel: Kernel) -> bool:
        """True where it is not seen at once that a kernel copies no temporary."""
        return isinstance(kernel, Pointwise) and any(self._is_copied(value) for store in kernel.stores for value in _sides(store.value))

    def _is_copied(self, value: Scalar) -> bool:
        return isinstance(value, Load) and self.buffers[value.buffer].role == "temporary"

    def _enter(self, number: int) -> None:
        kernel = self.kernels[number]
        for name in reads(kernel):
            self.readers.setdefault(name, set()).add(number)
        for name in writes(kernel):
            self.writers.setdefault(name, set()).add(number)
        self.whole.update(_wholes(kernel))

    def _leave(self, number: int) -> None:
        for users in (self.readers, self.writers):
            for name in (*reads(self.kernels[number]), *writes(self.kernels[number])):
                users.get(name, set()).discard(number)

    def visit(self, place: int) -> None:
        """Put what the stores of one kernel are made of into their places, one store after the other."""
        (number,) = self.slots[place]
        kernel = self.kernels[number]
        if not self.readers or not isinstance(kernel, Pointwise):
            return
        for store in kernel.stores:
            now = self.kernels.get(number)  # with the places of parts of earlier stores
            assert now is None or isinstance(now, Pointwise)
            mine = [each for each in now.stores if each.buffer == store.buffer] if now is not None else []
            if now is not None and len(mine) == 1:
                self._visit(place, number, now, mine[0])

    def _visit(self, place: int, number: int, kernel: Pointwise, store: Store) -> None:
        buffer, frame = self.buffers[store.buffer], Frame.of(store, kernel.loops)
        if frame is None or buffer.role not in ROLES or buffer.strides is not None or buffer.packed is not None or 0 in buffer.shape:
            return
        parts = parts_of(store, frame)
        rest = replace(kernel, stores=tuple(each for each in kernel.stores if each is not store))
        loads = [value.buffer for part in parts if isinstance(value := part.value, Load)]
        found: list[_Gain] = []
        for part in parts:
            value = part.value
            if isinstance(value, Load) and loads.count(value.buffer) == 1 and self._may_move(value.buffer, number):
                at = self._place(value, part.box, frame, store.buffer)
                if at is not None:
                    found.append(self._gain(value.buffer, at, number, rest))
        for chosen in (found, [gain for gain in found if gain.bytes > 0]):
            moved = {gain.name: gain.place for gain in chosen}
            boxes = _merged([part.box for part in parts if not (isinstance(part.value, Load) and part.value.buffer in moved)])
            launches = 1 - len(boxes) - bool(rest.stores)
            if chosen and sum(gain.bytes for gain in chosen) + launches * self.limits.launch_bytes > 0 and self._fits(moved):
                self._move(place, number, rest, [_left(kernel, store, frame, box) for box in boxes], moved)
                return

    # ------------------------------------------------------------ what may move, and what that is worth

    def _may_move(self, name: str, reader: int) -> bool:
        """True for a temporary whose elements kernels of ours store and read one by one."""
        buffer = self.buffers[name]
        plain = buffer.role == "temporary" and buffer.strides is None and buffer.packed is None
        return plain and name not in self.whole and reader not in self.writers.get(name, ()) and bool(self.writers.get(name))

    def _place(self, load: Load, box: Box, frame: Frame, into: str) -> Place | None:
        """Where the buffer of `load` would be; None where the load is not of each of its elements once, or turns them."""
        buffer, other = self.buffers[load.buffer], self.buffers[into]
        if (buffer.dtype, load.dtype) != (other.dtype, other.dtype):
            return None
        axes = _order(frame.at(load.index, box), buffer.shape, box, frame)
        if axes is None:
            return None
        long = [axis for axis, dim in enumerate(box.shape) if dim != 1]
        if long and axes[-1] != long[-1]:
            return None  # neighbours would be stored far from each other
        return Place(into, buffer.shape, frame.moved(box), axes, self._run(box, axes, other.shape))

    def _run(self, box: Box, axes: Sequence[int], shape: Shape) -> int:
        """How many neighbours of the buffer stay neighbours."""
        run, left = 1, [axis for axis in axes if box.shape[axis] != 1]
        for axis in reversed(range(len(shape))):
            if box.shape[axis] != 1:
                if not left or left.pop() != axis:
                    break
                run *= evaluate(box.shape[axis], self.numbers)
            if box.shape[axis] != shape[axis]:
                break
        return max(1, run)

    def _gain(self, name: str, place: Place, number: int, rest: Pointwise) -> _Gain:
        """Writing and reading a copy is saved; each store, and each load of others, moves a sector more for each run. Where the kernel reads
        it for something else too, only the writing is saved."""
        buffer = self.buffers[name]
        count = evaluate(product(buffer.shape), self.numbers)
        others = len(self.readers[name] - {number})
        again = name in reads(rest)
        return _Gain(name, place, int(count * buffer.dtype.bytes) * (2 - again) - (1 + others + again) * count // place.run * SECTOR)

    def _fits(self, moved: Mapping[str, Place]) -> bool:
        """True where no index becomes too long."""
        for number in self._touching(moved):
            kernel = self.kernels[number]
            assert not isinstance(kernel, Library)
            extents = extents_of(kernel)
            for name, index in _places_in(kernel):
                if name in moved and any(complexity(dim) > self.limits.index for dim in moved[name].of(index, extents)):
                    return False
        return True

    # ------------------------------------------------------------ the new kernels

    def _touching(self, names: Iterable[str]) -> list[int]:
        return sorted({number for name in names for number in (*self.readers.get(name, ()), *self.writers.get(name, ()))})

    def _move(self, place: int, number: int, rest: Pointwise, left: Sequence[Pointwise], moved: Mapping[str, Place]) -> None:
        """Take the copying kernel apart, and move the parts for all who touch them."""
        self._leave(number)
        del self.kernels[number]
        self.slots[place].clear()
        if rest.stores:
            picks = used_picks(rest.picks, (each.value for each in rest.stores), [dim for each in rest.stores for dim in each.index])
            self._add(place, replace(rest, picks=picks), number)
        for each in left:
            self._add(place, each, None)
        for other in self._touching(moved):
            kernel = self.kernels[other]
            self._leave(other)
            self.kernels[other] = _placed(kernel, moved)
            self._enter(other)
        for name in moved:
            del self.buffers[name]

    def _add(self, place: int, kernel: Pointwise, number: int | None) -> None:
        number = max(self.kernels, default=-1) + 1 if number is None else number
        self.kernels[number] = kernel
        self.slots[place].append(number)
        self._enter(number)


def _wholes(kernel: Kernel) -> list[str]:
    """The buffers that a kernel takes as wholes: a library's, and keys in which it searches."""
    if isinstance(kernel, Library):
        return [*reads(kernel), *writes(kernel)]
    return [kernel.key.buffer] if isinstance(kernel, Scatter | Grouped) and isinstance(kernel.key, Load) else []


def _order(index: Index, shape: Shape, box: Box, frame: Frame) -> tuple[int, ...] | None:
    """The dims of the box in the order in which `index`, over them, goes through a buffer of `shape` from its first element to its last;
    None where it does not."""
    extents = {name: box.shape[axis] for axis, name in frame.names.items()}
    flat, step = offset(index, shape, extents), 1
    left = [axis for axis, dim in enumerate(box.shape) if dim != 1]
    found: list[int] = []
    total: Dim = step
    while left:
        axis = next((axis for axis in left if linear(flat, frame.names[axis]) == total), None)
        if axis is None:
            return None
        flat = subtract(flat, multiply(total, Loop(frame.names[axis], 0).index))
        total = multiply(total, box.shape[axis])
        left.remove(axis)
        found.insert(0, axis)
    if flat != 0 or total != product(shape):
        return None
    return (*(axis for axis, dim in enumerate(box.shape) if dim == 1), *found)


def _sides(value: Scalar) -> Iterator[Scalar]:
    """What a value is where all its choices are made."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Choose):
            stack += [top.inside, top.outside]
        else:
            yield top


def _merged(boxes: Sequence[Box]) -> list[Box]:
    """The same places as fewer boxes: neighbours along a dim that are alike in the others are one."""
    found: list[Box] = []
    for box in boxes:
        now, before = box, -1
        while before != len(found):
            before = len(found)
            for other in found:
                both = other.joined(now)
                if both is not None:
                    found.remove(other)
                    now = both
                    break
        found.append(now)
    return found


def _left(kernel: Pointwise, store: Store, frame: Frame, box: Box) -> Pointwise:
    """The part of one store that stands in a box, as a kernel."""
    loops = tuple(Loop(name, box.shape[axis]) for axis, name in frame.names.items() if box.shape[axis] != 1)
    extents = {loop.name: loop.extent for loop in loops} | {pick.name: pick.count for pick in kernel.picks}
    binding = frame.binding(box)
    value, *picked = restricted([store.value, *(pick.value for pick in kernel.picks)], binding, extents)
    picks = tuple(Pick(pick.name, pick.count, now) for pick, now in zip(kernel.picks, picked, strict=True))
    index = frame.at(store.index, box)
    return replace(kernel, loops=loops, stores=(Store(store.buffer, index, value),), picks=used_picks(picks, (value,), ()))


def _placed(kernel: Kernel, moved: Mapping[str, Place]) -> Kernel:
    """A kernel that finds the buffers of `moved` in their places."""
    assert not isinstance(kernel, Library), "a library takes a buffer as a whole"
    extents = extents_of(kernel)

    def loaded(load: Load) -> Load:
        place = moved.get(load.buffer)
        return load if place is None else replace(load, buffer=place.into, index=place.of(load.index, extents))

    def stored(store: Store) -> Store:
        place = moved.get(store.buffer)
        return store if place is None else replace(store, buffer=place.into, index=place.of(store.index, extents))

    return mapped_kernel(kernel, loaded, stored)


def _places_in(kernel: Kernel) -> list[tuple[str, Index]]:
    """All places that a kernel reads and writes."""
    found = [(value.buffer, value.index) for value in scalars(*values_of(kernel)) if isinstance(value, Load)]
    return found + [(store.buffer, store.index) for store in stores_of(kernel)]
