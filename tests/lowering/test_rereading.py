"""What is read again of long rows: few are under way where a cache then holds them, alternatives are ranked by what memory gives twice,
and what is chosen compiles without spills."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.ir.dims import floordiv
from coset.ir.types import F16, F32
from coset.lowering.kernels.kernel import Load, Rows, Store, scalars
from coset.lowering.kernels.renaming import mapped_kernel
from coset.lowering.triton.alternatives import alternatives
from coset.lowering.triton.predicted import predicted
from coset.lowering.triton.rereading import again_bytes, fetched_again, share_missed
from coset.lowering.triton.source import EmitOptions, emit, kernel_source
from coset.pricing.kernel_options import options_for
from coset.targets.target import get_target
from tests.lowering.test_triton_rows import apply, layer_norm, softmax
from tests.lowering.triton_cases import assert_near, run

pytest.importorskip("triton", reason="Triton is not installed")
H200 = get_target("nvidia-h200")
CACHED = options_for("reassociates", H200)


def warps(rows: int, columns: int, options: EmitOptions = CACHED) -> int:
    (launch,) = emit(*softmax(rows, columns), options=options).launches
    return launch.num_warps


def test_rows_under_way_are_those_that_the_cache_holds() -> None:
    assert warps(2048, 65536) == 32  # of 256 KB each: one for a processor
    assert warps(2048, 32768) == 16
    assert warps(100, 65536) == 4  # 26 MB in all
    assert warps(2048, 65536, replace(CACHED, cache=0)) == warps(2048, 65536, replace(CACHED, cache=1 << 30)) == 4
    assert options_for("exact", get_target("amd-mi300x")).cache == 0  # each of its dies has one


def test_what_is_read_again() -> None:
    """A softmax reads its row twice, to the bit three times; what each row has of a vector is in caches; a sum reads nothing again."""
    kernel, made = softmax(64, 65536, F16)
    assert again_bytes(kernel, made, contracts=True) == 2 and again_bytes(kernel, made, contracts=False) == 4
    norm, with_weights = layer_norm(64, 65536)
    assert again_bytes(norm, with_weights, contracts=True) == 4
    total = replace(kernel, element_stores=(), row_stores=(Store("y", (kernel.rows[0].index,), apply("log", kernel.folds[0].value)),))
    assert again_bytes(total, made, contracts=True) == 0


def test_the_share_that_is_missed() -> None:
    """Nothing of what fits, all but nothing of what is far beyond, and the less the fewer programs are under way."""
    shares = [share_missed(100_000, 1 << 18, warps, CACHED) for warps in (4, 8, 16, 32)]
    assert shares == sorted(shares, reverse=True) and shares[-1] == 0.0 < shares[0] < 1.0
    assert share_missed(100_000, 1 << 18, 4, EmitOptions()) == 0.0  # no cache is known


def test_alternatives_are_ranked_by_what_memory_gives_twice() -> None:
    kernel, made = softmax(2048, 65536)
    default = emit(kernel, made, options=CACHED).choice
    assert default is not None and fetched_again(kernel, made, default.warps, CACHED, {}) == 0.0
    found = alternatives(kernel, default, CACHED, {})
    assert found[0] == default and {choice.warps for choice in found} >= {4, 8, 16, 32}
    seconds = {choice: predicted(kernel, made, choice, CACHED, H200, {}) for choice in found}
    assert min(seconds, key=seconds.__getitem__).warps == 32


@pytest.mark.parametrize("columns", [16384, 40_000])
@pytest.mark.parametrize("family", ["softmax", "layer_norm"])
def test_tiles_of_many_warps_give_the_same(family: str, columns: int, interpreter: Runner) -> None:
    """To and fro, with a last tile that is whole and one that is not."""
    options = replace(CACHED, cache=1 << 16, processors=1)
    kernel, made = softmax(3, columns) if family == "softmax" else layer_norm(3, columns)
    (launch,) = emit(kernel, made, options=options).launches
    assert launch.num_warps == 32 and "back" in kernel_source(kernel, made, options=options)
    draw = np.random.default_rng(5)
    values = {name: draw.normal(size=columns).astype(np.float32) for name in ("w", "b") if name in made.buffers}
    values["x"] = draw.normal(size=(3, columns)).astype(np.float32)
    for name, (found, expected) in run(kernel, made, values, {}, interpreter, options).items():
        assert_near(found, expected, F32, 1e-5, absolute=1e-6 if family == "softmax" else 1e-4, what=name)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_they_compile_without_spills(target: str, compiler: Compiler) -> None:
    for kernel, made in (softmax(2048, 65536), softmax(2048, 65536, F16), layer_norm(2048, 65536)):
        assert isinstance(kernel, Rows)
        (compiled,) = compiler.run(kernel_source(kernel, made, options=CACHED), emit(kernel, made, options=CACHED).launches, target, {})
        assert compiled.spilled <= 8  # what a call takes of the stack


def test_two_programs_of_a_processor_have_registers() -> None:
    """A walk that hands on a mean, the squares about it and a sum has 8 elements a thread where as many programs are counted on as their
    warps say; softmax, which hands on two values, 16."""
    norm, with_weights = layer_norm(2048, 32768)
    choice = emit(norm, with_weights, options=CACHED).choice
    assert choice is not None and (choice["BLOCK_COLUMNS"], choice.warps) == (4096, 16)
    other = emit(*softmax(2048, 32768), options=CACHED).choice
    assert other is not None and (other["BLOCK_COLUMNS"], other.warps) == (8192, 16)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_so_it_is(target: str, compiler: Compiler) -> None:
    for kernel, made in (layer_norm(2048, 32768), softmax(2048, 32768)):
        emission = emit(kernel, made, options=CACHED)
        (compiled,) = compiler.run(kernel_source(kernel, made, options=CACHED), emission.launches, target, {})
        assert compiled.registers <= 64, "two programs of 16 warps"


def test_what_lies_across_is_not_read_ahead() -> None:
    """The scale of a channel is one number for many columns: copied ahead it would be copied for each."""
    norm, made = layer_norm(2048, 32768)
    assert emit(norm, made, options=CACHED).source.count("num_stages") == 2
    (store,) = norm.element_stores
    (columns,) = norm.columns
    (load,) = [value for value in scalars(store.value) if isinstance(value, Load) and value.buffer == "w"]
    moved = replace(load, index=(floordiv(columns.index, 64),))
    across = mapped_kernel(norm, lambda each: moved if each is load else each, lambda each: each)
    assert isinstance(across, Rows)
    assert emit(across, made, options=CACHED).source.count("num_stages") == 1
