"""Attention is written as ONNX Runtime's kernel where that is predicted to be faster, whatever mask and scale it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset
from coset.ir.term import make
from coset.ir.types import F32, TensorType
from coset.lowering.onnx.calls import NoOnnxForm, PrintContext
from coset.lowering.onnx.printers import print_term

BATCH, LENGTH, WIDTH, HEADS = 2, 5, 24, 3
MASKS: dict[str, tuple[int, ...]] = {
    "none": (), "rows": (LENGTH, LENGTH), "keys": (BATCH, 1, 1, LENGTH), "batch": (BATCH, 1, LENGTH, LENGTH),
    "heads": (1, HEADS, LENGTH, LENGTH), "all": (BATCH, HEADS, LENGTH, LENGTH),
}  # fmt: skip


def model(
    mask: tuple[int, ...] = (), *, scale: str = "Div", biases: str = "qkv", sources: str = "xxx", batch: Any = BATCH, packed: bool = False
) -> onnx.ModelProto:
    """Self-attention of `x`; of `sources`, one letter for queries, keys and values, where they differ."""
    draw = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {"apart": np.array([0, LENGTH, HEADS, -1]), "joined": np.array([0, LENGTH, WIDTH])}

    def node(op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        name = out or f"v{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    parts = []
    if packed:
        constants["w"] = draw.normal(size=(WIDTH, 3 * WIDTH)).astype(np.float32) / 4
        constants["b"] = draw.normal(size=3 * WIDTH).astype(np.float32)
        whole = node("Add", node("MatMul", "x", "w"), "b")
        constants |= {f"third{i}": np.array(i) for i in range(3)} | {"thirds": np.array([0, LENGTH, 3, HEADS, WIDTH // HEADS])}
        turned = node("Transpose", node("Reshape", whole, "thirds"), perm=(2, 0, 3, 1, 4))
        parts = [node("Gather", turned, f"third{i}", axis=0) for i in range(3)]
        parts[1] = node("Transpose", parts[1], perm=(0, 1, 3, 2))
    for name, source in () if packed else zip("qkv", sources, strict=True):
        constants[f"w{name}"] = draw.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 4
        part = node("MatMul", source, f"w{name}")
        if name in biases:
            constants[f"b{name}"] = draw.normal(size=WIDTH).astype(np.float32)
            part = node("Add", part, f"b{name}")
        parts.append(node("Transpose", node("Reshape", part, "apart"), perm=(0, 2, 3, 1) if name == "k" else (0, 2, 1, 3)))
    scores = node("MatMul", parts[0], parts[1])
    if scale:
        constants["scale"] = np.float32(2.5)
        scores = node(scale, scores, "scale")
    if mask:
        scores = node("Add", scores, "mask")
    seen = node("MatMul", node("Softmax", scores, axis=-1), parts[2])
    node("Reshape", node("Transpose", seen, perm=(0, 2, 1, 3)), "joined", out="y")
    given = dict.fromkeys(sorted(set(sources)), (batch, LENGTH, WIDTH)) | ({"mask": mask} if mask else {})
    graph = helper.make_graph(
        nodes, "attention",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in given.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (batch, LENGTH, WIDTH))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if any(name in n.input for n in nodes)],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def kernels(program: coset.Optimized) -> list[str]:
    """The nodes of ONNX Runtime's own domain, and what was left out."""
    assert program.report["left_out"] == []
    assert program.report["check"]["ok"]
    return [term.op.name for term in program.program.terms() if term.op.dialect == "ort"]


@pytest.mark.parametrize("mask", MASKS)
def test_masks_of_every_shape(mask: str) -> None:
    """The check runs the program in ONNX Runtime beside the original; the values here are a second look."""
    given = model(MASKS[mask])
    optimized = coset.optimize(given)
    assert kernels(optimized) == ["ort.SelfAttention"]
    draw = np.random.default_rng(1)
    feed = {entry.name: draw.normal(size=[dim.dim_value for dim in entry.type.tensor_type.shape.dim]).astype(np.float32)
            for entry in given.graph.input}  # fmt: skip
    expected = onnx.reference.ReferenceEvaluator(given).run(None, feed)[0]
    np.testing.assert_allclose(optimized(feed)["y"], expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("scale", ["Mul", "Div", ""])
@pytest.mark.parametrize("biases", ["qkv", "qv", ""])
def test_scales_and_biases(scale: str, biases: str) -> None:
    assert kernels(coset.optimize(model(MASKS["keys"], scale=scale, biases=biases))) == ["ort.SelfAttention"]


def test_packed_projections() -> None:
    """As vision transformers and PaddleOCR have it: one product, its thirds taken apart behind a transpose of five axes."""
    optimized = coset.optimize(model(packed=True))
    assert kernels(optimized) == ["ort.SelfAttention"]
    assert optimized.report["nodes"]["after"] == 1


@pytest.mark.parametrize("mask", ["rows", "heads"])
def test_a_batch_of_any_size(mask: str) -> None:
    assert kernels(coset.optimize(model(MASKS[mask], batch="n"))) == ["ort.SelfAttention"]


@pytest.mark.parametrize(
    "given", [{"sources": "xzz"}, {"sources": "xxz"}, {"biases": "kv"}], ids=["cross", "other values", "a bias missing"]
)
def test_what_the_kernel_does_not_do_stays(given: dict[str, str]) -> None:
    """Operands that differ are no self-attention; a projection without a bias beside others with one is left alone."""
    assert kernels(coset.optimize(model(**given))) == []


def test_only_where_every_bit_need_not_stay() -> None:
    assert kernels(coset.optimize(model(), numerics="exact")) == []


def test_the_written_model_imports_the_domain(tmp_path: Path) -> None:
    coset.optimize(model()).save(tmp_path / "attention.onnx")
    written = onnx.load(tmp_path / "attention.onnx")
    assert [node.op_type for node in written.graph.node if node.domain == "com.microsoft"] == ["Attention"]
    assert {entry.domain: entry.version for entry in written.opset_import} == {"": 17, "com.microsoft": 1}


def test_a_scale_of_zero_means_another_to_the_kernel() -> None:
    scores = [make("builtin.parameter", (), {"index": index, "type": TensorType(F32, shape)})
              for index, shape in enumerate([(2, 5, 24), (24, 72), (72,)])]  # fmt: skip
    absent = make("builtin.absent", (), {})
    attention = make("ort.SelfAttention", (*scores, absent), {"num_heads": 3, "scale": 0.0})
    with pytest.raises(NoOnnxForm, match="scale of 0"):
        print_term(attention, PrintContext(17))
