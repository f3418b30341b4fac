"""Movement as arithmetic on indices: where an element of a result comes from, and where an element of an operand goes to.

An index is one dim for each dim of a tensor, over a kernel's loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product as iterated

from coset.ir.dims import Dim, Shape, add, multiply, product, subtract
from coset.ir.term import Term
from coset.lowering.kernels.index_arithmetic import Extents, divided, is_outside, is_within, joined
from coset.lowering.kernels.kernel import InBounds

Index = tuple[Dim, ...]


# ---------------------------------------------------------------- reshapes


def _factors(shape: Shape) -> list[int]:
    return [axis for axis, dim in enumerate(shape) if dim != 1]


def aligned(left: Shape, right: Shape) -> list[tuple[list[int], list[int]]]:
    """The dims of two shapes with equally many elements in groups that have equally many: (axes of left, axes of right)."""
    cuts: list[dict[Dim, int]] = []
    for shape in (left, right):
        total: Dim = 1
        at: dict[Dim, int] = {}
        for position, axis in enumerate(_factors(shape)):
            total = multiply(total, shape[axis])
            at[total] = position + 1
        cuts.append(at)
    first, second = _factors(left), _factors(right)
    groups: list[tuple[list[int], list[int]]] = []
    done = (0, 0)
    ends = [(place, cuts[1][total]) for total, place in cuts[0].items() if total in cuts[1]]
    for end in (*ends, (len(first), len(second))):
        if end[0] >= done[0] and end[1] >= done[1] and end != done:
            groups.append((first[done[0] : end[0]], second[done[1] : end[1]]))
            done = end
    return groups


def reshaped(index: Index, shape: Shape, other: Shape, extents: Extents) -> Index:
    """The index in a tensor of shape `other` of the element at `index` of `shape`: both are the same elements in row-major order."""
    result: list[Dim] = [0] * len(other)
    if 0 in shape or 0 in other:
        return tuple(result)
    for mine, theirs in aligned(shape, other):
        if len(mine) == len(theirs) == 1:
            result[theirs[0]] = index[mine[0]]
            continue
        place: Dim = 0
        for axis in mine:
            place = add(multiply(place, shape[axis]), index[axis])
        place = joined(place, extents)
        for axis in reversed(theirs[1:]):
            place, result[axis] = divided(place, other[axis], extents)
        if theirs:
            result[theirs[0]] = place
    return tuple(result)


def merges_and_splits(shape: Shape, other: Shape) -> bool:
    """True for a reshape that makes each dim from several, or several from one: no element's place mixes dims."""
    return all(len(mine) <= 1 or len(theirs) <= 1 for mine, theirs in aligned(shape, other))


