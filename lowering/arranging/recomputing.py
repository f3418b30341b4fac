"""A plan whose temporaries take no more than so many bytes at once: kernels in another order, some of them launched again where what they
made was dropped, results in the memory of operands that nobody needs any more.

What is dropped and when is `scheduling`'s matter. Here a plan becomes steps and values, and a schedule becomes a plan: a kernel that is
launched again stores only what is missing, into buffers of other names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from coset.ir.stages import passed
from coset.lowering.arranging.scheduling import Schedule, ScheduledStep, ValueSizes, least, schedule
from coset.lowering.kernels.identifier import identifier
from coset.lowering.kernels.kernel import (
    Buffer,
    Computed,
    HeldTerm,
    Kernel,
    Library,
    Load,
    Loop,
    Plan,
    Pointwise,
    Product,
    Result,
    Store,
    reads,
    scalars,
    stores_of,
    used_picks,
    values_of,
    with_stores,
    writes,
)
from coset.lowering.kernels.memory import live_bytes
from coset.lowering.kernels.needs import needs_of
from coset.lowering.kernels.renaming import renamed_kernel, replaced
from coset.lowering.planning.kinds import CONVOLUTION_GRADIENTS

Seconds = Callable[[Plan, Kernel], float]
Bytes = Callable[[Buffer], int]
K = TypeVar("K", bound=Computed)
ONCE = ("effect", "distributed", "foreign")  # traits of ops that are not done a second time


def recomputed(plan: Plan, limit: int, seconds: Seconds, bytes_of: Bytes) -> Plan | None:
    """The fastest plan found of these kernels whose temporaries take at most `limit` bytes at once; None where none was found.

    Where the kernels as they are cannot keep to it, products lose what reads other temporaries behind them to a kernel of its own, which
    works in place.
    """
    for each in (plan, passed("opening products", _opened(plan))):
        if each is not None:
            flow = _Flow(each, seconds, bytes_of)
            found = schedule(flow.steps, flow.sizes, limit)
            if found is not None:
                return _checked(passed("recomputing", _plan_of(flow, found)), limit, bytes_of)
    return None


def fewest_bytes(plan: Plan, seconds: Seconds, bytes_of: Bytes) -> int:
    """The least limit that was found to be kept by `recomputed`, about."""
    flows = [_Flow(each, seconds, bytes_of) for each in (plan, _opened(plan)) if each is not None]
    return min(least(flow.steps, flow.sizes).peak for flow in flows)


def _checked(plan: Plan, limit: int, bytes_of: Bytes) -> Plan:
    taken = live_bytes(plan, bytes_of)
    assert taken <= limit, f"a plan for {limit} bytes takes {taken}"
    return plan


# ---------------------------------------------------------------- a plan as steps


class _Flow:
    """Kernels as steps over what they write, by number: a value for each buffer and each kernel that writes it, or its part. Values that
    nobody reads count too. Outputs take no bytes, as they stay."""

    def __init__(self, plan: Plan, seconds: Seconds, bytes_of: Bytes) -> None:
        self.plan = plan
        made = [(name, place) for place, kernel in enumerate(plan.kernels) for name in writes(kernel)]
        self.values = [name for name, _ in made]
        self.number = {value: place for place, value in enumerate(made)}
        self.makers: dict[str, list[int]] = {}
        for name, place in made:
            self.makers.setdefault(name, []).append(place)
        first = {name: self.number[name, places[0]] for name, places in self.makers.items()}
        taken = [bytes_of(plan.buffers[name]) if plan.buffers[name].role == "temporary" else 0 for name in self.values]
        self.sizes = ValueSizes(taken, [first[name] for name in self.values])
        needs = needs_of(plan.kernels)
        self.steps = [self._step(place, seconds(plan, kernel), set(needs[place])) for place, kernel in enumerate(plan.kernels)]

    def _step(self, place: int, seconds: float, needs: set[int]) -> ScheduledStep:
        kernel = self.plan.kernels[place]
        op = kernel.term.op if isinstance(kernel, Library) else None
        return ScheduledStep(
            seconds,
            tuple(self.number[name, maker] for name in reads(kernel) for maker in self.makers.get(name, ()) if maker in needs),
            tuple(self.number[name, place] for name in writes(kernel)),
            ends=any(self.plan.buffers[name].role != "temporary" for name in writes(kernel)) or not writes(kernel),
            whole=op is not None,
            repeats=op is None or op.name in CONVOLUTION_GRADIENTS or (op.meaning is not None and not any(map(op.has, ONCE))),
            over=dict(self._over(place)),
        )

    def _over(self, place: int) -> Iterable[tuple[int, int]]:
        for to, taken in in_place(self.plan.kernels[place], self.plan):
            if len(self.makers[to]) == len(self.makers[taken]) == 1:  # parts stay where they are
                yield self.number[to, place], self.number[taken, self.makers[taken][0]]


def in_place(kernel: Kernel, plan: Plan) -> Iterable[tuple[str, str]]:
    """Pairs of a temporary that a kernel writes and one of equal form that it reads, where the first may have the memory of the second:
    each element that is read lies where the program that reads it writes. The store must come last of the kernel's."""
    if isinstance(kernel, Library):
        return
    loads: dict[str, list[Load]] = {}
    for value in scalars(*values_of(kernel)):
        if isinstance(value, Load):
            loads.setdefault(value.buffer, []).append(value)
    early = _read_early(kernel)
    for store in kernel.closing_stores:
        own = plan.buffers[store.buffer]
        if own.role != "temporary":
            continue
        for name, found in loads.items():
            other = plan.buffers[name]
            fits = other.role == "temporary" and _form(other) == _form(own)
            if fits and name not in early and all(load.index == store.index for load in found):
                yield store.buffer, name


