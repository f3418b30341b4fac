"""Kernels of products of products as Triton: a program has a tile of rows and goes through what is summed in blocks; for each block it
makes the products (scores, and what reaches them) anew, and from them the weights of further products. No score is written to memory
(Dao et al., arXiv:2205.14135, algorithm 4). No two programs write the same element, so that results do not depend on their order.

`ChainTiles` is what such kernels have in common; `triton_statistics` folds rows in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from coset.ir.dims import Dim, add, ceildiv, multiply, substitute
from coset.ir.types import DType
from coset.lowering.kernels.addresses import count_of, join_loops
from coset.lowering.kernels.kernel import Chain, Dot, Loop, Plan, Scalar, Statistics, extents_of, reads, stores_by_sum, values_of, writes
from coset.lowering.triton.attention_tiling import BARRIERS, STAGES_COPIED, score_bits
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.copies import TileSide, used_lines
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch, Rounding
from coset.lowering.triton.operand_tiles import dot_text, operand_tile, side_bits
from coset.lowering.triton.pointwise import index_limits
from coset.lowering.triton.rows import power_of_two
from coset.lowering.triton.scalars import TYPES, conversion, from_memory, to_memory
from coset.lowering.triton.scopes import TileAxis, TileScope, Value
from coset.lowering.triton.tiling import SIDE_COPIED, copied_unit, narrowest, unit_name, unit_of, unit_side
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import dims_of

ROW, KEY = frozenset({"row"}), frozenset({"key"})
BOTH, DEPTH, COLUMN = ROW | KEY, frozenset({"depth"}), frozenset({"column"})
PART = frozenset({"part"})  # no axis of a tile: what differs along it has one value in a step of the loop
_NAMES = """rows keys value_keys row_mask key_mask value_mask program tile tiles batch part step blocks start begin end
    BLOCK_M BLOCK_N"""


@dataclass(frozen=True)
class ChainTiling:
    """A program has `rows` rows and `block` places of what is summed at a time. `bulk`: 1 where operands are read by bulk copies, 0 where
    not though some could be, None where none can."""

    rows: int
    block: int
    warps: int = 4
    stages: int = 2
    bulk: int | None = None

    @property
    def choice(self) -> KernelChoice:
        """As what is chosen."""
        return KernelChoice.of({"BLOCK_M": self.rows, "BLOCK_N": self.block, "BULK": self.bulk}, self.warps, self.stages)

    @staticmethod
    def chosen(choice: KernelChoice) -> ChainTiling:
        """The tiles that `choice` says."""
        return ChainTiling(choice["BLOCK_M"], choice["BLOCK_N"], choice.warps, choice.stages, choice.get("BULK"))


def room(loops: Sequence[Loop]) -> int:
    """The elements that a tile has room for along loops of a known number of places."""
    count = count_of(loops)
    assert isinstance(count, int), "rows of an attention have sizes that are known"
    return max(16, power_of_two(count))


def choose_tiling(kernel: Statistics | Chain) -> ChainTiling:
    """The tiles: what four warps of a datacenter GPU hold in registers, for the widest of the operands and results. They were chosen by
    what compiles without spilling for sm_80, sm_90 and gfx942, not by a clock."""
    sides = [*(side for dot in kernel.dots for side in (dot.lhs, dot.rhs)), *(each.value for each in kernel.sums)]
    widths = [*(room(dot.k) for dot in kernel.dots), *(room(each.n) for each in kernel.sums)]
    bits, width = max([16, *(side.dtype.bits for side in sides)]), max(widths)
    if bits == 64:
        most, block = 16, 16
    elif bits == 16:
        most, block = (64, 32) if width <= 128 else (32, 16)
    else:
        most, block = 32, 32 if width <= 64 else 16
    return ChainTiling(unit_side(count_of(kernel.rows), most), unit_side(count_of(kernel.summed[-1:]), block))


def emit_chain(kernel: Chain, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """One Triton function."""
    kernel = replace(kernel, dots=narrowed(kernel.dots, kernel.accumulator))
    return ChainWriter(kernel, plan, with_choice(ChainWriter, kernel, plan, options), comment).emission()


def narrowed(dots: Sequence[Dot], accumulator: DType) -> tuple[Dot, ...]:
    """Products whose operands are taken as narrow as they are stored, where the matrix unit takes both."""
    found = []
    for dot in dots:
        lhs, rhs = narrowest(dot.lhs), narrowest(dot.rhs)
        unit = unit_of(lhs.dtype, rhs.dtype, accumulator)
        found.append(replace(dot, lhs=lhs, rhs=rhs) if unit is lhs.dtype and unit is rhs.dtype else dot)
    return tuple(found)


def with_choice(writer: Callable[..., ChainTiles], kernel: Statistics | Chain, plan: Plan, options: EmitOptions) -> EmitOptions:
    """`options` with the default choice where they have none: operands are read by bulk copies where the target has such, some can be, and
    shared memory holds two blocks or more."""
    if options.choice is not None:
        return options
    tiling = choose_tiling(kernel)
    if options.bulk and all(copied_unit(unit, options) for _, _, unit in _sides(kernel)):
        probe = writer(kernel, plan, replace(options, choice=replace(tiling, bulk=1).choice), []).emission()
        if any(argument.tiles is not None for argument in probe.launches[0].arguments):
            tiling = _for_copies(tiling, kernel, options)
    return replace(options, choice=tiling.choice)


def _sides(kernel: Statistics | Chain) -> list[tuple[Scalar, int, DType]]:
    """What is read for each block: the operands, how long their rows are, and what they are multiplied as."""
    found = [(dot.rhs, room(dot.k), unit_of(dot.lhs.dtype, dot.rhs.dtype, kernel.accumulator)) for dot in kernel.dots]
    found += [(each.value, room(each.n), unit_of(each.value.dtype, each.value.dtype, kernel.accumulator)) for each in kernel.sums]
    return [(scalar, width, unit or kernel.accumulator) for scalar, width, unit in found]


def _for_copies(tiling: ChainTiling, kernel: Statistics | Chain, options: EmitOptions) -> ChainTiling:
    """These tiles with operands read by bulk copies: as many stages as shared memory holds of what is read for each block, beside what is
    read once. What is read for each score (masks) counts with it."""
    once = sum(room(dot.k) * side_bits(dot.lhs, unit) for dot, (_, _, unit) in zip(kernel.dots, _sides(kernel), strict=False))
    each = sum(width * side_bits(scalar, unit) for scalar, width, unit in _sides(kernel))
    each += tiling.rows * score_bits(kernel.score_values, kernel.rows, kernel.summed)
    stages = min(STAGES_COPIED, (options.bulk - BARRIERS - tiling.rows * once // 8) // (tiling.block * each // 8))
    if tiling.rows < SIDE_COPIED or stages < 2:
        return replace(tiling, bulk=0)
    return replace(tiling, bulk=1, stages=stages)


class ChainTiles(ABC):
    """A Triton function whose programs have rows, and go through what is summed in blocks with the kernel's products of them."""

    def __init__(self, kernel: Statistics | Chain, plan: Plan, options: EmitOptions, comment: list[str]) -> None:
        self.choice = options.choice or choose_tiling(kernel).choice
        self.base, self.options, self.comment, self.tiling = kernel, options.plain(), comment, ChainTiling.chosen(self.choice)
        bounded = kernel.low is not None or kernel.high is not None
        dims = [*dims_of(values_of(kernel), kernel.stores, plan), *(end for end in (kernel.low, kernel.high) if end is not None)]
        parts, last = (kernel.summed[:-1], kernel.summed[-1:]) if bounded else ((), kernel.summed)
        self.binding: dict[str, Dim] = {}
        self.joined: dict[str, tuple[Loop, ...]] = {}
        for role, loops in (("batch", kernel.batch), ("rows", kernel.rows), ("part", parts), ("keys", last)):
            fewer, more = join_loops(loops, [substitute(dim, self.binding) for dim in dims])
            self.binding |= more
            self.joined[role] = fewer
        self.counts = {role: count_of(loops) for role, loops in self.joined.items()}
        self.programs = multiply(ceildiv(self.counts["rows"], self.tiling.rows), self.counts["batch"])
        ends = [add(self.counts["rows"], self.tiling.rows), add(self.counts["keys"], self.tiling.block), self.programs]
        ends += [add(count_of(kernel.summed), self.tiling.block), *(room(dot.k) for dot in kernel.dots)]
        buffers = (*reads(kernel), *writes(kernel))
        wide, self.sizes = wideness(index_limits(plan, buffers, dims, extents_of(kernel), ends))
        self.body = FunctionBody(plan, self.options, wide=wide)
        for name in [*_NAMES.split(), *(["row_start"] if self.tiling.bulk else [])]:
            self.body.name(name)
        self.outer, self.inner = TileScope(ROW | COLUMN | DEPTH), TileScope(ROW | COLUMN | DEPTH | KEY | PART)
        rows, tile = self.counts["rows"], self.tiling
        self.row = TileAxis("rows", None if isinstance(rows, int) and rows % tile.rows == 0 else "row_mask")
        keys = self.counts["keys"]
        self.whole = isinstance(keys, int) and keys % tile.block == 0
        self.key, self.value_key = (
            TileAxis(name, None if self.whole else mask) for name, mask in (("keys", "key_mask"), ("value_keys", "value_mask"))
        )
        self.constexprs = [("BLOCK_M", tile.rows), ("BLOCK_N", tile.block)]
        self.score = self.space({"row": self.row, "key": self.key}, keys="keys")

    def space(self, axes: dict[str, TileAxis], *, keys: str | None = None, loops: Sequence[Loop] = ()) -> Space:
        """An index space with these axes. `keys`: the name of the index of what is summed; `loops`: those of its depth or its columns."""
        scopes = [self.outer] if keys is None and "depth" not in axes else [self.outer, self.inner]  # behind the loop, or before and in it
        found = Space(self.body, axes, scopes, self.binding, self.base.picks)
        found.extents = extents_of(self.base)
        found.number(self.joined["batch"], "batch", frozenset())
        if "row" in axes:
            found.number(self.joined["rows"], "rows", ROW)
        if keys is not None:
            found.number(self.joined["part"], "part", PART)
            found.number(self.joined["keys"], keys, KEY)
        for name in ("depth", "column"):
            if name in axes:
                found.number(loops, axes[name].index, frozenset({name}))
        return found

    def along(self, loops: Sequence[Loop], name: str, block: str, *, down: bool = False) -> TileAxis:
        """A new axis over all of `loops`, as a row, or `down` as a column, whose lines are written; `block` is its size."""
        count, size = count_of(loops), room(loops)
        index = self.body.name(name)
        self.outer.lines.append(f"{index} = {self.body.places(block)}{'[:, None]' if down else '[None, :]'}")
        if count == size:
            return TileAxis(index, None)
        mask = self.body.name(f"{name}_mask")
        self.outer.lines.append(f"{mask} = {index} < {self.body.text(count)}")
        return TileAxis(index, mask)

    def block(self, name: str, size: int) -> str:
        """A new compile-time number."""
        found = self.body.name(name)
        self.constexprs.append((found, size))
        return found

    def copy(self, space: Space, scalar: Scalar, loops: Sequence[Loop], block: str, *, of: str) -> None:
        """Read an operand by bulk copies where that is chosen and can be: `loops`, all in one `block`, by rows (`of` is "row"), or by what
        is summed, down ("key") or along ("value")."""
        if not self.tiling.bulk:
            return
        inner, batch, part = TileSide(tuple(loops), block, room(loops), "0"), self.joined["batch"], self.joined["part"]
        if of == "row":
            space.copy(scalar, batch, (TileSide(self.joined["rows"], "BLOCK_M", self.tiling.rows, "row_start"), inner))
            return
        summed = TileSide(self.joined["keys"], "BLOCK_N", self.tiling.block, "start")
        space.copy(scalar, (*batch, *part), (inner, summed) if of == "key" else (summed, inner))

    # ------------------------------------------------------------ lines

    def place(self) -> None:
        """Which rows a program has; those that look at most begin first."""
        lines, body = self.outer.lines, self.body
        lines.append("program = tl.program_id(0)" + (f".to({body.index_type})" if body.wide is not False else ""))
        lines.append(f"tiles = tl.cdiv({body.text(self.counts['rows'])}, BLOCK_M)")
        tile = "program" if self.counts["batch"] == 1 else "program % tiles"
        lines.append(f"tile = tiles - 1 - {tile}" if self.base.high is not None and self.base.low is None else f"tile = {tile}")
        if self.counts["batch"] != 1:
            lines.append("batch = program // tiles")
        lines += ["row_start = tile * BLOCK_M"] if self.tiling.bulk else []
        lines.append("rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]")
        lines += [f"row_mask = rows < {body.text(self.counts['rows'])}"] * (self.row.mask is not None)

    def loop(self, space: Space) -> str:
        """The head of the loop over blocks; `space` has the rows. Where masks bound the last loop, each place of those before it has blocks
        of its own."""
        lines, body, base = self.outer.lines, self.body, self.base
        begin, end = "0", body.text(self.counts["keys"])
        if base.low is not None:
            text, axes = space.dim(base.low)
            begin = f"tl.maximum({f'tl.min({text})' if axes else text}, 0) // BLOCK_N * BLOCK_N"
        if base.high is not None:
            text, axes = space.dim(base.high)
            end = f"tl.minimum({end}, {f'tl.max({text})' if axes else text})"
        lines += [f"begin = {begin}", f"end = {end}"]
        several = self.counts["part"] != 1
        if several:
            lines.append("blocks = tl.cdiv(end - begin, BLOCK_N)")
        head = ["part = step // blocks", "start = begin + step % blocks * BLOCK_N"] if several else []
        ways = [("keys", "key_mask", "None, :")] + [("value_keys", "value_mask", ":, None")] * bool(base.sums)
        head += [f"{keys} = start + {body.places('BLOCK_N')}[{way}]" for keys, _, way in ways]
        head += [] if self.whole else [f"{mask} = {keys} < end" for keys, mask, _ in ways]
        self.inner.lines[:0] = head
        if several:
            return f"for step in range(0, blocks * {body.text(self.counts['part'])}):"
        return "for start in range(begin, end, BLOCK_N):"

    def dots(self) -> None:
        """The products of one block, which scalars of the scores read."""
        for place, dot in enumerate(self.base.dots):
            block = self.block(f"BLOCK_K{place}", room(dot.k))
            left = self.along(dot.k, f"left_depth{place}", block)
            right = self.along(dot.k, f"right_depth{place}", block, down=True)
            unit = unit_of(dot.lhs.dtype, dot.rhs.dtype, self.base.accumulator)
            assert unit is not None
            rows = self.space({"row": self.row, "depth": left}, loops=dot.k)
            keys = self.space({"depth": right, "key": self.key}, keys="keys", loops=dot.k)
            self.copy(rows, dot.lhs, dot.k, block, of="row")
            self.copy(keys, dot.rhs, dot.k, block, of="key")
            lhs = operand_tile(rows, dot.lhs, f"left{place}", ("BLOCK_M", block), "depth", unit)
            rhs = operand_tile(keys, dot.rhs, f"right{place}", (block, "BLOCK_N"), "depth", unit)
            name = self.body.name(dot.name)
            self.inner.lines.append(f"{name} = {dot_text(lhs, rhs, None, unit, self.options)}")
            if self.options.rounding is Rounding.EACH and dot.dtype is not self.base.accumulator:
                self.inner.lines.append(f"{name} = {from_memory(to_memory(name, dot.dtype), dot.dtype)}")
            self.score.results[dot.name] = Value(name, BOTH)

    def made(self, scalar: Scalar, hint: str, outside: str) -> str:
        """The name of a tile of a scalar of the products in the accumulator's type, `outside` beyond the end of what is summed."""
        value = self.score.name(scalar, self.score.computed(scalar))
        text = conversion(value.text, scalar.dtype, self.base.accumulator)
        text = text if value.axes >= BOTH else f"tl.broadcast_to({text}, [BLOCK_M, BLOCK_N])"
        return self.score.line(text if self.key.mask is None else f"tl.where({self.key.mask}, {text}, {outside})", BOTH, hint).text

    @abstractmethod
    def emission(self) -> EmittedKernel:
        """The function and its launch."""

    def emission_of(self, lines: Sequence[str]) -> EmittedKernel:
        """The function of these lines and its launch."""
        name, contracts = self.base.name, self.options.contracts
        lines = used_lines(lines) if self.tiling.bulk else lines
        source = function_text(self.body, name, self.comment, [each for each, _ in self.constexprs], lines)
        arguments, numbers, tiling = self.body.arguments(), tuple(self.constexprs), self.tiling
        launch = Launch(name, arguments, (self.programs,), numbers, self.sizes, tiling.warps, tiling.stages, contracts=contracts)
        first = self.base.dots[0]
        unit = unit_of(first.lhs.dtype, first.rhs.dtype, self.base.accumulator) or self.base.accumulator
        return EmittedKernel(source, (launch,), unit=unit_name(first.lhs.dtype, first.rhs.dtype, unit, self.options), choice=self.choice)


