"""A program that stores much heavier values in f16 than the original is not handed out: the rule that makes it is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset
import coset.dialects
from coset.comparing.check import CheckReport
from coset.comparing.weights import as_stored, scales_of
from coset.egraph.limits import Limits
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import DTYPES, F16, F32, DType, tensor

assert coset.dialects
FINE = CheckReport({}, cases=["normal"])


def _scaled(dtype: DType, behind: bool) -> Program:
    """0.125 x @ w, or 0.125 (x @ w)."""
    x, w = input_term("x", tensor(dtype, 4, 8)), constant(np.full((8, 2), 4.0, dtype.numpy))
    dims = {"lhs_batch": (), "rhs_batch": (), "lhs_contract": (1,), "rhs_contract": (0,)}

    def scaled(term: Term) -> Term:
        number = constant(np.asarray(0.125, dtype.numpy))
        spread = make("stablehlo.broadcast_in_dim", (number,), {"shape": term.tensor.dims, "broadcast_dimensions": ()})
        return make("stablehlo.multiply", (spread, term))

    root = scaled(make("stablehlo.dot_general", (x, w), dims)) if behind else make("stablehlo.dot_general", (scaled(x), w), dims)
    return Program((x,), (("y", root),))


@pytest.mark.parametrize(("dtype", "same"), [("f16", False), ("f8e4m3fn", False), ("f32", True), ("bf16", True)])
def test_a_scale_behind_a_product_is_too_heavy_where_the_range_is_small(dtype: str, same: bool) -> None:
    front, behind = (_scaled(DTYPES[dtype], each) for each in (False, True))
    scales = scales_of(front, {})
    assert scales.compare(FINE, front).ok
    report = scales.compare(FINE, behind)
    assert report.ok is same
    if not same:
        assert report.worst is not None and "times as heavy as the heaviest value of the original" in str(report.worst)
        assert scales_of(behind, {}).compare(FINE, front).ok  # the way back makes nothing heavier


def _shifted(dtype: DType, by: float) -> Program:
    """(x + by) - by, which is 2 x - x for 0."""
    x = input_term("x", tensor(dtype, 64))
    number = make("stablehlo.broadcast_in_dim", (constant(np.asarray(by, dtype.numpy)),), {"shape": (64,), "broadcast_dimensions": ()})
    return Program((x,), (("y", make("stablehlo.subtract", (make("stablehlo.add", (x, number)), number))),))


@pytest.mark.parametrize(("by", "same"), [(0.0, True), (0.5, True), (4000.0, False)])
def test_digits_that_are_lost_where_values_are_stored_in_few_bits_are_seen(by: float, same: bool) -> None:
    """ONNX Runtime's kernels for the CPU compute (x + 4000) - 4000 in f32, and a GPU in f16."""
    report = as_stored(_shifted(F16, 0.0), _shifted(F16, by), FINE, frozenset())
    assert report.ok is same
    assert same or report.by == "the evaluator, which rounds where the programs store"


def test_what_has_no_narrow_floats_is_not_evaluated() -> None:
    assert scales_of(_scaled(F32, True), {}).heaviest == {}
    assert len(scales_of(_scaled(F16, True), {}).heaviest) == 5


def _model(path: Path) -> None:
    """Two products whose weights are large beside all that is computed of them."""
    weights = [np.full((64, 64), 24.0, np.float16) for _ in range(2)]
    nodes = [
        helper.make_node("Mul", ["x", "little"], ["t"]),
        helper.make_node("Tanh", ["t"], ["s"]),
        helper.make_node("MatMul", ["s", "w0"], ["a"]),
        helper.make_node("MatMul", ["a", "w1"], ["y"]),
    ]
    stored = [numpy_helper.from_array(weight, f"w{place}") for place, weight in enumerate(weights)]
    stored.append(numpy_helper.from_array(np.asarray(0.0009765625, np.float16), "little"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [64, 64]) for name in "xy"]
    graph = helper.make_graph(nodes, "heavy", ends[:1], ends[1:], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def test_weights_are_not_multiplied_into_one_that_is_heavy(tmp_path: Path) -> None:
    """24 * 24 * 64 = 36,864 is more than half of the largest f16, where nothing else weighs a hundredth of that."""
    _model(tmp_path / "model.onnx")
    found = coset.optimize(tmp_path / "model.onnx", limits=Limits(seconds=20))
    found.save(tmp_path / "out.onnx")
    kept = [numpy_helper.to_array(each) for each in onnx.load(tmp_path / "out.onnx").graph.initializer]
    assert max(float(np.max(np.abs(each.astype(np.float64)))) for each in kept) <= 24.0
