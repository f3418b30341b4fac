"""CHLO: the client-level functions that StableHLO has no primitive for, as elementwise ops of the hub.

Primitive is what CHLO names as a function of the reals without an algorithm (erf, lgamma, asin ..): its meaning is the accurate
value, by NumPy or by series in f64, and a term for it would be one approximation among others. All other ops of CHLO are
definitions in `chlo.rules`. Source: https://openxla.org/stablehlo/generated/chlo. `is_nan` is ours: CHLO tests for infinities only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from coset.dialects.hub import types as rules
from coset.dialects.hub.scalars import lifted
from coset.dialects.hub.special import complementary_error_function, error_function
from coset.dialects.hub.special_gamma import bessel_i1e, digamma, inverse_error_function, log_gamma, polygamma, zeta
from coset.ir.op import Op, register
from coset.ir.types import Type

_FC = "float complex"
_TABLE: tuple[tuple[str, str, Callable[..., object], str], ...] = (
    ("erf", "float", error_function, "The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to operand."),
    ("erfc", "float", complementary_error_function, "1 - erf(operand), accurate for large operands."),
    ("erf_inv", "float", inverse_error_function, "The x with erf(x) = operand: infinite at -1 and 1, NaN outside."),
    ("lgamma", "float", log_gamma, "log |Gamma(operand)|."),
    ("digamma", "float", digamma, "The derivative of lgamma; NaN at 0, -1, -2 .."),
    ("bessel_i1e", "float", bessel_i1e, "exp(-|operand|) I1(operand): the scaled modified Bessel function of order 1."),
    ("asin", _FC, np.arcsin, "The inverse sine, -pi/2 to pi/2; NaN outside -1..1."),
    ("acos", _FC, np.arccos, "The inverse cosine, 0 to pi; NaN outside -1..1."),
    ("atan", _FC, np.arctan, "The inverse tangent, -pi/2 to pi/2."),
    ("sinh", _FC, np.sinh, "The hyperbolic sine."),
    ("cosh", _FC, np.cosh, "The hyperbolic cosine."),
    ("asinh", _FC, np.arcsinh, "The inverse hyperbolic sine."),
    ("acosh", _FC, np.arccosh, "The inverse hyperbolic cosine; NaN below 1."),
    ("atanh", _FC, np.arctanh, "The inverse hyperbolic tangent; NaN outside -1..1."),
)
_BINARY: tuple[tuple[str, tuple[str, str], Callable[..., object], str], ...] = (
    ("polygamma", ("n", "x"), polygamma, "The n-th derivative of digamma at x; NaN where n is no natural number."),
    ("zeta", ("x", "q"), zeta, "Hurwitz' zeta function: the sum of (q + n)^-x over n = 0, 1, 2 .."),
)
_PREDICATES: tuple[tuple[str, Callable[..., object], str], ...] = (
    ("is_nan", np.isnan, "True for NaN."),
    ("is_inf", np.isinf, "True for either infinity."),
)


def _op(
    name: str, infer: Callable[..., Type], function: Callable[..., object], document: str, operands: tuple[str, ...] = ("operand",)
) -> Op:
    full = f"chlo.{name}"
    source = f"https://openxla.org/stablehlo/generated/chlo#chlo{name}_chlo{name.replace('_', '')}op"
    return register(Op(full, partial(infer, full), lifted(function), operands=operands, traits=frozenset({"elementwise"}),
                       source=source, document=document))  # fmt: skip


for _name, _classes, _function, _text in _TABLE:
    _op(_name, partial(rules.pointwise, names=("operand",), classes=_classes), _function, _text)
for _name, _function, _text in _PREDICATES:
    _op(_name, partial(rules.predicate, classes="float"), _function, _text)
for _name, _operands, _function, _text in _BINARY:
    _op(_name, partial(rules.pointwise, names=_operands, classes="float"), _function, _text, _operands)
