"""How a program is to be run: chosen without a clock, compared, stored in the model, read back and used; what is malformed does no harm."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import coset
from coset.backends.onnxruntime import LEVELS as ORT_LEVELS
from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.comparing.check import CheckReport, Oracle
from coset.comparing.difference import Difference
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.job.job import Job
from coset.optimizing import pipeline, running
from coset.targets.running import AS_STORED, ENTRIES, KEY, LEVELS, Running, parse_running
from coset.targets.target import all_targets, get_target

RUNNINGS = st.builds(
    Running,
    level=st.sampled_from(LEVELS),
    disabled=st.lists(st.text(max_size=8), max_size=3).map(tuple),
    threads=st.none() | st.integers(1, 64),
    entries=st.dictionaries(st.sampled_from(sorted(ENTRIES)), st.integers(0, 9).map(str)).map(lambda d: tuple(sorted(d.items()))),
)


def model(batch: int | str = 8, width: int = 16, **metadata: str) -> onnx.ModelProto:
    """tanh(x W) + x."""
    weight = np.random.default_rng(0).standard_normal((width, width)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["p"]),
        helper.make_node("Tanh", ["p"], ["t"]),
        helper.make_node("Add", ["t", "x"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, width]) for name in "xy")
    graph = helper.make_graph(nodes, "test", [x], [y], [numpy_helper.from_array(weight, "W")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(proto, metadata)
    return proto


def saved(proto: onnx.ModelProto, path: Path) -> Path:
    onnx.save(proto, path)
    return path


def notes(path: Path) -> dict[str, str]:
    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}


X = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)


@given(RUNNINGS)
def test_what_is_stored_is_read_back(options: Running) -> None:
    assert parse_running(options.text()) == options


@pytest.mark.parametrize("target", all_targets(), ids=lambda target: target.name)
def test_what_a_target_knows_is_known_to_its_runtime(target: Any) -> None:
    if target.sessions is None:
        return
    assert set(target.sessions.levels) <= set(LEVELS) == set(ORT_LEVELS)
    assert target.sessions.levels[-1] == "off", "the last resort changes nothing"
    assert target.sessions.alone.unit == "s" and all(target.sessions.disabled.values()), "each with its measurement"


@pytest.mark.parametrize("name", sorted(get_target("cpu-onnxruntime").sessions.disabled))  # type: ignore[union-attr]
def test_an_optimizer_that_is_left_out_does_nothing_any_more(name: str, tmp_path: Path) -> None:
    """ONNX Runtime takes any text for a name: this one must be that of an optimizer."""
    rng = np.random.default_rng(0)
    tensors = {"W": rng.standard_normal((16, 16)), "b": rng.standard_normal(16), "g": rng.standard_normal(16)}
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Add", ["q", "x"], ["s"]),
        helper.make_node("LayerNormalization", ["s", "g", "b"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(value, TensorProto.FLOAT, [2, 8, 16]) for value in "xy")
    weights = [numpy_helper.from_array(value.astype(np.float32), key) for key, value in tensors.items()]
    graph = helper.make_graph(nodes, "test", [x], [y], weights)
    path = saved(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    made = {"SkipLayerNormFusion": "SkipLayerNorm", "MatMulAddFusion": "MatMulAddFusion"}[name]
    seen = {}
    for disabled in ((), (name,)):
        session = Session(path, level="all", disabled=disabled, profile=True)
        session.run({"x": np.ones((2, 8, 16), np.float32)})
        seen[disabled] = any(made in node for node in session.node_times())
    assert seen == {(): True, (name,): False}


def test_options_are_stored_and_are_the_same_bytes_twice(tmp_path: Path) -> None:
    path = saved(model(license="MIT"), tmp_path / "in.onnx")
    for name in ("a.onnx", "b.onnx"):
        coset.optimize(path).save(tmp_path / name)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    found = notes(tmp_path / "a.onnx")
    assert found["license"] == "MIT" and parse_running(found[KEY]).level == "all"
    onnx.checker.check_model(onnx.load(tmp_path / "a.onnx"), full_check=True)


def test_options_of_an_earlier_run_are_replaced(tmp_path: Path) -> None:
    path = saved(model(**{KEY: Running("basic", threads=7).text()}), tmp_path / "in.onnx")
    optimized = coset.optimize(path)
    optimized.save(tmp_path / "out.onnx")
    assert [entry.key for entry in onnx.load(tmp_path / "out.onnx").metadata_props] == [KEY]
    assert parse_running(notes(tmp_path / "out.onnx")[KEY]).summary().items() <= optimized.report["session"].items()


def test_a_saved_program_runs_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    optimized = coset.optimize(model())
    optimized.save(tmp_path / "out.onnx")
    told = []
    plain = Session.told
    monkeypatch.setattr(Session, "told", lambda path, options, **rest: told.append(options) or plain(path, options, **rest))
    loaded = coset.load(tmp_path / "out.onnx")
    np.testing.assert_array_equal(loaded({"x": X})["y"], optimized.run({"x": X})["y"])
    np.testing.assert_array_equal(optimized({"x": X})["y"], optimized.run({"x": X})["y"])
    expected = parse_running(notes(tmp_path / "out.onnx")[KEY])
    assert told == [expected, expected]


@pytest.mark.parametrize(
    ("batch", "width", "threads"),
    [(8, 16, 1), (8, 1024, None), ("batch", 16, None)],
    ids=["little work", "much work", "of a size that is not known"],
)
def test_a_second_thread_is_left_out_where_it_cannot_pay(batch: int | str, width: int, threads: int | None) -> None:
    assert coset.optimize(model(batch, width)).report["session"]["threads"] == threads


@pytest.mark.parametrize(("shape", "left_out"), [([8, 16], False), ([2, 8, 16], True)])
def test_the_fusion_of_product_and_bias_is_left_out_of_stacks_only(shape: list[int], left_out: bool) -> None:
    proto = model()
    for value in (*proto.graph.input, *proto.graph.output):
        value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, shape))
    assert ("MatMulAddFusion" in coset.optimize(proto).report["session"]["disabled"]) is left_out


def test_ops_that_nobody_knows_keep_their_threads() -> None:
    proto = model()
    proto.graph.node.append(helper.make_node("RandomNormal", [], ["z"], shape=[1 << 20]))
    proto.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1 << 20]))
    program = import_model(proto)
    found = running.chosen(get_target("cpu-onnxruntime"), program, 1e-6)
    assert found is not None and found.threads is None


def report(ok: bool) -> CheckReport:
    return CheckReport({}, [Difference("normal", "y", 0.0 if ok else 3.0, 0.0, 1.0)], ["normal"])


@pytest.mark.parametrize("good", ["all", "basic", "off"])
def test_the_first_level_that_keeps_the_outputs_is_taken(good: str) -> None:
    levels, written = ("all", "basic", "off"), []
    wanted = Running("all", ("A",), 1)
    settled = running.settle(wanted, levels, lambda options: report(levels.index(options.level) >= levels.index(good)), written.append)
    assert settled.running == wanted.at(good)
    assert [level for level, _ in settled.refused] == list(levels[: levels.index(good)])
    assert written == ([] if good == "all" else [wanted.at(good)])
    assert all("3 off, allowed 1" in problem for _, problem in settled.refused)


def test_a_level_that_does_not_load_is_refused_like_a_wrong_one() -> None:
    def compare(options: Running) -> CheckReport:
        raise CosetError("ONNX Runtime does not load it")

    settled = running.settle(Running(), ("all", "off"), compare, lambda _: None)
    assert settled.running.level == "off" and settled.refused == (("all", "ONNX Runtime does not load it"),)


def test_a_level_that_is_wrong_is_not_handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole job, with an optimizer that spoils what it touches."""
    plain = Oracle.compare

    def compare(self: Oracle, path: Any, *, running: Running | None = None, **given: Any) -> CheckReport:
        return report(False) if running is not None and running.level == "all" else plain(self, path, running=running, **given)

    monkeypatch.setattr(Oracle, "compare", compare)
    path = saved(model(), tmp_path / "in.onnx")
    job = Job(path, get_target("cpu-onnxruntime"), "reassociates", coset.Limits(), (), {}, lambda _: None)
    found = pipeline.optimize_file(job, tmp_path / "out.onnx")
    assert found["session"]["level"] == "basic"
    assert [refusal["level"] for refusal in found["session"]["refused"]] == ["all"]
    assert parse_running(notes(tmp_path / "out.onnx")[KEY]).level == "basic"
    assert Session(tmp_path / "out.onnx").run({"x": X}).keys() == {"y"}


