"""`coset prove`: equal programs of two spellings are proved, different ones refuted by inputs, and what is neither is said."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from coset.cli import run
from coset.comparing.reference import read_program
from coset.frontends.onnx.model import import_model
from coset.ir.dims import symbol
from coset.ir.program import Program
from coset.ir.term import input_term
from coset.ir.types import F32, TensorType
from coset.prove.contents import by_content
from coset.proving.alike import by_values, drawn
from coset.proving.prove import Proving, prove
from coset.proving.reach import reach_alike
from coset.rules.equation import Numerics
from coset.rules.rule import permitted

NORMAL = [
    ("ReduceMean", ["x"], ["mean"], {"axes": [-1]}), ("Sub", ["x", "mean"], ["centered"], {}),
    ("Mul", ["centered", "centered"], ["square"], {}), ("ReduceMean", ["square"], ["variance"], {"axes": [-1]}),
    ("Add", ["variance", "epsilon"], ["shifted"], {}), ("Sqrt", ["shifted"], ["deviation"], {}),
    ("Div", ["centered", "deviation"], ["normal"], {}), ("Mul", ["normal", "gamma"], ["scaled"], {}),
    ("Add", ["scaled", "beta"], ["h"], {}),
]  # fmt: skip
ONE = [("LayerNormalization", ["x", "gamma", "beta"], ["h"], {"axis": -1, "epsilon": 1e-5})]
WEIGHTS = {name: np.random.default_rng(place).normal(size=shape).astype(np.float32)
           for place, (name, shape) in enumerate({"gamma": (16,), "beta": (16,), "w": (16, 8), "b": (8,)}.items())}  # fmt: skip


def value_info(name: str, shape: list[int | str] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def saved(folder: Path, name: str, nodes: list[tuple], *, ends: tuple[str, str] = ("x", "y"), **changed: np.ndarray) -> Path:
    """A model of these nodes; what it reads beside its input are weights."""
    weights = {**WEIGHTS, "epsilon": np.float32(1e-5), **changed}
    used = {read for _, reads, _, _ in nodes for read in reads}
    graph = helper.make_graph(
        [helper.make_node(op, reads, gives, **attributes) for op, reads, gives, attributes in nodes], "g",
        [value_info(ends[0], ["n", 16])], [value_info(ends[1])],
        [numpy_helper.from_array(value, key) for key, value in weights.items() if key in used],
    )  # fmt: skip
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def layers(first: list[tuple], count: int) -> list[tuple]:
    """The same layer `count` times: a normalization and an elementwise op."""
    found = []
    for layer in range(count):
        name = {"x": "x" if not layer else f"out{layer - 1}"}
        for op, reads, gives, attributes in [*first, ("Tanh", ["h"], ["out"], {})]:
            names = [name.get(each, f"{each}{layer}" if each not in {*WEIGHTS, "epsilon"} else each) for each in reads]
            found.append((op, names, [f"{each}{layer}" for each in gives], attributes))
    op, reads, _, attributes = found[-1]
    return [*found[:-1], (op, reads, ["y"], attributes)]


def end(nodes: list[tuple]) -> list[tuple]:
    return [*nodes, ("MatMul", ["h", "w"], ["p"], {}), ("Add", ["p", "b"], ["y"], {})]


def test_two_spellings_are_one_program(tmp_path: Path) -> None:
    one, other = saved(tmp_path, "one", end(NORMAL)), saved(tmp_path, "other", end(ONE))
    found = prove(Proving(one, other, certificate=tmp_path / "proof"))
    assert found["answer"] == "proved" and found["steps"] > 0
    assert run(["verify", str(tmp_path / "proof"), str(one), str(other)]) == 0


def test_the_same_file_needs_no_step(tmp_path: Path) -> None:
    one = saved(tmp_path, "one", end(NORMAL))
    found = prove(Proving(one, one))
    assert (found["answer"], found["method"], found["steps"], found["assurance"]) == ("proved", "the same terms", 0, "proved")


def test_equal_layers_are_shown_once(tmp_path: Path) -> None:
    one, other = saved(tmp_path, "one", layers(NORMAL, 8)), saved(tmp_path, "other", layers(ONE, 8))
    assert prove(Proving(one, other))["answer"] == "proved"


def test_names_may_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = saved(tmp_path, "one", end(NORMAL))
    called = {"x": "input", "y": "output"}
    nodes = [
        (op, [called.get(each, each) for each in reads], [called.get(each, each) for each in gives], attributes)
        for op, reads, gives, attributes in end(ONE)
    ]
    other = saved(tmp_path, "other", nodes, ends=("input", "output"))
    proof = tmp_path / "proof"
    assert run(["prove", str(one), str(other), "--certificate", str(proof)]) == 0
    assert "--map input=x --map output=y" in capsys.readouterr().out
    mapping = ["--map", "input=x", "--map", "output=y"]
    assert run(["verify", str(proof), str(one), str(other), *mapping, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["names"] == {"input": "x", "output": "y"}
    assert run(["verify", str(proof), str(one), str(other)]) == 1
    assert "the programs have other inputs" in capsys.readouterr().out
    assert run(["prove", str(one), str(other), *mapping]) == 0
    capsys.readouterr()
    assert run(["prove", str(one), str(other), "--map", "input=z"]) == 2
    assert "no input or output `z`" in capsys.readouterr().err


def test_what_nothing_reads_may_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ONNX Runtime leaves the inputs of what it folded."""
    one, other = saved(tmp_path, "one", end(NORMAL)), saved(tmp_path, "other", end(ONE))
    model = onnx.load(other)
    model.graph.input.insert(0, value_info("folded", [3, 16]))
    onnx.save(model, other)
    proof = tmp_path / "proof"
    for before, after in ((one, other), (other, one)):
        assert run(["prove", str(before), str(after), "--certificate", str(proof), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["unread"] == ["folded"]
        assert run(["verify", str(proof), str(before), str(after)]) == 0
        assert "nothing reads: folded" in capsys.readouterr().out
    model.graph.node[-1].input[1] = "more"
    model.graph.input[0].name = "more"
    model.graph.input[0].type.CopyFrom(value_info("more", [8]).type)
    onnx.save(model, other)
    assert run(["prove", str(one), str(other)]) == 2
    assert "1 inputs, the second 2" in capsys.readouterr().err


def polynomials(folder: Path, name: str, nodes: list[tuple[str, list[str], str]], dtype: int = TensorProto.FLOAT) -> Path:
    """A model of x, y, their sum c and their difference d, which are halved first: a number is among the terms."""
    halves = [("Mul", ["x0", "half"], "x"), ("Mul", ["half", "y0"], "y")]
    every = [*halves, ("Add", ["x", "y"], "c"), ("Sub", ["x", "y"], "d"), *nodes]
    graph = helper.make_graph(
        [helper.make_node(op, reads, [gives], **({"to": dtype} if op == "Cast" else {})) for op, reads, gives in every], "g",
        [helper.make_tensor_value_info(each, TensorProto.FLOAT, [4]) for each in ("x0", "y0")],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [4])], [numpy_helper.from_array(np.float32(0.5), "half")],
    )  # fmt: skip
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def products(pairs: str) -> list[tuple[str, list[str], str]]:
    return [("Mul", list(pair), f"{pair[0]}{pair[1]}") for pair in pairs.split()]


