"""The timing protocol: who is called how often and when, what is counted, and what a ratio says. No time is measured here."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from coset import bench
from coset.cli import run
from coset.comparing import timing
from coset.comparing.timing import Protocol, Timing, measure, ratio
from coset.console.measured import show_timings


class Clock:
    """A process whose threads spin until `asleep`, on a clock that only `sleep` and `call` move."""

    def __init__(self, asleep: float) -> None:
        self.now = self.used = 0.0
        self.asleep = asleep

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.used

    def sleep(self, seconds: float) -> None:
        self.used += min(seconds, max(0.0, self.asleep - self.now))
        self.now += seconds


@pytest.mark.parametrize("spins", [0.0, 0.010, 0.030])
def test_a_block_waits_until_the_threads_before_sleep(spins: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(spins)
    monkeypatch.setattr(timing, "time", clock)
    timing.settle()
    assert spins + 2 * timing.SLICE <= clock.now + 1e-9 and clock.now <= spins + 4 * timing.SLICE


def test_threads_that_never_sleep_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(float("inf"))
    monkeypatch.setattr(timing, "time", clock)
    timing.settle()
    assert timing.PATIENCE <= clock.now + 1e-9 <= timing.PATIENCE + 2 * timing.SLICE


def test_every_program_is_called_in_every_round_and_the_first_call_of_a_block_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, made = Clock(0.0), Counter[str]()
    monkeypatch.setattr(timing, "time", clock)

    def program(name: str, seconds: float) -> timing.Program:
        def call() -> None:
            made[name] += 1
            clock.now += seconds * (10 if made[name] == 1 else 1)  # the first call of all is slow, and not timed

        return call

    found = measure({"slow": program("slow", 0.01), "fast": program("fast", 0.0001)}, Protocol(rounds=3, calls=5))
    assert {name: len(each.medians) for name, each in found.items()} == {"slow": 3, "fast": 3}
    assert found["slow"].calls == 3 * 5 == made["slow"] - 3
    assert found["fast"].calls == made["fast"] - 3 >= 3 * timing.BLOCK_SECONDS / 0.0001  # short calls fill a block
    assert found["slow"].median == pytest.approx(0.01) and found["slow"].minimum == pytest.approx(0.01)
    assert ratio(found["slow"], found["fast"]).value == pytest.approx(100)


def test_a_ratio_is_paired_by_round() -> None:
    """A second in which the machine is four times as slow hits both and changes nothing."""
    fast = np.asarray([1.0, 4.0, 1.0, 4.0, 1.0])
    found = ratio(Timing(2 * fast, 2 * fast, 25), Timing(fast, fast, 25))
    assert (found.value, found.low, found.high) == (2.0, 2.0, 2.0)


def negation(path: Path, columns: int) -> str:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, columns]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "test", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def test_bench_times_each_model_at_both_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [negation(tmp_path / name, 3) for name in ("first.onnx", "second.onnx")]
    assert run(["bench", paths[0], "--against", paths[1], "--rounds", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = found["variants"]
    assert found["sizes"] == {} and found["noise"] >= 0
    assert (rows[0]["ratio"], rows[0]["ratio_low"], rows[0]["ratio_high"]) == (1, 1, 1)
    assert all(row["ratio_low"] <= row["ratio"] <= row["ratio_high"] for row in rows)
    assert [row["name"] for row in rows] == [f"{path} ({level})" for path in paths for level in ("off", "all")]
    assert all(0 < row["min_ms"] <= row["median_ms"] and row["runs"] >= 2 * timing.CALLS for row in rows)


def test_bench_says_the_sizes_of_free_dims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "free.onnx"
    onnx.save(
        onnx.parser.parse_model('<ir_version: 9, opset_import: ["": 19]> g (float[n, m, 3] x) => (float[n, m, 3] y) { y = Neg(x) }'), path
    )
    assert run(["bench", str(path), "--rounds", "2", "--dim", "n=5", "--dim", "m=4"]) == 0
    assert "sizes      n = 5, m = 4 " in capsys.readouterr().out


def test_bench_says_when_the_machine_is_too_noisy(capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks of 1, 1, 2 and 2 ms: their middle half spans two thirds of the median."""
    medians = np.array([1e-3, 1e-3, 2e-3, 2e-3])
    noisy = Timing(medians, medians, 20)
    assert noisy.spread == pytest.approx(2 / 3)
    for noise in (noisy.spread, 0.01):
        show_timings({"variants": [bench.summary("x", noisy, noisy)], "sizes": {}, "noise": noise})
    said = capsys.readouterr().out
    assert said.count("noisy ") == 1 and "differ by 67%" in said


def test_bench_names_the_model_that_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    three, four = (negation(tmp_path / f"{columns}.onnx", columns) for columns in (3, 4))
    assert run(["bench", three, "--against", four, "--rounds", "1"]) == 2
    assert f"`{four}` does not run on the inputs of `{three}`" in capsys.readouterr().err
    assert run(["bench", three, "--against", three, "--rounds", "1"]) == 2
    assert f"`{three}` is given twice" in capsys.readouterr().err
