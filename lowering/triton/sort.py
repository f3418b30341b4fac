"""Sorts as Triton: a program holds some rows as integers, each the rank of an element above its place, so that no two are equal and the
order is stable; they are sorted in registers, and what stands at each place is read again. Keys of 64 bits take two rounds, one for each
half. Of first elements alone, the network drops what cannot be among them.

Ranks of floats: the bits, turned round below zero (Knuth, TAOCP 3, 5.2.5 exercise 8, on the sign). Unless all bits count, both zeros are
one and NaN is above all.
"""

from __future__ import annotations

from coset.ir.dims import Dim, add, ceildiv, product
from coset.ir.types import BOOL, DType
from coset.lowering.kernels.addresses import join_loops
from coset.lowering.kernels.kernel import Plan, Sort, extents_of, reads, writes
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.pointwise import index_limits
from coset.lowering.triton.rows import power_of_two
from coset.lowering.triton.scalars import computed
from coset.lowering.triton.scopes import TileAxis, TileScope
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import dims_of

TILE = 1024  # elements of a tile of several rows
_BOTH = frozenset({"row", "column"})
_NAMES = "rows columns row_mask column_mask front front_mask key rank high low packed order turn BLOCK_ROWS BLOCK_COLUMNS BLOCK_FRONT"


