"""Kernels that combine updates into rows."""

from __future__ import annotations

from dataclasses import dataclass

from coset.ir.types import DType
from coset.lowering.kernels.computed import Computed, PlaceKey
from coset.lowering.kernels.kernel_text import KernelText, bracketed, loops_words
from coset.lowering.kernels.scalar import Loop, Scalar, Store

SORTED, LOOP, ATOMIC = "sorted", "loop", "atomic"


@dataclass(frozen=True)
class Scatter(Computed):
    """For each index of `rows` and `columns` the `base`, with the `value` of each index of `updates` whose `key` is the number of the row
    combined in, from the first to the last, in `dtype` (f32 for narrower floats); the stores read it as `Result("sum")`. An update
    whose key is no row's number is left out.

    `form`: `sorted` (keys ascend, so that a row's updates are found by bisection), `loop` (every update is looked at for every row),
    `atomic` (the base is stored first and each update is combined into memory, in no order: there is one store, of the result alone).
    """

    loop_fields = ("rows", "columns", "updates")
    value_fields = ("base", "key", "value")

    rows: tuple[Loop, ...]  # one at most
    columns: tuple[Loop, ...]
    updates: tuple[Loop, ...]  # one at most
    base: Scalar
    key: Scalar  # i32 or i64
    value: Scalar
    combiner: str  # as a fold's, or second: the last one stays
    dtype: DType
    form: str
    stores: tuple[Store, ...]

    @property
    def may_store_twice(self) -> bool:
        return self.form != ATOMIC

    @property
    def place_key(self) -> PlaceKey:
        return PlaceKey(self.key, self.rows, ascends=self.form == SORTED)

    @property
    def sum_loops(self) -> tuple[tuple[Loop, ...], ...]:
        return (self.updates,)

    def heading(self) -> str:
        return f"for {loops_words((*self.rows, *self.columns))} along {loops_words(self.updates)}, {self.form}"

    def lines(self, text: KernelText) -> list[str]:
        base, key, value = map(text.named, (self.base, self.key, self.value))
        row = f"{bracketed(value)} where {bracketed(key)} is the row"
        found = f"  sum: {self.dtype} = {self.combiner} of {bracketed(base)} and {row}"
        return [*text.flush(), found, *text.stores(self.stores)]
