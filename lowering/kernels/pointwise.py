"""Kernels of one value for each index."""

from __future__ import annotations

from dataclasses import dataclass

from coset.lowering.kernels.computed import Computed
from coset.lowering.kernels.kernel_text import KernelText, loops_words
from coset.lowering.kernels.scalar import Loop, Scalar, Store


@dataclass(frozen=True)
class Pointwise(Computed):
    """One value for each index of `loops`, from memory to memory."""

    loop_fields = ("loops",)

    loops: tuple[Loop, ...]
    stores: tuple[Store, ...]

    @property
    def early_values(self) -> tuple[Scalar, ...]:
        return ()

    def heading(self) -> str:
        return f"for {loops_words(self.loops)}"

    def lines(self, text: KernelText) -> list[str]:
        return text.stores(self.stores)
