"""CHLO: client-level ops that have no StableHLO primitive, as elementwise ops of the hub.

Source: https://openxla.org/stablehlo/generated/chlo. `is_nan` is ours: CHLO tests for infinities only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from coset.dialects import hub_types as rules
from coset.dialects.hub_scalars import lifted
from coset.dialects.special import complementary_error_function, error_function
from coset.ir.op import Op, register
from coset.ir.types import Type

_FC = "float complex"
_TABLE: tuple[tuple[str, str, Callable[..., object], str], ...] = (
    ("erf", "float", error_function, "The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to operand."),
    ("erfc", "float", complementary_error_function, "1 - erf(operand), accurate for large operands."),
    ("asin", _FC, np.arcsin, "The inverse sine, -pi/2 to pi/2; NaN outside -1..1."),
    ("acos", _FC, np.arccos, "The inverse cosine, 0 to pi; NaN outside -1..1."),
    ("atan", _FC, np.arctan, "The inverse tangent, -pi/2 to pi/2."),
    ("sinh", _FC, np.sinh, "The hyperbolic sine."),
    ("cosh", _FC, np.cosh, "The hyperbolic cosine."),
    ("asinh", _FC, np.arcsinh, "The inverse hyperbolic sine."),
    ("acosh", _FC, np.arccosh, "The inverse hyperbolic cosine; NaN below 1."),
    ("atanh", _FC, np.arctanh, "The inverse hyperbolic tangent; NaN outside -1..1."),
)
_PREDICATES: tuple[tuple[str, Callable[..., object], str], ...] = (
    ("is_nan", np.isnan, "True for NaN."),
    ("is_inf", np.isinf, "True for either infinity."),
)


def _op(name: str, infer: Callable[..., Type], function: Callable[..., object], document: str) -> Op:
    full = f"chlo.{name}"
    source = f"https://openxla.org/stablehlo/generated/chlo#chlo{name}_chlo{name.replace('_', '')}op"
    return register(Op(full, partial(infer, full), lifted(function), operands=("operand",), traits=frozenset({"elementwise"}),
                       source=source, document=document))  # fmt: skip


for _name, _classes, _function, _text in _TABLE:
    _op(_name, partial(rules.pointwise, names=("operand",), classes=_classes), _function, _text)
for _name, _function, _text in _PREDICATES:
    _op(_name, partial(rules.predicate, classes="float"), _function, _text)
