"""Tiles of attention: how many queries and keys a program has at a time, over how many programs the keys are split, and whether they are
read by bulk copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coset.ir.dims import symbols
from coset.ir.types import DType
from coset.lowering.kernels.addresses import count_of
from coset.lowering.kernels.kernel import Attention, Load, Loop, Scalar, scalars
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.rows import power_of_two
from coset.lowering.triton.tiling import SIDE_COPIED, is_split, unit_of, unit_side
from coset.lowering.triton.walks import plain_loads

SPLIT_KEYS = 256  # keys of one part at least, where keys are split
SPLITS, UNKNOWN = 64, 16  # parts at most; and where the number of keys is not known
STAGES_COPIED = 3
_COPIED = ((64, (64, 128, 4, 2)), (128, (64, 64, 4, STAGES_COPIED)), (256, (128, 64, 8, STAGES_COPIED)))
"""Queries, keys, warps and stages at most where queries and values have room for so many elements at most. Of 64 and 128 elements what was
the fastest of 13 forms on an H200 (benchmarks/results/gpu-first-attention-nvidia-h200-2026-11-26.txt): several small programs of a
processor, one of which multiplies while others take exponentials; three of them for 64 elements, which a third stage would leave no
room for."""
_IN_BF16: tuple[tuple[int, tuple[int, int], tuple[int, int] | None], ...] = (
    (64, (64, 32), (64, 64)), (128, (32, 32), (64, 32)), (256, (32, 16), None),
)  # fmt: skip
"""Queries and keys at a time by 4 warps of f32 as six products of bf16 (`Options.bf16x6`), by pointers and by bulk copies, where queries
and values have room for so many elements at most: what compiles with little or no spilling. For heads of 256 the tensor memory of
compute capability 10 has no room for two sums of 64 queries. Not timed."""
BARRIERS, _RESERVED = 1024, 1024  # B of shared memory for barriers and for what is reduced; what the driver takes for a program


@dataclass(frozen=True)
class AttentionTiling:
    """A program has `m` queries and `n` keys at a time; queries have room for `d` elements, values for `e`. `bulk`: 1 where keys, values
    and queries are read by bulk copies as far as they can be, 0 where not though some can, None where neither keys nor values can.
    `ahead`: 1 where scores are made one block before they are weighed, 0 where not though they could be, None where they cannot."""

    m: int
    n: int
    d: int
    e: int
    warps: int
    splits: int = 1
    stages: int = 2
    bulk: int | None = None
    ahead: int | None = None

    @property
    def choice(self) -> KernelChoice:
        """As what is chosen."""
        numbers = {"BLOCK_M": self.m, "BLOCK_N": self.n, "SPLITS": self.splits, "BULK": self.bulk, "AHEAD": self.ahead}
        return KernelChoice.of(numbers, self.warps, self.stages)

    def chosen(self, choice: KernelChoice) -> AttentionTiling:
        """The tiles that `choice` says."""
        m, n, splits = (choice[name] for name in ("BLOCK_M", "BLOCK_N", "SPLITS"))
        return replace(
            self, m=m, n=n, splits=splits, warps=choice.warps, stages=choice.stages, bulk=choice.get("BULK"), ahead=choice.get("AHEAD")
        )


def score_bits(scores: Sequence[Scalar], rows: Sequence[Loop], keys: Sequence[Loop]) -> int:
    """Bits that are read for each score: what differs along rows and keys, and what is read where a condition on both holds."""
    across, along = ({loop.name for loop in loops} for loops in (rows, keys))
    plain = {load for score in scores for load in plain_loads(score)}
    loads = {item: {name for dim in item.index for name in symbols(dim)} for item in scalars(*scores) if isinstance(item, Load)}
    return sum(load.dtype.bits for load, names in loads.items() if load not in plain or (names & across and names & along))


@dataclass(frozen=True)
class SharedMemoryBits:
    """Bits that shared memory holds: for an element of queries, keys and values, and for a score by what is read for each of it (masks).
    `split`: for an element of a block of keys or values that is multiplied as several narrower ones."""

    query: int
    key: int
    value: int
    score: int
    split: int = 0

    def stages(self, tiling: AttentionTiling, room: int) -> int:
        """How many blocks of keys fit into `room` bytes beside the queries; of masks one less is there, as of what is split first, and
        what it is split into takes the place of the queries, which are in registers then."""
        masks = tiling.m * tiling.n * self.score // 8
        each = tiling.n * (tiling.d * self.key + tiling.e * self.value) // 8
        beside = tiling.m * tiling.d * self.query // 8
        if self.split:
            beside = max(beside, tiling.n * max(tiling.d, tiling.e) * self.split // 8) - each
        return (room - beside + masks) // (each + masks)


def splits_floats(kernel: Attention, options: EmitOptions) -> bool:
    """True where its products are several of narrower floats."""
    pairs = (kernel.query, kernel.key), (kernel.value, kernel.value)
    return any(is_split(unit_of(one.dtype, other.dtype, kernel.accumulator), options) for one, other in pairs)


def choose_tiling(kernel: Attention, options: EmitOptions) -> AttentionTiling:
    """The tiles: as large as shared memory and registers of a datacenter GPU hold two stages of."""
    batch, m, keys, k, n = (count_of(loops) for loops in (kernel.batch, kernel.m, kernel.keys, kernel.k, kernel.n))
    assert isinstance(k, int) and isinstance(n, int), "an attention's rows have sizes that are known"
    d, e = max(16, power_of_two(k)), max(16, power_of_two(n))
    bits = max(kernel.key.dtype.bits, kernel.value.dtype.bits, 16)
    split = splits_floats(kernel, options)
    narrow = bits == 16 and d + e <= 256 and not split
    most, block = (32, 16) if bits == 64 else (128, 64) if narrow else (64, 32)
    if split:
        (most, block), _ = _split_tiles(max(d, e))
    rows = unit_side(m, most) if isinstance(m, int) else 64 if narrow else most
    warps = 8 if rows * e >= (64 * 128 if narrow else 64 * 64) and not split else 4
    whole = AttentionTiling(rows, unit_side(keys, block), d, e, warps)
    if not options.splits or not isinstance(m, int) or not isinstance(batch, int) or 0 in (m, batch):
        return whole
    programs = batch * -(-m // rows)
    most_parts = SPLITS if isinstance(keys, int) else UNKNOWN if m <= rows else 1
    if isinstance(keys, int):
        most_parts = min(most_parts, keys // SPLIT_KEYS)
    splits = min(options.processors // programs, most_parts)
    return replace(whole, splits=splits) if splits > 1 else whole


def for_copies(tiling: AttentionTiling, kernel: Attention, held: SharedMemoryBits, options: EmitOptions, *, plain: bool) -> AttentionTiling:
    """These tiles with keys and values read by bulk copies, as far as shared memory holds them; measured ones where both are, and `plain`:
    as they are multiplied. Of few queries memory is what is waited for: they read by pointers, more blocks ahead."""
    tiles = [replace(tiling, stages=STAGES_COPIED)]
    if held.split:
        sides = _split_tiles(max(tiling.d, tiling.e))[1]
        if sides is None:
            return replace(tiling, bulk=0)
        m, keys = count_of(kernel.m), count_of(kernel.keys)
        tiles.insert(0, replace(tiles[0], m=unit_side(m, sides[0]), n=unit_side(keys, sides[1])))
    if plain and max(held.key, held.value) == 16 and tiling.m >= SIDE_COPIED:
        measured = _measured(tiling, kernel, options)
        tiles = [measured, replace(measured, n=max(16, measured.n // 2)), *tiles]
    for tile in tiles:
        for resident in (1,) if tile.warps == 8 else (2, 1):
            room = (options.bulk + _RESERVED) // resident - _RESERVED - BARRIERS
            stages = min(tile.stages, held.stages(tile, room))
            if stages >= 2:
                return replace(tile, bulk=int(tile.m >= SIDE_COPIED), stages=stages)
    return replace(tiling, bulk=0)


def _split_tiles(width: int) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """The queries and keys of `_IN_BF16`."""
    _, pointed, copied = next((row for row in _IN_BF16 if width <= row[0]), _IN_BF16[-1])
    return pointed, copied


def _measured(tiling: AttentionTiling, kernel: Attention, options: EmitOptions) -> AttentionTiling:
    """The tiles of `_COPIED`, with fewer queries where these do not fill them or the machine."""
    batch, m, keys = (count_of(loops) for loops in (kernel.batch, kernel.m, kernel.keys))
    width = max(tiling.d, tiling.e)
    rows, block, warps, stages = next(tile for most, tile in _COPIED if width <= most)
    few = isinstance(m, int) and isinstance(batch, int) and batch * -(-m // rows) * tiling.splits < options.processors
    if few or not isinstance(m, int) or unit_side(m, rows) < rows:
        rows, warps = SIDE_COPIED, 4
    return replace(tiling, m=rows, n=unit_side(keys, block), warps=warps, stages=stages)


def units_of(kernel: Attention) -> tuple[DType, DType]:
    """What queries and keys, and what weights and values, are multiplied as."""
    scored, summed = (
        unit_of(one.dtype, other.dtype, kernel.accumulator) for one, other in ((kernel.query, kernel.key), (kernel.value, kernel.value))
    )
    assert scored is not None and summed is not None, "an attention is of floats"
    return scored, summed
