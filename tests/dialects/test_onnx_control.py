"""If, Loop, Scan and the modifiers of FlexAttention against ONNX Runtime: bodies that capture, nest, end early and change shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from coset.backends.onnxruntime import Session
from coset.dialects.onnx.graphs import node_of
from coset.dialects.onnx.node import define
from coset.frontends.onnx.model import import_model
from coset.ir.evaluate import evaluate
from coset.ir.term import Term, input_term
from coset.lowering.onnx.model import lower
from coset.rules.definition import evaluate_defined
from tests.dialects.onnx_runs import assert_close


def parsed(text: str, opset: int = 21) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]>\n{text}')


def kept(program: Any) -> list[Term]:
    return [term for term in program.terms() if term.op.name == "onnx.node"]


def check(text: str, feed: dict[str, Any], *, opset: int = 21) -> list[Any]:
    """Our results, which must be ONNX Runtime's; the model is written back as it was."""
    model = parsed(text, opset)
    program = import_model(model)
    assert not [term for term in program.terms() if term.op.name == "builtin.opaque"], "a node stayed opaque"
    found = evaluate(program.roots, feed, fallback=evaluate_defined)
    expected = Session(model.SerializeToString(), level="off").run(feed)
    assert_close(found, list(expected.values()))
    again = Session(lower(program).SerializeToString(), level="off").run(feed)
    assert_close(list(again.values()), list(expected.values()))
    return found


IF = """
agraph (bool c, float[3] x, float[3] y) => (float[3] z, float[3] w)
{
  z, w = If (c) <
    then_branch = g1 () => (float[3] a, float[3] b) { a = Add (x, y)  k = Constant <value = float[3] {1., 2., 3.}> ()  b = Mul (x, k) },
    else_branch = g2 () => (float[3] a, float[3] b) { a = Sub (x, y)  b = Identity (y) }
  >
}
"""


@pytest.mark.parametrize("condition", [True, False])
def test_if_takes_one_branch(condition: bool) -> None:
    x, y = np.array([1, 2, 3], np.float32), np.array([5, 7, 9], np.float32)
    check(IF, {"c": np.array(condition), "x": x, "y": y})


TWO_COUNTS = """
agraph (bool c, float[5] x, float[5] y) => (int64[1, k] z)
{
  z = If (c) <
    then_branch = g1 () => (int64[1, l] a) { i = NonZero (x)  j = NonZero (y)  a = Concat <axis = 1> (i, j) },
    else_branch = g2 () => (int64[1, m] a) { a = NonZero (y) }
  >
}
"""


@pytest.mark.parametrize("condition", [True, False])
def test_nodes_of_a_body_count_each_for_itself(condition: bool) -> None:
    """Two results whose sizes depend on the data were once taken to have one size."""
    x, y = np.array([1, 0, 0, 1, 1], np.float32), np.array([0, 0, 0, 1, 0], np.float32)
    check(TWO_COUNTS, {"c": np.array(condition), "x": x, "y": y})


@pytest.mark.parametrize("condition", [True, False])
def test_if_of_an_unknown_condition_is_the_hubs(condition: bool) -> None:
    """Nothing is known of the operands: the definition gives `stablehlo.if`, and it means the same."""
    (term,) = kept(import_model(parsed(IF)))
    node = node_of(term, [input_term(f"x{i}", operand.type) for i, operand in enumerate(term.operands)])
    results = define(node)
    assert results is not None and results[0].operands[0].op.name == "stablehlo.if"
    x, y = np.array([1, 2, 3], np.float32), np.array([5, 7, 9], np.float32)
    feed = {"x0": np.array(condition), "x1": x, "x2": y}
    expected = [x + y, x * np.array([1, 2, 3], np.float32)] if condition else [x - y, y]
    assert_close(evaluate(results, feed, fallback=evaluate_defined), expected)


LOOP = """
agraph (int64 m, bool go, float[2] x, float[2] step) => (float[2] last, float[k, 2] all)
{
  last, all = Loop (m, go, x) <
    body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] o)
    { d = Identity (c)  f = Cast <to = 1> (i)  s = Mul (step, f)  w = Add (v, s)  o = Mul (w, w) }
  >
}
"""


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("go", [True, False])
def test_loops_that_count(count: int, go: bool) -> None:
    x, step = np.array([1, 2], np.float32), np.array([0.5, 3], np.float32)
    check(LOOP, {"m": np.array(count), "go": np.array(go), "x": x, "step": step})


EARLY = """
agraph (int64 m, float[2] x) => (float[2] last, float[k, 2] all)
{
  yes = Constant <value = bool {1}> ()
  last, all = Loop (m, yes, x) <
    body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] o)
    { w = Add (v, v)  o = Identity (w)  t = ReduceMax <keepdims = 0> (w)  bound = Constant <value = float {20.}> ()  d = Less (t, bound) }
  >
}
"""


