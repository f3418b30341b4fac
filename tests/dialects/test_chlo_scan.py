"""CHLO's scan: what it computes, the loop that defines it, and MLIR's text of it in and out."""

from __future__ import annotations

from typing import Any

import hub_regions_cases  # noqa: F401  (fills CASES)
import jax
import numpy as np
import pytest
from hub_cases import BINDING, Case, cases
from hypothesis import HealthCheck, given, settings

from coset.dialects.hub.chlo_scan import SCAN, as_loop, scan_term
from coset.dialects.hub.terms import splat
from coset.ir.dims import symbol
from coset.ir.errors import TypeRuleError
from coset.ir.evaluate import evaluate, evaluate_program
from coset.ir.term import Term, get, input_term, make
from coset.ir.types import F32, TupleType, tensor

RANDOM = np.random.default_rng(5)


def call(op: str, *terms: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{op}", terms, attributes)


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases(SCAN))
def test_the_scan_is_the_loop_that_defines_it(case: Case) -> None:
    feed = {f"x{i}": array for i, array in enumerate(case.arrays)}
    loop = as_loop(case.term)
    assert loop.type == case.term.type
    ours, theirs = case.value(), evaluate([loop], feed, binding=BINDING)[0]
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (ours, theirs)), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_a_recurrence_is_jax_s(dimension: int, reverse: bool) -> None:
    x, decay = RANDOM.normal(size=(3, 4, 5)).astype("f4"), RANDOM.normal(size=(3, 4, 5)).astype("f4")
    shape = tuple(size for axis, size in enumerate(x.shape) if axis != dimension)

    def body(a: Term, d: Term, carry: Term) -> list[Term]:
        after = call("add", a, call("multiply", carry, call("tanh", d)))
        return [call("reduce", after, dimensions=(0,), combiner="maximum") if dimension < 2 else after, after]

    term = scan_term([input_term("x", tensor(F32, *x.shape)), input_term("d", tensor(F32, *x.shape))], [splat(0.5, F32, shape)], body,
                     dimension, is_reverse=reverse)  # fmt: skip
    ours = evaluate([term], {"x": x, "d": decay})[0]

    def step(carry: Any, given: Any) -> Any:
        after = given[0] + carry * jax.numpy.tanh(given[1])
        return after, after.max(axis=0) if dimension < 2 else after

    lines = (np.moveaxis(x, dimension, 0), np.moveaxis(decay, dimension, 0))
    last, outputs = jax.lax.scan(step, jax.numpy.full(shape, 0.5, "f4"), lines, reverse=reverse)
    np.testing.assert_allclose(ours[1], last, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours[0], np.moveaxis(np.asarray(outputs), 0, dimension), rtol=1e-5, atol=1e-6)
    assert isinstance(term.type, TupleType)


TEXT = """
func.func @main(%x: tensor<2x?xf32>, %s: tensor<2xf32>) -> (tensor<2x?xf32>, tensor<2xf32>) {
  %t = stablehlo.constant dense<2.0> : tensor<2xf32>
  %h = stablehlo.multiply %s, %t : tensor<2xf32>
  %r:2 = "chlo.scan"(%x, %h) <{dimension = 1 : i64, is_reverse = true, operandSegmentSizes = array<i32: 1, 1>,
                              resultSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%a: tensor<2xf32>, %c: tensor<2xf32>):
      %k = stablehlo.constant dense<2.0> : tensor<2xf32>
      %u = stablehlo.multiply %c, %k : tensor<2xf32>
      %v = stablehlo.add %u, %a : tensor<2xf32>
      stablehlo.return %u, %v : tensor<2xf32>, tensor<2xf32>
  }) : (tensor<2x?xf32>, tensor<2xf32>) -> (tensor<2x?xf32>, tensor<2xf32>)
  return %r#0, %r#1 : tensor<2x?xf32>, tensor<2xf32>
}
"""


def test_text_comes_in_and_goes_out_and_is_run() -> None:
    """The body sees no constant from outside, although the program has an equal one."""
    pytest.importorskip("torch_mlir")
    from coset.backends.stablehlo_interpreter import StablehloInterpreter
    from coset.frontends.stablehlo.program import import_stablehlo
    from coset.lowering.stablehlo.module import print_stablehlo

    program = import_stablehlo(TEXT)
    (scan,) = [term for term in program.terms() if term.op is SCAN]
    assert len(scan.operands) == 2 and scan.attribute("is_reverse")
    again = import_stablehlo(print_stablehlo(program))
    x, s = (RANDOM.integers(-3, 4, shape).astype("f4") for shape in ((2, 5), (2,)))
    carry, rows = 2 * s, []
    for i in reversed(range(5)):
        rows.insert(0, carry * 2)
        carry = rows[0] + x[:, i]
    wanted = [np.stack(rows, 1), carry]
    (size,) = program.symbols()
    with StablehloInterpreter() as interpreter:
        foreign = interpreter.run(print_stablehlo(program, binding={size: 5}), [x, s])
    for found in (evaluate_program(p, dict(zip((t.attribute("name") for t in p.inputs), (x, s), strict=True))) for p in (program, again)):
        for a, b, c in zip(found, wanted, foreign, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, c)


X, C = input_term("x", tensor(F32, symbol("N"), 3)), input_term("c", tensor(F32, 3))


def test_dims_are_symbolic() -> None:
    term = scan_term([X], [C], lambda x, c: [call("add", x, c)] * 2, 0)
    assert str(term.type) == "(f32[N, 3], f32[3])"
    assert as_loop(term).type == term.type
    assert get(term, 1).type == C.type


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: scan_term([X], [C], lambda x, c: [c], 2), "`dimension` of `chlo.scan`"),
        (lambda: scan_term([X], [C], lambda x, c: [call("compare", x, c, direction="LT")], 0), "the body of `chlo.scan` must give"),
        (lambda: scan_term([X, C], [C], lambda x, y, c: [c], 0), "must agree in dim 0"),
        (lambda: scan_term([], [C], lambda c: [c], 0, size=3), "would scan nothing"),
        (lambda: scan_term([], [C], lambda c: [c, c], 0), "`size` of `chlo.scan` is a number of steps"),
        (lambda: scan_term([X], [C], lambda x, c: [c], 0, size=4), "`size` of `chlo.scan` is a number of steps"),
    ],
)  # fmt: skip
def test_what_is_no_scan_is_refused(build: Any, message: str) -> None:
    with pytest.raises(TypeRuleError, match=message):
        build()
