"""What prediction and compilers leave of alternatives, and what is drawn to compare and time them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner, architecture
from coset.backends.tuning_profile import CompilerFacts, Tunings, opened
from coset.ir.dims import evaluate
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import constant
from coset.ir.types import DTYPES, F32
from coset.lowering.kernels.kernel import Load, scalars
from coset.lowering.planning.plan import plan
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.source import can_emit
from coset.pricing.kernel_options import options_for
from coset.targets.target import get_target
from coset.tuning import pruning as pruning_module
from coset.tuning.drawn import drawn, elements
from coset.tuning.measuring import Measuring, differs, refusal, summed
from coset.tuning.pruning import Pruning, survivors
from coset.tuning.tunable import Tunable, tunables
from coset.tuning.tune import tune_model
from tests.coset.tuning_bench import (
    TARGET,
    FakeBench,
    asked,
    facts,
    kernels_of,
)
from tests.lowering.plan_cases import CASES, fold, op, x_

pytest.importorskip("triton", reason="Triton is not installed")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Tunings]:
    with opened(tmp_path / "profile.sqlite") as found:
        yield found


# ---------------------------------------------------------------- what compilers say


def test_what_does_not_fit_the_target_or_spills_is_out() -> None:
    (kernel,) = kernels_of("linear")[:1]
    assert len(kernel.ranked) >= 6
    told = facts(
        kernel,
        n0=CompilerFacts(300, 8, 1 << 20),
        n1=CompilerFacts(32, 16, 0),
        n2=CompilerFacts(32, 0, 232449),
        n3=CompilerFacts(256, 0, 0),
        n4=CompilerFacts(refused="no"),
    )
    found = survivors(kernel, told, TARGET)
    assert found.survivors == (kernel.default, *kernel.ranked[5:])  # the default stays, whatever it is
    out = [found.out[choice.text()] for choice in kernel.ranked[1:5]]
    assert out == ["spills: 16 B", "shared: 232449 B", "registers: 256 of a thread", "refused: no"]
    assert found.left == 0 and survivors(kernel, dict(list(told.items())[:-1]), TARGET).left == 1


def test_where_all_spill_none_is_out_for_it() -> None:
    (kernel,) = kernels_of("linear")[:1]
    told = {choice.text(): CompilerFacts(32, 4, 0) for choice in kernel.ranked}
    assert survivors(kernel, told, TARGET).survivors == kernel.ranked


def test_registers_of_all_threads_fit_a_processor() -> None:
    x = x_("x", F32, 4096, 8192)
    (kernel,) = tunables([plan(Program((x,), (("y", fold(x, "add", 1)),)), computes=can_emit)], EmitOptions(), TARGET, {})
    assert any(choice.warps == 16 for choice in kernel.ranked[1:])
    told = {choice.text(): CompilerFacts(160, 0, 0) for choice in kernel.ranked}  # 81,920 registers of 512 threads
    found = survivors(kernel, told, TARGET)
    assert all(choice.warps < 16 for choice in found.survivors[1:])
    assert "registers: 160 of 512 threads" in found.out.values()
    amd = get_target("amd-mi300x")  # its number is a SIMD's
    assert survivors(replace(kernel, target=amd), told, amd).survivors == kernel.ranked


def test_prediction_keeps_the_default_and_few_others() -> None:
    for name in CASES:
        for kernel in kernels_of(name):
            assert kernel.ranked[0] == kernel.default and len(kernel.ranked) <= 17
            best_ = min(kernel.seconds(choice) for choice in kernel.choices)
            assert all(kernel.seconds(choice) <= 2.5 * best_ for choice in kernel.ranked[1:])
            assert all(kernel.seconds(choice) > 0 for choice in kernel.choices)


def test_prediction_knows_edges_waves_and_operands_that_are_read_again() -> None:
    from tests.lowering.test_triton_product import matmul

    def ranked(m: int, n: int, k: int) -> Tunable:
        kernel, made = matmul(m, n, k, DTYPES["f16"])
        return tunables([replace(made, kernels=(kernel,))], EmitOptions(), TARGET, {})[0]

    large = ranked(4096, 4096, 4096)
    small_tiles = [choice for choice in large.choices if choice["BLOCK_M"] * choice["BLOCK_N"] <= 32 * 32]
    assert small_tiles and not set(small_tiles) & set(large.ranked), "both operands are read again by every small tile"
    assert all(choice["BLOCK_M"] == 16 for choice in ranked(16, 4096, 4096).choices), "no rows are padded to more than 16"
    ragged = ranked(4096, 129, 4096)
    narrow, whole = (min(ragged.seconds(choice) for choice in ragged.choices if choice["BLOCK_N"] == side) for side in (32, 256))
    assert narrow < whole, "a tile of 256 columns is half empty"
    half, full = ranked(65536, 129, 4096), ranked(65536, 256, 4096)  # of more programs than there are slots for
    same = [choice for choice in half.choices if choice["BLOCK_N"] == 256]
    assert same and all(full.seconds(choice) == half.seconds(choice) for choice in same)


def test_products_are_predicted_where_a_target_gives_no_rate_for_them() -> None:
    """By what they read alone: this was an AttributeError."""
    from tests.lowering.test_triton_product import matmul

    kernel, made = matmul(4096, 4096, 64, DTYPES["f16"])
    unrated = replace(TARGET, kernels={**TARGET.kernels, "matmul": replace(TARGET.kernels["matmul"], rates={})})
    (found,) = tunables([replace(made, kernels=(kernel,))], EmitOptions(), unrated, {})
    times = {choice: found.seconds(choice) for choice in found.choices if choice.get("SPLITS") == 1}
    assert min(times.values()) > 0.0 and max(times.values()) > 2.0 * min(times.values()), "small tiles read more"


def test_prediction_leaves_both_ways_to_read_operands() -> None:
    """It cannot tell copies from pointers: the clock does."""
    from tests.lowering.test_triton_product import matmul

    for sizes in ((4096, 4096, 4096), (1024, 1024, 1024), (64, 64, 65536)):
        kernel, made = matmul(*sizes, DTYPES["f16"])
        (found,) = tunables([replace(made, kernels=(kernel,))], options_for("exact", TARGET), TARGET, {})
        copies = [choice["BULK"] for choice in found.ranked[1:]]
        assert min(copies.count(0), copies.count(1)) >= 4, sizes


def test_compilers_in_parallel_and_what_is_known_is_not_compiled_again(store: Tunings) -> None:
    found = tune_model(asked(), store, measured=False)
    assert found["architecture"] == "sm_90" and found["stop"] == "done" and found["device"] is None
    assert {"pointwise", "rows"} >= set(found["families"]) and found["compiled_now"] == sum(
        kernel["compiled"] for kernel in found["kernels"]
    )
    for kernel in found["kernels"]:
        assert kernel["survivors"][0] == kernel["default"] and kernel["compiled"] > 2 and "chosen" not in kernel
    again = tune_model(asked(jobs=1), store, measured=False)
    assert again["compiled_now"] == 0 and [each["survivors"] for each in again["kernels"]] == [
        each["survivors"] for each in found["kernels"]
    ]
    json.dumps(found)


def test_no_time_to_compile_is_time_over_and_the_next_run_goes_on(store: Tunings) -> None:
    found = tune_model(asked(seconds=0.0), store, measured=False)
    assert found["stop"] == "time" and found["compiled_now"] == 0 and all(each["left"] for each in found["kernels"])
    assert tune_model(asked(), store, measured=False)["stop"] == "done"


def test_a_compiler_that_dies_or_takes_too_long_refuses_one_alternative(store: Tunings, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is answered: the clock ends each process."""
    (kernel,) = kernels_of("gelu", {"n": 5})[:1]

    def silent(compiler: Compiler, *_: object) -> None:
        compiler.streams()
        assert compiler._process is not None
        compiler._process.wait(60)
        raise CosetError(f"the process that runs Triton died: {compiler.last_words()}")

    monkeypatch.setattr(pruning_module, "COMPILING", 0.2)
    monkeypatch.setattr(Compiler, "ask", silent)
    with Pruning(TARGET, store, 2) as pruning:
        (found,) = pruning.prune([kernel], 60.0)
    assert found.out and all("compiles for more" in why for why in found.out.values())
    assert found.survivors[0] == kernel.default