def strides_of(shape: Shape) -> Shape:
    """The row-major strides of `shape`, in elements."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


def offset(index: Index, shape: Shape, extents: Extents | None = None, *, strides: Shape | None = None) -> Dim:
    """The place in memory, in elements, of the element `index` of a row-major tensor of `shape` (or with other `strides`); quotients and
    remainders of one loop are one term again where they are next to each other in memory. `extents` of the loops help to see it."""
    steps = strides_of(shape) if strides is None else strides
    total: Dim = 0
    for i, step in zip(index, steps, strict=True):
        total = add(total, multiply(i, step))
    return joined(total, extents)


# ---------------------------------------------------------------- from result to operand


@dataclass(frozen=True)
class Source:
    """Where an element comes from: the element `index` of operand `operand` where all `bounds` hold."""

    operand: int
    index: Index
    bounds: tuple[InBounds, ...] = ()


def sources(term: Term, index: Index, extents: Extents) -> tuple[Source, ...]:
    """Where the element `index` of a movement (or an elementwise op) comes from: one source for each operand that is read there.

    The sources of a concatenate and a pad have bounds; the first whose bounds hold is the one, and the last has none.
    """
    name = term.op.name.removeprefix("stablehlo.")
    move = _MOVES.get(name)
    if move is not None:
        return move(term, index, extents)
    if name == "kernel.windowed_sum":
        return _windows(term, index)
    if name == "kernel.windowed_fold":
        return tuple(Source(0, element) for element in _window(term, index, term.attribute("window")))
    rank = len(index)
    return tuple(Source(i, index if operand.tensor.rank == rank else ()) for i, operand in enumerate(term.operands))


def _broadcast(term: Term, index: Index, _: Extents) -> tuple[Source, ...]:
    axes, shape = term.attribute("broadcast_dimensions"), term.operands[0].tensor.dims
    return (Source(0, tuple(0 if dim == 1 else index[axis] for dim, axis in zip(shape, axes, strict=True))),)


def _reshape(term: Term, index: Index, extents: Extents) -> tuple[Source, ...]:
    return (Source(0, reshaped(index, term.tensor.dims, term.operands[0].tensor.dims, extents)),)


def _transpose(term: Term, index: Index, _: Extents) -> tuple[Source, ...]:
    result: list[Dim] = [0] * len(index)
    for place, axis in enumerate(term.attribute("permutation")):
        result[axis] = index[place]
    return (Source(0, tuple(result)),)


def _slice(term: Term, index: Index, _: Extents) -> tuple[Source, ...]:
    moved = (
        add(start, multiply(step, i)) for start, step, i in zip(term.attribute("start"), term.attribute("strides"), index, strict=True)
    )
    return (Source(0, tuple(moved)),)


def _reverse(term: Term, index: Index, _: Extents) -> tuple[Source, ...]:
    axes = term.attribute("dimensions")
    last = (subtract(subtract(dim, 1), i) if axis in axes else i for axis, (dim, i) in enumerate(zip(term.tensor.dims, index, strict=True)))
    return (Source(0, tuple(last)),)


def _bounds(bounds: Iterable[InBounds], extents: Extents) -> tuple[tuple[InBounds, ...], bool]:
    """The bounds that are not seen to hold always, and whether they can hold at all."""
    left = [bound for bound in bounds if not is_within(bound.index, bound.low, bound.high, extents)]
    return tuple(left), not any(is_outside(bound.index, bound.low, bound.high, extents) for bound in left)


def _concatenate(term: Term, index: Index, extents: Extents) -> tuple[Source, ...]:
    axis = term.attribute("dimension")
    found: list[Source] = []
    start: Dim = 0
    for i, operand in enumerate(term.operands):
        end = add(start, operand.tensor.dims[axis])
        inner = (*index[:axis], subtract(index[axis], start), *index[axis + 1 :])
        last = i == len(term.operands) - 1
        bounds, possible = _bounds(() if last else (InBounds(index[axis], start, end),), extents)
        if possible and operand.tensor.dims[axis] != 0:
            found.append(Source(i, inner, bounds))
            if not bounds:
                break
        start = end
    if found and found[-1].bounds:  # the inputs after it are empty
        found[-1] = Source(found[-1].operand, found[-1].index)
    return tuple(found) or (Source(0, index),)  # all inputs are empty: nothing is read


def _pad(term: Term, index: Index, extents: Extents) -> tuple[Source, ...]:
    bounds: list[InBounds] = []
    inner: list[Dim] = []
    shape = term.operands[0].tensor.dims
    for i, dim, low, gap in zip(index, shape, term.attribute("low"), term.attribute("interior"), strict=True):
        moved = subtract(i, low)
        if gap:
            bounds.append(InBounds(moved, 0, add(multiply(subtract(dim, 1), gap + 1), 1)))
            moved, off = divided(moved, gap + 1, extents)
            bounds.append(InBounds(off, 0, 1))
        else:
            bounds.append(InBounds(moved, 0, dim))
        inner.append(moved)
    left, possible = _bounds(bounds, extents)
    outside = Source(1, ())
    if not possible or 0 in shape:
        return (outside,)
    inside = Source(0, tuple(inner), left)
    return (inside, outside) if left else (inside,)


def _windows(term: Term, index: Index) -> tuple[Source, ...]:
    """The elements of a window, then those of its weights."""
    at, feature, *place = index
    window = [dim for dim in term.operands[1].tensor.dims[2:] if isinstance(dim, int)]
    taps = iterated(*map(range, window))
    elements = (Source(0, (at, feature, *element)) for element in _window(term, place, window))
    return (*elements, *(Source(1, (feature, 0, *tap)) for tap in taps))


def _window(term: Term, place: Sequence[Dim], window: Sequence[int]) -> Iterator[Index]:
    """Where the elements of the window at a place are."""
    moves = list(zip(place, term.attribute("strides"), term.attribute("dilations"), strict=True))
    for tap in iterated(*map(range, window)):
        yield tuple(add(multiply(i, s), k * d) for k, (i, s, d) in zip(tap, moves, strict=True))


def _none(_: Term, __: Index, ___: Extents) -> tuple[Source, ...]:
    return ()


_MOVES = {
    "broadcast_in_dim": _broadcast, "reshape": _reshape, "transpose": _transpose, "slice": _slice, "reverse": _reverse,
    "concatenate": _concatenate, "pad": _pad, "iota": _none,
}  # fmt: skip
ALTERNATIVES = frozenset({"stablehlo.concatenate", "stablehlo.pad"})  # one of the sources is the element; the others are not read
MOVEMENTS = frozenset(f"stablehlo.{name}" for name in _MOVES) - {"stablehlo.iota"}
BIJECTIVE = frozenset(f"stablehlo.{name}" for name in ("reshape", "transpose", "reverse"))


# ---------------------------------------------------------------- from operand to result


def target(term: Term, operand: int, index: Index, extents: Extents) -> Index | None:
    """Where the element `index` of operand number `operand` stands in the result: for elementwise ops and the movements that keep every
    element exactly once. None for all others."""
    name = term.op.name
    if name == "stablehlo.reshape":
        return reshaped(index, term.operands[0].tensor.dims, term.tensor.dims, extents)
    if name == "stablehlo.transpose":
        return tuple(index[axis] for axis in term.attribute("permutation"))
    if name == "stablehlo.reverse":
        return _reverse(term, index, extents)[0].index
    if name == "stablehlo.broadcast_in_dim":
        return _spread(term, index)
    if name in MOVEMENTS or not term.op.has("elementwise"):
        return None
    return index if term.operands[operand].tensor.rank == term.tensor.rank else None


def _spread(term: Term, index: Index) -> Index | None:
    """Of a broadcast that adds dims of size 1 only."""
    axes, shape = term.attribute("broadcast_dimensions"), term.tensor.dims
    kept = dict(zip(axes, zip(term.operands[0].tensor.dims, index, strict=True), strict=True))
    if any(dim != (kept[axis][0] if axis in kept else 1) for axis, dim in enumerate(shape)):
        return None
    return tuple(kept[axis][1] if axis in kept else 0 for axis in range(len(shape)))
