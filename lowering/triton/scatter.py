"""Scatters as Triton. A program has some rows of the result and some of its columns, in registers. Where the keys ascend, it finds by
bisection which updates each of its rows has, and takes the first of each, then the second ones, and so on; where rows have many updates
on the mean, a program has one row, and takes blocks of its updates. A few updates in any order are all compared with each row.

Each row is combined in one order, the same in every run. The atomic form is not: it stores the operand, and combines the updates into
memory as they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from coset.ir.dims import Dim, add, ceildiv, multiply, product, substitute, symbol
from coset.ir.types import BOOL, I32, DType
from coset.lowering.kernels.addresses import join_loops, strides_of
from coset.lowering.kernels.kernel import (
    ATOMIC,
    LOOP,
    Load,
    Loop,
    Pick,
    Plan,
    Pointwise,
    Scatter,
    Store,
    extents_of,
    reads,
    used_picks,
    writes,
)
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.pointwise import block_size, emit_pointwise, flat_choice, index_limits
from coset.lowering.triton.rows import combining, folding, helper_of, identity_number, power_of_two
from coset.lowering.triton.scalars import TYPES, computed, conversion
from coset.lowering.triton.scopes import Axes, TileAxis, TileScope, Value
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import dims_of

TILE = 1024  # elements of a tile
WIDEST = 128  # columns of a tile
MANY = 16  # updates of a row on the mean, from which on a program has one row
_NAMES = """program rows columns row_mask column_mask update inside first end total part step start offsets BLOCK_ROWS BLOCK_COLUMNS
    BLOCK_UPDATES"""
_BITS = {"both": "and", "either": "or"}
_ATOMIC = {"add": "add", "maximum": "max", "minimum": "min", "and": "and", "or": "or"}


@dataclass(frozen=True)
class ScatterTiles:
    """Rows and columns of a program, and the updates of a row that it takes at once."""

    rows: int
    columns: int
    updates: int = 1

    @property
    def choice(self) -> KernelChoice:
        """As what is chosen: a program has one row where it takes several updates at once."""
        height = ("BLOCK_UPDATES", self.updates) if self.updates > 1 else ("BLOCK_ROWS", self.rows)
        return KernelChoice((height, ("BLOCK_COLUMNS", self.columns)))

    @staticmethod
    def chosen(choice: KernelChoice) -> ScatterTiles:
        """The tiles that `choice` says."""
        (name, height), (_, width) = choice.numbers
        return ScatterTiles(1, width, height) if name == "BLOCK_UPDATES" else ScatterTiles(height, width)


def choose_tiles(kernel: Scatter) -> ScatterTiles:
    """The tiles of a scatter that is not atomic."""
    rows, columns, count = (product(loop.extent for loop in loops) for loops in (kernel.rows, kernel.columns, kernel.updates))
    width = min(power_of_two(columns), WIDEST) if isinstance(columns, int) else WIDEST
    deep = isinstance(rows, int) and isinstance(count, int) and kernel.form != LOOP and kernel.combiner != "second"
    if deep and count >= MANY * rows:  # type: ignore[operator]
        return ScatterTiles(1, width, min(power_of_two(count // rows), max(16, TILE // width)))  # type: ignore[operator]
    height = TILE // width
    return ScatterTiles(max(1, min(height, power_of_two(rows))) if isinstance(rows, int) else height, width)


def emit_scatter(kernel: Scatter, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """One Triton function, or two of the atomic form."""
    return _atomic(kernel, plan, options, comment) if kernel.form == ATOMIC else _Writer(kernel, plan, options, comment).emission()


class _Writer:
    def __init__(self, kernel: Scatter, plan: Plan, options: EmitOptions, comment: list[str]) -> None:
        self.kernel, self.plan, self.options, self.comment = kernel, plan, options, comment
        self.choice = options.choice or choose_tiles(kernel).choice
        self.tiles = ScatterTiles.chosen(self.choice)
        self.count, self.length = (product(loop.extent for loop in loops) for loops in (kernel.rows, kernel.updates))
        values = [*(pick.value for pick in kernel.picks), kernel.base, kernel.key, kernel.value]
        dims = dims_of(values, kernel.stores, plan)
        columns, binding = join_loops(kernel.columns, dims)
        self.width = product(loop.extent for loop in columns)
        self.across = ceildiv(self.width, self.tiles.columns)
        ends = [add(self.count, self.tiles.rows), add(self.width, self.tiles.columns), add(self.length, self.tiles.updates)]
        programs = multiply(ceildiv(self.count, self.tiles.rows), self.across)
        wide, self.sizes = wideness(index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents_of(kernel), [*ends, programs]))
        self.grid = (programs,)
        self.body = FunctionBody(plan, options, wide=wide)
        for name in _NAMES.split():
            self.body.name(name)
        self.dtype, self.combiner = working(kernel)
        self._space(columns, binding)

    def _space(self, columns: Sequence[Loop], binding: dict[str, Dim]) -> None:
        """The axes of a program's tiles; what differs from one step of the loop to the next has one more."""
        self.deep = self.tiles.updates > 1
        self.outer = TileScope(frozenset({"column"}) if self.deep else frozenset({"row", "column"}))
        column = TileAxis("columns", _mask("column_mask", self.width, self.tiles.columns))
        if self.deep:
            axes, own = {"update": TileAxis("update", "inside"), "column": column}, frozenset[str]()
            self.moving: Axes = frozenset({"update"})
        else:
            axes, own = {"row": TileAxis("rows", _mask("row_mask", self.count, self.tiles.rows)), "column": column}, frozenset({"row"})
            self.moving = frozenset({"step"}) if self.kernel.form == LOOP else frozenset({"row", "step"})
        self.space = Space(self.body, axes, [self.outer], binding, self.kernel.picks)
        self.space.number(self.kernel.rows, "rows", own)
        self.space.number(columns, "columns", frozenset({"column"}))
        update = "update" if self.body.wide is False else f"tl.cast(update, {self.body.index_type})"
        self.space.number(self.kernel.updates, update, self.moving)

    def emission(self) -> EmittedKernel:
        kernel, lines = self.kernel, self.outer.lines
        self._place()
        total = self.space.name(kernel.base, self.space.computed(kernel.base))
        text = conversion(total.text, kernel.base.dtype, self.dtype)
        kind = TYPES[computed(self.dtype).name]
        lines.append(f"total = tl.broadcast_to({text}, [{'1' if self.deep else 'BLOCK_ROWS'}, BLOCK_COLUMNS]).to({kind})")
        if kernel.form == LOOP:
            self._every()
        elif self.deep:
            self._blocks()
        else:
            self._in_turn()
        lines += ["total = total != 0"] * (kernel.dtype is BOOL)
        self.space.results["sum"] = Value("total", self.outer.axes)
        for store in kernel.stores:
            self.space.store(store, self.outer.axes)
        choice, arguments, contracts = self.choice, self.body.arguments(), self.options.contracts
        source = function_text(self.body, kernel.name, self.comment, [name for name, _ in choice.numbers], lines)
        launch = Launch(kernel.name, arguments, self.grid, choice.numbers, self.sizes, choice.warps, choice.stages, contracts)
        return EmittedKernel(source, (launch,), choice=choice)

    def _place(self) -> None:
        """Which rows and columns a program has."""
        lines, body = self.outer.lines, self.body
        lines.append("program = tl.program_id(0)" + (f".to({body.index_type})" if body.wide is not False else ""))
        row, column = "program", ""
        if self.across != 1:
            row, column = f"(program // {body.text(self.across)})", f"program % {body.text(self.across)} * BLOCK_COLUMNS + "
        lines.append(f"rows = {row}" if self.deep else f"rows = {row} * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]")
        lines.append(f"columns = {column}{self.body.places('BLOCK_COLUMNS')}[None, :]")
        masks = (("row_mask", "rows", self.count), ("column_mask", "columns", self.width))
        wanted = {axis.mask for axis in self.space.axes.values()}
        lines += [f"{mask} = {index} < {body.text(size)}" for mask, index, size in masks if mask in wanted]

    # ------------------------------------------------------------ which updates there are

    def _bounds(self) -> None:
        """The first update of each row, and the one after its last."""
        key = self.kernel.key
        assert isinstance(key, Load), "keys that ascend are in memory"
        (step,) = strides_of(self.plan.buffers[key.buffer])
        given = f"{self.body.pointer(key.buffer)}, {self.body.text(step)}, {self.body.text(self.length)}"
        self.outer.lines.append(f"first = first_at_least({given}, rows)")
        self.outer.lines.append(f"end = first_at_least({given}, rows + 1)")

    def _every(self) -> None:
        """All updates, one after the other, for the rows whose number is its key."""
        with self._step(f"for update in range(0, {self.body.text(self.length)}):") as inner:
            key = self.space.name(self.kernel.key, self.space.computed(self.kernel.key))
            inner.lines.append(f"inside = {key.text} == rows")
            self._combine(self._value(frozenset({"row", "step"})))

    def _in_turn(self) -> None:
        """The updates of each row, one of each at a time; where only the last one stays, that one."""
        self._bounds()
        if self.kernel.combiner == "second":
            begin = ["update = end - 1", "inside = end > first"]
            with self._step("") as inner:
                inner.lines += begin
                self._combine(self._value(self.moving))
            return
        with self._step("for step in range(0, tl.max(end - first)):") as inner:
            inner.lines += ["update = first + step", "inside = update < end"]
            self._combine(self._value(self.moving))

    def _blocks(self) -> None:
        """Blocks of the updates of the one row."""
        self._bounds()
        with self._step("for start in range(first, end, BLOCK_UPDATES):") as inner:
            inner.lines += [f"update = start + {self.body.places('BLOCK_UPDATES')}[:, None]", "inside = update < end"]
            value = self._value(None)
            kept = f"tl.where(inside, {value}, {identity_number(self.combiner, self.dtype)})"
            inner.lines.append(f"part = tl.broadcast_to({kept}, [BLOCK_UPDATES, BLOCK_COLUMNS])")
            part = folding(self.combiner, self.dtype, "part", axis=0)
            inner.lines.append(f"total = {combining(self.combiner, self.dtype, 'total', part)}")

    @contextmanager
    def _step(self, head: str) -> Iterator[TileScope]:
        """A scope for what differs from step to step, in a loop that begins with `head` (nothing: there is one step)."""
        inner = TileScope(self.outer.axes | self.moving | {"step"})
        self.space.enter(inner)
        yield inner
        self.space.leave()
        self.outer.lines += [head, *(f"    {line}" for line in inner.lines)] if head else inner.lines

    def _value(self, where: Axes | None) -> str:
        """The value of the updates at hand, read only where `inside` holds, which differs along `where`; None: that is a mask already."""
        value = self.kernel.value
        condition = None if where is None else Value("inside", where)
        found = self.space.name(value, self.space.computed(value, condition))
        return conversion(found.text, value.dtype, self.dtype)

    def _combine(self, value: str) -> None:
        both = value if self.combiner == "second" else combining(self.combiner, self.dtype, "total", value)
        self.space.scopes[-1].lines.append(f"total = tl.where(inside, {both}, total)")


