"""Orders of dims in memory. A plan's kernels say what is computed of which elements; where an element lies is said by its buffer alone. So
temporaries and constants may have their features last (NHWC, torch's channels_last), which is how a GPU's matrix units read convolutions,
and others follow those that a kernel reads or writes beside them. Inputs and outputs lie as they are given and asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from coset.ir.dims import Dim, Shape, symbols
from coset.ir.stages import passed
from coset.lowering.arranging.digits import by_digits
from coset.lowering.arranging.following import FOLLOWING, Access, Following, accesses
from coset.lowering.kernels.kernel import (
    Computed,
    Kernel,
    Library,
    Plan,
    loops_of,
    reads,
    writes,
)
from coset.lowering.planning.facing import faced
from coset.lowering.planning.windows import is_thin
from coset.lowering.torch.contractions import is_pool
from coset.lowering.torch.convolutions import is_laid_out

Order = tuple[int, ...]  # the dims of a buffer, from the outermost in memory on
Ranks = dict[str, int]  # of loops: the further inside in memory they move, the higher
T = TypeVar("T")
_LAST = 1 << 30  # the rank of what is inside all others


def features_last(rank: int) -> Order:
    """The order of [batch, features, space ..] with the features last."""
    return (0, *range(2, rank), 1)


def is_convolution(kernel: Kernel) -> bool:
    """True for a library's convolution, or a gradient of one, that can be run with features last."""
    return isinstance(kernel, Library) and is_laid_out(kernel.term)


def buffers_of(kernel: Library) -> tuple[str, ...]:
    """What a library reads and writes."""
    return (*(name for name in kernel.operands if name is not None), *kernel.results)


def runs_last(plan: Plan, kernel: Library) -> bool:
    """True for a convolution that is run with features last: where something that it reads or writes lies so."""
    return is_convolution(kernel) and any(plan.buffers[name].order is not None for name in buffers_of(kernel))


def turned(plan: Plan, kernel: Library, bits: int) -> tuple[str, ...]:
    """The buffers that a library copies into another order before it runs, or behind it: those of a convolution that lie otherwise than it
    is run, and all of one that is run otherwise than the machine multiplies: floats of at most so many `bits` with features last, others
    with features first. Convolutions of each feature by itself are no products of matrices: they are done in either order."""
    if not is_convolution(kernel):
        return ()
    names, last = buffers_of(kernel), runs_last(plan, kernel)
    apart = tuple(name for name in names if (plan.buffers[name].order is not None) != last)
    return apart if _by_feature(kernel) or is_multiplied_last(kernel, bits) == last else (*apart, *names)


def is_multiplied_last(kernel: Kernel, bits: int) -> bool:
    """True for a convolution of floats of at most so many bits that is a product of matrices."""
    return isinstance(kernel, Library) and is_convolution(kernel) and not _by_feature(kernel) and kernel.term.tensor.dtype.bits <= bits


def _by_feature(kernel: Library) -> bool:
    return kernel.term.op.name == "stablehlo.convolution" and is_thin(kernel.term)


# ---------------------------------------------------------------- which buffers


def movable(plan: Plan) -> frozenset[str]:
    """The buffers that may have another order: temporaries and constants that only convolutions, pools and those kernels of ours touch
    whose loops follow them."""
    fixed = {name for _, name in (*plan.inputs, *plan.outputs)}
    for kernel in plan.kernels:
        if isinstance(kernel, Library) and (is_convolution(kernel) or is_pool(kernel.term)):
            continue
        if type(kernel) not in FOLLOWING:
            fixed |= {*reads(kernel), *writes(kernel)}
    return frozenset(
        name
        for name, buffer in plan.buffers.items()
        if name not in fixed and buffer.role in ("temporary", "constant") and buffer.packed is None and len(buffer.shape) > 2
    )


