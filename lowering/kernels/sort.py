"""Kernels that sort rows."""

from __future__ import annotations

from dataclasses import dataclass

from coset.lowering.kernels.computed import Computed
from coset.lowering.kernels.kernel_text import KernelText, loops_words
from coset.lowering.kernels.scalar import Loop, Scalar, Store


@dataclass(frozen=True)
class Sort(Computed):
    """For each index of `rows` the elements along `column` in the order of their `key`s (LT: ascending, GT: descending, equal ones as they
    stand; LE and GE turn equal ones round), the first ones over `front`. NaN is above all numbers and zeros are equal, unless `total`: then
    floats have IEEE's total order. The stores read the `values` as `Result("sorted0")`, `Result("sorted1")`, ..
    """

    loop_fields = ("rows", "front", "column")
    value_fields = ("key", "values")

    rows: tuple[Loop, ...]
    column: Loop
    front: tuple[Loop, ...]  # one at most
    key: Scalar
    values: tuple[Scalar, ...]
    direction: str
    total: bool
    stores: tuple[Store, ...]

    def heading(self) -> str:
        return f"for {loops_words((*self.rows, *self.front))} along {loops_words((self.column,))}"

    def lines(self, text: KernelText) -> list[str]:
        named = [text.named(value) for value in (self.key, *self.values)]
        order = f"{self.direction} of {named[0]}{', total' if self.total else ''}"
        results = [f"  sorted{place} = {value} in the order {order}" for place, value in enumerate(named[1:])]
        return [*text.flush(), *results, *text.stores(self.stores)]
