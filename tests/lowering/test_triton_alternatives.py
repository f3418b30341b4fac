"""Alternatives of kernels: each family has some, each of them computes what the default does, fits its bounds, and compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.ir.dims import add, multiply, symbol
from coset.ir.errors import CosetError
from coset.ir.types import F16, F32
from coset.lowering.kernels.kernel import (
    Attention,
    Buffer,
    Chain,
    Computed,
    Grouped,
    Library,
    Load,
    Loop,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Rows,
    Scan,
    Sort,
    Statistics,
    Store,
)
from coset.lowering.kernels.kernel import Scatter as ScatterKernel
from coset.lowering.kernels.renaming import renamed
from coset.lowering.planning.plan import plan
from coset.lowering.triton.alternatives import MOST, alternatives
from coset.lowering.triton.choice import KernelChoice, KernelChoices, MeasuredChoice
from coset.lowering.triton.key import key_of, nameless
from coset.lowering.triton.source import EmitOptions, Rounding, emit, kernel_source, refusal
from coset.lowering.triton.source import can_emit as emitted
from tests.lowering import drawn_programs, plan_numpy
from tests.lowering.plan_cases import CASES
from tests.lowering.test_triton_copies import linear
from tests.lowering.test_triton_product import matmul, operands
from tests.lowering.triton_cases import assert_near, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
EACH = EmitOptions(rounding=Rounding.EACH)
SIZES = {"n": 5, "s": 7}
SAMPLE = 5  # alternatives of a kernel that are run


def choices_of(kernel: Computed, made: Plan, options: EmitOptions, sizes: dict[str, int]) -> tuple[KernelChoice, ...]:
    default = emit(kernel, made, options=options).choice
    assert default is not None
    return alternatives(kernel, default, options, sizes)


def computed(made: Plan) -> Iterator[Computed]:
    """The kernels of which something is chosen."""
    return (kernel for kernel in made.kernels if not isinstance(kernel, Library) and not refusal(kernel))


def sample(found: tuple[KernelChoice, ...], seed: int) -> list[KernelChoice]:
    """Some of the alternatives, the last one with them, not the default."""
    others = list(found[1:])
    picks = np.random.default_rng(seed).permutation(len(others))[: SAMPLE - 1]
    return [others[place] for place in picks] + others[-1:]


# ---------------------------------------------------------------- they compute the same


def check(program: Any, feeds: dict[str, Any], interpreter: Runner, what: str, *, bulk: int = 0) -> int:
    """How many kernels have copied operands, of those whose alternatives compute the same; with `bulk` none but those are run."""
    copying: list[str] = []

    def before(kernel: Computed, at: plan_numpy._Run) -> None:
        options = replace(EACH, bulk=bulk, processors=2 if bulk else EACH.processors)
        found_choices = choices_of(kernel, at.plan, options, at.binding)
        if bulk and not (found_choices and "BULK" in dict(found_choices[0].numbers)):
            return
        copying.append(kernel.name)
        for choice in sample(found_choices, len(what)):
            found = run(kernel, at.plan, at.memory, at.binding, interpreter, replace(options, choice=choice))
            for name, (value, expected) in found.items():
                size = np.abs(np.nan_to_num(expected.astype(np.float64), posinf=0, neginf=0))
                absolute = 2e-5 * float(np.max(size, initial=1.0))
                where = f"{what} {kernel.name} {choice.text()} {name}"
                assert_near(value, expected, at.plan.buffers[name].dtype, 2e-5, absolute=absolute, what=where)

    plan_numpy.run(plan(program, computes=emitted), feeds, before=before)
    return len(copying)


@pytest.mark.parametrize("name", sampled(sorted(CASES), 2))
def test_alternatives_of_the_kernel_families(name: str, interpreter: Runner) -> None:
    check(*CASES[name](), interpreter, name)


@pytest.mark.parametrize("batch", range(3))
def test_alternatives_of_drawn_programs(batch: int, interpreter: Runner) -> None:
    for seed in range(1000 + batch * 8, 1008 + batch * 8):
        check(*drawn_programs.program(seed), interpreter, f"seed {seed}:")


COPYING = {"few_bits", "grown_caches", "integers"}  # others multiply f32 in full, or read in ways that no descriptor says


@pytest.mark.parametrize("name", sorted(CASES))
def test_alternatives_by_copies_of_the_kernel_families(name: str, interpreter: Runner) -> None:
    found = check(*CASES[name](), interpreter, name, bulk=232448)
    assert bool(found) == (name in COPYING)


def test_alternatives_by_copies_of_a_linear_layer(interpreter: Runner) -> None:
    """All that two processors have, on ragged sizes, within the rounding of f16 sums that are rounded once."""
    kernel, made = linear(130, 264, 128)
    draw = np.random.default_rng(2)
    values = {name: cast(draw.integers(-2, 3, made.buffers[name].shape), F16) for name in "xwbr"}
    options = EmitOptions(bulk=232448, processors=2)
    found = choices_of(kernel, made, options, {})
    assert len([choice for choice in found if choice["RESIDENT"]]) >= 5
    for choice in found[::3]:
        value, expected = run(kernel, made, values, {}, interpreter, replace(options, choice=choice))["y"]
        assert_near(value, expected, F16, 2e-3, absolute=2e-3, what=choice.text())


def test_forms_race_each_other() -> None:
    """Pointers and copies, a program a tile and programs that stay, whole and in parts; of a kernel that has no copies none says so."""
    kernel, made = matmul(4096, 4096, 4096, F16)
    options = EmitOptions(bulk=232448)
    found = [dict(choice.numbers) for choice in choices_of(kernel, made, options, {})]
    assert {each["BULK"] for each in found} == {0, 1} and {each["RESIDENT"] for each in found} >= {0, 1}
    assert {each["PARTS"] for each in found} == {1, 2, 4} and len(found) <= MOST
    assert not any(each["RESIDENT"] for each in found if not each["BULK"])
    assert not any("BULK" in dict(choice.numbers) for choice in choices_of(kernel, made, EmitOptions(), {}))
    narrow, made = matmul(4096, 32, 4096, F16)
    assert all(choice["BLOCK_N"] >= 16 * choice["PARTS"] for choice in choices_of(narrow, made, options, {}))
    odd, made = matmul(4096, 4095, 4095, F16)
    assert not any("BULK" in dict(choice.numbers) for choice in choices_of(odd, made, options, {}))
    split, made = matmul(64, 64, 65536, F16)
    for choice in choices_of(split, made, options, {}):
        assert choice["SPLITS"] == 1 or not choice["RESIDENT"]
    free, made = matmul(4096, 4096, multiply(64, symbol("k")), F16)
    assert {choice["RESIDENT"] for choice in choices_of(free, made, options, {"k": 64})} == {0}, "k may be 0"


def test_sums_split_in_any_number_of_parts(interpreter: Runner) -> None:
    """k of 5003 in 2 to 32 parts: the last part of some is empty or short."""
    kernel, made = matmul(20, 17, 5003, F32)
    values = operands(20, 17, 5003, F32)
    found = [choice for choice in choices_of(kernel, made, EmitOptions(), {}) if choice["SPLITS"] > 1]
    assert len({choice["SPLITS"] for choice in found}) >= 4
    bound = np.abs(values["x"].astype(np.float64)) @ np.abs(values["w"].astype(np.float64))
    for choice in sample(found, 1):
        value, expected = run(kernel, made, values, {}, interpreter, EmitOptions(choice=choice))["y"]
        assert_near(value, expected, F32, 0.0, absolute=float(bound.max()) * 5004 * 2.0**-24, what=choice.text())


def test_a_row_that_is_gone_over_in_pieces_has_other_pieces(interpreter: Runner) -> None:
    """Rows of 9001, and rows whose neighbours lie along the rows."""
    row, column = Loop("loop:r", 3), Loop("loop:c", 9001)
    for strides in (None, (1, 3)):
        made = Plan({"x": Buffer("x", F32, (3, 9001), "input", strides), "y": Buffer("y", F32, (3,), "output")}, (), (), ())
        kernel = _summed(row, column)
        found = choices_of(kernel, made, EACH, {})
        assert len(found) > 3
        values = {"x": cast(np.random.default_rng(3).integers(-3, 4, (3, 9001)), F32)}
        for choice in found[1:]:
            value, expected = run(kernel, made, values, {}, interpreter, replace(EACH, choice=choice))["y"]
            assert_near(value, expected, F32, 1e-6, what=choice.text())


def _summed(row: Loop, column: Loop) -> Rows:
    from coset.lowering.kernels.kernel import ColumnFold, Result

    fold = ColumnFold("total", "add", Load("x", (row.index, column.index), F32), F32)
    return Rows("summed", (row,), (column,), (fold,), (Store("y", (row.index,), Result("total", F32)),), (), terms=("reduce",))


# ---------------------------------------------------------------- what they are


def everything() -> Iterator[tuple[str, Computed, Plan]]:
    for name in sorted(CASES):
        made = plan(CASES[name]()[0], computes=emitted)
        yield from ((f"{name} {kernel.name}", kernel, made) for kernel in computed(made))


def test_every_family_has_alternatives_and_the_default_is_the_first() -> None:
    families: dict[type, int] = {}
    for what, kernel, made in everything():
        found = choices_of(kernel, made, EmitOptions(), SIZES)
        assert found[0] == emit(kernel, made).choice and len(set(found)) == len(found) <= MOST, what
        for choice in found:
            assert choice.warps in (1, 2, 4, 8, 16) and KernelChoice.read(choice.text()) == choice, what
            numbers = [number for name, number in choice.numbers if name != "SPLITS" and number != 1]
            assert all(number & (number - 1) == 0 for number in numbers), (what, choice)
        families[type(kernel)] = max(families.get(type(kernel), 0), len(found))
    assert set(families) == {Pointwise, Rows, Scan, Sort, ScatterKernel, Product, Grouped, Attention, Statistics, Chain, Recurrence}
    assert all(count >= 3 for count in families.values()), families


def test_the_default_is_emitted_again_where_it_is_chosen() -> None:
    for what, kernel, made in everything():
        emission = emit(kernel, made)
        assert emit(kernel, made, options=EmitOptions(choice=emission.choice)) == emission, what


def test_a_choice_is_in_the_launch_of_the_function_that_does_the_work() -> None:
    for what, kernel, made in everything():
        for choice in sample(choices_of(kernel, made, EmitOptions(), SIZES), 2):
            launches = emit(kernel, made, options=EmitOptions(choice=choice)).launches
            told = {name: number for name, number in choice.numbers if (name, number) != ("SPLITS", 1)}
            if told.pop("SPLITS", None):  # parts that would be empty are left out
                assert len(launches) == 2
            fits = [launch for launch in launches if told.items() <= dict(launch.constexprs).items()]
            assert any((launch.num_warps, launch.num_stages) == (choice.warps, choice.stages) for launch in fits), what


def test_whole_rows_stay_whole_and_k_stays_in_one_where_it_must() -> None:
    made = Plan({"x": Buffer("x", F32, (300, 1000), "input"), "y": Buffer("y", F32, (300,), "output")}, (), (), ())
    found = choices_of(_summed(Loop("loop:r", 300), Loop("loop:c", 1000)), made, EmitOptions(), {})
    assert {choice["BLOCK_COLUMNS"] for choice in found} == {1024} and len(found) > 3
    product, made = matmul(20, 17, 5003, F32)
    assert {choice["SPLITS"] for choice in choices_of(product, made, EmitOptions(splits=False), {})} == {1}
    case = plan(CASES["attention_in_one"]()[0], computes=emitted)
    (one,) = (kernel for kernel in computed(case) if isinstance(kernel, Attention))
    sizes = {"batch": 2, "m": 1, "keys": 4096}
    long = replace(one, **{role: tuple(replace(loop, extent=size) for loop in getattr(one, role)) for role, size in sizes.items()})
    assert len({choice["SPLITS"] for choice in choices_of(long, case, EmitOptions(), SIZES)}) > 2
    assert {choice["SPLITS"] for choice in choices_of(long, case, EmitOptions(splits=False), SIZES)} == {1}
    free, made = matmul(symbol("m"), 17, 5003, F32)
    assert {choice["SPLITS"] for choice in choices_of(free, made, EmitOptions(), {"m": 20})} == {1}


@pytest.mark.parametrize(
    "text", ["", "BLOCK=64", "BLOCK=64 warps=4", "warps=4 stages=3 BLOCK=64", "BLOCK=64  warps=4 stages=3", "B=x warps=4 stages=3"]
)
def test_what_is_no_choice_is_refused(text: str) -> None:
    with pytest.raises(CosetError, match="no choice"):
        KernelChoice.read(text)


# ---------------------------------------------------------------- keys


def key(kernel: Computed, made: Plan, options: EmitOptions | None = None, **sizes: int) -> str:
    return key_of(emit(kernel, made, options=options), made, sizes)


def test_a_key_has_no_names() -> None:
    """Other names of buffers and kernels, and other ops beside them, are no other kernel."""
    for what, kernel, made in everything():
        others = renamed(replace(made, kernels=(kernel,)), {name: f"other_{place}" for place, name in enumerate(made.buffers)})
        (other,) = others.kernels
        assert not isinstance(other, Library)
        assert key(replace(other, name="another", terms=("words",)), others, **SIZES) == key(kernel, made, **SIZES), what


def test_a_key_changes_with_all_that_a_device_sees() -> None:
    keys = {key(*matmul(*sizes, dtype)) for sizes in ((64, 64, 64), (64, 64, 128), (128, 64, 64)) for dtype in (F32, F16)}
    kernel, made = matmul(64, 64, 64, F32)
    keys |= {key(kernel, made, EmitOptions(tf32=True)), key(kernel, made, EmitOptions(processors=8)), key(kernel, made, EACH)}
    strided = replace(made, buffers={**made.buffers, "x": replace(made.buffers["x"], strides=(1, 64))})
    keys.add(key(kernel, strided))
    assert len(keys) == 9  # of 64 cubed 8 processors have the same tiles as 132, and rounding is not the key's: the text is
    free, made = matmul(symbol("rows"), 64, 64, F32)
    assert key(free, made, rows=7) != key(free, made, rows=8)
    other, planned = matmul(symbol("count"), 64, 64, F32)
    assert key(free, made, rows=7) == key(other, planned, count=7)


def test_a_key_has_what_a_descriptor_says() -> None:
    """Every other row, and rows from another one on, of one buffer: the text is the same, but not what is read."""
    options = EmitOptions(bulk=232448)
    kernel, made = matmul(512, 512, 512, F16)
    made = replace(made, buffers={**made.buffers, "x": Buffer("x", F16, (1024, 512), "input")})
    x = kernel.lhs
    assert isinstance(x, Load)
    row, depth = x.index
    kinds = [replace(kernel, lhs=replace(x, index=(place, depth))) for place in (row, add(row, 64), multiply(2, row))]
    assert len({emit(each, made, options=options).source for each in kinds}) == 1
    assert len({key(each, made, options) for each in kinds}) == 3


def test_keys_are_the_same_in_every_process() -> None:
    """Profiles outlive a run."""
    script = (
        "from tests.lowering.test_triton_alternatives import everything, key, SIZES\n"
        "print(*(key(kernel, made, **SIZES) for what, kernel, made in everything() if what[:2] in ('li', 'mi', 'so', 'at')))"
    )
    root = Path(__file__).parents[2]
    found = {
        subprocess.run(
            [sys.executable, "-c", script], cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1 and len(found.pop().split()) > 8


def test_a_key_is_of_tokens_without_names_and_comments() -> None:
    text = "@triton.jit\ndef f(x_ptr, y_ptr, BLOCK: tl.constexpr):\n    # words\n    x = tl.load(x_ptr + 1, mask=x_ptr < 2)\n"
    assert nameless(text)[:8] == ["@", "triton", ".", "jit", "\n", "def", "$0", "("]
    assert nameless(text) == nameless(text.replace("x_ptr", "other").replace("# words", "# others"))
    assert nameless(text) != nameless(text.replace("mask=", "other=")) != nameless(text.replace("tl.load", "tl.store"))


# ---------------------------------------------------------------- choices that are given


def test_given_choices_are_taken_by_key_and_only_where_they_are_alternatives() -> None:
    kernel, made = matmul(64, 64, 64, F32)
    default = emit(kernel, made)
    other = choices_of(kernel, made, EmitOptions(), {})[3]
    given = EmitOptions(choices=KernelChoices({key(kernel, made): MeasuredChoice(other, 1.5)}))
    taken = emit(kernel, made, options=given)
    assert taken.choice == other and taken.chosen == MeasuredChoice(other, 1.5) and taken.launches != default.launches
    assert emit(*matmul(64, 64, 65, F32), options=given) == emit(*matmul(64, 64, 65, F32))
    strange = replace(other, numbers=(("BLOCK_M", 48), *other.numbers[1:]))
    assert emit(kernel, made, options=EmitOptions(choices=KernelChoices({key(kernel, made): MeasuredChoice(strange, 2.0)}))) == default
    free, made = matmul(symbol("m"), 64, 64, F32)
    chosen = {key_of(emit(free, made), made, {"m": 7}): MeasuredChoice(choices_of(free, made, EmitOptions(), {"m": 7})[2], 1.1)}
    assert emit(free, made, options=EmitOptions(choices=KernelChoices(chosen, {"m": 7}))).chosen
    assert not emit(free, made, options=EmitOptions(choices=KernelChoices(chosen, {"m": 8}))).chosen


# ---------------------------------------------------------------- they compile


@pytest.mark.slow
def test_a_sample_of_alternatives_compiles(compiler: Compiler) -> None:
    seen: set[type] = set()
    for what, kernel, made in everything():
        if type(kernel) in seen:
            continue
        seen.add(type(kernel))
        for choice in sample(choices_of(kernel, made, EmitOptions(), SIZES), 4)[:3]:
            options = EmitOptions(choice=choice)
            for one in compiler.run(
                kernel_source(kernel, made, options=options), emit(kernel, made, options=options).launches, "sm_90", {}
            ):
                assert one.registers > 0, what
    assert len(seen) == 11
