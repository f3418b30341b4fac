"""A placed model says where its nodes run, and its parts, run in order, give what the whole gives."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset
from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.extract.priced import devices_of, priced
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.lowering.onnx.devices import device_of
from coset.lowering.onnx.split import parts_of
from coset.targets import target as registry
from coset.targets.running import DEVICE
from coset.targets.target import get_target

ARRAY = """\
base = "cpu-onnxruntime"
title = "an array of multipliers beside the CPU"
host = "cpu-onnxruntime"
strict = true

[sources]
wish = "assumed: the array that I wish I had"

[rates]
fast = { unit = "FLOP/s", source = "wish", "*" = 1e13 }

[curves]
link = { x = "B", unit = "B/s", source = "wish", points = [[1e3, 1e10]] }

[kernels]
matmul = { launch = "row", rates = "fast" }
transfer = { launch = { value = 2e-7, unit = "s", source = "wish" }, bandwidth = "link" }

[legal]
never = "onnx.Softmax exponential tanh"
"""
TWO = ("array", "cpu-onnxruntime")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test reads is known to no other."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


@pytest.fixture
def array(tmp_path: Path) -> Path:
    (tmp_path / "array.toml").write_text(ARRAY)
    return tmp_path / "array.toml"


def products(path: Path, size: int = 256) -> Path:
    """Two products with a softmax between them."""
    weight = numpy_helper.from_array(np.eye(size, dtype=np.float32) + np.float32(0.001), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Softmax", ["p"], ["s"]),
        helper.make_node("MatMul", ["s", "w"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name in "xy")
    graph = helper.make_graph(nodes, "two-products", [x], [y], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def in_order(folder: Path, feed: dict[str, Any]) -> dict[str, Any]:
    """The outputs of the parts in `folder`, each run by ONNX Runtime on what `order.json` says it takes."""
    order = json.loads((folder / "order.json").read_text())
    values = {name: feed[name] for name in order["inputs"]}
    for part in order["parts"]:
        found = Session(folder / part["file"], level="off").run({name: values[name] for name in part["inputs"]})
        assert sorted(found) == sorted(part["outputs"])
        values.update(found)
    return {name: values[name] for name in order["outputs"]}


def placed(model: Path, array: Path, *more: str) -> Path:
    out = model.with_name("placed.onnx")
    assert run(["optimize", str(model), "--target", str(array), "-o", str(out), "--time-limit", "5", "--dim", "n=512", *more]) == 0
    return out


def test_the_parts_give_what_the_whole_gives(tmp_path: Path, array: Path) -> None:
    whole = placed(products(tmp_path / "products.onnx"), array, "--split", str(tmp_path / "parts"))
    order = json.loads((tmp_path / "parts" / "order.json").read_text())
    assert [part["device"] for part in order["parts"]] == [TWO[0], TWO[1], TWO[0]]
    feed = {"x": np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)}
    (wanted,) = Session(whole, level="off").run(feed).values()
    assert np.array_equal(in_order(tmp_path / "parts", feed)["y"], wanted)


def test_every_node_says_its_device_and_the_report_counts_the_same(tmp_path: Path, array: Path) -> None:
    whole = placed(products(tmp_path / "products.onnx"), array, "--report", str(tmp_path / "report.json"))
    model = onnx.load(whole)
    onnx.checker.check_model(model, full_check=True)
    found = {node.op_type: device_of(node) for node in model.graph.node}
    assert found == {"MatMul": TWO[0], "Softmax": TWO[1]} and model.ir_version == 10
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["on_target"] == sum(device_of(node) == TWO[0] for node in model.graph.node)
    assert report["transfers"]["count"] == 4 and {value.name for value in model.graph.value_info} == {"p", "s"}


def test_a_model_of_one_device_says_nothing_of_it(tmp_path: Path) -> None:
    result = coset.optimize(products(tmp_path / "products.onnx"), limits=coset.Limits(seconds=5))
    result.save(tmp_path / "out.onnx")
    model = onnx.load(tmp_path / "out.onnx")
    assert model.ir_version == 8 and not any(node.metadata_props for node in model.graph.node)


def drawn(seed: int) -> Any:
    """A model of nodes that are drawn, each on a device that is drawn, with a body that captures values, a constant output, and weights
    that several parts read."""
    chance = random.Random(seed)
    weights = [numpy_helper.from_array(np.random.default_rng(seed).standard_normal((4, 4)).astype(np.float32), "w")]
    weights.append(numpy_helper.from_array(np.ones(3, np.float32), "constant"))
    names, nodes = ["x", "z"], []
    for place in range(12):
        op = chance.choice(("MatMul", "Add", "Tanh", "If", "Split"))
        one, other = (chance.choice([*names, "w"]) for _ in range(2))
        results = [f"v{place}"] + ([f"u{place}"] if op == "Split" else [])
        if op == "If":
            bodies = {}
            for key, body_op in (("then_branch", "Sub"), ("else_branch", "Mul")):
                inner = helper.make_node(body_op, [one, other], [f"{key}{place}"])
                value = helper.make_tensor_value_info(f"{key}{place}", TensorProto.FLOAT, [4, 4])
                bodies[key] = helper.make_graph([inner], key, [], [value])
            node = helper.make_node("If", ["which"], results, **bodies)
        elif op == "Split":
            node = helper.make_node("Split", [one], [f"h{place}", f"l{place}"], axis=0, num_outputs=2)
            nodes.append(node)
            node = helper.make_node("Concat", [f"l{place}", f"h{place}"], results[:1], axis=0)
            results = results[:1]
        else:
            node = helper.make_node(op, [one] if op == "Tanh" else [one, other], results)
        nodes.append(node)
        names += results
    for node in nodes:
        node.metadata_props.add(key=DEVICE, value=chance.choice(TWO))
    asked = chance.sample(names[2:], 3)
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in asked]
    outputs.append(helper.make_tensor_value_info("constant", TensorProto.FLOAT, [3]))
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xz"]
    inputs.append(helper.make_tensor_value_info("which", TensorProto.BOOL, []))
    graph = helper.make_graph(nodes, "drawn", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_drawn_models_give_what_the_whole_gives(seed: int, tmp_path: Path) -> None:
    from coset.optimizing.parts import split_model

    model = drawn(seed)
    onnx.save(model, tmp_path / "whole.onnx")
    feed = {name: np.random.default_rng(seed + 1).standard_normal((4, 4)).astype(np.float32) for name in "xz"}
    feed["which"] = np.asarray(seed % 2 == 0)
    wanted = Session(tmp_path / "whole.onnx", level="off").run(feed)
    split_model(tmp_path / "whole.onnx", tmp_path / "parts")
    found = in_order(tmp_path / "parts", feed)
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    parts = parts_of(model)
    assert sum(len(part.model.graph.node) for part in parts) == len(model.graph.node)
    assert all({device_of(node) for node in part.model.graph.node} == {part.device} for part in parts)
    assert all(one.device != next.device for one, next in pairwise(parts))


def test_terms_of_the_host_are_those_that_are_priced_there(tmp_path: Path, array: Path) -> None:
    program, target = import_model(products(tmp_path / "products.onnx")), get_target(array)
    prices = priced(program.roots, target, {"n": 512})
    assert prices is not None
    found = devices_of(program, target, {"n": 512})
    assert prices.hosted and all(found[term] == TWO[1] for term in prices.hosted)
    assert {term.op.name for term in program.terms() if found[term] == TWO[0]} >= {"stablehlo.dot_general"}
    assert devices_of(program, get_target(TWO[1]), {"n": 512}) == {}


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ("cpu-onnxruntime", [], "the target `cpu-onnxruntime` has no host"),
        ("array.toml", ["--range", "n=1:64"], "a range has several programs"),
        ("array.toml", ["--split", "full"], "is not empty"),
        ("array.toml", ["--split", "products.onnx"], "cannot be a folder"),
        ("array.toml", ["--split", "absent/parts"], "cannot be a folder"),
    ],
)
def test_what_cannot_be_split_is_said_before_the_work(
    target: str,
    more: list[str],
    message: str,
    tmp_path: Path,
    array: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    products(tmp_path / "products.onnx")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert run(["optimize", "products.onnx", "--target", target, "-o", "out.onnx", "--split", "parts", *more]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "out.onnx").exists()


def test_a_value_of_unknown_type_cannot_cross(tmp_path: Path) -> None:
    nodes = [helper.make_node("Own", ["x"], ["v"], domain="mine"), helper.make_node("Tanh", ["v"], ["y"])]
    for node, device in zip(nodes, TWO, strict=True):
        node.metadata_props.add(key=DEVICE, value=device)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("mine", 1)]
    with pytest.raises(CosetError, match="the type of `v`"):
        parts_of(helper.make_model(helper.make_graph(nodes, "own", [x], [y]), opset_imports=opsets, ir_version=10))
