"""A user's op is an ONNX node of its domain: read, written where the target lists it, and elsewhere what its definition says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import coset
from coset.backends import onnxruntime
from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.comparing.evaluated import EVALUATOR
from coset.comparing.meant import MEANT
from coset.comparing.refused import Refused
from coset.dialects.onnx.own import KINDS
from coset.frontends.onnx.model import import_model
from coset.frontends.onnx.nodes import attributes_of
from coset.frontends.onnx.tensors import open_model
from coset.ir import dims
from coset.ir.constants import constant_of
from coset.ir.errors import CosetError
from coset.ir.types import DTYPES
from coset.job.own_rules import own_rules
from coset.lowering.onnx.graph import attribute_proto
from coset.lowering.onnx.model import lower

RULES = """use stablehlo as hlo, chlo

op com.acme.Scaled(x: F[S..], bias: F[S..], alpha: float = 2.0) -> F[S..]
  means hlo.maximum(x + bias, 0) * splat(alpha) numerics exact

op com.acme.Gain(x: F[S.., K], gain?: F[K]) -> F[S.., K]
  means x * bcast(gain, [S.., K]) where given(gain) numerics exact
  means x + x where not given(gain) numerics exact

op com.acme.Total(xs..: N[S..], N: number) -> N[S..]
  means fold(add, xs..) numerics exact

op com.acme.Halves(x: T[N, K], left: int) -> (T[N, left], T[N, K - left])
  means (hlo.slice(x, start: [0, 0], limit: [N, left], strides: [1, 1]), hlo.slice(x, start: [0, left], limit: [N, K], strides: [1, 1]))
  numerics exact

op com.acme.Folded : sugar (x: F[S..]) -> F[S..]
  means hlo.negate(x) + splat(1) numerics exact

op com.acme.Moved(x: T[S..], order: permutation(S), kind: string = "plain", twice: bool = false)
  means transpose(x, order) where kind == "plain" and not twice numerics exact

op com.acme.Cast(x: T[S..], to: dtype) -> to[S..]
  means hlo.convert(x, to) numerics exact

op com.acme.Same(x: T[S..]) -> T[S..]
  means x numerics exact

op com.acme.Rows(x: F[N, K]) -> F[N * K]
  means hlo.reshape(x, [N * K]) / splat(hlo.convert(host(N), F)) numerics exact

op com.acme.Nested(x: F[S..]) -> F[S..]
  means com.acme.Scaled(x, x, alpha: 3) numerics exact
"""
TARGET = """base = "cpu-onnxruntime"
title = "ONNX Runtime with kernels of Acme"

[sources]
acme = "assumed for a test"

[kernels]
acme = {{ launch = {{ value = 1e-12, unit = "s", source = "acme" }} }}

[legal]
forms = [ {{ ops = "{ops}", kernel = "acme", dtypes = "f32 i32" }} ]
"""
NUMPY = {"float": np.float32, "int32": np.int32, "double": np.float64}


@dataclass(frozen=True)
class Acme:
    """A node, in the text of ONNX's parser, with what it computes. `parts` says the same by other nodes."""

    node: str
    parts: str
    value: Callable[..., Any]
    inputs: Mapping[str, str]
    dtype: str = "float"
    results: Mapping[str, str] = field(default_factory=lambda: {"y": "n,4"})
    result_dtype: str = ""


