"""Kernels of attention."""

from __future__ import annotations

from dataclasses import dataclass

from coset.ir.dims import Dim
from coset.ir.types import DType
from coset.lowering.kernels.computed import Computed, step_values
from coset.lowering.kernels.kernel_text import KernelText, bracketed, dim_words, loops_words
from coset.lowering.kernels.product import for_matrices
from coset.lowering.kernels.scalar import Loop, Scalar, Store


@dataclass(frozen=True)
class Attention(Computed):
    """Means of value(batch, keys, n) over `keys`, weighed by the softmax over the keys of score(batch, m, keys), then stored by `stores`,
    which read them as `Result("sum")`. The score reads as `Result("dot")`, in `dtype`, the sums over `k` of
    query(batch, m, k) * key(batch, keys, k). Everything is summed in `accumulator` (f32 or f64).

    `safe`: where every score is -inf the weights are 0, else NaN. `seen`: only keys below this dim over `m` have a score above -inf (a
    causal mask), so that the values of others need not be read; None: all may."""

    loop_fields = ("batch", "m", "n", "keys", "k")
    value_fields = ("query", "key", "score", "value")

    batch: tuple[Loop, ...]
    m: tuple[Loop, ...]
    n: tuple[Loop, ...]
    keys: tuple[Loop, ...]
    k: tuple[Loop, ...]
    query: Scalar
    key: Scalar
    score: Scalar
    value: Scalar
    dtype: DType
    accumulator: DType
    safe: bool
    seen: Dim | None
    stores: tuple[Store, ...]

    @property
    def early_values(self) -> tuple[Scalar, ...]:
        return step_values(self)

    @property
    def hides(self) -> bool:
        return self.seen is not None

    @property
    def sum_loops(self) -> tuple[tuple[Loop, ...], ...]:
        return (self.keys, self.keys, self.k)

    def heading(self) -> str:
        return for_matrices(self.batch, self.m, self.n, self.keys)

    def lines(self, text: KernelText) -> list[str]:
        query, key = text.named(self.query), text.named(self.key)
        total = f"sum of {bracketed(query)} * {bracketed(key)} along {loops_words(self.k)}"
        lines = [*text.flush(), f"  dot: {self.dtype} = {total}"]
        score = text.named(self.score)
        seen = "" if self.seen is None else f" below {dim_words(self.seen)}"
        lines += [*text.flush(), f"  weight: {self.accumulator} = {'safe ' if self.safe else ''}softmax of {score} over the keys{seen}"]
        value = text.named(self.value)
        lines += [*text.flush(), f"  sum: {self.accumulator} = sum of weight * {bracketed(value)}"]
        return [*lines, *text.stores(self.stores)]
