"""Tables of tiles, warps and stages for each family of kernels, cut to a kernel's sizes: what `alternatives` gives out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

from coset.ir.types import F64
from coset.lowering.kernels.addresses import number_of
from coset.lowering.kernels.kernel import (
    ATOMIC,
    Attention,
    Chain,
    Grouped,
    Loop,
    Pointwise,
    Product,
    Recurrence,
    Rows,
    Scan,
    Scatter,
    Sort,
    Statistics,
    loops_of,
)
from coset.lowering.triton.attention_tiling import SPLITS as PARTS
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.rows import WHOLE_ROW, power_of_two
from coset.lowering.triton.scales import without_scales
from coset.lowering.triton.tiling import SPLITS, multiplied, unit_side

MOST = 64  # alternatives of a kernel
Sizes = Mapping[str, int]
_BLOCKS = (128, 256, 512, 1024, 2048, 4096)
_WARPS = (1, 2, 4, 8, 16)
_HEIGHTS = (1, 2, 4, 8, 16, 32, 64)
_TILE = 16384  # elements of a tile at most
_PRODUCTS = (
    (128, 128, 128, 8, 3), (128, 128, 128, 4, 3), (128, 128, 64, 4, 4), (128, 128, 64, 8, 4), (128, 256, 128, 8, 3), (256, 128, 128, 8, 3),
    (64, 256, 128, 8, 3), (256, 64, 128, 8, 3), (128, 64, 128, 4, 3), (64, 128, 128, 4, 3), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4),
    (64, 64, 128, 4, 3), (64, 64, 64, 4, 4), (64, 64, 256, 4, 3), (64, 64, 128, 8, 3), (64, 32, 128, 4, 4), (32, 64, 128, 4, 4),
    (32, 128, 128, 4, 4), (128, 32, 128, 4, 4), (32, 32, 128, 4, 4), (32, 32, 256, 2, 4), (16, 64, 128, 4, 4), (16, 128, 128, 4, 4),
    (16, 32, 256, 2, 4), (64, 16, 128, 4, 4), (16, 16, 256, 2, 4), (16, 16, 128, 1, 5),
)  # fmt: skip
"""Tiles of m and n, bytes of k of an operand, warps, stages."""
_COPIED_PRODUCTS = (
    (128, 256, 128, 8, 4, 4), (128, 256, 128, 8, 3, 4), (128, 256, 128, 8, 3, 1), (256, 128, 128, 8, 3, 2), (128, 128, 128, 8, 4, 1),
    (128, 128, 128, 8, 3, 2), (128, 128, 128, 4, 4, 2), (128, 128, 256, 8, 2, 1), (64, 256, 128, 4, 4, 2), (128, 64, 128, 4, 4, 1),
    (64, 128, 128, 4, 4, 1), (64, 128, 128, 4, 3, 1), (64, 64, 128, 4, 4, 1), (64, 64, 256, 4, 3, 1),
)  # fmt: skip
"""The same where operands are bulk copies, and the parts that a tile is stored in."""
_COPIED_ATTENTIONS = (
    (128, 128, 8, 3), (128, 128, 8, 2), (128, 128, 4, 3), (128, 128, 4, 2), (128, 64, 4, 4), (128, 64, 4, 3), (128, 64, 8, 4),
    (128, 64, 8, 2), (64, 128, 4, 3), (64, 128, 4, 2), (64, 64, 4, 4), (64, 64, 4, 3), (64, 64, 4, 2), (128, 32, 4, 4), (64, 32, 4, 4),
)  # fmt: skip
"""Queries and keys, warps, stages of attentions that read by bulk copies: what Triton's tutorial 06 tries on this architecture, and more
warps where heads are wide."""
_AHEAD = ((128, 128, 8, 2), (128, 64, 8, 3), (64, 64, 4, 3), (64, 64, 4, 2), (64, 128, 4, 2), (128, 128, 8, 3))
"""The same of attentions whose scores are made a block ahead: of heads of 128 on sm_90 the first has all exponentials between instructions
of the product of queries and keys, and all comparisons between those of the product with the values (ahead of time)."""
_SPLIT_PRODUCTS = ((64, 64, 128, 4, 3), (32, 64, 128, 4, 4), (64, 32, 128, 4, 4), (16, 64, 128, 4, 4), (16, 32, 256, 2, 4))
_SPLITS = (2, 4, 8, 16, 32)
_OTHER_FORM = 16  # alternatives that multiply 8-bit floats as the default does not
_LEAST_PART = 256  # of k, or of keys


def _per_thread(elements: int, warps: int, least: int, most: int) -> bool:
    return least <= elements / (32 * warps) <= most


# ---------------------------------------------------------------- index spaces, rows


def pointwise_choices(kernel: Pointwise, default: KernelChoice, _: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """Blocks of elements, or tiles of rows and columns."""
    if default.get("BLOCK") is not None:
        yield from _flat(number_of(kernel.loops, sizes))
        return
    sides = (16, 32, 64, 128)
    for height, width, warps in product(sides, sides, (2, 4, 8)):
        if _per_thread(height * width, warps, 4, 32):
            yield KernelChoice((("BLOCK_ROWS", height), ("BLOCK_COLUMNS", width)), warps)


def _flat(total: int) -> Iterator[KernelChoice]:
    for block, warps in product(_BLOCKS, (2, 4, 8)):
        if _per_thread(block, warps, 1, 32) and block <= max(_BLOCKS[0], power_of_two(total)):
            yield KernelChoice((("BLOCK", block),), warps)


def rows_choices(kernel: Rows, default: KernelChoice, _: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """Tiles of rows and columns."""
    return _rows(kernel.rows, kernel.columns, default, sizes)


def scan_choices(kernel: Scan, default: KernelChoice, _: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """Tiles of rows and columns."""
    return _rows(kernel.rows, (kernel.column,), default, sizes)


def _rows(rows: Sequence[Loop], columns: Sequence[Loop], default: KernelChoice, sizes: Sizes) -> Iterator[KernelChoice]:
    free = any(not isinstance(loop.extent, int) for loop in columns)
    whole = not free and number_of(columns, sizes) <= default["BLOCK_COLUMNS"]
    many = default["BLOCK_ROWS"] > 1  # and short pieces of columns: neighbours in memory are neighbouring rows
    wide = default["BLOCK_COLUMNS"]
    widths = (wide,) if whole else (16, 32, 64) if many else tuple(dict.fromkeys((512, 1024, 2048, 4096, wide // 2, wide)))
    some = tuple(dict.fromkeys((*_WARPS, default.warps)))
    heights = _HEIGHTS if whole else (4, 16, 32, 64, 128) if many else (1, 2, 4)
    most = power_of_two(number_of(rows, sizes))
    for height, width, warps in product(heights, widths, some):
        area = height * width
        if height <= most and area <= _TILE and _per_thread(area, warps, 1 if width < 64 else 2, 32 if width < WHOLE_ROW else 64):
            yield KernelChoice((("BLOCK_ROWS", height), ("BLOCK_COLUMNS", width)), warps)


def sort_choices(kernel: Sort, default: KernelChoice, _: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """How many rows a program sorts at once."""
    width = power_of_two(number_of((kernel.column,), sizes))
    most = power_of_two(number_of(kernel.rows, sizes))
    for height, warps in product(_HEIGHTS, _WARPS):
        if height <= most and height * width <= 4096 and _per_thread(height * width, warps, 1, 32):
            yield KernelChoice((("BLOCK_ROWS", height),), warps)


def scatter_choices(kernel: Scatter, default: KernelChoice, _: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """Tiles of what is stored, or blocks of updates."""
    columns = number_of(kernel.columns, sizes)
    if kernel.form == ATOMIC:
        yield from _flat(number_of(kernel.updates, sizes) * columns)
        return
    (name, some), (_name, width) = default.numbers
    least, most = (16, 1024) if name == "BLOCK_UPDATES" else (1, power_of_two(number_of(kernel.rows, sizes)))
    heights = [height for height in (some // 4, some // 2, some, some * 2, some * 4) if least <= height <= most]
    widths = [each for each in (width // 4, width // 2, width, width * 2) if 1 <= each <= power_of_two(columns)]
    for height, each, warps in product(heights, widths, (1, 2, 4, 8)):
        if _per_thread(height * each, warps, 1, 32):
            yield KernelChoice(((name, height), ("BLOCK_COLUMNS", each)), warps)


def recurrence_choices(kernel: Recurrence, default: KernelChoice, _: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """How many rows a program goes through rounds with."""
    width, most = default["BLOCK_COLUMNS"], power_of_two(number_of(kernel.rows, sizes))
    heights = (16, 32, 64) if kernel.dots else (1, 2, 4, 8, 16, 32, 64, 128, 256)
    for height, warps, stages in product(heights, (1, 2, 4, 8), (1, 2, 3, 4)):
        fits = height <= max(most, heights[0]) and _per_thread(height * width, warps, 1, 32)
        if fits and (stages == 1 or default.stages > 1) and (warps >= 4 or not kernel.dots):
            yield KernelChoice((("BLOCK_ROWS", height), ("BLOCK_COLUMNS", width)), warps, stages)


# ---------------------------------------------------------------- products


def product_choices(kernel: Product, default: KernelChoice, options: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """Tiles of a product, and in how many parts its sums are split."""
    return _products(kernel, default, options, sizes, split=True)


def grouped_choices(kernel: Grouped, default: KernelChoice, options: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """Tiles of grouped products."""
    return _products(kernel, default, options, sizes, split=False)


def _products(
    kernel: Product | Grouped, default: KernelChoice, options: EmitOptions, sizes: Sizes, *, split: bool
) -> Iterator[KernelChoice]:
    eights = default.get("EIGHTS")
    if eights is None:
        yield from _tiles(kernel, default, options, sizes, split=split, eights=False)
        return
    for form, most in ((1 - eights, _OTHER_FORM), (eights, MOST)):
        for choice in islice(_tiles(kernel, default, options, sizes, split=split, eights=form == 1), most):
            yield replace(choice, numbers=(*choice.numbers, ("EIGHTS", form)))


def _tiles(
    kernel: Product | Grouped, default: KernelChoice, options: EmitOptions, sizes: Sizes, *, split: bool, eights: bool
) -> Iterator[KernelChoice]:
    """The tiles of products where 8-bit floats are multiplied as such, or wider; `split`: their sums may be made in parts."""
    kernel, scales = without_scales(kernel, options)
    _, _, unit = multiplied(kernel, eights=eights)
    m, n, k, batch = (number_of(loops, sizes) for loops in (kernel.m, kernel.n, kernel.k, kernel.batch))
    if unit is None:  # without the matrix unit k is gone through one by one
        for height, width, warps in product((16, 32, 64), (32, 64, 128), (4, 8)):
            yield _tile(unit_side(m, height), unit_side(n, width), 1, warps, default.stages, 1 if split else 0)
        return
    least = 32 if unit.bits == 8 else 16
    most = 64 if unit is F64 else 256

    def tile(row: tuple[int, ...], splits: int) -> KernelChoice:
        height, width, bytes_, warps, stages = row
        depth = max(least, min(bytes_ * 8 // unit.bits, power_of_two(k), scales.block or bytes_ * 8))
        return _tile(unit_side(m, min(height, most)), unit_side(n, min(width, most)), depth, warps, stages, splits)

    copied = default.get("BULK") is not None
    if copied:
        stays = split and all(isinstance(loop.extent, int) for loop in kernel.k) and k > 0
        for *numbers, parts in _COPIED_PRODUCTS:
            found = tile(tuple(numbers), 1 if split else 0)
            if found["BLOCK_N"] >= 16 * parts:
                tiles = batch * -(-m // found["BLOCK_M"]) * -(-n // found["BLOCK_N"])
                yield from _copying(found, parts, options.processors, tiles if stays else 0)
    plain = (tile(row, 1 if split else 0) for row in _PRODUCTS)
    yield from (_with_copies(found, 0) if copied else found for found in plain)
    if not split or not options.splits or any(not isinstance(loop.extent, int) for loop in loops_of(kernel)):
        return
    forms = dict.fromkeys((default["BULK"], 0)) if copied else (None,)
    for bulk, (row, splits) in product(forms, product(_SPLIT_PRODUCTS, _SPLITS)):
        found = tile(row, splits)
        tiles = -(-m // found["BLOCK_M"]) * -(-n // found["BLOCK_N"]) * batch
        if splits <= SPLITS and k >= splits * _LEAST_PART and 0 < tiles * splits <= 4 * options.processors:
            yield found if bulk is None else _with_copies(found, bulk)


def _copying(choice: KernelChoice, parts: int, processors: int, tiles: int) -> Iterator[KernelChoice]:
    """These tiles by bulk copies: a program for each, and as many as processors hold, where so there are fewer programs than `tiles`."""
    yield _with_copies(choice, 1, parts=parts)
    resident = 1 if choice.warps == 8 else 2
    if tiles > resident * processors:
        yield _with_copies(choice, 1, resident, parts=parts)


def _with_copies(choice: KernelChoice, bulk: int, resident: int = 0, *, parts: int = 1) -> KernelChoice:
    return replace(choice, numbers=(*choice.numbers, ("BULK", bulk), ("RESIDENT", resident), ("PARTS", parts)))


def _tile(m: int, n: int, k: int, warps: int, stages: int, splits: int) -> KernelChoice:
    """A tile of a product; without `splits` it is one of those that have none."""
    more = (("SPLITS", splits),) if splits else ()
    return KernelChoice((("BLOCK_M", m), ("BLOCK_N", n), ("BLOCK_K", k), *more), warps, stages)


def attention_choices(kernel: Attention, default: KernelChoice, options: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """Blocks of queries and keys, and in how many parts keys are split."""
    batch, m, keys, width = (number_of(loops, sizes) for loops in (kernel.batch, kernel.m, kernel.keys, kernel.n))
    splits = default["SPLITS"]
    copied, ahead = (default.get(name) is not None for name in ("BULK", "AHEAD"))

    def choice(height: int, block: int, splits: int, warps: int, stages: int, bulk: int = 0, early: int = 0) -> KernelChoice:
        more = {"BULK": bulk if copied else None, "AHEAD": early if ahead else None}
        return KernelChoice.of({"BLOCK_M": height, "BLOCK_N": block, "SPLITS": splits, **more}, warps, stages)

    programs = max(1, batch * -(-m // default["BLOCK_M"]))
    known = all(isinstance(loop.extent, int) for loop in (*kernel.batch, *kernel.m))
    forms = dict.fromkeys((default["BULK"], 1, 0)) if copied else (0,)
    if options.splits and known:
        for bulk, parts in product(forms, (1, *_SPLITS, PARTS)):
            if parts == 1 or (parts * _LEAST_PART <= keys and parts * programs <= 4 * options.processors):
                yield choice(default["BLOCK_M"], default["BLOCK_N"], parts, default.warps, default.stages, bulk)
    for early, rows in ((1, _AHEAD if ahead else ()), (0, _COPIED_ATTENTIONS if copied else ())):
        for height, block, warps, stages in rows:
            height, block = unit_side(m, height), unit_side(keys, block)
            if _per_thread(height * power_of_two(width), warps, 1, 128):
                yield choice(height, block, splits, warps, stages, 1, early)
    for height, block, warps, stages in product((16, 32, 64, 128), (16, 32, 64, 128), (4, 8), (2, 3)):
        fits = height <= unit_side(m, 128) and block <= unit_side(keys, 128)
        if fits and _per_thread(height * power_of_two(width), warps, 1, 128):
            yield choice(height, block, splits, warps, stages)


def gradient_choices(kernel: Statistics | Chain, default: KernelChoice, _: EmitOptions, sizes: Sizes) -> Iterator[KernelChoice]:
    """Blocks of rows and of what they sum over."""
    rows, keys = number_of(kernel.rows, sizes), number_of(kernel.summed[-1:], sizes)
    widths = [power_of_two(number_of(each.n, sizes)) for each in kernel.sums]

    def fits(height: int, block: int, warps: int) -> bool:  # scores and what is summed are held at once
        within = height <= unit_side(rows, 128) and block <= unit_side(keys, 128)
        return within and _per_thread(height * (block + sum(widths)), warps, 1, 192)

    copied = default.get("BULK") is not None
    for height, block, warps, stages in product((64, 128), (16, 32, 64, 128), (4, 8), (3, 2)) if copied else ():
        if fits(height, block, warps):
            yield KernelChoice((("BLOCK_M", height), ("BLOCK_N", block), ("BULK", 1)), warps, stages)
    for height, block, warps, stages in product((16, 32, 64, 128), (16, 32, 64, 128), (4, 8), (1, 2, 3)):
        if fits(height, block, warps):
            numbers = (("BLOCK_M", height), ("BLOCK_N", block))
            yield KernelChoice((*numbers, ("BULK", 0)) if copied else numbers, warps, stages)
