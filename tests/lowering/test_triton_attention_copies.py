"""Attention whose keys, values and queries are bulk copies, in Triton's interpreter: drawn ones against the definition, the same bits as by
pointers, what lies around the operands in memory, what is a copy and what is not, the two loops, the tiles, and compiled ahead of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.ir.dims import Dim, add, floordiv, multiply, subtract, symbol
from coset.ir.op import get_op
from coset.ir.types import BF16, BOOL, DTYPES, F16, F32, F64, I32, DType
from coset.lowering.kernels.kernel import Attention, Choose, InBounds, Load, Loop, Pick, Plan, Result, Scalar, ScalarConstant, ScalarOp
from coset.lowering.kernels.renaming import mapped_kernel
from coset.lowering.planning.plan import plan
from coset.lowering.triton.alternatives import MOST, alternatives
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.scores import Scaled, all_seen, unscaled
from coset.lowering.triton.source import EmitOptions, EmittedKernel, Rounding, can_emit, emit, kernel_source
from coset.prove.error_bound import roundoff
from tests.lowering.attention_cases import Case, drawn_case
from tests.lowering.golden_texts import read_as_golden
from tests.lowering.test_triton_attention import check, values_for
from tests.lowering.test_triton_copies import HOPPER, copied
from tests.lowering.triton_cases import assert_near, assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
Array = np.ndarray[Any, Any]
PER_BATCH, BATCHES = 20, 9


def chosen(m: int = 32, n: int = 32, *, splits: int = 1, bulk: int = 1) -> EmitOptions:
    """These tiles, by bulk copies where nothing else is said."""
    return EmitOptions(choice=KernelChoice((("BLOCK_M", m), ("BLOCK_N", n), ("SPLITS", splits), ("BULK", bulk)), 4, 2))


def planned(case: Case) -> tuple[Attention, Plan]:
    """The one kernel of a case."""
    made = plan(case.program(), computes=can_emit)
    (kernel,) = made.kernels
    assert isinstance(kernel, Attention)
    return kernel, made


def names(emission: EmittedKernel) -> set[str | None]:
    """The buffers that are copied."""
    return {argument.buffer for argument in copied(emission)}


# ---------------------------------------------------------------- drawn ones


def drawn(seed: int) -> tuple[Case, dict[str, int], EmitOptions]:
    """Rows of 16 bytes and more, tiles that are larger and smaller than the sizes."""
    case, binding = drawn_case(3000 + seed)
    draw = np.random.default_rng(seed)
    dtype = (F16, BF16, F32)[seed % 3]
    depth, width = (int(draw.choice([8, 16, 24, 40, 64])) for _ in range(2))
    splits = int(draw.choice([1, 1, 2, 3]))
    if dtype is F16 and np.isfinite(case.fill):
        case = replace(case, fill=-1e4)  # what it holds
    return replace(case, dtype=dtype, depth=depth, width=width), binding, chosen(*draw.choice([16, 32, 64], 2).tolist(), splits=splits)


@pytest.mark.parametrize("batch", sampled(range(BATCHES), 2))
def test_drawn_attentions(batch: int, interpreter: Runner) -> None:
    """Against the definition in f64, within the bound of those that read by pointers."""
    for seed in range(batch * PER_BATCH, batch * PER_BATCH + PER_BATCH):
        case, binding, options = drawn(seed)
        check(case, binding, values_for(case, binding, seed, special=False), interpreter, f"seed {seed}: {case}", options)


def test_the_drawn_ones_have_every_form() -> None:
    seen = dict.fromkeys(("q", "k", "v", "deep", "padded", "split", "free", "masked", "both loops", "one loop"), 0)
    for seed in range(BATCHES * PER_BATCH):
        case, _, options = drawn(seed)
        emission = emit(*planned(case), options=options)
        found = names(emission)
        tiles = [argument.tiles for argument in copied(emission) if argument.tiles is not None]
        for name in "qkv":
            seen[name] += name in found
        seen["deep"] += any(len(each.shape) > 2 for each in tiles)
        seen["padded"] += case.depth in (24, 40) or case.width in (24, 40)
        seen["split"] += len(emission.launches) > 1
        seen["free"] += any(not isinstance(dim, int) for each in tiles for dim in each.shape)
        seen["masked"] += case.mask != "none"
        loops = emission.launches[0].function and emission.source.split("@triton.jit")[1].count("for start in range")
        seen["both loops"] += loops == 2
        seen["one loop"] += loops == 1
    assert min(seen.values()) >= 15, seen
    assert seen["k"] >= 150 and seen["v"] >= 150, "keys are one or of unknown number in few"


# ---------------------------------------------------------------- values


def both_forms(kernel: Attention, made: Plan, values: dict[str, Array], interpreter: Runner, tile: dict[str, int]) -> tuple[Array, Array]:
    """What an attention stores by copies, and with the same tiles by pointers."""
    found = []
    for bulk in (1, 0):
        options = chosen(**tile, bulk=bulk)
        assert bool(copied(emit(kernel, made, options=options))) == bool(bulk)
        found.append(run(kernel, made, values, {}, interpreter, options)["y"][0])
    return found[0], found[1]


def assert_alike(found: Array, expected: Array, what: str) -> None:
    """The same NaN and infinities, and numbers that differ by a few roundings of f32 and one of their own type."""
    one, other = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(other)
    assert found.dtype == expected.dtype
    assert np.array_equal(np.where(finite, 0, one), np.where(finite, 0, other), equal_nan=True), what
    own = 0.0 if found.dtype == np.float32 else roundoff(found.dtype)
    allowed = (16 * 2.0**-23 + own) * np.max(np.abs(other), initial=0.0, where=finite)
    assert np.all(np.abs(one[finite] - other[finite]) <= allowed), what


@pytest.mark.parametrize("dtype", sampled([F32, F16, BF16]), ids=str)
@pytest.mark.parametrize("mask", ["none", "boolean", "additive", "causal"])
def test_what_is_not_finite_is_as_by_pointers(mask: str, dtype: DType, interpreter: Runner) -> None:
    """NaN and infinities in queries, keys and values, inside of masks and outside: at the same places, and the same numbers but for the
    order in which a processor's BLAS sums a row."""
    for seed, (keys, m, n, splits) in enumerate(((64, 16, 16, 1), (80, 32, 16, 2), (75, 64, 32, 1))):
        tile = {"m": m, "n": n, "splits": splits}
        length = keys if mask == "causal" else 33  # so that no block of a tile reaches beyond what its last query sees
        case = Case((2,), (), length, keys, 24, 40, dtype, mask, 0.25, safe=seed == 1)
        kernel, made = planned(case)
        values = values_for(case, {}, 10 + seed, special=True)
        assert_alike(*both_forms(kernel, made, values, interpreter, tile), f"{mask} {keys} {tile}")


