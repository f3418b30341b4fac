"""Symbols for the numbers that say where an op reads: where slices begin and end, strides, dilations, padding, windows and groups.

A proof looks at them as it does at dims: what is shown of symbols holds for all numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coset.ir import dims
from coset.ir.dims import Dim, symbol
from coset.ir.types import TensorType, Type
from coset.rules.algebra import Expression, Listing, Ref, Wild

# how an attribute counts: a start may be 0 (its symbol has a colon), a count is 1 or more, an offset any integer, a pair two of them
_START, _COUNT, _OFFSET, _PAIR, _GROUP, _SHAPE = "start", "count", "offset", "pair", "group", "shape"
_OF_CONVOLUTION = {"strides": _COUNT, "lhs_dilation": _COUNT, "rhs_dilation": _COUNT, "dilations": _COUNT, "padding": _PAIR}
PLACES = {
    "stablehlo.broadcast_in_dim": {"shape": _SHAPE},
    "stablehlo.reshape": {"shape": _SHAPE},
    "stablehlo.slice": {"start": _START, "limit": _START, "strides": _START},
    "stablehlo.pad": {"low": _OFFSET, "high": _OFFSET, "interior": _START},
    "stablehlo.convolution": {**_OF_CONVOLUTION, "feature_group_count": _GROUP, "batch_group_count": _GROUP},
    "onnx.Conv": {**_OF_CONVOLUTION, "group": _GROUP},
    "onnx.ConvTranspose": {**_OF_CONVOLUTION, "group": _GROUP},
    "stablehlo.reduce_window": {
        "window_dimensions": _COUNT, "window_strides": _COUNT, "base_dilations": _COUNT, "window_dilations": _COUNT, "padding": _PAIR,
    },
}  # fmt: skip


# functions that say the same of a symbol as of every number that it may stand for, or ask, or have no value; others tell dims of 1 apart
FAIR = frozenset((
    "+", "-", "*", "/", "//", "%", "negate", "min", "max", "==", "!=", "<", "<=", ">", ">=", "in", "not", "and", "or", "if", "ceildiv",
    "floor", "ceil", "rank", "dims", "dtype", "len", "range", "repeat", "sum", "all", "any", "product", "item", "index", "slice", "without",
    "join", "joined", "permute", "inverse", "compose", "drop", "insert", "put", "sort", "swap_last", "swap_axes", "batch_axes", "bits",
    "kind", "lossless", "lowest", "highest", "pi", "exp", "log", "sqrt",
))  # fmt: skip


def places(label: str, written: Expression | None, op: str, attribute: str, operands: Sequence[Type], most: int) -> list[Any]:
    """What stands for all values of `attribute`, which the rule writes as a name or not at all, or of an item that it names in a list;
    nothing where there is no such thing. Shapes have every rank up to `most`, or one more than the operand."""
    kind = PLACES.get(op, {}).get(attribute)
    first = operands[0] if operands else None
    if kind is None or not isinstance(first, TensorType):
        return []
    if kind == _SHAPE:
        ranks = range(max(first.rank + 1, most) + 1) if written is None or isinstance(written, Ref) else ()
        return [tuple(symbol(f"{label}_{axis}") for axis in range(rank)) for rank in ranks]
    if kind == _GROUP:  # a type rule takes one group count of two: each is also looked at as 1
        return [1, _number(f"at.{label}", _COUNT)] if written is None or isinstance(written, Ref) else []
    if written is None or isinstance(written, Ref):
        around = 2 if attribute in _OF_CONVOLUTION and op != "stablehlo.reduce_window" and op != "stablehlo.slice" else 0
        return [tuple(_place(f"{label}.{axis}", kind) for axis in range(max(0, first.rank - around)))]
    return [_number(label, kind)] if isinstance(written, Listing) or op == "stablehlo.slice" else []


def is_open(op: str, attribute: str, written: Expression | None) -> bool:
    """Whether a rule leaves open what `attribute` is, or gives it a name."""
    return attribute in PLACES.get(op, {}) and (written is None or isinstance(written, Ref | Wild | Listing))


def _place(label: str, kind: str) -> Any:
    return (_number(f"{label}.low", _OFFSET), _number(f"{label}.high", _OFFSET)) if kind == _PAIR else _number(label, kind)


def _number(label: str, kind: str) -> Dim:
    if kind == _COUNT:
        return symbol(f"at.{label}")
    if kind == _START:
        return symbol(f"at:{label}")
    return dims.subtract(symbol(f"at:{label}"), symbol(f"before:{label}"))  # any integer is a difference of two that are not negative
