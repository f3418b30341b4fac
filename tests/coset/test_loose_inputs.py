"""Inputs of no known shape: sequences, optional values and tensors without a rank are drawn, and what reads them is compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from coset.cli import run
from coset.comparing.check import Oracle
from coset.comparing.difference import difference
from coset.comparing.feeds import cases
from coset.comparing.loose_inputs import RANK
from coset.comparing.sizes import bindings
from coset.frontends.onnx.model import import_model
from coset.proving.prove import Proving, prove

TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 4])
OPEN = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
LIST = helper.make_value_info("s", helper.make_sequence_type_proto(TENSOR))
LOOSE = helper.make_value_info("s", helper.make_sequence_type_proto(OPEN))
MAYBE = helper.make_value_info("s", helper.make_optional_type_proto(TENSOR))
RANKLESS = helper.make_value_info("s", OPEN)
Y = helper.make_value_info("y", OPEN)
JOINED = [("SequenceInsert", ["s", "x"], ["t"], {}), ("ConcatFromSequence", ["t"], ["c"], {"axis": 0}), ("Neg", ["c"], ["n"], {})]
OPENED = [("OptionalGetElement", ["s"], ["c"], {}), ("Neg", ["c"], ["n"], {})]
NEGATED = [("Neg", ["s"], ["c"], {}), ("Neg", ["c"], ["n"], {})]
OF_THREE = [("Softmax", ["s"], ["c"], {"axis": 2}), ("Neg", ["c"], ["n"], {})]  # no tensor of fewer dims has this axis


def saved(folder: Path, name: str, head: list, nodes: list[tuple], last: str, result: onnx.ValueInfoProto = Y) -> Path:
    made = [helper.make_node(op, reads, gives, **given) for op, reads, gives, given in nodes]
    made.append(helper.make_node(last, ["n"], ["y"]))
    path = folder / f"{name}.onnx"
    graph = helper.make_graph(made, "g", head, [result])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


FORMS = [
    pytest.param([LIST, X], JOINED, id="sequence"),
    pytest.param([MAYBE], OPENED, id="optional"),
    pytest.param([RANKLESS], NEGATED, id="no rank"),
]


@pytest.mark.parametrize(("head", "nodes"), FORMS)
def test_a_model_of_loose_inputs_is_optimized_and_compared(head: list, nodes: list[tuple], tmp_path: Path) -> None:
    path = saved(tmp_path, "model", head, nodes, "Relu")
    assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx")]) == 0
    other = saved(tmp_path, "other", head, nodes, "Abs")
    oracle = Oracle(path, import_model(path), {})
    assert oracle.compare(path, exact=True).ok and not oracle.compare(other, exact=False).ok
    assert prove(Proving(path, other))["answer"] == "refuted" and prove(Proving(path, path))["answer"] == "proved"


def test_lists_hold_arrays_of_the_names_dims() -> None:
    program = import_model(helper.make_model(helper.make_graph(
        [helper.make_node("ConcatFromSequence", ["s"], ["c"], axis=0), helper.make_node("Add", ["c", "x"], ["y"])], "g", [LIST, X], [Y],
    )))  # fmt: skip
    binding = next(bindings(program, {"n": 5}))
    given = next(cases(program, binding)).feed["s"]
    assert [each.shape for each in given] == [(5, 4), (5, 4)] and not np.array_equal(*given)


def test_ranks_are_tried(tmp_path: Path) -> None:
    path = saved(tmp_path, "model", [RANKLESS], OF_THREE, "Relu")
    program = import_model(path)
    assert [found[RANK] for found in bindings(program, {})] == [2, 1, 3, 4, 0]
    assert Oracle(path, program, {}).binding == {RANK: 3}
    assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx"), "--json"]) == 0


def test_what_no_rank_fits_is_refused_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "model", [RANKLESS], [("Reshape", ["s", "seven"], ["n"], {})], "Relu")
    model = onnx.load(path)
    model.graph.initializer.append(helper.make_tensor("seven", TensorProto.INT64, [1], [7]))
    onnx.save(model, path)
    assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx")]) == 2
    assert "does not run on drawn inputs" in capsys.readouterr().err and not (tmp_path / "out.onnx").exists()


def test_sequences_are_compared_element_by_element() -> None:
    one = [np.ones(3, np.float32), np.full(2, 5, np.float32)]
    near, far = [one[0] * np.float32(1 + 1e-7), one[1]], [one[0], one[1] + 1]
    for other, exact, ok in ((one, True, True), (near, False, True), (near, True, False), (far, False, False), (one[:1], False, False)):
        assert difference("normal", "s", one, other, 0.0, exact=exact).ok is ok
    assert difference("normal", "s", one, far, 0.0, exact=False).max_abs == 1.0
    assert difference("normal", "s", [], [], 0.0, exact=True).ok


# ------------------------------------------------------------ maps


def mapped(keys: int, values: int, node: onnx.NodeProto, result: int, last: str = "Relu") -> onnx.ModelProto:
    type = onnx.TypeProto()
    type.map_type.key_type = keys
    type.map_type.value_type.tensor_type.elem_type = values
    type.map_type.value_type.tensor_type.shape.SetInParent()
    made = [node, *(helper.make_node(last, [reads], [gives]) for reads, gives in (("v", "r"), ("r", "y")))]
    y = helper.make_tensor_value_info("y", result, None)
    graph = helper.make_graph(made, "g", [helper.make_value_info("m", type)], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)], ir_version=8)


def vectorizer(**vocabulary: list) -> onnx.NodeProto:
    return helper.make_node("DictVectorizer", ["m"], ["v"], domain="ai.onnx.ml", **vocabulary)


MAPS = [
    pytest.param(TensorProto.STRING, TensorProto.FLOAT, vectorizer(string_vocabulary=["b", "c", "a"]), TensorProto.FLOAT, id="texts"),
    pytest.param(TensorProto.INT64, TensorProto.FLOAT, vectorizer(int64_vocabulary=[70, 2]), TensorProto.FLOAT, id="integers"),
    pytest.param(TensorProto.STRING, TensorProto.INT64, vectorizer(string_vocabulary=["b", "c"]), TensorProto.INT64, id="to integers"),
    pytest.param(TensorProto.INT64, TensorProto.DOUBLE, vectorizer(int64_vocabulary=[7, 2]), TensorProto.DOUBLE, id="to doubles"),
    pytest.param(
        TensorProto.INT64, TensorProto.FLOAT,
        helper.make_node("CastMap", ["m"], ["v"], domain="ai.onnx.ml", map_form="SPARSE", max_map=6), TensorProto.FLOAT, id="places",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "values", "node", "result"), MAPS)
def test_a_model_of_a_map_is_optimized_and_compared(keys: int, values: int, node: onnx.NodeProto, result: int, tmp_path: Path) -> None:
    """By the runtime where its binding takes such maps, else by ONNX's evaluator; another model of the same map is refuted."""
    paths = [tmp_path / "model.onnx", tmp_path / "other.onnx"]
    for path, last in zip(paths, ("Relu", "Abs"), strict=True):
        onnx.save(mapped(keys, values, node, result, last), path)
    assert run(["optimize", str(paths[0]), "-o", str(tmp_path / "out.onnx")]) == 0
    assert prove(Proving(*paths))["answer"] == "refuted" and prove(Proving(paths[0], paths[0]))["answer"] == "proved"


def test_maps_have_the_keys_that_are_read() -> None:
    program = import_model(mapped(TensorProto.STRING, TensorProto.FLOAT, vectorizer(string_vocabulary=["b", "c", "a"]), TensorProto.FLOAT))
    given = [case.feed["m"] for case in cases(program, {})]
    assert set().union(*given) == {"a", "b", "c"} and min(map(len, given)) == 1 < max(map(len, given))
    assert any(np.isnan(value) for each in given for value in each.values())
    places = import_model(mapped(TensorProto.INT64, TensorProto.STRING, MAPS[-1].values[2], TensorProto.FLOAT))
    for case in cases(places, {}):
        assert set(case.feed["m"]) <= set(range(6)) and all(int(value) in range(-9, 10) for value in case.feed["m"].values())
