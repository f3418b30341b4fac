"""Host values: small integer tensors whose elements are known as dims, and ONNX's shape arithmetic on them.

A value that is evaluated here never becomes tensor work. Every rule is exact for all numbers that the symbols may take
(a symbol is the size of a dim: 0 or more); a rule that cannot be sure gives None, and the node is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from coset.dialects.onnx.bounds import at_most, least, maximum, minimum
from coset.dialects.onnx.dtypes import DTYPE_OF_CODE
from coset.ir import dims
from coset.ir.builtin import DIMS
from coset.ir.dims import Dim, Poly
from coset.ir.term import CONSTANT, Term, constant, make
from coset.ir.types import BOOL, DTYPES, I64, DType, TensorType, Type

LIMIT = 64  # elements
LARGE_SIZE = 17  # bits of a dim, with its sign, for which multiples are to be held by a narrow integer
Host = np.ndarray[Any, Any]  # of objects: Dim, or bool for a boolean tensor
Attributes = Mapping[str, Any]
_INTEGERS = frozenset(DTYPES[name] for name in ("i64", "i32"))
_HOSTED = _INTEGERS | {BOOL}


def host_value(term: Term) -> Host | None:
    """The elements of `term` as dims, where they are known: a small integer or boolean constant, or `builtin.dims`."""
    core = term.operands[0] if term.op.name == "stablehlo.broadcast_in_dim" else term
    if core.op is not CONSTANT and term.op is not DIMS:
        return None
    type = term.type
    if not isinstance(type, TensorType) or type.dtype not in _HOSTED or type.static is None:
        return None
    if term.op is DIMS:
        return host_array(term.attribute("dims"), type.static)
    if core.tensor.rank not in (0, len(type.static)) or prod(type.static) > LIMIT:
        return None
    return np.broadcast_to(core.attribute("value").array(), type.static).astype(object)


def host_array(elements: Sequence[Any], shape: Sequence[int]) -> Host:
    flat = np.empty(len(elements), object)
    flat[:] = elements
    return flat.reshape(tuple(shape))


def term_of(host: Host, dtype: DType) -> Term | None:
    """The term that holds `host`: a constant where all elements are numbers, else `builtin.dims`; None where one does not fit."""
    elements = host.ravel().tolist()
    if any(isinstance(element, Poly) for element in elements):
        if dtype not in _INTEGERS:
            return None
        return make(DIMS, (), {"dims": tuple(elements), "type": TensorType(dtype, host.shape)})
    if dtype is not BOOL:
        bounds = np.iinfo(dtype.numpy)
        if not all(bounds.min <= element <= bounds.max for element in elements):
            return None
    return constant(host.astype(dtype.numpy), dtype)


class Unsure(Exception):
    """A host rule cannot be exact; the node is kept."""


def _ensure(condition: bool | None) -> None:
    if not condition:
        raise Unsure


def _truncated_quotient(a: Dim, b: Dim) -> Dim:
    """ONNX's integer Div rounds to zero: floor division where the operands are not negative, or nothing is left over."""
    if isinstance(a, int) and isinstance(b, int):
        _ensure(b != 0)
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if isinstance(b, int) and b > 0 and (exact := dims.divide_exactly(_without_remainders(a, b), b)) is not None:
        return exact
    low, divisor = least(a), least(b)
    _ensure(low is not None and low >= 0 and divisor is not None and divisor >= 1)
    return dims.floordiv(a, b)


def _without_remainders(dim: Dim, by: int) -> Dim:
    """`dim` with x - by * (x // by) in place of each summand that is x % by, as shape arithmetic is written to divide without a rest."""
    total = dim
    for monomial, coefficient in dim.terms if isinstance(dim, Poly) else ():
        if len(monomial) == 1 and monomial[0].name == "mod" and monomial[0].args[1] == by:
            x = monomial[0].args[0]
            total = dims.subtract(total, dims.multiply(coefficient, dims.subtract(dims.mod(x, by), x)))
            total = dims.subtract(total, dims.multiply(coefficient * by, dims.floordiv(x, by)))
    return total


def _modulo(a: Dim, b: Dim) -> Dim:
    """What is left over has the sign of the divisor."""
    if isinstance(a, int) and isinstance(b, int):
        _ensure(b != 0)
        return a % b
    divisor = least(b)
    _ensure(divisor is not None and divisor >= 1)
    return dims.mod(a, b)


def _rest(a: Dim, b: Dim) -> Dim:
    """The same where `fmod` is 1: it has the sign of the dividend."""
    if isinstance(a, int) and isinstance(b, int):
        return dims.subtract(a, dims.multiply(b, _truncated_quotient(a, b)))
    low = least(a)
    _ensure(low is not None and low >= 0)
    return _modulo(a, b)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or a == b:
        return bool(a == b)
    one, other = at_most(a, b), at_most(b, a)
    _ensure(one is False or other is False)
    return False


