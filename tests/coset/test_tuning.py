"""`coset tune` without a device: what is pruned, what a clock of ours says, what is kept when a run is cut off, what is lowered."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset import cli, timing
from coset.backends.profile import Place
from coset.backends.profile import opened as measured
from coset.backends.triton_runtime import Runner, architecture
from coset.backends.tuning_profile import Facts, Raced, Timed, Tunings, opened, reading
from coset.calibration.cases import constant_term
from coset.feeds import Feed
from coset.ir.dims import evaluate
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.types import DTYPES, F32
from coset.lower import Check, Lowering, lower
from coset.lowering.kernel import Load, scalars
from coset.lowering.plan import plan
from coset.lowering.triton import Emission, can_emit
from coset.lowering.triton_choice import Choice, Chosen
from coset.lowering.triton_launch import Options
from coset.targets.target import get_target
from coset.tuning import clocking
from coset.tuning import pruning as pruning_module
from coset.tuning import tune as tune_module
from coset.tuning.chosen import advice, best, default_row, fastest
from coset.tuning.drawn import drawn
from coset.tuning.measuring import Bench, Measuring, differs, in_interpreter, summed
from coset.tuning.programs import digest_of, model_key
from coset.tuning.pruning import Pruning, survivors
from coset.tuning.tunable import Tunable, tunables
from coset.tuning.tune import Tuning, prepare, tune_model
from tests.lowering.plan_cases import CASES, fold, gelu_of, op, x_

pytest.importorskip("triton", reason="Triton is not installed")
TARGET = get_target("nvidia-h200")
ROOT = Path(__file__).parents[2]
PLACE = Place("a GPU of ours", "version 1")


def model() -> Program:
    """A pointwise kernel and one of rows."""
    x = x_("x", F32, 12, 40)
    y = gelu_of(x)
    return Program((x,), (("y", y), ("s", fold(op("multiply", y, y), "add", 1))))


def asked(**given: Any) -> Tuning:
    return Tuning(**{"model": model(), "target": TARGET, "jobs": 2, "seconds": 500.0, **given})


def kernels_of(name: str, sizes: Mapping[str, int] | None = None) -> list[Tunable]:
    return tunables([plan(CASES[name]()[0], computes=can_emit)], Options(), TARGET, sizes or {"n": 5, "s": 7})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Tunings]:
    with opened(tmp_path / "profile.sqlite") as found:
        yield found


# ---------------------------------------------------------------- a bench of ours


@dataclass
class Bench_:
    """Kernels run in the interpreter; a call takes what `seconds` says of its numbers. After `calls` blocks the user presses Ctrl-C."""

    runner: Runner
    seconds: Callable[[Choice], float] = lambda choice: 1.0
    broken: Callable[[Choice], bool] = lambda choice: False
    calls: int = 1 << 30
    programs: Callable[[str], float] = lambda name: 1.0
    timed: list[str] = field(default_factory=list)

    def bench(self) -> Bench:
        return Bench(PLACE, lambda: _Kept(self), self.running, self.package, self.calling, self.clock, timing.Protocol(5, 9.0, 5, 1))

    @contextmanager
    def running(self, _: str, emission: Emission, __: Any, ___: Any) -> Iterator[timing.Program]:
        assert emission.choice is not None
        yield _Call(self.seconds(emission.choice), emission.choice.text())

    @contextmanager
    def calling(self, folder: Path, _: Feed) -> Iterator[timing.Program]:
        yield _Call(self.programs(folder.name), folder.name)

    def package(self, folder: Path) -> AbstractContextManager[Any]:
        from coset.backends.torch_package import TorchPackage

        return TorchPackage(folder, interpreted=True)

    def clock(self, program: timing.Program, calls: int) -> list[float]:
        assert isinstance(program, _Call)
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        self.timed.append(program.name)
        return [program.seconds * (1.0 + 0.001 * (len(self.timed) % 3))] * calls


@dataclass(frozen=True)
class _Call:
    seconds: float
    name: str

    def __call__(self) -> None:
        """Nothing: the clock knows."""


class _Kept:
    """The runner of a bench, which stays open; what is broken gives other values."""

    def __init__(self, bench: Bench_) -> None:
        self.bench = bench

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        """It is closed by the fixture."""

    def run(self, source: str, launches: Any, arrays: Any, binding: Any) -> dict[str, Any]:
        found = self.bench.runner.run(source, launches, arrays, binding)
        numbers = dict(launches[0].constexprs)
        choice = Choice(tuple(numbers.items()), launches[0].num_warps, launches[0].num_stages)
        if not self.bench.broken(choice):
            return found
        changed = {name: np.array(value) for name, value in found.items()}
        for name, value in changed.items():
            if value.dtype.kind == "f" and name not in ("x",):
                value.reshape(-1)[-1:] += 1.0
        return changed


# ---------------------------------------------------------------- what compilers say


def facts(kernel: Tunable, **given: Facts) -> dict[str, Facts]:
    """Facts of all alternatives: those given by place, else all is well."""
    return {choice.text(): given.get(f"n{place}", Facts(32, 0, 1024)) for place, choice in enumerate(kernel.ranked)}


def test_what_does_not_fit_the_target_or_spills_is_out() -> None:
    (kernel,) = kernels_of("linear")[:1]
    assert len(kernel.ranked) >= 6
    told = facts(
        kernel, n0=Facts(300, 8, 1 << 20), n1=Facts(32, 16, 0), n2=Facts(32, 0, 232449), n3=Facts(256, 0, 0), n4=Facts(refused="no"),
    )  # fmt: skip
    found = survivors(kernel, told, TARGET)
    assert found.survivors == (kernel.default, *kernel.ranked[5:])  # the default stays, whatever it is
    out = [found.out[choice.text()] for choice in kernel.ranked[1:5]]
    assert out == ["spills: 16 B", "shared: 232449 B", "registers: 256 of a thread", "refused: no"]
    assert found.left == 0 and survivors(kernel, dict(list(told.items())[:-1]), TARGET).left == 1


def test_where_all_spill_none_is_out_for_it() -> None:
    (kernel,) = kernels_of("linear")[:1]
    told = {choice.text(): Facts(32, 4, 0) for choice in kernel.ranked}
    assert survivors(kernel, told, TARGET).survivors == kernel.ranked


def test_registers_of_all_threads_fit_a_processor() -> None:
    x = x_("x", F32, 4096, 8192)
    (kernel,) = tunables([plan(Program((x,), (("y", fold(x, "add", 1)),)), computes=can_emit)], Options(), TARGET, {})
    assert any(choice.warps == 16 for choice in kernel.ranked[1:])
    told = {choice.text(): Facts(160, 0, 0) for choice in kernel.ranked}  # 81,920 registers of 512 threads
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
        return tunables([replace(made, kernels=(kernel,))], Options(), TARGET, {})[0]

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
    (kernel,) = kernels_of("gelu", {"n": 5})[:1]
    monkeypatch.setattr(pruning_module, "COMPILING", 0.0)
    with Pruning(TARGET, store, 2) as pruning:
        (found,) = pruning.prune([kernel], 60.0)
    assert any("compiles for more" in why or "died" in why for why in found.out.values())
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
        from coset.tuning.drawn import elements

        scratch = {each.name: np.zeros(elements(each, sizes), each.dtype.numpy) for each in emission.scratch}
        found = interpreter.run(kernel.source(kernel.default), emission.launches, {**first, **scratch}, sizes)
        assert all(value.dtype == first[each].dtype for each, value in found.items() if each in first)


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
    ours = Bench_(interpreter, lambda choice: 0.5 if choice == fast else 1.0, lambda choice: choice == wrong)
    bench = ours.bench()
    measuring = Measuring(kernel, bench, ours.bench().runner())
    timed = measuring.timed(fast)
    assert 0.49 < timed.ratio < 0.51 and timed.low <= timed.ratio <= timed.high < 1 and timed.rounds == 5 and not timed.problem
    assert summed(kernel) > 1
    attention = next(each for each in kernels_of("attention_in_one") if each.family == "attention")
    assert summed(attention) < 100, "sums of sums: their lengths are added"
    before = len(ours.timed)
    assert measuring.timed(wrong).problem.startswith("other values: ") and len(ours.timed) == before, "what is wrong is not timed"


# ---------------------------------------------------------------- runs, and runs that are cut off


def quicker(choice: Choice) -> float:
    """A clock's opinion: the more warps the slower, the more elements a program the faster."""
    return (1.0 + choice.warps / 16) / (1.0 + sum(number for _, number in choice.numbers) / 4096)


