"""Functions of a model's own: their nodes take the place of their calls, or the calls stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import coset
from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.comparing.reference import values_of
from coset.frontends.onnx.model import import_model

HEAD = '<ir_version: 9, opset_import: ["" : 19, "own" : 1]> g (float[2,3] x) => (float[2,3] y)'
MODELS = {
    "a default of an attribute": f"""{HEAD} {{ t = own.f<alpha = 0.5>(x) y = own.f(t) }}
        <domain: "own", opset_import: ["" : 19]> f <alpha: float = 3.0> (a) => (r) {{ r = LeakyRelu<alpha: float = @alpha>(a) }}""",
    "a default through another function": f"""{HEAD} {{ y = own.h(x) }}
        <domain: "own", opset_import: ["" : 19]> f <alpha: float = 3.0> (a) => (r) {{ r = LeakyRelu<alpha: float = @alpha>(a) }}
        <domain: "own", opset_import: ["" : 19, "own" : 1]> h (a) => (r) {{ n = Neg(a) r = own.f(n) }}""",
    "a default inside a branch": f"""{HEAD} {{ s = ReduceSum<keepdims = 0>(x) c = Cast<to = 9>(s)
        y = If(c) <then_branch = t () => (float[2,3] q) {{ q = own.f(x) }}, else_branch = e () => (float[2,3] r) {{ r = Neg(x) }}> }}
        <domain: "own", opset_import: ["" : 19]> f <alpha: float = 3.0> (a) => (r) {{ r = LeakyRelu<alpha: float = @alpha>(a) }}""",
    "names that meet": f"""{HEAD} {{ t = own.f(x) u = own.f(t) y = Add(t, u) }}
        <domain: "own", opset_import: ["" : 19]> f (a) => (r) {{ t = Neg(a) u = Exp(t) r = Add(t, u) }}""",
    "what cancels inside": f"""{HEAD} {{ y = own.f(x) }}
        <domain: "own", opset_import: ["" : 19]> f (a) => (r)
        {{ t = Transpose<perm = [1, 0]>(a) u = Exp(t) v = Transpose<perm = [1, 0]>(u) r = Neg(v) }}""",
}
FEED = {"x": np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)}


def saved(name: str, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(MODELS[name]), path)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_in_place_of_calls_is_what_they_compute(name: str, tmp_path: Path) -> None:
    path = saved(name, tmp_path)
    (got,) = values_of(import_model(path, inline=True), FEED).values()
    assert np.allclose(got, Session(path).run(FEED)["y"], rtol=1e-6)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_functions_are_opened_or_kept(name: str, keep: bool, tmp_path: Path) -> None:
    path, out = saved(name, tmp_path), tmp_path / "out.onnx"
    coset.optimize(path, keep_functions=keep).save(out)
    written = onnx.load(out)
    assert any(node.domain == "own" for node in written.graph.node) is (keep and "branch" not in name)
    assert np.allclose(Session(out).run(FEED)["y"], Session(path).run(FEED)["y"], rtol=1e-6)
    if name == "what cancels inside":
        assert ("Transpose" in {node.op_type for node in written.graph.node}) is False


@pytest.mark.parametrize("option", [[], ["--keep-functions"]])
def test_both_have_certificates(option: list[str], tmp_path: Path) -> None:
    path, out, proof = saved("a default of an attribute", tmp_path), tmp_path / "out.onnx", tmp_path / "proof"
    assert run(["optimize", str(path), "-o", str(out), "--certificate", str(proof), *option]) == 0
    assert run(["verify", str(proof), str(path), str(out)]) == 0


def test_functions_that_call_each_other_are_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No runtime loads such a model, and nothing opens their calls."""
    text = f"""{HEAD} {{ y = own.f(x) }}
        <domain: "own", opset_import: ["" : 19, "own" : 1]> f (a) => (r) {{ r = own.h(a) }}
        <domain: "own", opset_import: ["" : 19, "own" : 1]> h (a) => (r) {{ r = own.f(a) }}"""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx")]) == 2
    assert "does not load" in capsys.readouterr().err and not (tmp_path / "out.onnx").exists()
