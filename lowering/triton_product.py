"""Products as Triton: tiles of the result, each a sum of `tl.dot` over blocks of k; what is done to the operands and to the sum is done
in registers. Where there are few tiles and k is long, k is split over programs, and a second kernel adds the parts and stores.

What the matrix units take: f16 and bf16 as they are, 8-bit floats as f16 (or bf16 beside bf16), which holds them exactly, i8 with i32 sums,
f32 in full precision unless `Options.tf32`, f64. Conversions to f32 of both operands from a narrower dtype are left out: the products
are exact in f32 either way. Other integers are summed without matrix units, one k at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from coset.ir.dims import Dim, add, ceildiv, multiply, product, substitute
from coset.ir.types import DTYPES, F32, F64, I8, DType
from coset.lowering.kernel import (
    Apply,
    Buffer,
    Fold,
    Grouped,
    Load,
    Loop,
    Plan,
    Product,
    Result,
    Rows,
    Scalar,
    Store,
    extents_of,
    reads,
    used_picks,
    writes,
)
from coset.lowering.triton_body import Body, function_text, wideness
from coset.lowering.triton_choice import Choice
from coset.lowering.triton_dims import join_loops
from coset.lowering.triton_launch import Emission, Launch, Options
from coset.lowering.triton_pointwise import index_limits
from coset.lowering.triton_rows import emit_rows, power_of_two
from coset.lowering.triton_scalars import TYPES, conversion, number, typed_number
from coset.lowering.triton_values import Axis, Scope, Space, Value, dims_of

_ROW, _COLUMN, _DEPTH = frozenset({"row"}), frozenset({"column"}), frozenset({"depth"})
_STEP = frozenset({"step"})  # what differs between blocks of k, and is one number in each
_NARROW = {"f16": "f16", "bf16": "bf16", "f8e4m3fn": "f8", "f8e5m2": "f8"}
_NAMES = """rows columns step left_k right_k row_mask column_mask left_mask right_mask start program tile tiles_m tiles_n in_group first
    height tile_m tile_n split total left right BLOCK_M BLOCK_N BLOCK_K GROUP CHUNK SPLITS"""
SPLIT_DEPTH = 1024  # k of one part at least, where k is split
SPLITS = 32  # parts at most


@dataclass(frozen=True)
class Tiling:
    """A tile of the result is m by n, summed in blocks of k; `unit`: the dtype that the matrix unit takes, None without one."""

    m: int
    n: int
    k: int
    unit: DType | None
    warps: int
    splits: int = 1
    chunk: int = 0  # of k, a multiple of `k`, where there are several splits
    stages: int = 3

    def choice(self, *, splits: bool = True) -> Choice:
        """As what is chosen; without `splits` where k is never split."""
        numbers = (("BLOCK_M", self.m), ("BLOCK_N", self.n), ("BLOCK_K", self.k), *((("SPLITS", self.splits),) if splits else ()))
        return Choice(numbers, self.warps, self.stages)

    def chosen(self, choice: Choice | None, k: Dim = 0) -> Tiling:
        """The tiles that `choice` says, these where it says nothing else; `k`: how long the sums are."""
        splits = 1 if choice is None else dict(choice.numbers).get("SPLITS", 1)
        if choice is None or choice == self.choice(splits="SPLITS" in dict(choice.numbers)):
            return self
        tiling = replace(self, m=choice["BLOCK_M"], n=choice["BLOCK_N"], k=choice["BLOCK_K"], warps=choice.warps, stages=choice.stages)
        if splits == 1:
            return replace(tiling, splits=1, chunk=0)
        assert isinstance(k, int), "sums of unknown length are not split"
        chunk = -(-k // (splits * tiling.k)) * tiling.k
        return replace(tiling, splits=-(-k // chunk), chunk=chunk)


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


def choose_tiling(m: Dim, n: Dim, k: Dim, batch: Dim, unit: DType | None, options: Options) -> Tiling:
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


def _for_windows(tiling: Tiling, features: Dim) -> Tiling:
    """Shallower blocks of k where only such divide the features, so that each lies in one place of its windows. Where none does, every
    element has an address and bounds of its own: twice the threads hold them."""
    for depth in (tiling.k, 32, 16):
        if depth <= tiling.k and isinstance(features, int) and features % depth == 0:
            return replace(tiling, k=depth)
    return replace(tiling, k=min(tiling.k, 32), warps=8)


def unit_side(dim: Dim, most: int) -> int:
    """A side of a matrix unit's tile for a dim of this size, at most `most`."""
    return max(16, min(most, power_of_two(dim))) if isinstance(dim, int) else most


