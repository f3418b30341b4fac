"""Products as Triton: tiles of the result, each a sum of `tl.dot` over blocks of k; what is done to the operands and to the sum is done
in registers. Where there are few tiles and k is long, k is split over programs, and a second kernel adds the parts and stores.

What the matrix units take: f16 and bf16 as they are, i8 with i32 sums, f32 in full precision unless `Options.tf32`, f64; 8-bit floats as
such where `Options.eights` allows, else as f16 (or bf16 beside bf16), which holds them exactly, without their scales (`triton_scales`).
Conversions to f32 of both operands from a narrower dtype are left out: the products are exact in f32 either way. Other integers are summed
without matrix units, one k at a time.
"""

from __future__ import annotations

from dataclasses import replace

from coset.ir.dims import Dim, add, ceildiv, minimum, multiply, product, substitute
from coset.ir.types import F32, DType
from coset.lowering.kernels.addresses import join_loops
from coset.lowering.kernels.kernel import (
    Buffer,
    ColumnFold,
    Grouped,
    Load,
    Loop,
    Plan,
    Product,
    Result,
    Rows,
    Store,
    extents_of,
    reads,
    used_picks,
    writes,
)
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.copies import Copy, TileSide, used_lines
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.operand_tiles import dot_text, held_bits, is_plain, operand_tile
from coset.lowering.triton.pointwise import index_limits
from coset.lowering.triton.rows import emit_rows
from coset.lowering.triton.scalars import TYPES, filling
from coset.lowering.triton.scales import NO_SCALES, SumScales, without_scales
from coset.lowering.triton.scopes import TileAxis, TileScope, Value
from coset.lowering.triton.tiling import (
    Tiling,
    choose_tiling,
    copied_unit,
    for_copies,
    for_windows,
    in_full,
    is_eight,
    is_split,
    multiplied,
    takes_eights,
    unit_name,
)
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import dims_of

_ROW, _COLUMN, _DEPTH = frozenset({"row"}), frozenset({"column"}), frozenset({"depth"})
_STEP = frozenset({"step"})  # what differs between blocks of k, and is one number in each
_NAMES = """rows columns step left_k right_k row_mask column_mask left_mask right_mask start program tile tiles_m tiles_n in_group first
    height tile_m tile_n split total lesser left right BLOCK_M BLOCK_N BLOCK_K GROUP CHUNK SPLITS"""
_COPYING = "row_start column_start work later programs halves"  # names that only bulk copies need