def _form(buffer: Buffer) -> Hashable:
    """What says where the elements of a buffer lie in its memory."""
    return buffer.dtype, buffer.shape, buffer.strides, buffer.order


def _read_early(kernel: Computed) -> set[str]:
    """Buffers that other programs may read after this one wrote, and those of computed places."""
    values = [*(pick.value for pick in kernel.picks), *kernel.early_values]
    return {value.buffer for value in scalars(*values) if isinstance(value, Load)}


# ---------------------------------------------------------------- a schedule as a plan


@dataclass
class _Names:
    """The buffers of a new plan; a temporary that is made again has another name."""

    plan: Plan
    buffers: dict[str, Buffer]
    now: dict[str, str]
    taken: set[str]
    known: dict[str, list[HeldTerm]]
    held: list[HeldTerm] = field(default_factory=list)  # in buffers of new names

    def fresh(self, name: str) -> str:
        """The name of what is made of `name` next; an output that a library makes again is a temporary."""
        if name not in self.buffers:
            self.buffers[name] = self.plan.buffers[name]
            return name
        found = identifier(name, self.taken, first=2)
        self.taken.add(found)
        self.buffers[found] = replace(self.plan.buffers[name], name=found, role="temporary")
        self.held += [replace(each, buffer=found) for each in self.known.get(name, ())]
        return found


def _plan_of(flow: _Flow, found: Schedule) -> Plan:
    """The plan that a schedule says."""
    plan = flow.plan
    made = {name for kernel in plan.kernels for name in writes(kernel)}
    known: dict[str, list[HeldTerm]] = {}
    for item in plan.held:
        known.setdefault(item.buffer, []).append(item)
    names = _Names(plan, {name: buffer for name, buffer in plan.buffers.items() if name not in made}, {}, set(plan.buffers), known)
    over: dict[str, str] = {}
    kernels: list[Kernel] = []
    taken = {kernel.name for kernel in plan.kernels}
    times: dict[int, int] = {}
    for each in found.done:
        kernel = plan.kernels[each.step]
        times[each.step] = times.get(each.step, 0) + 1
        kept = {flow.values[value] for value in each.kept}
        if not isinstance(kernel, Library):
            kernel = _trimmed(kernel, kept, [flow.values[value] for value in each.over])
        before = dict(names.now)
        there = kept - {flow.values[value] for value in each.new}  # beside other parts
        after = {name: names.now[name] if name in there else names.fresh(name) for name in dict.fromkeys(writes(kernel))}
        over |= {after[flow.values[to]]: before[flow.values[read]] for to, read in each.over.items()}
        names.now |= {name: now for name, now in after.items() if name in kept}
        read = {name: before[name] for name in reads(kernel) if name in before}
        kernel = renamed_kernel(kernel, {**read, **after})
        if times[each.step] > 1:
            kernel = replace(kernel, name=identifier(f"{kernel.name}_again", taken, first=2))
            taken.add(kernel.name)
        kernels.append(kernel)
    held = (*plan.held, *names.held)
    made_again = replace(plan, buffers=names.buffers, kernels=tuple(kernels), offsets={}, arena=0, frees=True, over=over, held=held)
    return _without_unread(made_again)


