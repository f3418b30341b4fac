"""Functions of a model's own that stay functions, optimized inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import coset
from coset.backends.onnxruntime import Session
from coset.console.optimized import show_optimized
from coset.searching.inside import CERTIFIED

HEAD = '<ir_version: 9, opset_import: ["my": 1, "": 19]> g (float[2, 3] x, float[4, 5] w)'
OWN = '<domain: "my", opset_import: ["": 19, "my": 1]>'
TURNED = f"{OWN} f (a) => (r) {{ t = Transpose<perm = [1, 0]>(a) u = Exp(t) v = Transpose<perm = [1, 0]>(u) r = Neg(v) }}"
FEED = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "w": np.arange(20, dtype=np.float32).reshape(4, 5) / 8}


def optimized(text: str, folder: Path, **options: Any) -> tuple[Any, Any]:
    """The model that is written, and the report; outputs are those of the original."""
    given = onnx.parser.parse_model(text)
    found = coset.optimize(given, keep_functions=True, **options)
    found.save(folder / "out.onnx")
    made = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(made)
    feed = {value.name: FEED[value.name] for value in given.graph.input if value.name in FEED}
    feed |= {value.name: np.array(True) for value in given.graph.input if value.name not in FEED}
    one, other = (Session(each.SerializeToString()).run(feed) for each in (given, made))
    for name, value in one.items():
        np.testing.assert_allclose(other[name], value, rtol=1e-5)
    return made, found.report


def ops(model: Any) -> dict[str, list[str]]:
    """The nodes of each function."""
    return {function.name: [node.op_type for node in function.node] for function in model.functions}


def test_one_body_serves_calls_of_other_sizes(tmp_path: Path) -> None:
    text = f"{HEAD} => (float[2, 3] y, float[4, 5] z) {{ y = my.f(x) z = my.f(w) }} {TURNED}"
    made, report = optimized(text, tmp_path)
    assert ops(made) == {"f": ["Exp", "Neg"]} and [node.op_type for node in made.graph.node] == ["f", "f"]
    assert report["functions"] == [{"name": "my.f", "nodes": {"before": 4, "after": 2}}]
    assert "transpose_unary" in {rule["name"].partition("[")[0].partition(".")[0] for rule in report["rules"]}


def test_what_a_function_calls_is_optimized_too(tmp_path: Path) -> None:
    outer = f"{OWN} h (a) => (r) {{ b = Relu(a) c = Relu(b) d = my.f(c) r = Add(d, d) }}"
    made, _ = optimized(f"{HEAD} => (float[2, 3] y, float[4, 5] z) {{ y = my.h(x) z = Relu(w) }} {outer} {TURNED}", tmp_path)
    assert ops(made)["f"] == ["Exp", "Neg"] and ops(made)["h"].count("Relu") == 1 and "f" in ops(made)["h"]


def test_constants_inside_stay_inside(tmp_path: Path) -> None:
    folded = f"{OWN} f (a) => (r) {{ one = Constant<value = float {{1}}>() two = Add(one, one) t = Mul(a, two) r = Mul(t, two) }}"
    made, _ = optimized(f"{HEAD} => (float[2, 3] y, float[4, 5] z) {{ y = my.f(x) z = my.f(w) }} {folded}", tmp_path)
    assert sorted(ops(made)["f"]) == ["Constant", "Mul"] and not made.graph.initializer


TWO = "float[2, 3] y, float[4, 5] z"
IF = "y = If(c) <then_branch = t () => (float[2, 3] p) { p = my.f(x) }, else_branch = e () => (float[2, 3] q) { q = Neg(x) }>"
BOTH = f"=> ({TWO}) {{ y = my.f(x) z = my.f(w) }}"
SLOPED = f"{OWN} f <k: float = 0.25> (a) => (r) {{ t = Relu(a) u = Relu(t) v = Neg(u) r = LeakyRelu<alpha: float = @k>(v) }}"


@pytest.mark.parametrize(("given", "slope"), [("", 0.25), ("<k = 0.5>", 0.5)])
def test_attributes_that_all_calls_give_are_known_inside(given: str, slope: float, tmp_path: Path) -> None:
    made, report = optimized(f"{HEAD} => ({TWO}) {{ y = my.f{given}(x) z = my.f{given}(w) }} {SLOPED}", tmp_path)
    assert ops(made)["f"].count("Relu") == 1 and report["functions"][0]["nodes"]["after"] < 4
    assert not any(attribute.ref_attr_name for node in made.functions[0].node for attribute in node.attribute)
    assert [attribute.f for node in made.functions[0].node for attribute in node.attribute if attribute.name == "alpha"] == [slope]


def test_attributes_are_handed_on(tmp_path: Path) -> None:
    """The inner function has those of the outer one's calls; one without a value leaves its node to the default."""
    outer = f"{OWN} h <k: float, l> (a) => (r) {{ b = Relu(a) c = Relu(b) r = my.f<k: float = @k, m: float = @l>(c) }}"
    inner = f"{OWN} f <k, m> (a) => (r) {{ t = Neg(a) u = Neg(t) v = LeakyRelu<alpha: float = @k>(u) r = Elu<alpha: float = @m>(v) }}"
    text = f"{HEAD} => ({TWO}) {{ y = my.h<k = 0.5>(x) z = Neg(w) }} {outer.replace('k: float, l', 'k, l')} {inner}"
    made, report = optimized(text, tmp_path)
    assert {each["name"] for each in report["functions"]} == {"my.h", "my.f"} and not report["functions_as_they_came"]
    assert ops(made)["h"].count("Relu") == 1 and "Neg" not in ops(made)["f"]


