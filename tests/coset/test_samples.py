"""Inputs that a user gives to compare on, and kernels for ops of a model's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset
from coset.backends import onnxruntime
from coset.cli import run
from coset.comparing.samples import spread, with_samples
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.ir.program_source import source_of
from coset.proving.prove import Proving, prove

SQUARES = "t = Relu(x) u = Relu(t) q = Mul(s, s) r = Reshape(u, q) y = Add(r, r)"  # takes few shapes, of which none is drawn for sure


def saved(folder: Path, body: str = SQUARES, head: str = "float[n,4] x, int64[2] s", domains: str = "") -> str:
    path = folder / "model.onnx"
    text = f'<ir_version: 8, opset_import: ["" : 17{domains}]> g ({head}) => (float[a,b] y) {{ {body} }}'
    onnx.save(onnx.parser.parse_model(text), path)
    return str(path)


def arrays(rows: int = 9, sides: tuple[int, int] = (2, 3)) -> dict[str, Any]:
    return {"x": np.random.default_rng(0).standard_normal((rows, 4)).astype(np.float32), "s": np.array(sides, np.int64)}


def archive(folder: Path, name: str = "inputs.npz", **given: Any) -> str:
    np.savez(folder / name, **given)
    return str(folder / name)


def test_a_model_is_compared_on_its_user_s_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = saved(tmp_path), str(tmp_path / "out.onnx")
    asked = ["--sample-inputs", archive(tmp_path, **arrays()), "--json"]
    assert run(["optimize", model, "-o", out, *asked]) == 0
    check = json.loads(capsys.readouterr().out)["check"]
    assert check["ok"] and check["inputs"][0] == "sample 1" and check["dims"] == {"n": 9}
    for command in (["diff", model, out], ["prove", model, out], ["bench", model, "--rounds", "1"], ["bisect", model]):
        assert run([*command, *asked]) == 0, command


def test_samples_alone_are_enough() -> None:
    """Nothing else that is drawn has a shape that fits: 36 elements."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[9,4] x, int64[2] s) => (float[a,b] y)'
        " { seven = Constant<value = int64 {7}>() t = Add(s, seven) r = Reshape(x, t) p = Relu(r) y = Relu(p) }"
    )
    with pytest.raises(CosetError, match="does not run on drawn inputs"):
        coset.optimize(model)
    optimized = coset.optimize(model, sample_inputs=[arrays(sides=(-3, 2)), arrays(sides=(5, -4))])
    assert optimized.report["check"]["inputs"] == ["sample 1", "sample 2"]


def test_a_difference_on_a_sample_alone_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "one.onnx", tmp_path / "two.onnx"
    for path, number in ((one, 1000.25), (two, 0.0)):
        head = '<ir_version: 8, opset_import: ["" : 17]> g (float[n,4] x) => (float[n,4] y)'
        constants = f"<float c = {{1000.25}}, float z = {{{number}}}>"
        onnx.save(onnx.parser.parse_model(f"{head} {constants} {{ p = Equal(x, c) y = Where(p, z, x) }}"), path)
    sample = archive(tmp_path, x=np.full((2, 4), 1000.25, np.float32))
    assert run(["diff", str(one), str(two), "--time-limit", "0", "--json"]) == 0
    assert run(["diff", str(one), str(two), "--time-limit", "0", "--json", "--sample-inputs", sample]) == 1
    assert "sample 1" in capsys.readouterr().out


def test_folders_of_the_model_zoo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tensors by their names, else by their places."""
    for number in range(2):
        folder = tmp_path / "data" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        for place, (name, value) in enumerate(arrays().items()):
            (folder / f"input_{place}.pb").write_bytes(onnx.numpy_helper.from_array(value, name if number else "").SerializeToString())
    assert run(["optimize", saved(tmp_path), "-o", str(tmp_path / "out.onnx"), "--sample-inputs", str(tmp_path / "data"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["check"]["inputs"][:2] == ["sample 1", "sample 2"]


def test_a_counterexample_is_a_sample(tmp_path: Path) -> None:
    model = saved(tmp_path)
    given = {**{f"input {name}": value for name, value in arrays().items()}, "first y": np.zeros(3), "second y": np.zeros(3)}
    assert run(["optimize", model, "-o", str(tmp_path / "out.onnx"), "--sample-inputs", archive(tmp_path, **given)]) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": arrays()["x"]}, "no array for the input `s`"),
        ({**arrays(), "z": np.zeros(1)}, "no input `z`"),
        ({**arrays(), "x": np.zeros((9, 4))}, "elements of float64"),
        ({**arrays(), "x": np.zeros((9, 5), np.float32)}, r"the shape \[9, 5\]"),
        ({**arrays(), "x": np.zeros(4, np.float32)}, r"the shape \[4\]"),
        ({**arrays(), "s": np.array([5, 5])}, "does not run on sample 1"),
    ],
)
def test_what_does_not_fit_is_told(given: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.onnx"
    model = saved(tmp_path)
    assert run(["optimize", model, "-o", str(out), "--sample-inputs", archive(tmp_path, **given)]) == 2
    assert not out.exists()
    with pytest.raises(CosetError, match=said):
        coset.optimize(model, sample_inputs=[given])


def test_files_that_hold_no_samples_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Objects that would have to be unpickled among them."""
    model, empty, text = saved(tmp_path), tmp_path / "empty", tmp_path / "text.npz"
    empty.mkdir()
    text.write_text("no archive")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "input_0.pb").write_bytes(b"\xff\xff\xff")
    objects = archive(tmp_path, "objects.npz", x=np.array([{}], object))
    for path in (str(empty), str(text), str(broken), objects, str(tmp_path / "missing.npz")):
        assert run(["optimize", model, "-o", str(tmp_path / "out.onnx"), "--sample-inputs", path]) == 2, path
        assert "-->" in capsys.readouterr().err
    sample = archive(tmp_path, **arrays())
    assert run(["optimize", model, "-o", str(tmp_path / "out.onnx"), "--sample-inputs", sample, "--dim", "n=3"]) == 2
    assert "the dim `n` is 9 in the sample inputs" in capsys.readouterr().err


