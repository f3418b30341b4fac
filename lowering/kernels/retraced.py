"""Kernels of attention's gradient, which make scores anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from coset.ir.dims import Dim
from coset.ir.types import DType
from coset.lowering.kernels.computed import Computed, Dot, HoldsScalars, results_in, step_values
from coset.lowering.kernels.kernel_text import KernelText, bracketed, dim_words, loops_words
from coset.lowering.kernels.scalar import Loop, Result, Scalar, Store, scalars


@dataclass(frozen=True)
class Sum(HoldsScalars):
    """Sums over `summed` of weight(batch, rows, summed) * value(batch, summed, n), which stores read as `Result(name)`."""

    value_fields = ("weight", "value")

    name: str
    n: tuple[Loop, ...]
    weight: Scalar
    value: Scalar


@dataclass(frozen=True)
class Slope(HoldsScalars):
    """Sums over `summed` of a softmax times value(batch, rows, summed), which stores read as `Result(name)`."""

    value_fields = ("value",)

    name: str
    value: Scalar


def _heading(batch: tuple[Loop, ...], rows: tuple[Loop, ...], summed: tuple[Loop, ...], low: Dim | None, high: Dim | None) -> str:
    parts = [(f"{role} " if role else "") + loops_words(loops) for role, loops in (("batch", batch), ("", rows)) if loops]
    ends = [f" {word} {dim_words(end)}" for word, end in (("from", low), ("below", high)) if end is not None]
    return f"for {'; '.join(parts)} along {loops_words(summed)}{''.join(ends)}"


def _products(dots: tuple[Dot, ...], text: KernelText) -> list[str]:
    lines: list[str] = []
    for dot in dots:
        left, right = text.named(dot.lhs), text.named(dot.rhs)
        lines += [*text.flush(), f"  {dot.name}: {dot.dtype} = sum of {bracketed(left)} * {bracketed(right)} along {loops_words(dot.k)}"]
    return lines


def _depths(dots: tuple[Dot, ...]) -> tuple[Loop, ...]:
    return tuple(loop for dot in dots for loop in dot.k)


def _used(dots: tuple[Dot, ...], made: Iterable[Scalar]) -> tuple[Dot, ...]:
    wanted = results_in(*made)
    return tuple(dot for dot in dots if dot.name in wanted)


@dataclass(frozen=True)
class Statistics(Computed):
    """What a softmax over `summed` of score(batch, rows, summed) is made with, for each (batch, rows): `Result("top")`, the largest score,
    `Result("share")`, one over the sum of exp(score - top), and each of `slopes`. Scores and slopes read the `dots`.

    `safe`: where every score is -inf the top is 0 and the share 1. `low` and `high`, dims over batch and rows: only places low <= i < high
    of the last loop of `summed` have a score above -inf, so that no others need be looked at; None: no such end is known."""

    loop_fields = ("batch", "rows", "summed", "depths")
    value_fields = ("dots", "score", "slopes")

    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    dots: tuple[Dot, ...]
    score: Scalar
    slopes: tuple[Slope, ...]
    accumulator: DType
    safe: bool
    low: Dim | None
    high: Dim | None
    stores: tuple[Store, ...]

    @property
    def depths(self) -> tuple[Loop, ...]:
        """The loops that the products sum over."""
        return _depths(self.dots)

    @property
    def sums(self) -> tuple[Sum, ...]:
        """None: it weighs nothing but its slopes."""
        return ()

    @property
    def score_values(self) -> tuple[Scalar, ...]:
        """The scalars for each place that is summed over."""
        return (self.score, *(slope.value for slope in self.slopes))

    @property
    def early_values(self) -> tuple[Scalar, ...]:
        return step_values(self)

    @property
    def hides(self) -> bool:
        return self.low is not None or self.high is not None

    def without_unused(self) -> Self:
        """The kernel with the slopes that its stores need, and the products that these are made of."""
        wanted = results_in(*(store.value for store in self.stores))
        kept = replace(self, slopes=tuple(slope for slope in self.slopes if slope.name in wanted))
        return replace(kept, dots=_used(self.dots, kept.score_values))

    def heading(self) -> str:
        return _heading(self.batch, self.rows, self.summed, self.low, self.high)

    def lines(self, text: KernelText) -> list[str]:
        lines = _products(self.dots, text)
        score = text.named(self.score)
        lines += [*text.flush(), f"  top, share: {self.accumulator} = of the {'safe ' if self.safe else ''}softmax of {score}"]
        for slope in self.slopes:
            value = text.named(slope.value)
            lines += [*text.flush(), f"  {slope.name}: {self.accumulator} = sum of the softmax * {bracketed(value)}"]
        return [*lines, *text.stores(self.stores)]


@dataclass(frozen=True)
class Chain(Computed):
    """Products of what is made of products: each of `sums` has a weight that is a scalar of the `dots`, and none of them is stored.

    `low` and `high` as in `Statistics`: all weights are 0 elsewhere."""

    loop_fields = ("batch", "rows", "columns", "summed", "depths")
    value_fields = ("dots", "sums")

    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    dots: tuple[Dot, ...]
    sums: tuple[Sum, ...]
    accumulator: DType
    low: Dim | None
    high: Dim | None
    stores: tuple[Store, ...]

    @property
    def columns(self) -> tuple[Loop, ...]:
        """The loops of the columns of all sums."""
        return tuple(loop for each in self.sums for loop in each.n)

    @property
    def score_values(self) -> tuple[Scalar, ...]:
        """The scalars for each place that is summed over."""
        return tuple(each.weight for each in self.sums)

    @property
    def depths(self) -> tuple[Loop, ...]:
        """The loops that the products sum over."""
        return _depths(self.dots)

    @property
    def early_values(self) -> tuple[Scalar, ...]:
        return step_values(self)

    @property
    def hides(self) -> bool:
        return self.low is not None or self.high is not None

    def without_unused(self) -> Self:
        """The kernel with the sums that its stores need, and the products that these are made of."""
        wanted = results_in(*(store.value for store in self.stores))
        kept = replace(self, sums=tuple(each for each in self.sums if each.name in wanted))
        return replace(kept, dots=_used(self.dots, kept.score_values))

    def heading(self) -> str:
        return _heading(self.batch, self.rows, self.summed, self.low, self.high)

    def lines(self, text: KernelText) -> list[str]:
        lines = _products(self.dots, text)
        for each in self.sums:
            weight, value = text.named(each.weight), text.named(each.value)
            total = f"sum of {bracketed(weight)} * {bracketed(value)} for {loops_words(each.n)}"
            lines += [*text.flush(), f"  {each.name}: {self.accumulator} = {total}"]
        return [*lines, *text.stores(self.stores)]


def stores_by_sum(kernel: Chain) -> list[tuple[Store, Sum]]:
    """Each store of a chain with the sum that it reads: one, as sums have columns of their own."""
    found = []
    for store in kernel.stores:
        names = {item.name for item in scalars(store.value) if isinstance(item, Result)}
        found += [(store, each) for each in kernel.sums if each.name in names]
    assert len(found) == len(kernel.stores), f"{kernel.name} stores what is not one of its sums"
    return found