def tuned(store: Tunings, ours: Bench_, **given: Any) -> dict[str, Any]:
    return tune_model(asked(**given), store, bench=ours.bench())


def rows_of(store: Tunings) -> dict[str, dict[str, float]]:
    found = store.timed(TARGET.name, PLACE)
    return {key: {text: each.ratio for text, each in timed.items()} for key, timed in found.items()}


def test_a_run_that_is_cut_off_goes_on_where_it_was(interpreter: Runner, tmp_path: Path) -> None:
    with opened(tmp_path / "whole") as whole:
        found = tuned(whole, Bench_(interpreter, quicker))
        assert found["stop"] == "done" and all(kernel["chosen"] for kernel in found["kernels"])
        expected = rows_of(whole)
        total = found["measured_now"]
    assert total > 4
    with opened(tmp_path / "cut") as cut:
        first = tuned(cut, Bench_(interpreter, quicker, calls=25))
        assert first["stop"] == "interrupt" and 0 < first["measured_now"] < total
        assert sum(len(each) for each in rows_of(cut).values()) >= first["measured_now"]
    with opened(tmp_path / "cut") as cut:  # as another process would
        second = tuned(cut, Bench_(interpreter, quicker))
        assert (
            second["stop"] == "done"
            and first["measured_now"] + second["measured_now"] == total
            and second["compiled_now"] < found["compiled_now"]
        )
        assert {key: set(each) for key, each in rows_of(cut).items()} == {key: set(each) for key, each in expected.items()}
        third = tuned(cut, Bench_(interpreter, quicker, calls=0))
        assert third["stop"] == "done" and third["measured_now"] == third["compiled_now"] == 0
        assert [each["chosen"] for each in third["kernels"]] == [each["chosen"] for each in second["kernels"]]
        assert all(each["factor"] >= 1.0 for each in third["kernels"])