def test_values_that_no_query_of_a_tile_sees_are_left_out_or_not(interpreter: Runner) -> None:
    """Where a block reaches beyond what the last query of a tile sees, pointers leave out what copies bring: an infinity there is 0 times
    infinity, as the definition has it, or nothing. All else is the same."""
    case = Case((), (), 64, 64, 16, 16, F32, "causal", 0.25)
    kernel, made = planned(case)
    values = values_for(case, {}, 3, special=False)
    values["v"][40:, 3] = np.inf
    found, pointed = both_forms(kernel, made, values, interpreter, {"m": 16, "n": 64})
    other = np.arange(16) != 3
    assert_same(found[:, other], pointed[:, other], F32)
    assert np.isnan(found[:40, 3]).all() and np.isfinite(pointed[:32, 3]).all()
    assert np.isnan(case.reference(values)[:40, 3]).all()


def surrounded(kernel: Attention, made: Plan, values: dict[str, Array], *, turned: bool) -> tuple[Attention, Plan, dict[str, Array]]:
    """The same with queries, keys and values in the middle of larger buffers of NaN; `turned`: heads lie beside each other."""
    buffers = dict(made.buffers)

    def moved(load: Load) -> Load:
        if load.buffer not in ("q", "k", "v"):
            return load
        buffer, given = made.buffers[load.buffer], values[load.buffer]
        order = [*range(1, len(buffer.shape) - 1), 0, len(buffer.shape) - 1] if turned else list(range(len(buffer.shape)))
        starts = [0 if turned and place == len(order) - 2 else 2 for place in range(len(order) - 1)] + [0 if turned else 8]
        behind = [0 if turned and place == len(order) - 2 else 1 for place in range(len(order) - 1)] + [0 if turned else 8]
        counts = [given.shape[axis] for axis in order]
        whole = np.full([sum(each) for each in zip(starts, counts, behind, strict=True)], np.nan).astype(buffer.dtype.numpy)
        inside = tuple(slice(start, start + count) for start, count in zip(starts, counts, strict=True))
        whole[inside] = given.transpose(order)
        around[load.buffer] = whole
        buffers[load.buffer] = replace(buffer, shape=whole.shape)
        index = tuple(add(load.index[axis], start) for axis, start in zip(order, starts, strict=True))
        return replace(load, index=index)

    around = dict(values)
    found = mapped_kernel(kernel, moved, lambda store: store)
    assert isinstance(found, Attention)
    return found, replace(made, buffers=buffers, kernels=(found,)), around