def test_what_targets_are_compiled_for() -> None:
    names = {"nvidia-h200": "sm_90", "nvidia-a100": "sm_80", "nvidia-b200": "sm_100", "amd-mi300x": "gfx942", "cpu-onnxruntime": None}
    assert {name: architecture(get_target(name)) for name in names} == names


# ---------------------------------------------------------------- what is measured on


@pytest.mark.parametrize("name", sorted(CASES))
def test_drawn_memory_is_such_that_kernels_stay_inside(name: str, interpreter: Runner) -> None:
    """Gathers, scatters, groups: the interpreter's guard zones, and the process dies where a load goes far."""
    for kernel in kernels_of(name):
        first, second = drawn(kernel), drawn(kernel)
        assert all(first[each].tobytes() == second[each].tobytes() for each in first)
        emission = kernel.emission(kernel.default)
        sizes = kernel.sizes
        scratch = {each.name: np.zeros(elements(each, sizes), each.dtype.numpy) for each in emission.scratch}
        found = interpreter.run(kernel.source(kernel.default), emission.launches, {**first, **scratch}, sizes)
        assert all(value.dtype == first[each].dtype for each, value in found.items() if each in first)


def test_what_is_below_a_byte_is_drawn_as_memory_holds_it() -> None:
    """Apart in the types of torch, packed as bytes."""
    i4, f4 = DTYPES["i4"], DTYPES["f4e2m1fn"]
    packed = constant(np.arange(128).reshape(8, 16).astype(i4.numpy))
    x, y = x_("x", i4, 8, 16), x_("y", f4, 8, 16)
    whole = op("add", op("add", *(op("convert", each, dtype=F32) for each in (x, y))), op("convert", packed, dtype=F32))
    (kernel,) = tunables([plan(Program((x, y), (("z", whole),)), computes=can_emit)], EmitOptions(), TARGET, {})
    found = {name: (str(array.dtype), array.size) for name, array in drawn(kernel).items()}
    (bytes_,) = found.keys() - {"x", "y", "z"}
    assert found == {"x": ("int8", 128), "y": ("float32", 128), "z": ("float32", 128), bytes_: ("uint8", 64)}
    assert elements(next(each for each in kernel.plan.buffers.values() if each.packed is not None), {}) == 64
    assert "1 of 3" in differs(np.array([0.5, 1, 6], np.float32), np.array([0.5, 1, 4], np.float32), f4, 10**6)


