"""Loops of JAX and ONNX on a GPU: rounds that are known before are kernels, one after the other; others are a loop of the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from coset.cli import run
from coset.egraph.limits import Limits
from coset.packaging import lower
from coset.packaging.asked import Check, Lowering
from coset.pricing.looping import Loops
from coset.targets.target import get_target

pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.slow

RECURRENCE = """
func.func @main(%x: tensor<12x4x16xf32>, %w: tensor<16x16xf32>, %h: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<12x4x16xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<12x4x16xf32>
  %1:5 = stablehlo.while(%a = %x, %b = %w, %i = %zero, %s = %h, %o = %none)
      : tensor<12x4x16xf32>, tensor<16x16xf32>, tensor<i32>, tensor<4x16xf32>, tensor<12x4x16xf32>
  cond {
    %n = stablehlo.constant dense<LIMIT> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %row = stablehlo.dynamic_slice %a, %i, %c, %c, sizes = [1, 4, 16] : (tensor<12x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %flat = stablehlo.reshape %row : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %p = stablehlo.dot_general %s, %b, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    %q = stablehlo.add %p, %flat : tensor<4x16xf32>
    %t = stablehlo.tanh %q : tensor<4x16xf32>
    %u = stablehlo.reshape %t : (tensor<4x16xf32>) -> tensor<1x4x16xf32>
    %v = stablehlo.dynamic_update_slice %o, %u, %i, %c, %c : (tensor<12x4x16xf32>, tensor<1x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<12x4x16xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %a, %b, %j, %t, %v : tensor<12x4x16xf32>, tensor<16x16xf32>, tensor<i32>, tensor<4x16xf32>, tensor<12x4x16xf32>
  }
  return %1#3, %1#4 : tensor<4x16xf32>, tensor<12x4x16xf32>
}
"""  # noqa: E501


def lowered(model: Path, folder: Path, *, code: str = "triton") -> dict[str, Any]:
    check = Check.INTERPRETED if code == "triton" else Check.TORCH
    asked = Lowering(model, get_target("nvidia-h200"), limits=Limits(seconds=20, nodes=4000), code=code, check=check)
    report = lower.lower(asked, folder)
    assert report["check"]["ok"]
    return report


@pytest.fixture
def rounds_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loop is one kernel."""
    monkeypatch.setattr(Loops, "_pays", lambda *_: False)


def codes(report: dict[str, Any]) -> set[str]:
    return {kernel["code"] for kernel in report["kernels"]}


def recurrence(folder: Path, limit: int) -> Path:
    path = folder / "recurrence.mlir"
    path.write_text(RECURRENCE.replace("LIMIT", str(limit)))
    return path


def test_a_scan_is_kernels_that_share_functions(tmp_path: Path, rounds_apart: None) -> None:
    report = lowered(recurrence(tmp_path, 12), tmp_path / "out")
    assert codes(report) == {"triton"}
    assert len(report["kernels"]) >= 12
    assert (tmp_path / "out" / "kernels.py").read_text().count("@triton.jit\ndef k") <= 4
    shared = [kernel for kernel in report["kernels"] if "functions" in kernel]
    assert len(shared) >= 8 and all(kernel["functions"][0] != kernel["name"] for kernel in shared)


def test_rounds_beyond_the_end_are_clamped(tmp_path: Path) -> None:
    """Such a loop writes one place twice, and is no kernel.

    Two rounds more than there are rows read and write the last one again, as the hub says."""
    report = lowered(recurrence(tmp_path, 14), tmp_path / "out", code="torch")
    assert not any("while" in kernel["ops"] for kernel in report["kernels"])


def test_a_loop_of_too_many_rounds_is_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One whose matrix is more than a kernel holds."""
    monkeypatch.setattr("coset.lowering.planning.loops.MOST_ROUNDS", 4)
    model = tmp_path / "recurrence.mlir"
    model.write_text(RECURRENCE.replace("LIMIT", "12").replace("16", "80"))
    report = lowered(model, tmp_path / "out", code="torch")
    (loop,) = (kernel for kernel in report["kernels"] if "while" in kernel["ops"])
    assert "reads its condition back after each round" in loop["note"] and "more than 4 times" in loop["note"]
    assert "it is no kernel: its columns, or the matrix that they are multiplied by" in loop["note"]
    assert run(["lower", str(model), "--code", "torch", "--check", "none", "-o", str(tmp_path / "again")]) == 0
    assert "reads its condition back" in " ".join(capsys.readouterr().out.split())


def test_what_each_round_multiplies_of_its_row_is_one_product(tmp_path: Path, rounds_apart: None) -> None:
    text = RECURRENCE.replace("LIMIT", "12").replace(
        "%q = stablehlo.add %p, %flat :",
        "%f = stablehlo.dot_general %flat, %b, contracting_dims = [1] x [0]"
        " : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>\n    %q = stablehlo.add %p, %f :",
    )
    (tmp_path / "layer.mlir").write_text(text)
    report = lowered(tmp_path / "layer.mlir", tmp_path / "out")
    assert codes(report) == {"triton"} and products(report) == 13


@pytest.mark.parametrize("numerics", ["exact", "reassociates"])
def test_what_rounds_add_to_a_gradient_is_one_product_where_sums_may_be_made_anew(numerics: str, tmp_path: Path) -> None:
    """Each round adds its row of one tensor by that of another."""
    text = (
        RECURRENCE.replace("LIMIT", "12")
        .replace("tensor<16x16xf32>", "tensor<12x4x16xf32>")
        .replace("tensor<4x16xf32>", "tensor<16x16xf32>")
    )
    read = "stablehlo.dynamic_slice %{}, %i, %c, %c, sizes = [1, 4, 16] : (tensor<12x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>)"
    body = f"""
    %d = {read.format("a")} -> tensor<1x4x16xf32>
    %e = {read.format("b")} -> tensor<1x4x16xf32>
    %f = stablehlo.reshape %d : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %g = stablehlo.reshape %e : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %p = stablehlo.dot_general %f, %g, contracting_dims = [0] x [0] : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<16x16xf32>
    %t = stablehlo.add %s, %p : tensor<16x16xf32>
    %v = stablehlo.negate %o : tensor<12x4x16xf32>
    %j = """
    head, tail = text.split("    %row = ")
    (tmp_path / "sum.mlir").write_text(head + body.lstrip("\n") + tail.partition("    %j = ")[2])
    asked = Lowering(tmp_path / "sum.mlir", get_target("nvidia-h200"), numerics=numerics, limits=Limits(seconds=20, nodes=4000))
    assert products(lower.lower(asked, tmp_path / "out")) == (12 if numerics == "exact" else 1)


def products(report: dict[str, Any]) -> int:
    return sum("dot_general" in kernel["ops"] for kernel in report["kernels"])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("length", [6, None])
def test_recurrent_layers(kind: str, length: int | None, tmp_path: Path, rounds_apart: None) -> None:
    """Of a length that is known; one that is free cannot be unrolled, and is a kernel in any case."""
    draw = np.random.default_rng(0)
    gates, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 8
    weights = [
        numpy_helper.from_array((draw.standard_normal((2, gates * hidden, width)) * 0.3).astype(np.float32), name)
        for name, width in (("w", 5), ("r", hidden))
    ]
    node = helper.make_node(kind, ["x", "w", "r"], ["y"], hidden_size=hidden, direction="bidirectional")
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [length or "length", 2, 5]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [length or "length", 2, 2, hidden]),
    ]
    graph = helper.make_graph([node], "layer", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "layer.onnx")
    report = lowered(tmp_path / "layer.onnx", tmp_path / "out", code="torch")
    assert not any("while" in kernel["ops"] for kernel in report["kernels"])
    assert sum("recurrence" in kernel["ops"] for kernel in report["kernels"]) == (2 if length is None else 0)
