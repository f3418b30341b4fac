"""Memory of temporaries: how long each lives, and one arena in which those that never live together share bytes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from coset.ir.dims import Dim, multiply, product, size
from coset.lowering.kernel import Buffer, Library, Plan, reads, writes

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
    libraries made."""
    foreign = library_results(plan)
    found: dict[int, list[str]] = {}
    for name, (_, last) in lifetimes(plan).items():
        if plan.frees or name in foreign:
            found.setdefault(last, []).append(name)
    return found


def shared(plan: Plan) -> dict[str, str]:
    """For temporaries that are not in the arena (a dim is a symbol): an earlier one of as many bytes, whatever the symbols are, whose last
    use is over when it is first written. Its memory can be taken; each is given on once."""
    found: dict[str, str] = {}
    free: dict[Dim, list[str]] = {}
    ends: dict[int, list[str]] = {}
    spans = lifetimes(plan)
    for place in range(len(plan.kernels)):
        begins = [name for name in writes(plan.kernels[place]) if name in spans and name not in plan.offsets]
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
    return allocated(buffer, size(shape))


def allocated(buffer: Buffer, elements: int) -> int:
    """Bytes of a buffer of so many elements, rounded up to the alignment."""
    return -(-elements * max(1, buffer.dtype.bits // 8) // ALIGNMENT) * ALIGNMENT


def arena(plan: Plan) -> tuple[dict[str, int], int]:
    """The offset of each static temporary that kernels write, and the bytes of the whole. What a library makes has memory of its own.

    Kernels are taken in launch order; a temporary takes the smallest free gap that holds it (best fit) and gives it back after
    its last use. A kernel never writes where it reads.
    """
    spans = lifetimes(plan)
    starts: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    sizes: dict[str, int] = {}
    foreign = library_results(plan)
    for name, (first, last) in spans.items():
        bytes_ = buffer_bytes(plan.buffers[name])
        if bytes_ is not None and name not in foreign:
            sizes[name] = bytes_
            starts.setdefault(first, []).append(name)
            ends.setdefault(last, []).append(name)
    offsets: dict[str, int] = {}
    gaps: list[tuple[int, int]] = []  # (offset, bytes), by offset, never touching
    top = 0
    for place in range(len(plan.kernels)):
        for name in sorted(starts.get(place, ()), key=lambda name: -sizes[name]):
            offset = _taken(gaps, sizes[name])
            if offset is None:
                grows = gaps and sum(gaps[-1]) == top  # the last gap reaches the end
                offset = gaps.pop()[0] if grows else top
                top = offset + sizes[name]
            offsets[name] = offset
        for name in ends.get(place, ()):
            _give_back(gaps, offsets[name], sizes[name])
    return offsets, top


def _taken(gaps: list[tuple[int, int]], wanted: int) -> int | None:
    """The offset of the smallest gap of `wanted` bytes or more, which shrinks; None where there is none."""
    fitting = [(length, place) for place, (_, length) in enumerate(gaps) if length >= wanted]
    if not fitting:
        return None
    length, place = min(fitting)
    offset = gaps[place][0]
    gaps[place : place + 1] = [(offset + wanted, length - wanted)] if length > wanted else []
    return offset


def _give_back(gaps: list[tuple[int, int]], offset: int, length: int) -> None:
    """Enter the gap and join it with the ones beside it."""
    if not length:
        return
    gaps.append((offset, length))
    gaps.sort()
    joined: list[tuple[int, int]] = []
    for start, size_ in gaps:
        if joined and sum(joined[-1]) == start:
            joined[-1] = (joined[-1][0], joined[-1][1] + size_)
        else:
            joined.append((start, size_))
    gaps[:] = joined
