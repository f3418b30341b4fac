"""Tiles of products: how large they are, what the matrix unit takes of them, and over how many programs k is split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from coset.ir.dims import Dim
from coset.ir.types import DTYPES, F32, F64, I8, DType
from coset.lowering.kernels.kernel import Grouped, Product, Scalar, ScalarOp
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.rows import power_of_two
from coset.lowering.triton.scalars import EIGHTS

HOLDING = frozenset({"f16", "bf16", "f32"})  # of 8-bit floats every number
_NARROW = {"f16": "f16", "bf16": "bf16", "f8e4m3fn": "f8", "f8e5m2": "f8"}
SPLIT_DEPTH = 1024  # k of one part at least, where k is split
SPLITS = 32  # parts at most
SIDE_COPIED = 64  # of a tile at least, where copies are the default: rows of a wgmma (PTX ISA, 9.7.15); below, memory is what is waited for
STAGES_COPIED = 4
FULL = (128, 128)  # of f32 in full: 22.7 TFLOP/s where 64 x 64 had 13.9 (4096 cubed with bias, GELU and residual, on an H200, 2026-11-26),
STAGES_FULL = 4  # though some registers spill: 264 B of a thread (Triton 3.6; 568 by 3.9)
SPLIT = (128, 128, 64, 8)
"""Of f32 as six products of bf16 (`Options.bf16x6`) m, n, k and warps by bulk copies, where such tiles fill the machine: what compiles
without spilling (a round of k on sm_90: 715 instructions of a warp, and 24 wgmma of 64 x 128). Not timed."""
_BARRIERS = 1024  # B of shared memory for barriers, and what the driver takes for a second program of a processor


@dataclass(frozen=True)
class Tiling:
    """A tile of the result is m by n, summed in blocks of k; `unit`: the dtype that the matrix unit takes, None without one.

    `bulk`: 1 where operands are read by bulk copies, 0 where not though they could be, None where they cannot. `resident`: how many
    programs of a processor go from tile to tile; 0: each program has one tile. `parts`: how many pieces of its columns a tile is
    stored in, one after the other, so that what is done to the sum needs fewer registers (1, 2 or 4). `eights`: 1 where 8-bit floats are
    multiplied as such, 0 where not though they could be, None where they cannot."""

    m: int
    n: int
    k: int
    unit: DType | None
    warps: int
    splits: int = 1
    chunk: int = 0  # of k, a multiple of `k`, where there are several splits
    stages: int = 3
    bulk: int | None = None
    resident: int = 0
    parts: int = 1
    eights: int | None = None

    def choice(self, *, splits: bool = True) -> KernelChoice:
        """As what is chosen; without `splits` where k is never split."""
        numbers = [("BLOCK_M", self.m), ("BLOCK_N", self.n), ("BLOCK_K", self.k)]
        numbers += [("SPLITS", self.splits)] if splits else []
        numbers += [("BULK", self.bulk), ("RESIDENT", self.resident), ("PARTS", self.parts)] if self.bulk is not None else []
        numbers += [("EIGHTS", self.eights)] if self.eights is not None else []
        return KernelChoice(tuple(numbers), self.warps, self.stages)

    def chosen(self, choice: KernelChoice | None, k: Dim = 0) -> Tiling:
        """The tiles that `choice` says, these where it says nothing else; `k`: how long the sums are."""
        numbers = {} if choice is None else dict(choice.numbers)
        if choice is None or choice == self.choice(splits="SPLITS" in numbers):
            return self
        splits, bulk = numbers.get("SPLITS", 1), numbers.get("BULK")
        tiling = replace(self, m=choice["BLOCK_M"], n=choice["BLOCK_N"], k=choice["BLOCK_K"], warps=choice.warps, stages=choice.stages)
        tiling = replace(tiling, bulk=bulk, resident=numbers.get("RESIDENT", 0), parts=numbers.get("PARTS", 1))
        tiling = replace(tiling, eights=numbers.get("EIGHTS"))
        if splits == 1:
            return replace(tiling, splits=1, chunk=0)
        assert isinstance(k, int), "sums of unknown length are not split"
        chunk = -(-k // (splits * tiling.k)) * tiling.k
        return replace(tiling, splits=-(-k // chunk), chunk=chunk)


@dataclass(frozen=True)
class TileVariant:
    """A tile of m by n whose operands are bulk copies. `rate`: the share of what the fastest form multiplies in a second, while it
    multiplies. `parts`: of a tile when it is stored: what GELU and a residual need of registers then fits (compiled ahead of time)."""

    m: int
    n: int
    warps: int
    resident: int
    parts: int
    rate: float

    def steps(self, m: int, n: int, depth: float, batch: int, processors: int, finishing: float, *, whole: bool = True) -> float:
        """The time of a product on so many processors, in what the largest tile takes for a step of `STEP` bytes of k. Each processor
        multiplies its tiles one after the other, and what is done to a sum waits for its last product and the next product for it: two
        programs of a processor begin and end together, so that neither hides what the other waits for. `finishing`: what finishing
        the largest tile takes. Not `whole`: as if the last round of tiles took its share of a round."""
        rounds = _tiles(m, n, batch, (self.m, self.n)) / (self.resident * processors)
        return (ceil(rounds) if whole else rounds) * self.resident * self.m * self.n / AREA * (depth / self.rate + finishing)


AREA, STEP = 128 * 256, 128  # elements of the largest tile; bytes of k
FINISHING = 10.0  # steps that it takes to finish such a tile, on the mean of what is done to sums
FORMS = (TileVariant(128, 256, 8, 1, 4, 1.0), TileVariant(128, 128, 8, 1, 2, 0.89), TileVariant(64, 64, 4, 2, 1, 0.5))
IN_TWO_SUMS = (TileVariant(128, 128, 4, 2, 2, 1.0), TileVariant(64, 64, 4, 2, 1, 0.6))
"""What is tried, of 8-bit floats whose sums f32 takes on the latter. Measured on an H200 (decision 55): a step of the largest
takes 0.63 us, of 128 by 128 by 8 warps 0.355 us, of two of 4 warps beside each other 0.69 us; finishing a tile of the largest 4.2 us with
a bias, 9.8 us with bias, GELU and residual, half as long where it is half as large. In two sums two programs of 4 warps take 0.83 of the
time of one of 8 warps."""


def unit_of(lhs: DType, rhs: DType, accumulator: DType) -> DType | None:
    """The dtype of both operands in the matrix unit, or None where none takes them."""
    if accumulator.kind != "float":
        return I8 if lhs is rhs is I8 else None
    if accumulator is F64:
        return F64
    kinds = {_NARROW.get(lhs.name), _NARROW.get(rhs.name)}
    if None in kinds or kinds == {"f16", "bf16"}:
        return F32
    return DTYPES["bf16"] if "bf16" in kinds else DTYPES["f16"]


def takes_eights(kernel: Product | Grouped, options: EmitOptions) -> bool:
    """True where both operands are 8-bit floats that the target's matrix units multiply."""
    return options.eights is not None and are_eights(kernel)


