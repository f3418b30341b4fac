"""Attention whose scores are made one block before they are weighed, in Triton's interpreter: drawn ones against the definition, the same
bits as in turn, what is read behind the last key, where it can be chosen, and ahead of time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.ir.dims import symbol
from coset.ir.types import BF16, F16, F32, DType
from coset.lowering.triton.alternatives import alternatives
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.source import EmitOptions, emit, kernel_source
from tests.lowering.attention_cases import Case
from tests.lowering.test_triton_attention import check, values_for
from tests.lowering.test_triton_attention_copies import compute_the_same, default, drawn, planned, surrounded, wide
from tests.lowering.test_triton_copies import HOPPER
from tests.lowering.triton_cases import assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
Array = np.ndarray[Any, Any]
SHARED = {"sm_90": 232448, "sm_100": 232448}


def ahead(m: int, n: int, splits: int = 1, *, early: int = 1, warps: int = 4) -> EmitOptions:
    """These tiles, with scores a block ahead or in turn."""
    return EmitOptions(choice=KernelChoice((("BLOCK_M", m), ("BLOCK_N", n), ("SPLITS", splits), ("BULK", 1), ("AHEAD", early)), warps, 2))


@pytest.mark.parametrize("batch", sampled(range(6)))
def test_drawn_attentions(batch: int, interpreter: Runner) -> None:
    """Whole blocks and rests, groups of heads, free lengths, keys that are split, none or a causal mask."""
    for seed in range(4000 + 20 * batch, 4020 + 20 * batch):
        case, binding, options = drawn(seed)
        case = replace(case, mask="causal" if case.mask == "causal" or seed % 2 else "none", fill=-np.inf)
        assert options.choice is not None
        options = ahead(*(options.choice[name] for name in ("BLOCK_M", "BLOCK_N", "SPLITS")))
        check(case, binding, values_for(case, binding, seed, special=False), interpreter, f"seed {seed}: {case}", options)


def forms(case: Case, values: dict[str, Array], interpreter: Runner, m: int, n: int, splits: int = 1) -> tuple[Array, Array]:
    """What is stored with scores a block ahead, and in turn."""
    kernel, made = planned(case)
    found = [run(kernel, made, values, {}, interpreter, ahead(m, n, splits, early=early))["y"][0] for early in (1, 0)]
    return found[0], found[1]


@pytest.mark.parametrize("dtype", sampled([F32, F16, BF16]), ids=str)
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_bits_are_those_of_scores_in_turn(mask: str, dtype: DType, interpreter: Runner) -> None:
    """Also of NaN and infinities: what the last round reads behind its blocks, or behind what is seen, counts for nothing."""
    for seed, (keys, m, n, splits) in enumerate(((64, 16, 16, 1), (80, 32, 16, 2), (75, 64, 32, 1), (33, 16, 16, 1), (20, 16, 32, 1))):
        case = Case((2,), (), keys if mask == "causal" else 33, keys, 24, 40, dtype, mask, 0.25, safe=seed == 1)
        values = values_for(case, {}, 10 + seed, special=True)
        assert_same(*forms(case, values, interpreter, m, n, splits), dtype, f"{mask} {keys} {m} {n}")


def test_keys_that_are_hidden_have_no_say(interpreter: Runner) -> None:
    """NaN and infinities in keys behind those that the first queries see: scores ahead are made of them, and left out."""
    case = Case((), (), 64, 64, 16, 16, F32, "causal", 0.25)
    values = values_for(case, {}, 3, special=False)
    values["k"][40:] = np.nan
    values["k"][33] = np.inf
    early, later = forms(case, values, interpreter, 16, 16)
    assert_same(early, later, F32)
    assert np.isfinite(early[:32]).all() and np.isnan(early[45:]).all()


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_nothing_behind_the_last_key_is_read(mask: str, interpreter: Runner) -> None:
    """NaN around the operands, in memory of which a block has parts."""
    for length, keys, m, n, splits in ((33, 48, 16, 16, 1), (21, 64, 32, 32, 1), (5, 320, 16, 32, 3)):
        case = Case((3,), (), length, keys, 40, 24, F16, mask, 0.25, keys - length if mask == "causal" else 0)
        values = values_for(case, {}, length, special=False)
        kernel, made, inside = surrounded(*planned(case), values, turned=True)
        found = run(kernel, made, inside, {}, interpreter, ahead(m, n, splits))["y"][0]
        assert np.isfinite(found.astype(np.float64)).all()
        assert_same(found, forms(case, values, interpreter, m, n, splits)[1], F16)


def test_a_number_of_keys_that_is_not_known(interpreter: Runner) -> None:
    """Fewer than a block, whole ones, one more."""
    case = Case((1, 2), (), 7, symbol("S"), 16, 24, F16, "none", 0.25)
    for keys in (1, 31, 32, 33, 64, 300):
        check(case, {"S": keys}, values_for(case, {"S": keys}, keys, special=False), interpreter, f"{keys} keys", ahead(16, 32))


# ---------------------------------------------------------------- what is chosen


def test_it_can_be_chosen_where_keys_are_copies_and_scores_need_no_memory() -> None:
    for case in (wide(128), wide(64, mask="causal"), wide(64, length=symbol("n")), wide(256)):
        assert default(case)["AHEAD"] == 0
    for case in (wide(128, mask="additive"), wide(128, mask="boolean"), wide(64, length=1, keys=8192)):
        assert "AHEAD" not in default(case)
    assert "AHEAD" not in default(wide(64, dtype=F32), replace(HOPPER, bf16x6=True)), "registers hold no two blocks of scores"
    kernel, made = planned(wide(128))
    assert emit(kernel, made).choice == KernelChoice((("BLOCK_M", 128), ("BLOCK_N", 64), ("SPLITS", 1)), 8, 2), "by pointers"


def test_forms_race_each_other() -> None:
    kernel, made = planned(wide(128))
    choice = emit(kernel, made, options=HOPPER).choice
    assert choice is not None
    found = [dict(each.numbers) for each in alternatives(kernel, choice, HOPPER, {})]
    assert {(each["BULK"], each["AHEAD"]) for each in found} == {(1, 1), (1, 0), (0, 0)}
    assert len([each for each in found if each["AHEAD"]]) >= 5


def test_alternatives_compute_the_same(interpreter: Runner) -> None:
    compute_the_same(lambda found: [each for each in found if each["AHEAD"]], interpreter)


# ---------------------------------------------------------------- ahead of time


@pytest.mark.parametrize("target", SHARED)
@pytest.mark.parametrize("width, mask", sampled([(128, "none"), (128, "causal"), (64, "none"), (64, "causal")], 2))
def test_it_compiles_ahead_of_time(width: int, mask: str, target: str, compiler: Compiler, record_property: Any) -> None:
    """Two blocks of scores beside the sums: with next to no spilling on sm_90; blocks of keys are still on their way rounds before."""
    kernel, made = planned(wide(width, dtype=BF16, mask=mask))
    for m, n, warps in ((128, 128, 8), (64, 64, 4)):
        options = replace(ahead(m, n, warps=warps), bulk=SHARED[target])
        emission = emit(kernel, made, options=options)
        (compiled,) = compiler.run(kernel_source(kernel, made, options=options), emission.launches, target, {})
        record_property(f"{width} {mask} {m}", f"{compiled.registers} registers, {compiled.spilled} B spilled, {compiled.shared} B shared")
        assert compiled.shared <= SHARED[target] and (compiled.spilled <= 32 or target == "sm_100")
        assert compiled.shared >= 2 * n * 2 * width * 2, "two blocks of keys and of values"
        assert ("wgmma.mma_async" if target == "sm_90" else "tcgen05.mma") in compiled.text
