"""`coset rules --ops NAME`: what an op has, for rules."""

from __future__ import annotations

import json

import pytest

from coset.cli import run


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["rules", "--ops", *arguments]) == 0
    return capsys.readouterr().out


def test_an_op_has_the_attributes_and_defaults_of_the_standard(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "onnx.Conv")
    for line in ("onnx.Conv(X, W, B?,", "attribute  strides: ints = []", "attribute  group: int = 1", "operand    B: F[O], may be left out",
                 "The convolution, plus a bias", "result     F[N, O, ..]", "a program holds it with"):  # fmt: skip
        assert line in found


def test_a_pattern_names_a_dialect_and_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    listed = shown(capsys, "stablehlo.*")
    told = json.loads(shown(capsys, "stablehlo.*", "onnx.Softmax", "--json"))["ops"]
    *hub, softmax = told
    assert len(hub) > 100 and all(each["document"] and f"{each['name']}(" in listed for each in hub)
    assert softmax["attributes"] == [{"name": "axis", "kind": "int", "required": False, "default": -1}] and softmax["seen"]


def test_an_op_whose_nodes_stay_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no rule sees a node of it" in shown(capsys, "onnx.CumSum")
    assert "no rule sees a node of it" not in shown(capsys, "onnx.Transpose")


@pytest.mark.parametrize(
    ("name", "near"), [("onnx.Con", "`onnx.Conv`"), ("stablehlo.transpse", "`stablehlo.transpose`"), ("Conv", "`onnx.Conv`")]
)
def test_an_unknown_op_gets_the_nearest_names(name: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "--ops", name]) == 2
    err = capsys.readouterr().err
    assert f"there is no op `{name}`" in err and near in err


def test_names_are_those_of_ops(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "onnx.Conv"]) == 2
    assert "coset rules --ops onnx.Conv" in capsys.readouterr().err
