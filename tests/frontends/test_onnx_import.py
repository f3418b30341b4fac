"""What ONNX models become: terms where the op is known, opaque ones elsewhere, with everything that they came with."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from round_trips import BOOL, FLOAT, INT64, equal, exported, kept, model_of, output, round_trip, value

from coset.backends.onnxruntime import Session, evaluate_opaque
from coset.dialects.onnx.importing import BUILDERS, NEWEST
from coset.dialects.onnx.origin import onnx_origin
from coset.frontends.onnx.facts import Bounded, Fixed, RunFacts, read
from coset.frontends.onnx.model import import_model
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.ir.term import Term
from coset.ir.types import F32, TensorType
from coset.lowering.onnx.model import lower
from coset.prove.contents import by_content
from coset.searching.task import usual_dims

node = helper.make_node
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def shape_of(term: Term) -> list[str]:
    return [str(dim) for dim in term.tensor.dims]


# ---------------------------------------------------------------- interface and what comes with a model


def test_the_interface_and_what_comes_with_a_model_survive() -> None:
    model = model_of(
        [node("Relu", ["x"], ["h"]), node("Tanh", ["h"], ["y"])],
        [value("x", FLOAT, "batch size", 3, None), value("unused", INT64)],
        [value("y", FLOAT, "batch size", 3, None), value("h", FLOAT, None, 3, None)],
        producer_name="maker", producer_version="1.2", domain="org.example", model_version=7, doc_string="a model",
    )  # fmt: skip
    model.metadata_props.add(key="license", value="MIT")
    model.graph.doc_string = "a graph"
    model.graph.input[0].doc_string = "pixels"
    _, result = round_trip(model, {"x": X, "unused": np.array(1)})
    for field in (
        "ir_version",
        "producer_name",
        "producer_version",
        "domain",
        "model_version",
        "doc_string",
        "metadata_props",
        "opset_import",
    ):
        assert getattr(result, field) == getattr(model, field), field
    assert result.graph.name == model.graph.name and result.graph.doc_string == "a graph"
    assert [n.output[0] for n in result.graph.node] == ["h", "y"]


def test_weights_keep_their_names_and_an_unused_one_goes() -> None:
    w = np.ones((4, 2), np.float32) * np.arange(2, dtype=np.float32)
    model = model_of(
        [node("MatMul", ["x", "w"], ["y"])], [value("x", FLOAT, 2, 3, 4)], [value("y", FLOAT, 2, 3, 2)], weights={"w": w, "v": w + 1}
    )
    _, result = round_trip(model, {"x": X})
    assert [tensor.name for tensor in result.graph.initializer] == ["w"]


def test_an_initializer_that_is_an_input_stays_one_with_its_default() -> None:
    model = model_of([node("Add", ["x", "b"], ["y"])], [value("x", FLOAT, 3), value("b", FLOAT, 3)], [value("y", FLOAT, 3)],
                     weights={"b": np.ones(3, np.float32)})  # fmt: skip
    program, result = round_trip(model, {"x": X[0, 0, :3]})
    assert [term.attribute("name") for term in program.inputs] == ["x", "b"]
    assert list(onnx_origin(program.source).defaults) == ["b"]
    assert Session(result.SerializeToString()).run({"x": X[0, 0, :3], "b": X[0, 0, :3]})["y"].tolist() == [0, 2, 4]


def test_before_ir_version_4_initializers_are_constants_and_stay_listed() -> None:
    model = model_of([node("Reshape", ["x", "s"], ["y"])], [value("x", FLOAT, 2, 3, 4), value("s", INT64, 2)], [value("y", FLOAT, 6, 4)],
                     weights={"s": np.array([6, 4])}, opset=8, ir_version=3)  # fmt: skip
    program, result = round_trip(model, {"x": X})
    assert len(program.inputs) == 1 and output(program).op.name == "stablehlo.reshape"
    assert result.ir_version == 3


def test_outputs_that_are_inputs_initializers_and_each_other() -> None:
    model = model_of(
        [node("Identity", ["x"], ["a"]), node("Identity", ["x"], ["b"]), node("Identity", ["w"], ["c"])],
        [value("x", FLOAT, 3)], [value(name, FLOAT, 3) for name in "abcw"], weights={"w": np.arange(3, dtype=np.float32)},
    )  # fmt: skip
    round_trip(model, {"x": X[0, 0, :3]})


def test_local_functions_and_unknown_domains_are_kept() -> None:
    function = helper.make_function("local", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)])
    model = model_of([node("Twice", ["x"], ["y"], domain="local")], [value("x", FLOAT, 3)], [value("y", FLOAT, 3)],
                     imports=[helper.make_opsetid("local", 1)], functions=[function])  # fmt: skip
    program, result = round_trip(model, {"x": X[0, 0, :3]})
    assert kept(program) == ["Twice"] and output(program).type == TensorType(F32, (3,))
    assert program.effects is None and result.functions == model.functions
    custom = model_of([node("Magic", ["x"], ["h"], domain="org.example", level=3), node("Relu", ["h"], ["y"])], [value("x", FLOAT, 3)],
                      [value("y", FLOAT, 3)], imports=[helper.make_opsetid("org.example", 5)])  # fmt: skip
    program, result = exported(custom)
    assert program.effects is not None, "of an unknown domain anything may be expected"
    assert [n.op_type for n in result.graph.node] == ["Magic", "Relu"]
    assert result.graph.node[0].attribute[0].i == 3


# ---------------------------------------------------------------- opaque nodes


def test_equal_opaque_nodes_are_one_term() -> None:
    nodes = [node("Trilu", ["x"], [name], upper=0, name=name) for name in ("a", "b")] + [node("Add", ["a", "b"], ["y"])]
    program, result = round_trip(model_of(nodes, [value("x", FLOAT, 2, 3, 4)], [value("y", FLOAT, 2, 3, 4)]), {"x": X})
    assert kept(program) == ["Trilu"] and len(result.graph.node) == 2


def test_missing_operands_and_results() -> None:
    nodes = [node("Resize", ["x", "", "s"], ["r"]), node("GRU", ["r", "w", "u"], ["", "y"], hidden_size=2)]
    weights = {"s": np.array([1, 1, 2], np.float32), "w": np.ones((1, 6, 8), np.float32), "u": np.ones((1, 6, 2), np.float32)}
    program, result = round_trip(model_of(nodes, [value("x", FLOAT, 2, 3, 4)], [value("y", FLOAT, 1, 3, 2)], weights=weights), {"x": X})
    assert kept(program) == ["GRU", "Resize"]
    assert list(result.graph.node[0].input) == ["x", "", "s"] and list(result.graph.node[1].output) == ["", "y"]


def branch(name: str, *nodes: Any, output: str) -> Any:
    return helper.make_graph(list(nodes), name, [], [helper.make_tensor_value_info(output, FLOAT, None)])


def test_bodies_capture_values_whose_names_change() -> None:
    """`a` and `b` are one term: the body's use of `b` must follow. The inner `h` also occurs outside the other body."""
    then = branch("then", node("Mul", ["b", "w"], ["h"]), node("Neg", ["h"], ["t"]), output="t")
    other = branch("other", node("Identity", ["c"], ["e"]), output="e")
    nodes = [
        node("Tanh", ["x"], ["a"]), node("Tanh", ["x"], ["b"]), node("Add", ["a", "w"], ["c"]),
        node("If", ["p"], ["y"], then_branch=then, else_branch=other),
    ]  # fmt: skip
    model = model_of(
        nodes, [value("x", FLOAT, 3), value("p", BOOL)], [value("y", FLOAT, 3)], weights={"w": np.array([2, 3, 4], np.float32)}
    )
    for flag in (True, False):
        program, _ = round_trip(model, {"x": X[0, 0, :3], "p": np.array(flag)})
    assert kept(program) == ["If"]
    assert {operand.op.name for operand in output(program).operands[1:]} == {"stablehlo.tanh", "builtin.constant", "stablehlo.add"}