def _below(a: Dim, b: Dim) -> bool:
    order = at_most(b, a)
    _ensure(order is not None)
    return not order


def _not_above(a: Dim, b: Dim) -> bool:
    order = at_most(a, b)
    _ensure(order is not None)
    return bool(order)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": dims.add, "Sub": dims.subtract, "Mul": dims.multiply, "Div": _truncated_quotient, "Mod": _modulo, "Max": maximum, "Min": minimum,
    "Equal": _equal, "Less": _below, "Greater": lambda a, b: _below(b, a), "LessOrEqual": _not_above,
    "GreaterOrEqual": lambda a, b: _not_above(b, a), "And": lambda a, b: a and b, "Or": lambda a, b: a or b,
}  # fmt: skip


def _map(function: Callable[..., Any], *arrays: Host) -> Host:
    spread = np.broadcast_arrays(*arrays) if len(arrays) > 1 else list(arrays)
    _ensure(spread[0].size <= LIMIT)
    return host_array([function(*items) for items in zip(*(array.ravel().tolist() for array in spread), strict=True)], spread[0].shape)


def _numbers(host: Host) -> list[int]:
    _ensure(not any(isinstance(item, Poly) for item in host.ravel().tolist()))
    return [int(item) for item in host.ravel().tolist()]


def _optional(operands: Sequence[Host | None], index: int) -> list[int] | None:
    host = operands[index] if index < len(operands) else None
    return None if host is None else _numbers(host)


def _axes(operands: Sequence[Host | None], attributes: Attributes) -> list[int] | None:
    """The axes of (Un)Squeeze and reductions: an operand since opset 13, an attribute before."""
    return list(attributes["axes"]) if "axes" in attributes else _optional(operands, 1)


def _gather(x: Host, indices: Host, attributes: Attributes) -> Host:
    positions = np.array(_numbers(indices), np.int64).reshape(indices.shape)
    return np.asarray(np.take(x, positions, axis=attributes.get("axis", 0)), object)


def _slice(operands: Sequence[Any], attributes: Attributes) -> Host:
    x: Host = operands[0]
    if "starts" in attributes:
        starts, ends = list(attributes["starts"]), list(attributes["ends"])
        axes, steps = attributes.get("axes"), None
    else:
        starts, ends = _numbers(operands[1]), _numbers(operands[2])
        axes, steps = _optional(operands, 3), _optional(operands, 4)
    index = [slice(None)] * x.ndim
    count = len(starts)
    for start, end, axis, step in zip(starts, ends, axes or range(count), steps or [1] * count, strict=True):
        length = x.shape[axis]
        index[axis] = slice(max(start, -length) if step < 0 else start, None if step < 0 and end < -length else end, step)
    return np.asarray(x[tuple(index)], object)


def _reshape(operands: Sequence[Any], attributes: Attributes) -> Host:
    x: Host = operands[0]
    sizes = _numbers(operands[1]) if len(operands) > 1 else list(attributes["shape"])
    if not attributes.get("allowzero", 0):
        sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    return np.asarray(x.reshape(sizes), object)


def _unsqueeze(operands: Sequence[Any], attributes: Attributes) -> Host:
    axes = _axes(operands, attributes)
    _ensure(axes is not None)
    return np.expand_dims(operands[0], tuple(axes or ()))


def _squeeze(operands: Sequence[Any], attributes: Attributes) -> Host:
    axes = _axes(operands, attributes)
    return np.asarray(np.squeeze(operands[0], axis=tuple(axes) if axes else None), object)


def _range(start: Host, limit: Host, delta: Host) -> Host:
    (first,), (last,), (step,) = (_numbers(host) for host in (start, limit, delta))
    _ensure(step != 0)
    numbers = range(first, last, step)
    _ensure(len(numbers) <= LIMIT)
    return host_array(list(numbers), (len(numbers),))


def _expand(x: Host, shape: Host) -> Host:
    result = np.broadcast_shapes(x.shape, tuple(_numbers(shape)))
    _ensure(prod(result) <= LIMIT)
    return np.broadcast_to(x, result)


def _filled(shape: Host, attributes: Attributes) -> Host:
    """ConstantOfShape of a small static shape."""
    sizes = _numbers(shape)
    _ensure("value" in attributes and all(dim >= 0 for dim in sizes) and prod(sizes) <= LIMIT)
    value = attributes["value"].array().reshape(-1)[0].item()
    return host_array([value] * prod(sizes), sizes)