def test_keys_that_ascend_are_drawn_so() -> None:
    grouped = [kernel for kernel in kernels_of("mixture_of_experts") if kernel.family == "grouped"]
    assert grouped
    for kernel in grouped:
        key = kernel.kernel.key.buffer  # type: ignore[union-attr]
        values = drawn(kernel)[key].astype(np.int64)
        assert (np.diff(values) >= 0).all() and values.min() >= 0


def test_places_are_drawn_inside_of_what_they_are_places_of() -> None:
    """The hub's gathers keep an index inside by themselves; a kernel after a sort reads where it is told."""
    found = 0
    for kernel in (kernel for name in ("embedding", "embedding_gradient", "segments", "mixture_of_experts") for kernel in kernels_of(name)):
        memory = drawn(kernel)
        for pick in kernel.kernel.picks:
            for value in scalars(pick.value):
                if isinstance(value, Load) and value.dtype.kind in ("int", "uint"):
                    places = memory[value.buffer].astype(np.int64)
                    assert places.min(initial=0) >= 0 and places.max(initial=0) < evaluate(pick.count, kernel.sizes), kernel.kernel.name
                    found += 1
    assert found > 3


def test_a_kernel_of_vast_buffers_is_not_measured_alone() -> None:
    (kernel,) = kernels_of("gelu", {"n": 5})[:1]
    assert refusal(kernel) == ""
    assert "bytes" in refusal(replace(kernel, sizes={"n": 1 << 26}))


def test_other_values_are_told_from_another_order_of_sums() -> None:
    draw = np.random.default_rng(1)
    values = draw.normal(size=1000).astype(np.float32)
    assert differs(values, values, F32, 1) == ""
    assert differs(values + np.float32(1e-6), values, F32, 100) == ""
    assert "1 of 1000" in differs(np.where(np.arange(1000) == 7, values + 0.01, values).astype(np.float32), values, F32, 100)
    assert differs(np.full(3, np.nan, np.float32), np.ones(3, np.float32), F32, 10**6)
    assert differs(np.ones(3, np.float32), np.full(3, np.nan, np.float32), F32, 1)
    assert differs(np.full(3, np.inf, np.float32), np.full(3, -np.inf, np.float32), F32, 1)
    assert differs(np.arange(3), np.array([0, 1, 3]), DTYPES["i64"], 1) == "1 of 3 elements"
    half = DTYPES["f16"]
    assert differs(values.astype(np.float16), np.nextafter(values.astype(np.float16), np.float16(9)), half, 1) == ""


def test_an_alternative_is_compared_first_and_then_timed(interpreter: Runner, store: Tunings) -> None:
    (kernel,) = [each for each in kernels_of("layer_norm") if each.family == "rows"][:1]
    fast, wrong = kernel.choices[1], kernel.choices[2]
    ours = FakeBench(interpreter, lambda choice: 0.5 if choice == fast else 1.0, lambda choice: choice == wrong)
    bench = ours.bench()
    measuring = Measuring(kernel, bench, ours.bench().runner())
    timed = measuring.timed(fast)
    assert 0.49 < timed.ratio < 0.51 and timed.low <= timed.ratio <= timed.high < 1 and timed.rounds == 5 and not timed.problem
    assert summed(kernel) > 1
    attention = next(each for each in kernels_of("attention_in_one") if each.family == "attention")
    assert summed(attention) < 100, "sums of sums: their lengths are added"
    before = len(ours.timed)
    assert measuring.timed(wrong).problem.startswith("other values: ") and len(ours.timed) == before, "what is wrong is not timed"
