"""The whole job on small models: it goes through, says what it did, refuses what is wrong, and does the same thing twice."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from forged import forged
from onnx import TensorProto, helper, numpy_helper

import coset
from benchmarks import order
from coset.cli import run
from coset.comparing.refused import Refused
from coset.egraph.limits import Limits
from coset.extract.gym import read_problem
from coset.extract.solve import SolveEffort, solve
from coset.ir.errors import CosetError
from coset.job.job import Job
from coset.optimizing import flow, pipeline
from coset.rules.library import DEFAULT, rule_files
from coset.searching.solving import search_roots

FLOAT = TensorProto.FLOAT


def model(
    nodes: list[Any], inputs: dict[str, list[Any]], outputs: dict[str, list[Any]], **weights: np.ndarray[Any, Any]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def lora() -> onnx.ModelProto:
    """y = x W + 0.5 (x A) B with a dynamic batch."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["base"]),
        helper.make_node("MatMul", ["x", "A"], ["down"]),
        helper.make_node("MatMul", ["down", "B"], ["up"]),
        helper.make_node("Mul", ["up", "half"], ["scaled"]),
        helper.make_node("Add", ["base", "scaled"], ["y"]),
    ]
    weights = {
        "W": rng.standard_normal((64, 64)),
        "A": rng.standard_normal((64, 4)),
        "B": rng.standard_normal((4, 64)),
        "half": np.float32(0.5),
    }
    return model(nodes, {"x": ["batch", 64]}, {"y": ["batch", 64]}, **weights)