def are_eights(kernel: Product | Grouped) -> bool:
    """True where both operands are 8-bit floats whose products are summed in f32."""
    return kernel.accumulator is F32 and _eighth(kernel.lhs) is not None and _eighth(kernel.rhs) is not None


def eights_of(kernel: Product | Grouped) -> tuple[Scalar, Scalar]:
    """Such operands, without conversions."""
    lhs, rhs = _eighth(kernel.lhs), _eighth(kernel.rhs)
    assert lhs is not None and rhs is not None
    return lhs, rhs


def multiplied(kernel: Product | Grouped, *, eights: bool) -> tuple[Scalar, Scalar, DType | None]:
    """Both operands as they are multiplied, and the dtype of the matrix unit (None: without one); with `eights`, 8-bit floats as such: each
    operand is of its own dtype then, and that of the left one stands for both."""
    if eights:
        lhs, rhs = eights_of(kernel)
        return lhs, rhs, lhs.dtype
    lhs, rhs = narrowest(kernel.lhs), narrowest(kernel.rhs)
    unit = unit_of(lhs.dtype, rhs.dtype, kernel.accumulator)
    return (kernel.lhs, kernel.rhs, unit) if unit is F32 else (lhs, rhs, unit)


def _eighth(value: Scalar) -> Scalar | None:
    """`value` as an 8-bit float without conversions to what holds all of these; None where it is no such number."""
    while isinstance(value, ScalarOp) and value.op.name == "stablehlo.convert" and value.dtype.name in HOLDING:
        value = value.operands[0]
    return value if value.dtype.name in EIGHTS else None


def is_eight(unit: DType | None) -> bool:
    """True where a matrix unit takes 8-bit floats."""
    return unit is not None and unit.name in EIGHTS


def is_copied(unit: DType) -> bool:
    """True for what has forms (`FORMS`) whose operands are bulk copies: what matrix units multiply of 16 or 8 bits of floats."""
    return unit.bits == 16 or is_eight(unit)


