"""Bodies of control flow that stays are optimized inside, each as a program of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import coset
from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.comparing.refused import Refused
from coset.console.optimized import show_optimized
from coset.rules.lock import NAME, Locked, save_lock, text_hash
from tests.coset.test_planted_rule import PLANTED, rule_of

HEAD = '<ir_version: 9, opset_import: ["": 19]>'
X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
ONE = "<float one = {1}>"
WASTE = "{0}a = Mul({1}, one) {0}b = Neg({0}a) {0}c = Neg({0}b)"  # nothing
IF = f"""{HEAD} g (float[3, 4] x, bool c) => (float[3, 4] y) {ONE} {{
  y = If (c) <then_branch = t () => (float[3, 4] tr) {{ {WASTE.format("t", "x")} td = Relu(tc) tr = Relu(td) }},
              else_branch = e () => (float[3, 4] er) {{ er = Sigmoid(x) }}>
}}"""
LOOP = f"""{HEAD} g (float[3, 4] x, int64 n) => (float[3, 4] y) {ONE} {{
  y = Loop (n, , x) <body = b (int64 i, bool ci, float[3, 4] v) => (bool co, float[3, 4] vo) {{
    co = Identity(ci) {WASTE.format("l", "v")} vo = Add(lc, x) }}>
}}"""
SCAN = f"""{HEAD} g (float[4] s, float[3, 4] x) => (float[4] z, float[3, 4] y) {ONE} {{
  z, y = Scan <num_scan_inputs = 1, body = b (float[4] u, float[4] e) => (float[4] so, float[4] o) {{
    {WASTE.format("k", "e")} so = Add(kc, u) o = Identity(so) }}> (s, x)
}}"""
NESTED = f"""{HEAD} g (float[3, 4] x, bool c, int64 n) => (float[3, 4] y) {ONE} {{
  y = Loop (n, , x) <body = b (int64 i, bool ci, float[3, 4] v) => (bool co, float[3, 4] vo) {{
    co = Identity(ci)
    vo = If (c) <then_branch = t () => (float[3, 4] tr) {{ {WASTE.format("t", "v")} tr = Add(tc, x) }},
                 else_branch = e () => (float[3, 4] er) {{ {WASTE.format("e", "v")} er = Sub(ec, x) }}> }}>
}}"""
FEEDS: dict[str, list[dict[str, Any]]] = {
    IF: [{"x": X, "c": np.array(c)} for c in (True, False)],
    LOOP: [{"x": X, "n": np.array(n)} for n in (0, 3)],
    SCAN: [{"s": X[0], "x": X}],
    NESTED: [{"x": X, "c": np.array(c), "n": np.array(n)} for c in (True, False) for n in (0, 2)],
}


def optimized(text: str, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The model that is written, and the report; outputs are those of the original."""
    given = onnx.parser.parse_model(text)
    found = coset.optimize(given, **options)
    made = onnx.load(found._draft.path)
    onnx.checker.check_model(made)
    one, other = (Session(each.SerializeToString()) for each in (given, made))
    for feed in FEEDS[text]:
        for name, value in one.run(feed).items():
            np.testing.assert_allclose(other.run(feed)[name], value, rtol=1e-6)
    return made, dict(found.report)


def ops(graph: Any) -> list[str]:
    """The ops of a graph and of all bodies in it."""
    found = []
    for node in graph.node:
        found += [node.op_type, *(op for each in node.attribute if each.type == onnx.AttributeProto.GRAPH for op in ops(each.g))]
    return found


@pytest.mark.parametrize("text", FEEDS, ids=["if", "loop", "scan", "nested"])
@pytest.mark.parametrize("numerics", ["exact", "reassociates"])
def test_rules_look_into_bodies(text: str, numerics: str) -> None:
    made, report = optimized(text, numerics=numerics)
    assert not {"Mul", "Neg"} & set(ops(made.graph)), ops(made.graph)
    assert {"multiply_one", "double_negate"} <= {rule["name"] for rule in report["rules"]}
    assert all(each["nodes"]["after"] < each["nodes"]["before"] for each in report["bodies"]) and report["bodies"]
    assert report["nodes"]["after"] == len(ops(made.graph)) < report["nodes"]["before"]


def test_the_summary_names_bodies(capsys: pytest.CaptureFixture[str]) -> None:
    show_optimized(optimized(IF)[1])
    assert "body       t: 5 nodes -> 1" in capsys.readouterr().out


def test_what_would_hold_a_search_up_is_left_out_of_a_certified_job(tmp_path: Path) -> None:
    """No step of a certificate speaks of what is inside a node."""
    path, out, proof = (tmp_path / name for name in ("in.onnx", "out.onnx", "out.proof"))
    onnx.save(onnx.parser.parse_model(LOOP), path)
    assert run(["optimize", str(path), "-o", str(out), "--certificate", str(proof)]) == 0
    assert run(["verify", str(proof), str(path), str(out)]) == 0
    assert ops(onnx.load(out).graph).count("Neg") == 2


def test_a_false_rule_does_not_change_a_body(tmp_path: Path) -> None:
    """A body that is entered on no drawn input is compared by itself: what differs is not handed out."""
    path = tmp_path / "planted.rules"
    path.write_text(PLANTED)
    save_lock(tmp_path / NAME, {"planted": Locked(text_hash(rule_of(path).text), "proved", "normal forms, 8 instances of symbolic sizes")})
    never = f"""{HEAD} g (float[3, 4] x) => (float[3, 4] y) <float far = {{3e38}}> {{
      m = ReduceMax <keepdims = 0> (x) s = Sin(m) c = Greater(s, far)
      y = If (c) <then_branch = t () => (float[3, 4] tr) {{ ta = Tanh(x) tr = Tanh(ta) }},
                  else_branch = e () => (float[3, 4] er) {{ er = Neg(x) }}>
    }}"""
    FEEDS[never] = [{"x": X}]
    with pytest.raises(Refused, match="rule `planted` breaks the program"):
        optimized(never, rules=[path])
