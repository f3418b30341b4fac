"""Bisecting: a wrong rule is named with the value at which it shows; sets are as small as they can be; rules are left out by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from forged import forged
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import coset
from coset.cli import run
from coset.explaining.smallest import smallest
from coset.ir.errors import CosetError

WRONG = """use stablehlo as hlo, onnx
rule gelu_is_relu
  "Not true."
  for x: F[S..]
  onnx.Gelu(x) => onnx.Relu(x)
  numerics reassociates
"""
PAIR = """use stablehlo as hlo, onnx
rule first_half
  "Not true."
  for x: F[S..]
  onnx.Gelu(x) => onnx.Sigmoid(x)
  numerics reassociates
rule second_half
  "Not true."
  for x: F[S..]
  onnx.Sigmoid(x) => onnx.Relu(x)
  numerics reassociates
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Two layers with a GELU between, and a product that is another way round when it is optimized."""
    generator = np.random.default_rng(0)
    weights = [helper.make_tensor(f"w{i}", TensorProto.FLOAT, [16, 16], generator.normal(size=256) / 4) for i in range(2)]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["hidden"]),
        helper.make_node("Gelu", ["hidden"], ["active"]),
        helper.make_node("MatMul", ["active", "w1"], ["mixed"]),
        helper.make_node("Transpose", ["mixed"], ["turned"], perm=[1, 0]),
        helper.make_node("Transpose", ["turned"], ["y"], perm=[1, 0]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 16]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    path = tmp_path / "two.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.rules"
    path.write_text(WRONG)
    return forged(path)


def test_a_planted_rule_is_named_with_its_place(model: Path, wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", str(model), "-o", str(model.with_name("out.onnx")), "--rules", str(wrong)]) == 1
    assert "rule `gelu_is_relu` breaks the program" in capsys.readouterr().err
    assert run(["bisect", str(model), "--rules", str(wrong), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [rule["name"] for rule in found["rules"]] == ["gelu_is_relu"]
    (value,) = found["values"]
    assert value["value"] == "`active`" and "onnx.Relu(hidden)" in value["optimized"] and value["rules"] == ["gelu_is_relu"]
    assert not list(model.parent.glob("*out*"))


def test_within_the_bounds_nothing_is_to_blame(model: Path, wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bisect", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rules"] == []
    assert run(["bisect", str(model), "--rules", str(wrong), "--max-abs", "1e6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["within"]
    assert run(["bisect", str(model), "--rules", str(wrong)]) == 1
    assert "rule       gelu_is_relu" in capsys.readouterr().out


def test_two_rules_that_break_only_together_are_both_named(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first makes an op that the model has not, the second makes something false of it."""
    path = tmp_path / "pair.rules"
    path.write_text(PAIR)
    forged(path)
    assert run(["bisect", str(model), "--rules", str(path), "--only-rules", "*_half", "--json"]) == 1
    named = [rule["name"] for rule in json.loads(capsys.readouterr().out)["rules"]]
    assert "first_half" in named


@given(st.sets(st.integers(0, 39), min_size=1, max_size=4))
def test_the_smallest_part_is_what_fails(guilty: set[int]) -> None:
    assert smallest(list(range(40)), lambda part: guilty <= set(part)) == tuple(sorted(guilty))


def test_rules_are_left_out_and_let_in_by_name(model: Path) -> None:
    every = {rule["name"] for rule in coset.optimize(model).report["rules"]}
    assert every
    left = {rule["name"] for rule in coset.optimize(model, disable_rules=sorted(every)).report["rules"]}
    assert not every & left
    only = {rule["name"] for rule in coset.optimize(model, only_rules=["transpose_*"]).report["rules"]}
    assert all(name.startswith("transpose_") or "." in name for name in only)
    with pytest.raises(CosetError, match="no rule called `transpos_e`"):
        coset.optimize(model, disable_rules=["transpos_e"])