def test_narrow_floats_are_read_from_bytes(tmp_path: Path) -> None:
    """Files of NumPy's know no bf16."""
    model = saved(tmp_path, "t = Add(x, x) y = Cast<to=1>(t)", "bfloat16[n,4] x")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    path = archive(tmp_path, x=np.ones((2, 4)).astype(dtype))
    assert run(["optimize", model, "-o", str(tmp_path / "out.onnx"), "--sample-inputs", path]) == 0


def test_kernels_for_ops_of_the_model_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    library = pytest.importorskip("onnxruntime_extensions", reason="onnxruntime-extensions is not installed").get_library_path()
    monkeypatch.setattr(onnxruntime, "LIBRARIES", [])
    body = "t = Relu(x) u = Relu(t) p, q = ai.onnx.contrib.NegPos(u) z = Add(p, q) y = Relu(z)"
    model, out = saved(tmp_path, body, "float[n,4] x", ', "ai.onnx.contrib" : 1'), str(tmp_path / "out.onnx")
    assert run(["optimize", model, "-o", out]) == 2
    assert "--custom-op-library" in capsys.readouterr().err
    assert run(["optimize", model, "-o", out, "--custom-op-library", library, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["check"]["ok"] and found["nodes"]["after"] < found["nodes"]["before"]
    assert run(["diff", model, out, "--custom-op-library", library]) == 0


def test_what_is_no_library_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(tmp_path)
    for path in (model, str(tmp_path / "missing.so")):
        assert run(["optimize", model, "-o", str(tmp_path / "out.onnx"), "--custom-op-library", path]) == 2
        assert "library" in capsys.readouterr().err


# ------------------------------------------------------------ sequences, maps, optional values


def with_lists(folder: Path, last: str = "Relu") -> str:
    """A model of a sequence, a map, an optional tensor and a tensor."""
    tensor = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, ["n", 2])
    table = onnx.TypeProto()
    table.map_type.key_type = onnx.TensorProto.STRING
    table.map_type.value_type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    table.map_type.value_type.tensor_type.shape.SetInParent()
    head = [
        helper.make_value_info("s", helper.make_sequence_type_proto(tensor)),
        helper.make_value_info("m", table),
        helper.make_value_info("o", helper.make_optional_type_proto(tensor)),
        helper.make_value_info("x", tensor),
    ]
    nodes = [
        helper.make_node("SequenceInsert", ["s", "x"], ["t"]),
        helper.make_node("ConcatFromSequence", ["t"], ["c"], axis=0),
        helper.make_node("DictVectorizer", ["m"], ["v"], domain="ai.onnx.ml", string_vocabulary=["a", "b"]),
        helper.make_node("OptionalGetElement", ["o"], ["g"]),
        helper.make_node("ReduceSum", ["g"], ["k"]),
        helper.make_node("Add", ["c", "v"], ["d"]),
        helper.make_node("Add", ["d", "k"], ["e"]),
        helper.make_node("Relu", ["e"], ["f"]),
        helper.make_node(last, ["f"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", head, [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), folder / "lists.onnx")
    return str(folder / "lists.onnx")


F = np.float32
ROWS = F([[1, 2], [3, 4], [5, 6]])
LISTS: dict[str, Any] = {"s": [ROWS[:1], ROWS[1:]], "m": {"b": F(7), "z": F(9)}, "o": ROWS + 1, "x": ROWS}
ARCHIVED = {"s/0": ROWS[:1], "s/1": ROWS[1:], "m/keys": np.array(["b", "z"]), "m/values": F([7, 9]), "o": ROWS + 1, "x": ROWS}


def messages(folder: Path, named: bool) -> str:
    """As ONNX keeps its own test data: each value as the message of its kind; in another order where they are named."""
    makers = {"s": numpy_helper.from_list, "o": numpy_helper.from_optional, "x": numpy_helper.from_array}
    for place, name in enumerate(LISTS):
        if name == "m":
            message = onnx.MapProto(key_type=onnx.TensorProto.STRING, string_keys=[b"b", b"z"])
            message.values.CopyFrom(numpy_helper.from_list([np.array(7, F), np.array(9, F)]))
        else:
            message = makers[name](LISTS[name])
        message.name = name if named else ""
        number = len(LISTS) - 1 - place if named else place
        (folder / f"input_{number}.pb").write_bytes(message.SerializeToString())
    return str(folder)


@pytest.mark.parametrize("kind", ["archive", "named messages", "messages", "memory"])
def test_sequences_maps_and_optional_values_are_samples(kind: str, tmp_path: Path) -> None:
    given: Any = LISTS
    if kind == "archive":
        given = archive(tmp_path, **ARCHIVED)
    elif kind != "memory":
        given = messages(tmp_path, kind == "named messages")
    program = with_samples(import_model(with_lists(tmp_path)), [given])
    (feed,) = source_of(program).samples
    assert [each.tolist() for each in feed["s"]] == [each.tolist() for each in LISTS["s"]]
    assert feed["m"] == {"b": 7, "z": 9} and np.array_equal(feed["o"], ROWS + 1) and np.array_equal(feed["x"], ROWS)
    optimized = coset.optimize(with_lists(tmp_path), sample_inputs=[given])
    assert optimized.report["check"]["inputs"][0] == "sample 1"


def test_an_archive_gives_back_what_was_spread_over_it() -> None:
    values = {**LISTS, "t": [], "n": {3: F(1)}, "w": np.array(["u", ""], object), "p": [np.array(["v"], object)]}
    spelled = {part: array for name, value in values.items() for part, array in spread(name, value).items()}
    assert not any(array.dtype.kind == "O" for array in spelled.values())
    assert set(spelled) >= {"s/0", "s/1", "m/keys", "m/values", "t", "n/keys", "p/0", "w"}
    assert spelled["t"].size == 0 and spelled["n/keys"].tolist() == [3] and spelled["w"].tolist() == ["u", ""]


def test_a_counterexample_has_sequences_and_maps(tmp_path: Path) -> None:
    """It dropped them; what it holds is what the other program is refuted by, and a sample."""
    first = with_lists(tmp_path)
    (tmp_path / "second").mkdir()
    second, found = with_lists(tmp_path / "second", "Neg"), tmp_path / "found.npz"
    assert run(["prove", first, second, "--counterexample", str(found)]) == 1
    held = np.load(found)
    assert {"input s/0", "input s/1", "input m/keys", "input m/values", "input o", "input x"} <= set(held.files)
    assert run(["optimize", first, "-o", str(tmp_path / "out.onnx"), "--sample-inputs", str(found)]) == 0


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"s": ROWS}, "`s` is a sequence"),
        ({"m": ROWS}, "`m` is a map"),
        ({"m": {1: F(7)}}, "a map whose keys are texts"),
        ({"o": [ROWS]}, "`o` is one tensor"),
        ({"s": [ROWS, F([1])]}, r"a tensor of the input `s` has the shape \[1\]"),
        ({"s": [ROWS.astype(np.float64)]}, "`s` has elements of float64"),
        ({"m": {"a": 1}}, "`m` has elements of int64"),
    ],
)
def test_lists_that_do_not_fit_are_told(other: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CosetError, match=said):
        coset.optimize(with_lists(tmp_path), sample_inputs=[{**LISTS, **other}])


