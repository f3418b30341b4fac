"""Files that are no valid model end in an error that names the place and the remedy, never in a traceback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from round_trips import FLOAT, model_of, value

from coset.cli import run
from coset.dialects.onnx.origin import onnx_origin
from coset.frontends.onnx.model import import_model
from coset.frontends.onnx.wire import MARK, Malformed, skeleton
from coset.ir.errors import CosetError
from coset.lowering.onnx.model import lower

node = helper.make_node
WEIGHTS = np.arange(600, dtype=np.float32).reshape(2, 300)


def small() -> Any:
    return model_of([node("Add", ["x", "w"], ["y"])], [value("x", FLOAT, 2, 300)], [value("y", FLOAT, 2, 300)], weights={"w": WEIGHTS})


def refused(source: Any, match: str) -> CosetError:
    with pytest.raises(CosetError, match=match) as caught:
        lower(import_model(source))
    assert caught.value.place is not None and caught.value.place.file
    return caught.value


def test_files_that_are_not_there_empty_or_something_else(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.onnx", "cannot read").help
    for name, content, match in (
        ("empty", b"", "empty"),
        ("text", b"hello, world\n" * 9, "not an ONNX model"),
        ("json", b"{}", "no graph|not an ONNX"),
    ):
        (tmp_path / name).write_bytes(content)
        assert refused(tmp_path / name, match).help
    refused(tmp_path, "cannot read")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_truncated_and_damaged_models_are_refused_or_imported(data: st.DataObject) -> None:
    whole = small().SerializeToString()
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)), "length")])
    for _ in range(data.draw(st.integers(0, 3), "changes")):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        import_model(bytes(damaged))
    except CosetError as error:
        assert error.message


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_the_scanner_reads_any_bytes(content: bytes) -> None:
    try:
        assert len(skeleton(content)) <= len(content)
    except Malformed as error:
        assert str(error)


def test_the_scanner_cuts_weights_only() -> None:
    model = small()
    cut = onnx.ModelProto.FromString(skeleton(model.SerializeToString()))
    tensor = cut.graph.initializer[0]
    assert tensor.external_data[0].key == MARK and not tensor.raw_data
    offset, length = map(int, tensor.external_data[0].value.split(","))
    assert model.SerializeToString()[offset : offset + length] == WEIGHTS.tobytes()
    del tensor.external_data[:]
    tensor.raw_data = WEIGHTS.tobytes()
    assert cut == model


REFUSED = {  # a graph that ONNX Runtime does not load -> the node, what is wrong, and the remedy
    "unknown op": ("g (float[n, 4] x) => (float[n, 4] y) { y = Reluu(x) }", "node `y` (Reluu)", "has no op `Reluu`", "do you mean `Relu`"),
    "two types": (
        "g (float[n] x, double[n] z) => (float[n] y) { y = Add(x, z) }", "node `y` (Add)", "float and double (it reads `x`", "Cast",
    ),
    "other sizes": (
        "g (float[n, 4] x, float[5, 6] w) => (float[n, 6] y) { y = MatMul(x, w) }", "node `y` (MatMul)", "Incompatible dim",
        "`w` float[5, 6]",
    ),
    "a rank": ("g (float[2, 3, 4] x, float[4, 5] w) => (float[2, 3, 5] y) { y = Gemm(x, w) }", "node `y` (Gemm)", "rank", "mend the node"),
    "an axis": ("g (float[n, 4] x) => (float[n, 8] y) { y = Concat<axis = 2>(x, x) }", "node `y` (Concat)", "axis", "mend the node"),
    "in a branch": (
        "g (float[4] x, bool c) => (float[4] y) { y = If(c) <then_branch = t () => (float[4] a) { a = Reluu(x) }, "
        "else_branch = e () => (float[4] b) { b = Neg(x) }> }", "node `a` (Reluu)", "has no op", "do you mean `Relu`",
    ),
    "an attribute": (
        "g (float[n, 4] x) => (float[4, n] y) { y = Transpose<perrm = [1, 0]>(x) }", "node `y` (Transpose)", "`perrm`", "`perm`",
    ),
    "an attribute of before": (
        "g (float[n, 4] x) => (float[n] y) { y = ReduceSum<axes = [1]>(x) }", "node `y` (ReduceSum)", "`axes`", "operand 2 of ReduceSum",
    ),
    "too few operands": ("g (float[n] x) => (float[n] y) { y = Add(x) }", "node `y` (Add)", "1 operands", "the operands `A`, `B`"),
    "no branch": (
        "g (float[4] x, bool c) => (float[4] y) { y = If(c) <then_branch = t () => (float[4] a) { a = Neg(x) }> }", "node `y` (If)",
        "`else_branch`", "`else_branch` (must be there)",
    ),
    "a run": (
        "g (float[1, 3, 8, 8] x, float[4, 5, 3, 3] w) => (float[1, 4, 6, 6] y) { y = Conv(x, w) }", "a node Conv", "Input channels", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_runtime_refuses_is_told_by_node_and_remedy(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, *words = REFUSED[name]
    path = tmp_path / "broken.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 19]> {text}'), path)
    assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx")]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert "help: " in said and "/onnxruntime_src/" not in said and "[ONNXRuntimeError]" not in said


def test_a_version_that_the_runtime_does_not_know_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.onnx"
    onnx.save(onnx.parser.parse_model('<ir_version: 9, opset_import: ["": 99]> g (float[n] x) => (float[n] y) { y = Relu(x) }'), path)
    assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx")]) == 2
    said = capsys.readouterr().err
    assert "version 99 of `ai.onnx` is newer" in said and "or install a newer onnxruntime" in said


BROKEN: list[tuple[str, Any, str]] = [
    ("cycle", lambda: model_of([node("Add", ["x", "b"], ["a"], name="first"), node("Relu", ["a"], ["b"])], [value("x", FLOAT, 3)],
                               [value("b", FLOAT, 3)]), r"node `first` \(Add\) needs `b`, which needs `first`"),
    ("value twice", lambda: model_of([node("Relu", ["x"], ["a"]), node("Tanh", ["x"], ["a"])], [value("x", FLOAT, 3)],
                                     [value("a", FLOAT, 3)]), "two values are called `a`"),
    ("input twice", lambda: model_of([node("Relu", ["x"], ["a"])], [value("x", FLOAT, 3), value("x", FLOAT, 3)], [value("a", FLOAT, 3)]),
     "two inputs are called `x`"),
    ("result named as an input", lambda: model_of([node("Relu", ["x"], ["x"])], [value("x", FLOAT, 3)], [value("x", FLOAT, 3)]),
     "two values are called `x`"),
    ("nobody computes it", lambda: model_of([node("Relu", ["z"], ["a"])], [value("x", FLOAT, 3)], [value("a", FLOAT, 3)]), "uses `z`"),
    ("no such output", lambda: model_of([node("Relu", ["x"], ["a"])], [value("x", FLOAT, 3)], [value("b", FLOAT, 3)]), "uses `b`"),
    ("element type", lambda: model_of([node("Relu", ["x"], ["a"])], [value("x", 77, 3)], [value("a", FLOAT, 3)]), "element type 77"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "match"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_graphs_that_are_wrong(make: Any, match: str) -> None:
    assert refused(make(), match).help


def tensor_model(**fields: Any) -> Any:
    model = small()
    del model.graph.initializer[:]
    model.graph.initializer.add(**{"name": "w", "data_type": FLOAT, "dims": [2, 300], **fields})
    return model


@pytest.mark.parametrize(("fields", "match"), [
    ({"data_type": 99, "raw_data": b""}, "element type 99"),
    ({"dims": [-2, 300], "raw_data": b""}, "negative dim"),
    ({"raw_data": b"1234"}, "takes 2400"),
    ({"raw_data": bytes(2396)}, "takes 2400"),
    ({"float_data": [1.0, 2.0]}, "does not fit"),
    ({"data_type": 8, "string_data": [b"a"]}, "wants 600"),
])  # fmt: skip
def test_tensors_that_are_wrong(fields: dict[str, Any], match: str) -> None:
    assert refused(tensor_model(**fields), match).help


# ---------------------------------------------------------------- external data


def external(folder: Path, *, location: str = "w.data", offset: int = 0, length: int | None = None) -> Path:
    model = tensor_model(data_location=onnx.TensorProto.EXTERNAL)
    entries = {"location": location, "offset": str(offset)} | ({} if length is None else {"length": str(length)})
    for key, text in entries.items():
        model.graph.initializer[0].external_data.add(key=key, value=text)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data_is_read_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "w.data").write_bytes(b"12345678" + WEIGHTS.tobytes())
    program = import_model(external(tmp_path, offset=8))
    (constant,) = (term.attribute("value") for term in program.terms() if term.op.name == "builtin.constant")
    assert np.array_equal(constant.array(), WEIGHTS) and onnx_origin(program.source).external


def test_external_data_outside_the_folder_is_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "model", tmp_path / "other"
    inside.mkdir()
    outside.mkdir()
    (outside / "w.data").write_bytes(WEIGHTS.tobytes())
    (inside / "link.data").symlink_to(outside / "w.data")
    for location in ("../other/w.data", str(outside / "w.data"), "link.data", "sub/../../other/w.data", ""):
        assert "folder" in refused(external(inside, location=location), "outside the model's folder").help


@pytest.mark.parametrize(("given", "match"), [
    ({"location": "missing.data"}, "not in"), ({"offset": 4}, "wants bytes"), ({"length": 12}, "takes 2400"), ({"offset": -4}, "negative"),
])  # fmt: skip
def test_external_data_that_is_missing_or_short(tmp_path: Path, given: dict[str, Any], match: str) -> None:
    (tmp_path / "w.data").write_bytes(WEIGHTS.tobytes())
    assert refused(external(tmp_path, **given), match).help


def test_weights_of_a_file_that_changed_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "w.data"
    large = np.arange((1 << 19) + 1, dtype=np.float32)
    path.write_bytes(large.tobytes())
    model = model_of([node("Add", ["x", "w"], ["y"])], [value("x", FLOAT, large.size)], [value("y", FLOAT, large.size)])
    model.graph.initializer.add(name="w", data_type=FLOAT, dims=[large.size], data_location=onnx.TensorProto.EXTERNAL)
    model.graph.initializer[0].external_data.add(key="location", value="w.data")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    program = import_model(tmp_path / "m.onnx")
    path.write_bytes((large + 1).tobytes())
    os.utime(path, ns=(1, 1))
    with pytest.raises(CosetError, match="has changed"):
        lower(program)


def wrong(*nodes: Any, **rest: Any) -> Any:
    """A model of nodes that ONNX's checker would not let through; `x` is f32[2, 300], `y` the result."""
    return model_of(list(nodes), [value("x", FLOAT, 2, 300)], [value("y", FLOAT)], **rest)