SQUARES = [*products("xx yy cc dd"), ("Add", ["xx", "yy"], "s"), ("Add", ["cc", "dd"], "t"), ("Mul", ["s", "t"], "z")]
SUMS = [*products("xc yd xd yc"), ("Sub", ["xc", "yd"], "u"), ("Add", ["xd", "yc"], "v"), *products("uu vv"), ("Add", ["uu", "vv"], "z")]


def test_polynomials_are_compared_in_finite_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brahmagupta's identity, (x^2 + y^2) (c^2 + d^2) = (x c - y d)^2 + (x d + y c)^2: no search finds it. Its normal forms are one;
    those of larger programs take too long."""
    one, other = polynomials(tmp_path, "one", SQUARES), polynomials(tmp_path, "other", SUMS)
    assert prove(Proving(one, other))["method"] == "normal forms"
    monkeypatch.setattr("coset.proving.prove.by_forms", lambda *_: None)
    found = prove(Proving(one, other, certificate=tmp_path / "proof"))
    assert (found["answer"], found["method"], found["certificate"]) == ("proved", "finite fields", None) and 0 < found["error"] < 1e-15
    assert run(["prove", str(one), str(other)]) == 0
    assert "how probable" in capsys.readouterr().out
    assert prove(Proving(one, other, numerics="exact", seconds=1.0))["answer"] == "refuted", "their bits differ"
    wrong = polynomials(tmp_path, "wrong", [("Add", *row[1:]) if row[2] == "u" else row for row in SUMS])
    assert prove(Proving(one, wrong))["answer"] == "refuted"


def test_what_has_denominators_or_rounds_between_is_no_polynomial(tmp_path: Path) -> None:
    """x / c * c has no value where c is 0, and what goes through another format is rounded to it."""
    again = [("Div", ["t", "c"], "q"), ("Mul", ["q", "c"], "p"), ("Mul", ["s", "p"], "z")]
    cast = [("Cast", ["t"], "h"), ("Cast", ["h"], "p"), ("Mul", ["s", "p"], "z")]
    other = polynomials(tmp_path, "other", SUMS)
    for name, rest, dtype in (("quotient", again, TensorProto.FLOAT), ("cast", cast, TensorProto.DOUBLE)):
        rows = [*SQUARES[:-1], *rest]
        one = polynomials(tmp_path, name, [("Cast", ["h"], "p2") if row == cast[1] else row for row in rows], dtype)
        if name == "cast":
            model = onnx.load(one)
            next(node for node in model.graph.node if node.output[0] == "p2").attribute[0].i = TensorProto.FLOAT
            next(node for node in model.graph.node if node.output[0] == "z").input[1] = "p2"
            onnx.save(model, one)
        assert prove(Proving(one, other, seconds=1.0))["method"] != "finite fields"


WRONG = {
    "operands swapped": [("Sub", ["mean", "x"], ["centered"], {}) if row[0] == "Sub" else row for row in NORMAL],
    "an axis": [("ReduceMean", ["x"], ["mean"], {"axes": [0]}) if row[2] == ["mean"] else row for row in NORMAL],
    "no root": [("Identity", ["shifted"], ["deviation"], {}) if row[0] == "Sqrt" else row for row in NORMAL],
    "no shift": [("Identity", ["scaled"], ["h"], {}) if row[2] == ["h"] else row for row in NORMAL],
}


@pytest.mark.parametrize("edit", WRONG)
def test_a_wrong_edit_is_refuted_by_inputs(edit: str, tmp_path: Path) -> None:
    one, other = saved(tmp_path, "one", end(NORMAL)), saved(tmp_path, "other", end(WRONG[edit]))
    found = prove(Proving(one, other, counterexample=tmp_path / "inputs.npz"))
    assert found["answer"] == "refuted" and found["difference"]
    with np.load(tmp_path / "inputs.npz") as arrays:
        assert {"input x", "first y", "second y"} <= set(arrays)
        assert not np.allclose(arrays["first y"], arrays["second y"], rtol=1e-3, atol=1e-3, equal_nan=True)


def test_a_wrong_weight_is_refuted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = WEIGHTS["w"].copy()
    changed[3, 3] += 0.5
    one, other = saved(tmp_path, "one", end(NORMAL)), saved(tmp_path, "other", end(NORMAL), w=changed)
    assert run(["prove", str(one), str(other), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["answer"] == "refuted"


def test_what_no_rule_shows_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A weight that is off by a rounding: the outputs agree, no step says so."""
    changed = WEIGHTS["w"].copy()
    changed[0, 0] = np.nextafter(changed[0, 0], np.float32(9))
    one, other = saved(tmp_path, "one", end(NORMAL)), saved(tmp_path, "other", end(NORMAL), w=changed)
    assert run(["prove", str(one), str(other), "--json", "--certificate", str(tmp_path / "proof")]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["answer"] == "unknown" and "not seen to be equal" in found["reason"]
    assert not (tmp_path / "proof").exists()


def folded(folder: Path, name: str, *, by: float = 1.0, axis: int = 0) -> list[Path]:
    """A convolution with a batch normalization behind it, and with that in its weights as another optimizer may round it, times `by`."""
    draw = np.random.default_rng(5)
    weights = {key: draw.uniform(0.5, 1.5, shape).astype(np.float32) for key, shape in
               {"k": (6, 6, 3, 3), "c": (6,), "scale": (6,), "shift": (6,), "mean": (6,), "var": (6,)}.items()}  # fmt: skip
    factor = weights["scale"].astype(np.float64) / np.sqrt(weights["var"].astype(np.float64) + 1e-5)
    shape = [1, 1, 1, 1]
    shape[axis] = 6
    whole = {
        "k": (weights["k"] * factor.reshape(shape) * by).astype(np.float32),
        "c": ((weights["c"] - weights["mean"].astype(np.float64)) * factor + weights["shift"]).astype(np.float32),
    }
    names = ["x", "k", "c"]
    normal = helper.make_node("BatchNormalization", ["h", "scale", "shift", "mean", "var"], ["n"])
    programs = [[helper.make_node("Conv", names, ["h"]), normal, helper.make_node("Tanh", ["n"], ["y"])],
                [helper.make_node("Conv", names, ["n"]), helper.make_node("Tanh", ["n"], ["y"])]]  # fmt: skip
    paths = []
    for place, (nodes, held) in enumerate(zip(programs, (weights, whole), strict=True)):
        stored = [numpy_helper.from_array(value, key) for key, value in held.items()]
        graph = helper.make_graph(nodes, "g", [value_info("x", ["n", 6, 8, 8])], [value_info("y")], stored)
        paths.append(folder / f"{name}{place}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), paths[-1])
    return paths


def test_weights_that_someone_else_folded_are_proved_but_for_roundings(tmp_path: Path) -> None:
    found = prove(Proving(*folded(tmp_path, "folded")))
    assert (found["answer"], found["numerics"]) == ("proved", "reassociates")
    assert (
        found["rounded"] > 0 and 0 < found["largest_rounding"]["relative"] < 64 * 2.0**-23
    )  # a handful of operations, one of them a difference
    assert prove(Proving(*folded(tmp_path, "folded"), numerics="exact"))["answer"] == "refuted"


def test_terms_of_one_value_are_taken_for_the_same(tmp_path: Path) -> None:
    """The normalization is the other program's convolution; the convolutions, of one kind and one of each, are not the same."""
    one, other = (by_content(read_program(path)) for path in folded(tmp_path, "pairs"))
    goals = list(zip(one.roots, other.roots, strict=True))
    pairs = {(left.op.name, right.op.name) for left, right in by_values(one, other, drawn(one, {"n": 2}), goals)}
    assert pairs == {("onnx.BatchNormalization", "onnx.Conv"), ("stablehlo.tanh", "stablehlo.tanh")}
    assert ("onnx.Conv", "onnx.Conv") in {(left.op.name, right.op.name) for left, right in by_values(one, other, [], goals)}


def test_terms_are_compared_on_few_rows_first() -> None:
    x = input_term("x", TensorType(F32, (symbol("unk"), 4)))
    program = Program((x,), (("y", x),))
    assert [feed["x"].shape[0] for feed in islice(drawn(program, {}), 4)] == [2, 32, 64, 16]
    assert [feed["x"].shape[0] for feed in drawn(program, {"unk": 5})] == [5]


@pytest.mark.parametrize("wrong", [{"by": 1.001}, {"axis": 1}], ids=str)
def test_weights_that_were_folded_wrongly_are_refuted(tmp_path: Path, wrong: dict[str, float]) -> None:
    assert prove(Proving(*folded(tmp_path, "wrong", **wrong)))["answer"] == "refuted"


def test_constants_that_one_program_computes(tmp_path: Path) -> None:
    """Positions that are looked up, a weight that is turned, a number that fills a tensor: stored by the other program."""
    table, turned = WEIGHTS["w"], np.ascontiguousarray(WEIGHTS["w"].T)
    numbers = {"table": table, "turned": turned, "rows": np.array([3, 1, 2]), "sixteen": np.array([16]), "half": np.float32(0.5)}
    one = [
        ("Transpose", ["turned"], ["w2"], {"perm": [1, 0]}), ("Expand", ["half", "sixteen"], ["halves"], {}),
        ("Mul", ["x", "halves"], ["h"], {}),
        ("Gather", ["table", "rows"], ["g"], {"axis": 0}), ("ReduceSum", ["g"], ["s"], {"keepdims": 0}), ("Mul", ["h", "s"], ["q"], {}),
        ("MatMul", ["q", "w2"], ["y"], {}),
    ]  # fmt: skip
    other = [("Mul", ["x", "filled"], ["h"], {}), ("Mul", ["h", "summed"], ["q"], {}), ("MatMul", ["q", "w"], ["y"], {})]
    stored = {"filled": np.full(16, 0.5, np.float32), "summed": np.float32(table[[3, 1, 2]].sum())}
    found = prove(Proving(saved(tmp_path, "one", one, **numbers), saved(tmp_path, "other", other, **stored)))
    assert found["answer"] == "proved"


def test_exact_steps_do_not_reorder(tmp_path: Path) -> None:
    """(x * 0.1) * 0.3 is x * 0.03 over the reals, not in floats."""
    numbers = {"tenth": np.float32(0.1), "third": np.float32(0.3)}
    one = saved(tmp_path, "one", [("Mul", ["x", "tenth"], ["a"], {}), ("Mul", ["a", "third"], ["y"], {})], **numbers)
    product = np.float32(numbers["tenth"] * numbers["third"])
    other = saved(tmp_path, "other", [("Mul", ["x", "both"], ["y"], {})], both=product)
    assert prove(Proving(one, other, numerics="exact"))["answer"] == "refuted"
    assert prove(Proving(one, other))["answer"] == "proved"


def test_interfaces_that_do_not_correspond_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = saved(tmp_path, "one", end(NORMAL))
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "z"], ["y"])], "g", [value_info(name, ["n", 16]) for name in "xz"],
        [value_info("y")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "two.onnx")
    assert run(["prove", str(one), str(tmp_path / "two.onnx")]) == 2
    assert "1 inputs, the second 2" in capsys.readouterr().err
    assert run(["prove", str(one), str(tmp_path / "absent.onnx")]) == 2


