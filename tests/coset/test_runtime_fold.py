"""Constants are those of the runtime: where its kernels round otherwise than NumPy, and where a standard leaves a case open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import coset
from coset.backends.onnxruntime import Session
from coset.comparing import fold
from coset.comparing.runtime_fold import runtime_values
from coset.frontends.onnx.model import import_model
from coset.ir.evaluate import evaluate
from coset.ir.term import constant, make

F, LONG = np.float32, np.int64
CASES: dict[str, tuple[list[tuple[Any, ...]], dict[str, Any]]] = {
    "a sum of integers that does not fit": ([("ReduceSum", ["c"], ["y"], {"keepdims": 0})], {"c": np.int32([2147483647] * 2)}),
    "a sum beyond 53 bits": ([("ReduceSum", ["c"], ["y"], {"keepdims": 0})], {"c": LONG([9007199254740993])}),
    "a product of integers that does not fit": ([("ReduceProd", ["c"], ["y"], {"keepdims": 0})], {"c": np.int32([65536] * 2)}),
    "a float that no byte holds": ([("Cast", ["c"], ["y"], {"to": 2})], {"c": F([-1.0])}),
    "a float that no integer holds": ([("Cast", ["c"], ["y"], {"to": 6})], {"c": F([1e10])}),
    "a power of integers": ([("Pow", ["c", "d"], ["y"], {})], {"c": LONG([3]), "d": LONG([34])}),
    "the place of the largest beside a NaN": ([("ArgMax", ["c"], ["y"], {"axis": 0})], {"c": F([1, np.nan])}),
    "the largest beside a NaN": ([("ReduceMax", ["c"], ["y"], {})], {"c": F([1, np.nan])}),
    "halves that are widened": ([("Mul", ["c", "c"], ["h"], {}), ("Cast", ["h"], ["y"], {"to": 1})], {"c": np.float16([300])}),
    "quantized halves": (
        [("QuantizeLinear", ["c", "s", "zero"], ["y"], {})],
        {"c": np.linspace(-3, 3, 500).astype(np.float16), "s": np.float16(0.05), "zero": np.int8(0)},
    ),
}


def saved(name: str, path: Path) -> Path:
    """A model that computes a constant beside something that it does with an input."""
    rows, constants = CASES[name]
    nodes = [helper.make_node(op, reads, gives, **attributes) for op, reads, gives, attributes in rows]
    x, z, y = (helper.make_tensor_value_info(value, 1, [2]) for value in "xzy")
    graph = helper.make_graph([*nodes, helper.make_node("Relu", ["x"], ["z"])], "g", [x], [y, z], [
        numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()
    ])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    model.graph.output[0].type.CopyFrom(onnx.TypeProto())
    inferred = onnx.shape_inference.infer_shapes(model).graph
    (type,) = (value.type for value in (*inferred.value_info, *inferred.output) if value.name == "y")
    model.graph.output[0].type.CopyFrom(type)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("numerics", ["exact", "reassociates"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_folded_is_what_the_runtime_computes(name: str, numerics: str, tmp_path: Path) -> None:
    path = saved(name, tmp_path / "model.onnx")
    feed = {"x": F([1, -1])}
    expected = Session(path).run(feed)["y"]
    found = coset.optimize(path, numerics=numerics)
    found.save(tmp_path / "out.onnx")
    got = Session(tmp_path / "out.onnx").run(feed)["y"]
    assert got.dtype == expected.dtype and np.array_equal(got, expected, equal_nan=True)


def test_exact_folds_only_what_has_the_bits_of_both(tmp_path: Path) -> None:
    """Where the runtime has other bits than the evaluator the node stays, since a claim of `exact` is about both."""
    path = saved("quantized halves", tmp_path / "model.onnx")
    kept = {}
    for numerics in ("exact", "reassociates"):
        coset.optimize(path, numerics=numerics).save(tmp_path / "out.onnx")
        kept[numerics] = "QuantizeLinear" in [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    assert kept == {"exact": True, "reassociates": False}


def test_what_only_moves_is_not_asked_for() -> None:
    program = import_model(
        onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17]> g () => (float[2,1] t, float[1,2] s) <float[1,2] c = {1, 2}>'
            " { t = Transpose<perm=[1,0]>(c) s = Sqrt(c) }"
        )
    )
    moved, computed = program.roots
    assert set(runtime_values([moved, computed], program.source)) == {computed}


def test_what_the_runtime_does_not_compute_is_left_to_the_evaluator() -> None:
    """One of several that it has no kernel for does not take the others along."""
    program = import_model(
        onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17, "acme" : 1]> g () => (float[2] a, float[2] b) <float[2] c = {1, 2}>'
            " { a = acme.Unknown(c) b = Sqrt(c) }"
        )
    )
    unknown, computed = (term for _, term in program.outputs)
    assert set(runtime_values([unknown, computed], program.source)) == {computed}


def test_a_long_sum_may_differ_by_roundings_that_go_one_way() -> None:
    """4,096 equal numbers one after the other are 185 roundings off, which no product of two numbers is."""
    row, column = (constant(np.full(shape, 0.02, np.float32)) for shape in ((1, 4096), (4096, 1)))
    contracted = {"lhs_batch": (), "rhs_batch": (), "lhs_contract": (1,), "rhs_contract": (0,)}
    for term, near in ((make("stablehlo.dot_general", (row, column), contracted), True), (make("stablehlo.multiply", (row, row)), False)):
        (own,) = evaluate([term], {})
        assert fold._is_near(term, constant(own), own * np.float32(1 + 1.1e-5), False) is near
        assert not fold._is_near(term, constant(own), own * np.float32(1 + 1e-3), False)


@pytest.mark.parametrize("certified", [False, True])
def test_constants_that_take_long_are_left_to_the_runtime(certified: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product counts more operations than are allowed, what it is made of and what is beside it do not; the loop counts its rounds."""
    monkeypatch.setattr(fold, "OPERATIONS", 1 << 19)
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y)
        <int64 m = {40}, bool on = {1}, float[2] z = {1., 2.}, int64[2] s = {300, 300}, float o = {0.5}, float[2] c = {3., 4.}>
        {
            v = Loop(m, on, z) <body = turn (int64 i, bool k, float[2] a) => (bool d, float[2] e) { d = Identity(k) e = Add(a, a) }>
            w = Expand(o, s)
            u = Neg(w)
            q = MatMul(w, u)
            r = ReduceSum<keepdims = 0>(q)
            p = Mul(c, c)
            t = Add(v, p)
            f = Add(t, r)
            y = Add(x, f)
        }"""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    optimized = coset.optimize(path, certificate=certified)
    ops = [node.op_type for node in onnx.load(optimized._draft.path).graph.node]
    assert "Loop" in ops and "Neg" not in ops and ops.count("Mul") == 0
    assert optimized.report["check"]["ok"]
