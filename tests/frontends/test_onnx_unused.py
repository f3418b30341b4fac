"""Weights that nothing reads are left out of what a runtime is given, where there are thousands of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import coset
from coset.comparing import check
from coset.frontends.onnx.unused import without_unused


def model(unused: int) -> onnx.ModelProto:
    """y = x w, or a body's weight, and so many weights beside these; `d` is an input with a default that nothing reads."""
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, bool c, float[2] d) => (float[2] y)'
        " <float[2] w = {1, 2}, float[2] v = {3, 4}>"
        " { p = Mul(x, w) y = If(c)"
        " <then_branch = t () => (float[2] q) { q = Add(p, v) }, else_branch = e () => (float[2] r) { r = Neg(p) }> }"
    )
    names = ["d", *(f"u{number}" for number in range(unused))]
    found.graph.initializer.extend(onnx.numpy_helper.from_array(np.float32([1, 1]), name) for name in names)
    return found


def test_what_bodies_read_and_defaults_of_inputs_stay() -> None:
    kept = onnx.ModelProto.FromString(without_unused(model(5)))
    assert [tensor.name for tensor in kept.graph.initializer] == ["w", "v", "d"]
    assert len(kept.graph.node) == 2


@pytest.mark.parametrize(("unused", "handed"), [(5, 8), (1500, 3)])
def test_thousands_are_not_handed_to_the_runtime(unused: int, handed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(unused), path)
    loaded = tmp_path / "loaded"  # by the process that compares
    told = check.Session.told

    def watched(given: Path, *arguments: object, **options: object) -> check.Session:
        with loaded.open("a") as file:
            print(len(onnx.load(given).graph.initializer), file=file)
        return told(given, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(check.Session, "told", watched)
    assert coset.optimize(path).report["check"]["ok"]
    assert int(loaded.read_text().split()[0]) == handed, "the first to be loaded is the original"