# ---------------------------------------------------------------- the first node that differs


FIRST = {"operands swapped": "centered", "an axis": "mean", "no root": "deviation", "no shift": "h"}


@pytest.mark.parametrize("edit", WRONG)
def test_the_first_node_that_differs_is_named(edit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What comes after it differs too, and is not what is named."""
    for ends in (end, lambda nodes: layers(nodes, 1)):
        one, other = saved(tmp_path, "one", ends(NORMAL)), saved(tmp_path, "other", ends(WRONG[edit]))
        assert run(["prove", str(one), str(other), "--json"]) == 1
        place = json.loads(capsys.readouterr().out)["first_difference"]
        assert place["name"].rstrip("0") == FIRST[edit] and place["others"] == 0


def test_both_values_of_the_first_node_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = saved(tmp_path, "one", end(NORMAL)), saved(tmp_path, "other", end(WRONG["an axis"]))
    assert run(["prove", str(one), str(other), "--dim", "n=3", "--counterexample", str(tmp_path / "c.npz")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "first `onnx.ReduceMean` (`mean`, op 1 of" in said and "dimensions is (1,) here and (0,) there" in said
    with np.load(tmp_path / "c.npz") as arrays:
        x = arrays["input x"]
        assert np.allclose(arrays["node first"], x.mean(1), atol=1e-6) and np.allclose(arrays["node second"], x.mean(0), atol=1e-6)


def test_what_was_written_in_another_way_is_not_what_differs(tmp_path: Path) -> None:
    """Two spellings of a normalization: what only one of them computes has equals further on."""
    changed = WEIGHTS["w"].copy()
    changed[3, 3] += 0.5
    one, other = saved(tmp_path, "one", end(NORMAL)), saved(tmp_path, "other", end(ONE), w=changed)
    place = prove(Proving(one, other))["first_difference"]
    assert (place["name"], place["others"], place["apart"]) == ("p", 0, ["operand 2 is another constant"])


def test_rows_of_a_table_are_read_before_nothing_is_known(tmp_path: Path) -> None:
    """A row of an embedding that no plain case reads."""

    def table(name: str, rows: np.ndarray) -> Path:
        graph = helper.make_graph(
            [helper.make_node("Gather", ["table", "x"], ["y"])], "g",
            [helper.make_tensor_value_info("x", TensorProto.INT64, ["s"])], [value_info("y")], [numpy_helper.from_array(rows, "table")],
        )  # fmt: skip
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / name)
        return tmp_path / name

    rows = np.random.default_rng(0).normal(size=(900, 4)).astype(np.float32)
    changed = rows.copy()
    changed[833] = 0
    one, other = table("one.onnx", rows), table("other.onnx", changed)
    found = prove(Proving(one, other, counterexample=tmp_path / "c.npz"))
    assert found["answer"] == "refuted" and found["first_difference"]["name"] == "y"
    with np.load(tmp_path / "c.npz") as arrays:
        assert 833 in arrays["input x"]


def test_outputs_correspond_as_they_are_named(tmp_path: Path) -> None:
    """In another order, or paired by the user against the order."""

    def two(name: str, ends: list[str]) -> Path:
        nodes = [helper.make_node("Tanh", ["x"], [ends[0]]), helper.make_node("Relu", ["x"], [ends[1]])]
        outputs = [value_info(each, ["n", 16]) for each in sorted(ends, reverse=name == "turned")]
        graph = helper.make_graph(nodes, "g", [value_info("x", ["n", 16])], outputs)
        path = tmp_path / f"{name}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        return path

    one, turned, named = two("one", ["a", "b"]), two("turned", ["a", "b"]), two("named", ["d", "c"])
    assert prove(Proving(one, turned))["answer"] == "proved"
    assert prove(Proving(one, named, pairs={"d": "a", "c": "b"}))["answer"] == "proved"
    assert prove(Proving(one, named))["answer"] == "refuted"


@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FN, TensorProto.BFLOAT16])
def test_values_of_types_that_numpy_has_not_are_compared(kind: int, tmp_path: Path) -> None:
    """NumPy calls float8_e5m2 a float and has no limits of it."""
    there, back = helper.make_node("Cast", ["x"], ["q"], to=kind), helper.make_node("Cast", ["q"], ["y"], to=1)
    paths = []
    for name, nodes in (("rounded", [there, back]), ("plain", [helper.make_node("Identity", ["x"], ["y"])])):
        ends = [helper.make_tensor_value_info(each, 1, ["n"]) for each in "xy"]
        model = helper.make_model(
            helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
        )
        paths.append(tmp_path / f"{name}.onnx")
        onnx.save(model, paths[-1])
    assert run(["prove", *map(str, paths)]) == 1
    typed = [helper.make_tensor_value_info(each, kind, [3]) for each in "xy"]
    narrow = [helper.make_node("Cast", ["x"], ["q"], to=TensorProto.FLOAT16), helper.make_node("Cast", ["q"], ["y"], to=kind)]
    graph = helper.make_graph(narrow, "g", typed[:1], typed[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "input.onnx")
    assert run(["optimize", str(tmp_path / "input.onnx"), "-o", str(tmp_path / "out.onnx")]) == 0


@pytest.mark.parametrize(
    ("first", "second", "dtype", "answer"),
    [
        ("d = Sub(x, x) y = Add(d, w)", "z = Sub(w, w) y = Add(z, w)", "float", "refuted"),
        ("a = Mul(x, w) y = Mul(a, x)", "b = Mul(x, x) y = Mul(b, w)", "float", "proved"),
        ("a = Mul(x, x) b = Mul(w, w) y = Sub(a, b)", "p = Add(x, w) m = Sub(x, w) y = Mul(p, m)", "float16", "proved"),
    ],
)
def test_an_identity_of_polynomials_says_nothing_of_what_is_no_number(
    first: str, second: str, dtype: str, answer: str, tmp_path: Path
) -> None:
    """x - x is no number where x is none. In f16 squares overflow where products do not, which may be lost: what is stored is light."""
    paths = tmp_path / "one.onnx", tmp_path / "other.onnx"
    for path, body in zip(paths, (first, second), strict=True):
        onnx.save(
            onnx.parser.parse_model(
                f'<ir_version: 8, opset_import: ["" : 17]> g ({dtype}[4] x, {dtype}[4] w) => ({dtype}[4] y) {{ {body} }}'
            ),
            path,
        )
    assert prove(Proving(*paths, seconds=2.0))["answer"] == answer


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("s = Slice(x, a, b) d = Sub(s, s) y = Add(w, d)", "y = Identity(w)", False),
        ("s = Slice(x, a, b) d = Sub(s, s) y = Add(w, d)", "s = Slice(x, a, b) d = Mul(s, o) y = Add(w, d)", True),
        ("s = Slice(x, a, b) d = Sub(s, s) y = Add(w, d)", "s = Slice(x, b, e) d = Sub(s, s) y = Add(w, d)", False),
        ("a1 = Mul(x, x) s = Slice(a1, a, b) y = Add(s, w)", "s = Slice(x, a, b) q = Mul(s, s) y = Add(w, q)", True),
    ],
)
def test_what_reaches_what_is_tried_element_by_element(one: str, other: str, alike: bool) -> None:
    """One element of many is enough: 0 for a difference of equals would be caught by no NaN that is drawn at one place of a large input."""
    numbers = "<int64[1] a = {3}, int64[1] b = {4}, int64[1] e = {5}, float[1] o = {0}>"
    roots = [
        import_model(
            onnx.parser.parse_model(
                f'<ir_version: 8, opset_import: ["" : 17]> g (float[64] x, float[1] w) => (float[1] y) {numbers} {{ {body} }}'
            ).SerializeToString()
        ).roots
        for body in (one, other)
    ]
    assert reach_alike(list(zip(*roots, strict=True))) is alike


def test_more_elements_than_are_tried_are_not_seen_to_reach_alike() -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[4096] x) => (float[4096] y) { y = Neg(x) }'
    (root,) = import_model(onnx.parser.parse_model(text).SerializeToString()).roots
    assert not reach_alike([(root, root)])


def test_exact_admits_no_exception(tmp_path: Path) -> None:
    """x + 0 is x but for the sign of a zero: bit by bit that is another program, under a looser word it is one."""
    assert not permitted(Numerics("exact", frozenset({"signed_zero"})), "exact")
    assert permitted(Numerics("exact"), "exact") and permitted(Numerics("exact", frozenset({"signed_zero"})), "reassociates")
    paths = tmp_path / "one.onnx", tmp_path / "other.onnx"
    for path, body in zip(paths, ("y = Add(x, z)", "y = Identity(x)"), strict=True):
        text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) <float z = {{0}}> {{ {body} }}'
        onnx.save(onnx.parser.parse_model(text), path)
    answers = {word: prove(Proving(*paths, numerics=word, seconds=2.0))["answer"] for word in ("exact", "reassociates")}
    assert answers == {"exact": "refuted", "reassociates": "proved"}


@pytest.mark.parametrize(
    ("one", "other", "answers"),
    [
        ("a = Relu(x) y = Relu(a)", "y = Relu(x)", ("proved", "proved")),
        ("y = Relu(x)", "y = Max(x, z)", ("refuted", "proved")),
        ("y = LeakyRelu(x)", "c = GreaterOrEqual(x, z) m = Mul(x, s) y = Where(c, x, m)", ("refuted", "proved")),
        ("y = PRelu(x, s)", "c = Less(x, z) m = Mul(x, s) y = Where(c, m, x)", ("unknown", "proved")),  # this Where keeps -0, its third
    ],
)
def test_exact_opens_no_definition_that_loses_the_sign_of_a_zero(one: str, other: str, answers: tuple[str, str], tmp_path: Path) -> None:
    """Relu, Clip, LeakyRelu and PRelu keep -0 in runtimes, their formulas do not; other definitions of the program may still be opened."""
    paths = tmp_path / "one.onnx", tmp_path / "other.onnx"
    numbers = "<float z = {0}, float s = {0.009999999776482582}>"
    for path, body in zip(paths, (one, other), strict=True):
        text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[40] x) => (float[40] y) {numbers} {{ {body} }}'
        onnx.save(onnx.parser.parse_model(text), path)
    assert tuple(prove(Proving(*paths, numerics=word, seconds=2.0))["answer"] for word in ("exact", "reassociates")) == answers