def saved(proto: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    onnx.save(proto, path)
    return path


def test_an_adapter_merges_and_the_report_says_by_which_rules(tmp_path: Path) -> None:
    optimized = coset.optimize(lora())
    report = optimized.report
    assert report["nodes"] == {"before": 5, "after": 1}
    assert report["check"]["ok"] and report["cost"]["output"] < report["cost"]["input"]
    families = {rule["name"].split("#")[0].split(".")[0] for rule in report["rules"]}
    assert families & {"adapter_merge", "contraction_distributes_right"}
    assert all(rule["numerics"] and rule["assurance"] in ("proved", "bounded", "tested") for rule in report["rules"])
    optimized.save(tmp_path / "out.onnx")
    out = onnx.load(tmp_path / "out.onnx")
    onnx.checker.check_model(out, full_check=True)
    assert [(i.name, i.type.tensor_type.shape.dim[0].dim_param) for i in out.graph.input] == [("x", "batch")]
    assert [o.name for o in out.graph.output] == ["y"]
    x = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
    w = {t.name: numpy_helper.to_array(t) for t in lora().graph.initializer}
    np.testing.assert_allclose(optimized({"x": x})["y"], x @ w["W"] + 0.5 * (x @ w["A"]) @ w["B"], rtol=1e-4, atol=1e-4)


def test_exact_numerics_keep_every_rounding() -> None:
    report = coset.optimize(lora(), numerics="exact").report
    assert report["nodes"]["after"] == 5
    assert all(rule["numerics"].startswith("exact") for rule in report["rules"])


def test_a_graph_convolution_is_reordered_by_the_chain_rule() -> None:
    nodes = [helper.make_node("MatMul", ["a", "x"], ["ax"]), helper.make_node("MatMul", ["ax", "w"], ["y"])]
    proto = model(nodes, {"a": [256, 256], "x": [256, 128]}, {"y": [256, 4]}, w=np.random.default_rng(0).standard_normal((128, 4)))
    report = coset.optimize(proto).report
    assert report["cost"]["output"] < 0.7 * report["cost"]["input"]
    assert [rule["name"] for rule in report["rules"]] == ["matmul_assoc"]


def test_transposes_that_undo_each_other_go_without_composite_kernels_in_the_search() -> None:
    """A phase for composite kernels had taken `transpose_transpose` away from every search that looks for none."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[0, 2, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Transpose", ["b"], ["y"], perm=[0, 2, 1]),
    ]
    assert coset.optimize(model(nodes, {"x": [2, 3, 4]}, {"y": [2, 3, 4]})).report["nodes"]["after"] == 1


def test_what_only_gives_a_dim_is_optimized_too_and_computed_once() -> None:
    """How many numbers are above 0 is a dim of the result; NonZero itself is used nowhere else."""
    nodes = [
        helper.make_node("Mul", ["x", "one"], ["m"]),
        helper.make_node("Transpose", ["m"], ["t"]), helper.make_node("Transpose", ["t"], ["u"]),
        helper.make_node("Relu", ["u"], ["h"]), helper.make_node("NonZero", ["h"], ["z"]), helper.make_node("Shape", ["z"], ["s"]),
        helper.make_node("Expand", ["half", "s"], ["e"]), helper.make_node("Exp", ["h"], ["y"]),
    ]  # fmt: skip
    proto = model(nodes, {"x": [5, 7]}, {"e": [2, None], "y": [5, 7]}, one=np.float32(1), half=np.float32(0.5))
    optimized = coset.optimize(proto)
    written = onnx.load(optimized._draft.path)
    assert [node.op_type for node in written.graph.node if node.op_type in ("Mul", "Transpose", "Relu", "NonZero")] == ["Relu", "NonZero"]
    x = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    assert optimized.run({"x": x})["e"].shape == (2, (x > 0).sum())


def branches() -> onnx.ModelProto:
    """An If whose branches compute with constants, look at known shapes and take a value from outside."""

    def info(name: str) -> Any:
        return helper.make_tensor_value_info(name, FLOAT, None)

    def side(op: str, name: str) -> Any:
        kinds = ("Neg", "Abs")
        inner = [helper.make_graph([helper.make_node(kind, ["s"], [kind + name])], kind, [], [info(kind + name)]) for kind in kinds]
        nodes = [
            helper.make_node("Mul", ["two", "two"], ["four"]), helper.make_node(op, ["h", "four"], ["s"]),
            helper.make_node("Shape", ["h"], ["d"]), helper.make_node("Size", ["d"], ["rank"]),
            helper.make_node("Cast", ["rank"], ["known"], to=9),
            helper.make_node("If", ["known"], [name], then_branch=inner[0], else_branch=inner[1]),
        ]  # fmt: skip
        return helper.make_graph(nodes, name, [], [info(name)])

    nodes = [
        helper.make_node("Tanh", ["x"], ["h"]), helper.make_node("Cast", ["p"], ["q"], to=9),
        helper.make_node("If", ["q"], ["y"], then_branch=side("Add", "t"), else_branch=side("Mul", "e")),
    ]  # fmt: skip
    return model(nodes, {"x": [3, 4], "p": [1]}, {"y": [3, 4]}, two=np.float32(2))


def test_bodies_of_what_stays_are_written_anew() -> None:
    proto = branches()
    random = helper.make_node("RandomNormalLike", ["s"], ["noise"])  # an effect, so that the If stays as it came
    for attribute in proto.graph.node[-1].attribute:
        attribute.g.node.insert(2, random)
    optimized = coset.optimize(proto)
    written = onnx.load(optimized._draft.path)
    (stays,) = [node for node in written.graph.node if node.op_type == "If"]
    for attribute in stays.attribute:
        ops = [node.op_type for node in attribute.g.node]
        assert "If" not in ops and "Neg" in ops and "RandomNormalLike" in ops and len(ops) == 3, ops
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    for p in (0.0, 1.0):
        expected = -(np.tanh(x) + 4 if p else np.tanh(x) * 4)
        np.testing.assert_allclose(optimized.run({"x": x, "p": np.array([p], np.float32)})["y"], expected, rtol=1e-5)


def test_one_text_entry_adds_a_rule(tmp_path: Path) -> None:
    """tanh(x) * tanh(x) has no rule in the library; a file of one entry gives it one, and it is used."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("Mul", ["t", "t"], ["s"]),
        helper.make_node("Sub", ["one", "s"], ["y"]),
    ]
    proto = model(nodes, {"x": [8, 32]}, {"y": [8, 32]}, one=np.float32(1))
    mine = tmp_path / "mine.rules"
    mine.write_text(
        "use stablehlo as hlo, chlo\n"
        "rule sech_squared\n"
        '  "One minus the square of tanh is one over the square of cosh."\n'
        "  for x: F[S..]\n"
        "  splat(1) - tanh(x) * tanh(x) => splat(1) / (cosh(x) * cosh(x))\n"
        "  numerics real\n"
    )
    assert run(["check", str(mine)]) == 0
    job = Job(proto, pipeline.find_target("cpu-onnxruntime"), "real", Limits(), [mine], {}, lambda _: None)
    task = pipeline._read(job)
    saturation, _ = search_roots(task.program.roots, task.phases, task)
    assert "sech_squared" in {saturation.rules[number].family for number in saturation.fired}
    without = pipeline._read(replace(job, numerics="reassociates"))
    assert "sech_squared" not in {rule.family for phase in without.phases for rule in phase.rules}