def twice() -> Any:
    double = node("Concat", ["x"], ["y"], axis=0)
    double.attribute.append(double.attribute[0])
    return double


def of_no_kind() -> Any:
    odd = node("Neg", ["x"], ["y"])
    odd.attribute.add(name="odd", i=1)
    return odd


def without_value() -> Any:
    empty = node("Constant", [], ["y"])
    empty.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    return empty


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (node("Gather", [], ["y"]), "node `y` \\(Gather\\) has 0 operands, its op has 2"),
        (node("MatMul", ["x", "x", "x"], ["y"]), "has 3 operands, its op has 2"),
        (node("Split", ["x"], []), "has 0 results"),
        (node("Add", ["x", ""], ["y"]), "has no operand `B`"),
        (node("Concat", ["x"], ["y"]), "has no attribute `axis`"),
        (node("Concat", ["x"], ["y"], axis=0.5), "the attribute `axis` of .* is of kind float, not int"),
        (twice(), "two attributes `axis`"),
        (of_no_kind(), "is of no kind that ONNX has"),
        (without_value(), "the attribute `value` of .* has no value"),
    ],
    ids=lambda given: given if isinstance(given, str) else given.op_type,
)
def test_nodes_that_are_none_of_their_op(given: Any, match: str) -> None:
    assert refused(wrong(given), match).help


