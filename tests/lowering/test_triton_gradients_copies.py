"""Gradients of attention whose operands are bulk copies, in Triton's interpreter: drawn ones against the definition, the same bits as by
pointers, what is chosen, and compiled ahead of time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.ir.types import BF16, F16, F32, DType
from coset.lowering.kernels.kernel import Attention, Chain, Kernel, Plan, Statistics
from coset.lowering.planning.plan import plan
from coset.lowering.triton.alternatives import MOST, alternatives
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.source import EmitOptions, EmittedKernel, can_emit, emit, kernel_source
from tests.lowering.attention_cases import Backward, Case, drawn_case, values_for
from tests.lowering.test_triton_attention_copies import assert_alike
from tests.lowering.test_triton_copies import HOPPER, copied
from tests.lowering.test_triton_gradients import check
from tests.lowering.triton_cases import run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
Array = np.ndarray[Any, Any]
PER_BATCH, BATCHES = 8, 5


def chosen(kernel: Kernel, m: int, n: int, bulk: int = 1) -> EmitOptions:
    """These tiles, by bulk copies where nothing else is said; of other kernels than attention's the default."""
    if not isinstance(kernel, Attention | Statistics | Chain):
        return EmitOptions()
    splits = (("SPLITS", 1),) if isinstance(kernel, Attention) else ()
    return EmitOptions(choice=KernelChoice((("BLOCK_M", m), ("BLOCK_N", n), *splits, ("BULK", bulk)), 4, 2))


def drawn(seed: int) -> tuple[Backward, dict[str, int], tuple[int, int]]:
    """Rows of 16 bytes and more."""
    case, binding = drawn_case(5000 + seed)
    draw = np.random.default_rng(seed)
    dtype = (F16, BF16, F32)[seed % 3]
    depth, width = (int(draw.choice([8, 16, 24, 40])) for _ in range(2))
    fill = -1e4 if dtype is F16 and np.isfinite(case.fill) else case.fill  # what it holds
    scale = 0.125 if dtype is F16 else case.scale  # weights below 2^-14 are rounded to steps that the bound does not know
    m, n = draw.choice([16, 32], 2).tolist()
    return Backward(replace(case, dtype=dtype, depth=depth, width=width, fill=fill, scale=scale), bool(seed % 2)), binding, (m, n)


@pytest.mark.parametrize("batch", sampled(range(BATCHES), 2))
def test_drawn_gradients(batch: int, interpreter: Runner) -> None:
    """Against the definition in f64, within the bound of those that read by pointers."""
    for seed in range(batch * PER_BATCH, batch * PER_BATCH + PER_BATCH):
        given, binding, tile = drawn(seed)
        values = values_for(given, binding, seed)
        check(given, binding, values, interpreter, f"seed {seed}: {given}", lambda kernel: chosen(kernel, *tile))  # noqa: B023


def test_the_drawn_ones_have_every_form() -> None:
    """Operands by rows and by what is summed, of several heads that share keys, of free sizes."""
    seen = dict.fromkeys(("statistics", "chain", "rows", "grouped", "free", "bounded"), 0)
    for seed in range(BATCHES * PER_BATCH):
        given, _, tile = drawn(seed)
        made = plan(given.program(), computes=can_emit)
        for kernel in made.kernels:
            if not isinstance(kernel, Statistics | Chain):
                continue
            descriptors = copied(emit(kernel, made, options=chosen(kernel, *tile)))
            tiles = [each.tiles for each in descriptors if each.tiles is not None]
            seen["statistics"] += isinstance(kernel, Statistics) and len(tiles) > 0
            seen["chain"] += isinstance(kernel, Chain) and len(tiles) > 1
            seen["rows"] += any("BLOCK_M" in each.block for each in tiles)
            seen["grouped"] += bool(given.case.groups) and len(tiles) > 0
            seen["free"] += any(not isinstance(dim, int) for each in tiles for dim in each.shape)
            seen["bounded"] += (kernel.low, kernel.high) != (None, None) and len(tiles) > 0
    assert min(seen.values()) >= 15, seen