def test_a_quantized_weight_stays_one(tmp_path: Path) -> None:
    """ONNX Runtime takes DequantizeLinear into its int8 kernels: a weight stored as floats is four times the bytes and a float product."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["W", "s", "z"], ["w"]),
        helper.make_node("MatMul", ["d", "w"], ["p"]),
        helper.make_node("QuantizeLinear", ["p", "s", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    weights = {"W": np.random.default_rng(0).integers(-100, 100, (32, 32)).astype(np.int8), "z": np.int8(0), "s": np.float32(0.05)}
    x, y = (helper.make_tensor_value_info(name, FLOAT, [4, 32]) for name in "xy")
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    proto = helper.make_model(
        helper.make_graph(nodes, "test", [x], [y], tensors), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    coset.optimize(proto).save(tmp_path / "out.onnx")
    stored = {tensor.name: tensor.data_type for tensor in onnx.load(tmp_path / "out.onnx").graph.initializer}
    read = [stored.get(node.input[0]) for node in onnx.load(tmp_path / "out.onnx").graph.node if node.op_type == "DequantizeLinear"]
    assert read.count(TensorProto.INT8) == 1 and len(read) == 3


def test_the_extraction_problem_is_written_and_has_the_cost_of_the_report(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "W"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    weights = {"W": np.ones((32, 16), np.float32), "b": np.ones(16, np.float32)}
    path = saved(model(nodes, {"x": [8, 32]}, {"y": [8, 16]}, **weights), tmp_path)
    problem, report = tmp_path / "problem.json", tmp_path / "report.json"
    given = ["optimize", str(path), "-o", str(tmp_path / "out.onnx"), "--report", str(report), "--extraction-problem"]
    assert run([*given, str(problem)]) == 0
    solution = solve(read_problem(problem), SolveEffort())
    assert solution is not None and solution.cost == pytest.approx(json.loads(report.read_text())["cost"]["output"])
    assert run([*given, str(tmp_path / "none" / "problem.json")]) == 2


def test_a_wrong_rule_is_caught_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "wrong.rules"
    wrong.write_text(
        'use stablehlo as hlo, chlo\nrule tanh_is_small\n  "Not true."\n  for x: F[S..]\n  tanh(tanh(x)) => tanh(x)\n  numerics exact\n'
    )
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Tanh", ["t"], ["y"])]
    path = saved(model(nodes, {"x": [4, 64]}, {"y": [4, 64]}), tmp_path)
    out = tmp_path / "out.onnx"
    assert run(["check", str(wrong)]) == 1
    forged(wrong)
    with pytest.raises(Refused, match="rule `tanh_is_small` breaks the program") as caught:
        coset.optimize(path, rules=[wrong])
    assert caught.value.rule == "tanh_is_small"
    assert run(["optimize", str(path), "-o", str(out), "--rules", str(wrong)]) == 1
    assert not out.exists()


@pytest.fixture
def without_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library without the rules on signs, with which another form of SqueezeNet is chosen."""
    monkeypatch.setattr("coset.job.phases.DEFAULT", tuple(path for path in rule_files(DEFAULT) if path.stem != "signs"))