CASES = {
    "attribute": Acme(
        "y = com.acme.Scaled<alpha=3.0>(x, b)",
        "three = Constant<value_float=3.0>() s = Add(x, b) r = Relu(s) y = Mul(r, three)",
        lambda x, b: np.maximum(x + b, 0) * np.float32(3),
        {"x": "n,4", "b": "n,4"},
    ),
    "default": Acme(
        "y = com.acme.Scaled(x, b)",
        "two = Constant<value_float=2.0>() s = Add(x, b) r = Relu(s) y = Mul(r, two)",
        lambda x, b: np.maximum(x + b, 0) * np.float32(2),
        {"x": "n,4", "b": "n,4"},
    ),
    "optional given": Acme("y = com.acme.Gain(x, g)", "y = Mul(x, g)", lambda x, g: x * g, {"x": "n,4", "g": "4"}),
    "optional absent": Acme("y = com.acme.Gain(x)", "y = Add(x, x)", lambda x: x + x, {"x": "n,4"}),
    "variadic": Acme(
        "y = com.acme.Total(x, b, x)", "s = Add(x, b) y = Add(s, x)", lambda x, b: x + b + x, {"x": "n,4", "b": "n,4"}, "int32"
    ),
    "two results": Acme(
        "y, z = com.acme.Halves<left=1>(x)",
        "one = Constant<value_ints=[1,3]>() y, z = Split<axis=1>(x, one)",
        lambda x: (x[:, :1], x[:, 1:]),
        {"x": "n,4"},
        "int32",
        {"y": "n,1", "z": "n,3"},
    ),
    "sugar": Acme("y = com.acme.Folded(x)", "one = Constant<value_float=1.0>() m = Neg(x) y = Add(m, one)", lambda x: 1 - x, {"x": "n,4"}),
    "list and text": Acme(
        'y = com.acme.Moved<order=[1,0], kind="plain", twice=0>(x)',
        "y = Transpose<perm=[1,0]>(x)",
        lambda x: x.T,
        {"x": "3,4"},
        "int32",
        {"y": "4,3"},
    ),
    "element type": Acme(
        "y = com.acme.Cast<to=1>(x)", "y = Cast<to=1>(x)", lambda x: x.astype(np.float32), {"x": "n,4"}, "int32", result_dtype="float"
    ),
    "identity": Acme("y = com.acme.Same(x)", "y = Identity(x)", lambda x: x, {"x": "n,4"}),
    "a size in it": Acme(
        "y = com.acme.Rows(x)",
        "m = Constant<value_ints=[-1]>() r = Reshape(x, m) s = Shape<start=0, end=1>(x) "
        "a = Constant<value_ints=[0]>() t = Squeeze(s, a) f = Cast<to=1>(t) y = Div(r, f)",
        lambda x: x.reshape(-1) / np.float32(len(x)),
        {"x": "n,4"},
        results={"y": "m"},
    ),
    "nested": Acme(
        "y = com.acme.Nested(x)",
        "three = Constant<value_float=3.0>() s = Add(x, x) r = Relu(s) y = Mul(r, three)",
        lambda x: np.maximum(x + x, 0) * np.float32(3),
        {"x": "n,4"},
    ),
}
NOT_FOUND = {"sugar": "it has no rules", "identity": "everything is one", "list and text": "the parts do not say what `twice` is"}


def model(body: str, case: Acme = CASES["attribute"], functions: str = "") -> Any:
    head = ", ".join(f"{case.dtype}[{shape}] {name}" for name, shape in case.inputs.items())
    results = ", ".join(f"{case.result_dtype or case.dtype}[{shape}] {name}" for name, shape in case.results.items())
    domains = '"" : 20, "com.acme" : 1, "own" : 1'
    return onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{domains}]> g ({head}) => ({results}) {{ {body} }} {functions}")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "acme.rules"
    path.write_text(RULES)
    return path


def listing(op: str, folder: Path) -> Path:
    """The file of a machine that has a kernel for the op, which takes no time to speak of."""
    path = folder / "machine.toml"
    path.write_text(TARGET.format(ops=op))
    return path


def op_of(case: Acme) -> str:
    """The op of the node."""
    return case.node.partition("= ")[2].partition("(")[0].partition("<")[0]


def drawn(case: Acme) -> dict[str, Any]:
    random = np.random.default_rng(7)
    sizes = {"n": 5}
    shapes = {name: tuple(sizes.get(dim) or int(dim) for dim in shape.split(",")) for name, shape in case.inputs.items()}
    return {name: (random.normal(size=shape) * 9).astype(NUMPY[case.dtype]) for name, shape in shapes.items()}


def told_of(report: Mapping[str, Any], op: str) -> Any:
    """What a report says of the nodes of one op."""
    (told,) = [each for each in report["own_ops"] if each["op"] == op]
    return told


def ops_of(program: Any) -> list[tuple[str, str]]:
    return [(node.domain, node.op_type) for node in program.graph.node]


