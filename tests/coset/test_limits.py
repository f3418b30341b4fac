"""Limits and losses of a job: each costs what it limits and nothing else, and says so."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks import limits as benchmark
from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.comparing import feeds
from coset.comparing.sizes import bindings
from coset.egraph.search import Search
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import input_term
from coset.ir.types import F32, tensor

ENDLESS = ("--rules", str(benchmark.RULES), "--numerics", "real", "--node-limit", "1000000000")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = tanh(tanh(x w + x) w + x), four times over."""
    nodes, last = [], "x"
    for i in range(8):
        nodes += [helper.make_node("MatMul", [last, "w"], [f"m{i}"]), helper.make_node("Add", [f"m{i}", "x"], [f"s{i}"])]
        nodes += [helper.make_node("Tanh", [f"s{i}"], [f"t{i}"])]
        last = f"t{i}"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in ("x", last)]
    weights = [numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32), "w")]
    path = tmp_path / "model.onnx"
    onnx.save(
        helper.make_model(
            helper.make_graph(nodes, "limits", values[:1], values[1:], weights),
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=8,
        ),
        path,
    )
    return path


def optimized(model: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[dict[str, Any], str]:
    """The report of an optimization that comes to its end, and what was said meanwhile; the result runs."""
    output = model.with_name("out.onnx")
    assert run(["optimize", str(model), "-o", str(output), "--json", *options]) == 0
    x = np.ones((4, 8), np.float32)
    np.testing.assert_allclose(Session(output).run({"x": x})["t7"], Session(model).run({"x": x})["t7"], rtol=1e-4, atol=1e-4)
    captured = capsys.readouterr()
    report: dict[str, Any] = json.loads(captured.out)
    assert report["check"]["ok"] and report["cost"]["output"] <= report["cost"]["input"] * (1 + 1e-9)
    return report, captured.err


def test_without_losses_there_is_no_warning(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, said = optimized(model, capsys)
    assert report["warnings"] == [] and "warning" not in said


def test_a_search_that_dies_costs_a_warning(model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "_iterate", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    report, said = optimized(model, capsys)
    assert report["egraph"]["stop"] == "died" and "warning: the process that searched is gone" in said
    assert len(report["warnings"]) == 1 and "SIGKILL" in report["warnings"][0]


def test_a_search_without_memory_costs_a_warning(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, said = optimized(model, capsys, *ENDLESS, "--memory-limit", "32M")
    assert report["egraph"]["stop"] == "memory" and "--memory-limit" in said and report["warnings"]


@pytest.mark.parametrize("lack", [MemoryError(), SystemError("error return without exception set")])
def test_memory_that_python_lacks_costs_a_warning(
    lack: BaseException, model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPython names no MemoryError where it finds no memory for the frame of a call."""

    def short(*_: Any) -> None:
        raise lack

    monkeypatch.setattr(Search, "_iterate", short)
    report, said = optimized(model, capsys)
    assert report["egraph"]["stop"] == "memory" and "--memory-limit" in said


def test_an_interrupted_search_ends_with_its_best_and_says_so(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = model.with_name("out.onnx")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
    timer = threading.Timer(4.0, os.kill, (os.getpid(), signal.SIGINT))  # late enough for a busy machine to have the search running
    timer.start()
    try:
        assert run(["optimize", str(model), "-o", str(output), "--json", *ENDLESS]) == 130
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert report["egraph"]["stop"] == "interrupt" and report["check"]["ok"] and output.exists()
    assert "warning: the search was interrupted" in captured.err and "interrupted" in report["warnings"][0]


def test_e_nodes_are_kept_while_rules_explode(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, _ = optimized(model, capsys, *ENDLESS, "--node-limit", "1000")
    assert report["egraph"]["stop"] == "nodes" and report["egraph"]["enodes"] <= 1000


@pytest.mark.parametrize("limit", [("--memory-limit", "0"), ("--memory-limit", "-1"), ("--memory-limit", "much"), ("--time-limit", "nan")])
def test_limits_that_are_none_are_refused(limit: tuple[str, str], model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", str(model), "-o", str(model.with_name("out.onnx")), *limit]) == 2
    assert "limit" in capsys.readouterr().err and not model.with_name("out.onnx").exists()


def test_inputs_beyond_the_machine_are_not_drawn() -> None:
    vast = input_term("x", tensor(F32, 1 << 40))
    with pytest.raises(CosetError, match=r"takes 8,796,093,022,208 bytes, .* for input `x`"):
        next(feeds.cases(Program((vast,), (("y", vast),)), {}))


def test_numbers_for_dims_that_make_vast_inputs_are_passed_over() -> None:
    from coset.ir.dims import symbol

    names = [symbol(name) for name in "PQRSTUVW"]  # 32 of each would be 8 TiB
    wide = input_term("x", tensor(F32, *names))
    program = Program((wide,), (("y", wide),))
    assert {32, 64}.isdisjoint(number for binding in bindings(program, {}) for number in binding.values())
    next(feeds.cases(program, next(iter(bindings(program, {})))))


def test_memory_that_is_not_there_is_a_plain_error(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("coset.optimizing.pipeline.import_model", short)
    assert run(["optimize", str(model), "-o", str(model.with_name("out.onnx"))]) == 2
    assert "error: there is not enough memory" in capsys.readouterr().err
    assert [path.name for path in model.parent.iterdir()] == ["model.onnx"]


def test_bits_count_only_where_reading_and_writing_keep_them(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written without any rule, a training step had other bits than the original: its transposed operands are multiplied as Gemm does."""
    path = benchmark.FOLDER / "train_mlp.onnx"
    if not path.exists():
        pytest.skip("`make models` builds it")
    assert run(["optimize", str(path), "-o", str(model.with_name("out.onnx")), "--json", "--time-limit", "0.001"]) == 0
    assert json.loads(capsys.readouterr().out)["check"]["ok"]


class Panic(BaseException):
    """As Rust's panics arrive."""


def wrapped() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        raise RuntimeError("Error calling __set_name__") from error


def panicked() -> None:
    raise Panic("Failed to initialize python logging: PyErr { type: <class 'KeyboardInterrupt'> }")


@pytest.mark.parametrize("what", [wrapped, panicked])
def test_an_interrupt_that_became_something_else_is_one(
    what: Any, model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coset.optimizing.pipeline.import_model", lambda *_, **__: what())
    assert run(["optimize", str(model), "-o", str(model.with_name("out.onnx"))]) == 130
    assert "interrupted; no result was written" in capsys.readouterr().err
    assert [path.name for path in model.parent.iterdir()] == ["model.onnx"]


def test_a_mistake_of_ours_is_no_interrupt(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coset.optimizing.pipeline.import_model", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(["optimize", str(model), "-o", str(model.with_name("out.onnx"))])
