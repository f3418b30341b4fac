"""Runs of `coset tune` without a device: what is measured, what is kept when they are cut off, what the command says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset import cli
from coset.backends.triton_runtime import Runner
from coset.backends.tuning_profile import Tunings, opened
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.types import F32
from coset.tuning import clocking
from coset.tuning.measuring import in_interpreter
from coset.tuning.pruning import survivors
from coset.tuning.tune import tune_model
from tests.coset.tuning_bench import (
    PLACE,
    TARGET,
    FakeBench,
    KeptRunner,
    asked,
    facts,
    kernels_of,
    quicker,
    rows_of,
    tuned,
)
from tests.lowering.plan_cases import op, x_

pytest.importorskip("triton", reason="Triton is not installed")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Tunings]:
    with opened(tmp_path / "profile.sqlite") as found:
        yield found


# ---------------------------------------------------------------- runs, and runs that are cut off


def test_a_run_that_is_cut_off_goes_on_where_it_was(interpreter: Runner, tmp_path: Path) -> None:
    with opened(tmp_path / "whole") as whole:
        found = tuned(whole, FakeBench(interpreter, quicker))
        assert found["stop"] == "done" and all(kernel["chosen"] for kernel in found["kernels"])
        expected = rows_of(whole)
        total = found["measured_now"]
    assert total > 4
    with opened(tmp_path / "cut") as cut:
        first = tuned(cut, FakeBench(interpreter, quicker, calls=25))
        assert first["stop"] == "interrupt" and 0 < first["measured_now"] < total
        assert sum(len(each) for each in rows_of(cut).values()) >= first["measured_now"]
    with opened(tmp_path / "cut") as cut:  # as another process would
        second = tuned(cut, FakeBench(interpreter, quicker))
        assert (
            second["stop"] == "done"
            and first["measured_now"] + second["measured_now"] == total
            and second["compiled_now"] < found["compiled_now"]
        )
        assert {key: set(each) for key, each in rows_of(cut).items()} == {key: set(each) for key, each in expected.items()}
        third = tuned(cut, FakeBench(interpreter, quicker, calls=0))
        assert third["stop"] == "done" and third["measured_now"] == third["compiled_now"] == 0
        assert [each["chosen"] for each in third["kernels"]] == [each["chosen"] for each in second["kernels"]]
        assert all(each["factor"] >= 1.0 for each in third["kernels"])


def test_no_time_to_measure_is_time_over(interpreter: Runner, store: Tunings) -> None:
    found = tuned(store, FakeBench(interpreter), seconds=0.0)
    assert found["stop"] == "time" and found["measured_now"] == 0 and found["kernels"] == []


def test_time_that_ends_between_two_alternatives_ends_the_run(interpreter: Runner, store: Tunings, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = FakeBench(interpreter)
    watch = SimpleNamespace(monotonic=lambda: time.monotonic() + 1e6 * (len(ours.timed) > 15))
    monkeypatch.setattr(clocking, "time", watch)
    found = tuned(store, ours)
    assert found["stop"] == "time" and found["measured_now"] == 2 and len(found["kernels"]) == 1 and found["kernels"][0]["chosen"] is None
    monkeypatch.undo()
    assert tuned(store, ours)["stop"] == "done"


def test_what_gives_other_values_is_dropped_told_and_never_chosen(interpreter: Runner, store: Tunings) -> None:
    said: list[str] = []
    found = tuned(store, FakeBench(interpreter, quicker, lambda choice: choice.warps == 2), progress=said.append)
    dropped = [text for kernel in found["kernels"] for text in kernel["problems"]]
    assert dropped and all("warps=2" in text for text in dropped) and any("other values" in line for line in said)
    assert all("warps=2" not in kernel["chosen"] or kernel["chosen"] == kernel["default"] for kernel in found["kernels"])


def test_a_kernel_is_done_when_all_of_it_was_compiled(interpreter: Runner, store: Tunings) -> None:
    (kernel,) = kernels_of("gelu", {"n": 5})[:1]
    told = facts(kernel)

    class Slow:
        def prune(self, kernels: Any, _: float) -> list[Any]:
            return [survivors(each, {text: told[text] for text in list(told)[:2]}, TARGET) for each in kernels]

    work = clocking.Clocking(TARGET.name, store, FakeBench(interpreter).bench())
    assert work.kernels([kernel], Slow(), time.monotonic() + 100.0) and work.pruned[0].left > 0  # type: ignore[arg-type]
    assert set(rows_of(store)[kernel.key]) == {kernel.ranked[1].text()}, "the default's row says that all were measured"


def test_a_default_that_does_not_run_is_no_measurement(interpreter: Runner, store: Tunings) -> None:
    class Dying(KeptRunner):
        def run(self, *_: Any) -> dict[str, Any]:
            raise CosetError("it died")

    ours = FakeBench(interpreter)
    bench = replace(ours.bench(), runner=lambda: Dying(ours))
    found = tune_model(asked(), store, bench=bench)
    assert found["stop"] == "done" and not store.timed(TARGET.name, PLACE)
    assert all(kernel["not_measured"] == "it died" and kernel["chosen"] is None for kernel in found["kernels"])


def test_the_whole_path_once_in_triton_s_interpreter(store: Tunings) -> None:
    """With a real clock, which means nothing there."""
    found = tune_model(asked(), store, bench=in_interpreter())
    assert found["device"]["name"] == "dry run" and found["stop"] == "done"
    assert all(kernel["measured"] and not kernel["problems"] for kernel in found["kernels"])


# ---------------------------------------------------------------- the command


@pytest.fixture
def onnx_model(tmp_path: Path) -> Path:
    from coset.lowering.onnx.model import write

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
        tuned(store, FakeBench(interpreter, quicker), model=str(onnx_model))
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
    assert cli.run(["tune", str(onnx_model), "--profile", str(profile), "--prune-only", "--json"]) == 130
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["stop"] == "interrupt" and "goes on" in said.err and sum(kernel["compiled"] for kernel in found["kernels"]) == 3
    monkeypatch.setattr(Tunings, "put_facts", kept)
    assert cli.run(["tune", str(onnx_model), "--profile", str(profile), "--prune-only", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["compiled_now"] == sum(kernel["compiled"] for kernel in found["kernels"]) - 3
