"""Kernels that fold from the first element to each."""

from __future__ import annotations

from dataclasses import dataclass

from coset.ir.types import DType
from coset.lowering.kernels.computed import Computed
from coset.lowering.kernels.kernel_text import KernelText, loops_words
from coset.lowering.kernels.scalar import Loop, Scalar, Store


@dataclass(frozen=True)
class Scan(Computed):
    """For each index of `rows` the `value`s along `column`, folded from the first to each by `combiner` in `dtype` (f32 for narrower
    floats); the stores read them as `Result("scan")`."""

    loop_fields = ("rows", "column")
    value_fields = ("value",)

    rows: tuple[Loop, ...]
    column: Loop
    value: Scalar
    combiner: str
    dtype: DType
    stores: tuple[Store, ...]

    @property
    def sum_loops(self) -> tuple[tuple[Loop, ...], ...]:
        return ((self.column,),)

    def heading(self) -> str:
        return f"for {loops_words(self.rows)} along {loops_words((self.column,))}"

    def lines(self, text: KernelText) -> list[str]:
        value = text.named(self.value)
        whole = f"  scan: {self.dtype} = {self.combiner} of {value} up to here"
        return [*text.flush(), whole, *text.stores(self.stores)]
