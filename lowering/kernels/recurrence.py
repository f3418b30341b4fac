"""Kernels that go through the rounds of a loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from coset.ir.types import DType
from coset.lowering.kernels.computed import ColumnFold, Computed, Dot, HoldsScalars, Stores, results_in, step_values, stores_of
from coset.lowering.kernels.kernel_text import KernelText, bracketed, dim_words, loops_words
from coset.lowering.kernels.scalar import Loop, Scalar, Store


@dataclass(frozen=True)
class State(HoldsScalars):
    """A value that goes from round to round, in `dtype`: `start` before the first round, then `next`, of the values before the round. The
    scalars of a round, and the stores behind the last, read it as `Result(name)`. `wide`: there is one for each row and column, else for
    each row."""

    value_fields = ("start", "next")

    name: str
    start: Scalar
    next: Scalar
    dtype: DType
    wide: bool


@dataclass(frozen=True)
class Recurrence(Computed):
    """For each index of `rows` the rounds `round`, one after the other: the `steps` in order, then `round_stores`, then all `states` at
    once; `last_stores` behind the last round.

    A step is a fold along `columns`, or a product: the sum over its `k` of lhs(rows, columns) * rhs(k, columns), where k stands in the
    place of the columns of lhs. Products have one loop of columns. Stores are of each row, or of each row and column."""

    loop_fields = ("round", "rows", "columns", "depth")
    value_fields = ("steps", "states")
    store_fields = ("round_stores", "last_stores")
    stores_elements = False

    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    round: Loop
    states: tuple[State, ...]
    steps: tuple[ColumnFold | Dot, ...]
    round_stores: tuple[Store, ...]
    last_stores: tuple[Store, ...]

    @property
    def dots(self) -> tuple[Dot, ...]:
        """The steps that are products."""
        return tuple(step for step in self.steps if isinstance(step, Dot))

    @property
    def depth(self) -> tuple[Loop, ...]:
        """The loop that products sum over; none without products."""
        return self.dots[0].k if self.dots else ()

    @property
    def column_folds(self) -> tuple[ColumnFold, ...]:
        return tuple(step for step in self.steps if isinstance(step, ColumnFold))

    @property
    def closing_stores(self) -> Stores:
        return ()  # rounds read what is behind what they store

    @property
    def sum_loops(self) -> tuple[tuple[Loop, ...], ...]:
        return ((self.round, *self.columns),) * max(1, len(self.steps))  # of each round behind those of the one before

    def without_unused(self) -> Self:
        """The kernel with the states that its stores need, themselves or through others, and the steps that these are made of."""
        wanted = results_in(*(store.value for store in stores_of(self)))
        found = frozenset[str]()
        while found != wanted:
            found = frozenset(wanted)
            for step in self.steps:
                if step.name in wanted:
                    wanted |= results_in(*step_values(step))
            for state in self.states:
                if state.name in wanted:
                    wanted |= results_in(state.next)
        states = tuple(state for state in self.states if state.name in wanted)
        return replace(self, states=states, steps=tuple(step for step in self.steps if step.name in wanted))

    def heading(self) -> str:
        return f"for {loops_words((*self.rows, *self.columns))} in rounds {loops_words((self.round,))}"

    def lines(self, text: KernelText) -> list[str]:
        """What a state is before the first round, then the lines of a round, then what is stored behind the last."""
        lines: list[str] = []
        for state in self.states:
            value = text.named(state.start)
            lines += [*text.flush(), f"  {state.name}: {state.dtype} = {value} before"]
        for step in self.steps:
            found = self._step(step, text)
            lines += [*text.flush(), found]
        lines += text.stores(self.round_stores)
        for state in self.states:
            value = text.named(state.next)
            lines += [*text.flush(), f"  next {state.name} = {value}"]
        return lines + [f"  behind{line[1:]}" for line in text.stores(self.last_stores)]

    def _step(self, step: ColumnFold | Dot, text: KernelText) -> str:
        if isinstance(step, ColumnFold):
            value = text.named(step.value)
            return f"  {step.name}: {step.dtype} = fold {step.combiner} of {value} along {loops_words(self.columns)}"
        left, right = text.named(step.lhs), text.named(step.rhs)
        columns = ", ".join(dim_words(loop.index) for loop in self.columns)
        return f"  {step.name}: {step.dtype} = sum of {bracketed(left)}, {loops_words(step.k)} for {columns}, * {bracketed(right)}"