@pytest.mark.parametrize("version", [-1, 1 << 31, 1 << 40])
def test_versions_that_nobody_counts_to(version: int) -> None:
    model = wrong(node("Neg", ["x"], ["y"]))
    model.opset_import[0].version = version
    assert refused(model, f"imports version {version} of the domain").help
    model = wrong(node("Neg", ["x"], ["y"]))
    model.ir_version = version
    assert refused(model, f"is of IR version {version}").help


@pytest.mark.parametrize("place", ["", "a,b", "1", "-5,10", "0,99999999999"])
def test_a_mark_of_ours_in_a_file_is_no_mark(place: str) -> None:
    model = wrong(node("Add", ["x", "w"], ["y"]), weights={"w": WEIGHTS[:1, :2]})
    (tensor,) = model.graph.initializer
    tensor.ClearField("raw_data")
    tensor.external_data.add(key=MARK, value=place)
    assert refused(model, "tensor `w`").help


def test_values_that_no_dim_can_say() -> None:
    vast = [value("x", FLOAT, 1 << 62), value("y", FLOAT)]
    assert refused(model_of([node("Concat", ["x"] * 4, ["y"], axis=0)], vast[:1], vast[1:]), "the value `y` would be").help


@pytest.mark.parametrize("name", [b"node_neg", b"odd_name", b"own_domain", b"own_dim"])
def test_names_that_are_no_text(name: bytes) -> None:
    neg = node("Neg", ["x"], ["odd_name"], name="node_neg", domain="own_domain")
    model = wrong(neg, node("Neg", ["odd_name"], ["y"]))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "own_dim"
    model.opset_import.add(domain="own_domain", version=1)
    broken = model.SerializeToString().replace(name, b"\xa0" + name[1:])
    assert refused(broken, "the name .* in the model is no text").help