def test_new_names_do_not_meet_names_inside_bodies() -> None:
    then = branch("then", node("Mul", ["x", "x"], ["constant_0"]), node("Add", ["constant_0", "one"], ["t"]), output="t")
    other = branch("other", node("Neg", ["x"], ["add_0"]), output="add_0")
    nodes = [node("Constant", [], ["one"], value_float=1.0), node("If", ["p"], ["y"], then_branch=then, else_branch=other),
             node("Clip", ["y", "low"], ["z"])]  # fmt: skip
    model = model_of(nodes, [value("x", FLOAT, 3), value("p", BOOL)], [value("z", FLOAT, 3)], weights={"low": np.float32(0.5)})
    for flag in (True, False):
        round_trip(model, {"x": X[0, 0, :3], "p": np.array(flag)})


@pytest.mark.parametrize("side", [True, False])
def test_a_branch_that_is_always_taken_becomes_part_of_the_graph(side: bool) -> None:
    """With what has no definition in it, and an effect; its names may be those of a body that stays."""
    then = branch("then", node("Trilu", ["x"], ["h"]), node("RandomNormalLike", ["h"], ["r"]), node("Add", ["h", "r"], ["t"]), output="t")
    other = branch("other", node("Neg", ["x"], ["h"]), node("NonZero", ["h"], ["z"]), node("Cast", ["z"], ["e"], to=FLOAT), output="e")
    stays = [branch(name, node(op, ["y0"], ["h"]), output="h") for name, op in (("a", "Neg"), ("b", "Abs"))]
    nodes = [
        node("Cast", ["number"], ["known"], to=BOOL), node("If", ["known"], ["y0"], then_branch=then, else_branch=other),
        node("If", ["p"], ["y"], then_branch=stays[0], else_branch=stays[1]),
    ]  # fmt: skip
    model = model_of(
        nodes, [value("x", FLOAT, 2, 3), value("p", BOOL)], [helper.make_tensor_value_info("y", FLOAT, None)],
        weights={"number": np.array(7 if side else 0)},
    )  # fmt: skip
    program, result = exported(model)
    assert kept(program) == sorted(["If", *(["RandomNormalLike", "Trilu"] if side else ["NonZero"])])
    assert (program.effects is not None) is side
    Session(result.SerializeToString()).run({"x": X[0, :2, :3], "p": np.array(True)})


