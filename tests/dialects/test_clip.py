"""Clip: a bound that is not given is the largest number of the type, not an infinity, as the standard's text and ONNX Runtime have it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.comparing.reference import values_of
from coset.dialects.hub.terms import splat
from coset.dialects.onnx.origin import OnnxOrigin
from coset.frontends.onnx.model import import_model
from coset.ir.builtin import absent
from coset.ir.program import Program
from coset.ir.program_source import ProgramSource
from coset.ir.term import input_term, make
from coset.ir.types import F32, tensor
from coset.lowering.onnx.model import lower
from coset.proving.prove import Proving, prove

X = [-np.inf, -2.0, 0.0, 3.0, np.inf]
KINDS = {"float": np.float32, "double": np.float64, "float16": np.float16}


def model(body: str, opset: int, kind: str = "float") -> onnx.ModelProto:
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g ({kind}[n] x) => ({kind}[n] y) {{ {body} }}')
    bounds = {"low": -1.0, "high": 2.0, "little": 1e-8}
    held = [name for name in bounds if any(name in node.input for node in found.graph.node)]
    found.graph.initializer.extend(onnx.numpy_helper.from_array(np.array(bounds[name], KINDS[kind]), name) for name in held)
    return found


@pytest.mark.parametrize("opset", [9, 11, 13])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", ["", "low", "high", "both"])
def test_bounds_that_are_not_given_end_at_the_largest_number(given: str, kind: str, opset: int) -> None:
    if opset < 13 and kind != "float":
        pytest.skip("ONNX Runtime has no such kernel")
    if opset < 11:
        told = {"": "", "low": "<min = -1.0>", "high": "<max = 2.0>", "both": "<min = -1.0, max = 2.0>"}[given]
        body = f"y = Clip{told}(x)"
    else:
        body = {"": "y = Clip(x)", "low": "y = Clip(x, low)", "high": "y = Clip(x, , high)", "both": "y = Clip(x, low, high)"}[given]
    original = model(body, opset, kind)
    x = {"x": np.array(X, KINDS[kind])}
    program = import_model(original)
    expected = Session(original.SerializeToString()).run(x)["y"]
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(values_of(program, x)["y"], expected)
    written = lower(program)
    np.testing.assert_array_equal(Session(written.SerializeToString()).run(x)["y"], expected)
    assert [node.op_type for node in written.graph.node if node.op_type != "Constant"] == ["Clip"]
    assert len(written.graph.initializer) <= 2 and len(written.graph.node[-1].input) <= 3


@pytest.mark.parametrize("opset", [9, 11, 17])
@pytest.mark.parametrize("bounds", [("low",), ("high",), ("low", "high")])
def test_bounds_that_are_absent_in_a_term_are_infinities(bounds: tuple[str, ...], opset: int) -> None:
    x = input_term("x", tensor(F32, 5))
    given = [splat(number, F32, ()) if name in bounds else absent() for name, number in (("low", -1.0), ("high", 2.0))]
    program = Program((x,), (("y", make("onnx.Clip", (x, *given))),), source=ProgramSource(origin=OnnxOrigin(opsets={"": opset})))
    found = Session(lower(program).SerializeToString()).run({"x": np.array(X, np.float32)})["y"]
    low, high = (-1.0 if "low" in bounds else -np.inf), (2.0 if "high" in bounds else np.inf)
    np.testing.assert_array_equal(found, np.clip(np.array(X, np.float32), low, high))


def test_a_maximum_becomes_a_clip_that_keeps_infinities(tmp_path: Path) -> None:
    """Of one frame of a spectrogram, say: the infinity of a NaN-free sum stays one."""
    body = "m = Max(x, little) y = Log(m)"
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model(body, 17), path)
    assert run(["optimize", str(path), "-o", str(out)]) == 0
    x = {"x": np.array(X, np.float32)}
    np.testing.assert_allclose(Session(out).run(x)["y"], Session(path).run(x)["y"], rtol=1e-6)
    clip = tmp_path / "clip.onnx"
    onnx.save(model("m = Clip(x, little) y = Log(m)", 17), clip)
    assert prove(Proving(path, clip))["answer"] == "refuted" and prove(Proving(path, out))["answer"] == "proved"