class ChainWriter(ChainTiles):
    """The function of a `Chain`."""

    def __init__(self, kernel: Chain, plan: Plan, options: EmitOptions, comment: list[str]) -> None:
        super().__init__(kernel, plan, options, comment)
        self.kernel = kernel

    def emission(self) -> EmittedKernel:
        """The function and its launch."""
        lines, accumulator = self.outer.lines, TYPES[self.kernel.accumulator.name]
        self.place()
        self.dots()
        totals: dict[str, Space] = {}
        for number, each in enumerate(self.kernel.sums):
            block = self.block(f"BLOCK_E{number}", room(each.n))
            column = self.along(each.n, f"columns{number}", block)
            total = self.body.name(each.name)
            lines.append(f"{total} = tl.full([BLOCK_M, {block}], 0.0, {accumulator})")
            unit = unit_of(each.value.dtype, each.value.dtype, self.kernel.accumulator)
            assert unit is not None
            space = self.space({"key": self.value_key, "column": column}, keys="value_keys", loops=each.n)
            self.copy(space, each.value, each.n, block, of="value")
            value = operand_tile(space, each.value, f"value{number}", ("BLOCK_N", block), "key", unit)
            weight = self.made(each.weight, f"weight{number}", "0.0")
            weight = weight if unit is self.kernel.accumulator else f"{weight}.to({TYPES[unit.name]})"
            self.inner.lines.append(f"{total} = {dot_text(Value(weight, BOTH), value, total, unit, self.options)}")
            result = self.space({"row": self.row, "column": column}, loops=each.n)
            result.results[each.name] = Value(total, ROW | COLUMN)
            totals[each.name] = result
        lines.append(self.loop(next(iter(totals.values()))))
        lines += [f"    {line}" for line in self.inner.lines]
        for store, each in stores_by_sum(self.kernel):
            totals[each.name].store(store, ROW | COLUMN)
        return self.emission_of(lines)