@pytest.mark.parametrize("turned", sampled([True, False], 2))
@pytest.mark.parametrize("mask", ["none", "causal", "boolean"])
def test_nothing_around_the_operands_is_read(mask: str, turned: bool, interpreter: Runner) -> None:
    """Heads of 40 and 24 elements in blocks of 64 and 32, lengths that no block divides: NaN before and behind rows, and behind keys."""
    for length, keys, tile in ((33, 50, {"m": 16, "n": 16}), (21, 21, {"m": 32, "n": 32}), (5, 300, {"m": 16, "n": 32, "splits": 3})):
        case = Case((3,), (), length, keys, 40, 24, F16, mask, 0.25, keys - length if mask == "causal" else 0)
        kernel, made = planned(case)
        values = values_for(case, {}, length, special=False)
        if mask == "boolean":
            values["mask"][:, 0] = True
        moved, around, inside = surrounded(kernel, made, values, turned=turned)
        assert names(emit(moved, around, options=chosen(**tile))) == {"q", "k", "v"}
        found, pointed = both_forms(moved, around, inside, interpreter, tile)
        assert np.isfinite(found.astype(np.float64)).all()
        assert_same(found, pointed, F16)
        assert_same(found, run(kernel, made, values, {}, interpreter, chosen(**tile, bulk=0))["y"][0], F16)


def test_a_head_does_not_see_the_next_one(interpreter: Runner) -> None:
    """Heads lie beside each other, each in a block with room for parts of the next: what is NaN there is not seen."""
    case = Case((3,), (), 20, 45, 40, 24, F16, "none", 0.25)
    kernel, made = planned(case)
    values = values_for(case, {}, 1, special=False)
    for name in "kv":
        values[name][1] = np.nan
    kernel, made, values = surrounded(kernel, made, values, turned=True)
    assert names(emit(kernel, made, options=chosen(16, 16))) == {"q", "k", "v"}
    found, _ = run(kernel, made, values, {}, interpreter, chosen(16, 16))["y"]
    assert np.isfinite(found[[0, 2]].astype(np.float64)).all() and np.isnan(found[1].astype(np.float64)).all()


def test_a_length_that_grows(interpreter: Runner) -> None:
    """One kernel for every number of keys, whole blocks or not, and queries of any number."""
    case = Case((1, 2), (), symbol("L"), symbol("S"), 16, 24, F16, "none", 0.25)
    for length, keys in ((1, 1), (15, 32), (40, 33), (3, 300), (64, 64)):
        binding = {"L": length, "S": keys}
        check(case, binding, values_for(case, binding, keys, special=False), interpreter, f"{binding}", chosen(16, 32))
    causal = replace(case, length=symbol("S"), mask="causal")
    for keys in (1, 31, 64, 100):
        check(causal, {"S": keys}, values_for(causal, {"S": keys}, keys, special=False), interpreter, f"{keys} keys", chosen(32, 16))


