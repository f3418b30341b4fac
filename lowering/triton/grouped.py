"""Products of groups of rows as Triton: a first function finds where the rows of each group begin, the second one has the tiles of the
products, each with rows of one group. A program learns from the groups' sizes which tile it has; those beyond the last tile have nothing
to do.
"""

from __future__ import annotations

from dataclasses import replace

from coset.ir.dims import Dim, add, ceildiv, floordiv, multiply, product
from coset.ir.types import I64
from coset.lowering.kernels.addresses import span, strides_of
from coset.lowering.kernels.kernel import Buffer, Grouped, Load, Plan
from coset.lowering.triton.body import FunctionBody, function_text, wideness
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.operand_tiles import held_bits
from coset.lowering.triton.product import ProductWriter, chosen_eights
from coset.lowering.triton.rows import power_of_two
from coset.lowering.triton.scales import SumScales, without_scales
from coset.lowering.triton.tiling import Tiling, choose_tiling, copied_unit, for_copies, multiplied, unit_name

_NAMES = "groups first_rows last_rows tiles upto before start_row end_row tile_m tile_n depth"


def emit_grouped(kernel: Grouped, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """Two Triton functions."""
    kernel, scales = without_scales(kernel, options)
    eights = chosen_eights(kernel, options)
    lhs, rhs, unit = multiplied(kernel, eights=bool(eights))
    kernel = replace(kernel, lhs=lhs, rhs=rhs)
    assert unit is not None, "grouped products are of floats"
    count, n, k, groups = (product(loop.extent for loop in loops) for loops in (kernel.m, kernel.n, kernel.k, kernel.batch))
    assert isinstance(groups, int)
    assert len(kernel.m) <= 1, "a tile of a group begins anywhere: of several loops it would reach over an end"
    each = floordiv(add(count, add(groups, -1)), groups)  # rows of a group on the mean
    tiling = scales.cut(replace(choose_tiling(each, n, k, groups, unit, options), splits=1, chunk=0, eights=eights))
    starts = Buffer(f"{kernel.name}_starts", I64, (groups + 1,), "temporary")
    plan = replace(plan, buffers={**plan.buffers, starts.name: starts})
    copying = _Writer(kernel, plan, options.plain(), replace(tiling, bulk=1), [], starts, groups, scales)
    if options.bulk and copied_unit(unit, options) and copying.copies:
        tiling = replace(for_copies(tiling, (each, n, k, groups), held_bits(kernel, unit), options, plain=False), resident=0)
    choice = options.choice or tiling.choice(splits=False)
    tiling, options = tiling.chosen(choice), options.plain()
    first = _starts(kernel, plan, starts, groups, count)
    second = _Writer(kernel, plan, options, tiling, comment, starts, groups, scales).emission()
    name = unit_name(lhs.dtype, rhs.dtype, unit, options)
    return EmittedKernel(f"{first.source}\n\n{second.source}", (*first.launches, *second.launches), (starts,), name, choice)


def _starts(kernel: Grouped, plan: Plan, starts: Buffer, groups: int, count: Dim) -> EmittedKernel:
    """The first row of each group, and after the last one the number of rows."""
    key = kernel.key
    assert isinstance(key, Load), "groups that ascend are in memory"
    wide, sizes = wideness([span(plan.buffers[key.buffer]), add(count, 1)])
    body = FunctionBody(plan, EmitOptions(), wide=wide)
    for name in ("group", "first", "GROUPS"):
        body.name(name)
    (step,) = strides_of(plan.buffers[key.buffer])
    lines = [
        f"group = tl.arange(0, GROUPS).to({body.index_type})",
        f"first = first_at_least({body.pointer(key.buffer)}, {body.text(step)}, {body.text(count)}, group)",
        f"tl.store({body.pointer(starts.name)} + group, first, mask=group <= {groups})",
    ]
    name = f"{kernel.name}_starts_of_groups"
    constexprs = (("GROUPS", power_of_two(groups + 1)),)
    source = function_text(body, name, ["where the rows of each group begin"], ["GROUPS"], lines)
    return EmittedKernel(source, (Launch(name, body.arguments(), (1,), constexprs, sizes),))


class _Writer(ProductWriter):
    def __init__(
        self,
        kernel: Grouped,
        plan: Plan,
        options: EmitOptions,
        tiling: Tiling,
        comment: list[str],
        starts: Buffer,
        groups: int,
        scales: SumScales,
    ) -> None:
        self.groups = groups
        super().__init__(kernel, plan, options, tiling, comment, scales)
        self.more = ()
        self.starts = self.body.pointer(starts.name)
        for name in _NAMES.split():
            self.body.name(name)

    def row_mask(self) -> str | None:
        return "row_mask"  # the last tile of each group

    def programs(self) -> Dim:
        """Tiles of all groups, of which each may have one that is not full."""
        return multiply(add(ceildiv(self.m, self.tiling.m), self.groups), ceildiv(self.n, self.tiling.n))

    def place(self) -> None:
        """Tiles of the same rows lie next to each other: they read the same rows, and all of them the same matrix."""
        lines, body = self.outer.lines, self.body
        lines += [
            "program = tl.program_id(0)" + (f".to({body.index_type})" if body.wide is not False else ""),
            f"tiles_n = tl.cdiv({body.text(self.n)}, BLOCK_N)",
            "tile_m = program // tiles_n",
            "tile_n = program % tiles_n",
            f"groups = tl.arange(0, {power_of_two(self.groups)})",
            f"first_rows = tl.load({self.starts} + groups, mask=groups < {self.groups}, other=0).to({body.index_type})",
            f"last_rows = tl.load({self.starts} + groups + 1, mask=groups < {self.groups}, other=0).to({body.index_type})",
            "tiles = tl.cdiv(last_rows - first_rows, BLOCK_M)",
            "upto = tl.cumsum(tiles, 0)",
            f"batch = tl.sum((upto <= tile_m).to({body.index_type}), 0)",
            "before = tl.max(tl.where(upto <= tile_m, upto, 0), 0)",
            "start_row = tl.sum(tl.where(groups == batch, first_rows, 0), 0)",
            "end_row = tl.sum(tl.where(groups == batch, last_rows, 0), 0)",
            f"depth = tl.where(start_row < end_row, {body.text(self.k)}, 0)",
            "rows = start_row + (tile_m - before) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
            "columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
            "row_mask = rows < end_row",
        ]
        if self.tiling.bulk:
            lines += ["row_start = start_row + (tile_m - before) * BLOCK_M", "column_start = tile_n * BLOCK_N"]
        lines += self.column_mask()

    def loop(self) -> str:
        return "for start in range(0, depth, BLOCK_K):"