def test_no_time_to_measure_is_time_over(interpreter: Runner, store: Tunings) -> None:
    found = tuned(store, Bench_(interpreter), seconds=0.0)
    assert found["stop"] == "time" and found["measured_now"] == 0 and found["kernels"] == []


def test_time_that_ends_between_two_alternatives_ends_the_run(interpreter: Runner, store: Tunings, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Bench_(interpreter)
    watch = SimpleNamespace(monotonic=lambda: time.monotonic() + 1e6 * (len(ours.timed) > 15))
    monkeypatch.setattr(clocking, "time", watch)
    found = tuned(store, ours)
    assert found["stop"] == "time" and found["measured_now"] == 2 and len(found["kernels"]) == 1 and found["kernels"][0]["chosen"] is None
    monkeypatch.undo()
    assert tuned(store, ours)["stop"] == "done"


def test_what_gives_other_values_is_dropped_told_and_never_chosen(interpreter: Runner, store: Tunings) -> None:
    said: list[str] = []
    found = tuned(store, Bench_(interpreter, quicker, lambda choice: choice.warps == 2), progress=said.append)
    dropped = [text for kernel in found["kernels"] for text in kernel["problems"]]
    assert dropped and all("warps=2" in text for text in dropped) and any("other values" in line for line in said)
    assert all("warps=2" not in kernel["chosen"] or kernel["chosen"] == kernel["default"] for kernel in found["kernels"])


def test_a_kernel_is_done_when_all_of_it_was_compiled(interpreter: Runner, store: Tunings) -> None:
    (kernel,) = kernels_of("gelu", {"n": 5})[:1]
    told = facts(kernel)

    class Slow:
        def prune(self, kernels: Any, _: float) -> list[Any]:
            return [survivors(each, {text: told[text] for text in list(told)[:2]}, TARGET) for each in kernels]

    work = clocking.Clocking(TARGET.name, store, Bench_(interpreter).bench())
    assert work.kernels([kernel], Slow(), time.monotonic() + 100.0) and work.pruned[0].left > 0  # type: ignore[arg-type]
    assert set(rows_of(store)[kernel.key]) == {kernel.ranked[1].text()}, "the default's row says that all were measured"


def test_a_default_that_does_not_run_is_no_measurement(interpreter: Runner, store: Tunings) -> None:
    class Dying(_Kept):
        def run(self, *_: Any) -> dict[str, Any]:
            raise CosetError("it died")

    ours = Bench_(interpreter)
    bench = replace(ours.bench(), runner=lambda: Dying(ours))
    found = tune_model(asked(), store, bench=bench)
    assert found["stop"] == "done" and not store.timed(TARGET.name, PLACE)
    assert all(kernel["not_measured"] == "it died" and kernel["chosen"] is None for kernel in found["kernels"])


def test_the_whole_path_once_in_triton_s_interpreter(store: Tunings) -> None:
    """With a real clock, which means nothing there."""
    found = tune_model(asked(), store, bench=in_interpreter())
    assert found["device"]["name"] == "dry run" and found["stop"] == "done"
    assert all(kernel["measured"] and not kernel["problems"] for kernel in found["kernels"])


# ---------------------------------------------------------------- what is chosen


def test_the_choice_is_the_one_whose_interval_is_below_the_default_and_whose_ratio_is_the_least() -> None:
    rows = {
        "A=1 warps=4 stages=3": Timed(1.0, 0.7, 0.6, 1.01, 5),
        "A=2 warps=4 stages=3": Timed(1.0, 0.9, 0.85, 0.95, 5),
        "A=4 warps=4 stages=3": Timed(1.0, 0.8, 0.75, 0.99, 5),
        "A=8 warps=4 stages=3": Timed(1.0, 0.1, 0.1, 0.1, 5, "other values"),
    }
    assert best(rows) == Chosen(Choice.read("A=4 warps=4 stages=3"), 1.25)
    assert best(dict(reversed(rows.items()))) == best(rows)
    rows["A=2 warps=8 stages=3"] = replace(rows["A=4 warps=4 stages=3"])
    assert best(rows) == Chosen(Choice.read("A=2 warps=8 stages=3"), 1.25), "of equal ones the first by its text"
    slow = {"A=1 warps=4 stages=3": rows["A=1 warps=4 stages=3"]}
    assert best(slow) is None
    assert best({**slow, "A=16 warps=4 stages=3": default_row(1.0)}) == Chosen(Choice.read("A=16 warps=4 stages=3"), 1.0)
    won = [Raced("b", 2, Timed(1, 0.8, 0.7, 0.9, 5)), Raced("a", 0, Timed(1, 1.0, 1.0, 1.0)), Raced("c", 1, Timed(1, 0.5, 0.4, 1.2, 5))]
    assert fastest(tuple(won)) == won[0] and fastest(tuple(won[1:])) is None
    assert fastest((Raced("d", 3, Timed(1, 0.5, 0.4, 0.6, 5, "other values")), won[1])) is None


def package_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def lowered(folder: Path, **given: Any) -> dict[str, Any]:
    return lower(Lowering(model(), TARGET, **{"check": Check.NONE, **given}), folder)


def lowered_again(folder: Path, file: Path) -> dict[str, bytes]:
    lowered(folder, profile=file)
    return package_of(folder)


def test_lowering_takes_the_choices_the_same_each_time_and_says_so(interpreter: Runner, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "profile.sqlite"
    with opened(file) as store:
        found = tuned(store, Bench_(interpreter, quicker))
    chosen = {kernel["name"]: kernel for kernel in found["kernels"]}
    said: list[str] = []
    before = file.read_bytes()
    report = lowered(tmp_path / "a", profile=file, progress=said.append, check=Check.INTERPRETED)
    again = lowered(tmp_path / "b", profile=file)
    plain, plain_again = lowered(tmp_path / "c"), lowered(tmp_path / "d")
    assert file.read_bytes() == before, "a profile is only read"
    first, second = package_of(tmp_path / "a"), package_of(tmp_path / "b")
    assert {name for name in first if first[name] != second[name]} == {"manifest.json"}, "only what was compared differs"
    assert package_of(tmp_path / "b") == lowered_again(tmp_path / "e", file) and package_of(tmp_path / "c") == package_of(tmp_path / "d")
    assert package_of(tmp_path / "a")["model.py"] != package_of(tmp_path / "c")["model.py"]
    assert report["check"]["ok"] and again["profile"] and plain["profile"] is plain_again["profile"] is None
    assert report["profile"]["device"] == {"name": PLACE.device, "versions": PLACE.versions}
    rows = {row["name"]: row["tuned"] for row in report["kernels"]}
    assert report["profile"]["tuned"] == {name: row["factor"] for name, row in rows.items()}
    assert {name: row["choice"] for name, row in rows.items()} == {name: kernel["chosen"] for name, kernel in chosen.items()}
    assert any(row["factor"] > 1.05 for row in rows.values()) and not any("tuned" in row for row in plain["kernels"])
    assert any(PLACE.device in line for line in said)


def test_a_profile_of_another_target_is_told_and_changes_nothing(interpreter: Runner, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "profile.sqlite"
    with opened(file) as store:
        store.put_timed("nvidia-a100", PLACE, "k", "A=1 warps=4 stages=3", Timed(1.0, 0.5, 0.5, 0.5, 5))
    said: list[str] = []
    report = lowered(tmp_path / "a", profile=file, progress=said.append)
    lowered(tmp_path / "b")
    assert any("has nothing for `nvidia-h200`" in line for line in said) and report["profile"]["device"] is None
    kernels = [package_of(tmp_path / each)["model.py"] for each in "ab"]
    assert kernels[0] == kernels[1]


def test_the_place_is_the_one_of_the_latest_measurement(tmp_path: Path) -> None:
    file = tmp_path / "profile.sqlite"
    later = Place("a GPU of ours", "version 2")
    with opened(file) as store:
        store.put_timed(TARGET.name, PLACE, "k", "A=1 warps=4 stages=3", Timed(1.0, 0.5, 0.5, 0.5, 5))
        store.put_timed(TARGET.name, later, "k", "A=2 warps=4 stages=3", Timed(1.0, 0.5, 0.5, 0.5, 5))
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE tuned SET at = '2026-01-01T00:00:00' WHERE versions = 'version 1'")
        connection.execute("UPDATE tuned SET at = '2026-01-02T00:00:00' WHERE versions = 'version 2'")
    found = advice(file, TARGET)
    assert found.place == later and found.kernels["k"].choice.text() == "A=2 warps=4 stages=3"
    assert advice(file, get_target("nvidia-a100")).place is None


def test_bad_profiles_are_refused_by_what_is_wrong(tmp_path: Path) -> None:
    text, other, empty = tmp_path / "text", tmp_path / "other", tmp_path / "empty"
    text.write_text("no database at all, but long enough to be taken for one" * 20)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE things (x)")
    empty.touch()
    for file, what in ((tmp_path / "none", "there is no profile"), (tmp_path, "there is no profile"), (text, "is no profile"),
                       (other, "no profile"), (empty, "no profile")):  # fmt: skip
        with pytest.raises(CosetError, match=what) as caught:
            advice(file, TARGET)
        assert "coset tune" in (caught.value.help or "")
    calibrated = tmp_path / "calibrated"
    with measured(calibrated) as profile:
        profile.put(PLACE, "op", "f32", "1", 1.0, 5)
    assert advice(calibrated, TARGET).place is None
    before = calibrated.read_bytes()
    with reading(calibrated) as store:
        assert store.places(TARGET.name) == []
    assert calibrated.read_bytes() == before
    with opened(calibrated) as store, measured(calibrated) as profile:  # both live in one file
        store.put_facts("sm_90", "t", "k", "c", Facts(1))
        assert store.facts("sm_90", "t", "k") == {"c": Facts(1)} and len(profile.rows(PLACE)) == 1
    with pytest.raises(CosetError, match="aten"):
        lower(Lowering(model(), TARGET, code="aten", profile=calibrated), tmp_path / "out")


# ---------------------------------------------------------------- other programs


def several() -> Program:
    """A program of which strayed prices find another form."""
    return CASES["training_step"]()[0]


def test_programs_are_raced_kept_and_taken(interpreter: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(tune_module, "tunables", lambda *_: [])  # programs alone
    file = tmp_path / "profile.sqlite"
    given = {"model": several(), "programs": 3}
    prepared = prepare(asked(**given))
    assert len(prepared.programs) > 1, "the case has no other program"
    others = [each for each in prepared.programs if each.strayed]
    ours = Bench_(interpreter, programs=lambda name: 0.5 if name == f"program_{others[-1].strayed}" else 1.0)
    with opened(file) as store:
        found = tuned(store, ours, **given)
        assert found["stop"] == "done" and len(found["raced"]) == len(prepared.programs)
        assert [row["problem"] for row in found["raced"]] == [""] * len(found["raced"])
        before = len(ours.timed)
        assert len(tuned(store, ours, **given)["raced"]) == len(found["raced"]) and len(ours.timed) == before
        won = fastest(tuple(store.raced(TARGET.name, PLACE, model_key(prepared.task))))
    assert won is not None and won.strayed
    report = lower(Lowering(several(), TARGET, check=Check.INTERPRETED, profile=file), tmp_path / "out")
    assert report["profile"]["program"]["strayed"] == won.strayed and report["profile"]["program"]["factor"] > 1.5
    assert report["check"]["ok"] and report["cost"]["method"] == "measured"
    said: list[str] = []
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE raced SET program = 'another' WHERE strayed != 0")
    other = lower(Lowering(several(), TARGET, check=Check.NONE, profile=file, progress=said.append), tmp_path / "other")
    assert other["profile"]["program"]["strayed"] == 0 and any("is not found" in line for line in said)


def test_a_program_that_differs_from_the_model_is_dropped_and_the_first_must_not(
    interpreter: Runner, store: Tunings, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    given = {"model": several(), "programs": 3}
    prepared = prepare(asked(**given))
    others = {f"program_{each.strayed}" for each in prepared.programs if each.strayed}

    def broken(names: set[str]) -> Bench:
        ours = Bench_(interpreter)

        @contextmanager
        def package(folder: Path) -> Iterator[Any]:
            with ours.package(folder) as runs:
                moved = folder.name in names
                yield SimpleNamespace(run=lambda feed: {name: value + 1 if moved else value for name, value in runs.run(feed).items()})

        return replace(ours.bench(), package=package)

    monkeypatch.setattr(tune_module, "tunables", lambda *_: [])  # programs alone
    found = tune_model(asked(**given), store, bench=broken(others))
    rows = {row["strayed"]: row["problem"] for row in found["raced"]}
    assert rows.pop(0) == "" and rows and all(problem.startswith("other values") for problem in rows.values())
    with opened(Path(":memory:")) as empty, pytest.raises(CosetError, match="cannot be timed: other values"):
        tune_model(asked(**given), empty, bench=broken({"program_0"}))


def test_a_program_s_digest_has_no_names() -> None:
    x, v, w = x_("x", F32, 32, 48), x_("v", F32, 48, 40), x_("w", F32, 48, 40)
    a, b, c = x_("a", F32, 32, 48), x_("b", F32, 48, 40), x_("c", F32, 48, 40)

    def product(x: Any, y: Any) -> Any:
        return op("dot_general", x, y, lhs_contract=(1,), rhs_contract=(0,))

    first = Program((x, v, w), (("y", op("add", product(x, v), product(x, w))),))
    second = Program((a, b, c), (("other", op("add", product(a, b), product(a, c))),))
    swapped = Program((a, c, b), (("other", op("add", product(a, b), product(a, c))),))
    assert digest_of(first) == digest_of(second) != digest_of(swapped) != digest_of(model())

    def scaled(value: np.ndarray[Any, Any]) -> str:
        x = x_("x", F32, *value.shape)
        return digest_of(Program((x,), (("y", op("multiply", x, constant_term(value, F32))),)))

    large, small = np.ones((8, 8), np.float32), np.ones(2, np.float32)
    assert scaled(large) == scaled(2 * large) != scaled(np.ones((8, 9), np.float32)) and scaled(small) != scaled(2 * small)


@pytest.mark.slow
def test_the_path_of_a_gpu_over_torch_s_memory(tmp_path: Path) -> None:
    """Everything that `on_gpu` does but CUDA itself, in a process with Triton's interpreter: kernels and whole packages."""
    pytest.importorskip("torch")
    script = f"""
from pathlib import Path
from coset.backends.tuning_profile import opened
from coset.backends.triton_corrections import correct_interpreter
correct_interpreter()
from coset.timing import Protocol
from coset.tuning.measuring import on_gpu
from coset.tuning.tune import tune_model
from tests.coset.test_tuning import asked, several
with opened(Path({str(tmp_path / "profile")!r})) as store:
    bench = on_gpu("cpu", Protocol(1, 1.0, 1, 1))
    kernels = tune_model(asked(), store, bench=bench)
    assert kernels["stop"] == "done" and all(one["measured"] and not one["problems"] for one in kernels["kernels"]), kernels
    from coset.tuning.racing import _Race
    from coset.tuning.tune import prepare
    prepared = prepare(asked(model=several(), programs=3))
    race = _Race(prepared.task, prepared.original, prepared.options, bench, Path({str(tmp_path)!r}))
    first, *_, other = prepared.programs
    assert not race.written(first) and not race.written(other)
    timed = race.timed(first, other)
    assert timed.rounds == 1 and timed.ratio > 0 and not timed.problem, timed
"""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1500:]


# ---------------------------------------------------------------- the command


@pytest.fixture
def onnx_model(tmp_path: Path) -> Path:
    from coset.lowering.onnx import write

    x = x_("x", F32, 24, 40)
    path = tmp_path / "model.onnx"
    write(Program((x,), (("y", op("onnx.Relu", x)), ("z", op("onnx.Softmax", x, axis=-1)))), path)
    return path


def test_without_a_gpu_it_says_so_in_one_line(onnx_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert cli.run(["tune", str(onnx_model), "--profile", str(tmp_path / "p")]) == 2
    said = capsys.readouterr()
    assert "measuring needs a GPU" in said.err and "--prune-only" in said.err and said.out == ""


def test_the_command_prunes_and_goes_on(onnx_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "p.sqlite"
    given = ["tune", str(onnx_model), "--target", "nvidia-a100", "--profile", str(profile), "--jobs", "2"]
    assert cli.run([*given, "--prune-only", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["architecture"] == "sm_80" and found["compiled_now"] > 0 and "compiling" in said.err and found["profile"] == str(profile)
    assert cli.run([*given, "--no-measure"]) == 0
    shown = capsys.readouterr()
    assert "rows" in shown.out and "compiling" not in shown.err


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--target", "cpu-onnxruntime", "--prune-only"], "no kernels of ours"),
        (["--target", "nowhere", "--prune-only"], "no target"),
        (["--dim", "n=3", "--prune-only"], "no free dim"), (["--jobs", "0"], "0 is not in the range"),
        (["--seconds", "-1"], "not in the range"), (["--numerics", "wrong", "--prune-only"], "wrong"),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly_is_told(
    more: list[str], what: str, onnx_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["tune", str(onnx_model), "--profile", str(tmp_path / "p"), *more]) == 2
    assert what in capsys.readouterr().err


def test_no_folder_for_the_profile(onnx_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COSET_CACHE", "")
    assert cli.run(["tune", str(onnx_model), "--prune-only"]) == 2
    assert "give --profile" in capsys.readouterr().err


def test_the_command_lower_takes_a_profile_and_says_how_many_kernels_it_speaks_of(
    interpreter: Runner, onnx_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "profile.sqlite"
    with opened(file) as store:
        tuned(store, Bench_(interpreter, quicker), model=str(onnx_model))
    given = ["lower", str(onnx_model), "--check", "none", "--profile"]
    assert cli.run([*given, str(file), "-o", str(tmp_path / "a")]) == 0
    said = capsys.readouterr()
    assert f"kernels as tuned on {PLACE.device}" in said.out and "times as fast" in said.out
    assert cli.run([*given, str(tmp_path / "none"), "-o", str(tmp_path / "b")]) == 2
    assert "there is no profile" in capsys.readouterr().err and not (tmp_path / "b").exists()


def test_ctrl_c_keeps_what_is_done(
    onnx_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "p.sqlite"
    kept = Tunings.put_facts
    count = 0

    def put(self: Tunings, *given: Any) -> None:
        nonlocal count
        count += 1
        if count > 3:
            raise KeyboardInterrupt
        kept(self, *given)

    monkeypatch.setattr(Tunings, "put_facts", put)
    assert cli.run(["tune", str(onnx_model), "--profile", str(profile), "--prune-only", "--json"]) == 2
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["stop"] == "interrupt" and "goes on" in said.err and sum(kernel["compiled"] for kernel in found["kernels"]) == 3
    monkeypatch.setattr(Tunings, "put_facts", kept)
    assert cli.run(["tune", str(onnx_model), "--profile", str(profile), "--prune-only", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["compiled_now"] == sum(kernel["compiled"] for kernel in found["kernels"]) - 3