def recurrent(condition: str) -> Any:
    """As exporters write a recurrent cell: the last dim goes where it is 1, and only then the operand has the rank that the op takes."""
    then = branch("then", node("Squeeze", ["x", "last"], ["t"]), output="t")
    other = branch("other", node("Identity", ["x"], ["e"]), output="e")
    nodes = [
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "last"], ["n"]), node("Equal", ["n", "one"], ["c"]),
        node("If", [condition], ["h"], then_branch=then, else_branch=other), node("Unsqueeze", ["h", "first"], ["u"]),
        node("LSTM", ["u", "w", "r"], ["", "y"], hidden_size=2),
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    weights = {
        "last": np.array([-1]), "one": np.array([1]), "first": np.array([0]), "w": rng.normal(size=(1, 8, 4)).astype(np.float32),
        "r": rng.normal(size=(1, 8, 2)).astype(np.float32),
    }  # fmt: skip
    inputs = [value("x", FLOAT, "B", 4, "T"), value("p", BOOL)]
    return model_of(nodes, inputs, [helper.make_tensor_value_info("y", FLOAT, None)], weights=weights)


@pytest.mark.parametrize("condition", ["c", "p"])
def test_a_branch_that_makes_every_run_fail_is_never_taken(condition: str) -> None:
    program, result = round_trip(recurrent(condition), {"x": X[:, :1].transpose(0, 2, 1)[..., :1], "p": np.array(True)})
    assert "If" not in kept(program) and output(program).tensor.dims[0] == 1
    with pytest.raises(Exception, match=r"[Ss]queeze|[Dd]imension"):
        Session(result.SerializeToString()).run({"x": np.zeros((2, 4, 3), np.float32), "p": np.array(True)})


def test_both_branches_stay_where_both_can_be_taken() -> None:
    model = recurrent("p")
    model.graph.node[-1].CopyFrom(node("ReduceSum", ["h"], ["y"], keepdims=0))
    model.graph.output[0].name = "y"
    for flag, length in ((True, 1), (False, 3)):
        program, _ = round_trip(model, {"x": X[:, :, :length].repeat(2, 1)[:, :4], "p": np.array(flag)})
    assert "If" in kept(program)


def test_loops_and_bodies_in_bodies() -> None:
    inner = branch("then", node("Add", ["v_in", "x"], ["t"]), output="t")
    skip = branch("else", node("Identity", ["v_in"], ["e"]), output="e")
    body = helper.make_graph(
        [node("Identity", ["go"], ["go_on"]), node("If", ["go"], ["v_out"], then_branch=inner, else_branch=skip)], "body",
        [value("i", INT64), value("go", BOOL), value("v_in", FLOAT, 3)], [value("go_on", BOOL), value("v_out", FLOAT, 3)],
    )  # fmt: skip
    model = model_of([node("Loop", ["n", "", "x"], ["y"], body=body)], [value("x", FLOAT, 3), value("n", INT64)], [value("y", FLOAT, 3)])
    program, _ = round_trip(model, {"x": X[0, 0, :3], "n": np.array(4)})
    assert kept(program) == ["Loop"] and output(program).type == TensorType(F32, (3,))


def test_sequences_and_values_without_a_rank() -> None:
    nodes = [node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0), node("SequenceAt", ["s", "i"], ["h"]), node("Relu", ["h"], ["y"])]
    unranked = helper.make_tensor_value_info("y", FLOAT, None)
    program, result = round_trip(model_of(nodes, [value("x", FLOAT, 2, 3, 4), value("i", INT64)], [unranked]), {"x": X, "i": np.array(1)})
    assert not result.graph.output[0].type.tensor_type.HasField("shape")
    assert "SequenceAt" in kept(program)


@pytest.mark.parametrize("position", [0, 1, -1])
@pytest.mark.parametrize(
    ("split", "keepdims"),
    [(None, 0), (None, 1), (np.array(2), 1), (np.array(3), 1), (np.array([1, 2, 1]), 1), (np.array([1, 3]), 0)],
    ids=str,
)
def test_known_elements_of_sequences_are_slices(split: np.ndarray | None, position: int, keepdims: int) -> None:
    operands = ["x"] if split is None else ["x", "split"]
    constants = {"i": np.array(position), **({} if split is None else {"split": split})}
    split_up = node("SplitToSequence", operands, ["s"], axis=-1, keepdims=keepdims)
    nodes = [split_up, node("SequenceAt", ["s", "i"], ["h"]), node("Relu", ["h"], ["y"])]
    model = model_of(nodes, [value("x", FLOAT, 2, 3, 4)], [helper.make_tensor_value_info("y", FLOAT, None)], weights=constants)
    program, _ = round_trip(model, {"x": X})
    assert kept(program) == []


