"""Kept values: they are computed under their names, listed nowhere, and compared like outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from forged import forged

import coset
from coset.cli import run
from coset.ir.errors import CosetError

MODEL = """<ir_version: 9, opset_import: ["": 20]>
g (float[4, 16] x) => (float[4, 16] y)
  <float zero = {0.0}>
{
   a = Transpose <perm = [1, 0]> (x)
   again = Transpose <perm = [1, 0]> (x)
   b = Transpose <perm = [1, 0]> (a)
   c = Add (b, zero)
   side = Gelu (c)
   y = Relu (c)
}"""
WRONG = """use stablehlo as hlo, onnx
rule gelu_is_relu
  "Not true."
  for x: F[S..]
  onnx.Gelu(x) => onnx.Relu(x)
  numerics reassociates
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def _values(path: Path, names: list[str]) -> list[np.ndarray]:
    proto = onnx.load(str(path))
    proto.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(names, {"x": np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)})  # type: ignore[no-any-return]


@pytest.mark.parametrize("names", [["a"], ["again"], ["b", "c"], ["side"], ["a", "again", "c", "side"]])
def test_a_kept_value_is_computed_under_its_name(model: Path, tmp_path: Path, names: list[str]) -> None:
    out = tmp_path / "out.onnx"
    found = coset.optimize(model, keep_values=names)
    found.save(out)
    written = onnx.load(str(out))
    onnx.checker.check_model(written)
    assert [value.name for value in written.graph.output] == ["y"]
    for before, after in zip(_values(model, names), _values(out, names), strict=True):
        np.testing.assert_array_equal(before, after)


def test_without_it_the_values_go(model: Path, tmp_path: Path) -> None:
    coset.optimize(model).save(tmp_path / "out.onnx")
    assert [list(node.output) for node in onnx.load(str(tmp_path / "out.onnx")).graph.node] == [["y"]]


@pytest.mark.parametrize("name", ["x", "y"])
def test_inputs_and_outputs_survive_anyway(model: Path, name: str) -> None:
    assert coset.optimize(model, keep_values=[name]).report["nodes"]["after"] == 1


def test_a_wrong_kept_value_is_not_handed_out(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The outputs are right: only the value inside is not."""
    rules, out = tmp_path / "wrong.rules", tmp_path / "out.onnx"
    rules.write_text(WRONG)
    forged(rules)
    assert run(["optimize", str(model), "-o", str(out), "--rules", str(rules), "--keep-value", "side"]) == 1
    assert "rule `gelu_is_relu` breaks the program (output `side`" in capsys.readouterr().err
    assert not out.exists()
    assert run(["optimize", str(model), "-o", str(out), "--rules", str(rules)]) == 0


def test_what_cannot_be_kept_is_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CosetError, match="no value `sid` to keep") as refused:
        coset.optimize(model, keep_values=["sid"])
    assert "`side`" in str(refused.value)
    out, proof = str(tmp_path / "out.onnx"), str(tmp_path / "proof")
    assert run(["optimize", str(model), "-o", out, "--keep-value", "side", "--certificate", proof]) == 2
    assert "speaks of the outputs" in capsys.readouterr().err
