"""The text of a kernel of attention: a tile of queries that goes through the keys in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

from coset.ir.dims import Dim, add, ceildiv, multiply, substitute, subtract
from coset.ir.types import F32
from coset.lowering.kernels.addresses import count_of, join_loops
from coset.lowering.kernels.kernel import Attention, Loop, Plan, Scalar, Store, extents_of, reads, writes
from coset.lowering.triton.attention_tiling import AttentionTiling, units_of
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.copies import TileSide, used_lines
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch, Rounding
from coset.lowering.triton.operand_tiles import dot_text, operand_tile
from coset.lowering.triton.pointwise import index_limits
from coset.lowering.triton.scalars import TYPES, conversion, filling, from_memory, to_memory
from coset.lowering.triton.scopes import TileAxis, TileScope, Value
from coset.lowering.triton.scores import all_seen, unscaled
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import dims_of

_ROW, _COLUMN, _DEPTH, _KEY = frozenset({"row"}), frozenset({"column"}), frozenset({"depth"}), frozenset({"key"})
_NAMES = """ahead later rows columns query_depth key_depth keys value_keys row_mask column_mask query_depth_mask key_depth_mask key_mask
    value_mask program tile tiles batch split start begin end chunk total top sums query key value dot scores weights base less new mean
    BLOCK_M BLOCK_N BLOCK_D BLOCK_E SPLITS"""


class AttentionWriter:
    """The function of one attention, over tiles of queries."""

    def __init__(self, kernel: Attention, plan: Plan, options: EmitOptions, tiling: AttentionTiling, comment: list[str]) -> None:
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
        self.body = body = FunctionBody(plan, options, wide=wide)
        for name in [*_NAMES.split(), *(["row_start"] if tiling.bulk else [])]:
            body.name(name)
        self.outer = TileScope(_ROW | _COLUMN | _DEPTH)
        self.scores, self.factor = self._scores()
        row = TileAxis("rows", None if isinstance(self.m, int) and self.m % tiling.m == 0 else "row_mask")
        column = TileAxis("columns", None if self.n == tiling.e else "column_mask")
        deep = self.k != tiling.d
        self.key_axis, self.value_axis = TileAxis("keys", None), TileAxis("value_keys", None)
        depths = [TileAxis(f"{side}_depth", f"{side}_depth_mask" if deep else None) for side in ("query", "key")]
        self.query, self.key, self.score, self.value, self.result = [
            Space(body, axes, [self.outer], binding, kernel.picks)
            for axes in (
                {"row": row, "depth": depths[0]},
                {"depth": depths[1], "key": self.key_axis},
                {"row": row, "key": self.key_axis},
                {"key": self.value_axis, "column": column},
                {"row": row, "column": column},
            )
        ]
        self._number_indices(joined)
        if tiling.bulk:
            self._copy_operands(joined)

    def _number_indices(self, joined: Sequence[tuple[Loop, ...]]) -> None:
        """Say what the index of each loop is in the spaces of operands, scores and results."""
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

    def _copy_operands(self, joined: Sequence[tuple[Loop, ...]]) -> None:
        """Read by bulk copies what can be."""
        kernel, tiling = self.kernel, self.tiling
        across, inner = TileSide(joined[1], "BLOCK_M", tiling.m, "row_start"), TileSide(joined[4], "BLOCK_D", tiling.d, "0")
        along, broad = TileSide(joined[3], "BLOCK_N", tiling.n, "start"), TileSide(joined[2], "BLOCK_E", tiling.e, "0")
        compared = replace(along, start="ahead") if tiling.ahead else along
        for space, scalar, sides in (
            (self.query, kernel.query, (across, inner)),
            (self.key, kernel.key, (inner, compared)),
            (self.value, kernel.value, (along, broad)),
        ):
            space.copy(scalar, joined[0], sides)

    def _scores(self) -> tuple[tuple[Scalar, Scalar], float]:
        """The scores where all keys of a block are seen and where not, and the factor that both lack."""
        kernel = self.kernel
        scores = [kernel.score, kernel.score]
        if kernel.seen is not None and len(kernel.keys) == 1:
            (key,) = kernel.keys
            scores[0] = all_seen(kernel.score, subtract(subtract(kernel.seen, 1), key.index), extents_of(kernel))
        found = [unscaled(score) for score in scores]
        same = found[0].factor == found[1].factor and kernel.accumulator is F32 and self.options.contracts
        return (found[0].value, found[1].value) if same else (scores[0], scores[1]), found[0].factor if same else 1.0

    # ------------------------------------------------------------ the function

    def emission(self, parts: dict[str, Store] | None = None) -> EmittedKernel:
        """`parts`: where the sums, the totals and the largest scores of each part go, where the keys are split."""
        tiling, kernel, lines = self.tiling, self.kernel, self.outer.lines
        accumulator = TYPES[kernel.accumulator.name]
        self._place()
        lines.append(f"sums = tl.full([BLOCK_M, BLOCK_E], 0.0, {accumulator})")
        lines.append(f"total = tl.full([BLOCK_M, 1], 0.0, {accumulator})")
        lines.append(f'top = tl.full([BLOCK_M, 1], float("-inf"), {accumulator})')
        self._ends()
        for begin, end, masked in self._passes():
            if tiling.ahead and not masked:
                self._first(begin, end)
                inner = self._step_ahead(end)
            else:
                inner = self._step(masked=masked)
            lines.append(f"for start in range({begin}, {end}, BLOCK_N):")
            lines += [f"    {line}" for line in inner.lines]
        if parts is None:
            if kernel.safe or not isinstance(self.keys, int) or self.keys == 0:
                none = "total == 0.0" if kernel.safe else f"(total == 0.0) & ({self.body.text(self.keys)} == 0)"
                lines.append(f"total = tl.where({none}, 1.0, total)")
            lines.append("mean = sums / total")
            self.result.results["sum"] = Value("mean", _ROW | _COLUMN)
            for store in kernel.stores:
                self.result.store(store, _ROW | _COLUMN)
        else:
            top = "top" if self.factor == 1.0 else f"top * {filling(self.factor, kernel.accumulator)}"
            for role, text, axes in (("sums", "sums", _ROW | _COLUMN), ("total", "total", _ROW), ("top", top, _ROW)):
                self.result.results[role] = self.result.line(text, axes, role)
                self.result.store(parts[role], axes)
        constexprs = [("BLOCK_M", tiling.m), ("BLOCK_N", tiling.n), ("BLOCK_D", tiling.d), ("BLOCK_E", tiling.e)]
        constexprs += [("SPLITS", tiling.splits)] if tiling.splits > 1 else []
        lines = used_lines(lines) if tiling.bulk else lines
        source = function_text(self.body, kernel.name, self.comment, [name for name, _ in constexprs], lines)
        arguments, contracts = self.body.arguments(), self.options.contracts
        numbers, grid = tuple(constexprs), (self.programs,)
        launch = Launch(kernel.name, arguments, grid, numbers, self.sizes, tiling.warps, tiling.stages, contracts)
        return EmittedKernel(source, (launch,))

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
        lines += ["row_start = tile * BLOCK_M"] if tiling.bulk else []
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
        """Which keys a program goes through, and up to which ones in whole blocks that all its queries see."""
        lines, body, seen = self.outer.lines, self.body, self.kernel.seen
        lines.append(f"end = {body.text(self.keys)}")
        least = "end"
        if seen is not None:
            text, axes = self.result.dim(seen)
            lines.append(f"end = tl.minimum(end, {f'tl.max({text})' if axes else text})")
            least = f"tl.minimum(end, {f'tl.min({text})' if axes else text})"
        if self.tiling.splits > 1:
            lines.append("chunk = tl.cdiv(tl.cdiv(end, SPLITS), BLOCK_N) * BLOCK_N")
            lines.append("begin = split * chunk")
            lines.append("end = tl.minimum(end, begin + chunk)")
        else:
            lines.append("begin = 0")
        if len(self._passes()) > 1:
            whole = f"{least} // BLOCK_N * BLOCK_N"
            lines.append(f"whole = {whole if least == 'end' and self.tiling.splits == 1 else f'tl.maximum(begin, {whole})'}")

    def _passes(self) -> list[tuple[str, str, bool]]:
        """The loops over blocks of keys: begin, end, and whether there are keys in a block that are not there, or that some query of the
        tile does not see. Most blocks have none, and need no masks."""
        if isinstance(self.keys, int):
            if self.kernel.seen is None and self.keys % self.tiling.n == 0:
                return [("begin", "end", False)]
            if self.keys <= self.tiling.n:
                return [("begin", "end", True)]
        return [("begin", "whole", False), ("whole", "end", True)]

    def _step(self, *, masked: bool) -> TileScope:
        """One block of keys."""
        inner = self._entered("start", masked=masked)
        self._multiplied(inner)
        inner.lines += [
            f"scores = {self._scored(masked=masked)}",
            "new = tl.maximum(top, tl.max(scores, 1, keep_dims=True))",
            'base = tl.where(new == float("-inf"), 0.0, new)',
            f"weights = {self._exponential('scores - base')}",
            f"less = {self._exponential('top - base')}",
            "total = total * less + tl.sum(weights, 1, keep_dims=True)",
            "top = new",
        ]
        self._summed(inner)
        return self._left(inner)

    def _first(self, begin: str, end: str) -> None:
        """The scores of the first block, where there is one, and their largest."""
        scope = self._entered(begin, masked=False)
        self._multiplied(scope)
        scope.lines.append(f"scores = {self._scored(masked=False)}")
        self.outer.lines += [
            *self._left(scope).lines,
            f'top = tl.where({begin} < {end}, tl.max(scores, 1, keep_dims=True), float("-inf"))',
            f"less = tl.full([BLOCK_M, 1], 1.0, {TYPES[self.kernel.accumulator.name]})",
        ]

    def _step_ahead(self, end: str) -> TileScope:
        """One block of keys whose scores are there, and the scores of the next; behind the last one they count for nothing. `less`: what
        the sums so far are worth beside the weights of this block."""
        inner = self._entered("start + BLOCK_N", masked=False)
        self._multiplied(inner)
        inner.lines += [
            'base = tl.where(top == float("-inf"), 0.0, top)',
            f"weights = {self._exponential('scores - base')}",
            "total = total * less + tl.sum(weights, 1, keep_dims=True)",
        ]
        self._summed(inner)
        inner.lines += [
            f"later = {self._scored(masked=False)}",
            f"new = tl.where(ahead < {end}, tl.maximum(top, tl.max(later, 1, keep_dims=True)), top)",
            'base = tl.where(new == float("-inf"), 0.0, new)',
            f"less = {self._exponential('top - base')}",
            "top = new",
            "scores = later",
        ]
        return self._left(inner)

    def _entered(self, place: str, *, masked: bool) -> TileScope:
        """A new scope for the keys of the block at `place`, and the values of that at `start`."""
        inner = TileScope(_ROW | _COLUMN | _DEPTH | _KEY)
        for space in self._spaces:
            space.enter(inner)
        self.key_axis.mask, self.value_axis.mask = ("key_mask", "value_mask") if masked else (None, None)
        keys = self.body.places("BLOCK_N")
        if self.tiling.ahead:
            inner.lines.append(f"ahead = {place}")
        inner.lines.append(f"keys = {'ahead' if self.tiling.ahead else 'start'} + {keys}[None, :]")
        inner.lines.append(f"value_keys = start + {keys}[:, None]")
        inner.lines += ["key_mask = keys < end", "value_mask = value_keys < end"] if masked else []
        return inner

    def _left(self, inner: TileScope) -> TileScope:
        for space in self._spaces:
            space.leave()
        return inner

    @property
    def _spaces(self) -> tuple[Space, ...]:
        """Those of a block of keys."""
        return self.query, self.key, self.score, self.value

    def _multiplied(self, inner: TileScope) -> None:
        """The product of queries and keys, as `dot`."""
        kernel, (unit, _) = self.kernel, units_of(self.kernel)
        query = operand_tile(self.query, kernel.query, "query", ("BLOCK_M", "BLOCK_D"), "depth", unit)
        key = operand_tile(self.key, kernel.key, "key", ("BLOCK_D", "BLOCK_N"), "depth", unit)
        inner.lines.append(f"dot = {dot_text(query, key, None, unit, self.options)}")
        if self.options.rounding is Rounding.EACH and kernel.dtype is not kernel.accumulator:
            inner.lines.append(f"dot = {from_memory(to_memory('dot', kernel.dtype), kernel.dtype)}")
        self.score.results["dot"] = Value("dot", _ROW | _KEY)

    def _scored(self, *, masked: bool) -> str:
        """The scores that are made of `dot`."""
        scalar = self.scores[masked]
        score = self.score.name(scalar, self.score.computed(scalar))
        text = conversion(score.text, scalar.dtype, self.kernel.accumulator)
        text = text if score.axes == _ROW | _KEY else f"tl.broadcast_to({text}, [BLOCK_M, BLOCK_N])"
        return f'tl.where(key_mask, {text}, float("-inf"))' if masked else text

    def _summed(self, inner: TileScope) -> None:
        """The values of a block by their weights, added to what was summed before, which is worth `less`."""
        _, unit = units_of(self.kernel)
        value = operand_tile(self.value, self.kernel.value, "value", ("BLOCK_N", "BLOCK_E"), "key", unit)
        weights = "weights" if unit is self.kernel.accumulator else f"weights.to({TYPES[unit.name]})"
        inner.lines.append(f"sums = {dot_text(Value(weights, _ROW | _KEY), value, 'sums * less', unit, self.options)}")

    def _exponential(self, difference: str) -> str:
        """The exponential of a difference of scores, which `factor` still scales."""
        if self.factor == 1.0:
            return f"tl.exp({difference})"
        base = filling(float(F32.numpy.type(self.factor / log(2))), F32)
        return f"tl.exp2(({difference}) * {base})"
