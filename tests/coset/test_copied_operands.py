"""Packages for machines with bulk copies, lowered from models: their products read by descriptors, and they compute what the models do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lowered_models import Graph
from onnx import helper

from coset.egraph.limits import Limits
from coset.packaging import emitted, lower
from coset.packaging.asked import Check, Lowering
from coset.pricing.kernel_options import options_for
from coset.targets.target import get_target

pytest.importorskip("torch")
pytest.importorskip("triton")
HALF = onnx.TensorProto.FLOAT16


class Halves(Graph):
    """A graph of f16."""

    def weight(self, *shape: int, scale: float = 0.1) -> str:
        draw = np.random.default_rng(len(self.weights))
        return self.constant((draw.standard_normal(shape) * scale).astype(np.float16))

    def linear(self, x: str, width: int, columns: int) -> str:
        return str(self.op("Add", self.op("MatMul", x, self.weight(width, columns)), self.weight(columns)))


def mlp(folder: Path) -> Path:
    g = Halves()
    y = g.linear(g.op("Relu", g.linear("x", 64, 264)), 264, 128)
    return saved(g, {"x": ["batch", 64]}, {y: ["batch", 128]}, folder)


def transformer(folder: Path) -> Path:
    """A block: normalizations, attention, a residual, GELU, a residual."""
    batch, length, heads, width = 4, 64, 2, 64
    model = heads * width
    g = Halves()

    def split(x: str) -> str:
        return str(g.op("Transpose", g.op("Reshape", x, g.ints(0, length, heads, width)), perm=[0, 2, 1, 3]))

    def normalized(x: str) -> str:
        return str(g.op("LayerNormalization", x, g.weight(model), g.weight(model), axis=-1, epsilon=1e-5))

    y = normalized("x")
    q, k, v = (split(g.linear(y, model, model)) for _ in range(3))
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(np.float16(width**-0.5)))
    mixed = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    x = g.op("Add", "x", g.linear(g.op("Reshape", mixed, g.ints(0, length, model)), model, model))
    y = g.linear(normalized(x), model, 4 * model)
    inner = g.op("Add", g.op("Erf", g.op("Div", y, g.constant(np.float16(2**0.5)))), g.constant(np.float16(1)))
    y = g.op("Mul", g.op("Mul", y, inner), g.constant(np.float16(0.5)))
    out = g.op("Add", x, g.linear(y, 4 * model, model))
    return saved(g, {"x": [batch, length, model]}, {out: [batch, length, model]}, folder)


def saved(g: Graph, inputs: dict[str, list[Any]], outputs: dict[str, list[Any]], folder: Path) -> Path:
    ends = [[helper.make_tensor_value_info(one, HALF, shape) for one, shape in shapes.items()] for shapes in (inputs, outputs)]
    graph = helper.make_graph(g.nodes, "model", *ends, g.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=8), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize(("model", "least"), [(mlp, 2), (transformer, 4)])
def test_a_model_reads_its_operands_by_copies(model: Any, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Triton's interpreter beside the model (`coset.comparing.check`), by programs that go from tile to tile."""
    monkeypatch.setattr(emitted, "options_for", lambda *given: replace(options_for(*given), processors=1))
    asked = Lowering(
        model(tmp_path), get_target("nvidia-h200"), limits=Limits(seconds=20, nodes=4000), code="triton", check=Check.INTERPRETED
    )
    report = lower.lower(asked, tmp_path / "out")
    assert report["check"]["ok"]
    text = (tmp_path / "out" / "kernels.py").read_text()
    assert text.count("_tiles.load(") >= least and "flatten=True" in text
    assert "DESCRIPTORS.of(" in (tmp_path / "out" / "model.py").read_text()
    attentions = [function for function in text.split("@triton.jit") if "weights = tl.exp" in function]
    assert len(attentions) == (model is transformer) and all(each.count("_tiles.load(") >= 2 for each in attentions)


def test_targets_have_copies_from_compute_capability_9_on() -> None:
    names = ("nvidia-a100", "nvidia-h100", "nvidia-h200", "nvidia-b200", "amd-mi300x")
    found = {name: options_for("exact", get_target(name)).bulk for name in names}
    assert found["nvidia-h200"] == found["nvidia-b200"] == 232448
    assert {name for name, bulk in found.items() if bulk} == {"nvidia-h100", "nvidia-h200", "nvidia-b200"}
