"""What every plan of kernels keeps to, whichever pass made it: a fault here is one of the pass before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from coset.ir.dims import Dim, alone, symbols
from coset.ir.verifier import VerificationError
from coset.lowering.kernels.index_arithmetic import range_of
from coset.lowering.kernels.kernel import (
    Buffer,
    Computed,
    Library,
    Load,
    Plan,
    Scalar,
    dims_in,
    extents_of,
    loops_of,
    reads,
    scalars,
    stores_of,
    values_of,
    writes,
)
from coset.lowering.kernels.memory import ALIGNMENT, buffer_bytes
from coset.lowering.kernels.needs import needs_of
from coset.lowering.kernels.scalar import Choose, operands_of

ROLES = ("input", "constant", "output", "temporary")
GIVEN = ("input", "constant")  # what no kernel writes


def verify_plan(plan: Plan) -> None:
    """Refuse a plan that is not well formed.

    Raises:
        VerificationError: a buffer is not described, not written before it is read, or written by whom it should not be; a kernel speaks of
            a symbol that it has not, loads or stores with an index that does not fit the buffer or in another element type; kernels on
            several streams are in no order, or temporaries that live together share memory.
    """
    for name, buffer in plan.buffers.items():
        _verify_buffer(plan, name, buffer)
    _verify_ends(plan)
    for kernel in plan.kernels:
        for name in (*reads(kernel), *writes(kernel)):
            if name not in plan.buffers:
                raise VerificationError(f"{kernel.name} uses the buffer `{name}`, which the plan has not")
        if not isinstance(kernel, Library):
            _verify_symbols(plan, kernel)
            _verify_accesses(plan, kernel)
    _verify_makers(plan)
    _verify_covered(plan)
    before = _verify_streams(plan)
    _verify_arena(plan, before)
    _verify_taken_over(plan)


def _once(names: Iterable[str], what: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise VerificationError(f"two {what} are called `{name}`")


# ---------------------------------------------------------------- buffers


def _verify_buffer(plan: Plan, name: str, buffer: Buffer) -> None:
    rank = len(buffer.shape)
    if buffer.name != name:
        raise VerificationError(f"the buffer `{buffer.name}` is entered as `{name}`")
    if buffer.role not in ROLES:
        raise VerificationError(f"the buffer `{name}` has the role {buffer.role}, which is none of {', '.join(ROLES)}")
    if (buffer.role == "constant") != (buffer.value is not None):
        raise VerificationError(f"the buffer `{name}` is {buffer.role} and has {'no' if buffer.value is None else 'a'} value")
    if buffer.strides is not None and len(buffer.strides) != rank:
        raise VerificationError(f"the buffer `{name}` has {len(buffer.strides)} strides for {rank} dims")
    if buffer.order is not None and sorted(buffer.order) != list(range(rank)):
        raise VerificationError(f"the buffer `{name}` lies in the order {buffer.order}, which is no order of its {rank} dims")
    if buffer.packed is not None and not 0 <= buffer.packed < rank:
        raise VerificationError(f"the buffer `{name}` is packed along dim {buffer.packed} of {rank}")
    unknown = sorted({symbol for dim in buffer.shape for symbol in symbols(dim)} - plan.symbols.keys())
    if unknown:
        raise VerificationError(f"the buffer `{name}` has the dim `{unknown[0]}`, which the plan reads from nowhere")


def _verify_ends(plan: Plan) -> None:
    """Inputs, outputs, and what dim symbols are read from."""
    _once((kernel.name for kernel in plan.kernels), "kernels")
    _once((name for name, _ in plan.inputs), "inputs")
    _once((name for name, _ in plan.outputs), "outputs")
    for name, held in (*plan.inputs, *plan.outputs, *((f"dim {each}", source) for each, (source, _) in plan.symbols.items())):
        if held not in plan.buffers:
            raise VerificationError(f"`{name}` is held by the buffer `{held}`, which the plan has not")
    for name, held in plan.inputs:
        if plan.buffers[held].role != "input":
            raise VerificationError(f"the input `{name}` is the buffer `{held}`, whose role is {plan.buffers[held].role}")
    for name, (source, axis) in plan.symbols.items():
        shape = plan.buffers[source].shape
        if not 0 <= axis < len(shape) or alone(shape[axis]) != name:
            raise VerificationError(f"the dim `{name}` is read from dim {axis} of `{source}`, which is another")
    for item in plan.held:
        ranks = {len(each) for each in (item.low, item.high, item.axes)}
        if item.buffer not in plan.buffers or ranks != {len(plan.buffers[item.buffer].shape)}:
            raise VerificationError(f"{item.term} is held by no box of a buffer: {item.buffer} from {item.low} to {item.high}")


def _verify_makers(plan: Plan) -> None:
    """Each buffer is written by kernels if it is no input and no constant, by one if that is a library, and before it is read."""
    makers: dict[str, list[int]] = {}
    for place, kernel in enumerate(plan.kernels):
        for name in reads(kernel):
            if name not in makers and plan.buffers[name].role not in GIVEN:
                raise VerificationError(f"{kernel.name} reads `{name}` before any kernel has written it")
        for name in writes(kernel):
            if plan.buffers[name].role in GIVEN:
                raise VerificationError(f"{kernel.name} writes `{name}`, which is {plan.buffers[name].role}")
            makers.setdefault(name, []).append(place)
            if len(makers[name]) > 1 and any(isinstance(plan.kernels[each], Library) for each in makers[name]):
                names = " and ".join(plan.kernels[each].name for each in makers[name])
                raise VerificationError(f"{names} write `{name}`, but a library writes the whole of it")
    for name, held in plan.outputs:
        if held not in makers and plan.buffers[held].role not in GIVEN:
            raise VerificationError(f"the output `{name}` is the buffer `{held}`, which no kernel writes")


# ---------------------------------------------------------------- one kernel


def _verify_symbols(plan: Plan, kernel: Computed) -> None:
    """The symbols of loops and picks are bound once, and all that a kernel speaks of are bound."""
    loops = [loop.name for loop in loops_of(kernel)]
    names = [*loops, *(pick.name for pick in kernel.picks)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise VerificationError(f"{kernel.name} binds the symbol `{twice[0]}` twice")
    hidden = sorted(set(names) & plan.symbols.keys())
    if hidden:
        raise VerificationError(f"{kernel.name} binds the symbol `{hidden[0]}`, which is a dim of the program")
    known = {*loops, *plan.symbols}
    for pick in kernel.picks:
        _require_known(kernel, f"the pick `{pick.name}`", known, (pick.value,), (pick.count,))
        known.add(pick.name)
    for loop in loops_of(kernel):
        _require_known(kernel, f"the loop `{loop.name}`", set(plan.symbols), (), (loop.extent,))
    places = tuple(dim for store in stores_of(kernel) for dim in store.index)
    _require_known(kernel, "a value or a store", known, values_of(kernel), places)


def _require_known(kernel: Computed, what: str, known: set[str], values: Sequence[Scalar], dims: Sequence[Dim]) -> None:
    spoken = (*dims, *(dim for value in scalars(*values) for dim in dims_in(value)))
    lost = sorted({name for dim in spoken for name in symbols(dim)} - known)
    if lost:
        raise VerificationError(f"{what} of {kernel.name} speaks of the symbol `{lost[0]}`, which is not bound there")


def _verify_accesses(plan: Plan, kernel: Computed) -> None:
    """Loads and stores have an index for each dim of their buffer, in it as far as that is seen, and its element type."""
    extents = extents_of(kernel)
    values = values_of(kernel)
    loads = [value for value in scalars(*values) if isinstance(value, Load)]
    accesses = [("loads", load.buffer, load.index, load.dtype) for load in loads]
    accesses += [("stores", store.buffer, store.index, store.value.dtype) for store in stores_of(kernel)]
    for what, name, index, dtype in accesses:
        buffer = plan.buffers[name]
        if len(index) != len(buffer.shape):
            raise VerificationError(f"{kernel.name} {what} `{name}` with {len(index)} indices for {len(buffer.shape)} dims")
        if dtype != buffer.dtype:
            raise VerificationError(f"{kernel.name} {what} `{name}` as {dtype}, but its elements are {buffer.dtype}")
    computed = values_of(replace(kernel, picks=()))  # picks may be computed only where they are used
    always = [("loads", load.buffer, load.index) for load in _unguarded(computed)]
    for what, name, index in (*always, *(("stores", store.buffer, store.index) for store in stores_of(kernel))):
        for axis, (dim, size) in enumerate(zip(index, plan.buffers[name].shape, strict=True)):
            if _leaves(dim, size, extents):
                raise VerificationError(f"{kernel.name} {what} `{name}` at {dim} along dim {axis}, which is not below {size}")


def _unguarded(values: Iterable[Scalar]) -> list[Load]:
    """The loads that no condition guards."""
    found: list[Load] = []
    waiting = list(values)
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, Choose):
            continue
        seen.add(id(value))
        found += [value] if isinstance(value, Load) else []
        waiting += operands_of(value)
    return found


def _leaves(dim: Dim, size: Dim, extents: Mapping[str, Dim]) -> bool:
    """True where numbers say that an index leaves its dim."""
    span = range_of(dim, extents)
    low, high = span if span is not None else (None, None)
    return (isinstance(low, int) and low < 0) or (isinstance(high, int) and isinstance(size, int) and high >= size > 0)


def _verify_covered(plan: Plan) -> None:
    """The stores of a buffer reach at least as many elements as it has, as far as numbers say."""
    reached: dict[str, int | None] = {}
    for kernel in plan.kernels:
        if isinstance(kernel, Library):
            reached |= dict.fromkeys(kernel.results)
            continue
        extents = extents_of(kernel)
        for store in stores_of(kernel):
            own, so_far = _elements(store.index, extents), reached.get(store.buffer, 0)
            reached[store.buffer] = None if own is None or so_far is None else so_far + own
    for name, count in reached.items():
        shape = plan.buffers[name].shape
        sizes = [size for size in shape if isinstance(size, int)]
        if count is not None and len(sizes) == len(shape) and count < prod(sizes):
            raise VerificationError(f"`{name}` has {prod(sizes)} elements, and stores reach {count} of them")


def _elements(index: Sequence[Dim], extents: Mapping[str, Dim]) -> int | None:
    """How many places an index can reach at most; None if no number says so."""
    total = 1
    for dim in index:
        low, high = range_of(dim, extents) or (None, None)
        if not isinstance(low, int) or not isinstance(high, int):
            return None
        total *= high - low + 1
    return total


# ---------------------------------------------------------------- time and memory


def _verify_streams(plan: Plan) -> list[int]:
    """For each kernel a number whose bit i says that kernel i is surely over when it begins; what it needs is."""
    before: list[int] = []
    last: dict[int, int] = {}
    streams = plan.streams
    if streams is not None and not len(streams.of) == len(streams.waits) == len(plan.kernels):
        raise VerificationError(f"{len(plan.kernels)} kernels are on {len(streams.of)} streams and wait {len(streams.waits)} times")
    for place, kernel in enumerate(plan.kernels):
        stream, waits = (0, ()) if streams is None else (streams.of[place], streams.waits[place])
        for other in waits:
            if not 0 <= other < place:
                raise VerificationError(f"{kernel.name} waits for kernel {other}, which is launched later: a circle")
        own = [last[stream]] if stream in last else []
        over = 0
        for other in (*own, *waits):
            over |= before[other] | 1 << other
        before.append(over)
        last[stream] = place
    for place, needed in enumerate(needs_of(plan.kernels)):
        for other in needed:
            if not before[place] >> other & 1:
                raise VerificationError(f"{plan.kernels[place].name} needs {plan.kernels[other].name}, and does not wait for it")
    return before


def _uses(plan: Plan) -> dict[str, int]:
    """For each buffer a number whose bit i says that kernel i touches it."""
    found: dict[str, int] = {}
    for place, kernel in enumerate(plan.kernels):
        for name in (*reads(kernel), *writes(kernel)):
            found[name] = found.get(name, 0) | 1 << place
    return found


def _verify_arena(plan: Plan, before: Sequence[int]) -> None:
    """Temporaries lie inside the arena, and those that share bytes are used one after the other."""
    uses = _uses(plan)
    placed: list[tuple[int, int, str]] = []
    for name, offset in plan.offsets.items():
        buffer = plan.buffers.get(name)
        size = None if buffer is None or buffer.role != "temporary" else buffer_bytes(buffer)
        if size is None:
            raise VerificationError(f"`{name}` has a place in the arena, but is no temporary of static shape")
        if offset % ALIGNMENT or not 0 <= offset <= offset + size <= plan.arena:
            raise VerificationError(f"`{name}` lies from {offset} to {offset + size} of an arena of {plan.arena} bytes")
        placed.append((offset, offset + size, name))
    if plan.frees and placed:
        raise VerificationError(f"the plan frees temporaries, but `{placed[0][2]}` has a place in an arena")
    placed.sort()
    for at, (_, end, name) in enumerate(placed):
        for start, _, other in placed[at + 1 :]:
            if start >= end:
                break
            if not (_all_before(uses[name], uses[other], before) or _all_before(uses[other], uses[name], before)):
                raise VerificationError(f"`{name}` and `{other}` share bytes of the arena, and live together")


def _all_before(first: int, second: int, before: Sequence[int]) -> bool:
    """True where all kernels of `first` are over when any of `second` begins."""
    return all(before[place] & first == first for place in range(second.bit_length()) if second >> place & 1)


def _verify_taken_over(plan: Plan) -> None:
    """What has the memory of another temporary is as large, and begins where that one ends."""
    spans: dict[str, list[int]] = {}
    for place, kernel in enumerate(plan.kernels):
        for name in (*reads(kernel), *writes(kernel)):
            spans.setdefault(name, []).append(place)
    taken = Counter(plan.over.values())
    for name, other in plan.over.items():
        if not all(each in spans and plan.buffers[each].role == "temporary" for each in (name, other)):
            raise VerificationError(f"`{name}` has the memory of `{other}`: both must be temporaries that kernels use")
        if _bits(plan.buffers[name]) != _bits(plan.buffers[other]):
            raise VerificationError(f"`{name}` has the memory of `{other}`, which is of another size")
        if min(spans[name]) < max(spans[other]) or taken[other] > 1:
            raise VerificationError(f"`{name}` has the memory of `{other}`, which is still used")


def _bits(buffer: Buffer) -> tuple[Dim, ...]:
    return (*buffer.extents, buffer.held.bits)