def test_no_keys(interpreter: Runner) -> None:
    """A sum over nothing is 0."""
    case = Case((2,), (), 3, symbol("S"), 8, 8, F32)
    kernel, made = planned(case)
    found, _ = run(kernel, made, values_for(case, {"S": 0}, 3, special=False), {"S": 0}, interpreter, chosen(16, 16))["y"]
    assert found.shape == (2, 3, 8) and (found == 0).all()


@pytest.mark.parametrize("keys", [512, 4099])
@pytest.mark.parametrize("mask", ["none", "causal", "boolean"])
def test_few_queries_over_many_keys(keys: int, mask: str, interpreter: Runner) -> None:
    """Keys are split over programs: parts of whole blocks, a part that is short, parts that see nothing."""
    case = Case((2,), (4,), 1, keys, 32, 32, F16, mask, 0.2, keys - 300 if mask == "causal" else 0, safe=mask == "boolean")
    values = values_for(case, {}, 7, special=False)
    if mask == "boolean":
        values["mask"][:, : keys - 60] = False
    options = chosen(16, 32, splits=8)
    made = check(case, {}, values, interpreter, str(case), options)
    emission = emit(made.kernels[0], made, options=options)
    assert len(emission.launches) == 2 and names(emission) >= {"k", "v"}


# ---------------------------------------------------------------- what is a copy


def with_sides(
    dtype: DType = F16, value: DType | None = None, *, keys: Dim = 64, depth: int = 32, width: int = 32
) -> tuple[Attention, Plan]:
    kernel, made = planned(Case((4,), (), 64, keys, depth, width, dtype, scale=0.25))
    if value is not None:
        assert isinstance(kernel.value, Load)
        made = replace(made, buffers={**made.buffers, "v": replace(made.buffers["v"], dtype=value)})
        kernel = replace(kernel, value=replace(kernel.value, dtype=value))
    return kernel, made


def reading(kernel: Attention, made: Plan, tile: EmitOptions | None = None) -> str:
    """The operands that are copied, in order."""
    return "".join(sorted(str(name) for name in names(emit(kernel, made, options=tile or chosen()))))


def with_key(change: Any, **more: Any) -> str:
    """What is copied where the keys are read so; `change`: of the load, to a scalar."""
    kernel, made = with_sides()
    assert isinstance(kernel.key, Load)
    buffers = {**made.buffers, "k": replace(made.buffers["k"], **more.pop("buffer", {}))}
    buffers |= {"i": replace(made.buffers["k"], name="i", dtype=I32, shape=(4,))}
    return reading(replace(kernel, key=change(kernel.key), **more), replace(made, buffers=buffers))


def test_each_operand_is_read_for_itself() -> None:
    assert reading(*with_sides()) == reading(*with_sides(F32)) == reading(*with_sides(BF16)) == "kqv"
    assert reading(*with_sides(depth=36)) == "v", "rows of 72 bytes"
    assert reading(*with_sides(width=36)) == "kq"
    assert reading(*with_sides(depth=36, width=36)) == ""
    assert reading(*with_sides(F64)) == ""
    assert reading(*with_sides(F16, F32)) == reading(*with_sides(F16, DTYPES["f8e5m2"])) == "kqv"
    assert reading(*with_sides(keys=1)) == "q", "no side of a tile"
    assert reading(*with_sides(keys=symbol("s"))) == "kqv"


def test_what_is_done_to_keys_is_done_to_the_copy(interpreter: Runner) -> None:
    """A scale of each feature, and features that are chosen by an index."""
    kernel, made = with_sides(F32)
    (depth,), key = kernel.k, kernel.key
    scaled = ScalarOp(get_op("stablehlo.multiply"), (key, Load("w", (depth.index,), F32)), F32)
    kernel = replace(kernel, key=scaled)
    made = replace(made, buffers={**made.buffers, "w": replace(made.buffers["q"], name="w", shape=(32,))})
    draw = np.random.default_rng(1)
    values = {name: cast(draw.normal(size=made.buffers[name].shape), F32) for name in "qkvw"}
    assert reading(kernel, made) == "kqv"
    found, expected = run(kernel, made, values, {}, interpreter, chosen())["y"]
    assert_near(found, expected, F32, 1e-4, absolute=1e-4)