def unit_name(lhs: DType, rhs: DType, unit: DType, options: EmitOptions) -> str:
    """What operands are multiplied as, for people."""
    if is_eight(unit):
        return lhs.name if lhs is rhs else f"{lhs.name} {rhs.name}"
    return options.f32_as if unit is F32 else unit.name


def is_of_eights(name: str) -> bool:
    """True for what `unit_name` calls 8-bit floats."""
    return name.partition(" ")[0] in EIGHTS


def choose_tiling(m: Dim, n: Dim, k: Dim, batch: Dim, unit: DType | None, options: EmitOptions) -> Tiling:
    """The tiles of a product of these sizes."""
    if unit is None:
        return Tiling(unit_side(m, 32), unit_side(n, 64), 1, None, 4)
    wide = unit in (F32, F64) and not (unit is F32 and options.tf32)
    side, depth = (64, 32) if wide else (128, 128 // unit.bits * 8)
    if unit is F64:
        side, depth = 32, 16
    sides = unit_side(m, side), unit_side(n, side)
    if not all(isinstance(dim, int) for dim in (m, n, batch)):
        return Tiling(min(sides[0], 64), sides[1], depth, unit, 4)
    count = _tiles(m, n, batch, sides)
    if count < options.processors and side > 64:
        sides = min(sides[0], 64), min(sides[1], 64)
        count = _tiles(m, n, batch, sides)
    warps = 8 if sides[0] * sides[1] >= 128 * 128 else 4
    if not options.splits or not isinstance(k, int) or not 0 < 2 * count <= options.processors or k < 2 * SPLIT_DEPTH:
        return Tiling(*sides, depth, unit, warps)
    splits = min(options.processors // count, k // SPLIT_DEPTH, SPLITS)
    chunk = -(-k // (splits * depth)) * depth
    return Tiling(*sides, depth, unit, warps, -(-k // chunk), chunk)


def for_copies(
    tiling: Tiling, sizes: tuple[Dim, Dim, Dim, Dim], bits: tuple[int, int, int], options: EmitOptions, *, plain: bool
) -> Tiling:
    """These tiles with operands read by bulk copies, as far as shared memory holds them; of known sizes the fastest form where the operands
    are `plain`: multiplied as they are read. `sizes`: m, n, k, batch; `bits`: of what shared memory holds for an element of each
    operand, and of the widest result."""
    k = sizes[2]
    if min(tiling.m, tiling.n) < SIDE_COPIED:
        return replace(tiling, bulk=0)
    if plain and tiling.splits == 1 and tiling.unit is not None and is_copied(tiling.unit) and _are_known(sizes):
        tiling = _fastest(tiling, sizes, options)
    if plain and tiling.splits == 1 and is_split(tiling.unit, options) and _with_sides(SPLIT[:2], sizes, options):
        height, width, depth, warps = SPLIT
        tiling = replace(tiling, m=height, n=width, k=depth, warps=warps)
    each = tiling.k * (tiling.m * bits[0] + tiling.n * bits[1]) // 8
    stored = tiling.m * tiling.n // tiling.parts * bits[2] // 8
    for resident in (1,) if tiling.warps == 8 else (2, 1):
        stages = min(STAGES_COPIED, (options.bulk // resident - _BARRIERS - stored) // each)
        if stages >= 2:
            several = not _are_known(sizes) or _fills(sizes, (tiling.m, tiling.n), resident * options.processors + 1)
            several |= tiling.warps == 8 and tiling.splits == 1  # of one tile each, too: 31.5 for 34.1 us (512 x 4096 x 4096 on an H200)
            stays = several and isinstance(k, int) and k > 0  # where k is split tiles are few
            return replace(tiling, bulk=1, resident=resident if stays else 0, stages=stages)
    return replace(tiling, bulk=0)


def _fastest(tiling: Tiling, sizes: tuple[Dim, Dim, Dim, Dim], options: EmitOptions) -> Tiling:
    """The form that takes the least time for known sizes."""
    assert tiling.unit is not None
    best = _form_of(sizes, tiling.unit, tiling.k, options)
    if best is None:
        return tiling
    return replace(tiling, m=best.m, n=best.n, warps=best.warps, resident=best.resident, parts=best.parts)


def _form_of(sizes: tuple[Dim, Dim, Dim, Dim], unit: DType, block: int, options: EmitOptions) -> TileVariant | None:
    m, n, k, batch = sizes
    assert isinstance(m, int) and isinstance(n, int) and isinstance(batch, int)
    depth = steps_of(k if isinstance(k, int) else 16 * block, unit)
    forms = IN_TWO_SUMS if is_eight(unit) and options.eights != 0 else FORMS
    fitting = [form for form in forms if form.m <= 2 * m and form.n <= 2 * n]
    return min(fitting, key=lambda form: form.steps(m, n, depth, batch, options.processors, FINISHING), default=None)


def steps_of(k: int, unit: DType) -> float:
    """The steps of a sum over k."""
    return k * unit.bits / (8 * STEP)


def steps_by_copies(
    sizes: tuple[int, int, int, int], unit: DType, options: EmitOptions, finishing: float, *, whole: bool = True
) -> float | None:
    """The steps (see `TileVariant`) of a product of these sizes whose operands, both of them bulk copies, are multiplied as they are read;
    None where it has no such form. `sizes`: m, n, k, batch."""
    if not options.bulk or not is_copied(unit):
        return None
    m, n, k, batch = sizes
    tiling = choose_tiling(m, n, k, batch, unit, options)
    if min(tiling.m, tiling.n) < SIDE_COPIED or tiling.splits > 1:
        return None
    form = _form_of(sizes, unit, tiling.k, options)
    return None if form is None else form.steps(m, n, steps_of(k, unit), batch, options.processors, finishing, whole=whole)


def in_full(tiling: Tiling, sizes: tuple[Dim, Dim, Dim, Dim], bits: tuple[int, int], options: EmitOptions) -> Tiling:
    """These tiles of f32 in full, larger where such fill the machine and shared memory is known to hold them: a thread reads fewer operands
    for each of its sums. `sizes` and `bits` as above."""
    held = (STAGES_FULL - 1) * tiling.k * (FULL[0] * bits[0] + FULL[1] * bits[1]) // 8  # the last stage multiplies
    if not _with_sides(FULL, sizes, options) or tiling.splits > 1 or held > options.bulk:
        return tiling
    return replace(tiling, m=FULL[0], n=FULL[1], warps=4, stages=STAGES_FULL)


def _with_sides(sides: tuple[int, int], sizes: tuple[Dim, Dim, Dim, Dim], options: EmitOptions) -> bool:
    """True where these sizes have such sides of a tile, and tiles for all processors."""
    return (unit_side(sizes[0], sides[0]), unit_side(sizes[1], sides[1])) == sides and _fills(sizes, sides, options.processors)


def _fills(sizes: tuple[Dim, Dim, Dim, Dim], sides: tuple[int, int], programs: int) -> bool:
    """True where sizes are known, and there is a tile of these sides for each of so many programs."""
    m, n, _, batch = sizes
    return _are_known(sizes) and _tiles(m, n, batch, sides) >= programs


def _are_known(sizes: tuple[Dim, Dim, Dim, Dim]) -> bool:
    m, n, _, batch = sizes
    return all(isinstance(dim, int) for dim in (m, n, batch))


def is_split(unit: DType | None, options: EmitOptions) -> bool:
    """True for f32 that is multiplied as several narrower floats."""
    return unit is F32 and options.f32_as == "bf16x6"


def copied_unit(unit: DType | None, options: EmitOptions) -> bool:
    """True where bulk copies bring what the matrix units of such targets take: all but f32 in full and f64, which have none there."""
    return unit is not None and unit is not F64 and (unit is not F32 or options.f32_as != "f32")


def for_windows(tiling: Tiling, features: Dim) -> Tiling:
    """Shallower blocks of k where only such divide the features, so that each lies in one place of its windows. Where none does, every
    element has an address and bounds of its own: twice the threads hold them."""
    for depth in (tiling.k, 32, 16 if tiling.unit is None or tiling.unit.bits > 8 else 32):
        if depth <= tiling.k and isinstance(features, int) and features % depth == 0:
            return replace(tiling, k=depth)
    return replace(tiling, k=min(tiling.k, 32), warps=8)


def unit_side(dim: Dim, most: int) -> int:
    """A side of a matrix unit's tile for a dim of this size, at most `most`."""
    return max(16, min(most, power_of_two(dim))) if isinstance(dim, int) else most


def _tiles(m: Dim, n: Dim, batch: Dim, sides: tuple[int, int]) -> int:
    assert isinstance(m, int) and isinstance(n, int) and isinstance(batch, int)
    return -(-m // sides[0]) * -(-n // sides[1]) * batch


def narrowest(value: Scalar) -> Scalar:
    """`value` without a last conversion that loses nothing: of a narrow float to f32, of i8 to i32."""
    if isinstance(value, ScalarOp) and value.op.name == "stablehlo.convert":
        source = value.operands[0].dtype
        if (value.dtype is F32 and source.name in _NARROW) or (value.dtype is DTYPES["i32"] and source is I8):
            return value.operands[0]
    return value
