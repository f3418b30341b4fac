"""What products take in kernels of ours: by the rate of their dtype, or tile by tile where the target says what a tile takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coset.extract.work import CONTRACTIONS
from coset.extract.work import ContractionWork as Sides
from coset.ir import dims
from coset.ir.term import Term
from coset.ir.types import F16, F32, DType
from coset.lowering.kernels.kernel import Grouped, Load, Plan, Product, Scalar, ScalarOp, loops_of, scalars
from coset.lowering.planning.kinds import COSTLY
from coset.lowering.triton.operand_tiles import is_plain
from coset.lowering.triton.scalars import EIGHTS
from coset.lowering.triton.scales import without_scales
from coset.lowering.triton.tiling import (
    AREA,
    STEP,
    are_eights,
    eights_of,
    is_copied,
    multiplied,
    narrowest,
    steps_by_copies,
    takes_eights,
    unit_of,
)
from coset.pricing.machine import Machine
from coset.targets.target import Kernel as Rating


def least_tile_seconds(machine: Machine, sides: Sides, dtype: DType) -> float | None:
    """What a product takes at least where its tiles may be priced one by one: of any form, in rounds that are full."""
    share, rate = machine.target.numbers.get("tile_share"), rating(machine, False).rate(dtype.name)
    if share is None or rate is None or not is_copied(dtype):
        return None
    return 2 * sides.batch * sides.rows * sides.depth * sides.columns / (rate.value * share.value)


def sides_of(machine: Machine, term: Term) -> Sides:
    """Batch, rows, depth and columns of a product, which is no kernel yet."""
    types = tuple(operand.type for operand in term.operands)
    return CONTRACTIONS[term.op.name](dict(term.attributes), term.type, types, machine.sizes)


def matmul_seconds(machine: Machine, kernel: Product) -> float:
    """Seconds of the sums of a product over no windows."""
    tiled = _in_tiles(machine, kernel)
    return _multiplying(machine, kernel, machine.count(kernel.batch), machine.count(kernel.m)) if tiled is None else tiled


def grouped_seconds(machine: Machine, planned: Plan, kernel: Grouped) -> float:
    """Seconds of the sums of a grouped product, as if all groups had equally many rows."""
    rows = machine.count(kernel.m)
    batch = min(machine.count(kernel.batch), rows)
    return _multiplying(machine, kernel, batch, rows / max(batch, 1.0))


def _multiplying(machine: Machine, kernel: Product | Grouped, batch: float, rows: float) -> float:
    """Seconds of so many products of so many rows."""
    kernel, _ = without_scales(kernel, machine.options)
    dtype = (narrowed(machine, eights_of(kernel)[0].dtype) if are_eights(kernel) else kernel.lhs.dtype).name
    full = is_full(machine, kernel.lhs, kernel.rhs, kernel.accumulator)
    return product_seconds(machine, Sides(batch, rows, machine.count(kernel.k), machine.count(kernel.n)), dtype, full)


def _in_tiles(machine: Machine, kernel: Product) -> float | None:
    """Seconds of a product of known sizes whose operands, as far as is seen, are bulk copies: round by round of its tiles, and what is done
    to each. None where the target does not say what that takes."""
    given, scales = without_scales(kernel, machine.options)
    lhs, rhs, unit = multiplied(given, eights=takes_eights(given, machine.options))
    free = any(not isinstance(loop.extent, int) for loop in loops_of(given))
    if free or scales.blockwise or unit is None or not (is_plain(lhs, unit) and is_plain(rhs, unit)):
        return None
    m, n, k, batch = (
        math.prod(loop.extent for loop in loops if isinstance(loop.extent, int)) for loops in (given.m, given.n, given.k, given.batch)
    )
    more = sum(1 for value in scalars(*(store.value for store in given.stores)) if _is_behind(value, given))
    return tile_seconds(machine, (m, n, k, batch), unit, more)


def _is_behind(value: Scalar, kernel: Product) -> bool:
    """True for what takes long when a tile is finished: a function, or an operand as large as the tile."""
    if isinstance(value, ScalarOp):
        return value.op.name.split(".", 1)[1] in COSTLY
    if not isinstance(value, Load):
        return False
    names = {name for dim in value.index for name in dims.symbols(dim)}
    return all(any(loop.name in names for loop in loops) for loops in (kernel.m, kernel.n))


def tile_seconds(machine: Machine, sizes: tuple[int, int, int, int], unit: DType, more: int) -> float | None:
    """Seconds of a product of so many m, n, k and batch; `more`: how many functions and large operands there are behind
    it."""
    rate, share = rating(machine, False).rate(unit.name), machine.target.numbers.get("tile_share")
    if rate is None or share is None:
        return None
    step = 2 * AREA * (8 * STEP // unit.bits) * machine.options.processors / (rate.value * share.value)
    finishing = machine.number("tile_finish") + more * machine.number("tile_more")
    steps = steps_by_copies(sizes, unit, machine.options, finishing / step, whole=machine.whole)
    return None if steps is None else steps * step


def rates_full(machine: Machine) -> bool:
    """True where f32 is multiplied in full and the target says what that takes."""
    return machine.fusion.full is not None and not machine.options.tf32


def is_full(machine: Machine, lhs: Scalar, rhs: Scalar, accumulator: DType) -> bool:
    """True where these operands are multiplied so."""
    return rates_full(machine) and unit_of(narrowest(lhs).dtype, narrowest(rhs).dtype, accumulator) is F32


def rating(machine: Machine, full: bool) -> Rating:
    """The numbers of our kernels of products, of those in full."""
    return machine.target.kernels[machine.fusion.full if full and machine.fusion.full is not None else machine.fusion.product]


def narrowed(machine: Machine, dtype: DType) -> DType:
    """What 8-bit floats are multiplied as; any other dtype itself."""
    return F16 if dtype.name in EIGHTS and machine.options.eights is None else dtype


def product_seconds(machine: Machine, sides: Sides, dtype: str, full: bool) -> float:
    """As `products_seconds`, of one product."""
    return products_seconds(machine, [(sides, dtype, full)])


def products_seconds(machine: Machine, products: Sequence[tuple[Sides, str, bool]], by: Rating | None = None) -> float:
    """Seconds of the products of one kernel, in full (`by` what, if it is not as plain products are) or not. What share of its rate a
    kernel reaches is told by its work, and all products of a kernel are its work: programs that begin once and wait once for memory do one
    after the other, as they would do a longer sum."""
    own = [(by if full else None) or rating(machine, full) for _, _, full in products]
    works = [sides.flops(each.tiles) for each, (sides, _, _) in zip(own, products, strict=True)]
    whole, seconds = sum(works), 0.0
    for each, work, (sides, dtype, full) in zip(own, works, products, strict=True):
        rows = min(sides.rows, sides.columns) if full and by is None else sides.rows
        seconds += work / whole * each.multiplying(dtype, whole, rows) if whole else 0.0
    return seconds