LOOP = """y = Loop(n, c, x) <body = t (int64 i, bool k, float[2, 3] v) => (bool l, float[2, 3] p) {
    l = Identity(k) s = Transpose<perm = [1, 0]>(v) q = my.f(s) p = Transpose<perm = [1, 0]>(q) }>"""
NESTED = """y = If(c) <then_branch = t () => (float[2, 3] p) {
        p = If(c) <then_branch = t2 () => (float[2, 3] p2) { p2 = my.f(x) }, else_branch = e2 () => (float[2, 3] q2) { q2 = Abs(x) }>
    }, else_branch = e () => (float[2, 3] q) { q = Neg(x) }>"""


@pytest.mark.parametrize("body", [IF, NESTED, "n = Constant<value = int64 {2}>() " + LOOP])
def test_calls_in_bodies_have_types(body: str, tmp_path: Path) -> None:
    text = f'<ir_version: 9, opset_import: ["my": 1, "": 19]> g (float[2, 3] x, bool c) => (float[2, 3] y) {{ {body} }} {TURNED}'
    made, report = optimized(text, tmp_path)
    assert ops(made) == {"f": ["Exp", "Neg"]} and not report["functions_as_they_came"]


def test_what_a_body_of_a_function_calls_has_types(tmp_path: Path) -> None:
    outer = f"{OWN} h (c, x) => (y) {{ {IF} }}"
    text = '<ir_version: 9, opset_import: ["my": 1, "": 19]> g (float[2, 3] x, bool c) => (float[2, 3] y) { y = my.h(c, x) }'
    made, report = optimized(f"{text} {outer} {TURNED}", tmp_path)
    assert ops(made)["f"] == ["Exp", "Neg"]
    assert report["functions_as_they_came"] == [{"name": "my.h", "reason": "no smaller one was found"}]


RANKS = "s = Constant<value_ints = [6]>() v = Reshape(x, s) y = my.f(x) z = my.f(v)"
UNRANKED = """two = Constant<value_ints = [2, 3]>() u = If(c) <
    then_branch = t () => (float[1, 2, 3] p) { o = Constant<value_ints = [0]>() p = Unsqueeze(x, o) },
    else_branch = e () => (float[2, 3] q) { q = Identity(x) }>"""
STAY = {
    "its input `a` is of several ranks": (
        f"=> (float[2, 3] y, float[6] z) {{ {RANKS} }}",
        f"{OWN} f (a) => (r) {{ t = Relu(a) u = Relu(t) r = Relu(u) }}",
    ),
    "its calls give it other attributes": (f"=> ({TWO}) {{ y = my.f<k = 0.5>(x) z = my.f(w) }}", SLOPED),
    "its input `a` is of several element types": (
        "=> (float[2, 3] y, double[4, 5] z) { v = Cast<to = 11>(w) y = my.f(x) z = my.f(v) }",
        f"{OWN} f (a) => (r) {{ t = Relu(a) u = Relu(t) r = Relu(u) }}",
    ),
    "a call leaves an input out": (
        f"=> ({TWO}) {{ y = my.f(x) z = my.f(w) }}",
        f"{OWN} f (a, b) => (r) {{ t = Relu(a) u = Relu(t) r = Clip(u, b) }}",
    ),
    "nothing calls it": (f"=> ({TWO}) {{ y = Neg(x) z = Abs(w) }}", TURNED),
    "the type of its input `a` is not known in a call": (
        f"=> (float[2, 3] y, float[4, 5] z) {{ n = NonZero(x) k = ReduceMax<keepdims = 0>(n) c = Greater(k, k) {UNRANKED} v = my.f(u)"
        " y = Reshape(v, two) z = my.f(w) }",
        TURNED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", STAY)
def test_what_has_no_one_type_stays_as_it_came_and_says_why(reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, function = STAY[reason]
    text = f"{HEAD} {model} {function}"
    made, report = optimized(text, tmp_path)
    given = onnx.parser.parse_model(text)
    assert ops(made)["f"] == ops(given)["f"]
    assert {"name": "my.f", "reason": reason} in report["functions_as_they_came"]
    show_optimized(report)
    assert f"my.f stays as it came: {reason}" in capsys.readouterr().out.replace("\n", " ")


def test_what_stays_hides_the_types_of_what_it_calls(tmp_path: Path) -> None:
    outer = f"{OWN} h <k: float> (a) => (r) {{ b = my.f(a) r = LeakyRelu<alpha: float = @k>(b) }}".replace("<k: float>", "<k>")
    made, report = optimized(f"{HEAD} => ({TWO}) {{ y = my.h<k = 0.5>(x) z = my.h<k = 0.25>(w) }} {outer} {TURNED}", tmp_path)
    assert len(ops(made)["f"]) == 4 and not report["functions"]
    assert [each["name"] for each in report["functions_as_they_came"]] == ["my.h", "my.f"]


def test_a_certificate_leaves_them_alone_and_says_so(tmp_path: Path) -> None:
    """It speaks of the nodes that are written, and not of a search inside."""
    text = f"{HEAD} {BOTH} {TURNED}"
    made, report = optimized(text, tmp_path, certificate=True)
    assert len(ops(made)["f"]) == 4 and report["functions"] == []
    assert report["functions_as_they_came"] == [{"name": "my.f", "reason": CERTIFIED}]
    assert report["certificate"]["ok"]


def test_rules_can_be_left_out(tmp_path: Path) -> None:
    text = f"{HEAD} => (float[2, 3] y, float[4, 5] z) {{ y = my.f(x) z = my.f(w) }} {TURNED}"
    made, _ = optimized(text, tmp_path, disable_rules=["*transpose*"])
    assert len(ops(made)["f"]) == 4
