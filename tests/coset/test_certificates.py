"""`--certificate` and `coset verify`: what is optimized is shown equal, and checked by a process that has no search engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset
import coset.proving.certify
from coset.cli import run
from coset.comparing.reference import read_program
from coset.ir.constants import constant_of
from coset.ir.evaluate import evaluate
from coset.ir.program import Program
from coset.ir.term import constant, input_term, make
from coset.ir.types import F32, TensorType
from coset.job.own_rules import NO_RULES
from coset.job.phases import permitted_phases, with_witnesses
from coset.lowering.onnx.model import write
from coset.prove.certificate import Certificate
from coset.prove.certificate_file import packed
from coset.prove.contents import by_content, hashed, inner_names
from coset.proving.certify import accepted, certificate_of
from coset.proving.join import join
from coset.proving.rounded import in_an_order
from coset.proving.steps import COMPUTED, CertificateStep, Mapped, Uncertified

BLOCKED = "import sys; sys.modules['egglog'] = None; sys.modules['egglog.bindings'] = None; from coset.cli import main; main()"


def model(*nodes: onnx.NodeProto, shape: tuple[int | str, ...] = ("n", 16), **weights: np.ndarray) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(list(nodes), "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def saved(proto: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(proto, path)
    return path


def mlp() -> onnx.ModelProto:
    """Two layers with a normalization in parts, a scale that folds into a weight, and what changes nothing."""
    draw = np.random.default_rng(0)
    node = helper.make_node
    return model(
        node("ReduceMean", ["x"], ["mean"], axes=[-1]),
        node("Sub", ["x", "mean"], ["centered"]),
        node("Mul", ["centered", "centered"], ["square"]),
        node("ReduceMean", ["square"], ["variance"], axes=[-1]),
        node("Add", ["variance", "epsilon"], ["shifted"]),
        node("Sqrt", ["shifted"], ["deviation"]),
        node("Div", ["centered", "deviation"], ["normal"]),
        node("Mul", ["normal", "gamma"], ["scaled"]),
        node("Add", ["scaled", "beta"], ["h"]),
        node("MatMul", ["h", "w"], ["p"]),
        node("Mul", ["p", "half"], ["q"]),
        node("Add", ["q", "b"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[1, 0]),
        node("Transpose", ["t"], ["u"], perm=[1, 0]),
        node("Relu", ["u"], ["y"]),
        epsilon=np.float32(1e-5), gamma=draw.normal(size=16).astype(np.float32), beta=draw.normal(size=16).astype(np.float32),
        w=draw.normal(size=(16, 32)).astype(np.float32), half=np.float32(0.5), b=draw.normal(size=32).astype(np.float32),
    )  # fmt: skip


def test_a_certificate_is_checked_without_a_search_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out, proof = saved(mlp(), tmp_path), tmp_path / "out.onnx", tmp_path / "proof"
    assert run(["optimize", str(path), "-o", str(out), "--certificate", str(proof), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["certificate"]
    assert said["ok"] and said["steps"] > 0 and said["bytes"] == proof.stat().st_size
    command = [sys.executable, "-c", BLOCKED, "verify", str(proof), str(path), str(out), "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout)
    assert found["ok"] and {key: found[key] for key in ("steps", "assurance", "numerics")} == {
        key: said[key] for key in ("steps", "assurance", "numerics")
    }
    assert run(["verify", str(proof), str(out), str(path)]) == 1
    assert "rejected" in capsys.readouterr().out


def test_the_same_program_has_the_same_certificate(tmp_path: Path) -> None:
    path = saved(mlp(), tmp_path)
    one, other = (coset.optimize(path, certificate=True) for _ in range(2))
    assert one.certificate is not None and other.certificate is not None
    assert packed(one.certificate) == packed(other.certificate)
    assert coset.optimize(path).certificate is None


def test_another_weight_is_another_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out, proof = saved(mlp(), tmp_path), tmp_path / "out.onnx", tmp_path / "proof"
    assert run(["optimize", str(path), "-o", str(out), "--certificate", str(proof)]) == 0
    changed = onnx.load(out)
    weight = max(changed.graph.initializer, key=lambda each: np.prod(each.dims))
    value = np.array(numpy_helper.to_array(weight))
    value.flat[0] += 1
    weight.CopyFrom(numpy_helper.from_array(value, weight.name))
    onnx.save(changed, out)
    capsys.readouterr()
    assert run(["verify", str(proof), str(path), str(out)]) == 1
    assert "another program after" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ([("Relu", ["x"], ["y"], {})], {}),  # nothing to do
        ([("Transpose", ["x"], ["t"], {"perm": [1, 0]}), ("Transpose", ["t"], ["y"], {"perm": [1, 0]})], {}),
        ([("MatMul", ["x", "a"], ["h"], {}), ("MatMul", ["h", "b"], ["y"], {})], {"a": (16, 400), "b": (400, 2)}),
        ([("Sigmoid", ["x"], ["s"], {}), ("Mul", ["x", "s"], ["y"], {})], {}),
        ([("Split", ["x"], ["a", "b"], {"axis": 1}), ("Concat", ["a", "b"], ["y"], {"axis": 1})], {}),
        ([("Dropout", ["x"], ["d"], {}), ("Identity", ["d"], ["y"], {})], {}),
    ],
)  # fmt: skip
def test_small_programs_are_certified(nodes: list[tuple], weights: dict[str, tuple[int, int]], tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    made = [helper.make_node(op, ins, outs, **attributes) for op, ins, outs, attributes in nodes]
    proto = model(*made, **{name: draw.normal(size=shape).astype(np.float32) for name, shape in weights.items()})
    found = coset.optimize(saved(proto, tmp_path), certificate=True)
    assert found.certificate is not None, found.report["certificate"]


def chain(sizes: Sequence[int], shape: tuple[int | str, ...] = ("n", 16)) -> onnx.ModelProto:
    """Products with matrices of these sizes, one after the other."""
    draw = np.random.default_rng(2)
    count = len(sizes) - 1
    values = ["x", *(f"h{place}" for place in range(1, count)), "y"]
    nodes = [helper.make_node("MatMul", [values[place], f"w{place}"], [values[place + 1]]) for place in range(count)]
    weights = {f"w{place}": draw.normal(size=pair).astype(np.float32) for place, pair in enumerate(pairwise(sizes))}
    return model(*nodes, shape=shape, **weights)


@pytest.mark.parametrize("shape", [("n", 16), (3, "n", 16), (8, 16)])
def test_a_chain_in_another_order_is_certified(shape: tuple[int | str, ...], tmp_path: Path) -> None:
    """What was ordered as a whole is said in rotations."""
    found = coset.optimize(saved(chain([16, 300, 2, 400, 3, 500], shape), tmp_path), certificate=True)
    assert found.certificate is not None, found.report["certificate"]
    assert found.report["nodes"]["after"] < found.report["nodes"]["before"]


def test_merged_products_are_certified(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    nodes = [helper.make_node("MatMul", ["x", name], [f"{name}x"]) for name in "abc"]
    nodes += [helper.make_node("Tanh", ["ax"], ["ta"]), helper.make_node("Sigmoid", ["bx"], ["sb"])]
    nodes += [helper.make_node("Mul", ["ta", "sb"], ["m"]), helper.make_node("Add", ["m", "cx"], ["y"])]
    weights = {name: draw.normal(size=(256, 256)).astype(np.float32) for name in "abc"}
    found = coset.optimize(saved(model(*nodes, shape=(1, 256), **weights), tmp_path), certificate=True)
    assert found.certificate is not None, found.report["certificate"]


LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("light_*.onnx"))


@pytest.mark.slow
@pytest.mark.parametrize("path", LIGHT, ids=[path.stem for path in LIGHT])
def test_models_of_one_number_are_certified(path: Path) -> None:
    """Their weights are one number, which a folded one may be as well: then the constants are set apart."""
    found = coset.optimize(path, certificate=True)
    assert found.certificate is not None, found.report["certificate"]


def test_a_mean_of_a_bias_is_the_bias_and_another_constant(tmp_path: Path) -> None:
    """0.02 as a bias in front of a mean is 0.02 but for roundings, and the weights are 0.02 too."""
    node, draw = helper.make_node, np.full((16, 16, 1, 1), 0.02, np.float32)
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"]),
        node("ReduceMean", ["c"], ["m"], axes=[2, 3], keepdims=0),
        node("Mul", ["m", "s"], ["y"]),
    ]
    weights = {"w": draw, "b": np.full(16, 0.02, np.float32), "s": np.float32(0.02)}
    found = coset.optimize(saved(model(*nodes, shape=(1, 16, 13, 13), **weights), tmp_path), certificate=True)
    assert found.certificate is not None, found.report["certificate"]


@pytest.mark.parametrize(
    "nodes",
    [
        [("Exp", ["x"], ["e"]), ("Abs", ["e"], ["y"])],
        [("Mul", ["x", "x"], ["m"]), ("Abs", ["m"], ["y"])],
        [("Abs", ["x"], ["a"]), ("Add", ["a", "a"], ["s"]), ("Sqrt", ["s"], ["q"]), ("Relu", ["q"], ["r"]), ("Abs", ["r"], ["y"])],
    ],
)
def test_facts_about_numbers_are_derived_again(nodes: list[tuple[str, list[str], list[str]]], tmp_path: Path) -> None:
    found = coset.optimize(saved(model(*(helper.make_node(*node) for node in nodes)), tmp_path), certificate=True)
    assert found.certificate is not None, found.report["certificate"]
    assert found.report["nodes"]["after"] < found.report["nodes"]["before"]


def test_without_a_certificate_the_model_is_written_and_the_reason_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that does not fit: the checker sees it before the certificate is handed out."""
    honest = coset.proving.certify.certificate_of

    def careless(before: Program, after: Program, steps: Sequence[CertificateStep], **given: Any) -> Certificate:
        made = honest(before, after, steps, **given)
        return Certificate(made.head, [line for line in made.lines if "rule" not in line])

    monkeypatch.setattr("coset.proving.certify.certificate_of", careless)
    path, out, proof = saved(mlp(), tmp_path), tmp_path / "out.onnx", tmp_path / "proof"
    assert run(["optimize", str(path), "-o", str(out), "--certificate", str(proof), "--json"]) == 3
    captured = capsys.readouterr()
    said = json.loads(captured.out)["certificate"]
    assert not said["ok"] and "the checker refused" in said["reason"] and said["reason"] in captured.err
    assert out.exists() and not proof.exists()