def wanted(plan: Plan, seeds: Iterable[str], free: frozenset[str]) -> dict[str, Order]:
    """Orders for those of `free` that lie as `seeds` with their features last, as far as kernels carry them from one to the other."""
    found = {name: features_last(len(plan.buffers[name].shape)) for name in seeds if name in free}
    touched: dict[str, list[Kernel]] = {}
    for kernel in map(opened, plan.kernels):
        for name in {*reads(kernel), *writes(kernel)}:
            touched.setdefault(name, []).append(kernel)
    stack = list(found)
    while stack:
        name = stack.pop()
        for kernel in touched.get(name, ()):
            for other, order in _carried(kernel, name, found[name]):
                if other in free and other not in found and order != tuple(range(len(order))):
                    found[other] = order
                    stack.append(other)
    return found


def _carried(kernel: Kernel, name: str, order: Order) -> Iterator[tuple[str, Order]]:
    """The orders of others in a kernel that go with that of one of its buffers."""
    if isinstance(kernel, Library):
        yield from ((other, order) for other in buffers_of(kernel) if is_pool(kernel.term))
        return
    own = next(index for buffer, index in accesses(kernel) if buffer == name)
    following = _following(kernel)
    features = following.features(kernel) if following is not None else ()
    ranks = {loop.name: _LAST for loop in features} | _ranks(own, order)
    for other, index in accesses(kernel):
        places = [max((ranks[loop] for loop in symbols(dim) if loop in ranks), default=None) for dim in index]
        yield other, tuple(_sorted(range(len(index)), places))


def _ranks(index: Sequence[Dim], order: Order) -> Ranks:
    """How far inside in memory each loop of an index moves."""
    return {name: place for place, axis in enumerate(order) for name in sorted(symbols(index[axis]))}


def _sorted(items: Sequence[T], ranks: Sequence[int | None]) -> list[T]:
    """`items` by their ranks; one that has none stays behind its neighbour on the left."""
    keys: list[int] = []
    for rank in ranks:
        keys.append(rank if rank is not None else keys[-1] if keys else -1)
    return [items[place] for place in sorted(range(len(items)), key=keys.__getitem__)]


# ---------------------------------------------------------------- plans


def laid_out(plan: Plan, orders: Mapping[str, Order]) -> Plan:
    """The plan with these orders of dims in memory, and with loops that follow them."""
    if not orders:
        return plan
    buffers = {name: replace(buffer, order=orders.get(name)) for name, buffer in plan.buffers.items()}
    kernels = tuple(faced(followed(kernel, orders), buffers) for kernel in plan.kernels)
    return passed("laying out", replace(plan, buffers=buffers, kernels=kernels))


def opened(kernel: Kernel) -> Kernel:
    """A kernel whose loops follow memory with loops that go along one dim each."""
    following = _following(kernel)
    return by_digits(kernel) if isinstance(kernel, Computed) and following is not None and following.opens else kernel


def followed(kernel: Kernel, orders: Mapping[str, Order]) -> Kernel:
    """A kernel with loops in the order in which it writes, or where it folds or multiplies, reads memory."""
    following = _following(kernel)
    if not isinstance(kernel, Computed) or following is None or not orders.keys() & {*reads(kernel), *writes(kernel)}:
        return kernel
    leading = _leading(following.leading(kernel), orders)
    several = leading is not None and any(sum(loop.name in symbols(dim) for dim in leading[0]) > 1 for loop in loops_of(kernel))
    if several and following.opens:
        kernel = by_digits(kernel)  # one loop moves along several dims
        leading = _leading(following.leading(kernel), orders)
    if leading is None:
        return kernel
    ranks = _ranks(*leading)
    found: Computed = following.ordered(kernel, lambda loops: tuple(_sorted(loops, [ranks.get(loop.name) for loop in loops])))
    return found


def _following(kernel: Kernel) -> Following | None:
    return FOLLOWING.get(type(kernel)) if isinstance(kernel, Computed) else None


def _leading(places: Iterable[Access], orders: Mapping[str, Order]) -> tuple[Shape, Order] | None:
    """The first of these places that has an order of dims in memory, by its index, and that order."""
    return next(((index, orders[name]) for name, index in places if name in orders), None)