def emit_product(kernel: Product, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """One Triton function, or two where k is split."""
    kernel, scales = without_scales(kernel, options)
    eights = chosen_eights(kernel, options)
    lhs, rhs, unit = multiplied(kernel, eights=bool(eights))
    kernel = replace(kernel, lhs=lhs, rhs=rhs)
    m, n, k, batch = (product(loop.extent for loop in loops) for loops in (kernel.m, kernel.n, kernel.k, kernel.batch))
    tiling = scales.cut(replace(choose_tiling(m, n, k, batch, unit, options), eights=eights))
    if kernel.windowed and len(kernel.k) > 1:
        tiling = for_windows(tiling, kernel.k[-1].extent)
    elif copied_unit(unit, options):
        tiling = _by_copies(kernel, plan, options, tiling, (m, n, k, batch), scales)
    elif unit is F32:
        tiling = in_full(tiling, (m, n, k, batch), held_bits(kernel, unit)[:2], options)
    choice = options.choice or tiling.choice()
    tiling, options = tiling.chosen(choice, k), options.plain()
    name = unit_name(lhs.dtype, rhs.dtype, unit or kernel.accumulator, options)
    if tiling.splits == 1:
        return replace(ProductWriter(kernel, plan, options, tiling, comment, scales).emission(), unit=name, choice=choice)
    parts = Loop("loop:split", tiling.splits)
    outer = (*kernel.batch, *kernel.m, *kernel.n)
    parts_name = f"{kernel.name}_parts"
    scratch = Buffer(parts_name, kernel.accumulator, (parts.extent, *(loop.extent for loop in outer)), "temporary")
    index = (parts.index, *(loop.index for loop in outer))
    plan = replace(plan, buffers={**plan.buffers, parts_name: scratch})
    whole = Result("sum", kernel.accumulator)
    first = ProductWriter(replace(kernel, stores=(Store(parts_name, index, whole),)), plan, options, tiling, comment, scales).emission()
    fold = ColumnFold("sum", "add", Load(parts_name, index, kernel.accumulator), kernel.accumulator)
    picks = used_picks(kernel.picks, (store.value for store in kernel.stores), ())
    summed = Rows(f"{kernel.name}_sum", outer, (parts,), (fold,), kernel.stores, (), picks=picks)
    second = emit_rows(summed, plan, options, ["the sum of the parts"])
    return EmittedKernel(f"{first.source}\n\n{second.source}", (*first.launches, *second.launches), (scratch,), name, choice)


def chosen_eights(kernel: Product | Grouped, options: EmitOptions) -> int | None:
    """1 where 8-bit floats are multiplied as such, 0 where another form was chosen, None where there is no choice."""
    if not takes_eights(kernel, options):
        return None
    return 1 if options.choice is None else options.choice.get("EIGHTS") or 0


def copied_operands(kernel: Product, plan: Plan, options: EmitOptions, tiling: Tiling) -> int:
    """How many operands of such tiles can be read by bulk copies; 0 where the target has none."""
    if not options.bulk or kernel.windowed:
        return 0
    writer = ProductWriter(kernel, plan, options.plain(), replace(tiling, bulk=1), [])
    return bool(writer.left.copies) + bool(writer.right.copies)


def _by_copies(
    kernel: Product, plan: Plan, options: EmitOptions, tiling: Tiling, sizes: tuple[Dim, Dim, Dim, Dim], scales: SumScales
) -> Tiling:
    """The default tiles where operands are read by bulk copies; these where none can be."""
    copied, unit = copied_operands(kernel, plan, options, tiling), tiling.unit
    if not copied:
        return tiling
    assert unit is not None
    bits = held_bits(kernel, unit)
    plain = copied == 2 and not scales.blockwise and all(is_plain(side, unit) for side in (kernel.lhs, kernel.rhs))
    found = for_copies(tiling, sizes, bits, options, plain=plain)
    if found.bulk and copied_operands(kernel, plan, options, found) < copied:  # a larger tile reaches over the end of a loop
        return for_copies(tiling, sizes, bits, options, plain=False)
    return found


class ProductWriter:
    """The function of a product, or of one that has its dims, over tiles of rows and columns."""

    def __init__(
        self, kernel: Product | Grouped, plan: Plan, options: EmitOptions, tiling: Tiling, comment: list[str], scales: SumScales = NO_SCALES
    ) -> None:
        self.kernel, self.options, self.tiling, self.comment, self.scales = kernel, options, tiling, comment, scales
        self.more: tuple[tuple[str, int], ...] = (("GROUP", 8),)  # constexprs beside those of a tile
        dims = dims_of([*(pick.value for pick in kernel.picks), kernel.lhs, kernel.rhs, *scales.factors], kernel.stores, plan)
        binding: dict[str, Dim] = {}
        joined: list[tuple[Loop, ...]] = []
        for loops in (kernel.batch, kernel.m, kernel.n, kernel.k):
            fewer, more = join_loops(loops, [substitute(dim, binding) for dim in dims])
            binding |= more
            joined.append(fewer)
        self.batch, self.m, self.n, self.k = (product(loop.extent for loop in loops) for loops in joined)
        extents = extents_of(kernel) | {"loop:split": tiling.splits}
        ends = [add(self.m, tiling.m), add(self.n, tiling.n), add(self.k, tiling.k), add(self.programs(), self._staying())]
        wide, self.sizes = wideness(index_limits(plan, (*reads(kernel), *scales.reads(), *writes(kernel)), dims, extents, ends))
        self.body = body = FunctionBody(plan, options, wide=wide)
        for name in [*_NAMES.split(), *(_COPYING.split() if tiling.bulk else ())]:
            body.name(name)
        self.outer, self.inner = TileScope(_ROW | _COLUMN), TileScope(_ROW | _COLUMN | _DEPTH | _STEP)
        self.row = row = TileAxis("rows", self.row_mask())
        self.column = column = TileAxis("columns", self._mask("column_mask", self.n, tiling.n))
        left = TileAxis("left_k", self._mask("left_mask", self.k, tiling.k))
        right = TileAxis("right_k", self._mask("right_mask", self.k, tiling.k))
        both = [self.outer, self.inner]
        self.left = Space(body, {"row": row, "depth": left}, both, binding, kernel.picks)
        self.right = Space(body, {"depth": right, "column": column}, both, binding, kernel.picks)
        self.joined, self.binding = joined, binding
        self._number_indices()
        if tiling.bulk:
            across, along = TileSide(joined[1], "BLOCK_M", tiling.m, "row_start"), TileSide(joined[2], "BLOCK_N", tiling.n, "column_start")
            summed = TileSide(joined[3], "BLOCK_K", tiling.k, "start")
            self.left.copy(kernel.lhs, joined[0], (across, summed))
            self.right.copy(kernel.rhs, joined[0], (summed, along))

    def _number_indices(self) -> None:
        """Say what the index of each loop is in the spaces of both operands."""
        joined = self.joined
        for space in (self.left, self.right):
            space.number(joined[0], "batch", frozenset())
            space.index("loop:split", "split", frozenset())
        self.left.number(joined[1], "rows", _ROW)
        self.right.number(joined[2], "columns", _COLUMN)
        self.stride = joined[3][-1].extent if len(joined[3]) > 1 and self._divides(joined[3][-1].extent) else None
        for space, index in ((self.left, "left_k"), (self.right, "right_k")):
            if self.stride is None:
                space.number(joined[3], index, _DEPTH)
            else:
                space.number(joined[3][:-1], "step", _STEP)
                space.index(joined[3][-1].name, index, _DEPTH)

    @property
    def copies(self) -> dict[Load, Copy]:
        """All loads that are bulk copies."""
        return {**self.left.copies, **self.right.copies}

    def _result(self, scopes: list[TileScope]) -> Space:
        """The space of the tile's results, where nothing is known yet."""
        space = Space(self.body, {"row": self.row, "column": self.column}, scopes, self.binding, self.kernel.picks)
        space.number(self.joined[0], "batch", frozenset())
        space.index("loop:split", "split", frozenset())
        space.number(self.joined[1], "rows", _ROW)
        space.number(self.joined[2], "columns", _COLUMN)
        return space

    def _divides(self, extent: Dim) -> bool:
        """True where each block of k lies in one pass of its last loop, so that the other loops have one index in it."""
        return isinstance(extent, int) and extent % self.tiling.k == 0 and self.tiling.k > 1

    def row_mask(self) -> str | None:
        return self._mask("row_mask", self.m, self.tiling.m)

    @staticmethod
    def _mask(name: str, count: Dim, block: int) -> str | None:
        return None if isinstance(count, int) and count % block == 0 else name

    def programs(self) -> Dim:
        """How many there are where each has one tile."""
        tiles = multiply(ceildiv(self.m, self.tiling.m), ceildiv(self.n, self.tiling.n))
        return multiply(multiply(tiles, self.tiling.splits), self.batch)

    def grid(self) -> Dim:
        """How many there are: as many as the processors hold, where they stay."""
        return minimum(self._staying(), self.programs()) if self.tiling.resident else self.programs()

    def _staying(self) -> int:
        return self.tiling.resident * self.options.processors

    # ------------------------------------------------------------ the function

    def emission(self) -> EmittedKernel:
        tiling, lines = self.tiling, self.outer.lines
        self.place()
        accumulator = TYPES[self.kernel.accumulator.name]
        zero = filling(0, self.kernel.accumulator)
        lines.append(f"total = tl.full([BLOCK_M, BLOCK_N], {zero}, {accumulator})")
        apart = is_split(tiling.unit, self.options) and not self.scales.blockwise
        if apart:
            lines.append(f"lesser = tl.full([BLOCK_M, BLOCK_N], {zero}, {accumulator})")
        self._depth()
        unit, matrix = tiling.unit or self.kernel.accumulator, tiling.unit is not None
        left = operand_tile(self.left, self.kernel.lhs, "left", ("BLOCK_M", "BLOCK_K"), "depth", unit, matrix=matrix)
        right = operand_tile(self.right, self.kernel.rhs, "right", ("BLOCK_K", "BLOCK_N"), "depth", unit, matrix=matrix)
        self.inner.lines += self._summed(left, right, unit)
        lines.append(self.loop())
        lines += [f"    {line}" for line in self.inner.lines]
        lines += ["total = total + where_finite(lesser)"] * apart
        if tiling.resident:
            self._place_again()
        self._store()
        constexprs = [("BLOCK_M", tiling.m), ("BLOCK_N", tiling.n), ("BLOCK_K", tiling.k), *self.more]
        if tiling.splits > 1:
            constexprs += [("SPLITS", tiling.splits), ("CHUNK", tiling.chunk)]
        if tiling.resident:
            lines = self._going_on(lines)
        if tiling.bulk:
            lines = used_lines(lines)
        source = function_text(self.body, self.kernel.name, self.comment, [name for name, _ in constexprs], lines)
        grid = (self.grid(),)
        contracts, arguments, numbers = self.options.contracts, self.body.arguments(), tuple(constexprs)
        launch = Launch(self.kernel.name, arguments, grid, numbers, self.sizes, tiling.warps, tiling.stages, contracts)
        return EmittedKernel(source, (launch,))

    def _summed(self, left: Value, right: Value, unit: DType) -> list[str]:
        """The sum with the products of a block of k."""
        if self.tiling.unit is None:
            return [f"total = total + {left.text} * {right.text}"]
        if not self.scales.blockwise and is_split(unit, self.options):
            return [f"total, lesser = summed_bf16x6({left.text}, {right.text}, total, lesser)"]
        if not self.scales.blockwise:
            return [f"total = {self._dot(left, right, 'total', unit)}"]
        space, start = self._result([self.outer, self.inner]), "start"
        if self.body.wide is not False:
            start = f"tl.cast(start, {self.body.index_type})"
        space.number(self.joined[3], start, _STEP)
        factors = [space.computed(factor).text for factor in self.scales.blockwise]
        block = self.body.name("block")
        return [f"{block} = {self._dot(left, right, None, unit)}", f"total = total + {' * '.join((block, *factors))}"]

    def _dot(self, left: Value, right: Value, total: str | None, unit: DType) -> str:
        if not is_eight(unit):
            return dot_text(left, right, total, unit, self.options)
        most, added = self.options.eights, "" if total is None else f", {total}"
        assert most is not None
        return f"tl.dot({left.text}, {right.text}{added}, max_num_imprecise_acc={'BLOCK_K' if 0 < self.tiling.k <= most else most})"

    def _store(self) -> None:
        """The tile's results, or those of its parts."""
        parts, lines = self.tiling.parts, self.outer.lines
        for place, name in enumerate(self._parted()):
            if parts > 1:
                self.outer.known.clear()
                begin = f" + {place} * (BLOCK_N // {parts})" if place else ""
                lines.append(f"columns = tile_n * BLOCK_N{begin} + tl.arange(0, BLOCK_N // {parts})[None, :]")
                lines += self.column_mask()
            space = self._result([self.outer])
            sum_ = Value(name, _ROW | _COLUMN)
            for factor in self.scales.behind:
                sum_ = space.line(f"{sum_.text} * {space.computed(factor).text}", sum_.axes, "scaled")
            space.results["sum"] = sum_
            for store in self.kernel.stores:
                space.store(store, _ROW | _COLUMN)

    def _parted(self) -> list[str]:
        """The names of the parts of the sum, in the order of their columns, each half of what it is taken from."""
        names = ["total"]
        while len(names) < self.tiling.parts:
            width, halves = f"BLOCK_N // {2 * len(names)}", []
            for name in names:
                near, far = self.body.name("part"), self.body.name("part")
                self.outer.lines.append(f"halves = tl.permute(tl.reshape({name}, [BLOCK_M, 2, {width}]), [0, 2, 1])")
                self.outer.lines.append(f"{near}, {far} = tl.split(halves)")
                halves += [near, far]
            names = halves
        return names

    def column_mask(self) -> list[str]:
        """The line for the columns that are there, where some may not be."""
        return [f"column_mask = columns < {self.body.text(self.n)}"] * (self.column.mask is not None)

    def place(self) -> None:
        """Which tile a program does: groups of rows of tiles, so that programs that run together read the same operands."""
        if not self.tiling.resident:
            self.outer.lines += self._head()
        self.outer.lines += self._tile("work" if self.tiling.resident else "program")

    def _head(self) -> list[str]:
        """What is so for all tiles of a program."""
        body = self.body
        wide = f".to({body.index_type})" if body.wide is not False else ""
        return [
            f"program = tl.program_id(0){wide}",
            f"tiles_m = tl.cdiv({body.text(self.m)}, BLOCK_M)",
            f"tiles_n = tl.cdiv({body.text(self.n)}, BLOCK_N)",
            *([f"programs = tl.num_programs(0){wide}", "later = program - programs"] if self.tiling.resident else []),
        ]

    def _going_on(self, lines: list[str]) -> list[str]:
        """A tile's lines for one tile after the other. Both loops are one for the compiler, which so copies the first blocks of the next
        tile while a tile's results are stored."""
        tiles = "tiles_m * tiles_n" if self.batch == 1 else f"tiles_m * tiles_n * {self.body.text(self.batch)}"
        loop = f"for work in tl.range(program, {tiles}, programs, flatten=True):"
        return [*self._head(), loop, *(f"    {line}" for line in lines)]

    def _place_again(self) -> None:
        """The tile's place for the stores, counted once more: the compiler has begun the next tile by then (Triton's tutorial 09)."""
        self.outer.known.clear()
        self.outer.lines += ["later += programs", *self._tile("later")]

    def _tile(self, number: str) -> list[str]:
        """The tile of this number."""
        body, lines = self.body, []
        several = self.batch != 1
        if several or self.tiling.splits > 1:
            lines.append(f"tile = {number} % (tiles_m * tiles_n)")
            rest = f"{number} // (tiles_m * tiles_n)"
            if self.tiling.splits > 1:
                lines.append(f"split = {f'({rest}) % SPLITS' if several else rest}")
                rest += " // SPLITS"
            if several:
                lines.append(f"batch = {rest}")
        else:
            lines.append(f"tile = {number}")
        lines += [
            "in_group = GROUP * tiles_n",
            "first = tile // in_group * GROUP",
            "height = tl.minimum(tiles_m - first, GROUP)",
            "tile_m = first + tile % in_group % height",
            "tile_n = tile % in_group // height",
        ]
        lines += ["row_start = tile_m * BLOCK_M", "column_start = tile_n * BLOCK_N"] if self.tiling.bulk else []
        lines += [
            "rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
            "columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
        ]
        lines += [f"row_mask = rows < {body.text(self.m)}"] * (self.row.mask is not None)
        return lines + self.column_mask()

    def loop(self) -> str:
        end = self.body.text(self.k)
        if self.tiling.splits > 1:
            return f"for start in range(split * CHUNK, tl.minimum({end}, split * CHUNK + CHUNK), BLOCK_K):"
        return f"for start in range(0, {end}, BLOCK_K):"

    def _depth(self) -> None:
        end, lines, start = self.body.text(self.k), self.inner.lines, "start"
        if self.stride is not None:
            step = f"start // {self.stride}"
            lines.append(f"step = {step if self.body.wide is False else f'tl.cast({step}, {self.body.index_type})'}")
            start = f"start % {self.stride}"
        lines.append(f"left_k = {start} + {self.body.places('BLOCK_K')}[None, :]")
        lines.append(f"right_k = {start} + {self.body.places('BLOCK_K')}[:, None]")
        if self.left.axes["depth"].mask is not None:
            lines.append(f"left_mask = left_k < {end}")
            lines.append(f"right_mask = right_k < {end}")