def test_mistakes_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(mlp(), tmp_path)
    assert run(["verify", str(path), str(path), str(path)]) == 2
    assert "no certificate" in capsys.readouterr().err
    assert run(["optimize", str(path), "-o", str(tmp_path / "o.onnx"), "--certificate", str(tmp_path / "absent" / "c")]) == 2
    assert "no folder" in capsys.readouterr().err
    assert not (tmp_path / "o.onnx").exists()


def test_what_is_written_in_parts_is_what_it_was(tmp_path: Path) -> None:
    """ONNX has no log(1 + x) and no e^x - 1: both are written so that no digits are lost near 0."""
    x = input_term("x", TensorType(F32, (4, 5)))
    ends = {"y": make("stablehlo.log_plus_one", (x,)), "z": make("stablehlo.exponential_minus_one", (x,))}
    program, path = Program((x,), tuple(ends.items())), tmp_path / "written.onnx"
    write(program, path)
    after = read_program(path)
    phases = with_witnesses(permitted_phases(NO_RULES, "reassociates", lambda rule: not rule.recognises))
    steps = join(list(zip(by_content(program).roots, by_content(after).roots, strict=True)), phases)
    verdict = accepted(certificate_of(by_content(program), by_content(after), steps), program, after, phases)
    assert verdict["steps"] >= 2 and verdict["numerics"] == "reassociates"