def test_keys_that_no_descriptor_says_are_pointers() -> None:
    kernel, _ = with_sides()
    (batch,), (keys,), (depth,) = kernel.batch, kernel.keys, kernel.k

    def at(*index: Dim) -> Any:
        return lambda load: replace(load, index=index)

    assert with_key(at(batch.index, keys.index, depth.index)) == "kqv"
    assert with_key(at(keys.index, batch.index, depth.index), buffer={"shape": (64, 4, 32)}) == "kqv", "heads beside each other"
    assert with_key(at(batch.index, depth.index, keys.index), buffer={"shape": (4, 32, 64)}) == "kqv", "keys beside each other"
    assert with_key(at(batch.index, add(keys.index, 3), depth.index), buffer={"shape": (4, 70, 32)}) == "kqv", "from a key on"
    assert with_key(at(batch.index, keys.index, add(depth.index, 4)), buffer={"shape": (4, 64, 40)}) == "qv", "from 8 bytes on"
    assert with_key(at(batch.index, subtract(63, keys.index), depth.index)) == "qv", "backwards"
    assert with_key(at(batch.index, floordiv(keys.index, 2), depth.index)) == "qv", "every key twice"
    assert with_key(at(batch.index, multiply(2, keys.index), depth.index), buffer={"shape": (4, 128, 32)}) == "kqv", "every other key"
    pick = Pick("pick:i", 4, Load("i", (batch.index,), I32))
    assert with_key(at(symbol("pick:i"), keys.index, depth.index), picks=(pick,)) == "qv", "a page that memory says"
    near = (InBounds(keys.index, 0, 60),)
    assert with_key(lambda load: Choose(near, load, replace(load, index=(0, *load.index[1:])), F16)) == "qv", "a joined cache"


def test_without_copies_nothing_is_said_of_them() -> None:
    kernel, made = with_sides()
    for found in (emit(kernel, made), emit(*with_sides(F32), options=HOPPER), emit(*with_sides(F64), options=HOPPER)):
        assert found.choice is not None and "BULK" not in dict(found.choice.numbers) and not copied(found)
    unaligned = emit(*with_sides(depth=36, width=36), options=HOPPER)
    assert unaligned.choice is not None and "BULK" not in dict(unaligned.choice.numbers)


# ---------------------------------------------------------------- two loops, and the factor


def bodies(case: Case, options: EmitOptions | None = None) -> list[str]:
    """The text of each loop over keys."""
    text = emit(*planned(case), options=options).source.split("@triton.jit")[1].split("    mean = ")[0]
    return [part.split("):\n", 1)[1] for part in text.split("    for start in range(")[1:]]


def test_whole_blocks_have_no_masks() -> None:
    causal = Case((2,), (), 256, 256, 64, 64, F16, "causal", 0.125)
    whole, diagonal = bodies(causal)
    assert "mask" not in whole and "tl.where(inside" not in whole and "keys" not in whole.replace("value_keys", "").split("tl.load")[0][60:]
    assert "key_mask" in diagonal and "inside" in diagonal
    ragged, last = bodies(replace(causal, mask="none", keys=250))
    assert "key_mask" not in ragged and "key_mask" in last
    assert len(bodies(replace(causal, mask="none"))) == len(bodies(replace(causal, mask="none", keys=symbol("s")))) - 1 == 1
    (only,) = bodies(replace(causal, length=20, keys=20))
    assert "inside" in only and "key_mask" in only, "one block is the diagonal's"


def test_split_keys_of_whole_blocks_have_one_loop() -> None:
    case = Case((2,), (), 1, 4096, 64, 64, F16, "none", 0.125)
    assert len(bodies(case, chosen(16, 32, splits=4))) == 1 and len(bodies(replace(case, keys=4090), chosen(16, 32, splits=4))) == 2


