"""The functions of the index algebra, by the table in `docs/rules.md`: lists are tuples, dims are integers or expressions over symbols."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from coset.ir import dims
from coset.ir.constants import Constant
from coset.ir.term import Term
from coset.ir.types import DType, TensorType
from coset.prove.second import lists
from coset.prove.second.answer import CannotSay, Unknown
from coset.prove.second.arithmetic import (
    as_int,
    as_list,
    as_number,
    equal,
    not_more,
    plus,
    times,
    whole,
)

# ---------------------------------------------------------------- arithmetic


# ---------------------------------------------------------------- lists


def _range(*ends: Any) -> tuple[int, ...]:
    return tuple(range(*(as_int(end) for end in ends)))


def _repeat(value: Any, count: Any) -> tuple[Any, ...]:
    return (value,) * as_int(count)


def _total(p: Any) -> Any:
    total: Any = 0
    for each in as_list(p):
        total = plus(total, each)
    return total


def _product(p: Any) -> Any:
    total: Any = 1
    for each in as_list(p):
        total = times(total, each)
    return total


def _index(p: Any, v: Any) -> int:
    for place, each in enumerate(as_list(p)):
        if equal(each, v):
            return place
    raise Unknown(f"{v} is not in {p}")


# ---------------------------------------------------------------- types and constants


def _dtype(value: Any) -> DType:
    if not isinstance(value, DType):
        raise Unknown(f"{value} is no dtype")
    return value


def type_of(value: Any) -> TensorType:
    """The type of a term or a constant."""
    found = value.type if isinstance(value, Term | Constant) else None
    if not isinstance(found, TensorType) or found.shape is None:
        raise Unknown(f"{value} has no shape")
    return found


def _kind(dtype: Any) -> str:
    return _dtype(dtype).kind


def _extreme(dtype: DType, side: int) -> Any:
    if dtype.kind == "float":
        return math.inf * side
    if dtype.kind == "bool":
        return side > 0
    low = 0 if dtype.kind == "uint" else -(1 << dtype.bits - 1)
    if dtype.kind not in ("int", "uint"):
        raise Unknown(f"{dtype} has no order")
    return low + (1 << dtype.bits) - 1 if side > 0 else low


def _lossless(a: Any, b: Any) -> bool:
    """True where each value of `a` is one of `b`, by the numbers of bits that both have."""
    one, other = _dtype(a), _dtype(b)
    if one is other:
        return True
    if one.kind == "bool":
        return other.kind in ("int", "uint", "float", "complex") and other.name not in ("f8e8m0fnu",)
    if one.kind in ("int", "uint"):
        digits = one.bits - (one.kind == "int")
        if other.kind in ("int", "uint"):
            return digits <= other.bits - (other.kind == "int") and (one.kind == "uint" or other.kind == "int")
        form = _float_form(other)
        return form is not None and digits <= form[0] and digits < form[2]
    if one.kind == "float" and other.kind in ("float", "complex"):
        first, second = _float_form(one), _float_form(other)
        usual = ("f16", "bf16", "f32", "f64", "c64", "c128")
        if one.name not in usual or other.name not in usual:
            if other.name in ("f32", "f64") and one.name != "f8e8m0fnu":
                return True
            raise CannotSay(f"whether every value of {one} is one of {other}")
        assert first is not None and second is not None
        return first[0] <= second[0] and first[1] >= second[1] and first[2] <= second[2]
    return one.kind == "complex" and other.kind == "complex" and one.bits <= other.bits


def _float_form(dtype: DType) -> tuple[int, int, int] | None:
    """Digits of the significand, the exponents of the least and of the greatest number."""
    return {
        "f16": (11, -24, 16), "bf16": (8, -133, 128), "f32": (24, -149, 128), "f64": (53, -1074, 1024),
        "c64": (24, -149, 128), "c128": (53, -1074, 1024),
    }.get(dtype.name)  # fmt: skip


def _integers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, Constant) or value.type.dtype.kind not in ("int", "uint") or value.bytes > 8 * 4096:
        raise Unknown("no small constant of integers")
    return tuple(int(each) for each in value.array().reshape(-1))


def _floor(value: Any) -> int:
    return math.floor(_finite(value))


def _ceil(value: Any) -> int:
    return math.ceil(_finite(value))


def _finite(value: Any) -> Fraction:
    plain = as_number(value)
    if isinstance(plain, float) and not math.isfinite(plain):
        raise Unknown(f"{value} has no whole number beside it")
    return Fraction(plain)


def _least(*values: Any) -> Any:
    if len(values) != 2:
        raise Unknown("min of two numbers")
    return values[0] if not_more(values[0], values[1]) else values[1]


def _most(*values: Any) -> Any:
    if len(values) != 2:
        raise Unknown("max of two numbers")
    return values[1] if not_more(values[0], values[1]) else values[0]


def _ceildiv(a: Any, b: Any) -> Any:
    if not (whole(a) and whole(b)) or b == 0:
        raise Unknown(f"ceildiv({a}, {b})")
    return dims.ceildiv(a, b)


def _truths(p: Any, wanted: bool) -> bool:
    values = as_list(p)
    if not all(isinstance(each, bool) for each in values):
        raise Unknown("no list of truths")
    return any(values) if wanted else all(values)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": _least,
    "max": _most,
    "ceildiv": _ceildiv,
    "floor": _floor,
    "ceil": _ceil,
    "rank": lambda x: type_of(x).rank,
    "dims": lambda x: tuple(type_of(x).dims),
    "dtype": lambda x: type_of(x).dtype,
    "len": lambda p: len(as_list(p)),
    "range": _range,
    "repeat": _repeat,
    "sum": _total,
    "all": lambda p: _truths(p, False),
    "any": lambda p: _truths(p, True),
    "product": _product,
    "index": _index,
    "reverse": lambda p: tuple(reversed(as_list(p))),
    "put": lists.put,
    "drop": lists.drop,
    "insert": lists.insert,
    "ones_at": lists.ones_at,
    "compose": lists.compose,
    "inverse": lists.inverse,
    "permute": lists.permute,
    "sort": lists.rising,
    "without": lists.without,
    "join": lists.join,
    "broadcast": lists.broadcast,
    "placement": lists.placement,
    "cut": lists.cut,
    "runs": lists.runs,
    "relocated": lists.relocated,
    "joined": lists.joined,
    "integers": _integers,
    "regrouped": lists.regrouped,
    "static": lists.static,
    "bits": lambda t: _dtype(t).bits,
    "kind": _kind,
    "lowest": lambda t: _extreme(_dtype(t), -1),
    "highest": lambda t: _extreme(_dtype(t), 1),
    "lossless": _lossless,
    "batch_axes": lambda a, b: tuple(range(type_of(a).rank - 2)) if type_of(b).rank > 2 else (),
    "swap_axes": lambda x: (*range(type_of(x).rank - 2), type_of(x).rank - 1, type_of(x).rank - 2),
}