def _tiles(m: Dim, n: Dim, batch: Dim, sides: tuple[int, int]) -> int:
    assert isinstance(m, int) and isinstance(n, int) and isinstance(batch, int)
    return -(-m // sides[0]) * -(-n // sides[1]) * batch


def emit_product(kernel: Product, plan: Plan, options: Options, comment: list[str]) -> Emission:
    """One Triton function, or two where k is split."""
    lhs, rhs = narrowest(kernel.lhs), narrowest(kernel.rhs)
    unit = unit_of(lhs.dtype, rhs.dtype, kernel.accumulator)
    if unit is not F32:
        kernel = replace(kernel, lhs=lhs, rhs=rhs)
    m, n, k, batch = (product(loop.extent for loop in loops) for loops in (kernel.m, kernel.n, kernel.k, kernel.batch))
    tiling = choose_tiling(m, n, k, batch, unit, options)
    if kernel.windowed and len(kernel.k) > 1:
        tiling = _for_windows(tiling, kernel.k[-1].extent)
    choice = options.choice or tiling.choice()
    tiling, options = tiling.chosen(choice, k), options.plain()
    name = "tf32" if unit is F32 and options.tf32 else (unit or kernel.accumulator).name
    if tiling.splits == 1:
        return replace(ProductWriter(kernel, plan, options, tiling, comment).emission(), unit=name, choice=choice)
    parts = Loop("loop:split", tiling.splits)
    outer = (*kernel.batch, *kernel.m, *kernel.n)
    parts_name = f"{kernel.name}_parts"
    scratch = Buffer(parts_name, kernel.accumulator, (parts.extent, *(loop.extent for loop in outer)), "temporary")
    index = (parts.index, *(loop.index for loop in outer))
    plan = replace(plan, buffers={**plan.buffers, parts_name: scratch})
    whole = Result("sum", kernel.accumulator)
    first = ProductWriter(replace(kernel, stores=(Store(parts_name, index, whole),)), plan, options, tiling, comment).emission()
    fold = Fold("sum", "add", Load(parts_name, index, kernel.accumulator), kernel.accumulator)
    picks = used_picks(kernel.picks, (store.value for store in kernel.stores), ())
    summed = Rows(f"{kernel.name}_sum", outer, (parts,), (fold,), kernel.stores, (), picks=picks)
    second = emit_rows(summed, plan, options, ["the sum of the parts"])
    return Emission(f"{first.source}\n\n{second.source}", (*first.launches, *second.launches), (scratch,), name, choice)


def narrowest(value: Scalar) -> Scalar:
    """`value` without a last conversion that loses nothing: of a narrow float to f32, of i8 to i32."""
    if isinstance(value, Apply) and value.op.name == "stablehlo.convert":
        source = value.operands[0].dtype
        if (value.dtype is F32 and source.name in _NARROW) or (value.dtype is DTYPES["i32"] and source is I8):
            return value.operands[0]
    return value


class ProductWriter:
    """The function of a product, or of one that has its dims, over tiles of rows and columns."""

    def __init__(self, kernel: Product | Grouped, plan: Plan, options: Options, tiling: Tiling, comment: list[str]) -> None:
        self.kernel, self.options, self.tiling, self.comment = kernel, options, tiling, comment
        self.more: tuple[tuple[str, int], ...] = (("GROUP", 8),)  # constexprs beside those of a tile
        dims = dims_of([*(pick.value for pick in kernel.picks), kernel.lhs, kernel.rhs], kernel.stores, plan)
        binding: dict[str, Dim] = {}
        joined: list[tuple[Loop, ...]] = []
        for loops in (kernel.batch, kernel.m, kernel.n, kernel.k):
            fewer, more = join_loops(loops, [substitute(dim, binding) for dim in dims])
            binding |= more
            joined.append(fewer)
        self.batch, self.m, self.n, self.k = (product(loop.extent for loop in loops) for loops in joined)
        extents = extents_of(kernel) | {"loop:split": tiling.splits}
        ends = [add(self.m, tiling.m), add(self.n, tiling.n), add(self.k, tiling.k), self.programs()]
        wide, self.sizes = wideness(index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents, ends))
        self.body = body = Body(plan, options, wide=wide)
        for name in _NAMES.split():
            body.name(name)
        self.outer, self.inner = Scope(_ROW | _COLUMN), Scope(_ROW | _COLUMN | _DEPTH | _STEP)
        row = Axis("rows", self.row_mask())
        column = Axis("columns", self._mask("column_mask", self.n, tiling.n))
        left = Axis("left_k", self._mask("left_mask", self.k, tiling.k))
        right = Axis("right_k", self._mask("right_mask", self.k, tiling.k))
        both = [self.outer, self.inner]
        self.left = Space(body, {"row": row, "depth": left}, both, binding, kernel.picks)
        self.right = Space(body, {"depth": right, "column": column}, both, binding, kernel.picks)
        self.result = Space(body, {"row": row, "column": column}, [self.outer], binding, kernel.picks)
        for space in (self.left, self.right, self.result):
            space.number(joined[0], "batch", frozenset())
            space.index("loop:split", "split", frozenset())
        for space in (self.left, self.result):
            space.number(joined[1], "rows", _ROW)
        for space in (self.right, self.result):
            space.number(joined[2], "columns", _COLUMN)
        self.stride = joined[3][-1].extent if len(joined[3]) > 1 and self._divides(joined[3][-1].extent) else None
        for space, index in ((self.left, "left_k"), (self.right, "right_k")):
            if self.stride is None:
                space.number(joined[3], index, _DEPTH)
            else:
                space.number(joined[3][:-1], "step", _STEP)
                space.index(joined[3][-1].name, index, _DEPTH)

    def _divides(self, extent: Dim) -> bool:
        """True where each block of k lies in one pass of its last loop, so that the other loops have one index in it."""
        return isinstance(extent, int) and extent % self.tiling.k == 0 and self.tiling.k > 1

    def row_mask(self) -> str | None:
        return self._mask("row_mask", self.m, self.tiling.m)

    @staticmethod
    def _mask(name: str, count: Dim, block: int) -> str | None:
        return None if isinstance(count, int) and count % block == 0 else name

    def programs(self) -> Dim:
        tiles = multiply(ceildiv(self.m, self.tiling.m), ceildiv(self.n, self.tiling.n))
        return multiply(multiply(tiles, self.tiling.splits), self.batch)

    # ------------------------------------------------------------ the function

    def emission(self) -> Emission:
        tiling, lines = self.tiling, self.outer.lines
        self.place()
        accumulator = TYPES[self.kernel.accumulator.name]
        zero = number(0, self.kernel.accumulator)
        lines.append(f"total = tl.full([BLOCK_M, BLOCK_N], {zero}, {accumulator})")
        self._depth()
        unit, matrix = tiling.unit or self.kernel.accumulator, tiling.unit is not None
        left = operand_tile(self.left, self.kernel.lhs, "left", ("BLOCK_M", "BLOCK_K"), "depth", unit, matrix=matrix)
        right = operand_tile(self.right, self.kernel.rhs, "right", ("BLOCK_K", "BLOCK_N"), "depth", unit, matrix=matrix)
        sum_ = dot_text(left, right, "total", unit, self.options) if matrix else f"total + {left.text} * {right.text}"
        self.inner.lines.append(f"total = {sum_}")
        lines.append(self.loop())
        lines += [f"    {line}" for line in self.inner.lines]
        self.result.results["sum"] = Value("total", _ROW | _COLUMN)
        for store in self.kernel.stores:
            self.result.store(store, _ROW | _COLUMN)
        constexprs = [("BLOCK_M", tiling.m), ("BLOCK_N", tiling.n), ("BLOCK_K", tiling.k), *self.more]
        if tiling.splits > 1:
            constexprs += [("SPLITS", tiling.splits), ("CHUNK", tiling.chunk)]
        source = function_text(self.body, self.kernel.name, self.comment, [name for name, _ in constexprs], lines)
        grid = (self.programs(),)
        contracts, arguments, numbers = self.options.contracts, self.body.arguments(), tuple(constexprs)
        launch = Launch(self.kernel.name, arguments, grid, numbers, self.sizes, tiling.warps, tiling.stages, contracts)
        return Emission(source, (launch,))

    def place(self) -> None:
        """Which tile a program does: groups of rows of tiles, so that programs that run together read the same operands."""
        lines, body = self.outer.lines, self.body
        lines.append("program = tl.program_id(0)" + (f".to({body.index_type})" if body.wide is not False else ""))
        lines.append(f"tiles_m = tl.cdiv({body.text(self.m)}, BLOCK_M)")
        lines.append(f"tiles_n = tl.cdiv({body.text(self.n)}, BLOCK_N)")
        several = self.batch != 1
        if several or self.tiling.splits > 1:
            lines.append("tile = program % (tiles_m * tiles_n)")
            rest = "program // (tiles_m * tiles_n)"
            if self.tiling.splits > 1:
                lines.append(f"split = {f'({rest}) % SPLITS' if several else rest}")
                rest += " // SPLITS"
            if several:
                lines.append(f"batch = {rest}")
        else:
            lines.append("tile = program")
        lines += [
            "in_group = GROUP * tiles_n",
            "first = tile // in_group * GROUP",
            "height = tl.minimum(tiles_m - first, GROUP)",
            "tile_m = first + tile % in_group % height",
            "tile_n = tile % in_group // height",
            "rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
            "columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
        ]
        lines += [f"row_mask = rows < {body.text(self.m)}"] * (self.result.axes["row"].mask is not None)
        lines += [f"column_mask = columns < {body.text(self.n)}"] * (self.result.axes["column"].mask is not None)

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