def test_what_all_queries_see_is_not_asked() -> None:
    """A choice that holds for every key below `seen`, in any place of a score, and none of another condition."""
    row, key, dot = symbol("loop:m"), symbol("loop:s"), Result("dot", F32)
    extents: dict[str, Dim] = {"loop:m": 64, "loop:s": 64}
    hidden = ScalarConstant(float("-inf"), F32)
    beyond = subtract(row, key)  # seen: row + 1

    def masked(bound: InBounds, other: Scalar = hidden) -> Scalar:
        return Choose((bound,), dot, other, F32)

    def seen(score: Scalar) -> Scalar:
        return all_seen(score, beyond, extents)

    causal, window = InBounds(key, 0, add(row, 1)), InBounds(subtract(row, key), 0, 8)
    assert seen(masked(causal)) is dot
    assert seen(masked(InBounds(subtract(row, key), 0, 64))) is dot, "as a distance"
    assert seen(masked(InBounds(key, 0, add(row, 5)))) is dot, "more is seen than is asked"
    assert seen(masked(InBounds(key, 0, 64))) is dot, "always"
    assert seen(masked(InBounds(key, 0, row))) == masked(InBounds(key, 0, row)), "less is"
    assert seen(masked(window)) == masked(window) and seen(masked(InBounds(row, 0, add(key, 1)))) != dot
    bias = ScalarOp(get_op("stablehlo.add"), (dot, Choose((causal,), ScalarConstant(0.0, F32), hidden, F32)), F32)
    assert seen(bias) == ScalarOp(get_op("stablehlo.add"), (dot, ScalarConstant(0.0, F32)), F32)
    assert seen(Choose((causal, window), dot, hidden, F32)) == Choose((causal, window), dot, hidden, F32), "both have to"


def test_a_factor_is_taken_out() -> None:
    dot, half = Result("dot", F16), ScalarConstant(0.5, F16)
    product = ScalarOp(get_op("stablehlo.multiply"), (half, dot), F16)
    hidden, low = ScalarConstant(float("-inf"), F16), ScalarConstant(-1000.0, F16)
    bound = (InBounds(symbol("loop:s"), 0, 3),)
    assert unscaled(product) == unscaled(replace(product, operands=(dot, half))) == Scaled(dot, 0.5)
    assert unscaled(Choose(bound, product, hidden, F16)) == Scaled(Choose(bound, dot, hidden, F16), 0.5)
    mask = Load("mask", (), BOOL)
    select = ScalarOp(get_op("stablehlo.select"), (mask, product, hidden), F16)
    assert unscaled(select) == Scaled(replace(select, operands=(mask, dot, hidden)), 0.5)
    for score in (
        Choose(bound, product, low, F16), replace(select, operands=(mask, product, low)), replace(select, operands=(mask, hidden, product)),
        Choose(bound, hidden, product, F16), ScalarOp(get_op("stablehlo.add"), (product, half), F16), dot,
        *(replace(product, operands=(dot, ScalarConstant(number, F16))) for number in (-0.5, 0.0, float("inf"), float("nan"), 1e-30, 1e30)),
        ScalarOp(get_op("stablehlo.multiply"), (ScalarConstant(0.5, F64), Result("dot", F64)), F64),
    ):  # fmt: skip
        assert unscaled(score) == Scaled(score), score


def test_the_base_of_the_exponential_has_the_factor() -> None:
    case = Case((2,), (), 64, 64, 64, 64, F16, "causal", 0.125)
    text = emit(*planned(case)).source
    assert f"tl.exp2((scores - base) * {float(np.float32(0.125 / log(2)))!r})" in text and "0.125 *" not in text
    for other in (replace(case, dtype=F64), replace(case, fill=-5e3), replace(case, scale=1.0), replace(case, mask="additive")):
        assert "tl.exp(scores - base)" in emit(*planned(other)).source and "exp2" not in emit(*planned(other)).source
    assert "tl.exp(" in emit(*planned(case), options=EmitOptions(rounding=Rounding.EACH)).source, "as it is written, to the bit"