@pytest.mark.parametrize(
    ("body", "entries"), [("f = DequantizeLinear(q, s) y = MatMul(x, f)", {AS_STORED: "1"}), ("y = MatMul(x, s2)", {})]
)
def test_weights_of_few_bits_are_multiplied_by_activations_as_they_are(body: str, entries: dict[str, str]) -> None:
    """From `extended` on ONNX Runtime would round activations to 8 bits in front of such weights."""
    text = f'<ir_version: 8, opset_import: ["" : 19]> g (float[2,4] x, int8[4,3] q, float s, float[4,3] s2) => (float[2,3] y) {{ {body} }}'
    found = running.chosen(get_target("cpu-onnxruntime"), import_model(onnx.parser.parse_model(text).SerializeToString()), 1e-6)
    assert found is not None and dict(found.entries) == entries
    assert parse_running(found.text()) == found, "a file that says so is believed"


MALFORMED = {
    "no JSON": "level=all",
    "a list": "[]",
    "a level": '{"level": "fast"}',
    "a level that cannot be hashed": '{"level": ["all"]}',
    "names": '{"disabled": "MatMulAddFusion"}',
    "names that are numbers": '{"disabled": [1]}',
    "no thread": '{"threads": 0}',
    "half a thread": '{"threads": 1.5}',
    "a true thread": '{"threads": true}',
    "many threads": '{"threads": 1000000}',
    "entries": '{"entries": [["session.dynamic_block_base", "4"]]}',
    "an entry": '{"entries": {"session.dynamic_block_base": "four"}}',
    "nothing": "",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_malformed_options_are_refused_by_name_and_do_no_harm(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CosetError, match=KEY):
        parse_running(text)
    path = saved(model(**{KEY: text}), tmp_path / "in.onnx")
    with pytest.warns(UserWarning, match="malformed"):
        session = coset.load(path)
    assert session.run({"x": X}).keys() == {"y"}
    assert run(["bench", str(path), "--rounds", "1", "--json"]) == 0
    said = capsys.readouterr()
    assert [variant["name"] for variant in json.loads(said.out)["variants"]] == [f"{path} (off)", f"{path} (all)"]
    assert "not timed as it says" in said.err


def test_what_this_version_does_not_know_is_passed_over() -> None:
    text = '{"level": "basic", "later": 1, "entries": {"session.load_model_format": "ORT", "session.intra_op.allow_spinning": "0"}}'
    assert parse_running(text) == Running("basic", entries=(("session.intra_op.allow_spinning", "0"),))


def test_a_model_without_options_runs_with_full_optimization(tmp_path: Path) -> None:
    path = saved(model(), tmp_path / "in.onnx")
    assert running.stored(path) is None
    assert coset.load(path)({"x": X}).keys() == {"y"}
    with pytest.raises(CosetError):
        coset.load(tmp_path / "absent.onnx")


def test_bench_times_a_program_as_it_says_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.onnx"
    coset.optimize(model()).save(path)
    assert run(["bench", str(path), "--rounds", "1", "--json"]) == 0
    names = [variant["name"] for variant in json.loads(capsys.readouterr().out)["variants"]]
    assert names == [f"{path} (off)", f"{path} (all)", f"{path} (as stored)"]


def test_a_loaded_model_runs_without_a_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread for each run took longer than a small model, and ended those of users after five minutes."""
    started: list[object] = []
    monkeypatch.setattr(threading, "Timer", lambda *arguments: started.append(arguments))
    path = saved(model(), tmp_path / "in.onnx")
    assert coset.load(path).run({"x": X}).keys() == {"y"}
    assert not started