def test_random_ops_are_effects_in_their_order() -> None:
    nodes = [node("RandomNormal", [], ["a"], shape=[3]), node("RandomNormal", [], ["b"], shape=[3]), node("Sub", ["a", "b"], ["y"])]
    program, result = exported(model_of(nodes, [], [value("y", FLOAT, 3)]))
    assert kept(program) == ["RandomNormal", "RandomNormal"] and program.effects is not None
    assert [n.op_type for n in result.graph.node] == ["RandomNormal", "RandomNormal", "Sub"]
    assert np.abs(Session(result.SerializeToString()).run({})["y"]).max() > 0
    dead = model_of([node("RandomNormal", [], ["a"], shape=[3]), node("Neg", ["x"], ["y"])], [value("x", FLOAT, 3)], [value("y", FLOAT, 3)])
    assert len(exported(dead)[1].graph.node) == 2, "an effect is not dropped"


def test_an_opaque_node_is_evaluated_alone() -> None:
    then = branch("then", node("Neg", ["x"], ["t"]), output="t")
    model = model_of(
        [node("If", ["p"], ["h"], then_branch=then, else_branch=then), node("TopK", ["h", "k"], ["v", "y"])],
        [value("x", FLOAT, 3), value("p", BOOL)], [value("y", INT64, 2), value("v", FLOAT, 2)], weights={"k": np.array([2])},
    )  # fmt: skip
    program = import_model(model)
    top = output(program).operands[0]
    found = evaluate_opaque(top, [X[0, 0, :3], np.array([2])], program.source)
    assert [array.tolist() for array in found] == [[2, 1], [2, 1]]
    assert evaluate_opaque(top.operands[0], [np.array(True), X[0, 0, :3]], program.source).tolist() == [0, -1, -2]


# ---------------------------------------------------------------- shape arithmetic


def imported_shape(nodes: list[Any], *shape: int | str, opset: int = 17, **weights: Any) -> tuple[Program, list[str]]:
    model = model_of(nodes, [value("x", FLOAT, *shape)], [helper.make_tensor_value_info("y", FLOAT, None)], weights=weights, opset=opset)
    program = import_model(model)
    Session(lower(program).SerializeToString())
    return program, shape_of(output(program))


def test_a_slice_of_a_whole_dim_is_nothing_whatever_its_text() -> None:
    """No tensor has a dim below 0, though the text of a convolution's may be."""
    w = np.ones((1, 2, 5), np.float32)
    nodes = [node("Conv", ["x", "w"], ["c"], strides=[2]), node("Slice", ["c", "a", "b", "axes"], ["y"])]
    program, _ = imported_shape(nodes, "B", 2, "S", w=w, a=np.array([0]), b=np.array([2**63 - 1]), axes=np.array([2]))
    assert output(program).op.name == "onnx.Conv"


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_padding_has_dims_in_every_mode(mode: str) -> None:
    nodes = [node("Pad", ["x", "pads"], ["y"], mode=mode)]
    _, shape = imported_shape(nodes, "B", "S", opset=19, pads=np.array([0, 1, 0, 2]))
    assert shape == ["B", "S + 3"]


def test_a_turned_table_of_numbers_is_numbers() -> None:
    """torch's way to pads: a table of them is reversed and turned over."""
    nodes = [node("Transpose", ["table"], ["t"]), node("Reshape", ["t", "flat"], ["pads"]), node("Pad", ["x", "pads"], ["y"])]
    program, shape = imported_shape(nodes, "B", "S", table=np.array([[0, 2], [1, 3]]), flat=np.array([-1]))
    assert shape == ["B + 2", "S + 4"] and not kept(program)


def test_shape_gather_concat_reshape_becomes_dims() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["b"], axis=0), node("Unsqueeze", ["b", "axis"], ["b1"]),
        node("Concat", ["b1", "rest"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"]),
    ]  # fmt: skip
    program, shape = imported_shape(nodes, "B", "S", 8, zero=np.array(0), axis=np.array([0]), rest=np.array([-1, 2, 4]))
    assert shape == ["B", "S", "2", "4"] and not kept(program)


def test_expand_with_the_exporters_where_becomes_a_broadcast() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]), node("Slice", ["s", "zero", "one"], ["b"]), node("Concat", ["b", "minus"], ["t"], axis=0),
        node("Shape", ["t"], ["n"]), node("ConstantOfShape", ["n"], ["ones"], value=onnx.numpy_helper.from_array(np.array([1]))),
        node("Equal", ["t", "m1"], ["e"]), node("Where", ["e", "ones", "t"], ["u"]), node("Expand", ["c", "u"], ["y"]),
    ]  # fmt: skip
    program, shape = imported_shape(nodes, "B", 3, zero=np.array([0]), one=np.array([1]), minus=np.array([-1]), m1=np.array(-1),
                                    c=np.arange(5, dtype=np.float32)[None])  # fmt: skip
    assert shape == ["B", "5"] and not kept(program)


