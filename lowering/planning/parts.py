"""Values that are put together from others (a concatenation, a pad, a slice that is written into), stored where they belong by the kernels
that make the parts: what was made to be copied is a part of what it was copied into, for all who read it.

A kernel that only moves what others store is left with what nobody of ours makes, each box of it a kernel of its own, or is gone. It is
done where fewer bytes are moved by it, with a launch counted as the bytes that could be moved meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from coset.ir.dims import Dim, Shape, add, evaluate, multiply, product, subtract
from coset.lowering.kernels.boxes import Box, StoreFrame, StorePart, in_box, parts_of
from coset.lowering.kernels.index_arithmetic import Extents, complexity, linear
from coset.lowering.kernels.indexing import Index, offset, reshaped
from coset.lowering.kernels.kernel import (
    Buffer,
    Choose,
    Computed,
    Kernel,
    Library,
    Load,
    Loop,
    Pointwise,
    Scalar,
    Store,
    extents_of,
    reads,
    scalars,
    stores_of,
    used_picks,
    values_of,
    with_stores,
    writes,
)
from coset.lowering.kernels.renaming import mapped_kernel
from coset.lowering.planning.kinds import KernelLimits

SECTOR = 32  # bytes: what a GPU reads and writes memory by (NVIDIA, CUDA C++ Best Practices Guide, 10.2.1)
ROLES = ("temporary", "output")


@dataclass(frozen=True)
class PartPlace:
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
    buffers: Mapping[str, Buffer], kernels: Sequence[Kernel], limits: KernelLimits, numbers: Mapping[str, int]
) -> tuple[dict[str, Buffer], list[tuple[Kernel, int]], dict[str, PartPlace]]:
    """The buffers that are left; the kernels, each with the place of the one that it was before; where the buffers are that are gone.
    `numbers` for dim symbols say what moves less; the result holds for all."""
    walk = _Parts(dict(buffers), limits, numbers, kernels)
    for place in reversed(range(len(kernels))):  # what a part is put into finds its own place first
        walk.visit(place)
    return walk.buffers, [(walk.kernels[each], place) for place, here in enumerate(walk.slots) for each in here], walk.moved


@dataclass(frozen=True)
class _Gain:
    """What storing one buffer in a place is worth: bytes that need not be moved, less those that are moved in pieces of a sector. `moves`:
    it is there alone; else it is stored there too."""

    name: str
    place: PartPlace
    moves: bool
    bytes: int


class _Parts:
    """The walk from users to makers, over kernels by number; `slots` are the numbers at each place of the launch order."""

    def __init__(self, buffers: dict[str, Buffer], limits: KernelLimits, numbers: Mapping[str, int], kernels: Sequence[Kernel]) -> None:
        self.buffers, self.limits, self.numbers = buffers, limits, numbers
        self.kernels = dict(enumerate(kernels))
        self.slots = [[place] for place in range(len(kernels))]
        self.readers: dict[str, set[int]] = {}
        self.writers: dict[str, set[int]] = {}
        self.moved: dict[str, PartPlace] = {}
        self.whole: set[str] = set()  # buffers that are read or written as wholes, not element by element
        self.copies = Counter(name for kernel in kernels for store in _copying(kernel) for name in self._copied(store))
        if self.copies:  # of each buffer, the stores still to come that copy it
            for number in self.kernels:
                self._enter(number)

    def _copied(self, store: Store) -> set[str]:
        """The buffers that a store copies from."""
        return {value.buffer for value in _sides(store.value) if isinstance(value, Load) and self.buffers[value.buffer].role in ROLES}

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
        for given in _copying(self.kernels[number]):
            kernel = self.kernels[number]  # with the places of parts of earlier stores
            (store,) = (each for each in _copying(kernel) if (each.buffer, each.index) == (given.buffer, given.index))
            assert isinstance(kernel, Pointwise)
            copied = self._copied(store)
            self.copies.subtract(copied)
            if copied and self.buffers[store.buffer].role == "temporary" and not self.readers.get(store.buffer):
                self._forget(number, kernel, store)
            elif copied:
                self._visit(place, number, kernel, store)

    def _forget(self, number: int, kernel: Pointwise, store: Store) -> None:
        """Store no longer what nobody reads: it was too long to be computed where it is used, but all who use it are in its kernel."""
        assert len(kernel.stores) > 1, f"nobody needs {kernel.name}"
        self._leave(number)
        self.kernels[number] = _storing(kernel, [each for each in kernel.stores if each is not store])
        self._enter(number)
        del self.buffers[store.buffer]

    def _visit(self, place: int, number: int, kernel: Pointwise, store: Store) -> None:
        buffer, frame = self.buffers[store.buffer], StoreFrame.of(store, kernel.loops)
        assert buffer.role in ROLES and buffer.strides is None and buffer.packed is None, "kernels store whole values"
        if frame is None:
            return
        parts = parts_of(store, frame)
        rest = replace(kernel, stores=tuple(each for each in kernel.stores if each is not store))
        found = self._gains(parts, frame, store.buffer, number, rest)
        for chosen in (found, {part: gain for part, gain in found.items() if gain.bytes > 0}):
            boxes = _merged(part.box for at, part in enumerate(parts) if at not in chosen)
            launches = 1 - len(boxes) - bool(rest.stores)
            worth = sum(gain.bytes for gain in chosen.values()) + launches * self.limits.launch_bytes
            if chosen and worth > 0 and self._fits(chosen.values()):
                self._move(place, number, rest, [in_box(kernel, store, frame, box) for box in boxes], chosen.values())
                return

    def _gains(self, parts: Sequence[StorePart], frame: StoreFrame, into: str, number: int, rest: Pointwise) -> dict[int, _Gain]:
        """What each part, by number, would be worth in its place. A value that stands in several places moves into the first."""
        found: dict[int, _Gain] = {}
        known: set[str] = set()
        read = reads(rest)
        for at, part in enumerate(parts):
            load = part.value
            if not isinstance(load, Load) or not self._is_ours(load.buffer):
                continue
            place = self._place(load, part.box, frame, into)
            moves = load.buffer not in known and self._may_move(load.buffer)
            if place is not None and (moves or self._may_be_twice(load.buffer)):
                found[at] = self._gain(load.buffer, place, number, moves=moves, again=load.buffer in read or load.buffer in known)
                known.add(load.buffer)
        return found

    # ------------------------------------------------------------ what may move, and what that is worth

    def _is_ours(self, name: str) -> bool:
        """True for what kernels of ours store, element by element."""
        writers = self.writers.get(name, set())
        return self.buffers[name].role in ROLES and all(_by_elements(self.kernels[each]) for each in writers)

    def _may_move(self, name: str) -> bool:
        """True for a temporary that is read element by element, and copied nowhere else."""
        return self.buffers[name].role == "temporary" and name not in self.whole and self.copies[name] <= 0

    def _may_be_twice(self, name: str) -> bool:
        """True where those who store it can store it somewhere else too."""
        kernels = [self.kernels[number] for number in self.writers[name]]
        return all(isinstance(kernel, Computed) and kernel.may_store_twice for kernel in kernels)

    def _place(self, load: Load, box: Box, frame: StoreFrame, into: str) -> PartPlace | None:
        """Where the buffer of `load` would be; None where the load is not of each of its elements once."""
        buffer, other = self.buffers[load.buffer], self.buffers[into]
        assert buffer.dtype is load.dtype is other.dtype, "what is only moved stays what it is"
        axes = _order(frame.at(load.index, box), buffer.shape, box, frame)
        if axes is None:
            return None
        return PartPlace(into, buffer.shape, frame.moved(box), axes, self._run(box, axes, other.shape))

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

    def _gain(self, name: str, place: PartPlace, number: int, *, moves: bool, again: bool) -> _Gain:
        """Reading for a copy is saved, unless the kernel reads it `again`, and writing it to where it no longer is. Each store, and each
        load of others, moves a sector more for each run."""
        buffer = self.buffers[name]
        count = evaluate(product(buffer.shape), self.numbers)
        others = len(self.readers[name] - {number}) + again if moves else 0
        saved = int(count * buffer.dtype.bytes) * ((not again) + moves)
        return _Gain(name, place, moves, saved - (1 + others) * (count // place.run) * SECTOR)

    def _fits(self, chosen: Iterable[_Gain]) -> bool:
        """True where no index becomes too long."""
        places: dict[str, list[PartPlace]] = {}
        for gain in chosen:
            places.setdefault(gain.name, []).append(gain.place)
        for number in self._touching(places):
            kernel = self.kernels[number]
            if not isinstance(kernel, Library):
                extents = extents_of(kernel)
                moved = (place.of(index, extents) for name, index in _places_in(kernel) for place in places.get(name, ()))
                if any(complexity(dim) > self.limits.index for index in moved for dim in index):
                    return False
        return True

    # ------------------------------------------------------------ the new kernels

    def _touching(self, names: Iterable[str]) -> list[int]:
        return sorted({number for name in names for number in (*self.readers.get(name, ()), *self.writers.get(name, ()))})

    def _move(self, place: int, number: int, rest: Pointwise, left: Sequence[Pointwise], chosen: Iterable[_Gain]) -> None:
        """Take the copying kernel apart, and store the parts in their places."""
        self._leave(number)
        del self.kernels[number]
        self.slots[place].remove(number)
        if rest.stores:
            self._add(place, _storing(rest, rest.stores), number)
        for each in left:
            self._add(place, each, None)
        also: dict[str, list[PartPlace]] = {}
        for gain in chosen:
            if not gain.moves:
                also.setdefault(gain.name, []).append(gain.place)
        moved = {gain.name: gain.place for gain in chosen if gain.moves}
        for other in self._touching({*also, *moved}):
            kernel = self.kernels[other]
            if not isinstance(kernel, Library):
                self._leave(other)
                self.kernels[other] = _placed(_doubled(kernel, also), moved)
                self._enter(other)
        for name in moved:
            del self.buffers[name]
        self.moved |= moved

    def _add(self, place: int, kernel: Pointwise, number: int | None) -> None:
        number = max(self.kernels, default=-1) + 1 if number is None else number
        self.kernels[number] = kernel
        self.slots[place].append(number)
        self._enter(number)


def _wholes(kernel: Kernel) -> list[str]:
    """The buffers that a kernel takes as wholes: all of a library or of rounds, and keys in which it searches."""
    if not isinstance(kernel, Computed) or not kernel.stores_elements:
        return [*reads(kernel), *writes(kernel)]
    key = kernel.place_key
    return [key.value.buffer] if key is not None and isinstance(key.value, Load) else []


def _by_elements(kernel: Kernel) -> bool:
    """True for a kernel of ours that stores element by element."""
    return isinstance(kernel, Computed) and kernel.stores_elements


def _order(index: Index, shape: Shape, box: Box, frame: StoreFrame) -> tuple[int, ...] | None:
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


def _copying(kernel: Kernel) -> tuple[Store, ...]:
    """The stores of a kernel that may do nothing but copy."""
    return kernel.stores if isinstance(kernel, Pointwise) else ()


def _sides(value: Scalar) -> Iterator[Scalar]:
    """What a value is where all its choices are made."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Choose):
            stack += [top.inside, top.outside]
        else:
            yield top


