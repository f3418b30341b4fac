"""Memory of temporaries: how long each lives, and one arena in which those that never live together share bytes."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from coset.ir.dims import Dim, multiply, product
from coset.lowering.kernels.clocks import Clock, Clocks, clocks_of, in_turn
from coset.lowering.kernels.kernel import Buffer, Library, Plan, reads, writes

ALIGNMENT = 256  # bytes; what CUDA's allocations start at, and wide loads want


def lifetimes(plan: Plan) -> dict[str, tuple[int, int]]:
    """The first and the last kernel that touches each temporary, by place in launch order; outputs live to the end."""
    found: dict[str, tuple[int, int]] = {}
    for place, kernel in enumerate(plan.kernels):
        for name in (*reads(kernel), *writes(kernel)):
            if plan.buffers[name].role == "temporary":
                found[name] = (found.get(name, (place, place))[0], place)
    return found


def live_bytes(plan: Plan, bytes_of: Callable[[Buffer], int]) -> int:
    """The most bytes of temporaries that are live at once, as the plan holds them: the arena all the time, others from their first use to
    their last; one that has another's memory takes over its bytes."""
    spans = lifetimes(plan)
    whole: dict[str, str] = {}  # each temporary, and the one whose memory it is
    ends: dict[str, int] = {}
    for name, (_, last) in spans.items():
        whole[name] = whole[plan.over[name]] if name in plan.over else name
        ends[whole[name]] = max(last, ends.get(whole[name], 0))
    change = [0] * (len(plan.kernels) + 1)
    for name, last in ends.items():
        if name not in plan.offsets:
            change[spans[name][0]] += bytes_of(plan.buffers[name])
            change[last + 1] -= bytes_of(plan.buffers[name])
    return plan.arena + max(accumulate(change), default=0)


def library_results(plan: Plan) -> set[str]:
    """The temporaries that libraries make, in memory that they take themselves."""
    return {
        name for kernel in plan.kernels if isinstance(kernel, Library) for name in writes(kernel) if plan.buffers[name].role == "temporary"
    }


def released(plan: Plan) -> dict[int, list[str]]:
    """The temporaries to let go of behind each kernel, by its place: all that are used no more where the plan frees, else those that
    libraries made. What several streams use stays to the end: a library takes memory of its stream, which would give it away sooner."""
    foreign = library_results(plan)
    found: dict[int, list[str]] = {}
    last = _last_uses(plan, clocks_of(in_turn(plan)))
    for name, (_, end) in lifetimes(plan).items():
        if plan.frees or (name in foreign and last[name] == (end,)):
            found.setdefault(end, []).append(name)
    return found


def shared(plan: Plan) -> dict[str, str]:
    """For temporaries that are not in the arena (a dim is a symbol): an earlier one of as many bytes, whatever the symbols are, whose last
    use is over when it is first written. Its memory can be taken; each is given on once."""
    found: dict[str, str] = {}
    free: dict[Dim, list[str]] = {}
    ends: dict[int, list[str]] = {}
    spans = lifetimes(plan)
    for place in range(len(plan.kernels)):
        begins = [name for name in writes(plan.kernels[place]) if name not in plan.offsets and spans.get(name, (-1,))[0] == place]
        for name in begins:
            buffer = plan.buffers[name]
            bits = multiply(product(buffer.shape), buffer.dtype.bits)
            if free.get(bits):
                found[name] = free[bits].pop()
            ends.setdefault(spans[name][1], []).append(name)
        for name in ends.get(place, ()):
            buffer = plan.buffers[name]
            free.setdefault(multiply(product(buffer.shape), buffer.dtype.bits), []).append(name)
    return found


def buffer_bytes(buffer: Buffer) -> int | None:
    """Bytes of a static buffer, rounded up to the alignment; None where a dim is a symbol."""
    shape = [dim for dim in buffer.shape if isinstance(dim, int)]
    if len(shape) != len(buffer.shape):
        return None
    return allocated(buffer, prod(shape))


def allocated(buffer: Buffer, elements: int) -> int:
    """Bytes of a buffer of so many elements, rounded up to the alignment."""
    return -(-elements * max(1, buffer.dtype.bits // 8) // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class _Placed:
    """A temporary in the arena; the kernels after which its bytes are free, the last one of each stream."""

    offset: int
    end: int
    last: tuple[int, ...]


def arena(plan: Plan) -> tuple[dict[str, int], int]:
    """The offset of each static temporary that kernels write, and the bytes of the whole. What a library makes has memory of its own.

    Kernels are taken in launch order; a temporary takes the smallest gap that holds it (best fit) among those that are still used when the
    first kernel that writes it begins, or may be: on several streams any that writes a part may be the first. A kernel never writes where
    it reads.
    """
    clocks = clocks_of(in_turn(plan))
    foreign = library_results(plan)
    last, first = _last_uses(plan, clocks), _first_writes(plan, clocks)
    offsets: dict[str, int] = {}
    placed: list[_Placed] = []  # by offset
    behind = [(0,) * clocks.count] * clocks.count  # for each stream, when its next kernel begins at the earliest
    top = 0
    for place, kernel in enumerate(plan.kernels):
        new = [name for name in writes(kernel) if name in last and name not in foreign and name not in offsets]
        sizes = {name: buffer_bytes(plan.buffers[name]) for name in new}
        static = [(bytes_, name) for name, bytes_ in sizes.items() if bytes_ is not None]
        if static:
            earliest = tuple(map(min, zip(*behind, strict=True)))
            placed = [each for each in placed if not clocks.are_over(each.last, earliest)]
        for bytes_, name in sorted(static, key=lambda pair: -pair[0]):
            offset = _fitting([each for each in placed if not clocks.are_over(each.last, first[name])], bytes_, top)
            offsets[name], top = offset, max(top, offset + bytes_)
            insort(placed, _Placed(offset, offset + bytes_, last[name]), key=lambda each: each.offset)
        behind[clocks.stream[place]] = clocks.after(place)
    return offsets, top


def _last_uses(plan: Plan, clocks: Clocks) -> dict[str, tuple[int, ...]]:
    """The last kernel of each stream that touches each temporary."""
    found: dict[str, dict[int, int]] = {}
    for place, kernel in enumerate(plan.kernels):
        for name in (*reads(kernel), *writes(kernel)):
            if plan.buffers[name].role == "temporary":
                found.setdefault(name, {})[clocks.stream[place]] = place
    return {name: tuple(places.values()) for name, places in found.items()}


def _first_writes(plan: Plan, clocks: Clocks) -> dict[str, Clock]:
    """What is surely over before anything is written to each buffer."""
    found: dict[str, Clock] = {}
    for place, kernel in enumerate(plan.kernels):
        for name in writes(kernel):
            found[name] = tuple(map(min, found.get(name, clocks.begins[place]), clocks.begins[place]))
    return found


def _fitting(placed: Iterable[_Placed], wanted: int, top: int) -> int:
    """The start of the smallest gap of `wanted` bytes or more below `top`; where there is none, of the one above all that is placed."""
    found: tuple[int, int] | None = None
    end = 0
    for each in placed:
        length = each.offset - end
        if length >= max(1, wanted) and (found is None or (length, end) < found):
            found = length, end
        end = max(end, each.end)
    if top > end and top - end >= wanted and (found is None or (top - end, end) < found):
        found = top - end, end
    return end if found is None else found[1]
