"""`--max-memory`: what keeps to it is handed out, what cannot is refused with the least that was found, and without it nothing changes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import coset
from coset.cli import run
from coset.dialects.onnx.origin import OnnxOrigin
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.program_source import ProgramSource, source_of
from coset.ir.term import input_term, make
from coset.ir.types import F32, tensor
from coset.lowering.arranging.live import places_of
from coset.lowering.onnx.model import live_steps, lower


def fans(path: Path) -> Path:
    """Two large values that are made before either is reduced, as the first output needs the one and the last needs both."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("Erf", ["a"], ["c"]),
        helper.make_node("Sin", ["a"], ["d"]),
        helper.make_node("Mul", ["b", "c"], ["e"]),
        helper.make_node("Mul", ["e", "d"], ["f"]),
        helper.make_node("ReduceMax", ["f"], ["y"], axes=[1], keepdims=0),
        helper.make_node("ReduceMax", ["d"], ["z"], axes=[1], keepdims=0),
    ]
    shapes = {"x": ["N", 8], "y": ["N"], "z": ["N"]}
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    weight = onnx.numpy_helper.from_array(np.random.default_rng(0).random((8, 256), np.float32), "w")
    graph = helper.make_graph(nodes, "fans", [x], [y, z], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def optimized(path: Path, out: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert run(["optimize", str(path), "-o", str(out), "--json", "--dim", "N=64", *more]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_limit_that_is_kept_changes_nothing_and_one_that_cannot_be_names_the_least(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = fans(tmp_path / "model.onnx"), tmp_path / "out.onnx"
    plain = optimized(path, out, capsys)
    large = 64 * 256 * 4
    assert 3 * large <= plain["memory"]["output"] <= 4 * large + 64 * (8 + 2) * 4 and plain["memory"]["input"] >= 3 * large
    before = out.read_bytes()
    assert optimized(path, out, capsys, "--max-memory", str(plain["memory"]["output"]))["memory"] == plain["memory"]
    assert out.read_bytes() == before
    out.unlink()
    assert run(["optimize", str(path), "-o", str(out), "--dim", "N=64", "--max-memory", "1K"]) == 2
    message = capsys.readouterr().err
    least = re.search(r"no program found keeps to 1024 live bytes: the least that one takes is (\d+)", message)
    assert least is not None and not out.exists()
    tight = optimized(path, out, capsys, "--max-memory", least[1])
    assert tight["memory"]["output"] == int(least[1]) <= plain["memory"]["output"] and tight["check"]["ok"]
    with pytest.raises(CosetError, match="keeps to 100 live bytes"):
        coset.optimize(path, dims={"N": 64}, max_memory=100)


@pytest.mark.parametrize("given", ["many", "-1", "1T", "1.5M", "K"])
def test_a_limit_that_is_no_number_of_bytes_is_refused(given: str, tmp_path: Path) -> None:
    assert run(["optimize", "model.onnx", "-o", str(tmp_path / "out.onnx"), "--max-memory", given]) == 2


def test_nodes_are_written_in_the_order_that_a_program_gives(tmp_path: Path) -> None:
    program = import_model(fans(tmp_path / "model.onnx"))
    steps = live_steps(program)
    names = {"onnx.Tanh", "stablehlo.tanh"}
    places = {**places_of(steps), **{step.result: 100 for step in steps.steps if step.result.op.name in names}}
    moved = replace(program, source=replace(source_of(program), places=places))
    before, after = ([node.op_type for node in lower(each).graph.node] for each in (program, moved))
    assert sorted(before) == sorted(after) and before.index("Tanh") < before.index("Sin") and after.index("Tanh") > after.index("Sin")
    onnx.checker.check_model(lower(moved), full_check=True)


def test_a_whole_number_that_a_rule_found_is_written_as_the_float_that_it_stands_for() -> None:
    """unet_gn under a limit: Swish with an integer alpha was a model that ONNX Runtime does not load."""
    for name, attributes in (("Swish", {"alpha": 1}), ("LeakyRelu", {"alpha": 1}), ("Elu", {"alpha": 2})):
        x = input_term("x", tensor(F32, 4))
        term = make(f"onnx.{name}", (x,), attributes)
        [node] = lower(Program((x,), (("y", term),), source=ProgramSource(origin=OnnxOrigin(opsets={"": 24})))).graph.node
        assert [attribute.type for attribute in node.attribute] == [onnx.AttributeProto.FLOAT]
