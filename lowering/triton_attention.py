"""Attention as Triton: a program has a tile of queries and goes through the keys in blocks; what it has summed so far is scaled anew where
a larger score comes (Milakov and Gimelshein, arXiv:1805.02867; Dao et al., arXiv:2205.14135). No score is written to memory.

Where there are few tiles and many keys, as when one token is decoded, the keys are split over programs; a second kernel joins their parts.
What is done to queries, keys, values and scores before, and to the result after, is done in registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from coset.ir.dims import Dim, add, ceildiv, multiply, substitute
from coset.ir.op import get_op
from coset.ir.types import BOOL, I64, DType
from coset.lowering.kernel import (
    Apply,
    Attention,
    Buffer,
    Fold,
    IndexValue,
    Load,
    Loop,
    Number,
    Plan,
    Result,
    Rows,
    Scalar,
    Store,
    extents_of,
    reads,
    used_picks,
    writes,
)
from coset.lowering.renaming import replaced
from coset.lowering.triton_body import Body, function_text, wideness
from coset.lowering.triton_choice import Choice
from coset.lowering.triton_dims import count_of, join_loops
from coset.lowering.triton_launch import Emission, Launch, Options, Rounding
from coset.lowering.triton_pointwise import index_limits
from coset.lowering.triton_product import dot_text, operand_tile
from coset.lowering.triton_rows import emit_rows, power_of_two
from coset.lowering.triton_scalars import TYPES, conversion, from_memory, to_memory
from coset.lowering.triton_tiling import narrowest, unit_of, unit_side
from coset.lowering.triton_values import Axis, Scope, Space, Value, dims_of

_ROW, _COLUMN, _DEPTH, _KEY = frozenset({"row"}), frozenset({"column"}), frozenset({"depth"}), frozenset({"key"})
_NAMES = """rows columns query_depth key_depth keys value_keys row_mask column_mask query_depth_mask key_depth_mask key_mask value_mask
    program tile tiles batch split start begin end chunk total top sums query key value dot scores weights base less new mean
    BLOCK_M BLOCK_N BLOCK_D BLOCK_E SPLITS"""
SPLIT_KEYS = 256  # keys of one part at least, where keys are split
SPLITS, UNKNOWN = 64, 16  # parts at most; and where the number of keys is not known


@dataclass(frozen=True)
class Tiling:
    """A program has `m` queries and `n` keys at a time; queries have room for `d` elements, values for `e`."""

    m: int
    n: int
    d: int
    e: int
    warps: int
    splits: int = 1
    stages: int = 2

    @property
    def choice(self) -> Choice:
        """As what is chosen."""
        return Choice((("BLOCK_M", self.m), ("BLOCK_N", self.n), ("SPLITS", self.splits)), self.warps, self.stages)

    def chosen(self, choice: Choice) -> Tiling:
        """The tiles that `choice` says."""
        m, n, splits = (choice[name] for name in ("BLOCK_M", "BLOCK_N", "SPLITS"))
        return replace(self, m=m, n=n, splits=splits, warps=choice.warps, stages=choice.stages)


def choose_tiling(kernel: Attention, options: Options) -> Tiling:
    """The tiles: as large as shared memory and registers of a datacenter GPU hold two stages of."""
    batch, m, keys, k, n = (count_of(loops) for loops in (kernel.batch, kernel.m, kernel.keys, kernel.k, kernel.n))
    assert isinstance(k, int) and isinstance(n, int), "an attention's rows have sizes that are known"
    d, e = max(16, power_of_two(k)), max(16, power_of_two(n))
    bits = max(kernel.key.dtype.bits, kernel.value.dtype.bits, 16)
    narrow = bits == 16 and d + e <= 256
    most, block = (32, 16) if bits == 64 else (128, 64) if narrow else (64, 32)
    rows = unit_side(m, most) if isinstance(m, int) else 64 if narrow else most
    block = unit_side(keys, block)
    warps = 8 if rows * e >= (64 * 128 if narrow else 64 * 64) else 4
    whole = Tiling(rows, block, d, e, warps)
    if not options.splits or not isinstance(m, int) or not isinstance(batch, int) or 0 in (m, batch):
        return whole
    programs = batch * -(-m // rows)
    most_parts = SPLITS if isinstance(keys, int) else UNKNOWN if m <= rows else 1
    if isinstance(keys, int):
        most_parts = min(most_parts, keys // SPLIT_KEYS)
    splits = min(options.processors // programs, most_parts)
    return replace(whole, splits=splits) if splits > 1 else whole


def emit_attention(kernel: Attention, plan: Plan, options: Options, comment: list[str]) -> Emission:
    """One Triton function, or two where the keys are split."""
    query, key = narrowest(kernel.query), narrowest(kernel.key)
    unit = unit_of(query.dtype, key.dtype, kernel.accumulator)
    if unit is query.dtype and unit is key.dtype:
        kernel = replace(kernel, query=query, key=key)
    tiling = choose_tiling(kernel, options)
    choice = options.choice or tiling.choice
    tiling, options = tiling.chosen(choice), options.plain()
    name = "tf32" if unit is not None and unit.name == "f32" and options.tf32 else (unit or kernel.accumulator).name
    if tiling.splits == 1:
        return replace(_Writer(kernel, plan, options, tiling, comment).emission(), unit=name, choice=choice)
    parts = Loop("loop:split", tiling.splits)
    outer = (parts, *kernel.batch, *kernel.m)
    scratch = {
        role: Buffer(f"{kernel.name}_{role}", kernel.accumulator, tuple(loop.extent for loop in loops), "temporary")
        for role, loops in (("sums", (*outer, *kernel.n)), ("total", outer), ("top", outer))
    }
    plan = replace(plan, buffers={**plan.buffers, **{buffer.name: buffer for buffer in scratch.values()}})
    index = tuple(loop.index for loop in outer)
    loads = {
        role: Load(buffer.name, (*index, *(loop.index for loop in kernel.n)) if role == "sums" else index, kernel.accumulator)
        for role, buffer in scratch.items()
    }
    stores = {role: Store(load.buffer, load.index, Result(role, kernel.accumulator)) for role, load in loads.items()}
    first = _Writer(replace(kernel, stores=()), plan, options, tiling, comment).emission(stores)
    second = emit_rows(_joined(kernel, parts, loads), plan, options, ["the parts of the keys as one"])
    return Emission(f"{first.source}\n\n{second.source}", (*first.launches, *second.launches), tuple(scratch.values()), name, choice)


def _joined(kernel: Attention, parts: Loop, loads: dict[str, Load]) -> Rows:
    """Parts about a largest score each as the whole about the largest of all."""
    dtype = kernel.accumulator

    def apply(op: str, *operands: Scalar, to: DType = dtype, **attributes: object) -> Apply:
        return Apply(get_op(f"stablehlo.{op}"), operands, to, tuple(attributes.items()))

    top = Result("top", dtype)
    same = apply("compare", loads["top"], top, to=BOOL, direction="EQ")  # of -inf too: such parts are 0
    scale = apply("exponential", apply("select", same, Number(0.0, dtype), apply("subtract", loads["top"], top)))
    folds = [Fold("top", "maximum", loads["top"], dtype)]
    folds += [Fold(role, "add", apply("multiply", loads[role], scale), dtype) for role in ("total", "sums")]
    total: Scalar = Result("total", dtype)
    keys = count_of(kernel.keys)
    if kernel.safe or not isinstance(keys, int):
        none = apply("compare", total, Number(0.0, dtype), to=BOOL, direction="EQ")
        if not kernel.safe:  # the sum over no key is 0, but the mean over keys of which none is seen is NaN
            none = apply("and", none, apply("compare", IndexValue(keys, I64), Number(0, I64), to=BOOL, direction="EQ"), to=BOOL)
        total = apply("select", none, Number(1.0, dtype), total)
    mean = apply("divide", Result("sums", dtype), total)
    stores = tuple(replace(store, value=replaced(store.value, {"sum": mean})) for store in kernel.stores)
    picks = used_picks(kernel.picks, (store.value for store in stores), ())
    return Rows(f"{kernel.name}_joined", (*kernel.batch, *kernel.m, *kernel.n), (parts,), tuple(folds), stores, (), picks=picks)


class _Writer:
    def __init__(self, kernel: Attention, plan: Plan, options: Options, tiling: Tiling, comment: list[str]) -> None:
        self.kernel, self.options, self.tiling, self.comment = kernel, options, tiling, comment
        values = [*(pick.value for pick in kernel.picks), kernel.query, kernel.key, kernel.score, kernel.value]
        dims = [*dims_of(values, kernel.stores, plan), *([] if kernel.seen is None else [kernel.seen])]
        binding: dict[str, Dim] = {}
        joined: list[tuple[Loop, ...]] = []
        for loops in (kernel.batch, kernel.m, kernel.n, kernel.keys, kernel.k):
            fewer, more = join_loops(loops, [substitute(dim, binding) for dim in dims])
            binding |= more
            joined.append(fewer)
        self.batch, self.m, self.n, self.keys, self.k = map(count_of, joined)
        self.programs = multiply(multiply(ceildiv(self.m, tiling.m), self.batch), tiling.splits)
        extents = extents_of(kernel) | {"loop:split": tiling.splits}
        ends = [add(self.m, tiling.m), tiling.d, tiling.e, add(self.keys, tiling.n), self.programs]
        wide, self.sizes = wideness(index_limits(plan, (*reads(kernel), *writes(kernel)), dims, extents, ends))
        self.body = body = Body(plan, options, wide=wide)
        for name in _NAMES.split():
            body.name(name)
        self.outer, self.inner = Scope(_ROW | _COLUMN | _DEPTH), Scope(_ROW | _COLUMN | _DEPTH | _KEY)
        row = Axis("rows", None if isinstance(self.m, int) and self.m % tiling.m == 0 else "row_mask")
        column = Axis("columns", None if self.n == tiling.e else "column_mask")
        deep = self.k != tiling.d
        whole = isinstance(self.keys, int) and self.keys % tiling.n == 0 and kernel.seen is None and tiling.splits == 1
        both = [self.outer, self.inner]
        key = Axis("keys", None if whole else "key_mask")
        depths = [Axis(f"{side}_depth", f"{side}_depth_mask" if deep else None) for side in ("query", "key")]
        self.query = Space(body, {"row": row, "depth": depths[0]}, both, binding, kernel.picks)
        self.key = Space(body, {"depth": depths[1], "key": key}, both, binding, kernel.picks)
        self.score = Space(body, {"row": row, "key": key}, both, binding, kernel.picks)
        self.value = Space(
            body, {"key": Axis("value_keys", None if whole else "value_mask"), "column": column}, both, binding, kernel.picks
        )
        self.result = Space(body, {"row": row, "column": column}, [self.outer], binding, kernel.picks)
        for space in (self.query, self.key, self.score, self.value, self.result):
            space.number(joined[0], "batch", frozenset())
            space.index("loop:split", "split", frozenset())
        for space in (self.query, self.score, self.result):
            space.number(joined[1], "rows", _ROW)
        for space in (self.value, self.result):
            space.number(joined[2], "columns", _COLUMN)
        for space, name in ((self.key, "keys"), (self.score, "keys"), (self.value, "value_keys")):
            space.number(joined[3], name, _KEY)
        for space, name in ((self.query, "query_depth"), (self.key, "key_depth")):
            space.number(joined[4], name, _DEPTH)

    # ------------------------------------------------------------ the function

    def emission(self, parts: dict[str, Store] | None = None) -> Emission:
        """`parts`: where the sums, the totals and the largest scores of each part go, where the keys are split."""
        tiling, kernel, lines = self.tiling, self.kernel, self.outer.lines
        accumulator = TYPES[kernel.accumulator.name]
        self._place()
        lines.append(f"sums = tl.full([BLOCK_M, BLOCK_E], 0.0, {accumulator})")
        lines.append(f"total = tl.full([BLOCK_M, 1], 0.0, {accumulator})")
        lines.append(f'top = tl.full([BLOCK_M, 1], float("-inf"), {accumulator})')
        self._ends()
        self._step()
        lines.append("for start in range(begin, end, BLOCK_N):")
        lines += [f"    {line}" for line in self.inner.lines]
        if parts is None:
            if kernel.safe or not isinstance(self.keys, int) or self.keys == 0:
                none = "total == 0.0" if kernel.safe else f"(total == 0.0) & ({self.body.text(self.keys)} == 0)"
                lines.append(f"total = tl.where({none}, 1.0, total)")
            lines.append("mean = sums / total")
            self.result.results["sum"] = Value("mean", _ROW | _COLUMN)
            for store in kernel.stores:
                self.result.store(store, _ROW | _COLUMN)
        else:
            for role, axes in (("sums", _ROW | _COLUMN), ("total", _ROW), ("top", _ROW)):
                self.result.results[role] = Value(role, axes)
                self.result.store(parts[role], axes)
        constexprs = [("BLOCK_M", tiling.m), ("BLOCK_N", tiling.n), ("BLOCK_D", tiling.d), ("BLOCK_E", tiling.e)]
        constexprs += [("SPLITS", tiling.splits)] if tiling.splits > 1 else []
        source = function_text(self.body, kernel.name, self.comment, [name for name, _ in constexprs], lines)
        arguments, contracts = self.body.arguments(), self.options.contracts
        numbers, grid = tuple(constexprs), (self.programs,)
        launch = Launch(kernel.name, arguments, grid, numbers, self.sizes, tiling.warps, tiling.stages, contracts)
        return Emission(source, (launch,))

    def _place(self) -> None:
        """Which queries a program has; where masks are causal those that see most begin first."""
        lines, body, tiling = self.outer.lines, self.body, self.tiling
        lines.append("program = tl.program_id(0)" + (f".to({body.index_type})" if body.wide is not False else ""))
        rest = "program"
        if tiling.splits > 1:
            lines.append("split = program % SPLITS")
            rest = "program // SPLITS"
        lines.append(f"tiles = tl.cdiv({body.text(self.m)}, BLOCK_M)")
        one = rest if rest == "program" else f"({rest})"
        tile = rest if self.batch == 1 else f"{one} % tiles"
        lines.append(f"tile = {tile}" if self.kernel.seen is None else f"tile = tiles - 1 - {tile}")
        if self.batch != 1:
            lines.append(f"batch = {rest} // tiles")
        lines.append("rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]")
        lines.append(f"columns = {body.places('BLOCK_E')}[None, :]")
        lines.append(f"query_depth = {body.places('BLOCK_D')}[None, :]")
        lines.append(f"key_depth = {body.places('BLOCK_D')}[:, None]")
        axes = {**self.query.axes, **self.result.axes}
        for name, end in (("row", self.m), ("column", self.n), ("depth", self.k)):
            axis = axes[name]
            lines += [f"{axis.mask} = {axis.index} < {body.text(end)}"] * (axis.mask is not None)
        if self.key.axes["depth"].mask is not None:
            lines.append(f"key_depth_mask = key_depth < {body.text(self.k)}")

    def _ends(self) -> None:
        """Which keys a program goes through."""
        lines, body = self.outer.lines, self.body
        lines.append(f"end = {body.text(self.keys)}")
        if self.kernel.seen is not None:
            text, axes = self.result.dim(self.kernel.seen)
            last = f"tl.max({text})" if axes else text
            lines.append(f"end = tl.minimum(end, {last})")
        if self.tiling.splits > 1:
            lines.append("chunk = tl.cdiv(tl.cdiv(end, SPLITS), BLOCK_N) * BLOCK_N")
            lines.append("begin = split * chunk")
            lines.append("end = tl.minimum(end, begin + chunk)")
        else:
            lines.append("begin = 0")

    def _step(self) -> None:
        """One block of keys."""
        kernel, lines, accumulator = self.kernel, self.inner.lines, self.kernel.accumulator
        lines.append(f"keys = start + {self.body.places('BLOCK_N')}[None, :]")
        lines.append(f"value_keys = start + {self.body.places('BLOCK_N')}[:, None]")
        mask = self.key.axes["key"].mask
        if mask is not None:
            lines.append("key_mask = keys < end")
            lines.append("value_mask = value_keys < end")
        unit = unit_of(kernel.query.dtype, kernel.key.dtype, accumulator)
        assert unit is not None
        query = operand_tile(self.query, kernel.query, "query", ("BLOCK_M", "BLOCK_D"), "depth", unit)
        key = operand_tile(self.key, kernel.key, "key", ("BLOCK_D", "BLOCK_N"), "depth", unit)
        lines.append(f"dot = {dot_text(query, key, None, unit, self.options)}")
        if self.options.rounding is Rounding.EACH and kernel.dtype is not accumulator:
            lines.append(f"dot = {from_memory(to_memory('dot', kernel.dtype), kernel.dtype)}")
        self.score.results["dot"] = Value("dot", _ROW | _KEY)
        score = self.score.name(kernel.score, self.score.computed(kernel.score))
        text = conversion(score.text, kernel.score.dtype, accumulator)
        text = text if score.axes == _ROW | _KEY else f"tl.broadcast_to({text}, [BLOCK_M, BLOCK_N])"
        lines.append(f"scores = {text}" if mask is None else f'scores = tl.where({mask}, {text}, float("-inf"))')
        value_unit = unit_of(kernel.value.dtype, kernel.value.dtype, accumulator)
        assert value_unit is not None
        lines += [
            "new = tl.maximum(top, tl.max(scores, 1, keep_dims=True))",
            'base = tl.where(new == float("-inf"), 0.0, new)',
            "weights = tl.exp(scores - base)",
            "less = tl.exp(top - base)",
            "total = total * less + tl.sum(weights, 1, keep_dims=True)",
            "top = new",
        ]
        value = operand_tile(self.value, kernel.value, "value", ("BLOCK_N", "BLOCK_E"), "key", value_unit)
        weights = "weights" if value_unit is accumulator else f"weights.to({TYPES[value_unit.name]})"
        lines.append(f"sums = {dot_text(Value(weights, _ROW | _KEY), value, 'sums * less', value_unit, self.options)}")
