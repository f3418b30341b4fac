"""Identities over finite fields: true ones hold with a stated error, false ones are seen, and what is no polynomial is refused."""

from __future__ import annotations

from typing import Any

import pytest

import coset.dialects
from coset.dialects.hub.terms import splat
from coset.ir.term import Term, input_term, make
from coset.ir.types import DTYPES, tensor
from coset.prove.fields import NoQuotient, identical

assert coset.dialects
F32 = DTYPES["f32"]


def call(name: str, *terms: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", terms, attributes)


def matmul(a: Term, b: Term) -> Term:
    return call("dot_general", a, b, lhs_batch=(), rhs_batch=(), lhs_contract=(1,), rhs_contract=(0,))


A, B, C = (input_term(name, tensor(F32, *shape)) for name, shape in (("a", (3, 4)), ("b", (4, 5)), ("c", (5, 2))))
X, Y, Z = (input_term(name, tensor(F32, 6)) for name in "xyz")
SPREAD = {"shape": (6,), "broadcast_dimensions": ()}
TRUE = {
    "association of products": (matmul(matmul(A, B), C), matmul(A, matmul(B, C))),
    "distribution": (call("multiply", X, call("add", Y, Z)), call("add", call("multiply", X, Y), call("multiply", X, Z))),
    "quotients": (call("divide", X, call("divide", Y, Z)), call("divide", call("multiply", X, Z), Y)),
    "a transposed product": (
        call("transpose", matmul(A, B), permutation=(1, 0)),
        matmul(call("transpose", B, permutation=(1, 0)), call("transpose", A, permutation=(1, 0))),
    ),
    "a sum of parts": (
        call("reduce", call("concatenate", X, Y, dimension=0), dimensions=(0,), combiner="add"),
        call("add", *(call("reduce", x, dimensions=(0,), combiner="add") for x in (X, Y))),
    ),
    "a third": (call("multiply", X, splat(0.5, F32, (6,))), call("divide", X, splat(2, F32, (6,)))),
    "a defined op": (make("chlo.square", (X,)), call("multiply", X, X)),
    "the mean of a sum of quotients": (
        call("reduce", call("divide", X, Y), dimensions=(0,), combiner="add"),
        call("negate", call("reduce", call("divide", X, call("negate", Y)), dimensions=(0,), combiner="add")),
    ),
}
FALSE = {
    "an operand swapped": (matmul(matmul(A, B), C), matmul(A, matmul(call("negate", B), C))),
    "a square of a sum": (make("chlo.square", (call("add", X, Y),)), call("add", make("chlo.square", (X,)), make("chlo.square", (Y,)))),
    "a quotient turned": (call("divide", X, Y), call("divide", Y, X)),
    "one too many": (call("add", X, X), X),
}
ATTENDED = make("kernel.library_attention", (input_term("q", tensor(F32, 2, 3, 4)),) * 3, {"precision": F32})
REFUSED = {
    "extremes": (call("maximum", X, Y), call("maximum", Y, X)),
    "roots": (call("sqrt", X), call("sqrt", X)),
    "comparisons": (call("select", call("compare", X, Y, direction="LT"), X, Y), X),
    "a product of all": (call("reduce", X, dimensions=(0,), combiner="multiply"),) * 2,
    "an operand that is absent, in a definition": (ATTENDED, ATTENDED),
    "a denominator that is 0": (call("divide", X, call("subtract", Y, Y)),) * 2,
}


@pytest.mark.parametrize("name", TRUE)
def test_a_true_identity_holds_with_a_small_error(name: str) -> None:
    found = identical(*TRUE[name])
    assert found is not None
    assert found.points == 4
    assert 0 <= found.error < 1e-15


@pytest.mark.parametrize("name", FALSE)
def test_a_false_one_is_seen(name: str) -> None:
    assert all(identical(*FALSE[name], seed=seed, points=1) is None for seed in range(20))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_polynomial_is_refused(name: str) -> None:
    with pytest.raises(NoQuotient):
        identical(*REFUSED[name])


def test_the_error_grows_with_the_degree() -> None:
    term, errors = X, []
    for _ in range(3):
        term = call("multiply", term, term)
        found = identical(term, term, points=1)
        assert found is not None
        errors.append(found.error)
    assert errors == sorted(errors)
    assert errors[2] == pytest.approx(4 * errors[0])
