"""What attention takes in kernels of ours, and the kernels of its gradient: their products, and an exponential for each score."""

from __future__ import annotations

from collections.abc import Sequence

from coset.extract.work import ContractionWork as Sides
from coset.ir import dims
from coset.ir.types import F32
from coset.lowering.kernels.kernel import (
    Attention,
    Chain,
    Plan,
    Statistics,
)
from coset.pricing.machine import Machine
from coset.pricing.products import is_full, products_seconds
from coset.targets.target import Kernel as Rating


def causal_share(machine: Machine, causal: bool) -> float:
    """What attention under a causal mask reaches of the rate of one without."""
    found = machine.target.numbers.get("attention_causal")
    return found.value if causal and found is not None else 1.0


def attention_seconds(machine: Machine, planned: Plan, kernel: Attention) -> float:
    """Seconds of both products and the exponentials, for the keys that are seen: under a causal mask on the mean those that the query in
    the middle sees."""
    batch, rows, keys = (machine.count(loops) for loops in (kernel.batch, kernel.m, kernel.keys))
    if kernel.seen is not None:
        middle = {loop.name: machine.sizes.number(loop.extent) // 2 for loop in kernel.m}
        keys = min(keys, max(1.0, machine.sizes.number(dims.substitute(kernel.seen, middle))))
    full = is_full(machine, kernel.query, kernel.key, kernel.accumulator)
    compared = Sides(batch, rows, machine.count(kernel.k), keys), kernel.key.dtype.name, full
    full = is_full(machine, kernel.value, kernel.value, kernel.accumulator)
    weighing = Sides(batch, rows, keys, machine.count(kernel.n)), kernel.value.dtype.name, full
    return scores_seconds(machine, [compared, weighing], batch * rows * keys, causal=kernel.seen is not None)


def scores_seconds(machine: Machine, products: Sequence[tuple[Sides, str, bool]], scores: float, *, causal: bool) -> float:
    """Seconds of both products of attention, and an exponential for each score, by what is known of how near kernels come to their
    rates."""
    full = any(full for _, _, full in products)
    share, functions = (machine.target.numbers.get(name) for name in ("attention_share", "attention_exponentials"))
    multiplying = products_seconds(machine, products, _sixth(machine)) / (share.value if share is not None and not full else 1.0)
    exponentials = _exponentials(machine, scores) / (functions.value if functions is not None else 1.0)
    return (multiplying + exponentials) / causal_share(machine, causal)


def chain_seconds(machine: Machine, planned: Plan, kernel: Statistics | Chain) -> float:
    """Seconds of all products and an exponential for each score; under a mask that bounds them on the mean of those that the row in the
    middle looks at."""
    batch, rows = machine.count(kernel.batch), machine.count(kernel.rows)
    summed = machine.count(kernel.summed)
    if kernel.summed and (kernel.low is not None or kernel.high is not None):
        whole = float(machine.sizes.number(kernel.summed[-1].extent))
        middle = {loop.name: machine.sizes.number(loop.extent) // 2 for loop in (*kernel.batch, *kernel.rows)}
        low, high = (None if end is None else machine.sizes.number(dims.substitute(end, middle)) for end in (kernel.low, kernel.high))
        seen = min(whole, whole if high is None else high) - max(0, low or 0)
        summed *= min(1.0, max(1.0, seen) / max(whole, 1.0))
    products = []
    for one in kernel.dots:
        full = is_full(machine, one.lhs, one.rhs, kernel.accumulator)
        products.append((Sides(batch, rows, machine.count(one.k), summed), one.rhs.dtype.name, full))
    for each in kernel.sums:
        full = is_full(machine, each.value, each.value, kernel.accumulator)
        products.append((Sides(batch, rows, summed, machine.count(each.n)), each.value.dtype.name, full))
    return products_seconds(machine, products, _sixth(machine)) + _exponentials(machine, batch * rows * summed)


def _exponentials(machine: Machine, count: float) -> float:
    functions = machine.target.kernels[machine.fusion.rows].rate(F32.name)
    return count / functions.value if functions is not None else 0.0


def _sixth(machine: Machine) -> Rating | None:
    """The numbers of attention in f32 by six products of bf16, where it is done so."""
    return (
        machine.target.kernels[machine.fusion.bf16x6] if machine.options.f32_as == "bf16x6" and machine.fusion.bf16x6 is not None else None
    )