@pytest.mark.parametrize("dtype", sampled([F16, F32], 2), ids=str)
@pytest.mark.parametrize("mask", ["none", "boolean", "additive", "causal"])
def test_the_numbers_are_those_of_pointers(mask: str, dtype: DType, interpreter: Runner) -> None:
    """Also NaN and infinities, where no mask bounds what is read; but for the order in which a processor's BLAS sums a row."""
    case = Case((2,), (2,), 33, 50, 24, 40, dtype, mask, 0.25)
    made = plan(Backward(case, alone=True).program(), computes=can_emit)
    values = values_for(Backward(case, alone=True), {}, 4)
    if mask != "causal":
        draw = np.random.default_rng(1)
        for name in "kvg":
            values[name] = np.where(draw.random(values[name].shape) < 0.01, np.nan, values[name]).astype(dtype.numpy)
    memory = {buffer: values[name] for name, buffer in made.inputs}
    for kernel in made.kernels:
        assert len(copied(emit(kernel, made, options=chosen(kernel, 16, 32)))) >= 2
        forms = [run(kernel, made, memory, {}, interpreter, chosen(kernel, 16, 32, bulk)) for bulk in (1, 0)]
        for name, (found, _) in forms[0].items():
            assert_alike(found, forms[1][name][0], f"{kernel.name} {name}")
            memory[name] = found


def test_operands_of_heads_that_share_keys_are_copies(interpreter: Runner) -> None:
    """What is summed has two loops under a causal mask, of which a block has one index of the first."""
    given = Backward(Case((2,), (3,), 64, 64, 32, 32, F16, "causal", 0.25), alone=True)
    made = plan(given.program(), computes=can_emit)
    for kernel in made.kernels:
        assert {each.buffer for each in copied(emit(kernel, made, options=chosen(kernel, 32, 16)))} == set("qkvg")
    check(given, {}, values_for(given, {}, 1), interpreter, "groups", lambda kernel: chosen(kernel, 32, 16))


# ---------------------------------------------------------------- what is chosen


def gradients(width: int, dtype: DType = F16, mask: str = "causal", *, length: int = 2048) -> Plan:
    case = Case((4, 16), (), length, 2048, width, width, dtype, mask, 0.125)
    return plan(Backward(case, alone=True).program(), computes=can_emit)


def defaults(made: Plan, options: EmitOptions = HOPPER) -> list[tuple[int | None, int]]:
    """What the choice of each kernel says of copies, and its stages."""
    found = []
    for kernel in made.kernels:
        emission: EmittedKernel = emit(kernel, made, options=options)
        assert emission.choice is not None
        bulk = dict(emission.choice.numbers).get("BULK")
        assert bool(copied(emission)) == bool(bulk), "what a choice says is what is emitted"
        found.append((bulk, emission.choice.stages))
    return found


def test_the_default_of_targets_with_copies() -> None:
    assert defaults(gradients(64)) == defaults(gradients(128, mask="additive")) == [(1, 3)] * 3
    assert defaults(gradients(256)) == [(0, 2)] * 3, "fewer rows than a wgmma has"
    assert defaults(gradients(128), replace(HOPPER, bulk=101376))[-1] == (0, 2), "shared memory holds one block"
    assert defaults(gradients(64, F32)) == defaults(gradients(64), EmitOptions()) == [(None, 2)] * 3
    assert defaults(gradients(20)) == [(None, 2)] * 3, "rows of 40 bytes"


def test_forms_race_each_other() -> None:
    made = gradients(64)
    for kernel in made.kernels:
        assert isinstance(kernel, Statistics | Chain)
        for options, forms in ((HOPPER, {0, 1}), (EmitOptions(), {None})):
            choice = emit(kernel, made, options=options).choice
            assert choice is not None
            found = alternatives(kernel, choice, options, {})
            assert {dict(each.numbers).get("BULK") for each in found} == forms and len(found) <= MOST


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
@pytest.mark.parametrize("width, dtype, mask", [(64, F16, "causal"), (64, BF16, "none"), (128, F16, "causal"), (128, F16, "additive")])
def test_gradients_by_copies_compile_ahead_of_time(width: int, dtype: DType, mask: str, target: str, compiler: Compiler) -> None:
    """Bulk copies and the matrix unit of the machine, in the registers and the shared memory that there are."""
    made = gradients(width, dtype, mask)
    for kernel in made.kernels:
        (compiled,) = compiler.run(kernel_source(kernel, made, options=HOPPER), emit(kernel, made, options=HOPPER).launches, target, {})
        assert compiled.spilled <= 32 and compiled.shared <= HOPPER.bulk
        assert "cp.async.bulk.tensor" in compiled.text
        assert ("wgmma.mma_async" if target == "sm_90" else "tcgen05.mma") in compiled.text