def test_messages_of_another_kind_are_told(tmp_path: Path) -> None:
    path = with_lists(tmp_path)
    folder = messages(tmp_path, named=False)
    (tmp_path / "input_0.pb").write_bytes(numpy_helper.from_list([]).SerializeToString() + b"\xff")
    with pytest.raises(CosetError, match="this is no sequence"):
        coset.optimize(path, sample_inputs=[folder])
    messages(tmp_path, named=False)
    (tmp_path / "input_4.pb").write_bytes(numpy_helper.from_array(ROWS).SerializeToString())
    with pytest.raises(CosetError, match="the model has 4 inputs"):
        coset.optimize(path, sample_inputs=[folder])


def test_a_counterexample_has_each_result_of_a_node_that_has_several(tmp_path: Path) -> None:
    """A LayerNormalization that gives its mean too is where both programs part."""
    paths = []
    for number, epsilon in enumerate((1e-5, 0.5)):
        node = helper.make_node("LayerNormalization", ["x", "s"], ["y", "mean", "inverse"], epsilon=epsilon)
        types = {"x": [2, 4], "y": [2, 4], "mean": [2, 1], "inverse": [2, 1]}
        values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in types.items()}
        scale = numpy_helper.from_array(np.ones(4, np.float32), "s")
        graph = helper.make_graph([node], "g", [values["x"]], [values[each] for each in ("y", "mean", "inverse")], [scale])
        paths.append(tmp_path / f"{number}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), paths[-1])
    file = tmp_path / "shown.npz"
    assert prove(Proving(*paths, counterexample=file))["answer"] == "refuted"
    with np.load(file) as found:
        assert {"input x", "first y", "second mean"} <= set(found.files)
        assert sum(name.startswith("node ") for name in found.files) >= 2
