"""`--measure`: other programs of the e-graph are compared, timed and, where the clock says so, handed out; prices stay the target's."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset
from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.extract.candidates import strayed
from coset.extract.select import reprice
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import F32, tensor
from coset.lowering.onnx.model import write
from coset.lowering.stablehlo.module import write_stablehlo
from coset.optimizing import flow
from coset.optimizing.measured import RaceOutcome, TimedProgram, race
from coset.targets.target import get_target

SHAPE = (1, 32, 28, 28)


def program() -> Program:
    """An instance normalization in parts: rows or whole tensors may be multiplied, and one kernel or several do it."""
    x = input_term("x", tensor(F32, *SHAPE))

    def spread(value: Term) -> Term:
        return make("stablehlo.broadcast_in_dim", (value,), {"shape": SHAPE, "broadcast_dimensions": (0, 1)})

    def mean(value: Term) -> Term:
        return make("onnx.ReduceMean", (value,), {"dimensions": (2, 3)})

    low = make("stablehlo.subtract", (x, spread(mean(x))))
    little = make("stablehlo.broadcast_in_dim", (constant(np.float32(1e-5)),), {"shape": SHAPE[:2], "broadcast_dimensions": ()})
    root = make("stablehlo.sqrt", (make("stablehlo.add", (mean(make("stablehlo.multiply", (low, low))), little)),))
    return Program((x,), (("y", make("stablehlo.divide", (low, spread(root)))),))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write(program(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def preferring(last: bool, seen: list[Sequence[TimedProgram]]) -> Callable[..., RaceOutcome]:
    """A clock for tests."""

    def raced(candidates: Sequence[TimedProgram], _: Any) -> RaceOutcome:
        seen.append(candidates)
        for each in candidates:
            each.call()
        rows = [{"index": each.index, "nodes": each.nodes, "predicted_ms": each.predicted * 1e3, "median_ms": 1.0, "ratio": 1.0, "low": 1.0,
                 "high": 1.0} for each in candidates]  # fmt: skip
        return RaceOutcome(candidates[-1 if last else 0].index, rows)

    return raced


def test_the_clock_decides_and_the_prices_stay_the_target_s(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Sequence[TimedProgram]] = []
    monkeypatch.setattr(flow, "race", preferring(True, seen))
    plain = coset.optimize(model)
    found = coset.optimize(model, measure=12)
    (candidates,) = seen
    assert len(candidates) > 1 and candidates[0].predicted == plain.report["cost"]["output"]
    assert len({each.index for each in candidates}) == len(candidates)
    assert all(each.predicted >= candidates[0].predicted * (1 - 1e-6) for each in candidates), "the model's choice is its cheapest"
    target = get_target("cpu-onnxruntime")
    assert found.report["measured"]["chosen"] == candidates[-1].index != 0
    assert (
        found.report["cost"]["output"] == pytest.approx(reprice(found.program.roots, target, {})) == pytest.approx(candidates[-1].predicted)
    )
    assert found.report["cost"]["input"] == plain.report["cost"]["input"] and found.report["check"]["ok"]
    assert found.program.roots != plain.program.roots and found.report["nodes"]["after"] == candidates[-1].nodes
    for name, each in (("plain.onnx", plain), ("found.onnx", found)):
        each.save(model.with_name(name))
    assert model.with_name("plain.onnx").read_bytes() != model.with_name("found.onnx").read_bytes(), "what the clock chose is handed out"
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    np.testing.assert_allclose(found({"x": x})["y"], Session(model).run({"x": x})["y"], rtol=1e-4, atol=1e-5)


def test_where_none_is_faster_the_model_s_choice_stays(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "race", preferring(False, []))
    coset.optimize(model).save(tmp_path / "a.onnx")
    found = coset.optimize(model, measure=3)
    found.save(tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert found.report["measured"]["chosen"] == 0 and found.report["cost"]["method"] != "measured"


def test_the_command(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", str(model), "-o", str(tmp_path / "o.onnx"), "--measure", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    first = answer["measured"]["candidates"][0]
    assert first["index"] == 0 and first["ratio"] == 1.0 and first["median_ms"] > 0
    assert run(["optimize", str(model), "-o", str(tmp_path / "o.onnx"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"] is None


def test_what_nothing_runs_is_not_timed(tmp_path: Path) -> None:
    write_stablehlo(program(), tmp_path / "m.mlir")
    with pytest.raises(CosetError, match="nothing here runs"):
        coset.optimize(tmp_path / "m.mlir", measure=2)


def test_a_race_is_won_by_a_clear_lead_alone() -> None:
    def work(size: int) -> Callable[[], object]:
        a = np.ones((size, size), np.float32)
        return lambda: a @ a

    said: list[str] = []
    slow, quick = TimedProgram(0, 1, 1.0, work(600)), TimedProgram(3, 1, 1.0, work(60))
    assert race([slow, quick], said.append).fastest == 3
    assert race([quick, slow], said.append).fastest == 3
    assert "2 programs" in said[0]


def test_other_prices_are_drawn_by_their_seed() -> None:
    target = get_target("cpu-onnxruntime")
    assert strayed(target, 1) == strayed(target, 1) != strayed(target, 2)
    assert strayed(target, 1).forms == target.forms