def operand_tile(
    space: Space, scalar: Scalar, side: str, block: tuple[str, str], summed: str, unit: DType, *, matrix: bool = True
) -> Value:
    """A tile of an operand in the dtype that it is multiplied in, 0 beyond the end of the axis `summed`. `matrix`: for the matrix unit,
    which takes whole tiles of the shape `block`."""
    axes = frozenset(space.axes)
    mask = space.axes[summed].mask
    zero = number(0, unit)
    if isinstance(scalar, Load) and scalar.dtype is unit:
        value = space.load(scalar, other=zero if mask is not None else None)
    elif scalar.dtype is unit:
        value = space.name(scalar, space.stored(scalar))
    else:
        value = space.name(scalar, space.computed(scalar))
        value = space.line(_as_unit(value.text, scalar.dtype, unit), value.axes, side)
    loaded = isinstance(scalar, Load) and scalar.dtype is unit and summed in value.axes
    if mask is not None and not loaded:
        text = f"tl.where({mask}, {value.text}, {zero or typed_number(0, unit)})"
        value = space.line(text, value.axes | frozenset({summed}), f"{side}_inside")
    if axes - value.axes and matrix:
        value = space.line(f"tl.broadcast_to({value.text}, [{', '.join(block)}])", axes | value.axes, f"{side}_tile")
    return value


def dot_text(left: Value, right: Value, total: str | None, unit: DType, options: Options) -> str:
    """The product of two tiles by the matrix unit, added to `total`."""
    more = "" if total is None else f", {total}"
    if unit is F64:
        return f"tl.dot({left.text}, {right.text}{more}, out_dtype=tl.float64)"
    if unit is F32:
        return f'tl.dot({left.text}, {right.text}{more}, input_precision="{"tf32" if options.tf32 else "ieee"}")'
    return f"tl.dot({left.text}, {right.text}{more})"


def _as_unit(text: str, source: DType, unit: DType) -> str:
    """A computed value as the matrix unit's dtype, which holds it."""
    if unit.kind == "float" and unit.bits < 32:
        return f"{text}.to({TYPES[unit.name]})"
    return conversion(text, source, unit)