@pytest.mark.parametrize("count", [0, 2, 10])
def test_loops_that_end_early(count: int) -> None:
    found = check(EARLY, {"m": np.array(count), "x": np.array([1, 2], np.float32)})
    assert len(found[1]) == min(count, 4)


def test_loops_without_a_count() -> None:
    text = """
agraph (float[2] x) => (float[2] last)
{
  yes = Constant <value = bool {1}> ()
  last = Loop (, yes, x) <
    body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w)
    { w = Add (v, v)  t = ReduceMax <keepdims = 0> (w)  bound = Constant <value = float {100.}> ()  d = Less (t, bound) }
  >
}
"""
    check(text, {"x": np.array([1, 2], np.float32)})


def test_loops_whose_values_grow() -> None:
    text = """
agraph (int64 m, bool go, float[1] x) => (float[n] last)
{
  last = Loop (m, go, x) <
    body = b (int64 i, bool c, float[n] v) => (bool d, float[k] w)
    { d = Identity (c)  f = Cast <to = 1> (i)  z = Constant <value_ints = [0]> ()  e = Unsqueeze (f, z)  w = Concat <axis = 0> (v, e) }
  >
}
"""
    check(text, {"m": np.array(4), "go": np.array(True), "x": np.array([7], np.float32)})


def test_bodies_nest_and_capture_from_every_level() -> None:
    text = """
agraph (int64 m, bool go, float[2] x, float[2] far) => (float[2] last)
{
  last = Loop (m, go, x) <
    body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w)
    {
      d = Identity (c)
      odd = Cast <to = 9> (i)
      near = Mul (v, far)
      w = If (odd) <
        then_branch = g1 () => (float[2] r) { p = Add (near, far)  r = Sub (p, v) },
        else_branch = g2 () => (float[2] r) { r = Loop (m, c, near) <
            body = b2 (int64 j, bool c2, float[2] u) => (bool d2, float[2] t) { d2 = Identity (c2)  t = Add (u, far) } > }
      >
    }
  >
}
"""
    feed = {"m": np.array(3), "go": np.array(True), "x": np.array([1, 2], np.float32), "far": np.array([0.5, -1], np.float32)}
    check(text, feed)


@pytest.mark.parametrize("directions", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize(("axis_in", "axis_out"), [(0, 0), (1, 1), (-1, -1)])
def test_scans(directions: tuple[int, int], axis_in: int, axis_out: int) -> None:
    shape = [2, 2]
    shape[axis_in] = 3
    text = f"""
agraph (float[2] s, float[{shape[0]},{shape[1]}] x, float[2] k) => (float[2] last, float[p, q] all)
{{
  last, all = Scan (s, x) <num_scan_inputs = 1, scan_input_directions = [{directions[0]}], scan_output_directions = [{directions[1]}],
    scan_input_axes = [{axis_in}], scan_output_axes = [{axis_out}],
    body = b (float[2] v, float[2] e) => (float[2] w, float[2] o) {{ a = Mul (v, k)  w = Add (a, e)  o = Sub (w, v) }}
  >
}}
"""
    x = np.arange(6, dtype=np.float32).reshape(shape)
    check(text, {"s": np.array([1, 2], np.float32), "x": x, "k": np.array([0.5, 2], np.float32)})


def test_weights_and_shapes_inside_a_body() -> None:
    text = """
agraph (bool c, float[b, 4] x) => (float[p, q] z)
{
  z = If (c) <
    then_branch = g1 () => (float[p, q] r)
    <float[4, 2] w = {1., 2., 3., 4., 5., 6., 7., 8.}>
    { h = MatMul (x, w)  s = Shape <start = 0, end = 1> (x)  one = Constant <value_ints = [2]> ()
      t = Concat <axis = 0> (s, one)  r = Reshape (h, t) },
    else_branch = g2 () => (float[p, q] r) { two = Constant <value = float {2.}> ()  r = Mul (x, two) }
  >
}
"""
    for condition in (True, False):
        check(text, {"c": np.array(condition), "x": np.arange(12, dtype=np.float32).reshape(3, 4)})


def test_a_body_that_draws_keeps_its_node_opaque() -> None:
    text = """
agraph (bool c, float[3] x) => (float[3] z)
{
  z = If (c) <
    then_branch = g1 () => (float[3] r) { r = RandomNormalLike (x) },
    else_branch = g2 () => (float[3] r) { r = Identity (x) }
  >
}
"""
    program = import_model(parsed(text))
    assert [term.op.name for term in program.terms() if term.op.has("foreign")] == ["builtin.opaque"]