@pytest.mark.parametrize(("start", "end", "dim"), [
    (0, 2**63 - 1, "S"), (1, 2**63 - 1, ""), (-1, 2**63 - 1, ""), (0, 4, "min(4, S)"), (0, -1, "max(0, S - 1)"),
])  # fmt: skip
def test_slices_of_symbolic_dims_are_clipped(start: int, end: int, dim: str) -> None:
    nodes = [node("Slice", ["x", "a", "b", "axes"], ["y"])]
    program, shape = imported_shape(nodes, "B", "S", a=np.array([start]), b=np.array([end]), axes=np.array([1]))
    model = lower(program)
    for length in (1, 2, 5):
        x = np.arange(length, dtype=np.float32)[None]
        found = Session(model.SerializeToString()).run({"x": x})["y"]
        assert found.tolist() == x[:, start:end].tolist()
        assert dims.evaluate(output(program).tensor.dims[1], {"S": length, "B": 1}) == found.shape[1]
    assert not dim or shape == ["B", dim]


def test_a_slice_of_a_table_up_to_a_dim_bounds_the_dim() -> None:
    """positions[:, :S] + x fails for S above 512, so that S is at most 512 where it matters."""
    nodes = [node("Shape", ["x"], ["s"]), node("Slice", ["s", "one", "two"], ["n"]), node("Slice", ["table", "zero", "n", "one"], ["p"]),
             node("Add", ["x", "p"], ["y"])]  # fmt: skip
    table = np.arange(512 * 4, dtype=np.float32).reshape(1, 512, 4)
    program, shape = imported_shape(nodes, "B", "S", 4, zero=np.array([0]), one=np.array([1]), two=np.array([2]), table=table)
    assert shape == ["B", "S", "4"] and not kept(program)


