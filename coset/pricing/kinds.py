"""Every kind of kernel in prices: whose numbers of a target it has, and what its work takes. A new kind has its line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from coset.lowering.kernels.kernel import (
    Attention,
    Chain,
    Computed,
    Grouped,
    Pointwise,
    Product,
    Recurrence,
    Rows,
    Scan,
    Scatter,
    Sort,
    Statistics,
)
from coset.pricing.attention import attention_seconds, chain_seconds
from coset.pricing.convolutions import product_kernel_seconds
from coset.pricing.elementwise import pointwise_seconds, rows_seconds, scan_seconds, scatter_seconds, sort_seconds
from coset.pricing.products import grouped_seconds
from coset.pricing.recurrences import machine_share, recurrence_seconds
from coset.pricing.traffic import read_again
from coset.targets.target import Fusion


@dataclass(frozen=True)
class KindPrice:
    """The price of a kind of kernel.

    `numbers`: whose numbers of the target's fusion it has. `working(machine, plan, kernel)`: seconds of its work, which it does while it
    moves its bytes. `again(machine, plan, kernel)`: bytes that it reads a second time. `share(machine, kernel)`: the share of the machine
    that it needs, of a kind that takes as long on any machine that has room for its program instances; None: its work and its bytes say.
    """

    numbers: Literal["pointwise", "rows", "product"]
    working: Callable[..., float]
    again: Callable[..., int] = lambda *_: 0
    share: Callable[..., float] | None = None

    def rating(self, fusion: Fusion) -> str:
        """The name of the target's kernel whose numbers it has."""
        return {"pointwise": fusion.pointwise, "rows": fusion.rows, "product": fusion.product}[self.numbers]


PRICES: dict[type[Computed], KindPrice] = {
    Pointwise: KindPrice("pointwise", pointwise_seconds),
    Rows: KindPrice("rows", rows_seconds, again=read_again),
    Scan: KindPrice("rows", scan_seconds),
    Sort: KindPrice("rows", sort_seconds),
    Product: KindPrice("product", product_kernel_seconds),
    Grouped: KindPrice("product", grouped_seconds),
    Attention: KindPrice("product", attention_seconds),
    Statistics: KindPrice("product", chain_seconds),
    Chain: KindPrice("product", chain_seconds),
    Scatter: KindPrice("rows", scatter_seconds),
    Recurrence: KindPrice("rows", recurrence_seconds, share=machine_share),
}