def flattened_squeezenet(folder: Path) -> Path:
    """SqueezeNet with a Softmax over two dims: a mean that drops the others is then cheaper than a pool."""
    model = onnx.load(str(Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"))
    softmax = model.graph.node[-1]
    model.graph.node.insert(len(model.graph.node) - 1, helper.make_node("Flatten", list(softmax.input), ["flat"], axis=1))
    model.graph.node[-1].input[:] = ["flat"]
    del model.graph.output[0].type.tensor_type.shape.dim[2:]
    onnx.save(model, str(folder / "squeezenet.onnx"))
    return folder / "squeezenet.onnx"


@pytest.mark.usefixtures("without_signs")
@pytest.mark.slow
def test_a_rule_of_the_library_that_breaks_a_program_is_left_out_and_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All channels of this network are equal and of the size 1e9 under its Softmax: one rounding in the mean before it decides."""
    path = flattened_squeezenet(tmp_path)
    assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["check"]["ok"] and report["check"]["max_abs"] <= 1e-4
    left_out = {left["rule"]: left["problem"] for left in report["left_out"]}
    assert "pool_as_mean" in left_out and all("allowed" in problem for problem in left_out.values())
    assert not left_out.keys() & {rule["name"] for rule in report["rules"]}


@pytest.mark.usefixtures("without_signs")
def test_where_no_more_rules_may_be_left_out_the_program_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(flow, "LEFT_OUT", 0)
    with pytest.raises(Refused, match="pool_as_mean"):
        coset.optimize(flattened_squeezenet(tmp_path))


@pytest.mark.slow
def test_two_runs_and_shuffled_rule_files_give_the_same_bytes(tmp_path: Path) -> None:
    path = saved(lora(), tmp_path)
    found = {order.digest(path, tmp_path, seed) for seed in range(3)}
    coset.optimize(path).save(tmp_path / "plain.onnx")
    assert found == {hashlib.sha256((tmp_path / "plain.onnx").read_bytes()).hexdigest()}


def test_ops_that_something_else_read_change_nothing(tmp_path: Path) -> None:
    """Definitions are read when an op is first asked for: those of other dialects must not take part."""
    script = "import coset, sys; {} coset.optimize(sys.argv[1]).save(sys.argv[2])"
    digests = set()
    path, out = saved(lora(), tmp_path), tmp_path / "out.onnx"
    for before in ("", "from coset.ir.registry import all_ops; all_ops();"):
        subprocess.run([sys.executable, "-c", script.format(before), path, out], check=True)
        digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_the_node_limit_still_gives_a_checked_program() -> None:
    report = coset.optimize(lora(), limits=Limits(nodes=16)).report
    assert report["egraph"]["stop"] == "nodes" and report["check"]["ok"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["optimize", "missing.onnx", "-o", "x.onnx"], "missing.onnx"),
        (["optimize", "{model}", "-o", "x.onnx", "--target", "toaster"], "no target `toaster`"),
        (["optimize", "{model}", "-o", "x.onnx", "--numerics", "brave"], "no numerics `brave`"),
        (["optimize", "{model}", "-o", "x.onnx", "--time-limit", "0"], "must be more than 0"),
        (["optimize", "{model}", "-o", "x.onnx", "--rules", "missing.rules"], "missing.rules"),
        (["optimize", "{model}", "-o", "x.onnx", "--dim", "depth=3"], "no free dim `depth`"),
        (["optimize", "{model}", "-o", "x.onnx", "--dim", "batch"], "is not NAME=N"),
        (["optimize", "{model}", "-o", "nowhere/x.onnx"], "nowhere"),
        (["optimize", "{text}", "-o", "x.onnx"], "text.onnx"),
        (["check", "{text}"], "text.onnx"),
        (["bench", "{model}", "--rounds", "0"], "at least 1"),
    ],
)
def test_a_users_mistake_is_one_error_with_exit_code_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"{model}": str(saved(lora(), tmp_path)), "{text}": str(tmp_path / "text.onnx")}
    Path(names["{text}"]).write_text("this is no model, and no rule file $$")
    assert run([names.get(argument, argument) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error
    assert not (tmp_path / "x.onnx").exists()
    assert not list(tmp_path.glob("*.part"))


def test_diff_tells_equal_from_different(tmp_path: Path) -> None:
    first = saved(lora(), tmp_path)
    other = lora()
    other.graph.initializer[0].raw_data = np.zeros((64, 64), np.float32).tobytes()
    second = saved(other, tmp_path, "other.onnx")
    same = tmp_path / "same.onnx"
    shutil.copy(first, same)
    assert run(["diff", str(first), str(same)]) == 0
    assert run(["diff", str(first), str(second)]) == 1


def test_another_shape_is_a_difference_in_strict_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = saved(model([helper.make_node("Neg", ["x"], ["y"])], {"x": [2, 3]}, {"y": [2, 3]}), tmp_path)
    turned = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    second = saved(model(turned, {"x": [2, 3]}, {"y": [3, 2]}), tmp_path, "turned.onnx")
    assert run(["diff", str(first), str(second), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert not answer["ok"] and answer["max_abs"] is None and "instead of" in answer["problem"]


@pytest.mark.slow
def test_a_chain_of_50000_ops_goes_through(tmp_path: Path) -> None:
    nodes = [helper.make_node("Tanh" if i % 2 else "Sigmoid", [f"v{i}"], [f"v{i + 1}"]) for i in range(50_000)]
    nodes[0].input[0], nodes[-1].output[0] = "x", "y"
    path = saved(model(nodes, {"x": [4]}, {"y": [4]}), tmp_path)
    optimized = coset.optimize(path, limits=Limits(seconds=120))
    assert optimized.report["nodes"]["after"] == 50_000 and optimized.report["check"]["ok"]


def test_an_unknown_error_type_is_not_hidden() -> None:
    with pytest.raises(CosetError, match="no numerics"):
        coset.optimize(lora(), numerics="sloppy")