@pytest.mark.parametrize("rows", [False, True])
def test_counting_indices_read_the_first_elements_and_bound_the_dim(rows: bool) -> None:
    """table[range(S)] fails for S above 512."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Range", ["zero", "n", "one"], ["r"]),
             *([node("Unsqueeze", ["r", "axes"], ["i"])] if rows else []), node("Gather", ["table", "i" if rows else "r"], ["p"]),
             node("Add", ["x", "p"], ["y"])]  # fmt: skip
    table = np.arange(512 * 4, dtype=np.float32).reshape(512, 4)
    axes = {"axes": np.array([0])} if rows else {}
    program, shape = imported_shape(nodes, "B", "S", 4, zero=np.array(0), one=np.array(1), table=table, **axes)
    assert shape == ["B", "S", "4"] and not kept(program)
    assert "Gather" not in {term.op.name.split(".")[-1] for term in program.terms()}
    model = model_of(
        nodes,
        [value("x", FLOAT, "B", "S", 4)],
        [value("y", FLOAT, None)],
        weights={"zero": np.array(0), "one": np.array(1), "table": table, **axes},
    )
    x = np.ones((2, 3, 4), np.float32)
    round_trip(model, {"x": x})


@pytest.mark.parametrize("branch", [True, False])
def test_what_a_branch_needs_bounds_nothing_outside(branch: bool) -> None:
    """Of a run that takes the other branch S may be anything."""
    inner = [node("Slice", ["table", "zero", "n", "one"], ["p"]), node("Add", ["x", "p"], ["q"])]
    then = onnx.helper.make_graph(inner, "then", [], [value("q", FLOAT, None)])
    other = onnx.helper.make_graph([node("Neg", ["x"], ["m"])], "else", [], [value("m", FLOAT, None)])
    outside = [node("Slice", ["table", "zero", "n", "one"], ["y"])]
    nodes = [node("Shape", ["x"], ["s"]), node("Slice", ["s", "one", "two"], ["n"]),
             *([node("If", ["c"], ["z"], then_branch=then, else_branch=other)] if branch else [*inner[:1], node("Add", ["x", "p"], ["z"])]),
             *outside]  # fmt: skip
    weights = {"zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "table": np.ones((1, 512, 4), np.float32)}
    model = model_of(
        nodes, [value("x", FLOAT, "B", "S", 4), value("c", BOOL)], [value("z", FLOAT, None), value("y", FLOAT, None)], weights=weights
    )
    program = import_model(model.SerializeToString())
    assert str(dict(program.outputs)["y"].tensor.dims[1]) == ("min(512, S)" if branch else "S")


def test_the_order_of_attributes_says_nothing() -> None:
    """An If is one term whichever of its branches a file names first: what they capture is numbered by their names."""
    then = branch("then", node("Mul", ["x", "two"], ["t"]), output="t")
    other = branch("else", node("Add", ["x", "three"], ["e"]), output="e")
    choice = node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    turned = onnx.NodeProto()
    turned.CopyFrom(choice)
    del turned.attribute[:]
    turned.attribute.extend(reversed(choice.attribute))
    weights = {"two": np.full(70, 2, np.float32), "three": np.full(70, 3, np.float32)}
    programs = [
        import_model(model_of([each], [value("x", FLOAT, "S", 70), value("c", BOOL)], [value("y", FLOAT, None)], weights=weights))
        for each in (choice, turned)
    ]
    assert [each.name for each in choice.attribute] != [each.name for each in turned.attribute]
    assert by_content(programs[0]).roots == by_content(programs[1]).roots


def test_what_is_concatenated_has_one_shape() -> None:
    """[1, d] and [1, 2] one below the other fail unless d is 2; another dim from data stays what it is."""
    nodes = [node("NonZero", ["x"], ["a"]), node("NonZero", ["y"], ["b"]), node("NonZero", ["z"], ["c"]),
             node("Concat", ["b", "three"], ["v"], axis=0), node("Concat", ["a", "two"], ["u"], axis=0),
             node("Neg", ["c"], ["w"])]  # fmt: skip
    inputs, ends = [value(name, FLOAT, 4) for name in "xyz"], [value(name, INT64, None) for name in "uvw"]
    weights = {"two": np.ones((1, 2), np.int64), "three": np.ones((1, 3), np.int64)}
    model = model_of(nodes, inputs, ends, weights=weights)
    feed = {"x": np.array([1, 0, 2, 0]), "y": np.array([1, 1, 0, 1]), "z": np.array([0, 0, 0, 1])}
    program, _ = round_trip(model, {name: array.astype(np.float32) for name, array in feed.items()})
    assert {name: shape_of(term) for name, term in program.outputs} == {"u": ["2", "2"], "v": ["2", "3"], "w": ["1", "d2"]}


def test_a_fact_about_a_counted_dim_ends_with_what_stood_before_it() -> None:
    """Behind a new fact other dims may be counted so: facts about them are met again."""
    met: list[RunFacts] = []

    def once(facts: RunFacts) -> Program:
        met.append(facts)
        if len(met) == 1:
            raise Fixed("d4", 2)
        if len(met) == 2:
            raise Bounded("d1", 7)
        if len(met) == 3:
            raise Bounded("S", 9)
        raise CosetError("read")

    with pytest.raises(CosetError, match="read"):
        read(once)
    assert [(dict(each.most), dict(each.fixed)) for each in met] == [({}, {}), ({}, {"d4": 2}), ({"d1": 7}, {}), ({"S": 9}, {})]


def test_a_dim_from_data_is_a_fresh_symbol() -> None:
    nodes = [node("NonZero", ["x"], ["n"]), node("Shape", ["n"], ["s"]), node("Gather", ["s", "one"], ["c"]),
             node("Unsqueeze", ["c", "zero"], ["c1"]), node("ConstantOfShape", ["c1"], ["h"]), node("Neg", ["h"], ["y"])]  # fmt: skip
    model = model_of(nodes, [value("x", FLOAT, 3)], [value("y", FLOAT, None)], weights={"one": np.array(1), "zero": np.array([0])})
    program, result = round_trip(model, {"x": np.array([0, 1, 2], np.float32)})
    assert shape_of(output(program)) == ["d0"]
    assert "NonZero" in [n.op_type for n in result.graph.node], "its number of elements is what the dim is"


def test_a_product_of_shapes_that_is_tensor_data_is_host_numbers() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("ReduceProd", ["s"], ["p"], keepdims=0),
        node("Cast", ["p"], ["f"], to=FLOAT),
        node("Mul", ["x", "f"], ["y"]),
    ]
    program, _ = round_trip(model_of(nodes, [value("x", FLOAT, "B", 3, 4)], [value("y", FLOAT, "B", 3, 4)]), {"x": X})
    assert any(term.op.name == "builtin.dims" for term in program.terms())


def test_division_that_may_be_of_a_negative_number_stays() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Sub", ["s", "seven"], ["d"]),
        node("Div", ["d", "two"], ["q"]),
        node("Cast", ["q"], ["y"], to=FLOAT),
    ]
    model = model_of(nodes, [value("x", FLOAT, "N")], [value("y", FLOAT, 1)], weights={"seven": np.array([7]), "two": np.array([2])})
    program, _ = round_trip(model, {"x": np.zeros(4, np.float32)})
    assert any(term.op.name == "stablehlo.divide" for term in program.terms())


def test_dims_that_may_or_may_not_broadcast_stay_opaque() -> None:
    model = model_of([node("Add", ["x", "z"], ["y"])], [value("x", FLOAT, "A"), value("z", FLOAT, "B")], [value("y", FLOAT, None)])
    program, _ = round_trip(model, {"x": np.zeros(1, np.float32), "z": np.ones(4, np.float32)})
    assert kept(program) == ["Add"]


def test_pools_and_resizes_of_symbolic_images_keep_their_dims() -> None:
    nodes = [node("MaxPool", ["x"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), node("Resize", ["p", "", "s"], ["y"])]
    _, shape = imported_shape(nodes, "B", 3, "H", "W", s=np.array([1, 1, 2, 2], np.float32))
    assert shape == ["B", "3", "2*floordiv(H - 1, 2) + 2", "2*floordiv(W - 1, 2) + 2"]


def test_a_pool_that_may_be_too_short_for_its_window_has_a_likely_size() -> None:
    """The type does not say it: ONNX Runtime rounds another way below 3. Costs are predicted with it."""
    pool = node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2])
    program = import_model(model_of([pool], [value("x", FLOAT, "B", 3, "H", 8)], [value("y", FLOAT, "B", 3, None, None)]))
    shape = program.outputs[0][1].tensor.dims
    (name,) = dims.symbols(shape[2])
    assert name != "H" and shape[3] == 3
    assert {key: str(dim) for key, dim in source_of(program).likely.items()} == {name: "floordiv(H - 3, 2) + 1"}
    assert usual_dims(program, {"H": 9})[name] == 4
    assert usual_dims(program, {"H": 1})[name] == 1


# ---------------------------------------------------------------- known ops


KNOWN: list[tuple[str, list[Any], dict[str, Any], list[str]]] = [
    ("a scalar on the left", [node("Sub", ["c", "x"], ["y"])], {"c": np.float32(2)}, ["Sub"]),
    ("dims in the middle", [node("Mul", ["x", "c"], ["y"])], {"c": np.arange(3, dtype=np.float32).reshape(1, 3, 1)}, ["Mul"]),
    ("a sum of three", [node("Sum", ["x", "c", "x"], ["y"])], {"c": np.arange(4, dtype=np.float32)}, ["Add", "Add"]),
    ("a mean of two", [node("Mean", ["x", "c"], ["y"])], {"c": np.arange(4, dtype=np.float32)}, ["Add", "Div"]),
    ("an integer exponent", [node("Pow", ["x", "c"], ["y"])], {"c": np.array(2)}, ["Pow"]),
    ("means over kept dims", [node("ReduceMean", ["x"], ["y"], axes=[-1])], {}, ["ReduceMean"]),
    ("sums over all", [node("ReduceSum", ["x"], ["y"], keepdims=0)], {}, ["ReduceSum"]),
    ("steps backwards", [node("Slice", ["x", "a", "b", "axes", "c"], ["y"])],
     {"a": np.array([-1]), "b": np.array([-9]), "axes": np.array([2]), "c": np.array([-2])}, ["Slice"]),
    ("einsum", [node("Einsum", ["x", "c"], ["y"], equation="bij,jk->bki")], {"c": np.arange(20, dtype=np.float32).reshape(4, 5)}, []),
    ("einsum of three", [node("Einsum", ["x", "c", "c"], ["y"], equation="bij,jk,lk->bil")],
     {"c": np.arange(20, dtype=np.float32).reshape(4, 5)}, []),
    ("einsum's own order", [node("Einsum", ["x"], ["y"], equation="bij->jb")], {}, ["ReduceSum", "Transpose"]),
    ("flatten", [node("Flatten", ["x"], ["y"], axis=-1)], {}, ["Reshape"]),
    ("a constant pad", [node("Pad", ["x", "p", "v"], ["y"])], {"p": np.array([0, 1, 0, 0, -1, 2]), "v": np.float32(7)}, ["Pad"]),
    ("not equal", [node("Equal", ["x", "c"], ["e"]), node("Not", ["e"], ["n"]), node("Where", ["n", "x", "c"], ["y"])],
     {"c": np.float32(3)}, ["Equal", "Not", "Where"]),
    ("casts of constants", [node("CastLike", ["c", "x"], ["d"]), node("Mul", ["x", "d"], ["y"])], {"c": np.array(3)}, ["Mul"]),
    ("a batched product", [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("MatMul", ["x", "t"], ["y"])], {},
     ["Transpose", "MatMul"]),
    ("one over x", [node("Reciprocal", ["x"], ["y"])], {}, ["Reciprocal"]),
    ("unequal parts", [node("Split", ["x", "s"], ["a", "b"], axis=2), node("Concat", ["b", "a"], ["y"], axis=2)], {"s": np.array([1, 3])},
     ["Split", "Concat"]),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "weights", "printed"), [case[1:] for case in KNOWN], ids=[case[0] for case in KNOWN])
def test_known_ops_become_terms_and_print_back(nodes: list[Any], weights: dict[str, Any], printed: list[str]) -> None:
    model = model_of(nodes, [value("x", FLOAT, 2, 3, 4)], [helper.make_tensor_value_info("y", FLOAT, None)], weights=weights)
    program, result = round_trip(model, {"x": X})
    assert not kept(program)
    assert not printed or [n.op_type for n in result.graph.node] == printed


def test_the_table_names_ops_of_the_standard() -> None:
    """A version above `NEWEST` of a known op has not been read: its nodes stay opaque until somebody has."""
    for name in BUILDERS:
        assert onnx.defs.get_schema(name, NEWEST, "").since_version <= NEWEST


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_before_version_13_flattens(axis: int) -> None:
    model = model_of([node("Softmax", ["x"], ["y"], axis=axis)], [value("x", FLOAT, 2, 3, 4)], [value("y", FLOAT, 2, 3, 4)], opset=11)
    round_trip(model, {"x": X})


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_automatic_padding_is_worked_out(mode: str) -> None:
    weights = {"w": np.arange(36, dtype=np.float32).reshape(3, 2, 2, 3)}
    result = helper.make_tensor_value_info("y", FLOAT, None)
    convolution = node("Conv", ["x", "w"], ["y"], auto_pad=mode, strides=[2, 3])
    model = model_of([convolution], [value("x", FLOAT, 1, 2, 7, 8)], [result], weights=weights)
    program, _ = round_trip(model, {"x": np.arange(112, dtype=np.float32).reshape(1, 2, 7, 8)})
    assert not kept(program)


def test_unusual_element_types_stay_opaque_and_survive() -> None:
    for code in (16, 17, 22, 21, 8):
        nodes, weights = [node("Identity", ["w"], ["h"]), node("Reshape", ["h", "s"], ["y"])], {"s": np.array([4])}
        model = model_of(nodes, [], [value("y", code, 4)], weights=weights, opset=21, ir_version=10)
        numbers = [b"a", b"b", b"", b"d"] if code == 8 else [0, 1, 2, 3]
        model.graph.initializer.append(helper.make_tensor("w", code, [2, 2], numbers))
        program, result = exported(model)
        assert kept(program) == ["Reshape"]
        held = next(tensor for tensor in result.graph.initializer if tensor.name == "w")
        assert equal(onnx.numpy_helper.to_array(held).astype(object), onnx.numpy_helper.to_array(model.graph.initializer[1]).astype(object))


def test_a_chain_of_many_ops_does_not_recurse() -> None:
    count = 5000
    nodes = [node("Relu" if i % 2 else "LRN", [f"v{i}"], [f"v{i + 1}"], **({} if i % 2 else {"size": 1})) for i in range(count)]
    model = model_of(nodes, [value("v0", FLOAT, 1, 3, 2, 2)], [value(f"v{count}", FLOAT, 1, 3, 2, 2)])
    assert len(exported(model)[1].graph.node) == count


def test_nodes_in_any_order_are_sorted() -> None:
    model = model_of([node("Tanh", ["h"], ["y"]), node("Relu", ["x"], ["h"])], [value("x", FLOAT, 3)], [value("y", FLOAT, 3)])
    assert [n.op_type for n in exported(model)[1].graph.node] == ["Relu", "Tanh"]


def test_two_imports_print_equal_bytes() -> None:
    nodes = [node("NonZero", ["x"], ["n"]), node("Cast", ["n"], ["f"], to=FLOAT), node("Add", ["f", "c"], ["y"])]
    model = model_of(nodes, [value("x", FLOAT, "A", None)], [value("y", FLOAT, 2, None)], weights={"c": np.float32(1)})
    first, second = (exported(model.SerializeToString())[1].SerializeToString(deterministic=True) for _ in range(2))
    assert first == second


def test_a_definition_gives_the_type_that_inference_does_not() -> None:
    """ONNX's inference says nothing of GroupNormalization-21; without its rank all that follows would have to be kept."""
    weights = {"s": np.ones(4, np.float32), "b": np.zeros(4, np.float32)}
    nodes = [helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2), helper.make_node("Add", ["y", "x"], ["z"])]
    model = model_of(nodes, [value("x", FLOAT, "N", 4, 5)], [value("z", FLOAT, "N", 4, 5)], opset=21, weights=weights, ir_version=10)
    program, _ = exported(model)
    assert kept(program) == [] and output(program).op.name == "stablehlo.add"


@pytest.mark.parametrize("name", ["Elu", "HardSigmoid", "Celu", "Dropout", "MaxPool"])
def test_what_is_computed_from_a_value_of_unknown_type_is_kept(name: str) -> None:
    """A wrong edit of a model had left a value without a type, and the import ended in an assertion."""
    attributes = {"kernel_shape": [2]} if name == "MaxPool" else {}
    nodes = [node("Magic", ["x"], ["m"], domain="org.example"), node(name, ["m"], ["h"], **attributes), node("Relu", ["h"], ["y"])]
    imports = [helper.make_opsetid("org.example", 5)]
    _, result = exported(model_of(nodes, [value("x", FLOAT, 2, 4)], [value("y", FLOAT, 2, 4)], imports=imports))
    assert [n.op_type for n in result.graph.node] == ["Magic", name, "Relu"]
