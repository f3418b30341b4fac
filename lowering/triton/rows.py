"""Row kernels as Triton: tiles of rows by columns. A row of at most `WHOLE_ROW` elements is held in registers, and all folds and stores
are done on it; a longer one, or one of unknown length, is gone over once for each step that needs the one before it (`triton_online` has
steps that need no pass of their own).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from coset.dialects.hub.tensors import identity
from coset.ir.dims import Dim, add, ceildiv, product, substitute
from coset.ir.types import BOOL, DType
from coset.lowering.kernels.addresses import address, join_loops
from coset.lowering.kernels.index_arithmetic import linear
from coset.lowering.kernels.kernel import ColumnFold, Load, Loop, Plan, Rows, Scalar, Store, extents_of, reads, scalars, writes
from coset.lowering.planning.kinds import TILE, TILE_ALONG_ROWS, WHOLE_ROW
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.online import Exponentials, Online, Squares, kept_tiles, walks, with_reciprocals
from coset.lowering.triton.pointwise import index_limits
from coset.lowering.triton.rereading import AT_ONCE, again_bytes, warps_for
from coset.lowering.triton.scalars import TYPES, beside, computed, conversion, filling, from_memory, to_memory
from coset.lowering.triton.scopes import TileAxis, TileScope, Value
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import dims_of

_ROW, _COLUMN = frozenset({"row"}), frozenset({"column"})
_BOTH = _ROW | _COLUMN
MOST_KEPT = 2
"""Values of each place that a walk hands on with 16 elements a thread: a mean, the squares about it and a sum take 83 registers then
(sm_90), of 8 elements 56, and with more than 64 a processor has no second program of 16 warps."""
AHEAD = 3  # steps of a walk that are under way at most


@dataclass(frozen=True)
class RowTiles:
    """How the index space is cut: rows and columns of a tile; `whole`: the columns of a tile are all there are; `each`: elements of a
    thread at most."""

    rows: int
    columns: int
    whole: bool
    each: int = 16

    @property
    def warps(self) -> int:
        """Warps of 32 threads."""
        return min(16 if self.whole else 32, max(4, self.rows * self.columns // (32 * self.each)))

    @property
    def choice(self) -> KernelChoice:
        """As what is chosen."""
        return KernelChoice((("BLOCK_ROWS", self.rows), ("BLOCK_COLUMNS", self.columns)), self.warps)

    def chosen(self, choice: KernelChoice) -> RowTiles:
        """The tiles that `choice` says: what is whole stays whole."""
        return replace(self, rows=choice["BLOCK_ROWS"], columns=choice["BLOCK_COLUMNS"])


def power_of_two(count: int) -> int:
    """The least power of two that is `count` or more."""
    return 1 << max(count - 1, 0).bit_length()


def choose_tiles(rows: Dim, columns: Dim, options: EmitOptions, *, along_rows: bool, again: int = 0, kept: int = 1) -> RowTiles:
    """The tiles of a kernel; `along_rows`: neighbours in memory are neighbouring rows, so that a tile needs many of them. `again`: bytes of
    each element that are read again, of rows that are gone over several times by programs of which a processor has as many as their warps
    say; `kept`: values of each place that such a walk hands on."""
    some = power_of_two(rows) if isinstance(rows, int) else 1024
    if along_rows:
        height, width = TILE_ALONG_ROWS
        height = max(1, min(some, height))
        width = min(power_of_two(columns), width) if isinstance(columns, int) else width
        return RowTiles(height, width, isinstance(columns, int) and columns <= width)
    if isinstance(columns, int) and columns <= WHOLE_ROW:
        width = power_of_two(columns)
        height = max(1, min(some, TILE // width))
        while height > 1 and isinstance(rows, int) and rows < 2 * height * options.processors:
            height //= 2
        return RowTiles(height, width, True)
    if again and isinstance(rows, int) and isinstance(columns, int):
        each = 16 if kept <= MOST_KEPT else 8
        return RowTiles(1, 32 * each * warps_for(rows, columns * again, options), False, each)
    return RowTiles(1, TILE, False)


def lies_along_rows(
    values: Iterable[Scalar], rows: Sequence[Loop], columns: Sequence[Loop], plan: Plan, binding: Mapping[str, Dim]
) -> bool:
    """True when the elements that `values` read lie next to each other along rows, not along columns."""
    if not rows or not columns:
        return False
    votes = 0
    for value in scalars(*values):
        if isinstance(value, Load):
            place = substitute(address(plan.buffers[value.buffer], value.index), binding)
            votes += (linear(place, rows[-1].name) == 1) - (linear(place, columns[-1].name) == 1)
    return votes > 0


def emit_rows(kernel: Rows, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """One Triton function in which each program does some rows."""
    return _Writer(kernel, plan, options, comment).emission()


class _Writer:
    def __init__(self, kernel: Rows, plan: Plan, options: EmitOptions, comment: list[str]) -> None:
        kernel = with_reciprocals(kernel) if options.contracts else kernel
        self.kernel, self.plan, self.comment = kernel, plan, comment
        self.count = product(loop.extent for loop in kernel.rows)
        self.length = product(loop.extent for loop in kernel.columns)
        stores = (*kernel.row_stores, *kernel.element_stores)
        dims = dims_of([*(pick.value for pick in kernel.picks), *(fold.value for fold in kernel.folds)], stores, plan)
        self.rows, binding = join_loops(kernel.rows, dims)
        self.columns, more = join_loops(kernel.columns, [substitute(dim, binding) for dim in dims])
        binding |= more
        self.binding = binding
        along = lies_along_rows((fold.value for fold in kernel.folds), self.rows, self.columns, plan, binding)
        again, kept = again_bytes(kernel, plan, contracts=options.contracts), kept_tiles(kernel.folds, contracts=options.contracts)
        tiles = choose_tiles(self.count, self.length, options, along_rows=along, again=again, kept=kept)
        self.choice = options.choice or tiles.choice
        self.tiles = tiles.chosen(self.choice)
        extents = extents_of(kernel)
        ends = [add(self.count, self.tiles.rows), add(self.length, self.tiles.columns)]
        wide, self.sizes = wideness(index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents, ends))
        self.body = FunctionBody(plan, options, wide=wide)
        self.online: dict[str, Online] = {}
        self.shares: dict[DType, str] = {}
        self.taken = 0  # walks over the columns
        self.scope = TileScope(_BOTH if self.tiles.whole else _ROW)
        masks = [None if self.tiles.rows == 1 else self._mask("row_mask", self.count, self.tiles.rows)]
        masks.append(self._mask("column_mask", self.length, self.tiles.columns))
        axes = {"row": TileAxis("rows", masks[0]), "column": TileAxis("columns", masks[1])}
        self.space = Space(self.body, axes, [self.scope], binding, kernel.picks)
        for name in ("rows", "columns", "row_mask", "column_mask", "start", "back", "BLOCK_ROWS", "BLOCK_COLUMNS"):
            self.body.name(name)
        self.space.number(self.rows, "rows", _ROW)
        self.space.number(self.columns, "columns", _COLUMN)

    @staticmethod
    def _mask(name: str, count: Dim, block: int) -> str | None:
        return None if isinstance(count, int) and count and count % block == 0 else name

    # ------------------------------------------------------------ the function

    def emission(self) -> EmittedKernel:
        lines, tiles = self.scope.lines, self.tiles
        program = "tl.program_id(0)" if self.body.wide is False else f"tl.program_id(0).to({self.body.index_type})"
        lines.append(f"rows = {program} * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]")
        if self.space.axes["row"].mask is not None:
            lines.append(f"row_mask = rows < {self.body.text(self.count)}")
        if tiles.whole:
            self._columns(self.scope, "")
            for fold in self.kernel.folds:
                self.space.results[fold.name] = self._folded(fold, self._part(fold))
        else:
            passes, self.online = walks(self.kernel.folds, contracts=self.body.options.contracts)
            for folds in passes:
                self._pass(folds)
        for store in self.kernel.row_stores:
            self.space.store(store, _ROW)
        if tiles.whole:
            self._element_stores()
        elif self.kernel.element_stores:
            self._begin()
            self._element_stores()
            self._end([store.value for store in self.kernel.element_stores])
        choice = self.choice
        source = function_text(self.body, self.kernel.name, self.comment, [name for name, _ in choice.numbers], lines)
        grid = (ceildiv(self.count, tiles.rows),)
        contracts = self.body.options.contracts
        arguments = self.body.arguments()
        launch = Launch(self.kernel.name, arguments, grid, choice.numbers, self.sizes, choice.warps, choice.stages, contracts)
        return EmittedKernel(source, (launch,), choice=choice)

    def _columns(self, scope: TileScope, start: str) -> None:
        scope.lines.append(f"columns = {start}{self.body.places('BLOCK_COLUMNS')}[None, :]")
        if self.space.axes["column"].mask is not None:
            scope.lines.append(f"column_mask = columns < {self.body.text(self.length)}")

    def _element_stores(self) -> None:
        for store in self.kernel.element_stores:
            self.space.store(store, _BOTH, passing=self._is_passing(store))

    def _is_passing(self, store: Store) -> bool:
        """True where a cache should not keep what is stored: it holds rows that are read again, and less than there is of this."""
        cache = self.body.options.cache
        if self.tiles.whole or not cache or not isinstance(self.count, int) or not isinstance(self.length, int):
            return False
        return self.count * self.length * self.body.plan.buffers[store.buffer].dtype.bytes > cache

    # ------------------------------------------------------------ folds

    def _part(self, fold: ColumnFold) -> Value:
        """A fold's value on a tile, the identity where there is no column."""
        source = fold.value.dtype
        value = self.space.name(fold.value, self.space.computed(fold.value))
        text = conversion(value.text, source, fold.dtype)
        value = self.space.line(text, value.axes, f"{fold.name}_{fold.dtype}")
        if self.space.axes["column"].mask is None and "column" in value.axes:
            return value
        mask = self.space.axes["column"].mask or f"columns < {self.body.text(self.length)}"
        return self.space.line(
            f"tl.where({mask}, {value.text}, {identity_number(fold.combiner, fold.dtype)})", value.axes | _COLUMN, f"{value.text}_inside"
        )

    def _folded(self, fold: ColumnFold, value: Value) -> Value:
        """The values of a tile's columns as one."""
        text = folding(fold.combiner, fold.dtype, value.text)
        result = self.space.line(text, value.axes & _ROW, fold.name)
        if computed(fold.dtype) is not fold.dtype:
            rounded = from_memory(to_memory(result.text, fold.dtype), fold.dtype)
            return self.space.line(rounded, result.axes, f"{fold.name}_{fold.dtype}")
        return result

    @property
    def _place(self) -> str:
        """What a walk counts: every other one goes to where the one before it came from, since a cache has what was read last."""
        return "back" if self.taken % 2 == 0 else "start"

    def _begin(self) -> None:
        """Begin a walk over the columns."""
        inner = TileScope(_BOTH)
        self.space.enter(inner)
        self.taken += 1
        if self._place == "back":
            inner.lines.append(f"start = (tl.cdiv({self.body.text(self.length)}, BLOCK_COLUMNS) - 1) * BLOCK_COLUMNS - back")
        self._columns(inner, "start + ")

    def _end(self, values: Sequence[Scalar]) -> None:
        inner = self.space.leave()
        end, stages = self.body.text(self.length), self._ahead(inner.lines, values)
        walk = f"tl.range(0, {end}, BLOCK_COLUMNS, num_stages={stages})" if stages > 1 else f"range(0, {end}, BLOCK_COLUMNS)"
        self.scope.lines.append(f"for {self._place} in {walk}:")
        self.scope.lines += [f"    {line}" for line in inner.lines]

    def _ahead(self, lines: Sequence[str], values: Sequence[Scalar]) -> int:
        """How many steps of a walk are under way, so that a program of many elements does not wait for each step's: as many as its share of
        shared memory holds, where the machine is known to copy there past the registers; a load is taken for one of 4 bytes. A program that
        has a processor alone waits for its own barriers then (softmax of 2048 x 65536 on an H200: 377 for 348 us); what does not lie along
        the columns (the scale of a channel) would be copied element by element."""
        if not all(self._lies_along(value) for value in scalars(*values) if isinstance(value, Load)):
            return 1
        loads = sum("tl.load(" in line for line in lines)
        room = self.body.options.bulk * self.choice.warps // AT_ONCE
        return min(AHEAD, room // (4 * loads * self.tiles.rows * self.tiles.columns)) if loads and self.choice.warps < AT_ONCE else 1

    def _lies_along(self, load: Load) -> bool:
        """True for a load whose neighbours along the columns are neighbours in memory, and for one that is the same for all columns."""
        place = substitute(address(self.plan.buffers[load.buffer], load.index), self.binding)
        return linear(place, self.columns[-1].name) in (0, 1)

    def _pass(self, folds: list[ColumnFold]) -> None:
        """One loop over the columns: a partial result for each place of a tile, then one fold of these."""
        partial = {fold.name: self._partial(fold) for fold in folds if fold.name not in self.online}
        parts = {fold.name: self._online_parts(self.online[fold.name], partial) for fold in folds if fold.name in self.online}
        self._begin()
        inner = self.space.scopes[-1]
        kinds = {self.online[name].fold.dtype for name in parts if isinstance(self.online[name], Squares)}
        self.shares = {kind: self.body.name("share") for kind in sorted(kinds, key=str)}
        for kind, name in self.shares.items():  # of the mean so far, that of this step's value
            inner.lines.append(f"{name} = 1.0 / tl.cast({self._place} // BLOCK_COLUMNS + 1, {TYPES[kind.name]})")
        for name, names in parts.items():  # before the largest so far is replaced
            self._step(self.online[name], names)
        for fold in folds:
            if fold.name in partial:
                so_far, value = partial[fold.name], self._part(fold)
                inner.lines.append(f"{so_far} = {combining(fold.combiner, fold.dtype, so_far, value.text)}")
        self._end([fold.value for fold in folds])
        for fold in folds:
            if fold.name in partial:
                self.space.results[fold.name] = self._folded(fold, Value(partial[fold.name], _ROW))
            else:
                self.space.results[fold.name] = self._joined(self.online[fold.name], parts[fold.name])

    def _partial(self, fold: ColumnFold) -> str:
        """A tile of the fold's identity."""
        kind = TYPES[computed(fold.dtype).name]
        return self._tile(f"{fold.name}_so_far", beginning(fold.combiner, fold.dtype), kind)

    def _tile(self, hint: str, start: str, kind: str) -> str:
        name = self.body.name(hint)
        self.scope.lines.append(f"{name} = tl.full([BLOCK_ROWS, BLOCK_COLUMNS], {start}, {kind})")
        return name

    # ------------------------------------------------------------ folds about a value that is not known yet

    def _online_parts(self, one: Online, partial: Mapping[str, str]) -> tuple[str, ...]:
        """The tiles that a fold keeps: for exponentials the sum about the largest so far, and that; for squares the sum about the mean so
        far, that, and how many there were where that is not the same everywhere."""
        kind, name = TYPES[one.fold.dtype.name], one.fold.name
        if isinstance(one, Exponentials):
            return self._tile(f"{name}_so_far", "0.0", kind), partial[one.largest]
        counted = ("count",) if self.space.axes["column"].mask is not None else ()
        return tuple(self._tile(f"{name}_{word}", "0.0", kind) for word in ("so_far", "mean", *counted))

    def _step(self, one: Online, names: tuple[str, ...]) -> None:
        """A tile more. Of exp(x - m) and exp(m - x) one is at most 1, and the other is not needed."""
        value = self.space.name(one.value, self.space.computed(one.value))
        lines = self.space.scopes[-1].lines
        mask = self.space.axes["column"].mask

        def kept(text: str, old: str) -> str:
            return f"tl.where({mask}, {text}, {old})" if mask is not None else text

        if isinstance(one, Exponentials):
            so_far, largest = names
            less = self.body.name("less")
            lines.append(f"{less} = tl.exp(tl.where({value.text} == {largest}, 0.0, -tl.abs({value.text} - {largest})))")
            grown = f"tl.where({value.text} > {largest}, {so_far} * {less} + 1.0, {so_far} + {less})"
            lines.append(f"{so_far} = {kept(grown, so_far)}")
            return
        so_far, mean, *counts = names
        off, share = self.body.name("off"), self.shares[one.fold.dtype]
        lines.append(f"{off} = {value.text} - {mean}")
        lines.append(f"{mean} = {kept(f'{mean} + {off} * {share}', mean)}")
        lines.append(f"{so_far} = {kept(f'{so_far} + {off} * ({value.text} - {mean})', so_far)}")
        lines += [f"{count} = {kept(f'{count} + 1.0', count)}" for count in counts]

    def _joined(self, one: Online, names: tuple[str, ...]) -> Value:
        """The parts of a row about the value that is known now; a place that had no element has no part."""
        if isinstance(one, Exponentials):
            so_far, largest = names
            top = self.space.results[one.largest]
            text = f"tl.where({so_far} == 0.0, 0.0, {so_far} * tl.exp({largest} - {top.text}))"
        else:
            so_far, mean, *counts = names
            center = self.space.name(one.center, self.space.computed(one.center))
            off = self.body.name("off")
            self.scope.lines.append(f"{off} = {mean} - {center.text}")
            text = "".join(f"tl.where({count} == 0.0, 0.0, {so_far} + {count} * ({off} * {off}))" for count in counts)
            if not counts:
                assert isinstance(self.length, int)
                text = f"{so_far} + {float(self.length // self.tiles.columns)} * ({off} * {off})"
        name = self.body.name(f"{one.fold.name}_parts")
        self.scope.lines.append(f"{name} = {text}")
        return self._folded(one.fold, Value(name, _ROW))


def identity_number(combiner: str, dtype: DType) -> str:
    """What changes no fold, as a value of `dtype` beside others."""
    return beside(identity(combiner, dtype).item(), dtype)


def beginning(combiner: str, dtype: DType) -> str:
    """The same as the number that a tile is filled with."""
    value = identity(combiner, dtype).item()
    return filling(value, dtype) or (str(int(value)) if dtype.kind != "float" else repr(value))


def helper_of(combiner: str, dtype: DType) -> str:
    """The name of the helper that folds two elements; those of bool are integers there."""
    if dtype is BOOL:
        return "both" if combiner in ("and", "multiply", "minimum") else "either"
    words = {"add": "added", "multiply": "multiplied", "and": "both", "or": "either"}
    words |= {"maximum": "largest", "minimum": "smallest"} if dtype.kind == "float" else {
        "maximum": "largest_integer", "minimum": "smallest_integer"}  # fmt: skip
    return words[combiner]


def combining(combiner: str, dtype: DType, a: str, b: str) -> str:
    """Two partial results as one."""
    if dtype is BOOL:
        return f"{a} {'&' if combiner in ('and', 'multiply', 'minimum') else '|'} {b}"
    float_ = dtype.kind == "float"
    forms = {
        "add": f"{a} + {b}", "multiply": f"{a} * {b}", "and": f"{a} & {b}", "or": f"{a} | {b}",
        "maximum": f"largest({a}, {b})" if float_ else f"tl.maximum({a}, {b})",
        "minimum": f"smallest({a}, {b})" if float_ else f"tl.minimum({a}, {b})",
    }  # fmt: skip
    return forms[combiner]


def folding(combiner: str, dtype: DType, value: str, *, axis: int = 1) -> str:
    """The columns (or, along axis 0, the rows) of a tile as one."""
    if dtype is BOOL:
        return f"tl.reduce({value}.to(tl.int32), {axis}, {helper_of(combiner, dtype)}, keep_dims=True) != 0"
    if combiner == "add":
        narrow = dtype.kind != "float" and dtype.bits < 32
        return f"tl.sum({value}, {axis}, keep_dims=True)" + (f".to({TYPES[dtype.name]})" if narrow else "")
    return f"tl.reduce({value}, {axis}, {helper_of(combiner, dtype)}, keep_dims=True)"


__all__ = [
    "WHOLE_ROW", "RowTiles", "beginning", "choose_tiles", "combining", "emit_rows", "folding", "helper_of", "identity_number",
    "lies_along_rows",
]  # fmt: skip
