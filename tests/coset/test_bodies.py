"""Bodies of control flow that stays are optimized inside, each as a program of its own: of ONNX and of StableHLO."""

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
from coset.dialects.hub.region_terms import if_term, while_term
from coset.dialects.hub.terms import broadcast
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.constants import constant_of
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make, topological
from coset.ir.types import BOOL, F32, I32, tensor
from coset.job.job import Job
from coset.job.machine import find_target
from coset.lowering.stablehlo.module import write_stablehlo
from coset.optimizing import body_search
from coset.rules.lock import NAME, Locked, save_lock, text_hash
from tests.coset.test_planted_rule import PLANTED, rule_of

HEAD = '<ir_version: 9, opset_import: ["": 19]>'
LIMITS = coset.Limits(seconds=200)  # bodies share them, and other tests run beside these
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
    found = coset.optimize(given, limits=LIMITS, **options)
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


@pytest.mark.parametrize("nested", [False, True])
def test_a_false_rule_does_not_change_a_body(tmp_path: Path, nested: bool) -> None:
    """A body that is entered on no drawn input is compared by itself: what differs is not handed out."""
    path = tmp_path / "planted.rules"
    path.write_text(PLANTED)
    save_lock(tmp_path / NAME, {"planted": Locked(text_hash(rule_of(path).text), "proved", "normal forms, 8 instances of symbolic sizes")})
    inner = "ta = Tanh(x) tr = Tanh(ta)"
    if nested:
        other = "else_branch = v () => (float[3, 4] vr) { vr = Exp(x) }"
        branches = f"then_branch = u () => (float[3, 4] ur) {{ {inner.replace('tr', 'ur')} }}, {other}"
        inner = f"tr = If (c) <{branches}>"
    never = f"""{HEAD} g (float[3, 4] x) => (float[3, 4] y) <float far = {{3e38}}> {{
      m = ReduceMax <keepdims = 0> (x) s = Sin(m) c = Greater(s, far)
      y = If (c) <then_branch = t () => (float[3, 4] tr) {{ {inner} }},
                  else_branch = e () => (float[3, 4] er) {{ er = Neg(x) }}>
    }}"""
    FEEDS[never] = [{"x": X}]
    with pytest.raises(Refused, match="rule `planted` breaks the program"):
        optimized(never, rules=[path])


def hub(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


def waste(x: Term, one: Term) -> Term:
    return hub("negate", hub("negate", hub("multiply", x, one)))


def module(folder: Path) -> Path:
    """A loop that carries a constant, and a branch in which there is an if: the same waste in each."""
    x, n, c = input_term("x", tensor(F32, 4, 8)), input_term("n", tensor(I32)), input_term("c", tensor(BOOL))
    zero, step, three, one = (constant(constant_of(each)) for each in (np.int32(0), np.int32(1), np.int32(3), np.float32(1)))
    ones = broadcast(one, x.tensor.dims, ())
    turned = while_term(
        (hub("minimum", n, three), x, ones), lambda i, v, o: hub("compare", i, zero, direction="GT"),
        lambda i, v, o: (hub("subtract", i, step), hub("tanh", waste(v, o)), o),
    )  # fmt: skip
    chosen = if_term(
        c, (x, c), lambda v, p: if_term(p, (v,), lambda w: hub("tanh", waste(w, ones)), lambda w: waste(w, ones)),
        lambda v, p: hub("exponential", waste(v, ones)),
    )  # fmt: skip
    path = folder / "m.mlir"
    write_stablehlo(Program((x, n, c), (("y", get(turned, 1)), ("z", chosen))), path)
    return path


def hub_ops(roots: Any) -> set[str]:
    """The ops of terms and of all bodies in them."""
    terms = list(topological(roots))
    return {term.op.name for term in terms}.union(*(hub_ops(region.results) for term in terms for region in term.regions))


def test_rules_look_into_bodies_of_stablehlo(tmp_path: Path) -> None:
    path, out = module(tmp_path), tmp_path / "out.mlir"
    found = coset.optimize(path, target="stablehlo", limits=LIMITS)
    found.save(out)
    ops = hub_ops(import_stablehlo(out).roots)
    assert not {"stablehlo.negate", "stablehlo.multiply"} & ops and {"stablehlo.while", "stablehlo.if", "stablehlo.tanh"} <= ops
    assert {each["name"] for each in found.report["bodies"]} == {"of stablehlo.while", "of stablehlo.if"}
    assert {"multiply_one", "double_negate"} <= {rule["name"] for rule in found.report["rules"]}
    assert coset.diff(path, out, time_limit=0)["ok"]


def test_a_false_rule_does_not_change_a_body_of_stablehlo(tmp_path: Path) -> None:
    path = tmp_path / "planted.rules"
    path.write_text(PLANTED.replace("tanh(tanh(x)) => tanh(x)", "negate(negate(x)) => negate(x)"))
    save_lock(tmp_path / NAME, {"planted": Locked(text_hash(rule_of(path).text), "proved", "normal forms, 8 instances of symbolic sizes")})
    with pytest.raises(Refused, match="rule `planted` breaks the program"):
        coset.optimize(module(tmp_path), target="stablehlo", limits=LIMITS, rules=[path], only_rules=["planted"])


def test_the_time_of_a_body_in_a_body_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is a second later. What is inside a search has what is left then, and a body that is none costs its time."""
    seconds = iter(range(100))
    monkeypatch.setattr(body_search.time, "perf_counter", lambda: float(next(seconds)))
    said: list[str] = []
    job = Job(None, find_target("cpu-onnxruntime"), "exact", coset.Limits(seconds=50), (), {}, said.append)
    search = body_search.BodySearch(job)
    with search.spending("outer"):  # 0
        with search.spending("inner"):
            assert search.job().limits.seconds == 49  # 1
            raise coset.CosetError("it draws numbers")
        assert search.left == 48  # 2
    assert search.left == 47  # 3
    assert said == ["body `inner` is not searched: it draws numbers"]
