"""Kinds of kernels whose loops follow memory: buffers that they touch may have another order of dims. All that other kinds touch lies as
it did."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from coset.ir.dims import Shape
from coset.lowering.kernels.kernel import Computed, Load, Loop, Pointwise, Product, Rows, Scalar, scalars, step_values, stores_of, values_of

Access = tuple[str, Shape]  # a buffer and the index of an element
Loops = tuple[Loop, ...]
Ordering = Callable[[Loops], Loops]


@dataclass(frozen=True)
class Following:
    """How the loops of a kind follow memory. `leading`: the places that they are to follow, those first that matter most; `ordered`: the
    kernel with its loops in another order, those together that stand for the same places. `opens`: its loops may be taken apart.
    `features`: loops that should move inside all others."""

    leading: Callable[[Any], list[Access]]
    ordered: Callable[[Any, Ordering], Any]
    opens: bool
    features: Callable[[Any], Loops] = lambda _: ()


def accesses(kernel: Computed) -> list[Access]:
    """Where a kernel stores, and what it reads."""
    return [(store.buffer, store.index) for store in stores_of(kernel)] + _read(values_of(kernel))


def _read(values: Iterable[Scalar]) -> list[Access]:
    return [(value.buffer, value.index) for value in scalars(*values) if isinstance(value, Load)]


def _written(kernel: Computed) -> list[Access]:
    return accesses(kernel)[: len(stores_of(kernel))]


def _summed(kernel: Computed) -> list[Access]:
    """What a kernel folds or multiplies, before all others."""
    return [*_read(step_values(kernel)), *accesses(kernel)]


def _ordered_rows(kernel: Rows, order: Ordering) -> Rows:
    return replace(kernel, rows=order(kernel.rows), columns=order(kernel.columns))


FOLLOWING: dict[type[Computed], Following] = {
    Pointwise: Following(_written, lambda kernel, order: replace(kernel, loops=order(kernel.loops)), opens=True),
    Rows: Following(_summed, _ordered_rows, opens=True),
    Product: Following(
        _summed,
        lambda kernel, order: replace(kernel, k=order(kernel.k)),
        opens=False,
        features=lambda kernel: (*kernel.n, *kernel.k[-1:]),  # of what it makes, and of what it reads
    ),
}
