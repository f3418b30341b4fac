"""Kernels of matrix products, plain and grouped."""

from __future__ import annotations

from dataclasses import dataclass, field

from coset.ir.types import DType
from coset.lowering.kernels.computed import Computed, PlaceKey
from coset.lowering.kernels.kernel_text import KernelText, bracketed, dims_words, loops_words
from coset.lowering.kernels.scalar import Loop, Scalar, Store


def for_matrices(batch: tuple[Loop, ...], m: tuple[Loop, ...], n: tuple[Loop, ...], along: tuple[Loop, ...]) -> str:
    """The loops of a product as text, without those that it has not."""
    parts = [(f"{role} " if role else "") + loops_words(loops) for role, loops in (("batch", batch), ("", m), ("", n)) if loops]
    return f"for {'; '.join(parts)} along {loops_words(along)}"


def _summed(lhs: Scalar, rhs: Scalar, accumulator: DType, text: KernelText) -> list[str]:
    left, right = text.named(lhs), text.named(rhs)
    return [*text.flush(), f"  sum: {accumulator} = sum of {bracketed(left)} * {bracketed(right)}"]


@dataclass(frozen=True)
class Product(Computed):
    """Sums over `k` of lhs(batch, m, k) * rhs(batch, k, n), accumulated in `accumulator` (f32, f64 or i32), then stored by `stores`,
    which read it as `Result("sum")`. Operands are scalars: a prologue (cast, scale, transpose) is part of them. `windowed`: it is a
    convolution, whose lhs is read in windows."""

    loop_fields = ("batch", "m", "n", "k")
    value_fields = ("lhs", "rhs")

    batch: tuple[Loop, ...]
    m: tuple[Loop, ...]
    n: tuple[Loop, ...]
    k: tuple[Loop, ...]
    lhs: Scalar
    rhs: Scalar
    accumulator: DType
    stores: tuple[Store, ...]
    windowed: bool = field(default=False, kw_only=True)

    @property
    def early_values(self) -> tuple[Scalar, ...]:
        return (self.lhs, self.rhs)

    @property
    def sum_loops(self) -> tuple[tuple[Loop, ...], ...]:
        return (self.k,)

    def heading(self) -> str:
        return for_matrices(self.batch, self.m, self.n, self.k)

    def lines(self, text: KernelText) -> list[str]:
        return [*_summed(self.lhs, self.rhs, self.accumulator, text), *text.stores(self.stores)]


@dataclass(frozen=True)
class Grouped(Computed):
    """Sums over `k` of lhs(m, k) * rhs(batch, k, n), where the index over `batch`, of groups, is the `key` of the row m; otherwise as
    `Product`. The keys ascend, and each is the number of a group."""

    loop_fields = ("batch", "m", "n", "k")
    value_fields = ("key", "lhs", "rhs")

    batch: tuple[Loop, ...]  # one at most
    m: tuple[Loop, ...]
    n: tuple[Loop, ...]
    k: tuple[Loop, ...]
    key: Scalar  # i32, over m
    lhs: Scalar
    rhs: Scalar
    accumulator: DType
    stores: tuple[Store, ...]

    @property
    def place_key(self) -> PlaceKey:
        return PlaceKey(self.key, self.batch, ascends=True)

    @property
    def sum_loops(self) -> tuple[tuple[Loop, ...], ...]:
        return (self.k,)

    def heading(self) -> str:
        return for_matrices(self.batch, self.m, self.n, self.k)

    def lines(self, text: KernelText) -> list[str]:
        group = f"  {dims_words(tuple(loop.index for loop in self.batch)) or '0'} = {text.named(self.key)}"
        return [group, *_summed(self.lhs, self.rhs, self.accumulator, text), *text.stores(self.stores)]
