"""Products with weights that have rows or columns of zeros at their ends are smaller ones, where infinities may be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import pytest

import coset
from coset.cli import run

FORMS = {
    "matrix": ("y = MatMul(x, w)", (64, 256), (256, 256)), "rows of a batch": ("y = MatMul(x, w)", (4, 16, 256), (256, 256)),
    "batch": ("y = MatMul(x, w)", (4, 64, 128), (4, 128, 256)), "heads": ("y = MatMul(x, w)", (2, 3, 64, 128), (2, 3, 128, 256)),
    "free": ("y = MatMul(x, w)", ("n", 64, 256), (256, 256)),
    "linear": ("v = Transpose<perm = [1, 0]>(w) y = MatMul(x, v)", (4, 128, 256), (256, 256)),
}  # fmt: skip


def weight(shape: tuple[int, ...], rows: tuple[int, int] | None, columns: tuple[int, int] | None) -> Any:
    """Numbers that are zero outside of these rows and columns."""
    kept = np.zeros(shape[-2:], bool)
    kept[slice(*(rows or (None,))), slice(*(columns or (None,)))] = True
    return np.where(kept, np.random.default_rng(0).normal(size=shape), 0).astype(np.float32)


def model(form: str, value: Any) -> onnx.ModelProto:
    body, shape, _ = FORMS[form]
    entry, result = (", ".join(map(str, dims)) for dims in (shape, (*shape[:-1], 256)))
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g (float[{entry}] x) => (float[{result}] y) {{ {body} }}')
    found.graph.initializer.append(onnx.numpy_helper.from_array(value, "w"))
    return found


def multiplied(given: onnx.ModelProto, **options: Any) -> list[int]:
    """How many elements the constants of the products have in what is made of the model, which has the same values."""
    optimized = coset.optimize(given, **options)
    assert optimized.report["left_out"] == [] and optimized.report["check"]["ok"]
    assert optimized.report["cost"]["output"] <= optimized.report["cost"]["input"]
    sizes = [dim.dim_value or 3 for dim in given.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).normal(size=sizes).astype(np.float32)
    (expected,) = onnx.reference.ReferenceEvaluator(given).run(None, {"x": x})
    np.testing.assert_allclose(optimized({"x": x})["y"], expected, rtol=2e-4, atol=2e-4)
    products = [term for term in optimized.program.terms() if term.op.name in ("stablehlo.dot_general", "onnx.Gemm")]
    return [int(np.prod(term.operands[1].tensor.static)) for term in products]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "columns"), [((0, 64), None), (None, (64, 128)), ((16, 64), (0, 128)), ((64, 128), (96, 256))])
def test_zeros_are_left_out(form: str, rows: Any, columns: Any) -> None:
    shape = FORMS[form][2]
    value = weight(shape, rows, columns)
    left = [end - start for start, end in (rows or (0, shape[-2]), columns or (0, shape[-1]))]
    assert multiplied(model(form, value), numerics="real") == [int(np.prod(shape[:-2])) * left[0] * left[1]]


@pytest.mark.parametrize("numerics", ["reassociates", "exact"])
@pytest.mark.parametrize("form", ["matrix", "batch"])
def test_not_by_default(form: str, numerics: str) -> None:
    """An infinity times a zero is NaN."""
    shape = FORMS[form][2]
    assert multiplied(model(form, weight(shape, (0, 64), None)), numerics=numerics) == [int(np.prod(shape))]


def test_one_number_keeps_its_row_and_its_column() -> None:
    value = weight((256, 256), (0, 64), (0, 64))
    value[255, 255] = 1e-30
    assert multiplied(model("matrix", value), numerics="real") == [256 * 256]


def test_few_zeros_stay() -> None:
    """One column of 256: the padding costs more than it saves."""
    assert multiplied(model("matrix", weight((256, 256), None, (0, 255))), numerics="real") == [256 * 256]


def test_certificate(tmp_path: Path) -> None:
    before, after, proof = (str(tmp_path / name) for name in ("before.onnx", "after.onnx", "proof"))
    onnx.save(model("matrix", weight((256, 256), (16, 64), (0, 128))), before)
    assert run(["optimize", before, "-o", after, "--numerics", "real", "--certificate", proof]) == 0
    assert {node.op_type for node in onnx.load(after).graph.node} == {"Slice", "MatMul", "Pad"}
    assert run(["verify", proof, before, after]) == 0
