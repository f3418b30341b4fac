"""Every kind of kernel in Triton: what writes it, what else may be chosen of it, and what its programs do. A new kind has its line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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
from coset.lowering.triton import families, program_shares, sector_tiles
from coset.lowering.triton.attention import emit_attention
from coset.lowering.triton.chain import emit_chain
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.grouped import emit_grouped
from coset.lowering.triton.launch import EmittedKernel
from coset.lowering.triton.pointwise import emit_pointwise
from coset.lowering.triton.product import emit_product
from coset.lowering.triton.program_shares import ProgramShare
from coset.lowering.triton.recurrence import emit_recurrence
from coset.lowering.triton.rows import emit_rows
from coset.lowering.triton.scales import may_take_eights
from coset.lowering.triton.scan import emit_scan
from coset.lowering.triton.scatter import emit_scatter
from coset.lowering.triton.sort import emit_sort
from coset.lowering.triton.statistics import emit_statistics


@dataclass(frozen=True)
class TritonKind:
    """A kind of kernel in Triton.

    `emit(kernel, plan, options, comment)` writes it. `choices(kernel, default, options, sizes)` are its alternatives beside the default.
    `share(kernel, plan, choice, options, target, sizes)` is what one of its programs does. `tile(kernel, plan, binding, processors)` is
    what a program has at once, for a kind whose buffers may have another order of dims. `begins`: all its pointers are made in one place,
    which knows `EmitOptions.begins`. `takes_eights(kernel, options)`: it may multiply 8-bit floats as such.
    """

    emit: Callable[..., EmittedKernel]
    choices: Callable[..., Iterable[KernelChoice]]
    share: Callable[..., ProgramShare]
    tile: Callable[..., sector_tiles.Has] | None = None
    begins: bool = False
    takes_eights: Callable[..., bool] = lambda *_: False


TRITON_KINDS: dict[type[Computed], TritonKind] = {
    Pointwise: TritonKind(
        emit_pointwise, families.pointwise_choices, program_shares.pointwise_share, sector_tiles.pointwise_tile, begins=True
    ),
    Rows: TritonKind(emit_rows, families.rows_choices, program_shares.rows_share, sector_tiles.rows_tile, begins=True),
    Scan: TritonKind(emit_scan, families.scan_choices, program_shares.scan_share, begins=True),
    Sort: TritonKind(emit_sort, families.sort_choices, program_shares.whole_rows_share),
    Product: TritonKind(
        emit_product,
        families.product_choices,
        program_shares.product_share,
        sector_tiles.product_tile,
        begins=True,
        takes_eights=may_take_eights,
    ),
    Grouped: TritonKind(emit_grouped, families.grouped_choices, program_shares.grouped_share, takes_eights=may_take_eights),
    Attention: TritonKind(emit_attention, families.attention_choices, program_shares.attention_share),
    Statistics: TritonKind(emit_statistics, families.gradient_choices, program_shares.gradient_share),
    Chain: TritonKind(emit_chain, families.gradient_choices, program_shares.gradient_share),
    Scatter: TritonKind(emit_scatter, families.scatter_choices, program_shares.scatter_share),
    Recurrence: TritonKind(emit_recurrence, families.recurrence_choices, program_shares.whole_rows_share),
}
