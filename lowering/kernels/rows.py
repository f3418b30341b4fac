"""Kernels of reductions along rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from coset.lowering.kernels.computed import ColumnFold, Computed, Stores, results_in, stores_of
from coset.lowering.kernels.kernel_text import KernelText, loops_words
from coset.lowering.kernels.scalar import Loop, Scalar, Store


@dataclass(frozen=True)
class Rows(Computed):
    """Reductions along `columns` for each index of `rows`, one after the other (each may use those before it).

    `row_stores` are once a row, `element_stores` for each row and column (softmax, normalizations).
    """

    loop_fields = ("rows", "columns")
    value_fields = ("folds",)
    store_fields = ("row_stores", "element_stores")

    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    folds: tuple[ColumnFold, ...]
    row_stores: tuple[Store, ...]
    element_stores: tuple[Store, ...]

    @property
    def column_folds(self) -> tuple[ColumnFold, ...]:
        return self.folds

    @property
    def closing_stores(self) -> Stores:
        return self.element_stores or self.row_stores

    @property
    def early_values(self) -> tuple[Scalar, ...]:
        return ()

    @property
    def sum_loops(self) -> tuple[tuple[Loop, ...], ...]:
        return (self.columns,) * len(self.folds)  # one after the other

    def without_unused(self) -> Self:
        """The kernel with the folds that its stores need, themselves or through later folds."""
        wanted = results_in(*(store.value for store in stores_of(self)))
        for fold in reversed(self.folds):
            if fold.name in wanted:
                wanted |= results_in(fold.value)
        return replace(self, folds=tuple(fold for fold in self.folds if fold.name in wanted))

    def heading(self) -> str:
        return f"for {loops_words(self.rows)} along {loops_words(self.columns)}"

    def lines(self, text: KernelText) -> list[str]:
        lines: list[str] = []
        for fold in self.folds:
            value = text.named(fold.value)
            lines += [*text.flush(), f"  {fold.name}: {fold.dtype} = fold {fold.combiner} of {value}"]
        lines += text.stores(self.row_stores)
        return lines + text.stores(self.element_stores)
