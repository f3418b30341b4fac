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
KEPT = {
    "of other ranks": (
        f"{HEAD} => (float[2, 3] y, float[6] z) {{ s = Constant<value_ints = [6]>() v = Reshape(x, s) y = my.f(x) z = my.f(v) }}",
        f"{OWN} f (a) => (r) {{ t = Relu(a) u = Relu(t) r = Relu(u) }}",
    ),
    "with an attribute": (
        f"{HEAD} => ({TWO}) {{ y = my.f<k = 0.5>(x) z = my.f(w) }}",
        f"{OWN} f <k: float = 0.25> (a) => (r) {{ t = Relu(a) u = Relu(t) r = LeakyRelu<alpha: float = @k>(u) }}",
    ),
    "in a branch": (
        f'<ir_version: 9, opset_import: ["my": 1, "": 19]> g (float[2, 3] x, bool c) => (float[2, 3] y) {{ {IF} }}',
        TURNED,
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_has_no_one_type_stays_as_it_came(name: str, tmp_path: Path) -> None:
    model, function = KEPT[name]
    made, report = optimized(f"{model} {function}", tmp_path)
    given = onnx.parser.parse_model(f"{model} {function}")
    assert ops(made) == ops(given) and report["functions"] == []


def test_a_certificate_leaves_them_alone(tmp_path: Path) -> None:
    """It speaks of the nodes that are written, and not of a search inside."""
    text = f"{HEAD} => (float[2, 3] y, float[4, 5] z) {{ y = my.f(x) z = my.f(w) }} {TURNED}"
    made, report = optimized(text, tmp_path, certificate=True)
    assert len(ops(made)["f"]) == 4 and report["functions"] == []


def test_rules_can_be_left_out(tmp_path: Path) -> None:
    text = f"{HEAD} => (float[2, 3] y, float[4, 5] z) {{ y = my.f(x) z = my.f(w) }} {TURNED}"
    made, _ = optimized(text, tmp_path, disable_rules=["*transpose*"])
    assert len(ops(made)["f"]) == 4
