"""Models that draw random numbers are compared with seeds: both draw the same, and nothing else is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import coset
from coset.backends.onnxruntime import Session
from coset.comparing.check import Oracle
from coset.comparing.seeds import with_seeds
from coset.frontends.onnx.model import import_model

NUMBERS = "<float r = {0.5}, bool on = {1}, bool off = {0}, int64 five = {5}, int64 zero = {0}>"


def model(body: str, more: str = "") -> Any:
    opsets = '"" : 17, "own" : 1, "ai.onnx.ml" : 3'
    text = f"<ir_version: 8, opset_import: [{opsets}]> g (float[4,8] x, bool c) => (float[4,8] y) {NUMBERS} {{ {body} }} {more}"
    return onnx.parser.parse_model(text)


BRANCHES = """b = If(c) <then_branch = one () => (float[4,8] o) { n = RandomNormalLike(a) o = Add(a, n) },
              else_branch = two () => (float[4,8] p) { p = Identity(a) }>"""
DRAWN = {
    "normal": "b = RandomNormalLike(a) y = Add(a, b)",
    "uniform": "b = RandomUniform<shape = [4, 8]>() y = Add(a, b)",
    "dropout": "y = Dropout(a, r, on)",
    "dropout, if asked for": "y = Dropout(a, r, c)",
    "two": "b = RandomNormalLike(a) d = RandomNormalLike(a) y = Sub(b, d)",
    "one with a seed": "b = RandomNormalLike<seed = 3.0>(a) d = RandomUniformLike(a) y = Sub(b, d)",
    "dropout, switched off by what is computed": "t = Not(on) d = Dropout(a, r, t) n = RandomNormalLike(d) y = Dropout(n, r, on)",
    "in a branch": BRANCHES + " y = Neg(b)",
    "dropout, switched off by a shape": "s = Size(a) t = Less(s, five) d = Dropout(a, r, t) y = RandomNormalLike(d)",
    "dropout, switched off by a loop": (
        "t = Loop(five, on, on) <body = turn (int64 i, bool k, bool p) => (bool l, bool q) { l = Identity(k) q = Not(p) }>"
        " d = Dropout(a, r, t) n = RandomNormalLike(d) y = Add(n, d)"
    ),
    "dropout, switched off by a node that is kept": (
        "l = ai.onnx.ml.LabelEncoder<keys_int64s = [5], values_int64s = [3]>(five) t = Equal(l, five)"
        " d = Dropout(a, r, t) n = RandomNormalLike(d) y = Add(n, d)"
    ),
    "a branch that is never taken": (
        "b = If(on) <then_branch = one () => (float[4,8] o) { o = Neg(a) },"
        " else_branch = two () => (float[4,8] p) { p = RandomNormalLike(a) }> n = RandomNormalLike(b) y = Add(n, b)"
    ),
    "dropout in a branch, switched off from outside": (
        "t = Not(on) b = If(c) <then_branch = one () => (float[4,8] o) { d = Dropout(a, r, t) o = Neg(d) },"
        " else_branch = two () => (float[4,8] p) { p = Abs(a) }> n = RandomNormalLike(b) y = Add(n, b)"
    ),
    "dropout in a branch, switched off there": (
        "b = If(c) <then_branch = one () => (float[4,8] o) { t = Not(on) d = Dropout(a, r, t) u = Neg(d) v = Neg(u) o = Neg(v) },"
        " else_branch = two () => (float[4,8] p) { p = Abs(a) }> n = RandomNormalLike(b) y = Add(n, b)"
    ),
    "dropout beside a sequence in a branch": (
        "q = If(c) <then_branch = one () => (seq(float[4,8]) o)"
        " { t = Not(on) d = Dropout(a, r, t) u = Neg(d) v = Neg(u) o = SequenceConstruct(v) },"
        " else_branch = two () => (seq(float[4,8]) p) { p = SequenceConstruct(a) }> b = SequenceAt(q, zero)"
        " n = RandomNormalLike(b) y = Add(n, b)"
    ),
    "dropout, if a draw says so": "m = RandomUniformLike(r) t = Greater(m, r) d = Dropout(a, r, t) n = RandomNormalLike(d) y = Add(n, d)",
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_draws_is_optimized_and_compared(name: str) -> None:
    optimized = coset.optimize(model(f"e = Relu(x) a = Relu(e) {DRAWN[name]}"))
    written = onnx.load(optimized._draft.path)
    assert sum(node.op_type == "Relu" for node in written.graph.node) == 1  # one was taken away, and the draws are as many as before
    assert optimized.report["check"]["max_abs"] == 0.0


def test_nodes_that_draw_have_seeds_of_their_own() -> None:
    body = f"a = RandomNormalLike(x) b = RandomNormalLike(x) d = Dropout(b, r, off) {BRANCHES.replace('b = If', 'e = If')} y = Sub(e, d)"
    seeded = with_seeds(model(body).SerializeToString())
    assert seeded is not None
    nodes = onnx.load_from_string(seeded).graph.node
    inner = next(attribute.g.node[0] for attribute in nodes[3].attribute if attribute.name == "then_branch")
    seeds = [[attribute.f for attribute in node.attribute if attribute.name == "seed"] for node in (nodes[0], nodes[1], nodes[2], inner)]
    assert seeds == [[1.0], [2.0], [], [3.0]]
    feed = {"x": np.zeros((4, 8), np.float32), "c": np.array(True)}
    one, other = (Session(seeded).run(feed)["y"] for _ in range(2))
    assert np.array_equal(one, other) and one.std() > 0.5


def test_a_mark_is_no_seed_of_the_model_s_own() -> None:
    """Marks stand beside seeds that a model has, however large; one keeps its own."""
    body = "a = RandomNormalLike<seed = 4194304.0>(x) b = RandomNormalLike(x) d = Add(a, b) y = Neg(d)"
    seeded = with_seeds(model(body).SerializeToString())
    assert seeded is not None
    assert [[attribute.f for attribute in node.attribute] for node in onnx.load_from_string(seeded).graph.node[:2]] == [[4194304.0], [1.0]]


def test_draws_in_another_order_are_another_program(tmp_path: Path) -> None:
    body = "a = RandomNormalLike(x) b = RandomUniformLike(x) y = {}"
    paths = tmp_path / "one.onnx", tmp_path / "other.onnx"
    for path, last in zip(paths, ("Sub(a, b)", "Sub(b, a)"), strict=True):
        onnx.save(model(body.format(last)), path)
    oracle = Oracle(paths[0], import_model(paths[0]), {})
    assert oracle.compare(paths[0], exact=True).ok
    session, feed = oracle._session(paths[0]), oracle.runs[0].case.feed
    assert np.array_equal(session.run(feed)["y"], session.run(feed)["y"])  # whatever was run before
    assert not oracle.compare(paths[1], exact=False).ok


def test_functions_that_draw_are_compared_call_by_call() -> None:
    function = (
        '<domain: "own", opset_import: ["" : 17]> noisy <slope: float = 0.5> (v) => (w)'
        " { n = RandomNormalLike(v) l = LeakyRelu<alpha: float = @slope>(v) w = Add(l, n) }"  # ONNX's inliner loses the default
    )
    assert with_seeds(model("y = Relu(x)").SerializeToString()) is None
    proto = model("d = Relu(x) e = Relu(d) a = own.noisy(e) b = own.noisy(x) y = Sub(a, b)", function)
    for keep in (False, True):
        optimized = coset.optimize(proto, keep_functions=keep)
        assert optimized.report["check"]["max_abs"] == 0.0 and optimized.report["nodes"]["after"] < optimized.report["nodes"]["before"]
