"""ONNX Runtime behind its one door: levels, errors, element types, timing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from coset.backends import onnxruntime
from coset.backends.onnxruntime import LEVELS, Session
from coset.ir.errors import CosetError


def model(code: int = 1, op: str = "Relu") -> bytes:
    x, y = (helper.make_tensor_value_info(name, code, [3]) for name in "xy")
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_runs(level: str) -> None:
    session = Session(model(), level=level, threads=1)
    assert session.inputs == ("x",) and session.outputs == ("y",)
    assert session.run({"x": np.array([-1, 0, 2], np.float32), "other": None})["y"].tolist() == [0, 0, 2]


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(CosetError, match="does not load the model"):
        Session(b"nothing")
    with pytest.raises(CosetError, match="does not load"):
        Session("/no/such/file.onnx")
    with pytest.raises(CosetError, match="no level `fast`") as caught:
        Session(model(), level="fast")
    assert "off" in caught.value.help
    with pytest.raises(CosetError, match="does not run"):
        Session(model()).run({})
    with pytest.raises(CosetError, match="does not run"):
        Session(model()).run({"x": np.zeros(4, np.float32)})


def test_element_types_that_numpy_has_not() -> None:
    x = np.array([-1, 0.5, 2], ml_dtypes.bfloat16)
    found = Session(model(16, "Identity")).run({"x": x})["y"]
    assert np.asarray(found).view(np.uint16).tolist() == x.view(np.uint16).tolist()


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
@pytest.mark.parametrize("count", [0, 1, 3, 8])
def test_elements_of_less_than_a_byte_are_packed(name: str, count: int) -> None:
    """They were handed over a byte each, and of those the first half was read as two each."""
    dtype = getattr(ml_dtypes, name)
    code = getattr(TensorProto, name.upper())
    numbers = np.array([1, 0, -2, -1, 1, 1, 0, -1] if name[0] == "i" else [1, 0, 3, 2, 1, 3, 0, 2], np.float32)[:count]
    for wide, (first, last) in {True: (code, TensorProto.FLOAT), False: (TensorProto.FLOAT, code)}.items():
        x, y = helper.make_tensor_value_info("x", first, [count]), helper.make_tensor_value_info("y", last, [count])
        graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=last)], "g", [x], [y])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
        found = Session(proto.SerializeToString()).run({"x": numbers.astype(dtype) if wide else numbers})["y"]
        assert found.dtype == (np.float32 if wide else dtype)
        assert np.array_equal(found, numbers if wide else numbers.astype(dtype))


def test_times_of_runs_and_of_nodes() -> None:
    session = Session(model(), profile=True)
    times = session.times({"x": np.zeros(3, np.float32)}, 4)
    assert len(times) == 4 and all(seconds > 0 for seconds in times)
    nodes = session.node_times()
    assert len(nodes) == 1 and all(seconds >= 0 for seconds in nodes.values())


def test_telemetry_is_off_before_the_package_is_imported() -> None:
    code = "import coset.backends.onnxruntime, os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    environment = {name: text for name, text in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.strip() == "1"


def test_a_loop_without_an_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(name: str, code: int) -> Any:
        return helper.make_tensor_value_info(name, code, [])

    turn = [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Neg", ["state"], ["next"])]
    body = helper.make_graph(
        turn,
        "turn",
        [of("i", TensorProto.INT64), of("go", TensorProto.BOOL), of("state", TensorProto.FLOAT)],
        [of("on", TensorProto.BOOL), of("next", TensorProto.FLOAT)],
    )
    often = helper.make_tensor("often", TensorProto.INT64, [], [1 << 60])
    loop = helper.make_node("Loop", ["often", "", "x"], ["y"], body=body)
    graph = helper.make_graph([loop], "endless", [of("x", TensorProto.FLOAT)], [of("y", TensorProto.FLOAT)], [often])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    monkeypatch.setattr(onnxruntime, "PATIENCE", 0.2)
    with pytest.raises(onnxruntime.Unending, match="has no result after"):
        Session(model.SerializeToString()).run({"x": np.array(1, np.float32)})
