"""Attention as Triton: a program has a tile of queries and goes through the keys in blocks; what it has summed so far is scaled anew where
a larger score comes (Milakov and Gimelshein, arXiv:1805.02867; Dao et al., arXiv:2205.14135). No score is written to memory.

Where there are few tiles and many keys, as when one token is decoded, the keys are split over programs; a second kernel joins their parts.
What is done to queries, keys, values and scores before, and to the result after, is done in registers.

Where keys are bulk copies the scores of a block may be made one round ahead: while they are multiplied the exponentials of the block before
are taken, and while these weigh values the largest of the new scores is found (after Shah et al., arXiv:2407.08608, section 3.2). The
compiler orders all that within a round by itself, as nothing of it waits for anything else.
"""

from __future__ import annotations

from dataclasses import replace

from coset.ir.op import get_op
from coset.ir.types import BOOL, I64, DType
from coset.lowering.kernels.addresses import count_of
from coset.lowering.kernels.kernel import (
    Attention,
    Buffer,
    ColumnFold,
    IndexValue,
    Load,
    Loop,
    Plan,
    Result,
    Rows,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Store,
    scalars,
    used_picks,
)
from coset.lowering.kernels.renaming import replaced
from coset.lowering.triton.attention_tiling import (
    AttentionTiling,
    SharedMemoryBits,
    choose_tiling,
    for_copies,
    score_bits,
    splits_floats,
    units_of,
)
from coset.lowering.triton.attention_writer import AttentionWriter
from coset.lowering.triton.launch import EmitOptions, EmittedKernel
from coset.lowering.triton.operand_tiles import is_plain, side_bits
from coset.lowering.triton.rows import emit_rows
from coset.lowering.triton.tiling import copied_unit, narrowest, unit_name, unit_of


def emit_attention(kernel: Attention, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """One Triton function, or two where the keys are split."""
    query, key = narrowest(kernel.query), narrowest(kernel.key)
    unit = unit_of(query.dtype, key.dtype, kernel.accumulator)
    if unit is query.dtype and unit is key.dtype:
        kernel = replace(kernel, query=query, key=key)
    tiling = choose_tiling(kernel, options)
    choice = options.choice or _for_target(kernel, plan, options, tiling).choice
    tiling, options = tiling.chosen(choice), options.plain()
    name = unit_name(query.dtype, key.dtype, unit or kernel.accumulator, options)
    if tiling.splits == 1:
        return replace(AttentionWriter(kernel, plan, options, tiling, comment).emission(), unit=name, choice=choice)
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
    first = AttentionWriter(replace(kernel, stores=()), plan, options, tiling, comment).emission(stores)
    second = emit_rows(_joined(kernel, parts, loads), plan, options, ["the parts of the keys as one"])
    return EmittedKernel(f"{first.source}\n\n{second.source}", (*first.launches, *second.launches), tuple(scratch.values()), name, choice)


def _for_target(kernel: Attention, plan: Plan, options: EmitOptions, tiling: AttentionTiling) -> AttentionTiling:
    """The default tiles. Of scores that need memory for each of their own nothing is known of those beyond the last key."""
    found = _by_copies(kernel, plan, options, tiling)
    reading = any(isinstance(item, Load) for item in scalars(kernel.score))
    may = found.bulk and not reading and not splits_floats(kernel, options) and _copying(kernel, plan, options, found)[0]
    return replace(found, ahead=0) if may else found


def _by_copies(kernel: Attention, plan: Plan, options: EmitOptions, tiling: AttentionTiling) -> AttentionTiling:
    """The default tiles where keys or values are read by bulk copies; these where neither can be."""
    units = units_of(kernel)
    if not options.bulk or not all(copied_unit(unit, options) for unit in units):
        return tiling
    copying = _copying(kernel, plan, options, tiling)
    if not any(copying):
        return tiling
    held = _held(kernel, units, 48 if splits_floats(kernel, options) else 0)
    plain = all(copying) and is_plain(kernel.key, units[0]) and is_plain(kernel.value, units[1])
    found = for_copies(tiling, kernel, held, options, plain=plain)
    if found.bulk and _copying(kernel, plan, options, found) != copying:  # a larger tile reaches over the end of a loop
        return for_copies(tiling, kernel, held, options, plain=False)
    return found


def _held(kernel: Attention, units: tuple[DType, DType], split: int) -> SharedMemoryBits:
    """What shared memory holds of the operands, and of what is read for each score."""
    sides = (kernel.query, units[0]), (kernel.key, units[0]), (kernel.value, units[1])
    query, key, value = (side_bits(side, unit) for side, unit in sides)
    return SharedMemoryBits(query, key, value, score_bits([kernel.score], kernel.m, kernel.keys), split)


def _copying(kernel: Attention, plan: Plan, options: EmitOptions, tiling: AttentionTiling) -> tuple[bool, bool]:
    """Whether keys, and whether values, of such tiles can be read by bulk copies."""
    writer = AttentionWriter(kernel, plan, options.plain(), replace(tiling, bulk=1), [])
    return bool(writer.key.copies), bool(writer.value.copies)


def _joined(kernel: Attention, parts: Loop, loads: dict[str, Load]) -> Rows:
    """Parts about a largest score each as the whole about the largest of all."""
    dtype = kernel.accumulator

    def apply(op: str, *operands: Scalar, to: DType = dtype, **attributes: object) -> ScalarOp:
        return ScalarOp(get_op(f"stablehlo.{op}"), operands, to, tuple(attributes.items()))

    top = Result("top", dtype)
    same = apply("compare", loads["top"], top, to=BOOL, direction="EQ")  # of -inf too: such parts are 0
    scale = apply("exponential", apply("select", same, ScalarConstant(0.0, dtype), apply("subtract", loads["top"], top)))
    folds = [ColumnFold("top", "maximum", loads["top"], dtype)]
    folds += [ColumnFold(role, "add", apply("multiply", loads[role], scale), dtype) for role in ("total", "sums")]
    total: Scalar = Result("total", dtype)
    keys = count_of(kernel.keys)
    if kernel.safe or not isinstance(keys, int):
        none = apply("compare", total, ScalarConstant(0.0, dtype), to=BOOL, direction="EQ")
        if not kernel.safe:  # the sum over no key is 0, but the mean over keys of which none is seen is NaN
            none = apply("and", none, apply("compare", IndexValue(keys, I64), ScalarConstant(0, I64), to=BOOL, direction="EQ"), to=BOOL)
        total = apply("select", none, ScalarConstant(1.0, dtype), total)
    mean = apply("divide", Result("sums", dtype), total)
    stores = tuple(replace(store, value=replaced(store.value, {"sum": mean})) for store in kernel.stores)
    picks = used_picks(kernel.picks, (store.value for store in stores), ())
    return Rows(f"{kernel.name}_joined", (*kernel.batch, *kernel.m, *kernel.n), (parts,), tuple(folds), stores, (), picks=picks)