def _merged(boxes: Iterable[Box]) -> list[Box]:
    """The same places as fewer boxes: one is put together with those before it, as long as both are a box."""
    found: list[Box] = []
    for box in boxes:
        now = box
        while found and (both := found[-1].joined(now)) is not None:
            now = both
            found.pop()
        found.append(now)
    return found


def _storing(kernel: Pointwise, stores: Sequence[Store]) -> Pointwise:
    """A kernel with these of its stores alone."""
    picks = used_picks(kernel.picks, (each.value for each in stores), [dim for each in stores for dim in each.index])
    return replace(kernel, stores=tuple(stores), picks=picks)


def _doubled(kernel: Computed, also: Mapping[str, Sequence[PartPlace]]) -> Computed:
    """A kernel that stores the buffers of `also` in these places too."""
    extents = extents_of(kernel)

    def stored(stores: Iterable[Store]) -> tuple[Store, ...]:
        found: list[Store] = []
        for store in stores:
            places = also.get(store.buffer, ())
            found += [store, *(replace(store, buffer=place.into, index=place.of(store.index, extents)) for place in places)]
        return tuple(found)

    return with_stores(kernel, stored)


def _placed(kernel: Computed, moved: Mapping[str, PartPlace]) -> Computed:
    """A kernel that finds the buffers of `moved` in their places."""
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
