"""ONNX's elementwise ops on import: most are definitions in `pointwise.rules`; here are those that look at values or kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from coset.dialects.hub.scalars import cast, power
from coset.dialects.hub.terms import convert, literal, numpy_broadcast, numpy_shape, splat
from coset.dialects.onnx.dtypes import DTYPE_OF_CODE, USUAL, clipped_at
from coset.dialects.onnx.node import Builder, Built, Node, constant_elements
from coset.dialects.onnx.sugar import sugar, sugar_builders
from coset.ir.builtin import ABSENT, absent
from coset.ir.op import find_op
from coset.ir.term import Term, make
from coset.ir.types import BOOL, DType

_SMALL = 64  # elements


def _mod(node: Node) -> Built:
    """C's remainder with `fmod`; else the divisor's sign, which only unsigned numbers share with the hub's remainder."""
    return sugar(node) if node.operands[0].tensor.dtype.kind == "uint" or node.attributes.get("fmod", 0) else None


def _pow(node: Node) -> Built:
    """Power of one element type. A constant exponent of another type is converted where that is exact; for an integer base it must be
    known not to be negative. A power of two numbers is a number: exporters write the scale of attention as one, and no rule that rounds
    looks into what no input reaches."""
    base, exponent = node.operands
    dtype = base.tensor.dtype
    known = constant_elements(exponent, 1)
    if dtype.kind != "float" and (known is None or known.reshape(-1)[0] < 0):
        return None
    if exponent.tensor.dtype != dtype:
        if known is None or known.astype(dtype.numpy).astype(np.float64) != known.astype(np.float64):
            return None
        exponent = literal(known.astype(dtype.numpy), dtype)
    numbers = constant_elements(base, 1), constant_elements(exponent, 1)
    if dtype.kind == "float" and dtype in USUAL and numbers[0] is not None and numbers[1] is not None:
        with np.errstate(all="ignore"):
            return literal(np.asarray(power(numbers[0], numbers[1])), dtype)
    return sugar(replace(node, operands=(base, exponent)))


def _shift(node: Node) -> Built:
    return sugar(node) if node.operands[0].tensor.dtype.kind == "uint" else None


def _is_infinite(node: Node) -> Built:
    both = node.attributes.get("detect_negative", 1) and node.attributes.get("detect_positive", 1)
    return sugar(node) if both else None


def _converted(x: Term, dtype: DType | None) -> Built:
    """Small constants are converted here: exporters put casts on their scalars. Not floats that an integer cannot hold: what they become
    is left open."""
    if dtype is None or dtype not in USUAL:
        return None
    known = constant_elements(x, _SMALL)
    return convert(x, dtype) if known is None or not _holds(dtype, known) else literal(cast(known, dtype), dtype)


def _holds(dtype: DType, elements: np.ndarray[Any, Any]) -> bool:
    """Whether numbers of a type are in the range of integers, where it is a type of these."""
    if dtype.kind not in ("int", "uint") or elements.dtype.kind in "iub":
        return True
    low, high = (0, 1 << dtype.bits) if dtype.kind == "uint" else (-(1 << (dtype.bits - 1)), 1 << (dtype.bits - 1))
    whole = np.trunc(elements.astype(np.float64))
    return bool(((whole >= low) & (whole < high)).all())


def _cast(node: Node) -> Built:
    return _converted(node.operands[0], DTYPE_OF_CODE.get(node.attributes.get("to", 0)))


def _cast_like(node: Node) -> Built:
    return _converted(node.operands[0], node.operands[1].tensor.dtype)


def _clip(node: Node) -> Built:
    """Bounds are operands since version 11; before they were attributes. One that is not given is the largest finite number, of f32
    before 11: an infinity does not stay."""
    x = node.operands[0]
    if find_op("onnx.Clip") is None or x.tensor.dtype is BOOL:
        return None
    if node.since < 6:
        return None
    if node.since < 11:
        extreme = float(np.finfo(np.float32).max)
        bounds: list[Term] = [
            splat(node.attributes.get(name, default), x.tensor.dtype, ()) for name, default in (("min", -extreme), ("max", extreme))
        ]
    else:
        if any(node.given(index) and node.operands[index].tensor.rank for index in (1, 2)):
            return None
        dtype = x.tensor.dtype
        ends = [splat(sign * clipped_at(dtype), dtype, ()) if dtype.kind == "float" else absent() for sign in (-1, 1)]
        bounds = [node.operand(index) or end for index, end in enumerate(ends, 1)]
    return make("onnx.Clip", (x, *bounds)) if any(bound.op is not ABSENT for bound in bounds) else x


def _named(node: Node) -> Built:
    """An op of one operand that stays one node; its attributes are filled in."""
    if find_op(f"onnx.{node.name}") is None or (node.since < 6 and node.name != "Softplus"):
        return None
    return make(f"onnx.{node.name}", node.operands[:1], named_attributes(node))


def _prelu_of_floats(node: Node) -> Built:
    """PRelu of usual floats; before 7 the slope was broadcast otherwise."""
    x = node.operands[0]
    floats = x.tensor.dtype in USUAL and x.tensor.dtype.kind == "float"
    return prelu(node) if floats and node.since >= 7 else None


def prelu(node: Node) -> Term:
    """PRelu. A slope that is larger than x is none by the standard's text; the reference and ONNX Runtime spread x over it then."""
    x, slope = node.operands
    return make("onnx.PRelu", (numpy_broadcast(x, numpy_shape(x.tensor.dims, slope.tensor.dims)), slope))


def named_attributes(node: Node) -> dict[str, object]:
    """The attributes of an op that stays one node; what is left out has its default."""
    return {name: node.attributes.get(name, default) for name, default in _NAMED[node.name].items()}


def _single(value: float) -> float:
    """An attribute's default as ONNX stores it: rounded to f32."""
    return float(np.float32(value))


_NAMED: dict[str, dict[str, object]] = {
    "Relu": {}, "HardSwish": {}, "Softplus": {}, "Mish": {}, "Gelu": {"approximate": "none"},
    "LeakyRelu": {"alpha": _single(0.01)}, "Elu": {"alpha": 1.0}, "HardSigmoid": {"alpha": _single(0.2), "beta": 0.5},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
}  # fmt: skip
BUILDERS: dict[str, Builder] = {
    **sugar_builders(Path(__file__).with_name("pointwise.rules")), **dict.fromkeys(_NAMED, _named),
    "Mod": _mod, "Pow": _pow, "BitShift": _shift, "IsInf": _is_infinite, "Cast": _cast, "CastLike": _cast_like, "Clip": _clip,
    "PRelu": _prelu_of_floats,
}  # fmt: skip