def emit_sort(kernel: Sort, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """One Triton function in which each program sorts some rows."""
    return _Writer(kernel, plan, options, comment).emission()


class _Writer:
    def __init__(self, kernel: Sort, plan: Plan, options: EmitOptions, comment: list[str]) -> None:
        self.kernel, self.options, self.comment = kernel, options, comment
        length, count = kernel.column.extent, product(loop.extent for loop in kernel.front)
        assert isinstance(length, int) and isinstance(count, int)
        self.length, self.taken, self.count = length, count, product(loop.extent for loop in kernel.rows)
        self.width, self.front = power_of_two(length), max(2, power_of_two(count))  # of one element, not every Triton has a network
        height = _height(self.count, self.width, options)
        self.choice = options.choice or KernelChoice((("BLOCK_ROWS", height),), min(16, max(4, height * self.width // 256)))
        self.height = self.choice["BLOCK_ROWS"]
        dims = dims_of([*(pick.value for pick in kernel.picks), kernel.key, *kernel.values], kernel.stores, plan)
        rows, binding = join_loops(kernel.rows, dims)
        ends: list[Dim] = [add(self.count, self.height), self.width]
        wide, self.sizes = wideness(index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents_of(kernel), ends))
        self.body = FunctionBody(plan, options, wide=wide)
        for name in _NAMES.split():
            self.body.name(name)
        self.scope = TileScope(_BOTH)
        row = TileAxis("rows", None if isinstance(self.count, int) and self.count % self.height == 0 else "row_mask")
        columns = TileAxis("columns", "column_mask" if self.width != length else None)
        front = TileAxis("front", "front_mask" if self.front != count else None)
        self.keys, self.result = (
            Space(self.body, {"row": row, "column": axis}, [self.scope], binding, kernel.picks) for axis in (columns, front)
        )
        for space in (self.keys, self.result):
            space.number(rows, "rows", frozenset({"row"}))
        wider = "" if wide is False else f".to({self.body.index_type})"  # ranks stay as they are
        self.keys.number((kernel.column,), f"columns{wider}", frozenset({"column"}))
        self.result.number((kernel.column,), f"order{wider}", _BOTH)
        self.result.number(kernel.front, f"front{wider}", frozenset({"column"}))

    def emission(self) -> EmittedKernel:
        kernel, lines = self.kernel, self.scope.lines
        program = "tl.program_id(0)" if self.body.wide is False else f"tl.program_id(0).to({self.body.index_type})"
        lines.append(f"rows = {program} * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]")
        if self.keys.axes["row"].mask is not None:
            lines.append(f"row_mask = rows < {self.body.text(self.count)}")
        lines.append("columns = tl.arange(0, BLOCK_COLUMNS)[None, :]")
        lines += [f"column_mask = columns < {self.length}"] * (self.keys.axes["column"].mask is not None)
        self._order()
        lines.append("front = tl.arange(0, BLOCK_FRONT)[None, :]")
        lines += [f"front_mask = front < {self.taken}"] * (self.result.axes["column"].mask is not None)
        for place, value in enumerate(kernel.values):
            self.result.results[f"sorted{place}"] = self.result.name(value, self.result.computed(value))
        for store in kernel.stores:
            self.result.store(store, _BOTH)
        constexprs = (("BLOCK_ROWS", self.height), ("BLOCK_COLUMNS", self.width), ("BLOCK_FRONT", self.front))
        source = function_text(self.body, kernel.name, self.comment, [name for name, _ in constexprs], lines)
        grid, arguments, contracts = (ceildiv(self.count, self.height),), self.body.arguments(), self.options.contracts
        choice = self.choice
        launch = Launch(kernel.name, arguments, grid, constexprs, self.sizes, choice.warps, choice.stages, contracts)
        return EmittedKernel(source, (launch,), choice=choice)

    # ------------------------------------------------------------ the order

    def _order(self) -> None:
        """`order`: where the element that belongs at each place of the front stands."""
        dtype = self.kernel.key.dtype
        turned, backward = self.kernel.direction in ("LE", "GE"), self.kernel.direction in ("GT", "GE")
        lines = self.scope.lines
        rank = self._rank(dtype)
        lines.append(f"rank = tl.broadcast_to({rank}, [BLOCK_ROWS, BLOCK_COLUMNS])")
        lines += ["rank = ~rank"] * backward
        turn = f"{self.length - 1} - columns" if turned else "columns"
        mask = self.keys.axes["column"].mask
        inside = mask or "columns >= 0"
        if dtype.bits < 64:
            lines.append(f"order = first_of_ranks(rank, {turn}, {inside}, BLOCK_FRONT)")
            lines += [f"order = {self.length - 1} - order"] * turned
            return
        # a round by the lower half, as an unsigned number, gives places; one by the upper half of what stands there gives their order
        lines.append("low = (rank ^ 2147483648).to(tl.int32)")
        lines.append(f"turn = first_of_ranks(low, {turn}, {inside}, BLOCK_COLUMNS)")
        lines += [f"turn = {self.length - 1} - turn"] * turned
        lines += [f"turn = tl.where({mask}, turn, columns)"] * (mask is not None)
        lines.append("high = tl.gather((rank >> 32).to(tl.int32), turn, 1)")
        lines.append(f"order = first_of_ranks(high, columns, {inside}, BLOCK_FRONT)")
        lines.append("order = tl.gather(turn, tl.minimum(order, BLOCK_COLUMNS - 1), 1)")

    def _rank(self, dtype: DType) -> str:
        """A key as a signed integer of 32 or 64 bits in the order of the keys."""
        space, key = self.keys, self.kernel.key
        if dtype.kind != "float":
            value = space.name(key, space.computed(key))
            if dtype is BOOL or dtype.bits < 32:
                return f"{value.text}.to(tl.int32)"
            signed = f"{value.text}.to(tl.int{dtype.bits}, bitcast=True)"
            return value.text if dtype.kind == "int" else f"{signed} ^ {-(1 << dtype.bits - 1)}"
        if self.kernel.total:
            value = space.name(key, space.stored(key))
            bits = space.line(f"{value.text}.to(tl.int{dtype.bits}, bitcast=True)", value.axes, "bits")
            bits = space.line(f"{bits.text}.to(tl.int32)", bits.axes, "bits") if dtype.bits < 32 else bits
            return f"{bits.text} ^ (({bits.text} >> {dtype.bits - 1}) & {(1 << dtype.bits - 1) - 1})"
        value = space.name(key, space.computed(key))
        return f"rank_of_{'f64' if computed(dtype).bits == 64 else 'f32'}({value.text})"


def _height(count: Dim, width: int, options: EmitOptions) -> int:
    """Rows of a program: a power of two, fewer where the machine would not be full."""
    height = max(1, TILE // width)
    if isinstance(count, int):
        height = max(1, min(height, power_of_two(count)))
        while height > 1 and count < 2 * height * options.processors:
            height //= 2
    return height