@pytest.mark.parametrize("bulk", [0, 1])
def test_scores_of_any_size(bulk: int, interpreter: Runner) -> None:
    """Of scores of 1e30 the largest has all the weight, in one part and in several."""
    case = Case((2,), (), 4, 96, 16, 16, F32, "none", 0.3)
    kernel, made = planned(case)
    values = values_for(case, {}, 5, special=False)
    values["q"] *= np.float32(1e15)
    values["k"] *= np.float32(1e15)
    for splits in (1, 3):
        found, _ = run(kernel, made, values, {}, interpreter, chosen(16, 16, splits=splits, bulk=bulk))["y"]
        best = np.argmax(values["q"].astype(np.float64) @ values["k"].astype(np.float64).swapaxes(1, 2), axis=-1)
        assert_same(found, np.take_along_axis(values["v"], best[..., None], axis=1), F32)


# ---------------------------------------------------------------- tiles


def default(case: Case, options: EmitOptions = HOPPER) -> dict[str, int]:
    emission = emit(*planned(case), options=options)
    assert emission.choice is not None
    bulk = dict(emission.choice.numbers).get("BULK")
    assert bool(copied(emission)) == bool(bulk), "what a choice says is what is emitted"
    return dict(emission.choice.numbers) | {"warps": emission.choice.warps, "stages": emission.choice.stages}


def wide(width: int, *, keys: Dim = 4096, length: Dim = 4096, dtype: DType = F16, mask: str = "none") -> Case:
    return Case((4, 16), (), length, keys, width, width, dtype, mask, 0.125)


def test_the_default_of_targets_with_copies() -> None:
    small = {"BLOCK_M": 64, "BLOCK_N": 64, "SPLITS": 1, "BULK": 1, "AHEAD": 0, "warps": 4, "stages": 3}
    assert default(wide(128)) == default(wide(128, mask="causal")) == default(wide(80)) == small
    assert default(wide(64)) == default(wide(64, length=symbol("n"))) == {**small, "BLOCK_N": 128, "stages": 2}
    assert default(wide(256)) == {**small, "BLOCK_M": 128, "warps": 8, "stages": 2}
    assert default(replace(wide(256), batch=(2,)))["BLOCK_M"] == 64, "fewer programs than processors"
    assert default(wide(64, keys=40))["BLOCK_N"] == 64
    token = default(wide(64, length=1))
    assert token["BULK"] == 0 and token["BLOCK_M"] == 16 and token["stages"] == 3, "memory is what is waited for"
    assert default(wide(64, dtype=F32), replace(HOPPER, tf32=True))["BULK"] == 1
    assert "BULK" not in default(wide(64, dtype=F32)), "f32 in full has no matrix unit there"


def test_a_tile_is_no_larger_than_what_a_copy_brings(interpreter: Runner) -> None:
    """Keys of two loops, of which the last one has 64: 128 of them are no block."""
    kernel, made = planned(Case((64,), (), 256, 512, 32, 32, F16, "none", 0.25))
    (batch,), (depth,), (column,) = kernel.batch, kernel.k, kernel.n
    outer, inner = Loop("loop:o", 8), Loop("loop:i", 64)
    key, value = (Load(name, (batch.index, inner.index, outer.index, last.index), F16) for name, last in (("k", depth), ("v", column)))
    kernel = replace(kernel, keys=(outer, inner), key=key, value=value)
    made = replace(made, buffers=made.buffers | {name: replace(made.buffers[name], shape=(64, 64, 8, 32)) for name in "kv"})
    emission = emit(kernel, made, options=HOPPER)
    assert emission.choice is not None and emission.choice["BLOCK_N"] == 64 and names(emission) == {"q", "k", "v"}
    small = replace(made, buffers={name: replace(each, shape=(2, *each.shape[1:])) for name, each in made.buffers.items()})
    kernel = replace(kernel, batch=(Loop(batch.name, 2),))
    draw = np.random.default_rng(1)
    values = {name: cast(draw.normal(size=small.buffers[name].shape), F16) for name in "qkv"}
    found, expected = run(kernel, small, values, {}, interpreter, chosen(64, 32))["y"]
    assert_near(found, expected, F16, 1e-3, absolute=1e-3)