def working(kernel: Scatter) -> tuple[DType, str]:
    """The dtype and the combiner that a kernel works with: truths are integers of one bit."""
    if kernel.dtype is not BOOL:
        return kernel.dtype, kernel.combiner
    return I32, "second" if kernel.combiner == "second" else _BITS[helper_of(kernel.combiner, BOOL)]


def _mask(name: str, count: Dim, block: int) -> str | None:
    return None if isinstance(count, int) and count % block == 0 else name


# ---------------------------------------------------------------- in any order


def _atomic(kernel: Scatter, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """The operand is stored by one function, and the updates are combined in by the next."""
    (store,) = kernel.stores
    picks = used_picks(kernel.picks, (kernel.base,), ())
    copied = Pointwise(f"{kernel.name}_base", (*kernel.rows, *kernel.columns), (replace(store, value=kernel.base),), picks=picks)
    first = emit_pointwise(copied, plan, options.plain(), ["what the updates are combined into"])
    second = _added(kernel, store, plan, options, comment)
    return replace(second, source=f"{first.source}\n\n{second.source}", launches=(*first.launches, *second.launches))


def _added(kernel: Scatter, store: Store, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    loops = (*kernel.updates, *kernel.columns)
    total = product(loop.extent for loop in loops)
    count = product(loop.extent for loop in kernel.rows)
    place = Pick("pick:row", count, kernel.key)
    rows = {loop.name: symbol(place.name) for loop in kernel.rows}
    index = tuple(substitute(dim, rows) for dim in store.index)
    dims = dims_of([*(pick.value for pick in kernel.picks), kernel.key, kernel.value], (replace(store, value=kernel.value),), plan)
    choice = options.choice or flat_choice(block_size(total, options.processors))
    block = choice["BLOCK"]
    joined, binding = join_loops(loops, dims)
    limits = index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents_of(kernel), [add(total, 4 * block)])
    wide, sizes = wideness(limits)
    body = FunctionBody(plan, options, wide=wide)
    for name in _NAMES.split():
        body.name(name)
    every = frozenset({"all"})
    scope = TileScope(every)
    space = Space(body, {"all": TileAxis("offsets", "inside")}, [scope], binding, (*kernel.picks, place))
    space.number(joined, "offsets", every)
    scope.lines.append(f"offsets = tl.program_id(0).to({body.index_type}) * BLOCK + tl.arange(0, BLOCK)")
    scope.lines.append(f"inside = offsets < {body.text(total)}")
    key = space.name(kernel.key, space.computed(kernel.key))
    bound = space.line(f"({key.text} >= 0) & ({key.text} < {body.text(count)})", key.axes, "hit")
    value = space.name(kernel.value, space.stored(kernel.value, bound))
    pointer, _ = space.pointer(store.buffer, index, every)
    text = f'tl.atomic_{_ATOMIC[kernel.combiner]}({pointer}, {value.text}, mask=inside & {bound.text}, sem="relaxed")'
    scope.lines.append(text)
    source = function_text(body, kernel.name, comment, ["BLOCK"], scope.lines)
    grid = (ceildiv(total, block),)
    launch = Launch(kernel.name, body.arguments(), grid, choice.numbers, sizes, choice.warps, choice.stages, options.contracts)
    return EmittedKernel(source, (launch,), choice=choice)