def test_a_constant_that_is_stored_in_another_shape_is_rounded_before_it_is_moved() -> None:
    """A folded scale whose elements one program has in three axes and the other in two: that what is stored, moved, is those elements comes
    first among the steps, so that they are exact when it is said that they are moved from what rounds."""
    draw = np.random.default_rng(0)
    shift, scale = (constant(constant_of(draw.normal(size=4).astype(np.float32))) for _ in range(2))
    x = input_term("x", TensorType(F32, (4, 1)))
    sum_ = make("stablehlo.add", (shift, make("stablehlo.multiply", (scale, shift))))
    before = Program((x,), (("y", make("stablehlo.add", (x, make("stablehlo.reshape", (sum_,), {"shape": (4, 1)})))),))
    (value,) = evaluate([sum_], {})
    number, column, stored = (constant(constant_of(value.reshape(shape))) for shape in ((4,), (4, 1), (4, 1, 1)))
    there, here = (make("stablehlo.reshape", (each,), {"shape": (4, 1)}) for each in (stored, number))
    after = Program((x,), (("y", make("stablehlo.add", (x, there))),))
    put = Mapped({}, hashed, inner_names(before))
    steps = [put.step(CertificateStep(COMPUTED, (one,), (other,))) for one, other in ((there, column), (sum_, number), (here, column))]
    phases = with_witnesses(permitted_phases(NO_RULES, "reassociates", lambda rule: not rule.recognises))

    def write(steps: Sequence[CertificateStep]) -> Certificate:
        return certificate_of(by_content(before), by_content(after), steps)

    def check(found: Certificate) -> dict[str, Any]:
        return accepted(found, before, after, phases)

    with pytest.raises(Uncertified, match="stands for something else already"):
        check(write(steps))
    _, verdict = in_an_order(steps, phases, write, check)
    assert verdict["computed"] + verdict["rounded"] >= 3
