"""Recurrences as Triton: each program has some rows and goes through the rounds, with the states in registers between them."""

from __future__ import annotations

from dataclasses import replace

from coset.ir.dims import Dim, add, ceildiv, product, substitute, symbols
from coset.ir.types import F32
from coset.lowering.kernels.addresses import join_loops
from coset.lowering.kernels.kernel import ColumnFold, Dot, Plan, Recurrence, State, Store, extents_of, reads, writes
from coset.lowering.planning.kinds import wide
from coset.lowering.planning.recurrence_places import DEPTH
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.choice import STAGES, KernelChoice
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.operand_tiles import dot_text, operand_tile
from coset.lowering.triton.pointwise import index_limits
from coset.lowering.triton.rows import folding, identity_number, power_of_two
from coset.lowering.triton.scalars import computed, conversion, from_memory, to_memory
from coset.lowering.triton.scopes import TileAxis, TileScope, Value
from coset.lowering.triton.tiling import unit_of
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import dims_of

SIDE = 16  # of a tile of the matrix unit, at least
HELD = 1 << 15  # bytes of matrices that a program keeps from round to round; more are read again each time
TILE = 256  # elements of a state in one program
_ROW, _COLUMN, _DEPTH, _ROUND = (frozenset({name}) for name in ("row", "column", "depth", "round"))
_BOTH = _ROW | _COLUMN
_NAMES = "rows columns depths row_mask column_mask depth_mask step BLOCK_ROWS BLOCK_COLUMNS"