@pytest.mark.parametrize("name", CASES)
def test_what_a_node_means_is_written_where_no_runtime_has_it(name: str, mine: Path, tmp_path: Path) -> None:
    case = CASES[name]
    found = coset.optimize(model(case.node, case), rules=[mine])
    found.save(tmp_path / "out.onnx")
    assert not {domain for domain, _ in ops_of(onnx.load(tmp_path / "out.onnx"))} - {""}
    feed = drawn(case)
    expected = case.value(**feed)
    results = Session(tmp_path / "out.onnx").run(feed)
    for output, value in zip(case.results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_array_equal(results[output], value)
    report = found.report
    assert report["check"]["ok"] and report["check"]["by"] == MEANT
    told = told_of(report, op_of(case))
    assert told["nodes"] == [1, 0] and "lists no form" in told["reason"]
    assert np.isfinite(report["cost"]["input"])


@pytest.mark.parametrize("name", CASES)
def test_a_node_stays_where_the_target_lists_it(name: str, mine: Path, tmp_path: Path) -> None:
    """With its attributes; and it is read again as the same term. Sugar is what it means everywhere, and x is cheaper than an Identity."""
    case = CASES[name]
    given = model(case.node, case)
    found = coset.optimize(given, rules=[mine], target=listing(op_of(case), tmp_path))
    found.save(tmp_path / "out.onnx")
    written = onnx.load(tmp_path / "out.onnx")
    assert found.report["check"]["ok"]
    if name in ("sugar", "identity"):
        assert {domain for domain, _ in ops_of(written)} == {""}
        return
    assert ops_of(written) == [("com.acme", op_of(case).rpartition(".")[2])]
    assert found.report["check"]["by"] == EVALUATOR, "nothing here has the kernel"
    own = own_rules([mine]).ops
    one, other = (import_model(each, own=own) for each in (given, written))
    assert [term.op.name for term in one.roots] == [term.op.name for term in other.roots]
    assert lower(one).graph.node == lower(other).graph.node


@pytest.mark.parametrize("name", sorted(CASES.keys() - NOT_FOUND))
def test_parts_become_the_node_and_the_certificate_says_so(
    name: str, mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    files = {each: str(tmp_path / each) for each in ("in.onnx", "out.onnx", "steps")}
    onnx.save(model(case.parts, case), files["in.onnx"])
    command = ["optimize", files["in.onnx"], "-o", files["out.onnx"], "--rules", str(mine), "--certificate", files["steps"], "--json"]
    assert run([*command, "--target", str(listing(op_of(case), tmp_path))]) == 0
    report = json.loads(capsys.readouterr().out)
    assert ops_of(onnx.load(files["out.onnx"])) == [("com.acme", op_of(case).rpartition(".")[2])]
    assert told_of(report, op_of(case)) == {"op": op_of(case), "nodes": [0, 1], "reason": ""}
    assert report["certificate"]["ok"], report["certificate"]
    checked = ["verify", files["steps"], files["in.onnx"], files["out.onnx"]]
    assert run([*checked, "--rules", str(mine)]) == 0
    assert run(checked) == 1, "without the definition nobody knows what the node means"


@pytest.mark.parametrize("name", NOT_FOUND)
def test_an_op_that_cannot_be_found_says_why(name: str, mine: Path, tmp_path: Path) -> None:
    case = CASES[name]
    found = coset.optimize(model(case.parts, case), rules=[mine], target=listing(op_of(case), tmp_path))
    told = told_of(found.report, op_of(case))
    assert told["nodes"] == [0, 0] and told["reason"].startswith("its definition is not read from right to left")


def test_the_meaning_is_written_with_a_certificate_too(mine: Path, tmp_path: Path) -> None:
    case = CASES["two results"]
    files = [str(tmp_path / each) for each in ("steps", "in.onnx", "out.onnx")]
    onnx.save(model(case.node, case), files[1])
    assert run(["optimize", files[1], "-o", files[2], "--rules", str(mine), "--certificate", files[0]]) == 0
    assert {domain for domain, _ in ops_of(onnx.load(files[2]))} == {""}
    assert run(["verify", *files, "--rules", str(mine)]) == 0


@pytest.mark.parametrize("name", CASES)
def test_a_node_and_its_parts_are_proved_equal(name: str, mine: Path) -> None:
    case = CASES[name]
    assert coset.prove(model(case.node, case), model(case.parts, case), rules=[mine])["answer"] == "proved"


def test_commands_say_what_a_node_lacks(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --rules nobody knows what it means; with them it has a meaning everywhere."""
    case = CASES["attribute"]
    node, parts = str(tmp_path / "node.onnx"), str(tmp_path / "parts.onnx")
    onnx.save(model(case.node, case), node)
    onnx.save(model(case.parts, case), parts)
    lowered = ["lower", node, "-o", str(tmp_path / "package"), "--target", "nvidia-h100", "--check", "none"]
    for command in (["prove", node, parts], ["diff", node, parts], lowered):
        assert run(command) == 2
        assert "--rules (docs/own-ops.md)" in capsys.readouterr().err
        assert run([*command, "--rules", str(mine)]) == 0, capsys.readouterr().err
    assert run(["optimize", node, "-o", str(tmp_path / "out.mlir"), "--rules", str(mine)]) == 0
    assert "com.acme" not in (tmp_path / "out.mlir").read_text()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("y = com.acme.Scaled(x)", "has 1 operands, its op has 2"),
        ("y = com.acme.Scaled(x, b, b)", "has 3 operands, its op has 2"),
        ("y = com.acme.Scaled<alpha=2>(x, b)", "is of kind int, not float"),
        ("y = com.acme.Scaled<beta=2.0>(x, b)", "has an attribute `beta`"),
        ("y, z = com.acme.Scaled(x, b)", "has 2 results, its op has 1"),
        ("y, z = com.acme.Halves(x)", "has no attribute `left`"),
        ("y = com.acme.Moved<order=[1, 0], twice=2>(x)", "a value that its op does not take"),
    ],
)
def test_a_node_of_another_form_is_refused(body: str, said: str, mine: Path) -> None:
    with pytest.raises(CosetError, match=said) as refusal:
        coset.optimize(model(body), rules=[mine])
    assert "acme.rules:" in refusal.value.help, "the error says where the op is defined"


def test_a_node_whose_types_fit_no_clause_stays_and_is_told(mine: Path, tmp_path: Path) -> None:
    case = Acme("y = com.acme.Scaled(x, b)", "", max, {"x": "n,4", "b": "n,4"}, "int32")
    told: list[str] = []
    found = coset.optimize(model(case.node, case), rules=[mine], progress=told.append)
    found.save(tmp_path / "out.onnx")
    assert ops_of(onnx.load(tmp_path / "out.onnx")) == [("com.acme", "Scaled")]
    assert [each for each in told if "stays as it came" in each and "is not defined for" in each]
    assert found.report["opaque"] == ["com.acme.Scaled"] and "fits no clause" in told_of(found.report, "com.acme.Scaled")["reason"]


def test_weights_beside_the_model_and_no_other_domain(mine: Path, tmp_path: Path) -> None:
    """The copy of the original that is compared has both."""
    case = Acme("y = com.acme.Scaled(x, w)", "", max, {"x": "300,4"}, results={"y": "300,4"})
    given = model(case.node, case)
    del given.opset_import[:]
    given.opset_import.add(domain="com.acme", version=3)
    given.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((300, 4), np.float32), "w"))
    onnx.save(given, tmp_path / "in.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    found = coset.optimize(tmp_path / "in.onnx", rules=[mine])
    found.save(tmp_path / "out.onnx")
    assert found.report["check"]["ok"] and found.report["check"]["by"] == MEANT
    x = np.ones((300, 4), np.float32)
    np.testing.assert_array_equal(Session(tmp_path / "out.onnx").run({"x": x})["y"], 4 * x)


def test_rules_of_other_jobs_read_no_nodes(mine: Path) -> None:
    """What one job has defined is nothing to the next one, though the process knows the op."""
    case = CASES["attribute"]
    coset.optimize(model(case.node, case), rules=[mine])
    assert coset.optimize(model(case.node, case)).report["opaque"] == ["com.acme.Scaled"]


FUNCTION = """<domain: "com.acme", opset_import: ["" : 20]> Scaled (p, q) => (r) { s = Sub(p, q) r = Tanh(s) }"""
OUTER = """<domain: "own", opset_import: ["" : 20, "com.acme" : 1]> Outer (p, q) => (r) { s = com.acme.Scaled(p, q) r = Neg(s) }"""


def test_a_function_of_the_model_is_what_its_calls_are(mine: Path, tmp_path: Path) -> None:
    """Not what a rule file says of an op of its name; and no node of the op is written beside the function."""
    found = coset.optimize(model("y = com.acme.Scaled(x, b)", functions=FUNCTION), rules=[mine])
    found.save(tmp_path / "out.onnx")
    assert ops_of(onnx.load(tmp_path / "out.onnx")) == [("", "Sub"), ("", "Tanh")]
    with pytest.raises(CosetError, match="would be a call of it"):
        body = "s = com.acme.Scaled(x, b) t = Add(s, b) u = Relu(t) two = Constant<value_float=2.0>() y = Mul(u, two)"
        given, machine = model(body, functions=FUNCTION), listing("com.acme.Scaled", tmp_path)
        coset.optimize(given, rules=[mine], target=machine, keep_functions=True)


def test_nodes_in_functions_and_bodies_are_what_they_mean(mine: Path, tmp_path: Path) -> None:
    found = coset.optimize(model("y = own.Outer(x, b)", functions=OUTER), rules=[mine])
    found.save(tmp_path / "out.onnx")
    assert {domain for domain, _ in ops_of(onnx.load(tmp_path / "out.onnx"))} == {""}
    assert found.report["check"]["by"] == MEANT
    branches = "then_branch = g1 () => (float[n,4] t) { t = com.acme.Scaled(x, b) }, else_branch = g2 () => (float[n,4] e) { e = Neg(x) }"
    body = f"s = ReduceSum<keepdims=0>(x) z = Constant<value_float=0.0>() c = Greater(s, z) y = If(c) <{branches}>"
    found = coset.optimize(model(body), rules=[mine])
    found.save(tmp_path / "body.onnx")
    assert found.report["check"]["ok"] and told_of(found.report, "com.acme.Scaled")["nodes"] == [1, 0]
    x, b = (np.full((3, 4), each, np.float32) for each in (1, 2))
    np.testing.assert_array_equal(Session(tmp_path / "body.onnx").run({"x": x, "b": b})["y"], np.full((3, 4), 6, np.float32))


def test_rules_about_an_op_see_its_nodes(tmp_path: Path) -> None:
    """Though no target runs them: they are not what they mean from the start."""
    path = tmp_path / "mine.rules"
    about = "rule twice for x: F[S..] com.Twice(com.Twice(x)) => x * 4 numerics exact"
    path.write_text(f"use stablehlo as hlo, chlo, com\nop com.Twice(x: F[S..]) means x * 2 numerics exact\n{about}\n")
    text = '<ir_version: 9, opset_import: ["" : 20, "com" : 1]> g (float[n] x) => (float[n] y) { a = com.Twice(x) y = com.Twice(a) }'
    found = coset.optimize(onnx.parser.parse_model(text), rules=[path], only_rules=["twice"])
    assert found.report["nodes"]["after"] == 1 and found.report["check"]["ok"]


VALUES: Mapping[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {  # of each kind of attribute: what a node can say, and what it cannot
    "int": ((3, -(1 << 63)), ()),
    "float": ((0.5, float("inf"), 0.10000000149011612), (0.1, 1e300)),
    "bool": ((True, False), ()),
    "string": (("plain", ""), ()),
    "combiner": (("add",), ()),
    "direction": (("LT",), ()),
    "ints": (((1, -2), ()), ()),
    "dims": (((2, 3),), ((dims.symbol("n"), 1),)),
    "permutation": (((1, 0),), ()),
    "axes": (((0, 2),), ()),
    "floats": (((0.5, 2.0),), ((0.5, 0.1),)),
    "padding": ((((1, 2), (0, 3)),), (((dims.symbol("n"), 0),),)),
    "dtype": ((DTYPES["f16"], DTYPES["bool"]), ()),
    "constant": ((constant_of(np.ones(3, np.float32)),), ()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_attribute_is_written_as_it_is_read(kind: str) -> None:
    """Through the bytes of a node, for every kind; what no node can say has no form."""
    form = KINDS[kind]
    can, cannot = VALUES[kind]
    for value in can:
        proto = onnx.AttributeProto.FromString(attribute_proto("a", form.write(value)).SerializeToString())
        assert onnx.AttributeProto.AttributeType.Name(proto.type).lower() == form.word
        given = attributes_of(onnx.NodeProto(attribute=[proto]), open_model(model(CASES["default"].node)))
        assert given is not None
        found = form.read(given["a"])
        assert (found.key == value.key) if kind == "constant" else (found == value and type(found) is type(value))
    assert all(form.write(value) is None for value in cannot)


# ------------------------------------------------------------ a kernel that there is

EXTENSIONS = """use stablehlo as hlo, chlo
op ai.onnx.contrib.NegPos(x: F[S..]) -> (F[S..], F[S..])
  means (hlo.minimum(x, 0), {above}) numerics exact
"""


@pytest.fixture
def extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime with its extensions, which have an op of two results."""
    library = pytest.importorskip("onnxruntime_extensions", reason="onnxruntime-extensions is not installed").get_library_path()
    monkeypatch.setattr(onnxruntime, "LIBRARIES", [])
    onnxruntime.use_library(library)


def test_an_op_that_means_a_composite_kernel_is_found(tmp_path: Path) -> None:
    rules = tmp_path / "gates.rules"
    rules.write_text("use kernel\nop com.acme.Gated(gate, up: F[S..]) -> F[S..] means kernel.swiglu(gate, up) numerics reassociates\n")
    case = Acme("", "s = Sigmoid(x) t = Mul(x, s) y = Mul(t, b)", max, {"x": "n,4", "b": "n,4"})
    found = coset.optimize(model(case.parts, case), rules=[rules], target=listing("com.acme.Gated", tmp_path))
    found.save(tmp_path / "out.onnx")
    assert ops_of(onnx.load(tmp_path / "out.onnx")) == [("com.acme", "Gated")]


@pytest.mark.usefixtures("extensions")
def test_a_kernel_is_found_and_runs(tmp_path: Path) -> None:
    """The result is compared as the runtime's kernel computes it."""
    rules = tmp_path / "extensions.rules"
    rules.write_text(EXTENSIONS.format(above="hlo.maximum(x, 0)"))
    text = """<ir_version: 9, opset_import: ["" : 20]> g (float[n,4] x) => (float[n,4] y) {
        z = Constant<value_float=0.0>() p = Min(x, z) q = Max(x, z) e = Exp(p) y = Add(e, q) }"""
    found = coset.optimize(onnx.parser.parse_model(text), rules=[rules], target=listing("ai.onnx.contrib.NegPos", tmp_path))
    found.save(tmp_path / "out.onnx")
    written = onnx.load(tmp_path / "out.onnx")
    assert ops_of(written) == [("ai.onnx.contrib", "NegPos"), ("", "Exp"), ("", "Add")]
    assert ("ai.onnx.contrib", 1) in {(each.domain, each.version) for each in written.opset_import}
    assert found.report["check"]["by"] == "" and found.report["session"] is not None
    x = np.array([[-1, 0, 2, -3]], np.float32)
    np.testing.assert_allclose(Session(tmp_path / "out.onnx").run({"x": x})["y"], np.exp(np.minimum(x, 0)) + np.maximum(x, 0), rtol=1e-6)


@pytest.mark.usefixtures("extensions")
def test_a_definition_that_is_not_the_kernel_s_is_refused(tmp_path: Path) -> None:
    rules = tmp_path / "extensions.rules"
    rules.write_text(EXTENSIONS.format(above="x"))
    text = """<ir_version: 9, opset_import: ["" : 20, "ai.onnx.contrib" : 1]> g (float[n,4] x) => (float[n,4] y) {
        p, q = ai.onnx.contrib.NegPos(x) y = Add(p, q) }"""
    with pytest.raises(Refused) as refusal:
        coset.optimize(onnx.parser.parse_model(text), rules=[rules])
    assert "`ai.onnx.contrib.NegPos`" in refusal.value.help


# ------------------------------------------------------------ prices


@pytest.mark.parametrize(
    ("seconds", "dtypes", "reason"), [("1", "f32", "as fast or faster"), ("1e-12", "f64", "no kernel for f32, only for f64")]
)
def test_the_price_and_the_types_of_the_target_s_file_decide(seconds: str, dtypes: str, reason: str, mine: Path, tmp_path: Path) -> None:
    case = CASES["attribute"]
    machine = listing(op_of(case), tmp_path)
    machine.write_text(machine.read_text().replace("1e-12", seconds).replace("f32 i32", dtypes))
    found = coset.optimize(model(case.parts, case), rules=[mine], target=machine)
    told = told_of(found.report, op_of(case))
    assert told["nodes"] == [0, 0] and reason in told["reason"]


def test_explain_says_why_no_target_runs_it(mine: Path, tmp_path: Path) -> None:
    case = CASES["attribute"]
    found = coset.explain(model(case.parts, case), "com.acme.Scaled", rules=[mine])
    assert found["matched"] and found["reasons"] == [
        "the target `cpu-onnxruntime` lists no form of `com.acme.Scaled` under [legal] of its file"
    ]
    machine = listing(op_of(case), tmp_path)
    machine.write_text(machine.read_text().replace("f32 i32", "f64"))
    found = coset.explain(model(case.parts, case), "com.acme.Scaled", rules=[mine], target=machine)
    assert found["reasons"] == ["the target `machine` cannot run `com.acme.Scaled` there: no kernel for f32, only for f64"]