def test_masks_need_shared_memory_too() -> None:
    """What is read for each score is held as often as blocks are, but once."""
    numbers = default(wide(128, mask="additive"))
    assert (numbers["BULK"], numbers["stages"]) == (1, 2)
    for shared in (232448, 101376, 49152, 30000):
        numbers = default(wide(128, mask="additive"), replace(HOPPER, bulk=shared))
        if numbers["BULK"]:
            m, n, stages = numbers["BLOCK_M"], numbers["BLOCK_N"], numbers["stages"]
            assert stages >= 2 and 2 * 128 * (m + stages * 2 * n) + (stages - 1) * 4 * m * n < shared
    assert numbers["BULK"] == 0 and numbers["BLOCK_M"] == emit(*planned(wide(128))).choice["BLOCK_M"]  # type: ignore[index]


def test_forms_race_each_other() -> None:
    for case in (wide(128, mask="causal"), wide(64, length=1, keys=8192)):
        kernel, made = planned(case)
        choice = emit(kernel, made, options=HOPPER).choice
        assert choice is not None
        found = alternatives(kernel, choice, HOPPER, {})
        assert {dict(each.numbers)["BULK"] for each in found} == {0, 1} and len(found) <= MOST
        assert len([each for each in found if each["BULK"]]) >= 5
        plain = emit(kernel, made).choice
        assert plain is not None
        assert not any("BULK" in dict(each.numbers) for each in alternatives(kernel, plain, EmitOptions(), {}))


def compute_the_same(wanted: Callable[[Sequence[KernelChoice]], Sequence[KernelChoice]], interpreter: Runner) -> None:
    """Those alternatives of a causal attention that are `wanted`, of which there are some, give what its definition says."""
    case = Case((2,), (2,), 70, 150, 24, 40, F16, "causal", 0.25, 80)
    kernel, made = planned(case)
    choice = emit(kernel, made, options=HOPPER).choice
    assert choice is not None
    values, found = values_for(case, {}, 2, special=False), wanted(alternatives(kernel, choice, HOPPER, {}))
    assert found
    for each in found:
        check(case, {}, values, interpreter, each.text(), replace(HOPPER, choice=each))


def test_alternatives_compute_the_same(interpreter: Runner) -> None:
    compute_the_same(lambda found: found[::4], interpreter)


# ---------------------------------------------------------------- text, and ahead of time


def test_causal_attention_of_groups_reads_as_its_golden() -> None:
    kernel, made = planned(Case((2, 4), (3,), 1000, symbol("s"), 80, 64, F16, "causal", 0.125, 24))
    read_as_golden("triton_copied_attention", kernel_source(kernel, made, options=HOPPER))


COMPILED = {
    "plain 64": wide(64), "causal 64": wide(64, mask="causal"), "causal 128": wide(128, dtype=BF16, mask="causal"), "plain 256": wide(256),
    "additive 64": wide(64, mask="additive"), "additive 128": wide(128, mask="additive"), "boolean 128": wide(128, mask="boolean"),
    "groups": Case((2, 8), (4,), 2048, 2048, 128, 128, BF16, "causal", 0.1), "odd": Case((1, 12), (), 197, 197, 80, 80, F16, "none", 0.1),
    "free": wide(64, length=symbol("l"), keys=symbol("s"), mask="causal"), "tf32": wide(64, dtype=F32, mask="causal"),
}  # fmt: skip


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
@pytest.mark.parametrize("name", COMPILED)
def test_attentions_by_copies_compile_ahead_of_time(name: str, target: str, compiler: Compiler, record_property: Any) -> None:
    """Bulk copies and the matrix unit of the machine; registers without spilling, in the shared memory that there is."""
    options = replace(HOPPER, tf32=True)
    kernel, made = planned(COMPILED[name])
    emission = emit(kernel, made, options=options)
    assert emission.choice is not None and emission.choice["BULK"] == 1 and names(emission) == {"q", "k", "v"}
    (compiled,) = compiler.run(kernel_source(kernel, made, options=options), emission.launches, target, {})
    record_property(name, f"{emission.choice.text()}: {compiled.registers} registers, {compiled.shared} B shared")
    assert compiled.spilled == 0 and compiled.shared <= HOPPER.bulk
    assert "cp.async.bulk.tensor" in compiled.text
    assert ("wgmma.mma_async" if target == "sm_90" else "tcgen05.mma") in compiled.text