def default_choice(kernel: Recurrence, processors: int) -> KernelChoice:
    """Few rows a program, as rounds wait for each other and programs do not; with products, the rows of a tile of the matrix unit."""
    width = product(loop.extent for loop in kernel.columns)
    assert isinstance(width, int)
    columns = power_of_two(width)
    if kernel.dots:
        columns = max(SIDE, columns)
        wide_ = any(side.dtype is F32 for dot in kernel.dots for side in (dot.lhs, dot.rhs))
        warps = 8 if wide_ and columns > 32 else 4
        stages = 1 if read_again(kernel, columns) else STAGES  # else each stage would have matrices of its own in shared memory
        return KernelChoice((("BLOCK_ROWS", SIDE), ("BLOCK_COLUMNS", columns)), warps, stages)
    count = product(loop.extent for loop in kernel.rows)
    rows = max(1, TILE // columns)
    while rows * columns > 32 and isinstance(count, int) and count < rows * processors:
        rows //= 2
    rows = min(rows, power_of_two(count)) if isinstance(count, int) else rows
    return KernelChoice((("BLOCK_ROWS", rows), ("BLOCK_COLUMNS", columns)), max(1, min(8, rows * columns // 128)))


def read_again(kernel: Recurrence, columns: int) -> float:
    """The bytes of matrices that a program reads in each round; none where it keeps them."""
    bytes_ = sum(columns**2 * dot.rhs.dtype.bytes for dot in kernel.dots)
    return bytes_ if bytes_ > HELD else 0


def emit_recurrence(kernel: Recurrence, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """One Triton function in which each program does some rows."""
    return _Writer(kernel, plan, options, comment).emission()


class _Writer:
    def __init__(self, kernel: Recurrence, plan: Plan, options: EmitOptions, comment: list[str]) -> None:
        options = replace(options, bf16x6=False)  # rounds wait for each other, not for multipliers
        self.kernel, self.options, self.comment = kernel, options, comment
        self.choice = options.choice or default_choice(kernel, options.processors)
        self.count = product(loop.extent for loop in kernel.rows)
        self.length = product(loop.extent for loop in kernel.columns)
        steps = [side for each in kernel.steps for side in ((each.value,) if isinstance(each, ColumnFold) else (each.lhs, each.rhs))]
        values = [*(pick.value for pick in kernel.picks), *steps, *(side for state in kernel.states for side in (state.start, state.next))]
        dims = dims_of(values, (*kernel.round_stores, *kernel.last_stores), plan)
        rows, self.binding = join_loops(kernel.rows, dims)
        columns, more = join_loops(kernel.columns, [substitute(dim, self.binding) for dim in dims])
        self.binding |= more
        self.rows, self.columns = self.choice["BLOCK_ROWS"], self.choice["BLOCK_COLUMNS"]
        ends: list[Dim] = [add(self.count, self.rows), self.columns, add(kernel.round.extent, 1)]
        limits = index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents_of(kernel), ends)
        self.large, self.sizes = wideness(limits)
        self.body = FunctionBody(plan, options, wide=self.large)
        for name in _NAMES.split():
            self.body.name(name)
        masks = [self._mask("row_mask", self.count, self.rows), self._mask("column_mask", self.length, self.columns)]
        self.row, self.column = TileAxis("rows", masks[0]), TileAxis("columns", masks[1])
        self.outer, self.inner, self.behind = TileScope(_BOTH | _DEPTH), TileScope(_BOTH | _DEPTH | _ROUND), TileScope(_BOTH)
        axes = {"row": self.row, "column": self.column, "round": TileAxis("step", None)}
        self.space = Space(self.body, axes, [self.outer, self.inner], self.binding, kernel.picks)
        self.last = Space(self.body, {"row": self.row, "column": self.column}, [self.behind], self.binding, kernel.picks)
        for space in (self.space, self.last):
            space.number(rows, "rows", _ROW)
            space.number(columns, "columns", _COLUMN)
        self.space.index(kernel.round.name, "step" if self.large is False else f"tl.cast(step, {self.body.index_type})", _ROUND)
        self.matrix = self._matrices()

    @staticmethod
    def _mask(name: str, count: Dim, block: int) -> str | None:
        return None if isinstance(count, int) and count and count % block == 0 else name

    def _matrices(self) -> Space:
        """What matrices are read in: the depth by the columns; in each round, where they are too many to be kept."""
        mask = None if self.column.mask is None else "depth_mask"
        scopes = [self.outer, self.inner] if read_again(self.kernel, self.columns) == 0 else [self.inner]
        space = Space(self.body, {"depth": TileAxis("depths", mask), "column": self.column}, scopes, self.binding, self.kernel.picks)
        space.number(self.kernel.columns, "columns", _COLUMN)
        space.index(DEPTH, "depths", _DEPTH)
        return space

    # ------------------------------------------------------------ the function

    def emission(self) -> EmittedKernel:
        kernel, lines = self.kernel, self.outer.lines
        program = "tl.program_id(0)" if self.large is False else f"tl.program_id(0).to({self.body.index_type})"
        lines.append(f"rows = {program} * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]")
        lines += [f"row_mask = rows < {self.body.text(self.count)}"] * (self.row.mask is not None)
        lines.append(f"columns = {self.body.places('BLOCK_COLUMNS')}[None, :]")
        lines += [f"column_mask = columns < {self.body.text(self.length)}"] * (self.column.mask is not None)
        if kernel.dots:
            lines.append(f"depths = {self.body.places('BLOCK_COLUMNS')}[:, None]")
            lines += [f"depth_mask = depths < {self.body.text(self.length)}"] * (self.column.mask is not None)
        names = [self._started(state) for state in kernel.states]
        for step in kernel.steps:
            self.space.results[step.name] = self._folded(step) if isinstance(step, ColumnFold) else self._multiplied(step)
        for store in kernel.round_stores:
            self.space.store(store, self._axes(store) | _ROUND)
        new = [self._next(state) for state in kernel.states]
        for place, text in enumerate(new):
            if text in names:  # it is what another state was before this round
                new[place] = self.body.name(f"{names[place]}_next")
                self.inner.lines.append(f"{new[place]} = {text}")
        self.inner.lines += [f"{name} = {text}" for name, text in zip(names, new, strict=True)]
        # what later rounds read is on its way while rounds wait for each other: no round reads what another one stores
        lines.append(f"for step in tl.range(0, {self.body.text(kernel.round.extent)}, num_stages={self.choice.stages}):")
        lines += [f"    {line}" for line in self.inner.lines or ["pass"]]
        for store in kernel.last_stores:
            self.last.store(store, self._axes(store))
        lines += self.behind.lines
        source = function_text(self.body, kernel.name, self.comment, [name for name, _ in self.choice.numbers], lines)
        choice, grid = self.choice, (ceildiv(self.count, self.rows),)
        contracts = self.options.contracts
        launch = Launch(kernel.name, self.body.arguments(), grid, choice.numbers, self.sizes, choice.warps, choice.stages, contracts)
        return EmittedKernel(source, (launch,), unit=self._unit(), choice=choice)

    def _unit(self) -> str:
        units = {unit.name for dot in self.kernel.dots if (unit := unit_of(dot.lhs.dtype, dot.rhs.dtype, wide(dot.dtype))) is not None}
        if not units:
            return ""
        return "tf32" if units == {"f32"} and self.options.tf32 else "f32" if "f32" in units else min(units)

    def _axes(self, store: Store) -> frozenset[str]:
        """Along what a store moves: rows, and columns where its place does."""
        moving = {name for dim in store.index for name in symbols(dim)}
        return _BOTH if moving & {loop.name for loop in self.kernel.columns} else _ROW

    # ------------------------------------------------------------ states

    @staticmethod
    def _tile(state: State) -> tuple[frozenset[str], str]:
        """The axes of a state's tile, and its shape."""
        return (_BOTH, "[BLOCK_ROWS, BLOCK_COLUMNS]") if state.wide else (_ROW, "[BLOCK_ROWS, 1]")

    def _started(self, state: State) -> str:
        """The name of a state, which is set to what it is before the first round."""
        axes, shape = self._tile(state)
        value = self.space.name(state.start, self.space.computed(state.start))
        name = self.body.name(state.name)
        self.outer.lines.append(f"{name} = tl.broadcast_to({value.text}, {shape})")
        self.space.results[state.name] = Value(name, axes | _ROUND)
        self.last.results[state.name] = Value(name, axes)
        return name

    def _next(self, state: State) -> str:
        """What a state becomes, rounded as memory would hold it."""
        axes, shape = self._tile(state)
        value = self.space.name(state.next, self.space.computed(state.next))
        text = value.text
        if computed(state.dtype) is not state.dtype:
            text = from_memory(
                self.space.line(to_memory(text, state.dtype), value.axes | _ROUND, f"{state.name}_rounded").text, state.dtype
            )
        if not axes <= value.axes:
            text = f"tl.broadcast_to({self.space.line(text, value.axes | _ROUND, state.name).text}, {shape})"
        return self.space.line(text, axes | _ROUND, f"{state.name}_next").text

    # ------------------------------------------------------------ steps

    def _folded(self, fold: ColumnFold) -> Value:
        """A fold of a round, one value for each row."""
        value = self.space.name(fold.value, self.space.computed(fold.value))
        value = self.space.line(conversion(value.text, fold.value.dtype, fold.dtype), value.axes, f"{fold.name}_{fold.dtype}")
        if self.column.mask is not None or "column" not in value.axes:
            mask = self.column.mask or f"columns < {self.body.text(self.length)}"
            text = f"tl.where({mask}, {value.text}, {identity_number(fold.combiner, fold.dtype)})"
            value = self.space.line(text, value.axes | _COLUMN, f"{value.text}_inside")
        result = self.space.line(folding(fold.combiner, fold.dtype, value.text), value.axes - _COLUMN, fold.name)
        if computed(fold.dtype) is not fold.dtype:
            rounded = from_memory(to_memory(result.text, fold.dtype), fold.dtype)
            return self.space.line(rounded, result.axes, f"{fold.name}_{fold.dtype}")
        return result

    def _multiplied(self, dot: Dot) -> Value:
        """A product of a round, as its dtype holds it. Where there is no column nothing is added: neither side's padding is read."""
        unit = unit_of(dot.lhs.dtype, dot.rhs.dtype, wide(dot.dtype))
        assert unit is not None
        left = operand_tile(self.space, dot.lhs, "left", ("BLOCK_ROWS", "BLOCK_COLUMNS"), "column", unit)
        right = operand_tile(self.matrix, dot.rhs, "right", ("BLOCK_COLUMNS", "BLOCK_COLUMNS"), "depth", unit)
        axes = _BOTH | _ROUND
        result = self.space.line(dot_text(left, right, None, unit, self.options), axes, dot.name)
        if computed(dot.dtype) is dot.dtype:
            return result
        bits = self.space.line(to_memory(result.text, dot.dtype), axes, f"{dot.name}_{dot.dtype}")
        return self.space.line(from_memory(bits.text, dot.dtype), axes, f"{bits.text}_wide")