def _without_unread(plan: Plan) -> Plan:
    """The plan without stores that nobody reads: values that were to be kept and had to go before their first use."""
    needed: set[str] = set()
    kernels: list[Kernel] = []
    for kernel in reversed(plan.kernels):
        if not isinstance(kernel, Library):
            kept = [name for name in writes(kernel) if name in needed or plan.buffers[name].role != "temporary"]
            if not kept:
                continue
            if len(kept) < len(writes(kernel)):
                kernel = _trimmed(kernel, set(kept), [name for name in kept if name in plan.over])
        needed |= {*reads(kernel), *writes(kernel)}
        kernels.append(kernel)
    used = {*needed, *(name for _, name in plan.outputs), *(name for _, name in plan.inputs)}
    buffers = {name: buffer for name, buffer in plan.buffers.items() if name in used or buffer.role != "temporary"}
    # a kernel that stores less than before may not read what it would have taken the memory of, which then nobody makes
    over = {name: taken for name, taken in plan.over.items() if name in buffers and taken in buffers}
    held = tuple(each for each in plan.held if each.buffer in buffers)
    return replace(plan, kernels=tuple(reversed(kernels)), buffers=buffers, over=over, held=held)


def _trimmed(kernel: K, kept: set[str], last: Sequence[str]) -> K:
    """A kernel that stores only what is `kept`, with the buffers of `last` behind the others, and computes nothing for the rest."""

    def stored(stores: tuple[Store, ...]) -> tuple[Store, ...]:
        left = [store for store in stores if store.buffer in kept]
        return tuple(sorted(left, key=lambda store: store.buffer in last))

    kernel = with_stores(kernel, stored).without_unused()
    values = values_of(replace(kernel, picks=()))
    return replace(kernel, picks=used_picks(kernel.picks, values, [dim for store in stores_of(kernel) for dim in store.index]))


# ---------------------------------------------------------------- products without what stands behind them


def _opened(plan: Plan) -> Plan | None:
    """The plan with each product that reads temporaries in what it stores as two kernels: the sums, and the rest in their place. None where
    there is none such that keeps the precision of the sums."""
    kernels: list[Kernel] = []
    buffers = dict(plan.buffers)
    stored = Counter(store.buffer for kernel in plan.kernels for store in stores_of(kernel))
    taken = {*plan.buffers, *(kernel.name for kernel in plan.kernels)}
    for kernel in plan.kernels:
        if not isinstance(kernel, Product) or not _reads_behind(kernel, plan):
            kernels.append(kernel)
            continue
        whole = (store for store in kernel.stores if stored[store.buffer] == 1)
        place = next((store for store in whole if _holds_sums(plan.buffers[store.buffer], kernel)), None)
        if place is None:
            kernels.append(kernel)
            continue
        sums = identifier(f"{place.buffer}_sums", taken)
        behind = identifier(f"{kernel.name}_behind", {*taken, sums})
        taken |= {sums, behind}
        like = plan.buffers[place.buffer]
        buffers[sums] = Buffer(sums, kernel.accumulator, like.shape, "temporary", order=like.order)
        loops: tuple[Loop, ...] = (*kernel.batch, *kernel.m, *kernel.n)
        result = {"sum": Load(sums, place.index, kernel.accumulator)}
        stores = tuple(replace(store, value=replaced(store.value, result)) for store in kernel.stores)
        first = replace(kernel, stores=(Store(sums, place.index, Result("sum", kernel.accumulator)),))
        kernels.append(_trimmed(first, {sums}, ()))
        rest = Pointwise(behind, loops, stores, terms=kernel.terms, picks=kernel.picks)
        kernels.append(_trimmed(rest, {store.buffer for store in stores}, ()))
    return replace(plan, kernels=tuple(kernels), buffers=buffers) if len(kernels) > len(plan.kernels) else None


def _reads_behind(kernel: Product, plan: Plan) -> bool:
    """True where a store reads temporaries."""
    loads = [value for store in kernel.stores for value in scalars(store.value) if isinstance(value, Load)]
    return any(plan.buffers[load.buffer].role == "temporary" for load in loads)


def _holds_sums(buffer: Buffer, kernel: Product) -> bool:
    return buffer.role == "temporary" and buffer.dtype == kernel.accumulator and buffer.strides is None
