"""How the functions of the index algebra are computed, by name. `coset.rules.functions` says what they are and how they are written."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from coset.ir import dims
from coset.ir.constants import Constant
from coset.ir.dims import Poly
from coset.ir.types import DType, TensorType
from coset.rules import constants as values
from coset.rules import lists
from coset.rules.arithmetic import add, arithmetic, as_list, at_most, contains, equal, exact, integer, less, nonzero, number, rounded
from coset.rules.scalar import Undefined, note


def _static(value: Any) -> bool:
    items = as_list(value) if isinstance(value, tuple | TensorType) else (value,)
    if any(isinstance(item, Poly) for item in items):
        note("`static`")
    return all(isinstance(item, int) for item in items)


def _dtype(value: Any) -> DType:
    if isinstance(value, Constant):
        return value.type.dtype
    if not isinstance(value, TensorType):
        raise Undefined
    return value.dtype


def _element(value: Any) -> DType:
    if not isinstance(value, DType):
        raise Undefined
    return value


def _end(value: Any, sign: int) -> int | float:
    """The least (`sign` -1) or greatest (1) number of a dtype: what no number of it is below or above."""
    dtype = _element(value)
    if dtype.kind == "float":
        return sign * math.inf
    if dtype.kind not in ("int", "uint"):
        raise Undefined
    width = dtype.bits - (dtype.kind == "int")
    return (1 << width) - 1 if sign > 0 else -(1 << width) if dtype.kind == "int" else 0


def _widens(a: Any, b: Any) -> bool:
    """Every value of dtype `a` is one of dtype `b`."""
    if not isinstance(a, DType) or not isinstance(b, DType):
        raise Undefined
    if a == b:
        return True
    order = {"bf16": {"f32", "f64"}, "f16": {"f32", "f64"}, "f32": {"f64"}}
    if a.kind == "bool":
        return b.kind in ("int", "uint", "float") and b.name != "f8e8m0fnu"  # which has no 0
    if a.kind == "float":
        return b.name in order.get(a.name, set())
    if a.kind in ("int", "uint") and b.kind in ("int", "uint"):
        return (a.kind == b.kind and a.bits < b.bits) or (a.kind == "uint" and b.kind == "int" and a.bits < b.bits)
    precision = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}.get(b.name, 0)
    return a.kind in ("int", "uint") and a.bits - (a.kind == "int") <= precision


OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": add,
    "-": arithmetic(dims.subtract, operator.sub),
    "*": arithmetic(dims.multiply, operator.mul),
    "/": exact,
    "//": arithmetic(nonzero(dims.floordiv), operator.floordiv),
    "%": arithmetic(nonzero(dims.mod), operator.mod),
    "negate": arithmetic(partial(dims.multiply, -1), operator.neg),
    "min": arithmetic(dims.minimum, min),
    "max": arithmetic(dims.maximum, max),
    "==": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": less,
    "<=": at_most,
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: at_most(b, a),
    "in": contains,
    "not": lambda a: not a,
    "ceildiv": arithmetic(nonzero(dims.ceildiv), lambda a, b: -(-a // b)),
    "floor": lambda v: rounded(v, math.floor),
    "ceil": lambda v: rounded(v, math.ceil),
    "rank": lambda t: len(as_list(t)),
    "dims": lambda t: as_list(t),
    "dtype": _dtype,
    "len": lambda p: len(as_list(p)),
    "range": lambda *a: tuple(range(*map(integer, a))),
    "repeat": lambda v, n: (v,) * integer(n),
    "sum": lists.total,
    "all": lambda p: all(as_list(p)),
    "any": lambda p: any(as_list(p)),
    "product": lambda p: dims.product(number(d) for d in as_list(p)),
    "item": lists.item,
    "slice": lists.slice,
    "index": lists.index,
    "reverse": lambda p: as_list(p)[::-1],
    "put": lists.put,
    "drop": lists.drop,
    "insert": lists.insert,
    "ones_at": lists.ones_at,
    "compose": lists.compose,
    "inverse": lists.inverse,
    "permute": lists.permute,
    "sort": lambda p: tuple(sorted(map(integer, as_list(p)))),
    "without": lists.without,
    "join": lists.join,
    "broadcast": lists.broadcast,
    "placement": lists.placement,
    "cut": lists.cut,
    "runs": lists.runs,
    "relocated": lists.relocated,
    "begin_end": lists.begin_end,
    "joined": lists.joined,
    "integers": values.integers,
    "diagonal": values.diagonal,
    "masking": values.masking,
    "regrouped": lists.regrouped,
    "static": _static,
    "bits": lambda t: _element(t).bits,
    "kind": lambda t: _element(t).kind,
    "lowest": lambda t: _end(t, -1),
    "highest": lambda t: _end(t, 1),
    "lossless": _widens,
    "batch_axes": lists.batch_axes,
    "swap_axes": lists.swap_last,
    "expanding": lists.expanding_axes,
}