def _product(operands: Sequence[Any], attributes: Attributes) -> Host:
    x: Host = operands[0]
    axes = _axes(operands, attributes)
    _ensure(x.ndim == 1 and (axes in ([0], [-1]) or (not axes and not attributes.get("noop_with_empty_axes", 0))))
    return host_array([dims.product(x.tolist())], (1,) if attributes.get("keepdims", 1) else ())


def _fold(function: Callable[[Any, Any], Any], operands: Sequence[Any]) -> Host:
    total: Host = operands[0]
    for operand in operands[1:]:
        total = _map(function, total, operand)
    return total


_RULES: dict[str, Callable[[Sequence[Any], Attributes], Host]] = {
    "Identity": lambda xs, _: xs[0],
    "Neg": lambda xs, _: _map(lambda a: dims.multiply(-1, a), xs[0]),
    "Not": lambda xs, _: _map(lambda a: not a, xs[0]),
    "Gather": lambda xs, a: _gather(xs[0], xs[1], a),
    "Slice": _slice,
    "Concat": lambda xs, a: np.concatenate(xs, axis=a["axis"]),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "Transpose": lambda xs, a: np.transpose(xs[0], a.get("perm")),
    "Expand": lambda xs, _: _expand(*xs),
    "Range": lambda xs, _: _range(*xs),
    "ConstantOfShape": lambda xs, a: _filled(xs[0], a),
    "ReduceProd": _product,
    "Where": lambda xs, _: _map(lambda c, a, b: a if c else b, *xs),
    "Cast": lambda xs, _: xs[0],
}


# what the rules read; a node with another attribute is kept as it is
_READ: dict[str, tuple[str, ...]] = {
    "Mod": ("fmod",), "Gather": ("axis",), "Slice": ("starts", "ends", "axes"), "Concat": ("axis",), "Squeeze": ("axes",),
    "Unsqueeze": ("axes",), "Reshape": ("shape", "allowzero"), "Transpose": ("perm",), "ConstantOfShape": ("value",),
    "ReduceProd": ("axes", "keepdims", "noop_with_empty_axes"), "Cast": ("to", "saturate", "round_mode"),
}  # fmt: skip


def _truth(element: Any) -> bool:
    """A number as a condition."""
    if isinstance(element, Poly):
        low = least(element)
        _ensure(low is not None and low >= 1)
        return True
    return bool(element)


def evaluate(name: str, operands: Sequence[Host | None], attributes: Attributes, result: DType) -> Term | None:
    """The result of the ONNX op `name` on host values as a term, or None where it is none or cannot be exact.

    `result` is the element type of the result; a missing optional operand is None, all others must be known.
    """
    if result not in _HOSTED or not operands or operands[0] is None or not set(attributes) <= set(_READ.get(name, ())):
        return None
    try:
        if name == "Mod" and attributes.get("fmod", 0):
            host = _fold(_rest, operands)
        elif name in _BINARY:
            host = _fold(_BINARY[name], operands)
        elif name == "Cast" and result is BOOL:
            host = _map(_truth, operands[0])
        elif name in _RULES:
            host = _RULES[name](operands, attributes)
        else:
            return None
    except (Unsure, IndexError, ValueError):
        return None  # not exact, or the node is wrong: then it stays opaque and whoever runs it reports it
    if result.kind != "bool" and not all(_fits(item, result) for item in host.ravel().tolist()):
        return None  # it wraps around, for some sizes at least
    truths = all(isinstance(item, bool) for item in host.ravel().tolist())
    return None if host.size > LIMIT or (result is BOOL and not truths) else term_of(host, result)


def _fits(item: Any, dtype: DType) -> bool:
    """Whether a number, or a dim for sizes up to 65,536, is held by an integer type."""
    if dtype.kind not in ("int", "uint") or isinstance(item, bool):
        return True
    if isinstance(item, Poly):
        return dtype.bits >= 64 or all(abs(number) < 1 << (dtype.bits - LARGE_SIZE) for _, number in item.terms)
    low, high = (0, 1 << dtype.bits) if dtype.kind == "uint" else (-(1 << (dtype.bits - 1)), 1 << (dtype.bits - 1))
    return not isinstance(item, int) or low <= item < high


def result_dtype(name: str, type: Type, operands: Sequence[Term], attributes: Attributes) -> DType:
    """The element type of the result of shape arithmetic."""
    if name == "Cast":
        return DTYPE_OF_CODE.get(attributes["to"], I64) if attributes["to"] in DTYPE_OF_CODE else BOOL
    if name in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Not"):
        return BOOL
    if name == "ConstantOfShape":
        return attributes["value"].type.dtype if "value" in attributes else DTYPE_OF_CODE[1]
    if name == "Where":
        type = operands[1].type
    assert isinstance(type, TensorType)
    return type.dtype
